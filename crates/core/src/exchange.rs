//! The data path of an exchange: sequences of FCP_DATA as plain structs that a driver calls frame by frame.
//!
//! Data frames never enter a control machine. The sender owns a [`SeqTx`], the receiver a [`SeqRx`]; only a complete
//! sequence, a gap and a timeout become inputs of the FCP machine.
//!
//! One rule of ours makes a header a function of the exchange and SEQ_CNT alone: within an exchange the SEQ_CNT of data
//! frames continues over bursts, and every burst but the last is a multiple of the frame size. So the relative offset is
//! always `seq_cnt * frame_size` (modulo 2^16 frames). A receiver also takes a peer that restarts SEQ_CNT with each burst.

use sanloom_wire::{FCtl, FcId, FcType, Header, RCtl};
use std::ops::RangeInclusive;

/// Exchange numbers that the FCP initiator originates: commands, task management and RRQ.
pub const FCP_OX_IDS: RangeInclusive<u16> = 0x0000..=0x7fff;
/// Exchange numbers that the node port originates: logins, name server and other control exchanges.
pub const CONTROL_OX_IDS: RangeInclusive<u16> = 0x8000..=0xfffe;

/// The machine of a node that a frame is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Route {
    /// [`crate::nport::NPort`]: ELS and CT.
    NPort,
    /// [`crate::fcp::initiator::FcpInitiator`]: what the responder of an FCP exchange sends, and replies to RRQ.
    Initiator,
    /// [`crate::fcp::target::FcpTarget`]: what the originator of an FCP exchange sends.
    Target,
}

/// Which machine of a node takes a frame, or nothing for a frame that no machine understands (to be counted).
pub const fn route(header: &Header) -> Option<Route> {
    let from_responder = header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
    match header.fc_type {
        FcType::ELS if from_responder && header.ox_id <= *FCP_OX_IDS.end() => Some(Route::Initiator),
        FcType::ELS | FcType::CT => Some(Route::NPort),
        FcType::FCP | FcType::BLS if from_responder => Some(Route::Initiator),
        FcType::FCP | FcType::BLS => Some(Route::Target),
        _ => None,
    }
}

/// One data frame of a sequence, without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DataFrame {
    /// Frame within the exchange.
    pub seq_cnt: u16,
    /// Relative offset of the first byte.
    pub offset: u32,
    /// Bytes in this frame.
    pub len: u16,
    /// The last frame of the sequence.
    pub last: bool,
}

/// A data sequence to be sent, cut into frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeqTx {
    /// Sender.
    pub s_id: FcId,
    /// Receiver.
    pub d_id: FcId,
    /// Originator's exchange number.
    pub ox_id: u16,
    /// Responder's exchange number.
    pub rx_id: u16,
    /// Sequence within the exchange.
    pub seq_id: u8,
    /// True for read data (sent by the target), false for write data.
    pub from_responder: bool,
    frame_size_bytes: u16,
    next_seq_cnt: u16,
    next_offset: u32,
    end_offset: u32,
}

const _: () = assert!(size_of::<SeqTx>() <= 64);

/// Exchange and ends of a data sequence: everything in a header that does not change from frame to frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SeqIds {
    /// Sender.
    pub s_id: FcId,
    /// Receiver.
    pub d_id: FcId,
    /// Originator's exchange number.
    pub ox_id: u16,
    /// Responder's exchange number.
    pub rx_id: u16,
    /// Sequence within the exchange.
    pub seq_id: u8,
    /// Sent by the responder (read data).
    pub from_responder: bool,
}

