//! SSDs: flash memory, translation of pages, and garbage collection.
//!
//! - [`Ftl`] maps pages and reports flash operations, without time.
//! - [`Ssd`] adds the times of dies and channels.

mod blocks;
mod channel;
mod ftl;
mod settings;
mod ssd;

pub use ftl::{FlashOperation, FlashStatistics, Ftl};
pub use settings::{FlashError, FlashGeometry, FlashSettings, FlashTiming, Victim};
pub use ssd::Ssd;
