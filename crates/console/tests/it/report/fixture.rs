//! Synthetic results for tests of layouts. All numbers come from formulas; nothing was simulated.

use sanloom_api::graph::{Graph, GraphCable, GraphLink, GraphShape, ShapeKind};
use sanloom_api::results::*;
use std::collections::BTreeMap;

/// Steps of the time series.
pub const STEPS: usize = 200;

/// Eight hosts and eight storage systems behind four edges and a core; one storage port drains
/// slowly for a while.
pub fn core_edge() -> Results {
    let mut results = fabric(8, 4);
    results.lab.name = "synthetic-core-edge".into();
    results.lab.description =
        "Invented numbers that show what a report looks like: eight hosts, eight storage systems, four edge switches \
         and a core. From 0.8 s to 1.4 s storage3 returns its credits late."
            .into();
    results.lab.source = Some(
        "# Invented numbers, for layout only.\n[lab]\nname = \"synthetic-core-edge\"\n\n[[switch]]\nname = \
         \"edge{1..4}\"\nports = 16\n\n[[host]]\nname = \"server{1..8}\"\n"
            .into(),
    );
    results.lab.command = Some("sanloom sim examples/slow-drain.toml --seed 7".into());
    add_events(&mut results);
    results.drops = BTreeMap::from([("link_down".into(), 37), ("hold_time".into(), 4)]);
    results.totals.frames_dropped = 41;
    results.totals.commands_aborted = 9;
    results.totals.commands_retried = 9;
    results.totals.longest_stall_s = 0.0123;
    results.conservation = Conservation {
        frames_sent: 1_000_041,
        frames_delivered: 999_900,
        frames_dropped: 41,
        frames_in_flight: 100,
        commands_issued: 60_016,
        commands_completed: 60_000,
        commands_failed: 0,
        commands_in_flight: 16,
    };
    results.expectations = vec![
        verdict("totals.ios_failed", None, Some(0.0), Some(0.0)),
        verdict("min(hosts.*.throughput_bytes_per_s)", Some(7e7), None, Some(6.2e7)),
        verdict("hosts.server9.iops", Some(1.0), None, None),
    ];
    disturb(&mut results.series);
    results
}

/// Fills the events of [`core_edge`] and their explanation.
fn add_events(results: &mut Results) {
    results.faults = vec![
        FaultEvent {
            at_s: 0.8,
            until_s: Some(1.4),
            what: "storage3 returns each R_RDY 40us late".into(),
            link: Some("storage3-link".into()),
            node: None,
        },
        FaultEvent {
            at_s: 1.7,
            until_s: Some(1.8),
            what: "link isl5 down".into(),
            link: Some("isl5".into()),
            node: None,
        },
    ];
    results.events = vec![
        event(0.8, EventKind::FaultBegins, "storage3 returns each R_RDY 40us late", None),
        event(1.7, EventKind::LinkDown, "link isl5 is down", Some("isl5")),
        event(1.705, EventKind::Rscn, "edge3 tells 4 ports of a change", Some("edge3")),
        event(1.8, EventKind::LinkUp, "link isl5 is up", Some("isl5")),
    ];
    results.findings = vec![Finding {
        kind: FindingKind::SlowDrain,
        title: "storage3 drains slowly and starves 3 neighbours".into(),
        detail: "Frames for storage3:0 waited 71.0 % of the time for credit between 0.8 s and 1.4 s. Frames of others \
                 stood behind them in the buffers of edge3 and core."
            .into(),
        remedy: "Give storage3 its own virtual queue (queueing = \"voq\"), or look for what slows its port.".into(),
        culprit: Some("storage3:0".into()),
        victims: (1..=3)
            .map(|i| Victim {
                name: format!("server{i}"),
                before_bytes_per_s: 80e6,
                during_bytes_per_s: 80e6 * (0.2 + 0.15 * f64::from(i)),
                credit_wait_s: 0.1 * f64::from(i),
            })
            .collect(),
        from_s: Some(0.8),
        until_s: Some(1.4),
        ..Finding::default()
    }];
}

/// Changes the values over time as the events would.
fn disturb(series: &mut Series) {
    for step in 0..STEPS {
        let t = step as f64 * 0.01;
        let slow = (0.8..1.4).contains(&t);
        let down = (1.7..1.8).contains(&t);
        let mut total = 0.0;
        for (i, host) in series.hosts.iter_mut().enumerate() {
            let share = match (slow, i) {
                (true, 0..=2) => 0.35 + 0.15 * i as f64,
                (true, _) => 0.93,
                _ if down => 0.7,
                _ => 1.0,
            };
            let value = 80e6 * share * ripple(step, i);
            host.throughput_bytes_per_s[step] = value;
            host.iops[step] = value / 32768.0;
            host.latency_mean_us[step] = 800.0 / share * ripple(step, i + 5);
            total += value;
        }
        series.total.throughput_bytes_per_s[step] = total;
        series.total.iops[step] = total / 32768.0;
        series.total.latency_mean_us[step] = if slow { 1500.0 } else { 800.0 };
        for (i, link) in series.links.iter_mut().enumerate() {
            let starved = slow && i % 5 == 2;
            link.credit_wait_fraction[step] = if starved { 0.71 } else { 0.02 * (i % 3) as f64 };
            if starved {
                link.utilisation[step] *= 0.4;
            }
        }
    }
}

