//! `sanloom fabric`: queries about whole fabrics, answered without a simulation.

use super::zone::ports;
use clap::Subcommand;
use sanloom_api::words::plural;
use sanloom_api::zoning::{IsolationCause, MergePreview, PortPair, SCHEMA_VERSION};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::{Json, Sets};
use sanloom_fc::config::{ZoneDefault, Zoning};
use sanloom_fc::fabric::PortIdentity;
use sanloom_fc::san::{AttachedPort, Lab};
use sanloom_fc::san::{JoinEnd, Joined, Obstacle, join};
use sanloom_fc::zoning::{MergeConflict, Preview, ZoneDatabase};
use sanloom_lab::LoadedLab;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Options of `sanloom fabric`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand, Debug)]
enum Question {
    /// Predict the result of joining two fabrics with an ISL, and list the reasons for isolation
    #[command(after_help = "Example:\n  sanloom fabric merge-preview east.toml west.toml")]
    MergePreview(MergeArgs),
}

#[derive(clap::Args, Debug)]
struct MergeArgs {
    /// Lab file of the first fabric; `-` reads it from standard input
    #[arg(value_name = "LAB1")]
    first: PathBuf,
    /// Lab file of the second fabric
    #[arg(value_name = "LAB2")]
    second: PathBuf,
    /// Switch of the first fabric at which the link would end [default: the first of the lab]
    #[arg(long, value_name = "SWITCH")]
    from: Option<String>,
    /// Switch of the second fabric at which the link would end [default: the first of the lab]
    #[arg(long, value_name = "SWITCH")]
    to: Option<String>,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    json: Json,
}

/// Maximum number of switches named in a message.
const NAMED: usize = 8;
/// Maximum number of pairs in a table; JSON contains all.
const TABLE_ROWS: usize = 40;

/// Runs the subcommand.
///
/// # Errors
/// When a lab is invalid or the output cannot be written. If the fabrics would not join, the exit
/// code is 1.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Question::MergePreview(args) = &args.question;
    let [first, second] = [&args.first, &args.second].map(|path| LabFile { path: path.clone() });
    let set = &args.sets.set;
    let (first, second) = (input::load(&first, set)?, input::load(&second, set)?);
    let answer = preview(args, &first, &second)?;
    args.json.write_or_print(&answer, || text(&answer))?;
    match answer.joins {
        true => Ok(()),
        false => Err(Failure::expectation()),
    }
}

fn preview(args: &MergeArgs, first: &LoadedLab, second: &LoadedLab) -> Result<MergePreview, Failure> {
    let from = end(first, args.from.as_deref(), "--from")?;
    let to = end(second, args.to.as_deref(), "--to")?;
    let (first, second) = (&first.lab, &second.lab);
    let joined = join(from, to);
    let switch = |end: JoinEnd<'_>| end.lab.switches[usize::from(end.switch)].name.clone();
    let mut answer = MergePreview {
        schema_version: SCHEMA_VERSION,
        first: first.name.clone(),
        second: second.name.clone(),
        first_switch: switch(from),
        second_switch: switch(to),
        joins: joined.obstacles.is_empty(),
        isolation: joined.obstacles.iter().map(cause).collect(),
        disagreements: disagreements(first, second),
        duplicate_port_names: duplicates(first, second),
        made_up_names: joined
            .renamed
            .iter()
            .map(|(a, b)| [(first, a), (second, b)].map(|(lab, n)| lab.switches[usize::from(*n)].name.clone()))
            .collect(),
        ..MergePreview::default()
    };
    if let Some(after) = &joined.after {
        answer.merged = Some(after.into());
        answer.changes_first = *after != joined.before[0];
        answer.changes_second = *after != joined.before[1];
        changes(first, second, &joined, after, &mut answer);
    }
    Ok(answer)
}

/// Returns the switch at the end of the link: the named one, or the first. The lab must initially
/// be one fabric.
fn end<'l>(
    LoadedLab { lab, isolated, .. }: &'l LoadedLab,
    wanted: Option<&str>,
    option: &str,
) -> Result<JoinEnd<'l>, Failure> {
    let names: Vec<&str> = lab.switches.iter().map(|switch| switch.name.as_str()).collect();
    let some = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = wanted {
        let found = names.iter().position(|name| *name == wanted);
        let unknown =
            || Failure::usage(format_args!("{} has no switch `{wanted}`: {option} names one of {some}", lab.name));
        return found.map(|switch| JoinEnd { lab, switch: switch as u16 }).ok_or_else(unknown);
    }
    let isolated = isolated.iter().map(|link| *link as u16);
    let apart: BTreeSet<u16> = lab.dark_links().into_iter().chain(isolated).collect();
    let fabrics: BTreeSet<u16> = lab.fabrics_without(&apart).into_iter().collect();
    match fabrics.len() {
        1 => Ok(JoinEnd { lab, switch: 0 }),
        0 => Err(Failure::usage(format_args!("{} has no switch for the end of a link", lab.name))),
        count => Err(Failure::usage(format_args!(
            "{} holds {count} fabrics: name the switch at the end of the link with {option}: {some}",
            lab.name
        ))),
    }
}

fn cause(obstacle: &Obstacle) -> IsolationCause {
    let object = obstacle.conflict.as_ref().and_then(MergeConflict::object);
    IsolationCause {
        reason: obstacle.isolation.name().to_owned(),
        class: obstacle.conflict.as_ref().map(|conflict| conflict.class().to_owned()),
        object: object.map(|(kind, _)| kind.to_string()),
        name: object.map(|(_, name)| name.to_owned()),
        text: obstacle.text.clone(),
        remedy: obstacle.isolation.remedy().to_owned(),
    }
}

