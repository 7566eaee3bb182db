//! `sanloom fabric`: questions about fabrics as a whole, answered without a simulation.

use super::zone::ports;
use crate::exit::Failure;
use crate::input::{self, LabFile};
use crate::output;
use crate::report::{file, json};
use clap::Subcommand;
use sanloom_api::zoning::{IsolationCause, MergePreview, PortPair, SCHEMA_VERSION};
use sanloom_core::config::{AttachedPort, Lab, ZoneDefault, Zoning};
use sanloom_core::fabric::PortIdentity;
use sanloom_core::isolation::Isolation;
use sanloom_core::zoning::{MergeConflict, MergeControl, Preview, ZoneDatabase, merge};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Options of `sanloom fabric`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand, Debug)]
enum Question {
    /// Say what would become of two fabrics if an ISL joined them, and name what would isolate it
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
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Pairs that a table shows; JSON has all.
const TABLE_ROWS: usize = 40;

/// Answers.
///
/// # Errors
/// When a lab is wrong or the answer cannot be written; with exit code 1 when the fabrics would not join.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Question::MergePreview(args) = &args.question;
    let [first, second] = [&args.first, &args.second].map(|path| LabFile { path: path.clone() });
    let (first, second) = (input::load(&first, &[])?.lab, input::load(&second, &[])?.lab);
    let answer = preview(&first, &second);
    if args.json {
        output::written(file::stdout(|out| json::write_value(out, &answer)))?;
    } else {
        output::print(&text(&answer))?;
    }
    match answer.joins {
        true => Ok(()),
        false => Err(Failure::expectation()),
    }
}

fn preview(first: &Lab, second: &Lab) -> MergePreview {
    let mut isolation: Vec<IsolationCause> = timers(first, second);
    isolation.extend(domains(first, second));
    // The stricter of both ends decides, and the smallest limit counts.
    let [ours, theirs] = [first, second].map(|lab| lab.zone_policy);
    let control = match [ours.merge_control, theirs.merge_control].contains(&MergeControl::Restrict) {
        true => MergeControl::Restrict,
        false => MergeControl::Allow,
    };
    let limits = ours.limits.smallest(theirs.limits);
    if ours.merge_rules != theirs.merge_rules {
        isolation.push(IsolationCause {
            class: Some("zoning mode mismatch".to_owned()),
            ..cause(&zone_merge("the two fabrics merge zones by different rules"), None)
        });
    }
    let merged = merge(&first.zone_database, &second.zone_database, control, &limits, ours.merge_rules);
    let mut answer = MergePreview {
        schema_version: SCHEMA_VERSION,
        first: first.name.clone(),
        second: second.name.clone(),
        duplicate_port_names: duplicates(first, second),
        ..MergePreview::default()
    };
    match merged {
        Ok(merged) => {
            answer.merged = Some(ports::state(&merged.database));
            answer.changes_first = merged.changes_ours;
            answer.changes_second = merged.changes_theirs;
            changes(first, second, &merged.database, &mut answer);
        }
        Err(conflicts) => {
            isolation.extend(conflicts.iter().map(|c| cause(&zone_merge(&c.to_string()), Some(c))));
        }
    }
    answer.joins = isolation.is_empty();
    answer.isolation = isolation;
    answer
}

fn zone_merge(conflict: &str) -> Isolation {
    Isolation::ZoneMerge { conflict: conflict.to_owned() }
}

fn cause(isolation: &Isolation, conflict: Option<&MergeConflict>) -> IsolationCause {
    let object = conflict.and_then(MergeConflict::object);
    let text = match isolation {
        Isolation::ZoneMerge { conflict } => conflict.clone(),
        other => other.to_string(),
    };
    IsolationCause {
        reason: isolation.name().to_owned(),
        class: conflict.map(|conflict| conflict.class().to_owned()),
        object: object.map(|(kind, _)| kind.to_string()),
        name: object.map(|(_, name)| name.to_owned()),
        text,
    }
}

