//! The login in the private data of the RDMA connection manager.

use super::{LOGIN_REQ_CM_BYTES, LoginReq, port_id};
use crate::bytes::{Put, fixed, u16_at, u32_at, u64_at};
use crate::error::ParseError;

impl LoginReq {
    /// Parses the form in the private data of the RDMA connection manager: 56 bytes.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or the opcode is another one.
    pub fn parse_cm(data: &[u8]) -> Result<LoginReq, ParseError> {
        let data = fixed::<LOGIN_REQ_CM_BYTES>("SRP login in CM data", data)?;
        if data[11] != 0 {
            return Err(ParseError::Value { field: "SRP login opcode", got: data[11].into(), rule: "0" });
        }
        Ok(LoginReq {
            tag: u64_at(data, 0),
            request_bytes: u32_at(data, 12),
            formats: u16_at(data, 8),
            flags: data[10],
            immediate_offset: u16_at(data, 48),
            initiator: port_id(data, 16),
            target: port_id(data, 32),
        })
    }

    /// Appends the form in the private data of the RDMA connection manager.
    pub fn emit_cm(&self, out: &mut Vec<u8>) {
        out.put_u64(self.tag);
        out.put_u16(self.formats);
        out.put_slice(&[self.flags, 0]);
        out.put_u32(self.request_bytes);
        out.put_slice(&self.initiator);
        out.put_slice(&self.target);
        out.put_u16(self.immediate_offset);
        out.put_zeros(6);
    }
}
