//! Simulation of failures and repairs, with a confidence interval.
//!
//! Losses are rare, so the simulation is regenerative: a cycle begins with all parts in order and
//! ends when they are again, or with a loss. The mean time to loss is the mean length of a cycle
//! over the probability that it ends with a loss. The lengths come from plain cycles. The
//! probability comes from cycles in which failures are as frequent as repairs, weighted by their
//! likelihood ratio (failure biasing: Lewis and Böhm 1984; Goyal et al. 1992).

use super::{Component, Reliability, ReliabilityError};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Probability of a failure in a biased cycle, while repairs are possible.
const BIAS: f64 = 0.5;

/// Factor of the standard error of a two-sided 95 % interval.
const Z_95: f64 = 1.959_963_985;

/// Estimate of the mean time to data loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Mean time in hours; infinite if no cycle ended with a loss.
    pub hours: f64,
    /// Half of the width of the 95 % confidence interval, in hours.
    pub half_width_h: f64,
    /// Simulated cycles, plain and biased.
    pub trials: u32,
    /// Biased cycles that ended with a loss. Below about 30, the interval is not reliable.
    pub losses: u32,
}

impl Estimate {
    /// Returns whether the 95 % confidence interval holds a value.
    pub fn holds(&self, hours: f64) -> bool {
        (hours - self.hours).abs() <= self.half_width_h
    }
}

/// Disks of one group.
#[derive(Clone, Copy, Default, Debug)]
struct Disks {
    /// Members whose data are not rebuilt.
    down: u32,
    /// Spares that are ready, and disks that replace a member but are not rebuilt.
    ready: u32,
    /// Failed disks that a person has to replace.
    failed: u32,
}

/// Event of a simulation, with the number of the group or component.
#[derive(Clone, Copy, Debug)]
enum Event {
    DiskFails(usize),
    Rebuilt(usize),
    Replaced(usize),
    PartFails(usize),
    PartRepaired(usize),
}

struct World<'r> {
    of: &'r Reliability,
    groups: Vec<Disks>,
    /// Copies of each component that have failed.
    parts: Vec<u32>,
    /// Possible failures and repairs with their rates.
    failures: Vec<(f64, Event)>,
    repairs: Vec<(f64, Event)>,
}

