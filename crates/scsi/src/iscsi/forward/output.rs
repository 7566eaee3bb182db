//! Pieces that the Data Mover emits: [`Piece`] and [`Output`].

use super::{CloseReason, Conn};
use sanloom_wire::iscsi::{BHS_BYTES, digest};
use std::ops::Range;

/// Length of a header with its digest.
pub(super) const HEAD_BYTES: usize = BHS_BYTES + digest::DIGEST_BYTES;

/// Bytes to be sent on a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// This range of the input buffer.
    Input(Range<usize>),
    /// Bytes of the mover itself; the number is how many of them are valid.
    Own([u8; HEAD_BYTES], u8),
}

impl Piece {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Piece::Input(range) => range.len(),
            Piece::Own(_, len) => usize::from(*len),
        }
    }

    /// Returns whether the piece has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes; ranges index `input`.
    pub fn bytes<'p>(&'p self, input: &'p [u8]) -> &'p [u8] {
        match self {
            Piece::Input(range) => &input[range.clone()],
            Piece::Own(bytes, len) => &bytes[..usize::from(*len)],
        }
    }
}

/// Output of a run, apart from its [`Stop`](super::mover::Stop).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Output {
    /// Pieces for the host, in order.
    pub to_host: Vec<Piece>,
    /// Pieces for each back end, indexed by its number.
    pub to_backs: Vec<Vec<Piece>>,
    /// Connections to close after all pieces have been sent.
    pub closes: Vec<(Conn, CloseReason)>,
}

impl Output {
    /// Returns whether there is nothing to send or close.
    pub fn is_empty(&self) -> bool {
        self.to_host.is_empty() && self.to_backs.iter().all(Vec::is_empty) && self.closes.is_empty()
    }

    pub(super) fn to(&mut self, conn: Conn) -> &mut Vec<Piece> {
        let Conn::Back(back) = conn else { return &mut self.to_host };
        let number = usize::from(back);
        if self.to_backs.len() <= number {
            self.to_backs.resize_with(number + 1, Vec::new);
        }
        &mut self.to_backs[number]
    }

    pub(super) fn piece(&mut self, to: Conn, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let pieces = self.to(to);
        match pieces.last_mut() {
            // The piece continues the previous one, so both leave as one.
            Some(Piece::Input(before)) if before.end == range.start => before.end = range.end,
            _ => pieces.push(Piece::Input(range)),
        }
    }

    pub(super) fn own(&mut self, to: Conn, bytes: &[u8]) {
        let mut own = [0; HEAD_BYTES];
        own[..bytes.len()].copy_from_slice(bytes);
        self.to(to).push(Piece::Own(own, u8::try_from(bytes.len()).unwrap_or(u8::MAX)));
    }
}
