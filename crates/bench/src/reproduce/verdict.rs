//! A number of a paper beside ours: its kind, its tolerance, and the verdict.
//!
//! Only predictions are judged. A miss that is known and explained is listed in the source of its
//! row, with the reason ([`Verdict::known_miss`]). The row stays a miss, but only a miss without
//! such an entry, or a hit with one, makes the command fail.

use sanloom_api::words::plural;
use sanloom_console::exit::Failure;
use sanloom_console::report::format;
use sanloom_console::report::html::{Cell, Table};
use sanloom_console::report::terminal::grid::{Column, Grid, wrap};
use serde::Serialize;
use std::fmt::Write as _;

/// Origin of our number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The paper states the number, and the model is given it.
    Input,
    /// A free parameter of the model was chosen so that the number comes out.
    Fit,
    /// The number follows from the model.
    Prediction,
    /// The number follows from another number of the paper; it is not judged a second time.
    Derived,
    /// The number of another model, shown for comparison.
    Comparison,
}

/// Side of a bound on which our number has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// At or above the number of the paper.
    AtLeast,
    /// At or below the number of the paper.
    AtMost,
}

/// Verdict on a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// Within its tolerance or bound.
    Ok,
    /// Outside of its tolerance or bound.
    Missed,
    /// A prediction outside of its tolerance, as its row explains.
    KnownMiss,
    /// A prediction within its tolerance whose row explains why it should miss.
    UnexpectedHit,
    /// Neither a prediction nor a number with a tolerance.
    NotJudged,
}

/// One number; an element of the JSON list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// Short fixed name.
    pub id: String,
    /// Number of the statement in the list of the command; absent if its statements have none.
    pub statement: Option<&'static str>,
    /// Description of the number.
    pub what: String,
    /// Origin of our number.
    pub kind: Kind,
    /// Number of the paper.
    pub paper: f64,
    /// Our number: the mean if there are repetitions; absent if the event did not happen.
    pub ours: Option<f64>,
    /// Standard deviation of the repetitions, if there are some.
    pub deviation: Option<f64>,
    /// Unit of all three.
    pub unit: &'static str,
    /// Largest deviation of `ours` from `paper`, as a share of `paper`; absent if the number is
    /// not held to one.
    pub tolerance: Option<f64>,
    /// Reason for the size of the tolerance.
    pub tolerance_reason: Option<&'static str>,
    /// The paper gives a bound instead of a number.
    pub bound: Option<Bound>,
    /// True if `ours` is within the tolerance or the bound; absent if the number has neither.
    pub ok: Option<bool>,
    /// Reason why the prediction is known to miss.
    pub known_miss: Option<&'static str>,
    /// Verdict.
    pub verdict: Ruling,
    /// Explanation for the reader.
    pub note: String,
}

impl Verdict {
    /// Creates a number that is shown, but not judged.
    pub fn shown(
        kind: Kind,
        id: impl Into<String>,
        what: impl Into<String>,
        paper: f64,
        ours: Option<f64>,
        unit: &'static str,
    ) -> Verdict {
        Verdict {
            id: id.into(),
            statement: None,
            what: what.into(),
            kind,
            paper,
            ours,
            deviation: None,
            unit,
            tolerance: None,
            tolerance_reason: None,
            bound: None,
            ok: None,
            known_miss: None,
            verdict: Ruling::NotJudged,
            note: String::new(),
        }
    }

    /// Adds the number of the statement.
    pub fn of(mut self, statement: &'static str) -> Verdict {
        self.statement = Some(statement);
        self
    }

    /// Makes the number a prediction with this tolerance, a share of the paper's number.
    pub fn predicted(mut self, tolerance: f64) -> Verdict {
        self.kind = Kind::Prediction;
        self.held(tolerance)
    }

    /// Makes the number a prediction with a bound: that of the paper.
    pub fn bounded(mut self, bound: Bound) -> Verdict {
        self.kind = Kind::Prediction;
        self.bound = Some(bound);
        self.ok = Some(self.ours.is_some_and(|ours| match bound {
            Bound::AtLeast => ours >= self.paper,
            Bound::AtMost => ours <= self.paper,
        }));
        self.rule()
    }

    /// Gives the number a tolerance, a share of the paper's number, whatever its kind. An input or
    /// a fit that leaves it says nothing about the paper, but that the model has changed.
    pub fn held(mut self, tolerance: f64) -> Verdict {
        self.tolerance = Some(tolerance);
        self.ok = Some(self.ours.is_some_and(|ours| (ours - self.paper).abs() <= tolerance * self.paper));
        self.rule()
    }

