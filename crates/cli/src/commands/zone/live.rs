//! `sanloom zone show|edit|replace|expunge|clear|commit|abort|rollback`: the zones of a running
//! switch.

use super::ports;
use crate::instance;
use sanloom_api::control::{Answer, Request, ZoneAction};
use sanloom_api::zone_database::{Database, Edit, Kind, Member};
use sanloom_api::zoning::{ZoneState, ZoneStatus};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::output;
use sanloom_console::outputs::{Json, Sets};
use sanloom_console::report::terminal::grid::{Column, Grid};
use sanloom_console::zones::{self, database};
use sanloom_fc::san::Lab;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Optional running switch of a command.
#[derive(clap::Args, Debug)]
pub struct Live {
    /// Use the zones of the running instance of the lab (`sanloom up`)
    #[arg(long)]
    pub live: bool,
    /// Switch whose zones are used [default: the first that runs]
    #[arg(long, value_name = "NAME", requires = "live")]
    switch: Option<String>,
}

/// Options of commands about a running switch.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// The switch [default: the first that runs]
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    json: Json,
}

/// Options of `sanloom zone edit`.
#[derive(clap::Args, Debug)]
pub struct EditArgs {
    #[command(flatten)]
    args: Args,
    /// File of zone edits, described in the reference of the lab file; `-` reads it from standard
    /// input
    #[arg(long, value_name = "FILE")]
    edit: PathBuf,
}

/// Options of `sanloom zone replace`.
#[derive(clap::Args, Debug)]
pub struct ReplaceArgs {
    #[command(flatten)]
    args: Args,
    /// Lab file with the new aliases, zones and configurations
    #[arg(long, value_name = "FILE")]
    with: PathBuf,
}

/// Options of `sanloom zone expunge`.
#[derive(clap::Args, Debug)]
pub struct ExpungeArgs {
    #[command(flatten)]
    args: Args,
    /// Kind of the object
    kind: Object,
    /// Name of the object
    name: String,
}

/// Kinds of zoning objects.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Object {
    /// A name for a list of members
    Alias,
    /// A zone
    Zone,
    /// A configuration
    Config,
}

impl Live {
    /// Sends a zone request to the switch.
    pub(super) fn ask(&self, lab: &Lab, action: ZoneAction) -> Result<Answer, Failure> {
        ask(lab, self.switch.as_deref(), action)
    }

    /// Returns the zones of the switch.
    pub(super) fn status(&self, lab: &Lab) -> Result<ZoneStatus, Failure> {
        status(self.ask(lab, ZoneAction::Show)?)
    }
}

fn ask(lab: &Lab, switch: Option<&str>, action: ZoneAction) -> Result<Answer, Failure> {
    let request = Request::Zone { switch: switch.map(str::to_owned), by: None, action };
    instance::command(lab, switch, &request)
}

fn status(answer: Answer) -> Result<ZoneStatus, Failure> {
    match answer {
        Answer::Zones(status) => Ok(*status),
        _ => Err(instance::unexpected_answer()),
    }
}

/// Reads the edits of a file, with the names of the lab, for the zones defined on a running switch.
pub(super) fn edits(lab: &Lab, status: &ZoneStatus, path: &Path) -> Result<Vec<Edit>, Failure> {
    let file = LabFile { path: path.to_owned() };
    zones::edits(lab, status, &file.label(), &file.text()?)
}

pub(super) fn run(args: &Args, action: ZoneAction) -> Result<(), Failure> {
    let lab = input::load_running(&args.file, &args.sets.set)?.lab;
    show(args, &ask(&lab, args.switch.as_deref(), action).and_then(status)?)
}

pub(super) fn edit(args: &EditArgs) -> Result<(), Failure> {
    let EditArgs { args, edit } = args;
    let lab = input::load_running(&args.file, &args.sets.set)?.lab;
    let switch = args.switch.as_deref();
    let now = status(ask(&lab, switch, ZoneAction::Show)?)?;
    let edits = edits(&lab, &now, edit)?;
    show(args, &status(ask(&lab, switch, ZoneAction::Edit { edits })?)?)
}

