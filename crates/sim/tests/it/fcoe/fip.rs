//! FIP on the Ethernet plane: discovery, keep-alives, and the loss of a share of them.

use super::{PFC, READS};
use crate::labs;
use sanloom_fc::config::Picos;
use sanloom_fc::fip::{enode, fcf};
use sanloom_fc::san::Lab;
use sanloom_scsi::time::{Instant, Span};
use sanloom_sim::capture::Capture;
use sanloom_sim::net::Observed;
use sanloom_sim::net::ethernet::ObservedKind;
use sanloom_sim::run::{Observer, Options, simulate};
use sanloom_sim::world::{NoteKind, World};
use sanloom_wire::Wwnn;
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, Operation, flag};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The period of keep-alives, in ms.
const PERIOD_MS: u64 = 250;

/// Hosts at one forwarder behind a trunk of two cables, with a fault.
fn lab(hosts: usize, seed: u64, fault: &str) -> Arc<Lab> {
    labs::lab(&format!(
        r#"
[run]
duration = "6s"
warmup = "0s"
seed = {seed}
[ethernet_switch."{{near,far}}"]
pfc = 3
[switch.fcf]
ports = 255
fcoe = {{ keep_alive = "{PERIOD_MS}ms" }}
[host."h{{1..{hosts}}}"]
command_timeout = "50ms"
retries = 100
multipath = {{ no_path_retry = 100 }}
[storage.disk]
rate = "20k/s"
[[link]]
name = "fcf-near"
from = "fcf"
to = "near"
rate = "10GbE"
mtu = 2500
[[link]]
name = "trunk1"
from = "near"
to = "far"
rate = "10GbE"
mtu = 2500
[[link]]
name = "trunk2"
from = "near"
to = "far"
rate = "10GbE"
mtu = 2500
[[link]]
from = "h{{1..{hosts}}}"
to = "far"
rate = "10GbE"
mtu = 2500
[[link]]
name = "v{{1..{hosts}}}"
from = "h{{1..{hosts}}}"
to = "fcf"
ethernet = {{ vlan = 100 }}
[[link]]
from = "disk"
to = "fcf"
rate = "16GFC"
[workload.load]
hosts = "h1"
targets = "disk"
size = "8KiB"
depth = 1
think_time = "100ms"
[[fault]]
{fault}
"#
    ))
}

/// Changes of virtual links since the workloads began: time in ps since then, link, up.
fn changes(world: &World) -> Vec<(u64, u16, bool)> {
    let changes = world.notes.list().iter().filter_map(|note| match note.kind {
        NoteKind::Link { link, up } => Some((note.at_ps - world.start_ps, link, up)),
        _ => None,
    });
    changes.collect()
}

/// Returns the chance that two of `frames` frames in a row are lost, of which each is lost with a
/// chance: 2.5 periods then pass without one.
fn chance_to_end(loss: f64, frames: u32) -> f64 {
    // Chances that no two were lost so far, by whether the last one was.
    let (mut whole, mut one_lost) = (1.0, 0.0);
    for _ in 0..frames {
        (whole, one_lost) = ((whole + one_lost) * (1.0 - loss), whole * loss);
    }
    1.0 - whole - one_lost
}

