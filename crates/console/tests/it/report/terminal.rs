//! Tables on a terminal.

use crate::report::fixture;
use sanloom_api::results::{ExpectationResult, FcipLinkResult, Interval, IpRouterResult, Replications, Results};
use sanloom_console::report::terminal::render;

#[test]
fn a_small_lab_at_80_columns() {
    insta::assert_snapshot!(render(&fixture::core_edge(), 80));
}

#[test]
fn a_small_lab_at_120_columns() {
    insta::assert_snapshot!(render(&fixture::core_edge(), 120));
}

#[test]
fn many_hosts_are_shown_in_groups() {
    insta::assert_snapshot!(render(&fixture::fabric(1_000, 64), 80));
}

#[test]
fn no_line_is_wider_than_asked() {
    for width in [60, 72, 80, 100, 120, 200] {
        for results in [fixture::core_edge(), fixture::fabric(1_000, 64)] {
            for line in render(&results, width).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn there_are_no_control_characters_whatever_names_hold() {
    let mut results = fixture::core_edge();
    let evil = "\u{1b}[2J\u{7}name\r\n";
    results.lab.name = evil.into();
    results.lab.description = evil.into();
    results.hosts[0].name = evil.into();
    results.links[0].name = evil.into();
    results.storage[0].name = evil.into();
    results.findings[0].title = evil.into();
    results.findings[0].cycle = vec![evil.into(), evil.into()];
    results.findings[0].victims[0].name = evil.into();
    results.events[0].what = evil.into();
    results.expectations[0].metric = evil.into();
    results.drops.insert(evil.into(), 3);
    let text = render(&results, 80);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn a_warm_up_that_is_too_short_is_named_if_it_matters() {
    let mut results = fixture::core_edge();
    let steady = |results: &Results| render(results, 80).contains("steady from");
    let steps = results.series.total.iops.len();
    let from = (results.lab.warmup_s / results.series.interval_s).round() as usize;
    results.lab.settled_s = Some((from + 2) as f64 * results.series.interval_s);
    results.series.total.latency_mean_us = vec![100.0; steps];
    results.series.total.iops = vec![100.0; steps];
    assert!(!steady(&results), "both parts are equal");
    results.series.total.iops[from..from + 2].fill(0.0);
    let text = render(&results, 80).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("(MSER-5)") && text.contains("--set run.warmup="), "{text}");
    results.lab.settled_s = Some(results.lab.warmup_s);
    assert!(!steady(&results), "the results begin there");
}

#[test]
fn empty_results_are_a_short_text() {
    let text = render(&Results::default(), 80);
    assert!(text.contains("No frame was dropped."), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn packets_that_routers_drop_are_named() {
    let mut results = fixture::core_edge();
    assert!(!render(&results, 80).contains("Routers of IP"));
    results.hosts[0].ip_router = Some(IpRouterResult { forwarded: 900, dropped: 40, utilisation: 0.5 });
    let name = results.hosts[0].name.clone();
    let text = render(&results, 80);
    assert!(text.contains(&format!("Packets dropped by routers: 40 (40 {name})")), "{text}");
    let row = text.lines().skip_while(|line| !line.starts_with("Routers of IP")).nth(2).unwrap_or_default();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), [&name, "900", "40", "50.0", "%"], "{text}");
    assert!(!text.contains("No frame was dropped"), "{text}");
}

#[test]
fn frames_that_ports_discard_behind_a_late_one_are_named() {
    let mut results = fixture::core_edge();
    results.drops.clear();
    for port in &mut results.ports {
        port.sequence_discards = Some(0);
    }
    assert!(render(&results, 200).contains("No frame was dropped."));
    results.ports[1].sequence_discards = Some(1_234);
    results.ports[0].sequence_discards = Some(6);
    let [first, second] = [0, 1].map(|number: usize| results.ports[number].name.clone());
    let text = render(&results, 200);
    let line =
        format!("Data frames discarded behind a late or lost one of their sequence: 1,240 (1,234 {second}, 6 {first})");
    assert!(text.contains(&line), "{text}");
    assert!(!text.contains("No frame was dropped"), "{text}");
}

#[test]
fn books_that_do_not_balance_are_loud() {
    let mut results = fixture::core_edge();
    assert!(!render(&results, 80).contains("BOOKS"));
    results.conservation.frames_delivered -= 1;
    assert!(render(&results, 80).contains("THE BOOKS DO NOT BALANCE"));
}

#[test]
fn many_streams_are_shown_in_groups() {
    let mut results = fixture::core_edge();
    let stream = results.streams[0].clone();
    let streams = (1..=32).map(|number| {
        let mut stream = stream.clone();
        stream.name = format!("reads{number}");
        stream.io.throughput_bytes_per_s *= 1.0 + f64::from(number % 3) / 10.0;
        stream
    });
    results.streams = streams.collect();
    let text = render(&results, 80);
    assert!(text.contains("\nreads{1..32} "), "{text}");
    assert!(text.contains("A row with several streams shows the mean of each"), "{text}");
}

#[test]
fn fcip_links_are_shown_with_their_tcp() {
    let mut results = fixture::core_edge();
    assert!(!render(&results, 200).contains("FCIP links"));
    results.fcip_links = vec![FcipLinkResult {
        name: "wan1".into(),
        state: "up".into(),
        connections: 2,
        frames: 7,
        segments_retransmitted: 1_300,
        retransmission_timeouts: 11,
        fast_recoveries: 12,
        from_window_bytes: 14_480,
        to_window_bytes: 1_048_576,
        round_trip_us: 5_012.5,
    }];
    let text = render(&results, 200);
    let row = text.lines().skip_while(|line| !line.starts_with("FCIP links")).nth(2).unwrap_or_default();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words, ["wan1", "up", "1,300", "11", "12", "2", "5.01", "ms", "14.5/1048.6"], "{text}");
}

#[test]
fn replications_show_their_interval() {
    let mut results = fixture::core_edge();
    results.replications = Some(Replications {
        seeds: vec![1, 2, 3],
        confidence: 0.95,
        metrics: [("totals.throughput_bytes_per_s".to_owned(), Interval::of(&[6.3e8, 6.4e8, 6.5e8]))].into(),
        ..Replications::default()
    });
    let text = render(&results, 80);
    assert!(text.contains("3 seeds"), "{text}");
    assert!(render(&results, 200).contains("all but the table of several seeds is of this one"));
    results.expectations = vec![ExpectationResult { metric: "totals.iops".into(), ok: true, ..Default::default() }];
    assert!(render(&results, 80).contains("Expectations: 1 of 1 hold with seed"), "{text}");
    assert!(text.contains("640") && text.contains("± 24.8") && text.contains("MB/s"), "{text}");
}
