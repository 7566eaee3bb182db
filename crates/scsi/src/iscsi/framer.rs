//! PDU boundaries in a byte stream: [`Framer`], one for each connection, and [`Layout`], the
//! lengths that follow from the agreed digests (RFC 7143, section 11.2).

use sanloom_wire::iscsi::{BHS_BYTES, Bhs, digest, padding};

/// Length of data in memory. No data segment comes near the limit of 2^32 - 1 bytes, which a longer
/// one gets.
pub(crate) fn len32(len: usize) -> u32 {
    debug_assert!(len <= u32::MAX as usize, "data of {len} bytes");
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Digests of a connection, and the lengths of the parts of a PDU that follow from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// CRC-32C after each header.
    pub header_digest: bool,
    /// CRC-32C after each data segment.
    pub data_digest: bool,
}

impl Layout {
    /// Length of the header digest, in bytes.
    #[inline]
    pub const fn head_digest_bytes(self) -> usize {
        if self.header_digest { digest::DIGEST_BYTES } else { 0 }
    }

    /// Length of the padding and the digest that follow a data segment, in bytes; 0 without data.
    #[inline]
    pub const fn tail_bytes(self, data_bytes: u32) -> usize {
        let digest = if self.data_digest { digest::DIGEST_BYTES } else { 0 };
        if data_bytes == 0 { 0 } else { padding(data_bytes) as usize + digest }
    }

    /// Returns whether the header digest `crc` fits the bytes of a header. Without header digests
    /// every header fits.
    #[inline]
    pub fn is_head_intact(self, header: &[u8], crc: &[u8]) -> bool {
        !self.header_digest || digest::of(header) == *crc
    }

    /// Writes a header without additional segments, and its digest. Returns their length.
    ///
    /// # Panics
    /// If `out` is shorter than header and digest.
    #[inline]
    pub fn put_head(self, bhs: &Bhs, out: &mut [u8]) -> usize {
        let len = BHS_BYTES + self.head_digest_bytes();
        out[..BHS_BYTES].copy_from_slice(&bhs.0);
        if self.header_digest {
            out[BHS_BYTES..len].copy_from_slice(&digest::of(&bhs.0));
        }
        len
    }

    /// Writes the padding and the digest of a data segment whose CRC is `crc`. Returns their
    /// length.
    ///
    /// # Panics
    /// If `out` is shorter than [`tail_bytes`](Self::tail_bytes).
    pub fn put_tail(self, data_bytes: u32, crc: u32, out: &mut [u8]) -> usize {
        let len = self.tail_bytes(data_bytes);
        let pad = if data_bytes == 0 { 0 } else { padding(data_bytes) as usize };
        out[..pad].fill(0);
        if pad < len {
            let crc = digest::append(crc, &out[..pad]);
            out[pad..len].copy_from_slice(&digest::to_bytes(crc));
        }
        len
    }
}

/// Destination of a data segment. `Id` identifies the buffers of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination<Id> {
    /// Collect the segment and pass it as text.
    Text,
    /// Write the segment into this buffer, and then report its end.
    Buffer {
        /// Owner of the buffer.
        id: Id,
        /// Offset of the first byte in the buffer.
        at: u32,
    },
    /// Discard the segment, and then report its end.
    Skip,
}

/// Kind and number of the bytes that the framer requires next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needed {
    /// This many bytes for [`Framer::take`].
    Bytes(usize),
    /// Number of bytes of a data segment, whose destination the session determines. The driver
    /// passes them in pieces to [`Framer::data`].
    Data(u32),
}

/// Unit that the last bytes have completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Nothing yet.
    More,
    /// Header, available from [`Framer::bhs`] and [`Framer::ahs`].
    Header,
    /// Data segment of the last header.
    Segment {
        /// True if the data digest is right or was not negotiated.
        intact: bool,
    },
    /// The stream cannot be parsed any further.
    Broken(Broken),
}

