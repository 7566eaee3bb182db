//! `sanloom completions`: completions for a shell.

use crate::args::Cli;
use clap::CommandFactory;
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
    clap_complete::generate(args.shell, &mut Cli::command(), "sanloom", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
