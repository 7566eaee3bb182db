//! Replacement policies against plain models, formulas and published misses of a public trace.

use crate::cache_models::Plain;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::cache::{Access, Admission, Directory, Policy};
use sanloom_test_support::needs;
use std::path::PathBuf;

/// Policies to compare, with SLRU in several shapes.
fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![proptest::sample::select(Policy::ALL.to_vec()), (1u8..6).prop_map(|segments| Policy::Slru { segments }),]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn each_policy_equals_its_plain_model_for_lines(
        policy in policies(),
        capacity in 1u64..24,
        keys in prop::collection::vec((0u64..8, 0u64..8), 1..400),
    ) {
        let mut fast = Directory::new(policy, capacity, 1);
        let mut plain = Plain::new(policy, capacity);
        for (high, low) in keys {
            // The product is skewed, so that some keys are hot.
            let key = high * low;
            let is_hit = matches!(fast.access(key, 1, |_, _| {}), Access::Hit(_));
            prop_assert_eq!(is_hit, plain.access(key, 1), "key {}", key);
            prop_assert_eq!(fast.used(), plain.used());
        }
    }

    #[test]
    fn each_policy_equals_its_plain_model_for_objects_of_different_sizes(
        policy in policies(),
        capacity in 1u64..400,
        sizes in prop::collection::vec(1u32..60, 40),
        keys in prop::collection::vec(0usize..40, 1..400),
    ) {
        let mut fast = Directory::new(policy, capacity, 16);
        let mut plain = Plain::new(policy, capacity);
        for key in keys {
            let is_hit = matches!(fast.access(key as u64, sizes[key], |_, _| {}), Access::Hit(_));
            prop_assert_eq!(is_hit, plain.access(key as u64, u64::from(sizes[key])), "key {}", key);
            prop_assert_eq!(fast.used(), plain.used());
        }
    }

    #[test]
    fn slots_keep_their_key_from_admission_to_eviction(
        policy in policies(),
        capacity in 1u64..24,
        actions in prop::collection::vec((0u64..60, 0u8..8), 1..400),
    ) {
        let mut directory = Directory::new(policy, capacity, 1);
        let mut resident = std::collections::BTreeMap::new();
        let mut pinned = std::collections::BTreeSet::new();
        for (key, action) in actions {
            match (action, directory.find(key)) {
                (0, found) => {
                    prop_assert_eq!(directory.remove(key), found);
                    resident.remove(&key);
                    pinned.remove(&key);
                }
                (1, Some(slot)) if pinned.len() < 3 => {
                    directory.set_pinned(slot, true);
                    pinned.insert(key);
                }
                (2, Some(slot)) => {
                    directory.set_pinned(slot, false);
                    pinned.remove(&key);
                }
                (_, Some(slot)) => prop_assert_eq!(directory.hit(key), Some(slot)),
                (_, None) => loop {
                    match directory.admit(key, 1) {
                        Admission::Evict(slot) => {
                            let gone = directory.evict(slot);
                            prop_assert!(!pinned.contains(&gone), "{} is pinned", gone);
                            prop_assert_eq!(resident.remove(&gone), Some(slot));
                        }
                        Admission::Admitted(slot) => {
                            resident.insert(key, slot);
                            break;
                        }
                        Admission::Refused => {
                            prop_assert_eq!(pinned.len() as u64, capacity);
                            break;
                        }
                    }
                },
            }
            prop_assert_eq!(directory.len(), resident.len());
            for (key, slot) in &resident {
                prop_assert_eq!(directory.find(*key), Some(*slot));
                prop_assert_eq!(directory.key(*slot), *key);
            }
        }
    }
}

#[test]
fn a_warm_directory_allocates_nothing() {
    for policy in Policy::ALL {
        let mut directory = Directory::new(policy, 1_000, 1);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut run = || {
            for _ in 0..20_000 {
                let key = u64::from(random.random::<u16>() & random.random::<u16>());
                directory.access(key, 1, |_, _| {});
            }
        };
        run();
        let counted = allocation_counter::measure(run);
        // The buckets of LFU may exceed their previous maximum.
        let allowed = if policy == Policy::Lfu { 2 } else { 0 };
        assert!(counted.count_total <= allowed, "{policy:?}: {} allocations", counted.count_total);
    }
}

/// Items of the Zipf popularities.
const ITEMS: usize = 10_000;

fn zipf(exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=ITEMS).map(|rank| libm::pow(rank as f64, -exponent)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Hit ratio of independent references, `hit` being the probability of a hit from p T. The
/// characteristic time T is found by bisection (Che et al. 2002; Fagin 1977).
fn formula(popularity: &[f64], capacity: f64, hit: fn(f64) -> f64) -> f64 {
    let resident = |time: f64| popularity.iter().map(|p| hit(p * time)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e12);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if resident(middle) < capacity { low = middle } else { high = middle }
    }
    popularity.iter().map(|p| p * hit(p * low)).sum()
}

