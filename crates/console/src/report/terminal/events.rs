//! Event list, shortened so that its end remains visible.

use super::grid::wrap;
use crate::report::format::{clean, grouped};
use sanloom_api::results::Event;
use std::fmt::Write as _;

/// Maximum number of lines: half from the beginning and half from the end.
const ROWS: usize = 16;

/// Consecutive events with the same text and different subjects.
struct Run<'a> {
    first: &'a Event,
    last: &'a Event,
    count: usize,
}

/// Renders the events; consecutive events with the same text share one line. Empty text if there
/// are none.
pub fn render(out: &mut String, events: &[Event], width: usize) {
    if events.is_empty() {
        return;
    }
    out.push_str("\nWhat happened\n");
    let runs = runs(events);
    let hidden = runs.len().saturating_sub(ROWS);
    // A line "1 more" would be as long as the line that it hides.
    if hidden <= 1 {
        runs.iter().for_each(|run| line(out, run, width));
        return;
    }
    let (head, rest) = runs.split_at(ROWS / 2);
    let (middle, tail) = rest.split_at(hidden);
    head.iter().for_each(|run| line(out, run, width));
    let events: usize = middle.iter().map(|run| run.count).sum();
    let _ = writeln!(out, "{:>15}{} more events", "… ", grouped(events as u64));
    tail.iter().for_each(|run| line(out, run, width));
}

fn runs(events: &[Event]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for event in events {
        match runs.last_mut() {
            Some(run) if run.first.kind == event.kind && pattern(run.first) == pattern(event) => {
                run.last = event;
                run.count += 1;
            }
            _ => runs.push(Run { first: event, last: event, count: 1 }),
        }
    }
    runs
}

/// The text without its subject.
fn pattern(event: &Event) -> String {
    match event.subject.as_deref() {
        Some(subject) if !subject.is_empty() => event.what.replacen(subject, "\0", 1),
        _ => event.what.clone(),
    }
}

fn line(out: &mut String, run: &Run<'_>, width: usize) {
    let event = run.first;
    let subject = event.subject.as_deref().filter(|subject| !event.what.contains(subject));
    let subject = subject.map(|subject| format!(": {}", clean(subject))).unwrap_or_default();
    let more = match run.count - 1 {
        0 => String::new(),
        more if format!("{:.6}", run.last.at_s) == format!("{:.6}", event.at_s) => {
            format!(", and {} more", grouped(more as u64))
        }
        more => format!(", and {} more until {:.6} s", grouped(more as u64), run.last.at_s),
    };
    let text = format!("{:>11.6} s  {}{subject}{more}", event.at_s, clean(&event.what));
    out.push_str(&wrap(&text, width, 15));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_s: f64, what: &str, subject: &str) -> Event {
        Event { at_s, what: what.into(), subject: Some(subject.into()), ..Event::default() }
    }

    fn lines(events: &[Event]) -> Vec<String> {
        let mut out = String::new();
        render(&mut out, events, 100);
        out.lines().skip(2).map(|line| line.trim_start().to_owned()).collect()
    }

    #[test]
    fn consecutive_events_with_the_same_text_share_a_line() {
        let shown = lines(&[
            event(1.0, "link a went down", "a"),
            event(1.0, "link b went down", "b"),
            event(1.1, "path failed", "h1 hba0>d:0"),
            event(1.2, "path failed", "h2 hba0>d:0"),
            event(1.3, "link a came up", "a"),
            event(1.4, "path failed", "h1 hba0>d:0"),
        ]);
        assert_eq!(
            shown,
            [
                "1.000000 s  link a went down, and 1 more",
                "1.100000 s  path failed: h1 hba0>d:0, and 1 more until 1.200000 s",
                "1.300000 s  link a came up",
                "1.400000 s  path failed: h1 hba0>d:0",
            ]
        );
    }

    #[test]
    fn the_first_and_the_last_are_shown_and_the_others_counted() {
        let events: Vec<Event> = (0..100).map(|i| event(f64::from(i), &format!("thing {i}"), "x")).collect();
        let shown = lines(&events);
        assert_eq!(shown.len(), ROWS + 1);
        assert_eq!(shown[0], "0.000000 s  thing 0: x");
        assert_eq!(shown[ROWS / 2], "… 84 more events");
        assert_eq!(shown[ROWS], "99.000000 s  thing 99: x");
        assert_eq!(lines(&events[..ROWS + 1]).len(), ROWS + 1);
    }
}
