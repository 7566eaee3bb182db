//! EFP (FC-SW, exchange fabric parameters): who is principal switch, and who has which domain. Request and accept.

use crate::bytes::{Put, fixed, slice, u16_at, u64_at};
use crate::error::ParseError;
use crate::id::Wwnn;

/// What a switch knows of its fabric; request and accept have the same shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Efp {
    /// Priority of the principal switch, or of the best one heard of: 1 is the highest, FF never.
    pub principal_priority: u8,
    /// Name of that switch.
    pub principal_name: Wwnn,
    /// Domains; empty until the fabric is configured. At most 4,094 go out.
    pub records: Vec<EfpRecord>,
}

/// One record of an [`Efp`], 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EfpRecord {
    /// What `id` counts: [`EfpRecord::DOMAIN`] or [`EfpRecord::MULTICAST`].
    pub kind: u8,
    /// Domain, or number of a multicast group.
    pub id: u8,
    /// The switch that has it.
    pub switch_name: Wwnn,
}

impl EfpRecord {
    /// The record names a domain.
    pub const DOMAIN: u8 = 1;
    /// The record names a multicast group.
    pub const MULTICAST: u8 = 2;
    const BYTES: usize = 16;

    /// A switch and its domain.
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
    pub fn emit(&self, command: u8, out: &mut Vec<u8>) {
        out.put_u8(command);
        out.put_u8(EfpRecord::BYTES as u8);
        out.put_u16(self.encoded_len() as u16);
        out.put_zeros(3);
        out.put_u8(self.principal_priority);
        out.put_u64(self.principal_name.0);
        for record in self.records.iter().take(Self::MAX_RECORDS) {
            out.extend_from_slice(&[record.kind, record.id, 0, 0, 0, 0, 0, 0]);
            out.put_u64(record.switch_name.0);
        }
    }

    /// Bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        Self::HEAD_BYTES + EfpRecord::BYTES * self.records.len().min(Self::MAX_RECORDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sw_ils::{SwIls, command};

    #[test]
    fn bytes_stand_where_the_table_has_them() {
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
