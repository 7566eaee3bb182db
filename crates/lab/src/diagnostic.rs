//! Diagnostics with their locations: [`Diagnostic`], [`Diagnostics`], and their collection and
//! rendering.

use annotate_snippets::{AnnotationKind, Level, Origin as Location, Renderer, Snippet};
use sanloom_fc::san::ProblemKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

/// Severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The lab cannot be used.
    Error,
    /// The lab can be used, but probably does not do what was intended.
    Warning,
}

/// One error or warning: location, reason and remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Short fixed name of the kind of error, such as `unknown-key`; [`crate::codes`] lists all
    /// codes.
    pub code: &'static str,
    /// Label of the file, or `--set` followed by the argument.
    pub source: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Location in bytes from the beginning of the file, or of the argument of `--set`.
    pub span: Range<usize>,
    /// Description of the error, without a full stop.
    pub reason: String,
    /// Advice on how to correct the error.
    pub remedy: String,
    excerpt: Excerpt,
}

/// Diagnostics sorted by location.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

/// The source line of a diagnostic, shortened if it is very long.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Excerpt {
    text: String,
    caret: Range<usize>,
    is_cut: bool,
}

impl Diagnostic {
    /// Returns the diagnostic as several lines of text that end with a newline: source line with a
    /// caret, reason and remedy. `color` adds ANSI colours for a terminal.
    pub fn render(&self, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let snippet = Snippet::source(&self.excerpt.text)
            .line_start(self.line)
            .annotation(AnnotationKind::Primary.span(self.excerpt.caret.clone()));
        let title = level.primary_title(&self.reason).id(self.code);
        // The column in a shortened line differs from that in the file, so the true column is
        // printed beside the snippet.
        let group = if self.excerpt.is_cut {
            let place = Location::path(&self.source).line(self.line).char_column(self.column);
            title.element(place).element(snippet)
        } else {
            title.element(snippet.path(&self.source))
        };
        let group = group.element(Level::HELP.message(&self.remedy));
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut text = renderer.term_width(140).render(&[group]);
        text.push('\n');
        text
    }
}

impl Diagnostics {
    /// Iterates over the diagnostics in the order of their locations.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }
    pub(crate) fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }
    /// Returns the number of diagnostics.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Returns whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Returns all diagnostics as text, each with source line, caret, reason and remedy. The last
    /// line has their number. `color` adds ANSI colours for a terminal.
    pub fn render(&self, color: bool) -> String {
        let mut text = String::new();
        for diagnostic in &self.list {
            text.push_str(&diagnostic.render(color));
            text.push('\n');
        }
        let plural = if self.list.len() == 1 { "" } else { "s" };
        text.push_str(&format!("{} mistake{plural}\n", self.list.len()));
        text
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// Source of a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Origin {
    /// Byte range in the file.
    File(usize, usize),
    /// Number of the `--set` argument, and byte range in it.
    Set(u32, usize, usize),
    /// A preset or a default, which has no location in the user's input.
    BuiltIn,
}

/// A diagnostic before its line and column are computed.
#[derive(Clone)]
pub(crate) struct Finding {
    pub severity: Severity,
    pub code: &'static str,
    pub origin: Origin,
    pub reason: String,
    pub remedy: String,
}

/// Collects diagnostics. Repetitions at the same location, for example from a range of a thousand
/// names, are stored once and counted.
#[derive(Default)]
pub(crate) struct Sink {
    findings: Vec<Finding>,
    /// Number of occurrences by location, code and, for the codes that [`key`] distinguishes by
    /// reason, the reason.
    seen: BTreeMap<(Origin, &'static str, String), usize>,
    is_without_section: bool,
}

/// Limit on displayed diagnostics; the rest is only counted. A hostile file could cause millions.
const MAX_SHOWN: usize = 1_000;

impl Sink {
    pub fn error(&mut self, code: &'static str, origin: &Origin, reason: impl Into<String>, remedy: impl Into<String>) {
        self.add(Finding {
            severity: Severity::Error,
            code,
            origin: origin.clone(),
            reason: reason.into(),
            remedy: remedy.into(),
        });
    }

