//! The command line as one definition: parser, help, completions and `docs/commands.md` come from it.

use crate::commands::fcoe::{esxcli, fcnsq, fcoeadm, fcoemon, fcping, fipvlan};
use crate::commands::{
    apply, bench, capture, check, completions, fabric, initiator, port, reference, replay, reproduce, show, sim, sweep,
    up, volume, whatif, zone,
};
use clap::{Parser, Subcommand};

/// Design, simulate and run storage area networks.
#[derive(Parser, Debug)]
#[command(
    name = "sanloom",
    version,
    about = "Designs, simulates and runs storage area networks, frame by frame",
    max_term_width = 100,
    after_help = "Exit codes: 0 ok; 1 a checked expectation failed; 2 wrong usage or lab file; 3 a peer or protocol \
                  failed; 4 the environment (permission, full disk); 70 a bug in sanloom; 130 interrupted."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Look for mistakes in a lab file and report on its topology
    Check(check::Args),
    /// Simulate a lab frame by frame
    Sim(Box<sim::Args>),
    /// Show the fabric of a lab at a time: switches, logins, name server, zones, paths, ports
    Show(show::Args),
    /// Simulate a lab for every combination of several values
    Sweep(sweep::Args),
    /// Simulate a lab once for every single failure, without its own faults, and rank the failures
    Whatif(whatif::Args),
    /// Bring a lab to life: a Fibre Channel fabric over Ethernet, with storage, that real hosts log in to
    Up(up::Args),
    /// Be a host over FCoE or iSCSI, and offer its disks to programs on an NBD socket
    Initiator(Box<initiator::Args>),
    /// Begin and end FCoE hosts as the files of a folder say
    Fcoemon(fcoemon::Args),
    /// Show and manage FCoE hosts, their targets and units
    Fcoeadm(fcoeadm::Args),
    /// Ask which VLANs carry FCoE
    Fipvlan(fipvlan::Args),
    /// Ask the name server
    Fcnsq(fcnsq::Args),
    /// Send ECHO to a port
    Fcping(fcping::Args),
    /// List FCoE hosts as ESX does
    Esxcli(esxcli::Args),
    /// Do in a running lab what was changed in its file
    Apply(apply::Args),
    /// Disable or enable a port of a running lab, or tamper with its frames
    Port(port::Args),
    /// Capture the Ethernet port of a link of a running lab
    Capture(capture::Args),
    /// Tell the machines of a recorded run the same again, and find out whether they say the same
    Replay(replay::Args),
    /// Make, extend, delete and serve virtual disks of a running lab
    Volume(volume::Args),
    /// Ask about the zones of a lab
    Zone(zone::Args),
    /// Ask about fabrics as a whole
    Fabric(fabric::Args),
    /// Repeat what a paper measured and hold the results against it
    Reproduce(reproduce::Args),
    /// Measure how fast sanloom is
    Bench(bench::Args),
    /// Print the reference of the lab file: every section, key, unit and default
    Reference(reference::Args),
    /// Print completions for a shell
    Completions(completions::Args),
}
