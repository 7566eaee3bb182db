//! What the `sanloom` command is made of: [`args`] parse, [`commands`] call the libraries, [`report`] shows, [`exit`]
//! tells how it ended.

pub mod args;
pub mod commands;
pub mod exit;
pub mod input;
pub mod instance;
pub mod interrupt;
pub mod machine;
pub mod metric;
pub mod output;
pub mod pool;
pub mod report;
pub mod run;

use clap::Parser;
use exit::Failure;
use std::ffi::OsString;
use std::path::Path;

/// Runs a command line and returns its exit code, one of [`exit`].
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let outcome = match args::Cli::try_parse_from(as_tool(arguments.into_iter().collect())) {
        Ok(cli) => {
            interrupt::listen();
            commands::run(&cli.command)
        }
        Err(answer) => answered(&answer),
    };
    match outcome {
        Ok(()) => exit::OK,
        Err(failure) => {
            let text = match &failure.coloured {
                Some(coloured) if output::colours() => coloured,
                _ => &failure.message,
            };
            if !text.is_empty() {
                output::note(text);
            }
            failure.code
        }
    }
}

/// Commands that are programs of their own elsewhere; called by such a name, sanloom is that program.
const TOOLS: [&str; 6] = ["esxcli", "fcnsq", "fcoeadm", "fcoemon", "fcping", "fipvlan"];

/// `fipvlan -a` is `sanloom fipvlan -a`.
fn as_tool(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|program| Path::new(program).file_name()).map(OsString::from);
    if let Some(tool) = name.filter(|name| TOOLS.iter().any(|tool| *name == **tool)) {
        arguments.insert(1, tool);
    }
    arguments
}

/// Help and version are answers, too, and the only ones that are no mistake.
fn answered(answer: &clap::Error) -> Result<(), Failure> {
    let text = answer.render();
    if answer.use_stderr() {
        return Err(Failure {
            code: exit::USAGE,
            message: text.to_string().trim_end().to_owned(),
            coloured: Some(text.ansi().to_string().trim_end().to_owned()),
        });
    }
    output::print(&text.to_string())
}
