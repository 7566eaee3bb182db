//! Requests of the owner in addition to those of the machines: to the name server, or ECHO to a
//! port.

use super::{Event, Host};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::{FCtl, FcId, FcType, Frame, Message, Payload};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Range of OX_IDs for these requests, above the OX_IDs of commands.
const OX_IDS: RangeInclusive<u16> = 0x7f00..=0x7fff;
/// Maximum wait for a reply. The standard's value would be 2 x R_A_TOV, which is too long for an
/// interactive user.
const TIME_LIMIT: Span = Span::from_secs(4);

/// Open requests by OX_ID, with their deadlines.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: BTreeMap<u16, Instant>,
    last: u16,
}

impl Questions {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.values().min().copied()
    }
}

impl Host {
    /// Sends a request of one frame. Returns the number under which [`Event::Answer`] reports the
    /// reply. Returns `None` without a login or with too many open requests.
    pub fn ask(&mut self, now: Instant, d_id: FcId, message: Message) -> Option<u16> {
        if self.port_id == FcId::ZERO {
            return None;
        }
        let count = *OX_IDS.end() - *OX_IDS.start() + 1;
        let ids = (1..=count).map(|step| *OX_IDS.start() + (self.questions.last + step) % count);
        let ox_id = ids.into_iter().find(|id| !self.questions.open.contains_key(id))?;
        self.questions.last = ox_id - *OX_IDS.start();
        self.questions.open.insert(ox_id, now + TIME_LIMIT);
        let header = message.header(self.port_id, d_id, ox_id, RX_ID_UNASSIGNED);
        self.push_message(Frame { header, payload: Payload::Typed(message) });
        Some(ox_id)
    }

    /// Processes a reply to an open request. Returns any other frame.
    pub(super) fn answered(&mut self, frame: Frame) -> Option<Frame> {
        let header = &frame.header;
        let is_answer =
            matches!(header.fc_type, FcType::ELS | FcType::CT) && header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
        if !is_answer || header.d_id != self.port_id || self.questions.open.remove(&header.ox_id).is_none() {
            return Some(frame);
        }
        let ox_id = header.ox_id;
        let message = match frame.payload {
            Payload::Typed(message) => Some(message),
            Payload::Bytes(_) | Payload::Pattern { .. } => None,
        };
        self.events.push_back(Event::Answer { number: ox_id, message });
        None
    }

    /// Ends open requests whose deadline has passed.
    pub(super) fn give_up_questions(&mut self, now: Instant) {
        let late: Vec<u16> = self.questions.open.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for number in late {
            self.questions.open.remove(&number);
            self.requests_by_ox_id.remove(&number);
            self.events.push_back(Event::Answer { number, message: None });
        }
    }

    /// Sends REPORT LUNS to every target again.
    pub fn scan(&mut self, now: Instant) {
        for (wwpn, target) in self.targets.iter_mut().filter(|(_, target)| target.remote.is_some()) {
            target.scan.handle(now, sanloom_scsi::disk::ScanInput::Rescan);
            self.touched.push_back((*wwpn, None));
        }
        self.drain_machines(now);
    }
}
