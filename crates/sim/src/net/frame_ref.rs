//! [`FrameRef`]: what the simulator moves instead of a frame.

use sanloom_core::exchange;
use sanloom_wire::{FcId, Header};

/// A frame under way, 16 bytes: addresses, length, and either the place of its data within an exchange or the number of a
/// control message in [`super::Messages`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRef {
    s_id: FcId,
    d_id: FcId,
    flags: u8,
    /// SEQ_ID of data; part of a control message.
    part: u8,
    /// Bytes of the data field.
    len: u16,
    /// SEQ_CNT of data; OX_ID of a control message.
    count: u16,
    low: u16,
    high: u16,
}

const _: () = assert!(size_of::<FrameRef>() == 16);

/// Between start-of-frame and end-of-frame besides the data field: SOF 4, header 24, CRC 4, EOF 4.
pub const OVERHEAD_BYTES: u64 = 36;
/// Six primitive words follow each frame (FC-FS, frame spacing).
pub const GAP_BYTES: u64 = 24;
/// SOF and header: what a cut-through switch waits for.
pub const HEADER_WIRE_BYTES: u64 = 28;

const DATA: u8 = 1;
const FROM_RESPONDER: u8 = 2;
const LAST: u8 = 4;
const CORRUPT: u8 = 8;

impl FrameRef {
    /// Stands where there is no frame.
    pub const NONE: FrameRef =
        FrameRef { s_id: FcId::ZERO, d_id: FcId::ZERO, flags: 0, part: 0, len: 0, count: 0, low: 0, high: 0 };

    /// A frame of FCP data.
    #[inline]
    pub fn data(seq: &exchange::SeqTx, frame: &exchange::DataFrame) -> FrameRef {
        let responder = if seq.from_responder { FROM_RESPONDER } else { 0 };
        FrameRef {
            s_id: seq.s_id,
            d_id: seq.d_id,
            flags: DATA | responder | if frame.last { LAST } else { 0 },
            part: seq.seq_id,
            len: frame.len,
            count: frame.seq_cnt,
            low: seq.ox_id,
            high: seq.rx_id,
        }
    }

    /// One part of a control message.
    pub fn control(header: &Header, message: u32, part: u8, len: u16) -> FrameRef {
        FrameRef {
            s_id: header.s_id,
            d_id: header.d_id,
            flags: 0,
            part,
            len,
            count: header.ox_id,
            low: message as u16,
            high: (message >> 16) as u16,
        }
    }

    /// Source.
    #[inline]
    pub fn s_id(&self) -> FcId {
        self.s_id
    }
    /// Destination.
    #[inline]
    pub fn d_id(&self) -> FcId {
        self.d_id
    }
    /// FCP data, not a control message.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.flags & DATA != 0
    }
    /// Sent by the exchange responder.
    #[inline]
    pub fn from_responder(&self) -> bool {
        self.flags & FROM_RESPONDER != 0
    }
    /// Last data frame of its sequence.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.flags & LAST != 0
    }
    /// The CRC is bad.
    #[inline]
    pub fn is_corrupt(&self) -> bool {
        self.flags & CORRUPT != 0
    }
    /// Breaks the CRC.
    pub fn corrupt(&mut self) {
        self.flags |= CORRUPT;
    }
    /// Bytes of the data field.
    #[inline]
    pub fn len_bytes(&self) -> u16 {
        self.len
    }
    /// Bytes from SOF to EOF.
    #[inline]
    pub fn wire_bytes(&self) -> u64 {
        u64::from(self.len).next_multiple_of(4) + OVERHEAD_BYTES
    }
    /// SEQ_CNT of a data frame.
    #[inline]
    pub fn seq_cnt(&self) -> u16 {
        self.count
    }
    /// SEQ_ID of a data frame.
    #[inline]
    pub fn seq_id(&self) -> u8 {
        self.part
    }
    /// Which part of its control message.
    #[inline]
    pub fn part(&self) -> u8 {
        self.part
    }
    /// OX_ID of the exchange.
    #[inline]
    pub fn ox_id(&self) -> u16 {
        if self.is_data() { self.low } else { self.count }
    }
    /// RX_ID of a data frame.
    #[inline]
    pub fn rx_id(&self) -> u16 {
        self.high
    }
    /// Number of the control message.
    #[inline]
    pub fn message(&self) -> Option<u32> {
        (!self.is_data()).then_some(u32::from(self.high) << 16 | u32::from(self.low))
    }
}
