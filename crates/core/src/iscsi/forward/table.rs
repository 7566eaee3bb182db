//! The Dynamic Session Mapping Table: [`Entry`], one for each task that is under way between the host and back ends. The host's columns
//! (tag, numbers, R2Ts) stand in the session's own table; these are those of the back ends.

use crate::scsi::{BlockIo, IoOp, IoTag, Response};
use crate::volume::Claim;
use sanloom_wire::lun::LunBytes;
use std::collections::VecDeque;

/// Pieces of one command at most; more go the conventional way.
pub const MAX_PARTS: usize = 32;

/// Where the command for a part stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Not asked for yet.
    Unsent,
    /// So is it, but its place in the window is kept: unasked data for it may come.
    Kept,
    /// The window of its back end is closed.
    Queued,
    Sent,
    /// ABORT TASK is under way.
    Aborting,
    Over,
}

/// One command to one back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) back: u8,
    pub(super) lun: LunBytes,
    pub(super) lba: u64,
    pub(super) blocks: u32,
    /// Where its data begin among those of the host's command, in bytes.
    pub(super) at: u32,
    pub(super) bytes: u32,
    /// The back end is to make it durable by itself.
    pub(super) fua: bool,
    pub(super) stage: Stage,
    pub(super) cmd_sn: u32,
    /// Bytes of data that have passed.
    pub(super) moved: u32,
    /// Unsolicited Data-Out that were sent.
    pub(super) data_sn: u32,
    /// How often it was sent again.
    pub(super) again: u8,
    /// What had moved at the last look.
    pub(super) looked: Option<u32>,
}

/// An R2T of a back end of which the host has not sent everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BackR2t {
    pub(super) part: u8,
    pub(super) target_tag: u32,
    /// Bytes of the host's command.
    pub(super) from: u32,
    pub(super) end: u32,
    pub(super) data_sn: u32,
}

/// A task under way.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The host's task.
    pub(super) tag: IoTag,
    pub(super) io: BlockIo,
    pub(super) claim: Claim,
    /// One entry of a split command for each part. The v-bit of document 003 is that there is only one.
    pub(super) parts: Vec<Part>,
    /// Among them, the part whose data are due.
    pub(super) current: usize,
    /// In order of their offsets.
    pub(super) r2ts: VecDeque<BackR2t>,
    /// The answer, if that is not GOOD, and whose.
    pub(super) failure: Option<(u8, Response)>,
    /// The host has aborted it.
    pub(super) dying: bool,
    /// Back ends whose connection was lost, and that may still be writing for it.
    pub(super) behind: Vec<u8>,
}

impl Entry {
    pub(super) fn new(tag: IoTag, io: BlockIo, claim: Claim, parts: Vec<Part>, r2ts: VecDeque<BackR2t>) -> Entry {
        Entry { tag, io, claim, parts, current: 0, r2ts, failure: None, dying: false, behind: Vec::new() }
    }

    pub(super) fn is_read(&self) -> bool {
        self.io.op == IoOp::Read
    }

    /// The session of a back end ends while this one was at work on a part.
    pub(super) fn leave_behind(&mut self, back: u8) {
        if !self.is_read() && !self.behind.contains(&back) {
            self.behind.push(back);
        }
    }

    /// One host command, one back-end command.
    pub(super) fn is_one_to_one(&self) -> bool {
        self.parts.len() == 1
    }

    /// No data are wanted any more.
    pub(super) fn is_lost(&self) -> bool {
        self.dying || self.failure.is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        self.parts.iter().all(|part| part.stage == Stage::Over)
    }

    /// Bytes that have moved between the host and back ends.
    pub(super) fn moved(&self) -> u32 {
        self.parts.iter().map(|part| part.moved).sum()
    }

    /// The failure of a part: that of the lowest address counts.
    pub(super) fn fail(&mut self, part: u8, response: Response) {
        if self.failure.as_ref().is_none_or(|(of, _)| part < *of) {
            self.failure = Some((part, response));
        }
    }

    /// The part of a byte.
    pub(super) fn part_at(&self, byte: u32) -> Option<usize> {
        self.parts.iter().position(|part| (part.at..part.at + part.bytes).contains(&byte))
    }
}

/// What an initiator task tag to a back end stands for: the entry's number, the part, a generation, and whether it is ABORT TASK. Nobody
/// has to look anything up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BackTag {
    pub(super) slot: u16,
    pub(super) part: u8,
    pub(super) generation: u8,
    pub(super) abort: bool,
}

const PART_BITS: u32 = 5;
const _: () = assert!(MAX_PARTS == 1 << PART_BITS);

impl BackTag {
    pub(super) fn new(tag: IoTag, part: u8, abort: bool) -> BackTag {
        // 7 bits: the other two and the part make the rest.
        BackTag { slot: tag.0 as u16, part, generation: (tag.0 >> 16) as u8 & 0x7f, abort }
    }

    pub(super) fn to_tag(self) -> u32 {
        let high = u32::from(self.generation) << PART_BITS | u32::from(self.part);
        // The topmost bit is never set together with the others that make "no tag": those are of pings.
        u32::from(self.slot) | high << 16 | u32::from(self.abort) << 28
    }

    pub(super) fn from_tag(tag: u32) -> Option<BackTag> {
        let high = tag >> 16 & 0xfff;
        (tag >> 29 == 0).then_some(BackTag {
            slot: tag as u16,
            part: (high & ((1 << PART_BITS) - 1)) as u8,
            generation: (high >> PART_BITS) as u8,
            abort: tag >> 28 & 1 == 1,
        })
    }
}