fn timers(first: &Lab, second: &Lab) -> Vec<IsolationCause> {
    let [a, b] = [&first.timers, &second.timers];
    let differ = [("E_D_TOV", a.e_d_tov, b.e_d_tov), ("R_A_TOV", a.r_a_tov, b.r_a_tov)];
    let differ = differ.into_iter().filter(|(_, a, b)| a != b);
    let text = |(name, a, b)| format!("{name} is {a} in the first fabric and {b} in the second");
    differ.map(|timer| IsolationCause { text: text(timer), ..cause(&Isolation::Timers, None) }).collect()
}

fn domains(first: &Lab, second: &Lab) -> Vec<IsolationCause> {
    let owners: BTreeMap<u8, &str> = first.switches.iter().map(|s| (s.domain, s.name.as_str())).collect();
    let both = second.switches.iter().filter_map(|s| Some((s.domain, *owners.get(&s.domain)?, &s.name)));
    let text =
        |(domain, a, b)| format!("domain {domain} is that of `{a}` in the first fabric and of `{b}` in the second");
    both.map(|both| IsolationCause { text: text(both), ..cause(&Isolation::DomainOverlap, None) }).collect()
}

fn duplicates(first: &Lab, second: &Lab) -> Vec<String> {
    let names =
        |lab: &Lab| -> BTreeSet<_> { lab.attached_ports().iter().map(|port| port.identity.port_name).collect() };
    names(first).intersection(&names(second)).map(ToString::to_string).collect()
}

/// Who gains and who loses in the joined fabric.
fn changes(first: &Lab, second: &Lab, joined: &ZoneDatabase, answer: &mut MergePreview) {
    let after = joined.zoning();
    let nobody = Zoning { zones: Vec::new(), default: ZoneDefault::Closed };
    let [a, b]: [Vec<AttachedPort>; 2] = [first, second].map(Lab::attached_ports);
    let name = |index: u32| match a.get(index as usize) {
        Some(port) => ports::name(first, port),
        None => ports::name(second, &b[index as usize - a.len()]),
    };
    let identities: Vec<PortIdentity> = a.iter().chain(&b).map(|port| port.identity).collect();
    let boundary = a.len() as u32;
    let talk = Preview::between(&nobody, &after, &identities).gains;
    let between = talk.iter().filter(|(one, other)| *one < boundary && *other >= boundary);
    answer.gains_between = between.map(|(one, other)| PortPair(name(*one), name(*other))).collect();
    for (lab, ports, offset) in [(first, &a, 0), (second, &b, boundary)] {
        let identities: Vec<PortIdentity> = ports.iter().map(|port| port.identity).collect();
        let preview = Preview::between(&lab.zoning, &after, &identities);
        let same_fabric = |(one, other): &&(u32, u32)| ports[*one as usize].fabric == ports[*other as usize].fabric;
        let named = |(one, other): &(u32, u32)| PortPair(name(one + offset), name(other + offset));
        answer.gains_within.extend(preview.gains.iter().filter(same_fabric).map(named));
        answer.loses_within.extend(preview.loses.iter().filter(same_fabric).map(named));
    }
}

fn text(answer: &MergePreview) -> String {
    let MergePreview { first, second, .. } = answer;
    let mut text = match answer.joins {
        true => format!("{first} and {second} would join\n"),
        false => format!("{first} and {second} would not join: the ISL would be isolated\n"),
    };
    for cause in &answer.isolation {
        let class = cause.class.as_ref().map_or(String::new(), |class| format!(", {class}"));
        let object = match (&cause.object, &cause.name) {
            (Some(object), Some(name)) => format!(", {object} `{name}`"),
            _ => String::new(),
        };
        text.push_str(&format!("\n{}{class}{object}\n  {}\n", cause.reason, cause.text));
    }
    if let Some(merged) = &answer.merged {
        text.push_str(&format!("\nzones   {}: {}\n", ports::state_line(merged), merged.zones.join(" ")));
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
    if !answer.duplicate_port_names.is_empty() {
        let names = &answer.duplicate_port_names;
        text.push_str(&format!(
            "\nwarning: {} port name{} in both fabrics, such as {}; of two ports with one name only one stays logged in\n",
            names.len(),
            if names.len() == 1 { "" } else { "s" },
            names[0]
        ));
    }
    text
}
