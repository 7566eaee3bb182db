//! Links that go down and come up, and faults.

use super::line::LineErrors;
use super::packet::PRIORITIES;
use super::{EthernetPlane, ObservedKind, PacketLoss, Station};
use crate::net::events::Events;
use crate::net::queue::NEVER;

impl EthernetPlane {
    /// Takes a link down or brings it up. Frames on the line and frames queued for it are lost.
    pub(in crate::net) fn set_link(&mut self, events: &mut Events, link: u32, up: bool) {
        if self.lines[2 * link as usize].up == up {
            return;
        }
        for number in [2 * link, 2 * link + 1] {
            self.lines[number as usize].up = up;
            self.record(number, events.now, ObservedKind::Light { up });
            if !up {
                self.clear(events, number);
            }
        }
        self.find_routes();
        for number in [2 * link, 2 * link + 1] {
            let pausing = self.pausing(number);
            if up && pausing != 0 {
                self.announce(events, number, pausing);
            }
        }
    }

    fn clear(&mut self, events: &mut Events, number: u32) {
        let line = &mut self.lines[number as usize];
        line.pauses.clear(events.now);
        line.egress.take_pause();
        let on_line = std::mem::take(&mut line.flight);
        let from = line.from;
        events.queue.schedule(events.sources.ethernet_arrival(number), NEVER);
        self.wake_at(events, number, NEVER);
        for on_line in on_line.iter().filter(|on_line| on_line.packet.paused().is_none()) {
            self.lose(events.now, number, on_line.packet, PacketLoss::LinkDown);
        }
        for priority in 0..PRIORITIES {
            while let Some(queued) = self.lines[number as usize].egress.pop(priority) {
                self.lose(events.now, number, queued.packet, PacketLoss::LinkDown);
                if let Station::Switch { switch, .. } = from {
                    self.free(events, switch, &queued);
                }
            }
        }
    }

    /// Lets the sender of a line ignore pauses of some priorities, a mask. Pauses of the whole link
    /// stop it anyway.
    pub fn ignore_pauses(&mut self, line: u32, priorities: u8) {
        let line = &mut self.lines[line as usize];
        if !line.pauses_link {
            line.obeys &= !priorities;
        }
    }

    /// Returns the faults of a line.
    pub fn errors_mut(&mut self, line: u32) -> &mut LineErrors {
        &mut self.lines[line as usize].errors
    }

    /// Lets an interface pause the priorities in `busy`, because its receive buffers are full.
    pub(in crate::net) fn set_busy(&mut self, events: &mut Events, interface: u16, busy: u8) {
        let before = std::mem::replace(&mut self.busy[usize::from(interface)], busy);
        if before != busy {
            self.announce(events, self.interface_tx[usize::from(interface)] ^ 1, before | busy);
        }
    }

    /// Lets an interface pause the priorities in `storm`, and no other ones, until the next call.
    pub(in crate::net) fn set_storm(&mut self, events: &mut Events, interface: u16, storm: u8) {
        let before = std::mem::replace(&mut self.storms[usize::from(interface)], storm);
        let number = self.interface_tx[usize::from(interface)] ^ 1;
        if before != storm {
            self.announce(events, number, before | storm);
        }
    }
}
