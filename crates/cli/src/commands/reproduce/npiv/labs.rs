//! Where document 000 stops: virtual ports that do I/O, move, and log in all at once, in labs that the examples have, too.

use crate::commands::sim::judge;
use crate::exit::Failure;
use crate::run::{self, View};
use sanloom_api::results::Results;
use sanloom_api::view::Table;
use sanloom_sim::view::{self, Which};
use std::sync::Arc;

/// Name and text of each.
pub const LABS: [(&str, &str); 3] = [
    ("npiv-hypervisor", include_str!("../../../../../../examples/npiv-hypervisor.toml")),
    ("npiv-migration", include_str!("../../../../../../examples/npiv-migration.toml")),
    ("npiv-login-storm", include_str!("../../../../../../examples/npiv-login-storm.toml")),
];

/// What came of one.
pub struct Outcome {
    /// What it measured, with the verdicts on its expectations.
    pub results: Results,
    /// Ports that are logged in when it ends.
    standing: usize,
}

/// Simulates one, and holds it against its expectations; `None` if it was interrupted.
///
/// # Errors
/// When the lab is none.
pub fn measure((name, text): (&str, &str)) -> Option<Result<Outcome, Failure>> {
    let loaded = match sanloom_lab::load(&format!("{name}.toml"), text, &[]) {
        Ok(loaded) => loaded,
        Err(mistakes) => return Some(Err(mistakes.into())),
    };
    let lab = Arc::new(loaded.lab);
    let finished = run::run(&lab, View::default());
    let mut results = finished.results;
    judge(&lab, &mut results);
    let standing = match view::of(&finished.world, Which::Flogi, None).table {
        Table::Flogi(table) => table.logins.len(),
        _ => 0,
    };
    (!results.lab.interrupted).then_some(Ok(Outcome { results, standing }))
}

/// What came of one, in a sentence.
pub fn sentence(Outcome { results, standing }: &Outcome) -> String {
    let totals = &results.totals;
    let accepted: u64 = results.switches.iter().map(|switch| switch.logins).sum();
    let stall_s = results.hosts.iter().map(|host| host.longest_stall_s).fold(0.0, f64::max);
    let held = results.expectations.iter().filter(|expectation| expectation.ok).count();
    format!(
        "examples/{}.toml ({}): {accepted} logins accepted, {standing} of them stand at the end, {} requests done, {} failed, longest \
         stall of a host {:.1} ms; {held} of {} expectations hold.",
        results.lab.name,
        results.lab.description,
        totals.io.ios_completed,
        totals.io.ios_failed,
        stall_s * 1e3,
        results.expectations.len(),
    )
}
