//! A medium that needs no I/O.

use super::{Ram, Source};
use sanloom_wire::pattern;

/// A medium in memory. Shared by everybody who uses the unit; no call fails or waits for long.
#[derive(Debug)]
pub enum Memory {
    /// Pages that were written.
    Ram(Ram),
    /// Each byte follows from its address; writes are forgotten.
    Pattern {
        /// Names the stream of bytes.
        seed: u32,
    },
    /// Zeros; writes are forgotten.
    Null,
}

impl Memory {
    /// The medium of a description, if it needs no file.
    pub fn new(source: &Source) -> Option<Memory> {
        match *source {
            Source::Ram => Some(Memory::Ram(Ram::new())),
            Source::Pattern { seed } => Some(Memory::Pattern { seed }),
            Source::Null => Some(Memory::Null),
            Source::File(_) => None,
        }
    }

    /// Reads from `offset`.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        match self {
            Memory::Ram(ram) => ram.read(offset, out),
            Memory::Pattern { seed } => pattern::fill(*seed, offset, out),
            Memory::Null => out.fill(0),
        }
    }

    /// Writes at `offset`.
    pub fn write(&self, offset: u64, data: &[u8]) {
        if let Memory::Ram(ram) = self {
            ram.write(offset, data);
        }
    }

    /// Gives back the space of a range, which reads as zeros from then on (a pattern stays what it is).
    pub fn discard(&self, offset: u64, len: u64) {
        if let Memory::Ram(ram) = self {
            ram.discard(offset, len);
        }
    }

    /// Whether the byte at `offset` takes space, and for how many bytes from there on the answer is the same, within `len`.
    pub fn mapping(&self, offset: u64, len: u64) -> (bool, u64) {
        match self {
            Memory::Ram(ram) => ram.mapping(offset, len),
            Memory::Pattern { .. } | Memory::Null => (true, len),
        }
    }

    /// Memory that it takes, in bytes.
    pub fn used_bytes(&self) -> u64 {
        match self {
            Memory::Ram(ram) => ram.used_bytes(),
            Memory::Pattern { .. } | Memory::Null => 0,
        }
    }
}
