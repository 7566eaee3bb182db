//! Sums over all requests that a disk has ended, and of its work in the background.

use super::request::{Ended, Op, Phases, Source};
use std::fmt;

/// Number of requests of a kind, with their times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Ended requests.
    pub requests: u64,
    /// Sums of their times.
    pub phases: Phases,
}

/// Statistics of a disk. The display form lists the mean parts of a response in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskStats {
    /// Reads whose blocks were in the cache.
    pub read_hits: Count,
    /// Reads that waited for the read-ahead.
    pub read_ahead_hits: Count,
    /// Reads from the medium.
    pub read_misses: Count,
    /// Writes that ended in the cache.
    pub cached_writes: Count,
    /// Writes that ended on the medium.
    pub medium_writes: Count,
    /// Flushes.
    pub flushes: Count,
    /// Extents that were written back from the cache.
    pub write_backs: u64,
    /// Time of the arm for them.
    pub write_back_ps: u64,
    /// Time of the arm for reads and writes that waited for the medium.
    pub busy_ps: u64,
    /// Sum of the seek distances of accesses to the medium, in cylinders.
    pub seek_cylinders: u64,
    /// Accesses to the medium.
    pub accesses: u64,
}

impl DiskStats {
    /// Adds the end of a request.
    pub(super) fn record(&mut self, ended: &Ended) {
        let count = match (ended.op, ended.source) {
            (Op::Read, Source::Cache) => &mut self.read_hits,
            (Op::Read, Source::ReadAhead) => &mut self.read_ahead_hits,
            (Op::Read, Source::Medium) => &mut self.read_misses,
            (Op::Write | Op::WriteThrough, Source::Medium) => &mut self.medium_writes,
            (Op::Write | Op::WriteThrough, _) => &mut self.cached_writes,
            (Op::Flush, _) => &mut self.flushes,
        };
        count.requests += 1;
        count.phases.add(&ended.phases);
    }

    /// Returns the kinds of requests with their names.
    pub fn kinds(&self) -> [(&'static str, Count); 6] {
        [
            ("read hits", self.read_hits),
            ("read-ahead hits", self.read_ahead_hits),
            ("read misses", self.read_misses),
            ("cached writes", self.cached_writes),
            ("medium writes", self.medium_writes),
            ("flushes", self.flushes),
        ]
    }

    /// Returns the mean seek distance of accesses to the medium, in cylinders.
    pub fn mean_seek_cylinders(&self) -> f64 {
        self.seek_cylinders as f64 / self.accesses.max(1) as f64
    }
}

impl fmt::Display for DiskStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, Count { requests, phases }) in self.kinds() {
            if requests == 0 {
                continue;
            }
            let ms = |ps: u64| ps as f64 / requests as f64 / 1e9;
            writeln!(
                f,
                "{requests} {name}, mean {:.3} ms: queue {:.3}, overhead {:.3}, seek {:.3}, rotation {:.3}, medium {:.3}, \
                 bus {:.3}",
                ms(phases.total_ps()),
                ms(phases.queue_ps),
                ms(phases.overhead_ps),
                ms(phases.seek_ps),
                ms(phases.rotation_ps),
                ms(phases.medium_ps),
                ms(phases.bus_ps),
            )?;
        }
        write!(
            f,
            "{} write-backs in {:.3} ms of the arm; {:.3} ms of the arm for requests; mean seek {:.1} cylinders",
            self.write_backs,
            self.write_back_ps as f64 / 1e9,
            self.busy_ps as f64 / 1e9,
            self.mean_seek_cylinders(),
        )
    }
}
