//! `sanloom zone preview`: pairs of ports that gain or lose access.

use super::live::{self, Live};
use super::ports;
use sanloom_api::control::{Answer, ZoneAction};
use sanloom_api::words::plural;
use sanloom_api::zoning::{PortPair, SCHEMA_VERSION, ZonePreview};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::output;
use sanloom_console::outputs::{Json, Sets};
use sanloom_console::report::terminal::grid::{Column, Grid};
use sanloom_fc::fabric::PortIdentity;
use sanloom_fc::san::{AttachedPort, Lab};
use sanloom_fc::zoning::Preview;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of `sanloom zone preview`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// File of zone edits, described in the reference of the lab file; `-` reads it from standard
    /// input
    #[arg(long, value_name = "FILE", required_unless_present = "live")]
    edit: Option<PathBuf>,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    live: Live,
    #[command(flatten)]
    json: Json,
}

/// Maximum number of pairs in a table; JSON contains all.
const TABLE_ROWS: usize = 60;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let lab = input::load(&args.file, &args.sets.set)?.lab;
    let answer = if args.live.live { running(args, &lab)? } else { of_lab(args, &lab)? };
    args.json.write_or_print(&answer, || text(&answer))
}

/// Returns the changes of a running switch's open transaction, followed by the edits of a file if
/// given.
fn running(args: &Args, lab: &Lab) -> Result<ZonePreview, Failure> {
    let edits = match &args.edit {
        None => Vec::new(),
        Some(path) => live::edits(lab, &args.live.status(lab)?, path)?,
    };
    match args.live.ask(lab, ZoneAction::Preview { edits })? {
        Answer::ZonePreview(preview) => Ok(*preview),
        _ => Err(crate::instance::unexpected_answer()),
    }
}

fn of_lab(args: &Args, lab: &Lab) -> Result<ZonePreview, Failure> {
    let Some(path) = &args.edit else { return Err(Failure::usage("--edit names the file of zone edits")) };
    let edits = LabFile { path: path.clone() };
    let transaction = sanloom_lab::edit_zones(&edits.label(), &edits.text()?, lab)?;
    let outcome = transaction
        .commit()
        .map_err(|problems| Failure::bug(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?;
    let mut answer = ZonePreview {
        schema_version: SCHEMA_VERSION,
        lab: lab.name.clone(),
        before: (&lab.zone_database).into(),
        after: (&outcome).into(),
        ..ZonePreview::default()
    };
    for (fabric, ports) in by_fabric(lab) {
        let identities: Vec<PortIdentity> = ports.iter().map(|port| port.identity).collect();
        let [before, after] =
            [&lab.zone_database, &outcome].map(|database| lab.zones_at(database.clone(), fabric).zoning());
        let preview = Preview::between(&before, &after, &identities);
        answer.gains.extend(names(lab, &ports, &preview.gains));
        answer.loses.extend(names(lab, &ports, &preview.loses));
        answer.unchanged_pairs += preview.unchanged;
        answer.unaffected_ports += preview.unaffected_ports as u64;
    }
    Ok(answer)
}

/// Returns the linked ports of each fabric.
pub(crate) fn by_fabric(lab: &Lab) -> BTreeMap<u16, Vec<AttachedPort>> {
    let mut fabrics: BTreeMap<u16, Vec<AttachedPort>> = BTreeMap::new();
    for port in lab.attached_ports() {
        fabrics.entry(port.fabric).or_default().push(port);
    }
    fabrics
}

fn names(lab: &Lab, all: &[AttachedPort], pairs: &[(u32, u32)]) -> Vec<PortPair> {
    let name = |index: u32| ports::name(lab, &all[index as usize]);
    pairs.iter().map(|(a, b)| PortPair(name(*a), name(*b))).collect()
}

fn text(answer: &ZonePreview) -> String {
    let mut text = format!(
        "{}\nbefore  {}\nafter   {}\n\n",
        answer.lab,
        ports::state_line(&answer.before),
        ports::state_line(&answer.after)
    );
    let mut grid = Grid::new(vec![Column::left("change"), Column::left("port"), Column::left("port")]);
    let gains = answer.gains.iter().map(|pair| ("gains", pair));
    let all: Vec<_> = gains.chain(answer.loses.iter().map(|pair| ("loses", pair))).collect();
    for (change, PortPair(a, b)) in all.iter().take(TABLE_ROWS) {
        grid.row(vec![(*change).to_owned(), a.clone(), b.clone()]);
    }
    grid.more(all.len().saturating_sub(TABLE_ROWS));
    text.push_str(&grid.render(output::width()));
    if !all.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!(
        "{} gained, {} lost, {} unchanged; {} unaffected\n",
        plural(answer.gains.len(), "pair"),
        plural(answer.loses.len(), "pair"),
        answer.unchanged_pairs,
        plural(answer.unaffected_ports, "port")
    ));
    text
}
