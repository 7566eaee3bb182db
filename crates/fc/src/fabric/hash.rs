//! Cheap hash function for the frame path.

/// Mixes 64 bits; the high bits of the result are the best ones.
///
/// The cost is two multiplications and a shift. The standard library's hasher costs more than a
/// whole forwarding decision. Its protection against chosen keys is not needed, because switches
/// allocate the addresses that serve as keys.
#[inline]
pub(crate) const fn mix(key: u64) -> u64 {
    // Constants: 2^64 / golden ratio, and the multiplier of the splitmix64 finaliser; both are odd.
    let x = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Mixes a salt into a hash. Hashes with different salts are independent; salt 0 changes nothing.
#[inline]
pub(super) const fn salted(hash: u64, salt: u64) -> u64 {
    if salt == 0 { hash } else { mix(hash ^ salt) }
}

/// Maps a hash to a number below `n` without division.
#[inline]
pub(super) const fn below(hash: u64, n: usize) -> usize {
    (((hash >> 32) * n as u64) >> 32) as usize
}