    pub fn add(&mut self, mut finding: Finding) {
        if finding.origin == Origin::BuiltIn {
            // Without a location in the user's input, the diagnostic refers to the lab as a whole.
            finding.origin = Origin::File(0, 0);
        }
        let count = self.seen.entry(key(&finding)).or_insert(0);
        *count += 1;
        if *count == 1 {
            self.findings.push(finding);
        }
    }

    /// Counts a repetition and returns true if this code is already reported at this location.
    /// Callers can then skip the search for a suggestion.
    pub fn repeats(&mut self, code: &'static str, origin: &Origin) -> bool {
        match self.seen.get_mut(&(origin.clone(), code, String::new())) {
            Some(count) => {
                *count += 1;
                true
            }
            None => false,
        }
    }

    /// Returns whether anything is reported at this location.
    pub fn has_at(&self, origin: &Origin) -> bool {
        let first = (origin.clone(), "", String::new());
        self.seen.range(first..).next().is_some_and(|((at, ..), _)| at == origin)
    }

    /// Returns whether anything is reported at this location or inside it.
    pub fn has_within(&self, origin: &Origin) -> bool {
        let (first, end) = match *origin {
            Origin::File(start, end) => (Origin::File(start, 0), end),
            Origin::Set(number, start, end) => (Origin::Set(number, start, 0), end),
            Origin::BuiltIn => return false,
        };
        let inside = |other: &Origin| match (origin, other) {
            (Origin::File(..), Origin::File(_, last)) => *last <= end,
            (Origin::Set(number, ..), Origin::Set(other, _, last)) => number == other && *last <= end,
            _ => false,
        };
        let from = (first, "", String::new());
        self.seen.range(from..).map(|((at, ..), _)| at).take_while(|at| at.start() <= end).any(inside)
    }

    /// Records that a section of nodes, links or zones could not be read.
    pub fn miss_section(&mut self) {
        self.is_without_section = true;
    }

    pub fn is_without_section(&self) -> bool {
        self.is_without_section
    }

    /// Returns whether an error with one of these codes is reported.
    pub fn has_any(&self, codes: &[&str]) -> bool {
        self.findings.iter().any(|f| codes.contains(&f.code))
    }

    pub fn has_syntax_errors(&self) -> bool {
        self.has_any(&[crate::syntax::SYNTAX, crate::syntax::TOO_LONG])
    }

    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Error)
    }

    /// Moves all findings to another sink, with edited remedies.
    pub fn pour_into(self, other: &mut Sink, remedy: impl Fn(&str) -> String) {
        for finding in self.findings {
            other.add(Finding { remedy: remedy(&finding.remedy), ..finding });
        }
    }

    /// Returns all diagnostics of one severity, sorted by location.
    pub fn finish(&self, severity: Severity, sources: &Sources<'_>) -> Diagnostics {
        let broken: BTreeSet<usize> = (self.findings.iter())
            .filter(|f| f.code == crate::syntax::SYNTAX)
            .map(|f| sources.line_of(f.origin.start()).0)
            .collect();
        // On a line with a syntax error, other findings are unreliable and are dropped.
        let is_guess = |f: &Finding| {
            f.code != crate::syntax::SYNTAX
                && matches!(f.origin, Origin::File(start, _) if broken.contains(&sources.line_of(start).0))
        };
        let mut chosen: Vec<&Finding> =
            (self.findings.iter()).filter(|f| f.severity == severity && !is_guess(f)).collect();
        chosen.sort_by(|a, b| (&a.origin, a.code, &a.reason).cmp(&(&b.origin, b.code, &b.reason)));
        let left_out = chosen.len().saturating_sub(MAX_SHOWN);
        chosen.truncate(MAX_SHOWN);
        let mut list: Vec<Diagnostic> =
            chosen.iter().map(|f| sources.place(f, self.seen.get(&key(f)).copied().unwrap_or(1))).collect();
        if left_out > 0
            && let Some(last) = list.last_mut()
        {
            last.reason.push_str(&format!(" ({left_out} more mistakes follow)"));
        }
        Diagnostics { list }
    }
}

