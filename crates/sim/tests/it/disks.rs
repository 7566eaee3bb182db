//! Disks behind the controllers of a lab.

use crate::labs::{lab, run};
use sanloom_api::results::{Results, StorageResult};

/// Returns the results of a server that uses one disk. `storage` and `workload` are lines of these
/// sections.
fn results(storage: &str, workload: &str) -> Results {
    run(&lab(&format!(
        "[run]\nduration = \"60s\"\nwarmup = \"10s\"\n[switch.sw1]\n[host.server1]\n\
         [storage.disk1]\ndisk = \"cheetah-9lp\"\ndisk_interface = \"800Mb/s\"\n{storage}\n\
         [[link]]\nfrom = \"{{server1,disk1}}\"\nto = \"sw1\"\nrate = \"1GFC\"\n\
         [workload.io]\nhosts = \"server1\"\ntargets = \"disk1\"\n{workload}\n"
    )))
}

fn of_disk(storage: &str, workload: &str) -> StorageResult {
    results(storage, workload).storage.remove(0)
}

#[test]
fn random_reads_in_a_queue_have_the_rates_of_the_disk_alone() {
    // Rates of a closed queue of 4 KiB random reads on this disk, computed without a fabric, where
    // the next request is there at once. Over a fabric the disk chooses among one request less.
    let rules = [("fcfs", [113.0, 113.0, 113.0]), ("look", [113.0, 138.0, 168.0]), ("sptf", [113.0, 154.0, 201.0])];
    for (scheduler, rates) in rules {
        for ((depth, lowest), rate) in [(1, 0.97), (4, 0.9), (16, 0.95)].into_iter().zip(rates) {
            let lowest = if scheduler == "fcfs" { 0.97 } else { lowest };
            let workload = format!("size = \"4KiB\"\ndepth = {depth}");
            let disk = of_disk(&format!("disk_scheduler = \"{scheduler}\""), &workload);
            let share = disk.iops / rate;
            assert!((lowest..1.03).contains(&share), "{scheduler} at {depth}: {} instead of {rate}", disk.iops);
        }
    }
}

#[test]
fn sequential_reads_have_the_rate_of_the_medium_and_strided_ones_lie_between() {
    let rate = |location: &str| of_disk("", &format!("size = \"8KiB\"\ndepth = 4\n{location}")).throughput_bytes_per_s;
    let [random, sequential] = [rate(""), rate("location = \"sequential\"")];
    let strided = rate("location = \"strided\"\nstride = \"64KiB\"");
    assert!(2.0 * random < strided && 2.0 * strided < sequential, "{random} {strided} {sequential}");
    // 254 blocks in a revolution of 5.973 ms in the outer zone; a track switch needs 97 of them.
    let medium = 254.0 * 512.0 / 5.973e-3 * 254.0 / (254.0 + 97.0);
    assert!((sequential / medium - 1.0).abs() < 0.02, "{sequential}, medium {medium}");
}

#[test]
fn the_parts_of_the_time_of_a_command_add_up_to_its_response() {
    let disk = of_disk("", "size = \"16KiB\"\ndepth = 8\nread_share = 0.7");
    let one = &disk.disks[0];
    let parts_ms = one.queue_ms + one.overhead_ms + one.seek_ms + one.rotation_ms + one.medium_ms + one.bus_ms;
    assert_eq!(one.commands, one.read_hits + one.read_misses + one.cached_writes + one.medium_writes);
    assert!((parts_ms / (disk.latency.mean_us / 1e3) - 1.0).abs() < 0.01, "{one:?}, {:?}", disk.latency);
}

#[test]
fn a_write_waits_for_the_medium_without_write_cache() {
    let writes = "size = \"4KiB\"\nread_share = 0\narrivals = \"poisson 20/s\"";
    let mean_ms = |storage| of_disk(storage, writes).latency.mean_us / 1e3;
    let [cached, through] = [mean_ms(""), mean_ms("disk_write_cache = false")];
    assert!(cached < 2.0 && through > 8.0, "{cached} ms and {through} ms");
}

#[test]
fn commands_that_wait_for_a_disk_count_towards_the_queue_limit() {
    let longest = |storage| {
        let results = results(storage, "size = \"4KiB\"\ndepth = 16");
        assert_eq!(results.totals.io.ios_failed, 0);
        results.storage[0].queue.max
    };
    // One command is at the arm. The host learns the limit from TASK SET FULL.
    assert_eq!([longest(""), longest("max_queued = 4")], [16, 5]);
}

#[test]
fn write_backs_of_the_warm_up_do_not_count_and_the_end_is_up_to_date() {
    // All writes end in the warm-up, and their write-backs take a second at most.
    let workload = "size = \"4KiB\"\nread_share = 0\narrivals = \"poisson 100/s\"\nstop = \"5s\"";
    let disk = of_disk("", workload);
    let one = &disk.disks[0];
    assert_eq!((one.commands, one.dirty_blocks, one.utilisation), (0, 0, 0.0), "{one:?}");
}

