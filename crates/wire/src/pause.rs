//! Priority-based flow control (IEEE 802.1Q clause 36, IEEE 802.3 annex 31D) and the pause of a
//! whole link (IEEE 802.3 annex 31B): MAC control frames that stop the link partner for a time.
//!
//! ```text
//!   14   opcode 0101
//!   16   priorities named by the frame, bit 0 of the low byte for priority 0
//!   18   time of each priority in quanta of 512 bit times, 2 bytes each; 0 ends a pause
//!
//!   14   opcode 0001
//!   16   time of the link in the same quanta; 0 ends the pause
//! ```

use crate::bytes::{fixed, u16_at};
use crate::error::ParseError;
use crate::ether::{ETHER_BYTES, EtherHeader, EtherType, MIN_FRAME_BYTES, MacAddr};

/// Opcode of priority-based flow control.
const OPCODE: u16 = 0x0101;
/// Bytes behind the Ethernet header.
const BODY_BYTES: usize = 20;
/// Opcode of the pause of a link.
const LINK_OPCODE: u16 = 0x0001;
/// Bytes behind the Ethernet header in a pause of a link.
const LINK_BODY_BYTES: usize = 4;

impl MacAddr {
    /// MAC control: destination of pause frames, which bridges never forward (IEEE 802.3 annex
    /// 31B).
    pub const MAC_CONTROL: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);
}

/// Pause of priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PriorityPause {
    /// Named priorities, as a mask.
    pub named: u8,
    /// Time of each priority, in quanta of 512 bit times.
    pub quanta: [u16; 8],
}

impl PriorityPause {
    /// Pause of these priorities for the longest time, or its end.
    pub fn of(priorities: u8, stops: bool) -> PriorityPause {
        let quanta = |priority: usize| if stops && priorities & 1 << priority != 0 { u16::MAX } else { 0 };
        PriorityPause { named: priorities, quanta: std::array::from_fn(quanta) }
    }

    /// Parses a frame from its destination address on.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or the frame is another one of MAC control.
    pub fn parse(frame: &[u8]) -> Result<PriorityPause, ParseError> {
        let (header, body) = EtherHeader::parse(frame)?;
        let body = fixed::<BODY_BYTES>("priority pause", body)?;
        let opcode = u16_at(body, 0);
        if header.ether_type != EtherType::MAC_CONTROL || opcode != OPCODE {
            return Err(ParseError::Unsupported { field: "opcode of MAC control", got: opcode.into() });
        }
        Ok(PriorityPause { named: body[3], quanta: std::array::from_fn(|priority| u16_at(body, 4 + 2 * priority)) })
    }

    /// Appends the frame with padding, without a check sequence.
    pub fn emit(&self, from: MacAddr, out: &mut Vec<u8>) {
        let start = out.len();
        EtherHeader { to: MacAddr::MAC_CONTROL, from, tag: None, ether_type: EtherType::MAC_CONTROL }.emit(out);
        for field in [OPCODE, u16::from(self.named)].into_iter().chain(self.quanta) {
            out.extend(field.to_be_bytes());
        }
        debug_assert_eq!(out.len() - start, ETHER_BYTES + BODY_BYTES);
        out.resize(start + MIN_FRAME_BYTES, 0);
    }
}

/// Pause of a link, whatever the priority of its frames (IEEE 802.3 annex 31B).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkPause {
    /// Time in quanta of 512 bit times; 0 ends a pause.
    pub quanta: u16,
}

impl LinkPause {
    /// Parses a frame from its destination address on.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or the frame is another one of MAC control.
    pub fn parse(frame: &[u8]) -> Result<LinkPause, ParseError> {
        let (header, body) = EtherHeader::parse(frame)?;
        let body = fixed::<LINK_BODY_BYTES>("pause", body)?;
        let opcode = u16_at(body, 0);
        if header.ether_type != EtherType::MAC_CONTROL || opcode != LINK_OPCODE {
            return Err(ParseError::Unsupported { field: "opcode of MAC control", got: opcode.into() });
        }
        Ok(LinkPause { quanta: u16_at(body, 2) })
    }

    /// Appends the frame with padding, without a check sequence.
    pub fn emit(&self, from: MacAddr, out: &mut Vec<u8>) {
        let start = out.len();
        EtherHeader { to: MacAddr::MAC_CONTROL, from, tag: None, ether_type: EtherType::MAC_CONTROL }.emit(out);
        for field in [LINK_OPCODE, self.quanta] {
            out.extend(field.to_be_bytes());
        }
        out.resize(start + MIN_FRAME_BYTES, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_pause_has_60_bytes_with_opcode_and_times_at_their_places() {
        let mut out = Vec::new();
        PriorityPause::of(1 << 3, true).emit(FROM, &mut out);
        assert_eq!(out.len(), 60);
        assert_eq!(out[..18], [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 8, 1, 1, 0, 8]);
        assert_eq!(out[18..34], [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(PriorityPause::parse(&out), Ok(PriorityPause::of(8, true)));
    }

    #[test]
    fn a_pause_of_a_link_has_its_own_opcode_and_one_time() {
        let mut out = Vec::new();
        LinkPause { quanta: 0x1234 }.emit(FROM, &mut out);
        assert_eq!(out.len(), 60);
        assert_eq!(out[..18], [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 8, 0, 1, 0x12, 0x34]);
        assert!(out[18..].iter().all(|byte| *byte == 0));
        assert_eq!(LinkPause::parse(&out), Ok(LinkPause { quanta: 0x1234 }));
        assert!(PriorityPause::parse(&out).is_err());
        for len in 0..ETHER_BYTES + LINK_BODY_BYTES {
            assert!(LinkPause::parse(&out[..len]).is_err(), "{len}");
        }
        out.clear();
        PriorityPause::of(8, true).emit(FROM, &mut out);
        assert!(matches!(LinkPause::parse(&out), Err(ParseError::Unsupported { got: 0x0101, .. })));
    }

    #[test]
    fn every_truncation_and_every_other_opcode_is_rejected() {
        let mut out = Vec::new();
        PriorityPause::of(8, false).emit(FROM, &mut out);
        for len in 0..ETHER_BYTES + BODY_BYTES {
            assert!(PriorityPause::parse(&out[..len]).is_err(), "{len}");
        }
        out[15] = 2;
        assert!(matches!(PriorityPause::parse(&out), Err(ParseError::Unsupported { got: 0x0102, .. })));
    }
}
