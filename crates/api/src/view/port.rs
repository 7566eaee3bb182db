//! Ports of switches, logins and the name server.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fabric logins, sorted by address.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlogiView {
    /// One row for each N_Port_ID.
    pub logins: Vec<LoginRow>,
}

/// Kind of login by which an N_Port_ID was assigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginKind {
    /// FLOGI of the physical N_Port.
    #[default]
    Flogi,
    /// FDISC of a virtual N_Port.
    Fdisc,
}

/// One N_Port_ID.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoginRow {
    /// Port of the switch, for example `edge1:3`.
    pub port: String,
    /// Address, six hexadecimal digits.
    pub port_id: String,
    /// Port name.
    pub port_name: String,
    /// Node name.
    pub node_name: String,
    /// Host or storage system of the lab; empty for a port that is not in the lab.
    pub owner: String,
    /// Kind of login.
    pub login: LoginKind,
    /// True if the address is the persistent address of the port name.
    pub persistent: bool,
    /// Time of the login, in seconds since the start of the workloads.
    pub since_s: f64,
}

/// The name server of one switch, sorted by address.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NsView {
    /// Name of the switch with the database.
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
    /// Registered FC-4 types, by name or number.
    pub fc4_types: Vec<String>,
    /// FCP features: `initiator`, `target`.
    pub fcp_features: Vec<String>,
    /// Symbolic port name.
    pub symbolic_port_name: String,
    /// Symbolic node name.
    pub symbolic_node_name: String,
    /// Host or storage system of the lab; empty for a port that is not in the lab.
    pub owner: String,
}

/// The ports of the switches, in the order of the lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PortsView {
    /// One row for each port with a link.
    pub ports: Vec<PortRow>,
}

/// Use of a switch port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortMode {
    /// Connection to N_Ports.
    F,
    /// Connection to another switch.
    E,
    /// Connection to another switch that is not part of the fabric, or not yet.
    Isolated,
    /// No connection.
    #[default]
    Down,
}

/// Reason for a link without light.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dark {
    /// An operator has disabled the port.
    Disabled,
    /// An operator has disabled the switch of the port, and not the port itself.
    SwitchDisabled,
    /// No station of this process is at the other end, and the port has no Ethernet.
    Unplugged,
    /// No station is at the other end of the Ethernet link, or the port at the other end of the
    /// cable is disabled.
    NoPeer,
    /// DCBX has not agreed with the peer on Ethernet without loss.
    NoDcbx,
}

/// One port of a switch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortRow {
    /// Port, for example `edge1:3`.
    pub port: String,
    /// Number of the port on its switch.
    pub number: u32,
    /// World-wide name of the port.
    pub port_name: String,
    /// Use of the port.
    pub mode: PortMode,
    /// True if the link carries light.
    pub light: bool,
    /// Reason for a link without light.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dark: Option<Dark>,
    /// Reason for the isolation from the neighbour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated: Option<String>,
    /// True if a login with a duplicate port name has blocked the port (`duplicate_names =
    /// "block"`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
    /// Speed, for example `2GFC`.
    pub rate: String,
    /// Name of the link in the lab.
    pub link: String,
    /// Port at the other end.
    pub attached: String,
    /// Number of N_Port_IDs logged in at the port.
    pub logins: u32,
    /// Transmit credits: available, and total.
    pub credits: [u32; 2],
    /// Number of virtual channels of the link; 0 if it has none.
    #[serde(skip_serializing_if = "is_zero")]
    pub channels: u32,
    /// Frames sent since the start.
    pub frames_sent: u64,
    /// Frames received since the start.
    pub frames_received: u64,
    /// Bytes sent since the start; absent if the driver does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<u64>,
    /// Bytes received since the start; absent if the driver does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// Frames discarded at the port, by reason.
    pub discards: BTreeMap<String, u64>,
    /// Errors, and waits for the peer.
    pub errors: PortErrors,
    /// FCIP link of the port, which is a VE_Port then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fcip: Option<FcipRow>,
}

/// FCIP link of a VE_Port.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FcipRow {
    /// State: `disabled`, `waiting`, `connecting`, `opening`, `up`.
    pub state: String,
    /// Address at which the port listens, or to which it connects.
    pub address: String,
    /// True if the port listens.
    pub listens: bool,
    /// World-wide name of the switch at the other end; empty while the link is down.
    pub peer: String,
    /// TCP connections that became links since the start.
    pub connections: u64,
    /// TCP connections that this end has closed.
    pub closed: u64,
    /// Frames dropped because they were older than R_A_TOV.
    pub stale: u64,
    /// Frames delivered without a time stamp, so that their age is unknown.
    pub unstamped: u64,
    /// LKAs sent.
    pub keep_alives: u64,
    /// Age of the oldest delivered frame, in milliseconds.
    pub oldest_ms: f64,
    /// Number of times that damage ended the synchronisation of frames.
    pub resynchronised: u64,
    /// Bytes skipped in search of frames.
    pub skipped_bytes: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Counters of errors and of waits for the peer, since the start. A counter without such events in
