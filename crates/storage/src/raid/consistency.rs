//! The write hole: parity after a crash in the middle of a write, and its cures.

use super::array::Array;
use super::plan::{Method, Plan};

/// Blocks of the metadata that precede the data of a log entry (4 KiB in md).
const LOG_HEADER_BLOCKS: u64 = 8;

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
    /// Stripes whose untouched data may be wrong, because a member is missing: the write hole.
    pub damaged_stripes: u64,
    /// The array starts without force. md refuses an array that is both dirty and degraded.
    pub can_start: bool,
}

/// Stripes with writes in flight, and what a crash does to them.
#[derive(Clone, Debug)]
pub struct WriteTracker {
    consistency: Consistency,
    /// Stripe and number of its writes in flight; sorted.
    in_flight: Vec<(u64, u32)>,
}

impl WriteTracker {
    /// Creates a tracker without writes in flight.
    pub fn new(consistency: Consistency) -> WriteTracker {
        WriteTracker { consistency, in_flight: Vec::new() }
    }

    /// Records the start of the writes of a plan. Returns the blocks that go to the log before
    /// them: to the log device of a journal, or to the parity members of a partial parity log.
    pub fn begin(&mut self, plan: &Plan) -> u64 {
        each_stripe(plan, |stripe| match self.in_flight.binary_search_by_key(&stripe, |entry| entry.0) {
            Ok(at) => self.in_flight[at].1 += 1,
            Err(at) => self.in_flight.insert(at, (stripe, 1)),
        });
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
        each_stripe(plan, |stripe| {
            if let Ok(at) = self.in_flight.binary_search_by_key(&stripe, |entry| entry.0) {
                self.in_flight[at].1 -= 1;
                if self.in_flight[at].1 == 0 {
                    self.in_flight.remove(at);
                }
            }
        });
    }

    /// Number of stripes with writes in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Ends all writes by a crash. Stripes that need it become inconsistent in the array.
    pub fn crash(&mut self, array: &mut Array) -> Recovery {
        let stripes: Vec<u64> = std::mem::take(&mut self.in_flight).into_iter().map(|entry| entry.0).collect();
        let count = stripes.len() as u64;
        let is_degraded = array.members().iter().any(|member| *member != super::Member::Online);
        let total = match array.geometry().stripe_blocks() {
            Some(blocks) => array.geometry().blocks() / blocks,
            None => array.geometry().blocks() / u64::from(array.geometry().chunk_blocks()),
        };
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
        let has_hole = is_degraded && !has_log && array.geometry().stripe_blocks().is_some();
        Recovery { resync_stripes, damaged_stripes: if has_hole { count } else { 0 }, can_start: is_clean || !has_hole }
    }
}

/// Calls `each` once per stripe that the plan writes. I/Os of a stripe are neighbours.
fn each_stripe(plan: &Plan, mut each: impl FnMut(u64)) {
    let mut last = None;
    for io in plan.ios.iter().filter(|io| io.phase == super::Phase::Write) {
        if last.replace(io.stripe) != Some(io.stripe) {
            each(io.stripe);
        }
    }
}
