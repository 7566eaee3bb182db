//! Basic encoding rules (X.690), as far as SNMP uses them (RFC 3417, section 8): [`Reader`] and
//! [`Writer`]. Lengths are definite, and tags have one byte.

/// Types of ASN.1 and of SNMP (RFC 2578, section 7.1).
pub mod tag {
    #![allow(missing_docs, reason = "the names are those of the standard")]
    pub const INTEGER: u8 = 0x02;
    pub const OCTETS: u8 = 0x04;
    pub const OID: u8 = 0x06;
    pub const SEQUENCE: u8 = 0x30;
    pub const COUNTER32: u8 = 0x41;
    pub const GAUGE32: u8 = 0x42;
    pub const TIME_TICKS: u8 = 0x43;
    pub const COUNTER64: u8 = 0x46;
    pub const NO_SUCH_OBJECT: u8 = 0x80;
    pub const NO_SUCH_INSTANCE: u8 = 0x81;
    pub const END_OF_MIB_VIEW: u8 = 0x82;
}

/// Maximum number of parts of an object identifier (RFC 2578, section 3.5).
pub const MAX_PARTS: usize = 128;

/// An object identifier.
pub type Oid = Vec<u32>;

/// Reads values from the start of a slice; `None` for bytes that are none.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Tag and content of the next value.
    pub fn value(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (bytes.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            // An indefinite length, and lengths that no packet has.
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// Content of the next value, which has this tag.
    pub fn tagged(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.value().filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
    }

    /// The next value, an integer of 32 bits.
    pub fn integer(&mut self) -> Option<i32> {
        integer(self.tagged(tag::INTEGER)?)
    }

    /// The next value, an object identifier.
    pub fn oid(&mut self) -> Option<Oid> {
        oid(self.tagged(tag::OID)?)
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn integer(content: &[u8]) -> Option<i32> {
    let (&first, rest) = content.split_first()?;
    let sign = i64::from(first as i8);
    // Some encoders send more leading bytes than are needed.
    let value = rest.iter().take(8).fold(sign, |value, byte| value << 8 | i64::from(*byte));
    (content.len() <= 5).then_some(value).and_then(|value| i32::try_from(value).ok())
}

fn oid(content: &[u8]) -> Option<Oid> {
    let mut parts: Oid = Vec::new();
    let mut part = 0_u32;
    for (at, byte) in content.iter().enumerate() {
        if part > u32::MAX >> 7 {
            return None;
        }
        part = part << 7 | u32::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            if at + 1 == content.len() {
                return None;
            }
            continue;
        }
        if parts.is_empty() {
            let first = (part / 40).min(2);
            parts.extend([first, part - first * 40]);
        } else {
            parts.push(part);
        }
        if parts.len() > MAX_PARTS {
            return None;
        }
        part = 0;
    }
    (!parts.is_empty()).then_some(parts)
}

/// Writes values from the last to the first, so that lengths are known.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Number of bytes so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The message.
    pub fn finish(mut self) -> Vec<u8> {
        self.0.reverse();
        self.0
    }

    /// Puts tag and length before everything that was written since `start`.
    pub fn wrap(&mut self, tag: u8, start: usize) {
        let length = self.0.len() - start;
        match u8::try_from(length) {
            Ok(length @ 0..=0x7f) => self.0.push(length),
            _ => {
                let bytes: Vec<u8> = length.to_le_bytes().into_iter().collect();
                let count = (bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count()).max(1);
                self.0.extend(&bytes[..count]);
                self.0.push(0x80 | count as u8);
            }
        }
        self.0.push(tag);
    }

    /// Writes a value.
    pub fn value(&mut self, tag: u8, content: &[u8]) {
        let start = self.0.len();
        self.0.extend(content.iter().rev());
        self.wrap(tag, start);
    }

    /// Writes an integer, in as few bytes as possible.
    pub fn integer(&mut self, tag: u8, value: i128) {
        let bytes = value.to_be_bytes();
        let sign = if value < 0 { 0xff } else { 0 };
        let mut skipped = bytes.iter().take_while(|byte| **byte == sign).count().min(bytes.len() - 1);
        // The first bit is the sign.
        if skipped > 0 && (bytes[skipped] ^ sign) & 0x80 != 0 {
            skipped -= 1;
        }
        self.value(tag, &bytes[skipped..]);
    }

    /// Writes an object identifier.
    pub fn oid(&mut self, oid: &[u32]) {
        let start = self.0.len();
        let (first, rest) = match oid {
            [first, second, rest @ ..] => (first.saturating_mul(40).saturating_add(*second), rest),
            _ => (0, &[][..]),
        };
        for part in rest.iter().rev().chain([&first]) {
            let mut part = *part;
            self.0.push((part & 0x7f) as u8);
            while part > 0x7f {
                part >>= 7;
                self.0.push(0x80 | (part & 0x7f) as u8);
            }
        }
        self.wrap(tag::OID, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::default();
        write(&mut writer);
        writer.finish()
    }

    /// Encodings of X.690, section 8.3, and of RFC 3416.
    #[test]
    fn integers_have_as_few_bytes_as_possible() {
        let cases: [(i128, &[u8]); 6] = [
            (0, &[2, 1, 0]),
            (127, &[2, 1, 0x7f]),
            (128, &[2, 2, 0, 0x80]),
            (-128, &[2, 1, 0x80]),
            (-129, &[2, 2, 0xff, 0x7f]),
            (i32::MAX as i128, &[2, 4, 0x7f, 0xff, 0xff, 0xff]),
        ];
        for (value, bytes) in cases {
            assert_eq!(written(|writer| writer.integer(tag::INTEGER, value)), bytes);
            assert_eq!(Reader(bytes).integer(), i32::try_from(value).ok());
        }
        let most = written(|writer| writer.integer(tag::COUNTER64, u64::MAX.into()));
        assert_eq!(most, [0x46, 9, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(Reader(&[2, 5, 1, 0, 0, 0, 0]).integer(), None);
        assert_eq!(Reader(&[2, 0]).integer(), None);
    }

    #[test]
    fn object_identifiers_have_seven_bits_in_each_byte() {
        let brocade = [1, 3, 6, 1, 4, 1, 1588, 2];
        let bytes = [6, 8, 0x2b, 6, 1, 4, 1, 0x8c, 0x34, 2];
        assert_eq!(written(|writer| writer.oid(&brocade)), bytes);
        assert_eq!(Reader(&bytes).oid(), Some(brocade.to_vec()));
        assert_eq!(Reader(&[6, 1, 0]).oid(), Some(vec![0, 0]));
        let largest = [2, 5, u32::MAX];
        assert_eq!(Reader(&written(|writer| writer.oid(&largest))).oid(), Some(largest.to_vec()));
        for wrong in [&[6, 0][..], &[6, 2, 0x2b, 0x86], &[6, 7, 0x2b, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], &[6, 9, 1]] {
            assert_eq!(Reader(wrong).oid(), None, "{wrong:?}");
        }
        let long: Vec<u8> = [6, 0x81, 200].into_iter().chain([1; 200]).collect();
        assert_eq!(Reader(&long).oid(), None);
    }

    #[test]
    fn lengths_are_short_or_long_and_never_beyond_the_packet() {
        let text = [b'x'; 300];
        let bytes = written(|writer| writer.value(tag::OCTETS, &text));
        assert_eq!(bytes[..4], [4, 0x82, 1, 44]);
        assert_eq!(Reader(&bytes).tagged(tag::OCTETS), Some(&text[..]));
        assert_eq!(written(|writer| writer.value(tag::OCTETS, &[0; 200]))[..3], [4, 0x81, 200]);
        for wrong in [&[4, 0x80, 0, 0][..], &[4, 0x85, 0, 0, 0, 0, 1, 0], &[4, 0x84, 255, 255, 255, 255], &[4]] {
            assert_eq!(Reader(wrong).value(), None, "{wrong:?}");
        }
    }
}
