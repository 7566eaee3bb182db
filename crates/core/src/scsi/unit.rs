//! A logical unit: its medium's shape, and what is in force on it.

use super::config::UnitConfig;
use super::io::{BlockIo, IoOp};
use super::step::{Response, Step};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// A logical unit.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) config: UnitConfig,
    pub(super) number: u16,
    /// Tasks that have begun and are not over.
    pub(super) active: u32,
}

impl Unit {
    pub(super) fn new(number: u16, config: UnitConfig) -> Unit {
        Unit { config, number, active: 0 }
    }

    /// READ and WRITE: everything that can be wrong with the range is found here (SBC).
    #[inline]
    pub(super) fn transfer(&self, op: IoOp, lba: u64, blocks: u32, fua: bool) -> Step {
        match self.range(lba, blocks) {
            Err(sense) => Step::Done(Response::check(sense)),
            Ok(0) => Step::Done(Response::GOOD),
            Ok(bytes) => {
                let fua = fua || (op.changes_medium() && !self.config.write_back);
                Step::Io(BlockIo { unit: self.number, op, lba, blocks, bytes, fua })
            }
        }
    }

    /// Bytes of a range that lies within the unit and does not exceed the largest transfer.
    #[inline]
    pub(super) fn range(&self, lba: u64, blocks: u32) -> Result<u32, Sense> {
        let in_range = lba.checked_add(u64::from(blocks)).is_some_and(|end| end <= self.config.blocks);
        if !in_range {
            return Err(illegal(SenseCode::LBA_OUT_OF_RANGE));
        }
        let max = self.config.max_transfer_blocks;
        let too_long = max != 0 && blocks > max;
        // A transport's length field has 32 bits.
        blocks
            .checked_mul(self.config.block_bytes)
            .filter(|_| !too_long)
            .ok_or(illegal(SenseCode::INVALID_FIELD_IN_CDB))
    }
}

pub(super) const fn illegal(code: SenseCode) -> Sense {
    Sense::new(SenseKey::ILLEGAL_REQUEST, code)
}
