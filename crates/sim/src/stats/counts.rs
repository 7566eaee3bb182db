//! Compact vectors of counts: [`Counts`].

/// A vector of counts with four bytes per count while all of them fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Counts {
    /// All counts are below 2^32.
    Small(Box<[u32]>),
    /// At least one count may be 2^32 or more.
    Large(Box<[u64]>),
}

impl Counts {
    /// Returns `now` - `before`, element by element, and 0 where `now` is smaller. Both must have
    /// the same length.
    pub fn since(now: &[u64], before: &[u64]) -> Counts {
        let more = || now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before));
        match more().all(|count| u32::try_from(count).is_ok()) {
            true => Counts::Small(more().map(|count| count as u32).collect()),
            false => Counts::Large(more().collect()),
        }
    }

    /// Returns `length` counts of 0.
    pub fn zeros(length: usize) -> Counts {
        Counts::Small(vec![0; length].into())
    }

    /// Returns the count at index `at`.
    pub fn get(&self, at: usize) -> u64 {
        match self {
            Counts::Small(counts) => u64::from(counts[at]),
            Counts::Large(counts) => counts[at],
        }
    }

    /// Adds the counts of `others`, element by element.
    pub fn add(&mut self, others: &Counts) {
        let length = match self {
            Counts::Small(counts) => counts.len(),
            Counts::Large(counts) => counts.len(),
        };
        let sums: Vec<u64> = (0..length).map(|at| self.get(at) + others.get(at)).collect();
        *self = Counts::since(&sums, &vec![0; length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_above_32_bits_widens_the_counts() {
        let mut counts = Counts::since(&[7, u64::from(u32::MAX)], &[5, 0]);
        assert!(matches!(counts, Counts::Small(_)));
        counts.add(&Counts::since(&[3, 1], &[4, 0]));
        assert_eq!(counts, Counts::Large(vec![2, 1 << 32].into()));
        assert_eq!((counts.get(0), counts.get(1)), (2, 1 << 32));
    }
}
