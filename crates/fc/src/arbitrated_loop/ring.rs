//! Distances on a ring of ports.

use super::config::LoopConfig;
use super::time::LoopTime;

/// Propagation times between the transmitters of a loop.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// Time from the transmitter of port 0 to that of each port.
    offset: Vec<LoopTime>,
    /// Delay of each port, from receiver to transmitter.
    delay: Vec<LoopTime>,
    /// Time of a whole round.
    round: LoopTime,
}

impl Ring {
    pub(super) fn new(config: &LoopConfig) -> Ring {
        let word = config.rate.word();
        let delay: Vec<LoopTime> = config.ports.iter().map(|port| word.times(port.delay_words.into())).collect();
        let mut offset = Vec::with_capacity(delay.len());
        let mut at = LoopTime::ZERO;
        for (index, port) in config.ports.iter().enumerate() {
            offset.push(at);
            let next = delay[(index + 1) % delay.len()];
            at = at + port.cable + next;
        }
        Ring { offset, delay, round: at }
    }
    pub(super) fn len(&self) -> usize {
        self.delay.len()
    }
    /// Time from the transmitter of `from` to the transmitter of `to`; a whole round if both are
    /// the same port.
    pub(super) fn between(&self, from: usize, to: usize) -> LoopTime {
        let (from_at, to_at) = (self.offset[from], self.offset[to]);
        if from < to { to_at - from_at } else { to_at + self.round - from_at }
    }
    /// Time from the transmitter of `from` to the receiver of `to`.
    pub(super) fn to_receiver(&self, from: usize, to: usize) -> LoopTime {
        self.between(from, to) - self.delay[to]
    }
    pub(super) fn delay(&self, port: usize) -> LoopTime {
        self.delay[port]
    }
    /// True if a word from `from` passes `port` before it reaches `to`.
    pub(super) fn is_inside(&self, from: usize, port: usize, to: usize) -> bool {
        port != from && port != to && self.between(from, port) < self.between(from, to)
    }
}
