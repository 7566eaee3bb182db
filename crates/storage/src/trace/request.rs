//! A request of a trace, in the same form for every format.

/// Operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TraceOp {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// Blocks that no longer hold data (discard, UNMAP, TRIM).
    Trim,
    /// Volatile caches to the medium; without address and length.
    Flush,
}

impl TraceOp {
    /// All operations.
    pub const ALL: [TraceOp; 4] = [TraceOp::Read, TraceOp::Write, TraceOp::Trim, TraceOp::Flush];

    /// Name in texts and results.
    pub fn word(self) -> &'static str {
        match self {
            TraceOp::Read => "read",
            TraceOp::Write => "write",
            TraceOp::Trim => "trim",
            TraceOp::Flush => "flush",
        }
    }
}

/// Request of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRequest {
    /// Arrival in picoseconds. Formats with absolute times count from the first request.
    pub arrival_ps: u64,
    /// Device, as an index into [`TraceReader::devices`](super::TraceReader::devices).
    pub device: u32,
    /// Operation.
    pub op: TraceOp,
    /// First byte on the device; 0 for a flush.
    pub offset_bytes: u64,
    /// Length; 0 for a flush. The end is at most 2^63.
    pub length_bytes: u64,
    /// Measured response time, if the trace has it.
    pub response_ps: Option<u64>,
    /// Time between the end of this request and the next one, if the trace has it.
    pub think_ps: Option<u64>,
}

impl TraceRequest {
    /// First byte behind the request.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.length_bytes)
    }
}
