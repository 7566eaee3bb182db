//! A logical unit: its medium's shape, and what is in force on it.

use super::config::UnitConfig;
use super::io::{BlockIo, IoOp};
use super::nexus::NexusId;
use super::reservation::Reservations;
use super::step::{Command, Response, Step, TaskId};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::VecDeque;

/// A logical unit.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) config: UnitConfig,
    pub(super) number: u16,
    /// It was removed: nobody sees it. What had begun on it goes on.
    pub(super) removed: bool,
    /// Tasks that have begun and are not over.
    pub(super) active: u32,
    /// The one among them before which no other begins.
    pub(super) ordered: Option<TaskId>,
    /// Commands that wait for their turn.
    pub(super) blocked: VecDeque<Command>,
    /// What MODE SELECT may change.
    pub(super) mode: Mode,
    /// START STOP UNIT has stopped it.
    pub(super) stopped: bool,
    /// Holder of a RESERVE(6).
    pub(super) reserved: Option<NexusId>,
    /// Persistent reservations.
    pub(super) reservations: Reservations,
}

/// The mode parameters that can be changed.
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
            active: 0,
            ordered: None,
            blocked: VecDeque::new(),
            stopped: false,
            reserved: None,
            reservations: Reservations::default(),
        }
    }

    /// READ and WRITE need no look at anything but the range.
    pub(super) fn is_plain(&self) -> bool {
        let open = !self.config.read_only && !self.mode.software_protect && !self.mode.descriptor_sense;
        let unordered = self.ordered.is_none() && self.blocked.is_empty();
        open && unordered && !self.stopped && self.reserved.is_none() && !self.reservations.is_held()
    }

    /// READ and WRITE: everything that can be wrong with the range is found here (SBC).
    #[inline]
    pub(super) fn transfer(&self, op: IoOp, lba: u64, blocks: u32, fua: bool) -> Step {
        match self.range(lba, blocks) {
            Err(sense) => Step::Done(Response::check(sense)),
            Ok(0) => Step::Done(Response::GOOD),
            Ok(bytes) => Step::Io(self.io(op, lba, blocks, bytes, fua)),
        }
    }

    /// Block I/O in a range that was checked.
    #[inline]
    pub(super) fn io(&self, op: IoOp, lba: u64, blocks: u32, bytes: u32, fua: bool) -> BlockIo {
        let fua = fua || (op.changes_medium() && !self.mode.write_cache);
        BlockIo { unit: self.number, op, lba, blocks, bytes, fua }
    }

    /// Bytes of a range that lies within the unit and does not exceed the largest transfer.
    #[inline]
    pub(super) fn range(&self, lba: u64, blocks: u32) -> Result<u32, Sense> {
        self.within(lba, u64::from(blocks))?;
        let max = self.config.max_transfer_blocks;
        let too_long = max != 0 && blocks > max;
        // A transport's length field has 32 bits.
        blocks
            .checked_mul(self.config.block_bytes)
            .filter(|_| !too_long)
            .ok_or(illegal(SenseCode::INVALID_FIELD_IN_CDB))
    }

    /// The range lies within the unit.
    #[inline]
    pub(super) fn within(&self, lba: u64, blocks: u64) -> Result<(), Sense> {
        let in_range = lba.checked_add(blocks).is_some_and(|end| end <= self.config.blocks);
        if in_range { Ok(()) } else { Err(illegal(SenseCode::LBA_OUT_OF_RANGE)) }
    }

    /// Why the medium must not be changed.
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

/// CHECK CONDITION.
pub(super) const fn check(sense: Sense) -> Step {
    Step::Done(Response::check(sense))
}

/// GOOD, with data cut to the allocation length.
pub(super) fn answer(mut data: Vec<u8>, allocation_len: u32) -> Step {
    data.truncate(allocation_len as usize);
    Step::Done(Response::data(data))
}
