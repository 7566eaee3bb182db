//! Virtual machines and switch processors: delivery of frames, and logins of machines that wait,
//! move and stop.

use crate::labs::{check, lab, lab_with, run, watched};
use sanloom_api::results::EventKind;
use sanloom_fc::nport::FabricState;
use sanloom_sim::net::ObservedKind;
use sanloom_sim::run::{Blind, Options, simulate};
use sanloom_sim::world::{CommandLog, CommandRecord, World};
use sanloom_wire::FcId;

/// Two hypervisors behind two switches, and six machines on the first one. Each machine shares a
/// zone only with the disk.
const MACHINES: &str = r#"
[run]
duration = "200ms"
warmup = "0s"
stop_issuing = "190ms"
[switch."sw{1..2}"]
[host."hv{1..2}"]
hbas = 2
[host."vm{1..6}"]
on = "hv1"
multipath = { fast_io_fail = "50ms", dev_loss = "1s", polling_interval = "1s", no_path_retry = 1 }
[storage.disk]
[[link]]
from = "hv1:{0..1}"
to = "sw1"
[[link]]
from = "hv2:{0..1}"
to = "sw2"
[[link]]
from = "disk"
to = "sw2"
[[isl]]
from = "sw1"
to = "sw2"
name = "ISL"
[zoning]
default = "closed"
[[zone]]
name = "vm{1..6}"
members = ["vm{1..6}", "disk"]
[workload.mixed]
hosts = "vm{1..6}"
targets = "disk"
size = "32KiB"
read_share = 0.5
depth = 4
"#;

/// Returns the lab with additional keys for the machines and additional text at the end.
fn machines(keys: &str, more: &str) -> std::sync::Arc<sanloom_fc::san::Lab> {
    lab(&format!("{}\n{more}", machine_text(keys)))
}

fn machine_text(keys: &str) -> String {
    MACHINES.replace("on = \"hv1\"", &format!("on = \"hv1\"\n{keys}"))
}

#[test]
fn machines_share_an_hba_and_get_their_own_frames() {
    let finished = simulate(&lab(MACHINES), &Options::default(), &mut Blind);
    check(&finished);
    let results = &finished.results;
    assert_eq!(results.totals.io.ios_failed, 0);
    assert_eq!(results.totals.frames_dropped, 0);
    assert!(finished.world.nports.nodes.iter().all(|node| node.unexpected_frames == 0));
    for vm in 1..=6 {
        let completed = results.metric(&format!("hosts.vm{vm}.ios_completed")).unwrap();
        assert!(completed > 100.0, "vm{vm}: {completed}");
    }
    // Three machines on each HBA. The addresses of physical ports end in 00; those of virtual ports
    // follow.
    let ids: Vec<u32> =
        finished.world.nports.nodes.iter().filter(|n| n.is_virtual).map(|n| n.port_id.to_u32()).collect();
    assert_eq!(ids, [0x010001, 0x010101, 0x010002, 0x010102, 0x010003, 0x010103]);
}

/// Returns the lab with additional keys for the hypervisors and additional text at the end.
fn hypervisors(keys: &str, more: &str) -> std::sync::Arc<sanloom_fc::san::Lab> {
    lab(&format!(
        "{}\n{more}",
        machine_text("interrupt = { max_frames = 4 }").replace("hbas = 2", &format!("hbas = 2\n{keys}"))
    ))
}

#[test]
fn machines_share_the_bus_of_their_hypervisor() {
    // A 32-bit bus at 33 MHz carries 132 MB/s for both HBAs.
    let more = "[[fault]]\nat = \"100ms\"\nkind = \"vm-move\"\nvm = \"vm{1..3}\"\nto = \"hv2\"";
    let bus = "bus = { bits = 32, clock = \"33MHz\", shared_by = 2 }";
    let shared = run(&hypervisors(bus, ""));
    assert_eq!(shared.totals.io.ios_failed, 0);
    let rate = shared.totals.io.throughput_bytes_per_s;
    assert!((100e6..132.1e6).contains(&rate), "{rate}");
    let moved = run(&hypervisors(bus, more));
    assert_eq!(moved.totals.io.ios_failed, 0);
    assert!(moved.totals.io.throughput_bytes_per_s > 1.3 * rate, "two buses carry more than one");
}

