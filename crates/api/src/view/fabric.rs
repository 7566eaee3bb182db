//! Switches, domains, ISLs and paths.

use serde::{Deserialize, Serialize};

/// The switches, sorted by name as the lab lists them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SwitchView {
    /// One row for each.
    pub switches: Vec<SwitchRow>,
}

/// One switch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SwitchRow {
    /// Its name in the lab.
    pub switch: String,
    /// The chassis that it is a virtual fabric of, absent for a box of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chassis: Option<String>,
    /// The virtual fabric (VF_ID), absent for a box of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vf_id: Option<u16>,
    /// Name of the switch, eight bytes.
    pub switch_name: String,
    /// It runs: not in the middle of a restart.
    pub up: bool,
    /// Domain, absent while none is assigned.
    pub domain: Option<u8>,
    /// It is the principal switch.
    pub principal: bool,
    /// Number of ports.
    pub ports: u32,
    /// Ports in use towards N_Ports.
    pub f_ports: u32,
    /// Ports in use towards switches, isolated ones left out.
    pub e_ports: u32,
    /// Ports isolated from their neighbour.
    pub isolated_ports: u32,
    /// N_Port_IDs logged in.
    pub logins: u32,
    /// Of these, virtual ones (FDISC).
    pub virtual_logins: u32,
    /// Fabric logins (FLOGI and FDISC) rejected; they are not among the requests.
    pub logins_rejected: u64,
    /// Objects of the whole fabric in its name server.
    pub name_server_objects: u32,
    /// Name server, management server and fabric controller requests accepted.
    pub requests_accepted: u64,
    /// The same, rejected.
    pub requests_rejected: u64,
    /// RSCNs sent.
    pub rscns_sent: u64,
    /// Permissions of hard zoning in its forwarding table.
    pub permissions: u64,
}

/// Domains and ISLs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FabricView {
    /// One entry for each switch of the lab, in the lab's order.
    pub switches: Vec<FabricSwitch>,
}

/// What one switch knows of its fabric.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FabricSwitch {
    /// Its name in the lab.
    pub switch: String,
    /// Name of the switch, eight bytes.
    pub switch_name: String,
    /// Its domain, absent while none is assigned.
    pub domain: Option<u8>,
    /// Name of the principal switch, as this one knows it.
    pub principal: Option<String>,
    /// Name of the fabric.
    pub fabric_name: Option<String>,
    /// Domains of the fabric as this switch knows them, sorted.
    pub domains: Vec<u8>,
    /// Its ends of ISLs, sorted by port.
    pub isls: Vec<IslEnd>,
}

/// One end of an ISL.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IslEnd {
    /// Port, as `core:1`.
    pub port: String,
    /// Port at the other end by the lab.
    pub neighbour: String,
    /// `up`, `down`, `initialising` or `isolated`.
    pub state: String,
    /// Why it is isolated.
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

/// Paths between domains, sorted by switch in the lab's order and by domain.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RoutesView {
    /// One row for each switch and other domain.
    pub routes: Vec<RouteRow>,
}

/// How frames of one switch reach one domain.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteRow {
    /// Where the frames are.
    pub switch: String,
    /// Where they go.
    pub domain: u8,
    /// The switch of that domain, empty if the lab has none.
    pub to: String,
    /// Ports that frames leave by, cheapest paths only; a bundle is named with its ports. Empty: unreachable.
    pub legs: Vec<String>,
}
