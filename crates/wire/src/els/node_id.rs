//! RNID (FC-LS, request node identification data).

use crate::bytes::{Put, counted, fixed, len8, slice, u16_at, u32_at, u64_at};
use crate::els::command;
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};

/// Accept of RNID.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rnid {
    /// Format of the specific data (see [`COMMON_FORMAT`] and [`TOPOLOGY_FORMAT`]).
    pub format: u8,
    /// Port and node name, if the port reports them.
    pub common: Option<(Wwpn, Wwnn)>,
    /// Data of the given format.
    pub specific: SpecificData,
}

/// The part of [`Rnid`] that depends on the format.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SpecificData {
    /// Format DF with its full length.
    Topology(TopologyData),
    /// Another format or length, at most 255 bytes.
    Other(Box<[u8]>),
}

/// General topology discovery data, 52 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TopologyData {
    /// Vendor unique.
    pub vendor: [u8; 16],
    /// Kind of device that the port belongs to (see [`associated_type`]).
    pub associated_type: u32,
    /// Physical number of the port.
    pub physical_port: u32,
    /// Number of nodes attached to the port.
    pub attached_nodes: u32,
    /// Management protocol of the node; zero: not managed by IP.
    pub management: u8,
    /// IP version of the management address.
    pub ip_version: u8,
    /// UDP or TCP port of the management address.
    pub ip_port: u16,
    /// Management address.
    pub ip: [u8; 16],
    /// Vendor specific.
    pub vendor_specific: u16,
}

/// Names only.
pub const COMMON_FORMAT: u8 = 0x00;
/// Names and topology discovery data.
pub const TOPOLOGY_FORMAT: u8 = 0xdf;

/// Associated types of [`TopologyData`].
pub mod associated_type {
    use crate::codes::code_constants;

    code_constants!(u32 {
        UNKNOWN = 1, "unknown";
        OTHER = 2, "other";
        HUB = 3, "hub";
        SWITCH = 4, "switch";
        GATEWAY = 5, "gateway";
    });
}

const HEAD_BYTES: usize = 8;
const COMMON_BYTES: usize = 16;

impl TopologyData {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 52;

    fn read(b: &[u8; Self::BYTES]) -> TopologyData {
        TopologyData {
            vendor: std::array::from_fn(|at| b[at]),
            associated_type: u32_at(b, 16),
            physical_port: u32_at(b, 20),
            attached_nodes: u32_at(b, 24),
            management: b[28],
            ip_version: b[29],
            ip_port: u16_at(b, 30),
            ip: std::array::from_fn(|at| b[32 + at]),
            vendor_specific: u16_at(b, 50),
        }
    }

    fn write(&self, out: &mut dyn Put) {
        out.put_slice(&self.vendor);
        out.put_u32(self.associated_type);
        out.put_u32(self.physical_port);
        out.put_u32(self.attached_nodes);
        out.put_slice(&[self.management, self.ip_version]);
        out.put_u16(self.ip_port);
        out.put_slice(&self.ip);
        out.put_u16(0);
        out.put_u16(self.vendor_specific);
    }
}

impl Rnid {
    /// Reads the payload.
    pub fn parse(payload: &[u8]) -> Result<Rnid, ParseError> {
        let head = fixed::<HEAD_BYTES>("RNID accept", payload)?;
        let (format, common_bytes, specific_bytes) = (head[4], usize::from(head[5]), usize::from(head[7]));
        let common = slice("RNID common data", payload, HEAD_BYTES, common_bytes)?;
        let common = match common.len() {
            0 => None,
            COMMON_BYTES => Some((Wwpn(u64_at(common, 0)), Wwnn(u64_at(common, 8)))),
            got_bytes => {
                return Err(ParseError::Length { field: "RNID common data", got_bytes, rule: "0 or 16 bytes" });
            }
        };
        let specific = slice("RNID specific data", payload, HEAD_BYTES + common_bytes, specific_bytes)?;
        let specific = match specific.first_chunk() {
            Some(b) if format == TOPOLOGY_FORMAT && specific.len() == TopologyData::BYTES => {
                SpecificData::Topology(TopologyData::read(b))
            }
            _ => SpecificData::Other(specific.into()),
        };
        Ok(Rnid { format, common, specific })
    }

    /// Appends the payload, the command word included.
    pub fn emit(&self, out: &mut dyn Put) {
        let common_bytes = counted(|_, out| self.put_common(out));
        let specific_bytes = counted(|_, out| self.put_specific(out));
        out.put_word(command::LS_ACC, FcId::ZERO);
        out.put_slice(&[self.format, len8(common_bytes), 0, len8(specific_bytes)]);
        self.put_common(out);
        self.put_specific(out);
    }

    fn put_common(&self, out: &mut dyn Put) {
        if let Some((port, node)) = self.common {
            out.put_u64(port.0);
            out.put_u64(node.0);
        }
    }

    fn put_specific(&self, out: &mut dyn Put) {
        match &self.specific {
            SpecificData::Topology(data) => data.write(out),
            SpecificData::Other(data) => out.put_slice(&data[..data.len().min(u8::MAX.into())]),
        }
    }
}
