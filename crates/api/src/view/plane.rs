//! Tables of the links of all planes, of Ethernet and of InfiniBand.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A table of the planes of a lab.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaneWhich {
    /// All links.
    Links,
    /// Ethernet switches, their ports, and interfaces.
    Ethernet,
    /// TCP connections of iSCSI and FCIP.
    Connections,
    /// Ports of InfiniBand.
    Infiniband,
    /// SRP channels.
    Channels,
}

/// Plane of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plane {
    /// A cable of Fibre Channel.
    #[default]
    FibreChannel,
    /// A link of Fibre Channel over Ethernet (FCoE) or over TCP (FCIP).
    Virtual,
    /// A cable of Ethernet.
    Ethernet,
    /// A cable of InfiniBand.
    Infiniband,
}

/// The links of a lab: those of Fibre Channel, then of Ethernet, then of InfiniBand, each in the
/// order of the lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LinksView {
    /// One row for each link.
    pub links: Vec<LinkRow>,
}

/// A link.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkRow {
    /// Name in the lab file.
    pub link: String,
    /// Plane.
    pub plane: Plane,
    /// Ports at both ends, for example `edge1:3` and `server1:eth0`.
    pub ends: [String; 2],
    /// Rate, for example `16GFC`, `25GbE` or `4xHDR`.
    pub rate: String,
    /// True if the link is up.
    pub up: bool,
    /// Reason for which a virtual link never comes up; empty otherwise.
    pub reason: String,
}

/// Ethernet of a lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct EthernetView {
    /// One row for each end of a link, in the order of the links.
    pub ports: Vec<EthernetPortRow>,
    /// One row for each switch, in the order of the lab.
    pub switches: Vec<EthernetSwitchRow>,
}

/// A port of an Ethernet switch, or an interface. Counters are those since the start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EthernetPortRow {
    /// Name, for example `tor:4` or `server1:eth0`.
    pub port: String,
    /// Port or interface at the other end.
    pub attached: String,
    /// Link.
    pub link: String,
    /// Rate, for example `25GbE`.
    pub rate: String,
    /// True if the link is up.
    pub light: bool,
    /// Frames sent, without pause frames.
    pub frames_sent: u64,
    /// Bytes of these frames, from the destination address to the FCS.
    pub bytes_sent: u64,
    /// Pause frames sent.
    pub pauses_sent: u64,
    /// Pause frames that the peer has sent.
    pub pauses_received: u64,
    /// Seconds for which pauses of the peer have stopped each priority, or the whole link (`link`);
    /// those with 0 are absent.
    pub paused_s: BTreeMap<String, f64>,
    /// Frames marked when they entered the queue of the port (ECN).
    pub marked_frames: u64,
    /// Bytes that wait for the line.
    pub queued_bytes: u64,
    /// Most bytes that have waited in one priority.
    pub queue_max_bytes: u64,
    /// Most bytes of one priority in the headroom of the port; 0 for an interface.
    pub headroom_max_bytes: u64,
    /// Lost frames by reason: on the way to the port, and at it on arrival.
    pub discards: BTreeMap<String, u64>,
}

/// An Ethernet switch. Counters are those since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EthernetSwitchRow {
    /// Name.
    pub switch: String,
    /// Ports with a link.
    pub ports: u32,
    /// Packet memory in bytes.
    pub memory_bytes: u64,
    /// Bytes that frames occupy.
    pub memory_held_bytes: u64,
    /// Most bytes that frames have occupied.
    pub memory_max_bytes: u64,
    /// Pause frames sent.
    pub pauses_sent: u64,
    /// Frames marked (ECN).
    pub marked_frames: u64,
    /// Frames that the switch has dropped or received damaged, by reason.
    pub discards: BTreeMap<String, u64>,
}

/// TCP connections of iSCSI sessions and FCIP links, in the order of the lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionsView {
    /// One row for each end of a connection: the one that has opened it, then the other one.
    pub connections: Vec<ConnectionRow>,
}

