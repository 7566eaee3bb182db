//! Ports and switches: buffers, waiting frames, discards.

use super::Latency;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Type of a port (FC-FS, port types).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortKind {
    /// Port of a host or a storage system.
    #[default]
    NPort,
    /// Switch port connected to an N_Port.
    FPort,
    /// Switch port connected to another switch.
    EPort,
    /// Port of a host or a storage system on an arbitrated loop.
    NlPort,
    /// Switch port on an arbitrated loop.
    FlPort,
}

/// One port of a switch, host or storage system.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortResult {
    /// Node and port, for example `edge1:3`.
    pub name: String,
    /// Name of its node.
    pub node: String,
    /// Type of the port.
    pub kind: PortKind,
    /// Link at the port.
    pub link: String,
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames received.
    pub frames_received: u64,
    /// Bytes of the frames sent, SOF to EOF.
    pub bytes_sent: u64,
    /// Bytes of the frames received, SOF to EOF.
    pub bytes_received: u64,
    /// Receive buffers, in frames.
    pub buffers: u64,
    /// Mean number of occupied receive buffers over the measured time.
    pub buffers_used_mean: f64,
    /// Largest number of receive buffers occupied at once.
    pub buffers_used_max: u64,
    /// Time from the arrival of a frame in a receive buffer to the start of its departure.
    /// Percentiles are upper bounds, accurate to a factor of two; mean and maximum are exact.
    /// Always empty for ports of hosts and storage.
    pub waiting: Latency,
    /// Time without transmit credit, whether a frame waited or not, in seconds.
    pub zero_credit_s: f64,
    /// `zero_credit_s` as a fraction of the measured time, 0 to 1.
    pub zero_credit_fraction: f64,
    /// Frames discarded here, by reason.
    pub discards: BTreeMap<String, u64>,
    /// Data frames that arrived and that the N_Port discarded, because a frame before them in their
    /// sequence was late or lost, or because their command had been aborted for it. `discards` does
    /// not count them. Absent at other ports, and without FCoE, whose Ethernet can change the
    /// order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_discards: Option<u64>,
}

/// One switch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SwitchResult {
    /// Name of the switch.
    pub name: String,
    /// Domain identifier.
    pub domain: u8,
    /// Frames forwarded by the switch.
    pub frames_forwarded: u64,
    /// Bytes of these frames, SOF to EOF.
    pub bytes_forwarded: u64,
    /// Mean number of occupied receive buffers of all its ports.
    pub buffers_used_mean: f64,
    /// Time from the arrival of a frame in a receive buffer to the start of its departure, over all
    /// ports. Percentiles are upper bounds, accurate to a factor of two.
    pub waiting: Latency,
    /// Fabric logins accepted, over the whole run.
    pub logins: u64,
    /// Fabric logins rejected, over the whole run, by reason: `port_limit`, `switch_limit`,
    /// `no_address`, `name`, `other`.
    pub logins_rejected: BTreeMap<String, u64>,
    /// Name server requests answered, over the whole run.
    pub name_server_requests: u64,
    /// RSCNs sent, over the whole run.
    pub rscns_sent: u64,
    /// Zone changes that were committed on this switch and came into force, over the whole run.
    pub zone_changes: u64,
    /// Zone changes that were committed on this switch and failed, over the whole run.
    pub zone_changes_refused: u64,
    /// Link incident reports (RLIR) sent to registered ports, over the whole run.
    pub incident_reports_sent: u64,
    /// Ports isolated from a neighbouring switch, at the end of the run.
    pub isolated_ports: u64,
    /// Frames discarded here, by reason.
    pub discards: BTreeMap<String, u64>,
}
