//! A number of a paper held against ours.

use crate::report::format;
use crate::report::html::{Cell, Table};
use crate::report::terminal::grid::{Column, Grid, wrap};
use serde::Serialize;
use std::fmt::Write as _;

/// One number; an element of the JSON list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// Short fixed name.
    pub id: String,
    /// What the number is.
    pub what: String,
    /// What the paper says.
    pub paper: f64,
    /// What we measured; absent: it did not happen.
    pub ours: Option<f64>,
    /// Unit of both.
    pub unit: &'static str,
    /// How far `ours` may be from `paper`, as a share of it; absent: the number is not judged, and `note` says why.
    pub tolerance: Option<f64>,
    /// Whether `ours` is within the tolerance; absent: the number is not judged.
    pub ok: Option<bool>,
    /// What a reader should know about it.
    pub note: String,
}

impl Verdict {
    /// Holds `ours` against `paper`.
    pub fn new(id: &str, what: &str, paper: f64, ours: Option<f64>, unit: &'static str) -> Verdict {
        Verdict {
            id: id.to_owned(),
            what: what.to_owned(),
            paper,
            ours,
            unit,
            tolerance: None,
            ok: None,
            note: String::new(),
        }
    }

    /// With a tolerance, as a share.
    pub fn within(mut self, tolerance: f64) -> Verdict {
        self.tolerance = Some(tolerance);
        self.ok = Some(self.ours.is_some_and(|ours| (ours - self.paper).abs() <= tolerance * self.paper));
        self
    }

    /// With a note.
    pub fn note(mut self, note: impl Into<String>) -> Verdict {
        self.note = note.into();
        self
    }

    /// Ours by the paper's.
    pub fn ratio(&self) -> Option<f64> {
        self.ours.map(|ours| ours / self.paper)
    }

    fn word(&self) -> &'static str {
        match self.ok {
            None => "open",
            Some(true) => "ok",
            Some(false) => "MISS",
        }
    }

    /// Whether it is judged and misses.
    pub fn missed(&self) -> bool {
        self.ok == Some(false)
    }

    fn cells(&self) -> [String; 5] {
        let percent = |tolerance: f64| format!("± {}", format::percent(tolerance));
        [
            format::plain(self.paper),
            self.ours.map_or("–".into(), |ours| format!("{ours:.1}")),
            self.ratio().map_or("–".into(), |ratio| format!("{ratio:.3}")),
            self.tolerance.map_or(String::new(), percent),
            self.word().to_owned(),
        ]
    }
}

/// The numbers as a table for a terminal, their notes below it.
pub fn table(verdicts: &[Verdict], width: usize) -> String {
    let mut grid = Grid::new(vec![
        Column::left("Number"),
        Column::right("Paper"),
        Column::right("Ours"),
        Column::left("Unit"),
        Column::right("Ratio"),
        Column::right("Tolerance"),
        Column::left("Verdict"),
        Column::left("Note"),
    ]);
    let mut notes: Vec<&str> = Vec::new();
    for verdict in verdicts {
        let note = match notes.iter().position(|note| *note == verdict.note) {
            _ if verdict.note.is_empty() => String::new(),
            Some(at) => format!("[{}]", at + 1),
            None => {
                notes.push(&verdict.note);
                format!("[{}]", notes.len())
            }
        };
        let [paper, ours, ratio, tolerance, word] = verdict.cells();
        grid.row(vec![verdict.what.clone(), paper, ours, verdict.unit.to_owned(), ratio, tolerance, word, note]);
    }
    let mut out = grid.render(width);
    for (number, note) in (1..).zip(notes) {
        let _ = write!(out, "\n{}", wrap(&format!("[{number}] {note}"), width, 4));
    }
    out
}

/// The numbers as a table of a page.
pub fn html_table(id: &'static str, verdicts: &[Verdict]) -> String {
    let mut table = Table::new(id)
        .text("Number")
        .number("Paper")
        .number("Ours")
        .text("Unit")
        .number("Ratio")
        .number("Tolerance")
        .text("Verdict")
        .text("Note");
    for verdict in verdicts {
        let [paper, ours, ratio, tolerance, word] = verdict.cells();
        let class = match word.as_str() {
            "MISS" => "bad",
            "ok" => "good",
            _ => "",
        };
        table.row(vec![
            Cell::text(&verdict.what),
            Cell::number(verdict.paper, paper),
            Cell::number(verdict.ours.unwrap_or(0.0), ours),
            Cell::text(verdict.unit),
            Cell::number(verdict.ratio().unwrap_or(0.0), ratio),
            Cell::number(verdict.tolerance.unwrap_or(0.0), tolerance),
            Cell::text(&word).class(class),
            Cell::text(&verdict.note),
        ]);
    }
    table.html()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_at_the_edge_of_its_tolerance_is_ok_and_beyond_is_not() {
        let verdict = |ours| Verdict::new("x", "x", 80.0, Some(ours), "MB/s").within(0.05);
        for (ours, ok) in [(84.0, true), (76.0, true), (84.1, false), (75.9, false)] {
            assert_eq!(verdict(ours).ok, Some(ok), "{ours}");
        }
    }

    #[test]
    fn a_number_that_is_missing_is_no_success() {
        assert!(Verdict::new("x", "x", 80.0, None, "MB/s").within(0.05).missed());
    }

    #[test]
    fn a_number_without_a_tolerance_is_neither_right_nor_wrong() {
        for ours in [None, Some(80.0), Some(1.0)] {
            let verdict = Verdict::new("x", "x", 80.0, ours, "MB/s");
            assert_eq!((verdict.ok, verdict.missed(), verdict.word()), (None, false, "open"));
        }
    }
}
