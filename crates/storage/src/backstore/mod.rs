//! The backstore of a storage system: cache, RAID groups and disks or SSDs behind the controller.
//!
//! A command passes these rooms in order, each of which can be absent: a cache for all units, a
//! RAID group for each unit, and devices. Data flow down as requests and up as their ends.
//!
//! No data are carried. Which requests would have returned wrong data or none is known all the
//! same, and is an [`Outcome`].

#[cfg(test)]
mod contents;
mod device;
mod devices;
mod faults;
mod front;
mod group;
mod intervals;
mod loops;
mod settings;

pub use device::Device;
pub use group::{GroupStats, PowerLoss};
pub use loops::LoopConfig;
pub use settings::{BackstoreConfig, BackstoreError, CacheConfig, Protection, RaidConfig};

use crate::cache::Statistics;
use crate::disk::{Disk, Op};
use crate::flash::Drive;
use crate::raid::{Condition, Member};
use devices::Devices;
use front::Front;
use group::{Context, Group};
use std::collections::VecDeque;

/// "Never", as a time.
const NEVER: u64 = u64::MAX;

/// A command of a host. Addresses are blocks of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Identifier, returned in [`Ended`].
    pub id: u32,
    /// Number of the unit.
    pub unit: u16,
    /// First block.
    pub lba: u64,
    /// Number of blocks, at least one.
    pub blocks: u32,
    /// Operation.
    pub op: Op,
}

/// Result of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Completed.
    Good,
    /// Too few devices hold the blocks.
    Lost,
    /// A read that completed with wrong data, which the storage system cannot notice.
    Wrong,
}

/// End of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Identifier of the command.
    pub id: u32,
    /// Result.
    pub outcome: Outcome,
}

/// Source of a request to a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// A host, with the identifier of its command.
    Command(u32),
    /// The cache, with the number of its action.
    Action(u32),
}

/// A request to the group of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Request {
    origin: Origin,
    unit: u16,
    lba: u64,
    blocks: u32,
    op: Op,
}

/// Cache, groups and disks. The caller passes commands and times in picoseconds.
#[derive(Clone, Debug)]
pub struct Backstore {
    front: Option<Front>,
    groups: Vec<Group>,
    devices: Devices,
    /// Units whose groups can have a rebuild or a scrub.
    background: Vec<u16>,
    /// Requests of the cache that no group has yet.
    requests: Vec<Request>,
    /// Requests that groups have ended, and that nobody has been told of.
    done: Vec<(Origin, Outcome)>,
    ended: VecDeque<Ended>,
    commands: usize,
    /// Time of the last call that gave one.
    now_ps: u64,
    /// Cache statistics at the start of the measurement.
    cache_before: Statistics,
    /// Acknowledged blocks of 512 bytes that power failures took from volatile caches of devices.
    lost_in_devices: u64,
}

impl Backstore {
    /// Creates an idle backstore with units of these numbers of blocks. `idle` is an idle [`Disk`]
    /// or [`crate::flash::Drive`] with the parameters of all devices, whose tables they share. A
    /// preconditioned SSD makes all of them preconditioned.
    ///
    /// # Errors
    ///
    /// Parameters that contradict each other.
    pub fn new(
        config: &BackstoreConfig,
        idle: impl Into<Device>,
        unit_blocks: &[u64],
    ) -> Result<Backstore, BackstoreError> {
        let idle = idle.into();
        let members = config.raid.as_ref().map_or(1, |raid| raid.members);
        let mut groups = Vec::with_capacity(unit_blocks.len());
        for (unit, &blocks) in (0..).zip(unit_blocks) {
            groups.push(Group::new(config.raid.as_ref(), idle.blocks(), unit * members, blocks)?);
        }
        let front = config.cache.as_ref().map(|cache| Front::new(cache, unit_blocks)).transpose()?;
        Ok(Backstore {
            front,
            devices: Devices::new(idle, groups.len() * members as usize, config.loops),
            groups,
            background: Vec::new(),
            requests: Vec::new(),
            done: Vec::new(),
            ended: VecDeque::new(),
            commands: 0,
            now_ps: 0,
            cache_before: Statistics::default(),
            lost_in_devices: 0,
        })
    }