/// Reason why a stream cannot be parsed further.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum Broken {
    /// Wrong header digest, so the start of the next PDU is unknown.
    #[error("a header has a wrong digest")]
    HeaderDigest,
    /// Data segment longer than the MaxRecvDataSegmentLength that this side declared.
    #[error("a data segment is longer than was agreed")]
    TooLong,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Basic,
    /// Additional header segments and the header digest.
    Additional(usize),
    /// Remaining bytes of the data segment.
    Data(u32),
    /// Padding and data digest.
    Tail(usize),
}

/// Tracks the PDUs of one stream. It buffers one header and no data.
#[derive(Clone, Debug)]
pub struct Framer {
    state: State,
    bhs: Bhs,
    ahs: Vec<u8>,
    layout: Layout,
    max_data_bytes: u32,
    /// CRC of the data received so far in this segment.
    crc: u32,
}

impl Framer {
    /// Creates a framer for a new connection, on which digests are still off.
    pub fn new(max_data_bytes: u32) -> Framer {
        Framer {
            state: State::Basic,
            bhs: Bhs([0; BHS_BYTES]),
            ahs: Vec::new(),
            layout: Layout::default(),
            max_data_bytes,
            crc: 0,
        }
    }

    /// Applies the parameters agreed at login, from the next PDU on.
    pub fn agree(&mut self, layout: Layout, max_data_bytes: u32) {
        (self.layout, self.max_data_bytes) = (layout, max_data_bytes);
    }

    /// Returns the bytes that the framer requires next.
    #[inline]
    pub fn needed(&self) -> Needed {
        match self.state {
            State::Basic => Needed::Bytes(BHS_BYTES),
            State::Additional(bytes) | State::Tail(bytes) => Needed::Bytes(bytes),
            State::Data(bytes) => Needed::Data(bytes),
        }
    }

    /// Last basic header segment.
    #[inline]
    pub fn bhs(&self) -> &Bhs {
        &self.bhs
    }

    /// Additional header segments that followed the last basic header.
    pub fn ahs(&self) -> &[u8] {
        &self.ahs
    }

    /// Returns whether the stream stands between two PDUs.
    pub fn is_idle(&self) -> bool {
        self.state == State::Basic
    }

    /// Consumes the bytes requested by [`Needed::Bytes`].
    pub fn take(&mut self, bytes: &[u8]) -> Taken {
        match self.state {
            State::Basic => {
                let Some(bhs) = bytes.first_chunk() else { return Taken::More };
                self.bhs = Bhs(*bhs);
                self.ahs.clear();
                if self.bhs.data_bytes() > self.max_data_bytes {
                    return Taken::Broken(Broken::TooLong);
                }
                let more = self.bhs.ahs_bytes() + self.layout.head_digest_bytes();
                if more > 0 {
                    self.state = State::Additional(more);
                    return Taken::More;
                }
                self.header_complete()
            }
            State::Additional(_) => {
                let (ahs, crc) = bytes.split_at(self.bhs.ahs_bytes().min(bytes.len()));
                if self.layout.header_digest
                    && digest::to_bytes(digest::append(digest::append(0, &self.bhs.0), ahs)) != *crc
                {
                    return Taken::Broken(Broken::HeaderDigest);
                }
                self.ahs.extend_from_slice(ahs);
                self.header_complete()
            }
            State::Tail(_) => {
                let (padding, crc) = bytes.split_at((self.bhs.padding() as usize).min(bytes.len()));
                let intact = !self.layout.data_digest || digest::to_bytes(digest::append(self.crc, padding)) == *crc;
                self.state = State::Basic;
                Taken::Segment { intact }
            }
            State::Data(_) => self.data(bytes),
        }
    }

    fn header_complete(&mut self) -> Taken {
        self.crc = 0;
        self.state = match self.bhs.data_bytes() {
            0 => State::Basic,
            bytes => State::Data(bytes),
        };
        Taken::Header
    }

