//! Output to the terminal: results on standard output, everything else on standard error.

use crate::exit::Failure;
use crate::outputs::is_stdout;
use crate::report::file::{self, WriteError};
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::Path;
use terminal_size::{Width, terminal_size_of};

/// Prints a text to standard output.
///
/// # Errors
/// When it cannot be written. A closed pipe is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    written(file::stdout(|out| out.write_all(text.as_bytes())))
}

/// Converts the result of a write: a pipe closed by its reader is not an error, as in `sanloom … |
/// head`.
///
/// # Errors
/// All others.
pub fn written(outcome: Result<(), WriteError>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.is_closed_pipe() => Ok(()),
        other => Ok(other?),
    }
}

/// Refuses options that would mix their outputs on standard output. Each comes with the file that
/// it names.
///
/// # Errors
/// When more than one names standard output.
pub fn one_stdout(outputs: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let names = |path: &Option<&Path>| is_stdout(*path);
    let both: Vec<&str> = outputs.iter().filter(|(_, path)| names(path)).map(|(option, _)| *option).collect();
    match both.split_last() {
        None | Some((_, [])) => Ok(()),
        Some((last, others)) => Err(Failure::usage(format_args!(
            "{} and {last} would be mixed on standard output; name a file for all \
             but one of them, for example {last}=FILE",
            others.join(", ")
        ))),
    }
}

/// Refuses an output file that exists, unless `force`. Standard output, and what holds nothing to
/// lose, such as `/dev/null` or a pipe, can be written.
///
/// # Errors
/// When the file exists.
pub fn replaceable(path: Option<&Path>, force: bool) -> Result<(), Failure> {
    let Some(path) = path.filter(|path| !force && !is_stdout(Some(path))) else { return Ok(()) };
    // A link to a device or pipe is written in place, as the device itself.
    let is_device = std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    if is_device || std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::usage(format_args!("{path} exists; choose another name, or replace it with --force")))
}

/// Prints a line to standard error. Nothing can be done if that fails.
pub fn note(line: &str) {
    let _ = writeln!(stderr().lock(), "{line}");
}

/// Maximum width of a table on standard output: the width of the terminal, or COLUMNS. Tables for a
/// file or another program are not limited.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&columns| columns > 0);
    columns.unwrap_or_else(|| match terminal_size_of(stdout()) {
        Some((Width(width), _)) if width > 0 => usize::from(width),
        _ => usize::MAX,
    })
}

/// True if messages on standard error may have colours: on a terminal, unless NO_COLOR is set
/// (<https://no-color.org>).
pub fn colours() -> bool {
    stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Quotes a word of a command line for a shell.
pub fn shell_word(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(harmless) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeatable_command_survives_the_shell() {
        assert_eq!(shell_word("run.seed=3"), "run.seed=3");
        assert_eq!(shell_word("switch.*.buffers=4"), "'switch.*.buffers=4'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
