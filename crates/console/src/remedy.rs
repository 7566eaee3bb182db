//! Remedies of findings, tried on the lab before they are printed: [`try_all`].
//!
//! A finding has candidates: changes of the lab in the form of `--set`, and a [`Measure`]. Each
//! candidate is simulated with the same seed for a part of the run. One that improves the measure
//! noticeably becomes a remedy of the finding, with its gain. Untried advice is not printed.

use crate::exit::Failure;
use crate::input::Threads;
use crate::output::shell_word;
use crate::pool;
use crate::report::format;
use crate::run::{self, Stop, View};
use sanloom_api::results::{Candidate, Finding, Measure, Remedy, Results, Series, Victim};
use sanloom_fc::config::Picos;
use sanloom_fc::san::Lab;
use sanloom_lab::Override;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Findings whose candidates are tried.
const FINDINGS: usize = 4;
/// Smallest gain of a remedy; less may be noise.
const GAIN: f64 = 0.1;
/// Largest part of the victims, of a stall, or of the failed requests that may remain.
const REMAINING: f64 = 0.5;
/// Share of its usual throughput that a victim lacks.
const LOSS: f64 = 0.1;
/// Remedies kept for a finding.
const KEPT: usize = 2;

/// The lab as the command line gives it.
pub struct Source<'a> {
    /// Name of the file in diagnostics.
    pub label: &'a str,
    pub text: &'a str,
    pub sets: &'a [Override],
}

/// Tries the candidates of the gravest findings and adds those that help to the findings. Results
/// of an interrupted run stay without remedies. `stop` ends the trials.
///
/// # Errors
/// Threads cannot be started.
pub fn try_all(
    source: &Source<'_>,
    lab: &Lab,
    results: &mut Results,
    threads: Threads,
    stop: &Stop<'_>,
) -> Result<(), Failure> {
    let findings: Vec<usize> = (0..results.findings.len())
        .filter(|&finding| !results.findings[finding].candidates.is_empty())
        .take(FINDINGS)
        .collect();
    if findings.is_empty() || results.lab.interrupted {
        return Ok(());
    }
    let tried: Vec<&Finding> = findings.iter().map(|&finding| &results.findings[finding]).collect();
    let end = end_of_trials(lab, &tried);
    let mut changes: Vec<&[(String, String)]> = vec![&[]];
    for candidate in tried.iter().flat_map(|finding| &finding.candidates) {
        if !changes.contains(&&candidate.set[..]) {
            changes.push(&candidate.set);
        }
    }
    let trials =
        pool::all_until(threads, "remedies", &changes, |_, change| simulate(source, lab, change, end, stop), stop)?;
    let Some(without) = trials.first().and_then(Option::as_ref) else { return Ok(()) };
    let trial_of = |candidate: &Candidate| {
        let place = changes.iter().position(|change| *change == candidate.set)?;
        trials.get(place)?.as_ref()
    };
    let command = results.lab.command.clone().unwrap_or_else(|| "sanloom sim LAB".to_owned());
    let mut found: Vec<Vec<Remedy>> = Vec::new();
    for finding in &tried {
        let judge = |candidate| judge(finding, candidate, without, trial_of(candidate)?, &command);
        let mut remedies: Vec<Remedy> = finding.candidates.iter().filter_map(judge).collect();
        // A smaller change precedes a larger one with the same effect, because the sort is stable.
        remedies.sort_by(|a, b| {
            a.victims_after.cmp(&b.victims_after).then((b.gain * 20.0).round().total_cmp(&(a.gain * 20.0).round()))
        });
        remedies.truncate(KEPT);
        found.push(remedies);
    }
    for (finding, remedies) in findings.into_iter().zip(found) {
        let finding = &mut results.findings[finding];
        finding.remedy = remedies.first().map_or_else(String::new, text);
        finding.remedies = remedies;
    }
    Ok(())
}

