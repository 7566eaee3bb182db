//! The RAID group of a unit, or its only disk.

mod faults;
mod request;
mod stats;
mod work;

pub use faults::PowerLoss;
pub use stats::GroupStats;

use super::devices::{DeviceIo, Devices, Owner};
use super::intervals::Intervals;
use super::settings::{BackstoreError, RaidConfig};
use super::{NEVER, Origin, Outcome, Request};
use crate::disk::Op;
use crate::raid::{Array, Condition, Consistency, Geometry, Member, MemberIo, Method, Phase, Plan, WriteTracker};
use faults::Latent;
use request::Running;
use std::collections::{BTreeMap, VecDeque};
use work::{Blocks, Work};

/// A group counts as used until this time after the end of a request of a host, in picoseconds.
const BUSY_PS: u64 = 100_000_000_000;

/// Log of a journal or of partial parity.
#[derive(Clone, Copy, Debug)]
struct Log {
    /// Number of the journal device; `None`: the log is on the parity member.
    device: Option<u32>,
    /// First block and size of the log.
    first: u64,
    blocks: u64,
    /// Next block, from the first.
    next: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    /// `None`: one disk without RAID.
    array: Option<Array>,
    unit: u16,
    /// Number of the first disk.
    first: u32,
    disk_blocks: u64,
    /// The only disk has failed.
    is_lost: bool,
    plan: Plan,
    running: Vec<Running>,
    /// Numbers of entries of `running` in use, and of others.
    active: Vec<u32>,
    free: Vec<u32>,
    waiting: VecDeque<Request>,
    /// Steps of rebuild and scrub, and repairs.
    works: Vec<Work>,
    /// Blocks to repair, which no work does yet.
    repairs: Vec<Blocks>,
    /// Number of the next repair.
    repair: u64,
    tracker: WriteTracker,
    log: Option<Log>,
    latent: Option<Latent>,
    /// Unreadable blocks of the only disk.
    errors: Intervals,
    /// First row, and the row behind the last, in which the redundancy of a stripe may be wrong.
    suspects: BTreeMap<u64, (u32, u32)>,
    /// Blocks of the unit whose data are wrong, and agree with their redundancy.
    wrong: Intervals,
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
                Some(Array::new(geometry, raid.spares, raid.limits).read_ahead())
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
            disk_blocks,
            is_lost: false,
            plan: Plan::new(),
            running: Vec::new(),
            active: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            works: Vec::new(),
            repairs: Vec::new(),
            repair: 0,
            tracker: WriteTracker::new(Consistency::None),
            log: None,
            latent: None,
            errors: Intervals::default(),
            suspects: BTreeMap::new(),
            wrong: Intervals::default(),
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

    /// Sets the protection against a crash in the middle of a write. `journal` is the number of the
    /// log device.
    pub fn set_consistency(&mut self, consistency: Consistency, journal: u32) {
        self.tracker = WriteTracker::new(consistency);
        self.log = match consistency {
            Consistency::None | Consistency::Bitmap { .. } => None,
            Consistency::Journal => Some(Log { device: Some(journal), first: 0, blocks: self.disk_blocks, next: 0 }),
            Consistency::PartialParityLog => {
                let blocks = faults::PARTIAL_LOG_BLOCKS.min(self.disk_blocks);
                Some(Log { device: None, first: self.disk_blocks - blocks, blocks, next: 0 })
            }
        };
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

    /// A write waits for writes of the same stripes, and every request for works on its chunks.
    fn is_blocked(&self, rows: Range, stripes: Option<Range>) -> bool {
        if self.works.iter().any(|work| overlaps(work.rows, rows)) {
            return true;
        }
        let Some(stripes) = stripes else { return false };
        let mut written = self.active.iter().filter_map(|&slot| self.running[slot as usize].stripes);
        written.any(|other| overlaps(other, stripes))
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

    fn issue(&mut self, owner: Owner, io: MemberIo, to: &mut Context<'_>) {
        let MemberIo { stripe, phase, member, lba, blocks } = io;
        let op = match (owner, phase) {
            (_, Phase::Read) => Op::Read,
            (Owner::Request(slot), Phase::Write) => self.running[slot as usize].request.op,
            (Owner::Step(_) | Owner::Log(_), Phase::Write) => Op::Write,
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
        self.advance_errors(to.now_ps);
        match io.owner {
            Owner::Request(slot) => self.part_ended(slot, io, is_good, to),
            Owner::Log(slot) => self.log_ended(slot, io.stripe, is_good, to),
            Owner::Step(number) => self.work_part_ended(number, is_good, to),
        }
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
                // The array has abandoned running steps; ends of their parts are ignored.
                self.works.clear();
                self.repairs.clear();
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
