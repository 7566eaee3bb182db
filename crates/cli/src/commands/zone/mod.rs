//! `sanloom zone`: queries about the zones of a lab without a simulation, and control of the zones
//! of a running lab.

mod explain;
mod live;
pub mod ports;
mod preview;

use clap::Subcommand;
use sanloom_api::control::ZoneAction;
use sanloom_console::exit::Failure;

/// Options of `sanloom zone`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand, Debug)]
enum Question {
    /// Say why two ports can or cannot talk: which zone, which member, which policy
    #[command(after_help = "Example:\n  sanloom zone explain lab.toml esx01:0 array1:0")]
    Explain(explain::Args),
    /// Say who gains and who loses sight of whom by zone edits
    #[command(after_help = "Example:\n  sanloom zone preview lab.toml --edit edits.toml")]
    Preview(preview::Args),
    /// Show what is defined and in force at a running switch, and the transaction that is open
    /// there
    #[command(after_help = "Example:\n  sanloom zone show lab.toml --switch sw1")]
    Show(live::Args),
    /// Edit zones at a running switch, in a transaction that begins with the first edit
    #[command(after_help = "Example:\n  sanloom zone edit lab.toml --edit edits.toml")]
    Edit(live::EditArgs),
    /// Put the transaction of a running switch into force, in the whole fabric
    #[command(after_help = "Example:\n  sanloom zone commit lab.toml")]
    Commit(live::Args),
    /// Drop the transaction of a running switch
    #[command(after_help = "Example:\n  sanloom zone abort lab.toml")]
    Abort(live::Args),
    /// Go back to the zones before the last change, in the whole fabric
    #[command(after_help = "Example:\n  sanloom zone rollback lab.toml")]
    Rollback(live::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// When the lab or the query is invalid, or the output cannot be written.
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
