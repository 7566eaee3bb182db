//! The management server, FFFFFA: link incidents, host bus adapters, the configuration of the fabric, and its zones (FC-GS,
//! management service).
//!
//! A port logs in with it first (PLOGI). What it asks is not zoned, because whoever manages a fabric must see all of it;
//! link incidents are, because they come unasked.
//!
//! Absent: the unzoned name server and platforms, which are rejected as not supported.

mod configuration;
mod fabric_info;
mod fdmi;
mod incidents;
mod zone_server;

pub use fabric_info::{ElementInfo, FabricInfo, PortInfo};

use super::Switch;
use crate::time::{Instant, Span};
use fdmi::Fdmi;
use incidents::IncidentQueue;
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::fdmi::{command, explanation};
use sanloom_wire::{FcId, Header};
use std::sync::Arc;
use zone_server::ZoneRequests;

type Answer = Result<CtBody, CtReject>;

/// What the management server remembers.
#[derive(Debug)]
pub(super) struct Management {
    incidents: IncidentQueue,
    fdmi: Fdmi,
    info: Arc<FabricInfo>,
    zones: ZoneRequests,
}

impl Management {
    pub(super) fn new(e_d_tov: Span) -> Management {
        Management {
            incidents: IncidentQueue::new(e_d_tov),
            fdmi: Fdmi::default(),
            info: Arc::default(),
            zones: ZoneRequests::default(),
        }
    }

    /// Forgets what a port that leaves registered.
    pub(super) fn forget(&mut self, id: FcId) {
        self.incidents.forget(id);
        self.zones.forget(id);
        self.fdmi.forget(id);
    }

    /// Forgets what lasts as long as the login with the management server: who waits for an answer. A registration for link
    /// incidents lasts longer, because document 000 (NPIV) has virtual ports register in a session that they end at once.
    pub(super) fn end_session(&mut self, id: FcId) {
        self.zones.forget(id);
    }

    pub(super) fn set_fabric_info(&mut self, info: Arc<FabricInfo>) {
        self.info = info;
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.incidents.next_deadline()
    }

    pub(super) fn tidy(&mut self) {
        self.incidents.tidy();
    }
}

impl Switch {
    /// Answers a request of a port that is logged in with the management server. Nothing: the answer comes later.
    pub(super) fn management_request(&mut self, port: u16, header: &Header, ct: &Ct) -> Option<Answer> {
        Some(match &ct.body {
            CtBody::Fdmi(request) => self.fdmi_request(header.s_id, request).map(CtBody::FdmiAccept),
            CtBody::Fcs(request) => self.configuration_request(request).map(CtBody::FcsAccept),
            CtBody::Fzs(request) => return self.zone_request(port, header, ct, request),
            _ => Err(CtReject::new(CtReason::NOT_SUPPORTED, 0)),
        })
    }
}

/// Why a request to register attributes does not parse, if it is one.
pub(super) const fn block_length(service: Service, command: u16) -> Option<CtReject> {
    match (service, command) {
        (Service::FDMI, command::RHBA | command::RHAT) => Some(CtReject::unable(explanation::HBA_BLOCK_LENGTH)),
        (Service::FDMI, command::RPRT | command::RPA) => Some(CtReject::unable(explanation::PORT_BLOCK_LENGTH)),
        _ => None,
    }
}
