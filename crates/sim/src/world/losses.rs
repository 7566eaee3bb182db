//! Data that the disks of a storage system have lost: [`Losses`].

use sanloom_api::results::{DataLossResult, LostRequest};
use sanloom_storage::backstore::PowerLoss;

/// Limit on stored requests and power failures; more are only counted.
const MOST: usize = 1_000;

/// Requests in the results.
const MOST_IN_RESULTS: usize = 20;

/// Losses of a storage system since the start of the run.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    requests: Vec<Loss>,
    outages: Vec<Outage>,
    lost: u64,
    wrong: u64,
}

/// A request that was lost, or returned wrong data.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Time in ps since the first login.
    pub at_ps: u64,
    /// Number of the LUN.
    pub lun: u16,
    /// First block of the request, in blocks of the LUN.
    pub lba: u64,
    pub blocks: u32,
    pub write: bool,
    pub reason: Reason,
}

/// Reason why a request was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Too few disks of the group are left.
    Disks,
    /// A block could not be read, and no redundancy was left.
    Block,
    /// The data were computed from parity or copies that a power failure left wrong.
    Parity,
}

impl Reason {
    /// Returns the end of a sentence about the request.
    pub fn words(self) -> &'static str {
        match self {
            Reason::Disks => "ended with MEDIUM ERROR: too few disks are left",
            Reason::Block => "ended with MEDIUM ERROR: a block could not be read or computed from other disks",
            Reason::Parity => "returned wrong data, computed from redundancy that a power failure left wrong",
        }
    }
}

/// A power failure.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// Time in ps since the first login.
    pub at_ps: u64,
    /// Commands in flight.
    pub commands: u64,
    /// Acknowledged blocks of 512 bytes in volatile caches.
    pub lost_blocks: u64,
    /// Stripes that a resync has to compute anew.
    pub resync_stripes: u64,
    /// Stripes with data that may be wrong, although nobody wrote them.
    pub damaged_stripes: u64,
}

impl Losses {
    pub(super) fn add(&mut self, loss: Loss) {
        match loss.reason {
            Reason::Parity => self.wrong += 1,
            Reason::Disks | Reason::Block => self.lost += 1,
        }
        if self.requests.len() < MOST {
            self.requests.push(loss);
        }
    }

    pub(super) fn add_outage(&mut self, at_ps: u64, commands: u64, loss: &PowerLoss) {
        if self.outages.len() < MOST {
            let groups = || loss.groups.iter().map(|(_, recovery)| recovery);
            self.outages.push(Outage {
                at_ps,
                commands,
                lost_blocks: loss.lost_blocks,
                resync_stripes: groups().map(|recovery| recovery.resync_stripes).sum(),
                damaged_stripes: groups().map(|recovery| recovery.damaged_stripes).sum(),
            });
        }
    }

    /// Returns the first requests, in the order of time.
    pub fn requests(&self) -> &[Loss] {
        &self.requests
    }

    /// Returns the power failures, in the order of time.
    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }

    /// Returns the results. `start_ps`: start of the workloads.
    pub fn result(&self, start_ps: u64, lost_in_cache: u64) -> DataLossResult {
        let volatile: u64 = self.outages.iter().map(|outage| outage.lost_blocks).sum();
        let request = |loss: &Loss| LostRequest {
            at_s: loss.at_ps.saturating_sub(start_ps) as f64 / 1e12,
            lun: loss.lun.into(),
            block: loss.lba,
            blocks: loss.blocks,
            write: loss.write,
            reason: loss.reason.words().to_owned(),
        };
        DataLossResult {
            lost_requests: self.lost,
            wrong_reads: self.wrong,
            // Without a battery, the cache counts its part of the volatile blocks, too.
            lost_blocks: volatile.max(lost_in_cache),
            damaged_stripes: self.outages.iter().map(|outage| outage.damaged_stripes).sum(),
            first_requests: self.requests.iter().take(MOST_IN_RESULTS).map(request).collect(),
        }
    }
}