    /// Adds the reason for the size of the tolerance.
    pub fn tolerance_reason(mut self, reason: &'static str) -> Verdict {
        self.tolerance_reason = Some(reason);
        self
    }

    /// Adds the reason why the prediction misses.
    pub fn known_miss(mut self, reason: &'static str) -> Verdict {
        self.known_miss = Some(reason);
        self.rule()
    }

    /// Adds an explanation.
    pub fn note(mut self, note: impl Into<String>) -> Verdict {
        self.note = note.into();
        self
    }

    /// Adds the standard deviation of repetitions.
    pub fn deviation(mut self, deviation: Option<f64>) -> Verdict {
        self.deviation = deviation;
        self
    }

    fn rule(mut self) -> Verdict {
        self.verdict = match (self.ok, self.known_miss) {
            (None, _) => Ruling::NotJudged,
            (Some(true), None) => Ruling::Ok,
            (Some(false), None) => Ruling::Missed,
            (Some(false), Some(_)) => Ruling::KnownMiss,
            (Some(true), Some(_)) => Ruling::UnexpectedHit,
        };
        self
    }

    /// Returns our number divided by the paper's.
    pub fn ratio(&self) -> Option<f64> {
        self.ours.map(|ours| ours / self.paper)
    }

    /// True for a miss without an explanation, and for a hit that should miss.
    pub fn is_unexpected(&self) -> bool {
        matches!(self.verdict, Ruling::Missed | Ruling::UnexpectedHit)
    }

    fn text(&self) -> String {
        let tolerance = self.tolerance.zip(self.tolerance_reason).map(|(tolerance, reason)| {
            let percent = format::percent(tolerance);
            format!("Tolerance ± {percent}, because {reason}.")
        });
        let miss = self.known_miss.map(|reason| format!("Known miss: {reason}"));
        let note = (!self.note.is_empty()).then(|| self.note.clone());
        [note, tolerance, miss].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns one of our numbers with about as many digits as the paper gives; counts have none
    /// after the point.
    fn digits(&self, value: f64) -> String {
        let digits = match self.paper.abs() {
            paper if paper < 1.0 => 3,
            paper if paper.fract() == 0.0 && value.fract() == 0.0 => 0,
            paper if paper < 10.0 => 2,
            _ => 1,
        };
        format!("{value:.digits$}")
    }

    fn cells(&self) -> [String; 6] {
        let percent = |tolerance: f64| format!("± {}", format::percent(tolerance));
        let ours = match (self.ours, self.deviation) {
            (None, _) => "–".to_owned(),
            (Some(ours), None) => self.digits(ours),
            (Some(ours), Some(deviation)) => format!("{} ± {}", self.digits(ours), self.digits(deviation)),
        };
        [
            format::plain(self.paper),
            ours,
            self.ratio().map_or("–".into(), |ratio| format!("{ratio:.3}")),
            self.kind.word().to_owned(),
            match self.bound {
                Some(Bound::AtLeast) => "at least".to_owned(),
                Some(Bound::AtMost) => "at most".to_owned(),
                None => self.tolerance.map_or(String::new(), percent),
            },
            self.verdict.word().to_owned(),
        ]
    }
}

impl Kind {
    /// Word of the tables.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Input => "input",
            Kind::Fit => "fit",
            Kind::Prediction => "prediction",
            Kind::Derived => "derived",
            Kind::Comparison => "comparison",
        }
    }
}

impl Ruling {
    /// Word of the tables; empty for numbers that are not judged.
    pub fn word(self) -> &'static str {
        match self {
            Ruling::Ok => "ok",
            Ruling::Missed => "MISSED",
            Ruling::KnownMiss => "missed, known",
            Ruling::UnexpectedHit => "HIT, should miss",
            Ruling::NotJudged => "",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Ruling::Ok => "good",
            Ruling::NotJudged => "",
            Ruling::Missed | Ruling::KnownMiss | Ruling::UnexpectedHit => "bad",
        }
    }
}

