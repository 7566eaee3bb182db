//! Links that go down and come up, and restarts of switches.

use super::frame_ref::FrameRef;
use super::lane::End;
use super::{FcPlane, Loss, LossSite, channels, loops, recovery};
use crate::net::events::Events;
use crate::net::fcoe;
use crate::net::queue::NEVER;

impl FcPlane {
    /// Returns whether the link carries light in both directions.
    pub fn link_is_up(&self, link: u16) -> bool {
        self.lanes[2 * usize::from(link)].up
    }

    /// Takes a link down. Frames on the link and frames queued for it are lost.
    pub(in crate::net) fn link_down(&mut self, events: &mut Events, link: u16) {
        for number in [2 * u32::from(link), 2 * u32::from(link) + 1] {
            let now = events.now;
            let wake = events.sources.wake(number);
            let lane = &mut self.lanes[number as usize];
            if !lane.up {
                continue;
            }
            lane.up = false;
            lane.end_credit_wait(now);
            lane.restart_credits(0, None);
            lane.receiver.set_withheld(now, 0);
            lane.receiver.last_ps = 0;
            let from = lane.from;
            if let Some(channels) = &mut self.channels[number as usize] {
                channels.clear(now);
            }
            // A link that comes up again starts with all credits, so lost credits are restored.
            recovery::restart(self, number);
            let lane = &mut self.lanes[number as usize];
            let arrival_ps = lane.flight.next_ps();
            events.queue.move_event(events.sources.arrival(number), arrival_ps, NEVER);
            lane.wake_at(&mut events.queue, wake, NEVER);
            let flight: Vec<FrameRef> = lane.flight.take();
            let has_buffer = self.fcoe.has(number);
            for frame in &flight {
                if has_buffer {
                    fcoe::free(self, events, number);
                }
                self.count_loss(frame, Loss::LinkDown, LossSite::Line(number));
            }
            fcoe::cut(self, number);
            match from {
                End::NPort(nport) => self.nports[usize::from(nport)].queue.clear(&mut self.messages),
                End::Switch { switch, port } => self.discard_output(events, switch, port),
                End::Loop { .. } => {}
            }
            self.recorder.light(number, &self.lanes[number as usize], events.now);
        }
    }

    /// Brings a link up. Both senders get one credit for each free receive buffer.
    pub(in crate::net) fn link_up(&mut self, events: &mut Events, link: u16) {
        for number in [2 * u32::from(link), 2 * u32::from(link) + 1] {
            // The credits of a virtual link are places in its Ethernet port.
            let held = if self.fcoe.has(number) { 0 } else { self.held_by_receiver(number) };
            let lane = &mut self.lanes[number as usize];
            if lane.up {
                continue;
            }
            lane.up = true;
            let credits = lane.bb_credit - held.min(lane.bb_credit);
            lane.restart_credits(credits, None);
            lane.restart_zero_credit(events.now);
            let by_channel = channels::held(self, &self.lanes[number as usize]);
            if let Some(channels) = &mut self.channels[number as usize] {
                channels.restart(events.now, by_channel, None);
            }
            let lane = &self.lanes[number as usize];
            if let End::NPort(nport) = lane.from {
                self.nports[usize::from(nport)].queue.end_pause();
            }
            self.recorder.light(number, &self.lanes[number as usize], events.now);
        }
        // Frames cross a loop after its initialisation.
        if !self.lanes[2 * usize::from(link)].on_loop {
            self.try_send(events, 2 * u32::from(link));
            self.try_send(events, 2 * u32::from(link) + 1);
        }
    }

    /// Discards every frame in a switch that restarts.
    pub(in crate::net) fn reset_switch(&mut self, events: &mut Events, switch: u16) {
        let mut lost = Vec::new();
        let plane = &mut self.switches[usize::from(switch)];
        plane.crossbar.discard(events.now, |_| true, |buffered| lost.push(buffered));
        for buffered in &lost {
            let plane = &self.switches[usize::from(switch)];
            let site = plane.loss_site(switch, buffered.input);
            // A virtual link keeps its receive buffer, and has no credits that restart with it.
            let lane = plane.rx_lane(buffered.input).filter(|&lane| !buffered.crossed && self.fcoe.has(lane));
            self.count_loss(&buffered.on_line.frame, Loss::SwitchReset, site);
            lane.into_iter().for_each(|lane| fcoe::free(self, events, lane));
        }
    }

