//! Settings of a controller cache, and its errors.

use super::super::policy::Policy;
use thiserror::Error;

/// Largest number of sectors of a line: one bit each in a word.
pub(super) const MAX_SECTORS: u32 = 64;

/// Largest number of streams; each read searches all of them.
const MAX_STREAMS: usize = 65_536;

/// Largest number of lines. A line in use needs up to 384 bytes, depending on the policy, so this
/// is 1.5 GiB of memory. With lines of 32 KiB, the cache holds 128 GiB.
pub const MAX_LINES: u32 = 1 << 22;

/// Handling of host writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteMode {
    /// A write is complete when the back end has the data.
    Through {
        /// Absent lines are allocated for written data.
        allocates: bool,
    },
    /// A write is complete when the cache has the data.
    Back {
        /// The partner controller stores a copy before the write is complete.
        is_mirrored: bool,
    },
}

/// Order in which dirty lines are destaged when the watermarks, idle time or a flush ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DestageOrder {
    /// Ascending addresses from the last destage on, then from the lowest address again.
    Address,
    /// The line that became dirty first.
    Age,
}

/// Rules of destaging.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DestageSettings {
    /// Order of dirty lines.
    pub order: DestageOrder,
    /// Destaging starts when more than this percentage of the lines is dirty.
    pub high_percent: u8,
    /// Destaging stops when at most this percentage of the lines is dirty.
    pub low_percent: u8,
    /// Maximum size of one back-end write that clusters dirty neighbours, in blocks; at least a
    /// sector.
    pub max_blocks: u32,
    /// Time without host requests after which destaging starts, in picoseconds.
    pub idle_ps: Option<u64>,
    /// Age from which a dirty line is destaged in any case, in picoseconds.
    pub max_age_ps: Option<u64>,
}

/// Rules of read-ahead by stream detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadAheadSettings {
    /// Number of sequential streams that are followed at once, from 1 to 65,536.
    pub streams: usize,
    /// Number of consecutive reads that make a stream.
    pub trigger: u32,
    /// Distance that read-ahead keeps in front of the host, in blocks.
    pub blocks: u32,
}

/// Settings of a [`super::Controller`]. Sizes are in blocks of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Replacement policy.
    pub policy: Policy,
    /// Capacity in lines, at most [`MAX_LINES`].
    pub lines: u32,
    /// Size of a line, the unit of allocation.
    pub line_blocks: u32,
    /// Size of a sector, the unit of valid and dirty data. A line has 1 to 64 sectors.
    pub sector_blocks: u32,
    /// Size of the volume behind the cache.
    pub volume_blocks: u64,
    /// A miss reads the whole line, and not only the missing sectors.
    pub fills_lines: bool,
    /// Handling of writes.
    pub write: WriteMode,
    /// Rules of destaging.
    pub destage: DestageSettings,
    /// Read-ahead; `None` is off.
    pub read_ahead: Option<ReadAheadSettings>,
}

/// Contradiction in [`Settings`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SettingsError {
    /// A size is 0.
    #[error("the cache needs at least one line, and lines, sectors and destages of at least one block")]
    Zero,
    /// More lines than the model can hold in memory.
    #[error(
        "a cache of {lines} lines of {line_blocks} blocks has more than {MAX_LINES} lines; choose a smaller cache or \
         larger lines"
    )]
    Lines {
        /// Number of lines.
        lines: u32,
        /// Blocks of 512 bytes of a line.
        line_blocks: u32,
    },
    /// The sectors do not fill the line, or are too many.
    #[error("a line must have 1 to 64 whole sectors; choose a sector size that divides the line size")]
    Sectors,
    /// A destage has no room for one sector.
    #[error("a destage must have room for one sector; choose a larger maximum or smaller sectors")]
    Destage,
    /// The number of streams is 0 or too large.
    #[error("read-ahead must follow 1 to 65,536 streams")]
    Streams,
    /// The watermarks are above 100 % or in the wrong order.
    #[error("watermarks must be percentages, and the low one at most the high one")]
    Watermarks,
}

impl Settings {
    /// Checks the settings; the size of the volume does not matter.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn check(&self) -> Result<(), SettingsError> {
        if [self.lines, self.line_blocks, self.sector_blocks, self.destage.max_blocks].contains(&0) {
            return Err(SettingsError::Zero);
        }
        if self.lines > MAX_LINES {
            return Err(SettingsError::Lines { lines: self.lines, line_blocks: self.line_blocks });
        }
        let sectors = self.line_blocks / self.sector_blocks;
        if !self.line_blocks.is_multiple_of(self.sector_blocks) || sectors > MAX_SECTORS {
            return Err(SettingsError::Sectors);
        }
        if self.destage.max_blocks < self.sector_blocks {
            return Err(SettingsError::Destage);
        }
        if self.read_ahead.is_some_and(|rules| !(1..=MAX_STREAMS).contains(&rules.streams)) {
            return Err(SettingsError::Streams);
        }
        if self.destage.high_percent > 100 || self.destage.low_percent > self.destage.high_percent {
            return Err(SettingsError::Watermarks);
        }
        Ok(())
    }
}
