//! Works of a group in the background: steps of rebuild and scrub, and repairs.

use super::*;
use crate::raid::{Content, Pass, Step};

/// Numbers of repairs start here, so they differ from those of steps.
const REPAIRS: u64 = 1 << 63;

/// Blocks of a member within one chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Blocks {
    member: u32,
    lba: u64,
    count: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Rebuild(Step),
    Scrub(Step),
    /// Repair of blocks of a member within a chunk.
    Repair(Blocks),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Round {
    /// Until no request or other work uses its chunks.
    Waiting,
    Reading,
    /// Further reads, for what a scrub has found.
    Fixing,
    Writing,
}

/// A work. Requests for its chunks wait until its end.
#[derive(Clone, Debug)]
pub(super) struct Work {
    kind: Kind,
    number: u64,
    ios: Vec<MemberIo>,
    round: Round,
    pending: u32,
    is_failed: bool,
    pub rows: Range,
}

/// First and last chunk of each disk that a step uses.
fn step_rows(step: &Step) -> Range {
    (step.chunk, step.chunk + step.chunks.max(1) - 1)
}

impl Group {
    /// Returns whether a rebuild or scrub can have a next step.
    pub fn has_background(&self) -> bool {
        let Some(array) = &self.array else { return false };
        array.scrubbed().is_some() || array.members().iter().any(|member| *member != Member::Online)
    }

    /// Returns the time of the next step of a rebuild or scrub.
    pub fn background_due_ps(&self) -> u64 {
        let Some(array) = &self.array else { return NEVER };
        let next = |is_busy| {
            let (rebuild, scrub) = (array.next_rebuild_ps(is_busy), array.next_scrub_ps(is_busy));
            rebuild.into_iter().chain(scrub).min()
        };
        let Some(busy_ps) = next(true) else { return NEVER };
        match next(false) {
            Some(idle_ps) if self.active.is_empty() => busy_ps.min(idle_ps.max(self.busy_until_ps)),
            _ => busy_ps,
        }
    }

    /// Starts the step that is due.
    pub fn start_background(&mut self, to: &mut Context<'_>) {
        self.advance_errors(to.now_ps);
        let is_busy = !self.active.is_empty() || to.now_ps < self.busy_until_ps;
        let Some(array) = &mut self.array else { return };
        let mut ios = Vec::new();
        let kind = match array.start_rebuild(to.now_ps, is_busy, &mut ios) {
            Some(step) => Kind::Rebuild(step),
            None => match array.start_scrub(to.now_ps, is_busy, &mut ios) {
                Some(step) => Kind::Scrub(step),
                None => return,
            },
        };
        let (Kind::Rebuild(step) | Kind::Scrub(step)) = kind else { return };
        self.push_work(kind, step.number, step_rows(&step), ios);
        self.advance_works(to);
    }

    fn push_work(&mut self, kind: Kind, number: u64, rows: Range, ios: Vec<MemberIo>) {
        let round = Round::Waiting;
        self.works.push(Work { kind, number, ios, round, pending: 0, is_failed: false, rows });
    }

    /// Starts a scrub, or a repair of all wrong redundancy.
    pub fn start_scrub(&mut self, pass: Pass) {
        if let Some(array) = self.array.as_mut().filter(|_| pass != Pass::Rebuild) {
            // The running step of a scrub before has no effect.
            array.abandon();
            array.scrub(pass);
            self.works.retain(|work| matches!(work.kind, Kind::Repair(..)));
        }
    }

    /// Queues the repair of all unreadable blocks that a read of a member meets. Returns `false` if
    /// the redundancy does not suffice for one of them.
    pub(super) fn queue_repairs(&mut self, member: u32, lba: u64, blocks: u32, to: &mut Context<'_>) -> bool {
        let end = lba + u64::from(blocks);
        let mut at = lba;
        while let Some(first) = self.unreadable(member, at, (end - at) as u32) {
            let Some(found) = self.repairable(member, first, end) else { return false };
            let is_running = self.works.iter().any(|work| work.kind == Kind::Repair(found));
            if !is_running && !self.repairs.contains(&found) {
                self.repairs.push(found);
            }
            at = first + u64::from(found.count);
            if at >= end {
                break;
            }
        }
        self.start_repairs(to);
        true
    }

