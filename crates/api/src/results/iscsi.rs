//! Results of the sessions of iSCSI.

use serde::{Deserialize, Serialize};

/// One session of iSCSI from a host to a portal. Counters begin at the end of the warm-up; those of
/// TCP add both ends.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IscsiSessionResult {
    /// Host, interface, storage system and portal: `server1 nic0>array1:portal0`.
    pub name: String,
    /// `up` if the session was logged in at the end of the run, otherwise `down`.
    pub state: String,
    /// Connections that were opened; more than none after the warm-up if the session was lost.
    pub connections: u64,
    /// PDUs that the host has sent.
    pub pdus_sent: u64,
    /// PDUs that the host has received.
    pub pdus_received: u64,
    /// Commands that the host has submitted.
    pub commands: u64,
    /// Commands that waited because the session had its queue depth in flight, or because the
    /// target's command window was closed (RFC 7143, section 4.2.2.1).
    pub command_waits: u64,
    /// R2Ts that the host has received (RFC 7143, section 11.8).
    pub r2ts: u64,
    /// Segments that were sent again.
    pub segments_retransmitted: u64,
    /// Expired retransmission timers (RFC 6298).
    pub retransmission_timeouts: u64,
    /// Fast recoveries (RFC 6675).
    pub fast_recoveries: u64,
    /// Congestion window of the host at the end of the run, in bytes.
    pub host_window_bytes: u64,
    /// Congestion window of the storage system at the end of the run, in bytes.
    pub storage_window_bytes: u64,
}
