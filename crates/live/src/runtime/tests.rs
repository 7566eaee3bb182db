//! Tests of the main loop, with a lab inside one process.

mod failures;
mod metrics;
mod pause;
mod spread;
mod tunnel;

use super::Runtime;
use super::fabric::switch::{Attachment, LiveSwitch};
use super::operations::ports;
use super::plan::Options;
use super::view::Tables;
use super::work::{Entering, Origin, Source, WorkQueue};
use crate::frame::Pool;
use crate::ports::reason::HOLD_TIME;
use sanloom_api::control::{Answer, PortChange};
use sanloom_api::view::build::Which;
use sanloom_api::view::{Dark, PortsView, Table};
use sanloom_fc::exchange::data_header;
use sanloom_fc::fabric::{FibDelta, Leg, PortMode};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::Els;
use sanloom_wire::{FcId, Frame, Message, Payload};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Returns a lab with its own empty folder.
fn lab(name: &str, text: &str) -> Arc<sanloom_fc::san::Lab> {
    let folder = std::env::temp_dir().join(format!("sanloom-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let text = format!("[live]\nfolder = \"{}\"\n{text}", folder.display());
    match sanloom_lab::load("lab.toml", &text, &[]) {
        Ok(loaded) => Arc::new(loaded.lab),
        Err(mistakes) => panic!("{}", mistakes.render(false)),
    }
}

/// Three switches in a ring, and a fourth one attached to the first.
const RING: &str = r#"
[timers]
hold_time = "200ms"
[switch.sw1]
domain = 1
[switch.sw2]
domain = 2
[switch.sw3]
domain = 3
[switch.spur]
domain = 4
[[link]]
from = "sw1:0"
to = "sw2:1"
[[link]]
from = "sw2:0"
to = "sw3:1"
[[link]]
from = "sw3:0"
to = "sw1:1"
[[link]]
from = "spur:0"
to = "sw1:2"
"#;

/// Domain of the fourth switch.
const SPUR_DOMAIN: u8 = 4;

/// A domain that no switch of the ring has.
const LOST_DOMAIN: u8 = 77;

/// Changes the tables of the ring so that frames for [`LOST_DOMAIN`] circulate.
fn close_loop(runtime: &mut Runtime) {
    for switch in &mut runtime.instance.fabric.switches[..3] {
        switch.fib.apply(&FibDelta::Routes { domain: LOST_DOMAIN, legs: vec![Leg::Port(0)] });
    }
}

/// Returns a ring with agreed domains and routes, and a routing loop.
fn ring(name: &str) -> Runtime {
    let mut runtime = Runtime::up(lab(name, RING), &Options::default()).unwrap();
    let others = |switch: &LiveSwitch| (1..=SPUR_DOMAIN).filter(|domain| !switch.fib.legs(*domain).is_empty()).count();
    while runtime.instance.fabric.switches.iter().any(|switch| others(switch) < 3) {
        let more = runtime.step();
        runtime.wait(more).unwrap();
    }
    close_loop(&mut runtime);
    runtime
}

/// Sends a data frame for the lost domain into the ring.
fn circulate(runtime: &mut Runtime, ox_id: u16) {
    let (s_id, d_id) = (FcId::new(0x01_0100), FcId::new(u32::from(LOST_DOMAIN) << 16 | 0x0100));
    let header = data_header(s_id, d_id, ox_id, 0xffff, 0, 0, 0, true, false);
    let mut buffer = runtime.instance.ports.pool.take();
    buffer.fill_fcoe(&header, &[0; 64]);
    let now = runtime.clock.now();
    runtime.instance.enter_data(now, (0, 1), Source::Machine, buffer);
}

fn dropped(runtime: &Runtime) -> u64 {
    runtime.instance.fabric.switches.iter().filter_map(|switch| switch.drops.get(HOLD_TIME)).sum()
}

fn forwarded(runtime: &Runtime) -> u64 {
    runtime.instance.fabric.switches.iter().map(|switch| switch.forwarded).sum()
}

/// Runs `body` in a thread and fails if it takes longer than a minute.
fn ends(body: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    let runs = thread::spawn(move || {
        body();
        done.send(()).unwrap();
    });
    assert_ne!(
        ended.recv_timeout(Duration::from_secs(60)),
        Err(std::sync::mpsc::RecvTimeoutError::Timeout),
        "the loop does not return"
    );
    runs.join().unwrap();
}

#[test]
fn a_step_ends_although_frames_circulate_between_the_switches_of_the_process() {
    ends(|| {
        let mut runtime = ring("circle-step");
        (0..10).for_each(|ox_id| circulate(&mut runtime, ox_id));
        assert!(runtime.step(), "frames are left");
        assert!(forwarded(&runtime) > 100);
    });
}

#[test]
fn frames_that_circulate_for_the_hold_time_are_dropped_and_counted() {
    ends(|| {
        let mut runtime = ring("circle-hold");
        let begun = runtime.clock.now();
        (0..10).for_each(|ox_id| circulate(&mut runtime, ox_id));
        while dropped(&runtime) < 10 {
            runtime.step();
        }
        let took = runtime.clock.now().since(begun);
        assert!(took >= Span::from_ms(200), "{took:?}");
        while runtime.step() {}
        assert_eq!(dropped(&runtime), 10, "each frame is dropped once");
    });
}

#[test]
fn a_switch_joins_the_fabric_while_frames_circulate() {
    ends(|| {
        let mut runtime = ring("circle-timers");
        let reaches_spur = |runtime: &Runtime| !runtime.instance.fabric.switches[1].fib.legs(SPUR_DOMAIN).is_empty();
        let now = runtime.clock.now();
        enable(&mut runtime, now, &["sw1:2"], false);
        while reaches_spur(&runtime) {
            runtime.step();
        }
        let now = runtime.clock.now();
        enable(&mut runtime, now, &["sw1:2"], true);
        // Needs exchanges and timers of the switches.
        let (before, mut ox_id) = (forwarded(&runtime), 0);
        while !reaches_spur(&runtime) {
            circulate(&mut runtime, ox_id);
            ox_id = ox_id.wrapping_add(1);
            runtime.step();
        }
        assert!(forwarded(&runtime) - before > 10_000, "frames have circled all the time");
    });
}

#[test]
fn a_full_work_queue_pauses_storage_and_sockets() {
    let mut work = WorkQueue::default();
    let mut pool = Pool::default();
    let mut pushed = 0;
    while !work.is_full() {
        let origin = Origin { source: Source::Machine, since: Instant::ZERO };
        work.push_frame(Entering { switch: 0, port: 0, origin, frame: pool.take() });
        pushed += 1;
    }
    assert_eq!(std::iter::from_fn(|| work.pop()).count(), pushed);
    assert!(work.is_empty() && !work.is_full());
}

#[test]
fn ports_inside_the_process_count_their_frames() {
    ends(|| {
        let mut runtime = ring("inner-counters");
        (0..10).for_each(|ox_id| circulate(&mut runtime, ox_id));
        while dropped(&runtime) < 10 {
            runtime.step();
        }
        let view = Tables::new(&runtime.instance, runtime.clock.now()).fabric(Which::Ports, None);
        let Table::Ports(PortsView { ports: rows }) = view.table else { panic!("{view:?}") };
        assert_eq!(rows.len(), 8);
        let sent: u64 = rows.iter().map(|row| row.frames_sent).sum();
        let received: u64 = rows.iter().map(|row| row.frames_received).sum();
        let least = forwarded(&runtime);
        assert!(sent >= least && received >= least, "{sent} {received} {least}");
        // Only the 10 frames came from outside, and none is in flight.
        assert_eq!(received, sent + 10);
    });
}

const HOSTS: &str = r#"
[switch.sw1]
domain = 1
[host.ethernet]
[host.simulated]
[storage.disk]
lun_size = "1MiB"
[[link]]
from = "ethernet"
to = "sw1:0"
ethernet = { carrier = "dgram" }
[[link]]
name = "nowhere"
from = "simulated"
to = "sw1:1"
[[link]]
from = "disk"
to = "sw1:2"
"#;

/// Enables or disables ports in one request.
fn enable(runtime: &mut Runtime, now: Instant, ports: &[&str], enabled: bool) -> Answer {
    let change = |port: &&str| PortChange { port: (*port).to_owned(), enabled };
    ports::enable(&mut runtime.instance, now, &ports.iter().map(change).collect::<Vec<_>>(), None)
}

fn dark(runtime: &Runtime) -> Vec<Option<Dark>> {
    let view = Tables::new(&runtime.instance, runtime.clock.now()).fabric(Which::Ports, None);
    let Table::Ports(PortsView { ports: rows }) = view.table else { panic!("{view:?}") };
    assert!(rows.iter().all(|row| row.light == row.dark.is_none()));
    rows.iter().map(|row| row.dark).collect()
}

#[test]
fn disabled_unplugged_and_dark_ports_are_distinguished() {
    let mut runtime = Runtime::up(lab("dark", HOSTS), &Options::default()).unwrap();
    assert_eq!(dark(&runtime), [Some(Dark::NoPeer), Some(Dark::Unplugged), None]);
    let now = runtime.clock.now();
    for port in ["sw1:0", "sw1:2"] {
        assert_eq!(enable(&mut runtime, now, &[port], false), Answer::Done);
    }
    runtime.step();
    assert_eq!(dark(&runtime), [Some(Dark::Disabled), Some(Dark::Unplugged), Some(Dark::Disabled)]);
    for port in ["sw1:0", "sw1:2"] {
        assert_eq!(enable(&mut runtime, now, &[port], true), Answer::Done);
    }
    runtime.step();
    assert_eq!(dark(&runtime), [Some(Dark::NoPeer), Some(Dark::Unplugged), None]);
}

#[test]
fn several_ports_of_a_request_change_together_or_not_at_all() {
    let mut runtime = Runtime::up(lab("several-ports", HOSTS), &Options::default()).unwrap();
    let (before, now) = (dark(&runtime), runtime.clock.now());
    for wrong in ["sw1:999", "sw9:0", "sw1"] {
        let answer = enable(&mut runtime, now, &["sw1:0", "sw1:2", wrong], false);
        assert!(matches!(answer, Answer::Failed(_)), "{wrong}: {answer:?}");
        runtime.step();
        assert_eq!(dark(&runtime), before, "{wrong}");
    }
    assert_eq!(enable(&mut runtime, now, &["sw1:0", "sw1:2"], false), Answer::Done);
    runtime.step();
    assert_eq!(dark(&runtime), [Some(Dark::Disabled), Some(Dark::Unplugged), Some(Dark::Disabled)]);
    assert_eq!(enable(&mut runtime, now, &["sw1:2", "sw1:0", "sw1:0"], true), Answer::Done);
    runtime.step();
    assert_eq!(dark(&runtime), before);
    let log = runtime.instance.log.view(0, None, |_| "", |_| 0.0);
    let ids: Vec<&str> = log.events.iter().filter(|row| row.audit).map(|row| &*row.id).collect();
    assert_eq!(ids, ["PORT-1004", "PORT-1004", "PORT-1003", "PORT-1003"]);
}

/// Steps until the first port of the second switch joins another switch.
fn join(runtime: &mut Runtime) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while runtime.instance.fabric.switches[1].machine.port_mode(0) != PortMode::E {
        assert!(std::time::Instant::now() < deadline, "the switches do not join");
        runtime.step();
    }
}