    /// Accepts a command.
    pub fn submit(&mut self, now_ps: u64, command: Command) {
        let Command { id, unit, lba, blocks, op } = command;
        self.now_ps = now_ps;
        if usize::from(unit) >= self.groups.len() {
            self.ended.push_back(Ended { id, outcome: Outcome::Lost });
            self.commands += 1;
            return;
        }
        self.commands += 1;
        match &mut self.front {
            Some(front) => front.submit(now_ps, command, &mut self.requests, &mut self.ended),
            None => self.requests.push(Request { origin: Origin::Command(id), unit, lba, blocks, op }),
        }
        self.pass_on(now_ps);
    }

    /// Passes requests to groups, and their ends to the cache, until nothing is left to pass.
    fn pass_on(&mut self, now_ps: u64) {
        self.now_ps = now_ps;
        loop {
            let Backstore { front, groups, devices, requests, done, ended, .. } = self;
            for request in requests.drain(..) {
                groups[usize::from(request.unit)].submit(request, &mut Context { now_ps, devices, done });
            }
            for (origin, outcome) in done.drain(..) {
                match (origin, &mut *front) {
                    (Origin::Action(action), Some(front)) => {
                        front.action_ended(now_ps, action, outcome, requests, ended);
                    }
                    (Origin::Command(id) | Origin::Action(id), _) => ended.push_back(Ended { id, outcome }),
                }
            }
            if let Some(front) = front {
                front.advance(now_ps, requests, ended);
            }
            if requests.is_empty() {
                return;
            }
        }
    }

    /// Returns the next time at which anything happens, or `u64::MAX`. A disk compares all requests
    /// that came before this call with each other.
    pub fn next_ps(&mut self) -> u64 {
        if !self.ended.is_empty() {
            return self.now_ps;
        }
        let front_ps = self.front.as_ref().map_or(NEVER, Front::next_ps);
        let steps = self.background.iter().map(|&unit| self.groups[usize::from(unit)].background_due_ps());
        let step_ps = steps.min().unwrap_or(NEVER);
        self.devices.next_ps().min(front_ps).min(step_ps)
    }

