//! Lost and wrong data of storage systems, and what prevents them.

use crate::labs::{check, lab, lab_with, run};
use sanloom_api::results::{DataLossResult, EventKind, Metrics, RaidResult, Results};
use sanloom_sim::run::{Blind, Options, simulate};

/// A server that uses one array. `array` are lines of the storage system, `faults` those of faults.
fn results(array: &str, load: &str, faults: &str) -> Results {
    run(&lab(&format!(
        "[run]\nduration = \"8s\"\nwarmup = \"0s\"\n[switch.sw1]\n[host.server]\nqueue_depth = 64\n\
         [storage.array]\ndisk = \"cheetah-9lp\"\ndisk_interface = \"800Mb/s\"\nlun_size = \"32MiB\"\n{array}\n\
         [[link]]\nfrom = \"{{server,array}}\"\nto = \"sw1\"\nrate = \"2GFC\"\n\
         [workload.io]\nhosts = \"server\"\ntargets = \"array\"\n{load}\n{faults}"
    )))
}

fn losses(results: &Results) -> &DataLossResult {
    results.storage[0].data_loss.as_ref().expect("the array has disks")
}

fn group(results: &Results) -> &RaidResult {
    &results.storage[0].raid[0]
}

const WRITES: &str = "size = \"4KiB\"\nread_share = 0\ndepth = 32";
const POWER: &str = "[[fault]]\nkind = \"power-failure\"\nstorage = \"array\"\nat = \"2s\"\nfor = \"100ms\"\n";
/// A disk that fails before the resync has come to the stripes in use.
const DISK: &str = "[[fault]]\nkind = \"disk-failure\"\nlun = \"array:lun0\"\nmember = 1\nat = \"2050ms\"\n";

fn raid5(consistency: &str) -> String {
    format!("disk_write_cache = false\nraid = {{ level = \"raid5\", disks = 5, consistency = \"{consistency}\" }}")
}

#[test]
fn a_power_failure_in_the_middle_of_writes_leaves_wrong_parity_without_a_log() {
    for (consistency, is_wrong) in [("resync", true), ("bitmap", true), ("journal", false), ("ppl", false)] {
        let results = results(&raid5(consistency), WRITES, &format!("{POWER}{DISK}"));
        let of_group = group(&results);
        assert_eq!(of_group.inconsistent_stripes > 0, is_wrong, "{consistency} {of_group:?}");
        assert_eq!(of_group.log_blocks > 0, ["journal", "ppl"].contains(&consistency), "{consistency}");
        assert!(results.totals.io.ios_failed == 0 && of_group.condition == "degraded");
    }
}

#[test]
fn a_resync_corrects_the_parity_that_a_power_failure_left_wrong() {
    for consistency in ["resync", "bitmap"] {
        let results =
            results(&raid5(consistency), "size = \"4KiB\"\nread_share = 0\narrivals = \"poisson 60/s\"", POWER);
        let of_group = group(&results);
        assert_eq!(of_group.inconsistent_stripes, 0, "{consistency} {of_group:?}");
        assert!(of_group.scrubbed_blocks > 0, "{consistency} {of_group:?}");
    }
}

#[test]
fn a_read_computed_from_wrong_parity_is_wrong_data_and_an_event() {
    let load =
        format!("{WRITES}\n[workload.reads]\nhosts = \"server\"\ntargets = \"array\"\nsize = \"64KiB\"\ndepth = 16");
    let faults = format!("{POWER}{DISK}");
    let wrong = results(&raid5("resync"), &load, &faults);
    assert!(losses(&wrong).wrong_reads > 0 && losses(&wrong).lost_requests == 0, "{:?}", losses(&wrong));
    let first = &losses(&wrong).first_requests[0];
    assert!(!first.write && first.blocks == 128 && first.at_s > 2.1, "{first:?}");
    let of_kind = wrong.events.iter().filter(|event| event.kind == EventKind::DataLoss);
    assert!(of_kind.clone().any(|event| event.what.contains("wrong data")), "{:?}", wrong.events);
    assert_eq!(losses(&results(&raid5("ppl"), &load, &faults)).wrong_reads, 0);
}

#[test]
fn a_volatile_cache_loses_acknowledged_blocks_and_one_with_a_battery_none() {
    let array = "disk_write_cache = false\ncontroller_cache = { size = \"16MiB\" }";
    let kept = results(array, WRITES, POWER);
    assert_eq!(losses(&kept).lost_blocks, 0);
    let battery = "[[fault]]\nkind = \"cache-battery\"\nstorage = \"array\"\nat = \"2s\"\n";
    let lost = results(array, WRITES, &format!("{battery}{POWER}"));
    assert!(losses(&lost).lost_blocks > 100, "{:?}", losses(&lost));
    // The write cache of a disk is volatile, too.
    assert!(losses(&results("", WRITES, POWER)).lost_blocks > 0);
}

