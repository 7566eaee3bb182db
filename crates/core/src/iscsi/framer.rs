//! Where PDUs begin and end in a stream: [`Framer`], for all connections (RFC 7143, section 11.2).

use sanloom_wire::iscsi::{BHS_BYTES, Bhs, digest};

/// What the next bytes of the stream are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// As many bytes for [`Framer::take`].
    Bytes(usize),
    /// As many bytes of a data segment, which go where the machine says; in pieces to [`Framer::data`].
    Data(u32),
}

/// What bytes have completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Nothing yet.
    More,
    /// A header: [`Framer::bhs`], [`Framer::ahs`].
    Header,
    /// The data segment of the last header. Not intact: its digest is wrong.
    Segment {
        /// The digest is right, or there is none.
        intact: bool,
    },
    /// The stream cannot be followed any further.
    Broken(Broken),
}

/// Why a stream cannot be followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum Broken {
    /// A header digest is wrong: nobody knows where the next PDU begins.
    #[error("a header has a wrong digest")]
    HeaderDigest,
    /// A data segment is longer than we said that we take.
    #[error("a data segment is longer than was agreed")]
    TooLong,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Basic,
    /// Additional headers and the header digest.
    Additional(usize),
    /// Bytes of data that are still to come.
    Data(u32),
    /// Padding and data digest.
    Tail(usize),
}

/// Follows the PDUs of a stream. It keeps one header and no data.
#[derive(Clone, Debug)]
pub struct Framer {
    state: State,
    bhs: Bhs,
    ahs: Vec<u8>,
    header_digest: bool,
    data_digest: bool,
    max_data_bytes: u32,
    /// CRC of the data that have come.
    crc: u32,
}

impl Framer {
    /// Before the first byte of a connection: no digests.
    pub fn new(max_data_bytes: u32) -> Framer {
        Framer {
            state: State::Basic,
            bhs: Bhs([0; BHS_BYTES]),
            ahs: Vec::new(),
            header_digest: false,
            data_digest: false,
            max_data_bytes,
            crc: 0,
        }
    }

    /// What was agreed at login holds from the next PDU on.
    pub fn agree(&mut self, header_digest: bool, data_digest: bool, max_data_bytes: u32) {
        (self.header_digest, self.data_digest, self.max_data_bytes) = (header_digest, data_digest, max_data_bytes);
    }

    /// What comes next.
    #[inline]
    pub fn want(&self) -> Want {
        match self.state {
            State::Basic => Want::Bytes(BHS_BYTES),
            State::Additional(bytes) | State::Tail(bytes) => Want::Bytes(bytes),
            State::Data(bytes) => Want::Data(bytes),
        }
    }

    /// The last basic header.
    #[inline]
    pub fn bhs(&self) -> &Bhs {
        &self.bhs
    }

    /// The additional headers behind it.
    pub fn ahs(&self) -> &[u8] {
        &self.ahs
    }

    /// Between two PDUs.
    pub fn is_idle(&self) -> bool {
        self.state == State::Basic
    }

    /// The bytes that [`Want::Bytes`] asked for.
    pub fn take(&mut self, bytes: &[u8]) -> Taken {
        match self.state {
            State::Basic => {
                let Some(bhs) = bytes.first_chunk() else { return Taken::More };
                self.bhs = Bhs(*bhs);
                self.ahs.clear();
                if self.bhs.data_bytes() > self.max_data_bytes {
                    return Taken::Broken(Broken::TooLong);
                }
                let more = self.bhs.ahs_bytes() + if self.header_digest { digest::DIGEST_BYTES } else { 0 };
                if more > 0 {
                    self.state = State::Additional(more);
                    return Taken::More;
                }
                self.header_complete()
            }
            State::Additional(_) => {
                let (ahs, crc) = bytes.split_at(self.bhs.ahs_bytes().min(bytes.len()));
                if self.header_digest && digest::to_bytes(digest::append(digest::append(0, &self.bhs.0), ahs)) != *crc {
                    return Taken::Broken(Broken::HeaderDigest);
                }
                self.ahs.extend_from_slice(ahs);
                self.header_complete()
            }
            State::Tail(_) => {
                let (padding, crc) = bytes.split_at((self.bhs.padding() as usize).min(bytes.len()));
                let intact = !self.data_digest || digest::to_bytes(digest::append(self.crc, padding)) == *crc;
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

    /// The next piece of a data segment, at most as long as [`Want::Data`] says.
    #[inline]
    pub fn data(&mut self, piece: &[u8]) -> Taken {
        let State::Data(left) = self.state else { return Taken::More };
        if self.data_digest {
            self.crc = digest::append(self.crc, piece);
        }
        let left = left.saturating_sub(piece.len() as u32);
        if left > 0 {
            self.state = State::Data(left);
            return Taken::More;
        }
        let tail = self.bhs.padding() as usize + if self.data_digest { digest::DIGEST_BYTES } else { 0 };
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

    /// Feeds a stream in pieces of at most `step` bytes of data; everything that was completed.
    fn follow(framer: &mut Framer, mut stream: &[u8], step: usize) -> Vec<Taken> {
        let mut all = Vec::new();
        loop {
            let take = match framer.want() {
                Want::Bytes(bytes) => bytes,
                Want::Data(bytes) => step.min(bytes as usize),
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
    fn pdus_of_every_length_are_followed_with_and_without_digests() {
        let mut ahs = Vec::new();
        Ahs::BidirectionalRead { expected_bytes: 1 }.emit(&mut ahs);
        for digests in [false, true] {
            let mut framer = Framer::new(100);
            framer.agree(digests, digests, 100);
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
        framer.agree(true, true, 100);
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
