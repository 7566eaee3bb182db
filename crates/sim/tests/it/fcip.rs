//! FCIP: links between switches over TCP of the Ethernet plane.

use crate::captured::{self, Plane};
use crate::labs;
use sanloom_api::results::Results;
use sanloom_fc::san::Lab;
use sanloom_sim::capture::Window;
use sanloom_sim::net::Observed;
use sanloom_sim::net::ethernet::ObservedKind;
use sanloom_sim::parallel::Threads;
use sanloom_sim::run::{Observer, Options, simulate};
use sanloom_sim::world::World;
use sanloom_test_support::{needs, tshark};
use std::sync::Arc;

/// A host at the near site and a disk at the far one. `km` is the length of the line between them,
/// `fcip` are further keys of the link, and `more` is the workload.
fn lab(km: u32, fcip: &str, run: &str, more: &str) -> Arc<Lab> {
    labs::lab(&text(km, fcip, run, more))
}

pub(crate) fn text(km: u32, fcip: &str, run: &str, more: &str) -> String {
    format!(
        r#"
[run]
{run}
[switch."{{near,far}}"]
[host.server]
queue_depth = 128
command_timeout = "5s"
retries = 100
[storage.disk]
rate = "100k/s"
[[link]]
from = "server"
to = "near"
[[link]]
from = "disk"
to = "far"
[[link]]
name = "wan"
from = "near"
to = "far"
rate = "1GbE"
length = "{km}km"
[[isl]]
name = "tunnel"
from = "near"
to = "far"
fcip = {{ keep_alive = "200ms" {fcip} }}
[workload.load]
hosts = "server"
targets = "disk"
{more}
"#
    )
}

const READS: &str = "size = \"256KiB\"\ndepth = 64\nread_share = 1.0";
const FEW: &str = "size = \"64KiB\"\ndepth = 4\nread_share = 0.5";
const LONG: &str = "duration = \"2s\"\nwarmup = \"1s\"";
const SHORT: &str = "duration = \"400ms\"\nwarmup = \"100ms\"";

fn all_lost(results: &Results) -> u64 {
    results.drops.values().sum()
}

/// `check` and the drawing name the same rate, which is that of the slowest link on the way.
#[test]
fn results_have_the_rate_of_the_slowest_link_below_a_virtual_one() {
    let wan = "[[link]]\nname = \"wan\"\nfrom = \"near\"\nto = \"far\"\nrate = \"1GbE\"\nlength = \"1km\"\n";
    let switched = "[ethernet_switch.\"{a,b}\"]\n[[link]]\nfrom = \"near\"\nto = \"a\"\nrate = \"10GbE\"\n\
                    [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1GbE\"\n\
                    [[link]]\nfrom = \"b\"\nto = \"far\"\nrate = \"10GbE\"\n";
    let text = text(1, "", SHORT, READS);
    assert!(text.contains(wan), "{text}");
    let lab = labs::lab(&text.replace(wan, switched));
    let results = labs::run(&lab);
    let tunnel = results.links.iter().find(|link| link.name == "tunnel").unwrap();
    let drawn = sanloom_lab::topology::graph(&lab, &[]);
    let drawn = drawn.links.iter().find(|link| link.name == "tunnel").unwrap();
    assert_eq!((tunnel.rate.as_str(), tunnel.rate_bytes_per_s), ("1GbE", drawn.rate_bytes_per_s));
    assert!(tunnel.utilisation() > 0.85, "{}", tunnel.utilisation());
}

/// 2,048 bytes of data are 2,112 bytes in their encapsulation, and a segment of 1,448 bytes takes
/// 1,538 bytes of the line: 114.1 MB/s. Responses, and segments that end with a frame, take 1 %
/// more.
#[test]
fn a_short_link_reaches_the_share_of_the_line() {
    let results = labs::run(&lab(1, "", SHORT, READS));
    let expected = 125.0 * 1_448.0 / 1_538.0 * 2_048.0 / 2_112.0;
    assert!(
        (labs::mb_per_s(&results) / expected - 1.0).abs() < 0.015,
        "{:.2}, not {expected:.2}",
        labs::mb_per_s(&results)
    );
    assert_eq!((results.totals.io.ios_failed, all_lost(&results)), (0, 0));
}

