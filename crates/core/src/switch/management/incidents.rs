//! Link incidents: who is told of them, and that they arrive (FC-LS, LIRR and RLIR).
//!
//! ```text
//!            incident            LS_ACC, LS_RJT, or the last attempt unanswered
//!   quiet ------------> sent -----------------------------------------------------> quiet, or sent: the next report
//!                        |  ^
//!                        +--+ no answer within E_D_TOV, or LS_RJT: busy
//! ```
//!
//! # Who is told
//!
//! A registration needs a session with the management server and lasts until it is cleared or its port logs out of the
//! fabric: document 000 (NPIV) has virtual ports end the session as soon as they are registered.
//!
//! The standards do not zone link incidents. Here a port hears of incidents at its own F_Port and at those where a port is
//! logged in that it may talk to; of an E_Port, and of an F_Port without logins, every registered port hears. A link that
//! works no longer cannot bring the word of it. Of these, the
//! ports that registered to receive always are told, and if there are none, the one with the lowest address among those
//! that registered conditionally.

use super::super::Switch;
use super::super::login::reject;
use super::super::rscn::{Ended, pop_if};
use crate::fabric::PortMode;
use crate::time::{Instant, Span};
use sanloom_wire::els::link_incident::{COMMON_FORMAT, code, qualifier, registration};
use sanloom_wire::els::{Els, LinkIncident, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ns::port_type;
use sanloom_wire::{FcId, Header, Message};
use std::collections::{BTreeMap, VecDeque};

/// So often a report is sent before it is given up: it is news, and no state depends on it.
const ATTEMPTS: u8 = 3;
/// Reports that wait for one recipient; with more, the oldest are lost.
const MAX_WAITING: usize = 16;
/// Exchanges that the management server originates. FFFF is not a number.
const FIRST_OX_ID: u16 = 0x8000;
const LAST_OX_ID: u16 = 0xfffe;

/// The registered ports and the reports on their way.
#[derive(Debug)]
pub(super) struct IncidentQueue {
    timeout: Span,
    recipients: BTreeMap<FcId, Recipient>,
    /// Latest times of answers; all timeouts are equally long, so they end in the order they began.
    answers: VecDeque<(Instant, FcId, u16)>,
    next_ox_id: u16,
    incidents: u32,
}

#[derive(Debug)]
struct Recipient {
    always: bool,
    waiting: VecDeque<LinkIncident>,
    sent: Option<Sent>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    ox_id: u16,
    attempt: u8,
    incident: LinkIncident,
}

/// A report to be sent.
struct Report {
    to: FcId,
    sent: Sent,
}

impl IncidentQueue {
    pub(super) fn new(timeout: Span) -> IncidentQueue {
        IncidentQueue {
            timeout,
            recipients: BTreeMap::new(),
            answers: VecDeque::new(),
            next_ox_id: FIRST_OX_ID,
            incidents: 0,
        }
    }

    fn register(&mut self, id: FcId, always: bool) {
        let quiet = || Recipient { always, waiting: VecDeque::new(), sent: None };
        self.recipients.entry(id).or_insert_with(quiet).always = always;
    }

    /// Forgets a port and what it was to be told.
    pub(super) fn forget(&mut self, id: FcId) {
        self.recipients.remove(&id);
    }

    /// Of the registered ports in reach of an incident, those that are told.
    fn told(&self, in_reach: impl Fn(FcId) -> bool) -> Vec<FcId> {
        let registered = self.recipients.iter().filter(|(id, _)| in_reach(**id));
        let (always, conditional): (Vec<_>, Vec<_>) = registered.partition(|(_, recipient)| recipient.always);
        let told = if always.is_empty() { &conditional[..conditional.len().min(1)] } else { &always };
        told.iter().map(|(id, _)| **id).collect()
    }

    /// An incident for a registered port. True if an older one is lost.
    fn add(&mut self, id: FcId, incident: LinkIncident) -> bool {
        let Some(recipient) = self.recipients.get_mut(&id) else {
            return false;
        };
        recipient.waiting.push_back(incident);
        recipient.waiting.len() > MAX_WAITING && recipient.waiting.pop_front().is_some()
    }

    /// The next report to a port that has none on its way.
    fn next(&mut self, now: Instant, to: FcId) -> Option<Report> {
        let recipient = self.recipients.get_mut(&to).filter(|recipient| recipient.sent.is_none())?;
        let incident = recipient.waiting.pop_front()?;
        self.send(now, to, incident, 1)
    }

    /// An answer came: how the report ended.
    fn answered(&mut self, id: FcId, ox_id: u16, reply: Ended) -> Ended {
        let recipient = self.recipients.get_mut(&id);
        match recipient.filter(|recipient| recipient.sent.is_some_and(|sent| sent.ox_id == ox_id)) {
            None => Ended::Unknown,
            Some(recipient) => {
                if reply != Ended::Busy {
                    recipient.sent = None;
                }
                reply
            }
        }
    }

    /// A report whose answer did not come in time, for the last time if there is nothing to send.
    fn overdue(&mut self, now: Instant) -> Option<(FcId, Option<Report>)> {
        self.tidy();
        let (_, id, _) = pop_if(&mut self.answers, |(at, _, _)| *at <= now)?;
        let sent = self.recipients.get_mut(&id)?.sent.take()?;
        let again = (sent.attempt < ATTEMPTS).then(|| self.send(now, id, sent.incident, sent.attempt + 1)).flatten();
        Some((id, again))
    }

    /// When a report is overdue.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.answers.front().map(|(at, _, _)| *at)
    }

    /// Drops deadlines in front that nobody waits for any more.
    pub(super) fn tidy(&mut self) {
        let recipients = &self.recipients;
        let over = |(_, id, ox_id): &(Instant, FcId, u16)| {
            let sent = recipients.get(id).and_then(|recipient| recipient.sent);
            sent.is_none_or(|sent| sent.ox_id != *ox_id)
        };
        while pop_if(&mut self.answers, over).is_some() {}
    }

    fn send(&mut self, now: Instant, to: FcId, incident: LinkIncident, attempt: u8) -> Option<Report> {
        let sent = Sent { ox_id: self.next_ox_id, attempt, incident };
        self.recipients.get_mut(&to)?.sent = Some(sent);
        self.next_ox_id = if sent.ox_id == LAST_OX_ID { FIRST_OX_ID } else { sent.ox_id + 1 };
        self.answers.push_back((now + self.timeout, to, sent.ox_id));
        Some(Report { to, sent })
    }
}

