//! `sanloom capture`: packet capture of a port of a running lab.

use crate::instance;
use sanloom_api::control::{Answer, Request};
use sanloom_api::words::plural;
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::{Json, Sets};
use serde::Serialize;
use std::path::PathBuf;

/// Options of `sanloom capture`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// Link of the lab, for example server1-sw1, or port of a switch, for example sw1:0
    #[arg(value_name = "PORT")]
    link: String,
    /// Start a capture that the instance writes to this file (pcapng); without a file, end the
    /// running capture
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Send the request to the instance that runs only this switch
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    json: Json,
}

/// Result of the command.
#[derive(Serialize)]
struct Done<'a> {
    port: &'a str,
    /// File of the started capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Number of frames of the ended capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<u64>,
}

/// Starts or ends a capture.
///
/// # Errors
/// When the lab is invalid, no instance of it is running, or the file cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let lab = input::load_running(&args.file, &args.sets.set)?.lab;
    // The path must be absolute, because the instance has its own working directory.
    let absolute = args.to.as_ref().map(std::path::absolute).transpose();
    let file = absolute
        .map_err(|error| Failure::environment(format_args!("cannot resolve the path of the capture: {error}")))?;
    let file = file.map(|path| path.display().to_string());
    let request = Request::Capture { link: args.link.clone(), file: file.clone() };
    let (frames, text) = match (&file, instance::command(&lab, args.switch.as_deref(), &request)?) {
        (Some(file), Answer::Done) => (None, format!("{}: capture to {file} started\n", args.link)),
        (None, Answer::Captured { frames }) => {
            (Some(frames), format!("{}: capture ended, {}\n", args.link, plural(frames, "frame")))
        }
        _ => return Err(instance::unexpected_answer()),
    };
    let done = Done { port: &args.link, file, frames };
    args.json.write_or_print(&done, || text)
}