/// Returns the summary line. It counts predictions; of the other kinds, those that are given to the
/// model and have a tolerance, and the rest.
pub fn summary(verdicts: &[Verdict]) -> String {
    let count = |is: &dyn Fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count();
    let ruled = |ruling| count(&|verdict: &Verdict| verdict.verdict == ruling && verdict.kind == Kind::Prediction);
    let (known, missed, hit) = (ruled(Ruling::KnownMiss), ruled(Ruling::Missed), ruled(Ruling::UnexpectedHit));
    let predictions = count(&|verdict| verdict.kind == Kind::Prediction);
    let mut text = format!(
        "{}: {} within tolerance, {} missed",
        plural(predictions, "prediction"),
        ruled(Ruling::Ok) + hit,
        known + missed
    );
    if known > 0 {
        let _ = write!(text, " ({known} known)");
    }
    if hit > 0 {
        let _ = write!(text, ", {hit} within tolerance although listed as a known miss");
    }
    let is_of = |verdict: &Verdict, kind| verdict.kind == kind && verdict.verdict == Ruling::NotJudged;
    let of = |kind| Some(count(&|verdict| is_of(verdict, kind))).filter(|number| *number > 0);
    let others = [
        of(Kind::Input).map(|number| plural(number, "input")),
        of(Kind::Fit).map(|number| plural(number, "fit")),
        of(Kind::Derived).map(|number| format!("{number} derived")),
    ];
    let others: Vec<String> = others.into_iter().flatten().collect();
    if !others.is_empty() {
        let _ = write!(text, "; not judged: {}", others.join(", "));
    }
    let given = |ruling| count(&|verdict| verdict.kind != Kind::Prediction && verdict.verdict == ruling);
    let (held, left) = (given(Ruling::Ok), given(Ruling::Missed));
    if held + left > 0 {
        let _ = write!(text, "; inputs and fits: {held} within tolerance, {left} outside");
    }
    text
}

/// Sorts verdicts by the numbers of their statements.
pub fn sort_by_statement(verdicts: &mut [Verdict]) {
    let number = |statement: &str| statement.trim_start_matches(char::is_alphabetic).parse::<u32>().ok();
    verdicts.sort_by_key(|verdict| verdict.statement.and_then(number));
}

/// Decides about the exit code.
///
/// # Errors
/// If a prediction misses that is not known to miss, or the reverse; and if an input or a fit
/// leaves its tolerance.
pub fn outcome(verdicts: &[Verdict]) -> Result<(), Failure> {
    if verdicts.iter().any(Verdict::is_unexpected) { Err(Failure::expectation()) } else { Ok(()) }
}

fn has_statements(verdicts: &[Verdict]) -> bool {
    verdicts.iter().any(|verdict| verdict.statement.is_some())
}

/// Returns the numbers as a table for a terminal, with their notes below it.
pub fn table(verdicts: &[Verdict], width: usize) -> String {
    let is_numbered = has_statements(verdicts);
    let mut columns = if is_numbered { vec![Column::left("Id")] } else { Vec::new() };
    columns.extend([
        Column::left("Number"),
        Column::right("Paper"),
        Column::right("Ours"),
        Column::left("Unit"),
        Column::right("Ratio"),
        Column::left("Kind"),
        Column::right("Tolerance"),
        Column::left("Verdict"),
        Column::left("Note"),
    ]);
    let mut grid = Grid::new(columns);
    let mut notes: Vec<String> = Vec::new();
    for verdict in verdicts {
        let text = verdict.text();
        let note = match notes.iter().position(|note| *note == text) {
            _ if text.is_empty() => String::new(),
            Some(at) => format!("[{}]", at + 1),
            None => {
                notes.push(text);
                format!("[{}]", notes.len())
            }
        };
        let [paper, ours, ratio, kind, tolerance, word] = verdict.cells();
        let unit = verdict.unit.to_owned();
        let mut row = if is_numbered { vec![verdict.statement.unwrap_or_default().to_owned()] } else { Vec::new() };
        row.extend([verdict.what.clone(), paper, ours, unit, ratio, kind, tolerance, word, note]);
        grid.row(row);
    }
    let mut out = grid.render(width);
    for (number, note) in (1..).zip(notes) {
        let _ = write!(out, "\n{}", wrap(&format!("[{number}] {note}"), width, 4));
    }
    out
}

