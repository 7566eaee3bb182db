//! Information units of the SCSI RDMA Protocol (SRP, ANSI INCITS 365, revision 16a).
//!
//! The payload of commands moves by RDMA; immediate data follow an information unit and are not
//! part of it here.

mod login;

use crate::bytes::{Put, fixed, len8, len32, slice, u16_at, u32_at, u64_at};
use crate::error::ParseError;
use crate::lun::LunBytes;

/// Length of a LOGIN_REQ.
pub const LOGIN_REQ_BYTES: usize = 64;
/// Length of a LOGIN_REQ in the private data of the RDMA connection manager.
pub const LOGIN_REQ_CM_BYTES: usize = 56;
/// Length of a CMD without descriptors and without an additional CDB.
pub const CMD_BYTES: usize = 48;
/// Length of a RSP without response data and sense data.
pub const RSP_BYTES: usize = 36;
/// Buffer format: direct descriptors.
pub const DIRECT: u16 = 2;
/// Buffer format: indirect descriptors.
pub const INDIRECT: u16 = 4;

/// Port identifier: extension and GUID.
pub type PortId = [u8; 16];

/// Memory of the initiator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Descriptor {
    /// Virtual address.
    pub address: u64,
    /// R_Key.
    pub key: u32,
    /// Bytes.
    pub length: u32,
}

/// Buffer of one direction of a command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Buffer {
    /// No data.
    #[default]
    None,
    /// One descriptor.
    Direct(Descriptor),
    /// A table of descriptors.
    Indirect {
        /// The table in the memory of the initiator.
        table: Descriptor,
        /// Bytes of all descriptors of the table.
        total: u32,
        /// The first descriptors, as many as fit.
        list: Vec<Descriptor>,
    },
    /// Data behind the information unit, with their number of bytes.
    Immediate(u32),
}

/// Fields of a LOGIN_REQ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LoginReq {
    /// Tag of the request.
    pub tag: u64,
    /// Longest information unit of the initiator.
    pub request_bytes: u32,
    /// Buffer formats, as a mask of [`DIRECT`] and [`INDIRECT`].
    pub formats: u16,
    /// Multichannel action in bits 0 and 1: 0 ends other channels of the ports, 1 keeps them.
    pub flags: u8,
    /// Offset of immediate data.
    pub immediate_offset: u16,
    /// Initiator port.
    pub initiator: PortId,
    /// Target port.
    pub target: PortId,
}

/// Fields of a CMD.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cmd {
    /// True if the RSP is a solicited event.
    pub solicited: bool,
    /// Tag of the command.
    pub tag: u64,
    /// Logical unit.
    pub lun: LunBytes,
    /// Task attribute: 0 simple, 1 head of queue, 2 ordered, 4 ACA.
    pub attribute: u8,
    /// CDB.
    pub cdb: [u8; 16],
    /// Further bytes of the CDB, a multiple of four up to 252.
    pub additional_cdb: Vec<u8>,
    /// Data to the target.
    pub out: Buffer,
    /// Data to the initiator.
    pub input: Buffer,
}

/// Fields of a RSP.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rsp {
    /// Credit that returns.
    pub delta: i32,
    /// Tag of the command or task management request.
    pub tag: u64,
    /// SCSI status.
    pub status: u8,
    /// Residual of data to the target: negative for an overflow.
    pub out_residual: i64,
    /// Residual of data to the initiator: negative for an overflow.
    pub in_residual: i64,
    /// Code of the response data, of task management and of protocol errors.
    pub response: Option<u8>,
    /// Sense data.
    pub sense: Vec<u8>,
}

/// Fields of a TSK_MGMT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TskMgmt {
    /// Tag of the request.
    pub tag: u64,
    /// Logical unit.
    pub lun: LunBytes,
    /// Function: 1 abort task, 2 abort task set, 4 clear task set, 8 LUN reset, 0x40 clear ACA.
    pub function: u8,
    /// Tag of the task of ABORT TASK.
    pub task_tag: u64,
}

