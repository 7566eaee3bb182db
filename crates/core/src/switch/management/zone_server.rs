//! The fabric zone server towards N_Ports (FC-GS, CT service FA/03): queries are answered from the committed database, and a
//! change is answered when it is in force in the whole fabric, or has failed.
//!
//! ```text
//!            change                                             ZonesChanged
//!   quiet ------------> pending: Output::ChangeZones is out ------------------> answered
//!                          |
//!                          | ABTS, LOGO, or a login anew
//!                          v
//!                       forgotten: the change goes on, its answer is nobody's
//! ```
//!
//! Any port that is logged in with the management server may change zones, as with switches whose access list is empty.
//!
//! Absent: sessions of enhanced zoning (SSB to CMIT), which are rejected as not supported.

use super::super::Switch;
use crate::zoning::ZoneDatabase;
use crate::zoning::requests::{Answer, answer, reject_of};
use crate::zoning::server::{ChangeFailure, ZoneChange};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject};
use sanloom_wire::fzs::{FzsAccept, FzsRequest, explanation};
use sanloom_wire::{FcId, Header};
use std::collections::BTreeMap;

/// So many changes of N_Ports may wait for the fabric at once; more are told to come back.
const MAX_PENDING: usize = 16;

/// What the zone server knows, and who waits for an answer.
#[derive(Debug, Default)]
pub(super) struct ZoneRequests {
    /// Nothing: the switch knows no zoning.
    database: Option<ZoneDatabase>,
    pending: BTreeMap<u32, Pending>,
    next_tag: u32,
}

/// A request that waits for the fabric.
#[derive(Debug)]
struct Pending {
    port: u16,
    header: Header,
    request: Ct,
}

impl ZoneRequests {
    /// Nobody waits for answers to this port any more.
    pub(super) fn forget(&mut self, id: FcId) {
        self.pending.retain(|_, pending| pending.header.s_id != id);
    }

    /// The exchange of a port is aborted.
    fn abort(&mut self, id: FcId, ox_id: u16) {
        self.pending.retain(|_, pending| (pending.header.s_id, pending.header.ox_id) != (id, ox_id));
    }
}

impl Switch {
    /// The database that queries are answered from.
    pub(in super::super) fn set_zone_database(&mut self, database: Option<ZoneDatabase>) {
        self.management.zones.database = database;
    }

    /// An ABTS for an exchange of the port.
    pub(in super::super) fn zone_request_aborted(&mut self, id: FcId, ox_id: u16) {
        self.management.zones.abort(id, ox_id);
    }

    /// A request to the zone server. Nothing: it is answered by [`zones_changed`](Switch::zones_changed).
    pub(super) fn zone_request(
        &mut self,
        port: u16,
        header: &Header,
        ct: &Ct,
        request: &FzsRequest,
    ) -> Option<super::Answer> {
        let hard = self.zones_hard();
        let Some(database) = &self.management.zones.database else {
            return Some(Err(CtReject::unable(explanation::ZONING_NOT_SUPPORTED)));
        };
        match answer(request, database, hard) {
            Answer::Accept(accept) => Some(Ok(CtBody::FzsAccept(accept))),
            Answer::Reject(reject) => Some(Err(reject)),
            Answer::Change(change) => self.ask_for_change(port, header, ct, change),
        }
    }

    fn ask_for_change(&mut self, port: u16, header: &Header, ct: &Ct, change: ZoneChange) -> Option<super::Answer> {
        let zones = &mut self.management.zones;
        if zones.pending.len() >= MAX_PENDING {
            let busy = CtReject::new(CtReason::LOGICAL_BUSY, explanation::NONE);
            return Some(Err(busy));
        }
        let tag = zones.next_tag;
        zones.next_tag = tag.wrapping_add(1);
        zones.pending.insert(tag, Pending { port, header: *header, request: ct.clone() });
        self.outputs.push_back(super::super::Output::ChangeZones { tag, change });
        None
    }

    /// A change that an N_Port asked for is in force everywhere, or nowhere.
    pub(in super::super) fn zones_changed(&mut self, tag: u32, result: &Result<(), Vec<ChangeFailure>>) {
        let Some(Pending { port, header, request }) = self.management.zones.pending.remove(&tag) else { return };
        let answer = match result {
            Ok(()) => Ok((CtBody::FzsAccept(FzsAccept::Empty), 0)),
            Err(failures) => Err(reject_of(failures)),
        };
        self.answer_transport(port, &header, &request, answer);
    }
}
