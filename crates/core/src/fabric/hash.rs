//! One cheap hash for the frame path.

/// Mixes 64 bits; the high bits of the result are the best ones.
///
/// Two multiplications and a shift. The standard library's hasher costs more than a whole forwarding decision, and its
/// protection against chosen keys is of no use here: the keys are addresses that switches hand out.
#[inline]
pub(crate) const fn mix(key: u64) -> u64 {
    // 2^64 / golden ratio, and the multiplier of the splitmix64 finaliser; both odd.
    let x = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// A number below `n` out of a hash, without division.
#[inline]
pub(super) const fn below(hash: u64, n: usize) -> usize {
    (((hash >> 32) * n as u64) >> 32) as usize
}
