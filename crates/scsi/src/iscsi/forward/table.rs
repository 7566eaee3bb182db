//! The Dynamic Session Mapping Table: [`Table`], with one [`Entry`] for each task in flight between
//! the host and back ends. It contains the back ends' columns. The host's columns (tag, numbers,
//! R2Ts) are in the session's task table.

use crate::scsi::{BlockIo, IoOp, IoTag, Response};
use crate::volume::Claim;
use sanloom_wire::lun::LunBytes;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::VecDeque;

/// Maximum number of pieces of a forwarded command; commands with more take the conventional path.
pub const MAX_PARTS: usize = 32;

/// State of the command for a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Not sent.
    Unsent,
    /// Not sent yet; its window slot is reserved because unsolicited data for it may arrive.
    Reserved,
    /// Waiting for the window of its back end.
    Queued,
    Sent,
    /// ABORT TASK was sent and is not answered.
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
    /// Offset of its data in the data of the host's command, in bytes.
    pub(super) at: u32,
    pub(super) bytes: u32,
    /// True if the back end has to make the write durable before it responds.
    pub(super) fua: bool,
    pub(super) stage: Stage,
    pub(super) cmd_sn: u32,
    /// Bytes of data moved so far.
    pub(super) moved: u32,
    /// Number of unsolicited Data-Out PDUs sent.
    pub(super) data_sn: u32,
    /// Number of repetitions.
    pub(super) retries: u8,
    /// Value of `moved` at the last stall check.
    pub(super) moved_at_check: Option<u32>,
}

/// R2T of a back end for which the host has not sent all data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BackR2t {
    pub(super) part: u8,
    pub(super) target_tag: u32,
    /// Offsets in the data of the host's command: start and end.
    pub(super) from: u32,
    pub(super) end: u32,
    pub(super) data_sn: u32,
}

/// Forwarded task.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Tag of the host's task.
    pub(super) tag: IoTag,
    pub(super) io: BlockIo,
    pub(super) claim: Claim,
    /// One entry for each back-end command. The v-bit of the iSCSI switch paper is set where there
    /// is only one.
    pub(super) parts: Vec<Part>,
    /// Index of the part whose data are due next.
    pub(super) current: usize,
    /// R2Ts in order of their offsets.
    pub(super) r2ts: VecDeque<BackR2t>,
    /// Failure with the lowest address so far: number of its part, and the response.
    pub(super) failure: Option<(u8, Response)>,
    /// True if the task was aborted on the host's side.
    pub(super) aborted: bool,
    /// Back ends whose connection was lost and that may still be writing for this task.
    pub(super) writing_at: Vec<u8>,
}

impl Entry {
    pub(super) fn new(tag: IoTag, io: BlockIo, claim: Claim, parts: Vec<Part>, r2ts: VecDeque<BackR2t>) -> Entry {
        Entry { tag, io, claim, parts, current: 0, r2ts, failure: None, aborted: false, writing_at: Vec::new() }
    }

    pub(super) fn is_read(&self) -> bool {
        self.io.op == IoOp::Read
    }

    /// Records a back end whose session ends while it is active for this task.
    pub(super) fn lose(&mut self, back: u8) {
        if !self.is_read() && !self.writing_at.contains(&back) {
            self.writing_at.push(back);
        }
    }

    /// Returns whether the host's command became exactly one back-end command.
    pub(super) fn is_one_to_one(&self) -> bool {
        self.parts.len() == 1
    }

    /// Returns whether no further data are needed, because the task was aborted or has failed.
    pub(super) fn is_lost(&self) -> bool {
        self.aborted || self.failure.is_some()
    }

    /// Returns whether all parts have ended.
    pub(super) fn is_over(&self) -> bool {
        self.parts.iter().all(|part| part.stage == Stage::Over)
    }

    /// Bytes moved between the host and back ends.
    pub(super) fn moved(&self) -> u32 {
        self.parts.iter().map(|part| part.moved).sum()
    }

    /// Records the failure of a part. The failure with the lowest address determines the response.
    pub(super) fn fail(&mut self, part: u8, response: Response) {
        if self.failure.as_ref().is_none_or(|(of, _)| part < *of) {
            self.failure = Some((part, response));
        }
    }

    /// Returns whether a part was sent to its back end and is unanswered.
    pub(super) fn is_in_flight(&self, part: usize) -> bool {
        matches!(self.parts[part].stage, Stage::Sent | Stage::Aborting)
    }

    /// Replaces the status of a split command. A temporary status such as BUSY would be wrong,
    /// because another part may have changed the medium.
    pub(super) fn for_whole(&self, answer: Response) -> Response {
        match self.is_one_to_one() {
            true => answer,
            false => Response::check(Sense::new(SenseKey::ABORTED_COMMAND, SenseCode::NONE)),
        }
    }

    /// Converts addresses in the sense data of a part to those of the virtual disk.
    pub(super) fn translate_sense(&self, part: usize, sense: Sense) -> Sense {
        let of = &self.parts[part];
        let block_bytes = self.io.bytes / self.io.blocks.max(1);
        let first = self.io.lba + u64::from(of.at / block_bytes.max(1));
        // An address outside of the part is dropped.
        let information = sense.information.and_then(|lba| lba.checked_sub(of.lba));
        let information = information.filter(|offset| *offset < of.blocks.into()).map(|offset| first + offset);
        Sense { information, descriptor: false, ..sense }
    }

