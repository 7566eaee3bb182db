//! Tasks of a session: [`Task`] and [`TaskTable`].

use crate::iscsi::sequence::UNNUMBERED;
use crate::ordered::OrderedMap;
use crate::scsi::{Attribute, BlockIo, DataDirection, Io, IoOp, IoTag, NexusId, Response, TaskId};
use sanloom_wire::iscsi::code::{attribute, flag};
use sanloom_wire::iscsi::{DataOut, Head, NO_TAG, R2t, ScsiCommand};
use sanloom_wire::sense::Sense;
use std::collections::VecDeque;

/// State of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    /// Its immediate data are arriving.
    Arriving,
    /// Commands with lower numbers are missing.
    Held,
    /// The device has deferred it.
    Waiting,
    /// Waiting for data, or for buffer space for them.
    Receiving,
    /// Its parameter list is being passed to the device.
    Fetching,
    /// Read that waits for buffer space.
    AwaitingBuffer,
    /// Its block I/O is in progress.
    Io,
    /// Forwarded: data pass between the host and back ends.
    Forwarded,
    /// Aborted during a write of the medium or in back ends. The task management response waits for
    /// the end of that write.
    Aborted,
    /// Its result is known, but the initiator still owes data for it.
    Ending(Response),
}

/// R2T whose data are incomplete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpenR2t {
    pub(super) target_tag: u32,
    pub(super) end: u32,
    pub(super) data_sn: u32,
}

/// Task of the session.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) state: State,
    pub(super) generation: u16,
    pub(super) command: ScsiCommand,
    pub(super) immediate: bool,
    pub(super) nexus: NexusId,
    /// Unit in the device; `None` before the device has received the task.
    pub(super) unit: Option<u16>,
    /// True while the device counts the task as its own.
    pub(super) in_device: bool,
    /// True while the task occupies a window slot.
    pub(super) in_window: bool,
    pub(super) io: BlockIo,
    /// True if its data are a parameter list.
    pub(super) is_parameter_list: bool,
    /// Bytes to transfer between initiator and target.
    pub(super) transfer_bytes: u32,
    /// Write data received so far in bytes; they arrive in order.
    pub(super) received: u32,
    /// Reserved buffer space in bytes.
    pub(super) reserved: u32,
    /// DataSN of the next unsolicited Data-Out; `None` if no more unsolicited data are expected.
    pub(super) unsolicited: Option<u32>,
    pub(super) r2ts: VecDeque<OpenR2t>,
    /// Offset up to which data were solicited, in bytes.
    pub(super) solicited: u32,
    /// Number of Data-In and R2T PDUs sent.
    pub(super) data_sn: u32,
    /// Reason why its data cannot be used.
    pub(super) fault: Option<Sense>,
    /// True if the task is or was forwarded.
    pub(super) forwarded: bool,
    /// True if block I/O of a write began before its data had arrived.
    pub(super) is_streaming: bool,
    /// Read data sent before the end of block I/O, in bytes.
    pub(super) streamed_bytes: u32,
}

const NO_IO: BlockIo = BlockIo { unit: 0, op: IoOp::Verify, lba: 0, blocks: 0, bytes: 0, fua: false };

