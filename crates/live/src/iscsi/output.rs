//! What is to leave through a connection: [`Egress`].

use super::buffers::Spare;
use sanloom_core::iscsi::forward::mover;
use sanloom_core::iscsi::sequence::Statuses;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, Head, digest, padding};
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::sync::Arc;

/// Pieces in one write.
const PIECES: usize = 128;
/// A header and its digest.
const HEAD_BYTES: usize = BHS_BYTES + digest::DIGEST_BYTES;
/// Padding and a digest.
const TAIL_BYTES: usize = 3 + digest::DIGEST_BYTES;

/// Bytes on their way.
#[derive(Debug)]
enum Piece {
    Head([u8; HEAD_BYTES], u8),
    Small(Box<[u8]>),
    /// Of a task's buffer.
    Data(Arc<Vec<u8>>, u32, u32),
    Tail([u8; TAIL_BYTES], u8),
    /// Of what is being followed; before that is over, [`Egress::keep`] finds it a place.
    Input(Range<usize>),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Input(range) => range.len(),
            other => other.bytes(&[]).len(),
        }
    }

    fn bytes<'p>(&'p self, input: &'p [u8]) -> &'p [u8] {
        match self {
            Piece::Input(range) => input.get(range.clone()).unwrap_or_default(),
            Piece::Head(bytes, len) => &bytes[..usize::from(*len)],
            Piece::Tail(bytes, len) => &bytes[..usize::from(*len)],
            Piece::Small(bytes) => bytes,
            Piece::Data(buffer, at, len) => buffer.get(*at as usize..(*at + *len) as usize).unwrap_or_default(),
        }
    }
}

/// PDUs that are to leave, in order.
#[derive(Debug, Default)]
pub(super) struct Egress {
    pieces: VecDeque<Piece>,
    /// Bytes of them.
    pub(super) bytes: usize,
    /// Bytes of the first piece that have left.
    sent: usize,
    /// The socket takes no more.
    pub(super) blocked: bool,
    header_digest: bool,
    data_digest: bool,
    /// Of a target, once a login is over.
    statuses: Option<Statuses>,
}

impl Egress {
    /// Digests stand behind all PDUs from now on.
    pub(super) fn agree(&mut self, header_digest: bool, data_digest: bool) {
        (self.header_digest, self.data_digest) = (header_digest, data_digest);
    }

    /// The numbers of statuses, for whoever makes PDUs of his own that leave here.
    pub(super) fn statuses(&mut self) -> &mut Option<Statuses> {
        &mut self.statuses
    }