impl World<'_> {
    fn new(of: &Reliability) -> World<'_> {
        World {
            of,
            groups: vec![Disks { ready: of.spares, ..Disks::default() }; of.organisation.groups as usize],
            parts: vec![0; of.components.len()],
            failures: Vec::new(),
            repairs: Vec::new(),
        }
    }

    fn restart(&mut self) {
        self.groups.fill(Disks { ready: self.of.spares, ..Disks::default() });
        self.parts.fill(0);
    }

    /// Lists what can happen next. Returns the total rates of failures and of repairs.
    fn list(&mut self) -> (f64, f64) {
        self.failures.clear();
        self.repairs.clear();
        for (at, disks) in self.groups.iter().enumerate() {
            let up = self.of.organisation.members - disks.down;
            self.failures.push((f64::from(up) / self.of.mttf_h, Event::DiskFails(at)));
            if disks.down > 0 && disks.ready > 0 {
                self.repairs.push((1.0 / self.of.mttr_h, Event::Rebuilt(at)));
            }
            if disks.failed > 0 {
                self.repairs.push((1.0 / self.of.replacement_h, Event::Replaced(at)));
            }
        }
        for (at, (Component { copies, mttf_h, mttr_h }, down)) in self.of.components.iter().zip(&self.parts).enumerate()
        {
            self.failures.push((f64::from(copies - down) / mttf_h, Event::PartFails(at)));
            if *down > 0 {
                self.repairs.push((1.0 / mttr_h, Event::PartRepaired(at)));
            }
        }
        let sum = |events: &[(f64, Event)]| events.iter().map(|(rate, _)| rate).sum();
        (sum(&self.failures), sum(&self.repairs))
    }

    /// Applies an event. Returns `true` if data are lost.
    fn apply(&mut self, event: Event, random: &mut impl Rng) -> bool {
        match event {
            Event::DiskFails(at) => {
                let disks = &mut self.groups[at];
                disks.down += 1;
                if self.of.replacement_h > 0.0 {
                    disks.failed += 1;
                } else {
                    disks.ready += 1;
                }
                disks.down > self.of.organisation.tolerated
            }
            Event::Rebuilt(at) => {
                let disks = &mut self.groups[at];
                let has_redundancy = disks.down < self.of.organisation.tolerated;
                disks.down -= 1;
                disks.ready -= 1;
                !has_redundancy && random.random_bool(self.of.rebuild_error())
            }
            Event::Replaced(at) => {
                self.groups[at].failed -= 1;
                self.groups[at].ready += 1;
                false
            }
            Event::PartFails(at) => {
                self.parts[at] += 1;
                self.parts[at] == self.of.components[at].copies
            }
            Event::PartRepaired(at) => {
                self.parts[at] -= 1;
                false
            }
        }
    }

    /// Runs one cycle. Returns its mean length, given its states, the likelihood ratio, and
    /// whether it ended with a loss.
    fn cycle(&mut self, is_biased: bool, random: &mut impl Rng) -> (f64, f64, bool) {
        self.restart();
        let (mut hours, mut weight) = (0.0, 1.0);
        loop {
            let (failure, repair) = self.list();
            hours += 1.0 / (failure + repair);
            let plain = failure / (failure + repair);
            let share = if is_biased && repair > 0.0 { BIAS } else { plain };
            let is_failure = repair == 0.0 || random.random_bool(share);
            if repair > 0.0 {
                weight *= if is_failure { plain / share } else { (1.0 - plain) / (1.0 - share) };
            }
            let (events, total) = if is_failure { (&self.failures, failure) } else { (&self.repairs, repair) };
            let event = choose(events, total, random);
            if self.apply(event, random) {
                return (hours, weight, true);
            }
            let is_whole = |disks: &Disks| disks.down == 0 && disks.failed == 0;
            if self.groups.iter().all(is_whole) && self.parts.iter().all(|down| *down == 0) {
                return (hours, weight, false);
            }
        }
    }
}

fn choose(events: &[(f64, Event)], total: f64, random: &mut impl Rng) -> Event {
    let mut left = random.random_range(0.0..total);
    for &(rate, event) in events {
        if left < rate {
            return event;
        }
        left -= rate;
    }
    // Rounding of the sum; the list has at least one failure.
    events[events.len() - 1].1
}

/// Mean and variance of the mean.
fn moments(values: impl Iterator<Item = f64>, count: f64) -> (f64, f64) {
    let (sum, squares) = values.fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
    let mean = sum / count;
    (mean, ((squares / count - mean * mean) / (count - 1.0)).max(0.0))
}

impl Reliability {
    /// Estimates the mean time to data loss from `trials` cycles, half of them plain. The same seed
    /// gives the same estimate.
    ///
    /// # Errors
    ///
    /// Parameters outside their ranges, or fewer than 100 trials.
    pub fn monte_carlo(&self, trials: u32, seed: u64) -> Result<Estimate, ReliabilityError> {
        self.check()?;
        if trials < 100 {
            return Err(ReliabilityError::Trials);
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut world = World::new(self);
        let half = trials / 2;
        let count = f64::from(half);
        let lengths = (0..half).map(|_| world.cycle(false, &mut random).0);
        let (length, length_variance) = moments(lengths, count);
        let mut losses = 0;
        let weights = (0..half).map(|_| {
            let (_, weight, is_lost) = world.cycle(true, &mut random);
            losses += u32::from(is_lost);
            if is_lost { weight } else { 0.0 }
        });
        let (probability, probability_variance) = moments(weights, count);
        let hours = length / probability;
        let relative = length_variance / (length * length) + probability_variance / (probability * probability);
        let half_width_h = if losses == 0 { f64::INFINITY } else { Z_95 * hours * relative.sqrt() };
        Ok(Estimate { hours, half_width_h, trials: 2 * half, losses })
    }
}