fn simulated(policy: Policy, popularity: &[f64], capacity: u64) -> f64 {
    let mut bounds = Vec::with_capacity(popularity.len());
    let mut sum = 0.0;
    for p in popularity {
        sum += p;
        bounds.push(sum);
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(20);
    let mut directory = Directory::new(policy, capacity, 1);
    let mut hits = 0u32;
    for access in 0..1_200_000 {
        let draw: f64 = random.random();
        let key = bounds.partition_point(|bound| *bound < draw).min(ITEMS - 1) as u64;
        let is_hit = matches!(directory.access(key, 1, |_, _| {}), Access::Hit(_));
        hits += u32::from(is_hit && access >= 200_000);
    }
    f64::from(hits) / 1e6
}

#[test]
fn lru_and_fifo_hit_as_often_as_the_formulas_of_che_and_fagin() {
    let table = [
        (0.8, 100, 0.1566, 0.1336),
        (0.8, 1_000, 0.4367, 0.3942),
        (1.0, 1_000, 0.6756, 0.6309),
        (1.2, 1_000, 0.8614, 0.8318),
    ];
    for (exponent, capacity, lru, fifo) in table {
        let popularity = zipf(exponent);
        let che = formula(&popularity, f64::from(capacity), |x| 1.0 - libm::exp(-x));
        let fagin = formula(&popularity, f64::from(capacity), |x| x / (1.0 + x));
        assert!((che - lru).abs() < 1e-4 && (fagin - fifo).abs() < 1e-4, "{exponent} {capacity}: {che} {fagin}");
        for (policy, expected) in [(Policy::Lru, che), (Policy::Fifo, fagin)] {
            let found = simulated(policy, &popularity, u64::from(capacity as u32));
            assert!((found - expected).abs() < 0.002, "{policy:?} {exponent} {capacity}: {found}, not {expected}");
        }
    }
}

/// Misses at 128, 256, … 1,024 MiB.
const PUBLISHED: [(Policy, [u32; 8], f64); 5] = [
    (Policy::Lru, [93374, 89783, 83572, 81722, 72494, 72104, 71972, 71704], 0.0),
    (Policy::Fifo, [93403, 89386, 84387, 84025, 72498, 72228, 72182, 72140], 0.0),
    (Policy::Clock, [93313, 89775, 83411, 81328, 74815, 72283, 71927, 64456], 0.0),
    (Policy::Arc, [90252, 85861, 78168, 74297, 67381, 65685, 64439, 64772], 2.5),
    (Policy::S3Fifo, [89307, 82387, 77041, 76791, 71300, 70343, 70455, 70355], 0.0),
];

#[needs("cache-trace")]
#[test]
fn misses_on_the_public_trace_are_the_published_ones() {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/traces");
    let folder = std::env::var_os("SANLOOM_TRACES").map_or_else(|| fetched.into(), PathBuf::from);
    let trace = std::fs::read(folder.join("cloudPhysicsIO.oracleGeneral.bin")).expect("the folder has the trace");
    assert_eq!(trace.len(), 113_872 * 24);
    for (policy, published, tolerance) in PUBLISHED {
        let mut found = [0; 8];
        for (at, found) in found.iter_mut().enumerate() {
            let mut directory = Directory::new(policy, (at as u64 + 1) << 27, 32 << 10);
            for record in trace.chunks_exact(24) {
                let key = u64::from_le_bytes(record[4..12].try_into().unwrap_or_default());
                let size = u32::from_le_bytes(record[12..16].try_into().unwrap_or_default());
                *found += u32::from(!matches!(directory.access(key, size, |_, _| {}), Access::Hit(_)));
            }
        }
        let worst = found.iter().zip(published).map(|(f, p)| (f64::from(*f) / f64::from(p) - 1.0).abs() * 100.0);
        let worst = worst.fold(0.0, f64::max);
        println!("{policy:?}: {found:?}, at most {worst:.2} % off");
        assert!(worst <= tolerance, "{policy:?}: {found:?}, published {published:?}");
    }
}

#[test]
fn slots_are_dense_and_ghosts_use_them_too() {
    let mut plain = Directory::new(Policy::Lru, 2, 1);
    let mut ghosts = Directory::new(Policy::TwoQ, 4, 1);
    assert!(plain.is_empty() && plain.slots() == 0);
    for key in 0..9 {
        plain.access(key, 1, |_, _| {});
        ghosts.access(key, 1, |_, _| {});
    }
    assert_eq!((plain.is_empty(), plain.len(), plain.slots()), (false, 2, 2));
    assert!(ghosts.len() == 4 && (5..=7).contains(&ghosts.slots()), "{}", ghosts.slots());
}
