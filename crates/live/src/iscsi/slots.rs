//! Buffers of the tasks of one connection: [`Slots`].

use crate::session::buffers::Spare;
use sanloom_scsi::scsi::IoTag;
use std::sync::Arc;

/// Buffer of a task, for the task and for its unsent data.
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
    /// Returns the slot of a task, and frees the buffer of an older task in it.
    fn slot(&mut self, tag: IoTag, spare: &mut Spare) -> &mut Slot {
        let number = usize::from(tag.slot());
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

    /// Returns space for `len` bytes of data from offset `at`.
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

    /// Takes the buffer, to fill or read it elsewhere.
    pub(super) fn take(&mut self, tag: IoTag, spare: &mut Spare) -> Vec<u8> {
        let slot = self.slot(tag, spare);
        if slot.buffer.capacity() == 0 { spare.take() } else { std::mem::take(&mut slot.buffer) }
    }

    /// Returns the buffer, if the task still exists.
    pub(super) fn put(&mut self, tag: IoTag, buffer: Vec<u8>, spare: &mut Spare) {
        match self.slots.get_mut(usize::from(tag.slot())).filter(|slot| slot.tag == tag) {
            Some(slot) => slot.buffer = buffer,
            None => spare.keep(buffer),
        }
    }

    /// Returns the buffer for sending.
    pub(super) fn sending(&mut self, tag: IoTag, spare: &mut Spare) -> Arc<Vec<u8>> {
        let slot = self.slot(tag, spare);
        let buffer = &mut slot.buffer;
        slot.sending.get_or_insert_with(|| Arc::new(std::mem::take(buffer))).clone()
    }

    /// Ends a task. Its unsent data keep the buffer.
    pub(super) fn release(&mut self, tag: IoTag, spare: &mut Spare) {
        if let Some(slot) = self.slots.get_mut(usize::from(tag.slot())).filter(|slot| slot.tag == tag) {
            spare.keep(std::mem::take(&mut slot.buffer));
            if let Some(Ok(buffer)) = slot.sending.take().map(Arc::try_unwrap) {
                spare.keep(buffer);
            }
        }
    }
}
