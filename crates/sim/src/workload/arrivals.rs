//! Arrival processes and their superposition.

use super::times::sample_ps;
use crate::rng::{StreamRng, below, exponential, standard_normal};
use sanloom_fc::config::{Arrival, Picos, TimeDistribution};

/// A superposition of arrival processes (the SANSim paper, section 2.1: a combination of patterns
/// with different distributions and different rates).
///
/// Every process is a renewal process: its first request arrives one interval after the start. A
/// sample is rounded once to picoseconds. Two requests of a process are at least 1 ps apart, so
/// time always advances.
#[derive(Clone, Debug)]
pub struct Arrivals {
    processes: Vec<Process>,
}

impl Arrivals {
    /// Returns the processes `kinds`, all starting at `start_ps`. Process `i` uses the generator
    /// `rng_of(i)`. A process that can never fire stays silent: its rate is zero or not a number,
    /// or it has no on-phase.
    pub fn new(kinds: &[Arrival], start_ps: u64, mut rng_of: impl FnMut(u32) -> StreamRng) -> Arrivals {
        let processes =
            kinds.iter().zip(0..).map(|(kind, index)| Process::new(kind, start_ps, rng_of(index))).collect();
        Arrivals { processes }
    }

    /// Removes the next request and returns its absolute time in ps, never earlier than the one
    /// before. At equal times, the process listed first comes first. `u64::MAX` means that no
    /// request will ever arrive.
    pub fn next_ps(&mut self) -> u64 {
        let Some(first) = self.processes.iter_mut().min_by_key(|p| p.next_ps) else {
            return u64::MAX;
        };
        let at_ps = first.next_ps;
        first.advance();
        at_ps
    }

    /// Like [`Arrivals::next_ps`], without removing the request.
    pub fn peek_ps(&self) -> u64 {
        self.processes.iter().map(|p| p.next_ps).min().unwrap_or(u64::MAX)
    }
}

#[derive(Clone, Debug)]
struct Process {
    next_ps: u64,
    start_ps: u64,
    law: Law,
    rng: StreamRng,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Poisson {
        mean_ps: f64,
    },
    Constant {
        period_ps: f64,
        count: u64,
    },
    Uniform {
        min_ps: u64,
        width_ps: u64,
    },
    Normal {
        mean_ps: f64,
        deviation_ps: f64,
    },
    /// A Poisson process on a clock that stops during off-phases.
    OnOff {
        mean_ps: f64,
        on_ps: u64,
        off_ps: u64,
        clock_ps: u64,
    },
    /// Independent times between requests.
    Renewal(TimeDistribution),
    /// A Poisson process whose phase, and with it the rate, changes at random times.
    Phases {
        /// Mean interval in each phase, in ps; infinite if the phase has no request.
        means_ps: [f64; 2],
        lengths: [TimeDistribution; 2],
        phase: usize,
        /// End of the phase; 0 before the first one.
        end_ps: u64,
    },
    Silent,
}

/// Phases that the search for one request may pass.
const MOST_PHASES: u32 = 1 << 20;

impl Process {
    fn new(kind: &Arrival, start_ps: u64, rng: StreamRng) -> Process {
        let mut process = Process { next_ps: start_ps, start_ps, law: Law::new(kind), rng };
        process.advance();
        process
    }

