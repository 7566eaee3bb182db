//! A basic header segment in place: [`Bhs`]. Forwarding code uses it to read and change a few
//! fields without decoding the PDU (section 11.2.1).

use super::{BHS_BYTES, Opcode, padding};
use crate::lun::LunBytes;

/// Offsets of fields that several PDUs share, in bytes.
pub mod at {
    /// Flags that depend on the opcode.
    pub const FLAGS: usize = 1;
    /// Logical unit number.
    pub const LUN: usize = 8;
    /// Initiator task tag.
    pub const INITIATOR_TAG: usize = 16;
    /// Target transfer tag; in a SCSI Command, the expected data transfer length.
    pub const TARGET_TAG: usize = 20;
    /// CmdSN of requests, StatSN of responses.
    pub const CMD_SN: usize = 24;
    /// ExpStatSN of requests, ExpCmdSN of responses.
    pub const EXP_SN: usize = 28;
    /// MaxCmdSN of responses.
    pub const MAX_CMD_SN: usize = 32;
    /// DataSN, R2TSN, ExpDataSN.
    pub const DATA_SN: usize = 36;
    /// Buffer offset.
    pub const OFFSET: usize = 40;
    /// Residual count of Data-In, desired length of R2T.
    pub const LENGTH: usize = 44;
}

/// The 48 bytes of a basic header segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bhs(pub [u8; BHS_BYTES]);

impl Bhs {
    /// Opcode: the type of the PDU.
    pub const fn opcode(&self) -> Opcode {
        Opcode(self.0[0] & 0x3f)
    }

    /// True for an immediate request, which is not subject to command ordering.
    pub const fn is_immediate(&self) -> bool {
        self.0[0] & 0x40 != 0
    }

    /// Byte 1.
    pub const fn flags(&self) -> u8 {
        self.0[at::FLAGS]
    }

    /// Length of the additional header segments, in bytes.
    pub const fn ahs_bytes(&self) -> usize {
        self.0[4] as usize * 4
    }

    /// Length of the data segment in bytes, without padding.
    pub const fn data_bytes(&self) -> u32 {
        u32::from_be_bytes([0, self.0[5], self.0[6], self.0[7]])
    }

    /// Number of zero bytes after the data segment.
    pub const fn padding(&self) -> u32 {
        padding(self.data_bytes())
    }

    /// Sets DataSegmentLength; only the low 24 bits of `bytes` are used.
    pub fn set_data_bytes(&mut self, bytes: u32) {
        self.0[5..8].copy_from_slice(&bytes.to_be_bytes()[1..]);
    }

    /// Logical unit number, if the PDU has one.
    pub fn lun(&self) -> LunBytes {
        let mut lun = [0; 8];
        lun.copy_from_slice(&self.0[at::LUN..at::LUN + 8]);
        lun
    }

    /// Initiator task tag.
    pub fn initiator_tag(&self) -> u32 {
        self.word(at::INITIATOR_TAG)
    }

    /// Returns the four bytes at `offset`, one of [`at`].
    ///
    /// # Panics
    /// If `offset` is greater than 44.
    pub fn word(&self, offset: usize) -> u32 {
        crate::bytes::u32_at(&self.0, offset)
    }

    /// Writes four bytes at `offset`, one of [`at`].
    ///
    /// # Panics
    /// If `offset` is greater than 44.
    pub fn set_word(&mut self, offset: usize, value: u32) {
        self.0[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
    }
}
