//! `sanloom reproduce`: what papers measured, held against our results.

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
}

/// Reproduces a paper.
///
/// # Errors
/// When a number misses its tolerance, or something cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.paper {
        Paper::Sansim(args) => sansim::run(args),
    }
}
