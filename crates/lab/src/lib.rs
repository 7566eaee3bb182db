//! The lab file: text with places to checked values, and every diagnostic.
//!
//! A lab file is TOML. [`load`] reads it in two steps. First every key and value is checked against one table of
//! definitions, and keeps its place in the text. Then names are resolved into the values of [`sanloom_core::config`],
//! and the core says what is wrong with the whole. All mistakes are reported at once, each with line, column, caret,
//! reason and remedy. This crate does no I/O.

mod build;
mod check;
mod diagnostic;
mod document;
mod element;
mod forms;
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

pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use overrides::Override;
pub use reference::reference;
pub use suggest::closest;

use diagnostic::{Sink, Sources};
use document::Document;
use sanloom_core::config::{Lab, Picos, ProblemKind};
use sanloom_core::zoning::{Transaction, ZoneEdit};

/// A lab file that was read without mistakes.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadedLab {
    /// What it means.
    pub lab: Lab,
    /// The text as it was given.
    pub text: String,
    /// What is allowed but probably not meant, sorted by place.
    pub warnings: Vec<Diagnostic>,
    /// The links that the warnings say their switches will isolate, by their indices.
    pub isolated: Vec<usize>,
}

/// Reads the lab file `text`. `path_label` is what diagnostics call it, and the lab's name if it has none.
///
/// # Errors
/// Every mistake of the file and of the overrides, sorted by place.
pub fn load(path_label: &str, text: &str, overrides: &[Override]) -> Result<LoadedLab, Diagnostics> {
    let mut sink = Sink::default();
    let sets = overrides::read(overrides, &mut sink);
    let document = Document::read(text, sets, &mut sink);
    let arguments = overrides.iter().map(Override::argument).collect();
    let sources = Sources::new(path_label, text, arguments);
    // Half a file would give mistakes that are none, such as missing nodes.
    let built = (!sink.has_syntax_errors()).then(|| build::build(&document, path_label, &mut sink));
    if let Some(Some(built)) = built {
        built.validate(&mut sink);
        if !sink.has_errors() {
            let isolated = built.advise(&mut sink);
            return Ok(LoadedLab {
                lab: built.lab,
                text: text.to_owned(),
                warnings: sink.finish(Severity::Warning, &sources).into_list(),
                isolated,
            });
        }
    }
    Err(sink.finish(Severity::Error, &sources))
}

/// Reads a time with its unit, such as `500ms`, as lab files write it but for the quotes.
///
/// # Errors
/// What is wrong with it and how to write it, in one sentence.
pub fn parse_time(text: &str) -> Result<Picos, String> {
    units::parse(text, &units::TIME).map(Picos).map_err(|bad| bad.typed())
}

/// Reads a number of bytes with its unit, such as `4GiB`, as lab files write it but for the quotes.
///
/// # Errors
/// What is wrong with it and how to write it, in one sentence.
pub fn parse_size(text: &str) -> Result<u64, String> {
    units::parse(text, &units::SIZE).map_err(|bad| bad.typed())
}

/// Reads the file of zone edits `text` and does the edits on the zone database of a lab, in one transaction that has not
/// been committed. `path_label` is what diagnostics call the file.
///
/// # Errors
/// Every mistake of the file, every edit that is refused, and everything that a commit would refuse, sorted by place.
pub fn edit_zones(path_label: &str, text: &str, lab: &Lab) -> Result<Transaction, Diagnostics> {
    edits(path_label, text, lab).map(|edited| edited.transaction)
}

/// The edits of a file of zone edits, in order, read with the names of a lab, that may be done on its zone database.
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

/// The fixed names of all sorts of mistakes and warnings, sorted.
pub fn codes() -> Vec<&'static str> {
    let mut codes = vec![
        build::AMBIGUOUS_PORT,
        build::BAD_ADDRESS,
        build::BAD_ISCSI_NAME,
        build::UNKNOWN_POOL,
        build::NOT_FOR_VOLUMES,
        build::HOST_ELSEWHERE,
        build::BAD_FC_ID,
        build::BAD_EDIT,
        build::BAD_LUN,
        build::BAD_MEMBER,
        build::BAD_PERIOD,
        build::BAD_PORT,
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
    codes.extend(ProblemKind::ALL.iter().map(|kind| kind.name()));
    codes.sort_unstable();
    codes
}
