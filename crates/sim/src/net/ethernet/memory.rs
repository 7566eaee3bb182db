//! The shared memory of a switch: admission, thresholds and headroom.
//!
//! A frame of a lossless priority is charged to its *group*, one port and priority at the ingress:
//! first to the reserve of the group, then to the shared pool while the group holds less than
//! `alpha` times the free part of the pool, then to the headroom. A group that has passed the
//! threshold pauses its sender. With the pause of whole links, all frames of a port are one group.
//! A frame of another priority is charged to the shared pool, and admitted while its egress queue
//! is below its own dynamic threshold (Choudhury and Hahne, Dynamic Queue Length Thresholds,
//! IEEE/ACM Transactions on Networking 6, 1998).

use super::packet::PRIORITIES;

/// Memory of a switch.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// All memory, in bytes.
    pub bytes: u64,
    /// Memory is given in cells of this size, in bytes.
    pub cell_bytes: u32,
    /// Part of the memory that belongs to each group of a lossless priority.
    pub reserve_bytes: u64,
    /// Extra memory of each group of a lossless priority for frames that arrive after the pause.
    pub headroom_bytes: Vec<u64>,
    /// Largest share of the free pool for a lossless group, in 1/256.
    pub alpha_256: u32,
    /// Largest share of the free pool for an egress queue of another priority, in 1/256.
    pub lossy_alpha_256: u32,
    /// A pause ends when the group is this far below its threshold.
    pub resume_bytes: u64,
}

/// Bytes of one port and priority at the ingress.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Group {
    /// In the reserve of the group.
    pub reserve_bytes: u64,
    /// In the shared pool.
    pub shared_bytes: u64,
    /// In the headroom.
    pub headroom_bytes: u64,
    /// Most bytes that have been in the headroom.
    pub headroom_max_bytes: u64,
    /// True if the sender is paused.
    pub pauses: bool,
}

/// Memory of a switch at work.
#[derive(Clone, Debug)]
pub struct Memory {
    plan: MemoryPlan,
    lossless: u8,
    /// All priorities of a port are one group, that of priority 0.
    pauses_links: bool,
    groups: Vec<[Group; PRIORITIES]>,
    /// Size of the shared pool.
    pool_bytes: u64,
    /// Used part of the shared pool.
    shared_bytes: u64,
    /// Bytes of all frames, and the most of them so far.
    held_bytes: u64,
    max_bytes: u64,
}

/// Denominator of `alpha_256` and `lossy_alpha_256`.
const ALPHA_UNIT: u64 = 256;

/// Reason for a frame without memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// The queue of another priority is above its threshold, or the pool is full.
    Pool,
    /// The headroom of a lossless group is full: it is too small for the line.
    Headroom,
}

impl Memory {
    /// Returns the empty memory of a switch whose `lossless` priorities are paused, not dropped;
    /// all of them if it pauses whole links. `plan.headroom_bytes` has a value for each port.
    ///
    /// # Errors
    ///
    /// Bytes that are missing, because reserves and headroom exceed the memory.
    pub fn new(plan: MemoryPlan, lossless: u8, pauses_links: bool) -> Result<Memory, u64> {
        let ports = plan.headroom_bytes.len();
        let (lossless, classes) = match pauses_links {
            true => (u8::MAX, 1),
            false => (lossless, u64::from(lossless.count_ones())),
        };
        let set_aside = classes * (plan.headroom_bytes.iter().sum::<u64>() + ports as u64 * plan.reserve_bytes);
        if set_aside > plan.bytes {
            return Err(set_aside - plan.bytes);
        }
        let pool_bytes = plan.bytes - set_aside;
        let groups = vec![[Group::default(); PRIORITIES]; ports];
        Ok(Memory { plan, lossless, pauses_links, groups, pool_bytes, shared_bytes: 0, held_bytes: 0, max_bytes: 0 })
    }

    /// Returns whether the priority is lossless.
    pub fn is_lossless(&self, priority: usize) -> bool {
        self.lossless & 1 << priority != 0
    }

    /// Returns whether the switch pauses whole links.
    pub fn pauses_links(&self) -> bool {
        self.pauses_links
    }

    /// Returns the group of a priority.
    #[inline]
    fn index(&self, priority: usize) -> usize {
        if self.pauses_links { 0 } else { priority }
    }

