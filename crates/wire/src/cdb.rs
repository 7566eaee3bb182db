//! SCSI command descriptor blocks that the workloads use (SPC, SBC) and statuses (SAM). Sense data is in [`crate::sense`].

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::codes::code_constants;
use std::fmt;

/// Bytes of a CDB in FCP_CMND; shorter ones are followed by zeros.
pub const CDB_BYTES: usize = 16;

/// A SCSI command as a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cdb {
    /// 00
    TestUnitReady,
    /// 12
    Inquiry {
        /// Vital product data page, if EVPD is set.
        vpd_page: Option<u8>,
        /// Allocation length in bytes.
        allocation_len: u16,
    },
    /// 25
    ReadCapacity10,
    /// 9E/10
    ReadCapacity16 {
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// A0
    ReportLuns {
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// 08, 28, A8, 88
    Read {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// Force unit access.
        fua: bool,
    },
    /// 0A, 2A, AA, 8A
    Write {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// Force unit access.
        fua: bool,
    },
    /// Any other: also a known operation code with a service action, a page or a protection field that has no value here.
    Other([u8; 16]),
}

/// Operation codes (SPC, SBC).
pub mod operation {
    use super::code_constants;

    code_constants!(u8 {
        TEST_UNIT_READY = 0x00, "TEST UNIT READY";
        REQUEST_SENSE = 0x03, "REQUEST SENSE";
        READ_6 = 0x08, "READ(6)";
        WRITE_6 = 0x0a, "WRITE(6)";
        INQUIRY = 0x12, "INQUIRY";
        MODE_SELECT_6 = 0x15, "MODE SELECT(6)";
        MODE_SENSE_6 = 0x1a, "MODE SENSE(6)";
        START_STOP_UNIT = 0x1b, "START STOP UNIT";
        READ_CAPACITY_10 = 0x25, "READ CAPACITY(10)";
        READ_10 = 0x28, "READ(10)";
        WRITE_10 = 0x2a, "WRITE(10)";
        VERIFY_10 = 0x2f, "VERIFY(10)";
        SYNCHRONIZE_CACHE_10 = 0x35, "SYNCHRONIZE CACHE(10)";
        WRITE_SAME_10 = 0x41, "WRITE SAME(10)";
        UNMAP = 0x42, "UNMAP";
        MODE_SENSE_10 = 0x5a, "MODE SENSE(10)";
        PERSISTENT_RESERVE_IN = 0x5e, "PERSISTENT RESERVE IN";
        PERSISTENT_RESERVE_OUT = 0x5f, "PERSISTENT RESERVE OUT";
        READ_16 = 0x88, "READ(16)";
        COMPARE_AND_WRITE = 0x89, "COMPARE AND WRITE";
        WRITE_16 = 0x8a, "WRITE(16)";
        SYNCHRONIZE_CACHE_16 = 0x91, "SYNCHRONIZE CACHE(16)";
        WRITE_SAME_16 = 0x93, "WRITE SAME(16)";
        SERVICE_ACTION_IN_16 = 0x9e, "SERVICE ACTION IN(16)";
        REPORT_LUNS = 0xa0, "REPORT LUNS";
        MAINTENANCE_IN = 0xa3, "MAINTENANCE IN";
        READ_12 = 0xa8, "READ(12)";
        WRITE_12 = 0xaa, "WRITE(12)";
    });
}

/// Service action of READ CAPACITY(16) under SERVICE ACTION IN(16).
const READ_CAPACITY_16: u8 = 0x10;
/// READ and WRITE, byte 1: force unit access.
const FUA: u8 = 0x08;
/// READ and WRITE, byte 1: protection information wanted.
const PROTECT: u8 = 0xe0;

impl Cdb {
    /// Reads 16 bytes. Nothing fails: what has no value here is [`Cdb::Other`].
    pub fn parse(b: &[u8; CDB_BYTES]) -> Cdb {
        let fua = b[1] & FUA != 0;
        match b[0] {
            operation::TEST_UNIT_READY => Cdb::TestUnitReady,
            operation::INQUIRY => {
                let allocation_len = u16_at(b, 3);
                match (b[1] & 1 != 0, b[2]) {
                    (true, page) => Cdb::Inquiry { vpd_page: Some(page), allocation_len },
                    (false, 0) => Cdb::Inquiry { vpd_page: None, allocation_len },
                    (false, _) => Cdb::Other(*b),
                }
            }
            operation::READ_CAPACITY_10 => Cdb::ReadCapacity10,
            operation::SERVICE_ACTION_IN_16 if b[1] & 0x1f == READ_CAPACITY_16 => {
                Cdb::ReadCapacity16 { allocation_len: u32_at(b, 10) }
            }
            // Select report 0 and 2 differ only in well-known logical units, of which there are none here.
            operation::REPORT_LUNS if matches!(b[2], 0 | 2) => Cdb::ReportLuns { allocation_len: u32_at(b, 6) },
            operation::READ_6 => {
                let (lba, blocks) = Self::range_6(b);
                Cdb::Read { lba, blocks, fua: false }
            }
            operation::WRITE_6 => {
                let (lba, blocks) = Self::range_6(b);
                Cdb::Write { lba, blocks, fua: false }
            }
            operation::READ_10 | operation::READ_12 | operation::READ_16 if b[1] & PROTECT == 0 => {
                let (lba, blocks) = Self::range(b);
                Cdb::Read { lba, blocks, fua }
            }
            operation::WRITE_10 | operation::WRITE_12 | operation::WRITE_16 if b[1] & PROTECT == 0 => {
                let (lba, blocks) = Self::range(b);
                Cdb::Write { lba, blocks, fua }
            }
            _ => Cdb::Other(*b),
        }
    }

    /// Writes all 16 bytes. READ and WRITE take the 10-byte form when block and count fit into it, else the 16-byte form.
    pub fn emit(&self, out: &mut [u8; CDB_BYTES]) {
        *out = [0; CDB_BYTES];
        match *self {
            Cdb::TestUnitReady => out[0] = operation::TEST_UNIT_READY,
            Cdb::Inquiry { vpd_page, allocation_len } => {
                out[0] = operation::INQUIRY;
                out[1] = vpd_page.is_some().into();
                out[2] = vpd_page.unwrap_or(0);
                out[3..5].copy_from_slice(&allocation_len.to_be_bytes());
            }
            Cdb::ReadCapacity10 => out[0] = operation::READ_CAPACITY_10,
            Cdb::ReadCapacity16 { allocation_len } => {
                out[0] = operation::SERVICE_ACTION_IN_16;
                out[1] = READ_CAPACITY_16;
                out[10..14].copy_from_slice(&allocation_len.to_be_bytes());
            }
            Cdb::ReportLuns { allocation_len } => {
                out[0] = operation::REPORT_LUNS;
                out[6..10].copy_from_slice(&allocation_len.to_be_bytes());
            }
            Cdb::Read { lba, blocks, fua } => {
                emit_range(out, operation::READ_10, operation::READ_16, lba, blocks, fua);
            }
            Cdb::Write { lba, blocks, fua } => {
                emit_range(out, operation::WRITE_10, operation::WRITE_16, lba, blocks, fua);
            }
            Cdb::Other(bytes) => *out = bytes,
        }
    }

    /// The 16 bytes of the wire.
    pub fn to_bytes(&self) -> [u8; CDB_BYTES] {
        let mut out = [0; CDB_BYTES];
        self.emit(&mut out);
        out
    }

    /// The operation code that [`emit`](Self::emit) writes (see [`operation`]).
    pub fn operation(&self) -> u8 {
        self.to_bytes()[0]
    }

    /// Block and count of the 6-byte form: 21 bits, and a count in which 0 stands for 256.
    fn range_6(b: &[u8; CDB_BYTES]) -> (u64, u32) {
        let blocks = if b[4] == 0 { 256 } else { u32::from(b[4]) };
        (u64::from(u32_at(b, 0) & 0x1f_ffff), blocks)
    }

    /// Block and count of the longer forms, whose length follows from the operation code.
    fn range(b: &[u8; CDB_BYTES]) -> (u64, u32) {
        match b[0] {
            operation::READ_10 | operation::WRITE_10 => (u32_at(b, 2).into(), u16_at(b, 7).into()),
            operation::READ_12 | operation::WRITE_12 => (u32_at(b, 2).into(), u32_at(b, 6)),
            _ => (u64_at(b, 2), u32_at(b, 10)),
        }
    }
}

fn emit_range(out: &mut [u8; CDB_BYTES], short: u8, long: u8, lba: u64, blocks: u32, fua: bool) {
    out[1] = if fua { FUA } else { 0 };
    if let (Ok(lba), Ok(blocks)) = (u32::try_from(lba), u16::try_from(blocks)) {
        out[0] = short;
        out[2..6].copy_from_slice(&lba.to_be_bytes());
        out[7..9].copy_from_slice(&blocks.to_be_bytes());
    } else {
        out[0] = long;
        out[2..10].copy_from_slice(&lba.to_be_bytes());
        out[10..14].copy_from_slice(&blocks.to_be_bytes());
    }
}

impl fmt::Display for Cdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = self.operation();
        match operation::name(operation) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "operation {operation:02x}")?,
        }
        match self {
            Cdb::Inquiry { vpd_page: Some(page), .. } => write!(f, " page {page:02x}"),
            Cdb::Read { lba, blocks, .. } | Cdb::Write { lba, blocks, .. } => {
                write!(f, " {blocks} blocks at {lba}")
            }
            _ => Ok(()),
        }
    }
}