/// Ten and a half periods hold ten or eleven frames. A share of the advertisements is lost in one
/// run, and one of the keep-alives in the other one.
#[test]
fn a_share_of_loss_ends_virtual_links_with_the_chance_of_two_lost_frames_in_a_row() {
    const HOSTS: usize = 200;
    for (direction, loss, seed) in [("forward", 0.3, 1), ("backward", 0.3, 2), ("forward", 0.15, 3)] {
        let fault = format!(
            "kind = \"frame-loss\"\nlink = \"fcf-near\"\ndirection = \"{direction}\"\nprobability = {loss}\n\
             at = \"1s\"\nfor = \"2625ms\""
        );
        let finished = simulate(&lab(HOSTS, seed, &fault), &Options::default(), &mut sanloom_sim::run::Blind);
        labs::check(&finished);
        let changes = changes(&finished.world);
        let ended: BTreeSet<u16> = changes.iter().filter(|change| !change.2).map(|change| change.1).collect();
        // A link ends at the earliest 2.5 periods after the last frame before the fault.
        let earliest = 1_000_000_000_000 + PERIOD_MS * 1_480_000_000;
        assert!(changes.iter().all(|change| change.2 || change.0 > earliest), "{changes:?}");
        let [least, most] = [10, 11].map(|frames| chance_to_end(loss, frames));
        let hosts = HOSTS as f64;
        let spread = |chance: f64| 4.0 * (hosts * chance * (1.0 - chance)).sqrt();
        let bounds = hosts * least - spread(least)..hosts * most + spread(most);
        let found = ended.len() as f64;
        println!("{direction}, {loss}: {found} links of {HOSTS} have ended, {bounds:?} expected");
        assert!(bounds.contains(&found), "{direction}, {loss}: {found}, not within {bounds:?}");
        // A link that has ended logs in again.
        let state: BTreeMap<u16, bool> = changes.iter().map(|change| (change.1, change.2)).collect();
        assert!(state.values().all(|up| *up), "{state:?}");
    }
}

/// Frames of FIP on a watched Ethernet link: the virtual links whose frames it has carried.
#[derive(Default)]
struct Carried(BTreeSet<u16>);

impl Observer for Carried {
    fn observed(&mut self, world: &World, _: &[Observed]) {
        for item in world.net.ethernet.observed() {
            if let ObservedKind::Frame { packet, .. } = item.kind
                && packet.is_fip()
            {
                self.0.insert((packet.flow / 2) as u16);
            }
        }
    }
}

#[test]
fn a_lost_member_of_a_trunk_ends_the_links_whose_hash_takes_it() {
    let whole = "kind = \"frame-loss\"\nlink = \"trunk1\"\nprobability = 0.0\nat = \"1s\"\nfor = \"2s\"";
    let lost = "kind = \"frame-loss\"\nlink = \"trunk1\"\nprobability = 1.0\nat = \"1s\"\nfor = \"2s\"";
    let run = |fault: &str, options: &Options, observer: &mut dyn FnMut(&World)| {
        struct Each<'e>(&'e mut dyn FnMut(&World));
        impl Observer for Each<'_> {
            fn observed(&mut self, world: &World, _: &[Observed]) {
                (self.0)(world);
            }
        }
        let finished = simulate(&lab(40, 7, fault), options, &mut Each(observer));
        labs::check(&finished);
        finished
    };
    let lab = lab(40, 7, lost);
    let member = lab.ethernet_links.iter().position(|link| link.name == "trunk1").expect("the trunk") as u16;
    let mut carried = Carried::default();
    run(whole, &Options { watch_ethernet: vec![member], ..Options::default() }, &mut |world| {
        carried.observed(world, &[]);
    });
    let finished = run(lost, &Options::default(), &mut |_| {});
    let changes = changes(&finished.world);
    let ended: BTreeSet<u16> = changes.iter().filter(|change| !change.2).map(|change| change.1).collect();
    assert_eq!(ended, carried.0);
    assert!((20..40).contains(&ended.len()), "each of two directions takes one of two members: {}", ended.len());
    // Links log in again with the next advertisement after the fault.
    let returned: BTreeMap<u16, u64> =
        changes.iter().filter(|change| change.2).map(|change| (change.1, change.0)).collect();
    assert_eq!(returned.keys().copied().collect::<BTreeSet<u16>>(), ended);
    let window = 3_000_000_000_000..3_000_000_000_000 + (PERIOD_MS + 10) * 1_000_000_000;
    assert!(returned.values().all(|at| window.contains(at)), "{returned:?}");
}

/// A frame of FIP in a capture.
struct Seen {
    at: Instant,
    to: MacAddr,
    from: MacAddr,
    tag: Option<u16>,
    pdu: Vec<u8>,
    packet: Fip,
}