/// When a machine moves, its frames on the bus and in the queue of the HBA are discarded. Otherwise
/// they would reach a disk where the machine already has another login.
#[test]
fn a_machine_that_moves_sends_no_more_frames_through_its_old_hba() {
    let bus = "bus = { bits = 32, clock = \"33MHz\", shared_by = 2 }";
    for (keys, at_us) in [(bus, 50_000), (bus, 60_010), ("", 70_000)] {
        let more = format!(
            "[[fault]]\nat = \"{at_us}us\"\nfor = \"100ms\"\nkind = \"vm-move\"\nvm = \"vm{{1..6}}\"\nto = \"hv2\""
        );
        let lab = hypervisors(keys, &more);
        let (mut before, mut after) = (0, 0);
        watched(&lab, &mut |world, observed| {
            for one in observed.iter().filter(|one| one.lane == 0 || one.lane == 2) {
                if let ObservedKind::Frame { frame, start_ps, .. } = &one.kind {
                    let own = frame.s_id().to_u32() & 0xff == 0;
                    let gone = *start_ps > world.start_ps + at_us * 1_000_000;
                    let count = if gone { &mut after } else { &mut before };
                    *count += u32::from(!own);
                }
            }
        });
        assert!(before > 100 && after == 0, "{keys} {at_us}: {before} frames before, {after} after");
    }
}

/// Machines that start at the same time queue their login requests at the HBA. A request still
/// queued when its machine moves would log the machine in at the old location.
#[test]
fn a_machine_that_moves_leaves_no_request_for_login_behind() {
    let more = "[[fault]]\nat = \"1000050ns\"\nfor = \"100ms\"\nkind = \"vm-move\"\nvm = \"vm{1..6}\"\nto = \"hv2\"";
    let (mut before, mut after) = (0, 0);
    watched(&machines("start = \"1ms\"\nboot = \"0s\"", more), &mut |world, observed| {
        for one in observed.iter().filter(|one| one.lane == 0 || one.lane == 2) {
            if let ObservedKind::Frame { frame, start_ps, .. } = &one.kind
                && frame.s_id() == FcId::ZERO
            {
                match start_ps.checked_sub(world.start_ps) {
                    Some(at) if at > 1_000_050_000 => after += 1,
                    Some(_) => before += 1,
                    None => {}
                }
            }
        }
    });
    assert_eq!((before, after), (2, 0), "one FDISC on each HBA has left");
}

#[test]
fn machines_share_the_frame_window_of_their_hba_in_turn() {
    let narrow = run(&hypervisors("data_frames_in_flight = 16", ""));
    let wide = run(&hypervisors("", ""));
    assert_eq!(narrow.totals.io.ios_failed, 0);
    // Each of the two HBAs has space for one command of 16 frames.
    let outstanding: f64 = narrow.hosts.iter().map(|host| host.outstanding.mean).sum();
    assert!(outstanding <= 2.0, "{outstanding}");
    assert!(narrow.totals.io.throughput_bytes_per_s < wide.totals.io.throughput_bytes_per_s);
    let done: Vec<f64> = (1..=6).map(|vm| narrow.metric(&format!("hosts.vm{vm}.ios_completed")).unwrap()).collect();
    let (least, most) = (done.iter().copied().fold(f64::MAX, f64::min), done.iter().copied().fold(0.0, f64::max));
    assert!(least > 0.8 * most, "{done:?}");
}

