//! Adapter hardware offloads (the Open-FCoE slides, offloads of the X520), in software:
//! [`Offloads`] selects them.
//!
//! | offload | without it | here |
//! |---|---|---|
//! | FC CRC | a table, one byte at a time | [`Checksum::Simd`] |
//! | large receive, "DDP" | the frames of a sequence are assembled, then copied | [`Placement`]: each frame goes directly to its position in the request's buffer |
//! | large sequence | each frame gets a header of its own | [`Segmenter`]: one prototype, in which three fields change |
//!
//! The redirection table, the fourth offload, gives the frames of an exchange to one of several
//! threads that check them. The check takes less time than to wake a thread: with two threads, a
//! tenth of the throughput was left. Therefore one thread checks all frames.

use crate::frame::{FrameBuf, HEAD_BYTES};
use sanloom_wire::crc;
use sanloom_wire::ether::{ETHER_BYTES, EtherType, MacAddr, readdress};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::{FCtl, Header};

/// Selection of offloads. The default is the fastest: all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offloads {
    /// Implementation of the CRC.
    pub checksum: Checksum,
    /// Destination of read data.
    pub placement: Placement,
    /// Data frames are copied from one prototype.
    pub segmentation: bool,
}

impl Default for Offloads {
    fn default() -> Offloads {
        Offloads { checksum: Checksum::Simd, placement: Placement::Unlimited, segmentation: true }
    }
}

/// Implementation of the frame CRC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// With SIMD instructions of the processor.
    Simd,
    /// With a lookup table.
    Table,
}

impl Checksum {
    /// Returns true if a received frame is not FCoE or its CRC is right.
    pub fn accepts(self, frame: &FrameBuf) -> bool {
        let is_fcoe = frame.ether_type() == Some(EtherType::FCOE);
        let pdu = frame.bytes().get(ETHER_BYTES..).filter(|_| is_fcoe);
        pdu.and_then(|pdu| Fcoe::parse(pdu).ok()).is_none_or(|fcoe| self.agrees(&fcoe))
    }

    /// Computes the CRC of a frame without its delimiters.
    pub fn of(self, frame: &[u8]) -> u32 {
        match self {
            Checksum::Simd => crc::frame_crc(frame),
            Checksum::Table => crc::frame_crc_by_table(frame),
        }
    }

    /// Returns whether the CRC of a received frame is right.
    pub fn agrees(self, fcoe: &Fcoe<'_>) -> bool {
        match self {
            Checksum::Simd => fcoe.crc_is_right(),
            Checksum::Table => self.of(fcoe.frame).to_le_bytes() == fcoe.crc,
        }
    }
}

/// Destination of read data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// A buffer of the sequence. The complete sequence is copied into the request's buffer.
    Off,
    /// The request's buffer, if a context is free and the read is long enough; otherwise as
    /// [`Off`](Placement::Off).
    Limited {
        /// Maximum number of concurrent exchanges with direct placement; the document's hardware
        /// has 512.
        contexts: u16,
        /// Length of the shortest read that gets a context; the document's measurement uses 4096.
        threshold_bytes: u32,
    },
    /// Always the request's buffer.
    Unlimited,
}

impl Placement {
    /// Limits of the hardware and the measurement in the Open-FCoE slides.
    pub const DOCUMENT: Placement = Placement::Limited { contexts: 512, threshold_bytes: 4_096 };

    /// Returns whether a read of this length gets a context while `in_use` contexts are in use.
    pub fn allows(self, bytes: u32, in_use: usize) -> bool {
        match self {
            Placement::Off => false,
            Placement::Limited { contexts, threshold_bytes } => {
                bytes >= threshold_bytes && in_use < usize::from(contexts)
            }
            Placement::Unlimited => true,
        }
    }
}

/// Offsets of the fields that differ between the frames of a sequence.
const FRAME: usize = ETHER_BYTES + fcoe::HEAD_BYTES;
const SOF: usize = FRAME - 1;
const F_CTL: std::ops::Range<usize> = FRAME + 9..FRAME + 12;
const SEQ_CNT: std::ops::Range<usize> = FRAME + 14..FRAME + 16;
const PARAMETER: std::ops::Range<usize> = FRAME + 20..FRAME + 24;

/// Composes the data frames of sequences.
#[derive(Debug)]
pub struct Segmenter {
    checksum: Checksum,
    segmentation: bool,
    /// Last sequence: its header, its destination and source address, and the head of its frames.
    prototype: Option<(Header, MacAddr, MacAddr, [u8; HEAD_BYTES])>,
}

impl Segmenter {
    /// Creates a segmenter without a prototype.
    pub fn new(offloads: &Offloads) -> Segmenter {
        Segmenter { checksum: offloads.checksum, segmentation: offloads.segmentation, prototype: None }
    }

