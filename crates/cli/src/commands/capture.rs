//! `sanloom capture`: what passes a port of a running lab.

use crate::exit::Failure;
use crate::input::{self, LabFile};
use crate::instance;
use crate::output;
use crate::report::{file, json};
use sanloom_api::control::{Answer, Request};
use serde::Serialize;
use std::path::PathBuf;

/// Options of `sanloom capture`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Link of the lab, for example server1-sw1, or port of a switch, for example sw1:0
    #[arg(value_name = "PORT")]
    link: String,
    #[command(flatten)]
    file: LabFile,
    /// Begin a capture, written to this file (pcapng) by the instance; without: end the one that runs
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Ask the instance that runs this switch alone
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// What was begun or ended.
#[derive(Serialize)]
struct Done<'a> {
    port: &'a str,
    /// The file of the capture that has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Frames of the capture that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<u64>,
}

/// Begins or ends a capture.
///
/// # Errors
/// When the lab is wrong, no instance of it runs, or the file cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let lab = input::load_running(&args.file, &[])?.lab;
    // The instance has another working folder than we.
    let absolute = args.to.as_ref().map(std::path::absolute).transpose();
    let file = absolute.map_err(|error| Failure::environment(format_args!("cannot name the file: {error}")))?;
    let file = file.map(|path| path.display().to_string());
    let request = Request::Capture { link: args.link.clone(), file: file.clone() };
    let frames = match instance::command(&lab, args.switch.as_deref(), &request)? {
        Answer::Captured { frames } => Some(frames),
        _ => None,
    };
    match (args.json, frames) {
        (true, _) => {
            let done = Done { port: &args.link, file, frames };
            output::written(file::stdout(|out| json::write_value(out, &done)))
        }
        (false, Some(frames)) => output::print(&format!("{frames} frames\n")),
        (false, None) => Ok(()),
    }
}
