//! Data of [`Payload::Pattern`](crate::Payload::Pattern): a byte stream that is identified by a
//! seed. Each byte depends only on the seed and on its offset.
//!
//! Therefore overlapping reads agree for all boundaries. A receiver can verify data that it has not
//! stored. The eight bytes at an offset that is a multiple of eight form one 64-bit little-endian
//! word. Its value is the word number and the seed, mixed by the finaliser of SplitMix64 (Steele,
//! Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). The stream is the same on
//! every machine.

/// Length of one word of the stream, in bytes.
const WORD_BYTES: usize = 8;

/// Offset of a byte in its word.
fn byte_of_word(offset: u64) -> usize {
    usize::from((offset & 7) as u8)
}

/// Fills `out` with stream `seed` from `offset`. Offsets wrap at 2^64.
pub fn fill(seed: u32, offset: u64, out: &mut [u8]) {
    let mut index = offset / WORD_BYTES as u64;
    let skip = byte_of_word(offset);
    let mut rest = out;
    if skip != 0 {
        let head_len = rest.len().min(WORD_BYTES - skip);
        let (head, tail) = rest.split_at_mut(head_len);
        head.copy_from_slice(&word(seed, index)[skip..skip + head_len]);
        index = next(index);
        rest = tail;
    }
    let mut words = rest.chunks_exact_mut(WORD_BYTES);
    for chunk in &mut words {
        chunk.copy_from_slice(&word(seed, index));
        index = next(index);
    }
    let tail = words.into_remainder();
    tail.copy_from_slice(&word(seed, index)[..tail.len()]);
}

/// One byte of the stream.
pub fn byte(seed: u32, offset: u64) -> u8 {
    word(seed, offset / WORD_BYTES as u64)[byte_of_word(offset)]
}

/// Index of the first byte of `data` that differs from stream `seed` at `offset`; `None` if all
/// bytes agree.
pub fn first_difference(seed: u32, offset: u64, data: &[u8]) -> Option<usize> {
    let mut expected = [0; 64 * WORD_BYTES];
    let mut done = 0;
    for chunk in data.chunks(expected.len()) {
        let expected = &mut expected[..chunk.len()];
        fill(seed, offset.wrapping_add(done as u64), expected);
        if expected != chunk {
            return chunk.iter().zip(expected).position(|(got, want)| got != want).map(|at| done + at);
        }
        done += chunk.len();
    }
    None
}

/// Number of the next word. Word numbers wrap after 2^61 - 1, because offsets have 64 bits.
fn next(index: u64) -> u64 {
    (index + 1) % (1 << 61)
}

fn word(seed: u32, index: u64) -> [u8; WORD_BYTES] {
    // The odd constant spreads the seed over all bits, so that neighbouring seeds are not shifted
    // copies of one stream.
    let mut z = index ^ u64::from(seed).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_cut_of_the_stream_has_the_same_bytes(seed: u32, offset: u64, len in 0_usize..300) {
            let mut filled = vec![0xa5; len];
            fill(seed, offset, &mut filled);
            let single: Vec<u8> = (0..len as u64).map(|i| byte(seed, offset.wrapping_add(i))).collect();
            prop_assert_eq!(&filled, &single);
            prop_assert_eq!(first_difference(seed, offset, &filled), None);
        }

        #[test]
        fn finds_the_first_wrong_byte(seed: u32, offset: u64, len in 1_usize..2000, at in any::<prop::sample::Index>()) {
            let mut data = vec![0; len];
            fill(seed, offset, &mut data);
            let at = at.index(len);
            data[at] ^= 0x10;
            data[len - 1] ^= 0x01;
            prop_assert_eq!(first_difference(seed, offset, &data), Some(at));
        }
    }

    #[test]
    fn streams_are_the_same_in_all_versions() {
        let mut data = [0; 16];
        fill(7, 4096, &mut data);
        assert_eq!(data, GOLDEN);
    }

    /// Computed by an independent program from the description in the module documentation.
    const GOLDEN: [u8; 16] =
        [0xf9, 0xf3, 0xfb, 0x6c, 0xb3, 0x1d, 0xb3, 0x3f, 0x39, 0x08, 0x5b, 0x1b, 0xb1, 0x1c, 0x8f, 0x96];

    #[test]
    fn neighbouring_seeds_differ() {
        let first: Vec<u8> = (0..4096).map(|i| byte(1, i)).collect();
        let equal = (0..4096).filter(|&i| byte(2, i) == first[i as usize]).count();
        assert!(equal < 64, "{equal} of 4096 bytes are equal, 16 are expected");
    }
}
