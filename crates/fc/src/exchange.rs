//! The data path of an exchange: sequences of FCP_DATA as plain structs that a driver calls for
//! each frame.
//!
//! Data frames never enter a control machine. The sender owns a [`SeqTx`], the receiver a
//! [`SeqRx`]. Only a complete sequence, a gap and a timeout become inputs of the FCP machine.
//!
//! One rule of this implementation makes a header a function of the exchange and SEQ_CNT alone.
//! Within an exchange the SEQ_CNT of data frames continues over bursts, and every burst but the
//! last is a multiple of the frame size. The relative offset is therefore always `seq_cnt *
//! frame_size` (modulo 2^16 frames). A receiver also accepts a peer that restarts SEQ_CNT with each
//! burst.

use sanloom_wire::{FCtl, FcId, FcType, Header, RCtl};
use std::ops::RangeInclusive;

/// OX_IDs originated by the FCP initiator: commands, task management and RRQ.
pub const FCP_OX_IDS: RangeInclusive<u16> = 0x0000..=0x7fff;
/// OX_IDs originated by the node port: logins, name server and other control exchanges.
pub const CONTROL_OX_IDS: RangeInclusive<u16> = 0x8000..=0xfffe;

/// Machine of a node that handles a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Route {
    /// ELS and CT: [`crate::nport::NPort`].
    NPort,
    /// Frames of the responder of an FCP exchange, and replies to RRQ:
    /// [`crate::fcp::initiator::FcpInitiator`].
    Initiator,
    /// Frames of the originator of an FCP exchange: [`crate::fcp::target::FcpTarget`].
    Target,
}

/// Machine of a node that handles a frame; `None` for a frame that no machine handles, which the
/// driver should count.
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

/// Data frame of a sequence, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DataFrame {
    /// Sequence count, continued over the bursts of the exchange.
    pub seq_cnt: u16,
    /// Relative offset of the first byte, in bytes.
    pub offset: u32,
    /// Payload length, in bytes.
    pub len: u16,
    /// True for the last frame of the sequence.
    pub last: bool,
}

/// Data sequence to be sent, split into frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeqTx {
    /// Address of the sender.
    pub s_id: FcId,
    /// Address of the receiver.
    pub d_id: FcId,
    /// Exchange number of the originator.
    pub ox_id: u16,
    /// Exchange number of the responder.
    pub rx_id: u16,
    /// Sequence number within the exchange.
    pub seq_id: u8,
    /// True for read data (sent by the target), false for write data.
    pub from_responder: bool,
    frame_size_bytes: u16,
    next_seq_cnt: u16,
    next_offset: u32,
    end_offset: u32,
}

const _: () = assert!(size_of::<SeqTx>() <= 64);

/// Addressing of a data sequence: all header fields that are the same in every frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SeqIds {
    /// Address of the sender.
    pub s_id: FcId,
    /// Address of the receiver.
    pub d_id: FcId,
    /// Exchange number of the originator.
    pub ox_id: u16,
    /// Exchange number of the responder.
    pub rx_id: u16,
    /// Sequence number within the exchange.
    pub seq_id: u8,
    /// True for read data (sent by the responder), false for write data.
    pub from_responder: bool,
}

impl SeqTx {
    /// Returns a sequence of `len` bytes from relative offset `offset`; its first frame has SEQ_CNT
    /// `first_seq_cnt`.
    ///
    /// The frame size is rounded down to a multiple of four, at least four, so that only the last
    /// frame needs fill bytes.
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

    /// Returns the next frame to send, or `None` after the last one.
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

    /// Bytes not yet returned by [`next_frame`](Self::next_frame).
    #[inline]
    pub fn remaining_bytes(&self) -> u32 {
        self.end_offset - self.next_offset
    }

    /// Frames not yet returned by [`next_frame`](Self::next_frame).
    #[inline]
    pub fn remaining_frames(&self) -> u32 {
        self.remaining_bytes().div_ceil(u32::from(self.frame_size_bytes))
    }

