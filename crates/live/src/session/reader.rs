//! Reader of PDUs: [`PduReader`], and the bytes that were received too early: [`Unread`].

use sanloom_scsi::iscsi::framer::{Broken, Needed, Taken};
use sanloom_scsi::iscsi::{Destination, Framer, Parameters};
use sanloom_wire::iscsi::{DEFAULT_SEGMENT_BYTES, Head};
use std::borrow::Cow;
use std::io::{self, IoSliceMut, Read};

/// Minimum remainder of a data segment that is read straight into its buffer, in bytes.
const DIRECT_BYTES: u32 = 8 << 10;

/// Result of one read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// Bytes at the start of the input buffer that are to be processed.
    pub bytes: usize,
    /// True if the read filled its buffers, so that the socket may have more.
    pub is_full: bool,
}

/// Received bytes that do not form a whole unit yet. The next read continues after them.
#[derive(Debug, Default)]
pub struct Unread(Vec<u8>);

impl Unread {
    /// Returns whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of kept bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps bytes that were not consumed, after those that are kept already.
    pub fn keep(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Moves the kept bytes to the start of `input`. Returns their number.
    pub fn restore(&mut self, input: &mut [u8]) -> usize {
        let kept = self.0.len();
        input[..kept].copy_from_slice(&self.0);
        self.0.clear();
        kept
    }

    /// The kept bytes followed by `bytes`.
    pub fn join<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.0.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut all = std::mem::take(&mut self.0);
        all.extend_from_slice(bytes);
        Cow::Owned(all)
    }

    /// Reads once, after the kept bytes. Returns `None` if the socket had nothing.
    ///
    /// # Errors
    /// When the connection is lost, also by its regular end.
    pub fn read(&mut self, stream: &mut impl Read, input: &mut [u8]) -> io::Result<Option<Arrived>> {
        let kept = self.0.len();
        let Some(got) = receive(stream.read(&mut input[kept..]))? else { return Ok(None) };
        self.restore(input);
        Ok(Some(Arrived { bytes: kept + got, is_full: kept + got == input.len() }))
    }
}

/// Next unit of the input.
#[derive(Debug)]
pub enum Step<'b, Id> {
    /// All input was consumed or kept.
    Starved,
    /// Header of a PDU. Its data segment follows if it declares one.
    Header(Head),
    /// Piece of a data segment for a buffer.
    Data {
        /// Owner of the buffer.
        id: Id,
        /// Offset of the piece in the buffer, in bytes.
        at: usize,
        /// The piece.
        piece: &'b [u8],
    },
    /// Data segment with [`Destination::Text`], complete.
    Text {
        /// Header of the PDU.
        head: Head,
        /// Bytes of the segment.
        data: Box<[u8]>,
        /// True if the data digest is right or not in use.
        intact: bool,
    },
    /// End of a data segment with another destination.
    Segment {
        /// True if the data digest is right or not in use.
        intact: bool,
    },
    /// The stream cannot be parsed any further.
    Broken(Broken, Head),
}

/// Finds PDUs in the bytes of one connection, checks digests and collects text.
#[derive(Debug)]
pub struct PduReader {
    framer: Framer,
    unread: Unread,
    /// Data segment that is being collected.
    text: Vec<u8>,
    /// Received bytes of the current data segment.
    received: u32,
    /// Result of the last data, not returned yet.
    taken: Taken,
}

impl Default for PduReader {
    fn default() -> PduReader {
        PduReader {
            framer: Framer::new(DEFAULT_SEGMENT_BYTES),
            unread: Unread::default(),
            text: Vec::new(),
            received: 0,
            taken: Taken::More,
        }
    }
}

impl PduReader {
    /// Applies the parameters agreed at login, from the next PDU on.
    pub fn agree(&mut self, parameters: &Parameters) {
        self.framer.agree(parameters.layout(), parameters.receive_bytes);
    }

