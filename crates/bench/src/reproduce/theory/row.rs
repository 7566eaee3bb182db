//! A number of the theory beside ours: [`Row`], its tolerance, and the verdict.

use super::super::verdict::Kind;
use sanloom_api::words::plural;
use sanloom_console::exit::Failure;
use sanloom_console::report::html::{Cell, Table};
use sanloom_console::report::terminal::grid::{Column, Grid, wrap};
use serde::Serialize;
use std::fmt::Write as _;

/// Verdict on a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// The number, or its whole confidence interval, is within the tolerance.
    Ok,
    /// The number, or its whole confidence interval, is outside of the tolerance.
    Missed,
    /// The confidence interval reaches over an end of the tolerance: the sample is too small.
    Undecided,
}

/// One number; an element of the JSON list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Part of the report.
    pub section: &'static str,
    /// Short fixed name.
    pub id: String,
    /// Description of the quantity.
    pub quantity: String,
    /// Origin of our number.
    pub kind: Kind,
    /// Value of the formula.
    pub theory: f64,
    /// Our value; absent if the event did not happen.
    pub ours: Option<f64>,
    /// Half of the width of the 95 % confidence interval of `ours`; absent for exact numbers.
    pub half_width: Option<f64>,
    /// `ours` - `theory`.
    pub difference: Option<f64>,
    /// Largest accepted deviation of `ours` from `theory`.
    pub tolerance: f64,
    /// Unit of all five.
    pub unit: &'static str,
    /// Verdict.
    pub verdict: Ruling,
    /// Formula and its source.
    pub source: &'static str,
    /// Reason for the size of the tolerance.
    pub tolerance_reason: &'static str,
}

/// The formula of a row, its source, and the reason for the tolerance.
#[derive(Clone, Copy, Debug)]
pub struct Basis {
    pub section: &'static str,
    pub source: &'static str,
    pub tolerance_reason: &'static str,
}

impl Basis {
    /// Returns a prediction whose tolerance is absolute.
    pub fn row(
        &self,
        id: impl Into<String>,
        quantity: impl Into<String>,
        unit: &'static str,
        theory: f64,
        ours: Option<f64>,
        tolerance: f64,
    ) -> Row {
        let mut row = Row {
            section: self.section,
            id: id.into(),
            quantity: quantity.into(),
            kind: Kind::Prediction,
            theory,
            ours,
            half_width: None,
            difference: ours.map(|ours| ours - theory),
            tolerance,
            unit,
            verdict: Ruling::Ok,
            source: self.source,
            tolerance_reason: self.tolerance_reason,
        };
        row.rule();
        row
    }
}

impl Row {
    /// Marks the number as an input: the model is given it.
    pub fn input(mut self) -> Row {
        self.kind = Kind::Input;
        self
    }

    /// Makes `ours` the centre of a 95 % confidence interval.
    pub fn interval(mut self, half_width: f64) -> Row {
        self.half_width = Some(half_width);
        self.rule();
        self
    }

    fn rule(&mut self) {
        let half_width = self.half_width.unwrap_or(0.0);
        self.verdict = match self.difference.map(f64::abs) {
            Some(off) if off + half_width <= self.tolerance => Ruling::Ok,
            Some(off) if off - half_width <= self.tolerance => Ruling::Undecided,
            _ => Ruling::Missed,
        };
    }

    fn cells(&self) -> [String; 6] {
        let ours = match (self.ours, self.half_width) {
            (None, _) => "–".to_owned(),
            (Some(ours), None) => number(ours),
            (Some(ours), Some(half_width)) => format!("{} ± {}", number(ours), number(half_width)),
        };
        [
            number(self.theory),
            ours,
            self.difference.map_or("–".to_owned(), number),
            if self.tolerance == 0.0 { "exact".to_owned() } else { format!("± {}", number(self.tolerance)) },
            self.kind.word().to_owned(),
            self.verdict.word().to_owned(),
        ]
    }

    fn note(&self) -> String {
        format!("{}. Tolerance: {}.", self.source, self.tolerance_reason)
    }
}

