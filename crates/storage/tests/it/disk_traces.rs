//! Measured response times of three disks beside those of the model.

use super::support::{self, records};
use sanloom_storage::disk::{DiskConfig, Overheads, ReadAhead, SeekCurve, WritePolicy, preset};

/// Returns the demerit figure and the difference of the means, both in percent.
fn compare(config: &DiskConfig) -> (f64, f64) {
    let result = support::compare(config, &records(&config.name));
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

/// Returns the demerit figure in percent after a change of the parameters.
fn changed(mut config: DiskConfig, change: impl Fn(&mut DiskConfig)) -> f64 {
    change(&mut config);
    compare(&config).0
}

/// A straight line through the measured seek times of one cylinder and of the full stroke.
fn straight_line(config: &mut DiskConfig) {
    if let SeekCurve::Table { points } = &config.seek {
        let (single_ms, full_ms) = (points[0].1, points[points.len() - 1].1);
        config.seek = SeekCurve::Linear { single_ms, full_ms };
    }
}

#[test]
fn a_disk_without_one_of_its_parts_is_far_from_the_measurement() {
    for disk in [preset::cheetah_9lp, preset::atlas_10k] {
        let without_write_cache = changed(disk(), |config| config.cache.write = WritePolicy::Through);
        assert!(without_write_cache > 40.0, "without write cache: {without_write_cache:.1} %");
        let without_read_ahead = changed(disk(), |config| config.cache.read_ahead = ReadAhead::None);
        assert!(without_read_ahead > 10.0, "without read-ahead: {without_read_ahead:.1} %");
        let straight = changed(disk(), straight_line);
        assert!(straight > 10.0, "straight seek curve: {straight:.1} %");
    }
    let without_overheads = changed(preset::cheetah_9lp(), |config| config.overheads = Overheads::uniform(0.0));
    assert!(without_overheads > 5.0, "without overheads: {without_overheads:.1} %");
    let without_skew = changed(preset::c2247a(), |config| {
        for zone in config.zones.to_mut() {
            (zone.track_skew, zone.cylinder_skew) = (0, 0);
        }
    });
    assert!(without_skew > 10.0, "without skew: {without_skew:.1} %");
}

#[test]
fn three_numbers_for_the_seek_curve_cost_about_a_point() {
    let curve = |single_ms, average_ms, full_ms| SeekCurve::ThreePoint { single_ms, average_ms, full_ms };
    let cheetah = changed(preset::cheetah_9lp(), |config| config.seek = curve(0.831, 5.45, 10.627));
    let atlas = changed(preset::atlas_10k(), |config| config.seek = curve(1.245, 5.59, 10.828));
    assert!(cheetah <= 6.0 && atlas <= 6.0, "Cheetah 9LP {cheetah:.1} %, Atlas 10K {atlas:.1} %");
}
