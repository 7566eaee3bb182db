//! `sanloom bench pdu-copy`: the PDU-copy ceiling as a process, for measurements of switches.

use crate::exit::Failure;
use crate::interrupt;
use crate::output;
use sanloom_live::iscsi::ceiling::{self, Habits, Manner};
use std::net::{SocketAddr, TcpListener};

/// Options of `sanloom bench pdu-copy`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Where to listen, such as 127.0.0.1:3261
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Where connections go, such as 127.0.0.1:3260
    #[arg(long, value_name = "ADDRESS:PORT")]
    to: SocketAddr,
    /// Let no more bytes pass each way of a connection than a link would: 125000000 for 1 Gb/s
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    bytes_per_second: Option<u32>,
    /// How data get from one socket to the other
    #[arg(long, value_name = "MOVER", value_enum, default_value_t = Mover::Copy)]
    mover: Mover,
    /// Let no PDU leave before all of it is there, as store and forward does; to see what cut-through is worth
    #[arg(long)]
    whole_pdus: bool,
    /// Send each PDU by itself; to see what batches are worth
    #[arg(long)]
    single_pdus: bool,
    /// Read once for each wake-up; to see what reading on is worth
    #[arg(long)]
    single_reads: bool,
}

/// How data get from one socket to the other.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Mover {
    /// recv and send, through one buffer
    Copy,
    /// splice(2) through a pipe, each PDU by itself
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
/// When it cannot listen or wait.
pub fn run(args: &Args) -> Result<(), Failure> {
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| Failure::environment(format_args!("cannot listen at {}: {error}", args.listen)))?;
    let pdus = ceiling::run(&listener, args.to, &args.manner(), || !interrupt::requested())
        .map_err(|error| Failure::environment(format_args!("cannot forward connections: {error}")))?;
    output::print(&format!("{pdus} PDUs\n"))
}
