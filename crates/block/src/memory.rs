//! Media that need no I/O.

use super::{Ram, Source};
use sanloom_wire::pattern;

/// A medium in memory. All users of the unit share it. Calls never fail and never block for long.
#[derive(Debug)]
pub enum Memory {
    /// Sparse memory, which stores written pages.
    Ram(Ram),
    /// Each byte is computed from its address; writes are discarded.
    Pattern {
        /// Seed of the byte stream (see [`sanloom_wire::pattern`]).
        seed: u32,
    },
    /// All bytes are zero; writes are discarded.
    Null,
}

impl Memory {
    /// Creates the medium of a description; `None` if it needs a file.
    pub fn new(source: &Source) -> Option<Memory> {
        match *source {
            Source::Ram => Some(Memory::Ram(Ram::new())),
            Source::Pattern { seed } => Some(Memory::Pattern { seed }),
            Source::Null => Some(Memory::Null),
            Source::File(_) => None,
        }
    }

    /// Fills `out` with the bytes from `offset`.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        match self {
            Memory::Ram(ram) => ram.read(offset, out),
            Memory::Pattern { seed } => pattern::fill(*seed, offset, out),
            Memory::Null => out.fill(0),
        }
    }

    /// Writes `data` at `offset`.
    pub fn write(&self, offset: u64, data: &[u8]) {
        if let Memory::Ram(ram) = self {
            ram.write(offset, data);
        }
    }

    /// Deallocates a range, which then reads as zeros. A pattern is not changed.
    pub fn discard(&self, offset: u64, len: u64) {
        if let Memory::Ram(ram) = self {
            ram.discard(offset, len);
        }
    }

    /// Returns whether the byte at `offset` is allocated, and the number of bytes from there, at
    /// most `len`, in the same state.
    pub fn mapping(&self, offset: u64, len: u64) -> (bool, u64) {
        match self {
            Memory::Ram(ram) => ram.mapping(offset, len),
            Memory::Pattern { .. } | Memory::Null => (true, len),
        }
    }

    /// Allocated memory, in bytes.
    pub fn used_bytes(&self) -> u64 {
        match self {
            Memory::Ram(ram) => ram.used_bytes(),
            Memory::Pattern { .. } | Memory::Null => 0,
        }
    }
}
