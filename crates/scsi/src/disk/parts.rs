//! Requests and their commands: splitting at the target's limits, repetition, and collection of
//! results.

use super::verdict::{Verdict, verdict};
use super::{
    Data, Disk, Done, End, Error, ErrorKind, GOOD_ENDS_FOR_DEPTH, Op, Output, Properties, Request, Run, State, cdb,
};
use crate::time::{Instant, Span};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::scsi::lba_status;
use sanloom_wire::sense::SenseCode;
use std::collections::VecDeque;

/// Request with commands outstanding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OpenRequest {
    request: Request,
    /// Number of parts that have not ended.
    parts: u32,
    /// First error of any part.
    error: Option<Error>,
    /// True if a cache flush has to follow the last part.
    then_flush: bool,
    runs: Vec<Run>,
}

/// Part of a request. When it is sent it is small enough for one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    tag: u64,
    what: What,
    lba: u64,
    blocks: u32,
    retries: u8,
    attentions: u8,
    /// Time of the first temporary condition, such as BUSY.
    delayed_since: Option<Instant>,
}

/// Command for a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum What {
    Read,
    Write,
    /// WRITE SAME with a block of zeros.
    WriteSame {
        unmap: bool,
    },
    /// WRITE of zeros.
    Zeroes,
    Unmap,
    Synchronize,
    Status,
}

/// Maximum number of unit attentions per command.
const MAX_ATTENTIONS: u8 = 8;
/// Delay after the first BUSY of a command. It doubles up to `LONGEST_DELAY`.
const FIRST_DELAY: Span = Span::from_ms(10);
const LONGEST_DELAY: Span = Span::from_secs(1);
/// Allocation length of GET LBA STATUS: header and 64 descriptors.
const STATUS_BYTES: u32 = 8 + 64 * 16;
/// Maximum number of blocks in a WRITE SAME if the target reports no limit.
const WRITE_SAME_BLOCKS: u32 = 0xffff;

impl Disk {
    pub(super) fn submit(&mut self, request: Request) {
        self.counters.requests += 1;
        let Request { tag, lba, blocks, .. } = request;
        if let Some(error) = self.unusable {
            return self.done(tag, Err(error));
        }
        self.requests.insert(tag, OpenRequest { request, parts: 1, error: None, then_flush: false, runs: Vec::new() });
        // The final command is chosen when the part is sent, because it depends on the disk's
        // properties.
        let what = match request.op {
            Op::Read => What::Read,
            Op::Write => What::Write,
            Op::Flush => What::Synchronize,
            Op::WriteZeroes { unmap } => What::WriteSame { unmap },
            Op::Unmap => What::Unmap,
            Op::Status => What::Status,
        };
        self.waiting.push_back(Part::new(tag, what, lba, blocks));
    }

    pub(super) fn send_waiting(&mut self) {
        while matches!(self.state, State::Ready) && self.in_flight.len() < usize::from(self.depth) {
            let Some(part) = self.waiting.pop_front() else {
                return;
            };
            self.send(part);
        }
    }

    fn send(&mut self, mut part: Part) {
        let (Some(properties), Some(open)) = (self.properties.as_deref(), self.requests.get_mut(&part.tag)) else {
            return;
        };
        let in_range = part.lba.checked_add(part.blocks.into()).is_some_and(|end| end <= properties.blocks);
        if !in_range {
            return self.end(part, Err(Error { kind: ErrorKind::OutOfRange, sense: None }));
        }
        let provisioning = &properties.provisioning;
        part.what = match part.what {
            What::WriteSame { .. } if self.write_same_refused => What::Zeroes,
            What::WriteSame { unmap } => {
                let given_back = provisioning.enabled && provisioning.write_same && provisioning.zeros;
                What::WriteSame { unmap: unmap && given_back }
            }
            What::Unmap if !can_unmap(properties) => return self.end(part, Ok(None)),
            What::Synchronize if !properties.write_cache || self.flush_refused => return self.end(part, Ok(None)),
            What::Status if !properties.provisioning.enabled => {
                let run = Run { blocks: part.blocks, mapped: true, zero: false };
                return self.end(part, Ok(Some(vec![run])));
            }
            what => what,
        };
        // Without a volatile cache every completed write is durable.
        let durable = open.request.fua && properties.write_cache;
        let fua = durable && properties.fua && matches!(part.what, What::Read | What::Write | What::Zeroes);
        // A flush also satisfies FUA of a read, for which the disk writes newer cached data to the
        // medium (SBC-3, 5.8).
        let touches = !matches!(part.what, What::Synchronize | What::Status);
        open.then_flush |= durable && touches && !fua;
        let limit = self.limit(part.what);
        if part.blocks > limit {
            // The rest becomes a part of its own and is sent next.
            let rest = Part { lba: part.lba + u64::from(limit), blocks: part.blocks - limit, ..part };
            if let Some(open) = self.requests.get_mut(&part.tag) {
                open.parts += 1;
            }
            self.waiting.push_front(rest);
            part.blocks = limit;
        }
        let (cdb, data) = self.command_of(&part, fua);
        let id = self.command(cdb, data);
        self.in_flight.insert(id, part);
    }