/// Returns the key under which equal findings are merged. Several keys may be missing at one
/// location, and several workloads of one range may be cut off, so these findings are distinguished
/// by reason. For other codes, one finding per location is enough, for example for a range of a
/// thousand unknown names.
fn key(finding: &Finding) -> (Origin, &'static str, String) {
    let of_workloads = [ProblemKind::Unreachable, ProblemKind::NotZoned, ProblemKind::Masked].map(ProblemKind::name);
    let several = finding.code == crate::check::MISSING_KEY
        || finding.code == crate::build::BAD_DISK
        || of_workloads.contains(&finding.code)
        || crate::topology::CODES.contains(&finding.code);
    let reason = if several { finding.reason.clone() } else { String::new() };
    (finding.origin.clone(), finding.code, reason)
}

impl Origin {
    fn start(&self) -> usize {
        match *self {
            Origin::File(start, _) | Origin::Set(_, start, _) => start,
            Origin::BuiltIn => 0,
        }
    }
}

/// The texts to which origins refer.
pub(crate) struct Sources<'a> {
    label: &'a str,
    text: &'a str,
    line_starts: Vec<usize>,
    sets: Vec<String>,
}

impl<'a> Sources<'a> {
    pub fn new(label: &'a str, text: &'a str, sets: Vec<String>) -> Sources<'a> {
        let line_starts = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i + 1))
            .collect();
        Sources { label, text, line_starts, sets }
    }

    /// Returns the line of a byte offset, counted from 0, and the offset of the line's beginning.
    pub fn line_of(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|&start| start <= offset).max(1) - 1;
        (line, self.line_starts[line])
    }

    fn place(&self, finding: &Finding, count: usize) -> Diagnostic {
        let (source, text, span) = match finding.origin {
            Origin::File(start, end) => (self.label.to_owned(), self.text, start..end),
            Origin::Set(number, start, end) => {
                let text = self.sets.get(number as usize).map_or("", String::as_str);
                ("--set".to_owned(), text, start..end)
            }
            Origin::BuiltIn => (self.label.to_owned(), self.text, 0..0),
        };
        let start = floor_char_boundary(text, span.start);
        let end = floor_char_boundary(text, span.end.max(start));
        let (line, line_start) = match finding.origin {
            Origin::Set(..) => (0, 0),
            _ => self.line_of(start),
        };
        let line_text = text[line_start..].split('\n').next().unwrap_or("");
        let line_text = line_text.strip_suffix('\r').unwrap_or(line_text);
        let column = line_text.get(..start - line_start).map_or(0, |before| before.chars().count());
        let mut reason = clean(&finding.reason);
        if count > 1 {
            reason.push_str(&format!(" (and {} more like it)", count - 1));
        }
        Diagnostic {
            severity: finding.severity,
            code: finding.code,
            source,
            line: line + 1,
            column: column + 1,
            span: start..end,
            reason,
            remedy: clean(&finding.remedy),
            excerpt: Excerpt::cut(line_text, start - line_start, end - line_start),
        }
    }
}

impl Excerpt {
    /// Returns the part of `line` around `start..end`. The caret may stand at the end of the line.
    fn cut(line: &str, start: usize, end: usize) -> Excerpt {
        const SIDE: usize = 160;
        let start = floor_char_boundary(line, start);
        let end = floor_char_boundary(line, end).max(start).min(start + SIDE);
        let end = floor_char_boundary(line, end);
        let from = if line.len() <= 2 * SIDE { 0 } else { floor_char_boundary(line, start.saturating_sub(SIDE)) };
        let to = if line.len() <= 2 * SIDE { line.len() } else { floor_char_boundary(line, end + SIDE) };
        let (before, marked, after) = (clean(&line[from..start]), clean(&line[start..end]), clean(&line[end..to]));
        let caret = before.len()..before.len() + marked.len();
        Excerpt { text: format!("{before}{marked}{after}"), caret, is_cut: from > 0 }
    }
}

/// Replaces control characters, which could move the caret or manipulate the terminal.
fn clean(part: &str) -> String {
    part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}
