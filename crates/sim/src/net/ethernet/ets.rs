//! Enhanced transmission selection (IEEE 802.1Q clause 37): the choice of the next priority.

use super::packet::PRIORITIES;

/// Scheduler of a port: strict priorities first, the highest one before the others, then deficit
/// round robin (Shreedhar and Varghese, SIGCOMM 1995) by share.
#[derive(Clone, Debug)]
pub struct Ets {
    strict: u8,
    /// Bytes that a priority may send per round; 0 for a strict one.
    quantum_bytes: [u32; PRIORITIES],
    deficit_bytes: [u32; PRIORITIES],
    /// Priority whose turn it is.
    turn: u8,
    /// True if the priority whose turn it is has got its quantum.
    is_granted: bool,
}

impl Ets {
    /// Returns a scheduler. `shares` are in percent; a priority without a share is strict.
    /// `longest_bytes` is the longest frame: the smallest quantum.
    pub fn new(shares: [u8; PRIORITIES], longest_bytes: u16) -> Ets {
        let least = shares.iter().copied().filter(|&share| share > 0).min().unwrap_or(1);
        let quantum = |share: u8| u32::from(share) * u32::from(longest_bytes) / u32::from(least);
        let strict =
            (0..PRIORITIES).filter(|&priority| shares[priority] == 0).fold(0, |mask, priority| mask | 1 << priority);
        Ets { strict, quantum_bytes: shares.map(quantum), deficit_bytes: [0; PRIORITIES], turn: 0, is_granted: false }
    }

    /// Returns the priority that sends next. `ready` are the priorities whose first frame may
    /// begin; `first_bytes` returns its length.
    pub fn choose(&mut self, ready: u8, first_bytes: impl Fn(usize) -> u32) -> Option<usize> {
        if ready == 0 {
            return None;
        }
        let strict = ready & self.strict;
        if strict != 0 {
            return Some(7 - strict.leading_zeros() as usize);
        }
        loop {
            let priority = usize::from(self.turn);
            if ready & 1 << priority != 0 {
                if !self.is_granted {
                    self.is_granted = true;
                    self.deficit_bytes[priority] += self.quantum_bytes[priority];
                }
                let bytes = first_bytes(priority);
                if bytes <= self.deficit_bytes[priority] {
                    self.deficit_bytes[priority] -= bytes;
                    return Some(priority);
                }
            }
            self.turn = (self.turn + 1) % PRIORITIES as u8;
            self.is_granted = false;
        }
    }

    /// Takes the deficit of a priority whose queue has become empty.
    #[inline]
    pub fn is_empty(&mut self, priority: usize) {
        self.deficit_bytes[priority] = 0;
        if usize::from(self.turn) == priority {
            self.turn = (self.turn + 1) % PRIORITIES as u8;
            self.is_granted = false;
        }
    }
}
