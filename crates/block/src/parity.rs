//! P and Q of RAID 6, as the md driver of Linux writes them.
//!
//! P is the exclusive or of all data. Q is the sum of `2^e · D` in GF(2^8) with the polynomial 11D,
//! `e` being the exponent of each data block. All blocks of one call have the same length in bytes.

/// Bytes that one step of the inner loops handles, as words of 8 bytes.
const LANES: usize = 8;
type Block = [u64; LANES];
const BLOCK: usize = LANES * 8;

/// Content of a stripe that a call of [`recover`] computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lost {
    /// Data block with this index.
    Data(usize),
    /// P.
    P,
    /// Q.
    Q,
}

/// Blocks of one stripe.
#[derive(Debug)]
pub struct Stripe<'a, 'b> {
    /// Data in any order.
    pub data: &'a mut [&'b mut [u8]],
    /// Exponent of each data block in Q, below 255, all different.
    pub exponents: &'a [u8],
    /// Exclusive or of the data.
    pub p: &'a mut [u8],
    /// Syndrome; `None` in RAID 5.
    pub q: Option<&'a mut [u8]>,
}

/// Product in GF(2^8) with the polynomial 11D.
pub const fn product(a: u8, b: u8) -> u8 {
    let (mut a, mut b, mut sum) = (a, b, 0);
    while b != 0 {
        if b & 1 == 1 {
            sum ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1D };
        b >>= 1;
    }
    sum
}

/// Power of the generator 2. The exponent may be negative.
pub const fn power(exponent: i32) -> u8 {
    let mut left = exponent.rem_euclid(255);
    let mut value = 1;
    while left > 0 {
        value = product(value, 2);
        left -= 1;
    }
    value
}

/// Multiplicative inverse; 0 has none and gives 0.
pub const fn inverse(value: u8) -> u8 {
    // value^254, because value^255 is 1.
    let (mut result, mut square, mut exponent) = (1, value, 254u32);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, square);
        }
        square = product(square, square);
        exponent >>= 1;
    }
    result
}

/// Doubles eight field elements at once.
#[inline(always)]
fn double(word: u64) -> u64 {
    let high = word & 0x8080_8080_8080_8080;
    let overflowed = (high << 1).wrapping_sub(high >> 7);
    ((word ^ high) << 1) ^ (overflowed & 0x1D1D_1D1D_1D1D_1D1D)
}

