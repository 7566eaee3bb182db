//! Registration of attributes with the name server (FC-GS, name server).

use super::database::{Database, Known};
use super::entry::{MAX_DESCRIPTORS, NsEntry, deregister};
use super::name_server::UNSUPPORTED;
use crate::fabric::ZoneMembership;
use sanloom_wire::ct::CtReject;
use sanloom_wire::ns::{NsRecord, NsRequest, explanation};
use sanloom_wire::{FcId, Wwnn};
use std::sync::Arc;

/// Result of a registration: the changed object, or `None` if it is as before.
type Answer = Result<Option<Registered>, CtReject>;

/// Registration that changed the object of a port.
pub(super) struct Registered {
    /// New object.
    pub(super) entry: NsEntry,
    pub(super) membership: ZoneMembership,
    /// True if the change needs an RSCN.
    pub(super) affects_discovery: bool,
}

impl Database {
    /// Changes the object of the port `id` as its request demands. The result is `None` if that
    /// changes nothing.
    pub(super) fn register(&mut self, id: FcId, request: &NsRequest) -> Answer {
        use explanation::*;
        match request {
            NsRequest::RpnId { port_id, port_name } => {
                // The name is fixed by the fabric login, because zones depend on it.
                let own = self.get(id).map(|known| known.entry.port_name);
                if *port_id == id && own != Some(*port_name) {
                    return Err(CtReject::unable(ACCESS_DENIED));
                }
                self.change_own(id, *port_id, |_| {})
            }
            NsRequest::RnnId { port_id, node_name } => {
                let own = self.get(id).map(|known| known.entry.node_name);
                if *port_id == id && own != Some(*node_name) && self.zones().uses_node_names() {
                    return Err(CtReject::unable(ACCESS_DENIED));
                }
                self.change_own(id, *port_id, |entry| entry.node_name = *node_name)
            }
            NsRequest::RcsId { port_id, classes } => self.change_own(id, *port_id, |entry| entry.classes = *classes),
            NsRequest::RftId { port_id, types } => self.change_own(id, *port_id, |entry| entry.types = *types),
            NsRequest::RspnId { port_id, symbolic_name } => {
                self.change_own(id, *port_id, |entry| entry.set_symbolic_port_name(symbolic_name))
            }
            NsRequest::RptId { port_id, port_type } => {
                self.change_own(id, *port_id, |entry| entry.port_type = *port_type)
            }
            NsRequest::RffId { port_id, features, fc4_type } => {
                self.change_own(id, *port_id, |entry| entry.set_features(*fc4_type, *features))
            }
            NsRequest::RippId { port_id, ip } => {
                self.change_own(id, *port_id, |entry| entry.set_rare(|rare| rare.port_ip = *ip))
            }
            NsRequest::RhaId { port_id, hard_address } => {
                self.change_own(id, *port_id, |entry| entry.set_rare(|rare| rare.hard_address = *hard_address))
            }
            NsRequest::RfdId { port_id, descriptors } => {
                if descriptors.len() > MAX_DESCRIPTORS {
                    return Err(CtReject::unable(DATABASE_FULL));
                }
                let set = |entry: &mut NsRecord| entry.set_rare(|rare| rare.descriptors = descriptors.clone());
                self.change_own(id, *port_id, set)
            }
            NsRequest::RipNn { node_name, ip } => {
                self.change_node(id, *node_name, |entry| entry.set_rare(|rare| rare.node_ip = *ip))
            }
            NsRequest::RipaNn { node_name, process_associator } => self.change_node(id, *node_name, |entry| {
                entry.set_rare(|rare| rare.process_associator = *process_associator);
            }),
            NsRequest::RsnnNn { node_name, symbolic_name } => {
                self.change_node(id, *node_name, |entry| entry.set_symbolic_node_name(symbolic_name))
            }
            NsRequest::DaId { port_id } => self.change_own(id, *port_id, deregister),
            _ => Err(UNSUPPORTED),
        }
    }

    /// Changes the node attributes in the requester's own object.
    fn change_node(&mut self, id: FcId, node: Wwnn, change: impl FnOnce(&mut NsRecord)) -> Answer {
        let own = self.get(id).map(|known| known.entry.node_name);
        if own != Some(node) {
            return Err(CtReject::unable(explanation::NODE_NAME_NOT_REGISTERED));
        }
        self.change_own(id, id, change)
    }

    /// Changes the object of `port_id` on behalf of the port `id`; a port cannot register for
    /// another one.
    fn change_own(&mut self, id: FcId, port_id: FcId, change: impl FnOnce(&mut NsRecord)) -> Answer {
        if port_id != id {
            let known = self.get(port_id).is_some();
            return Err(CtReject::unable(match known {
                true => explanation::ACCESS_DENIED,
                false => explanation::UNACCEPTABLE_PORT_ID,
            }));
        }
        let Some(known) = self.get(id) else {
            return Err(CtReject::unable(explanation::PORT_ID_NOT_REGISTERED));
        };
        let Known { entry: old, membership } = known.clone();
        let mut record = (*old.record).clone();
        record.listed = true;
        change(&mut record);
        if record == *old.record {
            return Ok(None);
        }
        let entry = NsEntry { record: Arc::new(record), logged_in_at: old.logged_in_at };
        let affects_discovery = old.differs_for_discovery(&entry);
        self.insert(Known { entry: entry.clone(), membership: membership.clone() });
        Ok(Some(Registered { entry, membership, affects_discovery }))
    }
}
