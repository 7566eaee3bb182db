//! Exchange numbers that rest: their commands have ended, but frames of theirs may still be under way.

use super::super::timers::{Timed, Timer, Timers};
use super::{FcId, MAX_EXCHANGES};
use crate::time::Instant;

/// Where a resting number stands; the module's picture shows the ways between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Free,
    Resting {
        /// The target keeps the exchange number until RRQ.
        reinstate: bool,
    },
    /// RRQ is under way, and was sent so often.
    Reinstating {
        tries: u8,
    },
}

/// The kinds of waiting, each as long for every number.
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

/// All numbers that rest. Their places are of no meaning.
#[derive(Debug)]
pub(super) struct Resting {
    places: Vec<Rest>,
    free: Vec<u16>,
    timers: Timers<{ List::COUNT }>,
    /// One bit for each number, none before the first one rests.
    numbers: Vec<u64>,
}

impl Resting {
    pub(super) const fn new() -> Resting {
        Resting { places: Vec::new(), free: Vec::new(), timers: Timers::new(), numbers: Vec::new() }
    }

    #[inline]
    pub(super) fn contains(&self, ox_id: u16) -> bool {
        self.numbers.get(usize::from(ox_id / 64)).is_some_and(|word| word >> (ox_id % 64) & 1 != 0)
    }

    pub(super) fn begin(&mut self, deadline: Instant, d_id: FcId, ox_id: u16, rx_id: u16, reinstate: bool) {
        self.numbers.resize(usize::from(MAX_EXCHANGES / 64), 0);
        self.numbers[usize::from(ox_id / 64)] |= 1 << (ox_id % 64);
        let rest = Rest { timer: Timer::unarmed(), d_id, ox_id, rx_id, stage: Stage::Resting { reinstate } };
        let place = match self.free.pop() {
            Some(place) => {
                self.places[usize::from(place)] = rest;
                place
            }
            None => {
                self.places.push(rest);
                (self.places.len() - 1) as u16
            }
        };
        self.arm(place, List::Rest, deadline);
    }

    /// The number can be used again.
    pub(super) fn end(&mut self, place: u16) {
        self.timers.cancel(&mut self.places, place);
        let rest = &mut self.places[usize::from(place)];
        rest.stage = Stage::Free;
        self.numbers[usize::from(rest.ox_id / 64)] &= !(1 << (rest.ox_id % 64));
        self.free.push(place);
    }

    /// Where a number rests. All places are searched: this is asked once for an abort.
    pub(super) fn find(&self, ox_id: u16) -> Option<u16> {
        let here = |rest: &Rest| rest.stage != Stage::Free && rest.ox_id == ox_id;
        self.places.iter().position(here).map(|place| place as u16)
    }

    pub(super) fn arm(&mut self, place: u16, list: List, deadline: Instant) {
        self.timers.arm(&mut self.places, place, list as u8, deadline);
    }

    /// Takes out one number that has waited long enough.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u16> {
        self.timers.pop_due(&mut self.places, now).map(|(_, place)| place)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.timers.next(&self.places)
    }

    pub(super) fn places(&self) -> u16 {
        self.places.len() as u16
    }

    pub(super) fn get(&mut self, place: u16) -> &mut Rest {
        &mut self.places[usize::from(place)]
    }
}