#[inline(always)]
fn load(bytes: &[u8; BLOCK]) -> Block {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

#[inline(always)]
fn store(block: Block, bytes: &mut [u8; BLOCK]) {
    let (words, _) = bytes.as_chunks_mut::<8>();
    for at in 0..LANES {
        words[at] = block[at].to_le_bytes();
    }
}

/// Adds `data` to `sum`: exclusive or. Adding twice removes.
pub fn add(sum: &mut [u8], data: &[u8]) {
    for (sum, data) in sum.iter_mut().zip(data) {
        *sum ^= data;
    }
}

/// Product of each byte of a block and a factor.
#[inline(always)]
fn block_product(factor: u8, mut block: Block) -> Block {
    let (mut sum, mut bits) = ([0; LANES], factor);
    while bits != 0 {
        let mask = u64::from(bits & 1).wrapping_neg();
        for at in 0..LANES {
            sum[at] ^= block[at] & mask;
            block[at] = double(block[at]);
        }
        bits >>= 1;
    }
    sum
}

/// Adds `factor · data` to `sum`.
pub fn add_product(sum: &mut [u8], factor: u8, data: &[u8]) {
    let (sums, sum_rest) = sum.as_chunks_mut::<BLOCK>();
    let (blocks, data_rest) = data.as_chunks::<BLOCK>();
    for (sum, data) in sums.iter_mut().zip(blocks) {
        let (mut words, products) = (load(sum), block_product(factor, load(data)));
        for at in 0..LANES {
            words[at] ^= products[at];
        }
        store(words, sum);
    }
    for (sum, data) in sum_rest.iter_mut().zip(data_rest) {
        *sum ^= product(factor, *data);
    }
}

/// Multiplies a block by a factor.
pub fn scale(block: &mut [u8], factor: u8) {
    let (blocks, rest) = block.as_chunks_mut::<BLOCK>();
    for block in blocks {
        store(block_product(factor, load(block)), block);
    }
    rest.iter_mut().for_each(|byte| *byte = product(factor, *byte));
}

/// Computes P and Q of data in the order of exponents 0, 1, 2 …
pub fn syndromes<D: AsRef<[u8]>>(data: &[D], p: &mut [u8], q: &mut [u8]) {
    let (p_blocks, p_rest) = p.as_chunks_mut::<BLOCK>();
    let (q_blocks, q_rest) = q.as_chunks_mut::<BLOCK>();
    let whole = p_blocks.len() * BLOCK;
    for (number, (p, q)) in p_blocks.iter_mut().zip(q_blocks).enumerate() {
        let (mut p_words, mut q_words) = ([0; LANES], [0; LANES]);
        // Horner's rule: the block with the highest exponent comes first.
        for data in data.iter().rev() {
            let words = load(&data.as_ref().as_chunks().0[number]);
            for at in 0..LANES {
                p_words[at] ^= words[at];
                q_words[at] = double(q_words[at]) ^ words[at];
            }
        }
        store(p_words, p);
        store(q_words, q);
    }
    for (at, (p, q)) in p_rest.iter_mut().zip(q_rest).enumerate() {
        (*p, *q) = data.iter().rev().fold((0, 0), |(p, q), data| {
            let byte = data.as_ref()[whole + at];
            (p ^ byte, product(q, 2) ^ byte)
        });
    }
}

/// Changes P and Q after one data block has changed. `difference` is the old block plus the new one
/// (see [`add`]), and `exponent` that of the block.
pub fn update(p: &mut [u8], q: Option<&mut [u8]>, exponent: u8, difference: &[u8]) {
    add(p, difference);
    if let Some(q) = q {
        add_product(q, power(i32::from(exponent)), difference);
    }
}

/// Computes lost blocks of a stripe from the others, and overwrites them. `lost` has no duplicates.
/// Returns `false`, and changes nothing, if more is lost than P and Q can replace.
pub fn recover(stripe: &mut Stripe<'_, '_>, lost: &[Lost]) -> bool {
    let has_p = !lost.contains(&Lost::P);
    let has_q = stripe.q.is_some() && !lost.contains(&Lost::Q);
    let mut data = lost.iter().filter_map(|lost| if let Lost::Data(index) = lost { Some(*index) } else { None });
    match (data.next(), data.next(), data.next()) {
        (None, ..) => {}
        (Some(one), None, _) if has_p => recover_from_p(stripe, one),
        (Some(one), None, _) if has_q => recover_from_q(stripe, one),
        (Some(one), Some(other), None) if has_p && has_q => recover_two(stripe, one, other),
        _ => return false,
    }
    if !has_p {
        stripe.p.fill(0);
        stripe.data.iter().for_each(|data| add(stripe.p, data));
    }
    if lost.contains(&Lost::Q)
        && let Some(q) = stripe.q.as_deref_mut()
    {
        q.fill(0);
        for (data, exponent) in stripe.data.iter().zip(stripe.exponents) {
            add_product(q, power(i32::from(*exponent)), data);
        }
    }
    true
}

fn recover_from_p(stripe: &mut Stripe<'_, '_>, lost: usize) {
    stripe.data[lost].copy_from_slice(stripe.p);
    for index in 0..stripe.data.len() {
        if let Some((target, data)) = pair(stripe.data, lost, index) {
            add(target, data);
        }
    }
}

fn recover_from_q(stripe: &mut Stripe<'_, '_>, lost: usize) {
    let Some(q) = stripe.q.as_deref() else { return };
    stripe.data[lost].copy_from_slice(q);
    for (index, exponent) in stripe.exponents.iter().enumerate() {
        if let Some((target, data)) = pair(stripe.data, lost, index) {
            add_product(target, power(i32::from(*exponent)), data);
        }
    }
    scale(stripe.data[lost], power(-i32::from(stripe.exponents[lost])));
}

/// Two lost data blocks with exponents x and y: `D_x = A (P + P') + B (Q + Q')` and
/// `D_y = P + P' + D_x`, with `A = g^(y-x) / (g^(y-x) + 1)`, `B = g^-x / (g^(y-x) + 1)`, and P' and
/// Q' computed without both blocks.
fn recover_two(stripe: &mut Stripe<'_, '_>, one: usize, other: usize) {
    let Some(q) = stripe.q.as_deref() else { return };
    stripe.data[one].copy_from_slice(q);
    stripe.data[other].copy_from_slice(stripe.p);
    for index in (0..stripe.data.len()).filter(|index| ![one, other].contains(index)) {
        if let Some((q, data)) = pair(stripe.data, one, index) {
            add_product(q, power(i32::from(stripe.exponents[index])), data);
        }
        if let Some((p, data)) = pair(stripe.data, other, index) {
            add(p, data);
        }
    }
    let (a, b) = two_factors(stripe.exponents[one], stripe.exponents[other]);
    scale(stripe.data[one], b);
    if let Some((target, sum)) = pair(stripe.data, one, other) {
        add_product(target, a, sum);
    }
    if let Some((target, data)) = pair(stripe.data, other, one) {
        add(target, data);
    }
}

/// Factors A and B for two lost data blocks with these exponents.
pub fn two_factors(x: u8, y: u8) -> (u8, u8) {
    let ratio = power(i32::from(y) - i32::from(x));
    let divisor = inverse(ratio ^ 1);
    (product(ratio, divisor), product(power(-i32::from(x)), divisor))
}

/// Borrows one block for writing and another for reading; `None` if both are the same.
fn pair<'a>(data: &'a mut [&mut [u8]], target: usize, source: usize) -> Option<(&'a mut [u8], &'a [u8])> {
    let [target, source] = data.get_disjoint_mut([target, source]).ok()?;
    Some((target, source))
}