    /// Returns the memory that a frame takes.
    fn cells(&self, bytes: u16) -> u64 {
        let cell = u64::from(self.plan.cell_bytes.max(1));
        u64::from(bytes).div_ceil(cell) * cell
    }

    /// Returns the most that a lossless group may hold of the shared pool.
    fn threshold(&self) -> u64 {
        (self.pool_bytes - self.shared_bytes) * u64::from(self.plan.alpha_256) / ALPHA_UNIT
    }

    /// Takes memory for a frame that has arrived at `port`. `queue_bytes` are the bytes of its
    /// egress queue. Returns whether the sender has to pause now.
    ///
    /// # Errors
    ///
    /// There is no memory for the frame.
    pub fn admit(&mut self, port: usize, priority: usize, bytes: u16, queue_bytes: u64) -> Result<bool, Full> {
        let bytes = self.cells(bytes);
        let free = self.pool_bytes - self.shared_bytes;
        if !self.is_lossless(priority) {
            if bytes > free || queue_bytes + bytes > free * u64::from(self.plan.lossy_alpha_256) / ALPHA_UNIT {
                return Err(Full::Pool);
            }
            self.shared_bytes += bytes;
            self.hold(bytes);
            return Ok(false);
        }
        let threshold = self.threshold();
        let headroom = self.plan.headroom_bytes[port];
        let index = self.index(priority);
        let group = &mut self.groups[port][index];
        if group.reserve_bytes + bytes <= self.plan.reserve_bytes {
            group.reserve_bytes += bytes;
        } else if bytes <= free && group.shared_bytes + bytes <= threshold && group.headroom_bytes == 0 {
            group.shared_bytes += bytes;
            self.shared_bytes += bytes;
        } else if group.headroom_bytes + bytes <= headroom {
            group.headroom_bytes += bytes;
            group.headroom_max_bytes = group.headroom_max_bytes.max(group.headroom_bytes);
        } else {
            return Err(Full::Headroom);
        }
        let over = group.headroom_bytes > 0;
        let stops = over && !group.pauses;
        group.pauses |= over;
        self.hold(bytes);
        Ok(stops)
    }

    fn hold(&mut self, bytes: u64) {
        self.held_bytes += bytes;
        self.max_bytes = self.max_bytes.max(self.held_bytes);
    }

    /// Frees the memory of a frame that came from `port`: headroom first, reserve last. Returns
    /// whether the sender may go on.
    pub fn free(&mut self, port: usize, priority: usize, bytes: u16) -> bool {
        let bytes = self.cells(bytes);
        self.held_bytes -= bytes;
        if !self.is_lossless(priority) {
            self.shared_bytes -= bytes;
            return false;
        }
        let index = self.index(priority);
        let group = &mut self.groups[port][index];
        let of_headroom = bytes.min(group.headroom_bytes);
        let of_shared = (bytes - of_headroom).min(group.shared_bytes);
        group.headroom_bytes -= of_headroom;
        group.shared_bytes -= of_shared;
        group.reserve_bytes -= bytes - of_headroom - of_shared;
        self.shared_bytes -= of_shared;
        self.resumes(port, priority)
    }

    /// Ends the pause of a group if it is far enough below its threshold. Returns whether it has
    /// ended.
    pub fn resumes(&mut self, port: usize, priority: usize) -> bool {
        let threshold = self.threshold();
        let index = self.index(priority);
        let group = &mut self.groups[port][index];
        let is_low = group.shared_bytes == 0 || group.shared_bytes + self.plan.resume_bytes <= threshold;
        let ends = group.pauses && group.headroom_bytes == 0 && is_low;
        group.pauses &= !ends;
        ends
    }

    /// Returns the priorities that a port pauses.
    pub fn pausing(&self, port: usize) -> u8 {
        if self.pauses_links {
            return if self.groups[port][0].pauses { u8::MAX } else { 0 };
        }
        let groups = self.groups[port].iter().enumerate();
        groups.filter(|(_, group)| group.pauses).fold(0, |mask, (priority, _)| mask | 1 << priority)
    }

    /// Returns the bytes of a port and priority; those of all priorities if the switch pauses whole
    /// links.
    pub fn group(&self, port: usize, priority: usize) -> &Group {
        &self.groups[port][self.index(priority)]
    }

