//! [`FrameRef`]: the 16-byte reference that the simulator moves instead of a frame.

use sanloom_fc::exchange;
use sanloom_wire::{FcId, Header};

/// An in-flight frame in 16 bytes: addresses, length, and either the position of its data in an
/// exchange or the number of a control message in [`super::Messages`].
///
/// The value is packed into two words because each hop copies a frame several times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRef {
    /// From the lowest bit: D_ID (24 bits), S_ID (24), flags (4), virtual channel (4), then SEQ_ID
    /// of a data frame or the low byte of the part number of a control message (8).
    ends: u64,
    /// Four 16-bit groups from the lowest bit. The first is the length of the data field in bytes.
    /// The second is SEQ_CNT of a data frame or OX_ID of a control message. The other two are OX_ID
    /// and RX_ID of a data frame, or the number of a control message (24 bits) and the high byte of
    /// its part number (8 bits).
    place: u64,
}

const _: () = assert!(size_of::<FrameRef>() == 16);

/// Bytes of a frame besides its data field: SOF 4, header 24, CRC 4, EOF 4.
pub const OVERHEAD_BYTES: u64 = 36;
/// Bytes of the gap after a frame: six primitive words (FC-FS, frame spacing).
pub const GAP_BYTES: u64 = 24;
/// Bytes that a cut-through switch receives before it forwards: SOF and header.
pub const HEADER_WIRE_BYTES: u64 = 28;

const DATA: u8 = 1;
const FROM_RESPONDER: u8 = 2;
const LAST: u8 = 4;
const CORRUPT: u8 = 8;

/// Position and width of the virtual channel in the first word.
const CHANNEL_SHIFT: u32 = 52;
const CHANNEL_MASK: u64 = 0xf << CHANNEL_SHIFT;

impl FrameRef {
    /// No frame: the value of an unused entry.
    pub const NONE: FrameRef = FrameRef { ends: 0, place: 0 };

    #[inline]
    fn new(s_id: FcId, d_id: FcId, flags: u8, part: u8, place: [u16; 4]) -> FrameRef {
        let ends = u64::from(d_id.to_u32()) | u64::from(s_id.to_u32()) << 24;
        let [len, count, low, high] = place.map(u64::from);
        FrameRef {
            ends: ends | u64::from(flags) << 48 | u64::from(part) << 56,
            place: len | count << 16 | low << 32 | high << 48,
        }
    }

    /// Returns a reference to an FCP data frame.
    #[inline]
    pub fn data(seq: &exchange::SeqTx, frame: &exchange::DataFrame) -> FrameRef {
        let flags = DATA | if seq.from_responder { FROM_RESPONDER } else { 0 } | if frame.last { LAST } else { 0 };
        FrameRef::new(seq.s_id, seq.d_id, flags, seq.seq_id, [frame.len, frame.seq_cnt, seq.ox_id, seq.rx_id])
    }

    /// Returns a reference to one part of a control message.
    pub fn control(header: &Header, message: u32, part: u16, len: u16) -> FrameRef {
        let [high, low] = part.to_be_bytes();
        let place = [len, header.ox_id, message as u16, u16::from(high) << 8 | (message >> 16) as u16];
        FrameRef::new(header.s_id, header.d_id, 0, low, place)
    }

    #[inline]
    fn has(&self, flag: u8) -> bool {
        self.ends & u64::from(flag) << 48 != 0
    }

    #[inline]
    fn low(&self) -> u16 {
        (self.place >> 32) as u16
    }

    #[inline]
    fn high(&self) -> u16 {
        (self.place >> 48) as u16
    }

    #[inline]
    pub fn s_id(&self) -> FcId {
        FcId::new((self.ends >> 24) as u32)
    }
    #[inline]
    pub fn d_id(&self) -> FcId {
        FcId::new(self.ends as u32)
    }
    /// Returns true for FCP data, false for a control message.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.has(DATA)
    }
    /// Returns whether the exchange responder sent the frame.
    #[inline]
    pub fn from_responder(&self) -> bool {
        self.has(FROM_RESPONDER)
    }
    /// Returns whether this is the last data frame of its sequence.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.has(LAST)
    }
    /// Returns whether the CRC is bad.
    #[inline]
    pub fn is_corrupt(&self) -> bool {
        self.has(CORRUPT)
    }
    /// Marks the CRC as bad.
    pub fn corrupt(&mut self) {
        self.ends |= u64::from(CORRUPT) << 48;
    }
    /// Returns the virtual channel on which the frame crossed the last link that has virtual
    /// channels, 0 to 15. Before the first one it is the lowest channel of the frame's priority, or
    /// 0.
    #[inline]
    pub fn channel(&self) -> u8 {
        ((self.ends & CHANNEL_MASK) >> CHANNEL_SHIFT) as u8
    }
    /// Sets the virtual channel.
    pub fn set_channel(&mut self, channel: u8) {
        self.ends = self.ends & !CHANNEL_MASK | u64::from(channel) << CHANNEL_SHIFT & CHANNEL_MASK;
    }
    /// Returns the length of the data field in bytes.
    #[inline]
    pub fn len_bytes(&self) -> u16 {
        self.place as u16
    }
    /// Returns the length from SOF to EOF in bytes.
    #[inline]
    pub fn wire_bytes(&self) -> u64 {
        u64::from(self.len_bytes()).next_multiple_of(4) + OVERHEAD_BYTES
    }
    /// Returns SEQ_CNT; valid for data frames only.
    #[inline]
    pub fn seq_cnt(&self) -> u16 {
        (self.place >> 16) as u16
    }
    /// Returns SEQ_ID; valid for data frames only.
    #[inline]
    pub fn seq_id(&self) -> u8 {
        (self.ends >> 56) as u8
    }
    /// Returns the part number within the control message.
    #[inline]
    pub fn part(&self) -> u16 {
        u16::from_be_bytes([(self.place >> 56) as u8, self.seq_id()])
    }
    #[inline]
    pub fn ox_id(&self) -> u16 {
        if self.is_data() { self.low() } else { self.seq_cnt() }
    }
    /// Returns RX_ID; valid for data frames only.
    #[inline]
    pub fn rx_id(&self) -> u16 {
        self.high()
    }
    /// Sets the number of the control message.
    pub(super) fn set_message(&mut self, number: u32) {
        debug_assert!(!self.is_data(), "a data frame has no message");
        self.place = self.place & !(0xff_ffff << 32) | u64::from(number) << 32;
    }

    /// Returns the number of the control message in [`super::Messages`].
    #[inline]
    pub fn message(&self) -> Option<u32> {
        (!self.is_data()).then_some((self.place >> 32) as u32 & 0xff_ffff)
    }
}
