//! The common header of FSPF messages and HLO (FC-SW, FSPF message header and hello).

use super::command;
use crate::bytes::{Put, fixed, id_at, u32_at, u64_at};
use crate::error::ParseError;

/// Common header of FSPF messages, which identifies the sender (FC-SW, FSPF message header; 20
/// bytes with the command word).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FspfHeader {
    /// Version of the protocol, [`FSPF_VERSION`].
    pub version: u8,
    /// Autonomous region; 0 unless there is a backbone.
    pub region: u8,
    /// Authentication type; 0 is none.
    pub authentication_type: u8,
    /// Domain of the switch that sends the message.
    pub domain: u8,
    /// Authentication data.
    pub authentication: u64,
}

/// FSPF version that switches use.
pub const FSPF_VERSION: u8 = 2;
/// Length of the header in bytes, the command word included.
pub(super) const FSPF_HEADER_BYTES: usize = 20;

impl FspfHeader {
    /// Header with version 2, region 0 and no authentication.
    pub const fn new(domain: u8) -> FspfHeader {
        FspfHeader { version: FSPF_VERSION, region: 0, authentication_type: 0, domain, authentication: 0 }
    }

    pub(super) fn parse(b: &[u8; FSPF_HEADER_BYTES]) -> FspfHeader {
        FspfHeader {
            version: b[4],
            region: b[5],
            authentication_type: b[6],
            domain: b[11],
            authentication: u64_at(b, 12),
        }
    }

    pub(super) fn emit(&self, command: u8, out: &mut dyn Put) {
        out.put_slice(&[command, 0, 0, 0, self.version, self.region, self.authentication_type, 0]);
        out.put_u32(self.domain.into());
        out.put_u64(self.authentication);
    }
}

/// HLO (FC-SW, hello): a switch announces itself on a link and reports the neighbour from which it
/// has received a hello.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hello {
    /// Header that identifies the sender.
    pub header: FspfHeader,
    /// Options, all reserved.
    pub options: u32,
    /// Interval between two HLOs, in seconds.
    pub hello_s: u32,
    /// Time without an HLO after which the neighbour is considered down, in seconds.
    pub dead_s: u32,
    /// Domain of the neighbour; 0 if the sender has not received it yet.
    pub recipient: u8,
    /// Index of the sending port, 24 bits.
    pub port: u32,
}

impl Hello {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 40;

    /// Reads 40 bytes, the command word included.
    pub fn parse(payload: &[u8]) -> Result<Hello, ParseError> {
        let b = fixed::<{ Self::BYTES }>("HLO", payload)?;
        Ok(Hello {
            header: FspfHeader::parse(fixed("FSPF header", b)?),
            options: u32_at(b, 20),
            hello_s: u32_at(b, 24),
            dead_s: u32_at(b, 28),
            recipient: b[35],
            port: id_at(b, 37).to_u32(),
        })
    }

    /// Appends 40 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        self.header.emit(command::HLO, out);
        for word in [self.options, self.hello_s, self.dead_s, self.recipient.into(), self.port & 0xff_ffff] {
            out.put_u32(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_of_domain_5_to_domain_6() {
        let header = FspfHeader { authentication: 0x0102_0304_0506_0708, ..FspfHeader::new(5) };
        let hello = Hello { header, options: 0, hello_s: 20, dead_s: 80, recipient: 6, port: 0x01_0203 };
        let bytes = [
            0x14, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8, // header
            0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 80, 0, 0, 0, 6, 0, 1, 2, 3,
        ];
        let mut out = Vec::new();
        hello.emit(&mut out);
        assert_eq!(out, bytes);
        assert_eq!(Hello::parse(&bytes), Ok(hello));
    }
}