impl SeqTx {
    /// A sequence of `len` bytes from relative offset `offset`, whose first frame has SEQ_CNT `first_seq_cnt`.
    ///
    /// A frame size that is no multiple of four is rounded down to one, so that only the last frame needs fill bytes; a
    /// size below four counts as four.
    pub fn new(ids: SeqIds, frame_size_bytes: u16, first_seq_cnt: u16, offset: u32, len: u32) -> SeqTx {
        SeqTx {
            s_id: ids.s_id,
            d_id: ids.d_id,
            ox_id: ids.ox_id,
            rx_id: ids.rx_id,
            seq_id: ids.seq_id,
            from_responder: ids.from_responder,
            frame_size_bytes: usable_frame_size(frame_size_bytes),
            next_seq_cnt: first_seq_cnt,
            next_offset: offset,
            end_offset: offset.saturating_add(len),
        }
    }

    /// The next frame to send, or nothing when all are cut.
    #[inline]
    pub fn next_frame(&mut self) -> Option<DataFrame> {
        let remaining = self.end_offset - self.next_offset;
        if remaining == 0 {
            return None;
        }
        let len = remaining.min(u32::from(self.frame_size_bytes));
        let frame =
            DataFrame { seq_cnt: self.next_seq_cnt, offset: self.next_offset, len: len as u16, last: len == remaining };
        self.next_seq_cnt = self.next_seq_cnt.wrapping_add(1);
        self.next_offset += len;
        Some(frame)
    }

    /// Bytes that are not cut yet.
    #[inline]
    pub fn remaining_bytes(&self) -> u32 {
        self.end_offset - self.next_offset
    }

    /// Frames that are not cut yet.
    #[inline]
    pub fn remaining_frames(&self) -> u32 {
        self.remaining_bytes().div_ceil(u32::from(self.frame_size_bytes))
    }

    /// Largest data field of the sequence, in bytes.
    #[inline]
    pub fn frame_size_bytes(&self) -> u16 {
        self.frame_size_bytes
    }

    /// The header of a frame that [`next_frame`](Self::next_frame) gave.
    pub fn header(&self, frame: &DataFrame) -> Header {
        let mut header = data_header(
            self.s_id,
            self.d_id,
            self.ox_id,
            self.rx_id,
            self.seq_id,
            frame.seq_cnt,
            frame.offset,
            frame.last,
            self.from_responder,
        );
        header.f_ctl = header.f_ctl.with_fill_for(usize::from(frame.len));
        header
    }
}

/// The frame size that is used for a peer's receive size: a multiple of four, at least four.
pub(crate) fn usable_frame_size(receive_size_bytes: u16) -> u16 {
    (receive_size_bytes & !3).max(4)
}

/// Header of an FCP_DATA frame (FC-FS, frame header; FCP, FCP_DATA IU). The fill bytes in F_CTL are zero: they depend on
/// the length, and only the last frame of a sequence can have any.
#[allow(clippy::too_many_arguments)] // the arguments are the header's fields, in the header's order
pub fn data_header(
    s_id: FcId,
    d_id: FcId,
    ox_id: u16,
    rx_id: u16,
    seq_id: u8,
    seq_cnt: u16,
    offset: u32,
    last: bool,
    from_responder: bool,
) -> Header {
    let f_ctl = match (from_responder, last) {
        (true, true) => FCtl::READ_DATA_END,
        (true, false) => FCtl::READ_DATA,
        (false, true) => FCtl::WRITE_DATA_END,
        (false, false) => FCtl::WRITE_DATA,
    };
    Header {
        r_ctl: RCtl::SOLICITED_DATA,
        d_id,
        cs_ctl: 0,
        s_id,
        fc_type: FcType::FCP,
        f_ctl,
        seq_id,
        df_ctl: 0,
        seq_cnt,
        ox_id,
        rx_id,
        parameter: offset,
    }
}

/// What a data frame did to the sequence it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Accepted {
    /// Taken; more is expected.
    More,
    /// Taken; every expected byte is there.
    Complete,
    /// A frame is missing where none can come later, or there are more bytes than expected. Reported once.
    Gap,
    /// Nothing is expected any more: the sequence was complete or broken before. The frame does not count.
    Stale,
}

