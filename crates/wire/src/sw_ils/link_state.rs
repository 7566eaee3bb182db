//! Link state records (FC-SW, FSPF): the links of each switch, the age of a record, and the
//! comparison of two records.

use crate::bytes::{Put, counted, fixed, id_at, len16, put_counted, slice, u16_at, u32_at};
use crate::error::ParseError;
use std::sync::Arc;

/// A link state record without its age. No switch modifies it in transit, so the switches of one
/// process share it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LinkStateRecord {
    /// Options, all reserved.
    pub options: u32,
    /// Domain that the record describes (link state identifier).
    pub domain: u8,
    /// Domain of the switch that created the record.
    pub advertiser: u8,
    /// Incarnation number, which identifies the version of the record.
    pub incarnation: Incarnation,
    /// Checksum as it was received; see [`is_intact`](Self::is_intact).
    pub checksum: u16,
    /// Type-specific content.
    pub body: LsrBody,
}

/// The part of a record that depends on its type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LsrBody {
    /// Type 1: the links of a switch.
    Links(Vec<LinkDescriptor>),
    /// Another type, such as 2, the summary of an autonomous region.
    Other {
        /// Type of the record, not 1.
        kind: u8,
        /// The bytes after the record header.
        bytes: Box<[u8]>,
    },
}

/// One link of a switch, as reported by that switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkDescriptor {
    /// Domain at the other end.
    pub neighbour: u8,
    /// Index of the port at this end, 24 bits.
    pub port: u32,
    /// Index of the port at the other end, 24 bits.
    pub neighbour_port: u32,
    /// Kind of link: [`LinkDescriptor::POINT_TO_POINT`]; F0 to FF are vendor specific.
    pub kind: u8,
    /// Cost of the link for outgoing frames.
    pub cost: u16,
}

impl LinkDescriptor {
    /// The only kind of link that the standard defines.
    pub const POINT_TO_POINT: u8 = 1;
    const BYTES: usize = 16;

    fn parse(b: &[u8]) -> LinkDescriptor {
        LinkDescriptor {
            neighbour: b[3],
            port: id_at(b, 5).to_u32(),
            neighbour_port: id_at(b, 9).to_u32(),
            kind: b[12],
            cost: u16_at(b, 14),
        }
    }

    fn emit(&self, out: &mut dyn Put) {
        for word in [self.neighbour.into(), self.port & 0xff_ffff, self.neighbour_port & 0xff_ffff] {
            out.put_u32(word);
        }
        out.put_u32(u32::from(self.kind) << 24 | u32::from(self.cost));
    }
}

/// Incarnation number of a record: a signed number that increases from the second most negative
/// value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Incarnation(pub u32);

impl Incarnation {
    /// Incarnation of a switch's first record.
    pub const FIRST: Incarnation = Incarnation(0x8000_0001);
    /// Highest incarnation. Before [`FIRST`](Self::FIRST) can follow, the record must be removed
    /// from every switch.
    pub const LAST: Incarnation = Incarnation(0x7fff_ffff);

    /// Incarnation of the next record; `None` after the last.
    pub const fn next(self) -> Option<Incarnation> {
        match self {
            Incarnation::LAST => None,
            Incarnation(n) => Some(Incarnation(n.wrapping_add(1))),
        }
    }

    /// True if this is the higher, and therefore the newer, of the two.
    pub const fn is_newer_than(self, other: Incarnation) -> bool {
        self.0.cast_signed() > other.0.cast_signed()
    }
}

/// Header of a record, by which an LSA identifies the record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LsrHeader {
    /// Type of the record.
    pub kind: u8,
    /// Age of the record, in seconds.
    pub age_s: u16,
    /// Options, all reserved.
    pub options: u32,
    /// Domain that the record describes.
    pub domain: u8,
    /// Domain of the switch that created the record.
    pub advertiser: u8,
    /// Incarnation number, which identifies the version of the record.
    pub incarnation: Incarnation,
    /// Checksum of the record.
    pub checksum: u16,
    /// Length of the whole record, in bytes.
    pub length_bytes: u16,
}

impl LsrHeader {
    pub(super) const BYTES: usize = 24;

    pub(super) fn parse(data: &[u8]) -> Result<LsrHeader, ParseError> {
        let b = fixed::<{ Self::BYTES }>("link state record header", data)?;
        Ok(LsrHeader {
            kind: b[0],
            age_s: u16_at(b, 2),
            options: u32_at(b, 4),
            domain: b[11],
            advertiser: b[15],
            incarnation: Incarnation(u32_at(b, 16)),
            checksum: u16_at(b, 20),
            length_bytes: u16_at(b, 22),
        })
    }

