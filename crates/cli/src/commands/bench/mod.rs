//! `sanloom bench`: how fast sanloom is.

mod bound;
mod chain;
mod ethernet;
mod fabric;
mod fdisc;
mod forward;
pub(super) mod io;
mod login;
mod names;
mod ns3;
mod offloads;
mod pdu_copy;
mod rate;
pub(super) mod statistics;
mod switch;
mod work;

use crate::exit::Failure;
use crate::output;
use crate::report::{file, json};
use clap::Subcommand;
use serde::Serialize;
use std::path::Path;

/// Options of `sanloom bench`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What to measure.
    #[command(subcommand)]
    pub what: What,
}

/// What can be measured.
#[derive(Subcommand, Debug)]
pub enum What {
    /// Frame-hops per second of processor time, and memory, on a core/edge fabric under saturated 32 KB reads
    Sim(rate::Args),
    /// The same fabric in ns-3 (without credits and arbitration) and in sanloom (with them), and the ratio
    Ns3(ns3::Args),
    /// What a login costs a switch with full zoning and name server, by thousand logins, and memory
    Login(login::Args),
    /// Answers of the name server per second of processor time
    Names(names::Args),
    /// Frames that the switch forwards between two Ethernet ports, beside a forwarder that looks at nothing
    Forward(forward::Args),
    /// Logins of virtual ports over the wire per second, and how long each takes, up to 65,000
    Fdisc(fdisc::Args),
    /// Reads and writes over FCoE through the switch, beside a bare chain of as many datagrams
    Chain(chain::Args),
    /// What it costs a large fabric to converge: domains, routes, name service and zones of all switches agree
    Fabric(fabric::Args),
    /// What the offloads of document 002 are worth in software: CRC, placement, segmentation, threads
    Offloads(offloads::Args),
    /// Requests to disks over iSCSI, FCoE or NBD: throughput, latency and processor time of one path, or of several in turn
    Io(Box<io::Args>),
    /// A forwarder that copies PDUs and does nothing else, to measure a forwarding path against; connections with digests cannot pass
    #[command(hide = true)]
    PduCopy(pdu_copy::Args),
}

/// Measures.
///
/// # Errors
/// When something cannot be run or written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Sim(args) => rate::run(args),
        What::Ns3(args) => ns3::run(args),
        What::Login(args) => login::run(args),
        What::Names(args) => names::run(args),
        What::Forward(args) => forward::run(args),
        What::Fdisc(args) => fdisc::run(args),
        What::Chain(args) => chain::run(args),
        What::Fabric(args) => fabric::run(args),
        What::Offloads(args) => offloads::run(args),
        What::Io(args) => io::run(args),
        What::PduCopy(args) => pdu_copy::run(args),
    }
}

/// Writes what was measured as JSON where that was asked for, and prints it, unless standard output has the JSON.
pub(super) fn report(json: Option<&Path>, measured: &impl Serialize, text: &str) -> Result<(), Failure> {
    if let Some(path) = json {
        output::written(file::write(path, |out| json::write_value(out, measured)))?;
    }
    if json == Some(Path::new("-")) { Ok(()) } else { output::print(text) }
}
