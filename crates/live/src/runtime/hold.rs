//! Lossless on the way out: who is held back by a full egress queue, and who may go on.

use super::{Runtime, Source};
use crate::ports::reason;
use sanloom_core::time::Instant;

impl Runtime {
    /// The egress queue of a port is full: whoever brought the frame waits from now on.
    pub(super) fn hold(&mut self, source: Source, port: usize) {
        if source == Source::Machine || self.ports[port].holds.contains(&source) {
            return;
        }
        self.ports[port].holds.push(source);
        self.change_held(source, 1);
    }

    /// Lets those go on that a port's egress queue held back, if it has room again. True if there was somebody.
    pub(super) fn release(&mut self, port: usize) -> bool {
        if self.ports[port].holds.is_empty() || !self.ports[port].ethernet.egress.has_room() {
            return false;
        }
        for source in std::mem::take(&mut self.ports[port].holds) {
            self.change_held(source, -1);
        }
        true
    }

    fn change_held(&mut self, source: Source, by: i16) {
        let held = match source {
            Source::Ethernet(port) => &mut self.ports[port].held,
            Source::Storage(system, port) => &mut self.systems[system].ports[usize::from(port)].held,
            Source::Host(number) => match self.host_port_mut(number) {
                Some(port) => &mut port.held,
                None => return,
            },
            Source::Machine => return,
        };
        *held = held.saturating_add_signed(by);
    }

    /// Sends what waits at every port, and discards what has waited for too long. True if somebody may go on who was held back.
    pub(super) fn flush_ports(&mut self, now: Instant) -> bool {
        let mut released = false;
        for number in 0..self.ports.len() {
            let ethernet = &mut self.ports[number].ethernet;
            if ethernet.egress.queue.is_empty() {
                continue;
            }
            if !ethernet.egress.blocked {
                ethernet.flush(&mut self.pool);
            }
            let expired = ethernet.egress.expire(now, self.hold_time, &mut self.pool);
            if expired > 0 {
                tracing::warn!(port = ethernet.name, frames = expired, "hold time over, frames dropped");
                ethernet.count(reason::HOLD_TIME, expired);
            }
            released |= self.release(number);
        }
        released
    }
}