    /// Returns whether the connection stands between two PDUs, with no byte of the next one.
    pub fn is_between(&self) -> bool {
        self.framer.is_idle() && self.unread.is_empty() && self.taken == Taken::More
    }

    /// Bytes that were received and not consumed.
    pub fn unread(&mut self) -> &mut Unread {
        &mut self.unread
    }

    /// Buffer, offset and length of the rest of a data segment, if that should be read straight
    /// into its buffer with [`read_direct`](Self::read_direct).
    pub fn direct<Id>(&self, destination: Destination<Id>) -> Option<(Id, usize, usize)> {
        match (self.framer.needed(), destination) {
            (Needed::Data(left), Destination::Buffer { id, at }) if left >= DIRECT_BYTES && self.unread.is_empty() => {
                Some((id, (at + self.received) as usize, left as usize))
            }
            _ => None,
        }
    }

    /// Reads once, into `input`. Returns `None` if the socket had nothing.
    ///
    /// # Errors
    /// When the connection is lost, also by its regular end.
    pub fn read(&mut self, stream: &mut impl Read, input: &mut [u8]) -> io::Result<Option<Arrived>> {
        self.unread.read(stream, input)
    }

    /// Reads once: first the data segment of [`direct`](Self::direct) into `room`, then further
    /// bytes into `input`.
    ///
    /// # Errors
    /// When the connection is lost, also by its regular end.
    pub fn read_direct(
        &mut self,
        stream: &mut impl Read,
        room: &mut [u8],
        input: &mut [u8],
    ) -> io::Result<Option<Arrived>> {
        debug_assert!(self.unread.is_empty() && self.taken == Taken::More, "no earlier byte is pending");
        let all = room.len() + input.len();
        let read = stream.read_vectored(&mut [IoSliceMut::new(room), IoSliceMut::new(input)]);
        let Some(got) = receive(read)? else { return Ok(None) };
        let direct = got.min(room.len());
        self.take_data(&room[..direct]);
        Ok(Some(Arrived { bytes: got - direct, is_full: got == all }))
    }

    fn take_data(&mut self, piece: &[u8]) {
        self.taken = self.framer.data(piece);
        self.received += piece.len() as u32;
    }

    /// Removes the next unit from `input` and returns it. `destination` is that of the current data
    /// segment. An incomplete header is kept for the next read.
    pub fn next<'b, Id>(&mut self, input: &mut &'b [u8], destination: Destination<Id>) -> Step<'b, Id> {
        loop {
            let taken = std::mem::replace(&mut self.taken, Taken::More);
            let taken = match (taken, self.framer.needed()) {
                (Taken::More, Needed::Bytes(needed)) => {
                    let Some((piece, rest)) = input.split_at_checked(needed) else {
                        self.unread.keep(input);
                        *input = &[];
                        return Step::Starved;
                    };
                    *input = rest;
                    self.framer.take(piece)
                }
                (Taken::More, Needed::Data(_)) if input.is_empty() => return Step::Starved,
                (Taken::More, Needed::Data(left)) => {
                    let (piece, rest) = input.split_at(input.len().min(left as usize));
                    *input = rest;
                    let received = self.received;
                    self.take_data(piece);
                    match destination {
                        Destination::Text => self.text.extend_from_slice(piece),
                        Destination::Buffer { id, at } => {
                            return Step::Data { id, at: (at + received) as usize, piece };
                        }
                        Destination::Skip => {}
                    }
                    continue;
                }
                (taken, _) => taken,
            };
            match taken {
                Taken::More => {}
                Taken::Broken(why) => return Step::Broken(why, self.head()),
                Taken::Header => {
                    self.received = 0;
                    self.text.clear();
                    return Step::Header(self.head());
                }
                Taken::Segment { intact } if matches!(destination, Destination::Text) => {
                    let data = std::mem::take(&mut self.text).into();
                    return Step::Text { head: self.head(), data, intact };
                }
                Taken::Segment { intact } => return Step::Segment { intact },
            }
        }
    }

    fn head(&self) -> Head {
        Head::parse(&self.framer.bhs().0)
    }
}