    /// Returns the bytes of all frames in memory.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the most bytes that were in memory at once.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Checks that the bytes of the groups add up.
    pub fn adds_up(&self) -> bool {
        let sum = |of: fn(&Group) -> u64| self.groups.iter().flatten().map(of).sum::<u64>();
        let shared = sum(|group| group.shared_bytes);
        shared <= self.shared_bytes
            && self.shared_bytes <= self.pool_bytes
            && self.held_bytes == self.shared_bytes + sum(|group| group.reserve_bytes + group.headroom_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(headroom_bytes: u64) -> Memory {
        let plan = MemoryPlan {
            bytes: 100_000,
            cell_bytes: 1,
            reserve_bytes: 4_000,
            headroom_bytes: vec![headroom_bytes; 2],
            alpha_256: 128,
            lossy_alpha_256: 256,
            resume_bytes: 3_000,
        };
        Memory::new(plan, 1 << 3, false).expect("enough memory")
    }

    #[test]
    fn a_lossless_group_fills_reserve_pool_and_headroom_in_this_order() {
        let mut memory = memory(10_000);
        let mut stopped_at = None;
        let mut held = 0;
        while let Ok(stops) = memory.admit(0, 3, 1_000, 0) {
            held += 1_000;
            if stops {
                assert_eq!(stopped_at.replace(held), None, "one pause only");
            }
            assert!(memory.adds_up());
        }
        // The pool has 100,000 - 2 * 14,000 = 72,000 bytes. A group gets half of the free part: a
        // third of the pool.
        let group = *memory.group(0, 3);
        assert_eq!((group.reserve_bytes, group.shared_bytes, group.headroom_bytes), (4_000, 24_000, 10_000));
        assert_eq!(stopped_at, Some(29_000));
        assert_eq!(memory.admit(0, 3, 1_000, 0), Err(Full::Headroom));
        // Another port is not affected.
        assert_eq!(memory.admit(1, 3, 1_000, 0), Ok(false));
    }

    #[test]
    fn a_pause_ends_below_the_threshold_without_the_offset() {
        let mut memory = memory(10_000);
        while memory.admit(0, 3, 1_000, 0).is_ok() {}
        let mut freed = 0;
        while !memory.free(0, 3, 1_000) {
            freed += 1_000;
        }
        // 10,000 of headroom, then shared + 3,000 <= (72,000 - shared) / 2, so shared <= 22,000.
        assert_eq!(freed + 1_000, 12_000);
        assert!(memory.adds_up() && !memory.group(0, 3).pauses);
    }

    #[test]
    fn other_priorities_are_dropped_at_the_threshold_of_their_queue() {
        let mut memory = memory(10_000);
        let mut queue = 0;
        while memory.admit(0, 0, 1_000, queue).is_ok() {
            queue += 1_000;
        }
        assert_eq!((queue, memory.held_bytes()), (36_000, 36_000));
        assert_eq!(memory.admit(0, 0, 1_000, queue), Err(Full::Pool));
        for _ in 0..36 {
            memory.free(0, 0, 1_000);
        }
        assert!(memory.adds_up() && memory.held_bytes() == 0 && memory.max_bytes() == 36_000);
    }

    #[test]
    fn all_priorities_of_a_port_are_one_group_if_links_are_paused() {
        let plan = MemoryPlan { bytes: 100_000, ..memory(10_000).plan };
        let mut memory = Memory::new(plan, 0, true).expect("enough memory");
        let mut held = 0;
        while memory.admit(0, held / 1_000 % 8, 1_000, 0) == Ok(false) {
            held += 1_000;
        }
        // As much as a single lossless priority: its first frame in the headroom pauses the link.
        assert_eq!((held, memory.pausing(0), memory.pausing(1)), (28_000, u8::MAX, 0));
        assert_eq!(memory.group(0, 5).headroom_bytes, 1_000);
        let mut freed = 0;
        while !memory.free(0, freed / 1_000 % 8, 1_000) {
            freed += 1_000;
        }
        assert_eq!((memory.pausing(0), memory.adds_up()), (0, true));
        memory.admit(0, 7, 1_000, 0).expect("room");
    }

    #[test]
    fn reserves_that_exceed_the_memory_are_refused_with_the_missing_bytes() {
        let plan = MemoryPlan { bytes: 27_000, ..memory(10_000).plan };
        assert_eq!(Memory::new(plan, 1 << 3, false).err(), Some(1_000));
    }
}
