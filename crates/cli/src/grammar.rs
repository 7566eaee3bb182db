//! Old spellings of the command line, rewritten into the present grammar before it is parsed.
//!
//! - `--json FILE` (with a blank) becomes `--json=FILE`; so do `--html`, `--csv` and `--series`.
//! - `port disable sw1:0 LAB` becomes `port disable LAB sw1:0`.
//!
//! The words of a command line are assigned to options and positional arguments by its definition,
//! so that no value of another option is mistaken for an old spelling.

use clap::{Arg, ArgAction, Command};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Endings of files that the options with an optional file write.
const RESULT_ENDINGS: [&str; 6] = ["json", "jsonl", "html", "csv", "svg", "md"];

/// Rewrites the arguments of a program, the first of which is its name.
pub fn modern(command: &Command, mut arguments: Vec<OsString>) -> Vec<OsString> {
    let (command, first) = verb(command, &arguments);
    let words = Words::of(command, &arguments, first);
    let joined = words.joined(command, &arguments);
    let positional: Vec<usize> = words.positional.into_iter().filter(|word| !joined.contains(word)).collect();
    if let [one, other] = positional[..]
        && takes_lab_and_another(command)
        && !is_lab(&arguments[one])
        && is_lab(&arguments[other])
    {
        arguments.swap(one, other);
    }
    // From the end, so that the earlier indices stay valid.
    for word in joined.into_iter().rev() {
        let value = arguments.remove(word);
        arguments[word - 1].push("=");
        arguments[word - 1].push(value);
    }
    arguments
}

/// The definition of the verb that the arguments name, and the index of the first word behind it.
fn verb<'c>(mut command: &'c Command, arguments: &[OsString]) -> (&'c Command, usize) {
    let mut first = 1;
    while let Some(found) = arguments.get(first).and_then(|word| command.find_subcommand(word)) {
        command = found;
        first += 1;
    }
    (command, first)
}

/// The words of a command line by their role, as indices.
#[derive(Default)]
struct Words {
    positional: Vec<usize>,
    /// Words behind an option whose file is optional, which old spellings give with a blank.
    behind_optional: Vec<usize>,
}

impl Words {
    fn of(command: &Command, arguments: &[OsString], first: usize) -> Words {
        let mut words = Words::default();
        let mut index = first;
        while let Some(word) = arguments.get(index) {
            let text = word.to_string_lossy();
            if text == "--" {
                words.positional.extend(index + 1..arguments.len());
                break;
            }
            if let Some(option) = option(command, &text) {
                match option {
                    _ if !option.get_action().takes_values() || text.contains('=') => {}
                    _ if option.is_require_equals_set() => words.behind_optional.push(index + 1),
                    _ => index += 1,
                }
            } else if !text.starts_with('-') || text == "-" {
                words.positional.push(index);
            }
            index += 1;
        }
        words
    }

    /// Words that old spellings join to the option before them. Without them, the verb would have
    /// more positional arguments than it takes. If it takes any number, the ending of the file
    /// decides.
    fn joined(&self, command: &Command, arguments: &[OsString]) -> Vec<usize> {
        let behind = self.behind_optional.iter().copied().filter(|word| self.positional.contains(word));
        let mut behind: Vec<usize> = behind.collect();
        match most_positional(command) {
            Some(most) => {
                // A word that cannot be a lab is joined first.
                behind.sort_by_key(|word| is_lab(&arguments[*word]) && arguments[*word] != "-");
                behind.truncate(self.positional.len().saturating_sub(most));
            }
            None => behind.retain(|word| is_result_file(&arguments[*word])),
        }
        behind.sort_unstable();
        behind
    }
}

