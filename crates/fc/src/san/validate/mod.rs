//! Validation of a whole lab: [`Lab::validate`] and [`Lab::advice`].

mod adapters;
mod credits;
mod digests;
mod distance;
mod ethernet;
mod ethernet_advice;
mod fabric;
mod fcip;
mod fcoe;
mod gateways;
mod infiniband;
mod ipoib;
mod joins;
mod lanes;
mod nodes;
mod obstacles;
mod reach;
#[cfg(test)]
mod tests;
mod timers;
mod traffic;
mod virtual_disks;
mod virtual_fabrics;
mod windows;

pub(super) use ethernet::list as priorities_in_words;
pub use traffic::MAX_BLOCKS;
pub use windows::{LimitedEnds, WindowLimit, window_limits};

use super::{Lab, Picos, Place, Problem, ProblemKind, Section};

/// Maximum number of switches, hosts and storage systems together.
pub const MAX_NODES: usize = 65_000;
/// Maximum number of links, because faults refer to them by a 16-bit number.
pub const MAX_LINKS: usize = 65_535;
/// Maximum number of switches: domains 1 to 239 are assignable (FC-SW, address identifier
/// assignment).
pub const MAX_SWITCHES: usize = 239;
/// Longest run: a tenth of the range of 64-bit picoseconds, so that sums of times cannot overflow.
pub const MAX_DURATION: Picos = Picos::from_secs(20 * 24 * 3600);
/// Maximum number of steps of the time series.
pub const MAX_SAMPLES: u64 = 1_000_000;

impl Lab {
    /// All errors of the lab; empty if it can be simulated or run. The order is that of the
    /// sections and their elements, so it is deterministic.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        self.validate_run(&mut problems);
        nodes::validate(self, &mut problems);
        fabric::validate(self, &mut problems);
        ethernet::validate(self, &mut problems);
        fcoe::validate(self, &mut problems);
        infiniband::validate(self, &mut problems);
        ipoib::validate(self, &mut problems);
        adapters::validate(self, &mut problems);
        joins::validate(self, &mut problems);
        virtual_fabrics::validate(self, &mut problems);
        // For a graph with impossible links, reachability would report consequences instead of
        // causes.
        let valid = !problems.list.iter().any(|p| {
            matches!(
                p.kind,
                ProblemKind::NoSuchPort | ProblemKind::BadLink | ProblemKind::DuplicateWwn | ProblemKind::TooLarge
            )
        });
        traffic::validate(self, &mut problems);
        virtual_disks::validate(self, &mut problems);
        if valid {
            reach::validate(self, &mut problems);
            digests::validate(self, &mut problems);
        }
        problems.list
    }

    /// Valid settings that are probably not intended.
    pub fn advice(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        nodes::advise(self, &mut problems);
        credits::advise(self, &mut problems);
        fabric::advise(self, &mut problems);
        virtual_fabrics::advise(self, &mut problems);
        joins::advise(self, &mut problems);
        ethernet::advise(self, &mut problems);
        windows::advise(self, &mut problems);
        ethernet_advice::advise(self, &mut problems);
        fcoe::advise(self, &mut problems);
        infiniband::advise(self, &mut problems);
        ipoib::advise(self, &mut problems);
        // A lab with only iSCSI and SRP targets has nothing to simulate.
        let is_live = |host: &super::Host| host.hbas.iter().all(|hba| self.live.uplinks.contains_key(&hba.wwpn));
        let only_live = self.hosts.iter().all(is_live) && !(self.live.iscsi.is_empty() && self.live.srp.is_empty());
        if self.workloads.is_empty() && !only_live {
            problems.add(
                ProblemKind::NoWorkload,
                Place::of(Section::Lab, 0),
                "the lab has no workload, so no host issues I/O",
                "add a section such as [workload.reads]",
            );
        }
        problems.list
    }

    fn validate_run(&self, problems: &mut Problems) {
        let run = &self.run;
        let place = Place::of(Section::Run, 0);
        let longest = MAX_DURATION;
        if run.duration == Picos::ZERO || run.duration > longest {
            let reason = match run.duration {
                Picos::ZERO => "the duration is zero and must be positive".to_owned(),
                long => format!("a run of {long} cannot be simulated"),
            };
            let remedy = format!("choose a time above 0s and up to {longest}");
            problems.add(ProblemKind::BadTime, place.key("duration"), reason, remedy);
        } else {
            self.validate_times_of_run(problems);
        }
        timers::validate(&self.timers, problems);
    }

    fn validate_times_of_run(&self, problems: &mut Problems) {
        let run = &self.run;
        let place = Place::of(Section::Run, 0);
        if run.warmup >= run.duration {
            problems.add(
                ProblemKind::TimeOrder,
                place.key("warmup"),
                format!("the warm-up of {} is not shorter than the run of {}", run.warmup, run.duration),
                "make `warmup` shorter than `duration`",
            );
        }
        let samples = run.duration.0.checked_div(run.sample_interval.0);
        if samples.is_none_or(|n| n > MAX_SAMPLES) {
            problems.add(
                ProblemKind::BadTime,
                place.key("sample_interval"),
                format!("a sample every {} gives more than {MAX_SAMPLES} samples", run.sample_interval),
                format!("make `sample_interval` at least {}", Picos(run.duration.0.div_ceil(MAX_SAMPLES))),
            );
        }
        if let Some(stop) = run.stop_issuing
            && (stop > run.duration || stop <= run.warmup)
        {
            problems.add(
                ProblemKind::TimeOrder,
                place.key("stop_issuing"),
                format!("the workloads cannot stop at {stop}"),
                format!("choose a time between the warm-up ({}) and the end ({})", run.warmup, run.duration),
            );
        }
        if let Some(until) = &run.until {
            if until.target(self).is_none() {
                problems.add(
                    ProblemKind::BadNumber,
                    place.key("until"),
                    format!("no run can end by the precision of `{}`", until.metric),
                    "name `iops`, `throughput_bytes_per_s` or `latency.mean_us` of `totals` or of `hosts.NAME`",
                );
            }
            if !(until.relative > 0.0 && until.relative < 1.0) {
                problems.add(
                    ProblemKind::BadNumber,
                    place.key("until"),
                    format!("an interval of ± {} % cannot be reached", 100.0 * until.relative),
                    "choose a share above 0 % and below 100 %",
                );
            }
        }
    }
}

/// Growing list of problems.
#[derive(Default)]
struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    fn add(&mut self, kind: ProblemKind, place: Place, reason: impl Into<String>, remedy: impl Into<String>) {
        self.list.push(Problem { kind, place, reason: reason.into(), remedy: remedy.into() });
    }

    fn time(&mut self, place: Place, value: Picos, min: Picos, max: Picos) {
        if value < min || value > max {
            self.add(
                ProblemKind::BadTime,
                place,
                format!("`{}` cannot be {value}", place.key),
                format!("choose a time from {min} to {max}"),
            );
        }
    }

    fn number(&mut self, place: Place, value: u64, min: u64, max: u64) {
        if value < min || value > max {
            self.add(
                ProblemKind::BadNumber,
                place,
                format!("`{}` cannot be {value}", place.key),
                format!("choose a number from {min} to {max}"),
            );
        }
    }

    fn share(&mut self, place: Place, value: f64) {
        if !(0.0..=1.0).contains(&value) {
            self.add(
                ProblemKind::BadNumber,
                place,
                format!("`{}` cannot be {value}", place.key),
                "choose a share from 0 to 1",
            );
        }
    }
}