#[test]
fn a_machine_that_moves_is_registered_once_at_its_new_switch() {
    let more = "[[fault]]\nat = \"50ms\"\nfor = \"20ms\"\nkind = \"vm-move\"\nvm = \"vm2\"\nto = \"hv2\"";
    let finished = simulate(&lab_with(MACHINES, more, &[]), &Options::default(), &mut Blind);
    check(&finished);
    assert_eq!(finished.results.totals.io.ios_failed, 0);
    assert_eq!(finished.results.metric("hosts.vm2.logins"), Some(2.0));
    let names = |switch: usize| {
        let entries = finished.world.control.switches[switch].machine.services().name_server();
        entries.map(|entry| (entry.port_name, entry.port_id)).collect::<Vec<_>>()
    };
    assert_eq!(names(0), names(1));
    let moved = &finished.world.nports.nodes.iter().filter(|node| node.is_virtual).nth(1).unwrap().port_id;
    assert_eq!(moved.domain(), 2);
    let name = finished.world.lab.hosts[3].hbas[0].wwpn;
    let ids: Vec<_> = names(0).into_iter().filter(|(wwpn, _)| *wwpn == name).map(|(_, id)| id).collect();
    assert_eq!(ids, [*moved]);
}

#[test]
fn a_stopping_machine_ends_its_requests_and_releases_its_address() {
    let more = "[[fault]]\nat = \"50ms\"\nkind = \"vm-stop\"\nvm = \"vm{1..6}\"";
    let finished = simulate(&lab_with(MACHINES, more, &[]), &Options::default(), &mut Blind);
    check(&finished);
    let totals = &finished.results.totals;
    assert_eq!((totals.io.ios_failed, totals.frames_dropped), (0, 0));
    assert_eq!(totals.io.ios_offered, totals.io.ios_completed);
    assert_eq!(finished.world.control.switches[0].machine.logins().count(), 2, "only the hypervisor's own");
}

#[test]
fn virtual_ports_log_in_again_after_their_physical_port() {
    let more = "[[fault]]\nat = \"50ms\"\nfor = \"20ms\"\nkind = \"link-down\"\nlink = \"hv1:0-sw1\"";
    let finished = simulate(&lab_with(MACHINES, more, &[]), &Options::default(), &mut Blind);
    check(&finished);
    assert_eq!(finished.results.totals.io.ios_failed, 0);
    for (vm, logins) in [(1, 2.0), (2, 1.0), (3, 2.0)] {
        assert_eq!(finished.results.metric(&format!("hosts.vm{vm}.logins")), Some(logins), "vm{vm}");
    }
    assert!(finished.world.nports.nodes.iter().all(|node| node.login.state() == FabricState::Ready));
}

#[test]
fn commands_of_machines_wait_for_the_processor_of_their_hypervisor() {
    let finished = simulate(&hypervisors("guest_cpu_per_io = \"100us\"", ""), &Options::default(), &mut Blind);
    let results = &finished.results;
    assert_eq!(results.totals.io.ios_failed, 0);
    // One processor serves a command of six machines every 100 µs: 1,900 commands in 190 ms, and
    // the 24 that are then in flight.
    let done = results.totals.io.ios_completed;
    assert!((1_900..=1_924).contains(&done), "{done}");
    let moved = "[[fault]]\nat = \"100ms\"\nkind = \"vm-move\"\nvm = \"vm{1..3}\"\nto = \"hv2\"";
    let done = run(&hypervisors("guest_cpu_per_io = \"100us\"", moved)).totals.io.ios_completed;
    assert!((2_774..=2_824).contains(&done), "two processors from 100 ms on: {done}");
}

/// The switch accepts the newer of two logins with the same name (the NPIV paper: an error in a
/// hypervisor can give a port name to several machines).
#[test]
fn a_machine_that_uses_the_name_of_another_takes_its_login() {
    let more = "[switch.sw1]\nduplicate_names = \"new-wins\"\n[[fault]]\nat = \"50ms\"\nfor = \"50ms\"\n\
                kind = \"duplicate-name\"\nvm = \"vm2\"\nof = \"vm1\"";
    let lab = machines("command_timeout = \"20ms\"\nabort_timeout = \"10ms\"\nreset_timeout = \"10ms\"", more);
    let results = run(&lab);
    let of = |vm: u8, what: &str| results.metric(&format!("hosts.vm{vm}.{what}")).unwrap();
    assert!(of(1, "longest_stall_s") > 0.1, "nothing tells the machine that its login has gone");
    assert_eq!(of(2, "logins"), 3.0, "its own name, that of the other, and its own again");
    assert!(of(2, "longest_stall_s") < 0.03);
    assert!((3..=6).all(|vm| of(vm, "longest_stall_s") < 0.03));
}

