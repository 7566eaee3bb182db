//! Information about this and other switches that a switch cannot determine itself: [`FabricInfo`].

use sanloom_wire::els::PortSpeed;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::BTreeMap;

/// Switches of a fabric by domain, delivered by
/// [`Input::FabricInfo`](crate::switch::Input::FabricInfo).
///
/// A switch answers queries about other switches from it. About itself it takes only names, texts,
/// transceivers and neighbours from it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FabricInfo {
    /// Elements by domain.
    pub elements: BTreeMap<u8, ElementInfo>,
}

/// A switch; the fabric configuration server calls it an interconnect element.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ElementInfo {
    /// World-wide name of the switch.
    pub name: Wwnn,
    /// Name assigned by an administrator; empty if none.
    pub logical_name: String,
    /// Vendor of the switch; empty if unknown.
    pub vendor: String,
    /// Model of the switch; empty if unknown.
    pub model: String,
    /// Software release.
    pub release: String,
    /// Management URLs.
    pub management: Vec<String>,
    /// Ports of the element. For the switch itself, only those ports with additional information.
    pub ports: Vec<PortInfo>,
}

/// A port of a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortInfo {
    /// Physical port number.
    pub number: u32,
    /// World-wide name of the port.
    pub name: Wwpn,
    /// Port type, see [`port_type`](sanloom_wire::ns::port_type).
    pub port_type: u8,
    /// Port state, see [`port_state`](sanloom_wire::fcs::port_state).
    pub state: u8,
    /// Names and types of the attached ports.
    pub attached: Vec<(Wwpn, u8)>,
    /// Speeds of the transceiver.
    pub speed: PortSpeed,
}
