//! `sanloom bench pdu-copy`: the PDU-copy ceiling as a process, for measurements of switches.

use crate::ceiling::{self, Habits, Manner};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::output;
use sanloom_console::quantity;
use std::net::{SocketAddr, TcpListener};

/// Options of `sanloom bench pdu-copy`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Address to listen at, such as 127.0.0.1:3261
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Destination of the connections, such as 127.0.0.1:3260
    #[arg(long, value_name = "ADDRESS:PORT")]
    to: SocketAddr,
    /// Limit the rate of each direction of a connection, as a link does: 125000000 for 1 Gb/s
    #[arg(long, value_name = "BYTES", value_parser = quantity::size::<u32>(1..=u32::MAX.into(), quantity::BYTES))]
    bytes_per_second: Option<u32>,
    /// Method that moves data between the sockets
    #[arg(long, value_name = "MOVER", value_enum, default_value_t = Mover::Copy)]
    mover: Mover,
    /// Store each PDU completely before it is sent, to measure the gain of cut-through
    #[arg(long)]
    whole_pdus: bool,
    /// Send each PDU alone, to measure the gain of batches
    #[arg(long)]
    single_pdus: bool,
    /// Read once for each wake-up, to measure the gain of repeated reads
    #[arg(long)]
    single_reads: bool,
}

/// Method that moves data between the sockets.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Mover {
    /// recv and send, through one buffer
    Copy,
    /// splice(2) through a pipe, each PDU alone
    Splice,
    /// Requests of an io_uring, through one buffer
    IoUring,
}

impl Args {
    fn manner(&self) -> Manner {
        let mover = match self.mover {
            Mover::Copy => ceiling::Mover::Copy,
            Mover::Splice => ceiling::Mover::Splice,
            Mover::IoUring => ceiling::Mover::IoUring,
        };
        let Args { whole_pdus, single_pdus, single_reads, bytes_per_second, .. } = *self;
        Manner { mover, habits: Habits { whole_pdus, single_pdus, single_reads }, bytes_per_second }
    }
}

/// Forwards until Ctrl-C.
///
/// # Errors
/// If the address cannot be bound, or waiting fails.
pub fn run(args: &Args) -> Result<(), Failure> {
    let manner = args.manner();
    if manner.mover != ceiling::Mover::Copy && manner.habits != Habits::default() {
        return Err(Failure::usage(
            "--whole-pdus, --single-pdus and --single-reads require --mover copy; omit them or the mover",
        ));
    }
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| Failure::environment(format_args!("cannot listen at {}: {error}", args.listen)))?;
    let pdus = ceiling::run(&listener, args.to, &manner, || !interrupt::requested())
        .map_err(|error| Failure::environment(format_args!("cannot forward connections: {error}")))?;
    output::print(&format!("{pdus} PDUs\n"))
}
