//! Import of the configuration of real switches.
//!
//! [`import`] reads what administrators can export: outputs of Fabric OS and NX-OS commands, and
//! the JSON of the REST interface of Fabric OS. The kind of each section is recognised by its
//! content. Readers turn lines into observations (`facts`); `plan` merges the observations into
//! one fabric; `zones` merges the zone databases; `write` makes the text of the lab. Every line
//! of the inputs is used, decoration, or in a note of the [`Account`].

mod choices;
mod facts;
mod fos;
mod fos_commands;
mod fos_names;
mod fos_transaction;
mod fos_zones;
mod index;
mod json;
mod lines;
mod listed;
mod nodes;
mod nxos;
mod nxos_config;
mod nxos_interfaces;
mod plan;
mod report;
mod rest;
mod rest_zones;
mod roles;
mod write;
mod zones;

pub use choices::Choices;
pub use report::{Account, FileAccount, Note, NoteKind, Place};
pub use zones::ALL_FABRICS;

use facts::{At, Facts};
use report::Ledger;

/// One input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Name in messages, usually that of the file.
    pub name: String,
    pub text: String,
}

/// Result of an import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// Text of the lab file.
    pub lab: String,
    pub account: Account,
    /// The lab has passed its own check; true for a draft, which is not checked.
    pub is_valid: bool,
}

/// Merges the inputs into one lab, checks it, and gives it a light workload if that is possible.
pub fn import(sources: &[Source], choices: &Choices) -> Imported {
    let (lab, mut account) = merge(sources, choices);
    let (lab, is_valid) = write::finish(&lab, &mut account.notes);
    account.notes.sort_by(|a, b| (a.kind, &a.places).cmp(&(b.kind, &b.places)));
    Imported { lab, account, is_valid }
}

/// As [`import`], without the check of the lab and without a workload.
pub fn draft(sources: &[Source], choices: &Choices) -> Imported {
    let (lab, mut account) = merge(sources, choices);
    account.notes.sort_by(|a, b| (a.kind, &a.places).cmp(&(b.kind, &b.places)));
    Imported { lab, account, is_valid: true }
}

fn merge(sources: &[Source], choices: &Choices) -> (String, Account) {
    let mut facts = Facts::default();
    let mut account = Account::default();
    for (file, source) in sources.iter().enumerate() {
        facts.files.push(source.name.clone());
        let ledger = Ledger::new(&source.name);
        let first = source.text.trim_start_matches('\u{feff}').trim_start();
        let is_json = first.starts_with(['{', '[']) && json::looks_like(first);
        let is_xml = ["<?xml", "<Response", "<errors"].iter().any(|start| first.starts_with(start));
        let read = match is_json {
            true => rest::read(file as u32, &source.text, ledger, &mut facts, &mut account.notes),
            false if is_xml => report::xml(&source.text, ledger, &mut account.notes),
            false => lines::read(file as u32, &source.text, ledger, &mut facts, &mut account.notes),
        };
        if read.used == 0 && read.reported == 0 && !source.text.trim().is_empty() {
            let reason = "has no line that the importer can use";
            let remedy = "give outputs such as switchshow and cfgshow, show running-config, or the JSON of REST";
            let place = Place { file: source.name.clone(), line: 1, last: 1 };
            let (text, reason, remedy) = (source.name.clone(), reason.to_owned(), remedy.to_owned());
            account.notes.push(Note { kind: NoteKind::Unplaced, places: vec![place], text, reason, remedy });
        }
        account.files.push(read);
    }
    facts.settle();
    let notes = &mut account.notes;
    rest::place_trunks(&mut facts, notes);
    plan::place(&mut facts);
    let mut plan = plan::plan(&facts, choices, notes);
    let zones = zones::merge(&facts, &plan, notes);
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    nodes::name(&facts, &mut plan, &zones, choices, notes);
    choices::report(&facts, &plan, choices, notes);
    let (lab, written) = write::lab(&names, &plan, &zones, notes);
    listed::report(&facts, &plan, &written, notes);
    (lab, account)
}

/// Appends a note about lines of the inputs.
fn note(
    facts: &Facts,
    notes: &mut Vec<Note>,
    kind: NoteKind,
    places: &[At],
    text: impl Into<String>,
    reason: impl Into<String>,
    remedy: impl Into<String>,
) {
    let place = |at: &At| Place {
        file: facts.files.get(at.file as usize).cloned().unwrap_or_default(),
        line: at.line,
        last: at.line,
    };
    let places = places.iter().filter(|at| at.line > 0).map(place).collect();
    notes.push(Note { kind, places, text: text.into(), reason: reason.into(), remedy: remedy.into() });
}
