//! `sanloom import`: the configuration of real switches as a lab.

use sanloom_api::words::plural;
use sanloom_console::exit::Failure;
use sanloom_console::input;
use sanloom_console::interrupt;
use sanloom_console::output;
use sanloom_console::outputs::{Json, is_stdout};
use sanloom_console::report::file;
use sanloom_lab::import::{Account, Choices, Note, NoteKind, Source};
use sanloom_wire::Wwpn;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Options of `sanloom import`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Outputs of Fabric OS and NX-OS commands, and JSON of the REST interface of Fabric OS; a file
    /// may hold several. `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write the lab to this file instead of standard output
    #[arg(short, long, value_name = "LAB")]
    output: Option<PathBuf>,
    /// Replace the file of `--output` if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// Take this port for a port of storage; may be repeated
    #[arg(long, value_name = "WWPN", value_parser = parse_port)]
    storage: Vec<Wwpn>,
    /// Take this port for a port of a host; may be repeated
    #[arg(long, value_name = "WWPN", value_parser = parse_port)]
    host: Vec<Wwpn>,
    /// Join ports to one host or storage system with this name; may be repeated
    #[arg(long, value_name = "NAME=WWPN,…", value_parser = parse_node)]
    node: Vec<(String, Vec<Wwpn>)>,
    /// Exit with code 1 if inputs disagree, or a line has no place in the lab
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    json: Json,
}

fn parse_port(text: &str) -> Result<Wwpn, String> {
    text.trim().parse().map_err(|_| "write a port name, such as 21:00:00:24:ff:00:00:01".to_owned())
}

fn parse_node(text: &str) -> Result<(String, Vec<Wwpn>), String> {
    let (name, ports) = text.split_once('=').ok_or("write it as NAME=WWPN,WWPN")?;
    Ok((name.to_owned(), ports.split(',').map(parse_port).collect::<Result<_, _>>()?))
}

/// Imports the files.
///
/// # Errors
/// If a file cannot be read or written, if the lab does not pass its own check, or under
/// `--strict`.
pub fn run(args: &Args) -> Result<(), Failure> {
    output::one_stdout(&[args.json.named(), ("--output", args.output.as_deref())])?;
    output::replaceable(args.output.as_deref(), args.force)?;
    let choices = Choices {
        storage: args.storage.iter().copied().collect(),
        hosts: args.host.iter().copied().collect(),
        nodes: args.node.clone(),
    };
    let contradictions = choices.contradictions();
    if !contradictions.is_empty() {
        return Err(Failure::usage(contradictions.join("\n")));
    }
    let sources = args.files.iter().map(|path| {
        let text = input::read_output(path)?;
        Ok(Source { name: path.display().to_string(), text })
    });
    let sources = sources.collect::<Result<Vec<Source>, Failure>>()?;
    let imported = interrupt::interruptible(|| sanloom_lab::import::import(&sources, &choices));
    for note in &imported.account.notes {
        output::note(&note.to_string());
    }
    summary(&imported.account);
    if imported.account.files.iter().all(|file| file.used == 0) {
        return Err(Failure::usage(
            "no file has a line that can be imported; give outputs such as switchshow and cfgshow, show running-config, \
             or the JSON of the REST interface",
        ));
    }
    args.json.write(&account(&imported.account))?;
    match &args.output {
        Some(path) if !is_stdout(Some(path)) => output::written(file::write_text(path, &imported.lab))?,
        None if args.json.is_stdout() => {}
        _ => output::print(&imported.lab)?,
    }
    if !imported.is_valid {
        output::note("the lab does not pass its own check; correct the inputs or the lab as the notes on it say");
        return Err(Failure::expectation());
    }
    let is_bad = |note: &Note| matches!(note.kind, NoteKind::Conflict | NoteKind::Unplaced);
    match args.strict && imported.account.notes.iter().any(is_bad) {
        true => Err(Failure::expectation()),
        false => Ok(()),
    }
}

/// Prints what became of the lines of each file.
fn summary(account: &Account) {
    for file in &account.files {
        let contents = match file.contents.is_empty() {
            true => "nothing that the importer knows".to_owned(),
            false => file.contents.join(", "),
        };
        output::note(&format!(
            "{}: {}: {} used, {} decoration, {} reported ({contents})",
            file.file,
            plural(file.lines as usize, "line"),
            file.used,
            file.decoration,
            file.reported
        ));
    }
}

fn account(account: &Account) -> Value {
    let files = account.files.iter().map(|file| {
        json!({
            "file": file.file,
            "contents": file.contents,
            "lines": file.lines,
            "used": file.used,
            "decoration": file.decoration,
            "reported": file.reported,
        })
    });
    let notes = account.notes.iter().map(|note| {
        let place = |place: &sanloom_lab::import::Place| {
            json!({ "file": place.file, "line": place.line, "last_line": place.last })
        };
        json!({
            "kind": note.kind.name(),
            "places": note.places.iter().map(place).collect::<Vec<_>>(),
            "text": note.text,
            "reason": note.reason,
            "remedy": note.remedy,
        })
    });
    json!({ "files": files.collect::<Vec<_>>(), "notes": notes.collect::<Vec<_>>() })
}