/// the driver is absent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortErrors {
    /// Times that the light went off, unless an operator had disabled the port. Each is a loss of
    /// signal (FC-FS-5, link failure).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_failures: Option<u64>,
    /// Link resets (LR) that the port has sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_resets_sent: Option<u64>,
    /// Link resets (LR) that the port has received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_resets_received: Option<u64>,
    /// Frames received with a wrong CRC. Their EOF is good, because no switch marks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc_errors: Option<u64>,
    /// Frames received that were longer than permitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames_too_long: Option<u64>,
    /// Frames received at this port that were discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discards_received: Option<u64>,
    /// Frames for this port that were discarded before they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discards_sent: Option<u64>,
    /// Frames for this port that were discarded because of the hold time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts_sent: Option<u64>,
    /// Frames received at this port that were discarded because of the hold time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts_received: Option<u64>,
    /// Times that the last transmit credit was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_zeros: Option<u64>,
    /// Time without a transmit credit, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_zero_ns: Option<u64>,
    /// Time during which a frame waited for a transmit credit, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_wait_ns: Option<u64>,
    /// Transmit credits that were lost with their R_RDY or with their frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credits_lost: Option<u64>,
    /// Lost transmit credits that credit recovery (BB_SC) has restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credits_recovered: Option<u64>,
    /// Frames of priority-based flow control (PFC) sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses_sent: Option<u64>,
    /// Frames of priority-based flow control (PFC) received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses_received: Option<u64>,
}

/// A counter of [`PortErrors`]. Each surface shows it by its name in this table.
#[derive(Clone, Copy, Debug)]
pub struct PortCounter {
    /// Name, the same as that of the field.
    pub name: &'static str,
    /// Meaning.
    pub help: &'static str,
    /// The value; `None` if the driver has no such events.
    pub of: fn(&PortErrors) -> Option<u64>,
}

impl PortCounter {
    /// Name of the metric without `sanloom_` and `_total`. Metrics have base units, so a time in
    /// nanoseconds is a metric in seconds.
    pub fn metric(&self) -> String {
        match self.name.strip_suffix("_ns") {
            Some(name) => format!("port_{name}_seconds"),
            None => format!("port_{}", self.name),
        }
    }

    /// True for a time in nanoseconds.
    pub fn is_time(&self) -> bool {
        self.name.ends_with("_ns")
    }
}

macro_rules! port_counters {
    ($($name:ident: $help:literal),+ $(,)?) => {
        /// Counters of [`PortErrors`]. Pauses are not among them: the metrics of Ethernet ports
        /// count them by direction.
        pub const PORT_COUNTERS: &[PortCounter] =
            &[$(PortCounter { name: stringify!($name), help: $help, of: |errors| errors.$name },)+];
    };
}

port_counters! {
    link_failures: "Times that the light went off",
    link_resets_sent: "Link resets sent",
    link_resets_received: "Link resets received",
    crc_errors: "Frames received with a wrong CRC",
    frames_too_long: "Frames received that were too long",
    discards_received: "Frames received at the port that were discarded",
    discards_sent: "Frames for the port that were discarded before they were sent",
    timeouts_sent: "Frames for the port discarded because of the hold time",
    timeouts_received: "Frames received at the port discarded because of the hold time",
    credit_zeros: "Times that the last transmit credit was used",
    credit_zero_ns: "Time without a transmit credit",
    credit_wait_ns: "Time during which a frame waited for a transmit credit",
    credits_lost: "Transmit credits lost",
    credits_recovered: "Lost transmit credits restored by credit recovery",
}

impl PortRow {
    /// Labels of the metrics of the port: `link`, `switch`, `port` as slot and port (`0/3`), `wwn`.
    /// The last three have the values of the management interfaces.
    pub fn labels(&self) -> [(&'static str, String); 4] {
        let switch = self.port.rsplit_once(':').map_or(&*self.port, |(switch, _)| switch);
        [
            ("link", self.link.clone()),
            ("switch", switch.to_owned()),
            ("port", format!("0/{}", self.number)),
            ("wwn", self.port_name.clone()),
        ]
    }
}
