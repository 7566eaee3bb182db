//! The name server: every request that [`sanloom_wire::ns`] knows, answered (FC-GS, name server).
//!
//! A reject code is part of the protocol: a Linux host takes reason 09 with explanation 07 as "nobody there", and logs in
//! again from the start after any other reject of its discovery.

use super::Switch;
use super::database::Known;
use super::entry::NsEntry;
use super::query::Filter;
use crate::time::Instant;
use sanloom_wire::ct::{CtReason, CtReject};
use sanloom_wire::ns::{NsAccept, NsRequest, explanation, fcp_feature, port_type};
use sanloom_wire::{FcId, FcType, Wwnn};
use std::sync::Arc;

type Answer = Result<NsAccept, CtReject>;

impl Switch {
    /// Answers a request of the port `id`, which is logged in here. The second value of an accept is the number of words
    /// that did not fit into `max_words`.
    pub(super) fn name_server_request(
        &mut self,
        now: Instant,
        id: FcId,
        request: &NsRequest,
        max_words: u16,
    ) -> Result<(NsAccept, u16), CtReject> {
        let accept = match request {
            NsRequest::GaNxt { .. }
            | NsRequest::GpnId { .. }
            | NsRequest::GnnId { .. }
            | NsRequest::GcsId { .. }
            | NsRequest::GftId { .. }
            | NsRequest::GspnId { .. }
            | NsRequest::GptId { .. }
            | NsRequest::GfpnId { .. }
            | NsRequest::GffId { .. } => self.query_port(id, request),
            NsRequest::GidPn { .. }
            | NsRequest::GidNn { .. }
            | NsRequest::GsnnNn { .. }
            | NsRequest::GidFt { .. }
            | NsRequest::GpnFt { .. }
            | NsRequest::GnnFt { .. }
            | NsRequest::GidPt { .. }
            | NsRequest::GidFf { .. } => self.query_list(id, request),
            NsRequest::RpnId { .. }
            | NsRequest::RnnId { .. }
            | NsRequest::RcsId { .. }
            | NsRequest::RftId { .. }
            | NsRequest::RspnId { .. }
            | NsRequest::RptId { .. }
            | NsRequest::RffId { .. }
            | NsRequest::RsnnNn { .. }
            | NsRequest::DaId { .. } => self.registration(now, id, request),
        }?;
        Switch::fit(accept, max_words)
    }

    /// What is known of one port.
    fn query_port(&mut self, viewer: FcId, request: &NsRequest) -> Answer {
        use explanation::*;
        let of = |switch: &mut Switch, id: FcId| {
            let known = switch.visible(viewer, id);
            known.map(|known| known.entry.clone()).ok_or(unable(PORT_ID_NOT_REGISTERED))
        };
        match *request {
            NsRequest::GaNxt { port_id } => {
                let next = self.next_visible(viewer, port_id).ok_or(unable(DATABASE_EMPTY))?;
                let entry = of(self, next)?;
                let node = self.symbolic_node_name(viewer, entry.node_name).unwrap_or_default();
                Ok(NsAccept::Object(Box::new(entry.to_object(&node))))
            }
            NsRequest::GpnId { port_id } => Ok(NsAccept::PortName(of(self, port_id)?.port_name)),
            NsRequest::GnnId { port_id } => Ok(NsAccept::NodeName(of(self, port_id)?.node_name)),
            NsRequest::GcsId { port_id } => match of(self, port_id)?.classes {
                0 => Err(unable(CLASS_NOT_REGISTERED)),
                classes => Ok(NsAccept::Classes(classes)),
            },
            NsRequest::GftId { port_id } => match of(self, port_id)?.types {
                [0, 0, 0, 0, 0, 0, 0, 0] => Err(unable(FC4_TYPES_NOT_REGISTERED)),
                types => Ok(NsAccept::Types(types)),
            },
            NsRequest::GspnId { port_id } => match of(self, port_id)?.symbolic_port_name() {
                [] => Err(unable(SYMBOLIC_PORT_NAME_NOT_REGISTERED)),
                name => Ok(NsAccept::SymbolicName(name.into())),
            },
            NsRequest::GptId { port_id } => match of(self, port_id)?.port_type {
                port_type::UNKNOWN => Err(unable(PORT_TYPE_NOT_REGISTERED)),
                port_type => Ok(NsAccept::PortType(port_type)),
            },
            NsRequest::GfpnId { port_id } => Ok(NsAccept::FabricPortName(of(self, port_id)?.fabric_port_name)),
            NsRequest::GffId { port_id } => {
                let features = of(self, port_id)?.feature_map();
                match features.iter().any(|byte| *byte != 0) {
                    true => Ok(NsAccept::Features(features)),
                    false => Err(unable(FC4_FEATURES_NOT_REGISTERED)),
                }
            }
            _ => Err(UNSUPPORTED),
        }
    }

