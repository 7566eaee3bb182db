//! Data that pass a gateway before their command is complete ([`Limits::streams`]).
//!
//! [`Limits::streams`]: super::Limits::streams

use super::engine::TaskEngine;
use super::event::Output;
use super::task::State;
use crate::scsi::{IoOp, IoTag};

impl TaskEngine {
    /// Begins block I/O of a write whose data have not arrived completely, if there is buffer space
    /// for them. Otherwise the write begins when its data have arrived.
    pub(super) fn begin_streaming(&mut self, slot: u16) {
        let streams = self.streams;
        let task = self.tasks.at(slot);
        let is_plain = streams && task.io.op == IoOp::Write && task.fault.is_none();
        if !is_plain || task.received >= task.transfer_bytes || !self.reserve_buffer(slot) {
            return;
        }
        let task = self.tasks.at(slot);
        task.is_streaming = true;
        let io = task.block_io(slot);
        self.out.push(Output::Io(io));
        self.report_arrived(slot);
    }

    /// Reports the data of a write that have arrived, also that none have when its block I/O begins.
    pub(super) fn report_arrived(&mut self, slot: u16) {
        let task = self.tasks.at(slot);
        if task.is_streaming {
            let (tag, bytes) = (task.tag(slot), task.received);
            self.out.push(Output::Arrived { tag, bytes });
        }
    }

    /// Sends the first `bytes` bytes of a read whose block I/O continues. The last byte waits for
    /// the status, so that both leave in one PDU.
    pub(super) fn on_io_data(&mut self, tag: IoTag, bytes: u32) {
        let slot = tag.slot();
        let Some(task) = self.tasks.find_io(tag) else { return };
        let (from, to) = (task.streamed_bytes, bytes);
        let is_read = task.state == State::Io && task.io.op == IoOp::Read;
        if !is_read || to <= from || to >= task.transfer_bytes {
            return;
        }
        self.tasks.at(slot).streamed_bytes = to;
        self.out.counters.read_bytes += u64::from(to - from);
        self.send_range(slot, from..to, None, |head, at| Output::Data { tag, head, at });
    }
}
