//! Buffers without an owner, kept for the next task: [`Spare`].

/// Maximum number of kept buffers.
const KEPT: usize = 256;
/// Maximum size of a kept buffer, in bytes.
const KEPT_BYTES: usize = 4 << 20;
/// Maximum size of all kept buffers together, in bytes.
const ALL_KEPT_BYTES: usize = 64 << 20;

/// Buffers without a task. A buffer keeps its length, because a buffer that grows again is filled
/// with zeros.
#[derive(Debug, Default)]
pub struct Spare {
    buffers: Vec<Vec<u8>>,
    /// Capacity of all of them, in bytes.
    bytes: usize,
}

impl Spare {
    /// Returns a buffer of any length, possibly an empty one.
    pub fn take(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Keeps a buffer, or frees it if a limit is reached.
    pub fn keep(&mut self, buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if (1..=KEPT_BYTES).contains(&bytes) && self.buffers.len() < KEPT && self.bytes + bytes <= ALL_KEPT_BYTES {
            self.bytes += bytes;
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_buffers_have_a_limit_together_and_come_back() {
        let mut spare = Spare::default();
        (0..KEPT).for_each(|_| spare.keep(Vec::with_capacity(KEPT_BYTES)));
        assert_eq!(spare.buffers.iter().map(Vec::capacity).sum::<usize>(), ALL_KEPT_BYTES);
        assert_eq!(spare.take().capacity(), KEPT_BYTES);
        spare.keep(vec![0; 4096]);
        assert_eq!(spare.take().capacity(), 4096);
        (0..KEPT).for_each(|_| drop(spare.take()));
        assert_eq!((spare.bytes, spare.buffers.len()), (0, 0));
        (0..2 * KEPT).for_each(|_| spare.keep(vec![0; 16]));
        assert_eq!(spare.buffers.len(), KEPT);
    }
}
