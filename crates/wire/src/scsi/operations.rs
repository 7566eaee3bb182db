//! REPORT SUPPORTED OPERATION CODES and REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS parameter data
//! (SPC).

use crate::bytes::{Put, fixed, put_with_len32, slice, u16_at, u32_at};
use crate::error::ParseError;

/// A supported command in the list of all commands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Supported {
    /// Operation code.
    pub operation: u8,
    /// Service action, if the operation code has any.
    pub action: Option<u16>,
    /// Length of the CDB in bytes.
    pub cdb_bytes: u16,
}

const FIELD: &str = "REPORT SUPPORTED OPERATION CODES data";
/// Flags of a command descriptor: timeouts follow; the service action is valid.
const TIMEOUTS: u8 = 0x02;
const ACTION: u8 = 0x01;
/// An empty command timeouts descriptor.
const NO_TIMEOUTS: [u8; 12] = [0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Reads the list of all commands, which may be truncated at the allocation length.
pub fn parse_all(data: &[u8]) -> Result<Vec<Supported>, ParseError> {
    let len = u32_at(fixed::<4>(FIELD, data)?, 0) as usize;
    let data = &data[..data.len().min(4_usize.saturating_add(len))];
    let mut at = 4;
    let mut all = Vec::new();
    while let Ok(b) = fixed::<8>(FIELD, &data[at.min(data.len())..]) {
        let action = (b[5] & ACTION != 0).then(|| u16_at(b, 2));
        all.push(Supported { operation: b[0], action, cdb_bytes: u16_at(b, 6) });
        at += if b[5] & TIMEOUTS != 0 { 20 } else { 8 };
    }
    Ok(all)
}

/// Appends the list of all commands.
pub fn emit_all(all: &[Supported], timeouts: bool, out: &mut Vec<u8>) {
    put_with_len32(out, |out| {
        for command in all {
            out.put_u8(command.operation);
            out.put_u8(0);
            out.put_u16(command.action.unwrap_or(0));
            out.put_u8(0);
            out.put_u8(if timeouts { TIMEOUTS } else { 0 } | if command.action.is_some() { ACTION } else { 0 });
            out.put_u16(command.cdb_bytes);
            if timeouts {
                out.put_slice(&NO_TIMEOUTS);
            }
        }
    });
}

/// Support of one command by a device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OneCommand {
    /// 1: not supported; 3: supported in conformance with the standard.
    pub support: u8,
    /// CDB usage data: the operation code, then for every other byte of the CDB the bits that the
    /// device evaluates. Empty if the command is not supported.
    pub usage: Vec<u8>,
}

/// [`OneCommand::support`]: not supported.
pub const NOT_SUPPORTED: u8 = 1;
/// [`OneCommand::support`]: supported in conformance with the standard.
pub const STANDARD: u8 = 3;

impl OneCommand {
    /// Reads the parameter data of one command.
    pub fn parse(data: &[u8]) -> Result<OneCommand, ParseError> {
        let b = fixed::<4>(FIELD, data)?;
        Ok(OneCommand { support: b[1] & 7, usage: slice(FIELD, data, 4, u16_at(b, 2).into())?.to_vec() })
    }

    /// Appends the parameter data of one command.
    pub fn emit(&self, timeouts: bool, out: &mut Vec<u8>) {
        let timeouts = timeouts && !self.usage.is_empty();
        out.put_u8(0);
        out.put_u8(if timeouts { 0x80 } else { 0 } | self.support & 7);
        out.put_len16(self.usage.len());
        out.extend_from_slice(&self.usage);
        if timeouts {
            out.extend_from_slice(&NO_TIMEOUTS);
        }
    }
}

/// Task management functions, as bits of the first two bytes of the report.
pub mod task_management {
    /// ABORT TASK.
    pub const ABORT_TASK: u16 = 0x8000;
    /// ABORT TASK SET.
    pub const ABORT_TASK_SET: u16 = 0x4000;
    /// CLEAR ACA.
    pub const CLEAR_ACA: u16 = 0x2000;
    /// CLEAR TASK SET.
    pub const CLEAR_TASK_SET: u16 = 0x1000;
    /// LOGICAL UNIT RESET.
    pub const LUN_RESET: u16 = 0x0800;
    /// QUERY TASK.
    pub const QUERY_TASK: u16 = 0x0400;
    /// TARGET RESET.
    pub const TARGET_RESET: u16 = 0x0200;
    /// I_T NEXUS RESET.
    pub const I_T_NEXUS_RESET: u16 = 0x0001;
}

/// Appends the report of task management functions: 16 bytes in the extended form, otherwise 4.
pub fn emit_task_management(functions: u16, extended: bool, out: &mut Vec<u8>) {
    out.put_u16(functions);
    out.put_u16(if extended { 12 } else { 0 });
    out.put_zeros(if extended { 12 } else { 0 });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_commands_with_and_without_timeouts() {
        let all = [
            Supported { operation: 0x12, action: None, cdb_bytes: 6 },
            Supported { operation: 0x9e, action: Some(0x10), cdb_bytes: 16 },
        ];
        for (timeouts, len) in [(false, 20), (true, 44)] {
            let mut out = Vec::new();
            emit_all(&all, timeouts, &mut out);
            assert_eq!(out.len(), len);
            assert_eq!(parse_all(&out), Ok(all.to_vec()));
        }
        let mut out = Vec::new();
        emit_all(&all, false, &mut out);
        assert_eq!(out[12..], [0x9e, 0, 0, 0x10, 0, 1, 0, 16]);
        assert_eq!(parse_all(&out[..15]), Ok(all[..1].to_vec()));
        assert!((0..4).all(|len| parse_all(&out[..len]).is_err()));
    }

    #[test]
    fn one_command_with_its_usage() {
        let one = OneCommand { support: STANDARD, usage: vec![0, 0, 0, 0, 0, 7] };
        let mut out = Vec::new();
        one.emit(false, &mut out);
        assert_eq!(out, [0, 3, 0, 6, 0, 0, 0, 0, 0, 7]);
        assert_eq!(OneCommand::parse(&out), Ok(one.clone()));
        assert!((0..10).all(|len| OneCommand::parse(&out[..len]).is_err()));
        out.clear();
        one.emit(true, &mut out);
        assert_eq!((out[1], out.len()), (0x83, 22));
        out.clear();
        OneCommand { support: NOT_SUPPORTED, usage: Vec::new() }.emit(true, &mut out);
        assert_eq!(out, [0, 1, 0, 0]);
    }

    #[test]
    fn task_management_is_two_bytes_of_bits() {
        let mut out = Vec::new();
        emit_task_management(task_management::LUN_RESET | task_management::I_T_NEXUS_RESET, true, &mut out);
        assert_eq!((out.len(), &out[..4]), (16, &[0x08, 0x01, 0, 12][..]));
    }
}
