//! Workloads (the SANSim paper, section 2.1): rate, size and location of requests.

use super::units::{Picos, Rate};
use sanloom_storage::trace::Settings;
use sanloom_storage::trace::replay::{AddressMap, Think};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Stream of requests on each of its hosts.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Name of the workload, for results.
    pub name: String,
    /// Indices of the hosts that run the stream.
    pub hosts: Vec<u16>,
    /// LUNs that requests address, each with the same probability.
    pub targets: Vec<Target>,
    /// Targets as requests name them, if some of them are virtual disks of a metadata server, which
    /// are replaced in `targets` by their back ends; otherwise empty.
    pub virtual_targets: Vec<Target>,
    /// Arrival of requests.
    pub load: Load,
    /// Distribution of request sizes.
    pub size: SizeDistribution,
    /// Fraction of reads, 0 to 1.
    pub read_share: f64,
    /// Locations of requests within a LUN.
    pub location: Location,
    /// Frequently accessed locations; `None`: all locations are equally likely.
    pub hot_set: Option<HotSet>,
    /// Used part of each LUN, in bytes from its beginning; `None`: the whole LUN.
    pub span_bytes: Option<u64>,
    /// Earliest time of the first request.
    pub start: Picos,
    /// Time after which no request is issued.
    pub stop: Option<Picos>,
}

impl Workload {
    /// Returns the LUNs that requests name.
    pub fn named_targets(&self) -> &[Target] {
        if self.virtual_targets.is_empty() { &self.targets } else { &self.virtual_targets }
    }
}

/// LUN of a storage system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Target {
    /// Index into `storage`.
    pub storage: u16,
    /// LUN number.
    pub lun: u16,
}

/// Arrival of requests.
#[derive(Clone, PartialEq, Debug)]
pub enum Load {
    /// Closed loop: a constant number of requests is in flight. The next one is issued `think_time`
    /// after one has ended.
    Closed {
        /// Requests in flight on each host.
        depth: u32,
        /// Pause after the end of a request.
        think_time: TimeDistribution,
    },
    /// Open loop: requests arrive regardless of the end of earlier ones. Several processes run
    /// concurrently.
    Open(Vec<Arrival>),
    /// Requests of a trace, with its times, sizes, directions and locations ("system traced" in the
    /// SANSim paper, section 2.1). The other fields of the workload for these are not used.
    Trace(Box<TraceLoad>),
}

/// Replay of a trace on each host. Requests to device `d` of the trace go to target `d` modulo the
/// number of targets.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceLoad {
    /// The file, which may be compressed.
    pub file: PathBuf,
    /// Format of the file.
    pub reader: Settings,
    /// Closed loop: number of requests in flight on each host. `None`: each request arrives at its
    /// time in the trace, counted from [`Workload::start`].
    pub depth: Option<u32>,
    /// Factor of all times.
    pub time_scale: f64,
    /// Passes over the trace; `None`: without end.
    pub passes: Option<NonZeroU64>,
    /// Requests that a host replays.
    pub selection: TraceSelection,
    /// Addresses on the targets.
    pub map: AddressMap,
    /// Think times of a closed loop.
    pub think: Think,
}

/// Requests of a trace that a host replays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceSelection {
    /// Each host replays all of them.
    All,
    /// Each host replays the requests to this device.
    Device(String),
    /// The hosts of the workload share the devices of the trace: device `d` belongs to host `d`
    /// modulo their number.
    Split,
}

