//! Error recovery of an initiator: ABTS, resting OX_IDs, and RRQ (FCP, error recovery; FC-FS, ABTS
//! protocol).

use super::exchange::{Exchange, List, State};
use super::resting::{self, Stage};
use super::{AbortReason, FcpInitiator, MAX_EXCHANGES, Outcome};
use sanloom_scsi::time::Instant;
use sanloom_wire::bls::{BaAcc, Bls};
use sanloom_wire::els::{Els, ExchangeRef};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::{FcId, Header, Message};

/// Maximum number of transmissions of an ABTS or RRQ.
const MAX_TRIES: u8 = 3;

impl FcpInitiator {
    /// Enters [`State::Aborting`]; no other function does.
    pub(super) fn abort(&mut self, now: Instant, slot: u16, reason: AbortReason) {
        let exchange = &mut self.exchanges[usize::from(slot)];
        exchange.state = State::Aborting(reason);
        exchange.tries = 0;
        self.send_abts(now, slot);
    }

    /// Aborts the command with this tag, if it is in progress.
    pub(super) fn recall(&mut self, now: Instant, tag: u64) {
        let is_it =
            |exchange: &Exchange| exchange.tag == tag && matches!(exchange.state, State::Active | State::Holding);
        if let Some(slot) = self.exchanges.iter().position(is_it) {
            self.abort(now, slot as u16, AbortReason::Recalled);
        }
    }

    fn send_abts(&mut self, now: Instant, slot: u16) {
        let exchange = &mut self.exchanges[usize::from(slot)];
        exchange.tries += 1;
        let (d_id, ox_id, rx_id, seq_id) = (exchange.d_id, exchange.ox_id, exchange.rx_id, exchange.next_seq_id());
        self.counters.abts_sent += 1;
        let timeout = self.config.recovery.map_or(self.config.r_a_tov.times(2), |limits| limits.abort_timeout);
        self.arm(slot, List::Abort, now + timeout);
        let message = Message::Bls(Bls::Abts);
        let header = self.header(&message, d_id, ox_id);
        self.send(Header { rx_id, seq_id, ..header }, message);
    }

    fn may_repeat_abts(&self, slot: u16) -> bool {
        self.config.recovery.is_none() && self.exchanges[usize::from(slot)].tries < MAX_TRIES
    }

    /// Handles BA_ACC, or BA_RJT as `None`. After BA_RJT the target has no such exchange, so there
    /// is nothing to reinstate.
    pub(super) fn on_abort_answer(&mut self, now: Instant, header: &Header, accept: Option<BaAcc>) {
        let Some(slot) = self.slot_of(header.ox_id) else {
            self.counters.stale_frames += 1;
            return;
        };
        let exchange = &mut self.exchanges[usize::from(slot)];
        let State::Aborting(reason) = exchange.state else {
            self.counters.stale_frames += 1;
            return;
        };
        if exchange.d_id != header.s_id {
            self.counters.stale_frames += 1;
            return;
        }
        if let Some(accept) = accept
            && exchange.rx_id == RX_ID_UNASSIGNED
        {
            exchange.rx_id = accept.rx_id;
        }
        self.end_and_rest(now, slot, Outcome::Aborted(reason), accept.is_some());
    }

    /// Ends a command with an outcome. Its OX_ID rests until no frame of the exchange can be in
    /// flight.
    fn end_and_rest(&mut self, now: Instant, slot: u16, outcome: Outcome, reinstate: bool) {
        let exchange = &self.exchanges[usize::from(slot)];
        let deadline = now + self.config.r_a_tov;
        self.resting.begin(deadline, exchange.d_id, exchange.ox_id, exchange.rx_id, reinstate);
        self.end(slot, outcome);
    }

    /// Sends the next RRQ of a resting number, or ends the rest after the last attempt.
    fn reinstate(&mut self, now: Instant, index: u16, sent: u8) {
        if sent >= MAX_TRIES {
            return self.end_rest(index);
        }
        let rest = self.resting.get(index);
        rest.stage = Stage::Reinstating { tries: sent + 1 };
        let (d_id, ox_id, rx_id) = (rest.d_id, rest.ox_id, rest.rx_id);
        self.counters.rrq_sent += 1;
        self.resting.arm(index, resting::List::Reinstate, now + self.config.r_a_tov.times(2));
        let request = ExchangeRef { originator: self.local_id, ox_id, rx_id };
        let message = Message::from(Els::Rrq(request));
        let header = self.header(&message, d_id, MAX_EXCHANGES + ox_id);
        self.send(header, message);
    }

    /// Handles LS_ACC or LS_RJT to an RRQ. In both cases the target no longer uses the number.
    pub(super) fn on_reinstate_answer(&mut self, header: &Header) {
        let found = self.resting.find(header.ox_id.wrapping_sub(MAX_EXCHANGES));
        if let Some(index) = found {
            let rest = self.resting.get(index);
            if matches!(rest.stage, Stage::Reinstating { .. }) && rest.d_id == header.s_id {
                return self.end_rest(index);
            }
        }
        self.counters.stale_frames += 1;
    }

    /// Ends all commands to `port_id`, or to all ports, after the login is lost. No frame is sent
    /// for them.
    pub(super) fn end_all(&mut self, now: Instant, port_id: Option<FcId>) {
        let affects = |d_id: FcId| port_id.is_none_or(|port_id| port_id == d_id);
        for index in 0..self.resting.entry_count() {
            self.work += 1;
            let rest = self.resting.get(index);
            match rest.stage {
                Stage::Resting { .. } if affects(rest.d_id) => rest.stage = Stage::Resting { reinstate: false },
                Stage::Reinstating { .. } if affects(rest.d_id) => self.end_rest(index),
                _ => {}
            }
        }
        for slot in 0..self.exchanges.len() as u16 {
            self.work += 1;
            let exchange = &self.exchanges[usize::from(slot)];
            if exchange.state != State::Free && affects(exchange.d_id) {
                self.end_and_rest(now, slot, Outcome::PortGone, false);
            }
        }
    }

    pub(super) fn on_timeout(&mut self, now: Instant) {
        while let Some((list, slot)) = self.timers.pop_due(&mut self.exchanges, now) {
            match List::ALL[usize::from(list)] {
                List::Command => self.abort(now, slot, AbortReason::Timeout),
                List::Hold => self.abort(now, slot, AbortReason::LostFrame),
                List::Abort if self.may_repeat_abts(slot) => self.send_abts(now, slot),
                List::Abort | List::Manage => {
                    let outcome = Outcome::Aborted(AbortReason::Unanswered);
                    self.end_and_rest(now, slot, outcome, false);
                }
            }
        }
        while let Some(index) = self.resting.pop_due(now) {
            match self.resting.get(index).stage {
                Stage::Resting { reinstate: true } => self.reinstate(now, index, 0),
                Stage::Reinstating { tries } => self.reinstate(now, index, tries),
                Stage::Resting { reinstate: false } | Stage::Free => self.end_rest(index),
            }
        }
    }
}
