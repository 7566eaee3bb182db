//! Events of gateways to Fibre Channel: a host is lost, the paths behind are lost, and the storage
//! behind changes.

use crate::labs;
use sanloom_api::results::{GatewayResult, Results};
use sanloom_sim::net::ObservedKind;
use sanloom_sim::parallel::Threads;
use sanloom_sim::run::{Blind, Options, simulate};
use sanloom_wire::bls::Bls;
use sanloom_wire::els::Els;
use sanloom_wire::{FcId, Message};

/// Two hosts behind a gateway, on Ethernet or on InfiniBand, and an array on a switch of Fibre
/// Channel.
fn lab(is_srp: bool, gateway: &str, hosts: &str, run: &str, faults: &str) -> String {
    let (switch, front, rate) = match is_srp {
        true => ("[infiniband_switch.front]", "srp = {}", "4xSDR"),
        false => ("[ethernet_switch.front]", "iscsi = {}", "10GbE"),
    };
    format!(
        r#"
[run]
warmup = "0s"
{run}
[switch.sw]
{switch}
[host."server{{1..2}}"]
{hosts}
[host.port]
queue_depth = 64
[host.other]
[storage.array]
rate = "5k/s"
[storage.router]
{front}
gateway = {{ host = "port", target_port = "array", {gateway} }}
[[link]]
name = "behind"
from = "port"
to = "sw"
rate = "4GFC"
[[link]]
name = "array"
from = "array"
to = "sw"
rate = "4GFC"
[[link]]
name = "other"
from = "other"
to = "sw"
rate = "4GFC"
[[link]]
name = "front{{1..3}}"
from = "{{server1,server2,router}}"
to = "front"
rate = "{rate}"
[workload.w]
hosts = "server{{1..2}}"
targets = "router"
arrivals = "constant 200/s"
size = "64KiB"
read_share = 0.5
{faults}
"#
    )
}

const TRANSPARENT: &str = "mode = \"transparent\", hosts = \"server{1..2}\", forwarding = \"frame\"";
const PROXY: &str = "forwarding = \"frame\"";
const PATIENT: &str = "multipath = { no_path_retry = 60 }";

/// Hosts whose commands wait at the array for seconds.
fn queueing(text: &str) -> String {
    text.replace("arrivals = \"constant 200/s\"", "depth = 8")
        .replace("rate = \"5k/s\"", "rate = \"1/s\"")
        .replace("size = \"64KiB\"", "size = \"4KiB\"")
        .replace("[host.port]\n", "[host.port]\ncommand_timeout = \"100s\"\n")
}

fn down(link: &str, at: &str, lasting: &str) -> String {
    format!("[[fault]]\nkind = \"link-down\"\nlink = \"{link}\"\nat = \"{at}\"\nfor = \"{lasting}\"\n")
}

/// A message on the link of the gateway or of the other host.
#[derive(Clone, PartialEq, Debug)]
struct Seen {
    at_ms: u64,
    kind: &'static str,
    s_id: FcId,
    d_id: FcId,
}

/// Runs a lab. Returns the messages that leave the gateway, the RSCNs to the other host, and the
/// results.
fn watched(text: &str) -> (Vec<Seen>, Vec<Seen>, Results) {
    let lab = labs::lab(text);
    let [own, other] = ["behind", "other"].map(|name| u32::from(labs::link(&lab, name)));
    let (mut sent, mut notified) = (Vec::new(), Vec::new());
    let finished = labs::watched(&lab, &mut |world, observed| {
        for record in observed {
            let ObservedKind::Frame { start_ps, message: Some(message), .. } = &record.kind else { continue };
            let (header, bytes, _) = &**message;
            // Logins before the workload are not of interest.
            if *start_ps < world.start_ps || world.start_ps == 0 {
                continue;
            }
            let kind = match Message::parse(header, bytes, None) {
                Ok(Message::Bls(Bls::Abts)) => "ABTS",
                Ok(Message::Els(els)) => match *els {
                    Els::Logo(_) => "LOGO",
                    Els::Fdisc(_) => "FDISC",
                    Els::Plogi(_) => "PLOGI",
                    Els::Rrq(_) => "RRQ",
                    Els::Rscn(_) => "RSCN",
                    _ => continue,
                },
                _ => continue,
            };
            let at_ms = (start_ps - world.start_ps) / 1_000_000_000;
            let seen = Seen { at_ms, kind, s_id: header.s_id, d_id: header.d_id };
            if record.lane == 2 * own {
                sent.push(seen);
            } else if record.lane == 2 * other + 1 && seen.kind == "RSCN" {
                notified.push(seen);
            }
        }
    });
    labs::check(&finished);
    (sent, notified, finished.results)
}