/// SCSI statuses (SAM).
pub mod status {
    use super::code_constants;

    code_constants!(u8 {
        GOOD = 0x00, "GOOD";
        CHECK_CONDITION = 0x02, "CHECK CONDITION";
        CONDITION_MET = 0x04, "CONDITION MET";
        BUSY = 0x08, "BUSY";
        RESERVATION_CONFLICT = 0x18, "RESERVATION CONFLICT";
        TASK_SET_FULL = 0x28, "TASK SET FULL";
        ACA_ACTIVE = 0x30, "ACA ACTIVE";
        TASK_ABORTED = 0x40, "TASK ABORTED";
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cdb(bytes: &[u8]) -> Cdb {
        let mut padded = [0; CDB_BYTES];
        padded[..bytes.len()].copy_from_slice(bytes);
        Cdb::parse(&padded)
    }

    #[test]
    fn reads_every_length_of_read_and_write() {
        let read = |lba, blocks, fua| Cdb::Read { lba, blocks, fua };
        let write = |lba, blocks, fua| Cdb::Write { lba, blocks, fua };
        assert_eq!(cdb(&[0x08, 0xff, 0x02, 0x03, 0x00, 0]), read(0x1f_0203, 256, false));
        assert_eq!(cdb(&[0x0a, 0x00, 0x00, 0x01, 0x07, 0]), write(1, 7, false));
        assert_eq!(cdb(&[0x28, 0x08, 0, 0, 1, 0, 0, 0, 9, 0]), read(256, 9, true));
        assert_eq!(cdb(&[0x2a, 0x00, 0xff, 0, 0, 0, 0, 1, 0, 0]), write(0xff00_0000, 256, false));
        assert_eq!(cdb(&[0xa8, 0, 0, 0, 0, 5, 0, 1, 0, 0]), read(5, 0x1_0000, false));
        assert_eq!(cdb(&[0xaa, 8, 0, 0, 0, 5, 0, 0, 0, 1]), write(5, 1, true));
        assert_eq!(cdb(&[0x88, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3]), read(0x0100_0000_0000_0002, 3, false));
        assert_eq!(cdb(&[0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0]), write(2, 0x1_0000, true));
    }

    #[test]
    fn takes_the_16_byte_form_only_when_the_10_byte_form_is_too_small() {
        let operation = |lba, blocks| Cdb::Read { lba, blocks, fua: false }.operation();
        assert_eq!(operation(0xffff_ffff, 0xffff), operation::READ_10);
        assert_eq!(operation(0x1_0000_0000, 1), operation::READ_16);
        assert_eq!(operation(0, 0x1_0000), operation::READ_16);
    }

    #[test]
    fn keeps_what_it_does_not_know() {
        for bytes in [
            &[0xc0, 1, 2, 3][..],
            &[0x12, 0, 0x80, 0, 36],
            &[0x28, 0x20, 0, 0, 0, 0, 0, 0, 1],
            &[0x9e, 0x11],
            &[0xa0, 0, 1],
        ] {
            let mut padded = [0; CDB_BYTES];
            padded[..bytes.len()].copy_from_slice(bytes);
            assert_eq!(Cdb::parse(&padded), Cdb::Other(padded));
            assert_eq!(Cdb::parse(&padded).to_bytes(), padded);
        }
    }

    #[test]
    fn overwrites_every_byte_of_the_buffer() {
        let mut dirty = [0xa5; CDB_BYTES];
        Cdb::Inquiry { vpd_page: Some(0x83), allocation_len: 0x1234 }.emit(&mut dirty);
        assert_eq!(dirty, [0x12, 1, 0x83, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn prints_operation_and_range() {
        assert_eq!(Cdb::Read { lba: 64, blocks: 8, fua: false }.to_string(), "READ(10) 8 blocks at 64");
        assert_eq!(cdb(&[0xc1]).to_string(), "operation c1");
    }
}