/// Formats a remedy with its gain as one sentence.
pub fn text(remedy: &Remedy) -> String {
    let set: Vec<String> = remedy.set.iter().map(|set| format!("--set {}", shell_word(set))).collect();
    format!("Tried: {} ({}): {}", remedy.what, set.join(" "), effect(remedy))
}

/// Describes what a remedy changes.
pub fn effect(remedy: &Remedy) -> String {
    let [before, after] = [remedy.before_bytes_per_s, remedy.after_bytes_per_s].map(format::mb_per_s);
    let victims = match (remedy.victims_before, remedy.victims_after) {
        (1, 0) => "the victim is free".to_owned(),
        (before, 0) => format!("{before} victims become 0"),
        (_, after) if remedy.loss_after > 0.0 => {
            let hosts = if after == 1 { "1 host still loses" } else { &format!("{after} hosts still lose") };
            format!("but the finding remains: {hosts} up to {}", format::percent(remedy.loss_after))
        }
        (before, after) => format!("but the finding remains: {before} victims become {after}"),
    };
    match remedy.measure {
        Measure::Victims => format!("{before} of the victims become {after}, {victims}"),
        Measure::Link => format!("{before} over the link become {after}"),
        Measure::Total => format!("{before} of all hosts become {after} (+{})", format::percent(remedy.gain)),
        Measure::Stall => {
            let [before, after] = [remedy.before_stall_s, remedy.after_stall_s].map(format::seconds);
            format!("the longest stall of {before} becomes {after}")
        }
        Measure::Failures => {
            let [before, after] = [remedy.before_ios_failed, remedy.after_ios_failed].map(format::grouped);
            format!("{before} failed requests become {after}")
        }
    }
}

/// Returns the end of the simulations. The throughput of victims needs a quarter of the time after
/// the last finding has begun, that of all hosts an eighth. A stall must have ended, and failed
/// requests are counted to the end of the run.
fn end_of_trials(lab: &Lab, findings: &[&Finding]) -> Picos {
    findings.iter().map(|finding| end_of_trial(lab, finding)).max().unwrap_or(lab.run.duration)
}

fn end_of_trial(lab: &Lab, finding: &Finding) -> Picos {
    let ps = |seconds: f64| (seconds * 1e12) as u64;
    let least = lab.run.sample_interval.0.saturating_mul(10);
    let begin = finding.from_s.map_or(0, ps).max(lab.run.warmup.0);
    let end = match (finding.measure, finding.until_s) {
        (Measure::Stall, Some(until_s)) => ps(until_s).saturating_add(least),
        (Measure::Stall | Measure::Failures, _) => lab.run.duration.0,
        (measure, _) => {
            let rest = lab.run.duration.0.saturating_sub(begin);
            let part = if measure == Measure::Total { 8 } else { 4 };
            begin.saturating_add((rest / part).max(least))
        }
    };
    Picos(end.min(lab.run.duration.0))
}

/// Results of a simulation that are compared.
struct Trial {
    findings: Vec<Finding>,
    series: Series,
    links: Vec<(String, f64)>,
    /// Name and longest stall in seconds of each host.
    stalls: Vec<(String, f64)>,
    bytes_per_s: f64,
    ios_failed: u64,
}