fn gateway(results: &Results) -> GatewayResult {
    results.storage.iter().find_map(|storage| storage.gateway.clone()).expect("there is a gateway")
}

fn of<'s>(seen: &'s [Seen], kind: &str) -> Vec<&'s Seen> {
    seen.iter().filter(|seen| seen.kind == kind).collect()
}

/// Hosts with requests in flight at any time, and an array that is slow enough for it.
fn busy(text: &str) -> String {
    text.replace("arrivals = \"constant 200/s\"", "depth = 8").replace("rate = \"5k/s\"", "rate = \"200/s\"")
}

/// Hosts with large writes on slow lines: `server1` is in the middle of one 1,010 ms after the
/// start. The commands of the gateway outlast the time after which a silent host is lost.
fn writing(text: &str) -> String {
    text.replace("arrivals = \"constant 200/s\"", "arrivals = \"constant 10/s\"")
        .replace("size = \"64KiB\"\nread_share = 0.5", "size = \"1MiB\"\nread_share = 0.0")
        .replace("10GbE", "1GbE")
        .replace("4xSDR", "1xSDR")
        .replace("[host.port]\n", "[host.port]\ncommand_timeout = \"100s\"\n")
}

/// The host `server1` is cut off with exchanges in flight, while the other one goes on. Its
/// exchanges end at the array with ABTS, and in transparent mode its N_Port logs out, of which
/// others learn by RSCN. A silent host of iSCSI is lost 60 s after its last PDU.
#[test]
fn a_lost_host_is_aborted_at_the_array_and_in_transparent_mode_logged_out_until_it_returns() {
    for (is_srp, lost, back) in [(false, "70s", 71_000), (true, "20s", 21_000)] {
        for mode in [TRANSPARENT, PROXY] {
            let run = "duration = \"110s\"\nstop_issuing = \"90s\"";
            let text = lab(is_srp, mode, PATIENT, run, &down("front1", "1010ms", lost));
            let text = if is_srp { queueing(&text) } else { writing(&text) };
            let (sent, notified, results) = watched(&text);
            let case = format!("SRP {is_srp}, {mode}: {sent:?}");
            assert_eq!(results.conservation.commands_failed, 0, "{case}");
            assert_eq!(results.conservation.commands_in_flight, 0, "{case}");
            let aborts = of(&sent, "ABTS");
            let first = aborts.first().unwrap_or_else(|| panic!("no ABTS: {case}"));
            assert!(first.at_ms > 1_000 && first.at_ms < back, "{case}");
            let is_transparent = mode == TRANSPARENT;
            assert_eq!(gateway(&results).logouts, u64::from(is_transparent), "{case}");
            if !is_transparent {
                assert_eq!((of(&sent, "LOGO"), of(&sent, "FDISC")), (vec![], vec![]), "{case}");
                // RRQ follows R_A_TOV after the BA_ACC. After 60 s, the array has given up the
                // write itself, so that BA_RJT answers the ABTS and nothing is left to reinstate.
                let reinstated = if is_srp { aborts.len() } else { 0 };
                assert_eq!(of(&sent, "RRQ").len(), reinstated, "{case}");
                assert_eq!(notified, [], "{case}");
                continue;
            }
            let lost = first.s_id;
            assert!(aborts.iter().all(|abort| abort.s_id == lost), "{case}");
            let array = first.d_id;
            let logouts = of(&sent, "LOGO");
            let ends: Vec<(FcId, FcId)> = logouts.iter().map(|logout| (logout.s_id, logout.d_id)).collect();
            assert_eq!(ends, [(lost, array), (lost, FcId::F_PORT)], "{case}");
            let last = aborts.iter().map(|abort| abort.at_ms).max().unwrap_or_default();
            assert!(logouts.iter().all(|logout| logout.at_ms >= last && logout.at_ms < back), "{case}");
            let again = of(&sent, "FDISC");
            assert!(again.len() == 1 && again[0].at_ms >= back, "{case}");
            let is_login = |login: &&Seen| login.d_id == array && login.at_ms >= again[0].at_ms;
            assert_eq!(of(&sent, "PLOGI").into_iter().filter(is_login).count(), 1, "{case}");
            // Once for the logout, and once for the login.
            assert_eq!(notified.len(), 2, "{case} {notified:?}");
        }
    }
}