/// Returns the numbers as a table of a page.
pub fn html_table(id: &'static str, verdicts: &[Verdict]) -> String {
    let is_numbered = has_statements(verdicts);
    let table = Table::new(id);
    let table = if is_numbered { table.text("Id") } else { table };
    let mut table = table
        .text("Number")
        .number("Paper")
        .number("Ours")
        .text("Unit")
        .number("Ratio")
        .text("Kind")
        .number("Tolerance")
        .text("Verdict")
        .text("Note");
    for verdict in verdicts {
        let [paper, ours, ratio, kind, tolerance, word] = verdict.cells();
        let mut row = if is_numbered { vec![Cell::text(verdict.statement.unwrap_or_default())] } else { Vec::new() };
        row.extend([
            Cell::text(&verdict.what),
            Cell::number(verdict.paper, paper),
            Cell::number(verdict.ours.unwrap_or(0.0), ours),
            Cell::text(verdict.unit),
            Cell::number(verdict.ratio().unwrap_or(0.0), ratio),
            Cell::text(&kind),
            Cell::number(verdict.tolerance.unwrap_or(0.0), tolerance),
            Cell::text(&word).class(verdict.verdict.class()),
            Cell::text(&verdict.text()),
        ]);
        table.row(row);
    }
    table.html()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(ours: Option<f64>) -> Verdict {
        Verdict::shown(Kind::Input, "x", "x", 80.0, ours, "MB/s")
    }

    #[test]
    fn a_number_at_the_edge_of_its_tolerance_is_ok_and_beyond_is_not() {
        for (ours, ok) in [(84.0, true), (76.0, true), (84.1, false), (75.9, false)] {
            assert_eq!(number(Some(ours)).predicted(0.05).ok, Some(ok), "{ours}");
        }
    }

    #[test]
    fn a_number_that_is_missing_is_no_success() {
        assert_eq!(number(None).predicted(0.05).verdict, Ruling::Missed);
    }

    #[test]
    fn a_number_that_is_no_prediction_is_neither_right_nor_wrong() {
        for ours in [None, Some(80.0), Some(1.0)] {
            let verdict = number(ours);
            assert_eq!((verdict.ok, verdict.is_unexpected(), verdict.verdict), (None, false, Ruling::NotJudged));
        }
    }

    #[test]
    fn only_an_unexpected_miss_or_hit_makes_the_command_fail() {
        let prediction = |ours| number(Some(ours)).predicted(0.05);
        let known = |ours| prediction(ours).known_miss("for a reason");
        for (verdict, ruling, fails) in [
            (prediction(80.0), Ruling::Ok, false),
            (prediction(90.0), Ruling::Missed, true),
            (known(90.0), Ruling::KnownMiss, false),
            (known(80.0), Ruling::UnexpectedHit, true),
            (number(Some(90.0)), Ruling::NotJudged, false),
        ] {
            assert_eq!(verdict.verdict, ruling);
            assert_eq!(outcome(&[prediction(80.0), verdict]).is_err(), fails, "{ruling:?}");
        }
    }

    #[test]
    fn a_bound_holds_on_its_side_and_not_for_a_missing_number() {
        for (ours, at_least, at_most) in
            [(Some(80.0), true, true), (Some(80.1), true, false), (Some(79.9), false, true), (None, false, false)]
        {
            let ok = |bound| number(ours).bounded(bound).ok == Some(true);
            assert_eq!((ok(Bound::AtLeast), ok(Bound::AtMost)), (at_least, at_most), "{ours:?}");
        }
        assert_eq!(number(Some(90.0)).bounded(Bound::AtLeast).kind, Kind::Prediction);
    }

    #[test]
    fn a_fit_that_leaves_its_tolerance_fails_and_is_no_missed_prediction() {
        let fit = |ours| Verdict { kind: Kind::Fit, ..number(Some(ours)) }.held(0.05);
        assert!(outcome(&[fit(82.0)]).is_ok() && outcome(&[fit(90.0)]).is_err());
        let none = "0 predictions: 0 within tolerance, 0 missed";
        assert_eq!(summary(&[fit(82.0)]), format!("{none}; inputs and fits: 1 within tolerance, 0 outside"));
        assert_eq!(summary(&[fit(90.0)]), format!("{none}; inputs and fits: 0 within tolerance, 1 outside"));
    }

    #[test]
    fn the_table_names_the_statements_if_there_are_any() {
        let named = table(&[number(Some(80.0)).of("G1"), number(Some(80.0))], 200);
        assert!(named.starts_with("Id") && named.contains("\nG1 "), "{named}");
        assert!(table(&[number(Some(80.0))], 200).starts_with("Number"));
    }

    #[test]
    fn the_table_gives_the_reason_of_a_tolerance() {
        let verdict = number(Some(80.0)).predicted(0.05).tolerance_reason("the paper rounds").note("A note.");
        let text = table(&[verdict], 200);
        assert!(text.contains("A note. Tolerance ± 5.0 %, because the paper rounds."), "{text}");
    }

    #[test]
    fn the_summary_counts_predictions_only() {
        let of = |kind| Verdict { kind, ..number(Some(80.0)) };
        let verdicts = [
            of(Kind::Input),
            of(Kind::Fit),
            of(Kind::Derived),
            of(Kind::Comparison),
            number(Some(80.0)).predicted(0.05),
            number(Some(90.0)).predicted(0.05).known_miss("for a reason"),
        ];
        let expected = "2 predictions: 1 within tolerance, 1 missed (1 known); not judged: 1 input, 1 fit, 1 derived";
        assert_eq!(summary(&verdicts), expected);
        let table = table(&verdicts, 200);
        assert!(table.contains("missed, known") && table.contains("Known miss: for a reason"), "{table}");
    }
}