    pub(super) fn emit(&self, out: &mut dyn Put) {
        out.put_slice(&[self.kind, 0]);
        out.put_u16(self.age_s);
        for word in [self.options, self.domain.into(), self.advertiser.into(), self.incarnation.0] {
            out.put_u32(word);
        }
        out.put_u16(self.checksum);
        out.put_u16(self.length_bytes);
    }
}

/// Type of a record that describes the links of a switch.
const SWITCH_LINKS: u8 = 1;
/// Offset of the checksum in a record, in bytes.
const CHECKSUM_AT: usize = 20;

impl LinkStateRecord {
    /// Record of a switch's own links.
    pub fn of_switch(domain: u8, incarnation: Incarnation, links: Vec<LinkDescriptor>) -> LinkStateRecord {
        let body = LsrBody::Links(links);
        let mut record = LinkStateRecord { options: 0, domain, advertiser: domain, incarnation, checksum: 0, body };
        record.checksum = record.computed_checksum();
        record
    }

    /// Links of the switch; empty for a record of another type.
    pub fn links(&self) -> &[LinkDescriptor] {
        match &self.body {
            LsrBody::Links(links) => links,
            LsrBody::Other { .. } => &[],
        }
    }

    /// True if the checksum matches the record, with reserved bytes taken as zero.
    pub fn is_intact(&self) -> bool {
        self.checksum == self.computed_checksum()
    }

    /// Header of the record with the given age.
    pub fn header(&self, age_s: u16) -> LsrHeader {
        self.header_with(age_s, self.encoded_len())
    }

    /// Header of the record with the given age and length in bytes.
    fn header_with(&self, age_s: u16, len: usize) -> LsrHeader {
        let kind = match self.body {
            LsrBody::Links(_) => SWITCH_LINKS,
            LsrBody::Other { kind, .. } => kind,
        };
        LsrHeader {
            kind,
            age_s,
            options: self.options,
            domain: self.domain,
            advertiser: self.advertiser,
            incarnation: self.incarnation,
            checksum: self.checksum,
            length_bytes: len16(len),
        }
    }

    /// Length of the record in bytes, header included.
    pub fn encoded_len(&self) -> usize {
        counted(|len, out| self.put(0, len, out))
    }

    /// Fletcher's checksum of the record without its age (ISO 8473, as in OSPF).
    fn computed_checksum(&self) -> u16 {
        let mut bytes = Vec::with_capacity(self.encoded_len());
        self.emit(0, &mut bytes);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
        // The age is left out, so the checksum is two bytes earlier.
        fletcher(&bytes[..2], &bytes[4..], CHECKSUM_AT - 2)
    }

    fn emit(&self, age_s: u16, out: &mut dyn Put) {
        put_counted(out, |len, out| self.put(age_s, len, out));
    }

    fn put(&self, age_s: u16, len: usize, out: &mut dyn Put) {
        self.header_with(age_s, len).emit(out);
        match &self.body {
            LsrBody::Links(links) => {
                out.put_u16(0);
                out.put_len16(links.len());
                links.iter().for_each(|link| link.emit(out));
            }
            LsrBody::Other { bytes, .. } => out.put_slice(bytes),
        }
    }
}

/// Computes the two check bytes at `at` that make both Fletcher sums over `head` and `tail` zero.
fn fletcher(head: &[u8], tail: &[u8], at: usize) -> u16 {
    let (mut sum, mut sum_of_sums) = (0u64, 0u64);
    for byte in head.iter().chain(tail) {
        sum = (sum + u64::from(*byte)) % 255;
        sum_of_sums = (sum_of_sums + sum) % 255;
    }
    let behind = (head.len() + tail.len() - at - 1) as u64;
    let x = (behind % 255 * sum + 255 - sum_of_sums) % 255;
    let y = (510 - sum - x) % 255;
    // Zero and 255 are equivalent, but zero would mean "no checksum".
    let check = |value: u64| if value == 0 { 255 } else { (value & 0xff) as u16 };
    check(x) << 8 | check(y)
}

/// A record in transit, with its age.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AgedRecord {
    /// Age of the record, in seconds.
    pub age_s: u16,
    /// The record.
    pub record: Arc<LinkStateRecord>,
}

