//! Writes whose back-end session was lost: [`LostWrites`].

use crate::volume::{Claim, Volumes};

/// Claims of lost writes. Each keeps its blocks locked until no back end can still be writing.
#[derive(Debug, Default)]
pub(super) struct LostWrites {
    /// Claim of each lost write, and the back ends that may still be writing.
    writes: Vec<(Claim, Vec<u8>)>,
}

impl LostWrites {
    /// Releases the blocks of an ended task, unless back ends may still be writing.
    pub(super) fn release(&mut self, claim: Claim, writing_at: Vec<u8>, volumes: &mut Volumes) {
        if writing_at.is_empty() {
            return volumes.release(claim);
        }
        volumes.seize(&claim);
        self.writes.push((claim, writing_at));
    }

    /// Returns whether a back end may still be writing.
    pub(super) fn are_pending_at(&self, back: u8) -> bool {
        self.writes.iter().any(|(_, backs)| backs.contains(&back))
    }

    /// Releases the blocks for which only this back end could still be writing. Its lost session
    /// has ended.
    pub(super) fn end_at(&mut self, back: u8, volumes: &mut Volumes) {
        self.writes.retain_mut(|(claim, backs)| {
            backs.retain(|of| *of != back);
            if backs.is_empty() {
                volumes.release(*claim);
            }
            !backs.is_empty()
        });
        debug_assert!(!self.are_pending_at(back), "no write is pending at a back end whose session has ended");
    }
}
