//! Back-end work that a controller cache returns.

/// Consecutive blocks of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Extent {
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
}

impl Extent {
    /// Block after the last one.
    pub fn end(&self) -> u64 {
        self.lba.saturating_add(u64::from(self.blocks))
    }
}

/// Reason of a back-end read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// A host reads these blocks, or others of the line.
    Demand,
    /// A write covers a part of a sector; the rest comes from the back end.
    Install,
    /// A stream was detected.
    ReadAhead,
}

/// Reason of a destage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// A request needs the line.
    Demand,
    /// More lines are dirty than the watermarks allow.
    Watermark,
    /// The line has been dirty for too long.
    Age,
    /// No host request has come for a while.
    Idle,
    /// A flush, or the loss of the battery or of the partner.
    Flush,
}

impl Reason {
    /// Number of reasons, for counters indexed by `reason as usize`.
    pub const COUNT: usize = 5;
}

/// Work for the caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Back-end read; report its end with [`super::Controller::filled`] or
    /// [`super::Controller::fill_failed`]. Drop the data of blocks that a host has written since
    /// the read was returned, or with the same request: the cache holds newer ones.
    Fetch(Extent, Purpose),
    /// Back-end write of dirty data; report its end with [`super::Controller::destaged`] or
    /// [`super::Controller::destage_failed`].
    Destage(Extent, Reason),
    /// Back-end write of the host's data. The host write is complete when it ends.
    WriteThrough(Extent),
    /// Copy to the partner controller. The host write is complete when it ends.
    Mirror(Extent),
}

/// State of blocks that a host reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Readiness {
    /// Nothing is in flight for any of the blocks, and no read of them has failed.
    Ready,
    /// A fetch of at least one of the blocks is in flight.
    Waiting,
    /// The last fetch of at least one of the blocks failed, and none is in flight. A new host read
    /// fetches the blocks again.
    Failed,
}

/// Result of a host request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// Blocks accepted from the start of the request. Fewer than requested means that no line can
    /// be evicted now: repeat the rest of the request when the next fill or destage has ended.
    pub accepted: u32,
}
