//! ESC (FC-SW, exchange switch capabilities): selection of the routing protocol on a link.

use crate::bytes::{Put, fixed, put_counted, slice, u16_at};
use crate::error::ParseError;

/// Routing protocols that a switch supports.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Esc {
    /// Vendor of the switch, eight characters.
    pub vendor: [u8; 8],
    /// Protocols in order of preference. At most 5,460 are sent.
    pub protocols: Vec<EscProtocol>,
}

/// Accept of an ESC: the protocol that the replying switch selected.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EscAcc {
    /// Vendor of the replying switch, eight characters.
    pub vendor: [u8; 8],
    /// Selected protocol.
    pub protocol: EscProtocol,
}

/// A routing protocol, 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EscProtocol {
    /// Vendor that defines `id`. For the protocols of FC-SW, the vendor of the switch.
    pub vendor: [u8; 8],
    /// [`EscProtocol::FSPF_BACKBONE`], [`EscProtocol::FSPF`], or a vendor-specific protocol.
    pub id: u16,
}

impl EscProtocol {
    /// FSPF within a backbone of autonomous regions.
    pub const FSPF_BACKBONE: u16 = 1;
    /// FSPF.
    pub const FSPF: u16 = 2;
    const BYTES: usize = 12;

    fn read(b: &[u8]) -> EscProtocol {
        let mut vendor = [0; 8];
        vendor.copy_from_slice(&b[..8]);
        EscProtocol { vendor, id: u16_at(b, 10) }
    }

    fn write(&self, out: &mut dyn Put) {
        out.put_slice(&self.vendor);
        out.put_u16(0);
        out.put_u16(self.id);
    }
}

impl Esc {
    const HEAD_BYTES: usize = 12;
    const MAX_PROTOCOLS: usize = (u16::MAX as usize - Self::HEAD_BYTES) / EscProtocol::BYTES;

    /// Reads the payload, the command word included.
    pub fn parse(payload: &[u8]) -> Result<Esc, ParseError> {
        let b = fixed::<{ Self::HEAD_BYTES }>("ESC", payload)?;
        let got_bytes = usize::from(u16_at(b, 2));
        if got_bytes < Self::HEAD_BYTES || !got_bytes.is_multiple_of(EscProtocol::BYTES) {
            return Err(ParseError::Length { field: "ESC", got_bytes, rule: "a positive multiple of 12 bytes" });
        }
        let protocols = slice("ESC protocols", payload, Self::HEAD_BYTES, got_bytes - Self::HEAD_BYTES)?;
        let mut vendor = [0; 8];
        vendor.copy_from_slice(&b[4..12]);
        Ok(Esc { vendor, protocols: protocols.chunks_exact(EscProtocol::BYTES).map(EscProtocol::read).collect() })
    }

    /// Appends the payload, beginning with the command word.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        put_counted(out, |len, out| self.put(command, len, out));
    }

    fn put(&self, command: u8, len: usize, out: &mut dyn Put) {
        out.put_u8(command);
        out.put_u8(0);
        out.put_len16(len);
        out.put_slice(&self.vendor);
        for protocol in self.protocols.iter().take(Self::MAX_PROTOCOLS) {
            protocol.write(out);
        }
    }
}

impl EscAcc {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 24;

    /// Reads 24 bytes, the command word included.
    pub fn parse(payload: &[u8]) -> Result<EscAcc, ParseError> {
        let b = fixed::<{ Self::BYTES }>("ESC accept", payload)?;
        let mut vendor = [0; 8];
        vendor.copy_from_slice(&b[4..12]);
        Ok(EscAcc { vendor, protocol: EscProtocol::read(&b[12..]) })
    }

    /// Appends 24 bytes, beginning with the command word.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        out.put_u32(u32::from(command) << 24);
        out.put_slice(&self.vendor);
        self.protocol.write(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sw_ils::{SwAcc, SwIls, command};

    #[test]
    fn fields_are_at_the_offsets_of_the_standard() {
        let protocol = EscProtocol { vendor: *b"SANLOOM ", id: EscProtocol::FSPF };
        let esc = Esc { vendor: *b"SANLOOM ", protocols: vec![protocol] };
        let expected = [&[0x30, 0, 0, 24][..], b"SANLOOM ", b"SANLOOM ", &[0, 0, 0, 2]].concat();
        let mut bytes = Vec::new();
        esc.emit(command::ESC, &mut bytes);
        assert_eq!(bytes, expected);
        assert_eq!(SwIls::parse(&expected, None), Ok(SwIls::Esc(esc)));

        let accept = [&[2, 0, 0, 0][..], b"OTHER   ", b"SANLOOM ", &[0, 0, 0, 2]].concat();
        let parsed = SwIls::parse(&accept, Some(command::ESC));
        assert_eq!(parsed, Ok(SwIls::SwAcc(SwAcc::Esc(EscAcc { vendor: *b"OTHER   ", protocol }))));
    }

    #[test]
    fn wrong_lengths_are_errors() {
        for len in [0, 11, 23, 36] {
            let bytes = [&[0x30, 0, 0, len][..], &[0; 20]].concat();
            assert!(Esc::parse(&bytes).is_err(), "{len}");
        }
    }
}
