//! `sanloom port`: ports of a running lab.

use crate::exit::Failure;
use crate::input::{self, LabFile};
use crate::instance;
use sanloom_api::control::Request;

/// Options of `sanloom port`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What to do with it
    #[arg(value_enum)]
    what: What,
    /// Switch and number, as in sw1:0
    #[arg(value_name = "PORT")]
    port: String,
    #[command(flatten)]
    file: LabFile,
}

/// What can be done with a port.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum What {
    /// Take it out of service; hosts behind it are told by Clear Virtual Links
    Disable,
    /// Put it back into service
    Enable,
}

/// Changes a port.
///
/// # Errors
/// When the lab is wrong, no instance of it runs, or it has no such port.
pub fn run(args: &Args) -> Result<(), Failure> {
    let lab = input::load(&args.file, &[])?.lab;
    let enabled = matches!(args.what, What::Enable);
    let switch = args.port.rsplit_once(':').map(|(switch, _)| switch);
    instance::command(&lab, switch, &Request::Port { port: args.port.clone(), enabled }).map(drop)
}
