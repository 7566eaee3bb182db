//! Results of labs whose numbers are known in advance.

use crate::labs::{FABRIC, TINY, check, lab, lab_with, run, watched};
use sanloom_api::results::{EventKind, LinkKind, Metrics, PortKind, stray};
use sanloom_fc::config::LineRate;
use sanloom_sim::net::ObservedKind;
use sanloom_sim::run::{Blind, Options, simulate};

/// Returns the time of a frame with `bytes` of data from its first bit to its last, in ps.
fn wire(bytes: u64) -> u64 {
    LineRate::Fc2.time_of(bytes + 36).0
}

#[test]
fn a_single_read_takes_the_sum_of_its_parts() {
    let lab = lab(TINY);
    let results = run(&lab);
    // Light takes 5 ns per metre: 50 m to the host, 100 m to the disk. The switch stores each frame
    // and adds 700 ns.
    let (host_ps, disk_ps, switch_ps) = (250_000, 500_000, 700_000);
    let path_ps = host_ps + disk_ps + switch_ps;
    // FCP_CMND has 32 bytes and crosses two lines. The command takes 100 us. Two data frames of
    // 2,048 bytes and the response of 24 bytes follow, each with a gap of 24 bytes after it. The
    // response crosses the second line when the last data frame has left it.
    let command = 2 * wire(32) + path_ps;
    let data = LineRate::Fc2.time_of(2 * (2048 + 36 + 24)).0;
    let answer = wire(2048) + data + wire(24) + path_ps;
    let expected_ps = command + 100_000_000 + answer;
    let latency = &results.totals.io.latency;
    assert!(latency.count > 50);
    let nanosecond = 0.001;
    assert!(
        (latency.mean_us - expected_ps as f64 / 1e6).abs() <= 2.0 * nanosecond,
        "{} {}",
        latency.mean_us,
        expected_ps
    );
    assert!((latency.max_us - expected_ps as f64 / 1e6).abs() <= 3.0 * nanosecond);
    assert!((results.totals.io.command_latency.mean_us - latency.mean_us).abs() < 1e-9);
}

#[test]
fn a_check_before_the_run_accepts_every_number_of_its_results() {
    for text in [TINY, FABRIC] {
        let lab = lab(text);
        for (path, _) in Metrics::new(&run(&lab)).all() {
            let known = !path.starts_with("series.");
            assert_eq!(stray(&path, Some(&lab)).is_none(), known, "{path}: {:?}", stray(&path, Some(&lab)));
        }
    }
}

#[test]
fn a_read_appears_on_every_element_that_it_passes() {
    let lab = lab(TINY);
    let results = run(&lab);
    let metrics = Metrics::new(&results);
    let get = |path: &str| metrics.get(path).unwrap_or_else(|| panic!("no {path}"));
    let ios = get("totals.ios_completed");
    assert_eq!(get("hosts.server.ios_completed"), ios);
    assert_eq!(get("streams.reads.ios_completed"), ios);
    assert_eq!(get("streams.reads.hosts.server.ios_completed"), ios);
    assert_eq!(get("hosts.server.read_bytes"), 4096.0 * ios);
    assert_eq!(get("totals.ios_offered"), ios + 1.0);
    assert!((get("storage.disk.ios_completed") - ios).abs() <= 1.0);
    assert!((get("storage.disk.latency.mean_us") - 100.0).abs() < 1e-9);
    assert_eq!(get("storage.disk.waiting.max_us"), 0.0);
    // The command takes 100 us of each round trip.
    let expected = 100.0 / get("totals.latency.mean_us");
    assert!((get("storage.disk.utilisation") - expected).abs() < 0.02);
    assert!((get("storage.disk.queue.mean") - expected).abs() < 0.02);
    assert!((get("hosts.server.outstanding.mean") - 1.0).abs() < 1e-6);
    assert_eq!(get("hosts.server.waiting.max"), 1.0);
    // A command, two data frames and a response for each read.
    assert!((get("links.server-edge.forward.frames") - ios).abs() <= 1.0);
    assert!((get("links.server-edge.backward.frames") - 3.0 * ios).abs() <= 3.0);
    assert!((get("links.disk-edge.forward.data_bytes") - 4096.0 * ios).abs() <= 4096.0);
    assert_eq!(results.links[0].kind, LinkKind::Host);
    assert_eq!(results.links[1].kind, LinkKind::Storage);
    let kinds: Vec<(&str, PortKind)> = results.ports.iter().map(|port| (port.name.as_str(), port.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("edge:0", PortKind::FPort),
            ("edge:1", PortKind::FPort),
            ("server:0", PortKind::NPort),
            ("disk:0", PortKind::NPort)
        ]
    );
    assert!((get("switches.edge.frames_forwarded") - 4.0 * ios).abs() <= 4.0);
    assert_eq!(get("switches.edge.logins"), 2.0);
    assert!(get("switches.edge.name_server_requests") > 4.0);
    assert_eq!(get("hosts.server.paths.hba0>disk:0.commands"), ios);
    assert!(results.drops.is_empty() && results.findings.is_empty() && results.events.is_empty());
}

