//! Messages that are longer than a frame: [`Reassembly`] and [`cut`].

use sanloom_core::time::{Instant, Span};
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Payload};
use std::collections::BTreeMap;

/// Longest message of a peer that is put together, in bytes: a name server's answer about every address of a domain.
const MAX_MESSAGE_BYTES: usize = 2 << 20;
/// Messages that are being put together at once.
const MAX_OPEN: usize = 256;
/// What is not complete after this time never will be (E_D_TOV).
const PATIENCE: Span = Span::from_secs(2);

/// Names a sequence: sender, receiver, exchange, who of both sends, and its number.
type Key = (FcId, FcId, u16, u16, bool, u8);

/// Puts messages together that come in several frames.
#[derive(Debug, Default)]
pub struct Reassembly {
    open: BTreeMap<Key, Part>,
    /// Frames that belonged to no message, or to one that will never be complete.
    pub discarded: u64,
}

#[derive(Debug)]
struct Part {
    first: Header,
    next_seq_cnt: u16,
    bytes: Vec<u8>,
    until: Instant,
}

impl Reassembly {
    /// A frame of a message: its header, and its data field with the fill bytes. Returns the message when it is whole, under
    /// the header of its first frame. What is FCP or a basic link service is read; everything else stays bytes, because only
    /// who asked knows what an answer means.
    pub fn accept(&mut self, now: Instant, header: Header, field: &[u8]) -> Option<Frame> {
        let last = header.f_ctl.has(FCtl::END_SEQUENCE);
        let Some(len) = field.len().checked_sub(if last { header.f_ctl.fill_bytes() } else { 0 }) else {
            self.discarded += 1;
            return None;
        };
        let field = &field[..len];
        if last && header.seq_cnt == 0 || header.r_ctl.is_link_control() {
            return Some(self.whole(header, field.into()));
        }
        let responder = header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
        let key = (header.s_id, header.d_id, header.ox_id, header.rx_id, responder, header.seq_id);
        if header.seq_cnt == 0 {
            self.tidy(now);
            let part = Part { first: header, next_seq_cnt: 1, bytes: field.to_vec(), until: now + PATIENCE };
            if self.open.len() < MAX_OPEN {
                self.open.insert(key, part);
            } else {
                self.discarded += 1;
            }
            return None;
        }
        let part = self
            .open
            .get_mut(&key)
            .filter(|part| part.next_seq_cnt == header.seq_cnt && part.bytes.len() + field.len() <= MAX_MESSAGE_BYTES);
        let Some(part) = part else {
            self.open.remove(&key);
            self.discarded += 1;
            return None;
        };
        part.bytes.extend_from_slice(field);
        part.next_seq_cnt += 1;
        part.until = now + PATIENCE;
        if !last {
            return None;
        }
        let part = self.open.remove(&key)?;
        let f_ctl = FCtl(header.f_ctl.0).with_fill_for(part.bytes.len());
        Some(self.whole(Header { f_ctl, ..part.first }, part.bytes.into()))
    }

    fn whole(&mut self, header: Header, bytes: Box<[u8]>) -> Frame {
        let typed = match header.fc_type {
            FcType::FCP | FcType::BLS => sanloom_wire::Message::parse(&header, &bytes, None).ok(),
            _ => None,
        };
        Frame { header, payload: typed.map_or(Payload::Bytes(bytes), Payload::Typed) }
    }

    fn tidy(&mut self, now: Instant) {
        let before = self.open.len();
        self.open.retain(|_, part| part.until > now);
        self.discarded += (before - self.open.len()) as u64;
    }
}

/// The frames of a message whose data fields are at most `frame_size_bytes` long, a multiple of four. One that fits stays as
/// it is.
pub fn cut(frame: Frame, frame_size_bytes: usize) -> Vec<Frame> {
    if frame.payload.len() <= frame_size_bytes {
        return vec![frame];
    }
    let mut bytes = Vec::with_capacity(frame.payload.len());
    frame.payload.write_to(&mut bytes);
    let count = bytes.len().div_ceil(frame_size_bytes);
    // The end of the sequence and the transfer of its initiative are said by its last frame alone (FC-FS, F_CTL).
    let of_last = FCtl::END_SEQUENCE | FCtl::TRANSFER_INITIATIVE;
    let middle = FCtl::new(frame.header.f_ctl.bits() & !of_last);
    (0..)
        .zip(bytes.chunks(frame_size_bytes))
        .map(|(seq_cnt, piece)| {
            let last = usize::from(seq_cnt) + 1 == count;
            let f_ctl = if last { frame.header.f_ctl } else { middle };
            Frame { header: Header { seq_cnt, f_ctl, ..frame.header }, payload: Payload::Bytes(piece.into()) }
        })
        .collect()
}
