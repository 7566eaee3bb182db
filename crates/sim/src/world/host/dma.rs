//! Data frames on the buses of hosts.

use crate::net::FrameRef;
use sanloom_wire::FcId;

/// Data frames of one host on a bus, each with the N_Port of the frame path through which it
/// arrived or will leave.
#[derive(Default)]
pub(super) struct FramePool {
    slots: Vec<Option<(u16, FrameRef)>>,
    free: Vec<u32>,
}

impl FramePool {
    /// Stores a frame until the bus has moved it. Returns its slot.
    pub fn insert(&mut self, plane: u16, frame: FrameRef) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                debug_assert!(self.slots[slot as usize].is_none(), "slot {slot} is free");
                self.slots[slot as usize] = Some((plane, frame));
                slot
            }
            None => {
                self.slots.push(Some((plane, frame)));
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Removes a frame that the bus has moved. Call once per slot. Returns `None` if the frame was
    /// discarded meanwhile.
    pub fn remove(&mut self, slot: u32) -> Option<(u16, FrameRef)> {
        debug_assert!((slot as usize) < self.slots.len(), "slot {slot} was inserted");
        self.free.push(slot);
        self.slots.get_mut(slot as usize)?.take()
    }

    /// Discards the frames that would leave through `plane` with source address `s_id`. Incoming
    /// frames have another source address and stay, because each holds a receive buffer until the
    /// bus has moved it.
    pub fn discard_source(&mut self, plane: u16, s_id: FcId) {
        for slot in &mut self.slots {
            slot.take_if(|(through, frame)| *through == plane && frame.s_id() == s_id);
        }
    }
}