    /// Maximum number of blocks in one command.
    fn limit(&self, what: What) -> u32 {
        let Some(properties) = self.properties.as_deref() else {
            return 1;
        };
        let or_all = |blocks: u32| if blocks == 0 { u32::MAX } else { blocks };
        let data = (self.config.max_transfer_bytes / properties.block_bytes.max(1))
            .min(or_all(properties.max_transfer_blocks));
        let provisioning = &properties.provisioning;
        let limit = match what {
            What::Read | What::Write | What::Zeroes => data,
            What::WriteSame { .. } => match provisioning.max_write_same_blocks {
                0 => WRITE_SAME_BLOCKS,
                most => u32::try_from(most).unwrap_or(u32::MAX),
            },
            What::Unmap => or_all(provisioning.max_unmap_blocks),
            What::Synchronize | What::Status => u32::MAX,
        };
        limit.max(1)
    }

    fn command_of(&self, part: &Part, fua: bool) -> ([u8; 16], Data) {
        let Part { tag, lba, blocks, .. } = *part;
        let block_bytes = self.properties.as_deref().map_or(1, |properties| properties.block_bytes);
        let bytes = blocks.saturating_mul(block_bytes);
        // The flush after a durable write has no position in the buffer.
        let first = self.requests.get(&tag).map_or(lba, |open| open.request.lba);
        let at = (lba.saturating_sub(first) * u64::from(block_bytes)) as u32;
        match part.what {
            What::Read => (Cdb::Read { lba, blocks, fua }.to_bytes(), Data::Buffer { tag, at, bytes, write: false }),
            What::Write => (Cdb::Write { lba, blocks, fua }.to_bytes(), Data::Buffer { tag, at, bytes, write: true }),
            What::Zeroes => (Cdb::Write { lba, blocks, fua }.to_bytes(), Data::Zeroes { bytes }),
            What::WriteSame { unmap } => (cdb::write_same(lba, blocks, unmap), Data::Zeroes { bytes: block_bytes }),
            What::Unmap => {
                let (cdb, list) = cdb::unmap(lba, blocks);
                (cdb, Data::Out(list))
            }
            What::Synchronize => (cdb::synchronize_cache(), Data::None),
            What::Status => {
                let cdb = Cdb::GetLbaStatus { lba, allocation_len: STATUS_BYTES }.to_bytes();
                (cdb, Data::In { max_bytes: STATUS_BYTES })
            }
        }
    }

    pub(super) fn on_part_end(&mut self, now: Instant, mut part: Part, end: &End) {
        self.counters.timeouts += u64::from(matches!(end, End::TimedOut { .. }));
        match verdict(end) {
            Verdict::Good => self.on_good(part, end),
            Verdict::UnitAttention(code) => {
                self.counters.unit_attentions += 1;
                part.attentions += 1;
                if part.attentions > MAX_ATTENTIONS {
                    return self.end(part, Err(Error { kind: ErrorKind::Target, sense: None }));
                }
                self.waiting.push_front(part);
                self.on_attention(code);
            }
            Verdict::Retry(error) => self.retry(part, error),
            Verdict::Delay { error, full } => {
                if full {
                    self.depth = (self.in_flight.len() as u16).clamp(1, self.config.queue_depth);
                    self.good_ends = 0;
                }
                self.delay(now, part, error);
            }
            Verdict::Unaborted => {
                // The target may still execute the command, so the part ends after the reset, or
                // after the login that follows a reset without an answer.
                part.retries = part.retries.saturating_add(1);
                self.waiting.push_front(part);
                self.reset();
            }
            Verdict::PathGone => {
                self.waiting.push_front(part);
                self.path_down(now);
            }
            Verdict::Fail(error) => self.on_failure(part, error),
        }
    }

    fn on_good(&mut self, part: Part, end: &End) {
        let End::Status { transferred, data, .. } = end else {
            return;
        };
        self.good_ends += 1;
        if self.good_ends >= GOOD_ENDS_FOR_DEPTH {
            self.good_ends = 0;
            self.depth = (self.depth + 1).min(self.config.queue_depth);
        }
        let expected = self.command_of(&part, false).1.bytes();
        match part.what {
            // GOOD with an incomplete transfer counts as a failed transfer.
            What::Read | What::Write | What::Zeroes if *transferred != expected => {
                self.retry(part, Error { kind: ErrorKind::Transport, sense: None });
            }
            What::Status => {
                let zeros = self.properties.as_deref().is_some_and(|p| p.provisioning.zeros);
                self.end(part, Ok(Some(runs(data, part.lba, part.blocks, zeros))));
            }
            _ => self.end(part, Ok(None)),
        }
    }

    fn retry(&mut self, mut part: Part, error: Error) {
        part.retries += 1;
        if part.retries > self.config.max_retries {
            return self.end(part, Err(error));
        }
        self.counters.retries += 1;
        self.waiting.push_front(part);
    }

