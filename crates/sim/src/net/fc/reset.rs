//! The watchdog of a lane: hold time in the receiver's buffers, and credit recovery by link reset.

use super::lane::End;
use super::observe::Incident;
use super::{FcPlane, Loss, LossSite, channels, deadlock, recovery};
use crate::net::events::Events;
use crate::net::queue::NEVER;

impl FcPlane {
    /// Checks the hold time and the credits of a lane. It runs when a frame may have reached the
    /// hold time, or a sender may have had no credit for E_D_TOV. In a healthy network that is once
    /// per lane and hold time.
    pub(super) fn watchdog(&mut self, events: &mut Events, number: u32) {
        self.lanes[number as usize].watchdog_armed = false;
        let next_hold = self.discard_expired(events, number);
        let next_recovery = self.recover_credit(events, number);
        events.queue.schedule(events.sources.watchdog(number), next_hold.min(next_recovery));
    }

    /// Discards the frames that the lane's receiver has held too long. Returns the time of the next
    /// check.
    fn discard_expired(&mut self, events: &mut Events, number: u32) -> u64 {
        let End::Switch { switch, port } = self.lanes[number as usize].to else { return NEVER };
        let crossbar = &self.switches[usize::from(switch)].crossbar;
        let (now, hold) = (events.now, self.hold_time_ps);
        let Some(oldest) = crossbar.oldest(port) else { return NEVER };
        if oldest + hold > now {
            return oldest + hold;
        }
        debug_assert!(!self.parts.is_divided(), "the network is united before frames are discarded");
        deadlock::note(self, events);
        let late = |b: &super::crossbar::Buffered| b.input == port && b.on_line.at_ps + hold <= now;
        let frames = self.discard(events, switch, Loss::HoldTime, late) as u32;
        self.recorder.incidents.push(Incident::HoldTime { at_ps: now, switch, port, frames });
        let crossbar = &self.switches[usize::from(switch)].crossbar;
        crossbar.oldest(port).map_or(NEVER, |oldest| oldest + hold)
    }

    /// Resets the link if its sender has had no credit for E_D_TOV. Returns the time of the next
    /// check.
    fn recover_credit(&mut self, events: &mut Events, number: u32) -> u64 {
        let now = events.now;
        let lane = &self.lanes[number as usize];
        let channels = self.channels[number as usize].as_ref();
        let since = channels.map_or(lane.credit_wait_since_ps, |channels| channels.waits_since_ps());
        // A sender on a virtual link has no credits; it waits for its Ethernet port.
        if !lane.up || since == NEVER || self.fcoe.has(number) {
            return NEVER;
        }
        let due = since + self.e_d_tov_ps;
        if due > now {
            return due;
        }
        debug_assert!(!self.parts.is_divided(), "the network is united before a link is reset");
        deadlock::note(self, events);
        if let End::Switch { switch, port } = self.lanes[number as usize].to {
            let mut lost = Vec::new();
            let crossbar = &mut self.switches[usize::from(switch)].crossbar;
            crossbar.discard(now, |b| b.input == port && !b.crossed, |b| lost.push(b.on_line.frame));
            for frame in &lost {
                self.count_loss(frame, Loss::LinkReset, LossSite::Receiver(number));
            }
            if !lost.is_empty() {
                self.wake_all(events, switch);
            }
        }
        let in_flight = self.lanes[number as usize].flight.len() as u32 + self.held_by_receiver(number);
        let used = channels::used(self, number);
        recovery::restart(self, number);
        let wake = events.sources.wake(number);
        let lane = &mut self.lanes[number as usize];
        lane.receiver.set_withheld(now, 0);
        lane.receiver.last_ps = 0;
        lane.end_credit_wait(now);
        lane.resets += 1;
        // LR travels out and LRR back: two words and twice the propagation delay.
        let restart = now + 2 * lane.propagation_ps + lane.time_of(8);
        let credits = lane.bb_credit.saturating_sub(in_flight);
        lane.restart_credits(credits, Some(restart));
        if let Some(channels) = &mut self.channels[number as usize] {
            channels.restart(now, used, Some(restart));
        }
        lane.wake_at(&mut events.queue, wake, restart);
        self.recorder.reset(number, lane, credits, now, restart);
        self.recorder.incidents.push(Incident::LinkReset { at_ps: now, lane: number });
        NEVER
    }
}
