//! Flash translation layer with a map of pages.

use super::blocks::{Blocks, NONE};
use super::settings::{FlashError, FlashGeometry, FlashSettings};
use rand::{Rng, RngExt};

/// One operation of the flash memory, with physical pages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FlashOperation {
    /// A host write programs a page.
    Program {
        /// Physical page.
        page: u32,
    },
    /// Garbage collection copies a page within its unit.
    Copy {
        /// Physical page that is read.
        from: u32,
        /// Physical page that is programmed.
        to: u32,
    },
    /// Garbage collection erases a block.
    Erase {
        /// First physical page of the block.
        page: u32,
    },
}

/// Counters of a translation layer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlashStatistics {
    /// Pages that hosts wrote.
    pub host_pages: u64,
    /// Pages that garbage collection copied.
    pub copied_pages: u64,
    /// Erased blocks.
    pub erases: u64,
    /// Mapped pages that were trimmed.
    pub trimmed_pages: u64,
}

impl FlashStatistics {
    /// Programmed pages per host page; 1 if nothing was written.
    pub fn write_amplification(&self) -> f64 {
        if self.host_pages == 0 {
            return 1.0;
        }
        (self.host_pages + self.copied_pages) as f64 / self.host_pages as f64
    }
}

/// Append point and blocks of one unit.
#[derive(Clone, Debug)]
struct Unit {
    blocks: Blocks,
    /// Block being filled, and its next page. Host pages and copies share it.
    open: u32,
    next_page: u32,
}

/// Map of logical to physical pages, and garbage collection. It knows no time.
///
/// Host writes go to the units in turn: channel first, then die, then plane.
#[derive(Clone, Debug)]
pub struct Ftl {
    geometry: FlashGeometry,
    reserved_blocks: usize,
    /// Physical page of each logical page.
    map: Vec<u32>,
    /// Logical page of each physical page.
    reverse: Vec<u32>,
    units: Vec<Unit>,
    next_unit: u32,
    statistics: FlashStatistics,
}

