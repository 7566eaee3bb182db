//! Overwriting of the blocks of deleted volumes with zeros, before another volume gets them:
//! [`Wiper`].

use sanloom_scsi::disk::{Op, Request};
use sanloom_scsi::map::{Freed, LunId, Map};
use sanloom_scsi::time::{Instant, Span};

/// First tag of its requests; tags of volumes are smaller.
const TAGS: u64 = 1 << 62;
/// Bytes freed at once, unless an extent is larger.
const RUN_BYTES: u64 = 64 << 20;
/// Bytes of one request; small, because it delays the requests of hosts.
const REQUEST_BYTES: u64 = 4 << 20;
/// Delay after a failure.
const RETRY: Span = Span::from_secs(5);

/// Blocks in the process of being wiped.
#[derive(Debug)]
struct Run {
    freed: Freed,
    block_bytes: u32,
    /// Number of blocks of it that are zeros.
    done: u64,
    /// Tag and number of blocks of the request in flight.
    in_flight: Option<(u64, u64)>,
}

/// Wipes one run at a time, with one request in flight.
#[derive(Debug)]
pub(super) struct Wiper {
    run: Option<Run>,
    /// Wiped blocks whose completion is not stored yet.
    finished: Option<Freed>,
    next_tag: u64,
    not_before: Instant,
}

impl Wiper {
    pub(super) fn new() -> Wiper {
        Wiper { run: None, finished: None, next_tag: TAGS, not_before: Instant::ZERO }
    }

    /// Time of the next request.
    pub(super) fn poll_timeout(&self, map: &Map, is_there: impl Fn(LunId) -> bool) -> Option<Instant> {
        let idle = self.run.is_none() && self.finished.is_none();
        (idle && map.next_wipe(is_there, 1).is_some()).then_some(self.not_before)
    }

    /// Returns the next request that is due.
    pub(super) fn next_request(
        &mut self,
        now: Instant,
        map: &Map,
        is_there: impl Fn(LunId) -> bool,
    ) -> Option<(LunId, Request)> {
        if self.run.is_none() && self.finished.is_none() && self.not_before <= now {
            let lun = map.next_wipe(&is_there, 1)?.lun;
            let pool = map.luns().find(|(id, _)| *id == lun).and_then(|(_, lun)| map.pool(lun.config.pool))?;
            let freed = map.next_wipe(is_there, RUN_BYTES / u64::from(pool.block_bytes.max(1)))?;
            self.run = Some(Run { freed, block_bytes: pool.block_bytes.max(1), done: 0, in_flight: None });
        }
        let run = self.run.as_mut().filter(|run| run.in_flight.is_none())?;
        let Freed { lun, lba, blocks } = run.freed;
        let tag = self.next_tag;
        self.next_tag += 1;
        let count = (blocks - run.done).min((REQUEST_BYTES / u64::from(run.block_bytes)).max(1));
        run.in_flight = Some((tag, count));
        let request = match count {
            0 => Request { tag, op: Op::Flush, lba: 0, blocks: 0, fua: false },
            _ => {
                let op = Op::WriteZeroes { unmap: true };
                Request { tag, op, lba: lba + run.done, blocks: count as u32, fua: false }
            }
        };
        Some((lun, request))
    }

    /// Handles the end of a request. Returns false if the request is not one of the wiper.
    pub(super) fn ended(&mut self, now: Instant, tag: u64, good: bool) -> bool {
        if tag < TAGS {
            return false;
        }
        let Some(mut run) = self.run.take_if(|run| run.in_flight.is_some_and(|(of, _)| of == tag)) else { return true };
        match run.in_flight.take() {
            Some((_, 0)) if good => self.finished = Some(run.freed),
            Some((_, count)) if good => {
                run.done += count;
                self.run = Some(run);
            }
            _ => self.later(now),
        }
        true
    }

    /// Returns the wiped blocks.
    pub(super) fn take_finished(&mut self) -> Option<Freed> {
        self.finished.take()
    }

    /// Schedules another attempt.
    pub(super) fn later(&mut self, now: Instant) {
        self.not_before = now + RETRY;
    }
}
