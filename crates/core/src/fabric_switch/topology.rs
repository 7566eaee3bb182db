//! What the fabric configuration server is told of the switches: [`FabricSwitch::fabric_info`].
//!
//! Nothing is asked for it: the domain manager knows the switches, the link state database their links, and the name server the
//! ports that are logged in. So of other switches only ports are known that carry something, and an E_Port that is a bundle is
//! one. Their names are taken to be those that [`port_name`] makes of a switch, as in this one.
//!
//! Absent: the texts that switches have about themselves (ESS).

use super::FabricSwitch;
use crate::config::LineRate;
use crate::fspf::Fspf;
use crate::switch::{self, ElementInfo, FabricInfo, NsEntry, PortInfo, port_name};
use crate::time::Instant;
use sanloom_wire::ct::Service;
use sanloom_wire::els::speed::bits;
use sanloom_wire::els::{Els, PortSpeed, command};
use sanloom_wire::fcs::port_state;
use sanloom_wire::ns::port_type;
use sanloom_wire::sw_ils::LinkDescriptor;
use sanloom_wire::{FcId, FcType, Frame, Message, Payload, Wwnn, Wwpn};
use std::collections::BTreeMap;
use std::sync::Arc;

const VENDOR: &str = "sanloom";
const MODEL: &str = "switch";
const RELEASE: &str = env!("CARGO_PKG_VERSION");

impl FabricSwitch {
    /// Brings the fabric configuration server up to date if the frame asks it something, and something has changed. Logins by the
    /// thousand cost nothing that way.
    pub(super) fn refresh_fabric_info(&mut self, now: Instant, frame: &Frame) {
        if self.info_is_old && asks_about_the_fabric(frame) {
            self.info_is_old = false;
            let info = Arc::new(self.fabric_info());
            self.services.handle(now, switch::Input::FabricInfo(info));
        }
    }

    fn fabric_info(&self) -> FabricInfo {
        let others = self.members.iter().filter(|(domain, _)| Some(*domain) != self.domain());
        let mut elements: BTreeMap<u8, ElementInfo> = others
            .map(|&(domain, name)| {
                (domain, ElementInfo { name, ports: self.e_ports(domain, name), ..ElementInfo::default() })
            })
            .collect();
        for entry in self.services.name_server() {
            if let Some(element) = elements.get_mut(&entry.port_id.domain()) {
                attach(&mut element.ports, entry);
            }
        }
        if let Some(domain) = self.domain() {
            elements.insert(domain, self.own_element());
        }
        FabricInfo { elements }
    }

    fn own_element(&self) -> ElementInfo {
        let ports = (0..self.config.services.ports).zip(&self.config.isls).map(|(port, isl)| PortInfo {
            number: port.into(),
            name: port_name(self.name(), port),
            port_type: port_type::UNKNOWN,
            state: port_state::UNKNOWN,
            attached: self.neighbour_port(port).map(|name| (name, port_type::E_PORT)).into_iter().collect(),
            speed: speed(isl.bytes_per_s),
        });
        ElementInfo {
            name: self.name(),
            vendor: VENDOR.to_owned(),
            model: MODEL.to_owned(),
            release: RELEASE.to_owned(),
            ports: ports.collect(),
            ..ElementInfo::default()
        }
    }

    /// The port at the other end of a link to another switch. Of a bundle, the lowest port has said its name.
    fn neighbour_port(&self, port: u16) -> Option<Wwpn> {
        self.isls.get(&port).and_then(|isl| isl.neighbour).map(|neighbour| neighbour.port_name)
    }

    /// The ports of another switch that lead to switches.
    fn e_ports(&self, domain: u8, name: Wwnn) -> Vec<PortInfo> {
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
        links(&self.paths, domain).iter().map(port).collect()
    }
}

/// The links of a switch, as it announces them.
fn links(paths: &Fspf, domain: u8) -> &[LinkDescriptor] {
    paths.records().find(|record| record.advertiser == domain).map_or(&[], |record| record.links())
}

/// Adds a login to the port that it came in through; `ports` has those with logins at its end, sorted by address.
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

/// The speed of a line, which is all that its transceiver is known to do.
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
        Some(LineRate::Fc128) | None => bits::UNKNOWN,
    };
    PortSpeed { capabilities: bit, operating: bit }
}

/// A request to the fabric configuration server, or for the speed of a port (RPSC).
fn asks_about_the_fabric(frame: &Frame) -> bool {
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
