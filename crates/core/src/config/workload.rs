//! Workloads (document 001, section 2.1): what is asked, how often, and where.

use super::units::{Picos, Rate};

/// One stream of requests on each of its hosts.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Name.
    pub name: String,
    /// Index of each host that runs the stream.
    pub hosts: Vec<u16>,
    /// The LUNs that requests go to, each with the same probability.
    pub targets: Vec<Target>,
    /// When requests come.
    pub load: Load,
    /// How long requests are.
    pub size: SizeDistribution,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Where they go.
    pub location: Location,
    /// Popular places; `None`: every place is as likely.
    pub hot_set: Option<HotSet>,
    /// Part of each LUN that is used, in bytes from its beginning. `None`: all of it.
    pub span_bytes: Option<u64>,
    /// First request not before this time.
    pub start: Picos,
    /// No request after this time.
    pub stop: Option<Picos>,
}

/// A LUN of a storage system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Target {
    /// Index into `storage`.
    pub storage: u16,
    /// LUN number.
    pub lun: u16,
}

/// When requests come.
#[derive(Clone, PartialEq, Debug)]
pub enum Load {
    /// Closed loop: this many requests are always under way; the next comes `think_time` after one has ended.
    Closed {
        /// Requests under way on each host.
        depth: u32,
        /// Pause after an end.
        think_time: Picos,
    },
    /// Open loop: requests come whether earlier ones have ended or not. Several processes run side by side.
    Open(Vec<Arrival>),
}

/// An arrival process, each host with its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arrival {
    /// Exponential times between requests.
    Poisson {
        /// Mean rate.
        rate: Rate,
    },
    /// Equal times.
    Constant {
        /// Rate.
        rate: Rate,
    },
    /// Uniform times between two bounds.
    Uniform {
        /// Shortest time.
        min: Picos,
        /// Longest time.
        max: Picos,
    },
    /// Normal times, cut off at zero.
    Normal {
        /// Mean time.
        mean: Picos,
        /// Standard deviation.
        deviation: Picos,
    },
    /// Poisson arrivals in on-phases, silence in off-phases, both of fixed length.
    OnOff {
        /// Rate in an on-phase.
        rate: Rate,
        /// Length of an on-phase.
        on: Picos,
        /// Length of an off-phase.
        off: Picos,
    },
}

/// How long requests are; every length is a multiple of the block size.
#[derive(Clone, PartialEq, Debug)]
pub enum SizeDistribution {
    /// Always this many bytes.
    Fixed(u32),
    /// One of several sizes in bytes, each with its weight.
    Weighted(Vec<(u32, f64)>),
    /// Uniform multiples of `step` from `min` to `max`, in bytes.
    Uniform {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
        /// Step.
        step: u32,
    },
    /// Exponential with this mean, rounded up to 512 bytes and cut at `max`.
    Exponential {
        /// Mean in bytes.
        mean: u32,
        /// Largest in bytes.
        max: u32,
    },
}

/// Where requests go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// Anywhere, aligned to the request's size.
    Random,
    /// Each behind the one before, per LUN.
    Sequential,
    /// Each this many bytes behind the beginning of the one before, per LUN.
    Strided {
        /// Distance in bytes.
        stride_bytes: u64,
    },
}

/// Popular places: some files are accessed more often than others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HotSet {
    /// Share of the requests that go to the hot part, 0 to 1.
    pub share_of_requests: f64,
    /// Share of the space that is hot, 0 to 1.
    pub share_of_space: f64,
    /// Skew within the hot part: exponent of a Zipf law over `items` places; 0: uniform.
    pub zipf_exponent: f64,
    /// Number of places in the hot part.
    pub items: u32,
}
