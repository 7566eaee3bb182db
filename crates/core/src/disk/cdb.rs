//! The commands that a disk is sent (SPC-4, SBC-3), as bytes.

use sanloom_wire::cdb::{CDB_BYTES, Cdb, operation};

type Bytes = [u8; CDB_BYTES];

/// SERVICE ACTION IN(16), service action of GET LBA STATUS.
const GET_LBA_STATUS: u8 = 0x12;
/// WRITE SAME and UNMAP, byte 1.
const UNMAP_BIT: u8 = 0x08;
/// MODE SENSE, byte 1: no block descriptors.
const DBD: u8 = 0x08;
/// The caching mode page.
pub(super) const CACHING_PAGE: u8 = 0x08;

pub(super) fn test_unit_ready() -> Bytes {
    Cdb::TestUnitReady.to_bytes()
}

pub(super) fn inquiry(vpd_page: Option<u8>, allocation_len: u16) -> Bytes {
    Cdb::Inquiry { vpd_page, allocation_len }.to_bytes()
}

pub(super) fn read_capacity_16(allocation_len: u32) -> Bytes {
    Cdb::ReadCapacity16 { allocation_len }.to_bytes()
}

pub(super) fn read_capacity_10() -> Bytes {
    Cdb::ReadCapacity10.to_bytes()
}

pub(super) fn report_luns(allocation_len: u32) -> Bytes {
    Cdb::ReportLuns { allocation_len }.to_bytes()
}

pub(super) fn mode_sense_6(allocation_len: u8) -> Bytes {
    let mut cdb = [0; CDB_BYTES];
    cdb[..5].copy_from_slice(&[operation::MODE_SENSE_6, DBD, CACHING_PAGE, 0, allocation_len]);
    cdb
}

pub(super) fn mode_sense_10(allocation_len: u16) -> Bytes {
    let mut cdb = [0; CDB_BYTES];
    cdb[..3].copy_from_slice(&[operation::MODE_SENSE_10, DBD, CACHING_PAGE]);
    cdb[7..9].copy_from_slice(&allocation_len.to_be_bytes());
    cdb
}

pub(super) fn read(lba: u64, blocks: u32) -> Bytes {
    Cdb::Read { lba, blocks, fua: false }.to_bytes()
}

pub(super) fn write(lba: u64, blocks: u32, fua: bool) -> Bytes {
    Cdb::Write { lba, blocks, fua }.to_bytes()
}

/// The whole medium.
pub(super) fn synchronize_cache() -> Bytes {
    let mut cdb = [0; CDB_BYTES];
    cdb[0] = operation::SYNCHRONIZE_CACHE_10;
    cdb
}

pub(super) fn write_same(lba: u64, blocks: u32, unmap: bool) -> Bytes {
    let mut cdb = long(operation::WRITE_SAME_16, lba, blocks);
    cdb[1] = if unmap { UNMAP_BIT } else { 0 };
    cdb
}

/// With a parameter list of `list_bytes`, see [`unmap_list`].
pub(super) fn unmap(list_bytes: u16) -> Bytes {
    let mut cdb = [0; CDB_BYTES];
    cdb[0] = operation::UNMAP;
    cdb[7..9].copy_from_slice(&list_bytes.to_be_bytes());
    cdb
}

/// The parameter list of UNMAP with one descriptor (SBC-3, UNMAP parameter list).
pub(super) fn unmap_list(lba: u64, blocks: u32) -> [u8; 24] {
    let mut list = [0; 24];
    list[1] = 22;
    list[3] = 16;
    list[8..16].copy_from_slice(&lba.to_be_bytes());
    list[16..20].copy_from_slice(&blocks.to_be_bytes());
    list
}

pub(super) fn get_lba_status(lba: u64, allocation_len: u32) -> Bytes {
    let mut cdb = long(operation::SERVICE_ACTION_IN_16, lba, allocation_len);
    cdb[1] = GET_LBA_STATUS;
    cdb
}

/// A 16-byte CDB with an address and a length at the usual places.
fn long(operation: u8, lba: u64, len: u32) -> Bytes {
    let mut cdb = [0; CDB_BYTES];
    cdb[0] = operation;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&len.to_be_bytes());
    cdb
}
