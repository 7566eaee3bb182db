//! Link incidents: recipients of the reports and reliable delivery (FC-LS, LIRR and RLIR).
//!
//! ```text
//!          incident        LS_ACC, LS_RJT, or no reply to the last attempt
//!   quiet ----------> sent -----------------------------------------------> quiet, or sent:
//!                     |  ^                                                  the next report
//!                     +--+ no reply within E_D_TOV, or LS_RJT: busy
//! ```
//!
//! # Recipients
//!
//! A registration requires a session with the management server. It lasts until it is cleared or
//! its port logs out of the fabric, because the NPIV paper has virtual ports end the session
//! as soon as they are registered.
//!
//! The standards do not zone link incidents. Here a port receives the incidents of its own F_Port
//! and of F_Ports where a port is logged in that it may reach. For an E_Port, and for an F_Port
//! without logins, every registered port is eligible. A port behind a failed link is not eligible,
//! because the report cannot reach it.
//!
//! Among the eligible ports, those registered to receive always get the report. If there are none,
//! the one with the lowest address among the conditionally registered ports gets it.

use super::super::context::Context;
use super::super::database::Database;
use super::super::rscn::{Reply, pop_if};
use crate::fabric::PortMode;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::link_incident::{COMMON_FORMAT, code, qualifier, registration};
use sanloom_wire::els::{Els, LinkIncident, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ns::port_type;
use sanloom_wire::{FcId, Header};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of transmissions of a report. Losing one is harmless because no state depends on
/// it.
const ATTEMPTS: u8 = 3;
/// Maximum number of reports queued for one recipient; beyond that the oldest are lost.
const MAX_QUEUED: usize = 16;
/// First and last OX_ID of exchanges originated by the management server. FFFF is not a valid
/// OX_ID.
const FIRST_OX_ID: u16 = 0x8000;
const LAST_OX_ID: u16 = 0xfffe;

/// Registered ports and their pending reports.
#[derive(Debug)]
pub(in super::super) struct IncidentReporter {
    timeout: Span,
    recipients: BTreeMap<FcId, Recipient>,
    /// Reply deadlines. All timeouts have the same length, so they expire in the order of
    /// insertion.
    replies: VecDeque<(Instant, FcId, u16)>,
    next_ox_id: u16,
    incidents: u32,
}

#[derive(Debug)]
struct Recipient {
    always: bool,
    queued: VecDeque<LinkIncident>,
    sent: Option<Sent>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    ox_id: u16,
    attempt: u8,
    incident: LinkIncident,
}

impl IncidentReporter {
    pub(super) fn new(timeout: Span) -> IncidentReporter {
        IncidentReporter {
            timeout,
            recipients: BTreeMap::new(),
            replies: VecDeque::new(),
            next_ox_id: FIRST_OX_ID,
            incidents: 0,
        }
    }

    /// Handles LIRR from a port that is logged in with the management server.
    pub(in super::super) fn registration(&mut self, id: FcId, function: u8, format: u8) -> Result<LsAcc, LsRjt> {
        match (function, format) {
            (registration::CLEAR, _) => self.deregister(id),
            (registration::CONDITIONAL | registration::ALWAYS, COMMON_FORMAT | FICON_FORMAT) => {
                let always = function == registration::ALWAYS;
                let quiet = || Recipient { always, queued: VecDeque::new(), sent: None };
                self.recipients.entry(id).or_insert_with(quiet).always = always;
            }
            (registration::CONDITIONAL | registration::ALWAYS, _) => {
                return Err(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::NOT_SUPPORTED));
            }
            _ => return Err(LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::NONE)),
        }
        Ok(LsAcc::Empty)
    }

    /// Removes a port and its pending reports.
    pub(super) fn deregister(&mut self, id: FcId) {
        self.recipients.remove(&id);
    }

    /// Handles an incident on the link of an existing port.
    pub(in super::super) fn incident(&mut self, cx: &mut Context<'_>, objects: &Database, port: u16, code: u8) {
        let recipients = self.recipients_of(cx, objects, port, code);
        let is_e_port = cx.logins.mode(port) == PortMode::E;
        let attached = cx.logins.at_port(port).next().and_then(|id| objects.get(id)).map(|known| &known.entry);
        self.incidents += 1;
        let incident = LinkIncident {
            format: COMMON_FORMAT,
            port_name: cx.identity.f_port_name(port),
            node_name: cx.identity.name,
            port_type: if is_e_port { port_type::E_PORT } else { port_type::F_PORT },
            port_id: FcId::ZERO,
            attached_port_name: attached.map(|entry| entry.port_name).unwrap_or_default(),
            attached_node_name: attached.map(|entry| entry.node_name).unwrap_or_default(),
            fabric_name: cx.identity.fabric_name,
            physical_port: port.into(),
            transaction: self.incidents,
            time_format: 0,
            time: 0,
            qualifier: qualifier::SWITCH | if is_e_port { qualifier::E_PORT } else { 0 } | severity(code),
            code,
            isl_port: if is_e_port { u16::from(cx.identity.domain.unwrap_or(0)) << 8 | port & 0xff } else { 0 },
        };
        cx.out.counters.link_incidents += 1;
        for id in recipients {
            let lost = self.queue(id, incident);
            cx.out.counters.incident_reports_lost += u64::from(lost);
            self.send_next(cx, id);
        }
    }

    /// Handles the reply of an N_Port to an RLIR.
    pub(in super::super) fn reply(&mut self, cx: &mut Context<'_>, header: &Header, els: &Els) {
        let id = header.s_id;
        let recipient = self.recipients.get_mut(&id);
        let Some(recipient) = recipient.filter(|recipient| recipient.sent.is_some_and(|r| r.ox_id == header.ox_id))
        else {
            return cx.out.discard();
        };
        // After "busy" the report is repeated when its reply deadline expires.
        if Reply::of(els) != Reply::Busy {
            recipient.sent = None;
            self.send_next(cx, id);
        }
    }

    /// Repeats the reports whose replies are overdue. After the last attempt the next report is
    /// sent.
    pub(in super::super) fn send_due(&mut self, cx: &mut Context<'_>) {
        loop {
            self.drop_expired();
            let Some((_, id, _)) = pop_if(&mut self.replies, |(at, _, _)| *at <= cx.now) else { return };
            let Some(sent) = self.recipients.get_mut(&id).and_then(|recipient| recipient.sent.take()) else { return };
            if sent.attempt < ATTEMPTS {
                self.send(cx, id, sent.incident, sent.attempt + 1);
            } else {
                cx.out.counters.incident_reports_lost += 1;
                self.send_next(cx, id);
            }
        }
    }

    /// Earliest reply deadline.
    pub(in super::super) fn next_deadline(&self) -> Option<Instant> {
        self.replies.front().map(|(at, _, _)| *at)
    }

    /// Drops the deadlines at the front that belong to no report in flight.
    pub(in super::super) fn drop_expired(&mut self) {
        let recipients = &self.recipients;
        let over = |(_, id, ox_id): &(Instant, FcId, u16)| {
            let sent = recipients.get(id).and_then(|recipient| recipient.sent);
            sent.is_none_or(|sent| sent.ox_id != *ox_id)
        };
        while pop_if(&mut self.replies, over).is_some() {}
    }

    /// Recipients of an incident at a port, among the registered ports.
    fn recipients_of(&self, cx: &Context<'_>, objects: &Database, port: u16, code: u8) -> Vec<FcId> {
        let cut_off = severity(code) == qualifier::NOT_OPERATIONAL;
        let eligible = |id: FcId| {
            if cut_off && cx.logins.is_at(port, id) {
                return false;
            }
            let viewer = objects.get(id);
            let sees = |other: FcId| {
                let known = viewer.zip(objects.get(other));
                known.is_some_and(|(viewer, known)| objects.may_see(viewer, known))
            };
            cx.logins.at_port(port).len() == 0 || cx.logins.at_port(port).any(sees)
        };
        let registered = self.recipients.iter().filter(|(id, _)| eligible(**id));
        let (always, conditional): (Vec<_>, Vec<_>) = registered.partition(|(_, recipient)| recipient.always);
        let chosen = if always.is_empty() { &conditional[..conditional.len().min(1)] } else { &always };
        chosen.iter().map(|(id, _)| **id).collect()
    }

    /// Queues an incident for a registered port. Returns true if an older one is lost.
    fn queue(&mut self, id: FcId, incident: LinkIncident) -> bool {
        let Some(recipient) = self.recipients.get_mut(&id) else {
            return false;
        };
        recipient.queued.push_back(incident);
        recipient.queued.len() > MAX_QUEUED && recipient.queued.pop_front().is_some()
    }

    /// Sends the next report to a port without a report in flight.
    fn send_next(&mut self, cx: &mut Context<'_>, to: FcId) {
        let idle = self.recipients.get_mut(&to).filter(|recipient| recipient.sent.is_none());
        if let Some(incident) = idle.and_then(|recipient| recipient.queued.pop_front()) {
            self.send(cx, to, incident, 1);
        }
    }

    fn send(&mut self, cx: &mut Context<'_>, to: FcId, incident: LinkIncident, attempt: u8) {
        let Some(recipient) = self.recipients.get_mut(&to) else { return };
        let ox_id = self.next_ox_id;
        recipient.sent = Some(Sent { ox_id, attempt, incident });
        self.next_ox_id = if ox_id == LAST_OX_ID { FIRST_OX_ID } else { ox_id + 1 };
        self.replies.push_back((cx.now + self.timeout, to, ox_id));
        if let Some(port) = cx.logins.port_of(to) {
            cx.out.counters.incident_reports_sent += 1;
            cx.out.els_request(port, FcId::MANAGEMENT_SERVER, to, ox_id, Els::Rlir(incident));
        }
    }
}

/// Format that FICON hosts request, which has an FC-SB record in addition to the common one. Such
/// hosts receive only the common record.
const FICON_FORMAT: u8 = 0x18;

/// Severity of an incident for the link.
fn severity(incident: u8) -> u8 {
    match incident {
        code::LOSS_OF_SIGNAL | code::NOT_OPERATIONAL | code::PRIMITIVE_TIMEOUT | code::LOOP_TIMEOUT => {
            qualifier::NOT_OPERATIONAL
        }
        code::BIT_ERROR_RATE | code::INVALID_PRIMITIVE => qualifier::DEGRADED,
        _ => 0,
    }
}