#[test]
fn every_word_of_a_line_is_a_frame_an_r_rdy_or_fill() {
    let results = run(&lab(FABRIC));
    for link in &results.links {
        let words = (link.rate_bytes_per_s / 4.0 * results.measured_s()) as u64;
        for direction in [&link.forward, &link.backward] {
            let sum = direction.bytes / 4 + direction.r_rdys + direction.idle_words;
            assert!(sum.abs_diff(words) <= 2, "{}: {sum} of {words}", link.name);
            assert!(direction.utilisation <= 1.0 && direction.utilisation > 0.0);
        }
        // Each frame returns its credit, except frames that are in flight at the beginning or the
        // end.
        assert!(link.forward.frames.abs_diff(link.backward.r_rdys) <= 2 * link.forward.bb_credit);
    }
}

#[test]
fn ports_receive_what_the_other_end_sends() {
    let results = run(&lab(FABRIC));
    let port = |name: &str| results.ports.iter().find(|port| port.name == name).unwrap();
    for link in &results.links {
        let (from, to) = (port(&link.forward.from), port(&link.forward.to));
        assert!(from.frames_sent.abs_diff(to.frames_received) <= 2 * to.buffers);
        assert!(to.frames_sent.abs_diff(from.frames_received) <= 2 * from.buffers);
        assert!(to.buffers_used_max <= to.buffers && to.buffers_used_mean <= to.buffers_used_max as f64);
    }
    let forwarded: u64 = results.switches.iter().map(|switch| switch.waiting.count).sum();
    let waited: u64 = results.ports.iter().map(|port| port.waiting.count).sum();
    assert_eq!(forwarded, waited);
}

#[test]
fn series_add_up_to_the_totals() {
    let results = run(&lab_with(FABRIC, "", &["run.warmup=0s", "run.sample_interval=7ms"]));
    let series = &results.series;
    assert_eq!((series.steps, series.interval_s), (9, 0.007));
    let length = |step: usize| (0.06 - 0.007 * step as f64).min(0.007);
    let sum = |values: &[f64]| values.iter().enumerate().map(|(i, v)| v * length(i)).sum::<f64>();
    let totals = &results.totals.io;
    assert!((sum(&series.total.iops) - totals.ios_completed as f64).abs() < 0.01);
    for (series, host) in series.hosts.iter().zip(&results.hosts) {
        let bytes = (host.io.read_bytes + host.io.written_bytes) as f64;
        assert!((sum(&series.throughput_bytes_per_s) - bytes).abs() < 1.0);
    }
    for (series, storage) in series.storage.iter().zip(&results.storage) {
        let bytes = (storage.read_bytes + storage.written_bytes) as f64;
        assert!((sum(&series.throughput_bytes_per_s) - bytes).abs() < 1.0);
        let mean = sum(&series.queue_mean) / 0.06;
        assert!((mean - storage.queue.mean).abs() < 1e-6, "{mean} {}", storage.queue.mean);
    }
    for (at, series) in series.links.iter().enumerate() {
        let link = &results.links[at / 2];
        let direction = if at % 2 == 0 { &link.forward } else { &link.backward };
        let mean = sum(&series.utilisation) / 0.06;
        assert!((mean - direction.utilisation).abs() < 0.005, "{} {mean} {}", series.name, direction.utilisation);
    }
}

