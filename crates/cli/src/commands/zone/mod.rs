//! `sanloom zone`: questions about the zones of a lab, answered without a simulation, and the zones of a running one.

mod explain;
mod live;
pub mod ports;
mod preview;

use crate::exit::Failure;
use clap::Subcommand;
use sanloom_api::control::ZoneAction;

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
    /// Show what is defined and in force at a running switch, and the transaction that is open there
    Show(live::Args),
    /// Edit zones at a running switch, in a transaction that begins with the first edit
    Edit(live::EditArgs),
    /// Put the transaction of a running switch into force, in the whole fabric
    Commit(live::Args),
    /// Drop the transaction of a running switch
    Abort(live::Args),
    /// Go back to the zones before the last change, in the whole fabric
    Rollback(live::Args),
}

/// Answers.
///
/// # Errors
/// When the lab or the question is wrong, or the answer cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.question {
        Question::Explain(args) => explain::run(args),
        Question::Preview(args) => preview::run(args),
        Question::Show(args) => live::run(args, ZoneAction::Show),
        Question::Edit(args) => live::edit(args),
        Question::Commit(args) => live::run(args, ZoneAction::Commit),
        Question::Abort(args) => live::run(args, ZoneAction::Abort),
        Question::Rollback(args) => live::run(args, ZoneAction::Rollback),
    }
}
