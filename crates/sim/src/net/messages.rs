//! Control messages under way: a pool of typed frames, each cut into one or more parts on the wire.

use super::frame_ref::FrameRef;
use sanloom_wire::Frame;
use std::cell::OnceCell;

/// A pool of control messages. A message lives until each of its parts has been delivered or lost.
#[derive(Debug, Default)]
pub struct Messages {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    frame: Option<Frame>,
    parts: u16,
    /// Parts that are neither delivered nor lost.
    under_way: u16,
    delivered: u16,
    len_bytes: u32,
    part_bytes: u16,
    /// The payload as bytes, once a link was observed while a part crossed it.
    encoded: OnceCell<Vec<u8>>,
}

/// A frame has 24 bits for the number of its message.
const MOST: usize = 1 << 24;

/// A control message that waits to be sent, part by part.
#[derive(Clone, Copy, Debug)]
pub struct MessageTx {
    /// Its number in the pool.
    pub number: u32,
    next_part: u16,
}

impl Messages {
    /// Takes a frame into the pool; it will travel in parts of at most `part_bytes`. SEQ_CNT has numbers for 65,535 parts,
    /// which is 16 MB in the smallest frames that a port may ask for.
    ///
    /// # Panics
    /// With 16,777,216 messages under way.
    pub fn insert(&mut self, frame: Frame, part_bytes: u16) -> MessageTx {
        let len_bytes = frame.payload.len() as u32;
        let parts = len_bytes.div_ceil(u32::from(part_bytes)).clamp(1, u16::MAX.into()) as u16;
        let encoded = OnceCell::new();
        let slot = Slot { frame: Some(frame), parts, under_way: parts, delivered: 0, len_bytes, part_bytes, encoded };
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                assert!(self.slots.len() < MOST, "{MOST} control messages are under way");
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        MessageTx { number, next_part: 0 }
    }

    /// The next part of a message, and whether it is the last one.
    pub fn next_part(&self, tx: &mut MessageTx) -> Option<(FrameRef, bool)> {
        let slot = &self.slots[tx.number as usize];
        let header = &slot.frame.as_ref()?.header;
        let sent = u32::from(tx.next_part) * u32::from(slot.part_bytes);
        let len = slot.len_bytes.saturating_sub(sent).min(u32::from(slot.part_bytes)) as u16;
        let frame = FrameRef::control(header, tx.number, tx.next_part, len);
        tx.next_part += 1;
        Some((frame, tx.next_part >= slot.parts))
    }

    /// The part has arrived. Returns the whole message with the last of its parts.
    pub fn deliver(&mut self, number: u32) -> Option<Frame> {
        let slot = &mut self.slots[number as usize];
        slot.delivered += 1;
        let whole = slot.delivered == slot.parts;
        let frame = if whole { slot.frame.take() } else { None };
        self.part_gone(number);
        frame
    }

    /// The part will never arrive.
    pub fn part_gone(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.under_way -= 1;
        if slot.under_way == 0 {
            slot.frame = None;
            slot.encoded = OnceCell::new();
            self.free.push(number);
        }
    }

    /// The unsent parts of a message will never be sent.
    pub fn abandon(&mut self, tx: MessageTx) {
        for _ in tx.next_part..self.slots[tx.number as usize].parts {
            self.part_gone(tx.number);
        }
    }

    /// The message, while a part of it is under way and not all have arrived.
    pub fn get(&self, number: u32) -> Option<&Frame> {
        self.slots[number as usize].frame.as_ref()
    }

    /// Bytes of one part as they stand on the wire, cut out of the encoded message.
    pub fn part_bytes(&self, frame: &FrameRef, out: &mut Vec<u8>) {
        out.clear();
        let Some(number) = frame.message() else { return };
        let slot = &self.slots[number as usize];
        if let Some(message) = &slot.frame {
            let all = slot.encoded.get_or_init(|| {
                let mut all = Vec::with_capacity(slot.len_bytes as usize);
                message.payload.write_to(&mut all);
                all
            });
            let from = usize::from(frame.part()) * usize::from(slot.part_bytes);
            let to = (from + usize::from(slot.part_bytes)).min(all.len());
            out.extend_from_slice(all.get(from..to).unwrap_or(&[]));
        }
    }

    /// Gives back memory, if no message is under way.
    pub fn trim(&mut self) {
        if self.is_empty() {
            *self = Messages::default();
        }
    }

    /// Number of parts of the message.
    pub fn parts(&self, number: u32) -> u16 {
        self.slots[number as usize].parts
    }

    /// Messages in the pool.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// No message is under way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::{FcId, Message, Payload};

    /// An all-seeing answer of a name server with 65,000 ports takes 1 MB, a database of 1,000 zones twice as much.
    #[test]
    fn a_message_of_more_than_255_frames_is_cut_and_put_together_again() {
        let bytes: Vec<u8> = (0..1_040_000u32).map(|at| (at * 7 / 8) as u8).collect();
        let header = Message::FcpConf.header(FcId::NAME_SERVER, FcId::new(0x01_0200), 1, 2);
        let mut pool = Messages::default();
        pool.insert(Frame { header, payload: Payload::Bytes([1].into()) }, 2112);
        let mut tx = pool.insert(Frame { header, payload: Payload::Bytes(bytes.clone().into()) }, 2112);
        let (mut whole, mut part) = (Vec::new(), Vec::new());
        for number in 0..bytes.len().div_ceil(2112) {
            let (frame, last) = pool.next_part(&mut tx).expect("another part");
            assert_eq!((frame.message(), usize::from(frame.part())), (Some(1), number));
            assert_eq!(last, whole.len() + 2112 >= bytes.len());
            pool.part_bytes(&frame, &mut part);
            assert_eq!(part.len(), usize::from(frame.len_bytes()));
            whole.extend_from_slice(&part);
            assert_eq!(pool.deliver(1).is_some(), last);
        }
        assert!(whole == bytes);
        assert_eq!(pool.len(), 1);
    }
}
