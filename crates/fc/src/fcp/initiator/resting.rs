//! Resting exchange numbers: their commands have ended, but their frames may still be in flight.

use super::super::timers::{Timed, Timer, Timers};
use super::{FcId, MAX_EXCHANGES};
use sanloom_scsi::time::Instant;

/// State of a resting number; see the diagram of the initiator module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Free,
    Resting {
        /// True if the target keeps the exchange number until RRQ.
        reinstate: bool,
    },
    /// RRQ is in flight; `tries` counts the transmissions.
    Reinstating {
        tries: u8,
    },
}

/// Timer lists; each has one timeout for all numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    Rest,
    Reinstate,
}

impl List {
    const COUNT: usize = 2;
}

#[derive(Clone, Debug)]
pub(super) struct Rest {
    timer: Timer,
    pub(super) d_id: FcId,
    pub(super) ox_id: u16,
    pub(super) rx_id: u16,
    pub(super) stage: Stage,
}

impl Timed for Rest {
    fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }
    fn peek(&self) -> &Timer {
        &self.timer
    }
}

/// All resting numbers. Their indices have no meaning.
#[derive(Debug)]
pub(super) struct Resting {
    entries: Vec<Rest>,
    free: Vec<u16>,
    timers: Timers<{ List::COUNT }>,
    /// For each OX_ID, the index of its entry plus one, or 0 if it does not rest. Not allocated
    /// before the first one.
    numbers: Vec<u16>,
}

impl Resting {
    pub(super) const fn new() -> Resting {
        Resting { entries: Vec::new(), free: Vec::new(), timers: Timers::new(), numbers: Vec::new() }
    }

    #[inline]
    pub(super) fn contains(&self, ox_id: u16) -> bool {
        self.numbers.get(usize::from(ox_id)).is_some_and(|&entry| entry != 0)
    }

    pub(super) fn begin(&mut self, deadline: Instant, d_id: FcId, ox_id: u16, rx_id: u16, reinstate: bool) {
        debug_assert!(self.find(ox_id).is_none(), "OX_ID {ox_id:#x} rests twice");
        let rest = Rest { timer: Timer::unarmed(), d_id, ox_id, rx_id, stage: Stage::Resting { reinstate } };
        let index = match self.free.pop() {
            Some(index) => {
                self.entries[usize::from(index)] = rest;
                index
            }
            None => {
                self.entries.push(rest);
                (self.entries.len() - 1) as u16
            }
        };
        self.numbers.resize(usize::from(MAX_EXCHANGES), 0);
        self.numbers[usize::from(ox_id)] = index + 1;
        self.arm(index, List::Rest, deadline);
    }

    /// Ends the rest and returns the number, which can be used again.
    pub(super) fn end(&mut self, index: u16) -> u16 {
        self.timers.cancel(&mut self.entries, index);
        let rest = &mut self.entries[usize::from(index)];
        debug_assert_ne!(rest.stage, Stage::Free, "the rest of OX_ID {:#x} ends twice", rest.ox_id);
        rest.stage = Stage::Free;
        let ox_id = rest.ox_id;
        self.numbers[usize::from(ox_id)] = 0;
        self.free.push(index);
        ox_id
    }

    /// Index of a resting number.
    pub(super) fn find(&self, ox_id: u16) -> Option<u16> {
        self.numbers.get(usize::from(ox_id))?.checked_sub(1)
    }

    pub(super) fn arm(&mut self, index: u16, list: List, deadline: Instant) {
        self.timers.arm(&mut self.entries, index, list as u8, deadline);
    }

    /// Removes a number with an expired deadline from its timer list and returns its index.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u16> {
        self.timers.pop_due(&mut self.entries, now).map(|(_, index)| index)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.timers.next(&self.entries)
    }

    pub(super) fn entry_count(&self) -> u16 {
        self.entries.len() as u16
    }

    pub(super) fn get(&mut self, index: u16) -> &mut Rest {
        &mut self.entries[usize::from(index)]
    }
}