/// Commands in flight on the last path end with ABORTED COMMAND when it is lost, and further ones
/// with BUSY; when it has returned, each host has one unit attention of each LUN. Hosts repeat all
/// of them. The cable of the gateway and that of the array have the same effect.
#[test]
fn a_lost_path_is_aborted_command_then_busy_and_one_unit_attention_for_each_nexus_on_its_return() {
    let run = "duration = \"20s\"\nstop_issuing = \"5s\"";
    for is_srp in [false, true] {
        for mode in [TRANSPARENT, PROXY] {
            let faults = format!("{}{}", down("behind", "1s", "300ms"), down("array", "2s", "300ms"));
            let text = busy(&lab(is_srp, mode, "retries = 20", run, &faults));
            let text = text.replace("rate = \"200/s\"", "rate = \"200/s\"\nluns = 2");
            let text = text.replace("targets = \"router\"", "targets = \"router:lun{0..1}\"");
            let (_, _, results) = watched(&text);
            let found = gateway(&results);
            let case = format!("SRP {is_srp}, {mode}: {found:?} {:?}", results.conservation);
            assert_eq!(results.conservation.commands_failed, 0, "{case}");
            assert_eq!(results.conservation.commands_in_flight, 0, "{case}");
            // 16 commands are in flight, some of them on their way to or from the gateway.
            assert!((16..=32).contains(&found.aborted), "{case}");
            // Two hosts, two LUNs and two losses.
            assert_eq!(found.unit_attentions, 8, "{case}");
            assert_eq!((found.logouts, found.ended_sessions), (0, 0), "{case}");
        }
    }
}

/// A gateway whose paths do not return ends the sessions of its hosts, so that hosts with another
/// gateway use that one. When a path has returned, the gateway admits them again.
#[test]
fn sessions_end_when_no_path_returns_in_time_and_begin_again_with_a_path() {
    let run = "duration = \"60s\"\nstop_issuing = \"30s\"";
    for is_srp in [false, true] {
        for mode in [TRANSPARENT, PROXY] {
            let keys = format!("{mode}, path_timeout = \"2s\"");
            let text = lab(is_srp, &keys, PATIENT, run, &down("array", "1s", "10s"));
            let (sent, _, results) = watched(&text);
            let found = gateway(&results);
            let case = format!("SRP {is_srp}, {mode}: {found:?} {:?} {sent:?}", results.conservation);
            assert_eq!(results.conservation.commands_failed, 0, "{case}");
            assert_eq!(results.conservation.commands_in_flight, 0, "{case}");
            assert_eq!(found.ended_sessions, 2, "{case}");
            // The N_Ports of the hosts log out, and in again when a login of their host is refused,
            // because only they see the return of the array.
            let own = if mode == TRANSPARENT { 2 } else { 0 };
            let logouts = of(&sent, "LOGO");
            assert_eq!((found.logouts, logouts.len()), (own, own as usize), "{case}");
            assert!(logouts.iter().all(|seen| seen.d_id == FcId::F_PORT && (3_000..3_500).contains(&seen.at_ms)));
            let logins = of(&sent, "FDISC");
            assert_eq!(logins.len(), own as usize, "{case}");
            assert!(logins.iter().all(|seen| (4_500..6_000).contains(&seen.at_ms)), "{case}");
            // The nexus before was lost, which the next one of each host learns.
            assert_eq!(found.unit_attentions, 2, "{case}");
            for host in results.hosts.iter().filter(|host| host.name.starts_with("server")) {
                let outage_s = host.longest_stall_s;
                assert!((10.0..14.0).contains(&outage_s), "{outage_s} s, {case}");
            }
        }
    }
}

