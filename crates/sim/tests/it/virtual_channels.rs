//! Virtual channels, priorities and quarantine of whole labs.

use crate::labs::{lab_with, run};
use sanloom_api::results::{EventKind, Results};
use sanloom_sim::world::World;

fn text(name: &str) -> String {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn example(name: &str, sets: &[&str]) -> Results {
    run(&lab_with(&text(name), "", sets))
}

/// Throughput of each host in MB/s.
fn rates(results: &Results) -> Vec<f64> {
    results.hosts.iter().map(|host| host.io.throughput_bytes_per_s / 1e6).collect()
}

#[test]
fn a_slow_device_stops_no_flow_on_another_channel() {
    let sets = ["run.duration=400ms", "fault.1.at=0s"];
    let with = rates(&example("virtual-channels", &sets));
    let without = rates(&example("virtual-channels", &[sets[0], sets[1], "switch.*.virtual_channels.medium=0"]));
    for server in 1..4 {
        assert!(with[server] > 200.0, "{with:?}");
        assert!(without[server] < 100.0, "{without:?}");
    }
}

#[test]
fn priorities_share_a_full_line_by_weight_and_none_starves() {
    let rates = rates(&example("qos-zones", &[]));
    let total: f64 = rates.iter().sum();
    for (server, share) in [(0, 0.6), (1, 0.1), (2, 0.15), (3, 0.15)] {
        let of_line = rates[server] / total;
        assert!((of_line - share).abs() < 0.02, "server{} has {of_line:.3} of {rates:?}", server + 1);
    }
}

#[test]
fn the_counters_of_the_channels_add_up_to_those_of_the_link() {
    let results = example("qos-zones", &["run.duration=200ms"]);
    let isl = results.links.iter().find(|link| link.name == "isl").expect("the ISL");
    for direction in [&isl.forward, &isl.backward] {
        assert_eq!(direction.channels.iter().map(|channel| channel.frames).sum::<u64>(), direction.frames);
        assert_eq!(direction.channels.iter().map(|channel| channel.bytes).sum::<u64>(), direction.bytes);
        assert_eq!(direction.channels.iter().map(|channel| channel.bb_credit).sum::<u64>(), direction.bb_credit);
        for priority in [2..6, 8..10, 10..15] {
            let of_priority = direction.channels.iter().filter(|channel| priority.contains(&channel.channel));
            assert!(of_priority.map(|channel| channel.frames).sum::<u64>() > 0, "{direction:?}");
        }
    }
    let edge = results.links.iter().find(|link| link.name != "isl").expect("a link of a host");
    assert!(edge.forward.channels.is_empty());
}

#[test]
fn a_quarantine_begins_frees_the_others_and_ends() {
    let results = example("quarantine", &[]);
    let events: Vec<f64> =
        results.events.iter().filter(|event| event.kind == EventKind::Quarantine).map(|event| event.at_s).collect();
    let [begins, ends] = events[..] else { panic!("{events:?}") };
    assert!((0.2..0.24).contains(&begins), "{events:?}");
    assert!((0.65..0.85).contains(&ends), "{events:?}");
    let with = rates(&results);
    let without = rates(&example("quarantine", &["switch.*.quarantine=false"]));
    assert!((1..4).all(|server| with[server] > 1.3 * without[server]), "{with:?} {without:?}");
    assert_eq!(results.totals.io.ios_failed, 0);
}

#[test]
fn frames_and_credits_are_conserved_on_all_channels() {
    for name in ["virtual-channels", "qos-zones", "quarantine"] {
        let lab = lab_with(&text(name), "", &["run.duration=400ms"]);
        let mut world = World::new(lab);
        world.log_in();
        world.start();
        for step in 1..=100 {
            world.run_until(world.start_ps + step * 3_000_000_000);
            world.check().unwrap_or_else(|error| panic!("{name}, step {step}: {error}"));
        }
        assert!((0..world.net.fc.lanes().len() as u32).any(|lane| world.net.fc.channels(lane).is_some()), "{name}");
    }
}