#[test]
fn commands_with_the_address_of_another_host_are_dropped_and_disturb_nobody() {
    let text = "[run]\nduration = \"300ms\"\n[switch.sw]\n[host.\"h{1..2}\"]\ncommand_timeout = \"20ms\"\n\
                abort_timeout = \"10ms\"\nreset_timeout = \"10ms\"\n[storage.d]\n[[link]]\nfrom = \"h{1..2}\"\n\
                to = \"sw\"\n[[link]]\nfrom = \"d\"\nto = \"sw\"\n[workload.w]\nhosts = \"h{1..2}\"\n\
                targets = \"d\"\narrivals = \"constant 1000/s\"\n[[fault]]\nat = \"100ms\"\nfor = \"50ms\"\n\
                kind = \"foreign-address\"\nhost = \"h1\"\nof = \"h2\"\n";
    let results = run(&lab(text));
    let of = |host: &str, what: &str| results.metric(&format!("hosts.{host}.{what}")).unwrap();
    assert!(results.switches[0].discards["bad_source_id"] > 10, "{:?}", results.switches[0].discards);
    assert!(of("h1", "longest_stall_s") > 0.05 && of("h1", "ios_failed") == 0.0);
    assert_eq!((of("h2", "commands_aborted"), of("h2", "commands_retried"), of("h2", "ios_failed")), (0.0, 0.0, 0.0));
    assert!(of("h2", "longest_stall_s") < 0.002, "one command per millisecond");
}

#[test]
fn machines_begin_one_after_the_other() {
    // With several channels, machines that share one have fewer requests, whenever they begin.
    let one_channel = "[switch.\"*\"]\nvirtual_channels = { medium = 0 }\n";
    let results = run(&machines("start = \"10ms\"\ninterval = \"20ms\"\nboot = \"0s\"", one_channel));
    let done: Vec<f64> = (1..=6).map(|vm| results.metric(&format!("hosts.vm{vm}.ios_completed")).unwrap()).collect();
    assert!(done.windows(2).all(|two| two[0] > two[1]), "{done:?}");
    assert_eq!(results.totals.io.ios_failed, 0);
}

/// Returns the requests of the machines to the services of the first switch.
fn commands(sharing: &str) -> Vec<CommandRecord> {
    let processor = format!(
        "[switch.sw1]\nprocessor = {{ sharing = \"{sharing}\", per_command = \"1ms\", per_login = \"10ms\", per_name_search = \"0s\" }}"
    );
    let mut world = World::new(machines("login = \"npiv\"\ndiscovery = false", &processor));
    world.control.command_log = Some(CommandLog::default());
    world.log_in();
    let log = world.control.command_log.take().unwrap();
    log.records().iter().filter(|record| record.switch == 0).cloned().collect()
}

#[test]
fn requests_wait_for_the_processor_of_the_switch() {
    let ms = |record: &CommandRecord| record.latency_ps / 1_000_000_000;
    let records = commands("one");
    let mut logins: Vec<u64> = records.iter().filter(|r| r.command == "FDISC").map(ms).collect();
    logins.sort_unstable();
    assert_eq!(logins.len(), 6);
    assert!(logins[5] >= 6 * 11, "the last waits for the five others: {logins:?}");
    let per_port = commands("per-port");
    let slowest = per_port.iter().filter(|r| r.command == "FDISC").map(ms).max().unwrap();
    assert!((32..60).contains(&slowest), "three at each port: {slowest} ms");
    let quickest = per_port.iter().map(ms).min().unwrap();
    assert_eq!(quickest, 3, "three at a time wait for each other at every step");
}

