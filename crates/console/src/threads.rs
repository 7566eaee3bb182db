//! The use of threads in one run, as text.

use crate::report::format;
use sanloom_sim::parallel::{Offer, Report};

/// Returns one line for a run that was not divided although the user asked for threads, and `None`
/// for any other.
pub fn undivided(report: &Report) -> Option<String> {
    let reason = report.undivided.as_ref()?;
    Some(format!("the run used one thread, because {reason}\n"))
}

/// Returns a table of the parallelism that the lab offers, and of the work of each thread. Empty if
/// nothing was measured.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    let table: Vec<String> = report.offers.iter().map(offer).collect();
    if !table.is_empty() {
        text.push_str("parallelism offered    parts, speed-up without cost of synchronisation, lookahead\n");
        table.iter().for_each(|line| text.push_str(line));
    }
    if report.parts > 1 {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let worked: Vec<String> = report.worked_ns.iter().map(|&ns| format!("{:.2}", seconds(ns))).collect();
        let all = seconds(report.worked_ns.iter().sum());
        let longest = seconds(report.worked_ns.iter().copied().max().unwrap_or(0));
        let alone = seconds(report.alone_ns);
        text.push_str(&format!(
            "work of the threads    {} s, alone {alone:.2} s, {} divisions; {:.2} times the longest\n",
            worked.join(", "),
            format::grouped(report.divisions),
            (all + alone) / (longest + alone).max(1e-9)
        ));
    }
    text
}

fn offer(offer: &Offer) -> String {
    let Offer { parts, lookahead_ps, events_in_lookahead, parallelism, balance } = *offer;
    format!(
        "{parts:>8} parts         {parallelism:.2} (at most {balance:.2} by balance), {:.0} ns with {events_in_lookahead:.1} events\n",
        lookahead_ps as f64 / 1e3
    )
}
