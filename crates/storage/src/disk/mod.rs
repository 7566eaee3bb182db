//! Disks: layout, seeks, rotation, on-board cache, bus and queue.

mod check;
mod config;
pub mod demerit;
mod geometry;
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