/// Results of a server that uses one SSD of 1 GiB. `storage` and `workload` are lines of these
/// sections.
fn of_ssd(storage: &str, workload: &str) -> StorageResult {
    let results = run(&lab(&format!(
        "[run]\nduration = \"400ms\"\nwarmup = \"100ms\"\n[switch.sw1]\n[host.server1]\n\
         [storage.ssd1]\nssd = \"pm883\"\nssd_size = \"1GiB\"\nrate = \"1M/s\"\n{storage}\n\
         [[link]]\nfrom = \"{{server1,ssd1}}\"\nto = \"sw1\"\nrate = \"8GFC\"\n\
         [workload.io]\nhosts = \"server1\"\ntargets = \"ssd1\"\nsize = \"4KiB\"\n{workload}\n"
    )));
    assert_eq!(results.totals.io.ios_failed, 0);
    results.storage.into_iter().next().expect("one storage system")
}

#[test]
fn a_read_of_an_ssd_takes_what_was_measured_of_its_model() {
    // Measured: 120 us for 4 KiB at depth 1.
    let storage = of_ssd("", "depth = 1");
    let ssd = &storage.ssds[0];
    assert!((ssd.read_response_us / 120.0 - 1.0).abs() < 0.03, "{ssd:?}");
    assert!(ssd.writes == 0 && ssd.erases == 0 && storage.disks.is_empty(), "{ssd:?}");
}

#[test]
fn writes_to_a_used_ssd_have_the_steady_rate_and_those_to_a_fresh_one_do_not_copy() {
    let writes = "depth = 32\nread_share = 0";
    let [fresh, used] = [of_ssd("ssd_state = \"fresh\"", writes), of_ssd("", writes)];
    assert!(fresh.ssds[0].write_amplification == 1.0 && fresh.ssds[0].erases == 0, "{:?}", fresh.ssds[0]);
    assert!(fresh.iops > 3.0 * used.iops, "{} and {}", fresh.iops, used.iops);
    // Measured: 25,000 steady random writes per second.
    assert!((used.iops / 25_000.0 - 1.0).abs() < 0.08, "{}", used.iops);
    assert!(used.ssds[0].collection > 0.5 && used.ssds[0].stalls > 0, "{:?}", used.ssds[0]);
}

#[test]
fn ssds_form_raid_groups_as_disks_do() {
    let storage = of_ssd("raid = { level = \"raid5\", disks = 6 }", "depth = 8\nread_share = 0.5");
    assert_eq!((storage.ssds.len(), storage.raid.len()), (6, 1));
    let (reads, writes): (u64, u64) =
        storage.ssds.iter().fold((0, 0), |sum, ssd| (sum.0 + ssd.reads, sum.1 + ssd.writes));
    // A small write reads old data and parity, and writes both.
    let group = &storage.raid[0];
    assert!(group.read_modify_writes > 100 && reads > 2 * storage.writes && writes > storage.writes, "{group:?}");
}

/// Flash that was never written answers at once, so a loop in front of it decides.
#[test]
fn a_loop_of_disks_carries_the_requests_of_its_arithmetic() {
    const WORD_US: f64 = 0.037_647;
    let iops = |loops: &str| {
        let results = run(&lab(&format!(
            "[run]\nduration = \"1s\"\nwarmup = \"100ms\"\n[switch.sw]\n[host.server]\nqueue_depth = 256\n\
             [storage.array]\nluns = 16\nlun_size = \"64MiB\"\nssd = \"pm9a3\"\nssd_size = \"128MiB\"\n\
             ssd_state = \"fresh\"\nrate = \"1M/s\"\n{loops}\n[[link]]\nfrom = \"{{server,array}}\"\nto = \"sw\"\n\
             rate = \"32GFC\"\n[workload.io]\nhosts = \"server\"\ntargets = \"array\"\ndepth = 128\nsize = \"16KiB\"\n"
        )));
        (results.storage[0].iops, results.storage[0].disk_loop_utilisation)
    };
    let (one, busy) = iops("disk_loops = { rate = \"1GFC\", disks = 16 }");
    let round_us = 16.0 * 6.0 * WORD_US + 17.0 * 0.05;
    let tenancy_us = 3.0 * round_us + 4.0 * WORD_US;
    let request_us = 2.0 * tenancy_us + (23.0 + 8.0 * 15.0 + 4_096.0 + 21.0) * WORD_US;
    assert!((one * request_us / 1e6 - 1.0).abs() < 0.005, "{one} of {}", 1e6 / request_us);
    assert!(busy > Some(0.995), "{busy:?}");
    let (two, _) = iops("disk_loops = { rate = \"1GFC\", disks = 8 }");
    assert!((1.9..2.3).contains(&(two / one)), "{two} {one}");
    let (none, busy) = iops("");
    assert!(none > 4.0 * one && busy.is_none(), "{none} {busy:?}");
}
