//! The name server: replies to every request of [`sanloom_wire::ns`] (FC-GS, name server).
//!
//! Reject codes are part of the protocol. A Linux host interprets reason 09 with explanation 07 as
//! an empty result, and restarts its login after any other reject during discovery.

use super::Work;
use super::database::{Database, Known};
use super::entry::NsEntry;
use super::query::{Filter, Query, fit};
use sanloom_wire::ct::{CtReason, CtReject};
use sanloom_wire::ns::{
    IpAddress, NsAccept, NsRequest, ProcessAssociator, command, explanation, fcp_feature, has_type, port_type,
};
use sanloom_wire::{FcId, FcType, Wwnn, Wwpn};
use std::ops::RangeInclusive;

type Answer = Result<NsAccept, CtReject>;

/// Codes of the queries; the others register or deregister attributes.
const QUERIES: RangeInclusive<u16> = command::GA_NXT..=0x01ff;

/// Returns true for a query, false for a registration.
pub(super) fn is_query(request: &NsRequest) -> bool {
    QUERIES.contains(&request.command())
}

/// Answers a query of the port `viewer`, which is logged in at this switch. The second value of an
/// accept is the number of words that did not fit into `max_words`.
pub(super) fn answer_query(
    objects: &Database,
    viewer: FcId,
    request: &NsRequest,
    max_words: u16,
    work: &mut Work,
) -> Result<(NsAccept, u16), CtReject> {
    let mut query = Query { objects, viewer, work };
    // The second byte of the code names the key; its high digit is 1 for a port identifier (FC-GS).
    let accept = match request.command() {
        command::GA_NXT | 0x0110..=0x011f => query.of_port(request),
        _ => query.of_list(request),
    }?;
    fit(accept, max_words)
}

