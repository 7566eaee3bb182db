//! Options that mean the same in every verb with results: `--json[=FILE]`, `--html[=FILE]`,
//! `--csv[=FILE]`, `--out DIR` and `--set KEY=VALUE`.
//!
//! An option without a file writes to standard output in place of the table. With a file, the table
//! is printed as well. A verb flattens the structs that it supports, or all four as [`Outputs`].

use crate::exit::Failure;
use crate::input;
use crate::output;
use crate::report::html::{escape, plain_page};
use crate::report::rows::Rows;
use crate::report::{file, json};
use clap::ArgMatches;
use sanloom_lab::Override;
use serde::Serialize;
use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// File name that stands for standard output.
const STDOUT: &str = "-";

/// `--json[=FILE]`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Json {
    /// Print JSON instead of text; with a file: write it there and print the text, too
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDOUT)]
    pub json: Option<PathBuf>,
}

/// `--html[=FILE]`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Html {
    /// Print one HTML page instead of text; with a file: write it there and print the text, too
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDOUT)]
    pub html: Option<PathBuf>,
}

/// `--csv[=FILE]`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Csv {
    /// Print CSV instead of text; with a file: write it there and print the text, too. A name that
    /// ends in .jsonl gets JSON Lines
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = STDOUT,
        alias = "series"
    )]
    pub csv: Option<PathBuf>,
}

/// `--out DIR`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Out {
    /// Folder for all files of the results; it is created if it does not exist
    #[arg(long, value_name = "DIR", alias = "report")]
    pub out: Option<PathBuf>,
}

/// All files that a verb with results can write.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Outputs {
    /// `--json[=FILE]`.
    #[command(flatten)]
    pub json: Json,
    /// `--html[=FILE]`.
    #[command(flatten)]
    pub html: Html,
    /// `--csv[=FILE]`.
    #[command(flatten)]
    pub csv: Csv,
    /// `--out DIR`.
    #[command(flatten)]
    pub out: Out,
}

/// `--set KEY=VALUE`, any number of times.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Sets {
    /// Set a value of the lab, for example `run.seed=3` or `switch.*.buffers=8`; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = input::parse_set)]
    pub set: Vec<Override>,
}

impl Json {
    /// The option and its file, for [`output::one_stdout`].
    pub fn named(&self) -> (&'static str, Option<&Path>) {
        ("--json", self.json.as_deref())
    }

    /// True if the JSON replaces the text on standard output.
    pub fn is_stdout(&self) -> bool {
        is_stdout(self.json.as_deref())
    }

    /// Writes a value, if the option was given.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, value: &impl Serialize) -> Result<(), Failure> {
        match &self.json {
            Some(path) => output::written(file::write(path, |out| json::write_value(out, value))),
            None => Ok(()),
        }
    }

    /// Writes a value as JSON, if the option was given, and prints the text unless the JSON
    /// replaces it.
    ///
    /// # Errors
    /// If an output cannot be written.
    pub fn write_or_print(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        self.write(value)?;
        match self.is_stdout() {
            true => Ok(()),
            false => output::print(&text()),
        }
    }
}

impl Html {
    /// The option and its file, for [`output::one_stdout`].
    pub fn named(&self) -> (&'static str, Option<&Path>) {
        ("--html", self.html.as_deref())
    }

    /// Writes a page, if the option was given.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, page: impl FnOnce() -> String) -> Result<(), Failure> {
        match &self.html {
            Some(path) => output::written(file::write_text(path, &page())),
            None => Ok(()),
        }
    }
}

impl Csv {
    /// The option and its file, for [`output::one_stdout`].
    pub fn named(&self) -> (&'static str, Option<&Path>) {
        ("--csv", self.csv.as_deref())
    }

    /// True if the name of the file asks for JSON Lines.
    pub fn is_json_lines(&self) -> bool {
        self.csv.as_ref().is_some_and(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
    }

    /// Writes rows, if the option was given.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, rows: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        match &self.csv {
            Some(path) => output::written(file::write(path, rows)),
            None => Ok(()),
        }
    }
}

impl Outputs {
    /// Rejects options that would mix on standard output; `others` are the verb's own.
    ///
    /// # Errors
    /// If more than one writes to standard output.
    pub fn check(&self, others: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
        output::one_stdout(&[&self.named()[..], others].concat())
    }