#[test]
fn a_disabled_switch_is_dark_at_all_kinds_of_ports_and_keeps_their_state() {
    let text = format!("{HOSTS}[switch.sw2]\ndomain = 2\n[[link]]\nfrom = \"sw1:3\"\nto = \"sw2:0\"\n");
    let mut runtime = Runtime::up(lab("switch-off", &text), &Options::default()).unwrap();
    let (off, unplugged) = (Some(Dark::SwitchDisabled), Some(Dark::Unplugged));
    assert_eq!(dark(&runtime), [Some(Dark::NoPeer), unplugged, None, None, None]);
    join(&mut runtime);
    let now = runtime.clock.now();
    enable(&mut runtime, now, &["sw1:0"], false);
    ports::enable_switch(&mut runtime.instance, now, 0, false, None);
    ports::enable_switch(&mut runtime.instance, now, 0, false, None);
    runtime.step();
    assert_eq!(dark(&runtime), [Some(Dark::Disabled), unplugged, off, off, Some(Dark::NoPeer)]);
    assert_eq!(runtime.instance.fabric.switches[1].machine.port_mode(0), PortMode::Down);
    assert_eq!(runtime.instance.fabric.switches[0].machine.port_mode(2), PortMode::Down);
    // Both switches are disabled: their cable waits for the second.
    ports::enable_switch(&mut runtime.instance, now, 1, false, None);
    ports::enable_switch(&mut runtime.instance, now, 0, true, None);
    runtime.step();
    assert_eq!(dark(&runtime), [Some(Dark::Disabled), unplugged, None, Some(Dark::NoPeer), off]);
    ports::enable_switch(&mut runtime.instance, now, 1, true, None);
    enable(&mut runtime, now, &["sw1:0"], true);
    join(&mut runtime);
    assert_eq!(dark(&runtime), [Some(Dark::NoPeer), unplugged, None, None, None]);
    let log = runtime.instance.log.view(0, None, |_| "", |_| 0.0);
    let ids: Vec<&str> = log.events.iter().filter(|row| row.audit).map(|row| &*row.id).collect();
    assert_eq!(ids, ["PORT-1004", "SWCH-1002", "SWCH-1002", "SWCH-1001", "SWCH-1001", "PORT-1003"]);
    assert!(log.events.iter().filter(|row| row.audit).all(|row| row.count == 1));
}

