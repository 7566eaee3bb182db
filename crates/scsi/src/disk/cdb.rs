//! CDBs of the commands that a disk sends.

use sanloom_wire::cdb::{CDB_BYTES, Cdb, operation};
use sanloom_wire::scsi::mode::page::CACHING;
use sanloom_wire::scsi::unmap::{self, BlockDescriptor};

type Bytes = [u8; CDB_BYTES];

/// UNMAP bit in byte 1 of WRITE SAME.
const UNMAP_BIT: u8 = 0x08;

pub(super) fn inquiry(vpd_page: Option<u8>, allocation_len: u16) -> Bytes {
    Cdb::Inquiry { vpd_page, allocation_len }.to_bytes()
}

/// Builds a MODE SENSE for the current values of the caching page.
pub(super) fn mode_sense(long: bool, allocation_len: u16) -> Bytes {
    Cdb::ModeSense { long, no_descriptor: true, control: 0, page: CACHING, subpage: 0, allocation_len }.to_bytes()
}

/// Builds a SYNCHRONIZE CACHE for the whole medium.
pub(super) fn synchronize_cache() -> Bytes {
    Cdb::SynchronizeCache { lba: 0, blocks: 0, immediate: false }.to_bytes()
}

/// Builds a WRITE SAME (16) for every address, because LBPWS in page B2 refers to that form.
pub(super) fn write_same(lba: u64, blocks: u32, unmap: bool) -> Bytes {
    let mut cdb = [0; CDB_BYTES];
    cdb[..2].copy_from_slice(&[operation::WRITE_SAME_16, if unmap { UNMAP_BIT } else { 0 }]);
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// Builds an UNMAP of one range, with its parameter list.
pub(super) fn unmap(lba: u64, blocks: u32) -> (Bytes, Box<[u8]>) {
    let mut list = Vec::new();
    unmap::emit(&[BlockDescriptor { lba, blocks }], &mut list);
    (Cdb::Unmap { anchor: false, list_len: list.len() as u16 }.to_bytes(), list.into())
}
