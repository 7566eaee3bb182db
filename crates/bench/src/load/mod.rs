//! Load on a disk, independent of the transport: work, results, and `Course`, which hosts over
//! iSCSI ([`iscsi`]) and FCoE ([`fcoe`]) and NBD clients ([`nbd`]) share.

pub mod fcoe;
pub mod iscsi;
pub mod nbd;

use sanloom_scsi::random::SplitMix64;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// Time without a completed request after which a run is aborted.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Pattern of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Request size in bytes, a multiple of the block size.
    pub bytes: u32,
    /// Number of concurrent requests.
    pub depth: u32,
    /// Write requests instead of reads.
    pub write: bool,
    /// Random positions instead of sequential ones.
    pub random: bool,
}

/// Result of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Served {
    /// Latency of each request in nanoseconds, in order of completion.
    pub latencies_ns: Vec<u64>,
    /// Time from the first request to the end of the last.
    pub elapsed: Duration,
}

/// Reason why load cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The connection failed.
    #[error("no connection: {0}")]
    Connection(#[from] io::Error),
    /// The login or the session failed.
    #[error("{0}")]
    Session(String),
    /// A command failed.
    #[error("a command failed: {0}")]
    Command(String),
    /// The unit is too small for a request.
    #[error("the unit has {blocks} blocks of {block_bytes} bytes, too few for requests of {bytes} bytes")]
    TooSmall {
        /// Blocks of the unit.
        blocks: u64,
        /// Block size in bytes.
        block_bytes: u32,
        /// Request size in bytes.
        bytes: u32,
    },
    /// The target has stopped completing requests.
    #[error("the target has made no progress for {} s", TIME_LIMIT.as_secs())]
    Idle,
}

/// Returns the data that writes send.
pub(crate) fn pattern(bytes: u32) -> impl Iterator<Item = u8> {
    (0..bytes).map(|n| (n % 251) as u8)
}

/// Selects the next request and measures the requests in flight.
#[derive(Debug)]
pub(crate) struct Course {
    work: Work,
    time: Duration,
    begun: Instant,
    over: bool,
    /// Number of request positions on the disk.
    places: u64,
    next: u64,
    chance: SplitMix64,
    under_way: BTreeMap<u64, Instant>,
    served: Served,
}

impl Course {
    /// Starts a run of the given duration now.
    ///
    /// # Errors
    /// When the disk is smaller than one request, or requests are not a multiple of the block size.
    pub(crate) fn begin(
        work: Work,
        time: Duration,
        seed: u64,
        (blocks, block_bytes): (u64, u32),
    ) -> Result<Course, LoadError> {
        let block_bytes = block_bytes.max(1);
        let places = blocks.checked_div((work.bytes / block_bytes).into()).unwrap_or(0);
        if places == 0 || !work.bytes.is_multiple_of(block_bytes) {
            return Err(LoadError::TooSmall { blocks, block_bytes, bytes: work.bytes });
        }
        let mut chance = SplitMix64(seed);
        let next = chance.below(places);
        let (under_way, served) = (BTreeMap::new(), Served::default());
        Ok(Course { work, time, begun: Instant::now(), over: false, places, next, chance, under_way, served })
    }

    /// Updates the current time. Returns false when the time is over and no request is in flight.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.over = self.begun.elapsed() >= self.time;
        !self.over || !self.under_way.is_empty()
    }

    /// Returns the position of the next request, in units of the request size. Returns `None` while
    /// enough requests are in flight, or if the time was over at the last update. Call
    /// [`began`](Self::began) next.
    pub(crate) fn place(&mut self) -> Option<u64> {
        if self.over || self.under_way.len() >= self.work.depth as usize {
            return None;
        }
        self.next = if self.work.random { self.chance.below(self.places) } else { (self.next + 1) % self.places };
        Some(self.next)
    }

    /// Records the start of a request under a unique number.
    pub(crate) fn began(&mut self, number: u64) {
        self.under_way.insert(number, Instant::now());
    }

    /// Records the completion of a request.
    pub(crate) fn ended(&mut self, number: u64) {
        let since = self.under_way.remove(&number);
        self.served.latencies_ns.extend(since.map(|since| since.elapsed().as_nanos() as u64));
    }

    /// Returns the results.
    pub(crate) fn finish(self) -> Served {
        Served { elapsed: self.begun.elapsed(), ..self.served }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work { bytes: 4096, depth: 2, write: false, random: false };

    #[test]
    fn requests_are_whole_blocks_that_fit() {
        let begin =
            |bytes, disk| Course::begin(Work { bytes, ..WORK }, Duration::ZERO, 1, disk).map(|course| course.places);
        assert!(matches!(begin(4096, (24, 512)), Ok(3)));
        for (bytes, disk) in [(4096, (7, 512)), (512, (9, 4096)), (4097, (99, 512)), (0, (99, 512)), (1, (0, 0))] {
            let LoadError::TooSmall { .. } = begin(bytes, disk).unwrap_err() else { panic!("{bytes} {disk:?}") };
        }
    }

    #[test]
    fn a_limited_number_of_requests_is_in_flight_and_all_end() {
        let mut course = Course::begin(WORK, Duration::from_secs(99), 7, (24, 512)).unwrap();
        assert!(course.goes_on());
        let first = course.place().unwrap();
        course.began(1);
        assert_eq!(course.place(), Some((first + 1) % 3));
        course.began(2);
        assert_eq!(course.place(), None);
        course.ended(1);
        assert_eq!(course.place(), Some((first + 2) % 3));
        course.began(3);
        course.time = Duration::ZERO;
        course.ended(9);
        assert!(course.goes_on() && course.place().is_none());
        course.ended(2);
        course.ended(3);
        assert!(!course.goes_on());
        assert_eq!(course.finish().latencies_ns.len(), 3);
    }
}
