//! FCP information units (FCP, IU formats).

use crate::bytes::{Put, fixed, len32, slice, u16_at, u32_at};
use crate::codes::code_constants;
use crate::error::ParseError;

/// FCP_CMND with a CDB of at most 16 bytes, 32 bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FcpCmnd {
    /// LUN, as the eight bytes of SAM.
    pub lun: [u8; 8],
    /// Command reference number.
    pub crn: u8,
    /// Priority and task attribute; low 3 bits: 0 simple, 1 head of queue, 2 ordered, 4 ACA.
    pub attribute: u8,
    /// Task management flags (see [`task_management`]); 0 for a SCSI command.
    pub task_management: u8,
    /// Bit 0: write data; bit 1: read data. The other bits count additional CDB words and are zero
    /// here.
    pub flags: u8,
    /// The CDB, padded with zeros.
    pub cdb: [u8; 16],
    /// FCP_DL: expected data length, in bytes.
    pub data_len: u32,
}

/// Task management flags of FCP_CMND.
pub mod task_management {
    use super::code_constants;

    code_constants!(u8 {
        ABORT_TASK_SET = 0x02, "abort task set";
        CLEAR_TASK_SET = 0x04, "clear task set";
        LUN_RESET = 0x10, "logical unit reset";
        TARGET_RESET = 0x20, "target reset";
        CLEAR_ACA = 0x40, "clear ACA";
    });
}

/// Task attributes, the low three bits of [`FcpCmnd::attribute`].
pub mod attribute {
    use super::code_constants;

    code_constants!(u8 {
        SIMPLE = 0, "simple";
        HEAD_OF_QUEUE = 1, "head of queue";
        ORDERED = 2, "ordered";
        ACA = 4, "ACA";
    });
}

/// Response codes of FCP_RSP, [`FcpRsp::response_code`].
pub mod response {
    use super::code_constants;

    code_constants!(u8 {
        COMPLETE = 0, "task management function complete";
        DATA_LENGTH_MISMATCH = 1, "FCP_DATA length differs from the burst length";
        INVALID_FIELDS = 2, "FCP_CMND fields invalid";
        PARAMETER_MISMATCH = 3, "FCP_DATA parameter mismatch";
        TMF_REJECTED = 4, "task management function rejected";
        TMF_FAILED = 5, "task management function failed";
        INVALID_LUN = 9, "incorrect logical unit number";
    });
}

impl FcpCmnd {
    /// Flag: data flows to the target.
    pub const WRITE: u8 = 0x01;
    /// Flag: data flows to the initiator.
    pub const READ: u8 = 0x02;
    /// Length of the unit with a 16-byte CDB, in bytes.
    pub const BYTES: usize = 32;

    /// Reads 32 bytes. A CDB longer than 16 bytes is [`ParseError::Unsupported`].
    pub fn parse(payload: &[u8]) -> Result<FcpCmnd, ParseError> {
        let b = fixed::<{ Self::BYTES }>("FCP_CMND", payload)?;
        let additional_words = b[11] >> 2;
        if additional_words != 0 {
            return Err(ParseError::Unsupported { field: "additional FCP_CDB length", got: additional_words.into() });
        }
        let [l0, l1, l2, l3, l4, l5, l6, l7, ..] = *b;
        Ok(FcpCmnd {
            lun: [l0, l1, l2, l3, l4, l5, l6, l7],
            crn: b[8],
            attribute: b[9],
            task_management: b[10],
            flags: b[11],
            cdb: std::array::from_fn(|i| b[12 + i]),
            data_len: u32_at(b, 28),
        })
    }

    /// Appends 32 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.lun);
        out.extend_from_slice(&[
            self.crn,
            self.attribute,
            self.task_management,
            self.flags & (Self::READ | Self::WRITE),
        ]);
        out.extend_from_slice(&self.cdb);
        out.put_u32(self.data_len);
    }
}

/// FCP_XFER_RDY, 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FcpXferRdy {
    /// Offset of the first requested byte in the data of the command.
    pub offset: u32,
    /// Number of requested bytes.
    pub burst_len: u32,
}

/// FCP_RSP: 24 bytes, then response information and sense data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FcpRsp {
    /// SCSI status.
    pub status: u8,
    /// Retry delay timer.
    pub retry_delay: u16,
    /// Difference between FCP_DL and the transferred length, if the target reports one.
    pub residual: Residual,
    /// The target requests FCP_CONF.
    pub confirm: bool,
    /// FCP response code (see [`response`]), if response information is present.
    pub response_code: Option<u8>,
    /// Sense data, if present.
    pub sense: Option<Box<[u8]>>,
}

