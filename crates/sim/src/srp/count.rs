//! Counters of channels.

/// Counters of a channel since the end of the warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChannelCount {
    /// Connections that were opened.
    pub connections: u64,
    /// Commands and task management requests that the host has sent.
    pub requests: u64,
    /// Responses that the host has received.
    pub responses: u64,
    /// Commands that waited for the request limit of the target.
    pub credit_waits: u64,
    /// Bytes that the target has written to the host and read from it by RDMA.
    pub rdma_bytes: [u64; 2],
    /// Logins that the target has refused, because the host is in none of its partitions.
    pub partition_refusals: u64,
    /// Times that either side has gone back to repeat packets.
    pub repetitions: u64,
}

impl ChannelCount {
    fn pairs(&mut self, other: ChannelCount) -> [(&mut u64, u64); 8] {
        let [written, read] = &mut self.rdma_bytes;
        [
            (&mut self.connections, other.connections),
            (&mut self.requests, other.requests),
            (&mut self.responses, other.responses),
            (&mut self.credit_waits, other.credit_waits),
            (written, other.rdma_bytes[0]),
            (read, other.rdma_bytes[1]),
            (&mut self.partition_refusals, other.partition_refusals),
            (&mut self.repetitions, other.repetitions),
        ]
    }

    /// Returns the counters as differences to an earlier reading.
    pub(super) fn since(mut self, before: ChannelCount) -> ChannelCount {
        self.pairs(before).into_iter().for_each(|(own, before)| *own = own.saturating_sub(before));
        self
    }
}
