//! An SSD with its queue, its write buffer and its host interface.

mod config;
pub mod preset;
mod stats;

pub use config::{DriveConfig, DriveError};
pub use stats::{DriveCount, DriveStats};

use super::channel::Channel;
use super::ftl::{FlashOperation, FlashStatistics, Ftl};
use super::settings::FlashTiming;
use crate::disk::{Op, Request};
use config::BLOCK_BYTES;
use rand::Rng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

/// Number that stands for no task.
const NONE: u32 = u32::MAX;

/// Picoseconds in a second.
const PS_PER_S: u128 = 1_000_000_000_000;

/// End of a request to an SSD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveEnded {
    /// Identifier of the request.
    pub id: u64,
    /// Operation of the request.
    pub op: Op,
    /// Time of arrival.
    pub submitted_ps: u64,
    /// Time of the end.
    pub ended_ps: u64,
}

/// A request in service.
#[derive(Clone, Copy, Debug)]
struct Task {
    request: Request,
    at_ps: u64,
    /// Flash operations that it waits for.
    pending: u32,
    /// Next page to put into the write buffer, and the page behind the last one.
    next: u32,
    end: u32,
    /// The controller has processed the command.
    is_processed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// The controller has processed the command of a task.
    Processed(u32),
    /// The data of a write have arrived.
    Arrived(u32),
    /// A die has ended its operation.
    Die(u32),
    /// A task ends.
    End(u32),
}

/// Work of a die.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Read of a page for a task.
    Read(u32),
    /// Program of a logical page; the task waits for it unless it is [`NONE`].
    Program {
        task: u32,
        logical: u32,
    },
    Copy,
    Erase,
}

/// A die, and its work that has not begun. Reads go first, so a read waits for at most one
/// operation of another kind.
#[derive(Clone, Debug, Default)]
struct Die {
    running: Option<Work>,
    reads: VecDeque<Work>,
    others: VecDeque<Work>,
}

/// An SSD in virtual time. Addresses are blocks of 512 bytes, times are picoseconds.
///
/// A simulator calls it as it calls a [`crate::disk::Disk`]: [`Drive::submit`] with times that
/// never decrease, [`Drive::next_ps`], and [`Drive::pop_ended`] at that time until there is none.
/// Programs of buffered pages need no calls; the next call computes their progress.
///
/// The controller processes commands one after the other. A read then reads its pages on their
/// dies, and sends them to the host. A write receives its data, reads pages that it covers in
/// part, and ends when the write buffer has room for all pages. Programs, copies and erases wait
/// for their die in order; reads precede them.
///
/// A clone shares the maps of the translation layer until one of both writes.
///
/// Simplifications: a page in the buffer that is written again is programmed twice; an erase is not
/// suspended; the map is in memory, so no read needs flash memory for it.
#[derive(Clone, Debug)]
pub struct Drive {
    config: Arc<DriveConfig>,
    ftl: Arc<Ftl>,
    /// Die and channel of each unit.
    places: Arc<[(u32, u32)]>,
    transfer_ps: u64,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    /// Times from which controller, and link from and to the host are free.
    controller_free_ps: u64,
    in_free_ps: u64,
    out_free_ps: u64,
    tasks: Vec<Task>,
    free: Vec<u32>,
    in_service: u32,
    /// Requests behind the last queue slot or behind a flush.
    held: VecDeque<(u64, Request)>,
    /// Writes that wait for room in the write buffer.
    filling: VecDeque<u32>,
    /// Flush that waits for the programs.
    flush: Option<u32>,
    /// Pages that are not programmed yet, and how often each logical page is among them.
    buffered: u32,
    in_buffer: HashMap<u32, u32>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Number of the next event; events of one time are in the order of their numbers.
    number: u64,
    ended: VecDeque<DriveEnded>,
    clock_ps: u64,
    stats: DriveStats,
    /// Counters of the translation layer at the start of the measurement.
    before: FlashStatistics,
}

fn transfer_ps(bytes: u64, bytes_per_second: u64) -> u64 {
    (u128::from(bytes) * PS_PER_S / u128::from(bytes_per_second)) as u64
}

