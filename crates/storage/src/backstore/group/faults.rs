//! Latent sector errors, wrong data, and power failures of a group.

use super::*;
use crate::raid::{Content, Recovery};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Size of the partial parity log on each member: 1 MiB, as in md.
pub(super) const PARTIAL_LOG_BLOCKS: u64 = 2_048;

/// Most latent sector errors of a group; further ones are left out.
const MAX_ERRORS: u64 = 1 << 20;

/// Most latent sector errors of a group per hour.
const MAX_PER_HOUR: f64 = 1e6;

const PS_PER_HOUR: f64 = 3.6e15;

/// Arrivals of latent sector errors: a Poisson process, uniform over the blocks of all members.
#[derive(Clone, Debug)]
pub(super) struct Latent {
    random: Xoshiro256PlusPlus,
    mean_ps: f64,
    next_ps: f64,
}

/// Effect of a power failure.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PowerLoss {
    /// Identifiers of the commands in flight, in ascending order. No such command has been
    /// acknowledged, and none ends.
    pub aborted: Vec<u32>,
    /// Number of each unit with RAID, and what its group has to do and has lost.
    pub groups: Vec<(u16, Recovery)>,
    /// Acknowledged blocks of 512 bytes that were lost in volatile caches of disks, SSDs and
    /// controller. Requests do not report these blocks as wrong.
    pub lost_blocks: u64,
}

impl Group {
    /// Sets the rate of latent sector errors, per block of 512 bytes and hour.
    pub fn set_latent_errors(&mut self, now_ps: u64, rate: f64, seed: u64) -> Result<(), BackstoreError> {
        let per_hour = rate * self.disk_blocks as f64 * f64::from(self.members());
        if !(0.0..=MAX_PER_HOUR).contains(&per_hour) {
            return Err(BackstoreError::LatentErrors { per_hour });
        }
        self.latent = (per_hour > 0.0).then(|| {
            let mut latent = Latent {
                random: Xoshiro256PlusPlus::seed_from_u64(seed),
                mean_ps: PS_PER_HOUR / per_hour,
                next_ps: now_ps as f64,
            };
            latent.next_ps += latent.gap_ps();
            latent
        });
        Ok(())
    }

    /// Makes a block of a member unreadable.
    pub fn add_error(&mut self, member: u32, lba: u64) {
        if member >= self.members() || lba >= self.disk_blocks {
            return;
        }
        match &mut self.array {
            Some(array) => {
                let chunk = lba / u64::from(array.geometry().chunk_blocks());
                if array.media_errors() < MAX_ERRORS && array.members()[member as usize].is_usable(chunk) {
                    array.add_media_error(member, lba);
                }
            }
            None if self.errors.blocks() < MAX_ERRORS => self.errors.insert(lba, 1),
            None => {}
        }
    }

    /// Adds the latent sector errors that have come until now.
    pub(super) fn advance_errors(&mut self, now_ps: u64) {
        while let Some(latent) = self.latent.as_mut().filter(|latent| latent.next_ps <= now_ps as f64) {
            latent.next_ps += latent.gap_ps();
            let members = self.array.as_ref().map_or(1, |array| array.geometry().members());
            let (member, lba) =
                (latent.random.random_range(0..members), latent.random.random_range(0..self.disk_blocks));
            self.add_error(member, lba);
        }
    }

    /// Returns the first unreadable block that a read of a member meets.
    pub(super) fn unreadable(&self, member: u32, lba: u64, blocks: u32) -> Option<u64> {
        match &self.array {
            Some(array) => array.media_error(member, lba, blocks),
            None => self.errors.first(lba, blocks.into()),
        }
    }

    pub(super) fn clear_errors(&mut self, member: u32, lba: u64, blocks: u32) {
        match &mut self.array {
            Some(array) if array.media_errors() > 0 => array.clear_media_errors(member, lba, blocks),
            Some(_) => {}
            None => self.errors.remove(lba, blocks.into()),
        }
    }

    /// Number of unreadable blocks of the members.
    pub fn unreadable_blocks(&self) -> u64 {
        self.array.as_ref().map_or(self.errors.blocks(), Array::media_errors)
    }