/// An information unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Iu {
    /// Login request.
    LoginReq(LoginReq),
    /// Login response.
    LoginRsp {
        /// Tag of the request.
        tag: u64,
        /// First request limit.
        delta: i32,
        /// Longest information unit to the target.
        to_target: u32,
        /// Longest information unit to the initiator.
        to_initiator: u32,
        /// Buffer formats.
        formats: u16,
        /// Result of multichannel in bits 0 and 1.
        flags: u8,
    },
    /// Login reject.
    LoginRej {
        /// Tag of the request.
        tag: u64,
        /// Reason; see [`reject`].
        reason: u32,
        /// Buffer formats of the target.
        formats: u16,
    },
    /// Command.
    Cmd(Cmd),
    /// Response to a command or task management request.
    Rsp(Rsp),
    /// Task management.
    TskMgmt(TskMgmt),
    /// Logout of the initiator.
    InitiatorLogout {
        /// Tag.
        tag: u64,
    },
    /// Logout of the target.
    TargetLogout {
        /// Tag.
        tag: u64,
        /// Reason.
        reason: u32,
    },
    /// Credit without a response.
    CredReq {
        /// Tag.
        tag: u64,
        /// Credit.
        delta: i32,
    },
    /// Answer to a CRED_REQ.
    CredRsp {
        /// Tag of the request.
        tag: u64,
    },
    /// Asynchronous event.
    AerReq {
        /// Tag.
        tag: u64,
        /// Credit.
        delta: i32,
        /// Logical unit.
        lun: LunBytes,
        /// Sense data.
        sense: Vec<u8>,
    },
    /// Answer to an AER_REQ.
    AerRsp {
        /// Tag of the request.
        tag: u64,
    },
}

/// Reasons of a LOGIN_REJ.
pub mod reject {
    /// Unable to establish a channel.
    pub const CHANNEL: u32 = 0x1_0000;
    /// Insufficient resources.
    pub const RESOURCES: u32 = 0x1_0001;
    /// The requested information unit is too long.
    pub const TOO_LARGE: u32 = 0x1_0002;
    /// Unable to associate the channel with a nexus.
    pub const ASSOCIATION: u32 = 0x1_0003;
    /// Unsupported buffer format.
    pub const FORMAT: u32 = 0x1_0004;
    /// No multichannel.
    pub const MULTICHANNEL: u32 = 0x1_0005;
    /// Limit of channels.
    pub const LIMIT: u32 = 0x1_0006;
}

/// Codes of the response data of a RSP.
pub mod response {
    /// No failure, or task management is complete.
    pub const COMPLETE: u8 = 0;
    /// Invalid fields of a request.
    pub const INVALID: u8 = 2;
    /// The task management function is not supported.
    pub const NOT_SUPPORTED: u8 = 4;
    /// The task management function failed.
    pub const FAILED: u8 = 5;
}

/// Flags of a RSP.
mod flag {
    pub const RESPONSE: u8 = 1;
    pub const SENSE: u8 = 2;
    pub const OUT_OVER: u8 = 4;
    pub const OUT_UNDER: u8 = 8;
    pub const IN_OVER: u8 = 0x10;
    pub const IN_UNDER: u8 = 0x20;
}

impl Descriptor {
    /// Length of a descriptor.
    pub const BYTES: usize = 16;

    /// Parses the descriptor at an offset.
    ///
    /// # Errors
    ///
    /// The bytes end inside it.
    pub fn parse(data: &[u8], at: usize) -> Result<Descriptor, ParseError> {
        let data = slice("SRP memory descriptor", data, at, Descriptor::BYTES)?;
        Ok(Descriptor { address: u64_at(data, 0), key: u32_at(data, 8), length: u32_at(data, 12) })
    }

    fn put(self, out: &mut Vec<u8>) {
        out.put_u64(self.address);
        out.put_u32(self.key);
        out.put_u32(self.length);
    }
}

impl Buffer {
    /// Returns the format code, and the count of descriptors that stand in the CMD.
    fn format(&self) -> (u8, u8) {
        match self {
            Buffer::None => (0, 0),
            Buffer::Direct(_) => (1, 0),
            Buffer::Indirect { list, .. } => (2, len8(list.len())),
            Buffer::Immediate(_) => (3, 0),
        }
    }