    /// Ports with something in common.
    fn query_list(&mut self, viewer: FcId, request: &NsRequest) -> Answer {
        use explanation::*;
        let everywhere = Filter { domain: 0, area: 0, targets_only: false };
        match *request {
            NsRequest::GidPn { port_name } => {
                let id = self.database.id_of(port_name);
                let seen = id.filter(|id| self.visible(viewer, *id).is_some());
                seen.map(NsAccept::PortId).ok_or(unable(PORT_NAME_NOT_REGISTERED))
            }
            NsRequest::GidNn { node_name } => {
                let ids = ids(self.visible_of_node(viewer, node_name));
                some(ids).map(NsAccept::PortIds).ok_or(unable(NODE_NAME_NOT_REGISTERED))
            }
            NsRequest::GsnnNn { node_name } => {
                if self.visible_of_node(viewer, node_name).is_empty() {
                    return Err(unable(NODE_NAME_NOT_REGISTERED));
                }
                let name = self.symbolic_node_name(viewer, node_name);
                name.map(NsAccept::SymbolicName).ok_or(unable(SYMBOLIC_NODE_NAME_NOT_REGISTERED))
            }
            NsRequest::GidFt { domain, area, fc4_type } => {
                let found = self.of_type(viewer, domain, area, fc4_type)?;
                Ok(NsAccept::PortIds(ids(found)))
            }
            NsRequest::GpnFt { domain, area, fc4_type } => {
                let found = self.of_type(viewer, domain, area, fc4_type)?;
                let name = |(id, known): (FcId, &Known)| (id, known.entry.port_name);
                Ok(NsAccept::PortNames(found.into_iter().map(name).collect()))
            }
            NsRequest::GnnFt { domain, area, fc4_type } => {
                let found = self.of_type(viewer, domain, area, fc4_type)?;
                let name = |(id, known): (FcId, &Known)| (id, known.entry.node_name);
                Ok(NsAccept::NodeNames(found.into_iter().map(name).collect()))
            }
            NsRequest::GidPt { port_type, domain, area } => {
                let filter = Filter { domain, area, ..everywhere };
                // 7F asks for Nx_Ports of any kind.
                let wanted = |known: &Known| match port_type {
                    port_type::NX_PORT => known.entry.port_type < port_type::NX_PORT,
                    _ => known.entry.port_type == port_type,
                };
                let found = some(ids(self.visible_objects(viewer, filter, wanted)));
                found.map(NsAccept::PortIds).ok_or(nobody(domain, PORT_TYPE_NOT_REGISTERED))
            }
            NsRequest::GidFf { domain, area, features, fc4_type } => {
                let features = features & 0x0f;
                let targets = fc4_type == FcType::FCP.0 && features & fcp_feature::TARGET != 0;
                let filter = Filter { domain, area, targets_only: targets };
                let wanted = |known: &Known| {
                    let has = known.entry.features_of(fc4_type);
                    has & features == features && (features != 0 || known.entry.has_type(fc4_type))
                };
                let found = some(ids(self.visible_objects(viewer, filter, wanted)));
                found.map(NsAccept::PortIds).ok_or(nobody(domain, FC4_FEATURES_NOT_REGISTERED))
            }
            _ => Err(UNSUPPORTED),
        }
    }

