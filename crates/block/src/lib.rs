//! Media: the storage behind logical units.
//!
//! This crate describes media and implements those that need no files: [`Ram`], a pattern computed
//! from the address, and the null medium. Files are only described ([`FileSpec`]); a crate that may
//! do I/O opens them. Offsets and lengths are in bytes. Callers check all ranges, because only the
//! device server knows the size of a unit.
//!
//! [`parity`] computes P and Q of RAID.

#![warn(missing_docs)]

mod memory;
pub mod parity;
mod ram;
mod spec;

pub use memory::Memory;
pub use ram::Ram;
pub use spec::{FileSpec, Source};