pub(super) fn replace(args: &ReplaceArgs) -> Result<(), Failure> {
    let ReplaceArgs { args, with } = args;
    let file = LabFile { path: with.clone() };
    let defined = input::load(&file, &[])?.lab.zone_database.defined;
    run(args, ZoneAction::Edit { edits: vec![Edit::ReplaceAll { defined: (&*defined).into() }] })
}

pub(super) fn expunge(args: &ExpungeArgs) -> Result<(), Failure> {
    let kind = match args.kind {
        Object::Alias => Kind::Alias,
        Object::Zone => Kind::Zone,
        Object::Config => Kind::Config,
    };
    let edit = Edit::Expunge { kind, name: args.name.clone() };
    run(&args.args, ZoneAction::Edit { edits: vec![edit] })
}

fn show(args: &Args, status: &ZoneStatus) -> Result<(), Failure> {
    let text = text(status)?;
    args.json.write_or_print(status, || text)
}

fn text(status: &ZoneStatus) -> Result<String, Failure> {
    let mut text = format!("{}: {}\n", status.switch, ports::state_line(&status.state));
    if !status.kept && !status.volatile {
        text += "the store could not keep it: after a crash it would be gone, see the log of the instance\n";
    }
    if status.change != "free" {
        let by = status.locked_by.map(|domain| format!(", of domain {domain}")).unwrap_or_default();
        text += &format!("a change is in progress: {}{by}\n", status.change);
    }
    text += &format!("checksum {}\n", status.checksum);
    let owned = status.transaction.as_ref().and_then(|open| Some((open, open.owner.as_ref()?)));
    if let Some((open, owner)) = owned {
        text += &format!(
            "transaction {} belongs to {} ({}, {}) and ends in {} s without a request\n",
            open.token,
            owner.user,
            owner.interface,
            owner.address,
            open.remaining_s.unwrap_or_default()
        );
    }
    let shown = match &status.working {
        None => &status.committed,
        Some(working) => {
            let state = ZoneState::from(&database(working)?);
            text += &format!("transaction open; a commit results in: {}\n", ports::state_line(&state));
            text.extend(status.problems.iter().map(|problem| format!("  cannot be committed: {problem}\n")));
            working
        }
    };
    text.push('\n');
    text += &defined(shown, &status.committed).render(output::width());
    Ok(text)
}

/// Formats the defined zones and marks the changes of an open transaction.
fn defined(shown: &Database, committed: &Database) -> Grid {
    let mut grid =
        Grid::new(vec![Column::left("change"), Column::left("object"), Column::left("name"), Column::left("members")]);
    let list = |members: &[Member], principal: bool| -> Vec<String> {
        let name = |member: &Member| match member {
            Member::Port(text) => text.clone(),
            Member::Alias { alias } => alias.clone(),
        };
        members.iter().map(|member| if principal { format!("*{}", name(member)) } else { name(member) }).collect()
    };
    let objects = |database: &Database| -> BTreeMap<(u8, String), Vec<String>> {
        let configs = database.configs.iter().map(|(name, zones)| ((0, name.clone()), zones.clone()));
        let zones = database.zones.iter().map(|(name, zone)| {
            let members = [list(&zone.principals, true), list(&zone.members, false)].concat();
            ((1, name.clone()), members)
        });
        let aliases = database.aliases.iter().map(|(name, members)| ((2, name.clone()), members.clone()));
        configs.chain(zones).chain(aliases).collect()
    };
    let (now, before) = (objects(shown), objects(committed));
    let in_force = shown.effective.as_ref().map(|effective| effective.config.as_str());
    for (key, members) in before.iter().chain(&now).collect::<BTreeMap<_, _>>() {
        let change = match (before.get(key), now.get(key)) {
            (None, _) => "new",
            (_, None) => "gone",
            (Some(old), Some(new)) if old != new => "changed",
            _ => "",
        };
        let kind = match key.0 {
            0 if in_force == Some(&*key.1) => "configuration, in force",
            0 => "configuration",
            1 => "zone",
            _ => "alias",
        };
        grid.row(vec![change.to_owned(), kind.to_owned(), key.1.clone(), members.join(" ")]);
    }
    grid
}