    /// Removes and returns the next command that has ended by `now_ps`.
    pub fn pop_ended(&mut self, now_ps: u64) -> Option<Ended> {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                self.commands -= 1;
                return Some(ended);
            }
            let Backstore { groups, devices, background, done, .. } = self;
            background.retain(|&unit| groups[usize::from(unit)].has_background());
            for &unit in background.iter() {
                let group = &mut groups[usize::from(unit)];
                if group.background_due_ps() <= now_ps {
                    group.start_background(&mut Context { now_ps, devices, done });
                }
            }
            match devices.pop_ended(now_ps) {
                Some(io) => groups[usize::from(io.unit)].io_ended(io, true, &mut Context { now_ps, devices, done }),
                None if self.front.as_ref().is_some_and(|front| front.next_ps() <= now_ps) => {}
                None => return None,
            }
            self.pass_on(now_ps);
        }
    }

    /// Number of commands that have not ended.
    pub fn commands(&self) -> usize {
        self.commands
    }

    /// Number of commands that wait for a disk. Behind a cache or RAID, these are the commands
    /// beyond one for each disk.
    pub fn waiting(&self) -> usize {
        if self.front.is_none() && self.groups.iter().all(|group| group.array().is_none()) {
            return self.devices().map(|(_, _, device)| device.waiting()).sum();
        }
        self.commands.saturating_sub(self.devices().count())
    }

    /// A disk of the group of a unit fails, with all its data. A spare takes its place if there is
    /// one. Has no effect on a disk that is not there.
    pub fn fail_disk(&mut self, now_ps: u64, unit: u16, member: u32) {
        let Backstore { groups, devices, done, .. } = self;
        if let Some(group) = groups.get_mut(usize::from(unit)) {
            group.fail_member(member, &mut Context { now_ps, devices, done });
            self.set_background(unit);
        }
        self.pass_on(now_ps);
    }

    /// Lists a unit whose group may have a rebuild or scrub.
    fn set_background(&mut self, unit: u16) {
        if !self.background.contains(&unit) {
            self.background.push(unit);
        }
    }

    /// A new disk replaces a failed one of the group of a unit, or becomes a spare.
    pub fn add_disk(&mut self, unit: u16) {
        if let Some(group) = self.groups.get_mut(usize::from(unit)) {
            group.add_spare();
        }
    }

    /// Sets the state of the battery of the cache. Without it, writes go through to the disks and
    /// dirty data are written back.
    pub fn set_battery(&mut self, now_ps: u64, is_charged: bool) {
        if let Some(front) = &mut self.front {
            front.set_battery(is_charged);
        }
        self.pass_on(now_ps);
    }

    /// Restarts the measurement at `now_ps`. Write-backs of disks before this time do not count.
    pub fn restart(&mut self, now_ps: u64) {
        self.devices.restart(now_ps);
        self.groups.iter_mut().for_each(Group::restart);
        self.cache_before = self.front.as_ref().map(|front| *front.statistics()).unwrap_or_default();
    }

    /// Disks with the number of their unit, and their number in it, in order.
    pub fn disks(&self) -> impl Iterator<Item = (u32, u32, &Disk)> {
        self.devices().filter_map(|(unit, member, device)| Some((unit, member, device.disk()?)))
    }

    /// SSDs with the number of their unit, and their number in it, in order.
    pub fn ssds(&self) -> impl Iterator<Item = (u32, u32, &Drive)> {
        self.devices().filter_map(|(unit, member, device)| Some((unit, member, device.ssd()?)))
    }

    /// Disks or SSDs with the number of their unit, and their number in it, in order.
    pub fn devices(&self) -> impl Iterator<Item = (u32, u32, &Device)> {
        let members = self.groups.first().map_or(1, Group::members);
        let count = self.groups.len() * members as usize;
        (0..).zip(&self.devices.all()[..count]).map(move |(at, device): (u32, _)| (at / members, at % members, device))
    }

    /// Returns the condition of a unit.
    pub fn condition(&self, unit: u16) -> Condition {
        self.groups.get(usize::from(unit)).map_or(Condition::Optimal, Group::condition)
    }

    /// Groups that are RAID, by unit.
    pub fn groups(&self) -> impl Iterator<Item = GroupView<'_>> {
        (0..).zip(&self.groups).filter_map(|(unit, group)| {
            let array = group.array()?;
            let chunks = array.geometry().member_blocks() / u64::from(array.geometry().chunk_blocks());
            let rebuilt = array.members().iter().filter_map(|member| match member {
                Member::Rebuilding { chunks } => Some(*chunks),
                _ => None,
            });
            let rebuilt = rebuilt.min().map(|done| done as f64 / chunks.max(1) as f64);
            Some(GroupView {
                unit,
                condition: group.condition(),
                spares: array.spares(),
                rebuilt,
                scrubbed: array.scrubbed(),
                unreadable_blocks: group.unreadable_blocks(),
                inconsistent_stripes: array.inconsistent().len() as u64,
                stats: group.stats(),
            })
        })
    }

    /// Time in picoseconds that the busiest loop of devices was occupied from the start of the
    /// measurement to `now_ps`; `None` without loops.
    pub fn busiest_loop_ps(&self, now_ps: u64) -> Option<u64> {
        self.devices.busiest_loop_ps(now_ps)
    }

    /// Statistics of the cache since the start of the measurement.
    pub fn cache(&self) -> Option<Statistics> {
        self.front.as_ref().map(|front| front.statistics().since(&self.cache_before))
    }

    /// Written blocks of 512 bytes, acknowledged to a host, that were lost in the cache: no group
    /// could take them, or the cache lost its contents.
    pub fn lost_dirty_blocks(&self) -> u64 {
        self.front.as_ref().map_or(0, Front::lost_blocks)
    }

    /// The same, and those that were lost in volatile caches of disks and SSDs.
    pub fn lost_blocks(&self) -> u64 {
        self.lost_dirty_blocks() + self.lost_in_devices
    }
}

/// State of a RAID group.
#[derive(Clone, Copy, Debug)]
pub struct GroupView<'b> {
    /// Number of the unit.
    pub unit: u32,
    /// Condition now.
    pub condition: Condition,
    /// Unused spares.
    pub spares: u32,
    /// Fraction of the disk that is rebuilt, while a rebuild runs.
    pub rebuilt: Option<f64>,
    /// Fraction of the disks behind the scrub or resync, while one runs.
    pub scrubbed: Option<f64>,
    /// Blocks of 512 bytes with a latent sector error.
    pub unreadable_blocks: u64,
    /// Parity stripes, or chunks of a mirror, whose redundancy is wrong after a power failure.
    pub inconsistent_stripes: u64,
    /// Counters since the start of the measurement.
    pub stats: &'b GroupStats,
}
