//! Buffer space for the data of tasks: [`BufferSpace`].

use crate::scsi::IoTag;
use std::collections::VecDeque;

/// Buffer space of a session, and the queue of tasks that wait for it.
#[derive(Debug)]
pub(super) struct BufferSpace {
    max_bytes: u64,
    reserved_bytes: u64,
    waiting: VecDeque<IoTag>,
}

impl BufferSpace {
    pub(super) fn new(max_bytes: u32) -> BufferSpace {
        BufferSpace { max_bytes: max_bytes.into(), reserved_bytes: 0, waiting: VecDeque::new() }
    }

    /// Reserves space for a task. A single task may exceed the limit. Without space the task is
    /// queued, and the result is false.
    pub(super) fn reserve(&mut self, tag: IoTag, bytes: u32) -> bool {
        let bytes = u64::from(bytes);
        if self.reserved_bytes > 0 && self.reserved_bytes + bytes > self.max_bytes {
            if !self.waiting.contains(&tag) {
                self.waiting.push_back(tag);
            }
            return false;
        }
        self.reserved_bytes += bytes;
        true
    }

    /// Frees the space of a task.
    pub(super) fn release(&mut self, bytes: u32) {
        debug_assert!(self.reserved_bytes >= bytes.into(), "{bytes} of {} bytes are freed", self.reserved_bytes);
        self.reserved_bytes -= u64::from(bytes);
    }

    /// First task that waits for space.
    #[inline]
    pub(super) fn first_waiting(&self) -> Option<IoTag> {
        self.waiting.front().copied()
    }

    /// Removes the first task that waits.
    pub(super) fn remove_first(&mut self) {
        self.waiting.pop_front();
    }
}