/// A data sequence that is being received.
///
/// With `in_order` a skipped SEQ_CNT is a gap. Without, frames may come in any order, as on a fabric that spreads the
/// frames of an exchange over parallel links; the sequence is complete when its bytes are. Class 3 never repeats a frame,
/// so counting bytes is enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeqRx {
    expected_bytes: u32,
    received_bytes: u32,
    /// Bytes of the bursts before this one.
    earlier_bytes: u32,
    next_seq_cnt: u16,
    in_order: bool,
    broken: bool,
}

const _: () = assert!(size_of::<SeqRx>() <= 16);

impl SeqRx {
    /// Expects `expected_bytes` from SEQ_CNT 0.
    pub const fn new(expected_bytes: u32, in_order: bool) -> SeqRx {
        SeqRx { expected_bytes, received_bytes: 0, earlier_bytes: 0, next_seq_cnt: 0, in_order, broken: false }
    }

    /// A frame arrived.
    #[inline]
    pub fn accept(&mut self, seq_cnt: u16, len: u16) -> Accepted {
        if self.broken || self.received_bytes == self.expected_bytes {
            return Accepted::Stale;
        }
        if self.in_order && seq_cnt != self.next_seq_cnt {
            let restarts = seq_cnt == 0 && self.received_bytes == 0;
            if !restarts {
                self.broken = true;
                return Accepted::Gap;
            }
            self.next_seq_cnt = 0;
        }
        let room = self.expected_bytes - self.received_bytes;
        if u32::from(len) > room {
            self.broken = true;
            return Accepted::Gap;
        }
        self.next_seq_cnt = self.next_seq_cnt.wrapping_add(1);
        self.received_bytes += u32::from(len);
        if u32::from(len) == room { Accepted::Complete } else { Accepted::More }
    }

    /// Goes on with the next burst of the exchange, of `bytes`.
    pub(crate) fn next_burst(&mut self, bytes: u32) {
        self.earlier_bytes += self.received_bytes;
        self.expected_bytes = bytes;
        self.received_bytes = 0;
    }

    /// Expects `bytes` in all, because the response said that no more were sent.
    pub(crate) fn shorten(&mut self, bytes: u32) {
        self.expected_bytes = self.expected_bytes.min(bytes);
        self.broken |= self.received_bytes > self.expected_bytes;
    }

    /// Every expected byte is there, and nothing is missing in between.
    #[inline]
    pub fn is_complete(&self) -> bool {
        !self.broken && self.received_bytes == self.expected_bytes
    }

    /// Bytes that this burst or sequence consists of.
    pub fn expected_bytes(&self) -> u32 {
        self.expected_bytes
    }

