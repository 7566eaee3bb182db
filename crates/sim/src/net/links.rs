//! Links that go down and come up, and switches that restart.

use super::frame_ref::FrameRef;
use super::lane::End;
use super::queue::NEVER;
use super::{Loss, Net, Place, Tx};
use sanloom_core::exchange::SeqTx;
use sanloom_wire::{FCtl, FcId, FcType, Header};

/// What waits in the queue of an N_Port.
enum Unsent<'a> {
    /// The rest of a data sequence.
    Data(&'a SeqTx),
    /// A data frame.
    Frame(&'a FrameRef),
    /// A control message, of which parts may have left.
    Message(&'a Header),
}

impl Net {
    /// The link carries light in both directions.
    pub fn link_is_up(&self, link: u16) -> bool {
        self.lanes[2 * usize::from(link)].up
    }

    /// Takes a link down. Frames on it, and those that wait to leave through it, are lost.
    pub fn link_down(&mut self, link: u16) {
        for number in [2 * u32::from(link), 2 * u32::from(link) + 1] {
            let now = self.now;
            let wake = self.wake_source(number);
            let lane = &mut self.lanes[number as usize];
            if !lane.up {
                continue;
            }
            lane.up = false;
            lane.fed(now);
            lane.restart_credits(0, None);
            lane.receiver.keep(now, 0);
            lane.receiver.last_ps = 0;
            let from = lane.from;
            // A link that comes up again starts with all credits: none is missing any more.
            if let Some(fault) = &mut self.faults[number as usize] {
                fault.credits_missing = 0;
            }
            let lane = &mut self.lanes[number as usize];
            let arrival_ps = lane.flight.next_ps();
            self.queue.move_event(number, arrival_ps, NEVER);
            lane.wake_at(&mut self.queue, wake, NEVER);
            let flight: Vec<FrameRef> = lane.flight.take();
            for frame in &flight {
                self.lose(frame, Loss::LinkDown, Place::Line(number));
            }
            match from {
                End::NPort(nport) => self.forget_waiting(nport),
                End::Switch { switch, port } => self.forget_output(switch, port),
            }
            self.observe_light(number);
        }
    }

    /// Brings a link up: both senders get a credit for each receive buffer that is free.
    pub fn link_up(&mut self, link: u16) {
        for number in [2 * u32::from(link), 2 * u32::from(link) + 1] {
            let held = self.held_by_receiver(number);
            let lane = &mut self.lanes[number as usize];
            if lane.up {
                continue;
            }
            lane.up = true;
            let credits = lane.bb_credit - held.min(lane.bb_credit);
            lane.restart_credits(credits, None);
            lane.restart_zero_credit(self.now);
            if let End::NPort(nport) = lane.from {
                self.nports[usize::from(nport)].not_before_ps = 0;
            }
            self.observe_light(number);
        }
        self.try_send(2 * u32::from(link));
        self.try_send(2 * u32::from(link) + 1);
    }

    /// Restarts a switch: every frame in it is lost.
    pub fn reset_switch(&mut self, switch: u16) {
        let mut lost = Vec::new();
        let plane = &mut self.switches[usize::from(switch)];
        plane.crossbar.discard(self.now, |_| true, |buffered| lost.push(buffered));
        for buffered in &lost {
            let place = self.switches[usize::from(switch)].place(switch, buffered.input);
            self.lose(&buffered.on_line.frame, Loss::SwitchReset, place);
        }
    }

    /// Receive buffers at the end of a lane that hold a frame.
    pub fn held_by_receiver(&self, number: u32) -> u32 {
        match self.lanes[number as usize].to {
            End::Switch { switch, port } => self.switches[usize::from(switch)].crossbar.occupancy(port),
            End::NPort(nport) => self.nports[usize::from(nport)].held,
        }
    }

    /// Frames that wait for a port whose line is gone are lost, unless another line of the bundle can take them.
    fn forget_output(&mut self, switch: u16, port: u16) {
        let plane = &self.switches[usize::from(switch)];
        let output = plane.output_of[usize::from(port)];
        let others = plane.members[usize::from(output)].iter();
        if others.filter_map(|&p| plane.tx_lane(p)).any(|lane| self.lanes[lane as usize].up) {
            self.wake_output(switch, output);
            return;
        }
        self.discard(switch, Loss::LinkDown, |buffered| buffered.output == output);
    }

    /// Discards frames out of the input buffers of a switch; their credits go back.
    pub(super) fn discard(
        &mut self,
        switch: u16,
        why: Loss,
        which: impl FnMut(&super::crossbar::Buffered) -> bool,
    ) -> usize {
        let mut lost = Vec::new();
        let plane = &mut self.switches[usize::from(switch)];
        plane.crossbar.discard(self.now, which, |buffered| lost.push(buffered));
        for buffered in &lost {
            let plane = &self.switches[usize::from(switch)];
            let place = plane.place(switch, buffered.input);
            self.lose(&buffered.on_line.frame, why, place);
            let plane = &self.switches[usize::from(switch)];
            let lane = plane.rx.get(usize::from(buffered.input)).copied();
            if let Some(lane) = lane.filter(|&lane| lane != super::NO_LANE) {
                self.return_credit(lane, self.now.max(buffered.on_line.tail_ps()));
            }
        }
        if !lost.is_empty() {
            self.wake_all(switch);
        }
        lost.len()
    }

    /// Frames have left the buffers of a switch out of turn: others may go now.
    pub(super) fn wake_all(&mut self, switch: u16) {
        let outputs = self.switches[usize::from(switch)].members.len() as u16;
        for output in 0..outputs {
            if self.switches[usize::from(switch)].crossbar.waits(output) {
                self.wake_output(switch, output);
            }
        }
    }

    fn forget_waiting(&mut self, nport: u16) {
        let plane = &mut self.nports[usize::from(nport)];
        plane.paused = false;
        for item in std::mem::take(&mut plane.waiting) {
            if let Tx::Message(tx) = item {
                self.messages.abandon(tx);
            }
        }
    }

    /// Data of an exchange that an N_Port has not sent yet will not be sent; `from_responder` tells whose number counts.
    /// `s_id`: the address whose exchange it is, where several send through the N_Port.
    pub fn forget_exchange(&mut self, nport: u16, s_id: Option<FcId>, ox_id: u16, rx_id: u16, from_responder: bool) {
        let meant = |of: FcId, ox: u16, rx: u16| {
            s_id.is_none_or(|s_id| s_id == of) && if from_responder { rx == rx_id } else { ox == ox_id }
        };
        self.forget(nport, |unsent| match unsent {
            Unsent::Data(seq) => seq.from_responder == from_responder && meant(seq.s_id, seq.ox_id, seq.rx_id),
            Unsent::Frame(frame) => {
                frame.from_responder() == from_responder && meant(frame.s_id(), frame.ox_id(), frame.rx_id())
            }
            Unsent::Message(_) => false,
        });
    }

    /// What an N_Port was going to answer to another port, in one exchange or (`None`) in all, will not be sent: data, and
    /// FCP messages. The exchange was aborted, or the login is gone.
    pub fn forget_answers(&mut self, nport: u16, to: FcId, ox_id: Option<u16>) {
        let meant = |d_id: FcId, of: u16| d_id == to && ox_id.is_none_or(|ox_id| ox_id == of);
        self.forget(nport, |unsent| match unsent {
            Unsent::Data(seq) => seq.from_responder && meant(seq.d_id, seq.ox_id),
            Unsent::Frame(frame) => frame.from_responder() && meant(frame.d_id(), frame.ox_id()),
            Unsent::Message(header) => {
                let answer = header.fc_type == FcType::FCP && header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
                answer && meant(header.d_id, header.ox_id)
            }
        });
    }

    /// Nothing that one of the ports behind an N_Port has not sent yet will be sent, because it is not there any more: data
    /// from its address, and messages with a header of its own.
    pub fn forget_source(&mut self, nport: u16, s_id: FcId, is_source: impl Fn(&Header) -> bool) {
        self.forget(nport, |unsent| match unsent {
            Unsent::Data(seq) => seq.s_id == s_id,
            Unsent::Frame(frame) => frame.s_id() == s_id,
            Unsent::Message(header) => is_source(header),
        });
    }

    /// Takes what is meant out of the queue of an N_Port.
    fn forget(&mut self, nport: u16, meant: impl Fn(Unsent<'_>) -> bool) {
        let plane = &mut self.nports[usize::from(nport)];
        let messages = &mut self.messages;
        let before = plane.waiting.len();
        plane.waiting.retain(|item| match item {
            Tx::Data(seq) => !meant(Unsent::Data(seq)),
            Tx::Frame(frame) => !meant(Unsent::Frame(frame)),
            Tx::Message(tx) => {
                let gone = messages.get(tx.number).is_some_and(|frame| meant(Unsent::Message(&frame.header)));
                if gone {
                    messages.abandon(*tx);
                }
                !gone
            }
        });
        if plane.waiting.len() != before {
            plane.paused = false;
        }
    }

    /// The credits of every lane add up: those at hand, on their way back, used by frames on the line and in the
    /// receiver's buffers, and lost or withheld by a fault. Returns the first lane that does not add up.
    ///
    /// # Errors
    ///
    /// The number of that lane.
    pub fn check_credits(&self) -> Result<(), u32> {
        for (number, lane) in self.lanes.iter().enumerate() {
            if !lane.up {
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
            if sum != lane.bb_credit {
                return Err(number as u32);
            }
        }
        Ok(())
    }
}