/// Returns the frames of FIP in a capture of one interface, in the order of time.
fn fip_frames(file: &[u8]) -> Vec<Seen> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut found) = (0, Vec::new());
    while at < file.len() {
        if word(at) == 6 {
            let bytes = &file[at + 28..at + 28 + word(at + 20)];
            let (header, pdu) = EtherHeader::parse(bytes).expect("a frame of Ethernet");
            if header.ether_type == EtherType::FIP {
                found.push(Seen {
                    at: Instant::from_ns((word(at + 12) as u64) << 32 | word(at + 16) as u64),
                    to: header.to,
                    from: header.from,
                    tag: header.tag.map(|tag| tag.vlan),
                    pdu: pdu.to_vec(),
                    packet: Fip::parse(pdu).expect("a packet of FIP"),
                });
            }
        }
        at += word(at + 4);
    }
    found
}

struct Collect {
    capture: Capture,
    out: Vec<u8>,
}

impl Observer for Collect {
    fn observed(&mut self, world: &World, observed: &[Observed]) {
        self.capture.add(world, observed, &mut self.out);
    }
}

/// A run in which a direction of the link of the forwarder loses every frame from the first to the
/// third second.
struct Run {
    lab: Arc<Lab>,
    /// Frames of FIP at the host.
    frames: Vec<Seen>,
    /// Start of the loss.
    loss_ns: u64,
}

impl Run {
    fn new(direction: &str) -> Run {
        let fault = format!(
            "{READS}\n[[fault]]\nkind = \"frame-loss\"\nlink = \"fcf-tor\"\nprobability = 1.0\n\
             direction = \"{direction}\"\nat = \"1s\"\nfor = \"2s\""
        );
        let text = super::text("10GbE", "16GFC", PFC, "", &fault).replace("400ms", "6s");
        let mut lab = Lab::clone(&labs::lab(&text));
        lab.workloads.iter_mut().for_each(|workload| workload.start = Picos::from_ms(5_999));
        lab.live.fcoe.iter_mut().for_each(|fcoe| fcoe.keep_alive = Picos::from_ms(500));
        let lab = Arc::new(lab);
        let number = lab.ethernet_links.iter().position(|link| link.name == "server-tor").expect("a link") as u16;
        let mut out = Vec::new();
        let capture = Capture::new(&lab, &[], &mut out).with_ethernet(&lab, &[number], &mut out);
        let options = Options { watch_ethernet: vec![number], ..Options::default() };
        let mut collect = Collect { capture, out };
        let finished = simulate(&lab, &options, &mut collect);
        labs::check(&finished);
        let Collect { capture, mut out } = collect;
        capture.finish(&mut out);
        let loss_ns = (finished.world.start_ps + 1_000_000_000_000) / 1_000;
        Run { lab, frames: fip_frames(&out), loss_ns }
    }

    /// Returns whether the fault loses a frame of the host.
    fn is_lost(&self, seen: &Seen) -> bool {
        (self.loss_ns..self.loss_ns + 2_000_000_000).contains(&seen.at.as_ns())
    }
}

/// Operation, destination and time of a frame.
type Sent = (Operation, MacAddr, Instant);

/// Compares frames by operation and destination, and their times within a few microseconds: the
/// machine here receives a frame when its first bit leaves the switch.
fn compare(found: &[Sent], expected: &[Sent]) {
    let kinds = |sent: &[Sent]| sent.iter().map(|(operation, to, _)| (*operation, *to)).collect::<Vec<_>>();
    assert_eq!(kinds(found), kinds(expected), "{found:?}\n{expected:?}");
    for (found, expected) in found.iter().zip(expected) {
        let apart = found.2.as_ns().abs_diff(expected.2.as_ns());
        assert!(apart < 20_000, "{found:?} is {apart} ns from {expected:?}");
    }
}

