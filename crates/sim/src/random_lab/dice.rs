//! The only source of chance of a random lab: integers, so that a seed means the same on every machine.

use crate::rng::{StreamRng, below};
use rand::{Rng, SeedableRng};

/// A generator with the few draws that random labs need. Probabilities are ratios of integers.
#[derive(Clone, Debug)]
pub struct Dice {
    rng: StreamRng,
}

impl Dice {
    /// The dice of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice { rng: StreamRng::seed_from_u64(seed) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Uniform from `low` to `high`, both included; `low` if there is nothing between.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + below(&mut self.rng, high.saturating_sub(low).saturating_add(1))
    }

    /// An index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        below(&mut self.rng, len as u64) as usize
    }

    /// True `parts` times out of `whole`.
    pub fn chance(&mut self, parts: u64, whole: u64) -> bool {
        below(&mut self.rng, whole) < parts
    }

    /// From `low` to `high`, each doubling as likely as the next.
    pub fn spread(&mut self, low: u64, high: u64) -> u64 {
        let doublings = (high / low.max(1)).max(1).ilog2();
        let base = low << self.range(0, u64::from(doublings));
        let top = (2 * base).min(high);
        self.range(base.min(top), top)
    }

    /// One of `choices`, each as likely.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// One of `choices` by their weights.
    pub fn weighted<T: Copy>(&mut self, choices: &[(T, u64)]) -> T {
        let mut left = self.range(0, choices.iter().map(|choice| choice.1).sum::<u64>() - 1);
        for &(choice, weight) in choices {
            if left < weight {
                return choice;
            }
            left -= weight;
        }
        choices[choices.len() - 1].0
    }

    /// Some of `choices`, at least one, with weights from 1 to 64: a swarm of features.
    pub fn swarm<T: Copy>(&mut self, choices: &[T]) -> Vec<(T, u64)> {
        let keep = self.range(1, 4);
        let mut swarm = Vec::new();
        for &choice in choices {
            if self.chance(keep, 4) {
                swarm.push((choice, 1 << self.range(0, 6)));
            }
        }
        if swarm.is_empty() {
            swarm.push((self.pick(choices), 1));
        }
        swarm
    }
}
