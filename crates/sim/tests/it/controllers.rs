//! Storage systems with several controllers: ownership of LUNs, takeover, failback, and the cache.

use crate::labs::{check, lab, run};
use sanloom_api::results::{ControllerResult, EventKind, FindingKind, Results};
use sanloom_sim::parallel::Threads;
use sanloom_sim::run::{Blind, Options, simulate};

/// Time of a command at a controller: the inverse of its rate.
const SERVICE_US: f64 = 100.0;

/// A server with a link to each of two ports of an array, which belong to different controllers.
fn text(array: &str, load: &str, more: &str) -> String {
    format!(
        "[run]\nduration = \"10s\"\nwarmup = \"0s\"\n[switch.sw1]\n[switch.sw2]\n[host.server]\nhbas = 2\n\
         multipath = {{ polling_interval = \"500ms\", fast_io_fail = \"10ms\" }}\n[storage.array]\nports = 2\nluns = 2\nrate = \"10k/s\"\n{array}\n\
         [[link]]\nfrom = \"{{server,array}}:0\"\nto = \"sw1\"\nrate = \"8GFC\"\n\
         [[link]]\nfrom = \"{{server,array}}:1\"\nto = \"sw2\"\nrate = \"8GFC\"\n\
         [workload.io]\nhosts = \"server\"\nsize = \"4KiB\"\n{load}\n{more}"
    )
}

fn results(array: &str, load: &str, more: &str) -> Results {
    run(&lab(&text(array, load, more)))
}

fn controllers(results: &Results) -> [&ControllerResult; 2] {
    let list = &results.storage[0].controllers;
    [&list[0], &list[1]]
}

fn fails(controller: u8, at: &str, until: &str) -> String {
    format!(
        "[[fault]]\nkind = \"controller-failure\"\nstorage = \"array\"\ncontroller = {controller}\nat = \"{at}\"\n{until}\n"
    )
}

const BOTH: &str = "targets = \"array\"\ndepth = 8";

#[test]
fn hosts_use_the_ports_of_the_controller_that_serves_a_lun() {
    let alua = results("controllers = { count = 2 }", BOTH, "");
    for controller in controllers(&alua) {
        assert!(controller.works && controller.luns == 1 && controller.forwarded == 0, "{controller:?}");
        assert!(controller.commands > 10_000 && controller.utilisation > 0.3, "{controller:?}");
    }
    // Each controller brings its own servers.
    let one = results("", BOTH, "");
    assert!(one.storage[0].controllers.is_empty());
    let gain = alua.storage[0].iops / one.storage[0].iops;
    assert!((1.8..=2.0).contains(&gain), "{gain}");
}

#[test]
fn a_command_through_another_controller_is_forwarded_and_served_by_both() {
    let load = "targets = \"array:lun0\"\ndepth = 1\nstart = \"1s\"";
    let text = |access: &str| text(&format!("controllers = {{ count = 2, {access} }}"), load, "");
    // Only the port of the second controller is linked to the server.
    let only_second = |text: String| text.replace("from = \"{server,array}:0\"", "from = \"array:0\"");
    let mean_us = |text: String| {
        let results = run(&lab(&only_second(text)));
        let [first, second] = controllers(&results).map(|of| (of.commands, of.forwarded));
        (results.hosts[0].io.latency.mean_us, first, second)
    };
    let (own_us, _, second) = mean_us(text("access = \"symmetric\""));
    assert_eq!(second.1, 0);
    let (other_us, first, second) = mean_us(text("access = \"alua\", forward = \"50us\""));
    assert!(first.0 == 0 && second.0 > 1_000 && second.1 >= second.0 - 1, "{first:?} {second:?}");
    assert!((other_us - own_us - (SERVICE_US + 50.0)).abs() < 0.1, "{own_us} {other_us}");
}

#[test]
fn another_controller_serves_the_luns_of_a_failed_one_after_the_takeover() {
    let results = results("controllers = { count = 2, takeover = \"700ms\" }", BOTH, &fails(1, "2s", "until = \"6s\""));
    let takeovers = results.events.iter().filter(|event| event.kind == EventKind::Takeover);
    let takeovers: Vec<(f64, &str)> = takeovers.map(|event| (event.at_s, event.what.as_str())).collect();
    // Without failback, LUNs stay where they are when the controller returns.
    assert_eq!(takeovers, [(2.7, "controller 0 of array serves the LUNs of controller 1")]);
    let [first, second] = controllers(&results);
    assert!(first.luns == 2 && second.luns == 0 && first.works && second.works, "{first:?} {second:?}");
    assert_eq!(results.totals.io.ios_failed, 0);
    // All eight requests soon wait for the LUN that moves.
    let stall_s = results.hosts[0].longest_stall_s;
    assert!((0.65..0.7).contains(&stall_s), "{stall_s}");
    // The host learns of the new owner, so nothing is forwarded after the next check of its paths.
    assert!(second.forwarded < 5_000 && second.commands < results.storage[0].ios_completed / 2, "{second:?}");
}

