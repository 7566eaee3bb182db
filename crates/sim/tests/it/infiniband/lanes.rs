//! Arbitration of lanes and service levels of labs.

use crate::labs;

/// Three hosts read from an array of their own link, each with a service level of its own number.
fn lab(subnet: &str, switch: &str) -> String {
    format!(
        r#"
[run]
duration = "50ms"
warmup = "10ms"
[subnet]
lanes = 3
{subnet}
[infiniband_switch.ib]
{switch}
[host.zero]
[host.one]
srp = {{ level = 1 }}
[host.two]
srp = {{ level = 2 }}
[storage.array]
rate = "10M/s"
srp = {{}}
[[link]]
from = "{{zero,one,two}}"
to = "ib"
rate = "4xEDR"
[[link]]
from = "array"
to = "ib"
rate = "4xQDR"
blocks = 1024
[workload.reads]
hosts = "{{zero,one,two}}"
targets = "array"
size = "64KiB"
depth = 32
"#
    )
}

/// Runs a lab. Returns the throughput of its hosts in MB/s.
fn rates<const N: usize>(text: &str) -> [f64; N] {
    let results = labs::run(&labs::lab(text));
    std::array::from_fn(|host| results.hosts[host].io.throughput_bytes_per_s / 1e6)
}

/// The line of the array: 4x QDR with packets of 2,048 bytes, 3,946 MB/s.
pub(super) const LINE: f64 = 4_000.0 * 2_048.0 / 2_076.0;

fn assert_shares(found: [f64; 3], expected: [f64; 3], tolerance: f64) {
    for (found_one, expected) in found.iter().zip(expected) {
        assert!((found_one / LINE - expected).abs() < tolerance, "{found:?} MB/s, not {expected} of {LINE:.0}");
    }
}

#[test]
fn a_lab_without_tables_shares_the_line_equally() {
    assert_shares(rates(&lab("", "")), [1.0 / 3.0; 3], 0.01);
}

/// Packets of 2,048 bytes have 33 units of 64 bytes, so that weights of 99 and 33 are three packets
/// and one.
#[test]
fn weights_of_three_to_one_share_the_line_three_to_one() {
    let text = lab("arbitration = { low = [\"0:99\", \"1:33\", \"2:0\"] }\nlevels = \"2:1\"", "");
    let [zero, one, two] = rates(&text);
    assert_shares([zero, one + two, 0.0], [0.75, 0.25, 0.0], 0.005);
    // Both hosts of one lane share it.
    assert!((one / two - 1.0).abs() < 0.05, "{one} and {two} MB/s");
}

/// With a limit of 4 KiB, two packets of high priority precede each packet of low priority: the
/// first one does not reach the limit. The short packet of a response takes a turn of low priority
/// as a full one does, after each 32 packets of data.
#[test]
fn high_priority_with_a_limit_leaves_its_share_to_low_priority() {
    let text = |limit| format!("arbitration = {{ high = \"2:255\", low = [\"0:33\", \"1:33\"], limit = {limit} }}");
    let run = |limit: u8| rates(&lab(&text(limit), ""));
    assert_shares(run(1), [1.0 / 6.0, 1.0 / 6.0, 2.0 / 3.0], 0.015);
    assert_shares(run(0), [0.25, 0.25, 0.5], 0.015);
    // 16 KiB: eight packets of 33 units exceed 256 units.
    assert_shares(run(4), [1.0 / 18.0, 1.0 / 18.0, 8.0 / 9.0], 0.015);
}

/// Without a limit, low priority has only what high priority leaves: commands of 16 reads in a
/// window leave next to nothing.
#[test]
fn high_priority_without_a_limit_starves_low_priority() {
    let text = lab("arbitration = { high = \"2:255\", low = [\"0:33\", \"1:33\"], limit = 255 }", "");
    let [zero, one, two] = rates(&text);
    assert!(two > 0.95 * LINE && zero + one < 0.05 * LINE, "{zero}, {one}, {two} MB/s");
}

/// The array and its interface follow [subnet], and the ports of the switch their own table: here
/// the switch is the bottleneck, because two arrays send into one line.
#[test]
fn a_switch_has_tables_and_levels_of_its_own() {
    let text = |switch: &str| {
        format!(
            r#"
[run]
duration = "50ms"
warmup = "10ms"
[subnet]
lanes = 2
[infiniband_switch.edge]
[infiniband_switch.core]
{switch}
[host."server{{1..2}}"]
[host.server2]
srp = {{ level = 1 }}
[storage."array{{1..2}}"]
rate = "10M/s"
srp = {{}}
[[link]]
from = "server{{1..2}}"
to = "edge"
rate = "4xQDR"
[[link]]
from = "array{{1..2}}"
to = "core"
rate = "4xQDR"
[[isl]]
from = "edge"
to = "core"
rate = "4xQDR"
[workload."reads{{1..2}}"]
hosts = "server{{1..2}}"
targets = "array{{1..2}}"
size = "64KiB"
depth = 32
"#
        )
    };
    let run = |switch| rates(&text(switch)).map(|rate| rate / LINE);
    let near = |found: [f64; 2], expected: [f64; 2]| {
        assert!((0..2).all(|at| (found[at] - expected[at]).abs() < 0.01), "{found:?}, not {expected:?}");
    };
    near(run(""), [0.5, 0.5]);
    near(run("arbitration = { low = [\"0:33\", \"1:132\"] }"), [0.2, 0.8]);
    // Both levels on one lane: the inputs take turns.
    near(run("arbitration = { low = [\"0:33\", \"1:132\"] }\nlevels = \"{0..1}:0\""), [0.5, 0.5]);
}

/// IPoIB and SRP of one host have service levels of their own.
#[test]
fn ipoib_and_srp_have_service_levels_of_their_own() {
    let text = |level: u8| {
        format!(
            r#"
[run]
duration = "60ms"
warmup = "20ms"
[subnet]
lanes = 2
arbitration = {{ low = ["0:33", "1:132"] }}
[infiniband_switch.ib]
[host.blocks]
[host.packets]
queue_depth = 64
ipoib = {{ mode = "connected", level = {level} }}
[storage.array]
rate = "10M/s"
srp = {{}}
ipoib = {{ mode = "connected", level = {level} }}
iscsi = {{ portals = "192.0.2.1:3260" }}
[[link]]
from = "{{blocks,packets}}"
to = "ib"
rate = "4xQDR"
[[link]]
from = "array"
to = "ib"
rate = "1xSDR"
[workload.srp]
hosts = "blocks"
targets = "array"
size = "64KiB"
depth = 32
[workload.iscsi]
hosts = "packets"
targets = "array"
size = "64KiB"
depth = 32
"#
        )
    };
    let run = |level| {
        let [blocks, packets] = rates(&text(level));
        packets / (blocks + packets)
    };
    let (same, other) = (run(0), run(1));
    assert!(other > 0.6 && same < 0.2, "{same:.3} of the line on one lane, {other:.3} on two");
}
