//! Geometry, timing and rules of an SSD.

use thiserror::Error;

/// Flash memory of an SSD. A unit is one plane. Garbage collection works within a unit. Unit
/// numbers count channels first, then dies, then planes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlashGeometry {
    /// Number of channels.
    pub channels: u32,
    /// Dies on each channel.
    pub dies: u32,
    /// Planes of each die.
    pub planes: u32,
    /// Blocks of each plane.
    pub blocks: u32,
    /// Pages of each block.
    pub pages: u32,
    /// Size of a page in bytes.
    pub page_bytes: u32,
}

impl FlashGeometry {
    /// Number of planes of all dies.
    pub fn units(&self) -> u32 {
        self.channels * self.dies * self.planes
    }

    /// Number of physical pages; `u64::MAX` if there are more.
    pub fn physical_pages(&self) -> u64 {
        let factors = [self.channels, self.dies, self.planes, self.blocks, self.pages];
        factors.into_iter().fold(1, |product: u64, factor| product.saturating_mul(u64::from(factor)))
    }

    /// Returns the unit of a physical page.
    pub fn unit(&self, page: u32) -> u32 {
        page / (self.blocks * self.pages)
    }

    /// Returns the channel of a unit.
    pub fn channel(&self, unit: u32) -> u32 {
        unit % self.channels
    }

    /// Returns the die of a unit, counted over all channels.
    pub fn die(&self, unit: u32) -> u32 {
        unit % (self.channels * self.dies)
    }
}

/// Choice of the block that garbage collection erases next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Victim {
    /// The block that was filled first.
    Fifo,
    /// The block with the fewest valid pages; among equals, the one that got so few last.
    Greedy,
}

/// Durations of flash operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlashTiming {
    /// Time from the array of cells to the page register, in picoseconds.
    pub read_ps: u64,
    /// Time from the page register to the cells, in picoseconds.
    pub program_ps: u64,
    /// Erase of a block, in picoseconds.
    pub erase_ps: u64,
    /// Rate of a channel in bytes per second.
    pub channel_bytes_per_second: u64,
    /// Garbage collection copies inside the die, and not over the channel.
    pub has_copy_back: bool,
}

/// Settings of an SSD.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlashSettings {
    /// Flash memory.
    pub geometry: FlashGeometry,
    /// Durations.
    pub timing: FlashTiming,
    /// Logical pages, all of which may be valid at once.
    pub logical_pages: u32,
    /// Free blocks of a unit below which garbage collection starts; at least 2.
    pub reserved_blocks: u32,
    /// Victim of garbage collection.
    pub victim: Victim,
}

/// Contradiction in [`FlashSettings`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FlashError {
    /// A size, rate or count is 0.
    #[error("the SSD needs channels, dies, planes, blocks, pages and a channel rate above 0")]
    Zero,
    /// The reserve is below two blocks.
    #[error("garbage collection needs at least 2 reserved blocks per plane")]
    Reserve,
    /// The number of a physical page exceeds 32 bits.
    #[error("the SSD has too many pages; choose larger pages or fewer blocks")]
    TooLarge,
    /// No room is left for garbage collection.
    #[error("logical pages exceed the physical ones without the reserve; choose more over-provisioning")]
    OverProvisioning,
}

impl FlashSettings {
    /// Returns the logical pages that leave an over-provisioning of `per_mille`: the physical pages
    /// over the logical ones, minus 1.
    pub fn logical_pages(geometry: &FlashGeometry, per_mille: u32) -> u32 {
        let pages = u128::from(geometry.physical_pages()) * 1_000 / (1_000 + u128::from(per_mille));
        pages.min(u128::from(u32::MAX)) as u32
    }

    pub(super) fn check(&self) -> Result<(), FlashError> {
        let FlashGeometry { channels, dies, planes, blocks, pages, page_bytes } = self.geometry;
        if [channels, dies, planes, blocks, pages, page_bytes, self.logical_pages].contains(&0)
            || self.timing.channel_bytes_per_second == 0
        {
            return Err(FlashError::Zero);
        }
        if self.reserved_blocks < 2 {
            return Err(FlashError::Reserve);
        }
        if self.geometry.physical_pages() >= u64::from(u32::MAX) {
            return Err(FlashError::TooLarge);
        }
        // One more block of each unit is being filled.
        let free = u64::from(blocks).saturating_sub(u64::from(self.reserved_blocks) + 1);
        if u64::from(self.logical_pages) > u64::from(self.geometry.units()) * free * u64::from(pages) {
            return Err(FlashError::OverProvisioning);
        }
        Ok(())
    }
}