/// A gateway keeps bytes until their acknowledgement, which waits for a second segment, so that its
/// buffer carries a little less than a window of the same size.
#[test]
fn a_long_link_carries_one_window_in_each_round_trip() {
    for (key, mib, margin) in [("window", 1.0, 0.05), ("window", 2.0, 0.05), ("send_buffer", 1.0, 0.07)] {
        let others = [("window", "16MiB"), ("send_buffer", "16MiB")].into_iter().filter(|(other, _)| *other != key);
        let others: String = others.map(|(other, size)| format!(", {other} = \"{size}\"")).collect();
        let results = labs::run(&lab(5_000, &format!(", {key} = \"{mib}MiB\"{others}"), LONG, READS));
        // 50 ms of light in both directions, and the time of a few segments on the line.
        let expected = mib * 1_048_576.0 / 0.0501 / 1e6 * 2_048.0 / 2_112.0;
        let found = labs::mb_per_s(&results);
        assert!((found / expected - 1.0).abs() < margin, "{key} of {mib} MiB: {found:.2}, not {expected:.2}");
        assert_eq!((results.totals.io.ios_failed, all_lost(&results)), (0, 0));
    }
}

#[test]
fn a_window_of_the_bandwidth_delay_product_fills_a_long_link() {
    let results = labs::run(&lab(5_000, ", window = \"8MiB\", send_buffer = \"8MiB\"", LONG, READS));
    assert!((110.0..115.0).contains(&labs::mb_per_s(&results)), "{:.2} MB/s", labs::mb_per_s(&results));
}

/// The disk answers faster than the line: TCP holds back the gateway, and the gateway the disk.
#[test]
fn a_slow_line_holds_back_the_fabric_and_loses_nothing() {
    let results = labs::run(&lab(100, ", window = \"64KiB\", send_buffer = \"64KiB\"", SHORT, READS));
    assert!(labs::mb_per_s(&results) < 70.0, "{:.2} MB/s", labs::mb_per_s(&results));
    assert_eq!((results.totals.io.ios_failed, all_lost(&results)), (0, 0));
}

#[test]
fn loss_on_the_way_costs_throughput_and_no_frame() {
    let fault = "[[fault]]\nkind = \"frame-loss\"\nlink = \"wan\"\nat = \"0s\"\nprobability = 0.001";
    let window = ", window = \"8MiB\", send_buffer = \"8MiB\"";
    let whole = labs::run(&lab(500, window, LONG, READS));
    let lossy = labs::run(&lab(500, window, LONG, &format!("{READS}\n{fault}")));
    assert!(
        labs::mb_per_s(&lossy) < 0.7 * labs::mb_per_s(&whole),
        "{:.1} and {:.1} MB/s",
        labs::mb_per_s(&lossy),
        labs::mb_per_s(&whole)
    );
    assert!(labs::mb_per_s(&lossy) > 1.0, "{:.1} MB/s", labs::mb_per_s(&lossy));
    assert_eq!(all_lost(&lossy), 0, "TCP has sent again what was lost");
    assert_eq!(lossy.totals.io.ios_failed, 0);
}