impl<'d> Query<'d> {
    /// Answers a query about one port.
    fn of_port(&mut self, request: &NsRequest) -> Answer {
        use explanation::*;
        let of = |query: &mut Query<'d>, id: FcId| {
            let known = query.visible(id);
            known.map(|known| known.entry.clone()).ok_or(CtReject::unable(PORT_ID_NOT_REGISTERED))
        };
        match *request {
            NsRequest::GaNxt { port_id } => {
                let next = self.next_visible(port_id).ok_or(CtReject::unable(DATABASE_EMPTY))?;
                let entry = of(self, next)?;
                let node = self.of_node(entry.node_name, symbolic_node_name).unwrap_or_default();
                let mut object = entry.to_object(&node);
                object.node_ip = self.of_node(entry.node_name, node_ip).unwrap_or_default();
                object.process_associator = self.of_node(entry.node_name, process_associator).unwrap_or_default();
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
                let of_type = |fc4_type: u8| registered.iter().find(|(of, _)| *of == fc4_type);
                let selected = (0..=u8::MAX).filter(|fc4_type| has_type(&types, *fc4_type)).map(of_type);
                match registered.iter().any(|(of, _)| has_type(&types, *of)) {
                    true => Ok(NsAccept::Descriptors(
                        selected.map(|found| found.map(|(_, text)| text.clone()).unwrap_or_default()).collect(),
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

    /// Answers a query for the ports with a common attribute.
    fn of_list(&mut self, request: &NsRequest) -> Answer {
        use explanation::*;
        match *request {
            NsRequest::GidPn { port_name } => {
                let id = self.objects.id_of(port_name);
                let seen = id.filter(|id| self.visible(*id).is_some());
                seen.map(NsAccept::PortId).ok_or(CtReject::unable(PORT_NAME_NOT_REGISTERED))
            }
            NsRequest::GidNn { node_name } => {
                let ids = ids(self.visible_of_node(node_name));
                some(ids).map(NsAccept::PortIds).ok_or(CtReject::unable(NODE_NAME_NOT_REGISTERED))
            }
            NsRequest::GippPn { port_name } => {
                let id = self.objects.id_of(port_name);
                let seen = id.and_then(|id| self.visible(id));
                let address = seen.map(|known| known.entry.rare().port_ip);
                ip(address.ok_or(CtReject::unable(PORT_NAME_NOT_REGISTERED))?, PORT_IP_NOT_REGISTERED)
            }
            NsRequest::GpnNn { node_name } => {
                let names = port_names(self.visible_of_node(node_name));
                some(names).map(NsAccept::PortNames).ok_or(CtReject::unable(NODE_NAME_NOT_REGISTERED))
            }
            NsRequest::GipNn { node_name } => {
                self.node_exists(node_name)?;
                ip(self.of_node(node_name, node_ip).unwrap_or_default(), NODE_IP_NOT_REGISTERED)
            }
            NsRequest::GipaNn { node_name } => {
                self.node_exists(node_name)?;
                let found = self.of_node(node_name, process_associator);
                found.map(NsAccept::ProcessAssociator).ok_or(CtReject::unable(IPA_NOT_REGISTERED))
            }
            NsRequest::GsnnNn { node_name } => {
                self.node_exists(node_name)?;
                let name = self.of_node(node_name, symbolic_node_name);
                name.map(NsAccept::SymbolicName).ok_or(CtReject::unable(SYMBOLIC_NODE_NAME_NOT_REGISTERED))
            }
            NsRequest::GnnIp { ip } => {
                let node = self.node_with_ip(ip)?;
                Ok(NsAccept::NodeName(node))
            }
            NsRequest::GipaIp { ip } => {
                let node = self.node_with_ip(ip)?;
                let found = self.of_node(node, process_associator);
                found.map(NsAccept::ProcessAssociator).ok_or(CtReject::unable(IPA_NOT_REGISTERED))
            }
            NsRequest::GidIpp { ip } => Ok(NsAccept::PortIds(ids(self.with_port_ip(ip)?))),
            NsRequest::GpnIpp { ip } => Ok(NsAccept::PortNames(port_names(self.with_port_ip(ip)?))),
            NsRequest::GidA { domain } => {
                let filter = Filter { domain, ..EVERYWHERE };
                let mut scopes = ids(self.visible_objects(filter, |_| true));
                scopes.iter_mut().for_each(|id| {
                    *id = FcId::from_parts(id.domain(), if domain == 0 { 0 } else { id.area() }, 0);
                });
                scopes.dedup();
                some(scopes).map(NsAccept::PortIds).ok_or(empty_result(domain, DATABASE_EMPTY))
            }
            NsRequest::GidFt { domain, area, fc4_type } => {
                let found = self.of_type(domain, area, fc4_type)?;
                Ok(NsAccept::PortIds(ids(found)))
            }
            NsRequest::GpnFt { domain, area, fc4_type } => {
                let found = self.of_type(domain, area, fc4_type)?;
                Ok(NsAccept::PortNames(port_names(found)))
            }
            NsRequest::GnnFt { domain, area, fc4_type } => {
                let found = self.of_type(domain, area, fc4_type)?;
                let name = |(id, known): (FcId, &Known)| (id, known.entry.node_name);
                Ok(NsAccept::NodeNames(found.into_iter().map(name).collect()))
            }
            NsRequest::GidPt { port_type, domain, area } => {
                let filter = Filter { domain, area, ..EVERYWHERE };
                // Port type 7F selects Nx_Ports of any kind.
                let matches = |known: &Known| match port_type {
                    port_type::NX_PORT => known.entry.port_type < port_type::NX_PORT,
                    _ => known.entry.port_type == port_type,
                };
                let found = some(ids(self.visible_objects(filter, matches)));
                found.map(NsAccept::PortIds).ok_or(empty_result(domain, PORT_TYPE_NOT_REGISTERED))
            }
            NsRequest::GidFf { domain, area, features, fc4_type } => {
                let features = features & 0x0f;
                let targets = fc4_type == FcType::FCP.0 && features & fcp_feature::TARGET != 0;
                let filter = Filter { domain, area, targets_only: targets };
                let matches = |known: &Known| {
                    let has = known.entry.features_of(fc4_type);
                    has & features == features && (features != 0 || known.entry.has_type(fc4_type))
                };
                let found = some(ids(self.visible_objects(filter, matches)));
                found.map(NsAccept::PortIds).ok_or(empty_result(domain, FC4_FEATURES_NOT_REGISTERED))
            }
            _ => Err(UNSUPPORTED),
        }
    }

    /// Ports of an FC-4 type that the viewer may see; at least one, otherwise a reject.
    fn of_type(&mut self, domain: u8, area: u8, fc4_type: u8) -> Result<Vec<(FcId, &'d Known)>, CtReject> {
        let filter = Filter { domain, area, targets_only: false };
        let found = self.visible_objects(filter, |known| known.entry.has_type(fc4_type));
        some(found).ok_or(empty_result(domain, explanation::FC4_TYPES_NOT_REGISTERED))
    }

    /// Attribute of a node, from the first visible port of the node that registered one.
    fn of_node<T>(&mut self, node: Wwnn, attribute: impl Fn(&NsEntry) -> Option<T>) -> Option<T> {
        self.visible_of_node(node).into_iter().find_map(|(_, known)| attribute(&known.entry))
    }

    fn node_exists(&mut self, node: Wwnn) -> Result<(), CtReject> {
        match self.visible_of_node(node).is_empty() {
            true => Err(CtReject::unable(explanation::NODE_NAME_NOT_REGISTERED)),
            false => Ok(()),
        }
    }

    /// Node with an IP address; if there are several, the node of the lowest port identifier.
    fn node_with_ip(&mut self, ip: IpAddress) -> Result<Wwnn, CtReject> {
        let found = self.visible_objects(EVERYWHERE, |known| node_ip(&known.entry) == Some(ip));
        found
            .first()
            .map(|(_, known)| known.entry.node_name)
            .ok_or(CtReject::unable(explanation::NODE_IP_NOT_REGISTERED))
    }

    /// Ports with an IP address; at least one, otherwise a reject.
    fn with_port_ip(&mut self, ip: IpAddress) -> Result<Vec<(FcId, &'d Known)>, CtReject> {
        let registered = |known: &Known| ip != NO_IP && known.entry.rare().port_ip == ip;
        let found = self.visible_objects(EVERYWHERE, registered);
        some(found).ok_or(CtReject::unable(explanation::PORT_IP_NOT_REGISTERED))
    }
}

/// Filter that selects all objects.
const EVERYWHERE: Filter = Filter { domain: 0, area: 0, targets_only: false };
/// Value of an IP address that is not registered.
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

/// Reject for an unsupported name-server command.
pub(super) const UNSUPPORTED: CtReject = CtReject::new(CtReason::NOT_SUPPORTED, explanation::NONE);

/// Reject for an empty result: either no port registered the attribute, or none in the requested
/// domain.
const fn empty_result(domain: u8, not_registered: u8) -> CtReject {
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