    /// Returns the number of receive buffers at the end of a lane that hold a frame.
    pub fn held_by_receiver(&self, number: u32) -> u32 {
        match self.lanes[number as usize].to {
            End::Switch { switch, port } => self.switches[usize::from(switch)].crossbar.occupancy(port),
            End::NPort(nport) => self.nports[usize::from(nport)].buffers.held(),
            End::Loop { .. } => loops::held(self, number),
        }
    }

    /// Discards the frames queued for a port whose line is down, unless another line of its bundle
    /// is up.
    fn discard_output(&mut self, events: &mut Events, switch: u16, port: u16) {
        let plane = &self.switches[usize::from(switch)];
        let output = plane.output_of[usize::from(port)];
        let others = plane.members[usize::from(output)].iter();
        if others.filter_map(|&p| plane.tx_lane(p)).any(|lane| self.lanes[lane as usize].up) {
            self.wake_output(events, switch, output);
            return;
        }
        let outputs: Vec<u16> = plane.outputs_of(output).collect();
        self.discard(events, switch, Loss::LinkDown, |buffered| outputs.contains(&buffered.output));
    }

    /// Discards frames from the input buffers of a switch and returns their credits.
    pub(super) fn discard(
        &mut self,
        events: &mut Events,
        switch: u16,
        why: Loss,
        which: impl FnMut(&super::crossbar::Buffered) -> bool,
    ) -> usize {
        let mut lost = Vec::new();
        let plane = &mut self.switches[usize::from(switch)];
        plane.crossbar.discard(events.now, which, |buffered| lost.push(buffered));
        for buffered in &lost {
            let plane = &self.switches[usize::from(switch)];
            let site = plane.loss_site(switch, buffered.input);
            self.count_loss(&buffered.on_line.frame, why, site);
            let plane = &mut self.switches[usize::from(switch)];
            if why == Loss::HoldTime
                && let Some(&port) = plane.members[usize::from(buffered.output)].first()
            {
                plane.timeouts[usize::from(port)] += 1;
            }
            // A frame that has crossed has freed its receive buffer.
            if let Some(lane) = plane.rx_lane(buffered.input).filter(|_| !buffered.crossed) {
                let channel = buffered.on_line.frame.channel();
                channels::return_credit(self, events, lane, events.now.max(buffered.on_line.tail_ps()), channel);
            }
        }
        if !lost.is_empty() {
            self.wake_all(events, switch);
        }
        lost.len()
    }

    /// Retries all outputs with queued frames after frames were removed out of order.
    pub(super) fn wake_all(&mut self, events: &mut Events, switch: u16) {
        let outputs = self.switches[usize::from(switch)].members.len() as u16;
        for output in 0..outputs {
            if self.switches[usize::from(switch)].crossbar.waits(output) {
                self.wake_output(events, switch, output);
            }
        }
    }

    /// Checks that the credits of every lane add up to the granted credits. The terms are:
    /// available, returning, used by frames on the line or in the receiver's buffers, and lost or
    /// withheld because of a fault. The same holds for each virtual channel.
    ///
    /// # Errors
    ///
    /// The number of the first lane whose credits do not add up.
    pub fn check_credits(&self) -> Result<(), u32> {
        for (number, lane) in self.lanes.iter().enumerate() {
            if !lane.up || lane.on_loop || self.fcoe.has(number as u32) {
                continue;
            }
            let held = self.held_by_receiver(number as u32);
            let lost = self.faults[number].as_ref().map_or(0, |fault| fault.credits_missing);
            let sum = lane.credits
                + lane.credits_returning()
                + lane.flight.len() as u32
                + held
                + lost
                + lane.receiver.withheld;
            if sum != lane.bb_credit || !channels::adds_up(self, number as u32) {
                return Err(number as u32);
            }
        }
        Ok(())
    }
}
