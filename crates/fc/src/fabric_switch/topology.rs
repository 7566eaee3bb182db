//! Switches of the fabric, and the information about them for the fabric configuration server:
//! [`Topology`].
//!
//! No message is sent for it. The domain manager has the switches, the link-state database their
//! links, and the name server the logged-in ports. Therefore only ports in use are known of other
//! switches, and an E_Port that is a bundle appears as one port. Their port names are assumed to be
//! those of [`port_name`], as in this switch.
//!
//! Absent: the texts that switches report about themselves (ESS).

use super::isls::Isls;
use crate::config::LineRate;
use crate::fspf::Fspf;
use crate::switch::{ElementInfo, FabricInfo, NsEntry, PortInfo, Switch, port_name};
use sanloom_wire::ct::Service;
use sanloom_wire::els::speed::bits;
use sanloom_wire::els::{Els, PortSpeed, command};
use sanloom_wire::fcs::port_state;
use sanloom_wire::ns::port_type;
use sanloom_wire::sw_ils::LinkDescriptor;
use sanloom_wire::{FcId, FcType, Frame, Message, Payload, Wwnn, Wwpn};
use std::collections::BTreeMap;

const VENDOR: &str = "sanloom";
const MODEL: &str = "switch";
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Principal switch and members of the fabric.
#[derive(Debug)]
pub(super) struct Topology {
    principal: Option<Wwnn>,
    members: Vec<(u8, Wwnn)>,
    /// The information for the fabric configuration server is out of date.
    info_is_old: bool,
}

impl Topology {
    /// Topology before the first selection of a principal switch.
    pub(super) fn new() -> Topology {
        Topology { principal: None, members: Vec::new(), info_is_old: true }
    }

    pub(super) fn principal(&self) -> Option<Wwnn> {
        self.principal
    }

    pub(super) fn set_principal(&mut self, name: Wwnn) {
        self.principal = Some(name);
    }

    /// Domains of the fabric with their switches, sorted by domain.
    pub(super) fn members(&self) -> &[(u8, Wwnn)] {
        &self.members
    }

    pub(super) fn set_members(&mut self, members: Vec<(u8, Wwnn)>) {
        self.members = members;
    }

    /// Records a change of a machine from which the information is computed.
    pub(super) fn changed(&mut self) {
        self.info_is_old = true;
    }

    /// Returns new information for the fabric configuration server if the frame queries it and
    /// something has changed. Thousands of logins therefore cost nothing here.
    pub(super) fn update_for(
        &mut self,
        frame: &Frame,
        services: &Switch,
        isls: &Isls,
        paths: &Fspf,
    ) -> Option<FabricInfo> {
        if !self.info_is_old || !queries_the_fabric(frame) {
            return None;
        }
        self.info_is_old = false;
        Some(self.fabric_info(services, isls, paths))
    }

    fn fabric_info(&self, services: &Switch, isls: &Isls, paths: &Fspf) -> FabricInfo {
        let others = self.members.iter().filter(|(domain, _)| Some(*domain) != services.domain());
        let mut elements: BTreeMap<u8, ElementInfo> = others
            .map(|&(domain, name)| {
                let ports = self.e_ports(paths, domain, name);
                (domain, ElementInfo { name, ports, ..ElementInfo::default() })
            })
            .collect();
        for entry in services.name_server() {
            if let Some(element) = elements.get_mut(&entry.port_id.domain()) {
                attach(&mut element.ports, entry);
            }
        }
        if let Some(domain) = services.domain() {
            elements.insert(domain, own_element(services, isls));
        }
        FabricInfo { elements }
    }