impl Switch {
    /// LIRR, from a port that is logged in with the management server.
    pub(in super::super) fn register_for_incidents(
        &mut self,
        id: FcId,
        function: u8,
        format: u8,
    ) -> Result<LsAcc, LsRjt> {
        let incidents = &mut self.management.incidents;
        match (function, format) {
            (registration::CLEAR, _) => incidents.forget(id),
            (registration::CONDITIONAL | registration::ALWAYS, COMMON_FORMAT | FICON_FORMAT) => {
                incidents.register(id, function == registration::ALWAYS);
            }
            (registration::CONDITIONAL | registration::ALWAYS, _) => {
                return Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::NOT_SUPPORTED));
            }
            _ => return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::NONE)),
        }
        Ok(LsAcc::Empty)
    }

    /// Something happened to the link of a port.
    pub(in super::super) fn link_incident(&mut self, now: Instant, port: u16, code: u8) {
        let Some(state) = self.ports.get(usize::from(port)) else {
            return;
        };
        let at_port = &state.ids;
        let cut_off = severity(code) == qualifier::NOT_OPERATIONAL;
        let told = self.management.incidents.told(|id| {
            if cut_off && at_port.contains(&id) {
                return false;
            }
            let viewer = self.database.get(id);
            let sees = |other: &FcId| {
                let known = viewer.zip(self.database.get(*other));
                known.is_some_and(|(viewer, known)| self.may_see(viewer, known))
            };
            at_port.is_empty() || at_port.iter().any(sees)
        });
        let is_e_port = state.mode == PortMode::E;
        let attached = at_port.first().and_then(|id| self.database.get(*id)).map(|known| known.entry.clone());
        self.management.incidents.incidents += 1;
        let incident = LinkIncident {
            format: COMMON_FORMAT,
            port_name: self.f_port_name(port),
            node_name: self.config.name,
            port_type: if is_e_port { port_type::E_PORT } else { port_type::F_PORT },
            port_id: FcId::ZERO,
            attached_port_name: attached.as_ref().map(|entry| entry.port_name).unwrap_or_default(),
            attached_node_name: attached.as_ref().map(|entry| entry.node_name).unwrap_or_default(),
            fabric_name: self.config.fabric_name,
            physical_port: port.into(),
            transaction: self.management.incidents.incidents,
            time_format: 0,
            time: 0,
            qualifier: qualifier::SWITCH | if is_e_port { qualifier::E_PORT } else { 0 } | severity(code),
            code,
            isl_port: if is_e_port { u16::from(self.domain.unwrap_or(0)) << 8 | port & 0xff } else { 0 },
        };
        self.counters.link_incidents += 1;
        for id in told {
            let lost = self.management.incidents.add(id, incident);
            self.counters.incident_reports_lost += u64::from(lost);
            self.next_report(now, id);
        }
    }

    /// An N_Port answered an RLIR.
    pub(in super::super) fn report_answered(&mut self, now: Instant, header: &Header, els: &Els) {
        match self.management.incidents.answered(header.s_id, header.ox_id, Ended::of(els)) {
            Ended::Accepted | Ended::Rejected => self.next_report(now, header.s_id),
            Ended::Busy => {}
            Ended::Unknown => self.counters.frames_discarded += 1,
        }
    }

    pub(in super::super) fn reports_due(&mut self, now: Instant) {
        while let Some((id, again)) = self.management.incidents.overdue(now) {
            match again {
                Some(report) => self.send_report(report),
                None => {
                    self.counters.incident_reports_lost += 1;
                    self.next_report(now, id);
                }
            }
        }
    }

    fn next_report(&mut self, now: Instant, to: FcId) {
        if let Some(report) = self.management.incidents.next(now, to) {
            self.send_report(report);
        }
    }

    fn send_report(&mut self, Report { to, sent }: Report) {
        if let Some(login) = self.logins.get(&to) {
            self.counters.incident_reports_sent += 1;
            let message = Message::Els(Box::new(Els::Rlir(sent.incident)));
            self.request(login.port, FcId::MANAGEMENT_SERVER, to, sent.ox_id, message);
        }
    }
}

/// Format that FICON hosts ask for, with a record of FC-SB beside the common one. They are sent the common one alone.
const FICON_FORMAT: u8 = 0x18;

/// What an incident does to the link.
fn severity(incident: u8) -> u8 {
    match incident {
        code::LOSS_OF_SIGNAL | code::NOT_OPERATIONAL | code::PRIMITIVE_TIMEOUT | code::LOOP_TIMEOUT => {
            qualifier::NOT_OPERATIONAL
        }
        code::BIT_ERROR_RATE | code::INVALID_PRIMITIVE => qualifier::DEGRADED,
        _ => 0,
    }
}
