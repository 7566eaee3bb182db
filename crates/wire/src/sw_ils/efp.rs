//! EFP (FC-SW, exchange fabric parameters): the principal switch and the owner of each domain.
//! Request and accept.

use crate::bytes::{Put, fixed, put_counted, slice, u16_at, u64_at};
use crate::error::ParseError;
use crate::id::Wwnn;

/// A switch's view of its fabric. Request and accept have the same layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Efp {
    /// Priority of the principal switch, or of the best candidate so far. 1 is the highest
    /// priority; a switch with FF never becomes principal.
    pub principal_priority: u8,
    /// Name of the principal switch or candidate.
    pub principal_name: Wwnn,
    /// Assigned domains; empty until the fabric is configured. At most 4,094 are sent.
    pub records: Vec<EfpRecord>,
}

/// One record of an [`Efp`], 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EfpRecord {
    /// Kind of `id`: [`EfpRecord::DOMAIN`] or [`EfpRecord::MULTICAST`].
    pub kind: u8,
    /// Domain, or number of a multicast group.
    pub id: u8,
    /// Name of the switch that owns `id`.
    pub switch_name: Wwnn,
}

impl EfpRecord {
    /// The record names a domain.
    pub const DOMAIN: u8 = 1;
    /// The record names a multicast group.
    pub const MULTICAST: u8 = 2;
    const BYTES: usize = 16;

    /// Record of a domain and the switch that owns it.
    pub const fn domain(id: u8, switch_name: Wwnn) -> EfpRecord {
        EfpRecord { kind: Self::DOMAIN, id, switch_name }
    }
}

impl Efp {
    const HEAD_BYTES: usize = 16;
    const MAX_RECORDS: usize = (u16::MAX as usize - Self::HEAD_BYTES) / EfpRecord::BYTES;

    /// Reads the payload, the command word included.
    pub fn parse(payload: &[u8]) -> Result<Efp, ParseError> {
        let b = fixed::<{ Self::HEAD_BYTES }>("EFP", payload)?;
        if usize::from(b[1]) != EfpRecord::BYTES {
            return Err(ParseError::Length { field: "EFP record", got_bytes: b[1].into(), rule: "16 bytes" });
        }
        let got_bytes = usize::from(u16_at(b, 2));
        if got_bytes < Self::HEAD_BYTES || !got_bytes.is_multiple_of(EfpRecord::BYTES) {
            return Err(ParseError::Length { field: "EFP", got_bytes, rule: "a positive multiple of 16 bytes" });
        }
        let records = slice("EFP records", payload, Self::HEAD_BYTES, got_bytes - Self::HEAD_BYTES)?;
        Ok(Efp {
            principal_priority: b[7],
            principal_name: Wwnn(u64_at(b, 8)),
            records: records
                .chunks_exact(EfpRecord::BYTES)
                .map(|r| EfpRecord { kind: r[0], id: r[1], switch_name: Wwnn(u64_at(r, 8)) })
                .collect(),
        })
    }

    /// Appends the payload, beginning with the command word.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        put_counted(out, |len, out| self.put(command, len, out));
    }

    fn put(&self, command: u8, len: usize, out: &mut dyn Put) {
        out.put_u8(command);
        out.put_len8(EfpRecord::BYTES);
        out.put_len16(len);
        out.put_zeros(3);
        out.put_u8(self.principal_priority);
        out.put_u64(self.principal_name.0);
        for record in self.records.iter().take(Self::MAX_RECORDS) {
            out.put_slice(&[record.kind, record.id, 0, 0, 0, 0, 0, 0]);
            out.put_u64(record.switch_name.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sw_ils::{SwIls, command};

    #[test]
    fn fields_are_at_the_offsets_of_the_standard() {
        let efp = Efp {
            principal_priority: 2,
            principal_name: Wwnn(0x1000_0005_0102_0300),
            records: vec![EfpRecord::domain(0x61, Wwnn(0x1000_0005_0102_0307))],
        };
        let expected = [
            [0x11, 16, 0, 32, 0, 0, 0, 2, 0x10, 0, 0, 5, 1, 2, 3, 0],
            [1, 0x61, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 5, 1, 2, 3, 7],
        ]
        .concat();
        let mut bytes = Vec::new();
        efp.emit(command::EFP, &mut bytes);
        assert_eq!(bytes, expected);
        assert_eq!(SwIls::parse(&expected, None), Ok(SwIls::Efp(efp)));
    }

    #[test]
    fn wrong_lengths_are_errors() {
        let good = [0x11, 16, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
        assert!(Efp::parse(&good).is_ok());
        for (at, value) in [(1, 15), (1, 0), (3, 0), (3, 17), (3, 32)] {
            let mut bad = good;
            bad[at] = value;
            assert!(Efp::parse(&bad).is_err(), "byte {at} is {value}");
        }
    }
}