    /// Returns the bytes of all data.
    pub fn total(&self) -> u32 {
        match self {
            Buffer::None => 0,
            Buffer::Direct(descriptor) => descriptor.length,
            Buffer::Indirect { total, .. } => *total,
            Buffer::Immediate(bytes) => *bytes,
        }
    }

    /// Reads a buffer and returns the offset behind it.
    fn parse(data: &[u8], at: usize, format: u8, count: u8) -> Result<(Buffer, usize), ParseError> {
        Ok(match format {
            0 => (Buffer::None, at),
            1 => (Buffer::Direct(Descriptor::parse(data, at)?), at + Descriptor::BYTES),
            2 => {
                let table = Descriptor::parse(data, at)?;
                let total = u32_at(slice("SRP indirect table", data, at + 16, 4)?, 0);
                let list_at = at + 20;
                let list: Result<Vec<Descriptor>, ParseError> =
                    (0..usize::from(count)).map(|entry| Descriptor::parse(data, list_at + 16 * entry)).collect();
                (Buffer::Indirect { table, total, list: list? }, list_at + 16 * usize::from(count))
            }
            3 => (Buffer::Immediate(u32_at(slice("SRP immediate buffer", data, at, 4)?, 0)), at + 4),
            other => return Err(ParseError::Unsupported { field: "SRP buffer format", got: other.into() }),
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Buffer::None => {}
            Buffer::Direct(descriptor) => descriptor.put(out),
            Buffer::Indirect { table, total, list } => {
                table.put(out);
                out.put_u32(*total);
                list.iter().take(255).for_each(|descriptor| descriptor.put(out));
            }
            Buffer::Immediate(bytes) => out.put_u32(*bytes),
        }
    }
}

fn port_id(data: &[u8], at: usize) -> PortId {
    let mut id = [0; 16];
    id.copy_from_slice(&data[at..at + 16]);
    id
}

fn lun_at(data: &[u8], at: usize) -> LunBytes {
    u64_at(data, at).to_be_bytes()
}

impl Iu {
    /// Returns the code in the first byte.
    pub fn opcode(&self) -> u8 {
        match self {
            Iu::LoginReq(_) => 0x00,
            Iu::TskMgmt(_) => 0x01,
            Iu::Cmd(_) => 0x02,
            Iu::InitiatorLogout { .. } => 0x03,
            Iu::CredRsp { .. } => 0x41,
            Iu::AerRsp { .. } => 0x42,
            Iu::TargetLogout { .. } => 0x80,
            Iu::CredReq { .. } => 0x81,
            Iu::AerReq { .. } => 0x82,
            Iu::LoginRsp { .. } => 0xc0,
            Iu::Rsp(_) => 0xc1,
            Iu::LoginRej { .. } => 0xc2,
        }
    }

    /// Returns the tag.
    pub fn tag(&self) -> u64 {
        match self {
            Iu::LoginReq(LoginReq { tag, .. })
            | Iu::Cmd(Cmd { tag, .. })
            | Iu::Rsp(Rsp { tag, .. })
            | Iu::TskMgmt(TskMgmt { tag, .. })
            | Iu::LoginRsp { tag, .. }
            | Iu::LoginRej { tag, .. }
            | Iu::InitiatorLogout { tag }
            | Iu::TargetLogout { tag, .. }
            | Iu::CredReq { tag, .. }
            | Iu::CredRsp { tag }
            | Iu::AerReq { tag, .. }
            | Iu::AerRsp { tag } => *tag,
        }
    }

    /// Returns the number of bytes.
    pub fn encoded_len(&self) -> usize {
        let mut bytes = Vec::new();
        self.emit(&mut bytes);
        bytes.len()
    }