/// Result of a read: `None` if the socket had nothing, an error at the end of the stream.
fn receive(read: io::Result<usize>) -> io::Result<Option<usize>> {
    match read {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(got) => Ok(Some(got)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::iscsi::{DataOut, NO_TAG, digest, padding};

    const NONE: [u8; 8] = [0; 8];

    fn pdu(data: &[u8], digests: bool) -> Vec<u8> {
        let header = DataOut {
            flags: 0x80,
            lun: NONE,
            initiator_tag: data.len() as u32,
            target_tag: NO_TAG,
            exp_stat_sn: 0,
            data_sn: 0,
            offset: 0,
        };
        let mut bytes = Head::with_data(header, data.len() as u32).to_bytes().to_vec();
        if digests {
            bytes.extend(digest::of(&bytes));
        }
        let mut segment = data.to_vec();
        segment.resize(data.len() + padding(data.len() as u32) as usize, 0);
        bytes.extend_from_slice(&segment);
        if digests && !data.is_empty() {
            bytes.extend(digest::of(&segment));
        }
        bytes
    }

    /// Reads at most this many bytes at a time.
    struct Slow<'b>(&'b [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let got = self.0.len().min(self.1).min(room.len());
            room[..got].copy_from_slice(&self.0[..got]);
            self.0 = &self.0[got..];
            if got == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(got) }
        }
    }

    /// Whole data segments, read in steps of `step` bytes.
    fn segments(stream: &[u8], step: usize, digests: bool, destination: Destination<u64>) -> Vec<Vec<u8>> {
        let mut reader = PduReader::default();
        let parameters = Parameters { header_digest: digests, data_digest: digests, ..Parameters::default() };
        reader.agree(&Parameters { receive_bytes: 1 << 20, ..parameters });
        let (mut socket, mut input, mut all) = (Slow(stream, step), vec![0; 32 << 10], Vec::new());
        let mut buffer = vec![0; 64 << 10];
        loop {
            let arrived = match reader.direct(destination) {
                Some((_, at, len)) => reader.read_direct(&mut socket, &mut buffer[at..at + len], &mut input),
                None => reader.read(&mut socket, &mut input),
            };
            let Some(Arrived { bytes, .. }) = arrived.unwrap() else { return all };
            let mut rest = &input[..bytes];
            loop {
                match reader.next(&mut rest, destination) {
                    Step::Starved => break,
                    Step::Header(head) if head.data_bytes > 0 => buffer.fill(0),
                    Step::Header(_) => all.push(Vec::new()),
                    Step::Data { at, piece, .. } => buffer[at..at + piece.len()].copy_from_slice(piece),
                    Step::Text { data, intact: true, .. } => all.push(data.into()),
                    Step::Segment { intact: true } => {
                        let len = reader.head().data_bytes as usize;
                        all.push(buffer[..len].to_vec());
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn segments_arrive_whole_wherever_the_stream_is_cut() {
        let data: Vec<u8> = (0..20_000).map(|number| number as u8).collect();
        let lengths = [0, 1, 4, 5000, 0, 20_000, 3];
        for digests in [false, true] {
            let stream: Vec<u8> = lengths.iter().flat_map(|len| pdu(&data[..*len], digests)).collect();
            for step in [1, 7, 100, 8192, 9000, stream.len()] {
                for destination in [Destination::Text, Destination::Buffer { id: 0, at: 0 }] {
                    let all = segments(&stream, step, digests, destination);
                    let expected: Vec<&[u8]> = lengths.iter().map(|len| &data[..*len]).collect();
                    assert_eq!(all, expected, "{digests} {step} {destination:?}");
                }
            }
        }
    }
}
