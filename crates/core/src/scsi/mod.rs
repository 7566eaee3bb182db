//! The SCSI device server: what a command asks of a logical unit (SPC, SBC, SAM).
//!
//! It decides and keeps no state: a command becomes block I/O, an answer, or a check condition. Transport and medium are
//! the caller's. A later command set extends [`DeviceServer::decide`] and the files beside it.

mod inquiry;

use sanloom_wire::cdb::{CDB_BYTES, Cdb, operation};
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use sanloom_wire::{Wwnn, Wwpn};

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

/// "Invalid field in command information unit": FCP_DL does not fit the CDB (FCP).
pub(crate) const INVALID_COMMAND_IU: Sense = illegal(SenseCode(0x0e03));

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
    pub fn lun_number(&self, bytes: LunBytes) -> Option<u16> {
        lun::from_bytes(bytes).filter(|&number| usize::from(number) < self.luns.len())
    }

    /// Decides about a command for the LUN number that [`lun_number`](Self::lun_number) gave.
    pub fn decide(&self, lun: Option<u16>, cdb: &[u8; CDB_BYTES]) -> Decision {
        let config = lun.and_then(|number| self.luns.get(usize::from(number)));
        match (Cdb::parse(cdb), lun.zip(config)) {
            (Cdb::Inquiry { vpd_page, allocation_len }, unit) => {
                self.inquiry(unit.map(|(number, _)| number), vpd_page, allocation_len)
            }
            (Cdb::ReportLuns { allocation_len }, _) => self.report_luns(allocation_len),
            (Cdb::Other(cdb), unit) if cdb[0] == operation::REQUEST_SENSE => {
                // Nothing is kept: a sense goes out with the status of its command.
                let code = if unit.is_some() { SenseCode::NONE } else { SenseCode::LUN_NOT_SUPPORTED };
                let key = if unit.is_some() { SenseKey::NO_SENSE } else { SenseKey::ILLEGAL_REQUEST };
                answer(Sense::new(key, code).to_bytes().into(), u32::from(cdb[4]))
            }
            (_, None) => Decision::Check(illegal(SenseCode::LUN_NOT_SUPPORTED)),
            (Cdb::TestUnitReady, _) => Decision::Good,
            (Cdb::ReadCapacity10, Some((_, unit))) => read_capacity_10(unit),
            (Cdb::ReadCapacity16 { allocation_len }, Some((_, unit))) => read_capacity_16(unit, allocation_len),
            (Cdb::Read { lba, blocks, fua }, Some((_, unit))) => transfer(unit, IoOp::Read, lba, blocks, fua),
            (Cdb::Write { lba, blocks, fua }, Some((_, unit))) => transfer(unit, IoOp::Write, lba, blocks, fua),
            (Cdb::Other(cdb), _) => Decision::Check(unsupported(&cdb)),
        }
    }

    /// REPORT LUNS (SPC).
    fn report_luns(&self, allocation_len: u32) -> Decision {
        let list: Vec<u8> = (0..=lun::MAX_LUN).take(self.luns.len()).filter_map(lun::to_bytes).flatten().collect();
        let mut data = (list.len() as u32).to_be_bytes().to_vec();
        data.extend_from_slice(&[0; 4]);
        data.extend_from_slice(&list);
        answer(data, allocation_len)
    }
}

/// Everything that can be wrong with a transfer is found here; what comes out needs no further check (SBC, READ and WRITE).
fn transfer(unit: &LunConfig, op: IoOp, lba: u64, blocks: u32, fua: bool) -> Decision {
    let in_range = lba.checked_add(u64::from(blocks)).is_some_and(|end| end <= unit.blocks);
    if !in_range {
        return Decision::Check(illegal(SenseCode::LBA_OUT_OF_RANGE));
    }
    if blocks == 0 {
        return Decision::Good;
    }
    match blocks.checked_mul(unit.block_bytes) {
        Some(bytes) => Decision::Io { op, lba, blocks, bytes, fua },
        // FCP_DL cannot say so much.
        None => Decision::Check(illegal(SenseCode::INVALID_FIELD_IN_CDB)),
    }
}

/// The sense for a CDB that has no value: a known operation with a field that we do not support, or an unknown operation.
fn unsupported(cdb: &[u8; CDB_BYTES]) -> Sense {
    const PROTECT_BYTE: u16 = 1;
    match cdb[0] {
        operation::READ_10
        | operation::READ_12
        | operation::READ_16
        | operation::WRITE_10
        | operation::WRITE_12
        | operation::WRITE_16 => Sense::invalid_field_in_cdb(PROTECT_BYTE),
        operation::INQUIRY | operation::REPORT_LUNS => Sense::invalid_field_in_cdb(2),
        _ => illegal(SenseCode::INVALID_OPERATION),
    }
}

const fn illegal(code: SenseCode) -> Sense {
    Sense::new(SenseKey::ILLEGAL_REQUEST, code)
}

/// READ CAPACITY (10) (SBC): a LUN that is too large says FFFFFFFF.
fn read_capacity_10(unit: &LunConfig) -> Decision {
    let last = u32::try_from(unit.blocks.saturating_sub(1)).unwrap_or(u32::MAX);
    let mut data = last.to_be_bytes().to_vec();
    data.extend_from_slice(&unit.block_bytes.to_be_bytes());
    Decision::Answer(data)
}

/// READ CAPACITY (16) (SBC).
fn read_capacity_16(unit: &LunConfig, allocation_len: u32) -> Decision {
    let mut data = unit.blocks.saturating_sub(1).to_be_bytes().to_vec();
    data.extend_from_slice(&unit.block_bytes.to_be_bytes());
    data.resize(32, 0);
    answer(data, allocation_len)
}

fn answer(mut data: Vec<u8>, allocation_len: u32) -> Decision {
    data.truncate(allocation_len as usize);
    if data.is_empty() { Decision::Good } else { Decision::Answer(data) }
}
