//! What a user says about a medium.

use std::path::PathBuf;

/// Where the bytes of a unit are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// In memory, gone with the process. Pages that were never written take none.
    Ram,
    /// Each byte follows from its address; writes are taken and forgotten. For measurements that check data.
    Pattern {
        /// Names the stream of bytes (see [`sanloom_wire::pattern`]).
        seed: u32,
    },
    /// Zeros; writes are taken and forgotten. For measurements of everything else.
    Null,
    /// In a file.
    File(FileSpec),
}

/// A file or block device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// Where it is.
    pub path: PathBuf,
    /// Size in bytes. A shorter regular file is made as long; a longer one keeps its tail.
    pub size_bytes: u64,
    /// Space is taken when it is written; otherwise all of it at the start.
    pub sparse: bool,
    /// Without the page cache of this machine (O_DIRECT), where the file system does that.
    pub direct: bool,
}
