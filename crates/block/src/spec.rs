//! Description of a medium by the user.

use std::path::PathBuf;

/// Storage of the bytes of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// In memory, lost when the process ends. Pages that were never written take no space.
    Ram,
    /// Each byte is computed from its address; writes are accepted and discarded. For measurements
    /// that verify data.
    Pattern {
        /// Seed of the byte stream (see [`sanloom_wire::pattern`]).
        seed: u32,
    },
    /// All bytes are zero; writes are accepted and discarded. For measurements without verification
    /// of data.
    Null,
    /// In a file or block device.
    File(FileSpec),
}

/// A file or block device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// Path of the file or block device.
    pub path: PathBuf,
    /// Size in bytes. A shorter regular file is extended to it; a longer one keeps the bytes beyond
    /// it.
    pub size_bytes: u64,
    /// True if space is allocated on write, false if all of it is allocated at the start.
    pub sparse: bool,
    /// True to bypass the page cache of this machine (O_DIRECT), if the file system supports it.
    pub direct: bool,
}
