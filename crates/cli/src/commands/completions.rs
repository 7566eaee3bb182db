//! `sanloom completions`: completions for a shell.

use crate::args::Cli;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use sanloom_console::exit::Failure;
use sanloom_console::output;

/// Options of `sanloom completions`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The shell, for example `sanloom completions bash > /etc/bash_completion.d/sanloom`
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Prints completions.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible(), "sanloom", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Returns the command line without hidden measurements, which completions would offer.
pub fn visible() -> Command {
    Cli::command().mut_subcommand("bench", |bench| {
        let shown = bench.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned();
        let command = Command::new("bench").args(bench.get_arguments().cloned()).subcommands(shown);
        match bench.get_about() {
            Some(about) => command.about(about.clone()),
            None => command,
        }
    })
}