    /// Returns the unreadable blocks from `lba` on, within its chunk and before `end`, that one
    /// repair can write; at least the first one.
    fn repairable(&self, member: u32, lba: u64, end: u64) -> Option<Blocks> {
        let array = self.array.as_ref()?;
        let chunk_blocks = u64::from(array.geometry().chunk_blocks());
        let end = end.min((lba / chunk_blocks + 1) * chunk_blocks);
        let count = (lba..end).take_while(|lba| array.media_error(member, *lba, 1).is_some()).count() as u32;
        let counts = [count, 1].into_iter();
        let mut found = counts.map(|count| Blocks { member, lba, count });
        found.find(|blocks| array.repair(member, lba, blocks.count, &mut Vec::new()))
    }

    /// Starts the queued repairs whose chunks no other work uses.
    pub(super) fn start_repairs(&mut self, to: &mut Context<'_>) {
        let mut at = 0;
        let mut is_changed = false;
        while let (Some(&blocks), Some(array)) = (self.repairs.get(at), &self.array) {
            let chunk = blocks.lba / u64::from(array.geometry().chunk_blocks());
            let rows = (chunk, chunk);
            if self.works.iter().any(|work| overlaps(work.rows, rows)) {
                at += 1;
                continue;
            }
            self.repairs.remove(at);
            let mut ios = Vec::new();
            if array.repair(blocks.member, blocks.lba, blocks.count, &mut ios) {
                self.repair += 1;
                self.push_work(Kind::Repair(blocks), REPAIRS + self.repair, rows, ios);
                is_changed = true;
            }
        }
        if is_changed {
            self.advance_works(to);
        }
    }

    /// Starts the next rounds of works, until all of them wait.
    pub(super) fn advance_works(&mut self, to: &mut Context<'_>) {
        let mut at = 0;
        while at < self.works.len() {
            at = if self.advance_work(at, to) { 0 } else { at + 1 };
        }
    }

    /// Starts the next round of a work. Returns `false` if it must wait.
    fn advance_work(&mut self, at: usize, to: &mut Context<'_>) -> bool {
        let Work { kind, round, pending, is_failed, rows, .. } = self.works[at];
        if pending > 0 {
            return false;
        }
        if is_failed {
            self.end_work(at, false, to);
            return true;
        }
        match (round, kind) {
            (Round::Waiting, _) => {
                let running = &self.running;
                let is_used = self.active.iter().any(|&slot| overlaps(rows, running[slot as usize].rows))
                    || self.works.iter().any(|work| work.round != Round::Waiting && overlaps(work.rows, rows));
                if is_used {
                    return false;
                }
                self.issue_round(at, Round::Reading, Phase::Read, to);
            }
            (Round::Reading, Kind::Scrub(step)) => {
                let mut ios = Vec::new();
                if let Some(array) = &mut self.array {
                    let before = (array.media_errors(), array.inconsistent().len() as u64);
                    array.end_scrub(step, &mut ios);
                    let read = self.works[at].ios.iter().map(|io| u64::from(io.blocks)).sum::<u64>();
                    self.stats.scrubbed_blocks += read;
                    self.stats.repaired_blocks += before.0 - array.media_errors();
                    self.stats.corrected_stripes += before.1 - array.inconsistent().len() as u64;
                    self.suspects.retain(|stripe, _| array.inconsistent().binary_search(stripe).is_ok());
                }
                self.works[at].ios = ios;
                self.issue_round(at, Round::Fixing, Phase::Read, to);
            }
            (Round::Reading, Kind::Rebuild(_)) => {
                // Members are rebuilt in the order of their chunks.
                if self.works[..at].iter().any(|work| matches!(work.kind, Kind::Rebuild(_))) {
                    return false;
                }
                self.issue_round(at, Round::Writing, Phase::Write, to);
            }
            (Round::Reading, Kind::Repair(..)) | (Round::Fixing, _) => {
                self.issue_round(at, Round::Writing, Phase::Write, to);
            }
            (Round::Writing, _) => self.end_work(at, true, to),
        }
        true
    }

    fn issue_round(&mut self, at: usize, round: Round, phase: Phase, to: &mut Context<'_>) {
        let work = &mut self.works[at];
        work.round = round;
        work.pending = work.ios.iter().filter(|io| io.phase == phase).count() as u32;
        let (number, ios) = (work.number, std::mem::take(&mut work.ios));
        for io in ios.iter().filter(|io| io.phase == phase) {
            self.issue(Owner::Step(number), *io, to);
        }
        self.works[at].ios = ios;
    }

