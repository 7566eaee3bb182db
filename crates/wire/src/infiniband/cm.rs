//! Fields of messages of the connection manager beyond those of [`CmMessage::req`] and
//! [`CmMessage::rep`] (IBA volume 1, 12.6 to 12.7), and the private data of the RDMA connection
//! manager (annex A11).

use super::mad::CmMessage;
use crate::bytes::{fixed, u16_at, u32_at};
use crate::error::ParseError;
use core::net::Ipv4Addr;

/// Bytes of the header in the private data of a REQ of the RDMA connection manager.
pub const RDMA_CM_BYTES: usize = 36;
/// Service of TCP port 0; the port is in the lower 16 bits.
pub const TCP_SERVICE: u64 = 0x0106_0000;

/// Reasons of a REJ.
pub mod reason {
    /// The responder has no queue pair left.
    pub const NO_QUEUE_PAIR: u16 = 1;
    /// The service is unknown.
    pub const INVALID_SERVICE: u16 = 8;
    /// The transport service is not the reliable connection.
    pub const INVALID_TRANSPORT: u16 = 9;
    /// The MTU of the path is invalid.
    pub const INVALID_MTU: u16 = 26;
    /// The consumer has rejected; its reason is in the private data.
    pub const CONSUMER: u16 = 28;
}

/// Fields of a REQ about path and transport.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReqPath {
    /// Transport service: 0 is the reliable connection.
    pub transport: u8,
    /// Exponent of the time that the requester waits for a response: 4.096 us times 2 to this
    /// power.
    pub response_timeout: u8,
    /// Repetitions of a packet before the connection fails: 3 bits.
    pub retries: u8,
    /// Code of the MTU: 1 is 256 bytes, and 5 is 4096 bytes.
    pub mtu: u8,
    /// Repetitions after "receiver not ready": 3 bits; 7 is unlimited.
    pub rnr_retries: u8,
    /// Exponent of the acknowledgement time-out: 4.096 us times 2 to this power.
    pub ack_timeout: u8,
}

/// Fields of a REJ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RejFields {
    /// Local and remote communication ID; zero if the sender has none.
    pub ids: [u32; 2],
    /// Rejected message: 0 REQ, 1 REP, 2 another one.
    pub message: u8,
    /// Reason; see [`reason`].
    pub reason: u16,
}

/// Header in the private data of a REQ of the RDMA connection manager, over IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RdmaCm {
    /// Source port.
    pub port: u16,
    /// Source and destination address.
    pub addresses: [Ipv4Addr; 2],
}

impl CmMessage {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.data[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Returns the local and remote communication ID of a message other than a REQ.
    pub fn ids(&self) -> [u32; 2] {
        [u32_at(&self.data, 0), u32_at(&self.data, 4)]
    }

    /// Sets the local and remote communication ID of a message other than a REQ.
    pub fn set_ids(&mut self, ids: [u32; 2]) {
        self.put(0, &ids[0].to_be_bytes());
        self.put(4, &ids[1].to_be_bytes());
    }

    /// Returns the fields of a REQ about path and transport.
    pub fn req_path(&self) -> ReqPath {
        let data = &self.data;
        ReqPath {
            transport: data[43] >> 1 & 3,
            response_timeout: data[43] >> 3,
            retries: data[47] & 7,
            mtu: data[50] >> 4,
            rnr_retries: data[50] & 7,
            ack_timeout: data[95] >> 3,
        }
    }

    /// Sets the fields of a REQ about path and transport, and keeps all others.
    pub fn set_req_path(&mut self, path: &ReqPath) {
        self.data[43] = path.response_timeout << 3 | (path.transport & 3) << 1 | self.data[43] & 1;
        self.data[47] = self.data[47] & !7 | path.retries & 7;
        self.data[50] = path.mtu << 4 | self.data[50] & 8 | path.rnr_retries & 7;
        self.data[95] = path.ack_timeout << 3 | self.data[95] & 7;
    }

    /// Sets the repetitions of a REP after "receiver not ready": 3 bits; 7 is unlimited.
    pub fn set_rep_rnr_retries(&mut self, retries: u8) {
        self.data[27] = retries << 5 | self.data[27] & 0x1f;
    }

    /// Returns the fields of a REJ.
    pub fn rej(&self) -> RejFields {
        RejFields { ids: self.ids(), message: self.data[8] >> 6, reason: u16_at(&self.data, 10) }
    }

    /// Sets the fields of a REJ and keeps all others.
    pub fn set_rej(&mut self, fields: &RejFields) {
        self.set_ids(fields.ids);
        self.data[8] = fields.message << 6 | self.data[8] & 0x3f;
        self.put(10, &fields.reason.to_be_bytes());
    }

    /// Returns the queue pair at the receiver of a DREQ: 24 bits.
    pub fn dreq_pair(&self) -> u32 {
        u32_at(&self.data, 8) >> 8
    }

    /// Sets the queue pair at the receiver of a DREQ: 24 bits.
    pub fn set_dreq_pair(&mut self, pair: u32) {
        self.put(8, &(pair << 8).to_be_bytes()[..3]);
    }
}

impl RdmaCm {
    /// Parses the header and returns it with the private data behind it.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or the version of the header or of IP is another one.
    pub fn parse(data: &[u8]) -> Result<(RdmaCm, &[u8]), ParseError> {
        let head = fixed::<RDMA_CM_BYTES>("header of the RDMA connection manager", data)?;
        if head[0] != 0 {
            return Err(ParseError::Value { field: "RDMA CM version", got: head[0].into(), rule: "0" });
        }
        if head[1] >> 4 != 4 {
            return Err(ParseError::Unsupported { field: "RDMA CM IP version", got: (head[1] >> 4).into() });
        }
        // An IPv4 address is in the last 4 of its 16 bytes.
        let address = |at: usize| Ipv4Addr::from(u32_at(head, at));
        Ok((RdmaCm { port: u16_at(head, 2), addresses: [address(16), address(32)] }, &data[RDMA_CM_BYTES..]))
    }

    /// Returns the bytes.
    pub fn to_bytes(&self) -> [u8; RDMA_CM_BYTES] {
        let mut bytes = [0; RDMA_CM_BYTES];
        bytes[1] = 4 << 4;
        bytes[2..4].copy_from_slice(&self.port.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.addresses[0].octets());
        bytes[32..36].copy_from_slice(&self.addresses[1].octets());
        bytes
    }
}