#[test]
fn the_series_keeps_the_warm_up() {
    let results = run(&lab(FABRIC));
    let warm = results.series.steps as usize / 6;
    assert!(results.series.total.iops[warm - 1] > 0.0, "{:?}", results.series.total.iops);
    assert!(results.lab.warmup_s == 0.01 && results.lab.duration_s == 0.06);
}

#[test]
fn the_end_of_the_warm_up_is_found_in_the_series() {
    // A second workload begins after a quarter of the run.
    let workload = |name: &str, start: &str| {
        let load = "hosts = \"server1\"\ntargets = \"disk1\"\nsize = \"4KiB\"\narrivals = \"constant 20k/s\"";
        format!("[workload.{name}]\n{load}\nstart = \"{start}\"\n")
    };
    let (fabric, _) = FABRIC.split_once("[workload").expect("a workload");
    let text = [fabric, &workload("early", "0s"), &workload("late", "15ms")].concat();
    let settled_s = |more: &str, sets: &[&str]| run(&lab_with(&text, more, sets)).lab.settled_s;
    let is_late = |settled_s: Option<f64>| settled_s.is_some_and(|settled_s| (0.014..0.02).contains(&settled_s));
    assert!(is_late(settled_s("", &[])), "{:?}", settled_s("", &[]));
    // Only the steps before a fault count.
    let fault = "[[fault]]\nat = \"50ms\"\nkind = \"link-down\"\nlink = \"ISL\"";
    assert!(is_late(settled_s(fault, &[])), "{:?}", settled_s(fault, &[]));
    // A change in the second half leaves no steady part.
    assert_eq!(settled_s("", &["workload.late.start=40ms"]), None);
}

#[test]
fn losses_are_counted_at_their_location() {
    let more = "[[fault]]\nat = \"20ms\"\nuntil = \"30ms\"\nkind = \"frame-loss\"\nlink = \"ISL\"\nprobability = 0.01";
    let results = run(&lab_with(FABRIC, more, &[]));
    let isl = results.links.iter().find(|link| link.name == "ISL").unwrap();
    let lost =
        |direction: &sanloom_api::results::LinkDirection| direction.frames_lost.get("frame_loss").copied().unwrap_or(0);
    assert_eq!(lost(&isl.forward) + lost(&isl.backward), results.drops["frame_loss"]);
    assert_eq!(results.totals.frames_dropped, results.drops.values().sum::<u64>());
    assert_eq!(results.series.total.frames_dropped.iter().sum::<u64>(), results.totals.frames_dropped);
    assert!(results.totals.frames_dropped > 0);
    let kinds: Vec<EventKind> = results.events.iter().map(|event| event.kind).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&EventKind::FaultBegins), Some(&EventKind::FaultEnds)));
    assert!(kinds.contains(&EventKind::CommandAborted), "{:?}", results.events);
    assert!(results.events.is_sorted_by(|a, b| a.at_s <= b.at_s));
    assert_eq!(results.faults[0].link.as_deref(), Some("ISL"));
}

#[test]
fn each_data_frame_of_a_read_crosses_the_bus_before_its_buffer_is_free() {
    // A 32-bit bus at 33 MHz: the 512 words of a frame take longer on the bus than the frame takes
    // on the line.
    let bus = ["host.server.bus.bits=32", "host.server.bus.clock=33MHz"];
    let latency = |sets: &[&str]| run(&lab_with(TINY, "", sets)).totals.io.latency.mean_us;
    let (light, switch_ps) = (250_000 + 500_000, 700_000);
    let command = 2 * wire(32) + light + switch_ps;
    let first_frame = 2 * wire(2048) + light + switch_ps;
    let bus_ps = 2 * 512 * 1_000_000 / 33;
    let expected_us = (command + 100_000_000 + first_frame + bus_ps) as f64 / 1e6;
    let measured_us = latency(&bus);
    assert!((measured_us - expected_us).abs() <= 0.002, "{measured_us} {expected_us}");
    // With one buffer, the second frame leaves the switch only after the first has crossed the bus
    // and its R_RDY has returned.
    let one_buffer = latency(&[&bus[..], &["host.server.frame_buffers=1"]].concat());
    assert!(one_buffer > measured_us + 5.0, "{one_buffer} {measured_us}");
}

