//! The management server, FFFFFA: link incidents, host bus adapters, fabric configuration, and
//! fabric zones (FC-GS, management service).
//!
//! A port must log in with it first (PLOGI). Its queries are not zoned, because a fabric manager
//! must see the whole fabric. Link incidents are zoned, because they are unsolicited.
//!
//! Absent: the unzoned name server and platforms, which are rejected as not supported.

mod configuration;
mod fabric_info;
mod fdmi;
mod incidents;
mod zone_server;

pub use fabric_info::{ElementInfo, FabricInfo, PortInfo};

use super::context::Context;
use super::database::Database;
use configuration::Configuration;
use fdmi::Fdmi;
pub use fdmi::RegisteredAdapter;
use incidents::IncidentReporter;
use sanloom_scsi::time::Span;
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::els::PortSpeed;
use sanloom_wire::fdmi::{command, explanation};
use sanloom_wire::{FcId, Header};
use std::sync::Arc;
use zone_server::ZoneRequests;

type Answer = Result<CtBody, CtReject>;

/// State of the management server.
#[derive(Debug)]
pub(super) struct Management {
    pub(super) incidents: IncidentReporter,
    fdmi: Fdmi,
    info: Arc<FabricInfo>,
    pub(super) zones: ZoneRequests,
}

impl Management {
    pub(super) fn new(e_d_tov: Span) -> Management {
        Management {
            incidents: IncidentReporter::new(e_d_tov),
            fdmi: Fdmi::default(),
            info: Arc::default(),
            zones: ZoneRequests::default(),
        }
    }

    /// Removes everything that a departing port registered.
    pub(super) fn deregister(&mut self, id: FcId) {
        self.incidents.deregister(id);
        self.zones.drop_requests(id);
        self.fdmi.deregister(id);
    }

    /// Removes the state that lasts as long as the login with the management server: pending zone
    /// requests.
    ///
    /// A registration for link incidents lasts longer, because the NPIV paper has virtual
    /// ports register in a session that they end at once.
    pub(super) fn end_session(&mut self, id: FcId) {
        self.zones.drop_requests(id);
    }

    pub(super) fn adapters(&self) -> impl Iterator<Item = RegisteredAdapter<'_>> {
        self.fdmi.adapters()
    }

    pub(super) fn set_fabric_info(&mut self, info: Arc<FabricInfo>) {
        self.info = info;
    }

    /// Answers a request of a port that is logged in with the management server. Returns `None` if
    /// the answer follows later. `enforced`: the forwarding table enforces the zones.
    pub(super) fn request(
        &mut self,
        cx: &mut Context<'_>,
        objects: &Database,
        enforced: bool,
        port: u16,
        header: &Header,
        ct: &Ct,
    ) -> Option<Answer> {
        let id = header.s_id;
        Some(match &ct.body {
            CtBody::Fdmi(request) => {
                let own_name = objects.get(id).map(|known| known.entry.port_name);
                let at_same_port = |other| cx.logins.port_of(other) == cx.logins.port_of(id);
                self.fdmi.request(id, own_name, at_same_port, request).map(CtBody::FdmiAccept)
            }
            CtBody::Fcs(request) => self.configuration(cx, objects).answer(request).map(CtBody::FcsAccept),
            CtBody::Fzs(request) => return self.zones.request(cx.out, enforced, port, header, ct, request),
            _ => Err(CtReject::new(CtReason::NOT_SUPPORTED, 0)),
        })
    }

    /// Speeds of a port of this switch; unknown unless [`FabricInfo`] contains them.
    pub(super) fn port_speed(&self, cx: &Context<'_>, objects: &Database, port: u16) -> PortSpeed {
        self.configuration(cx, objects).port_speed(port)
    }

    fn configuration<'s>(&'s self, cx: &Context<'s>, objects: &'s Database) -> Configuration<'s> {
        Configuration { identity: cx.identity, logins: cx.logins, objects, info: &self.info }
    }
}

/// Reject for an attribute registration with a malformed block; `None` for other requests.
pub(super) const fn block_length(service: Service, command: u16) -> Option<CtReject> {
    match (service, command) {
        (Service::FDMI, command::RHBA | command::RHAT) => Some(CtReject::unable(explanation::HBA_BLOCK_LENGTH)),
        (Service::FDMI, command::RPRT | command::RPA) => Some(CtReject::unable(explanation::PORT_BLOCK_LENGTH)),
        _ => None,
    }
}