impl Ftl {
    /// Creates a layer over erased blocks.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(settings: &FlashSettings) -> Result<Ftl, FlashError> {
        settings.check()?;
        let geometry = settings.geometry;
        let blocks = Blocks::new(geometry.blocks, geometry.pages, settings.victim);
        let unit = Unit { blocks, open: NONE, next_page: geometry.pages };
        Ok(Ftl {
            geometry,
            reserved_blocks: settings.reserved_blocks as usize,
            map: vec![NONE; settings.logical_pages as usize],
            reverse: vec![NONE; geometry.physical_pages() as usize],
            units: vec![unit; geometry.units() as usize],
            next_unit: 0,
            statistics: FlashStatistics::default(),
        })
    }

    /// Counters since the creation or the last [`Ftl::precondition`].
    pub fn statistics(&self) -> &FlashStatistics {
        &self.statistics
    }

    /// Number of logical pages.
    pub fn logical_pages(&self) -> u32 {
        self.map.len() as u32
    }

    /// Returns the physical page of a logical one; `None` if it is not mapped.
    pub fn physical(&self, logical: u32) -> Option<u32> {
        Some(self.map[logical as usize]).filter(|page| *page != NONE)
    }

    /// Number of logical pages that are mapped. The cost grows with the number of pages.
    pub fn mapped_pages(&self) -> u64 {
        self.map.iter().filter(|page| **page != NONE).count() as u64
    }

    /// Number of physical pages that their blocks count as valid; equals [`Ftl::mapped_pages`].
    pub fn valid_pages(&self) -> u64 {
        self.units.iter().map(|unit| unit.blocks.all_valid()).sum()
    }

    /// Least and most erases of a block.
    pub fn wear(&self) -> (u32, u32) {
        let erases = self.units.iter().flat_map(|unit| unit.blocks.erases());
        erases.fold((u32::MAX, 0), |(least, most), erases| (least.min(erases), most.max(erases)))
    }

    /// Writes a logical page. `operation` receives the unit of each flash operation and the
    /// operation, in order; the host page is the last one.
    pub fn write(&mut self, logical: u32, mut operation: impl FnMut(u32, FlashOperation)) {
        self.invalidate(logical);
        let count = self.units.len() as u32;
        for _ in 0..count {
            let unit = self.next_unit;
            self.next_unit = if unit + 1 == count { 0 } else { unit + 1 };
            if self.make_room(unit, &mut operation) {
                let page = self.append(unit, logical);
                self.statistics.host_pages += 1;
                operation(unit, FlashOperation::Program { page });
                return;
            }
        }
    }

    /// Unmaps a logical page.
    pub fn trim(&mut self, logical: u32) {
        self.statistics.trimmed_pages += u64::from(self.invalidate(logical));
    }

    /// Writes all pages in order, then `turns` times as many at random, and resets the counters.
    /// Three turns bring a drive with 7 % over-provisioning to its steady state.
    pub fn precondition(&mut self, turns: u32, random: &mut impl Rng) {
        let pages = self.logical_pages();
        for page in 0..pages {
            self.write(page, |_, _| {});
        }
        for _ in 0..u64::from(pages) * u64::from(turns) {
            self.write(random.random_range(0..pages), |_, _| {});
        }
        self.statistics = FlashStatistics::default();
    }

    fn block(&self, page: u32) -> (u32, u32) {
        let block = page / self.geometry.pages;
        (block / self.geometry.blocks, block % self.geometry.blocks)
    }

    fn first_page(&self, unit: u32, block: u32) -> u32 {
        (unit * self.geometry.blocks + block) * self.geometry.pages
    }

    fn invalidate(&mut self, logical: u32) -> bool {
        let page = std::mem::replace(&mut self.map[logical as usize], NONE);
        if page == NONE {
            return false;
        }
        self.reverse[page as usize] = NONE;
        let (unit, block) = self.block(page);
        self.units[unit as usize].blocks.remove_valid(block);
        true
    }

    /// Collects garbage if the reserve is low. Returns whether the unit has an erased page.
    #[inline]
    fn make_room(&mut self, unit: u32, operation: &mut impl FnMut(u32, FlashOperation)) -> bool {
        if self.units[unit as usize].next_page < self.geometry.pages {
            return true;
        }
        while self.units[unit as usize].blocks.free() < self.reserved_blocks {
            if !self.collect(unit, operation) {
                break;
            }
        }
        let state = &self.units[unit as usize];
        // Copies may have opened a block. The last free block is kept for them.
        state.next_page < self.geometry.pages || state.blocks.free() > 1
    }

    /// Collects one block. Returns `false` if no block has garbage.
    fn collect(&mut self, unit: u32, operation: &mut impl FnMut(u32, FlashOperation)) -> bool {
        let blocks = &mut self.units[unit as usize].blocks;
        // In the order of filling, the victim may be valid throughout, and a later one has garbage.
        if !blocks.has_garbage() {
            return false;
        }
        let Some(victim) = blocks.victim() else { return false };
        let valid = blocks.valid(victim);
        blocks.begin_collection(victim);
        let first = self.first_page(unit, victim);
        let mut left = valid;
        for from in first..first + self.geometry.pages {
            if left == 0 {
                break;
            }
            let logical = self.reverse[from as usize];
            if logical == NONE {
                continue;
            }
            left -= 1;
            self.reverse[from as usize] = NONE;
            let to = self.append(unit, logical);
            operation(unit, FlashOperation::Copy { from, to });
        }
        self.statistics.copied_pages += u64::from(valid);
        self.units[unit as usize].blocks.erase(victim);
        self.statistics.erases += 1;
        operation(unit, FlashOperation::Erase { page: first });
        true
    }

    fn append(&mut self, unit: u32, logical: u32) -> u32 {
        let pages = self.geometry.pages;
        let state = &mut self.units[unit as usize];
        if state.next_page == pages {
            state.open = state.blocks.take_free().unwrap_or(NONE);
            state.next_page = 0;
        }
        let (open, in_block) = (state.open, state.next_page);
        state.next_page += 1;
        state.blocks.add_valid(open);
        if state.next_page == pages {
            state.blocks.set_full(open);
        }
        let page = self.first_page(unit, open) + in_block;
        self.map[logical as usize] = page;
        self.reverse[page as usize] = logical;
        page
    }
}
