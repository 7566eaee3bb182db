//! RDI (FC-SW, request domain identifier): the domains that a switch requests, and in the accept
//! the granted domains.

use crate::bytes::{Put, fixed, put_counted, slice, u16_at, u64_at};
use crate::error::ParseError;
use crate::id::Wwnn;

/// Domains of a switch: requested in the request, granted in the accept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rdi {
    /// Name of the requesting switch, even if other switches forwarded the request.
    pub switch_name: Wwnn,
    /// Domains; in a request, 0 stands for any domain. At most 16,380 are sent.
    pub domains: Vec<u8>,
}

impl Rdi {
    const HEAD_BYTES: usize = 12;
    const MAX_DOMAINS: usize = (u16::MAX as usize - Self::HEAD_BYTES) / 4;

    /// Reads the payload, the command word included.
    pub fn parse(payload: &[u8]) -> Result<Rdi, ParseError> {
        let b = fixed::<{ Self::HEAD_BYTES }>("RDI", payload)?;
        let got_bytes = usize::from(u16_at(b, 2));
        if got_bytes < Self::HEAD_BYTES || !got_bytes.is_multiple_of(4) {
            return Err(ParseError::Length { field: "RDI", got_bytes, rule: "a multiple of 4, at least 12 bytes" });
        }
        let words = slice("RDI domains", payload, Self::HEAD_BYTES, got_bytes - Self::HEAD_BYTES)?;
        Ok(Rdi { switch_name: Wwnn(u64_at(b, 4)), domains: words.chunks_exact(4).map(|word| word[3]).collect() })
    }

    /// Appends the payload, beginning with the command word.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        put_counted(out, |len, out| self.put(command, len, out));
    }

    fn put(&self, command: u8, len: usize, out: &mut dyn Put) {
        out.put_u8(command);
        out.put_u8(0);
        out.put_len16(len);
        out.put_u64(self.switch_name.0);
        for domain in self.domains.iter().take(Self::MAX_DOMAINS) {
            out.put_u32(u32::from(*domain));
        }
    }
}

/// Length of a DIA (FC-SW, domain identifier assigned) and of its accept, in bytes: command word
/// and name of the sender.
pub(super) const DIA_BYTES: usize = 12;

/// Reads the sender's name from a DIA or its accept.
pub(super) fn parse_dia(payload: &[u8]) -> Result<Wwnn, ParseError> {
    fixed::<DIA_BYTES>("DIA", payload).map(|b| Wwnn(u64_at(b, 4)))
}

/// Appends a DIA or its accept.
pub(super) fn emit_dia(command: u8, switch_name: Wwnn, out: &mut dyn Put) {
    out.put_u32(u32::from(command) << 24);
    out.put_u64(switch_name.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sw_ils::{SwIls, command};

    #[test]
    fn fields_are_at_the_offsets_of_the_standard() {
        let rdi = Rdi { switch_name: Wwnn(0x1000_0005_0102_0300), domains: vec![0x61] };
        let expected = [0x13, 0, 0, 16, 0x10, 0, 0, 5, 1, 2, 3, 0, 0, 0, 0, 0x61];
        let mut bytes = Vec::new();
        rdi.emit(command::RDI, &mut bytes);
        assert_eq!(bytes, expected);
        assert_eq!(SwIls::parse(&expected, None), Ok(SwIls::Rdi(rdi)));
        for (at, value) in [(3, 8), (3, 15), (3, 20)] {
            let mut bad = expected;
            bad[at] = value;
            assert!(Rdi::parse(&bad).is_err(), "byte {at} is {value}");
        }
        let dia = [0x12, 0, 0, 0, 0x10, 0, 0, 5, 1, 2, 3, 0];
        assert_eq!(SwIls::parse(&dia, None), Ok(SwIls::Dia { switch_name: Wwnn(0x1000_0005_0102_0300) }));
    }
}
