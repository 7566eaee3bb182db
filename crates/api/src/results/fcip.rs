//! Results of FCIP links.

use serde::{Deserialize, Serialize};

/// One FCIP link over the Ethernet of the lab. Counters begin at the end of the warm-up; those of
/// TCP add both ends.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FcipLinkResult {
    /// Name of the link.
    pub name: String,
    /// `up` if both ends had opened their connection at the end of the run, otherwise `down`.
    pub state: String,
    /// Connections that were opened; more than none after the warm-up if the link was lost.
    pub connections: u64,
    /// Frames of Fibre Channel that both ends have sent.
    pub frames: u64,
    /// Segments that were sent again.
    pub segments_retransmitted: u64,
    /// Expired retransmission timers (RFC 6298).
    pub retransmission_timeouts: u64,
    /// Fast recoveries (RFC 6675).
    pub fast_recoveries: u64,
    /// Congestion window of the end that the link names first, at the end of the run, in bytes.
    pub from_window_bytes: u64,
    /// Congestion window of the other end at the end of the run, in bytes.
    pub to_window_bytes: u64,
    /// Smoothed round-trip time at the end of the run (RFC 6298), in microseconds: the longer one
    /// of both ends, and 0 without a sample.
    pub round_trip_us: f64,
}