/// The ENode of the live runtime receives what the host of a simulation has received, and sends
/// what that host has sent, at the same times.
#[test]
fn the_enode_machine_sends_the_frames_of_a_simulated_host() {
    for direction in ["forward", "backward"] {
        let Run { frames, .. } = Run::new(direction);
        let of_discovery = |seen: &&Seen| seen.packet.link_service().is_none();
        let is_own = |seen: &Seen| !seen.packet.has(flag::FCF) && seen.packet.operation != Operation::VLAN_NOTIFICATION;
        let own: Vec<&Seen> = frames.iter().filter(of_discovery).filter(|seen| is_own(seen)).collect();
        let mac = own.first().expect("a VLAN request").from;
        let mut config = enode::EnodeConfig::new(mac, Wwnn(1));
        config.selection_delay = Span::ZERO;
        let mut machine = enode::Enode::new(config);
        let mut sent: Vec<Sent> = Vec::new();
        let (mut selections, mut early) = (0, 0);
        machine.handle(Instant::ZERO, enode::Input::DiscoverVlans);
        let mut drain = |machine: &mut enode::Enode, now: Instant| {
            while let Some(output) = machine.poll_output() {
                match output {
                    enode::Output::Fip(FipFrame { to, packet, .. }) => sent.push((packet.operation, to, now)),
                    enode::Output::Vlans { vlans, .. } => {
                        assert_eq!(vlans, [100]);
                        machine.handle(now, enode::Input::LinkUp);
                    }
                    enode::Output::FcfUp(_) => selections += 1,
                    _ => {}
                }
            }
        };
        drain(&mut machine, Instant::ZERO);
        let end = frames.last().expect("frames").at;
        let inputs = frames.iter().filter(of_discovery).filter(|seen| !is_own(seen));
        for seen in inputs.map(Some).chain([None]) {
            let until = seen.map_or(end, |seen| seen.at);
            while let Some(at) = machine.poll_timeout().filter(|at| *at < until) {
                machine.handle(at, enode::Input::Timeout);
                drain(&mut machine, at);
            }
            if let Some(seen) = seen {
                // Before it knows its VLAN, a host has no link.
                early +=
                    u64::from(machine.fcfs().count() == 0 && seen.packet.operation != Operation::VLAN_NOTIFICATION);
                let pdu = seen.pdu.clone().into_boxed_slice();
                machine.handle(seen.at, enode::Input::Fip { to: seen.to, from: seen.from, pdu });
                drain(&mut machine, seen.at);
            }
        }
        let own: Vec<Sent> = own.iter().map(|seen| (seen.packet.operation, seen.to, seen.at)).collect();
        compare(&own, &sent);
        assert!(own.len() > 9 && selections == 2, "{own:?}, {selections} selections");
        assert!(machine.discards().total() <= early, "{:?}, {early}", machine.discards());
    }
}