impl Task {
    fn new(command: ScsiCommand, immediate: bool, nexus: NexusId, generation: u16, r2ts: VecDeque<OpenR2t>) -> Task {
        let more = command.flags & flag::FINAL == 0 && command.flags & flag::WRITE != 0;
        Task {
            state: State::Arriving,
            generation,
            command,
            immediate,
            nexus,
            unit: None,
            in_device: false,
            in_window: false,
            io: NO_IO,
            is_parameter_list: false,
            transfer_bytes: 0,
            received: 0,
            reserved: 0,
            unsolicited: more.then_some(0),
            r2ts,
            solicited: 0,
            data_sn: 0,
            fault: None,
            forwarded: false,
            is_streaming: false,
            streamed_bytes: 0,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.state != State::Free
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.command.flags & flag != 0
    }

    /// Bytes that the initiator expects to transfer in a direction.
    pub(super) fn expected(&self, direction: DataDirection) -> u32 {
        let declared = match direction {
            DataDirection::Read => self.has(flag::READ),
            DataDirection::Write => self.has(flag::WRITE),
            DataDirection::None => false,
        };
        if declared { self.command.expected_bytes } else { 0 }
    }

    /// Returns whether the initiator announced data in the opposite direction only.
    pub(super) fn declares_only_opposite(&self, direction: DataDirection) -> bool {
        let (read, write) = (self.has(flag::READ), self.has(flag::WRITE));
        match direction {
            DataDirection::Read => write && !read,
            DataDirection::Write => read && !write,
            DataDirection::None => false,
        }
    }

    /// Header of the command, with its immediate data if no other data have arrived.
    pub(super) fn head(&self) -> Head {
        Head { immediate: self.immediate, ..Head::with_data(self.command, self.received) }
    }

    /// Returns whether number, offset and length of a Data-Out are the expected ones. Data must
    /// arrive in order.
    pub(super) fn is_in_order(&self, head: &Head, data: &DataOut, first_burst_bytes: u32) -> bool {
        let last = data.flags & flag::FINAL != 0;
        let Some(end) = data.offset.checked_add(head.data_bytes) else { return false };
        if data.offset != self.received || end > self.command.expected_bytes {
            return false;
        }
        if data.target_tag == NO_TAG {
            return self.unsolicited == Some(data.data_sn) && end <= first_burst_bytes;
        }
        let Some(open) = self.r2ts.front() else { return false };
        // The final bit must be set exactly on the PDU that completes the sequence.
        open.target_tag == data.target_tag
            && open.data_sn == data.data_sn
            && end <= open.end
            && (end == open.end) == last
    }

    /// Counts a Data-Out that is in order. `last` is its final bit.
    pub(super) fn count_data_out(&mut self, bytes: u32, solicited: bool, last: bool) {
        self.received += bytes;
        debug_assert!(self.received <= self.command.expected_bytes, "more data than expected");
        if !solicited {
            self.unsolicited = if last { None } else { self.unsolicited.map(|data_sn| data_sn + 1) };
        } else if last {
            self.r2ts.pop_front();
        } else if let Some(open) = self.r2ts.front_mut() {
            open.data_sn += 1;
        }
    }

    /// Accepts no further data.
    pub(super) fn close_data(&mut self) {
        self.unsolicited = None;
        self.r2ts.clear();
    }

    /// Offset up to which data have arrived or were solicited, in bytes.
    pub(super) fn solicited_end(&self) -> u32 {
        self.solicited.max(self.received)
    }

    /// Solicits the next data, up to offset `end` but no more than a burst. `transfer` is the
    /// number of the transfer, and `window` is ExpCmdSN and MaxCmdSN.
    pub(super) fn open_r2t(&mut self, slot: u16, transfer: u16, end: u32, burst_bytes: u32, window: (u32, u32)) -> R2t {
        let offset = self.solicited_end();
        let desired_bytes = end.saturating_sub(offset).min(burst_bytes);
        debug_assert!(desired_bytes > 0, "an R2T requests data");
        // A task number is never FFFF, so the tag is never the reserved value FFFFFFFF.
        let target_tag = u32::from(transfer) << 16 | u32::from(slot);
        self.solicited = offset + desired_bytes;
        debug_assert!(self.solicited <= self.command.expected_bytes, "more data are solicited than expected");
        self.r2ts.push_back(OpenR2t { target_tag, end: self.solicited, data_sn: 0 });
        let (exp_cmd_sn, max_cmd_sn) = window;
        R2t {
            lun: self.command.lun,
            initiator_tag: self.command.initiator_tag,
            target_tag,
            stat_sn: UNNUMBERED,
            exp_cmd_sn,
            max_cmd_sn,
            r2t_sn: self.next_data_sn(),
            offset,
            desired_bytes,
        }
    }

    /// Number of the next Data-In or R2T.
    #[inline]
    pub(super) fn next_data_sn(&mut self) -> u32 {
        let data_sn = self.data_sn;
        self.data_sn += 1;
        data_sn
    }

    /// Returns whether the initiator may still send data for the task.
    pub(super) fn is_open(&self) -> bool {
        self.unsolicited.is_some() || !self.r2ts.is_empty()
    }

    pub(super) fn tag(&self, slot: u16) -> IoTag {
        IoTag::new(slot, self.generation)
    }

    pub(super) fn id(&self, slot: u16) -> TaskId {
        TaskId { nexus: self.nexus, tag: self.tag(slot), unit: self.unit.unwrap_or(0) }
    }

    pub(super) fn block_io(&self, slot: u16) -> Io {
        let BlockIo { unit, op, lba, blocks, fua, .. } = self.io;
        Io { tag: self.tag(slot), nexus: self.nexus, unit, op, lba, blocks, bytes: self.transfer_bytes, fua }
    }

    pub(super) fn attribute(&self) -> Attribute {
        match self.command.flags & flag::ATTRIBUTE {
            attribute::HEAD_OF_QUEUE => Attribute::HeadOfQueue,
            attribute::ORDERED => Attribute::Ordered,
            _ => Attribute::Simple,
        }
    }
}

/// All tasks of a session, by slot number and by initiator task tag.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskTable {
    slots: Vec<Task>,
    free: Vec<u16>,
    by_tag: OrderedMap<u32, u16>,
    immediate: u16,
    aborted: u16,
}