/// Loss in the direction of the data: each lost segment is sent again, and 500 km take 5 ms in both
/// directions. Counters begin at the end of the warm-up, after 1 s, and include ended connections.
#[test]
fn results_have_the_counters_of_tcp_of_each_link() {
    let run = |more: &str| {
        let loss = "[[fault]]\nkind = \"frame-loss\"\nlink = \"wan\"\ndirection = \"backward\"\nprobability = 0.002\n";
        let window = ", window = \"8MiB\", send_buffer = \"8MiB\"";
        let results = labs::run(&lab(500, window, LONG, &format!("{READS}\n{loss}{more}")));
        assert_eq!(results.fcip_links.len(), 1);
        let lost = results.ethernet_links[0].backward.drops.get("frame_loss").copied().unwrap_or(0);
        let tunnel = results.links.iter().find(|link| link.name == "tunnel").expect("the link");
        (results.fcip_links[0].clone(), lost, tunnel.forward.frames + tunnel.backward.frames)
    };
    let (link, lost, frames) = run("at = \"0s\"");
    assert_eq!((link.name.as_str(), link.state.as_str(), link.connections, link.frames), ("tunnel", "up", 0, frames));
    assert!(lost > 3, "{lost} segments lost");
    assert!((lost - 1..=2 * lost).contains(&link.segments_retransmitted), "{lost} segments lost: {link:?}");
    let reductions = link.fast_recoveries + link.retransmission_timeouts;
    assert!((1..=link.segments_retransmitted).contains(&reductions), "{link:?}");
    assert!((5_000.0..8_000.0).contains(&link.round_trip_us), "{link:?}");
    assert!(link.from_window_bytes > 1_448 && link.to_window_bytes > 1_448, "{link:?}");

    let (link, lost, _) = run("at = \"0s\"\nuntil = \"800ms\"");
    let counted = [link.segments_retransmitted, link.retransmission_timeouts, link.fast_recoveries, lost];
    assert_eq!(counted, [0; 4], "{link:?}");

    let down = "[[fault]]\nkind = \"link-down\"\nlink = \"wan\"\nat = \"1800ms\"\nuntil = \"1850ms\"\n";
    let (link, lost, _) = run(&format!("at = \"0s\"\nuntil = \"1700ms\"\n{down}"));
    // One follows the end of the first at once, and the next one when the line is whole.
    assert!(link.connections == 2 && link.state == "up", "{link:?}");
    assert!(lost > 3 && link.segments_retransmitted >= lost - 1, "{lost} segments lost: {link:?}");
}

#[test]
fn a_link_whose_line_fails_comes_back_and_all_requests_end() {
    let faults = "[[fault]]\nkind = \"link-down\"\nlink = \"wan\"\nat = \"1s\"\n[[fault]]\nkind = \"link-up\"\nlink = \"wan\"\nat = \"1500ms\"";
    let run = "duration = \"12s\"\nwarmup = \"100ms\"";
    let results = labs::run(&lab(50, "", run, &format!("{FEW}\n{faults}")));
    assert_eq!(results.totals.io.ios_failed, 0);
    let tunnel = results.links.iter().find(|link| link.name == "tunnel").expect("the link");
    assert!(tunnel.down_s > 0.4, "{} s", tunnel.down_s);
    assert!(labs::mb_per_s(&results) > 10.0, "{:.1} MB/s", labs::mb_per_s(&results));
}

/// RFC 3821, section 8.1: an FCIP link without keep-alives for long enough is closed, whatever
/// swallows them.
#[test]
fn a_line_that_loses_every_frame_ends_the_link_and_all_requests_end() {
    let loss = "[[fault]]\nkind = \"frame-loss\"\nprobability = 1.0\nlink = \"wan\"\nat = \"1s\"\nuntil = \"2s\"";
    let run = "duration = \"12s\"\nwarmup = \"100ms\"";
    let results = labs::run(&lab(50, "", run, &format!("{FEW}\n{loss}")));
    assert_eq!(results.totals.io.ios_failed, 0);
    let tunnel = results.links.iter().find(|link| link.name == "tunnel").expect("the link");
    // Twice 200 ms without keep-alives, then down until the loss ends.
    assert!((tunnel.down_s - 0.6).abs() < 0.01, "{} s", tunnel.down_s);
    assert!(labs::mb_per_s(&results) > 10.0, "{:.1} MB/s", labs::mb_per_s(&results));
}

/// TCP repeats what is lost, so a small share of loss never ends a link. A large one keeps frames
/// from arriving for twice 200 ms, and the link ends and comes back.
#[test]
fn a_share_of_loss_ends_the_link_only_if_nothing_arrives_for_the_time_of_keep_alives() {
    for (loss, ends) in [(0.01, false), (0.7, true)] {
        let fault = format!(
            "[[fault]]\nkind = \"frame-loss\"\nprobability = {loss}\nlink = \"wan\"\nat = \"1s\"\nuntil = \"4s\""
        );
        let run = "duration = \"15s\"\nwarmup = \"100ms\"";
        let results = labs::run(&lab(50, "", run, &format!("{FEW}\n{fault}")));
        let tunnel = results.links.iter().find(|link| link.name == "tunnel").expect("the link");
        assert_eq!(tunnel.down_s > 0.0, ends, "{loss}: {} s", tunnel.down_s);
        assert!(tunnel.down_s < 3.1, "{loss}: {} s", tunnel.down_s);
        assert_eq!(results.totals.io.ios_failed, 0, "{loss}");
    }
}