    /// Ports of another switch that lead to switches.
    fn e_ports(&self, paths: &Fspf, domain: u8, name: Wwnn) -> Vec<PortInfo> {
        let name_of = |domain: u8| self.members.iter().find(|(of, _)| *of == domain).map(|(_, name)| *name);
        let port = |link: &LinkDescriptor| {
            let at_the_other_end = name_of(link.neighbour).zip(u16::try_from(link.neighbour_port).ok());
            PortInfo {
                number: link.port,
                name: u16::try_from(link.port).map_or(Wwpn(0), |port| port_name(name, port)),
                port_type: port_type::E_PORT,
                state: port_state::ONLINE,
                attached: at_the_other_end
                    .map(|(name, port)| (port_name(name, port), port_type::E_PORT))
                    .into_iter()
                    .collect(),
                speed: UNKNOWN_SPEED,
            }
        };
        links(paths, domain).iter().map(port).collect()
    }
}

/// This switch, without the state of its ports.
fn own_element(services: &Switch, isls: &Isls) -> ElementInfo {
    let ports = (0..services.port_count()).zip(isls.configs()).map(|(port, isl)| PortInfo {
        number: port.into(),
        name: port_name(services.name(), port),
        port_type: port_type::UNKNOWN,
        state: port_state::UNKNOWN,
        attached: isls.neighbour_port(port).map(|name| (name, port_type::E_PORT)).into_iter().collect(),
        speed: speed(isl.bytes_per_s),
    });
    ElementInfo {
        name: services.name(),
        vendor: VENDOR.to_owned(),
        model: MODEL.to_owned(),
        release: RELEASE.to_owned(),
        ports: ports.collect(),
        ..ElementInfo::default()
    }
}

/// Links in the record of a switch.
fn links(paths: &Fspf, domain: u8) -> &[LinkDescriptor] {
    paths.records().find(|record| record.advertiser == domain).map_or(&[], |record| record.links())
}

/// Adds a login to its port in `ports`, whose F_Ports are at the end, sorted by address.
fn attach(ports: &mut Vec<PortInfo>, entry: &NsEntry) {
    let attached = (entry.port_name, entry.port_type);
    let name = entry.fabric_port_name;
    match ports.iter_mut().rev().find(|port| port.name == name) {
        Some(port) => port.attached.push(attached),
        None => ports.push(PortInfo {
            number: entry.identity().port.into(),
            name,
            port_type: port_type::F_PORT,
            state: port_state::ONLINE,
            attached: vec![attached],
            speed: UNKNOWN_SPEED,
        }),
    }
}

const UNKNOWN_SPEED: PortSpeed = PortSpeed { capabilities: bits::UNKNOWN, operating: bits::UNKNOWN };

/// Speed of a line, which is also its only known capability.
fn speed(bytes_per_s: u64) -> PortSpeed {
    let rate = LineRate::ALL.into_iter().find(|rate| rate.bytes_per_s() == bytes_per_s);
    let bit = match rate {
        Some(LineRate::Fc1) => bits::GBPS_1,
        Some(LineRate::Fc2) => bits::GBPS_2,
        Some(LineRate::Fc4) => bits::GBPS_4,
        Some(LineRate::Fc8) => bits::GBPS_8,
        Some(LineRate::Fc10) => bits::GBPS_10,
        Some(LineRate::Fc16) => bits::GBPS_16,
        Some(LineRate::Fc32) => bits::GBPS_32,
        Some(LineRate::Fc64) => bits::GBPS_64,
        Some(LineRate::Fc128 | LineRate::Fc128Parallel | LineRate::Fc256Parallel) | None => bits::UNKNOWN,
    };
    PortSpeed { capabilities: bit, operating: bit }
}

/// Returns true for a request to the fabric configuration server or for the speed of a port (RPSC).
fn queries_the_fabric(frame: &Frame) -> bool {
    match &frame.payload {
        Payload::Typed(Message::Ct(ct)) => ct.service == Service::FABRIC_CONFIGURATION,
        Payload::Typed(Message::Els(els)) => **els == Els::Rpsc,
        Payload::Bytes(bytes) => match frame.header.fc_type {
            FcType::CT => frame.header.d_id == FcId::MANAGEMENT_SERVER,
            FcType::ELS => bytes.first() == Some(&command::RPSC),
            _ => false,
        },
        _ => false,
    }
}
