//! Parameters of an SSD with its controller and host interface.

use crate::flash::{FlashError, FlashSettings};
use std::borrow::Cow;
use thiserror::Error;

/// Size of a block in bytes.
pub(super) const BLOCK_BYTES: u32 = 512;

/// Largest number of physical pages. The maps need 8 bytes for each, so this is 2 GiB.
pub(super) const MAX_PAGES: u64 = 1 << 28;

/// Parameters of an SSD.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveConfig {
    /// Name of the model.
    pub name: Cow<'static, str>,
    /// Flash memory and its translation layer.
    pub flash: FlashSettings,
    /// Time of the controller for each command, one after the other, in picoseconds.
    pub command_ps: u64,
    /// Further time of a read that occupies nothing, in picoseconds.
    pub read_latency_ps: u64,
    /// Further time of a write that occupies nothing, in picoseconds.
    pub write_latency_ps: u64,
    /// Time of a flush after the last program, in picoseconds; only without power-loss protection.
    pub flush_ps: u64,
    /// Rate of the host interface in each direction, in bytes per second.
    pub link_bytes_per_second: u64,
    /// Commands in service at once; others wait for the end of one.
    pub queue_slots: u32,
    /// Pages of the write buffer; 0: a write ends when the cells hold it.
    pub buffer_pages: u32,
    /// The write buffer survives a power failure, so flushes and FUA need no program.
    pub has_power_loss_protection: bool,
}

/// Contradiction in a [`DriveConfig`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DriveError {
    /// The flash memory.
    #[error(transparent)]
    Flash(#[from] FlashError),
    /// A rate or a count is 0.
    #[error("the SSD needs a rate of its host interface and queue slots above 0")]
    Zero,
    /// A page is not a number of blocks.
    #[error("a page of {0} bytes has no whole blocks of 512 bytes; choose a multiple of 512")]
    Page(u32),
    /// The maps of the translation layer would need too much memory.
    #[error(
        "{pages} flash pages are more than the {MAX_PAGES} of the model; choose a smaller capacity or larger pages"
    )]
    Memory {
        /// Number of physical pages.
        pages: u64,
    },
}

impl DriveConfig {
    /// Checks the parameters without building anything.
    ///
    /// # Errors
    ///
    /// Parameters that contradict each other, or maps of more than 2 GiB.
    pub fn check(&self) -> Result<(), DriveError> {
        self.flash.check()?;
        if self.link_bytes_per_second == 0 || self.queue_slots == 0 {
            return Err(DriveError::Zero);
        }
        let page_bytes = self.flash.geometry.page_bytes;
        if !page_bytes.is_multiple_of(BLOCK_BYTES) {
            return Err(DriveError::Page(page_bytes));
        }
        let pages = self.flash.geometry.physical_pages();
        if pages > MAX_PAGES {
            return Err(DriveError::Memory { pages });
        }
        Ok(())
    }

    /// Capacity in blocks of 512 bytes.
    pub fn blocks(&self) -> u64 {
        u64::from(self.flash.logical_pages) * u64::from(self.flash.geometry.page_bytes / BLOCK_BYTES)
    }
}
