//! Fit of a disk to a trace: known parameters are found again, and real disks reach their bars.

use super::support::{compare, records};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::disk::calibrate::{self, Calibration};
use sanloom_storage::disk::replay::Replay;
use sanloom_storage::disk::{Bus, DiskConfig, Overheads, ReadAhead, SeekCurve, WritePolicy, preset};
use sanloom_storage::trace::validate::Record;

fn fit(config: &DiskConfig, records: &[Record]) -> Calibration {
    calibrate::fit(config, records, calibrate::REPLAYS, &mut |_| true).expect("the disk is possible")
}

/// Returns the demerit figure of the second half in percent.
fn second_half(config: &DiskConfig, records: &[Record]) -> f64 {
    let (measured, ours) = calibrate::compare(config, records, records.len() / 2).expect("the disk is possible");
    assert_eq!(measured.len(), records.len() - records.len() / 2);
    ours.demerit_percent(&measured)
}

/// A disk whose free parameters are wrong: the numbers that its data sheet does not state.
fn perturbed(mut config: DiskConfig) -> DiskConfig {
    let overheads = Overheads::uniform(0.3);
    config.overheads = Overheads { write_transfer_delay_ms: 0.3, ..overheads };
    let slower = |ms: f64| ms * 1.3;
    config.bus =
        Bus { read_block_ms: slower(config.bus.read_block_ms), write_block_ms: slower(config.bus.write_block_ms) };
    config.head_switch_ms *= 2.0;
    config.write_settle_ms = 0.0;
    config.seek = match config.seek {
        SeekCurve::Table { points } => {
            SeekCurve::Table { points: points.iter().map(|point| (point.0, point.1 * 1.15 + 0.3)).collect() }
        }
        _ => SeekCurve::ThreePoint { single_ms: 2.0, average_ms: 11.0, full_ms: 22.0 },
    };
    config.cache.keeps_read_blocks ^= true;
    config
}

fn recovers(config: DiskConfig, bar_percent: f64) {
    let records = records(&config.name);
    let wrong = perturbed(config);
    let before = second_half(&wrong, &records);
    let result = fit(&wrong, &records[..records.len() / 2]);
    let after = second_half(&result.config, &records);
    println!("{}: {before:.2} % before, {after:.2} % after {} replays", wrong.name, result.replays);
    for fitted in &result.fitted {
        println!("  {} {:.4} {:.4} ± {:?}", fitted.name, fitted.before, fitted.after, fitted.plus_minus);
    }
    println!("  {:?}", result.changed);
    assert!(before > bar_percent, "{before:.2} % before the fit");
    assert!(after <= bar_percent, "{after:.2} % after the fit");
    assert_eq!((&result.config.zones, result.config.rpm), (&wrong.zones, wrong.rpm), "the layout is not fitted");
    assert!(result.replays <= calibrate::REPLAYS + 60);
}

#[test]
fn a_perturbed_cheetah_9lp_is_within_six_percent_of_the_second_half_again() {
    recovers(preset::cheetah_9lp(), 6.0);
}

#[test]
fn a_perturbed_atlas_10k_is_within_five_percent_of_the_second_half_again() {
    recovers(preset::atlas_10k(), 5.0);
}

#[test]
fn a_perturbed_c2247a_is_within_four_percent_of_the_second_half_again() {
    recovers(preset::c2247a(), 4.0);
}

/// Returns a trace whose measured times are those of the model: random and sequential requests of
/// several sizes, reads and writes.
fn synthetic(config: &DiskConfig, requests: usize) -> Vec<Record> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut replay = Replay::new(config).expect("the disk is possible");
    let last = config.blocks - 1_000;
    let mut next = 0;
    let made = (0..requests).map(|_| {
        let share: f64 = random.random();
        let lbn = match share {
            share if share < 0.3 => next,
            share if share < 0.6 => (next + random.random_range(0..200_000)) % last,
            _ => random.random_range(0..last),
        };
        let blocks = random.random_range(1..32);
        next = (lbn + blocks) % last;
        let think_ps = random.random_range(0..20_000_000_000);
        let is_write = random.random_range(0..3) == 0;
        let mut record = Record { is_write, lbn, blocks, response_ps: 0, think_ps };
        record.response_ps = replay.step(&record).expect("the request ends").response_ps();
        record
    });
    made.collect()
}