impl Drive {
    /// Creates an idle SSD with erased blocks.
    ///
    /// # Errors
    ///
    /// Parameters that contradict each other.
    pub fn new(config: &DriveConfig) -> Result<Drive, DriveError> {
        config.check()?;
        let geometry = config.flash.geometry;
        let places = (0..geometry.units()).map(|unit| (geometry.die(unit), geometry.channel(unit)));
        Ok(Drive {
            ftl: Arc::new(Ftl::new(&config.flash)?),
            places: places.collect(),
            transfer_ps: transfer_ps(geometry.page_bytes.into(), config.flash.timing.channel_bytes_per_second),
            dies: vec![Die::default(); (geometry.channels * geometry.dies) as usize],
            channels: (0..geometry.channels).map(|_| Channel::new()).collect(),
            controller_free_ps: 0,
            in_free_ps: 0,
            out_free_ps: 0,
            tasks: Vec::new(),
            free: Vec::new(),
            in_service: 0,
            held: VecDeque::new(),
            filling: VecDeque::new(),
            flush: None,
            buffered: 0,
            in_buffer: HashMap::with_capacity(config.buffer_pages.min(1 << 20) as usize * 2),
            events: BinaryHeap::new(),
            number: 0,
            ended: VecDeque::new(),
            clock_ps: 0,
            stats: DriveStats::default(),
            before: FlashStatistics::default(),
            config: Arc::new(config.clone()),
        })
    }

    /// Parameters.
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// Translation layer, for its map.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Fills the SSD and overwrites it at random, in no time (see [`Ftl::precondition`]).
    pub fn precondition(&mut self, turns: u32, random: &mut impl Rng) {
        Arc::make_mut(&mut self.ftl).precondition(turns, random);
        self.before = *self.ftl.statistics();
    }

    /// Sums since the start of the measurement.
    pub fn stats(&self) -> DriveStats {
        let (now, before) = (self.ftl.statistics(), &self.before);
        let flash = FlashStatistics {
            host_pages: now.host_pages - before.host_pages,
            copied_pages: now.copied_pages - before.copied_pages,
            erases: now.erases - before.erases,
            trimmed_pages: now.trimmed_pages - before.trimmed_pages,
        };
        DriveStats { flash, wear: self.ftl.wear(), ..self.stats }
    }

    /// Restarts the sums of [`Drive::stats`].
    pub fn restart_stats(&mut self) {
        self.stats = DriveStats::default();
        self.before = *self.ftl.statistics();
    }

    /// Blocks of 512 bytes that are not in the cells yet. Without power-loss protection, a drive
    /// without power loses them.
    pub fn dirty_blocks(&self) -> u64 {
        u64::from(self.buffered) * u64::from(self.page_blocks())
    }

    /// Number of requests that wait for a queue slot, a flush, or room in the write buffer.
    pub fn waiting(&self) -> usize {
        self.held.len() + self.filling.len() + usize::from(self.flush.is_some())
    }

    fn page_blocks(&self) -> u32 {
        self.config.flash.geometry.page_bytes / BLOCK_BYTES
    }

    /// Accepts a request at `now_ps`. A range beyond the last block is cut.
    pub fn submit(&mut self, now_ps: u64, request: Request) {
        self.run_before(now_ps);
        self.clock_ps = self.clock_ps.max(now_ps);
        let last = self.config.blocks() - 1;
        let lbn = request.lbn.min(last);
        let request = Request { lbn, blocks: request.blocks.clamp(1, last + 1 - lbn), ..request };
        self.held.push_back((now_ps, request));
        self.release_held(now_ps);
    }

    /// Unmaps the whole pages of a range. The cells are not accessed.
    pub fn trim(&mut self, now_ps: u64, lba: u64, blocks: u64) {
        self.run_before(now_ps);
        let size = u64::from(self.page_blocks());
        let end = lba.saturating_add(blocks).min(self.config.blocks()) / size;
        let ftl = Arc::make_mut(&mut self.ftl);
        (lba.div_ceil(size)..end).for_each(|page| ftl.trim(page as u32));
    }

