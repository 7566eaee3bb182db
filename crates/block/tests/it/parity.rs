//! P and Q against known vectors, a table-based second implementation, and lost blocks.

use proptest::prelude::*;
use sanloom_block::parity::{self, Lost, Stripe, inverse, power, product, syndromes, two_factors};

fn p_and_q(data: &[u8]) -> (u8, u8) {
    let blocks: Vec<[u8; 1]> = data.iter().map(|byte| [*byte]).collect();
    let (mut p, mut q) = ([0], [0]);
    syndromes(&blocks, &mut p, &mut q);
    (p[0], q[0])
}

#[test]
fn known_vectors_of_md_are_met() {
    assert_eq!(p_and_q(&[1, 2, 4, 8]), (0x0F, 0x55));
    assert_eq!(p_and_q(&[0xFF; 4]), (0x00, 0x6C));
    assert_eq!(p_and_q(&[0xDE, 0xAD, 0xBE, 0xEF]), (0x22, 0x70));
    assert_eq!(p_and_q(&[0, 0, 0, 0x80]), (0x80, 0x74));
    assert_eq!(two_factors(1, 3), (0xA6, 0xDD));
    let powers: Vec<u8> = (0..10).map(power).collect();
    assert_eq!(powers, [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1D, 0x3A]);
    assert_eq!(power(254), 0x8E);
    let (mut p, mut q) = ([0; 4], [0; 4]);
    syndromes(&[b"Hell", b"o Wo", b"rld?"], &mut p, &mut q);
    assert_eq!((p, q), ([0x55, 0x29, 0x5F, 0x3C], [0x43, 0x88, 0x4F, 0x4E]));
}

/// Second implementation: logarithms of the generator.
struct Tables {
    power: [u8; 255],
    logarithm: [usize; 256],
}

impl Tables {
    fn new() -> Tables {
        let mut tables = Tables { power: [0; 255], logarithm: [0; 256] };
        let mut value = 1u16;
        for exponent in 0..255 {
            tables.power[exponent] = value as u8;
            tables.logarithm[value as usize] = exponent;
            value <<= 1;
            if value > 255 {
                value ^= 0x11D;
            }
        }
        tables
    }

    fn product(&self, a: u8, b: u8) -> u8 {
        if a == 0 || b == 0 {
            return 0;
        }
        self.power[(self.logarithm[usize::from(a)] + self.logarithm[usize::from(b)]) % 255]
    }
}

#[test]
fn products_and_inverses_equal_those_of_logarithm_tables() {
    let tables = Tables::new();
    for a in 0..=255 {
        for b in 0..=255 {
            assert_eq!(product(a, b), tables.product(a, b), "{a} {b}");
        }
        assert_eq!(product(a, inverse(a)), u8::from(a != 0));
    }
}

/// Data blocks with P and Q by the tables, for any exponents.
fn reference(data: &[Vec<u8>], exponents: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let tables = Tables::new();
    let length = data[0].len();
    let (mut p, mut q) = (vec![0; length], vec![0; length]);
    for (block, exponent) in data.iter().zip(exponents) {
        for (at, byte) in block.iter().enumerate() {
            p[at] ^= byte;
            q[at] ^= tables.product(*byte, tables.power[usize::from(*exponent)]);
        }
    }
    (p, q)
}

fn stripes() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<u8>)> {
    (2usize..12, 1usize..200).prop_flat_map(|(count, length)| {
        let data = prop::collection::vec(prop::collection::vec(any::<u8>(), length), count);
        let exponents = prop::collection::btree_set(0u8..255, count)
            .prop_map(|set| set.into_iter().collect::<Vec<u8>>())
            .prop_shuffle();
        (data, exponents)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn syndromes_equal_the_second_implementation((data, _) in stripes()) {
        let exponents: Vec<u8> = (0..data.len() as u8).collect();
        let (mut p, mut q) = (vec![1; data[0].len()], vec![1; data[0].len()]);
        syndromes(&data, &mut p, &mut q);
        prop_assert_eq!((p, q), reference(&data, &exponents));
    }

    #[test]
    fn any_two_lost_blocks_come_back((data, exponents) in stripes(), has_q: bool) {
        let (p, q) = reference(&data, &exponents);
        let mut all: Vec<Lost> = (0..data.len()).map(Lost::Data).chain([Lost::P]).collect();
        all.extend(has_q.then_some(Lost::Q));
        for &one in &all {
            for &other in &all {
                let lost = if one == other { vec![one] } else { vec![one, other] };
                let (mut data_now, mut p_now, mut q_now) = (data.clone(), p.clone(), q.clone());
                for lost in &lost {
                    match lost {
                        Lost::Data(index) => data_now[*index].fill(0x5A),
                        Lost::P => p_now.fill(0x5A),
                        Lost::Q => q_now.fill(0x5A),
                    }
                }
                let mut blocks: Vec<&mut [u8]> = data_now.iter_mut().map(Vec::as_mut_slice).collect();
                let q_block = has_q.then_some(q_now.as_mut_slice());
                let mut stripe = Stripe { data: &mut blocks, exponents: &exponents, p: &mut p_now, q: q_block };
                let can = has_q || lost.len() == 1;
                prop_assert_eq!(parity::recover(&mut stripe, &lost), can, "{:?}", lost);
                if can {
                    prop_assert_eq!((&data_now, &p_now, &q_now), (&data, &p, &q), "{:?}", lost);
                }
            }
        }
    }

    #[test]
    fn an_update_equals_a_new_computation((mut data, exponents) in stripes(), pick: usize, byte: u8) {
        let (mut p, mut q) = reference(&data, &exponents);
        let index = pick % data.len();
        let mut difference = data[index].clone();
        data[index].fill(byte);
        parity::add(&mut difference, &data[index]);
        parity::update(&mut p, Some(&mut q), exponents[index], &difference);
        prop_assert_eq!((p, q), reference(&data, &exponents));
    }
}

#[test]
fn three_lost_blocks_are_refused() {
    let mut blocks = [vec![1], vec![2], vec![3]];
    let mut data: Vec<&mut [u8]> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
    let (mut p, mut q) = ([0], [0]);
    let mut stripe = Stripe { data: &mut data, exponents: &[0, 1, 2], p: &mut p, q: Some(&mut q) };
    for lost in [[Lost::Data(0), Lost::Data(1), Lost::Data(2)], [Lost::Data(0), Lost::Data(1), Lost::P]] {
        assert!(!parity::recover(&mut stripe, &lost));
    }
    assert!(!parity::recover(&mut stripe, &[Lost::Data(0), Lost::P, Lost::Q]));
}