impl AgedRecord {
    /// Reads a record at the start of `data`. Also returns its length in bytes.
    pub(super) fn parse(data: &[u8]) -> Result<(AgedRecord, usize), ParseError> {
        let header = LsrHeader::parse(data)?;
        let length = usize::from(header.length_bytes);
        let wrong_length = |rule| ParseError::Length { field: "link state record", got_bytes: length, rule };
        let rest = length.checked_sub(LsrHeader::BYTES).ok_or(wrong_length("at least 24"))?;
        let bytes = slice("link state record", data, LsrHeader::BYTES, rest)?;
        let body = match header.kind {
            SWITCH_LINKS => {
                let descriptors = bytes.get(4..).ok_or(wrong_length("at least 28"))?;
                if descriptors.len() != LinkDescriptor::BYTES * usize::from(u16_at(bytes, 2)) {
                    return Err(wrong_length("28 and 16 for each link"));
                }
                LsrBody::Links(descriptors.chunks_exact(LinkDescriptor::BYTES).map(LinkDescriptor::parse).collect())
            }
            kind => LsrBody::Other { kind, bytes: bytes.into() },
        };
        let LsrHeader { options, domain, advertiser, incarnation, checksum, .. } = header;
        let record = Arc::new(LinkStateRecord { options, domain, advertiser, incarnation, checksum, body });
        Ok((AgedRecord { age_s: header.age_s, record }, length))
    }

    pub(super) fn emit(&self, out: &mut dyn Put) {
        self.record.emit(self.age_s, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(neighbour: u8, cost: u16) -> LinkDescriptor {
        let kind = LinkDescriptor::POINT_TO_POINT;
        LinkDescriptor { neighbour, port: 0x10203, neighbour_port: 0x40506, kind, cost }
    }

    #[test]
    fn a_record_with_one_link() {
        let record = LinkStateRecord::of_switch(5, Incarnation::FIRST, vec![link(6, 500)]);
        let mut out = Vec::new();
        record.emit(0x1234, &mut out);
        let head = [1, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 5, 0x80, 0, 0, 1];
        let body = [0, 0, 0, 1, 0, 0, 0, 6, 0, 1, 2, 3, 0, 4, 5, 6, 1, 0, 0x01, 0xf4];
        assert_eq!((&out[..20], &out[22..24], &out[24..]), (&head[..], &[0, 44][..], &body[..]));
        let (aged, length) = AgedRecord::parse(&out).unwrap();
        assert_eq!((aged.age_s, &*aged.record, length), (0x1234, &record, 44));
    }

    #[test]
    fn both_sums_over_an_intact_record_without_its_age_are_zero() {
        for links in 0..40 {
            let links = (0..links).map(|n| link(n, 1 + 300 * u16::from(n))).collect();
            let record = LinkStateRecord::of_switch(239, Incarnation(0x8000_1234), links);
            let mut out = Vec::new();
            record.emit(77, &mut out);
            let (mut sum, mut sums) = (0u32, 0u32);
            for byte in out[..2].iter().chain(&out[4..]) {
                sum = (sum + u32::from(*byte)) % 255;
                sums = (sums + sum) % 255;
            }
            assert_eq!((sum, sums), (0, 0));
            assert!(record.is_intact());
            assert!(!LinkStateRecord { domain: 238, ..record }.is_intact());
        }
    }

    #[test]
    fn incarnations_grow_through_zero_and_end() {
        assert_eq!(Incarnation(u32::MAX).next(), Some(Incarnation(0)));
        assert!(Incarnation(0).is_newer_than(Incarnation(u32::MAX)));
        assert!(Incarnation::LAST.is_newer_than(Incarnation::FIRST));
        assert!(!Incarnation::FIRST.is_newer_than(Incarnation::FIRST));
        assert_eq!(Incarnation::LAST.next(), None);
    }

    #[test]
    fn a_length_that_contradicts_the_links_is_an_error() {
        let mut out = Vec::new();
        LinkStateRecord::of_switch(5, Incarnation::FIRST, vec![link(6, 500)]).emit(0, &mut out);
        for length in [0, 23, 24, 27, 28, 43] {
            out[23] = length;
            assert!(matches!(AgedRecord::parse(&out), Err(ParseError::Length { .. })), "{length}");
        }
    }

    #[test]
    fn a_record_of_another_type_survives() {
        let body = LsrBody::Other { kind: 2, bytes: [1, 2, 3, 4, 5].into() };
        let record = LinkStateRecord { body, ..LinkStateRecord::of_switch(5, Incarnation::FIRST, Vec::new()) };
        let mut out = Vec::new();
        record.emit(0, &mut out);
        let (aged, length) = AgedRecord::parse(&out).unwrap();
        assert_eq!((&*aged.record, length, aged.record.links()), (&record, 29, &[][..]));
    }
}
