//! The commands, one in each file: parse, call, print.

pub mod apply;
pub mod capture;
pub mod check;
pub mod compare;
pub mod completions;
#[cfg(feature = "surface")]
pub mod console;
pub mod down;
pub mod export;
pub mod fabric;
pub mod fcoe;
pub mod fmt;
pub mod import;
pub mod init;
pub mod initiator;
mod iscsi_initiator;
pub mod man;
pub mod port;
pub mod ps;
pub mod reference;
pub mod replay;
pub mod schema;
pub mod show;
pub mod sim;
pub mod sweep;
pub mod trace;
pub mod up;
#[cfg(feature = "surface")]
pub mod users;
#[cfg(feature = "surface")]
pub mod view;
pub mod volume;
pub mod whatif;
pub mod zone;

use crate::args::Command;
use fcoe::{esxcli, fcnsq, fcoeadm, fcoemon, fcping, fipvlan};
use sanloom_bench::{bench, disk, reproduce};
use sanloom_console::exit::Failure;

/// Runs the command.
///
/// # Errors
/// The reason for an exit code other than 0.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Init(args) => init::run(args),
        Command::Fmt(args) => fmt::run(args),
        Command::Import(args) => import::run(args),
        Command::Export(args) => export::run(args),
        Command::Check(args) => check::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Show(args) => show::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Whatif(args) => whatif::run(args),
        Command::Compare(args) => compare::run(args),
        #[cfg(feature = "surface")]
        Command::View(args) => view::run(args),
        Command::Up(args) => up::run(args),
        Command::Ps(args) => ps::run(args),
        Command::Down(args) => down::run(args),
        Command::Initiator(args) => initiator::run(args),
        Command::Fcoemon(args) => fcoemon::run(args),
        Command::Fcoeadm(args) => fcoeadm::run(args),
        Command::Fipvlan(args) => fipvlan::run(args),
        Command::Fcnsq(args) => fcnsq::run(args),
        Command::Fcping(args) => fcping::run(args),
        Command::Esxcli(args) => esxcli::run(args),
        Command::Apply(args) => apply::run(args),
        Command::Port(args) => port::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Capture(args) => capture::run(args),
        Command::Volume(args) => volume::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Zone(args) => zone::run(args),
        #[cfg(feature = "surface")]
        Command::Console(args) => console::run(args),
        #[cfg(feature = "surface")]
        Command::Users(args) => users::run(args),
        Command::Fabric(args) => fabric::run(args),
        Command::CalibrateDisk(args) => disk::calibrate::run(args),
        Command::Disk(args) => disk::import::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Reference(args) => reference::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Man(args) => man::run(args),
        Command::Completions(args) => completions::run(args),
    }
}
