//! The name server: every request that [`sanloom_wire::ns`] knows, answered (FC-GS, name server).
//!
//! A reject code is part of the protocol: a Linux host takes reason 09 with explanation 07 as "nobody there", and logs in
//! again from the start after any other reject of its discovery.

use super::Switch;
use super::database::Known;
use super::entry::{MAX_DESCRIPTORS, NsEntry};
use super::query::Filter;
use crate::time::Instant;
use sanloom_wire::ct::{CtReason, CtReject};
use sanloom_wire::ns::{
    IpAddress, NsAccept, NsRequest, ProcessAssociator, command, explanation, fcp_feature, has_type, port_type,
};
use sanloom_wire::{FcId, FcType, Wwnn, Wwpn};
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
        // The second byte of a query's code names the key, and its high digit 1 a port identifier (FC-GS).
        let accept = match request.command() {
            command::GA_NXT | 0x0110..=0x011f => self.query_port(id, request),
            0x0101..=0x01ff => self.query_list(id, request),
            _ => self.registration(now, id, request),
        }?;
        Switch::fit(accept, max_words)
    }

    /// What is known of one port.
    fn query_port(&mut self, viewer: FcId, request: &NsRequest) -> Answer {
        use explanation::*;
        let of = |switch: &mut Switch, id: FcId| {
            let known = switch.visible(viewer, id);
            known.map(|known| known.entry.clone()).ok_or(CtReject::unable(PORT_ID_NOT_REGISTERED))
        };
        match *request {
            NsRequest::GaNxt { port_id } => {
                let next = self.next_visible(viewer, port_id).ok_or(CtReject::unable(DATABASE_EMPTY))?;
                let entry = of(self, next)?;
                let node = self.of_node(viewer, entry.node_name, symbolic_node_name).unwrap_or_default();
                let mut object = entry.to_object(&node);
                object.node_ip = self.of_node(viewer, entry.node_name, node_ip).unwrap_or_default();
                object.process_associator =
                    self.of_node(viewer, entry.node_name, process_associator).unwrap_or_default();
                Ok(NsAccept::Object(Box::new(object)))
            }
            NsRequest::GpnId { port_id } => Ok(NsAccept::PortName(of(self, port_id)?.port_name)),
            NsRequest::GnnId { port_id } => Ok(NsAccept::NodeName(of(self, port_id)?.node_name)),
            NsRequest::GcsId { port_id } => match of(self, port_id)?.classes {
                0 => Err(CtReject::unable(CLASS_NOT_REGISTERED)),
                classes => Ok(NsAccept::Classes(classes)),
            },
            NsRequest::GftId { port_id } => match of(self, port_id)?.types {
                [0, 0, 0, 0, 0, 0, 0, 0] => Err(CtReject::unable(FC4_TYPES_NOT_REGISTERED)),
                types => Ok(NsAccept::Types(types)),
            },
            NsRequest::GspnId { port_id } => match of(self, port_id)?.symbolic_port_name() {
                [] => Err(CtReject::unable(SYMBOLIC_PORT_NAME_NOT_REGISTERED)),
                name => Ok(NsAccept::SymbolicName(name.into())),
            },
            NsRequest::GptId { port_id } => match of(self, port_id)?.port_type {
                port_type::UNKNOWN => Err(CtReject::unable(PORT_TYPE_NOT_REGISTERED)),
                port_type => Ok(NsAccept::PortType(port_type)),
            },
            NsRequest::GfpnId { port_id } => Ok(NsAccept::FabricPortName(of(self, port_id)?.fabric_port_name)),
            NsRequest::GippId { port_id } => ip(of(self, port_id)?.rare().port_ip, PORT_IP_NOT_REGISTERED),
            NsRequest::GhaId { port_id } => match of(self, port_id)?.rare().hard_address {
                FcId::ZERO => Err(CtReject::unable(HARD_ADDRESS_NOT_REGISTERED)),
                address => Ok(NsAccept::HardAddress(address)),
            },
            NsRequest::GfdId { port_id, types } => {
                let entry = of(self, port_id)?;
                let registered = &entry.rare().descriptors;
                let of_type = |wanted: u8| registered.iter().find(|(of, _)| *of == wanted);
                let wanted = (0..=u8::MAX).filter(|fc4_type| has_type(&types, *fc4_type)).map(of_type);
                match registered.iter().any(|(of, _)| has_type(&types, *of)) {
                    true => Ok(NsAccept::Descriptors(
                        wanted.map(|found| found.map(|(_, text)| text.clone()).unwrap_or_default()).collect(),
                    )),
                    false => Err(CtReject::unable(FC4_DESCRIPTORS_NOT_REGISTERED)),
                }
            }
            NsRequest::GffId { port_id } => {
                let features = of(self, port_id)?.feature_map();
                match features.iter().any(|byte| *byte != 0) {
                    true => Ok(NsAccept::Features(features)),
                    false => Err(CtReject::unable(FC4_FEATURES_NOT_REGISTERED)),
                }
            }
            _ => Err(UNSUPPORTED),
        }
    }

    /// Ports with something in common.
    fn query_list(&mut self, viewer: FcId, request: &NsRequest) -> Answer {
        use explanation::*;
        match *request {
            NsRequest::GidPn { port_name } => {
                let id = self.database.id_of(port_name);
                let seen = id.filter(|id| self.visible(viewer, *id).is_some());
                seen.map(NsAccept::PortId).ok_or(CtReject::unable(PORT_NAME_NOT_REGISTERED))
            }
            NsRequest::GidNn { node_name } => {
                let ids = ids(self.visible_of_node(viewer, node_name));
                some(ids).map(NsAccept::PortIds).ok_or(CtReject::unable(NODE_NAME_NOT_REGISTERED))
            }
            NsRequest::GippPn { port_name } => {
                let id = self.database.id_of(port_name);
                let seen = id.and_then(|id| self.visible(viewer, id));
                let address = seen.map(|known| known.entry.rare().port_ip);
                ip(address.ok_or(CtReject::unable(PORT_NAME_NOT_REGISTERED))?, PORT_IP_NOT_REGISTERED)
            }
            NsRequest::GpnNn { node_name } => {
                let names = port_names(self.visible_of_node(viewer, node_name));
                some(names).map(NsAccept::PortNames).ok_or(CtReject::unable(NODE_NAME_NOT_REGISTERED))
            }
            NsRequest::GipNn { node_name } => {
                self.node_exists(viewer, node_name)?;
                ip(self.of_node(viewer, node_name, node_ip).unwrap_or_default(), NODE_IP_NOT_REGISTERED)
            }
            NsRequest::GipaNn { node_name } => {
                self.node_exists(viewer, node_name)?;
                let found = self.of_node(viewer, node_name, process_associator);
                found.map(NsAccept::ProcessAssociator).ok_or(CtReject::unable(IPA_NOT_REGISTERED))
            }
            NsRequest::GsnnNn { node_name } => {
                self.node_exists(viewer, node_name)?;
                let name = self.of_node(viewer, node_name, symbolic_node_name);
                name.map(NsAccept::SymbolicName).ok_or(CtReject::unable(SYMBOLIC_NODE_NAME_NOT_REGISTERED))
            }
            NsRequest::GnnIp { ip } => {
                let node = self.node_with_ip(viewer, ip)?;
                Ok(NsAccept::NodeName(node))
            }
            NsRequest::GipaIp { ip } => {
                let node = self.node_with_ip(viewer, ip)?;
                let found = self.of_node(viewer, node, process_associator);
                found.map(NsAccept::ProcessAssociator).ok_or(CtReject::unable(IPA_NOT_REGISTERED))
            }
            NsRequest::GidIpp { ip } => Ok(NsAccept::PortIds(ids(self.with_port_ip(viewer, ip)?))),
            NsRequest::GpnIpp { ip } => Ok(NsAccept::PortNames(port_names(self.with_port_ip(viewer, ip)?))),
            NsRequest::GidA { domain } => {
                let filter = Filter { domain, ..EVERYWHERE };
                let mut scopes = ids(self.visible_objects(viewer, filter, |_| true));
                scopes.iter_mut().for_each(|id| {
                    *id = FcId::from_parts(id.domain(), if domain == 0 { 0 } else { id.area() }, 0);
                });
                scopes.dedup();
                some(scopes).map(NsAccept::PortIds).ok_or(nobody(domain, DATABASE_EMPTY))
            }
            NsRequest::GidFt { domain, area, fc4_type } => {
                let found = self.of_type(viewer, domain, area, fc4_type)?;
                Ok(NsAccept::PortIds(ids(found)))
            }
            NsRequest::GpnFt { domain, area, fc4_type } => {
                let found = self.of_type(viewer, domain, area, fc4_type)?;
                Ok(NsAccept::PortNames(port_names(found)))
            }
            NsRequest::GnnFt { domain, area, fc4_type } => {
                let found = self.of_type(viewer, domain, area, fc4_type)?;
                let name = |(id, known): (FcId, &Known)| (id, known.entry.node_name);
                Ok(NsAccept::NodeNames(found.into_iter().map(name).collect()))
            }
            NsRequest::GidPt { port_type, domain, area } => {
                let filter = Filter { domain, area, ..EVERYWHERE };
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
                    return Err(CtReject::unable(ACCESS_DENIED));
                }
                self.register(now, id, *port_id, |_| {})
            }
            NsRequest::RnnId { port_id, node_name } => {
                let own = self.database.get(id).map(|known| known.entry.node_name);
                if *port_id == id && own != Some(*node_name) && self.config.zoning.uses_node_names() {
                    return Err(CtReject::unable(ACCESS_DENIED));
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
            NsRequest::RippId { port_id, ip } => {
                self.register(now, id, *port_id, |entry| entry.set_rare(|rare| rare.port_ip = *ip))
            }
            NsRequest::RhaId { port_id, hard_address } => {
                self.register(now, id, *port_id, |entry| entry.set_rare(|rare| rare.hard_address = *hard_address))
            }
            NsRequest::RfdId { port_id, descriptors } => {
                if descriptors.len() > MAX_DESCRIPTORS {
                    return Err(CtReject::unable(DATABASE_FULL));
                }
                let set = |entry: &mut NsEntry| entry.set_rare(|rare| rare.descriptors = descriptors.clone());
                self.register(now, id, *port_id, set)
            }
            NsRequest::RipNn { node_name, ip } => {
                self.register_node(now, id, *node_name, |entry| entry.set_rare(|rare| rare.node_ip = *ip))
            }
            NsRequest::RipaNn { node_name, process_associator } => self.register_node(now, id, *node_name, |entry| {
                entry.set_rare(|rare| rare.process_associator = *process_associator);
            }),
            NsRequest::RsnnNn { node_name, symbolic_name } => {
                self.register_node(now, id, *node_name, |entry| entry.set_symbolic_node_name(symbolic_name))
            }
            NsRequest::DaId { port_id } => self.register(now, id, *port_id, NsEntry::deregister),
            _ => Err(UNSUPPORTED),
        }
    }

    /// Changes what the requester's object says of its own node.
    fn register_node(&mut self, now: Instant, id: FcId, node: Wwnn, change: impl FnOnce(&mut NsEntry)) -> Answer {
        let own = self.database.get(id).map(|known| known.entry.node_name);
        if own != Some(node) {
            return Err(CtReject::unable(explanation::NODE_NAME_NOT_REGISTERED));
        }
        self.register(now, id, id, change)
    }

    /// Changes the object of `port_id` on behalf of the port `id`: nobody registers for another port. Tells the others
    /// what they have to know.
    fn register(&mut self, now: Instant, id: FcId, port_id: FcId, change: impl FnOnce(&mut NsEntry)) -> Answer {
        if port_id != id {
            let known = self.database.get(port_id).is_some();
            return Err(CtReject::unable(match known {
                true => explanation::ACCESS_DENIED,
                false => explanation::UNACCEPTABLE_PORT_ID,
            }));
        }
        let Some(known) = self.database.get(id) else {
            return Err(CtReject::unable(explanation::PORT_ID_NOT_REGISTERED));
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

    /// An attribute of a node, from whichever visible port of it registered one.
    fn of_node<T>(&mut self, viewer: FcId, node: Wwnn, attribute: impl Fn(&NsEntry) -> Option<T>) -> Option<T> {
        self.visible_of_node(viewer, node).into_iter().find_map(|(_, known)| attribute(&known.entry))
    }

    fn node_exists(&mut self, viewer: FcId, node: Wwnn) -> Result<(), CtReject> {
        match self.visible_of_node(viewer, node).is_empty() {
            true => Err(CtReject::unable(explanation::NODE_NAME_NOT_REGISTERED)),
            false => Ok(()),
        }
    }

    /// The node with an IP address; of several, that of the lowest port identifier.
    fn node_with_ip(&mut self, viewer: FcId, ip: IpAddress) -> Result<Wwnn, CtReject> {
        let found = self.visible_objects(viewer, EVERYWHERE, |known| node_ip(&known.entry) == Some(ip));
        found
            .first()
            .map(|(_, known)| known.entry.node_name)
            .ok_or(CtReject::unable(explanation::NODE_IP_NOT_REGISTERED))
    }

    /// Ports with an IP address; at least one.
    fn with_port_ip(&mut self, viewer: FcId, ip: IpAddress) -> Result<Vec<(FcId, &Known)>, CtReject> {
        let registered = |known: &Known| ip != NO_IP && known.entry.rare().port_ip == ip;
        let found = self.visible_objects(viewer, EVERYWHERE, registered);
        some(found).ok_or(CtReject::unable(explanation::PORT_IP_NOT_REGISTERED))
    }
}

/// All objects.
const EVERYWHERE: Filter = Filter { domain: 0, area: 0, targets_only: false };
/// No address is registered.
const NO_IP: IpAddress = [0; 16];

fn symbolic_node_name(entry: &NsEntry) -> Option<Box<[u8]>> {
    Some(entry.symbolic_node_name()).filter(|name| !name.is_empty()).map(Box::from)
}

fn node_ip(entry: &NsEntry) -> Option<IpAddress> {
    Some(entry.rare().node_ip).filter(|ip| *ip != NO_IP)
}

fn process_associator(entry: &NsEntry) -> Option<ProcessAssociator> {
    Some(entry.rare().process_associator).filter(|associator| *associator != [0; 8])
}

fn ip(address: IpAddress, not_registered: u8) -> Answer {
    match address {
        NO_IP => Err(CtReject::unable(not_registered)),
        address => Ok(NsAccept::Ip(address)),
    }
}

/// A command that the name server does not have.
const UNSUPPORTED: CtReject = CtReject::new(CtReason::NOT_SUPPORTED, explanation::NONE);

/// Nothing was found: because nobody registered it, or nobody in the domain that was asked for.
const fn nobody(domain: u8, not_registered: u8) -> CtReject {
    CtReject::unable(if domain == 0 { not_registered } else { explanation::NO_OBJECT_IN_SCOPE })
}

fn ids(found: Vec<(FcId, &Known)>) -> Vec<FcId> {
    found.into_iter().map(|(id, _)| id).collect()
}

fn port_names(found: Vec<(FcId, &Known)>) -> Vec<(FcId, Wwpn)> {
    found.into_iter().map(|(id, known)| (id, known.entry.port_name)).collect()
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