#[test]
fn ports_that_no_host_can_use_are_named_with_their_links() {
    let runtime = Runtime::up(lab("unusable", HOSTS), &Options::default()).unwrap();
    assert_eq!(runtime.unusable_ports(), [("sw1:1".to_owned(), "nowhere".to_owned())]);
}

/// A switch with a hundred storage ports.
const HUNDRED: &str = r#"
[switch.sw1]
domain = 1
addressing = "flat"
[storage."disk{1..100}"]
lun_size = "1MiB"
[[link]]
from = "disk{1..100}"
to = "sw1"
"#;

/// Runs until a condition holds and no port has work.
fn run_until(runtime: &mut Runtime, is_done: impl Fn(&Runtime) -> bool) {
    loop {
        let more = runtime.step();
        if !more && is_done(runtime) {
            return;
        }
        runtime.wait(more).unwrap();
    }
}

fn all_logged_in(runtime: &Runtime) -> bool {
    runtime.instance.services.systems.iter().flat_map(|system| &system.ports).all(|port| port.port_id != FcId::ZERO)
}

/// Number of frames that the node at a port of the first switch has sent.
fn sent(runtime: &Runtime, port: u16) -> u64 {
    runtime.instance.fabric.switches[0].inner(port).received
}

/// Sends an ECHO from a port that does not exist through a port of the first switch.
fn echo(runtime: &mut Runtime, port: u16, d_id: FcId) {
    let message = Message::from(Els::Echo([0; 8].into()));
    let header = message.header(FcId::new(u32::from(LOST_DOMAIN) << 16), d_id, 7, 0xffff);
    let now = runtime.clock.now();
    runtime.instance.leave_message(now, (0, port), Frame { header, payload: Payload::Typed(message) });
}

