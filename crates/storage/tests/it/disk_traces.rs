//! Measured response times of three disks beside those of the model.

use super::support::records;
use sanloom_storage::disk::demerit::Distribution;
use sanloom_storage::disk::replay::Replay;
use sanloom_storage::disk::{DiskConfig, preset};

/// Returns the demerit figure and the difference of the means, both in percent.
fn compare(config: &DiskConfig) -> (f64, f64) {
    let records = records(&config.name);
    let mut replay = Replay::new(config).expect("the preset is valid");
    let times: Vec<u64> = records.iter().filter_map(|record| replay.step(record)).map(|e| e.response_ps()).collect();
    assert_eq!(times.len(), records.len(), "each request ends");
    let measured = Distribution::new(records.iter().map(|record| record.response_ps));
    let ours = Distribution::new(times.iter().copied());
    let result = (ours.demerit_percent(&measured), 100.0 * (ours.mean_us() / measured.mean_us() - 1.0));
    println!("{}: demerit {:.2} %, mean {:+.2} %", config.name, result.0, result.1);
    result
}

#[test]
fn the_cheetah_9lp_is_within_six_percent_of_the_measurement() {
    let (demerit, mean) = compare(&preset::cheetah_9lp());
    assert!(demerit <= 6.0 && mean.abs() <= 5.0, "demerit {demerit:.2} %, mean {mean:+.2} %");
}

#[test]
fn the_atlas_10k_is_within_five_percent_of_the_measurement() {
    let (demerit, mean) = compare(&preset::atlas_10k());
    assert!(demerit <= 5.0 && mean.abs() <= 5.0, "demerit {demerit:.2} %, mean {mean:+.2} %");
}

#[test]
fn the_c2247a_is_within_four_percent_of_the_measurement() {
    let (demerit, mean) = compare(&preset::c2247a());
    assert!(demerit <= 4.0 && mean.abs() <= 5.0, "demerit {demerit:.2} %, mean {mean:+.2} %");
}
