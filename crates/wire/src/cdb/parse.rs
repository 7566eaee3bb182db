//! Decoder of [`Cdb`].

use super::operation::{self, action};
use super::{CDB_BYTES, Cdb};
use crate::bytes::{u16_at, u32_at, u64_at};

/// READ and WRITE, byte 1: force unit access.
pub(super) const FUA: u8 = 0x08;
/// Block commands, byte 1: protection information is requested.
const PROTECT: u8 = 0xe0;
/// WRITE SAME, byte 1: obsolete flags for patterns in the data.
const PATTERNS: u8 = 0x06;
/// RESERVE(6) and RELEASE(6), byte 1: third-party and extent fields, both obsolete.
const NOT_WHOLE: u8 = 0x1f;

impl Cdb {
    /// Reads 16 bytes. Parsing never fails: an unsupported command is [`Cdb::Other`].
    #[inline]
    pub fn parse(b: &[u8; CDB_BYTES]) -> Cdb {
        let fua = b[1] & FUA != 0;
        match b[0] {
            operation::READ_10 | operation::READ_12 | operation::READ_16 if b[1] & PROTECT == 0 => {
                let (lba, blocks) = range(b);
                Cdb::Read { lba, blocks, fua }
            }
            operation::WRITE_10 | operation::WRITE_12 | operation::WRITE_16 if b[1] & PROTECT == 0 => {
                let (lba, blocks) = range(b);
                Cdb::Write { lba, blocks, fua }
            }
            operation::READ_6 => {
                let (lba, blocks) = range_6(b);
                Cdb::Read { lba, blocks, fua: false }
            }
            operation::WRITE_6 => {
                let (lba, blocks) = range_6(b);
                Cdb::Write { lba, blocks, fua: false }
            }
            _ => parse_other(b).unwrap_or(Cdb::Other(*b)),
        }
    }
}