    /// Parses an information unit. Bytes behind it are ignored.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or a code is unknown.
    pub fn parse(data: &[u8]) -> Result<Iu, ParseError> {
        let head = fixed::<16>("SRP information unit", data)?;
        let tag = u64_at(head, 8);
        let word = u32_at(head, 4);
        let delta = word.cast_signed();
        Ok(match head[0] {
            0x00 => {
                let data = fixed::<LOGIN_REQ_BYTES>("SRP_LOGIN_REQ", data)?;
                Iu::LoginReq(LoginReq {
                    tag,
                    request_bytes: u32_at(data, 16),
                    formats: u16_at(data, 24),
                    flags: data[26],
                    immediate_offset: u16_at(data, 28),
                    initiator: port_id(data, 32),
                    target: port_id(data, 48),
                })
            }
            0xc0 => {
                let data = fixed::<52>("SRP_LOGIN_RSP", data)?;
                Iu::LoginRsp {
                    tag,
                    delta,
                    to_target: u32_at(data, 16),
                    to_initiator: u32_at(data, 20),
                    formats: u16_at(data, 24),
                    flags: data[26],
                }
            }
            0xc2 => {
                let data = fixed::<32>("SRP_LOGIN_REJ", data)?;
                Iu::LoginRej { tag, reason: word, formats: u16_at(data, 24) }
            }
            0x02 => Iu::Cmd(Cmd::parse(data)?),
            0xc1 => Iu::Rsp(Rsp::parse(data)?),
            0x01 => {
                let data = fixed::<48>("SRP_TSK_MGMT", data)?;
                let (lun, function, task_tag) = (lun_at(data, 20), data[30], u64_at(data, 32));
                Iu::TskMgmt(TskMgmt { tag, lun, function, task_tag })
            }
            0x03 => Iu::InitiatorLogout { tag },
            0x80 => Iu::TargetLogout { tag, reason: word },
            0x81 => Iu::CredReq { tag, delta },
            0x41 => Iu::CredRsp { tag },
            0x82 => {
                let fields = fixed::<36>("SRP_AER_REQ", data)?;
                let sense = slice("SRP sense data", data, 36, u32_at(fields, 28) as usize)?.to_vec();
                Iu::AerReq { tag, delta, lun: lun_at(fields, 20), sense }
            }
            0x42 => Iu::AerRsp { tag },
            other => return Err(ParseError::Unsupported { field: "SRP opcode", got: other.into() }),
        })
    }

    /// Appends the bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let word = match self {
            Iu::LoginRsp { delta, .. } | Iu::CredReq { delta, .. } | Iu::AerReq { delta, .. } => delta.cast_unsigned(),
            Iu::Rsp(rsp) => rsp.delta.cast_unsigned(),
            Iu::LoginRej { reason, .. } | Iu::TargetLogout { reason, .. } => *reason,
            Iu::Cmd(cmd) => {
                let ((out_format, out_count), (in_format, in_count)) = (cmd.out.format(), cmd.input.format());
                u32::from_be_bytes([0, out_format << 4 | in_format, out_count, in_count])
            }
            _ => 0,
        };
        let solicited = matches!(self, Iu::Cmd(Cmd { solicited: true, .. }));
        out.put_slice(&[self.opcode(), u8::from(solicited), 0, 0]);
        out.put_u32(word);
        out.put_u64(self.tag());
        match self {
            Iu::LoginReq(login) => {
                out.put_u32(login.request_bytes);
                out.put_zeros(4);
                out.put_u16(login.formats);
                out.put_slice(&[login.flags, 0]);
                out.put_u16(login.immediate_offset);
                out.put_zeros(2);
                out.put_slice(&login.initiator);
                out.put_slice(&login.target);
            }
            Iu::LoginRsp { to_target, to_initiator, formats, flags, .. } => {
                out.put_u32(*to_target);
                out.put_u32(*to_initiator);
                out.put_u16(*formats);
                out.put_slice(&[*flags]);
                out.put_zeros(25);
            }
            Iu::LoginRej { formats, .. } => {
                out.put_zeros(8);
                out.put_u16(*formats);
                out.put_zeros(6);
            }
            Iu::Cmd(cmd) => cmd.put(out),
            Iu::Rsp(rsp) => rsp.put(out),
            Iu::TskMgmt(task) => {
                out.put_zeros(4);
                out.put_slice(&task.lun);
                out.put_slice(&[0, 0, task.function, 0]);
                out.put_u64(task.task_tag);
                out.put_zeros(8);
            }
            Iu::AerReq { lun, sense, .. } => {
                out.put_zeros(4);
                out.put_slice(lun);
                out.put_u32(len32(sense.len()));
                out.put_zeros(4);
                out.put_slice(sense);
            }
            Iu::InitiatorLogout { .. }
            | Iu::TargetLogout { .. }
            | Iu::CredReq { .. }
            | Iu::CredRsp { .. }
            | Iu::AerRsp { .. } => {}
        }
    }
}

