//! Statistics of a trace, computed while it is read.
//!
//! ```
//! use sanloom_storage::trace::inspect::{Inspector, Limits};
//! use sanloom_storage::trace::{Settings, TraceReader};
//!
//! let mut reader = TraceReader::new(&b"0,0,4096,r,0.0\n0,8,4096,r,0.5\n"[..], &Settings::default())?;
//! let mut inspector = Inspector::new(Limits::default());
//! for request in &mut reader {
//!     inspector.add(&request?);
//! }
//! let statistics = inspector.statistics(reader.devices());
//! assert_eq!((statistics.requests, statistics.sequential.share), (2, 0.5));
//! # Ok::<(), sanloom_storage::trace::TraceError>(())
//! ```

mod burst;
mod distribution;
mod locality;
mod runs;
mod workload;

pub use burst::Burst;
pub use locality::{BLOCK_BYTES, HitRatio, Hot, Locality};
pub use runs::Sequential;
pub use workload::synthetic;

use super::request::{TraceOp, TraceRequest};
use burst::Counts;
use distribution::Distribution;
use locality::Accesses;
use runs::Runs;
use serde::Serialize;

/// Picoseconds in a microsecond, and in a second.
const US: f64 = 1e6;
const S: f64 = 1e12;

/// Sizes that the statistics list for each operation.
const LISTED_SIZES: usize = 16;

/// Bounds of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Blocks of 4 KiB that are followed for the locality, about 100 bytes each. A trace with more
    /// blocks is sampled.
    pub blocks: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { blocks: locality::DEFAULT_BLOCKS }
    }
}

/// Sizes of the requests of one operation.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Sizes {
    /// Mean in bytes.
    pub mean_bytes: f64,
    /// Median.
    pub p50_bytes: u64,
    /// 90th percentile.
    pub p90_bytes: u64,
    /// 99th percentile.
    pub p99_bytes: u64,
    /// Largest.
    pub max_bytes: u64,
    /// Most frequent sizes, at most 16, the most frequent first.
    pub frequent: Vec<SizeCount>,
}

/// Size and number of its requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SizeCount {
    /// Size.
    pub bytes: u64,
    /// Number of requests.
    pub requests: u64,
}

/// Distribution of times.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Times {
    /// Mean in microseconds.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Longest.
    pub max_us: f64,
}

/// Arrivals.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Arrivals {
    /// Times between two arrivals; none with fewer than two requests.
    pub between: Option<Times>,
    /// Variance of these times divided by the square of their mean: 1 for a Poisson process.
    pub variation: Option<f64>,
    /// Counts in windows of several lengths.
    pub bursts: Vec<Burst>,
    /// Hurst parameter, if the trace is long enough.
    pub hurst: Option<f64>,
}

/// Statistics of one device.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Device {
    /// Name in the trace.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of reads and writes.
    pub bytes: u64,
    /// Share of the reads and writes that begin where the one before ends.
    pub sequential: f64,
    /// Different blocks, in bytes; an estimate if the locality is sampled.
    pub footprint_bytes: u64,
    /// First byte behind all requests.
    pub end_bytes: u64,
}

/// Statistics of a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Statistics {
    /// Requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Reads and writes of 0 bytes, which a replay leaves out.
    pub empty: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes trimmed.
    pub bytes_trimmed: u64,
    /// Reads among the reads and writes, as a share; 0 without any.
    pub read_share: f64,
    /// Time from the first to the last arrival, in seconds.
    pub duration_s: f64,
    /// Requests per second over this time; 0 if it is 0.
    pub iops: f64,
    /// Bytes of reads and writes per second.
    pub throughput_bytes_per_s: f64,
    /// Sizes of reads.
    pub read_sizes: Sizes,
    /// Sizes of writes.
    pub write_sizes: Sizes,
    /// Arrivals.
    pub arrivals: Arrivals,
    /// Measured response times, if the trace has them.
    pub response: Option<Times>,
    /// Think times, if the trace has them.
    pub think: Option<Times>,
    /// Sequential reads and writes.
    pub sequential: Sequential,
    /// Footprint, popularity and reuse.
    pub locality: Locality,
    /// Devices, in the order of their first requests.
    pub devices: Vec<Device>,
    /// Sizes and operations of sequential and of other requests, for [`synthetic`].
    #[serde(skip)]
    parts: [Part; 2],
}