/// Simulates the lab with a change; `None` if the change is not valid in this lab, or after Ctrl-C.
fn simulate(source: &Source<'_>, lab: &Lab, change: &[(String, String)], end: Picos, stop: &Stop<'_>) -> Option<Trial> {
    let change = change.iter().map(|(key, value)| Override { key: key.clone(), value: value.clone() });
    let sets: Vec<Override> = source.sets.iter().cloned().chain(change).collect();
    let mut changed = sanloom_lab::load(source.label, source.text, &sets).ok()?.lab;
    changed.run = lab.run.clone();
    changed.run.duration = end;
    changed.faults.retain(|fault| fault.at < end);
    changed.changes.retain(|change| change.at < end);
    let results = run::run(&Arc::new(changed), View { stop: Some(stop), ..View::default() }).results;
    if results.lab.interrupted {
        return None;
    }
    let links = results
        .links
        .iter()
        .map(|link| (link.name.clone(), link.forward.throughput_bytes_per_s + link.backward.throughput_bytes_per_s));
    Some(Trial {
        links: links.collect(),
        stalls: results.hosts.into_iter().map(|host| (host.name, host.longest_stall_s)).collect(),
        bytes_per_s: results.totals.io.throughput_bytes_per_s,
        ios_failed: results.totals.io.ios_failed,
        findings: results.findings,
        series: results.series,
    })
}

/// Returns a candidate as a remedy if it helps.
fn judge(finding: &Finding, candidate: &Candidate, without: &Trial, with: &Trial, command: &str) -> Option<Remedy> {
    let victims = Victims::of(finding, without);
    let [before, after] = [without, with].map(|trial| victims.throughput(finding, trial));
    // The change must restore the throughput of the victims, even if the finding of the changed lab
    // compares them with more than they had before.
    let [victims_before, not_free] = [without, with].map(|trial| victims.count(finding, trial));
    let (remaining, loss_after) = victims.remaining(finding, with);
    let victims_after = not_free.max(remaining);
    let [before_stall_s, after_stall_s] = [without, with].map(|trial| longest_stall_s(finding, trial));
    let usual = victims.usual();
    let lost = if usual > before { usual - before } else { before };
    let gain = match finding.measure {
        Measure::Victims | Measure::Link | Measure::Total => (after - before) / lost.max(1.0),
        Measure::Stall => avoided(before_stall_s, after_stall_s),
        Measure::Failures => avoided(without.ios_failed as f64, with.ios_failed as f64),
    };
    let helps = match finding.measure {
        Measure::Victims | Measure::Link => gain >= GAIN && not_free as f64 <= REMAINING * victims_before as f64,
        Measure::Total => gain >= GAIN,
        Measure::Stall | Measure::Failures => gain >= 1.0 - REMAINING,
    };
    let set: Vec<String> = candidate.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let sets: Vec<String> = set.iter().map(|set| format!(" --set {}", shell_word(set))).collect();
    helps.then(|| Remedy {
        what: candidate.what.clone(),
        set,
        measure: finding.measure,
        before_bytes_per_s: before,
        after_bytes_per_s: after,
        before_stall_s,
        after_stall_s,
        before_ios_failed: without.ios_failed,
        after_ios_failed: with.ios_failed,
        gain,
        victims_before,
        victims_after,
        loss_after,
        command: format!("{command}{}", sets.concat()),
    })
}

/// The part of an amount that a change avoids; 0 if there is none.
fn avoided(before: f64, after: f64) -> f64 {
    if before > 0.0 { (before - after) / before } else { 0.0 }
}

/// Longest stall of the victims of a finding.
fn longest_stall_s(finding: &Finding, trial: &Trial) -> f64 {
    let is_victim = |name: &str| finding.victims.iter().any(|victim| victim.name == name);
    trial.stalls.iter().filter(|(name, _)| is_victim(name)).map(|(_, stall_s)| *stall_s).fold(0.0, f64::max)
}

