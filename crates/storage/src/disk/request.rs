//! Requests to a disk, and their ends.

/// Operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Read blocks.
    Read,
    /// Write blocks; with a write-back cache, the request ends when they are cached.
    Write,
    /// Write blocks to the medium, whatever the write policy (FUA).
    WriteThrough,
    /// Write all cached blocks to the medium. Range and blocks of the request are ignored.
    Flush,
}

/// Request to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Identifier, returned in [`Ended`]; may repeat.
    pub id: u64,
    /// First block.
    pub lbn: u64,
    /// Number of blocks, at least one.
    pub blocks: u64,
    /// Operation.
    pub op: Op,
}

/// Origin of the data of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Source {
    /// A read found all blocks in the cache, or a write put its blocks there.
    Cache,
    /// A read waited for blocks that the read-ahead was about to read.
    ReadAhead,
    /// The arm had to move for the request, or it was a flush.
    Medium,
}

/// Times of a request. Their sum is its response time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Phases {
    /// Wait for other requests, for the arm, and for room in the cache.
    pub queue_ps: u64,
    /// Command overhead, with completion.
    pub overhead_ps: u64,
    /// Seek, head switch and settling before the first block.
    pub seek_ps: u64,
    /// Rotational wait for the first block.
    pub rotation_ps: u64,
    /// Blocks on the medium, with switches between tracks.
    pub medium_ps: u64,
    /// Bus transfer that does not overlap with the medium.
    pub bus_ps: u64,
}

impl Phases {
    /// Returns the response time.
    pub fn total_ps(&self) -> u64 {
        self.queue_ps + self.overhead_ps + self.seek_ps + self.rotation_ps + self.medium_ps + self.bus_ps
    }

    /// Adds the times of another request.
    pub fn add(&mut self, other: &Phases) {
        self.queue_ps += other.queue_ps;
        self.overhead_ps += other.overhead_ps;
        self.seek_ps += other.seek_ps;
        self.rotation_ps += other.rotation_ps;
        self.medium_ps += other.medium_ps;
        self.bus_ps += other.bus_ps;
    }
}

/// End of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Identifier of the request.
    pub id: u64,
    /// Operation of the request.
    pub op: Op,
    /// Time of arrival.
    pub submitted_ps: u64,
    /// Time of the end.
    pub ended_ps: u64,
    /// Origin of the data.
    pub source: Source,
    /// Parts of the response time.
    pub phases: Phases,
}

impl Ended {
    /// Returns the response time.
    pub fn response_ps(&self) -> u64 {
        self.ended_ps - self.submitted_ps
    }
}
