//! Lanes of virtual links: the seam between this plane and [`crate::net::fcoe`].

use super::FcPlane;
use super::flight::Entry;
use super::frame_ref::FrameRef;
use super::lane::{Lane, Sent};
use crate::net::events::Events;
use crate::net::fcoe;
use crate::net::line::ByteTime;
use crate::net::queue::NEVER;

impl Lane {
    /// Makes the lane one of a virtual link.
    pub(in crate::net) fn carry_over_ethernet(&mut self) {
        (self.special, self.entry) = (true, Entry::Whole);
    }

    /// Sets the rate of the line to one of Ethernet.
    pub fn with_byte_time(mut self, byte: ByteTime) -> Lane {
        self.set_byte_time(byte);
        self
    }
}

impl FcPlane {
    /// Sends a frame on a lane of a virtual link.
    #[inline(never)]
    pub(super) fn send_over_ethernet(&mut self, events: &mut Events, number: u32, frame: FrameRef, sent: Sent) {
        if self.lanes[number as usize].watched {
            self.recorder.frame(number, &self.lanes[number as usize], &self.messages, frame, sent);
            self.recorder.stamp(self.parts.turn(events.now));
        }
        fcoe::send(self, events, number, frame, sent);
    }

    /// Lets a frame arrive at the end of a lane of a virtual link, after the latency of its switch.
    pub(in crate::net) fn land(&mut self, events: &mut Events, number: u32, frame: FrameRef) {
        let lane = &mut self.lanes[number as usize];
        let on_line = fcoe::landed(frame, events.now, lane.latency_ps);
        if lane.flight.push(on_line) {
            events.queue.add(events.sources.arrival(number), on_line.at_ps);
        }
    }

    /// Frees a place in the Ethernet port of the sender of a lane.
    pub(in crate::net) fn place_is_free(&mut self, events: &mut Events, number: u32) {
        let lane = &mut self.lanes[number as usize];
        if !lane.up {
            return;
        }
        lane.expect_credit(events.now);
        if lane.credit_wait_since_ps != NEVER {
            lane.wake_by(&mut events.queue, events.sources.wake(number), events.now);
        }
    }
}
