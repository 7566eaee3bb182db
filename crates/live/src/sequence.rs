//! Messages longer than one frame: [`Reassembly`] and [`cut`].

use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Payload};
use std::collections::BTreeMap;

/// Data field size of messages between services, in bytes, which every port accepts.
pub(crate) const MESSAGE_FRAME_BYTES: usize = 2_048;
/// Maximum length of a reassembled message, in bytes; sufficient for a name server response about
/// every address of a domain.
const MAX_MESSAGE_BYTES: usize = 2 << 20;
/// Maximum number of messages being reassembled at once.
const MAX_OPEN: usize = 256;
/// Time after which an incomplete message is discarded (E_D_TOV).
const TIME_LIMIT: Span = Span::from_secs(2);

/// Sequence key: sender, receiver, exchange, direction, and SEQ_ID.
type Key = (FcId, FcId, u16, u16, bool, u8);

/// Reassembles messages that arrive in several frames.
#[derive(Debug, Default)]
pub struct Reassembly {
    open: BTreeMap<Key, Part>,
    /// Frames that belonged to no message or to a discarded message.
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
    /// Adds a frame of a message: its header, and its data field with the fill bytes. Returns a
    /// complete message under the header of its first frame. FCP and basic link services are
    /// decoded. Other payloads stay bytes, because only the requester can decode a reply.
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
            let part = Part { first: header, next_seq_cnt: 1, bytes: field.to_vec(), until: now + TIME_LIMIT };
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
        part.until = now + TIME_LIMIT;
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

/// Splits a message into frames with data fields of at most `frame_size_bytes`, a multiple of four.
/// A message that fits is returned unchanged.
pub fn cut(frame: Frame, frame_size_bytes: usize) -> Vec<Frame> {
    if frame.payload.len() <= frame_size_bytes {
        return vec![frame];
    }
    let mut bytes = Vec::with_capacity(frame.payload.len());
    frame.payload.write_to(&mut bytes);
    let count = bytes.len().div_ceil(frame_size_bytes);
    // Only the last frame of a sequence carries End_Sequence and Sequence Initiative (FC-FS,
    // F_CTL).
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

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::RCtl;

    fn message(bytes: usize) -> Frame {
        let header = Header {
            r_ctl: RCtl::SOLICITED_CONTROL,
            d_id: FcId::new(0x010000),
            cs_ctl: 0,
            s_id: FcId::NAME_SERVER,
            fc_type: FcType::CT,
            f_ctl: FCtl::REPLY,
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 0,
            ox_id: 7,
            rx_id: 0xffff,
            parameter: 0,
        };
        let bytes: Vec<u8> = (0..bytes).map(|n| n as u8).collect();
        Frame { header, payload: Payload::Bytes(bytes.into()) }
    }

    /// Returns the header as sent, and the data field with its fill bytes.
    fn on_the_wire(frame: &Frame) -> (Header, Vec<u8>) {
        let mut bytes = Vec::new();
        frame.emit(&mut bytes);
        (Header::parse(&bytes).unwrap(), bytes[24..].to_vec())
    }

    #[test]
    fn cut_messages_are_reassembled() {
        for bytes in [0, 1, 2_048, 2_049, 4_096, 10_001] {
            let frames = cut(message(bytes), 2_048);
            assert_eq!(frames.len(), bytes.div_ceil(2_048).max(1));
            let mut reassembly = Reassembly::default();
            let mut whole = None;
            for frame in &frames {
                assert!(whole.is_none());
                let (header, field) = on_the_wire(frame);
                whole = reassembly.accept(Instant::ZERO, header, &field);
            }
            let whole = whole.unwrap();
            assert_eq!(whole.payload, message(bytes).payload);
            assert_eq!((whole.header.seq_cnt, reassembly.discarded), (0, 0));
        }
    }

    #[test]
    fn a_message_with_a_gap_or_after_its_time_out_is_discarded() {
        let frames: Vec<(Header, Vec<u8>)> = cut(message(9_000), 2_048).iter().map(on_the_wire).collect();
        let mut reassembly = Reassembly::default();
        for (number, (header, field)) in frames.iter().enumerate() {
            if number != 2 {
                assert_eq!(reassembly.accept(Instant::ZERO, *header, field), None);
            }
        }
        // Counts the frame after the gap and the one that follows.
        assert_eq!(reassembly.discarded, 2);
        let (header, field) = &frames[0];
        reassembly.accept(Instant::ZERO, *header, field);
        let other = Header { ox_id: 8, ..*header };
        reassembly.accept(Instant::ZERO + Span::from_secs(3), other, field);
        assert_eq!((reassembly.open.len(), reassembly.discarded), (1, 3));
    }

    #[test]
    fn only_the_last_frame_ends_the_sequence() {
        let frames = cut(message(5_000), 2_048);
        let ends: Vec<bool> = frames.iter().map(|frame| frame.header.f_ctl.has(FCtl::END_SEQUENCE)).collect();
        assert_eq!(ends, [false, false, true]);
    }
}
