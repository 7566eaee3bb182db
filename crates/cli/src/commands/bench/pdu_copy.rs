//! `sanloom bench pdu-copy`: the PDU-copy ceiling as a process, for measurements of switches.

use crate::exit::Failure;
use crate::interrupt;
use crate::output;
use sanloom_live::iscsi::ceiling;
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
}

/// Forwards until Ctrl-C.
///
/// # Errors
/// When it cannot listen or wait.
pub fn run(args: &Args) -> Result<(), Failure> {
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| Failure::environment(format_args!("cannot listen at {}: {error}", args.listen)))?;
    let pdus = ceiling::run(&listener, args.to, args.bytes_per_second, || !interrupt::requested())
        .map_err(|error| Failure::environment(format_args!("cannot wait for connections: {error}")))?;
    output::print(&format!("{pdus} PDUs\n"))
}
