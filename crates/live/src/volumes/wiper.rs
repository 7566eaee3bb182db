//! What deleted volumes had is overwritten with zeros before another volume gets it: [`Wiper`].

use sanloom_core::disk::{Op, Request};
use sanloom_core::map::{Freed, LunId, Map};
use sanloom_core::time::{Instant, Span};

/// Tags of its requests begin here; those of volumes are smaller.
const TAGS: u64 = 1 << 62;
/// What becomes free at once, unless an extent is larger.
const RUN_BYTES: u64 = 64 << 20;
/// Zeros of one request: hosts are at work beside it.
const REQUEST_BYTES: u64 = 4 << 20;
/// From a failure to the next attempt.
const RETRY: Span = Span::from_secs(5);

/// Blocks that are being wiped.
#[derive(Debug)]
struct Run {
    freed: Freed,
    block_bytes: u32,
    /// Blocks of it that are zeros.
    done: u64,
    /// Its request, and how many blocks that is for.
    asked: Option<(u64, u64)>,
}

/// Wipes one run after the other, with one request at a time.
#[derive(Debug)]
pub(super) struct Wiper {
    run: Option<Run>,
    /// What is wiped, until that is kept.
    finished: Option<Freed>,
    next_tag: u64,
    not_before: Instant,
}

impl Wiper {
    pub(super) fn new() -> Wiper {
        Wiper { run: None, finished: None, next_tag: TAGS, not_before: Instant::ZERO }
    }

    /// When it has something to do by itself.
    pub(super) fn poll_timeout(&self, map: &Map, is_there: impl Fn(LunId) -> bool) -> Option<Instant> {
        let idle = self.run.is_none() && self.finished.is_none();
        (idle && map.next_wipe(is_there, 1).is_some()).then_some(self.not_before)
    }

    /// The next request, if it is time for one.
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
            self.run = Some(Run { freed, block_bytes: pool.block_bytes.max(1), done: 0, asked: None });
        }
        let run = self.run.as_mut().filter(|run| run.asked.is_none())?;
        let Freed { lun, lba, blocks } = run.freed;
        let tag = self.next_tag;
        self.next_tag += 1;
        let count = (blocks - run.done).min((REQUEST_BYTES / u64::from(run.block_bytes)).max(1));
        run.asked = Some((tag, count));
        let request = match count {
            0 => Request { tag, op: Op::Flush, lba: 0, blocks: 0, fua: false },
            _ => {
                let op = Op::WriteZeroes { unmap: true };
                Request { tag, op, lba: lba + run.done, blocks: count as u32, fua: false }
            }
        };
        Some((lun, request))
    }

    /// A request has ended. False: it was none of these.
    pub(super) fn ended(&mut self, now: Instant, tag: u64, good: bool) -> bool {
        if tag < TAGS {
            return false;
        }
        let Some(mut run) = self.run.take_if(|run| run.asked.is_some_and(|(of, _)| of == tag)) else { return true };
        match run.asked.take() {
            Some((_, 0)) if good => self.finished = Some(run.freed),
            Some((_, count)) if good => {
                run.done += count;
                self.run = Some(run);
            }
            _ => self.later(now),
        }
        true
    }

    /// What is wiped.
    pub(super) fn take_finished(&mut self) -> Option<Freed> {
        self.finished.take()
    }

    /// It did not work: once more, later.
    pub(super) fn later(&mut self, now: Instant) {
        self.not_before = now + RETRY;
    }
}
