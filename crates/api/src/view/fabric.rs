//! Switches, domains, ISLs and paths.

use serde::{Deserialize, Serialize};

/// The switches, in the order of the lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SwitchView {
    /// One row for each switch.
    pub switches: Vec<SwitchRow>,
}

/// One switch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SwitchRow {
    /// Name of the switch in the lab.
    pub switch: String,
    /// Chassis of a virtual-fabric switch; absent for a switch with its own chassis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chassis: Option<String>,
    /// Virtual fabric (VF_ID); absent for a switch with its own chassis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vf_id: Option<u16>,
    /// World-wide name of the switch, eight bytes.
    pub switch_name: String,
    /// True if the switch runs; false during a restart.
    pub up: bool,
    /// True if an operator has disabled the switch, so that all its ports are dark.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Domain; absent if none is assigned.
    pub domain: Option<u8>,
    /// True for the principal switch.
    pub principal: bool,
    /// Number of ports.
    pub ports: u32,
    /// Numbers of the ports of a virtual-fabric switch, which are those of its chassis; empty for a
    /// switch with its own chassis, whose ports have the numbers below `ports`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port_numbers: Vec<u32>,
    /// Ports without a link that an operator has disabled, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled_ports: Vec<u32>,
    /// Ports connected to N_Ports.
    pub f_ports: u32,
    /// Ports connected to switches, without isolated ports.
    pub e_ports: u32,
    /// Ports isolated from their neighbour.
    pub isolated_ports: u32,
    /// N_Port_IDs logged in.
    pub logins: u32,
    /// N_Port_IDs of virtual ports (FDISC) among `logins`.
    pub virtual_logins: u32,
    /// Fabric logins (FLOGI and FDISC) rejected; `requests_rejected` does not include them.
    pub logins_rejected: u64,
    /// Objects of the whole fabric in the switch's name server.
    pub name_server_objects: u32,
    /// Accepted requests to name server, management server and fabric controller.
    pub requests_accepted: u64,
    /// Rejected requests to name server, management server and fabric controller.
    pub requests_rejected: u64,
    /// RSCNs sent.
    pub rscns_sent: u64,
    /// Number of permissions of hard zoning in the forwarding table.
    pub permissions: u64,
}

/// Domains and ISLs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FabricView {
    /// One entry for each switch, in the order of the lab.
    pub switches: Vec<FabricSwitch>,
}

/// A switch's view of its fabric.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FabricSwitch {
    /// Name of the switch in the lab.
    pub switch: String,
    /// World-wide name of the switch, eight bytes.
    pub switch_name: String,
    /// Domain of the switch; absent if none is assigned.
    pub domain: Option<u8>,
    /// Name of the principal switch, as known to this switch.
    pub principal: Option<String>,
    /// Name of the fabric.
    pub fabric_name: Option<String>,
    /// Domains of the fabric known to this switch, sorted.
    pub domains: Vec<u8>,
    /// ISL ports of the switch, sorted by port.
    pub isls: Vec<IslEnd>,
}

/// One end of an ISL.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IslEnd {
    /// Port, for example `core:1`.
    pub port: String,
    /// Port at the other end, from the lab file.
    pub neighbour: String,
    /// `up`, `down`, `initialising` or `isolated`.
    pub state: String,
    /// Reason for the isolation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Speed, for example `16GFC`.
    pub rate: String,
    /// Cost of the link for path selection.
    pub cost: u32,
    /// Bundle (trunk) that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

/// Paths between domains, sorted by switch in the order of the lab, then by domain.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RoutesView {
    /// One row for each switch and other domain.
    pub routes: Vec<RouteRow>,
}

/// Path of frames from one switch to one domain.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteRow {
    /// Switch that forwards the frames.
    pub switch: String,
    /// Destination domain.
    pub domain: u8,
    /// Switch with that domain; empty if the lab has none.
    pub to: String,
    /// Egress ports, cheapest paths only; a bundle lists its ports. Empty if the domain is
    /// unreachable.
    pub legs: Vec<String>,
}
