//! `sanloom reproduce`: numbers of papers beside ours.

mod iscsi_switch;
mod npiv;
mod sansim;
mod verdict;

use clap::Subcommand;
use sanloom_console::exit::Failure;

/// Options of `sanloom reproduce`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A row is an input (the paper states it), a fit (a parameter was chosen to reach it), a prediction, or \
                  derived from another row. Only predictions are judged. The exit code is 1 if a prediction misses that is \
                  not listed as a known miss, or if a known miss is hit\n\nExample:\n  sanloom reproduce sansim"
)]
pub struct Args {
    /// Paper to reproduce.
    #[command(subcommand)]
    pub paper: Paper,
}

/// The papers.
#[derive(Subcommand, Debug)]
pub enum Paper {
    /// SANSim's core/edge fabric with failing inter-switch links (document 001, section 4), and its
    /// Figure 9
    #[command(after_help = "Example:\n  sanloom reproduce sansim")]
    Sansim(sansim::Args),
    /// Virtual ports at a switch that compares addresses for hard zoning (document 000, section V),
    /// and Figures 8 to 11
    #[command(after_help = "Example:\n  sanloom reproduce npiv")]
    Npiv(npiv::Args),
    /// The iSCSI virtualization switch, measured on this machine: conventional path against
    /// forwarding path (document 003, Figures 9 to 11)
    #[command(after_help = "Example:\n  sanloom reproduce iscsi-switch")]
    IscsiSwitch(iscsi_switch::Args),
}

/// Reproduces a paper.
///
/// # Errors
/// If a prediction misses unexpectedly, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.paper {
        Paper::Sansim(args) => sansim::run(args),
        Paper::Npiv(args) => npiv::run(args),
        Paper::IscsiSwitch(args) => iscsi_switch::run(args),
    }
}
