//! Faults of a backstore beyond failed disks: latent sector errors and power failures, with their
//! cures.

use super::group::PowerLoss;
use super::{Backstore, BackstoreError, Origin, Protection};
use crate::cache::WriteMode;
use crate::raid::{Consistency, Pass};

impl Backstore {
    /// Sets the protection of all groups against a power failure in the middle of a write. Call
    /// once before the first command. A journal adds one device to each group. Writes of a bitmap
    /// take no time.
    ///
    /// # Errors
    ///
    /// The level has no such protection: a journal needs parity, and a partial parity log RAID 5.
    pub fn set_consistency(&mut self, consistency: Consistency) -> Result<(), BackstoreError> {
        for group in &self.groups {
            let level = group.array().map(|array| array.geometry().level());
            Protection { consistency, ..Protection::default() }.check(level)?;
        }
        let first = self.devices.all().len() as u32;
        if consistency == Consistency::Journal {
            self.devices.add(self.groups.len());
        }
        for (journal, group) in (first..).zip(&mut self.groups) {
            group.set_consistency(consistency, journal);
        }
        Ok(())
    }

    /// Sets protection and faults of all groups. Call once before the first command; scrubs are
    /// started by [`Backstore::start_scrubs`]. `seed` decides which blocks get errors.
    ///
    /// # Errors
    ///
    /// As [`Backstore::set_consistency`] and [`Backstore::set_latent_errors`].
    pub fn protect(&mut self, protection: &Protection, seed: u64) -> Result<(), BackstoreError> {
        self.set_consistency(protection.consistency)?;
        if protection.latent_errors_per_hour > 0.0 {
            let rate = protection.latent_errors_per_hour / self.devices.blocks().max(1) as f64;
            self.set_latent_errors(0, rate, seed)?;
        }
        Ok(())
    }

    /// Starts a scrub of each RAID group of which none runs.
    pub fn start_scrubs(&mut self, now_ps: u64, pass: Pass) {
        for unit in 0..self.groups.len() as u16 {
            let is_idle = |array: &crate::raid::Array| array.scrubbed().is_none();
            if self.groups[usize::from(unit)].array().is_some_and(is_idle) {
                self.start_scrub(now_ps, unit, pass);
            }
        }
    }

    /// Sets the rate of latent sector errors from `now_ps` on, per block of 512 bytes and hour. The
    /// errors of each unit depend on the seed alone. A read that meets one repairs it from
    /// redundancy, and fails if that does not suffice. A write removes it.
    ///
    /// # Errors
    ///
    /// More than a million errors of a group per hour.
    pub fn set_latent_errors(&mut self, now_ps: u64, rate: f64, seed: u64) -> Result<(), BackstoreError> {
        for (unit, group) in (0..).zip(&mut self.groups) {
            group.set_latent_errors(now_ps, rate, seed.wrapping_add(unit))?;
        }
        Ok(())
    }

    /// Makes a block of a disk unreadable. Has no effect on a disk that is not there.
    pub fn add_latent_error(&mut self, unit: u16, member: u32, lba: u64) {
        if let Some(group) = self.groups.get_mut(usize::from(unit)) {
            group.add_error(member, lba);
        }
    }

    /// Starts a scrub of a unit, or a repair of its redundancy, within the limits of the rebuild. A
    /// scrub that runs is replaced.
    pub fn start_scrub(&mut self, now_ps: u64, unit: u16, pass: Pass) {
        if let Some(group) = self.groups.get_mut(usize::from(unit)) {
            group.start_scrub(pass);
            self.set_background(unit);
        }
        self.pass_on(now_ps);
    }

    /// Returns the ranges of blocks of a unit that a read would return wrong: first block and
    /// number of blocks. With `failing`, as if this member failed now.
    ///
    /// Blocks count that are computed from rows of redundancy which a power failure left wrong.
    /// Some of them may be right, such as those that the interrupted write itself covers.
    pub fn wrong_blocks(&self, unit: u16, failing: Option<u32>) -> Vec<(u64, u64)> {
        self.groups.get(usize::from(unit)).map(|group| group.wrong_blocks(failing)).unwrap_or_default()
    }

    /// A controller fails whose part of the cache held the written data of `units`. Without copies
    /// at a partner, these data are lost. Returns the number of lost blocks.
    pub fn controller_loss(&mut self, now_ps: u64, units: impl Iterator<Item = u16>) -> u64 {
        let Some(front) = &mut self.front else { return 0 };
        let is_mirrored = front.settings().write == WriteMode::Back { is_mirrored: true };
        let lost = if is_mirrored { 0 } else { units.map(|unit| front.lose_dirty(now_ps, unit)).sum() };
        self.pass_on(now_ps);
        lost
    }

    /// Sets whether each controller has a partner for the copies of its written data. Without
    /// partners, a mirrored cache writes through, and dirty data are written back.
    pub fn set_partner(&mut self, now_ps: u64, is_up: bool) {
        if let Some(front) = &mut self.front {
            front.set_partner(is_up);
        }
        self.pass_on(now_ps);
    }

    /// The power fails at `now_ps` and returns at once. Commands in flight never end; the caller
    /// learns their identifiers. Groups start the resync that their protection leaves to do. Groups
    /// also start if they are dirty and degraded, which md does only by force; see
    /// [`crate::raid::Recovery::can_start`].
    ///
    /// A cache with a battery keeps its data and repeats its requests. A disk write counts as begun
    /// when the disk has received it.
    pub fn power_loss(&mut self, now_ps: u64) -> PowerLoss {
        let mut result = PowerLoss::default();
        let mut lost = Vec::new();
        for (unit, group) in (0..).zip(&mut self.groups) {
            result.groups.extend(group.power_loss(&mut lost).map(|recovery| (unit, recovery)));
        }
        result.lost_blocks = self.devices.power_loss(now_ps);
        self.lost_in_devices += result.lost_blocks;
        match &mut self.front {
            Some(front) => {
                let dirty = front.power_loss(&lost, &mut self.requests, &mut result.aborted);
                result.lost_blocks += dirty;
            }
            None => result.aborted.extend(lost.iter().filter_map(|request| match request.origin {
                Origin::Command(id) => Some(id),
                Origin::Action(_) => None,
            })),
        }
        result.aborted.sort_unstable();
        self.commands -= result.aborted.len();
        for unit in 0..self.groups.len() as u16 {
            self.set_background(unit);
        }
        self.pass_on(now_ps);
        result
    }
}