    /// Changes the requester's own object.
    fn registration(&mut self, now: Instant, id: FcId, request: &NsRequest) -> Answer {
        use explanation::*;
        match request {
            NsRequest::RpnId { port_id, port_name } => {
                // The name came with the fabric login, and zones hold by it.
                let own = self.database.get(id).map(|known| known.entry.port_name);
                if *port_id == id && own != Some(*port_name) {
                    return Err(unable(ACCESS_DENIED));
                }
                self.register(now, id, *port_id, |_| {})
            }
            NsRequest::RnnId { port_id, node_name } => {
                let own = self.database.get(id).map(|known| known.entry.node_name);
                if *port_id == id && own != Some(*node_name) && self.config.zoning.uses_node_names() {
                    return Err(unable(ACCESS_DENIED));
                }
                self.register(now, id, *port_id, |entry| entry.node_name = *node_name)
            }
            NsRequest::RcsId { port_id, classes } => self.register(now, id, *port_id, |entry| entry.classes = *classes),
            NsRequest::RftId { port_id, types } => self.register(now, id, *port_id, |entry| entry.types = *types),
            NsRequest::RspnId { port_id, symbolic_name } => {
                self.register(now, id, *port_id, |entry| entry.set_symbolic_port_name(symbolic_name))
            }
            NsRequest::RptId { port_id, port_type } => {
                self.register(now, id, *port_id, |entry| entry.port_type = *port_type)
            }
            NsRequest::RffId { port_id, features, fc4_type } => {
                self.register(now, id, *port_id, |entry| entry.set_features(*fc4_type, *features))
            }
            NsRequest::RsnnNn { node_name, symbolic_name } => {
                let own = self.database.get(id).map(|known| known.entry.node_name);
                if own != Some(*node_name) {
                    return Err(unable(NODE_NAME_NOT_REGISTERED));
                }
                self.register(now, id, id, |entry| entry.set_symbolic_node_name(symbolic_name))
            }
            NsRequest::DaId { port_id } => self.register(now, id, *port_id, NsEntry::deregister),
            _ => Err(UNSUPPORTED),
        }
    }

    /// Changes the object of `port_id` on behalf of the port `id`: nobody registers for another port. Tells the others
    /// what they have to know.
    fn register(&mut self, now: Instant, id: FcId, port_id: FcId, change: impl FnOnce(&mut NsEntry)) -> Answer {
        if port_id != id {
            let known = self.database.get(port_id).is_some();
            return Err(unable(match known {
                true => explanation::ACCESS_DENIED,
                false => explanation::UNACCEPTABLE_PORT_ID,
            }));
        }
        let Some(known) = self.database.get(id) else {
            return Err(unable(explanation::PORT_ID_NOT_REGISTERED));
        };
        let Known { entry: old, place } = known.clone();
        let mut new = (*old).clone();
        new.listed = true;
        change(&mut new);
        if new == *old {
            return Ok(NsAccept::Empty);
        }
        let new = Arc::new(new);
        self.database.insert(Known { entry: new.clone(), place: place.clone() });
        let discovered = old.differs_for_discovery(&new);
        if let Some(login) = self.logins.get_mut(&id) {
            login.announced |= discovered;
            if login.announced {
                self.publish(&new);
            }
        }
        if discovered {
            self.notify(now, id, &place, false);
        }
        Ok(NsAccept::Empty)
    }

    /// Ports of an FC-4 type that `viewer` may see; at least one.
    fn of_type(&mut self, viewer: FcId, domain: u8, area: u8, fc4_type: u8) -> Result<Vec<(FcId, &Known)>, CtReject> {
        let filter = Filter { domain, area, targets_only: false };
        let found = self.visible_objects(viewer, filter, |known| known.entry.has_type(fc4_type));
        some(found).ok_or(nobody(domain, explanation::FC4_TYPES_NOT_REGISTERED))
    }

    /// The symbolic name of a node, from whichever visible port of it registered one.
    fn symbolic_node_name(&mut self, viewer: FcId, node: Wwnn) -> Option<Box<[u8]>> {
        let ports = self.visible_of_node(viewer, node);
        let mut names = ports.into_iter().map(|(_, known)| known.entry.symbolic_node_name());
        names.find(|name| !name.is_empty()).map(Box::from)
    }
}

/// A command that the name server does not have.
const UNSUPPORTED: CtReject = CtReject { reason: CtReason::NOT_SUPPORTED, explanation: explanation::NONE, vendor: 0 };

const fn unable(explanation: u8) -> CtReject {
    CtReject { reason: CtReason::UNABLE, explanation, vendor: 0 }
}

/// Nothing was found: because nobody registered it, or nobody in the domain that was asked for.
const fn nobody(domain: u8, not_registered: u8) -> CtReject {
    unable(if domain == 0 { not_registered } else { explanation::NO_OBJECT_IN_SCOPE })
}

fn ids(found: Vec<(FcId, &Known)>) -> Vec<FcId> {
    found.into_iter().map(|(id, _)| id).collect()
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
