//! The fabric zone server for N_Ports (FC-GS, CT service FA/03). It answers queries from the
//! committed database. It answers a change after it is in force in the whole fabric or has failed.
//!
//! ```text
//!            change                                             ZonesChanged
//!   quiet ------------> pending: Output::ChangeZones is out ------------------> answered
//!                          |
//!                          | ABTS, LOGO, or a login anew
//!                          v
//!                       dropped: the change continues, but no reply is sent
//! ```
//!
//! Any port that is logged in with the management server may change zones, as on switches with an
//! empty access list.
//!
//! Absent: sessions of enhanced zoning (SSB to CMIT), which are rejected as not supported.

use super::super::Output;
use super::super::outbox::Outbox;
use crate::zoning::ZoneDatabase;
use crate::zoning::requests::{Answer, answer, reject_of};
use crate::zoning::server::ChangeFailure;
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject};
use sanloom_wire::fzs::{FzsAccept, FzsRequest, explanation};
use sanloom_wire::{FcId, Header};
use std::collections::BTreeMap;

/// Maximum number of pending changes from N_Ports; further ones are rejected as busy.
const MAX_PENDING: usize = 16;

/// Zone database and pending requests of the zone server.
#[derive(Debug, Default)]
pub(in super::super) struct ZoneRequests {
    /// `None`: the switch does not support zoning.
    database: Option<ZoneDatabase>,
    pending: BTreeMap<u32, Pending>,
    next_tag: u32,
}

/// Request pending until the fabric has finished the change.
#[derive(Debug)]
struct Pending {
    port: u16,
    header: Header,
    request: Ct,
}

impl ZoneRequests {
    /// Sets the database that queries are answered from.
    pub(in super::super) fn set_database(&mut self, database: Option<ZoneDatabase>) {
        self.database = database;
    }

    /// Drops the pending requests of a port.
    pub(super) fn drop_requests(&mut self, id: FcId) {
        self.pending.retain(|_, pending| pending.header.s_id != id);
    }

    /// Drops the pending request of an aborted exchange (ABTS).
    pub(in super::super) fn abort(&mut self, id: FcId, ox_id: u16) {
        self.pending.retain(|_, pending| (pending.header.s_id, pending.header.ox_id) != (id, ox_id));
    }

    /// Handles a request to the zone server. If the result is `None`,
    /// [`changed`](ZoneRequests::changed) sends the reply.
    pub(super) fn request(
        &mut self,
        out: &mut Outbox,
        enforced: bool,
        port: u16,
        header: &Header,
        ct: &Ct,
        request: &FzsRequest,
    ) -> Option<super::Answer> {
        let Some(database) = &self.database else {
            return Some(Err(CtReject::unable(explanation::ZONING_NOT_SUPPORTED)));
        };
        match answer(request, database, enforced) {
            Answer::Accept(accept) => Some(Ok(CtBody::FzsAccept(accept))),
            Answer::Reject(reject) => Some(Err(reject)),
            Answer::Change(_) if self.pending.len() >= MAX_PENDING => {
                Some(Err(CtReject::new(CtReason::LOGICAL_BUSY, explanation::NONE)))
            }
            Answer::Change(change) => {
                let tag = self.next_tag;
                self.next_tag = tag.wrapping_add(1);
                self.pending.insert(tag, Pending { port, header: *header, request: ct.clone() });
                out.push(Output::ChangeZones { tag, change });
                None
            }
        }
    }

    /// Completes a change requested by an N_Port: it is in force in the whole fabric or not at all.
    pub(in super::super) fn changed(&mut self, out: &mut Outbox, tag: u32, result: &Result<(), Vec<ChangeFailure>>) {
        let Some(Pending { port, header, request }) = self.pending.remove(&tag) else { return };
        let answer = match result {
            Ok(()) => Ok((CtBody::FzsAccept(FzsAccept::Empty), 0)),
            Err(failures) => Err(reject_of(failures)),
        };
        out.ct_reply(port, &header, &request, answer);
    }
}