#[test]
fn a_step_visits_only_the_storage_port_that_has_work() {
    ends(|| {
        let mut runtime = Runtime::up(lab("visits", HUNDRED), &Options::default()).unwrap();
        run_until(&mut runtime, all_logged_in);
        let now = runtime.clock.now();
        let instance = &mut runtime.instance;
        instance.visits.clear();
        instance.send_from_storage(now);
        assert_eq!(instance.visits, [], "no port has work");
        let Attachment::Storage { system, port } = instance.fabric.switches[0].attachment(36) else { panic!() };
        let (d_id, before) = (instance.services.systems.visit(system).ports[0].port_id, sent(&runtime, 36));
        echo(&mut runtime, 36, d_id);
        runtime.instance.send_from_storage(now);
        assert_eq!(runtime.instance.visits, [Source::Storage(system, port)]);
        assert_eq!(sent(&runtime, 36) - before, 1, "the reply has left the port");
        assert!(!runtime.instance.services.has_ready());
    });
}

#[test]
fn a_storage_port_that_is_held_back_is_visited_when_it_is_released() {
    ends(|| {
        let mut runtime = Runtime::up(lab("released", HUNDRED), &Options::default()).unwrap();
        run_until(&mut runtime, all_logged_in);
        let now = runtime.clock.now();
        let Attachment::Storage { system, port } = runtime.instance.fabric.switches[0].attachment(5) else { panic!() };
        let source = Source::Storage(system, port);
        let (d_id, before) = (runtime.instance.services.systems.visit(system).ports[0].port_id, sent(&runtime, 5));
        runtime.instance.change_held(source, 1);
        runtime.instance.change_held(source, 1);
        echo(&mut runtime, 5, d_id);
        runtime.instance.send_from_storage(now);
        assert_eq!(sent(&runtime, 5), before, "the port is held back");
        assert!(!runtime.instance.services.has_ready(), "the loop does not spin meanwhile");
        runtime.instance.change_held(source, -1);
        assert!(!runtime.instance.services.has_ready(), "another queue still holds the port back");
        runtime.instance.change_held(source, -1);
        runtime.instance.visits.clear();
        runtime.instance.send_from_storage(now);
        assert_eq!(runtime.instance.visits, [source]);
        assert_eq!(sent(&runtime, 5) - before, 1, "the reply is sent");
    });
}

