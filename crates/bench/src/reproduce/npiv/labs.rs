//! Labs of the examples that go on where the NPIV paper stops: virtual ports that do I/O, move, and
//! log in all at once.

use sanloom_api::results::Results;
use sanloom_api::view::Table;
use sanloom_console::exit::Failure;
use sanloom_console::run::judge;
use sanloom_console::run::{self, View};
use sanloom_lab::Override;
use sanloom_sim::view::{self, Which};
use std::sync::Arc;

/// A lab with an override.
pub struct Variant {
    name: &'static str,
    text: &'static str,
    /// Key, value, and description of the difference.
    set: Option<(&'static str, &'static str, &'static str)>,
}

const STORM: &str = include_str!("../../../labs/npiv-login-storm.toml");

/// The labs.
pub const LABS: [Variant; 4] = [
    Variant { name: "npiv-hypervisor", text: include_str!("../../../labs/npiv-hypervisor.toml"), set: None },
    Variant { name: "npiv-migration", text: include_str!("../../../labs/npiv-migration.toml"), set: None },
    Variant { name: "npiv-login-storm", text: STORM, set: None },
    Variant {
        name: "npiv-login-storm",
        text: STORM,
        set: Some(("switch.sw.processor.sharing", "per-port", "a processor for each port")),
    },
];

/// Results of one lab.
pub struct Outcome {
    /// Results with the verdicts on the lab's expectations; a variant is not judged.
    pub results: Results,
    /// Ports that are logged in at the end.
    standing: usize,
    difference: Option<&'static str>,
}

/// Simulates a lab, and checks its expectations; returns `None` if the run was interrupted.
///
/// # Errors
/// If the lab is invalid.
pub fn measure(variant: &Variant) -> Option<Result<Outcome, Failure>> {
    let Variant { name, text, set } = variant;
    let set: Vec<Override> =
        set.iter().map(|(key, value, _)| Override { key: (*key).to_owned(), value: (*value).to_owned() }).collect();
    let loaded = match sanloom_lab::load(&format!("{name}.toml"), text, &set) {
        Ok(loaded) => loaded,
        Err(mistakes) => return Some(Err(mistakes.into())),
    };
    let lab = Arc::new(loaded.lab);
    let finished = run::run(&lab, View::default());
    let mut results = finished.results;
    if variant.set.is_none() {
        judge(&lab, &mut results);
    }
    let standing = match view::of(&finished.world, Which::Flogi, None).table {
        Table::Flogi(table) => table.logins.len(),
        _ => 0,
    };
    let difference = variant.set.map(|(_, _, difference)| difference);
    (!results.lab.interrupted).then_some(Ok(Outcome { results, standing, difference }))
}

/// Describes the results of a lab in a paragraph.
pub fn sentence(outcome: &Outcome) -> String {
    let Outcome { results, standing, difference } = outcome;
    let totals = &results.totals;
    let accepted: u64 = results.switches.iter().map(|switch| switch.logins).sum();
    let stall_s = results.hosts.iter().map(|host| host.longest_stall_s).fold(0.0, f64::max);
    let held = results.expectations.iter().filter(|expectation| expectation.ok).count();
    let mut text = match difference {
        Some(difference) => format!("The same with {difference}: "),
        None => format!("examples/{}.toml ({}): ", results.lab.name, results.lab.description),
    };
    text.push_str(&format!(
        "{accepted} logins accepted, {standing} of them stand at the end, {} requests done, {} failed, longest stall of a \
         host {:.1} ms",
        totals.io.ios_completed,
        totals.io.ios_failed,
        stall_s * 1e3,
    ));
    let new: Vec<_> = results.hosts.iter().filter(|host| host.name.starts_with("new")).collect();
    if !new.is_empty() {
        let done = new.iter().filter(|host| host.logins > 0).count();
        let unanswered: u64 = new.iter().map(|host| host.requests_unanswered).sum();
        text.push_str(&format!(
            "; {done} of {} new machines have logged in, after {unanswered} requests without a response in time",
            new.len()
        ));
    }
    match results.expectations.len() {
        0 => text.push('.'),
        all => text.push_str(&format!("; {held} of {all} expectations hold.")),
    }
    text
}