impl TaskTable {
    /// Returns the slot of the task with an initiator task tag.
    pub(super) fn find(&self, initiator_tag: u32) -> Option<u16> {
        self.by_tag.get(&initiator_tag).copied()
    }

    /// Number of immediate tasks, which the window does not limit.
    pub(super) fn immediate(&self) -> u16 {
        self.immediate
    }

    /// Number of tasks that have not ended.
    pub(super) fn len(&self) -> usize {
        self.by_tag.len()
    }

    pub(super) fn allocate(&mut self, command: ScsiCommand, immediate: bool, nexus: NexusId) -> u16 {
        self.immediate += u16::from(immediate);
        let slot = match self.free.pop() {
            Some(slot) => {
                let old = &mut self.slots[usize::from(slot)];
                let r2ts = std::mem::take(&mut old.r2ts);
                *old = Task::new(command, immediate, nexus, old.generation.wrapping_add(1), r2ts);
                slot
            }
            None => {
                self.slots.push(Task::new(command, immediate, nexus, 0, VecDeque::new()));
                slot_number(self.slots.len() - 1)
            }
        };
        let duplicate = self.by_tag.insert(command.initiator_tag, slot);
        debug_assert_eq!(duplicate, None, "an initiator task tag names one task");
        slot
    }

    pub(super) fn release(&mut self, slot: u16) {
        self.unlist(slot);
        let task = &mut self.slots[usize::from(slot)];
        debug_assert!(task.is_live(), "slot {slot} is released twice");
        debug_assert!(!task.in_window, "an ended task holds a window slot");
        self.aborted -= u16::from(task.state == State::Aborted);
        task.state = State::Free;
        task.r2ts.clear();
        self.free.push(slot);
    }

    /// Removes a task from the initiator's view, but keeps its slot reserved. Data for it are
    /// discarded from now on.
    pub(super) fn mark_aborted(&mut self, slot: u16) {
        debug_assert_ne!(self.slots[usize::from(slot)].state, State::Aborted, "a task is aborted once");
        self.unlist(slot);
        self.aborted += 1;
        let task = &mut self.slots[usize::from(slot)];
        task.close_data();
        task.state = State::Aborted;
    }

    fn unlist(&mut self, slot: u16) {
        let task = &mut self.slots[usize::from(slot)];
        if task.state != State::Aborted {
            let listed = self.by_tag.remove(&task.command.initiator_tag);
            debug_assert_eq!(listed, Some(slot), "the initiator task tag belongs to the slot");
            self.immediate -= u16::from(task.immediate);
        }
    }

    /// Tasks that were aborted and for which the medium is still writing.
    pub(super) fn writing(&self) -> Vec<IoTag> {
        let writing = |slot: &u16| {
            let task = &self.slots[usize::from(*slot)];
            task.state == State::Aborted && !task.forwarded
        };
        self.live().into_iter().filter(writing).map(|slot| self.slots[usize::from(slot)].tag(slot)).collect()
    }

    /// Number of tasks in [`State::Aborted`].
    pub(super) fn aborted(&self) -> u16 {
        self.aborted
    }

    pub(super) fn get(&self, slot: u16) -> Option<&Task> {
        self.slots.get(usize::from(slot)).filter(|task| task.is_live())
    }

    /// Task in a slot that is in use.
    #[inline]
    pub(super) fn at(&mut self, slot: u16) -> &mut Task {
        debug_assert!(self.get(slot).is_some(), "slot {slot} holds no task");
        &mut self.slots[usize::from(slot)]
    }

    /// Task to which block I/O belongs, if its generation matches.
    #[inline]
    pub(super) fn find_io(&self, tag: IoTag) -> Option<&Task> {
        self.get(tag.slot()).filter(|task| task.tag(tag.slot()) == tag)
    }

    /// Slots of all tasks that have not ended.
    pub(super) fn live(&self) -> Vec<u16> {
        (0..slot_number(self.slots.len())).filter(|slot| self.slots[usize::from(*slot)].is_live()).collect()
    }
}

/// Number of a slot. A session has at most one slot for each command of its window and each
/// immediate command, so the number of slots fits.
fn slot_number(index: usize) -> u16 {
    debug_assert!(u16::try_from(index).is_ok(), "{index} slots");
    u16::try_from(index).unwrap_or(u16::MAX)
}
