//! Cost of a run: [`Engine`].

use serde::{Deserialize, Serialize};

/// Cost of the run: the only part of the results that depends on real time and on the machine.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Engine {
    /// Frame-hops: one frame crossing one link counts once, on Fibre Channel, Ethernet and
    /// InfiniBand.
    pub frame_hops: u64,
    /// Events processed by the engine. With several threads the number varies slightly.
    pub events: u64,
    /// Processor time of the run loop, in seconds.
    pub cpu_s: f64,
    /// Real time of the run loop, in seconds.
    pub wall_s: f64,
    /// Frame-hops per second of processor time.
    pub frame_hops_per_cpu_s: f64,
    /// Resident memory at the end of the run, in bytes.
    pub rss_bytes: u64,
}
