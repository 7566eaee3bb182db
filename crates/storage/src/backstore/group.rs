//! The RAID group of a unit, or its only disk.

use super::devices::{DeviceIo, Devices, Owner};
use super::settings::{BackstoreError, RaidConfig};
use super::{NEVER, Origin, Outcome, Request};
use crate::disk::Op;
use crate::raid::{Array, Condition, Geometry, Member, MemberIo, Method, Phase, Plan, Step};
use std::collections::VecDeque;

/// A group counts as used until this time after the end of a request of a host, in picoseconds.
const BUSY_PS: u64 = 100_000_000_000;

/// Counters of a RAID group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupStats {
    /// Reads and writes that ended, of hosts or of the cache.
    pub requests: u64,
    /// Requests that failed, because too few disks hold the blocks.
    pub lost_requests: u64,
    /// Requests that were planned anew, because a disk failed.
    pub repeated: u64,
    /// Requests that waited for a write of the same stripe or for a rebuild.
    pub waited: u64,
    /// Parts of stripes that were served in each way.
    pub full_stripes: u64,
    /// Parts of stripes written after old data and parity were read.
    pub read_modify_writes: u64,
    /// Parts of stripes written after the data that stay were read.
    pub reconstruct_writes: u64,
    /// Parts of stripes whose data were computed from other disks.
    pub degraded: u64,
    /// Reads of disks, for requests and rebuild.
    pub disk_reads: u64,
    /// Writes of disks, for requests and rebuild.
    pub disk_writes: u64,
    /// Blocks of 512 bytes written by the rebuild.
    pub rebuilt_blocks: u64,
}

/// A request in a group. The buffers are used again.
#[derive(Clone, Debug)]
struct Running {
    request: Request,
    /// Requests to disks that have not ended.
    pending: u32,
    /// Reads that have not ended, by stripe; its writes wait for them.
    reads: Vec<(u64, u32)>,
    writes: Vec<MemberIo>,
    /// First and last chunk of disks that it uses.
    rows: Range,
    /// First and last stripe that it writes.
    stripes: Option<Range>,
    /// A disk has failed, so the request begins again when its other parts have ended.
    is_repeated: bool,
}

/// Step of a rebuild.
#[derive(Clone, Debug)]
struct Rebuild {
    step: Step,
    ios: Vec<MemberIo>,
    phase: Option<Phase>,
    pending: u32,
    is_failed: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    /// `None`: one disk without RAID.
    array: Option<Array>,
    unit: u16,
    /// Number of the first disk.
    first: u32,
    /// The only disk has failed.
    is_lost: bool,
    plan: Plan,
    running: Vec<Running>,
    /// Numbers of entries of `running` in use, and of others.
    active: Vec<u32>,
    free: Vec<u32>,
    waiting: VecDeque<Request>,
    rebuild: Option<Rebuild>,
    /// Time until which the group counts as used.
    busy_until_ps: u64,
    stats: GroupStats,
}

/// First and last of a range of numbers.
type Range = (u64, u64);

/// Time, disks and ended requests, for the calls of a group.
pub(super) struct Context<'c> {
    pub now_ps: u64,
    pub devices: &'c mut Devices,
    pub done: &'c mut Vec<(Origin, Outcome)>,
}

fn overlaps(one: Range, other: Range) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

impl Group {
    pub fn new(raid: Option<&RaidConfig>, disk_blocks: u64, first: u32, blocks: u64) -> Result<Group, BackstoreError> {
        let array = match raid {
            Some(raid) => {
                let geometry = Geometry::new(raid.level, raid.members, raid.chunk_blocks, disk_blocks)?;
                Some(Array::new(geometry, raid.spares, raid.limits))
            }
            None => None,
        };
        let most = array.as_ref().map_or(disk_blocks, |array| array.geometry().blocks());
        if blocks > most {
            return Err(BackstoreError::Size { unit: blocks, group: most });
        }
        let unit = (first / raid.map_or(1, |raid| raid.members)) as u16;
        Ok(Group {
            array,
            unit,
            first,
            is_lost: false,
            plan: Plan::new(),
            running: Vec::new(),
            active: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            rebuild: None,
            busy_until_ps: 0,
            stats: GroupStats::default(),
        })
    }

    pub fn array(&self) -> Option<&Array> {
        self.array.as_ref()
    }

    pub fn members(&self) -> u32 {
        self.array.as_ref().map_or(1, |array| array.geometry().members())
    }