/// Number of the host ports in the following lab.
const BRIDGES: usize = 12;

/// A switch with host ports of the instance, each with a back end on its own storage system.
fn bridges() -> String {
    let mut text = "[switch.sw1]\ndomain = 1\n[pool.disks]\nextent = \"1MiB\"\n".to_owned();
    for number in 1..=BRIDGES {
        text.push_str(&format!(
            "[host.h{number}]\n[storage.d{number}]\nlun_size = \"8MiB\"\n\
             [back_end.b{number}]\npool = \"disks\"\nhost = \"h{number}\"\ntarget_port = \"d{number}\"\n\
             [[link]]\nfrom = \"h{number}\"\nto = \"sw1\"\n[[link]]\nfrom = \"d{number}\"\nto = \"sw1\"\n"
        ));
    }
    text
}

#[test]
fn a_step_visits_only_the_host_port_that_has_work() {
    ends(|| {
        let mut runtime = Runtime::up(lab("bridges", &bridges()), &Options::default()).unwrap();
        run_until(&mut runtime, |runtime| {
            let engine = runtime.instance.services.volumes.as_ref().unwrap();
            engine.hosts().len() == BRIDGES && engine.back_ends().all(|back_end| back_end.found.is_some())
        });
        let now = runtime.clock.now();
        let instance = &mut runtime.instance;
        instance.visits.clear();
        instance.send_from_hosts(now);
        assert_eq!(instance.visits, [], "no port has work");
        let Some((port, number)) =
            (0..).zip(&instance.fabric.switches[0].attachments).find_map(|(port, at)| match at {
                Attachment::Host(4) => Some((port, 4)),
                _ => None,
            })
        else {
            panic!("no host port")
        };
        let d_id = instance.services.volumes.as_ref().unwrap().hosts()[number].host().port_id();
        let before = sent(&runtime, port);
        echo(&mut runtime, port, d_id);
        runtime.instance.send_from_hosts(now);
        assert_eq!(runtime.instance.visits, [Source::Host(number)]);
        assert_eq!(sent(&runtime, port) - before, 1, "the reply has left the port");
    });
}

#[test]
fn a_lab_with_a_metadata_server_is_refused_with_a_remedy() {
    let text = r#"
[switch.sw1]
[storage.array]
lun_size = "64MiB"
iscsi = { portals = "127.0.0.1:3260" }
[storage.meta]
medium = "volumes"
out_of_band = { round_trip = "200us", service = "50us" }
[pool.disks]
extent = "4MiB"
[back_end.first]
pool = "disks"
target = "iqn.2026-11.example.sanloom:array"
portals = "127.0.0.1:3260"
[volume.data]
pool = "disks"
size = "8MiB"
storage = "meta"
lun = 0
"#;
    let refused = Runtime::up(lab("metadata", text), &Options::default()).map(drop).unwrap_err().to_string();
    assert!(
        refused.starts_with("`meta` is a metadata server") && refused.contains("remove `out_of_band`"),
        "{refused}"
    );
}

/// The simulator accepts the lab.
#[test]
fn a_back_end_behind_another_machine_is_refused_with_a_remedy() {
    let text = r#"
[switch.sw1]
[host.card]
[storage.array]
lun_size = "64MiB"
[[link]]
from = "card"
to = "sw1"
ethernet = { carrier = "dgram" }
[[link]]
from = "array"
to = "sw1"
[pool.disks]
extent = "4MiB"
[back_end.first]
pool = "disks"
host = "card"
target_port = "array"
"#;
    let refused = Runtime::up(lab("remote", text), &Options::default()).map(drop).unwrap_err().to_string();
    assert!(refused.contains("`card`, which is a machine of its own") && refused.contains("`card-sw1`"), "{refused}");
    assert!(refused.contains("remove `ethernet` from the link"), "{refused}");
}
