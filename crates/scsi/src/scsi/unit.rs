//! Logical unit: the shape of its medium, and its current state.

use super::config::UnitConfig;
use super::io::{BlockIo, IoOp};
use super::nexus::NexusId;
use super::reservation::{Access, Party, Reservations};
use super::step::{Response, Step};
use super::tasks::TaskSet;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// Logical unit of a device.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) config: UnitConfig,
    pub(super) number: u16,
    /// True after removal: no nexus sees the unit, but tasks in progress continue.
    pub(super) removed: bool,
    pub(super) tasks: TaskSet,
    /// Mode parameters that MODE SELECT may change.
    pub(super) mode: Mode,
    /// True after START STOP UNIT has stopped the unit.
    pub(super) stopped: bool,
    /// Nexus that holds a RESERVE(6).
    pub(super) reserved: Option<NexusId>,
    /// Persistent reservations of the unit.
    pub(super) reservations: Reservations,
}

/// Changeable mode parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mode {
    pub(super) write_cache: bool,
    pub(super) descriptor_sense: bool,
    pub(super) software_protect: bool,
}

impl Unit {
    pub(super) fn new(number: u16, config: UnitConfig) -> Unit {
        Unit {
            mode: Mode::default_of(&config),
            config,
            number,
            removed: false,
            tasks: TaskSet::default(),
            stopped: false,
            reserved: None,
            reservations: Reservations::default(),
        }
    }

    /// Returns whether READ and WRITE need no check other than that of the range.
    pub(super) fn is_plain(&self) -> bool {
        let open = !self.config.read_only && !self.mode.software_protect && !self.mode.descriptor_sense;
        open && self.tasks.is_unordered() && !self.stopped && self.reserved.is_none() && !self.reservations.is_held()
    }

    /// Returns the step of a READ or WRITE, or the error in its range (SBC).
    #[inline]
    pub(super) fn transfer(&self, op: IoOp, lba: u64, blocks: u32, fua: bool) -> Step {
        match self.range(lba, blocks) {
            Err(sense) => Step::Done(Response::check(sense)),
            Ok(0) => Step::Done(Response::GOOD),
            Ok(bytes) => Step::Io(self.io(op, lba, blocks, bytes, fua)),
        }
    }

    /// Builds block I/O for a range that was checked.
    #[inline]
    pub(super) fn io(&self, op: IoOp, lba: u64, blocks: u32, bytes: u32, fua: bool) -> BlockIo {
        let fua = fua || (op.changes_medium() && !self.mode.write_cache);
        BlockIo { unit: self.number, op, lba, blocks, bytes, fua }
    }

    /// Returns the number of bytes in a range, or an error if the range leaves the unit or exceeds
    /// the largest transfer.
    #[inline]
    pub(super) fn range(&self, lba: u64, blocks: u32) -> Result<u32, Sense> {
        self.within(lba, u64::from(blocks))?;
        let max = self.config.max_transfer_blocks;
        let too_long = max != 0 && blocks > max;
        // The length field of a transport has 32 bits.
        blocks
            .checked_mul(self.config.block_bytes)
            .filter(|_| !too_long)
            .ok_or(illegal(SenseCode::INVALID_FIELD_IN_CDB))
    }

    /// Checks that the range lies within the unit.
    #[inline]
    pub(super) fn within(&self, lba: u64, blocks: u64) -> Result<(), Sense> {
        let in_range = lba.checked_add(blocks).is_some_and(|end| end <= self.config.blocks);
        if in_range { Ok(()) } else { Err(illegal(SenseCode::LBA_OUT_OF_RANGE)) }
    }

    /// Returns whether a command conflicts with another nexus's reservation. RESERVE(6) and
    /// persistent reservations exclude each other (SPC-4, 5.13.1). A lost nexus has no `party`.
    pub(super) fn reservation_conflict(
        &self,
        nexus: NexusId,
        cdb: &Cdb,
        party: impl FnOnce() -> Option<Party>,
    ) -> bool {
        let persistent = matches!(cdb, Cdb::PersistentReserveIn { .. } | Cdb::PersistentReserveOut { .. });
        match self.reserved {
            Some(_) if persistent => return true,
            Some(holder) if holder != nexus && !matches!(cdb, Cdb::Release6) => return true,
            _ => {}
        }
        if matches!(cdb, Cdb::Reserve6 | Cdb::Release6) && self.reservations.has_registrations() {
            return true;
        }
        if !self.reservations.is_held() {
            return false;
        }
        party().is_none_or(|party| self.reservations.conflict(&party, Access::of(cdb)))
    }

    /// Returns the sense for writes while the medium is write-protected.
    pub(super) fn protection(&self) -> Option<Sense> {
        let protect = |code| Some(Sense::new(SenseKey::DATA_PROTECT, code));
        match (self.config.read_only, self.mode.software_protect) {
            (true, _) => protect(SenseCode::WRITE_PROTECTED),
            (_, true) => protect(SenseCode::SOFTWARE_WRITE_PROTECTED),
            _ => None,
        }
    }
}

impl Mode {
    pub(super) fn default_of(config: &UnitConfig) -> Mode {
        Mode { write_cache: config.write_back, descriptor_sense: false, software_protect: false }
    }
}

pub(super) const fn illegal(code: SenseCode) -> Sense {
    Sense::new(SenseKey::ILLEGAL_REQUEST, code)
}

/// Returns CHECK CONDITION with this sense.
pub(super) const fn check(sense: Sense) -> Step {
    Step::Done(Response::check(sense))
}

/// Returns GOOD with data truncated to the allocation length.
pub(super) fn answer(mut data: Vec<u8>, allocation_len: u32) -> Step {
    data.truncate(allocation_len as usize);
    Step::Done(Response::data(data))
}