#[test]
fn an_unreadable_block_is_computed_from_the_other_disks_and_lost_without_them() {
    let reads = "size = \"16MiB\"\ndepth = 1\nlocation = \"sequential\"";
    let error = "[[fault]]\nkind = \"latent-error\"\nlun = \"array:lun0\"\nblock = 1000\nat = \"1s\"\n";
    let alone = results("", reads, error);
    assert!(losses(&alone).lost_requests > 0 && alone.totals.io.ios_failed > 0, "{:?}", losses(&alone));
    assert!(losses(&alone).first_requests[0].reason.contains("could not be read"));
    let in_group = results("raid = { level = \"raid5\", disks = 5 }", reads, error);
    let of_group = group(&in_group);
    assert_eq!(
        (of_group.media_errors, of_group.repaired_blocks, in_group.totals.io.ios_failed),
        (1, 1, 0),
        "{of_group:?}"
    );
    assert_eq!(of_group.unreadable_blocks, 0);
}

#[test]
fn a_scrub_starts_after_its_interval_and_finds_latent_errors() {
    let idle = "size = \"4KiB\"\narrivals = \"poisson 1/s\"";
    let array = |more: &str| {
        let raid = format!("raid = {{ level = \"raid5\", disks = 3{more} }}");
        format!("ssd = \"pm883\"\nssd_size = \"256MiB\"\nssd_state = \"fresh\"\nlatent_errors_per_hour = 7200\n{raid}")
    };
    let run = |more: &str| {
        let text = array(more);
        run(&lab(&format!(
            "[run]\nduration = \"8s\"\nwarmup = \"0s\"\n[switch.sw1]\n[host.server]\n[storage.array]\n{text}\n[[link]]\n\
             from = \"{{server,array}}\"\nto = \"sw1\"\nrate = \"8GFC\"\n[workload.io]\nhosts = \"server\"\n\
             targets = \"array\"\n{idle}"
        )))
    };
    let never = run("");
    let scrubbed = run(", scrub = \"5s\"");
    assert_eq!((group(&never).scrubbed_blocks, group(&never).repaired_blocks), (0, 0));
    // 256 MiB of three SSDs. Errors that come later stay.
    assert_eq!(group(&scrubbed).scrubbed_blocks, 3 * 524_288, "{:?}", group(&scrubbed));
    assert!(group(&scrubbed).repaired_blocks > 10 && group(&never).unreadable_blocks > 20);
    assert_eq!(group(&scrubbed).unreadable_blocks + group(&scrubbed).repaired_blocks, group(&never).unreadable_blocks);
}

#[test]
fn all_requests_end_when_the_power_of_a_storage_system_returns() {
    // Two paths to a RAM disk, and two failures that overlap.
    let text = "[run]\nduration = \"60s\"\nwarmup = \"0s\"\nstop_issuing = \"1s\"\n[switch.sw1]\n[host.server]\nhbas = 2\n\
                [storage.array]\nports = 2\nrate = \"20k/s\"\n[[link]]\nfrom = \"{server,array}\"\nto = \"sw1\"\n\
                rate = \"4GFC\"\n[[link]]\nfrom = \"{server:1,array:1}\"\nto = \"sw1\"\nrate = \"4GFC\"\n[workload.io]\n\
                hosts = \"server\"\ntargets = \"array\"\nsize = \"8KiB\"\ndepth = 16\nread_share = 0.5\n";
    let fault = |at, until| {
        format!("[[fault]]\nkind = \"power-failure\"\nstorage = \"array\"\nat = \"{at}ms\"\nuntil = \"{until}ms\"\n")
    };
    let faults = format!("{}{}", fault(200, 400), fault(300, 500));
    let finished = simulate(&lab_with(text, &faults, &[]), &Options::default(), &mut Blind);
    check(&finished);
    let metrics = Metrics::new(&finished.results);
    assert_eq!(metrics.get("totals.ios_unfinished"), Some(0.0));
    assert_eq!(metrics.get("totals.ios_failed"), Some(0.0));
    // Nothing is served without power.
    let iops = &finished.results.storage[0];
    assert!((8_000..16_000).contains(&iops.ios_completed), "{}", iops.ios_completed);
    assert_eq!(iops.data_loss, None);
}
