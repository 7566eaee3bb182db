//! Ethernet frame buffers: [`FrameBuf`], which is moved without copying, and [`Pool`], which
//! recycles it.

use sanloom_wire::crc::frame_crc;
use sanloom_wire::delimiter::{Eof, Sof};
use sanloom_wire::ether::{ETHER_BYTES, EtherType, VlanTag};
use sanloom_wire::header::{HEADER_BYTES, MAX_DATA_FIELD_BYTES};
use sanloom_wire::{FCtl, Header, fcoe};

/// Bytes reserved before a received frame, so that a tag or a length can be prepended without
/// moving the payload.
const HEADROOM: usize = 32;
/// Maximum frame length in bytes: a full FCoE frame with its tag and a margin (the Open-FCoE slides
/// use an MTU of 2500).
pub const MAX_FRAME_BYTES: usize = 2_560;
const CAPACITY: usize = HEADROOM + MAX_FRAME_BYTES;
/// Bytes before the data field of an FCoE frame: Ethernet header, FCoE header and frame header.
pub const HEAD_BYTES: usize = ETHER_BYTES + fcoe::HEAD_BYTES + HEADER_BYTES;
/// Length of both Ethernet addresses, which precede the tag.
const ADDRESSES: usize = 12;
const TAG_BYTES: usize = 4;

/// An Ethernet frame without its tag and FCS, in a buffer of its own.
#[derive(Debug)]
pub struct FrameBuf {
    bytes: Box<[u8; CAPACITY]>,
    start: usize,
    end: usize,
    /// The 802.1Q tag that was received with the frame, or that is sent with it.
    pub tag: Option<VlanTag>,
}

impl FrameBuf {
    fn new() -> FrameBuf {
        let bytes = vec![0; CAPACITY].into_boxed_slice().try_into().unwrap_or_else(|_| Box::new([0; CAPACITY]));
        FrameBuf { bytes, start: HEADROOM, end: HEADROOM, tag: None }
    }

    /// Returns the bytes of the frame.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Returns the bytes of the frame for changes in place.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Returns the whole receive area. [`received`](FrameBuf::received) sets how much of it is
    /// used.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[HEADROOM..]
    }

    /// Sets the length of a frame that was received into [`room`](FrameBuf::room). `aside` is the
    /// tag that the kernel removed from it.
    pub fn received(&mut self, len: usize, aside: Option<VlanTag>) {
        self.start = HEADROOM;
        self.end = HEADROOM + len.min(MAX_FRAME_BYTES);
        self.tag = aside;
        if aside.is_none() {
            self.take_tag();
        }
    }

    /// Copies an untagged frame into the buffer. A frame that is too long is truncated.
    pub fn fill(&mut self, frame: &[u8]) {
        let len = frame.len().min(MAX_FRAME_BYTES);
        self.room()[..len].copy_from_slice(&frame[..len]);
        self.start = HEADROOM;
        self.end = HEADROOM + len;
        self.tag = None;
    }

    /// Composes a class 3 FCoE frame: header, data, fill bytes and CRC. The Ethernet addresses are
    /// set later.
    pub fn fill_fcoe(&mut self, header: &Header, data: &[u8]) {
        self.fill_fcoe_by(header, data, frame_crc);
    }

    /// As [`fill_fcoe`](FrameBuf::fill_fcoe), with another CRC function.
    pub fn fill_fcoe_by(&mut self, header: &Header, data: &[u8], crc: impl Fn(&[u8]) -> u32) {
        let mut head = [0; HEAD_BYTES];
        head[ADDRESSES..ADDRESSES + 2].copy_from_slice(&EtherType::FCOE.0.to_be_bytes());
        head[ETHER_BYTES + fcoe::HEAD_BYTES - 1] = Sof::class_3(header.seq_cnt == 0).code();
        head[ETHER_BYTES + fcoe::HEAD_BYTES..].copy_from_slice(&header.to_bytes());
        self.fill_behind(&head, data, header.f_ctl.has(FCtl::END_SEQUENCE), crc);
    }

    /// Composes the head, data, fill bytes, CRC and EOF. `last` marks the last frame of its
    /// sequence.
    #[inline]
    pub fn fill_behind(&mut self, head: &[u8; HEAD_BYTES], data: &[u8], last: bool, crc: impl Fn(&[u8]) -> u32) {
        let data = &data[..data.len().min(MAX_DATA_FIELD_BYTES)];
        let frame_end = HEAD_BYTES + data.len().next_multiple_of(4);
        let len = frame_end + fcoe::TAIL_BYTES;
        let bytes = &mut self.bytes[HEADROOM..HEADROOM + len];
        bytes[..HEAD_BYTES].copy_from_slice(head);
        bytes[HEAD_BYTES..HEAD_BYTES + data.len()].copy_from_slice(data);
        bytes[HEAD_BYTES + data.len()..].fill(0);
        let crc = crc(&bytes[ETHER_BYTES + fcoe::HEAD_BYTES..frame_end]);
        bytes[frame_end..frame_end + 4].copy_from_slice(&crc.to_le_bytes());
        bytes[frame_end + 4] = Eof::class_3(last).code();
        self.start = HEADROOM;
        self.end = HEADROOM + len;
        self.tag = None;
    }

    /// Composes a frame with `write`, which fills an empty vector of sufficient capacity.
    pub fn compose(&mut self, scratch: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        scratch.clear();
        write(scratch);
        self.fill(scratch);
    }

    /// Returns the EtherType, or `None` if the frame is too short.
    #[inline]
    pub fn ether_type(&self) -> Option<EtherType> {
        let field = self.bytes().get(ADDRESSES..ADDRESSES + 2)?;
        Some(EtherType(u16::from_be_bytes([field[0], field[1]])))
    }

    /// Moves a tag from the frame into [`tag`](FrameBuf::tag). The addresses move up over it.
    fn take_tag(&mut self) {
        if self.ether_type() != Some(EtherType::VLAN) || self.end - self.start < ADDRESSES + TAG_BYTES + 2 {
            return;
        }
        let at = self.start + ADDRESSES + 2;
        self.tag = Some(VlanTag::from_bits(u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])));
        self.bytes.copy_within(self.start..self.start + ADDRESSES, self.start + TAG_BYTES);
        self.start += TAG_BYTES;
    }

    /// Inserts [`tag`](FrameBuf::tag) into the frame before transmission. Call it once per frame.
    #[inline]
    pub fn put_tag(&mut self) {
        let Some(tag) = self.tag.take() else { return };
        self.bytes.copy_within(self.start..self.start + ADDRESSES, self.start - TAG_BYTES);
        self.start -= TAG_BYTES;
        let at = self.start + ADDRESSES;
        self.bytes[at..at + 2].copy_from_slice(&EtherType::VLAN.0.to_be_bytes());
        self.bytes[at + 2..at + 4].copy_from_slice(&tag.to_bits().to_be_bytes());
    }

    /// Returns the frame preceded by its length in four bytes, as sent over a stream.
    #[inline]
    pub fn with_length(&mut self) -> &[u8] {
        let len = (self.end - self.start) as u32;
        self.bytes[self.start - 4..self.start].copy_from_slice(&len.to_be_bytes());
        &self.bytes[self.start - 4..self.end]
    }
}