    /// Returns the next time at which anything happens for a request; none if there is none.
    pub fn next_ps(&mut self) -> Option<u64> {
        if let Some(ended) = self.ended.front() {
            return Some(ended.ended_ps);
        }
        let is_idle = self.in_service == 0 && self.held.is_empty();
        self.events.peek().filter(|_| !is_idle).map(|Reverse((at_ps, ..))| *at_ps)
    }

    /// Returns a request that has ended at `now_ps`, the earliest first.
    pub fn pop_ended(&mut self, now_ps: u64) -> Option<DriveEnded> {
        self.advance(now_ps);
        self.ended.pop_front()
    }

    /// Computes the progress of the drive until `now_ps`.
    pub fn advance(&mut self, now_ps: u64) {
        self.run_before(now_ps.saturating_add(1));
        self.clock_ps = self.clock_ps.max(now_ps);
    }

    /// Removes all requests at `now_ps`, as after a loss of power. Returns the blocks that were
    /// lost in the write buffer; the map does not return to older pages.
    pub(crate) fn power_loss(&mut self, now_ps: u64) -> u64 {
        self.advance(now_ps);
        let lost = if self.config.has_power_loss_protection { 0 } else { self.dirty_blocks() };
        for die in &mut self.dies {
            die.running = None;
            die.reads.clear();
            die.others.clear();
        }
        self.channels.fill_with(Channel::new);
        (self.controller_free_ps, self.in_free_ps, self.out_free_ps) = (now_ps, now_ps, now_ps);
        self.tasks.clear();
        self.free.clear();
        self.in_service = 0;
        self.held.clear();
        self.filling.clear();
        self.flush = None;
        self.buffered = 0;
        self.in_buffer.clear();
        self.events.clear();
        self.ended.clear();
        lost
    }

    fn run_before(&mut self, now_ps: u64) {
        while let Some(&Reverse((at_ps, _, event))) = self.events.peek()
            && at_ps < now_ps
        {
            self.events.pop();
            match event {
                Event::Processed(task) => self.processed(at_ps, task),
                Event::Arrived(task) => self.arrived(at_ps, task),
                Event::Die(die) => self.die_ended(at_ps, die),
                Event::End(task) => self.end(at_ps, task),
            }
        }
    }

    fn at(&mut self, at_ps: u64, event: Event) {
        self.events.push(Reverse((at_ps, self.number, event)));
        self.number += 1;
    }

    /// Starts requests while queue slots are free and no flush waits.
    fn release_held(&mut self, now_ps: u64) {
        while self.flush.is_none()
            && self.in_service < self.config.queue_slots
            && let Some((at_ps, request)) = self.held.pop_front()
        {
            let size = u64::from(self.page_blocks());
            let (next, end) = (request.lbn / size, (request.lbn + request.blocks).div_ceil(size));
            let task = Task { request, at_ps, pending: 0, next: next as u32, end: end as u32, is_processed: false };
            let number = match self.free.pop() {
                Some(number) => {
                    self.tasks[number as usize] = task;
                    number
                }
                None => {
                    self.tasks.push(task);
                    self.tasks.len() as u32 - 1
                }
            };
            self.in_service += 1;
            self.controller_free_ps = self.controller_free_ps.max(now_ps) + self.config.command_ps;
            self.at(self.controller_free_ps, Event::Processed(number));
            if request.op == Op::Flush {
                self.flush = Some(number);
            }
        }
    }

    fn processed(&mut self, now_ps: u64, number: u32) {
        self.tasks[number as usize].is_processed = true;
        let Task { request, next, end, .. } = self.tasks[number as usize];
        match request.op {
            Op::Read => {
                for page in next..end {
                    if self.in_buffer.contains_key(&page) {
                        self.stats.buffer_hits += 1;
                    } else if self.read_page(number, page) {
                        self.stats.flash_reads += 1;
                    }
                }
                if self.tasks[number as usize].pending == 0 {
                    self.send(now_ps, number);
                }
                (next..end).for_each(|page| self.start_page(now_ps, page));
            }
            Op::Write | Op::WriteThrough => {
                let bytes = request.blocks * u64::from(BLOCK_BYTES);
                let duration_ps = transfer_ps(bytes, self.config.link_bytes_per_second);
                self.in_free_ps = self.in_free_ps.max(now_ps) + duration_ps;
                self.at(self.in_free_ps, Event::Arrived(number));
            }
            Op::Flush => self.end_flush(now_ps),
        }
    }

