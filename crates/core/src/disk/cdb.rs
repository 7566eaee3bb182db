//! The commands that a disk is sent, as bytes.

use sanloom_wire::cdb::{CDB_BYTES, Cdb, operation};
use sanloom_wire::scsi::mode::page::CACHING;
use sanloom_wire::scsi::unmap::{self, BlockDescriptor};

type Bytes = [u8; CDB_BYTES];

/// WRITE SAME, byte 1.
const UNMAP_BIT: u8 = 0x08;

pub(super) fn inquiry(vpd_page: Option<u8>, allocation_len: u16) -> Bytes {
    Cdb::Inquiry { vpd_page, allocation_len }.to_bytes()
}

/// The current values of the caching page alone.
pub(super) fn mode_sense(long: bool, allocation_len: u16) -> Bytes {
    Cdb::ModeSense { long, no_descriptor: true, control: 0, page: CACHING, subpage: 0, allocation_len }.to_bytes()
}

/// The whole medium.
pub(super) fn synchronize_cache() -> Bytes {
    Cdb::SynchronizeCache { lba: 0, blocks: 0, immediate: false }.to_bytes()
}

/// In the 16-byte form whatever the address is: its use is what page B2 permits by LBPWS.
pub(super) fn write_same(lba: u64, blocks: u32, unmap: bool) -> Bytes {
    let mut cdb = [0; CDB_BYTES];
    cdb[..2].copy_from_slice(&[operation::WRITE_SAME_16, if unmap { UNMAP_BIT } else { 0 }]);
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// UNMAP of one range, and its parameter list.
pub(super) fn unmap(lba: u64, blocks: u32) -> (Bytes, Box<[u8]>) {
    let mut list = Vec::new();
    unmap::emit(&[BlockDescriptor { lba, blocks }], &mut list);
    (Cdb::Unmap { anchor: false, list_len: list.len() as u16 }.to_bytes(), list.into())
}