    fn delay(&mut self, now: Instant, mut part: Part, error: Error) {
        let since = *part.delayed_since.get_or_insert(now);
        if now.since(since) >= self.config.busy_timeout {
            return self.end(part, Err(error));
        }
        self.counters.delays += 1;
        // The delay equals the time waited so far, so it doubles.
        let wait = now.since(since).max(FIRST_DELAY).min(LONGEST_DELAY);
        self.next_id += 1;
        self.delayed.insert((now + wait, self.next_id), part);
    }

    fn on_failure(&mut self, part: Part, error: Error) {
        let unsupported = error.kind == ErrorKind::NotSupported;
        match (part.what, self.properties.as_deref_mut()) {
            (What::WriteSame { unmap }, Some(properties)) if unsupported => {
                // Fall back first to WRITE SAME without unmapping, then to plain writes.
                match unmap {
                    true => properties.provisioning.write_same = false,
                    false => self.write_same_refused = true,
                }
                self.waiting.push_front(part);
            }
            (What::Unmap, Some(properties)) if unsupported => {
                properties.provisioning.unmap = false;
                self.waiting.push_front(part);
            }
            (What::Synchronize, Some(_)) if unsupported => {
                // The target offers no other way to flush. It may still obey FUA.
                self.flush_refused = true;
                self.end(part, Ok(None));
            }
            (What::Status, Some(_)) if unsupported => {
                let run = Run { blocks: part.blocks, mapped: true, zero: false };
                self.end(part, Ok(Some(vec![run])));
            }
            _ => self.end(part, Err(error)),
        }
    }

    fn on_attention(&mut self, code: SenseCode) {
        match code {
            SenseCode::CAPACITY_CHANGED | SenseCode::MODE_PARAMETERS_CHANGED | SenseCode::INQUIRY_DATA_CHANGED => {
                if matches!(self.state, State::Ready) {
                    self.probe();
                }
            }
            SenseCode::REPORTED_LUNS_CHANGED => self.outputs.push_back(Output::UnitsChanged),
            _ => {}
        }
    }

    pub(super) fn reset(&mut self) {
        if matches!(self.state, State::Ready | State::Probing(_)) {
            self.counters.resets += 1;
            self.state = State::Resetting;
            self.outputs.push_back(Output::ResetUnit);
        }
    }

    /// Ends the parts whose commands a reset has ended too often.
    pub(super) fn end_exhausted(&mut self) {
        let most = self.config.max_retries;
        let (over, rest): (VecDeque<Part>, VecDeque<Part>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|part| part.retries > most);
        self.waiting = rest;
        for part in over {
            self.end(part, Err(Error { kind: ErrorKind::TimedOut, sense: None }));
        }
    }

    /// Ends a part. The last part ends the request.
    fn end(&mut self, part: Part, result: Result<Option<Vec<Run>>, Error>) {
        let Some(open) = self.requests.get_mut(&part.tag) else {
            return;
        };
        open.parts -= 1;
        match result {
            Ok(runs) => open.runs.extend(runs.into_iter().flatten()),
            Err(error) => {
                open.error.get_or_insert(error);
            }
        }
        if open.parts > 0 {
            return;
        }
        if open.then_flush && open.error.is_none() {
            open.then_flush = false;
            open.parts = 1;
            open.request.fua = false;
            return self.waiting.push_front(Part::new(part.tag, What::Synchronize, 0, 0));
        }
        let Some(OpenRequest { request, error, runs, .. }) = self.requests.remove(&part.tag) else {
            return;
        };
        let done = if request.op == Op::Status { Done::Runs(runs) } else { Done::All };
        self.done(part.tag, error.map_or(Ok(done), Err));
    }
}

impl Part {
    fn new(tag: u64, what: What, lba: u64, blocks: u32) -> Part {
        Part { tag, what, lba, blocks, retries: 0, attentions: 0, delayed_since: None }
    }
}

/// Returns whether the disk supports UNMAP.
fn can_unmap(properties: &Properties) -> bool {
    let provisioning = &properties.provisioning;
    provisioning.enabled && provisioning.unmap && provisioning.max_unmap_blocks > 0
}

/// Converts the descriptors of GET LBA STATUS for at most `blocks` blocks from `lba`. Blocks
/// without a descriptor count as mapped.
fn runs(data: &[u8], lba: u64, blocks: u32, zeros: bool) -> Vec<Run> {
    let mut runs = Vec::new();
    let (mut at, end) = (lba, lba + u64::from(blocks));
    for status in lba_status::parse(data).unwrap_or_default() {
        let mapped = status.provisioning == lba_status::MAPPED;
        let mut next = at;
        if status.lba <= at {
            next = status.lba.saturating_add(status.blocks.into()).min(end);
        }
        if next <= at {
            break;
        }
        runs.push(Run { blocks: (next - at) as u32, mapped, zero: !mapped && zeros });
        at = next;
    }
    if runs.is_empty() {
        runs.push(Run { blocks, mapped: true, zero: false });
    }
    runs
}
