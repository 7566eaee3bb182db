//! The SCSI device server: what a command asks of a logical unit (SPC, SBC, SAM).
//!
//! It decides and keeps no state: a command becomes block I/O, an answer, or a check condition. Transport and medium are
//! the caller's. A later command set extends [`DeviceServer::decide`] and the files beside it.

mod cdb;
mod inquiry;
mod sense;

use sanloom_wire::{Wwnn, Wwpn};

pub use sense::{SENSE_BYTES, Sense};

/// A logical unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LunConfig {
    /// Number of blocks.
    pub blocks: u64,
    /// Block size in bytes.
    pub block_bytes: u32,
}

/// The names that a device reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Node name of the storage system: the same through all its ports, so that a host recognises a LUN.
    pub wwnn: Wwnn,
    /// Port name of the port that answers.
    pub wwpn: Wwpn,
}

/// What block I/O does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IoOp {
    /// From the medium.
    Read,
    /// To the medium.
    Write,
}

/// What is to be done about a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Block I/O within the LUN's range, of at least one block.
    Io {
        /// Read or write.
        op: IoOp,
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// Their size in bytes.
        bytes: u32,
        /// Force unit access.
        fua: bool,
    },
    /// Data for the initiator, cut to the allocation length; status GOOD.
    Answer(Vec<u8>),
    /// Status GOOD without data.
    Good,
    /// Status CHECK CONDITION.
    Check(Sense),
}

/// The device server of all LUNs of a target port.
#[derive(Clone, Debug)]
pub struct DeviceServer {
    luns: Vec<LunConfig>,
    identity: Identity,
}

impl DeviceServer {
    /// LUN numbers are the indices of `luns`.
    pub fn new(luns: Vec<LunConfig>, identity: Identity) -> DeviceServer {
        DeviceServer { luns, identity }
    }

    /// The names that the device reports.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The number in the eight LUN bytes, if there is such a LUN here.
    pub fn lun_number(&self, lun: &[u8; 8]) -> Option<u16> {
        decode_lun(lun).filter(|&number| usize::from(number) < self.luns.len())
    }

    /// Decides about a command for the LUN number that [`lun_number`](Self::lun_number) gave.
    pub fn decide(&self, lun: Option<u16>, cdb: &[u8; 16]) -> Decision {
        let config = lun.and_then(|number| self.luns.get(usize::from(number)));
        match (cdb[0], lun.zip(config)) {
            (cdb::INQUIRY, unit) => self.inquiry(unit, cdb),
            (cdb::REPORT_LUNS, _) => self.report_luns(cdb),
            (cdb::REQUEST_SENSE, None) => {
                answer(Sense::NO_SUCH_LUN.to_bytes().to_vec(), u32::from(cdb[4]))
            }
            (_, None) => Decision::Check(Sense::NO_SUCH_LUN),
            (cdb::REQUEST_SENSE, _) => answer(Sense::NONE.to_bytes().to_vec(), u32::from(cdb[4])),
            (cdb::TEST_UNIT_READY, _) => Decision::Good,
            (cdb::READ_CAPACITY_10, Some((_, unit))) => read_capacity_10(unit),
            (cdb::SERVICE_ACTION_IN_16, Some((_, unit)))
                if cdb[1] & 0x1f == cdb::READ_CAPACITY_16 =>
            {
                read_capacity_16(unit, cdb)
            }
            (_, Some((_, unit))) => match cdb::Transfer::parse(cdb) {
                Some(transfer) => transfer.check(unit),
                None => Decision::Check(Sense::INVALID_OPCODE),
            },
        }
    }

    /// REPORT LUNS (SPC).
    fn report_luns(&self, cdb: &[u8; 16]) -> Decision {
        let allocation_len = cdb::u32_at(cdb, 6);
        let list_bytes = self.luns.len() as u32 * 8;
        let mut data = Vec::with_capacity(8 + list_bytes as usize);
        data.extend_from_slice(&list_bytes.to_be_bytes());
        data.extend_from_slice(&[0; 4]);
        for number in 0..self.luns.len() {
            data.extend_from_slice(&encode_lun(number as u16));
        }
        answer(data, allocation_len)
    }
}

/// The eight LUN bytes of a number below 2^14 (SAM, single-level LUN structure): peripheral device addressing below 256,
/// flat space addressing from there.
pub const fn encode_lun(number: u16) -> [u8; 8] {
    let [high, low] = number.to_be_bytes();
    match high {
        0 => [0, low, 0, 0, 0, 0, 0, 0],
        _ => [0x40 | high & 0x3f, low, 0, 0, 0, 0, 0, 0],
    }
}

/// The number in the eight LUN bytes, or nothing for addresses of other levels and methods.
pub const fn decode_lun(lun: &[u8; 8]) -> Option<u16> {
    match *lun {
        [0, low, 0, 0, 0, 0, 0, 0] => Some(low as u16),
        [first @ 0x40..=0x7f, low, 0, 0, 0, 0, 0, 0] => {
            Some(((first & 0x3f) as u16) << 8 | low as u16)
        }
        _ => None,
    }
}

/// READ CAPACITY (10) (SBC): a LUN that is too large says FFFFFFFF.
fn read_capacity_10(unit: &LunConfig) -> Decision {
    let last = u32::try_from(unit.blocks.saturating_sub(1)).unwrap_or(u32::MAX);
    let mut data = last.to_be_bytes().to_vec();
    data.extend_from_slice(&unit.block_bytes.to_be_bytes());
    Decision::Answer(data)
}

/// READ CAPACITY (16) (SBC).
fn read_capacity_16(unit: &LunConfig, cdb: &[u8; 16]) -> Decision {
    let mut data = unit.blocks.saturating_sub(1).to_be_bytes().to_vec();
    data.extend_from_slice(&unit.block_bytes.to_be_bytes());
    data.resize(32, 0);
    answer(data, cdb::u32_at(cdb, 10))
}

fn answer(mut data: Vec<u8>, allocation_len: u32) -> Decision {
    data.truncate(allocation_len as usize);
    if data.is_empty() {
        Decision::Good
    } else {
        Decision::Answer(data)
    }
}