/// A handshake over 100 ms of round trip goes on while another cable fails again and again.
#[test]
fn faults_of_another_cable_do_not_hold_up_a_connection() {
    let flapping = (0..40).map(|turn| {
        let at_ms = 1_000 + 150 * turn;
        format!("[[fault]]\nkind = \"link-down\"\nlink = \"other-lan\"\nat = \"{at_ms}ms\"\nfor = \"75ms\"\n")
    });
    let broken = "[[fault]]\nkind = \"link-down\"\nlink = \"wan\"\nat = \"1s\"\nfor = \"100ms\"\n";
    let other = "[ethernet_switch.lan]\n[host.other]\n[[link]]\nname = \"other-lan\"\nfrom = \"other\"\nto = \"lan\"\n\
        rate = \"1GbE\"\n";
    let run = "duration = \"7s\"\nwarmup = \"100ms\"";
    let more = format!("{FEW}\n{other}{broken}{}", flapping.collect::<String>());
    let lab = labs::lab(&text(10_000, "", run, &more).replace("keep_alive = \"200ms\"", "keep_alive = \"1s\""));
    let results = labs::run(&lab);
    let tunnel = results.links.iter().find(|link| link.name == "tunnel").expect("the link");
    assert!(tunnel.down_s > 0.1 && tunnel.down_s < 1.0, "{} s", tunnel.down_s);
}

/// Frames on the lines of the first Ethernet link, by sender, with their times in ps.
#[derive(Default)]
struct OnWan([Vec<u64>; 2]);

impl Observer for OnWan {
    fn observed(&mut self, world: &World, _: &[Observed]) {
        for item in world.net.ethernet.observed() {
            if matches!(item.kind, ObservedKind::Frame { .. }) && item.line < 2 {
                self.0[item.line as usize].push(item.at_ps - world.start_ps.min(item.at_ps));
            }
        }
    }
}

/// A switch that stops sends nothing, not even the end of its connection. Its peer ends the link
/// after twice 200 ms, and the link comes back with the switch; it comes back at once if the switch
/// was off for less time.
#[test]
fn the_peer_of_a_stopped_switch_notices_by_keep_alives_and_the_link_returns_with_the_switch() {
    for (switch, side) in [("near", 0), ("far", 1)] {
        for (lasting_ms, down_s) in [(1_000, 0.6), (100, 0.0)] {
            let fault = format!(
                "[[fault]]\nkind = \"switch-reset\"\nswitch = \"{switch}\"\nat = \"1s\"\nfor = \"{lasting_ms}ms\""
            );
            let run = "duration = \"15s\"\nwarmup = \"0s\"";
            let lab = lab(50, "", run, &format!("{FEW}\n{fault}"));
            let mut seen = OnWan::default();
            let finished = simulate(&lab, &Options { watch_ethernet: vec![0], ..Options::default() }, &mut seen);
            labs::check(&finished);
            let case = format!("{switch}, {lasting_ms} ms");
            let results = &finished.results;
            let tunnel = results.links.iter().find(|link| link.name == "tunnel").expect("the link");
            assert!((tunnel.down_s - down_s).abs() < 0.02, "{case}: {} s", tunnel.down_s);
            assert!(tunnel.down_s > 0.0, "{case}");
            // A frame on the line when the switch stops still leaves.
            let ms = 1_000_000_000_u64;
            let off = 1_001 * ms..(1_000 + lasting_ms) * ms;
            let while_off = |sent: &[u64]| sent.iter().filter(|at| off.contains(*at)).count();
            assert_eq!(while_off(&seen.0[side]), 0, "{case}");
            let last = seen.0[side].iter().max().copied().unwrap_or_default();
            assert!(last > off.end, "{case}: the link carries frames again");
            if side == 1 {
                // Retransmissions and LKAs of the other end.
                assert!(while_off(&seen.0[0]) > 0, "{case}");
            }
            assert_eq!(results.totals.io.ios_failed, 0, "{case}");
        }
    }
}