    /// Puts a read of a page into the queue of its die. Returns `false` if the page is not mapped.
    fn read_page(&mut self, task: u32, page: u32) -> bool {
        let Some(die) = self.die_of(page) else { return false };
        self.tasks[task as usize].pending += 1;
        self.dies[die as usize].reads.push_back(Work::Read(task));
        true
    }

    fn start_page(&mut self, now_ps: u64, page: u32) {
        if let Some(die) = self.die_of(page) {
            self.start_die(now_ps, die);
        }
    }

    fn die_of(&self, page: u32) -> Option<u32> {
        let physical = self.ftl.physical(page)?;
        Some(self.places[self.config.flash.geometry.unit(physical) as usize].0)
    }

    /// Sends the data of a read to the host.
    fn send(&mut self, now_ps: u64, number: u32) {
        let bytes = self.tasks[number as usize].request.blocks * u64::from(BLOCK_BYTES);
        self.out_free_ps = self.out_free_ps.max(now_ps) + transfer_ps(bytes, self.config.link_bytes_per_second);
        self.at(self.out_free_ps + self.config.read_latency_ps, Event::End(number));
    }

    /// Reads the pages that a write covers in part, or puts its pages into the buffer.
    fn arrived(&mut self, now_ps: u64, number: u32) {
        let Task { request, next, end, .. } = self.tasks[number as usize];
        let size = u64::from(self.page_blocks());
        let is_first_cut = !request.lbn.is_multiple_of(size);
        let is_last_cut = !(request.lbn + request.blocks).is_multiple_of(size);
        let pages = [(is_first_cut, next), (is_last_cut && (end - 1 != next || !is_first_cut), end - 1)];
        for (_, page) in pages.into_iter().filter(|(is_cut, _)| *is_cut) {
            if !self.in_buffer.contains_key(&page) && self.read_page(number, page) {
                self.stats.merges += 1;
                self.start_page(now_ps, page);
            }
        }
        if self.tasks[number as usize].pending == 0 {
            self.merged(now_ps, number);
        }
    }

    fn merged(&mut self, now_ps: u64, number: u32) {
        let waits = !self.filling.is_empty();
        self.filling.push_back(number);
        if !waits {
            self.fill(now_ps);
        }
        self.stats.stalls += u64::from(self.filling.back() == Some(&number));
    }

    /// Puts pages of writes into the buffer while it has room, the oldest write first.
    fn fill(&mut self, now_ps: u64) {
        while let Some(&number) = self.filling.front() {
            let Task { request, next, end, .. } = self.tasks[number as usize];
            let has_buffer = self.config.buffer_pages > 0;
            let must_wait = !has_buffer || (request.op == Op::WriteThrough && !self.config.has_power_loss_protection);
            let owner = if must_wait { number } else { NONE };
            for page in next..end {
                if has_buffer && self.buffered >= self.config.buffer_pages {
                    return;
                }
                self.tasks[number as usize].next = page + 1;
                self.program(now_ps, owner, page);
            }
            self.filling.pop_front();
            if self.tasks[number as usize].pending == 0 {
                self.at(now_ps + self.config.write_latency_ps, Event::End(number));
            }
        }
    }

    /// Assigns a page to the cells, and queues its program behind the garbage collection that it
    /// needs.
    fn program(&mut self, now_ps: u64, task: u32, logical: u32) {
        let Drive { ftl, places, dies, .. } = self;
        let mut target = None;
        Arc::make_mut(ftl).write(logical, |unit, operation| {
            let die = places[unit as usize].0;
            dies[die as usize].others.push_back(match operation {
                FlashOperation::Program { .. } => {
                    target = Some(die);
                    Work::Program { task, logical }
                }
                FlashOperation::Copy { .. } => Work::Copy,
                FlashOperation::Erase { .. } => Work::Erase,
            });
        });
        // The settings leave room for all logical pages.
        debug_assert!(target.is_some(), "no room for page {logical}");
        if let Some(die) = target {
            self.buffered += 1;
            *self.in_buffer.entry(logical).or_insert(0) += 1;
            if task != NONE {
                self.tasks[task as usize].pending += 1;
            }
            self.start_die(now_ps, die);
        }
    }

