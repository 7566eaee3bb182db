//! Demerit figures of distributions whose distance is known.

use proptest::prelude::*;
use sanloom_storage::disk::demerit::Distribution;

const US: u64 = 1_000_000;

#[test]
fn a_shift_of_all_times_is_the_demerit() {
    let measured = Distribution::new((1..100).map(|us| us * US));
    let shifted = Distribution::new((1..100).map(|us| (us + 7) * US));
    assert_eq!(shifted.demerit_us(&measured), 7.0);
    assert_eq!(measured.demerit_us(&measured), 0.0);
    assert_eq!(shifted.demerit_percent(&measured), 14.0);
}

#[test]
fn a_constant_is_the_standard_deviation_away() {
    // Times 0 and 2 beside a constant of 1: each half is one microsecond away.
    let measured = Distribution::new([0, 2 * US]);
    assert_eq!(Distribution::new([US]).demerit_us(&measured), 1.0);
    assert_eq!(Distribution::new([US; 3]).demerit_us(&measured), 1.0);
}

proptest! {
    #[test]
    fn the_number_of_times_does_not_matter(times in prop::collection::vec(0u64..1000, 1..50), copies in 1usize..5) {
        let one = Distribution::new(times.iter().map(|us| us * US));
        let several = Distribution::new((0..copies).flat_map(|_| &times).map(|us| us * US));
        prop_assert_eq!(one.demerit_us(&several), 0.0);
    }

    #[test]
    fn the_demerit_of_as_many_times_is_that_of_the_sorted_pairs(
        pairs in prop::collection::vec((0u64..1000, 0u64..1000), 1..50),
    ) {
        let (mut a, mut b): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
        let of = |times: &[u64]| Distribution::new(times.iter().map(|us| us * US));
        let ours = of(&a).demerit_us(&of(&b));
        a.sort_unstable();
        b.sort_unstable();
        let squares: f64 = a.iter().zip(&b).map(|(a, b)| (a.abs_diff(*b) as f64).powi(2)).sum();
        let expected = (squares / a.len() as f64).sqrt();
        prop_assert!((ours - expected).abs() < 1e-9);
    }
}