/// `n` hosts, `n` storage systems, two links for each host, and `edges` switches around a core.
pub fn fabric(n: usize, edges: usize) -> Results {
    let mut results = Results {
        lab: LabInfo {
            name: "synthetic".into(),
            seed: 7,
            duration_s: 2.0,
            warmup_s: 0.2,
            sanloom_version: "0.1.0".into(),
            ..LabInfo::default()
        },
        ..Results::default()
    };
    results.totals.io = io(80.0 * n as f64, 1);
    results.totals.io.iops = 2_441.4 * n as f64;
    results.totals.read_latency = results.totals.io.latency;
    results.totals.latency_histogram = histogram();
    results.engine = Engine {
        frame_hops: 48_000_000,
        events: 50_000_000,
        cpu_s: 4.0,
        wall_s: 4.1,
        frame_hops_per_cpu_s: 12e6,
        rss_bytes: 34 << 20,
    };
    for i in 0..n {
        let wave = 1.0 + 0.03 * (i % 4) as f64;
        results.hosts.push(HostResult {
            name: format!("server{}", i + 1),
            io: io(78.0 * wave, i),
            outstanding: QueueDepth { mean: 2.0, max: 2 },
            waiting: QueueDepth { mean: 30.0, max: 31 },
            cpu_utilisation: 0.11 * wave,
            bus_utilisation: 0.35,
            commands_retried: (i % 3) as u64,
            paths: vec![PathResult {
                name: format!("hba0>storage{}:0", i + 1),
                state: if i == 4 { "failed" } else { "active" }.into(),
                commands: 1000,
                commands_failed: u64::from(i == 4),
                ..PathResult::default()
            }],
            ..HostResult::default()
        });
        results.storage.push(StorageResult {
            name: format!("storage{}", i + 1),
            ios_completed: 5_000,
            throughput_bytes_per_s: 79e6,
            iops: 2_410.0,
            utilisation: 0.45 + 0.05 * (i % 8) as f64,
            queue: QueueDepth { mean: 3.4, max: 16 },
            latency: latency(0.5),
            ..StorageResult::default()
        });
        for (name, kind, from) in [
            (format!("server{}-link", i + 1), LinkKind::Host, format!("server{}:0", i + 1)),
            (format!("storage{}-link", i + 1), LinkKind::Storage, format!("storage{}:0", i + 1)),
        ] {
            let to = format!("edge{}:{}", i % edges + 1, i / edges);
            link(&mut results, name, kind, (from, to), 0.4);
        }
        results.series.hosts.push(HostSeries {
            name: format!("server{}", i + 1),
            throughput_bytes_per_s: (0..STEPS).map(|s| 80e6 * ripple(s, i)).collect(),
            iops: (0..STEPS).map(|s| 2_441.0 * ripple(s, i)).collect(),
            latency_mean_us: (0..STEPS).map(|s| 800.0 * ripple(s, i + 3)).collect(),
        });
    }
    for e in 0..edges {
        for k in 0..2 {
            let ends = (format!("edge{}:{}", e + 1, 14 + k), format!("core:{}", 2 * e + k));
            link(&mut results, format!("isl{}", 2 * e + k + 1), LinkKind::Isl, ends, 0.95);
        }
        results.switches.push(SwitchResult {
            name: format!("edge{}", e + 1),
            domain: e as u8 + 1,
            frames_forwarded: 250_000,
            buffers_used_mean: 5.5,
            waiting: latency(0.02),
            logins: 4,
            name_server_requests: 12,
            ..SwitchResult::default()
        });
    }
    results.streams.push(StreamResult {
        name: "reads".into(),
        io: results.totals.io.clone(),
        ..StreamResult::default()
    });
    results.series.interval_s = 0.01;
    results.series.steps = STEPS as u64;
    results.series.total = TotalSeries {
        throughput_bytes_per_s: vec![80e6 * n as f64; STEPS],
        iops: vec![2_441.0 * n as f64; STEPS],
        latency_mean_us: vec![800.0; STEPS],
        frames_dropped: vec![0; STEPS],
    };
    results
}