/// Arrival process; each host has its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arrival {
    /// Exponentially distributed interarrival times.
    Poisson {
        /// Mean rate.
        rate: Rate,
    },
    /// Constant interarrival times.
    Constant {
        /// Arrival rate.
        rate: Rate,
    },
    /// Uniformly distributed interarrival times.
    Uniform {
        /// Shortest interarrival time.
        min: Picos,
        /// Longest interarrival time.
        max: Picos,
    },
    /// Normally distributed interarrival times, truncated at zero, which raises their mean.
    Normal {
        /// Mean interarrival time before truncation.
        mean: Picos,
        /// Standard deviation of the interarrival time before truncation.
        deviation: Picos,
    },
    /// Independent interarrival times of another distribution.
    Renewal(TimeDistribution),
    /// Poisson arrivals in on-phases and none in off-phases, both of fixed length.
    OnOff {
        /// Mean rate in an on-phase.
        rate: Rate,
        /// Length of an on-phase.
        on: Picos,
        /// Length of an off-phase.
        off: Picos,
    },
    /// Poisson arrivals in on-phases and none in off-phases; the lengths of both have a Pareto
    /// distribution. Many such processes together are self-similar (W. Willinger, M. S. Taqqu,
    /// R. Sherman, D. V. Wilson, "Self-similarity through high-variability", 1997).
    ParetoOnOff {
        /// Mean rate in an on-phase.
        rate: Rate,
        /// Mean length of an on-phase.
        on: Picos,
        /// Mean length of an off-phase.
        off: Picos,
        /// Exponent of the tail of both lengths, above 1. Their variance is infinite up to 2.
        shape: f64,
    },
    /// Markov-modulated Poisson process of two states: the rate changes at random times. Several
    /// such processes side by side have the states of their product (W. Fischer, K.
    /// Meier-Hellstern, "The Markov-modulated Poisson process cookbook", 1993).
    Markov {
        /// Mean rate in each state. The first state is the initial one.
        rates: [Rate; 2],
        /// Mean of the exponentially distributed time in each state.
        stays: [Picos; 2],
    },
}

/// Distribution of times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TimeDistribution {
    /// Always the same time.
    Constant(Picos),
    /// Exponential distribution.
    Exponential {
        /// Mean time.
        mean: Picos,
    },
    /// Uniform distribution.
    Uniform {
        /// Shortest time.
        min: Picos,
        /// Longest time.
        max: Picos,
    },
    /// Gamma distribution, which has no negative values and keeps mean and deviation.
    Gamma {
        /// Mean time.
        mean: Picos,
        /// Standard deviation.
        deviation: Picos,
    },
    /// Log-normal distribution.
    LogNormal {
        /// Mean time.
        mean: Picos,
        /// Standard deviation.
        deviation: Picos,
    },
    /// Pareto distribution: no time is shorter than `mean * (shape - 1) / shape`, and the tail
    /// falls with the power `shape`.
    Pareto {
        /// Mean time.
        mean: Picos,
        /// Exponent of the tail, above 1. The variance is infinite up to 2.
        shape: f64,
    },
}

impl From<Picos> for TimeDistribution {
    fn from(time: Picos) -> TimeDistribution {
        TimeDistribution::Constant(time)
    }
}

impl TimeDistribution {
    /// Returns the mean time.
    pub fn mean(&self) -> Picos {
        match *self {
            TimeDistribution::Constant(time) => time,
            TimeDistribution::Uniform { min, max } => Picos(min.0.midpoint(max.0)),
            TimeDistribution::Exponential { mean }
            | TimeDistribution::Gamma { mean, .. }
            | TimeDistribution::LogNormal { mean, .. }
            | TimeDistribution::Pareto { mean, .. } => mean,
        }
    }
}

/// Distribution of request sizes; every size is a multiple of the block size.
#[derive(Clone, PartialEq, Debug)]
pub enum SizeDistribution {
    /// Constant size in bytes.
    Fixed(u32),
    /// Several sizes in bytes, each with its weight.
    Weighted(Vec<(u32, f64)>),
    /// Uniformly distributed multiples of `step` from `min` to `max`, in bytes.
    Uniform {
        /// Smallest size in bytes.
        min: u32,
        /// Largest size in bytes.
        max: u32,
        /// Step in bytes.
        step: u32,
    },
    /// Exponential distribution with this mean, rounded up to 512 bytes and truncated at `max`.
    Exponential {
        /// Mean size in bytes.
        mean: u32,
        /// Largest size in bytes.
        max: u32,
    },
}

/// Locations of requests within a LUN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// Uniformly distributed, aligned to the request's size.
    Random,
    /// Directly after the previous request, per LUN.
    Sequential,
    /// At a fixed distance from the beginning of the previous request, per LUN.
    Strided {
        /// Distance in bytes.
        stride_bytes: u64,
    },
}

/// Frequently accessed locations: some files are accessed more often than others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HotSet {
    /// Fraction of requests that go to the hot part, 0 to 1.
    pub share_of_requests: f64,
    /// Fraction of the space that is hot, 0 to 1.
    pub share_of_space: f64,
    /// Skew within the hot part: exponent of a Zipf distribution over `items` locations; 0 is
    /// uniform.
    pub zipf_exponent: f64,
    /// Number of locations in the hot part.
    pub items: u32,
}
