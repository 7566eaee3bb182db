//! `sanloom zone`: queries about the zones of a lab without a simulation, and control of the zones
//! of a running lab.

mod explain;
mod live;
pub mod ports;
mod preview;

use clap::Subcommand;
use sanloom_api::control::ZoneAction;
use sanloom_api::zone_database::Edit;
use sanloom_console::exit::Failure;

/// Options of `sanloom zone`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand, Debug)]
enum Question {
    /// Explain why two ports can or cannot communicate: zone, member, policy
    #[command(after_help = "Example:\n  sanloom zone explain lab.toml esx01:0 array1:0")]
    Explain(explain::Args),
    /// Show the pairs of ports that gain or lose access by zone edits
    #[command(after_help = "Example:\n  sanloom zone preview lab.toml --edit edits.toml")]
    Preview(preview::Args),
    /// Show the defined and the effective zones of a running switch, and its open transaction
    #[command(after_help = "Example:\n  sanloom zone show lab.toml --switch sw1")]
    Show(live::Args),
    /// Edit zones at a running switch, in a transaction that begins with the first edit
    #[command(after_help = "Example:\n  sanloom zone edit lab.toml --edit edits.toml")]
    Edit(live::EditArgs),
    /// Replace all defined aliases, zones and configurations of a running switch by those of a lab
    /// file, in its transaction
    #[command(after_help = "Example:\n  sanloom zone replace lab.toml --with new.toml")]
    Replace(live::ReplaceArgs),
    /// Delete an alias, a zone or a configuration at a running switch, and remove it from all
    /// lists, in its transaction
    #[command(after_help = "Example:\n  sanloom zone expunge lab.toml zone backup")]
    Expunge(live::ExpungeArgs),
    /// Delete all defined aliases, zones and configurations of a running switch, in its
    /// transaction; the effective configuration stays in force until it is disabled
    #[command(after_help = "Example:\n  sanloom zone clear lab.toml")]
    Clear(live::Args),
    /// Commit the transaction of a running switch in the whole fabric
    #[command(after_help = "Example:\n  sanloom zone commit lab.toml")]
    Commit(live::Args),
    /// Discard the transaction of a running switch
    #[command(after_help = "Example:\n  sanloom zone abort lab.toml")]
    Abort(live::Args),
    /// Restore the zones before the last change, in the whole fabric
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
        Question::Replace(args) => live::replace(args),
        Question::Expunge(args) => live::expunge(args),
        Question::Clear(args) => live::run(args, ZoneAction::Edit { edits: vec![Edit::Clear] }),
        Question::Commit(args) => live::run(args, ZoneAction::Commit),
        Question::Abort(args) => live::run(args, ZoneAction::Abort),
        Question::Rollback(args) => live::run(args, ZoneAction::Rollback),
    }
}