    pub fn stats(&self) -> &GroupStats {
        &self.stats
    }

    pub fn restart(&mut self) {
        self.stats = GroupStats::default();
    }

    /// Condition of the array, or of the only disk.
    pub fn condition(&self) -> Condition {
        match &self.array {
            Some(array) => array.condition(),
            None if self.is_lost => Condition::Failed { blocks: 0 },
            None => Condition::Optimal,
        }
    }

    pub fn submit(&mut self, request: Request, to: &mut Context<'_>) {
        if self.must_follow(&request, self.waiting.len()) || !self.start(request, to) {
            self.stats.waited += 1;
            self.waiting.push_back(request);
        }
    }

    /// Starts a request. Returns `false` if it must wait.
    fn start(&mut self, request: Request, to: &mut Context<'_>) -> bool {
        let (rows, stripes) = match self.plan(&request, to.devices) {
            Ok(ranges) => ranges,
            Err(()) => {
                self.stats.lost_requests += 1;
                to.done.push((request.origin, Outcome::Lost));
                return true;
            }
        };
        if self.is_blocked(rows, stripes) {
            return false;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.running.push(Running {
                request,
                pending: 0,
                reads: Vec::new(),
                writes: Vec::new(),
                rows,
                stripes,
                is_repeated: false,
            });
            self.running.len() as u32 - 1
        });
        let running = &mut self.running[slot as usize];
        running.request = request;
        (running.rows, running.stripes, running.is_repeated) = (rows, stripes, false);
        running.reads.clear();
        running.writes.clear();
        self.active.push(slot);
        for part in &self.plan.stripes {
            let count = match part.method {
                Method::FullStripe => &mut self.stats.full_stripes,
                Method::ReadModifyWrite => &mut self.stats.read_modify_writes,
                Method::ReconstructWrite => &mut self.stats.reconstruct_writes,
                Method::DegradedRead | Method::ReconstructLost => &mut self.stats.degraded,
                Method::Read | Method::DataOnly => continue,
            };
            *count += 1;
        }
        for io in &self.plan.ios {
            match (io.phase, running.reads.last_mut()) {
                (Phase::Write, _) => {}
                (Phase::Read, Some((stripe, count))) if *stripe == io.stripe => *count += 1,
                (Phase::Read, _) => running.reads.push((io.stripe, 1)),
            }
        }
        let ios = std::mem::take(&mut self.plan.ios);
        for &io in &ios {
            let running = &mut self.running[slot as usize];
            let waits = io.phase == Phase::Write && running.reads.iter().any(|(stripe, _)| *stripe == io.stripe);
            if waits {
                running.writes.push(io);
            } else {
                running.pending += 1;
                self.issue(Owner::Request(slot), io, to);
            }
        }
        self.plan.ios = ios;
        true
    }

    /// Plans a request. Returns the chunks of disks that it uses, and the stripes that it writes;
    /// an error if too few disks hold its blocks.
    fn plan(&mut self, request: &Request, devices: &Devices) -> Result<(Range, Option<Range>), ()> {
        let Request { lba, blocks, op, .. } = *request;
        let Some(array) = &self.array else {
            if self.is_lost {
                return Err(());
            }
            let phase = if op == Op::Read { Phase::Read } else { Phase::Write };
            self.plan.stripes.clear();
            self.plan.ios.clear();
            self.plan.ios.push(MemberIo { stripe: 0, phase, member: 0, lba, blocks });
            return Ok(((0, 0), None));
        };
        let (geometry, members) = (array.geometry(), array.members());
        match op {
            Op::Read => {
                let cost = |member, _| u64::from(devices.in_flight(self.first + member));
                self.plan.read(geometry, members, lba, blocks, cost);
            }
            Op::Write | Op::WriteThrough => self.plan.write(geometry, members, lba, blocks),
            Op::Flush => {
                self.plan.read(geometry, members, 0, 0, |_, _| 0);
                let usable = (0..).zip(members).filter(|(_, member)| **member != Member::Missing);
                let flush = |(member, _)| MemberIo { stripe: 0, phase: Phase::Write, member, lba: 0, blocks: 1 };
                self.plan.ios.extend(usable.map(flush));
                return Ok(((u64::MAX, u64::MAX), None));
            }
        }
        if !self.plan.lost.is_empty() {
            return Err(());
        }
        let chunk = u64::from(geometry.chunk_blocks());
        let rows = self.plan.ios.iter().map(|io| (io.lba / chunk, (io.lba + u64::from(io.blocks) - 1) / chunk));
        let rows = rows.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))).unwrap_or((u64::MAX, u64::MAX));
        Ok((rows, self.written_stripes(request)))
    }

    /// A write waits for writes of the same stripes, and every request for a rebuild of its chunks.
    fn is_blocked(&self, rows: Range, stripes: Option<Range>) -> bool {
        let rebuilt = self.rebuild.as_ref().map(|rebuild| step_rows(&rebuild.step));
        if rebuilt.is_some_and(|rebuilt| overlaps(rebuilt, rows)) {
            return true;
        }
        let Some(stripes) = stripes else { return false };
        let mut written = self.active.iter().filter_map(|&slot| self.running[slot as usize].stripes);
        written.any(|other| overlaps(other, stripes))
    }

    fn issue(&mut self, owner: Owner, io: MemberIo, to: &mut Context<'_>) {
        let MemberIo { stripe, phase, member, lba, blocks } = io;
        let op = match (owner, phase) {
            (_, Phase::Read) => Op::Read,
            (Owner::Request(slot), Phase::Write) => self.running[slot as usize].request.op,
            (Owner::Step(_), Phase::Write) => Op::Write,
        };
        match phase {
            Phase::Read => self.stats.disk_reads += 1,
            Phase::Write => self.stats.disk_writes += 1,
        }
        let device = self.first + member;
        to.devices.submit(to.now_ps, DeviceIo { unit: self.unit, device, owner, stripe, phase, lba, blocks, op });
    }

    /// A request to a disk has ended.
    pub fn io_ended(&mut self, io: DeviceIo, is_good: bool, to: &mut Context<'_>) {
        match io.owner {
            Owner::Request(slot) => self.part_ended(slot, io, is_good, to),
            Owner::Step(number) => self.step_part_ended(number, is_good, to),
        }
    }

    fn part_ended(&mut self, slot: u32, io: DeviceIo, is_good: bool, to: &mut Context<'_>) {
        let running = &mut self.running[slot as usize];
        running.pending -= 1;
        running.is_repeated |= !is_good;
        if io.phase == Phase::Read && !running.is_repeated {
            let at = running.reads.iter().position(|(stripe, _)| *stripe == io.stripe);
            let is_last = at.is_some_and(|at| {
                running.reads[at].1 -= 1;
                running.reads[at].1 == 0
            });
            if is_last {
                let mut next = 0;
                while next < self.running[slot as usize].writes.len() {
                    let running = &mut self.running[slot as usize];
                    if running.writes[next].stripe != io.stripe {
                        next += 1;
                        continue;
                    }
                    let write = running.writes.remove(next);
                    running.pending += 1;
                    self.issue(Owner::Request(slot), write, to);
                }
            }
        }
        let running = &self.running[slot as usize];
        if running.pending > 0 {
            return;
        }
        let (request, is_repeated) = (running.request, running.is_repeated);
        self.active.retain(|&active| active != slot);
        self.free.push(slot);
        if is_repeated {
            self.stats.repeated += 1;
            self.waiting.push_front(request);
        } else {
            self.stats.requests += 1;
            self.busy_until_ps = to.now_ps.saturating_add(BUSY_PS);
            to.done.push((request.origin, Outcome::Good));
        }
        self.start_waiting(to);
        self.advance_step(to);
    }

    /// Starts the requests that need not wait any more, the oldest first.
    fn start_waiting(&mut self, to: &mut Context<'_>) {
        let mut at = 0;
        while let Some(&request) = self.waiting.get(at) {
            if self.must_follow(&request, at) || !self.start(request, to) {
                at += 1;
            } else {
                self.waiting.remove(at);
            }
        }
    }

    /// Returns the first and last stripe that a request writes; none without parity.
    fn written_stripes(&self, request: &Request) -> Option<Range> {
        let Request { lba, blocks, op, .. } = *request;
        let writes = matches!(op, Op::Write | Op::WriteThrough);
        let size = self.array.as_ref()?.geometry().stripe_blocks().filter(|_| writes)?;
        Some((lba / size, (lba + u64::from(blocks) - 1) / size))
    }

    /// Returns whether one of the first `count` waiting requests writes a stripe that this request
    /// writes.
    fn must_follow(&self, request: &Request, count: usize) -> bool {
        let Some(own) = self.written_stripes(request) else { return false };
        let mut before = self.waiting.iter().take(count).filter_map(|other| self.written_stripes(other));
        before.any(|other| overlaps(other, own))
    }

    /// Returns whether a disk of the array is missing or in rebuild.
    pub fn is_degraded(&self) -> bool {
        self.array.as_ref().is_some_and(|array| array.members().iter().any(|member| *member != Member::Online))
    }

    /// Returns the time of the next step of a rebuild.
    pub fn rebuild_due_ps(&self) -> u64 {
        let Some(array) = &self.array else { return NEVER };
        if self.rebuild.is_some() {
            return NEVER;
        }
        let Some(busy_ps) = array.next_rebuild_ps(true) else { return NEVER };
        match array.next_rebuild_ps(false) {
            Some(idle_ps) if self.active.is_empty() => busy_ps.min(idle_ps.max(self.busy_until_ps)),
            _ => busy_ps,
        }
    }

    /// Starts the step that is due.
    pub fn start_rebuild(&mut self, to: &mut Context<'_>) {
        let is_busy = !self.active.is_empty() || to.now_ps < self.busy_until_ps;
        let mut ios = Vec::new();
        let Some(step) = self.array.as_mut().and_then(|array| array.start_rebuild(to.now_ps, is_busy, &mut ios)) else {
            return;
        };
        self.rebuild = Some(Rebuild { step, ios, phase: None, pending: 0, is_failed: false });
        self.advance_step(to);
    }

    /// Starts the next round of a step: its reads when no request uses its chunks any more, and its
    /// writes when the reads have ended.
    fn advance_step(&mut self, to: &mut Context<'_>) {
        while let Some(rebuild) = &mut self.rebuild {
            if rebuild.pending > 0 {
                return;
            }
            let phase = match rebuild.phase {
                None => {
                    let rows = step_rows(&rebuild.step);
                    let running = &self.running;
                    if self.active.iter().any(|&slot| overlaps(rows, running[slot as usize].rows)) {
                        return;
                    }
                    Phase::Read
                }
                Some(Phase::Read) if !rebuild.is_failed => Phase::Write,
                _ => {
                    let is_done = !rebuild.is_failed;
                    if let (Some(array), Some(rebuild)) = (&mut self.array, self.rebuild.take()) {
                        let written = rebuild.ios.iter().filter(|io| is_done && io.phase == Phase::Write);
                        self.stats.rebuilt_blocks += written.map(|io| u64::from(io.blocks)).sum::<u64>();
                        array.end_rebuild(rebuild.step, is_done);
                    }
                    self.start_waiting(to);
                    return;
                }
            };
            rebuild.phase = Some(phase);
            let number = rebuild.step.number;
            let ios: Vec<MemberIo> = rebuild.ios.iter().filter(|io| io.phase == phase).copied().collect();
            rebuild.pending = ios.len() as u32;
            ios.into_iter().for_each(|io| self.issue(Owner::Step(number), io, to));
        }
    }

    fn step_part_ended(&mut self, number: u64, is_good: bool, to: &mut Context<'_>) {
        let Some(rebuild) = self.rebuild.as_mut().filter(|rebuild| rebuild.step.number == number) else { return };
        rebuild.pending -= 1;
        rebuild.is_failed |= !is_good;
        self.advance_step(to);
    }

    /// A disk fails.
    pub fn fail_member(&mut self, member: u32, to: &mut Context<'_>) {
        if member >= self.members() {
            return;
        }
        match &mut self.array {
            Some(array) if array.members()[member as usize] == Member::Missing => return,
            Some(array) => {
                array.fail(member);
                // The array has abandoned a running step; ends of its parts are ignored.
                self.rebuild = None;
            }
            None => self.is_lost = true,
        }
        for &slot in &self.active {
            let running = &mut self.running[slot as usize];
            running.is_repeated |= running.writes.iter().any(|io| io.member == member);
        }
        let mut failed = Vec::new();
        to.devices.replace(self.first + member, &mut failed);
        for io in failed {
            self.io_ended(io, false, to);
        }
        self.start_waiting(to);
    }

    /// A new disk replaces a failed one, or becomes a spare.
    pub fn add_spare(&mut self) {
        // Without RAID, the data of the old disk are lost all the same.
        if let Some(array) = &mut self.array {
            array.add_spare();
        }
    }
}

/// First and last chunk of each disk that a step uses.
fn step_rows(step: &Step) -> Range {
    (step.chunk, step.chunk + step.chunks.max(1) - 1)
}
