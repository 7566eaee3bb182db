//! The tasks of a session: [`Task`] and [`TaskTable`].

use crate::fcp::DataDirection;
use crate::scsi::{Attribute, BlockIo, Io, IoOp, IoTag, NexusId, Response, TaskId};
use sanloom_wire::iscsi::ScsiCommand;
use sanloom_wire::iscsi::code::{attribute, flag};
use sanloom_wire::sense::Sense;
use std::collections::{BTreeMap, VecDeque};

/// Where a task stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    /// Its immediate data are under way.
    Arriving,
    /// Commands with lower numbers are missing.
    Held,
    /// The device lets it begin later.
    Waiting,
    /// Data are to come, or room for them.
    Receiving,
    /// Its parameter list is on the way to the device.
    Fetching,
    /// There is no room for the data of its read yet.
    Hungry,
    /// The medium works.
    Io,
    /// The forwarding path has it: data pass between the host and back ends.
    Forwarded,
    /// It was aborted while the medium wrote: task management of its session is answered when that is over.
    Dying,
    /// Its end is known; what the initiator still sends for it is to come first.
    Ending(Response),
}

/// An R2T whose data are not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpenR2t {
    pub(super) target_tag: u32,
    pub(super) end: u32,
    pub(super) data_sn: u32,
}

/// A task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) state: State,
    pub(super) generation: u16,
    pub(super) command: ScsiCommand,
    pub(super) immediate: bool,
    pub(super) nexus: NexusId,
    /// Known when the device has seen it.
    pub(super) unit: Option<u16>,
    /// The device counts it among its own.
    pub(super) begun: bool,
    /// It takes a place in the window.
    pub(super) counted: bool,
    pub(super) io: BlockIo,
    /// Its data are a parameter list.
    pub(super) list: bool,
    /// Bytes that move between initiator and target.
    pub(super) wanted: u32,
    /// Bytes of data-out that have come; they come in order.
    pub(super) received: u32,
    /// Bytes for which room was reserved.
    pub(super) reserved: u32,
    /// Unsolicited data are still to come, and the number of the next one.
    pub(super) unsolicited: Option<u32>,
    pub(super) r2ts: VecDeque<OpenR2t>,
    /// Up to where data were asked for.
    pub(super) solicited: u32,
    /// Data-In and R2T that were sent.
    pub(super) data_sn: u32,
    /// Its data cannot be used, and why.
    pub(super) fault: Option<Sense>,
    /// The forwarding path has it, or had it.
    pub(super) forwarded: bool,
}

const NO_IO: BlockIo = BlockIo { unit: 0, op: IoOp::Verify, lba: 0, blocks: 0, bytes: 0, fua: false };

impl Task {
    fn new(command: ScsiCommand, immediate: bool, nexus: NexusId, generation: u16, r2ts: VecDeque<OpenR2t>) -> Task {
        let goes_on = command.flags & flag::FINAL == 0 && command.flags & flag::WRITE != 0;
        Task {
            state: State::Arriving,
            generation,
            command,
            immediate,
            nexus,
            unit: None,
            begun: false,
            counted: false,
            io: NO_IO,
            list: false,
            wanted: 0,
            received: 0,
            reserved: 0,
            unsolicited: goes_on.then_some(0),
            r2ts,
            solicited: 0,
            data_sn: 0,
            fault: None,
            forwarded: false,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.state != State::Free
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.command.flags & flag != 0
    }

    /// Bytes that the initiator expects to move in a direction.
    pub(super) fn expected(&self, direction: DataDirection) -> u32 {
        let declared = match direction {
            DataDirection::Read => self.has(flag::READ),
            DataDirection::Write => self.has(flag::WRITE),
            DataDirection::None => false,
        };
        if declared { self.command.expected_bytes } else { 0 }
    }

    /// The initiator sends data only in the other direction.
    pub(super) fn contradicts(&self, direction: DataDirection) -> bool {
        let (read, write) = (self.has(flag::READ), self.has(flag::WRITE));
        match direction {
            DataDirection::Read => write && !read,
            DataDirection::Write => read && !write,
            DataDirection::None => false,
        }
    }

    /// Data of it are still to come that it has a right to send.
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
        Io { tag: self.tag(slot), nexus: self.nexus, unit, op, lba, blocks, bytes: self.wanted, fua }
    }

    pub(super) fn attribute(&self) -> Attribute {
        match self.command.flags & flag::ATTRIBUTE {
            attribute::HEAD_OF_QUEUE => Attribute::HeadOfQueue,
            attribute::ORDERED => Attribute::Ordered,
            _ => Attribute::Simple,
        }
    }
}

/// All tasks of a session, by number and by initiator task tag.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskTable {
    slots: Vec<Task>,
    free: Vec<u16>,
    by_tag: BTreeMap<u32, u16>,
    immediate: u16,
    dying: u16,
}

impl TaskTable {
    /// The task of an initiator task tag.
    pub(super) fn find(&self, initiator_tag: u32) -> Option<u16> {
        self.by_tag.get(&initiator_tag).copied()
    }

    /// Immediate tasks, which the window does not limit.
    pub(super) fn immediate(&self) -> u16 {
        self.immediate
    }

    /// Tasks that have not ended.
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
                (self.slots.len() - 1) as u16
            }
        };
        self.by_tag.insert(command.initiator_tag, slot);
        slot
    }

    pub(super) fn release(&mut self, slot: u16) {
        self.forget(slot);
        let task = &mut self.slots[usize::from(slot)];
        self.dying -= u16::from(task.state == State::Dying);
        task.state = State::Free;
        task.r2ts.clear();
        self.free.push(slot);
    }

    /// The task is none of the initiator's any more, but its number is not free yet.
    pub(super) fn bury(&mut self, slot: u16) {
        self.forget(slot);
        self.dying += 1;
        self.slots[usize::from(slot)].state = State::Dying;
    }

    fn forget(&mut self, slot: u16) {
        let task = &mut self.slots[usize::from(slot)];
        if task.state != State::Dying {
            self.by_tag.remove(&task.command.initiator_tag);
            self.immediate -= u16::from(task.immediate);
        }
    }

    /// Tasks that were aborted while the medium wrote, and still does.
    pub(super) fn writing(&self) -> Vec<IoTag> {
        let dying = |slot: &u16| {
            let task = &self.slots[usize::from(*slot)];
            task.state == State::Dying && !task.forwarded
        };
        self.live().into_iter().filter(dying).map(|slot| self.slots[usize::from(slot)].tag(slot)).collect()
    }

    /// Tasks that are [`State::Dying`].
    pub(super) fn dying(&self) -> u16 {
        self.dying
    }

    pub(super) fn get(&self, slot: u16) -> Option<&Task> {
        self.slots.get(usize::from(slot)).filter(|task| task.is_live())
    }

    /// The task of a number that is in use.
    pub(super) fn at(&mut self, slot: u16) -> &mut Task {
        &mut self.slots[usize::from(slot)]
    }

    /// The task that block I/O was for.
    pub(super) fn of(&self, tag: IoTag) -> Option<&Task> {
        self.get(tag.0 as u16).filter(|task| task.tag(tag.0 as u16) == tag)
    }

    /// Numbers of all tasks that have not ended.
    pub(super) fn live(&self) -> Vec<u16> {
        (0..self.slots.len() as u16).filter(|slot| self.slots[usize::from(*slot)].is_live()).collect()
    }
}