    /// PDUs get the numbers of their statuses from now on: this is where they leave in order, whoever they are from.
    pub(super) fn number(&mut self, statuses: Statuses) {
        self.statuses = Some(statuses);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// A PDU with its own data.
    pub(super) fn push(&mut self, head: &Head, data: Box<[u8]>) {
        self.push_head(head);
        if !data.is_empty() {
            let crc = if self.data_digest { digest::append(0, &data) } else { 0 };
            let len = data.len() as u32;
            self.put(Piece::Small(data));
            self.push_tail(len, crc);
        }
    }

    /// A PDU with a part of a task's buffer.
    pub(super) fn push_data(&mut self, head: &Head, buffer: Arc<Vec<u8>>, at: u32) {
        self.push_head(head);
        let piece = Piece::Data(buffer, at, head.data_bytes);
        let crc = if self.data_digest { digest::append(0, piece.bytes(&[])) } else { 0 };
        self.put(piece);
        self.push_tail(head.data_bytes, crc);
    }

    fn push_head(&mut self, head: &Head) {
        let mut bytes = [0; HEAD_BYTES];
        let mut bhs = Bhs(head.to_bytes());
        if let Some(statuses) = &mut self.statuses {
            statuses.number(&mut bhs);
        }
        bytes[..BHS_BYTES].copy_from_slice(&bhs.0);
        let mut len = BHS_BYTES;
        if self.header_digest {
            let crc = digest::of(&bytes[..BHS_BYTES]);
            bytes[BHS_BYTES..].copy_from_slice(&crc);
            len = HEAD_BYTES;
        }
        self.put(Piece::Head(bytes, len as u8));
    }

    fn push_tail(&mut self, data_bytes: u32, crc: u32) {
        let mut len = padding(data_bytes) as usize;
        let mut bytes = [0; TAIL_BYTES];
        if self.data_digest {
            let crc = digest::append(crc, &bytes[..len]);
            bytes[len..len + digest::DIGEST_BYTES].copy_from_slice(&digest::to_bytes(crc));
            len += digest::DIGEST_BYTES;
        }
        if len > 0 {
            self.put(Piece::Tail(bytes, len as u8));
        }
    }

    /// Bytes of whole PDUs, or of one that goes on with the next ones.
    pub(super) fn push_bytes(&mut self, bytes: Box<[u8]>) {
        self.put(Piece::Small(bytes));
    }

    fn put(&mut self, piece: Piece) {
        self.bytes += piece.len();
        self.pieces.push_back(piece);
    }

    /// Sends what the socket takes.
    pub(super) fn flush(&mut self, stream: &mut impl Write, spare: &mut Spare) -> io::Result<()> {
        self.send(stream, &[], &[], spare)
    }

    /// Bytes behind everything else, with one call where the socket takes all of it. What it does not take of `input` has to be kept
    /// ([`Egress::keep`]).
    pub(super) fn send(
        &mut self,
        stream: &mut impl Write,
        more: &[mover::Piece],
        input: &[u8],
        spare: &mut Spare,
    ) -> io::Result<()> {
        // How many of `more` have left, and how much of the next one.
        let (mut next, mut skip) = (0, 0);
        while !self.blocked && (!self.pieces.is_empty() || next < more.len()) {
            let written = match &more[next..] {
                [piece] if self.pieces.is_empty() => stream.write(&piece.bytes(input)[skip..]),
                rest => self.write(stream, rest, skip, input),
            };
            match written {
                Ok(sent) => {
                    let of_queue = sent.min(self.bytes);
                    self.left(of_queue, spare);
                    skip += sent - of_queue;
                    while let Some(piece) = more.get(next)
                        && skip >= piece.len()
                    {
                        skip -= piece.len();
                        next += 1;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        for piece in more.get(next..).unwrap_or_default() {
            match piece {
                mover::Piece::Input(range) => self.put(Piece::Input(range.start + skip..range.end)),
                mover::Piece::Own(..) => self.put(Piece::Small(piece.bytes(input)[skip..].into())),
            }
            skip = 0;
        }
        Ok(())
    }

    /// Writes what waits, and `more` without its first bytes, as much as one call has room for.
    fn write(&self, stream: &mut impl Write, more: &[mover::Piece], skip: usize, input: &[u8]) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); PIECES];
        let queued = self.pieces.iter().map(|piece| piece.bytes(input)).enumerate();
        let queued = queued.map(|(number, bytes)| if number == 0 { &bytes[self.sent..] } else { bytes });
        let more = more.iter().map(|piece| piece.bytes(input)).enumerate();
        let more = more.map(|(number, bytes)| if number == 0 { &bytes[skip..] } else { bytes });
        let mut count = 0;
        for (slice, bytes) in slices.iter_mut().zip(queued.chain(more)) {
            *slice = IoSlice::new(bytes);
            count += 1;
        }
        stream.write_vectored(&slices[..count])
    }

    /// Bytes of the input that wait.
    pub(super) fn borrowed_bytes(&self) -> usize {
        self.pieces.iter().map(|piece| if let Piece::Input(range) = piece { range.len() } else { 0 }).sum()
    }

    /// What waits of the input stays in it.
    pub(super) fn keep(&mut self, input: &Arc<Vec<u8>>) {
        for piece in &mut self.pieces {
            if let Piece::Input(range) = piece {
                *piece = Piece::Data(input.clone(), range.start as u32, range.len() as u32);
            }
        }
    }

    /// What waits of the input is copied.
    pub(super) fn copy(&mut self, input: &[u8]) {
        for piece in &mut self.pieces {
            if let Piece::Input(range) = piece {
                *piece = Piece::Small(input[range.clone()].into());
            }
        }
    }

    fn left(&mut self, sent: usize, spare: &mut Spare) {
        self.bytes -= sent;
        self.sent += sent;
        while let Some(first) = self.pieces.front() {
            let len = first.len();
            if self.sent < len {
                return;
            }
            self.sent -= len;
            if let Some(Piece::Data(buffer, ..)) = self.pieces.pop_front()
                && let Ok(buffer) = Arc::try_unwrap(buffer)
            {
                spare.keep(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, then no more.
    struct Narrow(Vec<u8>, usize);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.1);
            self.1 -= taken;
            self.0.extend_from_slice(&bytes[..taken]);
            if taken == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What leaves, wherever the socket stops, and wherever the rest of the input is kept.
    #[test]
    fn what_a_socket_does_not_take_leaves_later_in_its_order() {
        let input: Vec<u8> = (0..=255).collect();
        let own = mover::Piece::Own([7; HEAD_BYTES], 48);
        let pieces = [mover::Piece::Input(3..100), own.clone(), mover::Piece::Input(100..256)];
        let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes(&input)).copied().collect();
        for (room, keeps) in (0..=all.len()).flat_map(|room| [(room, false), (room, true)]) {
            let (mut egress, mut spare) = (Egress::default(), Spare::default());
            let mut socket = Narrow(Vec::new(), room);
            egress.send(&mut socket, &pieces, &input, &mut spare).unwrap();
            assert_eq!(egress.bytes, all.len() - room);
            let mut end = 0;
            let waits: usize = pieces
                .iter()
                .map(|piece| {
                    let begin = end;
                    end += piece.len();
                    if *piece == own { 0 } else { end.saturating_sub(begin.max(room)) }
                })
                .sum();
            assert_eq!(egress.borrowed_bytes(), waits, "{room}");
            egress.push_bytes(Box::new([9]));
            match keeps {
                true => egress.keep(&Arc::new(input.clone())),
                false => egress.copy(&input),
            }
            assert_eq!(egress.borrowed_bytes(), 0);
            (socket.1, egress.blocked) = (usize::MAX, false);
            egress.flush(&mut socket, &mut spare).unwrap();
            assert!(egress.is_empty() && egress.bytes == 0);
            assert_eq!(socket.0, [&all[..], &[9]].concat(), "{room}, {keeps}");
        }
    }
}
