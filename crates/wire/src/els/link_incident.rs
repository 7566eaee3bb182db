//! RLIR (FC-LS, registered link incident report): the common link incident record and descriptor.
//! Link incident records of FC-4 types are not stored.

use crate::bytes::{Put, fixed, id_at, len8, slice, u16_at, u32_at, u64_at};
use crate::els::command;
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};

/// A link incident as reported by RLIR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LinkIncident {
    /// Format of FC-4 specific data (see [`COMMON_FORMAT`]).
    pub format: u8,
    /// Port name of the port with the incident.
    pub port_name: Wwpn,
    /// Node name of the port with the incident.
    pub node_name: Wwnn,
    /// Type of that port (see [`port_type`](crate::ns::port_type)).
    pub port_type: u8,
    /// Address of that port; zero if it has none.
    pub port_id: FcId,
    /// Name of the port at the other end; zero if unknown.
    pub attached_port_name: Wwpn,
    /// Node name of the port at the other end.
    pub attached_node_name: Wwnn,
    /// Name of the fabric.
    pub fabric_name: Wwnn,
    /// Physical number of the port with the incident.
    pub physical_port: u32,
    /// Transaction number of the report.
    pub transaction: u32,
    /// Format of the time stamp; zero if there is none.
    pub time_format: u8,
    /// Time of the incident.
    pub time: u64,
    /// Flags that qualify the incident (see [`qualifier`]).
    pub qualifier: u8,
    /// Kind of incident (see [`code`]).
    pub code: u8,
    /// Domain and area of the port of an ISL.
    pub isl_port: u16,
}

/// Format of LIRR and RLIR: the common record only.
pub const COMMON_FORMAT: u8 = 0x00;

/// Incident codes.
pub mod code {
    use crate::codes::code_constants;

    code_constants!(u8 {
        IMPLICIT = 0x01, "implicit incident";
        BIT_ERROR_RATE = 0x02, "bit error rate threshold exceeded";
        LOSS_OF_SIGNAL = 0x03, "loss of signal or synchronisation";
        NOT_OPERATIONAL = 0x04, "not-operational primitive sequence recognised";
        PRIMITIVE_TIMEOUT = 0x05, "primitive sequence timeout";
        INVALID_PRIMITIVE = 0x06, "invalid primitive sequence for the state of the port";
        LOOP_TIMEOUT = 0x07, "loop initialisation timeout";
        LOOP_INITIALIZATION = 0x08, "loop initialisation received";
    });
}

/// Bits of incident qualifiers.
pub mod qualifier {
    /// The port belongs to a switch.
    pub const SWITCH: u8 = 0x20;
    /// The port is an expansion port, and the descriptor names the ISL.
    pub const E_PORT: u8 = 0x10;
    /// The link works, but with degraded quality.
    pub const DEGRADED: u8 = 0x04;
    /// The link does not work.
    pub const NOT_OPERATIONAL: u8 = 0x08;
}

/// Functions of LIRR.
pub mod registration {
    use crate::codes::code_constants;

    code_constants!(u8 {
        CONDITIONAL = 0x01, "conditionally receive";
        ALWAYS = 0x02, "always receive";
        CLEAR = 0xff, "clear registration";
    });
}

const HEAD_BYTES: usize = 8;
const RECORD_BYTES: usize = 64;
const DESCRIPTOR_BYTES: usize = 4;

impl LinkIncident {
    /// Number of bytes that [`emit`](Self::emit) appends.
    pub const BYTES: usize = HEAD_BYTES + RECORD_BYTES + DESCRIPTOR_BYTES;

    /// Reads the payload.
    pub fn parse(payload: &[u8]) -> Result<LinkIncident, ParseError> {
        let head = fixed::<HEAD_BYTES>("RLIR", payload)?;
        for (field, got, bytes, rule) in [
            ("RLIR common record", head[5], RECORD_BYTES, "64 bytes"),
            ("RLIR common descriptor", head[6], DESCRIPTOR_BYTES, "4 bytes"),
        ] {
            if usize::from(got) != bytes {
                return Err(ParseError::Length { field, got_bytes: got.into(), rule });
            }
        }
        let b = fixed::<{ Self::BYTES }>("RLIR", payload)?;
        slice("RLIR specific record", payload, Self::BYTES, head[7].into())?;
        Ok(LinkIncident {
            format: head[4],
            port_name: Wwpn(u64_at(b, 8)),
            node_name: Wwnn(u64_at(b, 16)),
            port_type: b[24],
            port_id: id_at(b, 25),
            attached_port_name: Wwpn(u64_at(b, 28)),
            attached_node_name: Wwnn(u64_at(b, 36)),
            fabric_name: Wwnn(u64_at(b, 44)),
            physical_port: u32_at(b, 52),
            transaction: u32_at(b, 56),
            time_format: b[63],
            time: u64_at(b, 64),
            qualifier: b[72],
            code: b[73],
            isl_port: u16_at(b, 74),
        })
    }

    /// Appends the payload, the command word included, without a specific record.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_word(command::RLIR, FcId::ZERO);
        out.put_slice(&[self.format, len8(RECORD_BYTES), len8(DESCRIPTOR_BYTES), 0]);
        out.put_u64(self.port_name.0);
        out.put_u64(self.node_name.0);
        out.put_word(self.port_type, self.port_id);
        out.put_u64(self.attached_port_name.0);
        out.put_u64(self.attached_node_name.0);
        out.put_u64(self.fabric_name.0);
        out.put_u32(self.physical_port);
        out.put_u32(self.transaction);
        out.put_u32(self.time_format.into());
        out.put_u64(self.time);
        out.put_slice(&[self.qualifier, self.code]);
        out.put_u16(self.isl_port);
    }
}