impl Cmd {
    fn parse(data: &[u8]) -> Result<Cmd, ParseError> {
        let fields = fixed::<CMD_BYTES>("SRP_CMD", data)?;
        let mut cdb = [0; 16];
        cdb.copy_from_slice(&fields[32..48]);
        // The length is in words of four bytes in the upper six bits.
        let additional = usize::from(fields[31] >> 2) * 4;
        let additional_cdb = slice("SRP additional CDB", data, CMD_BYTES, additional)?.to_vec();
        let (out, at) = Buffer::parse(data, CMD_BYTES + additional, fields[5] >> 4, fields[6])?;
        let (input, _) = Buffer::parse(data, at, fields[5] & 15, fields[7])?;
        Ok(Cmd {
            solicited: fields[1] & 1 != 0,
            tag: u64_at(fields, 8),
            lun: lun_at(fields, 20),
            attribute: fields[29] & 7,
            cdb,
            additional_cdb,
            out,
            input,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let words = (self.additional_cdb.len() / 4).min(63);
        out.put_zeros(4);
        out.put_slice(&self.lun);
        out.put_slice(&[0, self.attribute & 7, 0, len8(words) << 2]);
        out.put_slice(&self.cdb);
        out.put_slice(&self.additional_cdb[..4 * words]);
        self.out.put(out);
        self.input.put(out);
    }
}

impl Rsp {
    fn parse(data: &[u8]) -> Result<Rsp, ParseError> {
        let fields = fixed::<RSP_BYTES>("SRP_RSP", data)?;
        let flags = fields[18];
        let residual = |at, over, under| {
            let bytes = i64::from(u32_at(fields, at));
            match (flags & over != 0, flags & under != 0) {
                (true, _) => -bytes,
                (false, true) => bytes,
                (false, false) => 0,
            }
        };
        let response_bytes = if flags & flag::RESPONSE != 0 { u32_at(fields, 32) as usize } else { 0 };
        let sense_bytes = if flags & flag::SENSE != 0 { u32_at(fields, 28) as usize } else { 0 };
        let response = slice("SRP response data", data, RSP_BYTES, response_bytes)?;
        let sense = slice("SRP sense data", data, RSP_BYTES + response_bytes, sense_bytes)?;
        Ok(Rsp {
            delta: u32_at(fields, 4).cast_signed(),
            tag: u64_at(fields, 8),
            status: fields[19],
            out_residual: residual(20, flag::OUT_OVER, flag::OUT_UNDER),
            in_residual: residual(24, flag::IN_OVER, flag::IN_UNDER),
            response: response.get(3).copied(),
            sense: sense.to_vec(),
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let residual = |bytes: i64, over: u8, under: u8| match bytes {
            0 => 0,
            bytes if bytes < 0 => over,
            _ => under,
        };
        let mut flags = residual(self.out_residual, flag::OUT_OVER, flag::OUT_UNDER)
            | residual(self.in_residual, flag::IN_OVER, flag::IN_UNDER);
        if self.response.is_some() {
            flags |= flag::RESPONSE;
        }
        if !self.sense.is_empty() {
            flags |= flag::SENSE;
        }
        let bytes = |residual: i64| u32::try_from(residual.unsigned_abs()).unwrap_or(u32::MAX);
        out.put_zeros(2);
        out.put_slice(&[flags, self.status]);
        out.put_u32(bytes(self.out_residual));
        out.put_u32(bytes(self.in_residual));
        out.put_u32(len32(self.sense.len()));
        out.put_u32(if self.response.is_some() { 4 } else { 0 });
        if let Some(code) = self.response {
            out.put_slice(&[0, 0, 0, code]);
        }
        out.put_slice(&self.sense);
    }
}