    fn end_work(&mut self, at: usize, is_done: bool, to: &mut Context<'_>) {
        let Work { kind, ios, .. } = self.works.remove(at);
        match kind {
            Kind::Rebuild(step) => {
                if is_done {
                    let written = ios.iter().filter(|io| io.phase == Phase::Write);
                    self.stats.rebuilt_blocks += written.map(|io| u64::from(io.blocks)).sum::<u64>();
                    self.stats.unrebuilt_chunks += step.lost_chunks;
                    self.spread_wrong(&step, &ios);
                } else {
                    self.works.retain(|work| !matches!(work.kind, Kind::Rebuild(_)));
                }
                if let Some(array) = &mut self.array {
                    array.end_rebuild(step, is_done);
                }
            }
            Kind::Scrub(step) => {
                if let (false, Some(array)) = (is_done, &mut self.array) {
                    array.end_scrub(step, &mut Vec::new());
                }
            }
            Kind::Repair(Blocks { member, lba, count }) => {
                if is_done {
                    self.stats.repaired_blocks += u64::from(count);
                    (lba..lba + u64::from(count)).for_each(|lba| self.mark_repaired(member, lba));
                    self.clear_errors(member, lba, count);
                }
            }
        }
        self.start_repairs(to);
        self.start_waiting(to);
    }

    /// A member that is rebuilt from wrong redundancy has wrong data from now on.
    fn spread_wrong(&mut self, step: &Step, ios: &[MemberIo]) {
        let Group { array: Some(array), wrong, suspects, .. } = self else { return };
        let chunk_blocks = u64::from(array.geometry().chunk_blocks());
        let rows = step.chunk..step.chunk + step.chunks;
        let mut stripes = array.inconsistent().to_vec();
        stripes.retain(|stripe| rows.contains(&array.row(*stripe)));
        for stripe in stripes {
            let Some(place) = array.geometry().stripe(stripe) else { continue };
            let count = place.layout.data() + 1 + u32::from(place.layout.q.is_some());
            let members = place.first_member..place.first_member + count;
            let row = array.row(stripe);
            let targets = ios.iter().filter(|io| io.phase == Phase::Write && members.contains(&io.member));
            let (from, to) = suspects.get(&stripe).copied().unwrap_or((0, array.geometry().chunk_blocks()));
            let mut is_rebuilt = false;
            for io in targets.filter(|io| (io.lba..io.lba + u64::from(io.blocks)).contains(&(row * chunk_blocks))) {
                is_rebuilt = true;
                if let Some(Content::Data { chunk, .. }) = array.geometry().content(io.member, row) {
                    wrong.insert(chunk * chunk_blocks + u64::from(from), (to - from).into());
                }
            }
            // With one parity, the rebuilt chunk agrees with all others.
            if is_rebuilt && place.layout.q.is_none() {
                array.clear_inconsistent(stripe);
                suspects.remove(&stripe);
            }
        }
    }

    /// A block that is repaired from wrong redundancy has wrong data from now on.
    fn mark_repaired(&mut self, member: u32, lba: u64) {
        let Group { array: Some(array), wrong, suspects, .. } = self else { return };
        let chunk_blocks = u64::from(array.geometry().chunk_blocks());
        let Some(Content::Data { chunk, .. }) = array.geometry().content(member, lba / chunk_blocks) else { return };
        let Some(size) = array.geometry().stripe_blocks() else { return };
        let first = chunk * chunk_blocks + lba % chunk_blocks;
        let stripe = first / size;
        let rows = suspects.get(&stripe).copied().unwrap_or((0, array.geometry().chunk_blocks()));
        let is_suspect = (u64::from(rows.0)..rows.1.into()).contains(&(lba % chunk_blocks));
        if is_suspect && array.inconsistent().binary_search(&stripe).is_ok() {
            wrong.insert(first, 1);
        }
    }

    pub(super) fn work_part_ended(&mut self, number: u64, is_good: bool, to: &mut Context<'_>) {
        let Some(work) = self.works.iter_mut().find(|work| work.number == number) else { return };
        work.pending -= 1;
        work.is_failed |= !is_good;
        self.advance_works(to);
    }
}
