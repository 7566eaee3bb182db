//! Buffers of tasks: [`Slots`] of a connection, and those that wait for the next task ([`Spare`]).

use sanloom_core::scsi::IoTag;
use std::sync::Arc;

/// Buffers that are kept for later tasks, the largest of them, and all together.
const KEPT: usize = 256;
const KEPT_BYTES: usize = 4 << 20;
const ALL_KEPT_BYTES: usize = 64 << 20;

/// Buffers without a task. They keep their length, so that nobody fills them with zeros again.
#[derive(Debug, Default)]
pub(super) struct Spare {
    buffers: Vec<Vec<u8>>,
    /// Bytes of all of them.
    bytes: usize,
}

impl Spare {
    pub(super) fn take(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    pub(super) fn keep(&mut self, buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if (1..=KEPT_BYTES).contains(&bytes) && self.buffers.len() < KEPT && self.bytes + bytes <= ALL_KEPT_BYTES {
            self.bytes += bytes;
            self.buffers.push(buffer);
        }
    }
}

/// The buffer of a task, while the task has it and while its data leave.
#[derive(Debug, Default)]
struct Slot {
    tag: IoTag,
    buffer: Vec<u8>,
    sending: Option<Arc<Vec<u8>>>,
}

/// Buffers by the number of their task.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
}

impl Slots {
    /// The slot of a task; what an older task left there is free.
    fn slot(&mut self, tag: IoTag, spare: &mut Spare) -> &mut Slot {
        let number = usize::from(tag.0 as u16);
        if self.slots.len() <= number {
            self.slots.resize_with(number + 1, Slot::default);
        }
        let slot = &mut self.slots[number];
        if slot.tag != tag {
            spare.keep(std::mem::take(&mut slot.buffer));
            *slot = Slot { tag, ..Slot::default() };
        }
        slot
    }

    /// Room for `len` bytes of data from `at` on.
    pub(super) fn room(&mut self, tag: IoTag, at: usize, len: usize, spare: &mut Spare) -> &mut [u8] {
        let slot = self.slot(tag, spare);
        if slot.buffer.capacity() == 0 {
            slot.buffer = spare.take();
        }
        if slot.buffer.len() < at + len {
            slot.buffer.resize(at + len, 0);
        }
        &mut slot.buffer[at..at + len]
    }

    /// Takes the buffer, for somebody who fills or empties it.
    pub(super) fn take(&mut self, tag: IoTag, spare: &mut Spare) -> Vec<u8> {
        let slot = self.slot(tag, spare);
        if slot.buffer.capacity() == 0 { spare.take() } else { std::mem::take(&mut slot.buffer) }
    }

    /// Puts the buffer back, if the task is still there.
    pub(super) fn put(&mut self, tag: IoTag, buffer: Vec<u8>, spare: &mut Spare) {
        match self.slots.get_mut(usize::from(tag.0 as u16)).filter(|slot| slot.tag == tag) {
            Some(slot) => slot.buffer = buffer,
            None => spare.keep(buffer),
        }
    }

    /// The buffer, to be sent in pieces.
    pub(super) fn sending(&mut self, tag: IoTag, spare: &mut Spare) -> Arc<Vec<u8>> {
        let slot = self.slot(tag, spare);
        let buffer = &mut slot.buffer;
        slot.sending.get_or_insert_with(|| Arc::new(std::mem::take(buffer))).clone()
    }

    /// The task is over; pieces that leave keep its buffer.
    pub(super) fn release(&mut self, tag: IoTag, spare: &mut Spare) {
        if let Some(slot) = self.slots.get_mut(usize::from(tag.0 as u16)).filter(|slot| slot.tag == tag) {
            spare.keep(std::mem::take(&mut slot.buffer));
            if let Some(Ok(buffer)) = slot.sending.take().map(Arc::try_unwrap) {
                spare.keep(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_buffers_have_a_limit_together_and_come_back() {
        let mut spare = Spare::default();
        (0..KEPT).for_each(|_| spare.keep(Vec::with_capacity(KEPT_BYTES)));
        assert_eq!(spare.buffers.iter().map(Vec::capacity).sum::<usize>(), ALL_KEPT_BYTES);
        assert_eq!(spare.take().capacity(), KEPT_BYTES);
        spare.keep(vec![0; 4096]);
        assert_eq!(spare.take().capacity(), 4096);
        (0..KEPT).for_each(|_| drop(spare.take()));
        assert_eq!((spare.bytes, spare.buffers.len()), (0, 0));
        (0..2 * KEPT).for_each(|_| spare.keep(vec![0; 16]));
        assert_eq!(spare.buffers.len(), KEPT);
    }
}