/// The option that a word names; `--json=FILE` names `--json`.
fn option<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.split('=').next().unwrap_or(word);
    let mut options = command.get_arguments().filter(|arg| !arg.is_positional());
    if let Some(long) = name.strip_prefix("--") {
        return options
            .find(|arg| arg.get_long() == Some(long) || arg.get_all_aliases().unwrap_or_default().contains(&long));
    }
    let short = name.strip_prefix('-')?.chars().last()?;
    options.find(|arg| arg.get_short() == Some(short))
}

/// Number of positional arguments that a verb takes; `None`: any number.
fn most_positional(command: &Command) -> Option<usize> {
    command.get_positionals().try_fold(0_usize, |most, arg| {
        let values = arg.get_num_args().map_or(1, |range| range.max_values());
        let any = matches!(arg.get_action(), ArgAction::Append) || values == usize::MAX;
        if any { None } else { Some(most + values) }
    })
}

fn takes_lab_and_another(command: &Command) -> bool {
    let mut positional = command.get_positionals();
    let first = positional.next().and_then(|arg| arg.get_value_names()).and_then(|names| names.first());
    first.is_some_and(|name| name.as_str() == "LAB") && positional.count() == 1
}

/// True if a word is more likely a lab file than the name of something in a lab.
fn is_lab(word: &OsStr) -> bool {
    let path = Path::new(word);
    word == "-" || path.extension().is_some_and(|ending| ending == "toml") || path.is_file()
}

fn is_result_file(word: &OsStr) -> bool {
    let ending = Path::new(word).extension().and_then(OsStr::to_str);
    word == "-" || ending.is_some_and(|ending| RESULT_ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    fn rewritten(line: &str) -> String {
        let words = line.split_whitespace().map(OsString::from).collect();
        let words = modern(&Cli::command(), words);
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_file_behind_a_blank_is_joined_to_its_option() {
        for (old, new) in [
            ("sanloom sim a.toml --json b.json", "sanloom sim a.toml --json=b.json"),
            ("sanloom sim --json b.json a.toml -q", "sanloom sim --json=b.json a.toml -q"),
            ("sanloom sim a.toml --json - --no-report", "sanloom sim a.toml --json=- --no-report"),
            ("sanloom sim a.toml --series b.csv --seed 3", "sanloom sim a.toml --series=b.csv --seed 3"),
            ("sanloom sim --json a.toml --csv b.csv", "sanloom sim --json a.toml --csv=b.csv"),
            ("sanloom reproduce sansim --json - --html x", "sanloom reproduce sansim --json=- --html=x"),
            ("sanloom bench io target --json a.json", "sanloom bench io target --json=a.json"),
        ] {
            assert_eq!(rewritten(old), new);
        }
    }

    #[test]
    fn the_present_grammar_stays_as_it_is() {
        for line in [
            "sanloom sim --json a.toml",
            "sanloom check --json a.toml",
            "sanloom sim - --json",
            "sanloom sim a.toml --set run.seed=3 --out folder",
            "sanloom show a.toml ports --live --switch ns",
            "sanloom port disable a.toml sw1:0",
            "sanloom zone explain a.toml one other --json",
            "sanloom fabric merge-preview a b.toml",
            "sanloom --help",
            "sanloom",
            "",
        ] {
            assert_eq!(rewritten(line), line);
        }
    }

    #[test]
    fn a_lab_after_a_name_is_moved_to_the_front() {
        for (old, new) in [
            ("sanloom show ports a.toml --json", "sanloom show a.toml ports --json"),
            ("sanloom show --switch ns ports a.toml", "sanloom show --switch ns a.toml ports"),
            ("sanloom port disable sw1:0 a.toml", "sanloom port disable a.toml sw1:0"),
            ("sanloom port disable sw1:0 -", "sanloom port disable - sw1:0"),
            ("sanloom volume create v1 a.toml --size 1GiB", "sanloom volume create a.toml v1 --size 1GiB"),
            ("sanloom capture --to x.pcapng sw1:0 a.toml", "sanloom capture --to x.pcapng a.toml sw1:0"),
        ] {
            assert_eq!(rewritten(old), new);
        }
    }
}
