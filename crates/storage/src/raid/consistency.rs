//! The write hole: parity after a crash in the middle of a write, and its cures.

use super::array::Array;
use super::plan::{Method, Plan};

/// Blocks of the metadata that precede the data of a log entry (4 KiB in md).
pub(crate) const LOG_HEADER_BLOCKS: u64 = 8;

/// Protection of an array against a crash in the middle of a write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Consistency {
    /// Nothing: all stripes are synchronised after a crash.
    None,
    /// Write-intent bitmap: only regions with writes in flight are synchronised.
    Bitmap {
        /// Stripes per bit.
        region_stripes: u64,
    },
    /// Data and parity go to a log device first. A crash leaves no stripe inconsistent.
    Journal,
    /// Partial parity log: the parity of the untouched data goes to a log on the parity member
    /// first. A missing member loses no untouched data.
    PartialParityLog,
}

/// Result of a crash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Recovery {
    /// Stripes whose redundancy is computed anew before it can be trusted.
    pub resync_stripes: u64,
    /// Stripes whose untouched data may be wrong, because their member is missing and the parity
    /// that stands in for them was being written: the write hole.
    pub damaged_stripes: u64,
    /// The array starts without force. md refuses an array that is both dirty and degraded.
    pub can_start: bool,
}

/// A parity stripe, or a chunk of a mirror, with writes in flight.
#[derive(Clone, Copy, Debug)]
struct Open {
    stripe: u64,
    writes: u32,
    /// Writes that put untouched data at risk.
    risky: u32,
}

/// Stripes with writes in flight, and what a crash does to them.
#[derive(Clone, Debug)]
pub struct WriteTracker {
    consistency: Consistency,
    /// Sorted by stripe.
    in_flight: Vec<Open>,
}

impl WriteTracker {
    /// Creates a tracker without writes in flight.
    pub fn new(consistency: Consistency) -> WriteTracker {
        WriteTracker { consistency, in_flight: Vec::new() }
    }

    /// Records the start of the writes of a plan. Returns the blocks that go to the log before
    /// them: to the log device of a journal, or to the parity members of a partial parity log.
    pub fn begin(&mut self, plan: &Plan) -> u64 {
        plan.each_written(|stripe, is_at_risk| self.begin_stripe(stripe, is_at_risk));
        let written: u64 =
            plan.ios.iter().filter(|io| io.phase == super::Phase::Write).map(|io| u64::from(io.blocks)).sum();
        match self.consistency {
            Consistency::None | Consistency::Bitmap { .. } => 0,
            Consistency::Journal => LOG_HEADER_BLOCKS + written,
            // A full stripe leaves no data untouched, so only its header is logged.
            Consistency::PartialParityLog => plan.stripes.iter().fold(0, |blocks, stripe| {
                let parity = if stripe.method == Method::FullStripe { 0 } else { u64::from(stripe.rows) };
                blocks + LOG_HEADER_BLOCKS + parity
            }),
        }
    }

    /// Records the end of the writes of a plan.
    pub fn end(&mut self, plan: &Plan) {
        plan.each_written(|stripe, is_at_risk| self.end_stripe(stripe, is_at_risk));
    }

    /// Records the start of the writes of one stripe, or chunk of a mirror. `is_at_risk`: a crash
    /// may damage data that the write does not touch.
    pub fn begin_stripe(&mut self, stripe: u64, is_at_risk: bool) {
        let risky = u32::from(is_at_risk);
        match self.in_flight.binary_search_by_key(&stripe, |open| open.stripe) {
            Ok(at) => {
                self.in_flight[at].writes += 1;
                self.in_flight[at].risky += risky;
            }
            Err(at) => self.in_flight.insert(at, Open { stripe, writes: 1, risky }),
        }
    }

    /// Records the end of the writes of one stripe, or chunk of a mirror.
    pub fn end_stripe(&mut self, stripe: u64, is_at_risk: bool) {
        if let Ok(at) = self.in_flight.binary_search_by_key(&stripe, |open| open.stripe) {
            let open = &mut self.in_flight[at];
            open.writes -= 1;
            open.risky -= u32::from(is_at_risk);
            if open.writes == 0 {
                self.in_flight.remove(at);
            }
        }
    }

    /// Protection.
    pub fn consistency(&self) -> Consistency {
        self.consistency
    }

    /// Returns the chunks of members whose stripes a crash now would leave to a resync: first chunk
    /// and chunk behind the last, in ascending order. For [`Array::resync`].
    pub fn resync_ranges(&self, array: &Array) -> Vec<(u64, u64)> {
        let size = match self.consistency {
            _ if self.in_flight.is_empty() => return Vec::new(),
            Consistency::Journal => return Vec::new(),
            Consistency::None => return vec![(0, array.member_chunks())],
            Consistency::Bitmap { region_stripes } => region_stripes.max(1),
            Consistency::PartialParityLog => 1,
        };
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for open in &self.in_flight {
            let first = open.stripe / size * size;
            let last = (first + size - 1).min(array.stripes() - 1);
            let (from, to) = (array.row(first), (array.row(last) + 1).min(array.member_chunks()));
            match ranges.last_mut() {
                Some(range) if range.1 >= from => range.1 = range.1.max(to),
                _ => ranges.push((from, to)),
            }
        }
        ranges
    }

    /// Number of parity stripes, or chunks of a mirror, with writes in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Ends all writes by a crash. Stripes that need it become inconsistent in the array.
    pub fn crash(&mut self, array: &mut Array) -> Recovery {
        let open = std::mem::take(&mut self.in_flight);
        let risky = open.iter().filter(|open| open.risky > 0).count() as u64;
        let stripes: Vec<u64> = open.into_iter().map(|open| open.stripe).collect();
        let count = stripes.len() as u64;
        let is_degraded = array.members().iter().any(|member| *member != super::Member::Online);
        let total = array.stripes();
        let is_clean = count == 0;
        let resync_stripes = match self.consistency {
            _ if is_clean => 0,
            Consistency::None => total,
            Consistency::Bitmap { region_stripes } => {
                let size = region_stripes.max(1);
                let mut regions: Vec<u64> = stripes.iter().map(|stripe| stripe / size).collect();
                regions.dedup();
                regions.iter().map(|region| size.min(total - region * size)).sum()
            }
            Consistency::Journal => 0,
            Consistency::PartialParityLog => count,
        };
        let has_log = matches!(self.consistency, Consistency::Journal | Consistency::PartialParityLog);
        if !has_log {
            stripes.iter().for_each(|stripe| array.set_inconsistent(*stripe));
        }
        let is_refused = !is_clean && is_degraded && !has_log && array.geometry().stripe_blocks().is_some();
        Recovery { resync_stripes, damaged_stripes: if has_log { 0 } else { risky }, can_start: !is_refused }
    }
}

impl Plan {
    /// Calls `each` once per stripe, or chunk of a mirror, that the plan writes, with whether
    /// untouched data of the stripe are at risk.
    pub fn each_written(&self, mut each: impl FnMut(u64, bool)) {
        self.chunks.iter().for_each(|chunk| each(*chunk, false));
        for bands in self.stripes.chunk_by(|a, b| a.stripe == b.stripe) {
            if !matches!(bands[0].method, Method::Read | Method::DegradedRead) {
                each(bands[0].stripe, bands.iter().any(|band| band.is_at_risk));
            }
        }
    }
}