/// Residual of a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Residual {
    /// All of FCP_DL was transferred.
    None,
    /// Bytes of FCP_DL that were not transferred.
    Under(u32),
    /// Bytes that did not fit into FCP_DL.
    Over(u32),
}

impl FcpXferRdy {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 12;

    /// Reads 12 bytes.
    pub fn parse(payload: &[u8]) -> Result<FcpXferRdy, ParseError> {
        let b = fixed::<{ Self::BYTES }>("FCP_XFER_RDY", payload)?;
        Ok(FcpXferRdy { offset: u32_at(b, 0), burst_len: u32_at(b, 4) })
    }

    /// Appends 12 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.offset);
        out.put_u32(self.burst_len);
        out.put_u32(0);
    }
}

/// Flags of FCP_RSP, byte 10.
mod rsp_flag {
    pub const RESPONSE_VALID: u8 = 0x01;
    pub const SENSE_VALID: u8 = 0x02;
    pub const OVER: u8 = 0x04;
    pub const UNDER: u8 = 0x08;
    pub const CONFIRM: u8 = 0x10;
}

impl FcpRsp {
    /// Length without response information and sense data, in bytes.
    pub const BYTES: usize = 24;
    /// Length of the response information that this crate sends, in bytes; 4 is legal too.
    const RESPONSE_INFO_BYTES: usize = 8;

    /// Response with status GOOD and without a residual.
    pub const GOOD: FcpRsp = FcpRsp {
        status: 0,
        retry_delay: 0,
        residual: Residual::None,
        confirm: false,
        response_code: None,
        sense: None,
    };

    /// Reads 24 bytes and the parts that their length fields announce. The residuals of
    /// bidirectional commands are not stored.
    pub fn parse(payload: &[u8]) -> Result<FcpRsp, ParseError> {
        let b = fixed::<{ Self::BYTES }>("FCP_RSP", payload)?;
        let flags = b[10];
        let residual = match (flags & rsp_flag::OVER != 0, flags & rsp_flag::UNDER != 0) {
            (false, false) => Residual::None,
            (false, true) => Residual::Under(u32_at(b, 12)),
            (true, false) => Residual::Over(u32_at(b, 12)),
            (true, true) => {
                return Err(ParseError::Value {
                    field: "FCP_RSP flags",
                    got: flags.into(),
                    rule: "over or under, not both",
                });
            }
        };
        let mut end = Self::BYTES;
        let mut response_code = None;
        if flags & rsp_flag::RESPONSE_VALID != 0 {
            let info = slice("FCP response information", payload, end, u32_at(b, 20) as usize)?;
            if !matches!(info.len(), 0 | 4 | 8) {
                return Err(ParseError::Length {
                    field: "FCP response information",
                    got_bytes: info.len(),
                    rule: "0, 4 or 8 bytes",
                });
            }
            response_code = info.get(3).copied();
            end += info.len();
        }
        let mut sense = None;
        if flags & rsp_flag::SENSE_VALID != 0 {
            sense = Some(slice("FCP sense data", payload, end, u32_at(b, 16) as usize)?.into());
        }
        Ok(FcpRsp {
            status: b[11],
            retry_delay: u16_at(b, 8),
            residual,
            confirm: flags & rsp_flag::CONFIRM != 0,
            response_code,
            sense,
        })
    }

    /// Appends the unit.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let (residual_flag, residual) = match self.residual {
            Residual::None => (0, 0),
            Residual::Under(bytes) => (rsp_flag::UNDER, bytes),
            Residual::Over(bytes) => (rsp_flag::OVER, bytes),
        };
        let mut flags = residual_flag;
        if self.response_code.is_some() {
            flags |= rsp_flag::RESPONSE_VALID;
        }
        if self.sense.is_some() {
            flags |= rsp_flag::SENSE_VALID;
        }
        if self.confirm {
            flags |= rsp_flag::CONFIRM;
        }
        out.put_u64(0);
        out.put_u16(self.retry_delay);
        out.put_u8(flags);
        out.put_u8(self.status);
        out.put_u32(residual);
        out.put_u32(self.sense.as_ref().map_or(0, |sense| len32(sense.len())));
        out.put_u32(self.response_code.map_or(0, |_| len32(Self::RESPONSE_INFO_BYTES)));
        if let Some(code) = self.response_code {
            out.put_u32(code.into());
            out.put_u32(0);
        }
        if let Some(sense) = &self.sense {
            out.extend_from_slice(sense);
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        let response_info = self.response_code.map_or(0, |_| Self::RESPONSE_INFO_BYTES);
        Self::BYTES + response_info + self.sense.as_ref().map_or(0, |sense| sense.len())
    }
}