/// Returns differences that do not isolate the link but should not exist within one fabric.
fn disagreements(first: &Lab, second: &Lab) -> Vec<String> {
    let mut found = Vec::new();
    let rule = |lab: &Lab| lab.switches.first().map(|switch| switch.policy.duplicate_names);
    if rule(first) != rule(second) {
        found.push(
            "the fabrics treat a login with a used port name differently (`duplicate_names`), and will not agree on \
             who has it"
                .to_owned(),
        );
    }
    let (a, b) = (first.zone_policy, second.zone_policy);
    if (a.merge_rules, a.merge_control) != (b.merge_rules, b.merge_control) {
        found.push(
            "the fabrics merge zones by different rules: a later change may fit one and not the other".to_owned(),
        );
    }
    found
}

fn duplicates(first: &Lab, second: &Lab) -> Vec<String> {
    let names =
        |lab: &Lab| -> BTreeSet<_> { lab.attached_ports().iter().map(|port| port.identity.port_name).collect() };
    names(first).intersection(&names(second)).map(ToString::to_string).collect()
}

/// Adds the pairs of ports that gain or lose access in the joined fabric.
fn changes(first: &Lab, second: &Lab, joined: &Joined, after: &ZoneDatabase, answer: &mut MergePreview) {
    let after = after.zoning();
    let nobody = Zoning { zones: Vec::new(), default: ZoneDefault::Closed };
    let of_fabric = |(lab, switches): (&Lab, &BTreeSet<u16>)| -> Vec<AttachedPort> {
        lab.attached_ports().into_iter().filter(|port| switches.contains(&port.switch)).collect()
    };
    let [a, b] = [(first, &joined.fabrics[0]), (second, &joined.fabrics[1])].map(of_fabric);
    let name = |index: u32| match a.get(index as usize) {
        Some(port) => ports::name(first, port),
        None => ports::name(second, &b[index as usize - a.len()]),
    };
    let identities: Vec<PortIdentity> = a.iter().chain(&b).map(|port| port.identity).collect();
    let boundary = a.len() as u32;
    let talk = Preview::between(&nobody, &after, &identities).gains;
    let between = talk.iter().filter(|(one, other)| *one < boundary && *other >= boundary);
    answer.gains_between = between.map(|(one, other)| PortPair(name(*one), name(*other))).collect();
    for (before, ports, offset) in [(&joined.before[0], &a, 0), (&joined.before[1], &b, boundary)] {
        let identities: Vec<PortIdentity> = ports.iter().map(|port| port.identity).collect();
        let preview = Preview::between(&before.zoning(), &after, &identities);
        let named = |(one, other): &(u32, u32)| PortPair(name(one + offset), name(other + offset));
        answer.gains_within.extend(preview.gains.iter().map(named));
        answer.loses_within.extend(preview.loses.iter().map(named));
    }
}

fn text(answer: &MergePreview) -> String {
    let MergePreview { first, second, first_switch, second_switch, .. } = answer;
    let link = format!("an ISL from `{first_switch}` to `{second_switch}`");
    let mut text = match answer.joins {
        true => format!("{first} and {second} would join over {link}\n"),
        false => format!("{first} and {second} would not join: {link} would be isolated\n"),
    };
    for cause in &answer.isolation {
        let class = cause.class.as_ref().map_or(String::new(), |class| format!(", {class}"));
        let object = match (&cause.object, &cause.name) {
            (Some(object), Some(name)) => format!(", {object} `{name}`"),
            _ => String::new(),
        };
        text.push_str(&format!("\n{}{class}{object}\n  {}\n  help: {}\n", cause.reason, cause.text, cause.remedy));
    }
    if let Some(merged) = &answer.merged {
        let zones = if merged.zones.is_empty() { String::new() } else { format!(": {}", merged.zones.join(" ")) };
        text.push_str(&format!("\nzones   {}{zones}\n", ports::state_line(merged)));
        let taken = match (answer.changes_first, answer.changes_second) {
            (false, false) => "neither fabric's database changes".to_owned(),
            (true, false) => format!("{first} takes over a new database"),
            (false, true) => format!("{second} takes over a new database"),
            (true, true) => "both fabrics take over a new database".to_owned(),
        };
        text.push_str(&format!("        {taken}\n"));
    }
    let lists = [
        ("gain sight of each other over the ISL", &answer.gains_between),
        ("gain sight of each other within a fabric", &answer.gains_within),
        ("lose sight of each other within a fabric", &answer.loses_within),
    ];
    for (what, pairs) in lists.into_iter().filter(|(_, pairs)| answer.joins && !pairs.is_empty()) {
        text.push_str(&format!("\nPairs that {what}\n"));
        for PortPair(a, b) in pairs.iter().take(TABLE_ROWS) {
            text.push_str(&format!("  {a}  {b}\n"));
        }
        if pairs.len() > TABLE_ROWS {
            text.push_str(&format!("  and {} more\n", pairs.len() - TABLE_ROWS));
        }
    }
    for disagreement in &answer.disagreements {
        text.push_str(&format!("\nwarning: {disagreement}\n"));
    }
    if let [[a, b], more @ ..] = &answer.made_up_names[..] {
        let more = if more.is_empty() { String::new() } else { format!(" (and {} pairs more)", more.len()) };
        text.push_str(&format!(
            "\nnote: `{a}` of the first lab and `{b}` of the second would have one world-wide name, which sanloom makes up for \
             switches without `wwn`{more}; this preview took another for one of them: give both a `wwn` before such fabrics meet\n"
        ));
    }
    if !answer.duplicate_port_names.is_empty() {
        let names = &answer.duplicate_port_names;
        text.push_str(&format!(
            "\nwarning: {} in both fabrics, such as {}; of two ports with one name only one stays logged in\n",
            plural(names.len(), "port name"),
            names[0]
        ));
    }
    text
}
