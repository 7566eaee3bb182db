//! `sanloom port`: ports of a running lab.

use crate::exit::Failure;
use crate::input::{self, LabFile};
use crate::instance;
use crate::output;
use crate::report::terminal::view;
use crate::report::{file, json};
use clap::Subcommand;
use sanloom_api::control::{Answer, Request};
use sanloom_api::inject::{Act, Matcher};
use sanloom_core::scsi::AccessState;
use std::num::NonZeroU64;

/// Options of `sanloom port`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// What can be done with a port.
#[derive(Subcommand, Debug)]
enum What {
    /// Take it out of service; hosts behind it are told by Clear Virtual Links
    Disable(PortArgs),
    /// Put it back into service
    Enable(PortArgs),
    /// Change how a target port group of storage serves; hosts are told by a unit attention
    Group(GroupArgs),
    /// Reject, drop, delay or damage frames that pass it
    Inject(InjectArgs),
}

#[derive(clap::Args, Debug)]
struct PortArgs {
    /// Switch and number, as in sw1:0
    #[arg(value_name = "PORT")]
    port: String,
    #[command(flatten)]
    file: LabFile,
}

#[derive(clap::Args, Debug)]
struct GroupArgs {
    /// Its name in the lab
    #[arg(value_name = "GROUP")]
    group: String,
    #[command(flatten)]
    file: LabFile,
    /// The new state: active/optimized, active/non-optimized, standby, unavailable, offline or transitioning
    #[arg(long, value_name = "STATE", value_parser = check_state, required_unless_present = "preferred")]
    state: Option<String>,
    /// Whether hosts like it better than others of the same state
    #[arg(long, value_name = "BOOL")]
    preferred: Option<bool>,
}

#[derive(clap::Args, Debug)]
struct InjectArgs {
    #[command(flatten)]
    at: PortArgs,
    /// Which frames, for example `els==PLOGI && s_id==010200`; docs/live.md lists the fields
    #[arg(long = "match", value_name = "EXPRESSION", value_parser = check_match, required_unless_present = "clear")]
    matches: Option<String>,
    /// What is done to them: reject:REASON/EXPLANATION (hexadecimal), drop, delay:TIME or corrupt
    #[arg(long = "do", value_name = "ACT", value_parser = check_act, required_unless_present = "clear")]
    act: Option<String>,
    /// To how many of them [default: all, until the rule is cleared]
    #[arg(long, value_name = "N")]
    count: Option<NonZeroU64>,
    /// Forget the rules of the port, and show what they have done
    #[arg(long, conflicts_with_all = ["matches", "act", "count"])]
    clear: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn check_match(text: &str) -> Result<String, String> {
    text.parse::<Matcher>().map(|_| text.to_owned()).map_err(|bad| bad.to_string())
}

fn check_act(text: &str) -> Result<String, String> {
    text.parse::<Act>().map(|_| text.to_owned()).map_err(|bad| bad.to_string())
}

fn check_state(text: &str) -> Result<String, String> {
    let all = AccessState::ALL.map(|state| state.to_string());
    match all.iter().any(|state| state == text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there are {}", all.join(", "))),
    }
}

/// Changes a port.
///
/// # Errors
/// When the lab is wrong, no instance of it runs, or it has no such port.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Disable(at) => enable(at, false),
        What::Enable(at) => enable(at, true),
        What::Group(args) => group(args),
        What::Inject(args) => inject(args),
    }
}

fn enable(at: &PortArgs, enabled: bool) -> Result<(), Failure> {
    ask(at, &Request::Port { port: at.port.clone(), enabled }).map(drop)
}

fn group(args: &GroupArgs) -> Result<(), Failure> {
    let lab = input::load_running(&args.file, &[])?.lab;
    let GroupArgs { group, state, preferred, .. } = args;
    let request = Request::PortGroup { group: group.clone(), state: state.clone(), preferred: *preferred };
    instance::command(&lab, None, &request).map(drop)
}

fn inject(args: &InjectArgs) -> Result<(), Failure> {
    let port = args.at.port.clone();
    let request = match (&args.matches, &args.act) {
        (Some(matches), Some(act)) => {
            let count = args.count.map(NonZeroU64::get);
            Request::Inject { port, matches: matches.clone(), act: act.clone(), count }
        }
        _ => Request::ClearInjections { port: Some(port) },
    };
    let Answer::View(rules) = ask(&args.at, &request)? else {
        return Err(Failure::protocol("the instance answered something else than its rules"));
    };
    match args.json {
        true => output::written(file::stdout(|out| json::write_value(out, &rules))),
        false => output::print(&view::render_live(&rules, output::width())),
    }
}

fn ask(at: &PortArgs, request: &Request) -> Result<Answer, Failure> {
    let lab = input::load_running(&at.file, &[])?.lab;
    let switch = at.port.rsplit_once(':').map(|(switch, _)| switch);
    instance::command(&lab, switch, request)
}