#[test]
fn the_log_shows_the_steps_of_every_login() {
    let records = commands("per-port");
    let last = records.iter().rev().find(|record| record.command == "FDISC").unwrap().port_id;
    let of_last = records.iter().filter(|record| record.port_id == last);
    let steps: Vec<String> = of_last.map(|r| format!("{} to {}", r.command, r.service)).collect();
    assert_eq!(
        steps,
        [
            "FDISC to fffffe",
            "SCR to fffffd",
            "PLOGI to fffffa",
            "LIRR to fffffa",
            "LOGO to fffffa",
            "PLOGI to fffffc",
            "RFT_ID to fffffc",
            "LOGO to fffffc"
        ]
    );
}

/// Returns the number of link incident reports sent by the switches, and received by the machines.
fn incident_reports(more: &str) -> (u64, u64) {
    let finished = simulate(&machines("login = \"npiv\"", more), &Options::default(), &mut Blind);
    check(&finished);
    let sent = finished.results.switches.iter().map(|switch| switch.incident_reports_sent).sum();
    let taken = finished.world.nports.nodes.iter().map(|node| node.login.counters().incident_reports).sum();
    (sent, taken)
}

/// In the NPIV paper, machines register for link incidents: they receive reports when links between
/// switches fail or lose credits.
#[test]
fn ports_are_notified_of_a_link_between_switches_that_fails_or_is_reset() {
    assert_eq!(incident_reports(""), (0, 0));
    let down = "[[fault]]\nat = \"100ms\"\nuntil = \"150ms\"\nkind = \"link-down\"\nlink = \"ISL\"";
    assert_eq!(incident_reports(down), (6, 6));
    let withheld =
        "[[fault]]\nat = \"20ms\"\nuntil = \"100ms\"\nkind = \"withheld-credits\"\nlink = \"ISL\"\nend = \"sw2\"
        [timers]\ne_d_tov = \"30ms\"\nr_a_tov = \"100ms\"\nhold_time = \"50ms\"";
    let (sent, taken) = incident_reports(withheld);
    assert!(sent >= 6 && taken == sent, "{sent} sent, {taken} taken");
}

#[test]
fn a_machine_that_stops_during_its_move_or_before_its_creation_does_not_log_in_again() {
    for more in [
        // The move takes from 40 ms to 60 ms.
        "[[fault]]\nat = \"40ms\"\nfor = \"20ms\"\nkind = \"vm-move\"\nvm = \"vm2\"\nto = \"hv2\"\n\
         [[fault]]\nat = \"50ms\"\nkind = \"vm-stop\"\nvm = \"vm2\"",
        "[host.vm2]\nstart = \"60ms\"\n[[fault]]\nat = \"20ms\"\nkind = \"vm-stop\"\nvm = \"vm2\"",
    ] {
        let finished = simulate(&lab_with(MACHINES, more, &[]), &Options::default(), &mut Blind);
        check(&finished);
        let name = finished.world.lab.hosts[3].hbas[0].wwpn;
        let mut entries = finished.world.control.switches[1].machine.services().name_server();
        assert!(!entries.any(|entry| entry.port_name == name), "{more}");
    }
}

#[test]
fn a_login_storm_ends_an_adjacency_unless_messages_of_the_fabric_come_first() {
    const STORM: &str = include_str!("../../../../examples/fabric-starvation.toml");
    let losses = |priority: &str| {
        let results =
            run(&lab_with(&STORM.replace("priority = \"none\"", &format!("priority = \"{priority}\"")), "", &[]));
        let reroutes = results.events.iter().filter(|event| event.kind == EventKind::Reroute);
        (reroutes.map(|event| event.at_s).collect::<Vec<_>>(), results.totals.longest_stall_s)
    };
    let (reroutes, stall_s) = losses("none");
    // No adjacency ends earlier than the dead interval of 20 s after its last HLO.
    assert!(reroutes.first().is_some_and(|&at_s| (10.0..90.0).contains(&at_s)), "{reroutes:?}");
    assert!(stall_s > 10.0, "{stall_s}");
    assert_eq!(losses("fabric-first").0, [0.0; 0]);
}
