//! Links: what they carried, and how long frames waited for credit.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a link connects.
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
}

/// One link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkResult {
    /// Name of the link.
    pub name: String,
    /// What it connects.
    pub kind: LinkKind,
    /// Name of its speed, for example `2GFC`.
    pub rate: String,
    /// Bytes that it can carry per second in each direction.
    pub rate_bytes_per_s: f64,
    /// Bundle (trunk) that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// Time that it was down, in seconds.
    pub down_s: f64,
    /// Link resets (LR, LRR) after E_D_TOV without credit.
    pub link_resets: u64,
    /// From its first end to its second.
    pub forward: LinkDirection,
    /// From its second end to its first.
    pub backward: LinkDirection,
}

impl LinkResult {
    /// Utilisation of the busier direction, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        self.forward.utilisation.max(self.backward.utilisation)
    }

    /// Share of the time that a frame waited for credit, in the direction where it was longer, 0 to 1.
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
    /// Bytes of frames from SOF to EOF, both included.
    pub bytes: u64,
    /// Bytes of FCP_DATA payload among them.
    pub data_bytes: u64,
    /// `data_bytes` per second of measured time.
    pub throughput_bytes_per_s: f64,
    /// Share of the time that frames, with the shortest gap after each, occupied the line. 0 to 1.
    pub utilisation: f64,
    /// Transmission words of fill (IDLE) sent.
    pub idle_words: u64,
    /// R_RDY primitives sent in this direction: each returns a credit to the other end.
    pub r_rdys: u64,
    /// Time that a frame was ready to leave and no credit was there, in seconds.
    pub credit_wait_s: f64,
    /// `credit_wait_s` as a share of the measured time, 0 to 1.
    pub credit_wait_fraction: f64,
    /// Buffer-to-buffer credit that the receiver granted, in frames.
    pub bb_credit: u64,
    /// Fewest credits that the sender had left.
    pub credits_min: u64,
    /// Credits lost (a frame or an R_RDY that did not arrive).
    pub credits_lost: u64,
    /// Frames lost on the way, by reason.
    pub frames_lost: BTreeMap<String, u64>,
}
