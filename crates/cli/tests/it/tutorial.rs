//! The tutorial of the book: every command runs and prints the lines that its page shows.
//!
//! `SANLOOM_BLESS=1` copies changed numbers into the pages. A line that is gone, or has another
//! form, has to be edited by hand.

use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::started::{Folder, Process};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The pages in the order of reading, and whether their numbers are the same on every run.
const PAGES: [(&str, bool); 4] = [("check", true), ("simulate", true), ("break", true), ("run", false)];

/// Line that stands for any number of lines of output.
const GAP: &str = "…";

/// A reader who follows the tutorial.
struct Reader {
    folder: Folder,
    /// Content of `san.toml` so far.
    lab: String,
    /// Commands that the reader started with `&`.
    background: Vec<Process>,
}

impl Reader {
    fn new() -> Reader {
        Reader { folder: Folder::new("tutorial"), lab: String::new(), background: Vec::new() }
    }

    /// Saves a block of TOML: a whole file if it starts with the name of the file, else an addition
    /// to it.
    fn save(&mut self, block: &[&str]) {
        if block.first() == Some(&"# san.toml") {
            self.lab.clear();
        }
        self.lab += &block.join("\n");
        self.lab += "\n\n";
        std::fs::write(self.folder.join("san.toml"), &self.lab).unwrap();
    }

    /// Runs a command line, and returns its output.
    fn run(&mut self, line: &str) -> String {
        let (words, is_background) = line.strip_suffix(" &").map_or((line, false), |words| (words, true));
        let mut words = words.split_whitespace();
        let program = words.next().map_or("", |word| if word == "sanloom" { SANLOOM } else { word });
        let mut command = Command::new(program);
        command.args(words).current_dir(&*self.folder).env("NO_COLOR", "1").env("XDG_RUNTIME_DIR", &*self.folder);
        if is_background {
            self.background.push(self.folder.start(command));
            return String::new();
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Returns a line without its numbers and with single blanks.
fn form(line: &str) -> String {
    let mut form = String::new();
    for c in line.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        let is_inside_number = c == ',' || c == '#';
        if !(is_inside_number && form.ends_with('#')) {
            form.push(c);
        }
    }
    form
}

/// Returns the shown lines as the command really printed them.
fn printed(line: &str, shown: &[&str], output: &str) -> Vec<String> {
    let mut rest = output.lines();
    let lines = shown.iter().map(|&shown| {
        if shown == GAP || shown.is_empty() {
            return shown.to_owned();
        }
        let wanted = form(shown);
        let found = rest.find(|line| form(line) == wanted);
        found.unwrap_or_else(|| panic!("`{line}` does not print `{shown}`, but:\n{output}")).to_owned()
    });
    lines.collect()
}

/// Runs the commands of a block, and returns the block with what they printed.
fn run_block(reader: &mut Reader, block: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    let starts: Vec<usize> = (0..block.len()).filter(|&at| block[at].starts_with("$ ")).collect();
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(block.len());
        let (line, shown) = (&block[start][2..], &block[start + 1..end]);
        out.push(block[start].to_owned());
        out.extend(printed(line, shown, &reader.run(line)));
    }
    out
}

/// Follows a page, and returns it with what its commands printed.
fn follow(reader: &mut Reader, page: &str) -> String {
    let mut out = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        let Some(language) = line.strip_prefix("```").filter(|language| !language.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match language {
            "console" => out.extend(run_block(reader, &block)),
            other => {
                if other == "toml" {
                    reader.save(&block);
                }
                out.extend(block.iter().map(|&line| line.to_owned()));
            }
        }
        out.push("```".to_owned());
    }
    out.join("\n") + "\n"
}

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/tutorial").join(page).with_extension("md")
}

#[needs("nbdinfo")]
#[test]
fn every_command_of_the_tutorial_prints_what_its_page_shows() {
    let mut reader = Reader::new();
    for (name, is_exact) in PAGES {
        let page = std::fs::read_to_string(path(name)).unwrap();
        let followed = follow(&mut reader, &page);
        if is_exact && std::env::var_os("SANLOOM_BLESS").is_some() {
            std::fs::write(path(name), &followed).unwrap();
        } else if is_exact {
            assert_eq!(followed, page, "SANLOOM_BLESS=1 copies the numbers into the page {name}");
        }
    }
    while let Some(mut process) = reader.background.pop() {
        process.stop();
    }
}

#[test]
fn the_form_of_a_line_has_no_numbers() {
    assert_eq!(form("all      265.0  32,351  19.6 µs"), form("all 1.5 7 133.0 µs"));
    assert_ne!(form("all 265.0"), form("array 265.0"));
}