/// Free frame buffers.
#[derive(Debug, Default)]
pub struct Pool {
    free: Vec<FrameBuf>,
}

/// Maximum number of free buffers kept; further ones are released to the system.
const KEPT: usize = 4_096;

impl Pool {
    /// Returns an empty buffer, recycled if possible.
    #[inline]
    pub fn take(&mut self) -> FrameBuf {
        self.free.pop().unwrap_or_else(FrameBuf::new)
    }

    /// Returns a buffer to the pool.
    #[inline]
    pub fn give(&mut self, mut buffer: FrameBuf) {
        if self.free.len() < KEPT {
            buffer.tag = None;
            self.free.push(buffer);
        }
    }

    /// Moves all buffers of another pool into this one.
    pub fn append(&mut self, other: &mut Pool) {
        let kept = KEPT.saturating_sub(self.free.len()).min(other.free.len());
        self.free.extend(other.free.drain(..).take(kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAGGED: &[u8] = b"aaaaaabbbbbb\x81\x00\x60\x64\x89\x06payload";

    #[test]
    fn tags_leave_the_frame_and_come_back() {
        let mut buffer = Pool::default().take();
        buffer.room()[..TAGGED.len()].copy_from_slice(TAGGED);
        buffer.received(TAGGED.len(), None);
        assert_eq!(buffer.tag, Some(VlanTag { priority: 3, drop_eligible: false, vlan: 100 }));
        assert_eq!(buffer.bytes(), b"aaaaaabbbbbb\x89\x06payload");
        buffer.put_tag();
        assert_eq!(buffer.bytes(), TAGGED);
    }

    #[test]
    fn an_untagged_frame_takes_a_tag() {
        let mut buffer = Pool::default().take();
        buffer.fill(b"aaaaaabbbbbb\x89\x06payload");
        buffer.tag = Some(VlanTag::from_bits(0x6064));
        buffer.put_tag();
        assert_eq!(buffer.bytes(), TAGGED);
        assert_eq!(buffer.with_length()[..4], [0, 0, 0, TAGGED.len() as u8]);
    }

    #[test]
    fn a_truncated_tag_is_not_removed() {
        let mut buffer = Pool::default().take();
        buffer.room()[..16].copy_from_slice(&TAGGED[..16]);
        buffer.received(16, None);
        assert_eq!((buffer.tag, buffer.bytes().len()), (None, 16));
    }
}
