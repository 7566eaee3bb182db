//! The CDBs of block transfers, and the checks they pass before they become I/O (SBC).

use super::{Decision, IoOp, LunConfig, Sense};

pub(super) const TEST_UNIT_READY: u8 = 0x00;
pub(super) const REQUEST_SENSE: u8 = 0x03;
pub(super) const INQUIRY: u8 = 0x12;
pub(super) const READ_CAPACITY_10: u8 = 0x25;
pub(super) const SERVICE_ACTION_IN_16: u8 = 0x9e;
pub(super) const READ_CAPACITY_16: u8 = 0x10;
pub(super) const REPORT_LUNS: u8 = 0xa0;

/// READ or WRITE of 6, 10, 12 or 16 bytes, not yet held against a LUN.
pub(super) struct Transfer {
    op: IoOp,
    lba: u64,
    blocks: u32,
    /// RDPROTECT or WRPROTECT.
    protect: u8,
    fua: bool,
}

impl Transfer {
    /// Nothing for any other operation code.
    pub(super) fn parse(cdb: &[u8; 16]) -> Option<Transfer> {
        let op = match cdb[0] {
            0x08 | 0x28 | 0xa8 | 0x88 => IoOp::Read,
            0x0a | 0x2a | 0xaa | 0x8a => IoOp::Write,
            _ => return None,
        };
        let (lba, blocks) = match cdb[0] >> 5 {
            0 => {
                // 21 bits of address; 0 blocks mean 256.
                let lba = u32::from_be_bytes([0, cdb[1] & 0x1f, cdb[2], cdb[3]]);
                let blocks = if cdb[4] == 0 { 256 } else { u32::from(cdb[4]) };
                return Some(Transfer {
                    op,
                    lba: u64::from(lba),
                    blocks,
                    protect: 0,
                    fua: false,
                });
            }
            1 => (
                u64::from(u32_at(cdb, 2)),
                u32::from(u16::from_be_bytes([cdb[7], cdb[8]])),
            ),
            4 => (
                u64::from(u32_at(cdb, 2)) << 32 | u64::from(u32_at(cdb, 6)),
                u32_at(cdb, 10),
            ),
            _ => (u64::from(u32_at(cdb, 2)), u32_at(cdb, 6)),
        };
        Some(Transfer {
            op,
            lba,
            blocks,
            protect: cdb[1] >> 5,
            fua: cdb[1] & 0x08 != 0,
        })
    }

    /// Everything that can be wrong with the transfer is found here; what comes out needs no further check.
    pub(super) fn check(&self, unit: &LunConfig) -> Decision {
        if self.protect != 0 {
            return Decision::Check(Sense::INVALID_FIELD_IN_CDB);
        }
        let in_range = self
            .lba
            .checked_add(u64::from(self.blocks))
            .is_some_and(|end| end <= unit.blocks);
        if !in_range {
            return Decision::Check(Sense::LBA_OUT_OF_RANGE);
        }
        if self.blocks == 0 {
            return Decision::Good;
        }
        match self.blocks.checked_mul(unit.block_bytes) {
            Some(bytes) => Decision::Io {
                op: self.op,
                lba: self.lba,
                blocks: self.blocks,
                bytes,
                fua: self.fua,
            },
            None => Decision::Check(Sense::INVALID_FIELD_IN_CDB),
        }
    }
}

pub(super) fn u32_at(cdb: &[u8; 16], at: usize) -> u32 {
    u32::from_be_bytes([cdb[at], cdb[at + 1], cdb[at + 2], cdb[at + 3]])
}