impl Ruling {
    fn word(self) -> &'static str {
        match self {
            Ruling::Ok => "ok",
            Ruling::Missed => "MISSED",
            Ruling::Undecided => "undecided",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Ruling::Ok => "good",
            Ruling::Undecided => "",
            Ruling::Missed => "bad",
        }
    }
}

/// Formats a number with about five significant digits.
fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 || size >= 10_000.0 => 0,
        _ => (4 - size.log10().floor() as i32).clamp(0, 9) as usize,
    };
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the summary line.
pub fn summary(rows: &[Row]) -> String {
    let count = |ruling| rows.iter().filter(|row| row.verdict == ruling).count();
    format!(
        "{}: {} within tolerance, {} missed, {} undecided because the sample is too small",
        plural(rows.len(), "number"),
        count(Ruling::Ok),
        count(Ruling::Missed),
        count(Ruling::Undecided),
    )
}

/// Decides about the exit code.
///
/// # Errors
/// If a number misses.
pub fn outcome(rows: &[Row]) -> Result<(), Failure> {
    let missed = rows.iter().any(|row| row.verdict == Ruling::Missed);
    if missed { Err(Failure::expectation()) } else { Ok(()) }
}

/// Returns the sections in their order, each with its rows.
fn sections(rows: &[Row]) -> Vec<(&'static str, Vec<&Row>)> {
    let mut sections: Vec<(&'static str, Vec<&Row>)> = Vec::new();
    for row in rows {
        match sections.iter_mut().find(|(name, _)| *name == row.section) {
            Some((_, members)) => members.push(row),
            None => sections.push((row.section, vec![row])),
        }
    }
    sections
}

/// Returns the rows as one table for each section, with their sources below it.
pub fn table(rows: &[Row], width: usize) -> String {
    let mut out = String::new();
    for (name, members) in sections(rows) {
        let mut grid = Grid::new(vec![
            Column::left("Quantity"),
            Column::right("Theory"),
            Column::right("Ours"),
            Column::right("Difference"),
            Column::right("Tolerance"),
            Column::left("Unit"),
            Column::left("Kind"),
            Column::left("Verdict"),
            Column::left("Note"),
        ]);
        let mut notes: Vec<String> = Vec::new();
        for row in members {
            let text = row.note();
            let at = notes.iter().position(|note| *note == text).unwrap_or_else(|| {
                notes.push(text);
                notes.len() - 1
            });
            let [theory, ours, difference, tolerance, kind, verdict] = row.cells();
            let unit = row.unit.to_owned();
            let note = format!("[{}]", at + 1);
            grid.row(vec![row.quantity.clone(), theory, ours, difference, tolerance, unit, kind, verdict, note]);
        }
        let _ = write!(out, "{name}\n\n{}", grid.render(width));
        for (number, note) in (1..).zip(notes) {
            let _ = write!(out, "\n{}", wrap(&format!("[{number}] {note}"), width, 4));
        }
        out.push_str("\n\n");
    }
    out
}

/// Returns the rows as a table of a page.
pub fn html_table(rows: &[Row]) -> String {
    let mut table = Table::new("numbers")
        .text("Section")
        .text("Quantity")
        .number("Theory")
        .number("Ours")
        .number("Difference")
        .number("Tolerance")
        .text("Unit")
        .text("Kind")
        .text("Verdict")
        .text("Note");
    for row in rows {
        let [theory, ours, difference, tolerance, kind, verdict] = row.cells();
        table.row(vec![
            Cell::text(row.section),
            Cell::text(&row.quantity),
            Cell::number(row.theory, theory),
            Cell::number(row.ours.unwrap_or(0.0), ours),
            Cell::number(row.difference.unwrap_or(0.0), difference),
            Cell::number(row.tolerance, tolerance),
            Cell::text(row.unit),
            Cell::text(&kind),
            Cell::text(&verdict).class(row.verdict.class()),
            Cell::text(&row.note()),
        ]);
    }
    table.html()
}
