//! The measured loops of `bench storage`: one storage model each, without anything around it.
//!
//! The random numbers of the loops are drawn in advance, except those of the disk, whose requests
//! cost far more.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::cache::{Access, Directory, Policy};
use sanloom_storage::disk::{ConfigError, Disk, DiskConfig, Op, QueueConfig, Request, Scheduler, preset};
use sanloom_storage::flash::{FlashError, FlashGeometry, FlashOperation, FlashSettings, FlashTiming, Ftl, Victim};
use sanloom_storage::raid::{Consistency, Geometry, GeometryError, Level, Member, Plan, WriteTracker};
use std::collections::VecDeque;

/// Numbers that are drawn in advance.
const DRAWN: usize = 1 << 18;

fn drawn(seed: u64, below: u64) -> Vec<u32> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..DRAWN).map(|_| random.random_range(0..below) as u32).collect()
}

/// Random reads of 4 KiB from a Cheetah 9LP, the same number at any time.
#[derive(Clone, Debug)]
pub struct Disks {
    disk: Disk,
    random: Xoshiro256PlusPlus,
    /// Time of the last end in picoseconds.
    pub last_ps: u64,
}

impl Disks {
    /// Creates a disk with `depth` requests.
    ///
    /// # Errors
    /// If the parameters of the disk contradict each other.
    pub fn new(scheduler: Scheduler, depth: u32) -> Result<Disks, ConfigError> {
        let queue = QueueConfig { scheduler, window: usize::MAX, age_limit_ms: None };
        let disk = Disk::new(&DiskConfig { queue, ..preset::cheetah_9lp() })?;
        let mut disks = Disks { disk, random: Xoshiro256PlusPlus::seed_from_u64(1), last_ps: 0 };
        for id in 0..depth {
            disks.submit(0, id.into());
        }
        Ok(disks)
    }

    fn submit(&mut self, now_ps: u64, id: u64) {
        let slots = self.disk.mechanism().geometry.blocks() / 8;
        let lbn = self.random.random_range(0..slots) * 8;
        self.disk.submit(now_ps, Request { id, lbn, blocks: 8, op: Op::Read });
    }

    /// Serves at least this number of requests and returns their number; 0 if the disk has lost its
    /// requests.
    pub fn run(&mut self, requests: u32) -> u32 {
        let mut ended = 0;
        while ended < requests {
            let Some(now_ps) = self.disk.next_ps() else { return 0 };
            while let Some(request) = self.disk.pop_ended(now_ps) {
                (ended, self.last_ps) = (ended + 1, request.ended_ps);
                self.submit(now_ps, request.id);
            }
        }
        ended
    }
}

/// Lookups in a full LRU directory of 65,536 lines, of which 90 % hit. A miss evicts a line and
/// inserts its own.
#[derive(Clone, Debug)]
pub struct Lookups {
    directory: Directory,
    keys: Vec<u32>,
    next: usize,
}

impl Lookups {
    /// Lines of the directory.
    pub const LINES: u32 = 65_536;

    /// Creates a full directory.
    pub fn new() -> Lookups {
        let lines = u64::from(Lookups::LINES);
        let directory = Directory::new(Policy::Lru, lines, 1);
        let mut lookups = Lookups { directory, keys: drawn(2, lines * 10 / 9), next: 0 };
        lookups.run(DRAWN as u32);
        lookups
    }

    /// Looks up this number of keys, and returns the number of hits.
    pub fn run(&mut self, lookups: u32) -> u32 {
        let mut hits = 0;
        for _ in 0..lookups {
            let key = self.keys[self.next];
            self.next = (self.next + 1) % DRAWN;
            hits += u32::from(matches!(self.directory.access(key.into(), 1, |_, _| {}), Access::Hit(_)));
        }
        hits
    }
}

impl Default for Lookups {
    fn default() -> Lookups {
        Lookups::new()
    }
}

/// Random writes of 4 KiB to RAID 5 of five members with chunks of 64 KiB and a write-intent
/// bitmap, with 32 in flight: the plan of each write, and the tracker of stripes. The members have
/// no disks.
#[derive(Clone, Debug)]
pub struct SmallWrites {
    geometry: Geometry,
    members: Vec<Member>,
    tracker: WriteTracker,
    /// The oldest first.
    in_flight: VecDeque<Plan>,
    slots: Vec<u32>,
    next: usize,
}

impl SmallWrites {
    /// Creates an array with writes in flight.
    ///
    /// # Errors
    /// If the geometry is wrong.
    pub fn new() -> Result<SmallWrites, GeometryError> {
        let geometry = Geometry::new(Level::RAID5, 5, 128, 1 << 22)?;
        let mut writes = SmallWrites {
            geometry,
            members: vec![Member::Online; 5],
            tracker: WriteTracker::new(Consistency::Bitmap { region_stripes: 128 }),
            in_flight: vec![Plan::new(); 32].into(),
            slots: drawn(3, geometry.blocks() / 8),
            next: 0,
        };
        writes.run(32);
        Ok(writes)
    }

    /// Ends the oldest write and begins another one, this number of times. Returns the I/Os of the
    /// members.
    pub fn run(&mut self, writes: u32) -> u64 {
        let mut ios = 0;
        for _ in 0..writes {
            let Some(mut plan) = self.in_flight.pop_front() else { break };
            self.tracker.end(&plan);
            let lba = u64::from(self.slots[self.next]) * 8;
            self.next = (self.next + 1) % DRAWN;
            plan.write(&self.geometry, &self.members, lba, 8);
            self.tracker.begin(&plan);
            ios += plan.ios.len() as u64;
            self.in_flight.push_back(plan);
        }
        ios
    }
}

/// Random writes of a page to a translation layer in its steady state: 65,536 logical pages, 28 %
/// over-provisioning, greedy garbage collection.
#[derive(Clone, Debug)]
pub struct FlashPages {
    ftl: Ftl,
    pages: Vec<u32>,
    next: usize,
}

impl FlashPages {
    /// Logical pages.
    pub const PAGES: u32 = 65_536;

    /// Creates a layer whose pages have all been overwritten three times.
    ///
    /// # Errors
    /// If the settings contradict each other.
    pub fn new() -> Result<FlashPages, FlashError> {
        let geometry = FlashGeometry { channels: 4, dies: 2, planes: 1, blocks: 168, pages: 64, page_bytes: 4096 };
        let timing = FlashTiming {
            read_ps: 1,
            program_ps: 1,
            erase_ps: 1,
            channel_bytes_per_second: 1_000_000_000,
            has_copy_back: true,
        };
        let logical_pages = FlashPages::PAGES;
        let settings = FlashSettings { geometry, timing, logical_pages, reserved_blocks: 2, victim: Victim::Greedy };
        let mut ftl = Ftl::new(&settings)?;
        ftl.precondition(3, &mut Xoshiro256PlusPlus::seed_from_u64(4));
        Ok(FlashPages { ftl, pages: drawn(5, logical_pages.into()), next: 0 })
    }

    /// Writes until at least this number of pages have been programmed, and returns their number:
    /// pages of hosts, and copies of garbage collection.
    pub fn run(&mut self, pages: u32) -> u32 {
        let mut programmed = 0;
        while programmed < pages {
            let page = self.pages[self.next];
            self.next = (self.next + 1) % DRAWN;
            self.ftl.write(page, |_, operation| {
                programmed += u32::from(!matches!(operation, FlashOperation::Erase { .. }));
            });
        }
        programmed
    }

    /// Programmed pages for each page of a host.
    pub fn write_amplification(&self) -> f64 {
        self.ftl.statistics().write_amplification()
    }
}