fn link(results: &mut Results, name: String, kind: LinkKind, ends: (String, String), load: f64) {
    let i = results.links.len();
    let direction = |from: &str, to: &str, load: f64| LinkDirection {
        from: from.into(),
        to: to.into(),
        frames: 80_000,
        bytes: 160_000_000,
        data_bytes: 150_000_000,
        throughput_bytes_per_s: load * 206e6,
        utilisation: load,
        idle_words: 1_000_000,
        r_rdys: 79_990,
        credit_wait_s: 0.01 * (i % 7) as f64,
        credit_wait_fraction: 0.05 * (i % 7) as f64,
        bb_credit: 4,
        credits_min: (i % 3) as u64,
        ..LinkDirection::default()
    };
    for (side, load, from, to) in [("forward", load * 0.1, &ends.0, &ends.1), ("backward", load, &ends.1, &ends.0)] {
        results.series.links.push(LinkSeries {
            name: format!("{name}.{side}"),
            from: from.clone(),
            to: to.clone(),
            utilisation: (0..STEPS).map(|s| (load * ripple(s, i)).min(1.0)).collect(),
            credit_wait_fraction: vec![0.01 * (i % 7) as f64; STEPS],
        });
    }
    results.ports.push(PortResult {
        name: ends.1.clone(),
        node: ends.1.split(':').next().unwrap_or_default().into(),
        kind: if kind == LinkKind::Isl { PortKind::EPort } else { PortKind::FPort },
        link: name.clone(),
        frames_sent: 80_000,
        frames_received: 8_000,
        buffers: 4,
        buffers_used_mean: 1.3,
        buffers_used_max: 4,
        waiting: latency(0.01),
        zero_credit_s: 0.02 * (i % 7) as f64,
        zero_credit_fraction: 0.01 * (i % 7) as f64,
        ..PortResult::default()
    });
    results.links.push(LinkResult {
        name,
        kind,
        rate: "2GFC".into(),
        rate_bytes_per_s: 212.5e6,
        forward: direction(&ends.0, &ends.1, load * 0.1),
        backward: direction(&ends.1, &ends.0, load),
        ..LinkResult::default()
    });
}

fn io(mb_per_s: f64, i: usize) -> IoStats {
    IoStats {
        ios_offered: 5_200,
        ios_completed: 5_000,
        reads: 5_000,
        offered_bytes: 5_200 * 32_768,
        read_bytes: 5_000 * 32_768,
        offered_bytes_per_s: mb_per_s * 1.04e6,
        offered_iops: mb_per_s * 31.7,
        throughput_bytes_per_s: mb_per_s * 1e6,
        iops: mb_per_s * 30.5,
        latency: latency(1.0 + 0.1 * i as f64),
        command_latency: latency(0.6),
        ..IoStats::default()
    }
}

fn latency(factor: f64) -> Latency {
    Latency {
        count: 60_000,
        mean_us: 800.0 * factor,
        p50_us: 740.0 * factor,
        p95_us: 1_400.0 * factor,
        p99_us: 2_900.0 * factor,
        p99_9_us: 7_500.0 * factor,
        max_us: 12_300.0 * factor,
    }
}

fn histogram() -> Vec<HistogramBucket> {
    (0..300)
        .map(|i| {
            let x = f64::from(i) / 50.0 - 1.5;
            let bell = (-x * x).exp() + 0.08 * (-(x - 2.2) * (x - 2.2) * 2.0).exp();
            HistogramBucket(300.0 * 1.0125f64.powi(i), (10_000.0 * bell) as u64)
        })
        .filter(|bucket| bucket.1 > 0)
        .collect()
}

/// A wave between 0.9 and 1.1 that looks different for each `i`.
fn ripple(step: usize, i: usize) -> f64 {
    1.0 + 0.06 * ((step * (i + 3)) as f64 * 0.21).sin() + 0.04 * ((step + 17 * i) as f64 * 1.7).sin()
}

fn event(at_s: f64, kind: EventKind, what: &str, subject: Option<&str>) -> Event {
    Event { at_s, kind, what: what.into(), subject: subject.map(str::to_owned) }
}

fn verdict(metric: &str, min: Option<f64>, max: Option<f64>, value: Option<f64>) -> ExpectationResult {
    ExpectationResult {
        metric: metric.into(),
        min,
        max,
        value,
        ok: value.is_some_and(|v| min.is_none_or(|m| v >= m) && max.is_none_or(|m| v <= m)),
        reason: None,
    }
}

/// A drawing.
pub const SVG: &str = "<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n";

/// The layout of three switches.
pub fn graph() -> Graph {
    let shape = |label: &str, x| GraphShape {
        label: label.to_owned(),
        kind: ShapeKind::Switch,
        x,
        y: 100.0,
        width: 90.0,
        height: 40.0,
        ..GraphShape::default()
    };
    let link = |name: &str, ends: [&str; 2]| GraphLink {
        name: name.to_owned(),
        ends: ends.map(str::to_owned),
        ..GraphLink::default()
    };
    Graph {
        of: "synthetic-core-edge".to_owned(),
        width: 900.0,
        height: 220.0,
        shapes: vec![shape("edge1", 75.0), shape("core", 450.0), shape("edge3", 825.0)],
        cables: vec![GraphCable { shapes: [0, 1], links: vec![0] }, GraphCable { shapes: [1, 2], links: vec![1] }],
        links: vec![link("isl1", ["edge1:8", "core:0"]), link("isl3", ["core:2", "edge3:8"])],
        ..Graph::default()
    }
}