#[test]
fn a_wait_for_credit_ends_when_the_pause_before_a_sequence_begins() {
    // The disk has one credit for a line of 10 km, so that it waits for the R_RDY of each frame: 50
    // us for the way of the last bit to the switch, as long for the way back, and at most 15 us in
    // the switch. A request needs two frames, data and status. The pause of 500 us that follows
    // before the next data is no wait for a credit.
    const LAB: &str = r#"
        [run]
        duration = "100ms"
        warmup = "10ms"
        [switch.edge]
        [host.server]
        [storage.disk]
        rate = "1000k/s"
        sequence_overhead = "500us"
        [[link]]
        from = "server"
        to = "edge"
        rate = "2GFC"
        [[link]]
        from = "disk"
        to = "edge"
        name = "long"
        rate = "2GFC"
        length = "10km"
        credits = 1
        [workload.reads]
        hosts = "server"
        targets = "disk"
        size = "2KiB"
        depth = 8
    "#;
    let results = run(&lab(LAB));
    let line = &results.links.iter().find(|link| link.name == "long").expect("the line").forward;
    let requests = line.frames as f64 / 2.0;
    let (wait_us, pause_us) = (line.credit_wait_s / requests * 1e6, 500.0);
    assert!((200.0..230.0).contains(&wait_us), "{wait_us} us for each of {requests} requests");
    let cycle_us = results.measured_s() / requests * 1e6;
    assert!(cycle_us > wait_us + pause_us, "the disk pauses as well: {cycle_us} us");
}

#[test]
fn an_interrupt_collects_completed_commands_however_many_frames_they_had() {
    let sets = ["host.server.interrupt.max_frames=4", "host.server.interrupt.max_wait=50ms", "workload.reads.depth=8"];
    let host = &run(&lab_with(TINY, "", &sets)).hosts[0];
    // Each read of 4 KiB has three frames, two with data and a response.
    let completed = host.io.ios_completed;
    assert!(completed > 50 && completed.div_ceil(4) >= host.interrupts, "{completed} {}", host.interrupts);
    assert!(host.interrupts + 1 >= completed / 4, "{completed} {}", host.interrupts);
}

#[test]
fn a_trunk_keeps_the_order_of_frames_and_spray_does_not() {
    let early = |joined: &str| {
        let text = FABRIC.replace("name = \"ISL\"", &format!("name = \"ISL{{1..4}}\"\ncount = 4\n{joined}"));
        let sets = ["switch.*.isl_choice=spray", "switch.*.forwarding=store-and-forward"];
        let finished = simulate(&lab_with(&text, "", &sets), &Options::default(), &mut Blind);
        check(&finished);
        assert_eq!(finished.results.totals.io.ios_failed, 0);
        let lanes = finished.world.net.fc.lanes();
        let isls = finished.world.lab.links.iter().zip(0usize..).filter(|(link, _)| link.name.starts_with("ISL"));
        assert!(isls.map(|(_, link)| lanes[2 * link].count().frames).all(|frames| frames > 100), "all lines are used");
        let initiators =
            (0..finished.world.nports.nodes.len() as u16).filter_map(|nport| finished.world.hosts.initiator(nport));
        initiators.map(|initiator| initiator.counters().early_responses).sum::<u64>()
    };
    assert_eq!(early("bundle = true"), 0);
    assert!(early("") > 100);
}

#[test]
fn the_least_loaded_link_gets_the_next_frame_so_links_carry_equal_bytes() {
    let text = FABRIC.replace("name = \"ISL\"", "name = \"ISL{1..2}\"\ncount = 2");
    let share = |choice: &str, depth: u32| {
        let (choice, depth) = (format!("switch.*.isl_choice={choice}"), format!("workload.mixed.depth={depth}"));
        // Frames with data and responses alternate.
        let sets = [&choice, &depth, "workload.mixed.size=2KiB", "workload.mixed.read_share=1"];
        let results = run(&lab_with(&text, "", &[&sets[..], &["workload.mixed.hosts=server1"]].concat()));
        let isls = results.links.iter().filter(|link| link.name.starts_with("ISL"));
        let bytes: Vec<u64> = isls.map(|link| link.backward.bytes).collect();
        bytes.iter().min().copied().unwrap_or(0) as f64 / bytes.iter().max().copied().unwrap_or(1) as f64
    };
    for depth in [1, 64] {
        assert!(share("least-loaded", depth) > 0.9, "{depth}: {}", share("least-loaded", depth));
    }
    assert!(share("spray", 1) < 0.1, "{}", share("spray", 1));
}

