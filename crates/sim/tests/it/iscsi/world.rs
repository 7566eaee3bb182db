//! Labs whose hosts reach their storage over iSCSI.

use crate::labs;
use sanloom_scsi::random::SplitMix64;
use sanloom_sim::net::ethernet::LineErrors;

/// Hosts and one storage system at a switch of its own.
fn lab(hosts: usize, rate: &str, mtu: u32, more: &str, workload: &str) -> String {
    format!(
        r#"
[run]
duration = "2100ms"
warmup = "100ms"
[ethernet_switch.tor]
[host."server{{1..{hosts}}}"]
queue_depth = 64
{more}
[storage.array]
rate = "1M/s"
iscsi = {{ portals = "192.0.2.1:3260", tcp = {{ window = "3MiB", send_buffer = "4MiB" }} }}
[[link]]
from = "server{{1..{hosts}}}"
to = "tor"
rate = "{rate}"
mtu = {mtu}
[[link]]
from = "array"
to = "tor"
rate = "{rate}"
mtu = {mtu}
[workload.load]
hosts = "server{{1..{hosts}}}"
targets = "array"
{workload}
"#
    )
}

const READS: &str = "size = \"512KiB\"\ndepth = 16\nread_share = 1.0";
const WRITES: &str = "size = \"512KiB\"\ndepth = 16\nread_share = 0.0";

/// The shares of TCP with time stamps, and a header of 48 bytes for each PDU of 256 KiB.
#[test]
fn large_requests_reach_the_share_of_the_line() {
    for (line, mtu, share) in [("1GbE", 1_500, 117.69), ("10GbE", 1_500, 1_176.9), ("10GbE", 9_000, 1_237.6)] {
        for workload in [READS, WRITES] {
            let results = labs::run(&labs::lab(&lab(1, line, mtu, "", workload)));
            let expected = share * 262_144.0 / (262_144.0 + 48.0);
            let found = labs::mb_per_s(&results);
            assert!(
                (found / expected - 1.0).abs() < 0.005,
                "{line}, MTU {mtu}, {workload}: {found:.2}, not {expected:.2}"
            );
            assert_eq!(results.totals.io.ios_failed, 0);
        }
    }
}

/// A command takes longer by the wait for an interrupt, and by the work for its frames.
#[test]
fn the_work_of_a_host_is_part_of_the_response_time() {
    let one = "size = \"8KiB\"\ndepth = 1\nread_share = 1.0";
    let mean = |more: &str| {
        let results = labs::run(&labs::lab(&lab(1, "10GbE", 1_500, more, one)));
        (results.totals.io.latency.mean_us, results.hosts[0].cpu_utilisation)
    };
    let (free, idle) = mean("");
    // 6 frames carry 48 + 8,192 bytes and the headers. All but the first arrive during the work.
    let (worked, busy) = mean("tcp_cost = { per_segment_received = \"10us\" }");
    assert!((50.0..60.0).contains(&(worked - free)), "{free} and {worked} us");
    assert!(idle == 0.0 && busy > 0.5, "{idle} and {busy}");
    let (waited, _) = mean("tcp_cost = { interrupt_gap = \"100us\", interrupt_frames = 64 }");
    // The acknowledgement of the command raises an interrupt, and the data wait for the next one.
    assert!((90.0..110.0).contains(&waited), "{free} and {waited} us");
}

/// Two switches, of which a link fails: all requests end well on the sessions over the other one.
#[test]
fn a_failed_link_moves_the_commands_to_the_other_session() {
    let text = r#"
[run]
duration = "60s"
stop_issuing = "40s"
[ethernet_switch."tor{1..2}"]
[host.server]
[host.server.multipath]
fast_io_fail = "5s"
[storage.array]
rate = "20k/s"
iscsi = { portals = ["192.0.2.1:3260", "198.51.100.1:3260"] }
[[link]]
from = "server"
to = "tor1"
rate = "1GbE"
[[link]]
from = "server"
to = "tor2"
rate = "1GbE"
[[link]]
from = "array"
to = "tor1"
rate = "1GbE"
[[link]]
from = "array"
to = "tor2"
rate = "1GbE"
[workload.load]
hosts = "server"
targets = "array"
size = "64KiB"
arrivals = "constant 500/s"
"#;
    let lab = labs::lab(text);
    let mut world = sanloom_sim::world::World::new(lab);
    world.log_in();
    world.start();
    let start = world.start_ps;
    world.run_until(start + 5_000_000_000_000);
    world.net.set_ethernet_link(0, false);
    world.run_until(start + 30_000_000_000_000);
    world.net.set_ethernet_link(0, true);
    world.run_until(start + 60_000_000_000_000);
    world.check().expect("conserved");
    let totals = &world.hosts.totals;
    assert_eq!((totals.failed, totals.issued), (0, totals.completed), "{totals:?}");
    assert!(totals.completed > 15_000 && world.hosts.nodes[0].measured.failovers > 0, "{totals:?}");
    let iscsi = world.iscsi.as_ref().expect("sessions");
    assert!((0..2).all(|session| iscsi.is_up(session)));
    assert_eq!([iscsi.count(0).connections > 1, iscsi.count(1).connections == 0], [true, true]);
}

