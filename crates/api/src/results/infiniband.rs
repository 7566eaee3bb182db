//! Results of InfiniBand: links and SRP channels.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The InfiniBand subnet.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SubnetResult {
    /// Routing engine that made the forwarding tables.
    pub routing: String,
    /// Reason for which it is not the engine of the lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Sweeps of the subnet manager after changes of links.
    pub sweeps: u64,
    /// Cycles of lanes that waited for each other's credit, found when lifetimes ended and at the
    /// end of the run.
    pub deadlocks: u64,
}

/// One InfiniBand link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InfinibandLinkResult {
    /// Name of the link.
    pub name: String,
    /// Name of its speed, for example `4xEDR`.
    pub rate: String,
    /// Capacity of each direction, in bytes per second.
    pub rate_bytes_per_s: f64,
    /// Time for which the link was down, in seconds.
    pub downtime_s: f64,
    /// From the first end to the second.
    pub forward: InfinibandDirection,
    /// From the second end to the first.
    pub backward: InfinibandDirection,
}

impl InfinibandLinkResult {
    /// Utilisation of the busier direction, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        self.forward.utilisation.max(self.backward.utilisation)
    }
}

/// One direction of an InfiniBand link. Packets and bytes exclude flow-control packets.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InfinibandDirection {
    /// Port of the sender: `ib1:4`, or `server1:ib0` for an interface.
    pub from: String,
    /// Port of the receiver.
    pub to: String,
    /// Packets sent.
    pub packets: u64,
    /// Bytes of these packets, from the LRH to the VCRC.
    pub bytes: u64,
    /// Bytes of these packets per second.
    pub throughput_bytes_per_s: f64,
    /// Share of the time in which the line was busy, with delimiters and flow-control packets, 0 to
    /// 1.
    pub utilisation: f64,
    /// Flow-control packets sent in this direction.
    pub flow_packets: u64,
    /// Blocks of 64 bytes that the receiver holds for each lane.
    pub blocks: u64,
    /// Times that the line was idle because no waiting packet had credit.
    pub credit_waits: u64,
    /// Total time of these, in seconds.
    pub credit_wait_s: f64,
    /// Share of the time in which the line was idle for want of credit, 0 to 1.
    pub credit_wait_fraction: f64,
    /// Times that a lane was drained after seven expired lifetimes in a row.
    pub lane_stalls: u64,
    /// Packets lost on the line or dropped at its ends.
    pub packets_lost: u64,
    /// Lost packets whose lifetime at the head of their queue had ended, or whose lane was drained.
    pub lifetime_drops: u64,
    /// Lost packets by reason.
    pub drops: BTreeMap<String, u64>,
}

/// One SRP channel of a host.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SrpChannelResult {
    /// Both ends: `server1:ib0>array:ib1`.
    pub name: String,
    /// True if it was logged in at the end.
    pub is_up: bool,
    /// Connections that were opened, beside those before the end of the warm-up.
    pub connections: u64,
    /// Commands and task management requests sent.
    pub requests: u64,
    /// Responses received.
    pub responses: u64,
    /// Commands that waited for the request limit of the target.
    pub credit_waits: u64,
    /// Bytes that the target wrote to the memory of the host.
    pub rdma_written_bytes: u64,
    /// Bytes that the target read from the memory of the host.
    pub rdma_read_bytes: u64,
    /// Logins that the target refused, because the host is in none of its partitions.
    pub partition_refusals: u64,
    /// Times that either side went back to repeat packets.
    pub repetitions: u64,
}
