//! Early end of exchanges: ABTS, lost write data, logouts (FC-FS, ABTS protocol; FCP, error
//! recovery).

use super::task::{List, State, Task};
use super::{FcpTarget, LOGO_OX_ID, Output};
use sanloom_scsi::scsi::Device;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::bls::{BaAcc, BaRjt, Bls, explanation, reason};
use sanloom_wire::els::{Els, Logo};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::{FcId, Header, Message};

/// Minimum time from XFER_RDY to the first data frame before a target may end the exchange, without
/// retry (FCP-4, table 30 and 11.4: RR_TOV_SEQ_INIT).
const RR_TOV_SEQ_INIT: Span = Span::from_secs(2);

const UNKNOWN_EXCHANGE: BaRjt =
    BaRjt { reason: reason::LOGICAL_ERROR, explanation: explanation::INVALID_OX_RX_ID, vendor: 0 };

impl FcpTarget {
    pub(super) fn on_abts(&mut self, now: Instant, header: &Header, device: &mut Device) {
        match self.find_exchange(header) {
            Some(rx_id) => {
                self.counters.aborted += 1;
                self.rest(now, rx_id, device);
                let accept = BaAcc::whole_exchange(header.ox_id, rx_id);
                self.answer_abts(header, rx_id, Bls::BaAcc(accept));
            }
            None => {
                self.counters.unknown_aborts += 1;
                self.answer_abts(header, header.rx_id, Bls::BaRjt(UNKNOWN_EXCHANGE));
            }
        }
    }

    fn answer_abts(&mut self, abts: &Header, rx_id: u16, answer: Bls) {
        self.send(abts.s_id, abts.ox_id, rx_id, abts.seq_id, Message::Bls(answer));
    }

    /// Finds the exchange of an ABTS, including one that was aborted before, because a repeated
    /// ABTS gets the same reply.
    ///
    /// The initiator may not have received the RX_ID yet, so all exchanges are searched; aborts are
    /// rare.
    fn find_exchange(&mut self, header: &Header) -> Option<u16> {
        let belongs =
            |task: &Task| task.state != State::Free && task.initiator == header.s_id && task.ox_id == header.ox_id;
        if header.rx_id != RX_ID_UNASSIGNED {
            let task = self.tasks.get(usize::from(header.rx_id))?;
            return belongs(task).then_some(header.rx_id);
        }
        self.work += self.tasks.len() as u64;
        // A resting exchange may have the same OX_ID as a live one.
        let live = self.tasks.iter().position(|task| task.is_live() && belongs(task));
        live.or_else(|| self.tasks.iter().position(belongs)).map(|at| at as u16)
    }

    /// Handles lost write data. Nothing is sent until the initiator aborts or R_A_TOV expires.
    pub(super) fn stall(&mut self, now: Instant, rx_id: u16, device: &mut Device) {
        self.counters.stalled += 1;
        self.rest(now, rx_id, device);
    }

    /// Enters [`State::Resting`]; no other function does.
    pub(super) fn rest(&mut self, now: Instant, rx_id: u16, device: &mut Device) {
        let task = &mut self.tasks[usize::from(rx_id)];
        if matches!(task.state, State::Io | State::Fetching) {
            self.outputs.push_back(Output::Cancel(task.tag(rx_id)));
        }
        if task.is_live() {
            device.abandon(task.id(rx_id));
        }
        debug_assert_ne!(task.state, State::Free, "RX_ID {rx_id:#x} rests without an exchange");
        task.state = State::Resting;
        self.arm(rx_id, List::Rest, now + self.config.r_a_tov);
    }

    /// Handles the expiry of E_D_TOV since XFER_RDY or since progress was last seen. E_D_TOV limits
    /// the time between the frames of a sequence, not the time before its first frame (FC-FS,
    /// E_D_TOV), because the initiator may send the data of other commands first.
    pub(super) fn on_data_timeout(&mut self, now: Instant, rx_id: u16, device: &mut Device) {
        let e_d_tov = self.config.e_d_tov;
        if self.tasks[usize::from(rx_id)].awaits_burst() && e_d_tov < RR_TOV_SEQ_INIT {
            let rest = Span::from_ns(RR_TOV_SEQ_INIT.as_ns() - e_d_tov.as_ns());
            self.arm(rx_id, List::FirstData, now + rest);
        } else {
            self.check_progress(now, rx_id, device);
        }
    }

    /// Abandons a burst that has made no progress since the last check.
    pub(super) fn check_progress(&mut self, now: Instant, rx_id: u16, device: &mut Device) {
        let task = &mut self.tasks[usize::from(rx_id)];
        if task.has_progressed() {
            task.seen_bytes = task.rx.received_bytes();
            self.arm(rx_id, List::Data, now + self.config.e_d_tov);
        } else {
            self.stall(now, rx_id, device);
        }
    }

    /// Ends tasks without a reply.
    pub(super) fn drop_tasks(&mut self, now: Instant, device: &mut Device, affects: impl Fn(&Task) -> bool) {
        for rx_id in 0..self.tasks.len() as u16 {
            self.work += 1;
            let task = &self.tasks[usize::from(rx_id)];
            if task.is_live() && affects(task) {
                self.rest(now, rx_id, device);
            }
        }
    }

    /// Sends LOGO to a port that sent a frame without a login.
    pub(super) fn request_login(&mut self, now: Instant, port_id: FcId) {
        self.counters.not_logged_in += 1;
        let sent_recently = self.last_logo.is_some_and(|(to, at)| to == port_id && now.since(at) < self.config.e_d_tov);
        if sent_recently || port_id.is_well_known() {
            return;
        }
        self.last_logo = Some((port_id, now));
        let logo = Logo { port_id: self.local_id, port_name: self.config.port_name };
        self.send(port_id, LOGO_OX_ID, RX_ID_UNASSIGNED, 0, Message::from(Els::Logo(logo)));
    }
}