/// One end of a TCP connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionRow {
    /// Interface of this end, for example `server1:eth0`.
    pub end: String,
    /// Interface of the other end.
    pub peer: String,
    /// Carried protocol: `iscsi` or `fcip`.
    pub carries: String,
    /// State of RFC 9293, for example `ESTABLISHED`.
    pub state: String,
    /// Congestion window in bytes.
    pub window_bytes: u64,
    /// Slow-start threshold in bytes; absent before the first loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_bytes: Option<u64>,
    /// Smoothed round-trip time in microseconds; absent before the first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<f64>,
    /// Receive buffer in bytes.
    pub receive_buffer_bytes: u64,
    /// Bytes that the peer has acknowledged.
    pub acknowledged_bytes: u64,
    /// Bytes that have arrived in order.
    pub received_bytes: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expired retransmission timers.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Reductions of the window because of an echoed mark (ECN).
    pub marks: u64,
}

/// InfiniBand of a lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InfinibandView {
    /// One row for each switch, in the order of the lab.
    pub switches: Vec<InfinibandSwitchRow>,
    /// One row for each end of a link, in the order of the links.
    pub ports: Vec<InfinibandPortRow>,
}

/// An InfiniBand switch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InfinibandSwitchRow {
    /// Name.
    pub switch: String,
    /// Node GUID, as 16 hexadecimal digits after `0x`.
    pub guid: String,
    /// LID of the switch, which is that of its port 0; absent if the subnet manager does not reach
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lid: Option<u16>,
    /// Ports with a link.
    pub ports: u32,
    /// LIDs of adapters to which its forwarding table leads.
    pub routes: u32,
}

/// A port of an InfiniBand switch or of an adapter. Counters are those since the start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InfinibandPortRow {
    /// Name, for example `ib1:4` or `server1:ib0`.
    pub port: String,
    /// Node GUID of an adapter, as 16 hexadecimal digits after `0x`; absent for a port of a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guid: Option<String>,
    /// LID of an adapter's port; absent for a port of a switch, and if the subnet manager does not
    /// reach it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lid: Option<u16>,
    /// LIDs of adapters whose packets leave a switch by this port: its forwarding table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<u16>,
    /// Port at the other end.
    pub attached: String,
    /// Link.
    pub link: String,
    /// Rate, for example `4xHDR`.
    pub rate: String,
    /// True if the link is up.
    pub light: bool,
    /// Packets sent, without flow-control packets.
    pub packets_sent: u64,
    /// Bytes of these packets, from the LRH to the VCRC.
    pub bytes_sent: u64,
    /// Flow-control packets sent.
    pub flow_sent: u64,
    /// Blocks of 64 bytes that the port may send now, for each data lane.
    pub lane_credits: Vec<u16>,
    /// Blocks of 64 bytes that the buffer of each lane at the other end holds.
    pub blocks: u16,
    /// Packets that wait for the line.
    pub queued_packets: u64,
    /// Times that the line was idle because no packet had credit.
    pub credit_waits: u64,
    /// Duration of these waits in seconds.
    pub credit_wait_s: f64,
    /// Times that a lane was drained because it was stalled.
    pub lane_stalls: u64,
    /// Lost packets by reason: on the way to the port, and at it on arrival.
    pub discards: BTreeMap<String, u64>,
}

/// SRP channels in the order of the lab.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ChannelsView {
    /// One row for each channel.
    pub channels: Vec<ChannelRow>,
}

/// An SRP channel. Counters are those since the end of the warm-up.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelRow {
    /// Port of the initiator, for example `server1:ib0`.
    pub initiator: String,
    /// Port of the target.
    pub target: String,
    /// True if the channel is logged in.
    pub up: bool,
    /// Connections that were opened.
    pub connections: u64,
    /// Commands and task management requests that the host has sent.
    pub requests: u64,
    /// Responses that the host has received.
    pub responses: u64,
    /// Commands that waited for the request limit of the target.
    pub credit_waits: u64,
    /// Bytes that the target has written to the host by RDMA.
    pub rdma_written_bytes: u64,
    /// Bytes that the target has read from the host by RDMA.
    pub rdma_read_bytes: u64,
    /// Times that either side has gone back to repeat packets.
    pub repetitions: u64,
}