    /// Returns whether the planned read returns wrong data: data that are wrong on their member, or
    /// that are computed from redundancy which a crash has left wrong.
    pub(super) fn reads_wrong(&self, request: &Request) -> bool {
        if self.wrong.blocks() > 0 && self.wrong.overlaps(request.lba, request.blocks.into()) {
            return true;
        }
        let Some(array) = self.array.as_ref().filter(|array| !array.inconsistent().is_empty()) else { return false };
        let mut computed = self.plan.stripes.iter().filter(|band| band.method == Method::DegradedRead);
        computed.any(|band| {
            let rows = self.suspect_rows(band.stripe);
            array.inconsistent().binary_search(&band.stripe).is_ok()
                && band.row < rows.1
                && rows.0 < band.row + band.rows
        })
    }

    /// First row, and the row behind the last, in which the redundancy of an inconsistent stripe
    /// may be wrong.
    pub(super) fn suspect_rows(&self, stripe: u64) -> (u32, u32) {
        let chunk_blocks = self.array.as_ref().map_or(0, |array| array.geometry().chunk_blocks());
        self.suspects.get(&stripe).copied().unwrap_or((0, chunk_blocks))
    }

    /// Returns the ranges of blocks of the unit that a read would return wrong, now or after the
    /// failure of a member.
    pub fn wrong_blocks(&self, failing: Option<u32>) -> Vec<(u64, u64)> {
        let mut wrong = self.wrong.clone();
        if let Some(array) = &self.array {
            let geometry = array.geometry();
            let chunk_blocks = u64::from(geometry.chunk_blocks());
            for &stripe in array.inconsistent() {
                let Some(place) = geometry.stripe(stripe) else { continue };
                let row = array.row(stripe);
                let (from, to) = self.suspect_rows(stripe);
                let count = place.layout.data() + 1 + u32::from(place.layout.q.is_some());
                for member in place.first_member..place.first_member + count {
                    let is_missing = Some(member) == failing || !array.members()[member as usize].is_usable(row);
                    if let (true, Some(Content::Data { chunk, .. })) = (is_missing, geometry.content(member, row)) {
                        wrong.insert(chunk * chunk_blocks + u64::from(from), (to - from).into());
                    }
                }
            }
        }
        wrong.iter().collect()
    }

    /// The power fails: requests in flight end without effect. Returns the recovery that the group
    /// starts, and the origins of the requests.
    pub fn power_loss(&mut self, origins: &mut Vec<Request>) -> Option<Recovery> {
        origins.extend(self.active.iter().map(|&slot| self.running[slot as usize].request));
        origins.extend(self.waiting.drain(..));
        let mut suspects = Vec::new();
        for slot in self.active.drain(..) {
            let running = &mut self.running[slot as usize];
            running.pending = 0;
            suspects
                .extend(running.opened.iter().filter(|entry| entry.is_open).map(|entry| (entry.stripe, entry.rows)));
            self.free.push(slot);
        }
        self.works.clear();
        self.repairs.clear();
        let array = self.array.as_mut()?;
        array.abandon();
        let ranges = self.tracker.resync_ranges(array);
        // All rows of a stripe that was inconsistent before, and has no entry, stay suspect.
        let whole = (0, array.geometry().chunk_blocks());
        for (stripe, rows) in suspects {
            let is_old = array.inconsistent().binary_search(&stripe).is_ok();
            let before = self.suspects.get(&stripe).copied().or(is_old.then_some(whole)).unwrap_or(rows);
            self.suspects.insert(stripe, (before.0.min(rows.0), before.1.max(rows.1)));
        }
        let recovery = self.tracker.crash(array);
        self.suspects.retain(|stripe, _| array.inconsistent().binary_search(stripe).is_ok());
        if !ranges.is_empty() {
            array.resync(ranges);
        }
        Some(recovery)
    }
}

impl Latent {
    /// Time until the next error.
    fn gap_ps(&mut self) -> f64 {
        let uniform: f64 = self.random.random_range(0.0..1.0);
        -libm::log1p(-uniform) * self.mean_ps
    }
}