fn parse_other(b: &[u8; CDB_BYTES]) -> Option<Cdb> {
    let (lba, blocks) = range(b);
    let byte_check = b[1] >> 1 & 3;
    let immediate = b[1] & 2 != 0;
    let unprotected = b[1] & PROTECT == 0;
    let service_action = b[1] & 0x1f;
    Some(match b[0] {
        operation::TEST_UNIT_READY => Cdb::TestUnitReady,
        operation::REQUEST_SENSE => Cdb::RequestSense { descriptor: b[1] & 1 != 0, allocation_len: b[4] },
        operation::INQUIRY => match (b[1] & 1 != 0, b[2]) {
            (true, page) => Cdb::Inquiry { vpd_page: Some(page), allocation_len: u16_at(b, 3) },
            (false, 0) => Cdb::Inquiry { vpd_page: None, allocation_len: u16_at(b, 3) },
            (false, _) => return None,
        },
        operation::MODE_SENSE_6 => mode_sense(b, false, u16::from(b[4])),
        operation::MODE_SENSE_10 => mode_sense(b, true, u16_at(b, 7)),
        operation::MODE_SELECT_6 => mode_select(b, false, u16::from(b[4])),
        operation::MODE_SELECT_10 => mode_select(b, true, u16_at(b, 7)),
        operation::START_STOP_UNIT => Cdb::StartStopUnit {
            immediate: b[1] & 1 != 0,
            power: b[4] >> 4,
            no_flush: b[4] & 4 != 0,
            load_eject: b[4] & 2 != 0,
            start: b[4] & 1 != 0,
        },
        operation::RESERVE_6 if b[1] & NOT_WHOLE == 0 => Cdb::Reserve6,
        operation::RELEASE_6 if b[1] & NOT_WHOLE == 0 => Cdb::Release6,
        operation::READ_CAPACITY_10 => Cdb::ReadCapacity10,
        operation::VERIFY_10 | operation::VERIFY_12 | operation::VERIFY_16 if unprotected && byte_check != 2 => {
            Cdb::Verify { lba, blocks, byte_check }
        }
        operation::WRITE_AND_VERIFY_10 | operation::WRITE_AND_VERIFY_12 | operation::WRITE_AND_VERIFY_16
            if unprotected && byte_check < 2 =>
        {
            Cdb::WriteAndVerify { lba, blocks, byte_check }
        }
        operation::SYNCHRONIZE_CACHE_10 | operation::SYNCHRONIZE_CACHE_16 => {
            Cdb::SynchronizeCache { lba, blocks, immediate }
        }
        operation::PREFETCH_10 | operation::PREFETCH_16 => Cdb::Prefetch { lba, blocks, immediate },
        operation::WRITE_SAME_10 | operation::WRITE_SAME_16 if b[1] & (PROTECT | PATTERNS) == 0 => {
            let no_data = b[1] & 1 != 0;
            if no_data && b[0] == operation::WRITE_SAME_10 {
                return None;
            }
            Cdb::WriteSame { lba, blocks, unmap: b[1] & 8 != 0, anchor: b[1] & 0x10 != 0, no_data }
        }
        operation::UNMAP => Cdb::Unmap { anchor: b[1] & 1 != 0, list_len: u16_at(b, 7) },
        operation::COMPARE_AND_WRITE if unprotected => {
            Cdb::CompareAndWrite { lba, blocks: b[13], fua: b[1] & FUA != 0 }
        }
        operation::PERSISTENT_RESERVE_IN => {
            Cdb::PersistentReserveIn { action: service_action, allocation_len: u16_at(b, 7) }
        }
        operation::PERSISTENT_RESERVE_OUT => Cdb::PersistentReserveOut {
            action: service_action,
            scope: b[2] >> 4,
            kind: b[2] & 0x0f,
            list_len: u32_at(b, 5),
        },
        operation::SERVICE_ACTION_IN_16 => match service_action {
            action::READ_CAPACITY_16 => Cdb::ReadCapacity16 { allocation_len: u32_at(b, 10) },
            action::GET_LBA_STATUS => Cdb::GetLbaStatus { lba, allocation_len: u32_at(b, 10) },
            _ => return None,
        },
        // SELECT REPORT values 0 and 2 differ only in well-known logical units, which sanloom does
        // not have.
        operation::REPORT_LUNS if matches!(b[2], 0 | 2) => Cdb::ReportLuns { allocation_len: u32_at(b, 6) },
        operation::MAINTENANCE_IN => match (service_action, b[1] >> 5) {
            (action::REPORT_TARGET_PORT_GROUPS, format @ (0 | 1)) => {
                Cdb::ReportTargetPortGroups { extended: format == 1, allocation_len: u32_at(b, 6) }
            }
            (action::REPORT_SUPPORTED_OPERATIONS, _) => Cdb::ReportSupportedOperations {
                timeouts: b[2] & 0x80 != 0,
                options: b[2] & 7,
                operation: b[3],
                action: u16_at(b, 4),
                allocation_len: u32_at(b, 6),
            },
            (action::REPORT_SUPPORTED_TASK_MANAGEMENT, _) => {
                Cdb::ReportSupportedTaskManagement { extended: b[2] & 0x80 != 0, allocation_len: u32_at(b, 6) }
            }
            _ => return None,
        },
        operation::MAINTENANCE_OUT if service_action == action::SET_TARGET_PORT_GROUPS => {
            Cdb::SetTargetPortGroups { list_len: u32_at(b, 6) }
        }
        _ => return None,
    })
}

fn mode_sense(b: &[u8; CDB_BYTES], long: bool, allocation_len: u16) -> Cdb {
    Cdb::ModeSense {
        long,
        no_descriptor: b[1] & 8 != 0,
        control: b[2] >> 6,
        page: b[2] & 0x3f,
        subpage: b[3],
        allocation_len,
    }
}

fn mode_select(b: &[u8; CDB_BYTES], long: bool, list_len: u16) -> Cdb {
    Cdb::ModeSelect { long, page_format: b[1] & 0x10 != 0, save: b[1] & 1 != 0, list_len }
}

/// Reads block and count of the 6-byte form. The block has 21 bits, and a count of 0 means 256.
fn range_6(b: &[u8; CDB_BYTES]) -> (u64, u32) {
    let blocks = if b[4] == 0 { 256 } else { u32::from(b[4]) };
    (u64::from(u32_at(b, 0) & 0x1f_ffff), blocks)
}

/// Reads block and count of the longer forms; the operation code gives the CDB length (SAM, CDB
/// formats).
#[inline]
fn range(b: &[u8; CDB_BYTES]) -> (u64, u32) {
    match b[0] >> 5 {
        1 | 2 => (u32_at(b, 2).into(), u16_at(b, 7).into()),
        5 => (u32_at(b, 2).into(), u32_at(b, 6)),
        _ => (u64_at(b, 2), u32_at(b, 10)),
    }
}
