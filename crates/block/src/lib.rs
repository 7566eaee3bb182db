//! Bytes at rest: what a logical unit is made of.
//!
//! This crate describes, and holds what memory can hold: [`Ram`], a pattern that follows from the address, and nothing at
//! all. Files are described only ([`FileSpec`]); whoever may do I/O opens them. Addresses are in bytes, and every length is
//! the caller's to have checked: a unit's range is the device server's business.

mod memory;
mod ram;
mod spec;

pub use memory::Memory;
pub use ram::Ram;
pub use spec::{FileSpec, Source};
