//! In-flight control messages: a pool of typed frames, each sent in one or more parts.

use super::frame_ref::FrameRef;
use sanloom_wire::Frame;
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// A pool of control messages. A message is freed when each of its parts has been delivered or
/// lost.
#[derive(Debug, Default)]
pub struct Messages {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    frame: Option<Frame>,
    /// The message, if parts of it may be in several pools. Then `frame` is `None`.
    shared: Option<Arc<Shared>>,
    parts: u16,
    /// Parts that are neither delivered nor lost.
    in_flight: u16,
    delivered: u16,
    len_bytes: u32,
    part_bytes: u16,
    /// The encoded payload. Set when a part crosses a watched link for the first time.
    encoded: OnceCell<Vec<u8>>,
}

/// A message whose parts cross between two parts of the network, each of which has a pool.
#[derive(Debug)]
struct Shared {
    frame: Frame,
    /// Parts delivered so far. All of them arrive at the same pool.
    delivered: AtomicU16,
}

/// Parts of a message on the way from one pool to another.
#[derive(Debug)]
pub(super) struct Parcel {
    slot: Slot,
}

/// Limit on messages in the pool, because a frame reference has 24 bits for the message number.
const MOST: usize = 1 << 24;

/// A control message that is being sent part by part.
#[derive(Clone, Copy, Debug)]
pub struct MessageTx {
    /// Number in the pool.
    pub number: u32,
    next_part: u16,
}

impl Messages {
    /// Adds a frame to the pool, to be sent in parts of at most `part_bytes`. SEQ_CNT can number
    /// 65,535 parts, which is 16 MB at the smallest frame size that a port may request.
    ///
    /// # Panics
    /// If 16,777,216 messages are in flight.
    pub fn insert(&mut self, frame: Frame, part_bytes: u16) -> MessageTx {
        let len_bytes = frame.payload.len() as u32;
        let parts = len_bytes.div_ceil(u32::from(part_bytes)).clamp(1, u16::MAX.into()) as u16;
        let encoded = OnceCell::new();
        let frame = Some(frame);
        let slot = Slot { frame, shared: None, parts, in_flight: parts, delivered: 0, len_bytes, part_bytes, encoded };
        MessageTx { number: self.store(slot), next_part: 0 }
    }

    fn store(&mut self, slot: Slot) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                assert!(self.slots.len() < MOST, "{MOST} control messages are in flight");
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Removes `parts` of the parts of a message that are in flight, to add them to another pool.
    pub(super) fn leave(&mut self, number: u32, parts: u16) -> Parcel {
        let slot = &mut self.slots[number as usize];
        if slot.parts > 1
            && let Some(frame) = slot.frame.take()
        {
            slot.shared = Some(Arc::new(Shared { frame, delivered: AtomicU16::new(slot.delivered) }));
        }
        let moved = Slot {
            frame: slot.frame.take(),
            shared: slot.shared.clone(),
            in_flight: parts,
            encoded: OnceCell::new(),
            ..*slot
        };
        for _ in 0..parts {
            self.part_ended(number);
        }
        Parcel { slot: moved }
    }

    /// Adds parts of a message from another pool. Returns their number in this pool.
    pub(super) fn enter(&mut self, parcel: Parcel) -> u32 {
        self.store(parcel.slot)
    }

    /// Returns the number of parts that a sender has not sent.
    pub(super) fn unsent_parts(&self, tx: &MessageTx) -> u16 {
        self.slots[tx.number as usize].parts.saturating_sub(tx.next_part)
    }

    /// Returns the next part of a message, and whether it is the last one.
    #[inline]
    pub fn next_part(&self, tx: &mut MessageTx) -> Option<(FrameRef, bool)> {
        let slot = &self.slots[tx.number as usize];
        let header = &slot.message()?.header;
        let sent = u32::from(tx.next_part) * u32::from(slot.part_bytes);
        let len = slot.len_bytes.saturating_sub(sent).min(u32::from(slot.part_bytes)) as u16;
        let frame = FrameRef::control(header, tx.number, tx.next_part, len);
        tx.next_part += 1;
        Some((frame, tx.next_part >= slot.parts))
    }

    /// Records the delivery of a part. Returns the whole message with its last part.
    pub fn deliver(&mut self, number: u32) -> Option<Frame> {
        let slot = &mut self.slots[number as usize];
        let frame = match &slot.shared {
            Some(shared) => {
                let delivered = shared.delivered.fetch_add(1, Ordering::Relaxed) + 1;
                (delivered == slot.parts).then(|| shared.frame.clone())
            }
            None => {
                slot.delivered += 1;
                let whole = slot.delivered == slot.parts;
                if whole { slot.frame.take() } else { None }
            }
        };
        self.part_ended(number);
        frame
    }

    /// Records the loss of a part.
    pub fn part_ended(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.in_flight -= 1;
        if slot.in_flight == 0 {
            (slot.frame, slot.shared) = (None, None);
            slot.encoded = OnceCell::new();
            self.free.push(number);
        }
    }

    /// Gives up the unsent parts of a message.
    pub fn abandon(&mut self, tx: MessageTx) {
        for _ in tx.next_part..self.slots[tx.number as usize].parts {
            self.part_ended(tx.number);
        }
    }

    /// Returns the message while at least one part is in flight and not all parts have arrived.
    pub fn get(&self, number: u32) -> Option<&Frame> {
        self.slots[number as usize].message()
    }

    /// Appends the bytes of one part as sent on the wire.
    pub fn part_bytes(&self, frame: &FrameRef, out: &mut Vec<u8>) {
        out.clear();
        let Some(number) = frame.message() else { return };
        let slot = &self.slots[number as usize];
        if let Some(message) = slot.message() {
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

    /// Frees the memory of the pool if no message is in flight.
    pub fn trim(&mut self) {
        if self.is_empty() {
            *self = Messages::default();
        }
    }

    /// Returns the number of parts of the message.
    pub fn parts(&self, number: u32) -> u16 {
        self.slots[number as usize].parts
    }

    /// Returns the number of messages in the pool.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether no message is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Slot {
    fn message(&self) -> Option<&Frame> {
        self.frame.as_ref().or_else(|| self.shared.as_ref().map(|shared| &shared.frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::{FcId, Message, Payload};

    /// The complete name server response for 65,000 ports takes 1 MB; a database of 1,000 zones
    /// takes twice as much.
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
