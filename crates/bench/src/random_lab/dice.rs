//! The only source of randomness of a random lab. It draws integers, so that a seed gives the same
//! lab on every machine.

use rand::{Rng, SeedableRng};
use sanloom_sim::rng::{StreamRng, below};

/// A generator with the draws that random labs need. Probabilities are ratios of integers.
#[derive(Clone, Debug)]
pub struct Dice {
    rng: StreamRng,
}

impl Dice {
    /// Returns the dice of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice { rng: StreamRng::seed_from_u64(seed) }
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Returns a uniform number from `low` to `high`, both included, or `low` if the range is
    /// empty.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + below(&mut self.rng, high.saturating_sub(low).saturating_add(1))
    }

    /// Returns a uniform index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        below(&mut self.rng, len as u64) as usize
    }

    /// Returns true with probability `parts` / `whole`.
    pub fn chance(&mut self, parts: u64, whole: u64) -> bool {
        below(&mut self.rng, whole) < parts
    }

    /// Returns a number from `low` to `high`; each doubling is equally likely.
    pub fn spread(&mut self, low: u64, high: u64) -> u64 {
        let doublings = (high / low.max(1)).max(1).ilog2();
        let base = low << self.range(0, u64::from(doublings));
        let top = (2 * base).min(high);
        self.range(base.min(top), top)
    }

    /// Returns one of `choices`, all equally likely.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Returns one of `choices` according to their weights.
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

    /// Returns a random subset of `choices`, at least one, with weights from 1 to 64 (swarm
    /// testing).
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
