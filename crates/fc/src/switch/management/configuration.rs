//! The fabric configuration server: switches of the fabric and the ports attached to them.

use super::super::database::Database;
use super::super::identity::Identity;
use super::super::login_table::LoginTable;
use super::super::names::port_number;
use super::{ElementInfo, FabricInfo, PortInfo};
use crate::fabric::PortMode;
use sanloom_wire::ct::CtReject;
use sanloom_wire::els::PortSpeed;
use sanloom_wire::els::speed::bits;
use sanloom_wire::fcs::{AttachedPort, FcsAccept, FcsRequest, PortEntry, element_type, explanation, port_state};
use sanloom_wire::ns::port_type;
use sanloom_wire::{FcId, Wwnn, Wwpn};

/// Code for an unknown module or transmitter, because a switch receives no data about either.
const UNKNOWN_TRANSCEIVER: u8 = 1;

/// Switches and ports of the fabric: those of this switch from its own state, the others from
/// [`FabricInfo`].
pub(super) struct Configuration<'s> {
    pub(super) identity: &'s Identity,
    pub(super) logins: &'s LoginTable,
    pub(super) objects: &'s Database,
    pub(super) info: &'s FabricInfo,
}

impl Configuration<'_> {
    pub(super) fn answer(&self, request: &FcsRequest) -> Result<FcsAccept, CtReject> {
        use explanation::*;
        let text = |text: &String| Box::from(text.as_bytes());
        Ok(match *request {
            FcsRequest::Giel {} => {
                let others = self.other_elements().map(|(domain, element)| (domain, element.name));
                let mut all: Vec<_> = others.chain([(self.own_domain(), self.identity.name)]).collect();
                all.sort_unstable();
                FcsAccept::Elements(all.into_iter().map(|(_, name)| (name, element_type::SWITCH)).collect())
            }
            FcsRequest::Giet { element } => {
                self.element(element)?;
                FcsAccept::ElementType(element_type::SWITCH)
            }
            FcsRequest::Gdid { element } => FcsAccept::DomainId(self.element(element)?.0),
            FcsRequest::Gmid { element } => FcsAccept::ManagementId(FcId::domain_controller(self.element(element)?.0)),
            FcsRequest::Gfn { element } => {
                self.element(element)?;
                FcsAccept::FabricName(self.identity.fabric_name)
            }
            FcsRequest::Gieln { element } => match self.element(element)?.1.map(|info| &info.logical_name) {
                Some(name) if !name.is_empty() => FcsAccept::LogicalName(text(name)),
                _ => return Err(CtReject::unable(LOGICAL_NAME)),
            },
            FcsRequest::Gmal { element } => match self.element(element)?.1.map(|info| &info.management) {
                Some(list) if !list.is_empty() => FcsAccept::ManagementAddresses(list.iter().map(text).collect()),
                _ => return Err(CtReject::unable(MANAGEMENT_ADDRESS)),
            },
            FcsRequest::Gieil { element } => {
                let (_, info) = self.element(element)?;
                let info = info.filter(|info| !info.vendor.is_empty()).ok_or(CtReject::unable(ELEMENT_INFORMATION))?;
                FcsAccept::Information([&info.vendor, &info.model, &info.release].map(text).into())
            }
            FcsRequest::Gpl { element } => {
                let (domain, info) = self.element(element)?;
                let ports = if domain == self.own_domain() {
                    (0..self.logins.port_count()).map(|port| self.own_port(port)).collect()
                } else {
                    info.map(|info| info.ports.clone())
                        .filter(|ports| !ports.is_empty())
                        .ok_or(CtReject::unable(PORT_LIST))?
                };
                let entry = |port: PortInfo| PortEntry {
                    name: port.name,
                    module: UNKNOWN_TRANSCEIVER,
                    transmitter: UNKNOWN_TRANSCEIVER,
                    port_type: port.port_type,
                };
                FcsAccept::Ports(ports.into_iter().map(entry).collect())
            }
            FcsRequest::Gpt { port } => FcsAccept::PortType(self.port_named(port)?.port_type),
            FcsRequest::Gppn { port } => FcsAccept::PhysicalNumber(self.port_named(port)?.number),
            FcsRequest::Gapnl { port } => {
                let attached = self.port_named(port)?.attached;
                if attached.is_empty() {
                    return Err(CtReject::unable(ATTACHED_PORTS));
                }
                let entry = |(name, port_type)| AttachedPort { name, flags: 0, port_type };
                FcsAccept::AttachedPorts(attached.into_iter().map(entry).collect())
            }
            FcsRequest::Gps { port } => {
                let PortInfo { port_type, state, .. } = self.port_named(port)?;
                FcsAccept::PortState { port_type, state }
            }
        })
    }

    /// Speeds of a port of this switch; unknown unless [`FabricInfo`] contains them.
    pub(super) fn port_speed(&self, port: u16) -> PortSpeed {
        let unknown = PortSpeed { capabilities: bits::UNKNOWN, operating: bits::UNKNOWN };
        self.info_of_own_port(port).map_or(unknown, |info| info.speed)
    }

    /// Own domain, or zero without one; no port is logged in to query it then.
    fn own_domain(&self) -> u8 {
        self.identity.domain.unwrap_or(0)
    }

    fn other_elements(&self) -> impl Iterator<Item = (u8, &ElementInfo)> {
        let all = self.info.elements.iter().map(|(domain, element)| (*domain, element));
        all.filter(|(domain, _)| *domain != self.own_domain())
    }

    /// Domain of a switch, and its element if known.
    fn element(&self, name: Wwnn) -> Result<(u8, Option<&ElementInfo>), CtReject> {
        let own = self.own_domain();
        if name == self.identity.name {
            return Ok((own, self.info.elements.get(&own)));
        }
        let other = self.other_elements().find(|(_, element)| element.name == name);
        other.map(|(domain, element)| (domain, Some(element))).ok_or(CtReject::unable(explanation::INVALID_NAME))
    }

    fn info_of_own_port(&self, port: u16) -> Option<&PortInfo> {
        let own = self.info.elements.get(&self.own_domain())?;
        own.ports.iter().find(|info| info.number == u32::from(port))
    }

    /// Description of a port of this switch. For an F_Port the attached ports are the logged-in
    /// ones; for an E_Port they come from [`FabricInfo`].
    fn own_port(&self, port: u16) -> PortInfo {
        let mode = self.logins.mode(port);
        let attached = match mode {
            PortMode::F => {
                let known = self.logins.at_port(port).filter_map(|id| self.objects.get(id));
                known.map(|known| (known.entry.port_name, known.entry.port_type)).collect()
            }
            PortMode::E | PortMode::Isolated => {
                self.info_of_own_port(port).map(|info| info.attached.clone()).unwrap_or_default()
            }
            PortMode::Down => Vec::new(),
        };
        let (port_type, state) = match mode {
            PortMode::F if self.logins.is_loop(port) => (port_type::FL_PORT, port_state::ONLINE),
            PortMode::F => (port_type::F_PORT, port_state::ONLINE),
            PortMode::E => (port_type::E_PORT, port_state::ONLINE),
            PortMode::Isolated => (port_type::E_PORT, port_state::OFFLINE),
            PortMode::Down => (port_type::UNKNOWN, port_state::OFFLINE),
        };
        let (number, name, speed) = (port.into(), self.identity.f_port_name(port), self.port_speed(port));
        PortInfo { number, name, port_type, state, attached, speed }
    }

    fn port_named(&self, name: Wwpn) -> Result<PortInfo, CtReject> {
        let own = port_number(name)
            .filter(|port| *port < self.logins.port_count() && self.identity.f_port_name(*port) == name);
        if let Some(port) = own {
            return Ok(self.own_port(port));
        }
        let mut others = self.other_elements().flat_map(|(_, element)| &element.ports);
        others.find(|port| port.name == name).cloned().ok_or(CtReject::unable(explanation::INVALID_NAME))
    }
}