    /// Bytes of the exchange that arrived so far.
    pub fn received_bytes(&self) -> u32 {
        self.earlier_bytes + self.received_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: SeqIds = SeqIds {
        s_id: FcId::new(0x010200),
        d_id: FcId::new(0x010100),
        ox_id: 7,
        rx_id: 9,
        seq_id: 1,
        from_responder: true,
    };

    #[test]
    fn cuts_a_sequence_at_the_frame_size() {
        let mut tx = SeqTx::new(IDS, 2048, 0, 0, 5000);
        assert_eq!(tx.remaining_frames(), 3);
        let frames: Vec<_> = std::iter::from_fn(|| tx.next_frame()).collect();
        assert_eq!(
            frames,
            [
                DataFrame { seq_cnt: 0, offset: 0, len: 2048, last: false },
                DataFrame { seq_cnt: 1, offset: 2048, len: 2048, last: false },
                DataFrame { seq_cnt: 2, offset: 4096, len: 904, last: true },
            ]
        );
        assert_eq!(tx.remaining_bytes(), 0);
        assert_eq!(tx.next_frame(), None);
    }

    #[test]
    fn offset_is_seq_cnt_times_frame_size_over_bursts() {
        for burst in 0..3u32 {
            let mut tx = SeqTx::new(IDS, 2112, (burst * 4) as u16, burst * 4 * 2112, 4 * 2112);
            while let Some(frame) = tx.next_frame() {
                assert_eq!(frame.offset, u32::from(frame.seq_cnt) * 2112);
            }
        }
    }

    #[test]
    fn read_data_has_the_frame_control_seen_on_the_wire() {
        let mut tx = SeqTx::new(IDS, 2048, 0, 0, 2048 + 36);
        let first = tx.next_frame().unwrap();
        assert_eq!(tx.header(&first).f_ctl.0, [0x80, 0x00, 0x08]);
        let last = tx.next_frame().unwrap();
        let header = tx.header(&last);
        assert_eq!(header.f_ctl.0, [0x88, 0x00, 0x08]);
        assert_eq!(header.parameter, 2048);
        assert_eq!(header.r_ctl, RCtl::SOLICITED_DATA);
    }

    #[test]
    fn last_frame_counts_its_fill_bytes() {
        let mut tx = SeqTx::new(IDS, 2048, 0, 0, 5);
        let frame = tx.next_frame().unwrap();
        assert_eq!(tx.header(&frame).f_ctl.fill_bytes(), 3);
    }

    #[test]
    fn odd_frame_sizes_are_rounded_down_to_words() {
        assert_eq!(SeqTx::new(IDS, 2111, 0, 0, 1).frame_size_bytes(), 2108);
        assert_eq!(SeqTx::new(IDS, 0, 0, 0, 1).frame_size_bytes(), 4);
    }

    #[test]
    fn ordered_reception_finds_a_gap_once() {
        let mut rx = SeqRx::new(4096, true);
        assert_eq!(rx.accept(0, 1024), Accepted::More);
        assert_eq!(rx.accept(2, 1024), Accepted::Gap);
        assert_eq!(rx.accept(3, 1024), Accepted::Stale);
        assert!(!rx.is_complete());
    }

    #[test]
    fn unordered_reception_completes_by_byte_count() {
        let mut rx = SeqRx::new(3000, false);
        assert_eq!(rx.accept(2, 952), Accepted::More);
        assert_eq!(rx.accept(0, 1024), Accepted::More);
        assert_eq!(rx.accept(1, 1024), Accepted::Complete);
        assert_eq!(rx.accept(1, 1024), Accepted::Stale);
    }

    #[test]
    fn more_bytes_than_expected_are_a_gap() {
        let mut rx = SeqRx::new(1000, false);
        assert_eq!(rx.accept(0, 1001), Accepted::Gap);
    }

    #[test]
    fn a_burst_may_continue_or_restart_the_count() {
        for first in [2, 0] {
            let mut rx = SeqRx::new(200, true);
            assert_eq!(rx.accept(0, 100), Accepted::More);
            assert_eq!(rx.accept(1, 100), Accepted::Complete);
            rx.next_burst(200);
            assert_eq!(rx.accept(first, 100), Accepted::More);
            assert_eq!(rx.accept(first + 1, 100), Accepted::Complete);
            assert_eq!(rx.received_bytes(), 400);
        }
    }

    #[test]
    fn frames_go_to_the_machine_that_knows_their_exchange() {
        let header = |fc_type, f_ctl, ox_id| Header {
            fc_type,
            f_ctl,
            ..data_header(FcId::new(1), FcId::new(2), ox_id, 0, 0, 0, 0, true, false)
        };
        assert_eq!(route(&header(FcType::ELS, FCtl::REPLY, 0x8001)), Some(Route::NPort));
        assert_eq!(route(&header(FcType::ELS, FCtl::REPLY, 0x4001)), Some(Route::Initiator));
        assert_eq!(route(&header(FcType::ELS, FCtl::REQUEST, 0x0001)), Some(Route::NPort));
        assert_eq!(route(&header(FcType::FCP, FCtl::REQUEST, 1)), Some(Route::Target));
        assert_eq!(route(&header(FcType::BLS, FCtl::REPLY, 1)), Some(Route::Initiator));
        assert_eq!(route(&header(FcType::SW_ILS, FCtl::REQUEST, 1)), None);
    }
}