#[test]
fn luns_move_back_to_a_controller_that_has_returned() {
    let array = "controllers = { count = 2, takeover = \"200ms\", failback = \"1s\" }";
    let results = results(array, BOTH, &fails(0, "1s", "until = \"3s\""));
    let takeovers = results.events.iter().filter(|event| event.kind == EventKind::Takeover);
    assert_eq!(takeovers.map(|event| event.at_s).collect::<Vec<_>>(), [1.2, 4.2]);
    let [first, second] = controllers(&results);
    assert!(first.luns == 1 && second.luns == 1, "{first:?} {second:?}");
    assert_eq!((first.takeovers, second.takeovers), (1, 1));
    let unexplained = results.findings.iter().filter(|finding| finding.kind == FindingKind::Stall);
    assert_eq!(unexplained.filter(|finding| finding.detail.contains("no fault")).count(), 0);
}

#[test]
fn symmetric_controllers_serve_all_luns() {
    let load = "targets = \"array:lun0\"\ndepth = 16";
    let rate = |access: &str| results(&format!("controllers = {{ count = 2, {access} }}"), load, "").storage[0].iops;
    let (symmetric, asymmetric) = (rate("access = \"symmetric\""), rate("access = \"alua\""));
    assert!((1.9..=2.01).contains(&(symmetric / asymmetric)), "{symmetric} {asymmetric}");
}

#[test]
fn written_data_without_a_copy_are_lost_with_their_controller() {
    let load = "targets = \"array\"\ndepth = 4\nread_share = 0";
    for (write, is_lost) in [("back", true), ("mirrored", false), ("through", false)] {
        let array = format!(
            "controllers = {{ count = 2, takeover = \"100ms\" }}\ndisk = \"savvio-10k4\"\nlun_size = \"1GiB\"\n\
             controller_cache = {{ size = \"256MiB\", write = \"{write}\" }}"
        );
        let results = results(&array, load, &fails(0, "2s", ""));
        let lost = results.storage[0].data_loss.as_ref().map_or(0, |loss| loss.lost_blocks);
        let is_event = results.events.iter().any(|event| event.kind == EventKind::DataLoss);
        assert_eq!((lost > 0, is_event), (is_lost, is_lost), "{write}: {lost}");
    }
}

#[test]
fn a_mirrored_cache_writes_through_while_its_partner_is_away() {
    let array = "controllers = { count = 2, takeover = \"100ms\", failback = \"100ms\" }\ndisk = \"savvio-10k4\"\n\
                 lun_size = \"1GiB\"\ncontroller_cache = { size = \"1GiB\", write = \"mirrored\" }";
    let load = "targets = \"array\"\ndepth = 4\nread_share = 0";
    let with = |faults: &str| results(array, load, faults).storage[0].iops;
    let (all, half) = (with(""), with(&fails(1, "1s", "")));
    assert!(half < 0.3 * all, "{half} of {all}");
}

#[test]
fn requests_survive_the_failure_of_both_controllers_if_one_returns() {
    let faults = fails(0, "1s", "until = \"3s\"") + &fails(1, "1500ms", "until = \"6s\"");
    let array = "controllers = { count = 2, takeover = \"100ms\", failback = \"500ms\" }";
    let text = text(array, BOTH, &faults)
        .replace("duration = \"10s\"", "duration = \"60s\"\nstop_issuing = \"9s\"")
        .replace("polling_interval = \"500ms\"", "polling_interval = \"500ms\", no_path_retry = 100");
    let finished = simulate(&lab(&text), &Options::default(), &mut Blind);
    check(&finished);
    let results = finished.results;
    assert!(results.totals.io.ios_failed == 0 && results.totals.io.ios_completed > 50_000, "{:?}", results.totals.io);
    assert_eq!(results.totals.io.ios_unfinished, 0);
    let [first, second] = controllers(&results);
    assert!(first.luns == 1 && second.luns == 1, "{first:?} {second:?}");
}

#[test]
fn a_failover_is_the_same_on_two_threads() {
    let array = "controllers = { count = 2, takeover = \"50ms\", failback = \"50ms\" }";
    let text = text(array, BOTH, &fails(1, "100ms", "until = \"300ms\""));
    let lab = lab(&text.replace("duration = \"10s\"", "duration = \"1s\""));
    let with = |threads| simulate(&lab, &Options { threads, ..Options::default() }, &mut Blind);
    let divided = with(Threads { count: 2, always: true, in_turn: true, clock: None });
    assert_eq!(divided.threads.parts, 2, "{:?}", divided.threads);
    let whole = with(Threads::default());
    assert!(divided.results.reproducible_json() == whole.results.reproducible_json());
}
