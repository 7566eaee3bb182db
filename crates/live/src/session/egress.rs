//! Output queue of a connection: [`Egress`].

use super::buffers::Spare;
use sanloom_scsi::iscsi::Layout;
use sanloom_scsi::iscsi::forward::mover;
use sanloom_scsi::iscsi::sequence::Statuses;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, Head, digest};
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of pieces in one write.
const PIECES: usize = 128;
/// Length of a header with its digest.
const HEAD_BYTES: usize = BHS_BYTES + digest::DIGEST_BYTES;
/// Maximum length of padding and data digest.
const TAIL_BYTES: usize = 3 + digest::DIGEST_BYTES;

/// Consecutive unsent bytes.
#[derive(Debug)]
enum Piece {
    Head([u8; HEAD_BYTES], u8),
    Small(Box<[u8]>),
    /// Range of a task's buffer: first byte and length.
    Data(Arc<Vec<u8>>, u32, u32),
    Tail([u8; TAIL_BYTES], u8),
    /// Range of the input buffer. [`Egress::keep`] or [`Egress::copy`] replaces it before that
    /// buffer is used again.
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

/// PDUs queued for the socket, in order.
#[derive(Debug, Default)]
pub struct Egress {
    pieces: VecDeque<Piece>,
    /// Unsent bytes of all pieces.
    pub bytes: usize,
    /// Sent bytes of the first piece.
    sent: usize,
    /// True after the socket has accepted no more bytes, until it is writable again.
    is_blocked: bool,
    layout: Layout,
    /// Status numbers of the connection. A target has them after the end of the login; an initiator
    /// never has any.
    statuses: Option<Statuses>,
}

impl Egress {
    /// Applies the digests agreed at login, from the next PDU on.
    pub fn agree(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Numbers statuses from the next PDU on. PDUs of both paths are sent here in order, so this is
    /// the only place that assigns status numbers.
    pub fn number(&mut self, statuses: Statuses) {
        self.statuses = Some(statuses);
    }

    /// Status numbers for PDUs that are queued complete; `None` before the end of a login.
    pub fn statuses(&mut self) -> Option<&mut Statuses> {
        self.statuses.as_mut()
    }

    /// Returns whether to wait for the socket to become writable.
    pub fn wants_write(&self) -> bool {
        self.is_blocked && !self.is_empty()
    }

    /// Records that the socket is writable.
    pub fn set_writable(&mut self) {
        self.is_blocked = false;
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Appends a PDU with its own data.
    pub fn push(&mut self, head: &Head, data: Box<[u8]>) {
        self.push_head(head);
        if !data.is_empty() {
            let crc = if self.layout.data_digest { digest::append(0, &data) } else { 0 };
            let len = data.len() as u32;
            self.put(Piece::Small(data));
            self.push_tail(len, crc);
        }
    }

    /// Appends a PDU whose data segment is in a task's buffer, from offset `at` on.
    pub fn push_data(&mut self, head: &Head, buffer: Arc<Vec<u8>>, at: u32) {
        self.push_head(head);
        let piece = Piece::Data(buffer, at, head.data_bytes);
        let crc = if self.layout.data_digest { digest::append(0, piece.bytes(&[])) } else { 0 };
        self.put(piece);
        self.push_tail(head.data_bytes, crc);
    }

    fn push_head(&mut self, head: &Head) {
        let mut bytes = [0; HEAD_BYTES];
        let mut bhs = Bhs(head.to_bytes());
        if let Some(statuses) = &mut self.statuses {
            statuses.number(&mut bhs);
        }
        let len = self.layout.put_head(&bhs, &mut bytes);
        self.put(Piece::Head(bytes, len as u8));
    }

    fn push_tail(&mut self, data_bytes: u32, crc: u32) {
        let mut bytes = [0; TAIL_BYTES];
        let len = self.layout.put_tail(data_bytes, crc, &mut bytes);
        if len > 0 {
            self.put(Piece::Tail(bytes, len as u8));
        }
    }

    /// Appends bytes of whole PDUs, or of one that continues with the next call.
    pub fn push_bytes(&mut self, bytes: Box<[u8]>) {
        self.put(Piece::Small(bytes));
    }

    fn put(&mut self, piece: Piece) {
        self.bytes += piece.len();
        self.pieces.push_back(piece);
    }

    /// Sends as much as the socket accepts.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn flush(&mut self, stream: &mut impl Write, spare: &mut Spare) -> io::Result<()> {
        self.send(stream, &[], &[], spare)
    }

    /// Sends `more` after the queue, with one call if the socket accepts everything. Ranges of
    /// `input` that it does not accept are queued, until [`Egress::keep`] or [`Egress::copy`].
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn send(
        &mut self,
        stream: &mut impl Write,
        more: &[mover::Piece],
        input: &[u8],
        spare: &mut Spare,
    ) -> io::Result<()> {
        // Number of pieces of `more` that are sent, and bytes of the next one.
        let (mut next, mut skip) = (0, 0);
        while !self.is_blocked && (!self.pieces.is_empty() || next < more.len()) {
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
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_blocked = true,
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

    /// Writes the queue, then `more` without its first `skip` bytes, up to [`PIECES`].
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

    /// Queued bytes of the input buffer.
    pub fn borrowed_bytes(&self) -> usize {
        self.pieces.iter().map(|piece| if let Piece::Input(range) = piece { range.len() } else { 0 }).sum()
    }

    /// Makes the queued ranges of the input buffer refer to `input`, which nothing else uses.
    pub fn keep(&mut self, input: &Arc<Vec<u8>>) {
        for piece in &mut self.pieces {
            if let Piece::Input(range) = piece {
                *piece = Piece::Data(input.clone(), range.start as u32, range.len() as u32);
            }
        }
    }

    /// Copies the queued ranges of the input buffer.
    pub fn copy(&mut self, input: &[u8]) {
        for piece in &mut self.pieces {
            if let Piece::Input(range) = piece {
                *piece = Piece::Small(input[range.clone()].into());
            }
        }
    }

    /// Removes sent bytes.
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

    /// Written bytes, and the number of bytes that are still accepted.
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

    #[test]
    fn bytes_that_a_socket_does_not_accept_are_sent_later_in_order() {
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
            socket.1 = usize::MAX;
            egress.set_writable();
            egress.flush(&mut socket, &mut spare).unwrap();
            assert!(egress.is_empty() && egress.bytes == 0);
            assert_eq!(socket.0, [&all[..], &[9]].concat(), "{room}, {keeps}");
        }
    }
}
