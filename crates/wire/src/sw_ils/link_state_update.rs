//! LSU and LSA (FC-SW, link state update and acknowledgement).

use super::command;
use super::fspf::{FSPF_HEADER_BYTES, FspfHeader};
use super::link_state::{AgedRecord, LsrHeader};
use crate::bytes::{Put, fixed, u32_at};
use crate::error::ParseError;

/// LSU: complete link state records.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LinkStateUpdate {
    /// Header that identifies the sender.
    pub header: FspfHeader,
    /// Phase of the database exchange, one of [`lsu_flag`].
    pub flags: u8,
    /// The records.
    pub records: Vec<AgedRecord>,
}

/// LSA: acknowledgement of the records of an LSU.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LinkStateAck {
    /// Header that identifies the sender.
    pub header: FspfHeader,
    /// Flags of the acknowledged LSU.
    pub flags: u8,
    /// Headers of the acknowledged records.
    pub records: Vec<LsrHeader>,
}

/// Flags of an LSU: the exchange that it belongs to.
pub mod lsu_flag {
    use crate::codes::code_constants;

    code_constants!(u8 {
        UPDATE = 0, "topology update";
        SYNCHRONISING = 1, "database synchronisation";
        COMPLETE = 2, "end of database synchronisation";
        LAST = 3, "last records of database synchronisation";
    });
}

/// Length of the part before the records, in bytes.
const HEAD_BYTES: usize = 28;

impl LinkStateUpdate {
    /// Reads an LSU, the command word included.
    pub fn parse(payload: &[u8]) -> Result<LinkStateUpdate, ParseError> {
        let (header, flags, count) = parse_head("LSU", payload)?;
        let (mut records, mut at) = (Vec::new(), HEAD_BYTES);
        for _ in 0..count {
            let (record, length) = AgedRecord::parse(&payload[at..]).map_err(|error| shifted(error, at))?;
            records.push(record);
            at += length;
        }
        Ok(LinkStateUpdate { header, flags, records })
    }

    /// Appends the LSU.
    pub fn emit(&self, out: &mut dyn Put) {
        emit_head(&self.header, command::LSU, self.flags, self.records.len(), out);
        self.records.iter().for_each(|record| record.emit(out));
    }
}

impl LinkStateAck {
    /// Reads an LSA, the command word included.
    pub fn parse(payload: &[u8]) -> Result<LinkStateAck, ParseError> {
        let (header, flags, count) = parse_head("LSA", payload)?;
        let (mut records, mut at) = (Vec::new(), HEAD_BYTES);
        for _ in 0..count {
            records.push(LsrHeader::parse(&payload[at..]).map_err(|error| shifted(error, at))?);
            at += LsrHeader::BYTES;
        }
        Ok(LinkStateAck { header, flags, records })
    }

    /// Appends the LSA.
    pub fn emit(&self, out: &mut dyn Put) {
        emit_head(&self.header, command::LSA, self.flags, self.records.len(), out);
        self.records.iter().for_each(|record| record.emit(out));
    }
}

fn parse_head(field: &'static str, payload: &[u8]) -> Result<(FspfHeader, u8, u32), ParseError> {
    let b = fixed::<HEAD_BYTES>(field, payload)?;
    Ok((FspfHeader::parse(fixed::<FSPF_HEADER_BYTES>(field, b)?), b[23], u32_at(b, 24)))
}

fn emit_head(header: &FspfHeader, command: u8, flags: u8, count: usize, out: &mut dyn Put) {
    header.emit(command, out);
    out.put_u32(flags.into());
    out.put_len32(count);
}

/// Adds `at` to the byte counts of an error, so that they count from the start of the payload.
fn shifted(error: ParseError, at: usize) -> ParseError {
    match error {
        ParseError::Truncated { field, needed_bytes, got_bytes } => {
            ParseError::Truncated { field, needed_bytes: at + needed_bytes, got_bytes: at + got_bytes }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sw_ils::{Incarnation, LinkStateRecord};
    use std::sync::Arc;

    #[test]
    fn an_update_and_its_acknowledgement() {
        let record = Arc::new(LinkStateRecord::of_switch(9, Incarnation::FIRST, Vec::new()));
        let header = FspfHeader::new(5);
        let update = LinkStateUpdate {
            header,
            flags: lsu_flag::LAST,
            records: vec![AgedRecord { age_s: 7, record: record.clone() }],
        };
        let acknowledgement = LinkStateAck { header, flags: lsu_flag::LAST, records: vec![record.header(7)] };
        let [check, sum] = record.checksum.to_be_bytes();
        let head = |command| {
            let mut bytes = vec![command, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0];
            bytes.extend([0, 0, 0, 3, 0, 0, 0, 1]);
            bytes.extend([1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0x80, 0, 0, 1, check, sum, 0, 28]);
            bytes
        };
        let mut out = Vec::new();
        update.emit(&mut out);
        assert_eq!(out, [head(0x15), vec![0; 4]].concat());
        assert_eq!(LinkStateUpdate::parse(&out), Ok(update));
        let mut out = Vec::new();
        acknowledgement.emit(&mut out);
        assert_eq!(out, head(0x16));
        assert_eq!(LinkStateAck::parse(&out), Ok(acknowledgement));
    }
}
