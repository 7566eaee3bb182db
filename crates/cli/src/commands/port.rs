//! `sanloom port`: ports of a running lab.

use crate::instance;
use clap::Subcommand;
use sanloom_api::control::{Answer, Request};
use sanloom_api::inject::{Act, Matcher, RuleRow, RulesView};
use sanloom_api::view::Table;
use sanloom_api::words::plural;
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::{Json, Sets};
use sanloom_console::quantity;
use sanloom_console::report::format::clean;
use sanloom_scsi::scsi::AccessState;
use std::num::NonZeroU64;

/// Options of `sanloom port`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// Commands for a port.
#[derive(Subcommand, Debug)]
enum What {
    /// Disable a port or a whole switch; hosts are logged out with Clear Virtual Links
    #[command(after_help = "Example:\n  sanloom port disable lab.toml sw1:3")]
    Disable(PortArgs),
    /// Enable a port or a whole switch; ports that are disabled themselves stay so
    #[command(after_help = "Example:\n  sanloom port enable lab.toml sw1:3")]
    Enable(PortArgs),
    /// Change the access state of a target port group; hosts receive a unit attention
    #[command(after_help = "Example:\n  sanloom port group lab.toml group1 --state standby")]
    Group(GroupArgs),
    /// Reject, drop, delay or corrupt frames that pass a port
    #[command(after_help = "Example:\n  sanloom port inject lab.toml sw1:3 --match 'els==PLOGI' --do drop --count 2")]
    Inject(InjectArgs),
}

#[derive(clap::Args, Debug)]
struct PortArgs {
    #[command(flatten)]
    file: LabFile,
    /// Switch and number, for example sw1:0; `disable` and `enable` also take a switch
    #[arg(value_name = "PORT")]
    port: String,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    json: Json,
}

#[derive(clap::Args, Debug)]
struct GroupArgs {
    #[command(flatten)]
    file: LabFile,
    /// Name of the group in the lab
    #[arg(value_name = "GROUP")]
    group: String,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    json: Json,
    /// The new state: active/optimized, active/non-optimized, standby, unavailable, offline or
    /// transitioning
    #[arg(long, value_name = "STATE", value_parser = check_state, required_unless_present = "preferred")]
    state: Option<String>,
    /// True if hosts prefer the group to others in the same state
    #[arg(long, value_name = "BOOL")]
    preferred: Option<bool>,
}

#[derive(clap::Args, Debug)]
struct InjectArgs {
    #[command(flatten)]
    at: PortArgs,
    /// Expression that selects frames, for example `els==PLOGI && s_id==010200`;
    /// docs/src/guides/inject.md lists the fields
    #[arg(long = "match", value_name = "EXPRESSION", value_parser = check_match, required_unless_present = "clear")]
    matches: Option<String>,
    /// Action: reject:REASON/EXPLANATION (hexadecimal), drop, delay:TIME or corrupt
    #[arg(long = "do", value_name = "ACT", value_parser = check_act, required_unless_present = "clear")]
    act: Option<String>,
    /// Number of frames to which the rule applies [default: all, until the rule is cleared]
    #[arg(long, value_name = "N", value_parser = quantity::count::<NonZeroU64>(1..=u64::MAX))]
    count: Option<NonZeroU64>,
    /// Remove the rules of the port; --json prints all rules with their counters before
    #[arg(long, conflicts_with_all = ["matches", "act", "count"])]
    clear: bool,
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
/// When the lab is invalid, no instance of it is running, or it has no such port.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Disable(at) => enable(at, false),
        What::Enable(at) => enable(at, true),
        What::Group(args) => group(args),
        What::Inject(args) => inject(args),
    }
}

fn enable(at: &PortArgs, enabled: bool) -> Result<(), Failure> {
    let name = at.port.clone();
    let request = match is_switch(&name) {
        true => Request::Switch { switch: name, enabled, by: None },
        false => Request::Port { port: name, enabled, by: None },
    };
    ask(at, &request)?;
    let done = serde_json::json!({ "port": at.port, "enabled": enabled });
    let state = if enabled { "enabled" } else { "disabled" };
    at.json.write_or_print(&done, || format!("{} is {state}\n", clean(&at.port)))
}

/// True for the name of a switch, which has no number of a port.
fn is_switch(name: &str) -> bool {
    !name.contains(':')
}

fn group(args: &GroupArgs) -> Result<(), Failure> {
    let lab = input::load_running(&args.file, &args.sets.set)?.lab;
    let GroupArgs { group, state, preferred, .. } = args;
    let request = Request::PortGroup { group: group.clone(), state: state.clone(), preferred: *preferred };
    instance::command(&lab, None, &request)?;
    let done = serde_json::json!({ "group": group, "state": state, "preferred": preferred });
    let mut parts: Vec<String> = state.iter().map(|state| format!("is {state}")).collect();
    parts.extend(preferred.map(|preferred| if preferred { "is preferred" } else { "is not preferred" }.to_owned()));
    args.json.write_or_print(&done, || format!("{} {}\n", clean(group), parts.join(" and ")))
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
        return Err(instance::unexpected_answer());
    };
    let port = clean(&args.at.port);
    let removed = || {
        let Table::Injections(RulesView { rules }) = &rules.table else { return String::new() };
        let of_port: Vec<&RuleRow> = rules.iter().filter(|rule| rule.port == args.at.port).collect();
        let frames: u64 = of_port.iter().map(|rule| rule.injected).sum();
        format!("{port}: {} removed, which had changed {}\n", plural(of_port.len(), "rule"), plural(frames, "frame"))
    };
    let text = || match (args.clear, args.count.map(NonZeroU64::get)) {
        (true, _) => removed(),
        (false, None) => format!("{port}: rule added for all matching frames\n"),
        (false, Some(count)) => format!("{port}: rule added for {}\n", plural(count, "matching frame")),
    };
    args.at.json.write_or_print(&rules, text)
}

fn ask(at: &PortArgs, request: &Request) -> Result<Answer, Failure> {
    let lab = input::load_running(&at.file, &at.sets.set)?.lab;
    let switch = match is_switch(&at.port) {
        true => Some(&*at.port),
        false => at.port.rsplit_once(':').map(|(switch, _)| switch),
    };
    instance::command(&lab, switch, request)
}
