//! The lab file: conversion of text to checked values, and all diagnostics.
//!
//! A lab file is TOML. [`load`] reads it in two steps. First, every key and value is checked
//! against one table of definitions, and keeps its location in the text. Then, names are resolved
//! into the values of [`sanloom_fc::config`], and [`sanloom_fc::san`] validates the lab as a whole.
//! All errors are reported at once, each with line, column, caret, reason and remedy. This crate
//! reads no files but the parameter files of disks and the beginnings of traces that a lab names.

#![allow(missing_docs, reason = "a comment that repeats the name is left out")]

mod amount;
mod build;
mod check;
mod diagnostic;
mod document;
mod element;
pub mod export;
mod files;
mod format;
mod forms;
pub mod import;
mod json_schema;
mod overrides;
mod pattern;
mod presets;
mod reference;
mod schema;
mod suggest;
mod syntax;
pub mod topology;
mod units;
mod value;

pub use amount::{parse_bound, parse_count};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use format::format;
pub use json_schema::{SCHEMA_LINE, json_schema};
pub use overrides::Override;
pub use reference::reference;
pub use suggest::closest;
pub use syntax::MAX_BYTES;

use diagnostic::{Sink, Sources};
use document::Document;
use sanloom_fc::config::Picos;
use sanloom_fc::san::{Lab, ProblemKind};
use sanloom_fc::zoning::{Transaction, ZoneEdit};

/// A lab file without errors.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadedLab {
    pub lab: Lab,
    /// Text of the file.
    pub text: String,
    /// Warnings, sorted by location.
    pub warnings: Vec<Diagnostic>,
    /// Indices of the links that, according to the warnings, their switches will isolate.
    pub isolated: Vec<usize>,
    /// Names of zone objects on real switches, where the lab has other ones.
    pub export_names: export::ExportNames,
}

/// Reads the lab file `text`. `path_label` is its name in diagnostics, and the lab's name if the
/// file gives none.
///
/// # Errors
/// All errors of the file and of the overrides, sorted by location.
pub fn load(path_label: &str, text: &str, overrides: &[Override]) -> Result<LoadedLab, Diagnostics> {
    read(path_label, text, overrides, Zones::Required, |_, _, _| ()).map(|(loaded, ())| loaded)
}

/// As [`load`], for tools that explain zones: a workload to which the zones permit nothing is only
/// a warning.
///
/// # Errors
/// All other errors of [`load`].
pub fn load_to_explain(path_label: &str, text: &str, overrides: &[Override]) -> Result<LoadedLab, Diagnostics> {
    read(path_label, text, overrides, Zones::Explained, |_, _, _| ()).map(|(loaded, ())| loaded)
}

/// Reads a lab, and appends text that `more` makes of it. Returns the whole text, if it is that of
/// a lab without errors.
pub(crate) fn extended(text: &str, more: impl FnOnce(&Lab) -> String) -> Option<String> {
    let mut full = None;
    let mut is_whole = false;
    let is_valid = is_valid(text, |lab| {
        let more = more(lab);
        // Comments change nothing, so the lab is checked as it is.
        is_whole = more.lines().all(|line| line.is_empty() || line.starts_with('#'));
        full = Some(format!("{text}{more}"));
        is_whole
    });
    let full = full?;
    match is_whole && full.len() <= MAX_BYTES {
        true => is_valid.then_some(full),
        false => self::is_valid(&full, |_| true).then_some(full),
    }
}

/// Returns whether a text is that of a lab without errors. `checks` receives the lab before the
/// checks of the lab as a whole, and leaves them out by returning false.
fn is_valid(text: &str, checks: impl FnOnce(&Lab) -> bool) -> bool {
    let mut sink = Sink::default();
    let sets = overrides::read(&[], &mut sink);
    let document = Document::read(text, sets, &mut sink);
    if sink.has_syntax_errors() {
        return false;
    }
    let Some(built) = build::build(&document, "lab.toml", &mut sink) else { return false };
    if sink.has_errors() || !checks(&built.lab) {
        return false;
    }
    built.validate(Severity::Error, &mut sink);
    !sink.has_errors()
}

/// Treatment of a workload to which the zones permit nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zones {
    /// It is an error.
    Required,
    /// It is a warning.
    Explained,
}

/// As [`load`], and judges the design: the warnings contain the lints of [`topology`], and the
/// report comes along.
///
/// # Errors
/// As [`load`].
pub fn check(
    path_label: &str,
    text: &str,
    overrides: &[Override],
) -> Result<(LoadedLab, topology::Report), Diagnostics> {
    read(path_label, text, overrides, Zones::Required, |built, isolated, sink| built.examine(isolated, sink))
}

