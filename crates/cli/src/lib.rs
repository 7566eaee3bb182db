//! The `sanloom` command: [`args`] parse, [`commands`] call the libraries, `sanloom-console`
//! prints.

pub mod args;
pub mod commands;
pub mod grammar;
pub mod instance;
#[cfg(feature = "surface")]
pub mod management;
pub mod running;
#[cfg(feature = "surface")]
pub mod web;

use args::Cli;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use sanloom_console::exit::{self, Failure};
use sanloom_console::{interrupt, output, outputs};
use std::ffi::OsString;
use std::path::Path;

/// Runs a command line and returns its exit code, one of [`exit`].
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let outcome = match parse(arguments.into_iter().collect()) {
        Ok((cli, matches)) => {
            interrupt::listen();
            outputs::keep_inputs(&matches).and_then(|()| commands::run(&cli.command))
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

/// Commands that are programs of their own elsewhere; called by such a name, sanloom is that
/// program.
const TOOLS: [&str; 6] = ["esxcli", "fcnsq", "fcoeadm", "fcoemon", "fcping", "fipvlan"];

/// `fipvlan -a` is `sanloom fipvlan -a`, and its help shows the short form.
fn parse(arguments: Vec<OsString>) -> Result<(Cli, ArgMatches), clap::Error> {
    let name = arguments.first().and_then(|program| Path::new(program).file_name());
    let tool = TOOLS.into_iter().find(|tool| name.is_some_and(|name| name == *tool));
    let mut command = Cli::command().multicall(tool.is_some());
    let arguments = match tool {
        Some(tool) => {
            command = command.mut_subcommand(tool, |command| with_short_example(command, tool));
            arguments
        }
        None => grammar::modern(&command, arguments),
    };
    let matches = command.try_get_matches_from_mut(arguments)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    Ok((cli, matches))
}

/// Shows the example at the end of the help as it is typed with the tool's own name.
fn with_short_example(command: clap::Command, tool: &str) -> clap::Command {
    match command.get_after_help().map(ToString::to_string) {
        Some(help) => command.after_help(help.replace(&format!("sanloom {tool}"), tool)),
        None => command,
    }
}

/// The parser reports help and version as errors, too; they end with exit code 0.
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