    fn advance(&mut self) {
        let rng = &mut self.rng;
        let at_ps = match &mut self.law {
            Law::Poisson { mean_ps } => {
                let gap_ps = round_ps(*mean_ps * exponential(rng));
                self.next_ps.saturating_add(gap_ps)
            }
            // The time is computed from the start, because a rounded period would drift.
            Law::Constant { period_ps, count } => {
                *count += 1;
                let since_start_ps = round_ps(*count as f64 * *period_ps);
                self.start_ps.saturating_add(since_start_ps)
            }
            Law::Uniform { min_ps, width_ps } => {
                let gap_ps = *min_ps + below(rng, *width_ps);
                self.next_ps.saturating_add(gap_ps)
            }
            Law::Normal { mean_ps, deviation_ps } => {
                let gap_ps = loop {
                    let gap_ps = *mean_ps + *deviation_ps * standard_normal(rng);
                    if gap_ps >= 0.0 {
                        break gap_ps;
                    }
                };
                self.next_ps.saturating_add(round_ps(gap_ps))
            }
            Law::OnOff { mean_ps, on_ps, off_ps, clock_ps } => {
                *clock_ps = clock_ps.saturating_add(round_ps(*mean_ps * exponential(rng)));
                let phases = *clock_ps / *on_ps;
                let silent_ps = phases.saturating_mul(*off_ps);
                self.start_ps.saturating_add(*clock_ps).saturating_add(silent_ps)
            }
            Law::Renewal(times) => self.next_ps.saturating_add(sample_ps(times, rng)),
            Law::Phases { means_ps, lengths, phase, end_ps } => {
                let mut from_ps = self.next_ps;
                let mut at_ps = u64::MAX;
                for _ in 0..MOST_PHASES {
                    if *end_ps == 0 {
                        *end_ps = from_ps.saturating_add(sample_ps(&lengths[*phase], rng).max(1));
                    }
                    // A request beyond the end of the phase never arrives: an exponential time has
                    // no memory, so that the next phase begins with a new sample.
                    let gap_ps = round_ps(means_ps[*phase] * exponential(rng));
                    if from_ps.saturating_add(gap_ps) < *end_ps {
                        at_ps = from_ps + gap_ps;
                        break;
                    }
                    (from_ps, *end_ps, *phase) = (*end_ps, 0, 1 - *phase);
                    if from_ps == u64::MAX {
                        break;
                    }
                }
                at_ps
            }
            Law::Silent => u64::MAX,
        };
        self.next_ps = at_ps.max(self.next_ps.saturating_add(1));
    }
}

impl Law {
    fn new(kind: &Arrival) -> Law {
        match *kind {
            Arrival::Poisson { rate } => match mean_ps(rate.0) {
                Some(mean_ps) => Law::Poisson { mean_ps },
                None => Law::Silent,
            },
            Arrival::Constant { rate } => match mean_ps(rate.0) {
                Some(period_ps) => Law::Constant { period_ps, count: 0 },
                None => Law::Silent,
            },
            Arrival::Uniform { min, max } => {
                Law::Uniform { min_ps: min.0, width_ps: max.0.saturating_sub(min.0).saturating_add(1) }
            }
            // Negative samples are rejected and drawn again: at most every second one, because no
            // mean is negative.
            Arrival::Normal { mean, deviation } => {
                Law::Normal { mean_ps: mean.0 as f64, deviation_ps: deviation.0 as f64 }
            }
            Arrival::OnOff { rate, on, off } => match mean_ps(rate.0) {
                Some(mean_ps) if on.0 > 0 => Law::OnOff { mean_ps, on_ps: on.0, off_ps: off.0, clock_ps: 0 },
                _ => Law::Silent,
            },
            Arrival::Renewal(times) if times.mean() > Picos::ZERO => Law::Renewal(times),
            Arrival::Renewal(_) => Law::Silent,
            Arrival::ParetoOnOff { rate, on, off, shape } => {
                let lengths = [on, off].map(|mean| TimeDistribution::Pareto { mean, shape });
                Law::phases([mean_ps(rate.0), None], lengths)
            }
            Arrival::Markov { rates, stays } => {
                let lengths = stays.map(|mean| TimeDistribution::Exponential { mean });
                Law::phases(rates.map(|rate| mean_ps(rate.0)), lengths)
            }
        }
    }

    fn phases(means_ps: [Option<f64>; 2], lengths: [TimeDistribution; 2]) -> Law {
        let is_silent = |number: usize| means_ps[number].is_none() || lengths[number].mean() == Picos::ZERO;
        if is_silent(0) && is_silent(1) {
            return Law::Silent;
        }
        Law::Phases { means_ps: means_ps.map(|mean| mean.unwrap_or(f64::INFINITY)), lengths, phase: 0, end_ps: 0 }
    }
}

/// Returns the mean interval of a rate per second; `None` for a rate that never fires.
fn mean_ps(rate: f64) -> Option<f64> {
    (rate > 0.0 && rate.is_finite()).then(|| 1e12 / rate)
}

fn round_ps(ps: f64) -> u64 {
    libm::round(ps) as u64
}
