//! Disks: layout, seeks, rotation, on-board cache, bus and queue.
//!
//! A simulator with events of its own drives a disk like this:
//!
//! ```
//! use sanloom_storage::disk::{Disk, Op, Request, preset};
//!
//! let mut disk = Disk::new(&preset::cheetah_9lp())?;
//! disk.submit(0, Request { id: 1, lbn: 5_000_000, blocks: 8, op: Op::Read });
//! disk.submit(0, Request { id: 2, lbn: 9_000_000, blocks: 8, op: Op::Read });
//! let mut ended = Vec::new();
//! while let Some(now_ps) = disk.next_ps() {
//!     // Here the simulator advances its clock to `now_ps`, and may submit more requests.
//!     while let Some(request) = disk.pop_ended(now_ps) {
//!         ended.push((request.id, request.response_ps()));
//!     }
//! }
//! assert_eq!(ended.len(), 2);
//! # Ok::<(), sanloom_storage::disk::ConfigError>(())
//! ```

pub mod calibrate;
mod check;
mod config;
pub mod demerit;
pub mod file;
mod geometry;
pub mod import;
mod mechanism;
mod model;
pub mod preset;
pub mod replay;
mod request;
mod schedule;
mod seek;
mod segments;
mod service;
mod stats;
mod times;

pub use check::ConfigError;
pub use config::{
    Bus, CacheConfig, DiskConfig, Mapping, Overheads, QueueConfig, ReadAhead, SeekCurve, WritePolicy, Zone,
};
pub use geometry::{Geometry, Place};
pub use mechanism::{Approach, Arm, Mechanism, Stream};
pub use model::Disk;
pub use request::{Ended, Op, Phases, Request, Source};
pub use schedule::{Decision, Queue, Scheduler, Waiting};
pub use seek::{Seek, SeekTime};
pub use segments::{Segment, Segments};
pub use stats::{Count, DiskStats};
