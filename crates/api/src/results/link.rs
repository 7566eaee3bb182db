//! Links: the traffic that they carried, and the time that frames waited for credit.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Types of the nodes that a link connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Two switches.
    #[default]
    Isl,
    /// A host and a switch.
    Host,
    /// A storage system and a switch.
    Storage,
    /// A host and a storage system.
    Direct,
    /// A host or a storage system and an arbitrated loop.
    Loop,
}

/// One link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkResult {
    /// Name of the link.
    pub name: String,
    /// Types of the nodes that it connects.
    pub kind: LinkKind,
    /// Name of its speed, for example `2GFC`.
    pub rate: String,
    /// Capacity of each direction, in bytes per second.
    pub rate_bytes_per_s: f64,
    /// Bundle (trunk) that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// Total time in which the link was down, in seconds.
    pub down_s: f64,
    /// Link resets (LR, LRR) after E_D_TOV without credit.
    pub link_resets: u64,
    /// Direction from its first end to its second end.
    pub forward: LinkDirection,
    /// Direction from its second end to its first end.
    pub backward: LinkDirection,
}

impl LinkResult {
    /// Utilisation of the busier direction, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        self.forward.utilisation.max(self.backward.utilisation)
    }

    /// Fraction of the time in which a frame waited for credit, 0 to 1: the larger value of the two
    /// directions.
    pub fn credit_wait_fraction(&self) -> f64 {
        self.forward.credit_wait_fraction.max(self.backward.credit_wait_fraction)
    }
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkDirection {
    /// Sending port, for example `edge1:3`.
    pub from: String,
    /// Receiving port.
    pub to: String,
    /// Frames sent.
    pub frames: u64,
    /// Bytes of these frames, from SOF to EOF inclusive.
    pub bytes: u64,
    /// Bytes of FCP_DATA payload in these frames.
    pub data_bytes: u64,
    /// `data_bytes` per second of measured time.
    pub throughput_bytes_per_s: f64,
    /// Fraction of the time in which frames, with the shortest gap after each, occupied the link, 0
    /// to 1.
    pub utilisation: f64,
    /// Transmission words of fill (IDLE) sent.
    pub idle_words: u64,
    /// R_RDY primitives sent in this direction. Each returns one credit to the other end.
    pub r_rdys: u64,
    /// Time in which a frame was ready to leave but no credit was available, in seconds.
    pub credit_wait_s: f64,
    /// `credit_wait_s` as a fraction of the measured time, 0 to 1.
    pub credit_wait_fraction: f64,
    /// Buffer-to-buffer credit that the receiver granted, in frames.
    pub bb_credit: u64,
    /// Minimum number of credits that the sender had.
    pub credits_min: u64,
    /// Credits lost because a frame or an R_RDY did not arrive.
    pub credits_lost: u64,
    /// Lost credits that buffer-to-buffer state changes (BB_SC) restored.
    pub credits_recovered: u64,
    /// Frames lost on the link, by reason.
    pub frames_lost: BTreeMap<String, u64>,
    /// Virtual channels, by number; absent for a link without them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelResult>,
}

/// One virtual channel of a direction of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelResult {
    /// Number of the channel: 0 for frames between switches, 2 to 5 for medium priority, 8 and 9
    /// for low, 10 to 14 for high.
    pub channel: u64,
    /// Credit that the receiver granted for the channel, in frames.
    pub bb_credit: u64,
    /// Frames sent.
    pub frames: u64,
    /// Bytes of these frames, from SOF to EOF inclusive.
    pub bytes: u64,
    /// Time in which a frame was ready to leave but its channel had no credit, in seconds. The
    /// channels of a link may wait at the same time.
    pub credit_wait_s: f64,
}