    /// Starts the next work of a die that is idle.
    fn start_die(&mut self, now_ps: u64, number: u32) {
        let FlashTiming { read_ps, program_ps, erase_ps, has_copy_back, .. } = self.config.flash.timing;
        let die = &mut self.dies[number as usize];
        if die.running.is_some() {
            return;
        }
        let Some(work) = die.reads.pop_front().or_else(|| die.others.pop_front()) else { return };
        die.running = Some(work);
        let channel = &mut self.channels[number as usize % self.config.flash.geometry.channels as usize];
        let transfer_ps = self.transfer_ps;
        let end_ps = match work {
            Work::Read(_) => channel.reserve(now_ps + read_ps, transfer_ps),
            Work::Program { .. } => channel.reserve(now_ps, transfer_ps) + program_ps,
            Work::Copy if has_copy_back => now_ps + read_ps + program_ps,
            Work::Copy => {
                let out_ps = channel.reserve(now_ps + read_ps, transfer_ps);
                channel.reserve(out_ps, transfer_ps) + program_ps
            }
            Work::Erase => now_ps + erase_ps,
        };
        let sum = match work {
            Work::Read(_) => &mut self.stats.read_ps,
            Work::Program { .. } => &mut self.stats.program_ps,
            Work::Copy | Work::Erase => &mut self.stats.collection_ps,
        };
        *sum += end_ps - now_ps;
        self.at(end_ps, Event::Die(number));
    }

    fn die_ended(&mut self, now_ps: u64, number: u32) {
        let work = self.dies[number as usize].running.take();
        self.start_die(now_ps, number);
        match work {
            Some(Work::Read(task)) => {
                let entry = &mut self.tasks[task as usize];
                entry.pending -= 1;
                match (entry.pending, entry.request.op) {
                    (0, Op::Read) => self.send(now_ps, task),
                    (0, _) => self.merged(now_ps, task),
                    _ => {}
                }
            }
            Some(Work::Program { task, logical }) => {
                self.buffered -= 1;
                if let Some(count) = self.in_buffer.get_mut(&logical) {
                    *count -= 1;
                    if *count == 0 {
                        self.in_buffer.remove(&logical);
                    }
                }
                if task != NONE {
                    let entry = &mut self.tasks[task as usize];
                    entry.pending -= 1;
                    if entry.pending == 0 && entry.next == entry.end {
                        self.at(now_ps + self.config.write_latency_ps, Event::End(task));
                    }
                }
                self.fill(now_ps);
                self.end_flush(now_ps);
            }
            Some(Work::Copy | Work::Erase) | None => {}
        }
    }

    /// Ends the flush if the cells, or a protected buffer, hold all data.
    fn end_flush(&mut self, now_ps: u64) {
        let Some(number) = self.flush.filter(|number| self.tasks[*number as usize].is_processed) else { return };
        if self.config.has_power_loss_protection {
            self.flush = None;
            self.at(now_ps, Event::End(number));
        } else if self.buffered == 0 && self.filling.is_empty() {
            self.flush = None;
            self.at(now_ps + self.config.flush_ps, Event::End(number));
        }
    }

    fn end(&mut self, now_ps: u64, number: u32) {
        let Task { request, at_ps, .. } = self.tasks[number as usize];
        self.free.push(number);
        self.in_service -= 1;
        let count = match request.op {
            Op::Read => &mut self.stats.reads,
            Op::Write | Op::WriteThrough => &mut self.stats.writes,
            Op::Flush => &mut self.stats.flushes,
        };
        count.requests += 1;
        count.blocks += if request.op == Op::Flush { 0 } else { request.blocks };
        count.response_ps += now_ps - at_ps;
        self.ended.push_back(DriveEnded { id: request.id, op: request.op, submitted_ps: at_ps, ended_ps: now_ps });
        self.release_held(now_ps);
    }
}
