//! What an initiator does about an exchange that went wrong: ABTS, the rest of the OX_ID, RRQ (FCP, error recovery;
//! FC-FS, ABTS protocol).

use super::exchange::{List, State};
use super::{AbortReason, FcpInitiator, MAX_EXCHANGES, Outcome};
use crate::time::Instant;
use sanloom_wire::bls::{BaAcc, Bls};
use sanloom_wire::els::{Els, ExchangeRef};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::{FcId, Header, Message};

/// ABTS and RRQ are sent at most this often.
const MAX_TRIES: u8 = 3;

impl FcpInitiator {
    /// The one way into [`State::Aborting`].
    pub(super) fn abort(&mut self, now: Instant, ox_id: u16, reason: AbortReason) {
        let exchange = &mut self.exchanges[usize::from(ox_id)];
        exchange.state = State::Aborting(reason);
        exchange.tries = 0;
        self.send_abts(now, ox_id);
    }

    fn send_abts(&mut self, now: Instant, ox_id: u16) {
        let exchange = &mut self.exchanges[usize::from(ox_id)];
        exchange.tries += 1;
        let (d_id, rx_id, seq_id) = (exchange.d_id, exchange.rx_id, exchange.next_seq_id());
        self.counters.abts_sent += 1;
        self.arm(ox_id, List::Abort, now + self.config.r_a_tov.times(2));
        let message = Message::Bls(Bls::Abts);
        let header = self.header(&message, d_id, ox_id);
        self.send(Header { rx_id, seq_id, ..header }, message);
    }

    /// BA_ACC, or nothing for BA_RJT: the target does not know the exchange, so there is nothing to reinstate.
    pub(super) fn on_abort_answer(&mut self, now: Instant, header: &Header, accept: Option<BaAcc>) {
        let Some(exchange) = self.exchanges.get_mut(usize::from(header.ox_id)) else {
            self.counters.stale_frames += 1;
            return;
        };
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
        self.end_and_rest(now, header.ox_id, Outcome::Aborted(reason), accept.is_some());
    }

    /// The command has its outcome; the OX_ID waits until nothing of the exchange can be under way.
    fn end_and_rest(&mut self, now: Instant, ox_id: u16, outcome: Outcome, reinstate: bool) {
        let exchange = &mut self.exchanges[usize::from(ox_id)];
        exchange.state = State::Resting { reinstate };
        let tag = exchange.tag;
        self.in_flight -= 1;
        self.arm(ox_id, List::Rest, now + self.config.r_a_tov);
        self.done(tag, ox_id, outcome);
    }

    /// The one way into [`State::Reinstating`].
    fn reinstate(&mut self, now: Instant, ox_id: u16) {
        let exchange = &mut self.exchanges[usize::from(ox_id)];
        exchange.state = State::Reinstating;
        exchange.tries = 0;
        self.send_rrq(now, ox_id);
    }

    fn send_rrq(&mut self, now: Instant, ox_id: u16) {
        let exchange = &mut self.exchanges[usize::from(ox_id)];
        exchange.tries += 1;
        let (d_id, rx_id) = (exchange.d_id, exchange.rx_id);
        self.counters.rrq_sent += 1;
        self.arm(ox_id, List::Reinstate, now + self.config.r_a_tov.times(2));
        let request = ExchangeRef { originator: self.local_id, ox_id, rx_id };
        let message = Message::from(Els::Rrq(request));
        let header = self.header(&message, d_id, MAX_EXCHANGES + ox_id);
        self.send(header, message);
    }

    /// LS_ACC or LS_RJT of an RRQ: either way the target has no use for the numbers any more.
    pub(super) fn on_reinstate_answer(&mut self, header: &Header) {
        let ox_id = header.ox_id.wrapping_sub(MAX_EXCHANGES);
        match self.exchanges.get(usize::from(ox_id)) {
            Some(exchange) if exchange.state == State::Reinstating && exchange.d_id == header.s_id => {
                self.release(ox_id);
            }
            _ => self.counters.stale_frames += 1,
        }
    }

    /// The login with `port_id` is gone, or all logins are: every command ends, and nothing more is sent.
    pub(super) fn end_all(&mut self, now: Instant, port_id: Option<FcId>) {
        for ox_id in 0..self.exchanges.len() as u16 {
            self.work += 1;
            let exchange = &mut self.exchanges[usize::from(ox_id)];
            if port_id.is_some_and(|port_id| port_id != exchange.d_id) {
                continue;
            }
            match exchange.state {
                State::Free => {}
                State::Active | State::Holding | State::Aborting(_) => {
                    self.end_and_rest(now, ox_id, Outcome::PortGone, false);
                }
                State::Resting { .. } => exchange.state = State::Resting { reinstate: false },
                State::Reinstating => self.release(ox_id),
            }
        }
    }

    pub(super) fn on_timeout(&mut self, now: Instant) {
        while let Some((list, ox_id)) = self.timers.pop_due(&mut self.exchanges, now) {
            let exchange = &self.exchanges[usize::from(ox_id)];
            match List::ALL[usize::from(list)] {
                List::Command => self.abort(now, ox_id, AbortReason::Timeout),
                List::Hold => self.abort(now, ox_id, AbortReason::LostFrame),
                List::Abort if exchange.tries < MAX_TRIES => self.send_abts(now, ox_id),
                List::Abort => {
                    let outcome = Outcome::Aborted(AbortReason::Unanswered);
                    self.end_and_rest(now, ox_id, outcome, false);
                }
                List::Rest if exchange.state == (State::Resting { reinstate: true }) => {
                    self.reinstate(now, ox_id);
                }
                List::Rest => self.release(ox_id),
                List::Reinstate if exchange.tries < MAX_TRIES => self.send_rrq(now, ox_id),
                List::Reinstate => self.release(ox_id),
            }
        }
    }
}
