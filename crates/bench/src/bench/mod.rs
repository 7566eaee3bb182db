//! `sanloom bench`: measurements of the speed of sanloom.

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
mod plane;
mod rate;
mod sessions;
pub(super) mod statistics;
mod storage;
mod switch;
mod threads;
mod work;

use clap::Subcommand;
use sanloom_console::exit::Failure;

/// Options of `sanloom bench`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Measurement to run.
    #[command(subcommand)]
    pub what: What,
}

/// Measurements.
#[derive(Subcommand, Debug)]
pub enum What {
    /// Frame-hops per second of processor time, and memory, on a core/edge fabric under saturated
    /// reads
    #[command(after_help = "Example:\n  sanloom bench sim")]
    Sim(rate::Args),
    /// The same fabric in ns-3 (without credits and arbitration) and in sanloom (with them), and
    /// the ratio
    #[command(after_help = "Example:\n  sanloom bench ns3")]
    Ns3(ns3::Args),
    /// Cost of a login at a switch with full zoning and name server, per thousand logins, and
    /// memory
    #[command(after_help = "Example:\n  sanloom bench login")]
    Login(login::Args),
    /// Name-server responses per second of processor time
    #[command(after_help = "Example:\n  sanloom bench names")]
    Names(names::Args),
    /// Operations per second of processor time of the storage models: disk with each rule of its
    /// queue, cache, RAID 5 and flash memory
    #[command(after_help = "Example:\n  sanloom bench storage")]
    Storage(storage::Args),
    /// Frames that the switch forwards between two Ethernet ports, beside a forwarder that does not
    /// inspect them
    #[command(after_help = "Example:\n  sanloom bench forward")]
    Forward(forward::Args),
    /// Frames that the switch forwards between pairs of Ethernet ports with one thread and with
    /// several; requires root
    #[command(after_help = "Example:\n  sanloom bench threads")]
    Threads(threads::Args),
    /// Requests of several hosts through an iSCSI switch with one thread and with several
    #[command(after_help = "Example:\n  sanloom bench sessions --rounds 25")]
    Sessions(sessions::Args),
    /// Logins of up to 65,000 virtual ports over Ethernet: rate and latency
    #[command(after_help = "Example:\n  sanloom bench fdisc")]
    Fdisc(fdisc::Args),
    /// Reads and writes over FCoE through the switch, beside a bare chain that exchanges as many
    /// datagrams
    #[command(after_help = "Example:\n  sanloom bench chain")]
    Chain(chain::Args),
    /// Cost of convergence of a large fabric: domains, routes, name service and zones of all
    /// switches
    #[command(after_help = "Example:\n  sanloom bench fabric")]
    Fabric(fabric::Args),
    /// Gain of the offloads of the Open-FCoE slides in software: CRC, placement, segmentation,
    /// threads
    #[command(after_help = "Example:\n  sanloom bench offloads")]
    Offloads(offloads::Args),
    /// Requests to disks over iSCSI, FCoE or NBD: throughput, latency and processor time of one or
    /// several paths
    Io(Box<io::Args>),
    /// Run a forwarder that copies PDUs and does nothing else, as a reference for a forwarding
    /// path; connections with digests cannot pass
    #[command(hide = true)]
    PduCopy(pdu_copy::Args),
}

/// Runs a measurement.
///
/// # Errors
/// If something cannot be run or written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Sim(args) => rate::run(args),
        What::Ns3(args) => ns3::run(args),
        What::Login(args) => login::run(args),
        What::Names(args) => names::run(args),
        What::Storage(args) => storage::run(args),
        What::Forward(args) => forward::run(args),
        What::Threads(args) => threads::run(args),
        What::Sessions(args) => sessions::run(args),
        What::Fdisc(args) => fdisc::run(args),
        What::Chain(args) => chain::run(args),
        What::Fabric(args) => fabric::run(args),
        What::Offloads(args) => offloads::run(args),
        What::Io(args) => io::run(args),
        What::PduCopy(args) => pdu_copy::run(args),
    }
}
