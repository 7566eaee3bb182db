//! SW_RSCN (FC-SW, inter-switch registered state change notification): the changed ports of a
//! switch.

use super::command;
use crate::bytes::{Put, fixed, id_at, slice, u32_at, u64_at};
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};

/// SW_RSCN: N_Ports of the sender's domain have changed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SwRscn {
    /// Event at the affected address, one of [`port_event`]; 4 bits.
    pub event: u8,
    /// Format of the affected address: 0 is a port (see [`SwRscn::FORMAT_PORT`]); 4 bits.
    pub format: u8,
    /// Affected address: the port if there is one entry, the domain if there are several.
    pub affected: FcId,
    /// Detector of the change: 1 the fabric, 2 the N_Port.
    pub detection: u32,
    /// The changed ports.
    pub entries: Vec<SwRscnEntry>,
}

/// One port of an SW_RSCN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwRscnEntry {
    /// Event at the port, one of [`port_event`].
    pub state: u8,
    /// Address of the port.
    pub port_id: FcId,
    /// Name of the port.
    pub port_name: Wwpn,
    /// Name of its node.
    pub node_name: Wwnn,
}

/// Events at a port.
pub mod port_event {
    use crate::codes::code_constants;

    code_constants!(u8 {
        NONE = 0, "changed";
        ONLINE = 1, "online";
        OFFLINE = 2, "offline";
    });
}

impl SwRscn {
    /// Format of the affected address: one port.
    pub const FORMAT_PORT: u8 = 0;
    /// Format of the affected address: ports of a domain.
    pub const FORMAT_DOMAIN: u8 = 2;
    /// Detected by the fabric.
    pub const DETECTED_BY_FABRIC: u32 = 1;
    const HEAD_BYTES: usize = 16;
    const ENTRY_BYTES: usize = 20;

    /// Reads an SW_RSCN, the command word included.
    pub fn parse(payload: &[u8]) -> Result<SwRscn, ParseError> {
        let b = fixed::<{ Self::HEAD_BYTES }>("SW_RSCN", payload)?;
        let len = usize::try_from(u32_at(b, 12)).unwrap_or(usize::MAX).saturating_mul(Self::ENTRY_BYTES);
        let entries = slice("SW_RSCN entries", payload, Self::HEAD_BYTES, len)?.chunks_exact(Self::ENTRY_BYTES);
        Ok(SwRscn {
            event: b[4] >> 4,
            format: b[4] & 0x0f,
            affected: id_at(b, 5),
            detection: u32_at(b, 8),
            entries: entries
                .map(|b| SwRscnEntry {
                    state: b[0],
                    port_id: id_at(b, 1),
                    port_name: Wwpn(u64_at(b, 4)),
                    node_name: Wwnn(u64_at(b, 12)),
                })
                .collect(),
        })
    }

    /// Appends the SW_RSCN.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_slice(&[command::SW_RSCN, 0, 0, 0]);
        out.put_word(self.event << 4 | self.format & 0x0f, self.affected);
        out.put_u32(self.detection);
        out.put_len32(self.entries.len());
        for entry in &self.entries {
            out.put_word(entry.state, entry.port_id);
            out.put_u64(entry.port_name.0);
            out.put_u64(entry.node_name.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_went_online() {
        let notification = SwRscn {
            event: port_event::ONLINE,
            format: SwRscn::FORMAT_PORT,
            affected: FcId::new(0x05_0102),
            detection: SwRscn::DETECTED_BY_FABRIC,
            entries: vec![SwRscnEntry {
                state: port_event::ONLINE,
                port_id: FcId::new(0x05_0102),
                port_name: Wwpn(0x1000_0000_c9aa_bbcc),
                node_name: Wwnn(0x2000_0000_c9aa_bbcc),
            }],
        };
        let bytes = [
            0x1b, 0, 0, 0, 0x10, 5, 1, 2, 0, 0, 0, 1, 0, 0, 0, 1, // header
            1, 5, 1, 2, 0x10, 0, 0, 0, 0xc9, 0xaa, 0xbb, 0xcc, 0x20, 0, 0, 0, 0xc9, 0xaa, 0xbb, 0xcc,
        ];
        let mut out = Vec::new();
        notification.emit(&mut out);
        assert_eq!(out, bytes);
        assert_eq!(SwRscn::parse(&bytes), Ok(notification));
    }
}
