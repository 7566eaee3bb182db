//! Models of storage: disks, SSDs, caches and RAID, and their reliability.
//!
//! A model receives requests and times and returns times. It never reads a clock, does no I/O, has
//! no queue of events, and knows no network. Times are integer picoseconds, as in the simulator.
//! Addresses are blocks of 512 bytes unless a name says otherwise.

#![warn(missing_docs)]

pub mod backstore;
pub mod cache;
pub mod disk;
pub mod flash;
pub mod raid;
pub mod reliability;
pub mod trace;
