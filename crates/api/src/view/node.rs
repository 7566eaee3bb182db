//! Ports of hosts and storage systems.

use serde::{Deserialize, Serialize};

/// The N_Ports of the hosts and storage systems of a lab: hosts first, in the order of the lab.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NodesView {
    /// One row for each N_Port.
    pub nodes: Vec<NodeRow>,
}

/// Kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// Host or virtual machine.
    #[default]
    Host,
    /// Storage system.
    Storage,
}

/// Kind of the neighbour of an N_Port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attachment {
    /// F_Port of a switch.
    Switch,
    /// Arbitrated loop.
    Loop,
    /// N_Port of another node, without a switch between.
    Direct,
    /// HBA of the hypervisor, which carries the virtual port.
    Virtual,
}

/// An N_Port of a host or storage system.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeRow {
    /// Name of the host or storage system.
    pub node: String,
    /// Kind of the node.
    pub kind: NodeKind,
    /// Port, for example `server1:0`.
    pub port: String,
    /// World-wide port name.
    pub port_name: String,
    /// Kind of the neighbour; absent without a cable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachment: Option<Attachment>,
    /// Port at the other end of the link, for example `edge1:3`, or the HBA that carries a virtual
    /// port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<String>,
    /// Name of the link in the lab; absent for a virtual port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Speed of the link, for example `2GFC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// True if the link carries light; absent if its switch runs in another process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub light: Option<bool>,
    /// Fibre Channel address; absent without a login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_id: Option<String>,
    /// Address on the arbitrated loop, two hexadecimal digits; absent if the port does not
    /// participate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub al_pa: Option<String>,
    /// Index in the position map of the loop; 0 is the loop master.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
}
