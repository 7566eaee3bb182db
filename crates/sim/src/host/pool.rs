//! Pools of commands and of the requests they contain.

use crate::workload::{Request, RequestOp};
use sanloom_fc::config::Target;

/// Index of a command in one host's queue, dense from 0. It is reused after the command has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(pub u32);

/// A command: one request, or several that were merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// First block.
    pub lba: u64,
    pub blocks: u32,
    pub bytes: u32,
    pub lun: Target,
    pub op: RequestOp,
    /// Number of requests in the command.
    pub requests: u32,
}

impl Command {
    /// Returns the block after the last one.
    pub fn end_lba(&self) -> u64 {
        self.lba.saturating_add(u64::from(self.blocks))
    }
}

/// A request within a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    pub request: Request,
    pub arrival_ps: u64,
    /// Number of the stream that issued the request, as given by the caller.
    pub stream: u32,
}

/// Stage of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Free,
    Waiting,
    Outstanding,
    Parked,
}

/// Commands in slots, each with a singly linked list of its requests. Slots and list nodes are
/// reused, so memory grows only with the highest number of simultaneous requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    slots: Vec<Slot>,
    free_slot: Option<u32>,
    nodes: Vec<Node>,
    free_node: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    command: Command,
    /// Sequence number of the command's first request. It is unique and distinguishes successive
    /// commands in the same slot.
    seq: u64,
    stage: Stage,
    first: Option<u32>,
    last: Option<u32>,
    next_free: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    member: Member,
    next: Option<u32>,
}

impl Pool {
    /// Returns the number of requests in all commands.
    pub fn requests(&self) -> u64 {
        let used = self.slots.iter().filter(|slot| slot.stage != Stage::Free);
        used.map(|slot| u64::from(slot.command.requests)).sum()
    }

    /// Iterates over the requests in all commands.
    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        let used = self.slots.iter().filter(|slot| slot.stage != Stage::Free);
        used.flat_map(|slot| {
            let node = |number: u32| &self.nodes[number as usize];
            std::iter::successors(slot.first.map(node), move |last| last.next.map(node)).map(|node| &node.member)
        })
    }

    /// Adds a waiting command with one request.
    pub(super) fn insert(&mut self, member: Member, seq: u64) -> CommandId {
        let node = self.new_node(member);
        let request = member.request;
        let slot = Slot {
            command: Command {
                lba: request.lba,
                blocks: request.blocks,
                bytes: request.bytes,
                lun: request.lun,
                op: request.op,
                requests: 1,
            },
            seq,
            stage: Stage::Waiting,
            first: Some(node),
            last: Some(node),
            next_free: None,
        };
        match self.free_slot {
            Some(index) => {
                self.free_slot = self.slots[index as usize].next_free;
                self.slots[index as usize] = slot;
                CommandId(index)
            }
            None => {
                self.slots.push(slot);
                CommandId(self.slots.len() as u32 - 1)
            }
        }
    }

    pub(super) fn get(&self, id: CommandId) -> Option<&Command> {
        let slot = self.slots.get(id.0 as usize)?;
        (slot.stage != Stage::Free).then_some(&slot.command)
    }

    pub(super) fn stage(&self, id: CommandId) -> Stage {
        self.slots.get(id.0 as usize).map_or(Stage::Free, |slot| slot.stage)
    }

    pub(super) fn set_stage(&mut self, id: CommandId, stage: Stage) {
        self.slots[id.0 as usize].stage = stage;
    }

    pub(super) fn seq(&self, id: CommandId) -> u64 {
        self.slots[id.0 as usize].seq
    }

    /// Returns whether `id` still refers to the waiting command with sequence number `seq`.
    pub(super) fn is_waiting(&self, id: CommandId, seq: u64) -> bool {
        let slot = &self.slots[id.0 as usize];
        slot.stage == Stage::Waiting && slot.seq == seq
    }

    /// Adds a request at the front or the end of command `id`.
    pub(super) fn extend(&mut self, id: CommandId, member: Member) {
        let node = self.new_node(member);
        let slot = &mut self.slots[id.0 as usize];
        slot.command.lba = slot.command.lba.min(member.request.lba);
        slot.command.blocks += member.request.blocks;
        slot.command.bytes += member.request.bytes;
        slot.command.requests += 1;
        let last = slot.last.replace(node);
        match last {
            Some(last) => self.nodes[last as usize].next = Some(node),
            None => slot.first = Some(node),
        }
    }

    /// Moves all requests of `from` into `into` and frees `from`.
    pub(super) fn join(&mut self, into: CommandId, from: CommandId) {
        let taken = self.slots[from.0 as usize];
        let slot = &mut self.slots[into.0 as usize];
        slot.command.lba = slot.command.lba.min(taken.command.lba);
        slot.command.blocks += taken.command.blocks;
        slot.command.bytes += taken.command.bytes;
        slot.command.requests += taken.command.requests;
        let last = std::mem::replace(&mut slot.last, taken.last);
        match last {
            Some(last) => self.nodes[last as usize].next = taken.first,
            None => slot.first = taken.first,
        }
        self.free(from);
    }

    /// Frees command `id` and passes each of its requests to `each`.
    pub(super) fn remove(&mut self, id: CommandId, mut each: impl FnMut(Member)) {
        let mut next = self.slots[id.0 as usize].first;
        while let Some(index) = next {
            let node = &mut self.nodes[index as usize];
            each(node.member);
            next = node.next;
            node.next = self.free_node;
            self.free_node = Some(index);
        }
        self.free(id);
    }

    fn free(&mut self, id: CommandId) {
        let slot = &mut self.slots[id.0 as usize];
        slot.stage = Stage::Free;
        slot.first = None;
        slot.last = None;
        slot.next_free = self.free_slot;
        self.free_slot = Some(id.0);
    }

    fn new_node(&mut self, member: Member) -> u32 {
        let node = Node { member, next: None };
        match self.free_node {
            Some(index) => {
                self.free_node = self.nodes[index as usize].next;
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }
}
