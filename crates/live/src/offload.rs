//! Adapter hardware offloads (document 002, offloads of the X520), in software: [`Offloads`]
//! selects them.
//!
//! | offload | without it | here |
//! |---|---|---|
//! | FC CRC | a table, one byte at a time | [`Checksum::Simd`] |
//! | large receive, "DDP" | the frames of a sequence are assembled, then copied | [`Placement`]: each frame goes directly to its position in the request's buffer |
//! | large sequence | each frame gets a header of its own | [`Segmenter`]: one prototype, in which three fields change |
//! | redirection table | one thread checks all frames | [`Spreader`]: several threads, selected by OX_ID or RX_ID |

use crate::frame::{FrameBuf, HEAD_BYTES};
use sanloom_wire::crc;
use sanloom_wire::ether::{ETHER_BYTES, EtherType, MacAddr, readdress};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::{FCtl, Header};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Selection of offloads. The default is the fastest: all except the threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offloads {
    /// Implementation of the CRC.
    pub checksum: Checksum,
    /// Destination of read data.
    pub placement: Placement,
    /// Data frames are copied from one prototype.
    pub segmentation: bool,
    /// Threads that check received frames; 0: the receiving thread checks them.
    pub threads: u8,
}

impl Default for Offloads {
    fn default() -> Offloads {
        Offloads { checksum: Checksum::Simd, placement: Placement::Unlimited, segmentation: true, threads: 0 }
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
    /// Limits of the hardware and the measurement in document 002.
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

/// A frame, and whether its CRC is right; true for a frame that is not FCoE.
type Checked = (FrameBuf, bool);

/// Threads that check the CRC of received frames. All frames of an exchange go to the same thread,
/// so their order is kept.
#[derive(Debug)]
pub struct Spreader {
    checksum: Checksum,
    threads: Vec<Sender<Vec<FrameBuf>>>,
    done: Receiver<(usize, Vec<Checked>)>,
}

impl Spreader {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn start(offloads: &Offloads) -> io::Result<Spreader> {
        let (send_done, done) = channel();
        let checksum = offloads.checksum;
        let start = |number: usize| {
            let (send, frames) = channel::<Vec<FrameBuf>>();
            let done = send_done.clone();
            let check_frames = move || {
                for frames in frames {
                    let checked = frames.into_iter().map(|frame| {
                        let right = is_right(checksum, &frame);
                        (frame, right)
                    });
                    if done.send((number, checked.collect())).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new().name(format!("receive-{number}")).spawn(check_frames)?;
            Ok(send)
        };
        let threads = (0..usize::from(offloads.threads)).map(start).collect::<io::Result<_>>()?;
        Ok(Spreader { checksum, threads, done })
    }

    /// Checks frames. The results are grouped by thread; the frames of one exchange keep their
    /// order.
    pub fn check(&self, frames: impl Iterator<Item = FrameBuf>) -> Vec<Checked> {
        if self.threads.is_empty() {
            return frames
                .map(|frame| (is_right(self.checksum, &frame), frame))
                .map(|(right, frame)| (frame, right))
                .collect();
        }
        let mut queues: Vec<Vec<FrameBuf>> = self.threads.iter().map(|_| Vec::new()).collect();
        for frame in frames {
            let queue = queue_of(&frame) % queues.len();
            queues[queue].push(frame);
        }
        let mut all: Vec<Vec<Checked>> = self.threads.iter().map(|_| Vec::new()).collect();
        let mut open = 0;
        for (thread, queue) in self.threads.iter().zip(queues) {
            open += usize::from(!queue.is_empty() && thread.send(queue).is_ok());
        }
        for (number, checked) in self.done.iter().take(open) {
            all[number] = checked;
        }
        all.into_iter().flatten().collect()
    }
}

/// Exchange identifier that this end assigned: OX_ID in frames from a responder, RX_ID in frames
/// from an originator.
fn queue_of(frame: &FrameBuf) -> usize {
    let header = frame.bytes().get(FRAME..FRAME + HEADER_BYTES).and_then(|bytes| Header::parse(bytes).ok());
    header.map_or(0, |header| {
        let to_initiator = header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
        usize::from(if to_initiator { header.ox_id } else { header.rx_id })
    })
}

/// Returns true if the frame is not FCoE or its CRC is right.
fn is_right(checksum: Checksum, frame: &FrameBuf) -> bool {
    let is_fcoe = frame.ether_type() == Some(EtherType::FCOE);
    let pdu = frame.bytes().get(ETHER_BYTES..).filter(|_| is_fcoe);
    pdu.and_then(|pdu| Fcoe::parse(pdu).ok()).is_none_or(|fcoe| checksum.agrees(&fcoe))
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
            assert!(is_right(Checksum::Table, &one) && is_right(Checksum::Simd, &one));
            one.bytes_mut()[FRAME] ^= 1;
            assert!(!is_right(Checksum::Table, &one) && !is_right(Checksum::Simd, &one));
        }
    }

    #[test]
    fn threads_keep_the_order_of_an_exchange() {
        let mut pool = Pool::default();
        let spreader = Spreader::start(&Offloads { threads: 3, ..Offloads::default() }).unwrap();
        let mut segmenter = Segmenter::new(&Offloads::default());
        let mut frames = Vec::new();
        for seq_cnt in 0..20 {
            for ox_id in 0..5 {
                let mut buffer = pool.take();
                let header = Header { f_ctl: FCtl::new(FCtl::EXCHANGE_RESPONDER), ..header(seq_cnt, ox_id, false) };
                segmenter.fill(&mut buffer, &header, (TO, FROM), &[1; 64]);
                if (seq_cnt, ox_id) == (4, 2) {
                    buffer.bytes_mut()[FRAME + 40] ^= 0x80;
                }
                frames.push(buffer);
            }
        }
        let checked = spreader.check(frames.into_iter());
        assert_eq!(checked.len(), 100);
        let mut next = [0; 5];
        for (frame, right) in &checked {
            let header = Header::parse(&frame.bytes()[FRAME..]).unwrap();
            let exchange = usize::from(header.ox_id);
            assert_eq!(header.seq_cnt, next[exchange]);
            next[exchange] += 1;
            assert_eq!(*right, (header.seq_cnt, header.ox_id) != (4, 2));
        }
    }

    #[test]
    fn contexts_are_for_long_reads_and_limited_in_number() {
        let document = Placement::DOCUMENT;
        assert!(document.allows(4_096, 511) && !document.allows(4_096, 512) && !document.allows(4_095, 0));
        assert!(Placement::Unlimited.allows(1, 100_000) && !Placement::Off.allows(1 << 20, 0));
    }
}