    /// Fills a buffer with a class 3 FCoE frame.
    pub fn fill(&mut self, buffer: &mut FrameBuf, header: &Header, (to, from): (MacAddr, MacAddr), data: &[u8]) {
        let checksum = |frame: &[u8]| self.checksum.of(frame);
        if !self.segmentation {
            buffer.fill_fcoe_by(header, data, checksum);
            return readdress(buffer.bytes_mut(), to, from);
        }
        let same = |(known, old_to, old_from, _): &(Header, MacAddr, MacAddr, [u8; HEAD_BYTES])| {
            let of_frame = Header { f_ctl: known.f_ctl, seq_cnt: known.seq_cnt, parameter: known.parameter, ..*header };
            of_frame == *known && (*old_to, *old_from) == (to, from)
        };
        if !self.prototype.as_ref().is_some_and(same) {
            let mut head = [0; HEAD_BYTES];
            head[..6].copy_from_slice(&to.0);
            head[6..12].copy_from_slice(&from.0);
            head[12..ETHER_BYTES].copy_from_slice(&EtherType::FCOE.0.to_be_bytes());
            head[FRAME..].copy_from_slice(&header.to_bytes());
            self.prototype = Some((*header, to, from, head));
        }
        let Some((.., head)) = &mut self.prototype else { return };
        head[SOF] = sanloom_wire::delimiter::Sof::class_3(header.seq_cnt == 0).code();
        head[F_CTL].copy_from_slice(&header.f_ctl.bits().to_be_bytes()[1..]);
        head[SEQ_CNT].copy_from_slice(&header.seq_cnt.to_be_bytes());
        head[PARAMETER].copy_from_slice(&header.parameter.to_be_bytes());
        let checksum = |frame: &[u8]| self.checksum.of(frame);
        buffer.fill_behind(head, data, header.f_ctl.has(FCtl::END_SEQUENCE), checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Pool;
    use sanloom_wire::{FcId, FcType, RCtl};

    const TO: MacAddr = MacAddr([0x0e, 0xfc, 0, 1, 0, 0]);
    const FROM: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 1]);

    fn header(seq_cnt: u16, ox_id: u16, last: bool) -> Header {
        let end = if last { FCtl::END_SEQUENCE | FCtl::TRANSFER_INITIATIVE } else { 0 };
        Header {
            r_ctl: RCtl::SOLICITED_DATA,
            d_id: FcId::new(0x010000),
            cs_ctl: 0,
            s_id: FcId::new(0x010100),
            fc_type: FcType::FCP,
            f_ctl: FCtl::new(FCtl::RELATIVE_OFFSET | end),
            seq_id: 3,
            df_ctl: 0,
            seq_cnt,
            ox_id,
            rx_id: 7,
            parameter: u32::from(seq_cnt) * 2_048,
        }
    }

    #[test]
    fn every_composition_makes_the_same_frames() {
        let mut pool = Pool::default();
        let data: Vec<u8> = (0..2_048_u32).map(|n| (n * 7) as u8).collect();
        let plain = Offloads { checksum: Checksum::Table, segmentation: false, ..Offloads::default() };
        let (mut fast, mut slow) = (Segmenter::new(&Offloads::default()), Segmenter::new(&plain));
        for (seq_cnt, ox_id, len) in [(0, 1, 2_048), (1, 1, 2_048), (2, 1, 13), (0, 2, 2_048), (3, 1, 0)] {
            let header = Header {
                f_ctl: header(seq_cnt, ox_id, len < 2_048).f_ctl.with_fill_for(len),
                ..header(seq_cnt, ox_id, false)
            };
            let (mut one, mut other) = (pool.take(), pool.take());
            fast.fill(&mut one, &header, (TO, FROM), &data[..len]);
            slow.fill(&mut other, &header, (TO, FROM), &data[..len]);
            assert_eq!(one.bytes(), other.bytes(), "{seq_cnt} {ox_id} {len}");
            assert!(Checksum::Table.accepts(&one) && Checksum::Simd.accepts(&one));
            one.bytes_mut()[FRAME] ^= 1;
            assert!(!Checksum::Table.accepts(&one) && !Checksum::Simd.accepts(&one));
        }
    }

    #[test]
    fn contexts_are_for_long_reads_and_limited_in_number() {
        let document = Placement::DOCUMENT;
        assert!(document.allows(4_096, 511) && !document.allows(4_096, 512) && !document.allows(4_095, 0));
        assert!(Placement::Unlimited.allows(1, 100_000) && !Placement::Off.allows(1 << 20, 0));
    }
}