    /// True if one of the options replaces the text on standard output.
    pub fn is_stdout(&self) -> bool {
        self.named().iter().any(|(_, path)| is_stdout(*path))
    }

    /// Checks the options and creates the folder, so that an error precedes the work.
    ///
    /// # Errors
    /// As [`Outputs::check`], or if the folder cannot be created.
    pub fn prepare(&self, others: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
        self.check(others)?;
        match &self.out.out {
            Some(folder) => output::written(file::make_folder(folder)),
            None => Ok(()),
        }
    }

    /// Writes a value in all requested forms, and prints the text unless one of them replaces it.
    /// CSV has the rows of the value ([`Rows`]); the folder gets `NAME.json`, `NAME.csv` and
    /// `NAME.html`.
    ///
    /// # Errors
    /// If an output cannot be written.
    pub fn write_or_print(
        &self,
        name: &str,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let text = text();
        let page = || {
            let rows = Rows::of(value).map(|rows| rows.html()).unwrap_or_default();
            let text = format!("<pre>{}</pre>\n", escape(&text));
            plain_page(name, "", &[], vec![("result", "Result", text), ("rows", "Rows", rows)])
        };
        self.write_files(name, value, value, &page)?;
        if self.is_stdout() { Ok(()) } else { output::print(&text) }
    }

    /// Writes a value in all requested forms but text, with the rows of another value and with a
    /// page.
    ///
    /// # Errors
    /// If an output cannot be written.
    pub fn write_files(
        &self,
        name: &str,
        value: &impl Serialize,
        rows: &impl Serialize,
        page: &dyn Fn() -> String,
    ) -> Result<(), Failure> {
        self.write_all(Some(name), &|out| json::write_value(out, value), &|| Rows::of(rows), page)
    }

    /// Like [`Outputs::write_files`], without the folder.
    ///
    /// # Errors
    /// If an output cannot be written.
    pub fn write_options(
        &self,
        value: &impl Serialize,
        rows: &impl Serialize,
        page: &dyn Fn() -> String,
    ) -> Result<(), Failure> {
        self.write_all(None, &|out| json::write_value(out, value), &|| Rows::of(rows), page)
    }

    /// Writes all requested forms but text, and those of the folder if a name is given. Each type
    /// of results has its own copy of the functions above, so this is the longer part.
    fn write_all(
        &self,
        name: Option<&str>,
        write_json: &dyn Fn(&mut dyn Write) -> io::Result<()>,
        rows: &dyn Fn() -> io::Result<Rows>,
        page: &dyn Fn() -> String,
    ) -> Result<(), Failure> {
        if let (Some(folder), Some(name)) = (&self.out.out, name) {
            let path = |extension: &str| folder.join(format!("{name}.{extension}"));
            output::written(file::write(&path("json"), write_json))?;
            output::written(file::write(&path("csv"), |out| rows()?.write_csv(out)))?;
            output::written(file::write_text(&path("html"), &page()))?;
        }
        if let Some(path) = &self.json.json {
            output::written(file::write(path, write_json))?;
        }
        self.html.write(page)?;
        self.csv.write(|out| match self.csv.is_json_lines() {
            true => rows()?.write_json_lines(out),
            false => rows()?.write_csv(out),
        })
    }