/// Random hosts, sessions, sizes, digests and lines with lost and damaged frames, and links that go
/// down and come up: nothing is lost silently, and everything ends.
#[test]
fn everything_ends_in_random_labs_with_faults() {
    for seed in 1..=12 {
        let mut dice = SplitMix64(seed);
        let hosts = 1 + dice.index(3);
        let sessions = 1 + dice.index(2);
        let digest = ["always", "either"][dice.index(2)];
        let more = format!("iscsi = {{ sessions = {sessions}, header_digest = \"{digest}\" }}");
        let size = ["4KiB", "60KiB", "300KiB"][dice.index(3)];
        let workload =
            format!("size = \"{size}\"\nread_share = 0.5\narrivals = \"poisson {}/s\"", 20 + dice.below(300));
        let text = lab(hosts, ["1GbE", "10GbE"][dice.index(2)], [1_500, 9_000][dice.index(2)], &more, &workload);
        let text = text.replace(
            "duration = \"2100ms\"\nwarmup = \"100ms\"",
            "duration = \"300s\"\nwarmup = \"0s\"\nstop_issuing = \"20s\"",
        );
        let mut world = sanloom_sim::world::World::new(labs::lab(&text));
        world.log_in();
        world.start();
        let start = world.start_ps;
        let lines = world.net.ethernet.lines().len();
        for line in 0..lines as u32 {
            let share = u32::MAX / 1_000 * dice.below(12) as u32;
            *world.net.ethernet.errors_mut(line) =
                LineErrors { loss: share, damage: share / 2, ..LineErrors::default() };
        }
        let mut at = start;
        for _ in 0..4 {
            at += dice.below(4_000_000_000_000);
            world.run_until(at);
            let link = dice.index(lines / 2) as u32;
            world.net.set_ethernet_link(link, false);
            at += dice.below(12_000_000_000_000);
            world.run_until(at);
            world.net.set_ethernet_link(link, true);
            world.check().expect("conserved");
        }
        world.run_until(start + 300_000_000_000_000);
        world.check().expect("conserved");
        let totals = &world.hosts.totals;
        assert_eq!(totals.issued, totals.completed + totals.failed, "seed {seed}: {totals:?}");
        assert!(totals.completed > 0 && !world.hosts.is_busy(), "seed {seed}: {totals:?}");
    }
}

/// The same lab gives the same results, to the last bit.
#[test]
fn a_run_repeats() {
    let text = lab(3, "1GbE", 1_500, "", "size = \"16KiB\"\nread_share = 0.6\ndepth = 8");
    let run = || labs::run(&labs::lab(&text.replace("2100ms", "300ms")));
    let (mut a, mut b) = (run(), run());
    (a.engine, b.engine) = Default::default();
    assert_eq!(a, b);
    assert!(a.totals.io.ios_completed > 1_000);
}

/// Volumes over two back ends: what the host moves, the back ends move.
#[test]
fn a_virtual_disk_moves_the_data_of_its_back_ends() {
    let text = r#"
[run]
duration = "500ms"
warmup = "0s"
stop_issuing = "400ms"
[host.server]
[storage.disk1]
lun_size = "1GiB"
iscsi = { portals = "127.0.0.1:3261", initiators = "iqn.2026-11.example.sanloom:switch" }
[storage.disk2]
lun_size = "1GiB"
iscsi = { portals = "127.0.0.1:3262", initiators = "iqn.2026-11.example.sanloom:switch" }
[storage.switch]
medium = "volumes"
iscsi = { portals = "127.0.0.1:3260" }
[pool.disks]
[back_end.first]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk1"
portals = "127.0.0.1:3261"
[back_end.second]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk2"
portals = "127.0.0.1:3262"
[volume.striped]
pool = "disks"
size = "512MiB"
width = 2
stripe = "64KiB"
storage = "switch"
lun = 0
[workload.load]
hosts = "server"
targets = "switch:lun0"
size = "128KiB"
read_share = 0.5
depth = 4
"#;
    let results = labs::run(&labs::lab(text));
    let io = &results.totals.io;
    assert!(io.ios_completed > 500 && io.ios_failed == 0, "{io:?}");
    let back: Vec<_> = results.storage.iter().filter(|storage| storage.name.starts_with("disk")).collect();
    assert_eq!(back.iter().map(|storage| storage.read_bytes).sum::<u64>(), io.read_bytes);
    assert_eq!(back.iter().map(|storage| storage.written_bytes).sum::<u64>(), io.written_bytes);
    // Stripes alternate.
    let [first, second] = [back[0].read_bytes as f64, back[1].read_bytes as f64];
    assert!((first / second - 1.0).abs() < 0.02, "{first} and {second}");
}

#[test]
fn the_command_window_has_the_depth_of_the_lab_file() {
    for depth in [16, 128, 512] {
        let more = format!("iscsi = {{ queue_depth = {depth} }}");
        let workload = format!("size = \"4KiB\"\ndepth = {depth}");
        let text = lab(1, "10GbE", 1_500, &more, &workload)
            .replace("queue_depth = 64\n", &format!("queue_depth = {depth}\n"))
            .replace("rate = \"1M/s\"", "service_time = \"10ms\"\nservers = 1024")
            .replace("portals = \"192.0.2.1:3260\",", &format!("portals = \"192.0.2.1:3260\", queue_depth = {depth},"));
        let found = labs::run(&labs::lab(&text)).totals.io.iops;
        let expected = f64::from(depth) / 10e-3;
        assert!((found / expected - 1.0).abs() < 0.05, "{depth} commands in 10 ms: {found} in a second");
    }
}