    /// Consumes the next piece of a data segment, at most as long as the count in [`Needed::Data`].
    #[inline]
    pub fn data(&mut self, piece: &[u8]) -> Taken {
        let State::Data(left) = self.state else { return Taken::More };
        if self.layout.data_digest {
            self.crc = digest::append(self.crc, piece);
        }
        let left = left.saturating_sub(len32(piece.len()));
        if left > 0 {
            self.state = State::Data(left);
            return Taken::More;
        }
        let tail = self.layout.tail_bytes(self.bhs.data_bytes());
        if tail > 0 {
            self.state = State::Tail(tail);
            return Taken::More;
        }
        self.state = State::Basic;
        Taken::Segment { intact: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::iscsi::{Ahs, DataOut, Head, NO_TAG};

    fn pdu(data: &[u8], ahs: &[u8], digests: bool) -> Vec<u8> {
        let header = DataOut {
            flags: 0x80,
            lun: [0; 8],
            initiator_tag: 1,
            target_tag: NO_TAG,
            exp_stat_sn: 0,
            data_sn: 0,
            offset: 0,
        };
        let head = Head { ahs_words: (ahs.len() / 4) as u8, ..Head::with_data(header, data.len() as u32) };
        let mut bytes = [&head.to_bytes()[..], ahs].concat();
        if digests {
            bytes.extend(digest::of(&bytes));
        }
        let padded = [data, &vec![0; data.len().wrapping_neg() & 3]].concat();
        bytes.extend_from_slice(&padded);
        if digests && !data.is_empty() {
            bytes.extend(digest::of(&padded));
        }
        bytes
    }

    /// Feeds a stream, with data in pieces of at most `step` bytes, and returns every completed
    /// unit.
    fn follow(framer: &mut Framer, mut stream: &[u8], step: usize) -> Vec<Taken> {
        let mut all = Vec::new();
        loop {
            let take = match framer.needed() {
                Needed::Bytes(bytes) => bytes,
                Needed::Data(bytes) => step.min(bytes as usize),
            };
            let Some((piece, rest)) = stream.split_at_checked(take) else { return all };
            let taken = framer.take(piece);
            stream = rest;
            if taken != Taken::More {
                all.push(taken);
            }
            if matches!(taken, Taken::Broken(_)) {
                return all;
            }
        }
    }

    #[test]
    fn pdus_of_every_length_are_framed_with_and_without_digests() {
        let mut ahs = Vec::new();
        Ahs::BidirectionalRead { expected_bytes: 1 }.emit(&mut ahs);
        for digests in [false, true] {
            let mut framer = Framer::new(100);
            framer.agree(Layout { header_digest: digests, data_digest: digests }, 100);
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for len in 0..9 {
                for ahs in [&ahs[..], &[]] {
                    stream.extend(pdu(&vec![7; len], ahs, digests));
                    expected.push(Taken::Header);
                    expected.extend((len > 0).then_some(Taken::Segment { intact: true }));
                }
            }
            for step in [1, 3, 100] {
                assert_eq!(follow(&mut framer, &stream, step), expected, "{digests} {step}");
                assert!(framer.is_idle());
            }
        }
    }

    #[test]
    fn a_wrong_header_digest_ends_the_stream_and_a_wrong_data_digest_does_not() {
        let stream = pdu(b"hello", &[], true);
        let mut framer = Framer::new(100);
        framer.agree(Layout { header_digest: true, data_digest: true }, 100);
        let mut wrong = stream.clone();
        wrong[20] ^= 1;
        assert_eq!(follow(&mut framer.clone(), &wrong, 100), [Taken::Broken(Broken::HeaderDigest)]);
        let mut wrong = stream.clone();
        wrong[53] ^= 1;
        assert_eq!(follow(&mut framer, &wrong, 100), [Taken::Header, Taken::Segment { intact: false }]);
        assert_eq!(follow(&mut framer, &stream, 100), [Taken::Header, Taken::Segment { intact: true }]);
    }

    #[test]
    fn a_segment_that_is_too_long_ends_the_stream() {
        let mut framer = Framer::new(4);
        assert_eq!(follow(&mut framer, &pdu(b"hello", &[], false), 100), [Taken::Broken(Broken::TooLong)]);
    }
}