#[test]
fn data_frames_have_the_smaller_receive_size_of_both_ends() {
    let longest = |host: &str, storage: &str| {
        let sets = [format!("host.server.receive_size={host}"), format!("storage.disk.receive_size={storage}")];
        let mut longest = 0;
        let lab = lab_with(TINY, "", &sets.each_ref().map(String::as_str));
        watched(&lab, &mut |_, observed| {
            let data = observed.iter().filter_map(|item| match &item.kind {
                ObservedKind::Frame { frame, .. } if frame.is_data() => Some(frame.len_bytes()),
                _ => None,
            });
            longest = data.chain([longest]).max().unwrap_or(0);
        });
        longest
    };
    for (host, storage, frame) in [("2112B", "2112B", 2112), ("2112B", "2048B", 2048), ("1024B", "2112B", 1024)] {
        assert_eq!(longest(host, storage), frame, "{host} {storage}");
    }
}

#[test]
fn a_frame_counts_in_every_step_of_its_transmission() {
    // A full frame takes several steps.
    let sets = ["run.sample_interval=1us", "workload.reads.depth=32", "storage.disk.rate=\"1000k/s\""];
    let results = run(&lab_with(TINY, "", &sets));
    let steps = results.series.links.iter().find(|link| link.name == "disk-edge.forward").expect("the link");
    let mean = steps.utilisation.iter().sum::<f64>() / steps.utilisation.len() as f64;
    let link = results.links.iter().find(|link| link.name == "disk-edge").expect("the link");
    assert!((mean - link.forward.utilisation).abs() < 1e-3, "{mean} {}", link.forward.utilisation);
    assert!(results.series.interval_s < 5e-6, "{}", results.series.interval_s);
    assert!(steps.utilisation[steps.utilisation.len() / 2..].iter().all(|share| *share > 0.999));
}

#[test]
fn steps_of_ethernet_and_infiniband_add_up_to_their_links() {
    let text = include_str!("../../../../examples/ipoib-gateway.toml");
    let results = run(&lab_with(text, "", &["run.warmup=0s", "run.duration=200ms", "run.sample_interval=10ms"]));
    let series = &results.series;
    assert_eq!((series.steps, series.plane_links.len()), (20, 2 * 5));
    let ethernet =
        results.ethernet_links.iter().map(|link| (&link.name, link.forward.utilisation, link.backward.utilisation));
    let infiniband =
        results.infiniband_links.iter().map(|link| (&link.name, link.forward.utilisation, link.backward.utilisation));
    let whole = ethernet.chain(infiniband).flat_map(|(name, forward, backward)| {
        [(format!("{name}.forward"), forward), (format!("{name}.backward"), backward)]
    });
    let mut busiest = 0.0_f64;
    for ((name, expected), one) in whole.zip(&series.plane_links) {
        let mean = one.utilisation.iter().sum::<f64>() / one.utilisation.len() as f64;
        assert_eq!(one.name, name);
        assert!((mean - expected).abs() < 1e-6, "{name}: {mean} instead of {expected}");
        busiest = busiest.max(mean);
    }
    assert!(busiest > 0.1, "{busiest}");
}

#[test]
fn commands_wait_while_all_exchange_numbers_rest() {
    // All commands time out at once. Their numbers rest for R_A_TOV, longer than the run.
    let sets = [
        "run.duration=60ms",
        "host.server.queue_depth=9000",
        "host.server.command_timeout=\"5ms\"",
        "workload.reads.depth=9000",
    ];
    let results = run(&lab_with(TINY, "", &sets));
    assert!(results.hosts[0].commands_aborted > 8_000, "{}", results.hosts[0].commands_aborted);
    assert_eq!(results.totals.io.ios_failed, 0);
}