/// A receiver takes a frame each 300 ms, so that its receive buffers are full for longer than twice
/// 200 ms. Its TCP closes the window and answers probes, which shows that it is alive.
#[test]
fn a_slow_receiver_does_not_end_the_link() {
    let slow = "[[fault]]\nkind = \"slow-receiver\"\nport = \"disk\"\ndelay = \"300ms\"\nat = \"1s\"\nfor = \"10s\"";
    let writes = "size = \"256KiB\"\ndepth = 64\nread_share = 0.0";
    let run = "duration = \"15s\"\nwarmup = \"0s\"";
    let text = text(50, ", window = \"256KiB\", send_buffer = \"256KiB\"", run, &format!("{writes}\n{slow}"));
    let text = text.replace("command_timeout = \"5s\"", "command_timeout = \"100s\"");
    let results = labs::run(&labs::lab(&text));
    let tunnel = results.links.iter().find(|link| link.name == "tunnel").expect("the link");
    assert!(tunnel.down_s == 0.0, "{} s", tunnel.down_s);
}

/// An idle link sends an LKA after each 200 ms in which it has received nothing, and its peer
/// accepts it. HLOs of the switches are rarer (20 s).
#[needs("tshark")]
#[test]
fn an_idle_link_sends_keep_alives_and_stays_up() {
    let run = "duration = \"3s\"\nwarmup = \"0s\"";
    let lab = lab(10, "", run, "size = \"4KiB\"\ndepth = 1\nstart = \"2900ms\"");
    let number = lab.ethernet_links.iter().position(|link| link.name == "wan").expect("the line") as u16;
    let written = captured::written(&lab, &Plane::Ethernet, number, Threads::default());
    let tunnel = written.results.links.iter().find(|link| link.name == "tunnel").expect("the link");
    assert!(tunnel.down_s == 0.0, "{} s", tunnel.down_s);
    let lines = |text: &str| written.timeline.lines().filter(|line| line.contains(text)).count();
    let (asked, accepted) = (lines("FCIP LKA "), lines("FCIP LKA: LS_ACC "));
    // An LKA or its accept begins the time of both ends again.
    assert!((12..=32).contains(&asked) && asked == accepted, "{asked} LKAs, {accepted} accepts");
    // Wireshark joins the data of all reads with the same OX_ID, so it may not put them together.
    let options = ["-o", "fc.reassemble:FALSE", "-d", "tcp.port==3225,fcip", "-Y"];
    let read = |filter: &str| tshark::read_bytes(&written.capture, &[&options[..], &[filter]].concat()).lines().count();
    // Between the fabric controllers there are no other link services.
    let of_kind = |r_ctl: u8| read(&format!("fcels && fc.s_id == ff.ff.fd && fc.r_ctl == {r_ctl:#x}"));
    assert_eq!([read("_ws.malformed"), of_kind(0x22), of_kind(0x23)], [0, asked, accepted]);
}

#[test]
fn the_same_lab_gives_the_same_results() {
    let run = || labs::run(&lab(50, "", SHORT, FEW));
    assert_eq!(format!("{:?}", run().totals), format!("{:?}", run().totals));
}

#[needs("tshark")]
#[test]
fn tshark_reads_a_captured_link_as_fcip() {
    let run = "duration = \"20ms\"\nwarmup = \"0s\"";
    let lab = lab(10, "", run, "size = \"64KiB\"\ndepth = 1\nread_share = 0.5");
    let (out, _) = captured::capture(&lab, &Plane::Ethernet, 0, Window::default());
    let read = |more: &[&str]| tshark::read_bytes(&out, &[&["-d", "tcp.port==3225,fcip"], more].concat());
    assert!(read(&["-Y", "_ws.malformed"]).is_empty());
    assert!(read(&["-o", "tcp.check_checksum:TRUE", "-Y", "tcp.checksum.status == 0"]).is_empty());
    assert_eq!(read(&["-Y", "fcip.pflags.sf == 1"]).lines().count(), 2);
    for filter in ["swils.opcode == 0x10", "swils.opcode == 0x14", "fcp"] {
        assert!(!read(&["-Y", &format!("fcip && {filter}")]).is_empty(), "no {filter}");
    }
}