    /// Largest data field of the sequence, in bytes.
    #[inline]
    pub fn frame_size_bytes(&self) -> u16 {
        self.frame_size_bytes
    }

    /// Header of a frame returned by [`next_frame`](Self::next_frame).
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

/// Frame size for a peer's receive size: rounded down to a multiple of four, at least four.
pub(crate) fn usable_frame_size(receive_size_bytes: u16) -> u16 {
    (receive_size_bytes & !3).max(4)
}

/// Header of an FCP_DATA frame (FC-FS, frame header; FCP, FCP_DATA IU).
///
/// The fill-byte count in F_CTL is zero, because it depends on the length, and only the last frame
/// of a sequence can have fill bytes.
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

/// Effect of a data frame on its sequence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Accepted {
    /// Accepted; more data is expected.
    More,
    /// Accepted; all expected bytes have arrived.
    Complete,
    /// A frame is missing and cannot arrive later, or there are more bytes than expected. Reported
    /// once.
    Gap,
    /// No data is expected any more, because the sequence was complete or broken before. The frame
    /// is ignored.
    Stale,
}

/// Data sequence being received.
///
/// With `in_order` a skipped SEQ_CNT is a gap. Without it, frames may arrive in any order, as on a
/// fabric that distributes the frames of an exchange over parallel links. The sequence is complete
/// when all bytes have arrived. Class 3 never repeats a frame, so counting bytes suffices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeqRx {
    expected_bytes: u32,
    received_bytes: u32,
    /// Bytes of earlier bursts.
    earlier_bytes: u32,
    next_seq_cnt: u16,
    in_order: bool,
    broken: bool,
}

const _: () = assert!(size_of::<SeqRx>() <= 16);

impl SeqRx {
    /// Returns a sequence that expects `expected_bytes` bytes from SEQ_CNT 0.
    pub const fn new(expected_bytes: u32, in_order: bool) -> SeqRx {
        SeqRx { expected_bytes, received_bytes: 0, earlier_bytes: 0, next_seq_cnt: 0, in_order, broken: false }
    }

    /// Records a received frame.
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
        debug_assert!(self.received_bytes < self.expected_bytes, "more bytes were accepted than expected");
        let room = self.expected_bytes - self.received_bytes;
        if u32::from(len) > room {
            self.broken = true;
            return Accepted::Gap;
        }
        self.next_seq_cnt = self.next_seq_cnt.wrapping_add(1);
        self.received_bytes += u32::from(len);
        if u32::from(len) == room { Accepted::Complete } else { Accepted::More }
    }

    /// Starts the next burst of the exchange, with `bytes` bytes.
    pub(crate) fn next_burst(&mut self, bytes: u32) {
        debug_assert!(self.is_complete(), "a burst begins before the end of the one before");
        self.earlier_bytes += self.received_bytes;
        self.expected_bytes = bytes;
        self.received_bytes = 0;
    }

    /// Reduces the expected length to `bytes`, because the response reported that no more were
    /// sent.
    pub(crate) fn shorten(&mut self, bytes: u32) {
        self.expected_bytes = self.expected_bytes.min(bytes);
        self.broken |= self.received_bytes > self.expected_bytes;
    }

    /// Returns true if all expected bytes have arrived without a gap.
    #[inline]
    pub fn is_complete(&self) -> bool {
        !self.broken && self.received_bytes == self.expected_bytes
    }

    /// Length of the current burst or sequence, in bytes.
    pub fn expected_bytes(&self) -> u32 {
        self.expected_bytes
    }

    /// Bytes of the current burst received so far.
    pub(crate) fn burst_bytes(&self) -> u32 {
        self.received_bytes
    }

    /// Bytes of the exchange received so far.
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
    fn frames_go_to_the_machine_that_owns_their_exchange() {
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
