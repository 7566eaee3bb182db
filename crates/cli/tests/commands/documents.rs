//! `docs/commands.md` shows the help of every command.

use clap::{Command, CommandFactory};
use std::fmt::Write as _;
use std::path::Path;

#[test]
fn the_page_of_commands_shows_the_help_of_today() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = page();
    if std::env::var_os("SANLOOM_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/commands.md is not the help of today; SANLOOM_UPDATE_DOCS=1 cargo test -p sanloom writes it"
    );
}

fn page() -> String {
    let mut page = String::from(
        "# Commands\n\n<!-- Written by a test from the definitions that parse the command line: \
         SANLOOM_UPDATE_DOCS=1 cargo test -p sanloom --test commands -->\n\n",
    );
    page.push_str(EXIT_CODES);
    let mut command = sanloom::args::Cli::command().term_width(100);
    command.build();
    write(&mut page, &mut command);
    page
}

const EXIT_CODES: &str = "\
## Exit codes

| code | meaning |
|---|---|
| 0 | everything that was asked for was done; a reader of our output that has gone away changes nothing |
| 1 | a checked expectation failed: a bound of the lab, or a number of a reproduction |
| 2 | the command line or the lab file is wrong; nothing was simulated |
| 3 | a peer misbehaved or a protocol failed |
| 4 | the environment does not let us: a missing permission, a full disk |
| 70 | a bug in sanloom |
| 130 | Ctrl-C before the work was complete; what was measured is kept: `sim` writes its results, a study the runs that had finished |

";

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
