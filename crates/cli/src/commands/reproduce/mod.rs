//! `sanloom reproduce`: what papers measured, held against our results.

mod iscsi_switch;
mod npiv;
mod sansim;
mod verdict;

use crate::exit::Failure;
use clap::Subcommand;

/// Options of `sanloom reproduce`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What to reproduce.
    #[command(subcommand)]
    pub paper: Paper,
}

/// The papers.
#[derive(Subcommand, Debug)]
pub enum Paper {
    /// SANSim's core/edge fabric with failing inter-switch links (document 001, section 4), and its Figure 9
    Sansim(sansim::Args),
    /// Virtual ports on a switch that compares addresses for hard zoning (document 000, section V), and its Figures 8 to 11
    Npiv(npiv::Args),
    /// The iSCSI virtualization switch: conventional path, forwarding path, PDU-copy ceiling and end to end, measured here
    /// (document 003, Figures 9 to 11)
    IscsiSwitch(iscsi_switch::Args),
}

/// Reproduces a paper.
///
/// # Errors
/// When a number misses its tolerance, or something cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.paper {
        Paper::Sansim(args) => sansim::run(args),
        Paper::Npiv(args) => npiv::run(args),
        Paper::IscsiSwitch(args) => iscsi_switch::run(args),
    }
}
