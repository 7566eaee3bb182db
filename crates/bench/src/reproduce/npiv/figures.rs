//! Figures 8 to 11 of the NPIV paper, with our algorithm beside them.

use super::beds::{Runs, curve};
use crate::npiv_bed::Sequence;
use sanloom_console::report::plot::{Level, Plot, PlotCurve};

/// Returns the four figures.
pub fn plots(runs: &Runs) -> Vec<Plot> {
    let named =
        |name: &str, sequences: &[Sequence], card| PlotCurve { name: name.to_owned(), points: curve(sequences, card) };
    let first =
        |runs: &[Vec<Sequence>], name: &str, card| named(name, runs.first().map_or(&[][..], Vec::as_slice), card);
    let level = |name: &str, y| Level { name: name.to_owned(), y };
    let plot = |title: &str, curves, levels| Plot {
        title: title.to_owned(),
        x: "virtual port".to_owned(),
        y: "switch latency, ms".to_owned(),
        curves,
        levels,
        is_log: false,
    };
    let cards = runs.beyond.iter().map(|sequence| sequence.card).max().unwrap_or(0);
    let standard = (1..=cards).map(|card| named(&format!("port {card}"), &runs.beyond, card)).collect();
    vec![
        plot("Figure 8: the commands of a login, port 1", commands(&runs.full), Vec::new()),
        plot(
            "Figure 9: FDISC, one port after the other; the document's switch ends at port 4",
            standard,
            vec![level("paper: 600 ms", 600.0), level("paper: 1,300 ms", 1_300.0), level("E_D_TOV", 2_000.0)],
        ),
        plot(
            "Figure 10: FDISC, two ports in step",
            vec![first(&runs.in_step, "port 1", 1), first(&runs.in_step, "port 2", 2)],
            vec![level("paper: 600 ms", 600.0)],
        ),
        plot(
            "Figure 11: FDISC with the modification, and ours",
            vec![
                first(&runs.modified, "port 2, modified", 2),
                first(&runs.modified, "port 3, modified", 3),
                named("port 2, ours", &runs.ours, 2),
                named("port 3, ours", &runs.ours, 3),
            ],
            vec![level("paper: 50 ms", 50.0)],
        ),
    ]
}

/// Returns a curve for each command of the sequence.
pub fn commands(sequences: &[Sequence]) -> Vec<PlotCurve> {
    let mut curves: Vec<PlotCurve> = Vec::new();
    for sequence in sequences.iter().filter(|sequence| sequence.card == 1) {
        for record in &sequence.commands {
            let name = format!("{} to {}", record.command, record.service);
            let point = (f64::from(sequence.number), record.latency_ps as f64 / 1e9);
            match curves.iter_mut().find(|curve| curve.name == name) {
                Some(curve) => curve.points.push(point),
                None => curves.push(PlotCurve { name, points: vec![point] }),
            }
        }
    }
    curves
}
