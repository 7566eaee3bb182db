//! `sanloom replay`: repeats a recording of a running lab (`sanloom up --record`) on new machines.

use sanloom_console::exit::Failure;
use sanloom_console::input;
use sanloom_console::outputs::Json;
use sanloom_console::report::format::grouped;
use sanloom_lab::Override;
use sanloom_live::record::{self, Divergence, ReplayError, Replayed};
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Options of `sanloom replay`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Recording that `sanloom up --record` wrote
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    #[command(flatten)]
    json: Json,
}

/// Replays a recording.
///
/// # Errors
/// When the recording cannot be read, or an output differs from the recorded one.
pub fn run(args: &Args) -> Result<(), Failure> {
    let path = args.recording.display();
    let open = File::open(&args.recording);
    let opened = open.map_err(|error| Failure::usage(format_args!("cannot read the recording {path}: {error}")))?;
    let mut input = BufReader::new(opened);
    let failed = |error: ReplayError| match error {
        ReplayError::Read(_) => Failure::environment(format_args!("{path}: {error}")),
        _ => Failure::usage(format_args!("{path}: {error}")),
    };
    let head = record::head(&mut input).map_err(failed)?;
    let set: Vec<Override> = head.source.set.iter().filter_map(|set| input::parse_set(set).ok()).collect();
    let lab = sanloom_lab::load(&head.source.label, &head.source.text, &set)?.lab;
    let replayed = record::replay(&lab, &head, &mut input).map_err(failed)?;
    args.json.write_or_print(&value(&replayed), || text(&replayed))?;
    match replayed.divergence {
        None => Ok(()),
        Some(_) => Err(Failure::expectation()),
    }
}

fn value(replayed: &Replayed) -> serde_json::Value {
    let divergence = replayed.divergence.as_ref().map(|at: &Divergence| {
        json!({
            "line": at.line, "seconds": at.seconds, "machine": at.machine, "input": at.input,
            "recorded": at.recorded, "now": at.replayed,
        })
    });
    json!({
        "inputs": replayed.inputs, "outputs": replayed.outputs, "seconds": replayed.seconds, "cut": replayed.cut,
        "divergence": divergence,
    })
}

fn text(replayed: &Replayed) -> String {
    let Replayed { inputs, outputs, seconds, cut, divergence } = replayed;
    let mut text = format!("{} inputs, {} outputs the same, {seconds:.3} s\n", grouped(*inputs), grouped(*outputs));
    if *cut {
        text += "the recording ends in the middle of a line, as after a crash\n";
    }
    if let Some(Divergence { line, seconds, machine, input, recorded, replayed }) = divergence {
        let shown = |what: &Option<String>| what.clone().unwrap_or_else(|| "nothing".to_owned());
        text += &format!("line {line}, {seconds:.6} s: {machine} has a different output\n");
        text += &format!("  input      {input}\n  recorded   {}\n  replayed   {}\n", shown(recorded), shown(replayed));
    }
    text
}
