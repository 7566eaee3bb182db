//! Data that the disks of a storage system have lost: [`Losses`].

use sanloom_api::results::{DataLossResult, LostRequest};
use sanloom_storage::backstore::PowerLoss;

/// Limit on stored requests and outages; more are only counted.
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

/// A failure of the power or of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// True for a controller.
    pub of_controller: bool,
    /// Time in ps since the first login.
    pub at_ps: u64,
    /// Commands in flight.
    pub commands: u64,
    /// Acknowledged blocks of 512 bytes in volatile caches, or in the cache of the controller.
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
                of_controller: false,
                at_ps,
                commands,
                lost_blocks: loss.lost_blocks,
                resync_stripes: groups().map(|recovery| recovery.resync_stripes).sum(),
                damaged_stripes: groups().map(|recovery| recovery.damaged_stripes).sum(),
            });
        }
    }

    /// Adds a controller that failed with written data that nobody else had.
    pub(super) fn add_controller(&mut self, at_ps: u64, lost_blocks: u64) {
        if self.outages.len() < MOST {
            let (of_controller, commands, resync_stripes, damaged_stripes) = (true, 0, 0, 0);
            self.outages.push(Outage { of_controller, at_ps, commands, lost_blocks, resync_stripes, damaged_stripes });
        }
    }

    /// Returns the first requests, in the order of time.
    pub fn requests(&self) -> &[Loss] {
        &self.requests
    }

    /// Returns the failures of power and controllers, in the order of time.
    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }

    /// Returns the results. `start_ps`: start of the workloads. `lost_blocks`: acknowledged blocks
    /// of 512 bytes that are lost.
    pub fn result(&self, start_ps: u64, lost_blocks: u64) -> DataLossResult {
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
            lost_blocks,
            damaged_stripes: self.outages.iter().map(|outage| outage.damaged_stripes).sum(),
            first_requests: self.requests.iter().take(MOST_IN_RESULTS).map(request).collect(),
        }
    }
}