/// The victims of a finding whose throughput is compared.
enum Victims<'a> {
    /// Hosts, with their throughput without the culprit; 0 if unknown.
    Hosts(Vec<(&'a str, f64)>),
    /// The link that is the culprit itself.
    Link(&'a str),
    /// All hosts.
    All,
}

impl<'a> Victims<'a> {
    fn of(finding: &'a Finding, trial: &Trial) -> Victims<'a> {
        match finding.measure {
            Measure::Victims => {}
            Measure::Link => return Victims::Link(finding.culprit.as_deref().unwrap_or_default()),
            Measure::Total | Measure::Stall | Measure::Failures => return Victims::All,
        }
        let hosts: BTreeSet<&str> = trial.series.hosts.iter().map(|host| host.name.as_str()).collect();
        let victims = finding.victims.iter().filter(|victim| hosts.contains(victim.name.as_str()));
        Victims::Hosts(victims.map(|victim| (victim.name.as_str(), victim.before_bytes_per_s)).collect())
    }

    /// Throughput without the culprit; 0 if unknown.
    fn usual(&self) -> f64 {
        match self {
            Victims::Hosts(hosts) => hosts.iter().map(|(_, usual)| usual).sum(),
            Victims::Link(_) | Victims::All => 0.0,
        }
    }

    fn throughput(&self, finding: &Finding, trial: &Trial) -> f64 {
        match self {
            Victims::Hosts(hosts) => hosts.iter().map(|(name, _)| of_host(name, finding, &trial.series)).sum(),
            Victims::Link(name) => trial.links.iter().find(|(link, _)| link == name).map_or(0.0, |(_, rate)| *rate),
            Victims::All => trial.bytes_per_s,
        }
    }

    /// Number of hosts that the same finding of a trial names as victims, and the largest share of
    /// its throughput that one of them loses.
    fn remaining(&self, finding: &Finding, trial: &Trial) -> (u64, f64) {
        let Victims::Hosts(_) = self else { return (0, 0.0) };
        let is_host = |name: &str| trial.series.hosts.iter().any(|host| host.name == name);
        let again = same(finding, trial).into_iter().flat_map(|again| &again.victims);
        let losses = again.filter(|victim| is_host(&victim.name)).map(Victim::loss);
        losses.fold((0, 0.0), |(count, most), loss| (count + 1, loss.max(most)))
    }

    /// Number of victims that still are.
    fn count(&self, finding: &Finding, trial: &Trial) -> u64 {
        let again = same(finding, trial);
        match self {
            Victims::Hosts(hosts) => {
                let is_victim = |(name, usual): &&(&str, f64)| match *usual > 0.0 {
                    true => of_host(name, finding, &trial.series) < (1.0 - LOSS) * usual,
                    false => again.is_some_and(|again| again.victims.iter().any(|victim| victim.name == *name)),
                };
                hosts.iter().filter(is_victim).count() as u64
            }
            Victims::Link(_) => u64::from(again.is_some_and(|again| !again.candidates.is_empty())),
            Victims::All => 0,
        }
    }
}

/// Returns the finding of a trial with the same kind and culprit.
fn same<'t>(finding: &Finding, trial: &'t Trial) -> Option<&'t Finding> {
    let is_same = |other: &&Finding| {
        (other.kind, other.measure, &other.culprit) == (finding.kind, finding.measure, &finding.culprit)
    };
    trial.findings.iter().find(is_same)
}

/// Mean throughput of a host from the beginning of a finding to the end of the run.
fn of_host(name: &str, finding: &Finding, series: &Series) -> f64 {
    let Some(host) = series.hosts.iter().find(|host| host.name == name) else { return 0.0 };
    let first = (finding.from_s.unwrap_or(0.0) / series.interval_s.max(1e-12)).round() as usize;
    let steps = host.throughput_bytes_per_s.get(first..).unwrap_or(&[]);
    steps.iter().sum::<f64>() / steps.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_of_a_link_names_its_throughput_and_no_victims() {
        let of_link = Remedy {
            measure: Measure::Link,
            before_bytes_per_s: 100e6,
            after_bytes_per_s: 400e6,
            victims_before: 1,
            ..Remedy::default()
        };
        assert_eq!(effect(&of_link), "100.0 MB/s over the link become 400.0 MB/s");
        let of_victims = Remedy { measure: Measure::Victims, ..of_link };
        assert_eq!(effect(&of_victims), "100.0 MB/s of the victims become 400.0 MB/s, the victim is free");
    }
}
