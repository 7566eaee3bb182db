//! SSDs: flash memory, translation of pages, and garbage collection.
//!
//! - [`Ftl`] maps pages and reports flash operations, without time.
//! - [`Ssd`] adds the times of dies and channels.
//! - [`Drive`] adds queue, controller, write buffer and host interface: an SSD beside the disks.

mod blocks;
mod channel;
mod drive;
mod ftl;
mod settings;
mod ssd;

pub use drive::{Drive, DriveConfig, DriveCount, DriveEnded, DriveError, DriveStats, preset};
pub use ftl::{FlashOperation, FlashStatistics, Ftl};
pub use settings::{FlashError, FlashGeometry, FlashSettings, FlashTiming, Victim};
pub use ssd::Ssd;
