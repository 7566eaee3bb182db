//! What a switch cannot know of itself and of the other switches: [`FabricInfo`].

use sanloom_wire::els::PortSpeed;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::BTreeMap;

/// The switches of a fabric by domain, as [`Input::FabricInfo`](crate::switch::Input::FabricInfo) brings them. A switch
/// answers from it about other switches; about itself it adds names, texts, transceivers and neighbours only.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FabricInfo {
    /// By domain.
    pub elements: BTreeMap<u8, ElementInfo>,
}

/// A switch, in the words of the fabric configuration server an interconnect element.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ElementInfo {
    /// Switch name.
    pub name: Wwnn,
    /// Name that people gave it, empty where they gave none.
    pub logical_name: String,
    /// Vendor.
    pub vendor: String,
    /// Model.
    pub model: String,
    /// Release of the software.
    pub release: String,
    /// URLs of its management.
    pub management: Vec<String>,
    /// Its ports; of the switch itself, only those about which there is something to say.
    pub ports: Vec<PortInfo>,
}

/// A port of a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortInfo {
    /// Physical number.
    pub number: u32,
    /// Name of the port.
    pub name: Wwpn,
    /// See [`port_type`](sanloom_wire::ns::port_type).
    pub port_type: u8,
    /// See [`port_state`](sanloom_wire::fcs::port_state).
    pub state: u8,
    /// Names and types of the ports at the other end.
    pub attached: Vec<(Wwpn, u8)>,
    /// Speeds of its transceiver.
    pub speed: PortSpeed,
}