/// The FCF of the live runtime receives the frames of a simulated host, with its logins, and ends
/// its virtual link when its forwarder has ended it in the simulation.
#[test]
fn the_fcf_machine_ends_the_link_of_a_simulated_host_at_the_same_time() {
    let run = Run::new("backward");
    let Run { lab, frames, .. } = &run;
    let mac = frames.iter().find(|seen| seen.packet.has(flag::FCF)).expect("a frame of the forwarder").from;
    let mut config = fcf::FcfConfig::new(mac, lab.switches[0].wwn, vec![0]);
    config.period = Span::from_ms(500);
    config.vlans = vec![100];
    config.neighbours = false;
    let mut machine = fcf::Fcf::new(config);
    machine.handle(Instant::ZERO, fcf::Input::LinkUp);
    machine.handle(Instant::ZERO, fcf::Input::Fabric { name: lab.switches[0].wwn, available: true });
    let mut sent: Vec<Sent> = Vec::new();
    let mut drain = |machine: &mut fcf::Fcf, now: Instant| {
        while let Some(output) = machine.poll_output() {
            let fcf::Output::Fip(FipFrame { to, packet, .. }) = output else { continue };
            if packet.link_service().is_none() && (packet.operation != Operation::ADVERTISEMENT || !to.is_group()) {
                sent.push((packet.operation, to, now));
            }
        }
    };
    // The link goes up with a notice to all hosts.
    drain(&mut machine, Instant::ZERO);
    for seen in frames {
        while let Some(at) = machine.poll_timeout().filter(|at| *at < seen.at) {
            machine.handle(at, fcf::Input::Timeout);
            drain(&mut machine, at);
        }
        match (seen.packet.has(flag::FCF), seen.packet.link_service()) {
            // The switch behind the forwarder has answered a login.
            (true, Some((_, frame))) => {
                machine.handle(seen.at, fcf::Input::Send { port: 0, frame: frame.clone() });
            }
            (false, _) if seen.from != mac && !run.is_lost(seen) => {
                let pdu = seen.pdu.clone().into_boxed_slice();
                machine.handle(seen.at, fcf::Input::Fip { to: seen.to, from: seen.from, pdu });
            }
            _ => {}
        }
        drain(&mut machine, seen.at);
    }
    let own = frames.iter().filter(|seen| seen.from == mac && seen.packet.link_service().is_none());
    let own = own.filter(|seen| seen.packet.operation != Operation::ADVERTISEMENT || !seen.to.is_group());
    let own: Vec<Sent> = own.map(|seen| (seen.packet.operation, seen.to, seen.at)).collect();
    compare(&own, &sent);
    assert!(own.iter().filter(|sent| sent.0 == Operation::CLEAR_VIRTUAL_LINKS).count() == 2, "{own:?}");
}

/// Tags, contents and lengths of the frames of a login.
#[test]
fn frames_have_the_contents_and_lengths_of_the_standard() {
    let Run { lab, frames, .. } = Run::new("forward");
    let (host, forwarder) = (MacAddr([2, 0, 0, 0, 0, 0]), frames[1].from);
    for seen in &frames {
        let is_vlan = [Operation::VLAN_REQUEST, Operation::VLAN_NOTIFICATION].contains(&seen.packet.operation);
        assert_eq!(seen.tag, if is_vlan { None } else { Some(100) });
        assert!(seen.from == host || seen.from == forwarder, "{}", seen.from);
    }
    let of = |operation: Operation| frames.iter().find(|seen| seen.packet.operation == operation).expect("a frame");
    let solicitation = of(Operation::SOLICITATION);
    assert_eq!((solicitation.to, solicitation.packet.name()), (MacAddr::ALL_FCFS, Some(lab.hosts[0].wwnn)));
    assert_eq!(solicitation.packet.max_fcoe_bytes(), Some(2_158));
    let is_solicited = |seen: &&Seen| seen.packet.has(flag::SOLICITED | flag::AVAILABLE | flag::FCF);
    let answer = frames.iter().find(is_solicited).expect("a solicited advertisement");
    assert_eq!((answer.to, answer.pdu.len()), (host, 2_158));
    let multicast = frames.iter().find(|seen| seen.to == MacAddr::ALL_ENODES && seen.packet.priority().is_some());
    let multicast = &multicast.expect("an advertisement").packet;
    let period = Descriptor::AdvertisementPeriod { no_keep_alives: false, period_ms: 500 };
    assert!(multicast.descriptors.contains(&period) && multicast.priority() == Some(128), "{multicast:?}");
    assert_eq!(of(Operation::KEEP_ALIVE).packet.mac(), Some(host));
}

/// The expectations of the example: both directions of one link take the faulty cable, and none of
/// the other one.
#[test]
fn the_example_ends_the_links_over_the_faulty_cable() {
    let text = include_str!("../../../../../examples/fcoe-discovery.toml");
    let results = labs::run(&labs::lab(text));
    let down_s = |name: &str| results.links.iter().find(|link| link.name == name).expect(name).down_s;
    assert!(down_s("fcoe1") > 0.2 && down_s("fcoe2") == 0.0, "{} and {} s", down_s("fcoe1"), down_s("fcoe2"));
    assert_eq!(results.totals.io.ios_failed, 0);
}