    /// The options and their files, for [`output::one_stdout`].
    fn named(&self) -> [(&'static str, Option<&Path>); 3] {
        [self.json.named(), self.html.named(), self.csv.named()]
    }
}

impl Sets {
    /// The options again, each with a leading blank, quoted for a shell.
    pub fn arguments(&self) -> String {
        let argument = |set: &Override| format!(" --set {}", output::shell_word(&format!("{}={}", set.key, set.value)));
        self.set.iter().map(argument).collect()
    }
}

/// Arguments that name an input file, by their identifiers.
const INPUTS: [&str; 6] = ["path", "lab", "first", "second", "recording", "edit"];
/// Options that name an output file, by their identifiers.
const OUTPUTS: [&str; 13] = [
    "json",
    "html",
    "csv",
    "out",
    "svg",
    "pcap",
    "trace_file",
    "to",
    "record",
    "plot",
    "figure9",
    "output",
    "workload",
];

/// Refuses an output file that is an input file of the same command, whatever its verb is.
///
/// # Errors
/// If an output would replace an input.
pub fn keep_inputs(command: &ArgMatches) -> Result<(), Failure> {
    let mut verb = command;
    while let Some((_, inner)) = verb.subcommand() {
        verb = inner;
    }
    let named = |id: &str| verb.try_get_many::<PathBuf>(id).ok().flatten().into_iter().flatten();
    let captures = verb.try_get_many::<(String, PathBuf)>("capture").ok().flatten().into_iter().flatten();
    let captures = captures.map(|(_, path)| ("capture", path)).chain(named("capture").map(|path| ("capture", path)));
    let outputs = OUTPUTS.iter().flat_map(|id| named(id).map(|path| (*id, path))).chain(captures);
    let inputs: Vec<(u64, u64)> = INPUTS.iter().flat_map(|id| named(id)).filter_map(|path| file_number(path)).collect();
    for (option, path) in outputs {
        if file_number(path).is_some_and(|number| inputs.contains(&number)) {
            return Err(Failure::usage(format_args!(
                "--{} would replace {}, which this command reads; name another file",
                option.replace('_', "-"),
                path.display()
            )));
        }
    }
    Ok(())
}

/// Numbers of the device and of the file; `None` if it is no regular file.
fn file_number(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
    Some((metadata.dev(), metadata.ino()))
}

/// True if a file name stands for standard output: `-`, or `/dev/stdout`, which may be a
/// redirection to a file that a new file must not replace.
pub fn is_stdout(path: Option<&Path>) -> bool {
    path.is_some_and(|path| path == Path::new(STDOUT) || path == Path::new("/dev/stdout"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Verb {
        #[command(flatten)]
        outputs: Outputs,
        #[command(flatten)]
        sets: Sets,
        lab: Option<String>,
    }

    fn parse(words: &[&str]) -> Verb {
        Verb::try_parse_from([&["verb"], words].concat()).expect("valid words")
    }

    #[test]
    fn an_option_without_a_file_writes_to_standard_output() {
        for option in ["--json", "--html", "--csv"] {
            let verb = parse(&[option, "lab.toml"]);
            assert!(verb.outputs.is_stdout(), "{option}");
            assert_eq!(verb.lab.as_deref(), Some("lab.toml"), "{option} takes no word that follows it");
        }
    }

    #[test]
    fn an_option_with_a_file_leaves_standard_output_free() {
        let verb = parse(&["--json=a.json", "--html=b.html", "--csv=c.jsonl", "--out", "folder"]);
        assert!(!verb.outputs.is_stdout() && verb.outputs.csv.is_json_lines());
        assert_eq!(verb.outputs.out.out, Some("folder".into()));
    }

    #[test]
    fn two_options_cannot_share_standard_output() {
        let verb = parse(&["--json", "--csv"]);
        assert!(verb.outputs.check(&[]).is_err());
        let verb = parse(&["--json"]);
        assert!(verb.outputs.check(&[("--svg", Some(Path::new("-")))]).is_err());
        assert!(verb.outputs.check(&[]).is_ok());
    }

    #[test]
    fn a_value_is_written_in_each_requested_form() {
        let folder = std::env::temp_dir().join(format!("sanloom-outputs-{}", std::process::id()));
        let at = |name: &str| folder.join(name).display().to_string();
        let (json, csv, out) = (at("a.json"), at("a.csv"), at("out"));
        let verb = parse(&[&format!("--json={json}"), &format!("--csv={csv}"), "--out", &out]);
        verb.outputs.prepare(&[]).expect("the folder can be created");
        verb.outputs.write_or_print("login", &[("ms", 5)], || "5 ms\n".to_owned()).expect("it can be written");
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
        assert_eq!(text("a.json"), text("out/login.json"));
        assert_eq!(text("a.csv"), text("out/login.csv"));
        assert!(text("out/login.html").contains("5 ms"));
        std::fs::remove_dir_all(folder).expect("the folder can be removed");
    }

    #[test]
    fn set_options_are_quoted_for_a_shell() {
        let verb = parse(&["--set", "run.seed=3", "--set", "switch.*.buffers=4"]);
        assert_eq!(verb.sets.arguments(), " --set run.seed=3 --set 'switch.*.buffers=4'");
    }
}
