//! Ports of switches, logins and the name server.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is logged in, sorted by address.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlogiView {
    /// One row for each N_Port_ID.
    pub logins: Vec<LoginRow>,
}

/// How an N_Port_ID was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginKind {
    /// To the physical N_Port.
    #[default]
    Flogi,
    /// To a virtual one.
    Fdisc,
}

/// One N_Port_ID.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoginRow {
    /// Port of the switch, as `edge1:3`.
    pub port: String,
    /// Address, six hexadecimal digits.
    pub port_id: String,
    /// Port name.
    pub port_name: String,
    /// Node name.
    pub node_name: String,
    /// Host or storage system of the lab, empty for a stranger.
    pub owner: String,
    /// How it was given.
    pub login: LoginKind,
    /// The address is the persistent one of the port name.
    pub persistent: bool,
    /// When, in seconds since the workloads began.
    pub since_s: f64,
}

/// The name server as one switch sees it, sorted by address.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NsView {
    /// The switch whose database it is.
    pub switch: String,
    /// One row for each object.
    pub objects: Vec<NameRow>,
}

/// One object of the name server.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NameRow {
    /// Address, six hexadecimal digits.
    pub port_id: String,
    /// Port type, for example `N_Port`.
    pub port_type: String,
    /// Port name.
    pub port_name: String,
    /// Node name.
    pub node_name: String,
    /// Name of the F_Port.
    pub fabric_port_name: String,
    /// FC-4 types registered, by name or number.
    pub fc4_types: Vec<String>,
    /// FCP features: `initiator`, `target`.
    pub fcp_features: Vec<String>,
    /// Symbolic port name.
    pub symbolic_port_name: String,
    /// Symbolic node name.
    pub symbolic_node_name: String,
    /// Host or storage system of the lab, empty for a stranger.
    pub owner: String,
}

/// The ports of the switches, in the lab's order.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PortsView {
    /// One row for each port with a link.
    pub ports: Vec<PortRow>,
}

/// What a port of a switch is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortMode {
    /// N_Ports.
    F,
    /// Another switch.
    E,
    /// Another switch that is not part of the fabric, or not yet.
    Isolated,
    /// Nothing.
    #[default]
    Down,
}

/// One port of a switch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortRow {
    /// Port, as `edge1:3`.
    pub port: String,
    /// Its use.
    pub mode: PortMode,
    /// The link carries light.
    pub light: bool,
    /// Why the port is isolated from its neighbour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated: Option<String>,
    /// A login with a used port name has blocked it (`duplicate_names = "block"`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
    /// Speed, for example `2GFC`.
    pub rate: String,
    /// Link of the lab.
    pub link: String,
    /// Port at the other end.
    pub attached: String,
    /// N_Port_IDs logged in here.
    pub logins: u32,
    /// Credits for frames that leave, at hand and in all.
    pub credits: [u32; 2],
    /// Frames sent since the beginning.
    pub frames_sent: u64,
    /// Frames received since the beginning.
    pub frames_received: u64,
    /// Frames discarded here, by reason.
    pub discards: BTreeMap<String, u64>,
}