fn read<T>(
    path_label: &str,
    text: &str,
    overrides: &[Override],
    zones: Zones,
    examine: impl FnOnce(&build::Built<'_>, &[usize], &mut Sink) -> T,
) -> Result<(LoadedLab, T), Diagnostics> {
    let mut sink = Sink::default();
    let sets = overrides::read(overrides, &mut sink);
    let document = Document::read(text, sets, &mut sink);
    let arguments = overrides.iter().map(Override::argument).collect();
    let sources = Sources::new(path_label, text, arguments);
    // After a syntax error the rest of the file is missing, which would cause false errors about
    // missing nodes.
    let built = (!sink.has_syntax_errors()).then(|| build::build(&document, path_label, &mut sink));
    if let Some(Some(mut built)) = built {
        let unzoned = match zones {
            Zones::Required => Severity::Error,
            Zones::Explained => Severity::Warning,
        };
        built.validate(unzoned, &mut sink);
        if !sink.has_errors() {
            let isolated = built.advise(&mut sink);
            let examined = examine(&built, &isolated, &mut sink);
            let loaded = LoadedLab {
                lab: built.lab,
                text: text.to_owned(),
                warnings: sink.finish(Severity::Warning, &sources).into_list(),
                isolated,
                export_names: built.export_names,
            };
            return Ok((loaded, examined));
        }
    }
    Err(sink.finish(Severity::Error, &sources))
}

/// Reads a time with its unit, such as `500ms`, in the format of lab files but without quotes.
///
/// # Errors
/// One sentence with the error and the correct format.
pub fn parse_time(text: &str) -> Result<Picos, String> {
    units::parse(text, &units::TIME).map(Picos).map_err(|bad| bad.typed())
}

/// Reads a number of bytes with its unit, such as `4GiB`, in the format of lab files but without
/// quotes.
///
/// # Errors
/// One sentence with the error and the correct format.
pub fn parse_size(text: &str) -> Result<u64, String> {
    units::parse(text, &units::SIZE).map_err(|bad| bad.typed())
}

/// Reads the file of zone edits `text` and applies the edits to the zone database of a lab, in one
/// uncommitted transaction. `path_label` is the name of the file in diagnostics.
///
/// # Errors
/// All errors of the file, all rejected edits, and all reasons for which a commit would fail,
/// sorted by location.
pub fn edit_zones(path_label: &str, text: &str, lab: &Lab) -> Result<Transaction, Diagnostics> {
    edits(path_label, text, lab).map(|edited| edited.transaction)
}

/// Reads a file of zone edits with the names of a lab. Returns the edits in order, if all of them
/// can be applied to the lab's zone database.
///
/// # Errors
/// As [`edit_zones`].
pub fn zone_edits(path_label: &str, text: &str, lab: &Lab) -> Result<Vec<ZoneEdit>, Diagnostics> {
    edits(path_label, text, lab).map(|edited| edited.edits)
}

fn edits(path_label: &str, text: &str, lab: &Lab) -> Result<build::Edited, Diagnostics> {
    let mut sink = Sink::default();
    let edited = build::edit_zones(text, lab, &mut sink);
    match sink.has_errors() {
        false => Ok(edited),
        true => Err(sink.finish(Severity::Error, &Sources::new(path_label, text, Vec::new()))),
    }
}

/// Returns the codes of all errors and warnings, sorted.
pub fn codes() -> Vec<&'static str> {
    let mut codes = vec![
        build::AMBIGUOUS_PORT,
        build::BAD_ADDRESS,
        build::BAD_DISK,
        build::BAD_TRACE,
        build::BAD_ISCSI_NAME,
        build::UNKNOWN_POOL,
        build::NOT_FOR_VOLUMES,
        build::POOL_FULL,
        build::UNKNOWN_VOLUME,
        build::UNKNOWN_BACK_END,
        build::HOST_ELSEWHERE,
        build::BAD_FC_ID,
        build::BAD_EDIT,
        build::BAD_LUN,
        build::BAD_MEMBER,
        build::BAD_PERIOD,
        build::BAD_PORT,
        build::BAD_PORT_NAMES,
        build::BAD_ZONE,
        build::CONFLICT,
        build::NAME_TAKEN,
        build::NO_FREE_PORT,
        build::RANGE_MISMATCH,
        build::UNKNOWN_CONFIG,
        build::UNKNOWN_LINK,
        build::UNKNOWN_NODE,
        build::UNKNOWN_PORTAL,
        build::UNKNOWN_ZONE,
        build::ZONE_LIMIT,
        check::MISSING_KEY,
        check::UNKNOWN_KEY,
        document::BAD_NAME,
        document::DEFINED_TWICE,
        document::UNKNOWN_SECTION,
        overrides::BAD_SET,
        pattern::BAD_RANGE,
        pattern::TOO_MANY,
        syntax::SYNTAX,
        syntax::TOO_LONG,
        units::MISSING_UNIT,
        units::NOT_A_NUMBER,
        units::OUT_OF_RANGE,
        units::WRONG_UNIT,
        value::BAD_WWN,
        value::UNKNOWN_PRESET,
        value::UNKNOWN_WORD,
        value::WRONG_TYPE,
    ];
    codes.extend(topology::CODES);
    codes.extend(ProblemKind::ALL.iter().map(|kind| kind.name()));
    codes.sort_unstable();
    codes
}