/// Reads and writes that are sequential, or those that are not.
#[derive(Clone, PartialEq, Debug, Default)]
struct Part {
    reads: u64,
    writes: u64,
    /// Sizes and numbers of requests, by size.
    sizes: Vec<(u64, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Totals {
    requests: u64,
    reads: u64,
    writes: u64,
    bytes: u64,
    sequential: u64,
    end_bytes: u64,
    runs: Runs,
}

/// Computes the statistics from requests in the order of their arrival.
///
/// Memory does not grow with the number of requests: about 27 MiB for the locality, 400 bytes per
/// device, and less than 4 MiB for all distributions.
#[derive(Clone, Debug)]
pub struct Inspector {
    ops: [u64; 4],
    bytes: [u64; 4],
    empty: u64,
    first_ps: u64,
    last_ps: u64,
    /// By operation: reads and writes.
    sizes: [Distribution; 2],
    /// By location: sequential and other.
    parts: [(Distribution, u64, u64); 2],
    gaps: Distribution,
    /// Sum of the squares of the gaps, in us^2.
    gap_squares: f64,
    counts: Counts,
    response: Distribution,
    think: Distribution,
    sequential: runs::Total,
    accesses: Accesses,
    devices: Vec<Totals>,
}

impl Inspector {
    /// Creates an inspector without requests.
    pub fn new(limits: Limits) -> Inspector {
        Inspector {
            ops: [0; 4],
            bytes: [0; 4],
            empty: 0,
            first_ps: 0,
            last_ps: 0,
            sizes: Default::default(),
            parts: Default::default(),
            gaps: Distribution::default(),
            gap_squares: 0.0,
            counts: Counts::default(),
            response: Distribution::default(),
            think: Distribution::default(),
            sequential: runs::Total::default(),
            accesses: Accesses::new(limits.blocks),
            devices: Vec::new(),
        }
    }

    /// Counts a request.
    pub fn add(&mut self, request: &TraceRequest) {
        self.arrive(request.arrival_ps);
        let op = match request.op {
            TraceOp::Read => 0,
            TraceOp::Write => 1,
            TraceOp::Trim => 2,
            TraceOp::Flush => 3,
        };
        self.ops[op] += 1;
        self.bytes[op] = self.bytes[op].saturating_add(request.length_bytes);
        request.response_ps.into_iter().for_each(|ps| self.response.add(ps));
        request.think_ps.into_iter().for_each(|ps| self.think.add(ps));
        let index = request.device as usize;
        if self.devices.len() <= index {
            self.devices.resize_with(index + 1, Totals::default);
        }
        let device = &mut self.devices[index];
        device.requests += 1;
        device.end_bytes = device.end_bytes.max(request.end_bytes());
        if op > 1 {
            return;
        }
        self.empty += u64::from(request.length_bytes == 0);
        device.reads += u64::from(op == 0);
        device.writes += u64::from(op == 1);
        device.bytes = device.bytes.saturating_add(request.length_bytes);
        let is_sequential = device.runs.add(request, &mut self.sequential);
        device.sequential += u64::from(is_sequential);
        self.sizes[op].add(request.length_bytes);
        let (sizes, reads, writes) = &mut self.parts[usize::from(!is_sequential)];
        sizes.add(request.length_bytes);
        *reads += u64::from(op == 0);
        *writes += u64::from(op == 1);
        self.accesses.add(request.device, request.offset_bytes, request.length_bytes);
    }

    fn arrive(&mut self, arrival_ps: u64) {
        if self.ops == [0; 4] {
            (self.first_ps, self.last_ps) = (arrival_ps, arrival_ps);
        } else {
            let gap = arrival_ps.saturating_sub(self.last_ps);
            self.gaps.add(gap);
            let us = gap as f64 / US;
            self.gap_squares += us * us;
        }
        self.last_ps = self.last_ps.max(arrival_ps);
        self.counts.add(self.last_ps - self.first_ps);
    }

    /// Returns the statistics so far; `devices`: names by device.
    pub fn statistics(&self, devices: &[String]) -> Statistics {
        let [reads, writes, trims, flushes] = self.ops;
        let requests = reads + writes + trims + flushes;
        let duration_s = (self.last_ps - self.first_ps) as f64 / S;
        let per_s = |number: f64| if duration_s > 0.0 { number / duration_s } else { 0.0 };
        let moved = self.bytes[0] as f64 + self.bytes[1] as f64;
        let gap_us = self.gaps.mean() / US;
        let gaps = self.gaps.values() as f64;
        let variation = (gap_us > 0.0).then(|| (self.gap_squares / gaps / (gap_us * gap_us) - 1.0).max(0.0));
        let footprints = self.accesses.footprints(self.devices.len());
        let device = |(index, totals): (usize, &Totals)| Device {
            name: devices.get(index).cloned().unwrap_or_else(|| index.to_string()),
            requests: totals.requests,
            reads: totals.reads,
            writes: totals.writes,
            bytes: totals.bytes,
            sequential: share(totals.sequential, totals.reads + totals.writes),
            footprint_bytes: footprints[index],
            end_bytes: totals.end_bytes,
        };
        let part = |(sizes, reads, writes): &(Distribution, u64, u64)| Part {
            reads: *reads,
            writes: *writes,
            sizes: sizes.counts().collect(),
        };
        Statistics {
            requests,
            reads,
            writes,
            trims,
            flushes,
            empty: self.empty,
            bytes_read: self.bytes[0],
            bytes_written: self.bytes[1],
            bytes_trimmed: self.bytes[2],
            read_share: share(reads, reads + writes),
            duration_s,
            iops: per_s(requests as f64),
            throughput_bytes_per_s: per_s(moved),
            read_sizes: sizes(&self.sizes[0]),
            write_sizes: sizes(&self.sizes[1]),
            arrivals: Arrivals {
                between: times(&self.gaps),
                variation,
                bursts: self.counts.bursts(),
                hurst: self.counts.hurst(),
            },
            response: times(&self.response),
            think: times(&self.think),
            sequential: self.sequential.sequential(reads + writes),
            locality: self.accesses.locality(),
            devices: self.devices.iter().enumerate().map(device).collect(),
            parts: [part(&self.parts[0]), part(&self.parts[1])],
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn sizes(of: &Distribution) -> Sizes {
    let mut frequent: Vec<SizeCount> = of.counts().map(|(bytes, requests)| SizeCount { bytes, requests }).collect();
    frequent.sort_by_key(|size| (std::cmp::Reverse(size.requests), size.bytes));
    frequent.truncate(LISTED_SIZES);
    Sizes {
        mean_bytes: of.mean(),
        p50_bytes: of.quantile(0.5),
        p90_bytes: of.quantile(0.9),
        p99_bytes: of.quantile(0.99),
        max_bytes: of.largest(),
        frequent,
    }
}

fn times(of: &Distribution) -> Option<Times> {
    (of.values() > 0).then(|| Times {
        mean_us: of.sum() as f64 / of.values() as f64 / US,
        p50_us: of.quantile(0.5) as f64 / US,
        p90_us: of.quantile(0.9) as f64 / US,
        p99_us: of.quantile(0.99) as f64 / US,
        max_us: of.largest() as f64 / US,
    })
}
