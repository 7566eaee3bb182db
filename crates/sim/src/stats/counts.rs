//! Many counts in little memory: [`Counts`].

/// Counts of equal kind, in four bytes each while all of them fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Counts {
    /// All are below 2^32.
    Small(Box<[u32]>),
    /// Some may be more.
    Large(Box<[u64]>),
}

impl Counts {
    /// What `now` counts more than `before`, 0 where it counts less. Both are equally long.
    pub fn since(now: &[u64], before: &[u64]) -> Counts {
        let more = || now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before));
        match more().all(|count| u32::try_from(count).is_ok()) {
            true => Counts::Small(more().map(|count| count as u32).collect()),
            false => Counts::Large(more().collect()),
        }
    }

    /// So many counts of nothing.
    pub fn zeros(length: usize) -> Counts {
        Counts::Small(vec![0; length].into())
    }

    /// The count at a place.
    pub fn get(&self, at: usize) -> u64 {
        match self {
            Counts::Small(counts) => u64::from(counts[at]),
            Counts::Large(counts) => counts[at],
        }
    }

    /// Adds counts, each to the one at the same place.
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
    fn sums_that_need_more_room_take_it() {
        let mut counts = Counts::since(&[7, u64::from(u32::MAX)], &[5, 0]);
        assert!(matches!(counts, Counts::Small(_)));
        counts.add(&Counts::since(&[3, 1], &[4, 0]));
        assert_eq!(counts, Counts::Large(vec![2, 1 << 32].into()));
        assert_eq!((counts.get(0), counts.get(1)), (2, 1 << 32));
    }
}