/// A login takes several round trips on a long line. No session begins if the path behind is given
/// up meanwhile, whatever part of the login is in progress.
#[test]
fn a_login_in_progress_when_the_last_path_is_given_up_is_refused() {
    let run = "duration = \"10s\"\nstop_issuing = \"7s\"";
    for mode in [TRANSPARENT, PROXY] {
        let mut ended = Vec::new();
        for lost_ms in (5_000..6_700).step_by(50) {
            let lost = format!("[[fault]]\nkind = \"link-down\"\nlink = \"array\"\nat = \"{lost_ms}ms\"\n");
            let faults = format!("{}{lost}", down("array", "1s", "3900ms"));
            let text = lab(false, &format!("{mode}, path_timeout = \"100ms\""), PATIENT, run, &faults);
            let text = text.replace("rate = \"10GbE\"", "rate = \"10GbE\"\nlength = \"10000km\"");
            let results = labs::run(&labs::lab(&text));
            let states: Vec<&str> = results.iscsi_sessions.iter().map(|session| session.state.as_str()).collect();
            assert_eq!(states, ["down", "down"], "{mode}, lost after {lost_ms} ms: {:?}", gateway(&results));
            ended.push(gateway(&results).ended_sessions);
        }
        // The first logins arrive after the loss, and the last ones have ended before.
        assert_eq!((ended.first(), ended.last()), (Some(&2), Some(&4)), "{mode}: {ended:?}");
    }
}

/// A host without a session at the loss or at the return of the path behind receives the unit
/// attention in its next nexus, once.
#[test]
fn a_nexus_that_follows_one_before_the_loss_begins_with_one_unit_attention() {
    let run = "duration = \"150s\"\nstop_issuing = \"100s\"";
    // `server1` is lost for some time, and the path behind for 300 ms within it.
    for (is_srp, lost, at) in [(false, "80s", "75s"), (true, "40s", "35s")] {
        for mode in [TRANSPARENT, PROXY] {
            let faults = format!("{}{}", down("front1", "1010ms", lost), down("array", at, "300ms"));
            let text = lab(is_srp, mode, &format!("{PATIENT}\nretries = 20"), run, &faults);
            let text = if is_srp { queueing(&text) } else { writing(&text) };
            let results = labs::run(&labs::lab(&text));
            let found = gateway(&results);
            let case = format!("SRP {is_srp}, {mode}: {found:?} {:?}", results.conservation);
            assert_eq!(results.conservation.commands_failed, 0, "{case}");
            assert_eq!(results.conservation.commands_in_flight, 0, "{case}");
            assert_eq!(found.unit_attentions, 2, "{case}");
        }
    }
}

#[test]
fn lost_hosts_and_paths_have_the_same_results_on_one_and_on_four_threads() {
    let run = "duration = \"20s\"\nstop_issuing = \"12s\"";
    let faults = format!("{}{}", down("front1", "1010ms", "5s"), down("array", "8s", "300ms"));
    for is_srp in [false, true] {
        let lab = labs::lab(&writing(&lab(is_srp, TRANSPARENT, PATIENT, run, &faults)));
        let results = |count| {
            let threads = Threads { count, always: count > 1, ..Threads::default() };
            simulate(&lab, &Options { threads, ..Options::default() }, &mut Blind).results
        };
        let alone = results(1);
        assert!(gateway(&alone).unit_attentions > 0, "{:?}", gateway(&alone));
        assert_eq!(alone.reproducible_json(), results(4).reproducible_json());
    }
}