    /// Returns the index of the part that contains a byte.
    pub(super) fn part_at(&self, byte: u32) -> Option<usize> {
        self.parts.iter().position(|part| (part.at..part.at + part.bytes).contains(&byte))
    }
}

/// Forwarded tasks of a host session.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Indexed by the slot number of the host's task.
    entries: Vec<Option<Entry>>,
    live: u32,
    /// Part and R2T lists of ended tasks, kept for reuse.
    recycled: Vec<(Vec<Part>, VecDeque<BackR2t>)>,
}

impl Table {
    /// Number of tasks that have not ended.
    #[inline]
    pub(super) fn live(&self) -> u32 {
        self.live
    }

    /// Adds a task and returns it. Its parts are taken out of `planned`.
    pub(super) fn insert(&mut self, tag: IoTag, io: BlockIo, claim: Claim, planned: &mut Vec<Part>) -> &Entry {
        debug_assert!((1..=MAX_PARTS).contains(&planned.len()), "a task has 1 to {MAX_PARTS} parts");
        debug_assert_eq!(planned.iter().map(|part| part.bytes).sum::<u32>(), io.bytes, "the parts cover the command");
        let (mut parts, mut r2ts) = self.recycled.pop().unwrap_or_default();
        // A failed task leaves unanswered R2Ts behind.
        parts.clear();
        r2ts.clear();
        parts.append(planned);
        let slot = usize::from(tag.slot());
        if self.entries.len() <= slot {
            self.entries.resize_with(slot + 1, || None);
        }
        debug_assert!(self.entries[slot].is_none(), "slot {slot} of a task is in use");
        self.live += 1;
        self.entries[slot].insert(Entry::new(tag, io, claim, parts, r2ts))
    }

    #[inline]
    pub(super) fn get(&self, tag: IoTag) -> Option<&Entry> {
        self.entries.get(usize::from(tag.slot()))?.as_ref().filter(|entry| entry.tag == tag)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, tag: IoTag) -> Option<&mut Entry> {
        self.entries.get_mut(usize::from(tag.slot()))?.as_mut().filter(|entry| entry.tag == tag)
    }

    /// Removes an ended task. Returns its claim, and the back ends that may still be writing.
    pub(super) fn remove(&mut self, tag: IoTag) -> Option<(Claim, Vec<u8>)> {
        let slot = self.entries.get_mut(usize::from(tag.slot()))?;
        let entry = slot.take_if(|entry| entry.tag == tag)?;
        debug_assert!(entry.is_over(), "a task ends after all its parts");
        self.live -= 1;
        self.recycled.push((entry.parts, entry.r2ts));
        Some((entry.claim, entry.writing_at))
    }

    /// Removes all tasks.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Entry> + use<> {
        self.live = 0;
        std::mem::take(&mut self.entries).into_iter().flatten()
    }

    /// Tags of all tasks.
    pub(super) fn tags(&self) -> Vec<IoTag> {
        self.entries.iter().flatten().map(|entry| entry.tag).collect()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().flatten()
    }

    /// Returns the task and part that a back end's initiator task tag identifies.
    pub(super) fn find(&self, back: u8, tag: u32) -> Option<(IoTag, BackTag)> {
        let of = BackTag::from_tag(tag)?;
        let entry = self.entries.get(usize::from(of.slot))?.as_ref()?;
        let part = entry.parts.get(usize::from(of.part))?;
        let same = BackTag::new(entry.tag, of.part, of.abort) == of && part.back == back;
        same.then_some((entry.tag, of))
    }
}

/// Meaning of an initiator task tag at a back end: slot of the entry, part, generation, and whether
/// it is an ABORT TASK. The tag contains all fields, so no lookup is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BackTag {
    pub(super) slot: u16,
    pub(super) part: u8,
    pub(super) generation: u8,
    pub(super) abort: bool,
}

const PART_BITS: u32 = 5;
const _: () = assert!(MAX_PARTS == 1 << PART_BITS);

/// Number of a part within its task.
pub(super) fn part_number(part: usize) -> u8 {
    debug_assert!(part < MAX_PARTS, "part {part} of a task with at most {MAX_PARTS}");
    u8::try_from(part).unwrap_or(u8::MAX)
}

impl BackTag {
    pub(super) fn new(tag: IoTag, part: u8, abort: bool) -> BackTag {
        // Generation, truncated to 7 bits.
        BackTag { slot: tag.slot(), part, generation: (tag.0 >> 16 & 0x7f) as u8, abort }
    }

    pub(super) fn to_tag(self) -> u32 {
        let high = u32::from(self.generation) << PART_BITS | u32::from(self.part);
        // Bits 29 to 31 stay zero, so the tag is never "no tag" and never that of a probe or ping.
        u32::from(self.slot) | high << 16 | u32::from(self.abort) << 28
    }

    pub(super) fn from_tag(tag: u32) -> Option<BackTag> {
        let high = tag >> 16 & 0xfff;
        (tag >> 29 == 0).then_some(BackTag {
            slot: (tag & 0xffff) as u16,
            part: (high & ((1 << PART_BITS) - 1)) as u8,
            generation: (high >> PART_BITS & 0x7f) as u8,
            abort: tag >> 28 & 1 == 1,
        })
    }
}
