//! The command line as one definition: parser, help, completions and
//! `docs/src/reference/commands.md` come from it.

use crate::commands::fcoe::{esxcli, fcnsq, fcoeadm, fcoemon, fcping, fipvlan};
use crate::commands::{
    apply, capture, check, compare, completions, down, export, fabric, fmt, import, init, initiator, man, port, ps,
    reference, replay, schema, show, sim, sweep, trace, up, volume, whatif, zone,
};
use clap::{Parser, Subcommand};
use sanloom_bench::{bench, disk, reproduce};

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
    /// Command to run
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Write a new lab file from a template
    #[command(after_help = "Example:\n  sanloom init --template core-edge lab.toml")]
    Init(init::Args),
    /// Bring lab files into their canonical layout; comments are kept
    #[command(after_help = "Example:\n  sanloom fmt lab.toml")]
    Fmt(fmt::Args),
    /// Make a lab of the configuration of real switches: outputs of Fabric OS and NX-OS, and JSON
    /// of the REST interface of Fabric OS
    #[command(
        after_help = "Notes on standard error say what has no place in the lab. No line of the files is dropped \
                      silently.\n\nExample:\n  sanloom import switchshow.txt nsshow.txt cfgshow.txt -o lab.toml"
    )]
    Import(import::Args),
    /// Write the zones of a lab as commands for real switches
    #[command(
        after_help = "Example:\n  sanloom export zones planned.toml --from imported.toml --format fos -o change.txt"
    )]
    Export(export::Args),
    /// Report the errors of a lab file, and its topology
    #[command(after_help = "Example:\n  sanloom check lab.toml --svg lab.svg")]
    Check(check::Args),
    /// Simulate a lab frame by frame
    #[command(after_help = "Example:\n  sanloom sim lab.toml --duration 2s --set 'workload.*.depth=16'")]
    Sim(Box<sim::Args>),
    /// Show tables of the fabric, simulated or running: switches, logins, name server, zones,
    /// paths, ports
    #[command(after_help = "Example:\n  sanloom show lab.toml routes --at 500ms")]
    Show(show::Args),
    /// Simulate a lab for all combinations of several values
    #[command(after_help = "Example:\n  sanloom sweep lab.toml --set 'workload.*.depth=1,4,16' --html=sweep.html")]
    Sweep(sweep::Args),
    /// Simulate every single failure of a lab, and rank the failures
    #[command(after_help = "Example:\n  sanloom whatif lab.toml --only link,switch --expect 'left >= 0.5'")]
    Whatif(whatif::Args),
    /// Compare the results of two simulations
    #[command(
        after_help = "Example:\n  sanloom compare before.sanloom-report after.sanloom-report --html=compare.html"
    )]
    Compare(compare::Args),
    /// Serve a page with the results of one or two simulations
    #[cfg(feature = "surface")]
    #[command(after_help = "Example:\n  sanloom view before.sanloom-report after.sanloom-report")]
    View(crate::commands::view::Args),
    /// Run a lab as a real fabric over Ethernet, with storage, that hosts can log in to
    #[command(after_help = "Example:\n  sanloom up lab.toml --detach")]
    Up(up::Args),
    /// List the running instances
    #[command(after_help = "Example:\n  sanloom ps")]
    Ps(ps::Args),
    /// End running instances
    #[command(after_help = "Example:\n  sanloom down lab.toml")]
    Down(down::Args),
    /// Run an FCoE or iSCSI host that offers its disks to programs on an NBD socket
    Initiator(Box<initiator::Args>),
    /// Start and stop FCoE hosts according to the configuration files of a folder
    #[command(after_help = "Example:\n  sanloom fcoemon --foreground --config-folder /etc/fcoe")]
    Fcoemon(fcoemon::Args),
    /// Show and manage FCoE hosts, their targets and units
    #[command(after_help = "Example:\n  sanloom fcoeadm --create eth2")]
    Fcoeadm(fcoeadm::Args),
    /// Discover the VLANs that carry FCoE
    #[command(after_help = "Example:\n  sanloom fipvlan --create --start eth2")]
    Fipvlan(fipvlan::Args),
    /// Query the name server
    #[command(after_help = "Example:\n  sanloom fcnsq eth2 --all")]
    Fcnsq(fcnsq::Args),
    /// Send ECHO to a port
    #[command(after_help = "Example:\n  sanloom fcping -h eth2 -F 0x010200 -c 3")]
    Fcping(fcping::Args),
    /// List FCoE hosts as ESX does
    #[command(after_help = "Example:\n  sanloom esxcli fcoe adapter list")]
    Esxcli(esxcli::Args),
    /// Apply changes in the lab file to the running lab
    #[command(after_help = "Example:\n  sanloom apply lab.toml --preview")]
    Apply(apply::Args),
    /// Disable or enable a port of a running lab, or inject faults into its frames
    #[command(after_help = "Example:\n  sanloom port disable lab.toml sw1:3")]
    Port(port::Args),
    /// Capture the frames of a port of a running lab
    #[command(after_help = "Example:\n  sanloom capture lab.toml server1-sw1 --to server1.pcapng")]
    Capture(capture::Args),
    /// Replay a recorded run, and report the first output that differs
    #[command(after_help = "Example:\n  sanloom replay lab.recording")]
    Replay(replay::Args),
    /// Create, extend, delete and map virtual disks of a running lab
    #[command(after_help = "Example:\n  sanloom volume create lab.toml mail --pool disks --size 100GiB")]
    Volume(volume::Args),
    /// Inspect and convert traces of requests
    #[command(after_help = "Example:\n  sanloom trace inspect financial.spc.gz")]
    Trace(trace::Args),
    /// Explain, preview and change zones
    #[command(after_help = "Example:\n  sanloom zone explain lab.toml esx01:0 array1:0")]
    Zone(zone::Args),
    /// Use the command line of a switch of a running lab, in the words of Fabric OS
    #[cfg(feature = "surface")]
    #[command(after_help = "Example:\n  sanloom console lab.toml sw1 switchshow")]
    Console(crate::commands::console::Args),
    /// Add, list, change and remove the users of the page and the management interfaces of a lab
    #[cfg(feature = "surface")]
    #[command(after_help = "Example:\n  sanloom users add lab.toml ada --role operate")]
    Users(crate::commands::users::Args),
    /// Predict the merge of two fabrics
    #[command(after_help = "Example:\n  sanloom fabric merge-preview east.toml west.toml")]
    Fabric(fabric::Args),
    /// Fit the free parameters of a disk to a measured trace, and print the error on the half of
    /// the trace that the fit has not seen
    #[command(
        after_help = "The layout and the speed of rotation are not fitted\n\nExample:\n  sanloom calibrate-disk disk.toml \
                      measured.trace.gz -o fitted.toml"
    )]
    CalibrateDisk(disk::calibrate::Args),
    /// Import the parameters of a disk
    #[command(after_help = "Example:\n  sanloom disk import cheetah9LP.parv -o cheetah.toml")]
    Disk(disk::import::Args),
    /// Repeat the measurements of a paper, and compare the results with it
    Reproduce(reproduce::Args),
    /// Measure the speed of sanloom
    #[command(after_help = "Example:\n  sanloom bench sim")]
    Bench(bench::Args),
    /// Print the reference of the lab file: every section, key, unit and default
    #[command(after_help = "Example:\n  sanloom reference > lab-file.md")]
    Reference(reference::Args),
    /// Print a JSON Schema of the lab file for editors
    #[command(after_help = "Example:\n  sanloom schema > lab.schema.json")]
    Schema(schema::Args),
    /// Write man pages and shell completions into a folder
    #[command(after_help = "Example:\n  sanloom man /usr/local/share/man")]
    Man(man::Args),
    /// Print completions for a shell
    #[command(after_help = "Example:\n  sanloom completions bash > ~/.local/share/bash-completion/completions/sanloom")]
    Completions(completions::Args),
}
