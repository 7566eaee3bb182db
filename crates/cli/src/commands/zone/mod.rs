//! `sanloom zone`: questions about the zones of a lab, answered without a simulation.

mod explain;
pub mod ports;
mod preview;

use crate::exit::Failure;
use clap::Subcommand;

/// Options of `sanloom zone`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand, Debug)]
enum Question {
    /// Say why two ports can or cannot talk: which zone, which member, which policy
    Explain(explain::Args),
    /// Say who gains and who loses sight of whom by zone edits
    Preview(preview::Args),
}

/// Answers.
///
/// # Errors
/// When the lab or the question is wrong, or the answer cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.question {
        Question::Explain(args) => explain::run(args),
        Question::Preview(args) => preview::run(args),
    }
}
