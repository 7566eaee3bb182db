//! `docs/src/reference/commands.md` shows the help of every command.

use clap::{Command, CommandFactory};
use std::fmt::Write as _;
use std::path::Path;

#[test]
fn the_page_of_commands_shows_the_help_of_today() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/commands.md");
    let page = page();
    if std::env::var_os("SANLOOM_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/src/reference/commands.md differs from the help; SANLOOM_BLESS=1 cargo test -p sanloom page_of_commands writes it"
    );
}

fn page() -> String {
    let mut page = String::from(
        "# Commands\n\n<!-- A test writes this page from the definitions that parse the command line: \
         SANLOOM_BLESS=1 cargo test -p sanloom page_of_commands -->\n\n",
    );
    let mut command = sanloom::args::Cli::command().term_width(100);
    command.build();
    page.push_str("- [Exit codes](#exit-codes)\n");
    list(&mut page, &command, 0);
    page.push('\n');
    page.push_str(EXIT_CODES);
    write(&mut page, &mut command);
    page
}

const EXIT_CODES: &str = "\
## Exit codes

| code | meaning |
|---|---|
| 0 | success, also if the reader of the output has closed the pipe |
| 1 | a checked expectation failed: a bound of the lab, or a number of a reproduction |
| 2 | the command line or the lab file is wrong; nothing was simulated |
| 3 | a peer misbehaved or a protocol failed |
| 4 | the environment prevents the work: a missing permission, a full disk |
| 70 | a bug in sanloom |
| 130 | Ctrl-C before the work was complete; measured data are kept: `sim` writes its results, a study its finished runs |

";

/// Table of contents: one line for each command, with a link to its section.
fn list(page: &mut String, command: &Command, depth: usize) {
    let name = command.get_bin_name().unwrap_or("sanloom");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "{}- [{name}](#{}): {about}", "  ".repeat(depth), name.replace(' ', "-"));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        list(page, sub, depth + 1);
    }
}

#[test]
fn every_command_is_in_the_table_of_contents() {
    let page = page();
    for heading in page.lines().filter_map(|line| line.strip_prefix("## ")) {
        let anchor = heading.to_lowercase().replace(' ', "-");
        assert!(page.contains(&format!("- [{heading}](#{anchor})")), "{heading} is not in the contents");
    }
}

fn write(page: &mut String, command: &mut Command) {
    let name = command.get_bin_name().unwrap_or("sanloom").to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(page, "## {name}\n\n```text\n{}\n```\n\n", lines.join("\n"));
    for sub in command.get_subcommands_mut() {
        if sub.get_name() != "help" {
            write(page, sub);
        }
    }
}

#[test]
fn every_option_has_a_help_text() {
    fn walk(command: &Command) {
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "{} {}", command.get_name(), argument.get_id());
        }
        command.get_subcommands().for_each(walk);
    }
    walk(&sanloom::args::Cli::command());
}

/// The levels below `esxcli`, which has the example of its whole command line, and hidden commands.
const WITHOUT_EXAMPLE: [&str; 3] = ["fcoe", "pdu-copy", "help"];

#[test]
fn every_help_ends_with_one_example_that_parses() {
    fn walk(command: &Command, name: &str) {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = after.split("Example:\n  ").skip(1).collect();
        let [example] = examples[..] else { panic!("{name} has {} examples", examples.len()) };
        // Some commands have a template of their own, which must include it.
        let help = command.clone().render_long_help().to_string();
        assert!(help.trim_end().ends_with(example), "{name} does not print its example: {help}");
        assert!(example.starts_with(name) && !example.contains('\n'), "{name}: {example}");
        // A redirection is for the shell.
        let line = example.split(" > ").next().unwrap_or(example);
        let arguments = sanloom::grammar::modern(&sanloom::args::Cli::command(), words(line));
        if let Err(wrong) = sanloom::args::Cli::command().try_get_matches_from(arguments) {
            panic!("{example}: {wrong}");
        }
        for sub in command.get_subcommands().filter(|sub| !WITHOUT_EXAMPLE.contains(&sub.get_name())) {
            walk(sub, &format!("{name} {}", sub.get_name()));
        }
    }
    let root = sanloom::args::Cli::command();
    for command in root.get_subcommands().filter(|sub| !WITHOUT_EXAMPLE.contains(&sub.get_name())) {
        walk(command, &format!("sanloom {}", command.get_name()));
    }
}

/// Words of a command line with single quotes.
fn words(line: &str) -> Vec<std::ffi::OsString> {
    let quoted = line.split('\'').enumerate();
    let parts = quoted.flat_map(|(number, part)| match number % 2 {
        0 => part.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    parts.map(Into::into).collect()
}