#[test]
fn the_parameters_of_a_synthetic_trace_are_found_again() {
    for config in [preset::cheetah_9lp(), preset::c2247a()] {
        let records = synthetic(&config, 4_000);
        let mut wrong = config.clone();
        wrong.overheads.read_hit_after_read_ms += 0.2;
        wrong.overheads.read_miss_after_read_ms += 0.3;
        wrong.overheads.write_after_read_ms += 0.2;
        wrong.bus.read_block_ms *= 1.4;
        wrong.bus.write_block_ms *= 0.7;
        wrong.write_settle_ms = 0.2;
        let result = fit(&wrong, &records[..2_000]);
        let after = second_half(&result.config, &records);
        println!("{}: {after:.3} % after {} replays", config.name, result.replays);
        for fitted in &result.fitted {
            println!("  {} {:.4} {:.4} ± {:?}", fitted.name, fitted.before, fitted.after, fitted.plus_minus);
        }
        println!("{:?}", result.changed);
        assert!(after < 1.0, "{}: {after:.3} %", config.name);
        if config.cache.write == WritePolicy::Through {
            // The rotation hides the overhead and the bus time of a write to the medium.
            continue;
        }
        let o = |config: &DiskConfig| {
            let o = config.overheads;
            [
                ("read hit after read", o.read_hit_after_read_ms, 0.03),
                ("read hit after write", o.read_hit_after_write_ms, 0.05),
                ("write", o.write_after_read_ms + o.write_transfer_delay_ms, 0.03),
                ("read bus", config.bus.read_block_ms, 0.003),
                ("write bus", config.bus.write_block_ms, 0.003),
                ("write settle", config.write_settle_ms, 0.2),
            ]
        };
        for ((name, expected, tolerance), (_, found, _)) in o(&config).into_iter().zip(o(&result.config)) {
            assert!((found - expected).abs() <= tolerance, "{} {name}: {found:.4}, made with {expected}", config.name);
        }
    }
}

#[test]
fn a_wrong_choice_of_the_cache_is_found() {
    let config = preset::cheetah_9lp();
    let records = synthetic(&config, 3_000);
    let changes: [fn(&mut DiskConfig); 3] = [
        |config| config.cache.write = WritePolicy::Through,
        |config| config.cache.read_ahead = ReadAhead::None,
        |config| config.cache.read_ahead_only_if_sequential = true,
    ];
    for change in changes {
        let mut wrong = config.clone();
        change(&mut wrong);
        let result = fit(&wrong, &records[..1_500]);
        let after = second_half(&result.config, &records);
        println!("{after:.2} % {:?}", result.changed);
        assert!(!result.changed.is_empty() && after < 1.0, "{after:.2} % {:?}", result.changed);
    }
}

#[test]
fn a_value_that_no_request_depends_on_is_not_determined() {
    let config = preset::cheetah_9lp();
    let mut records = synthetic(&config, 1_000);
    records.retain(|record| !record.is_write);
    let result = fit(&config, &records);
    let of = |name: &str| result.fitted.iter().find(|fitted| fitted.name == name).expect("the value is free");
    assert_eq!(of("write_after_write_ms").plus_minus, None);
    assert_eq!(of("write_block_ms").plus_minus, None);
    assert!(of("read_block_ms").plus_minus.is_some());
    assert_eq!(of("write_after_write_ms").after, of("write_after_write_ms").before);
}

#[test]
fn the_number_of_replays_is_bounded_and_the_caller_can_end_a_fit() {
    let config = perturbed(preset::cheetah_9lp());
    let records = &records("cheetah-9lp")[..400];
    let limited = calibrate::fit(&config, records, 50, &mut |_| true).expect("the disk is possible");
    assert!(limited.is_cut && limited.replays <= 50 + 60, "{}", limited.replays);
    let ended = calibrate::fit(&config, records, 1_000, &mut |progress| progress.replays < 10).expect("possible");
    assert!(ended.is_cut && ended.distance_ms[1] <= ended.distance_ms[0] + 1e-3);
    let again = calibrate::fit(&config, records, 50, &mut |_| true).expect("the disk is possible");
    assert_eq!(limited, again, "a fit is deterministic");
    assert!(compare(&again.config, records).0 >= 0.0);
}
