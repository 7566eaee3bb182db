//! Results of Ethernet: links and switches.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One Ethernet link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EthernetLinkResult {
    /// Name of the link.
    pub name: String,
    /// Name of its speed, for example `10GbE`.
    pub rate: String,
    /// Capacity of each direction, in bytes per second.
    pub rate_bytes_per_s: f64,
    /// Time for which the link was down, in seconds.
    pub downtime_s: f64,
    /// From the first end to the second.
    pub forward: EthernetDirection,
    /// From the second end to the first.
    pub backward: EthernetDirection,
}

impl EthernetLinkResult {
    /// Utilisation of the busier direction, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        self.forward.utilisation.max(self.backward.utilisation)
    }
}

/// One direction of an Ethernet link. Frames and bytes exclude pause frames.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EthernetDirection {
    /// Port of the sender: `tor:4`, or `server1:eth0` for an interface.
    pub from: String,
    /// Port of the receiver.
    pub to: String,
    /// Frames sent.
    pub frames: u64,
    /// Bytes of these frames, from the destination address to the FCS.
    pub bytes: u64,
    /// Bytes of these frames per second.
    pub throughput_bytes_per_s: f64,
    /// Share of the time in which the line was busy, with preambles, gaps and pause frames, 0 to 1.
    pub utilisation: f64,
    /// Pause frames sent in this direction.
    pub pauses: u64,
    /// Time for which the sender was paused, in seconds, by priority; under `link` if the whole
    /// link is paused. Priorities without a pause are missing.
    pub paused_s: BTreeMap<String, f64>,
    /// Largest share of the time for which a priority of the sender was paused, 0 to 1.
    pub paused_fraction: f64,
    /// Frames that the sender marked because of congestion (ECN).
    pub marked_frames: u64,
    /// Frames that the sender dropped because its memory had no room for them in the queue of this
    /// port. `frames_lost` counts each at the line on which it arrived.
    pub queue_drops: u64,
    /// Frames of FCoE among `queue_drops` that were lost because the priority is not lossless.
    pub fcoe_queue_drops: u64,
    /// Most bytes that waited in a queue of the sender, over the whole run.
    pub queue_max_bytes: u64,
    /// Headroom of a lossless priority at the receiver, if it is a switch with PFC, in bytes.
    pub headroom_bytes: u64,
    /// Most bytes in the headroom of a priority at the receiver, over the whole run.
    pub headroom_max_bytes: u64,
    /// Frames lost on the line or dropped at its end.
    pub frames_lost: u64,
    /// Lost frames of a lossless priority for which the headroom was too small, over the whole
    /// run: an error of the lab.
    pub headroom_drops: u64,
    /// Lost frames by reason.
    pub drops: BTreeMap<String, u64>,
}

/// One Ethernet switch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EthernetSwitchResult {
    /// Name of the switch.
    pub name: String,
    /// Memory for frames, in bytes.
    pub memory_bytes: u64,
    /// Most bytes in memory at once, over the whole run.
    pub memory_max_bytes: u64,
    /// Bytes in memory at the end.
    pub memory_held_bytes: u64,
    /// Pause frames that its ports sent.
    pub pauses: u64,
    /// Frames that its queues marked because of congestion (ECN).
    pub marked_frames: u64,
    /// Frames that it dropped.
    pub frames_dropped: u64,
    /// Lost frames of a lossless priority for which the headroom was too small, over the whole
    /// run.
    pub headroom_drops: u64,
}
