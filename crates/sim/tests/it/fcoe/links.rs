//! Virtual links and logins of random labs against a plain model of them, at every instant.
//!
//! The model knows the frames of FIP that arrive at the ends of virtual links, and the changes of
//! the Ethernet links. A virtual link ends at once when an interface at its end has no light, and
//! otherwise when one of its ends has received no keep-alive or advertisement for 2.5 periods
//! (FC-BB-6). The link comes up when a solicited advertisement arrives. A host whose virtual link
//! ends loses its targets at that instant, and logs in soon after it comes up.

use crate::labs;
use sanloom_fc::config::Picos;
use sanloom_scsi::random::SplitMix64;
use sanloom_sim::host::PathState;
use sanloom_sim::net::Observed;
use sanloom_sim::net::ethernet::{ObservedKind, Station};
use sanloom_sim::run::{Observer, Options, simulate};
use sanloom_sim::world::{NoteKind, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SEEDS: u64 = 12;
/// Period of keep-alives in ps, and the time without them after which a virtual link ends.
const KEEP_ALIVE_PS: u64 = 20_200_000_000;
const PATIENCE_PS: u64 = KEEP_ALIVE_PS / 2 * 5;
/// Time within which an N_Port logs in with the fabric and with a target, in ps.
const LOGIN_PS: u64 = 10_000_000_000;

/// A lab with the ends of its Ethernet links and of its virtual links, by names of nodes.
struct Draw {
    text: String,
    cables: Vec<[String; 2]>,
    virtual_links: Vec<[String; 2]>,
}

/// Draws hosts at forwarders, over one to three Ethernet switches. Each host has one path.
fn draw(seed: u64) -> Draw {
    let dice = &mut SplitMix64(seed);
    let (switches, forwarders, hosts) = (1 + dice.index(3), 1 + dice.index(2), 1 + dice.index(4));
    let mut text = String::from(
        "[run]\nduration = \"700ms\"\nwarmup = \"0s\"\nstop_issuing = \"600ms\"\n[host.\"h{0..5}\"]\n\
         command_timeout = \"50ms\"\nretries = 100\nmultipath = { no_path_retry = 100 }\n",
    );
    text = text.replace("{0..5}", &format!("{{0..{}}}", hosts - 1));
    let (mut cables, mut virtual_links) = (Vec::new(), Vec::new());
    for switch in 0..switches {
        text += &format!("[ethernet_switch.e{switch}]\npfc = 3\n");
    }
    for forwarder in 0..forwarders {
        text += &format!("[switch.fcf{forwarder}]\n[storage.disk{forwarder}]\nrate = \"20k/s\"\n");
        text += &format!("[[link]]\nfrom = \"disk{forwarder}\"\nto = \"fcf{forwarder}\"\nrate = \"16GFC\"\n");
        cables.push([format!("fcf{forwarder}"), format!("e{}", dice.index(switches))]);
    }
    for host in 0..hosts {
        cables.push([format!("h{host}"), format!("e{}", dice.index(switches))]);
        let forwarder = dice.index(forwarders);
        virtual_links.push([format!("h{host}"), format!("fcf{forwarder}")]);
        text += &format!(
            "[workload.w{host}]\nhosts = \"h{host}\"\ntargets = \"disk{forwarder}\"\nsize = \"8KiB\"\ndepth = 2\n"
        );
    }
    for switch in 1..switches {
        for _ in 0..1 + dice.below(2) {
            cables.push([format!("e{}", dice.index(switch)), format!("e{switch}")]);
        }
    }
    for (number, [from, to]) in cables.iter().enumerate() {
        text += &format!(
            "[[link]]\nname = \"c{number}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10GbE\"\nmtu = 2500\n"
        );
    }
    for (number, [from, to]) in virtual_links.iter().enumerate() {
        text +=
            &format!("[[link]]\nname = \"v{number}\"\nfrom = \"{from}\"\nto = \"{to}\"\nethernet = {{ vlan = 100 }}\n");
    }
    for _ in 0..1 + dice.below(8) {
        let (at, length) = (1 + dice.below(450), 1 + dice.below(120));
        let part = if dice.chance(85) {
            format!("kind = \"link-down\"\nlink = \"c{}\"", dice.index(cables.len()))
        } else {
            format!("kind = \"switch-reset\"\nswitch = \"e{}\"", dice.index(switches))
        };
        text += &format!("[[fault]]\n{part}\nat = \"{at}ms\"\nfor = \"{length}ms\"\n");
    }
    Draw { text, cables, virtual_links }
}

/// Kinds of frames of FIP, by the code in their packets.
const SOLICITED: u32 = 4;
const ADVERTISEMENT: u32 = 5;
const KEEP_ALIVE: u32 = 6;

/// An event of the plain model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A cable goes dark or comes up.
    Cable(usize, bool),
    /// A frame of FIP arrives at an end of a virtual link.
    Arrival { link: usize, to_forwarder: bool, code: u32 },
}

/// A frame of FIP on the line to its interface.
#[derive(Clone, Copy, Debug)]
struct OnLine {
    start_ps: u64,
    arrival_ps: u64,
    cable: usize,
    link: usize,
    to_forwarder: bool,
    code: u32,
}

/// Frames of FIP towards interfaces, and keep-alives of hosts with the times at which they begin.
#[derive(Default)]
struct Frames {
    cables: Vec<Option<usize>>,
    links: Vec<Option<usize>>,
    arriving: Vec<OnLine>,
    keep_alives: Vec<(usize, u64)>,
}

impl Observer for Frames {
    fn observed(&mut self, world: &World, _: &[Observed]) {
        for item in world.net.ethernet.observed() {
            let ObservedKind::Frame { packet, end_ps } = item.kind else { continue };
            if !packet.is_fip() {
                continue;
            }
            let Some(link) = self.links[packet.flow as usize / 2] else { continue };
            // Hosts are the first ends of their links.
            let (to_forwarder, code) = (packet.flow % 2 == 0, packet.position >> 24);
            let cable = item.line as usize / 2;
            let line = &world.net.ethernet.lines()[item.line as usize];
            match line.to {
                Station::Interface(_) => self.arriving.push(OnLine {
                    start_ps: item.at_ps,
                    arrival_ps: end_ps + world.lab.ethernet_links[cable].propagation.0,
                    cable: self.cables[cable].expect("a cable"),
                    link,
                    to_forwarder,
                    code,
                }),
                Station::Switch { .. } if code == KEEP_ALIVE && matches!(line.from, Station::Interface(_)) => {
                    self.keep_alives.push((link, item.at_ps))
                }
                Station::Switch { .. } => {}
            }
        }
    }
}

/// State of a virtual link in the plain model.
#[derive(Clone, Copy, Default)]
struct Plain {
    is_up: bool,
    /// Time of the last frame that shows that the other end is alive, at the host and at the
    /// forwarder.
    heard_ps: [u64; 2],
}

/// Changes of the virtual links by the plain model: time, link and whether it comes up.
fn expected(draw: &Draw, cables: &[(u64, usize, bool)], frames: &Frames, end_ps: u64) -> Vec<(u64, usize, bool)> {
    let went_dark = |frame: &&OnLine| {
        let during = |at: u64| (frame.start_ps..=frame.arrival_ps).contains(&at);
        cables.iter().any(|&(at, cable, up)| cable == frame.cable && !up && during(at))
    };
    let mut events: Vec<(u64, Event)> = cables.iter().map(|&(at, cable, up)| (at, Event::Cable(cable, up))).collect();
    let arrival = |frame: &OnLine| {
        let OnLine { link, to_forwarder, code, .. } = *frame;
        (frame.arrival_ps, Event::Arrival { link, to_forwarder, code })
    };
    events.extend(frames.arriving.iter().filter(|frame| !went_dark(frame)).map(arrival));
    events.sort();
    let mut links = vec![Plain::default(); draw.virtual_links.len()];
    let (mut dark, mut found) = (BTreeSet::new(), Vec::new());
    let silence = |links: &mut [Plain], until: u64, found: &mut Vec<(u64, usize, bool)>| {
        for (number, link) in links.iter_mut().enumerate() {
            let ends_ps = link.heard_ps.map(|heard| heard + PATIENCE_PS).into_iter().min().expect("two ends");
            if link.is_up && ends_ps <= until {
                link.is_up = false;
                found.push((ends_ps, number, false));
            }
        }
    };
    for (now, event) in events.into_iter().filter(|(at, _)| *at <= end_ps) {
        silence(&mut links, now, &mut found);
        match event {
            Event::Cable(cable, true) => drop(dark.remove(&cable)),
            Event::Cable(cable, false) => {
                dark.insert(cable);
                for (number, ends) in draw.virtual_links.iter().enumerate() {
                    // Hosts and forwarders have one cable each.
                    if links[number].is_up && draw.cables[cable].iter().any(|node| ends.contains(node)) {
                        links[number].is_up = false;
                        found.push((now, number, false));
                    }
                }
            }
            Event::Arrival { link, to_forwarder, code } => {
                let ends = &draw.virtual_links[link];
                let own = |node: &String| draw.cables.iter().position(|cable| cable.contains(node)).expect("a cable");
                let is_lit = ends.iter().all(|node| !dark.contains(&own(node)));
                let plain = &mut links[link];
                match code {
                    SOLICITED if !plain.is_up && is_lit => {
                        *plain = Plain { is_up: true, heard_ps: [now; 2] };
                        found.push((now, link, true));
                    }
                    SOLICITED | ADVERTISEMENT if !to_forwarder => plain.heard_ps[0] = now,
                    KEEP_ALIVE if to_forwarder => plain.heard_ps[1] = now,
                    _ => {}
                }
            }
        }
    }
    silence(&mut links, end_ps, &mut found);
    found.sort();
    found
}

/// Returns whether cables that are not dark join two nodes. Only Ethernet switches pass frames on.
fn are_joined(cables: &[[String; 2]], dark: &BTreeSet<usize>, [from, to]: &[String; 2]) -> bool {
    let mut reached = BTreeSet::from([from.as_str()]);
    loop {
        let before = reached.len();
        for [a, b] in cables.iter().enumerate().filter(|(number, _)| !dark.contains(number)).map(|(_, ends)| ends) {
            for [one, other] in [[a, b], [b, a]] {
                if reached.contains(one.as_str()) && (one == from || one.starts_with('e')) {
                    reached.insert(other);
                }
            }
        }
        if reached.len() == before {
            return reached.contains(to.as_str());
        }
    }
}

/// Time for a few frames on their way, in ps.
const TRANSIT_PS: u64 = 1_000_000_000;
/// Longest time between two advertisements: the period and its random delay (1/80 of it).
const ADVERTISED_PS: u64 = KEEP_ALIVE_PS + KEEP_ALIVE_PS / 80;
/// Time between two VLAN requests, in ps.
const VLAN_REQUEST_PS: u64 = 1_000_000_000_000;

/// Time between two changes of the cables.
struct Stretch {
    from_ps: u64,
    to_ps: u64,
    is_joined: bool,
}

/// Checks the changes of a virtual link by the changes of the cables. `changes` begin with the
/// first discovery, when all cables are up. Returns the ends and the returns that were predicted.
fn check_joined(
    case: &str,
    draw: &Draw,
    link: usize,
    cables: &[(u64, usize, bool)],
    changes: &[(u64, usize, bool)],
    end_ps: u64,
) -> [usize; 2] {
    let ends = &draw.virtual_links[link];
    let own: Vec<usize> =
        (0..draw.cables.len()).filter(|at| ends.iter().any(|n| draw.cables[*at].contains(n))).collect();
    let of_host = draw.cables.iter().position(|cable| cable.contains(&ends[0])).expect("a cable");
    let ups: Vec<(u64, bool)> = changes.iter().filter(|change| change.1 == link).map(|c| (c.0, c.2)).collect();
    let is_up_at = |now: u64| ups.iter().rev().find(|change| change.0 <= now).is_some_and(|change| change.1);
    let mut instants: BTreeSet<u64> = cables.iter().map(|change| change.0).filter(|at| *at < end_ps).collect();
    instants.extend([0, end_ps]);
    let instants: Vec<u64> = instants.into_iter().collect();
    let (mut dark, mut stretches) = (BTreeSet::new(), Vec::<Stretch>::new());
    // Times at which the host has light again, and looks for its VLAN.
    let mut lit = Vec::new();
    for pair in instants.windows(2) {
        for &(at, cable, up) in cables.iter().filter(|change| change.0 == pair[0]) {
            if up {
                dark.remove(&cable);
                lit.extend((cable == of_host).then_some(at));
            } else {
                dark.insert(cable);
            }
        }
        stretches.push(Stretch { from_ps: pair[0], to_ps: pair[1], is_joined: are_joined(&draw.cables, &dark, ends) });
    }
    let joined_within =
        |from: u64, to: u64| stretches.iter().any(|part| part.is_joined && part.from_ps <= to && from <= part.to_ps);
    let parted_within =
        |from: u64, to: u64| stretches.iter().any(|part| !part.is_joined && part.from_ps <= to && from <= part.to_ps);
    for &(at, up) in &ups {
        if up {
            assert!(joined_within(at.saturating_sub(TRANSIT_PS), at), "{case}: up at {at} ps without a way");
            continue;
        }
        let went_dark = cables.iter().any(|&(when, cable, lit)| when == at && !lit && own.contains(&cable));
        let since = at.saturating_sub(PATIENCE_PS + TRANSIT_PS);
        assert!(went_dark || parted_within(since, at), "{case}: ended at {at} ps on a whole way");
    }
    let (mut ended, mut returned, mut parted_ps) = (0, 0, None);
    for &Stretch { from_ps, to_ps, is_joined } in &stretches {
        if !is_joined {
            let limit_ps = *parted_ps.get_or_insert(from_ps) + PATIENCE_PS + TRANSIT_PS;
            let late = (limit_ps.max(from_ps)..to_ps).step_by(TRANSIT_PS as usize).find(|at| is_up_at(*at));
            assert_eq!(late, None, "{case}: up without a way since {parted_ps:?}");
            ended += usize::from(limit_ps < to_ps);
            continue;
        }
        parted_ps = None;
        // The link is down from here on, if it is not up before the end of the stretch.
        let down_ps = match ups.iter().rev().find(|change| change.0 < to_ps) {
            Some(&(at, false)) => at.max(from_ps),
            _ => from_ps,
        };
        let last_lit = lit.iter().rev().find(|at| **at < to_ps).copied();
        let vlan_ps = last_lit.map_or(down_ps, |lit_ps| {
            let mut request_ps = lit_ps;
            while request_ps < down_ps && !joined_within(request_ps, request_ps) {
                request_ps += VLAN_REQUEST_PS;
            }
            request_ps.max(down_ps)
        });
        let limit_ps = vlan_ps + ADVERTISED_PS + TRANSIT_PS;
        if limit_ps < to_ps {
            // It may have ended and be on its way back.
            let is_up = is_up_at(limit_ps) || is_up_at(limit_ps + TRANSIT_PS);
            assert!(is_up, "{case}: a way from {from_ps} to {to_ps}, down at {limit_ps} ps: {ups:?}");
            // The first discovery is no return.
            returned += usize::from(from_ps > 0 && !is_up_at(from_ps));
        }
    }
    [ended, returned]
}

/// Checks that each host has sent a keep-alive in each period while its virtual link was up, and
/// none otherwise.
fn check_keep_alives(seed: u64, link: usize, changes: &[(u64, usize, bool)], frames: &Frames, end_ps: u64) {
    let mut up_ps = None;
    let mut due = Vec::new();
    let own = changes.iter().filter(|change| change.1 == link).map(|change| (change.0, change.2));
    for (at, up) in own.chain([(end_ps, false)]) {
        if let Some(since) = up_ps.take() {
            let times = (1..).map(|count| since + count * KEEP_ALIVE_PS);
            due.extend(times.take_while(|due| *due < at));
        }
        up_ps = up.then_some(at);
    }
    let sent: Vec<u64> = frames.keep_alives.iter().filter(|sent| sent.0 == link).map(|sent| sent.1).collect();
    assert_eq!(sent.len(), due.len(), "seed {seed}: keep-alives of h{link}: {sent:?} {due:?}");
    for (sent, due) in sent.iter().zip(&due) {
        // A frame waits for those before it.
        assert!((*due..due + 100_000_000).contains(sent), "seed {seed}: h{link} at {sent}, not {due}");
    }
}

/// Runs one lab and compares. Returns the changes of virtual links, the logins, and the ends and
/// returns of virtual links that follow from the cables alone.
fn compare(seed: u64) -> [usize; 4] {
    let draw = draw(seed);
    let mut lab = (*labs::lab(&draw.text)).clone();
    lab.live.fcoe.iter_mut().for_each(|fcoe| fcoe.keep_alive = Picos(KEEP_ALIVE_PS));
    let lab = Arc::new(lab);
    let name_of = |links: Vec<&String>, prefix: char| -> Vec<Option<usize>> {
        links.into_iter().map(|name| name.strip_prefix(prefix).and_then(|number| number.parse().ok())).collect()
    };
    let cables = name_of(lab.ethernet_links.iter().map(|link| &link.name).collect(), 'c');
    let virtual_links = name_of(lab.links.iter().map(|link| &link.name).collect(), 'v');
    let mut frames = Frames { cables: cables.clone(), links: virtual_links.clone(), ..Frames::default() };
    let watch_ethernet = (0..lab.ethernet_links.len() as u16).collect();
    let finished = simulate(&lab, &Options { watch_ethernet, ..Options::default() }, &mut frames);
    labs::check(&finished);
    let (mut changes, mut found) = (Vec::new(), Vec::new());
    let mut paths: BTreeMap<usize, Vec<(u64, bool)>> = BTreeMap::new();
    for note in finished.world.notes.list() {
        match note.kind {
            NoteKind::EthernetLink { link, up } => {
                changes.push((note.at_ps, cables[usize::from(link)].expect("a cable"), up));
            }
            NoteKind::Link { link, up } => {
                let number = virtual_links[usize::from(link)].expect("only virtual links fail");
                found.push((note.at_ps, number, up));
            }
            NoteKind::Path { host, from, to, .. } => {
                let (before, after) = (from == PathState::Active, to == PathState::Active);
                if before != after && to != PathState::Suspect && from != PathState::Suspect {
                    paths.entry(host.into()).or_default().push((note.at_ps, after));
                }
            }
            _ => {}
        }
    }
    found.sort_by_key(|&(at, number, _)| (at, number));
    let end_ps = finished.world.net.now();
    let all = expected(&draw, &changes, &frames, end_ps);
    // Links that come up during the first login are not noted.
    let start_ps = finished.world.start_ps;
    let expected: Vec<(u64, usize, bool)> = all.iter().filter(|change| change.0 >= start_ps).copied().collect();
    assert_eq!(found, expected, "seed {seed}: {changes:?}\n{}", draw.text);
    let mut predicted = [0; 2];
    for host in 0..draw.virtual_links.len() {
        let case = format!("seed {seed}, v{host}");
        let [ended, returned] = check_joined(&case, &draw, host, &changes, &all, end_ps);
        predicted = [predicted[0] + ended, predicted[1] + returned];
        check_keep_alives(seed, host, &all, &frames, end_ps);
        check_logins(
            seed,
            host,
            &expected,
            paths.get(&host).map_or(&[], Vec::as_slice),
            [finished.world.start_ps, end_ps],
        );
    }
    let logins = paths.values().flatten().filter(|change| change.1).count();
    [expected.len(), logins, predicted[0], predicted[1]]
}

/// Checks the times at which a host is logged in with its target, by the state of its virtual
/// link: not while it is down, and from a short time after it has come up.
fn check_logins(
    seed: u64,
    host: usize,
    links: &[(u64, usize, bool)],
    paths: &[(u64, bool)],
    [start_ps, end_ps]: [u64; 2],
) {
    let mut up_since = Some(start_ps);
    let own: Vec<(u64, bool)> =
        links.iter().filter(|change| change.1 == host).map(|change| (change.0, change.2)).collect();
    let mut instants: BTreeSet<u64> = own.iter().chain(paths).map(|change| change.0).collect();
    instants.insert(end_ps);
    // Workloads begin when all hosts have logged in.
    let mut logged_in = true;
    for now in instants {
        // A login that is due must have come before.
        let is_due = up_since.is_some_and(|since| since + LOGIN_PS < now);
        assert!(logged_in || !is_due, "seed {seed}: h{host} has not logged in before {now} ps: {own:?} {paths:?}");
        for change in own.iter().filter(|change| change.0 == now) {
            up_since = change.1.then_some(now);
        }
        for change in paths.iter().filter(|change| change.0 == now) {
            logged_in = change.1;
        }
        assert!(!logged_in || up_since.is_some(), "seed {seed}: h{host} is logged in at {now} ps: {own:?} {paths:?}");
    }
}

/// A host and a forwarder whose cable between the switches is dark from 100 to 200 ms. The virtual
/// link changes at these times in ms.
fn check_one(changes: &[(u64, bool)]) -> [usize; 2] {
    let ends = |from: &str, to: &str| [from.to_owned(), to.to_owned()];
    let draw = Draw {
        text: String::new(),
        cables: vec![ends("fcf0", "e0"), ends("h0", "e1"), ends("e0", "e1")],
        virtual_links: vec![ends("h0", "fcf0")],
    };
    let ms = |at: u64| at * 1_000_000_000;
    let cables = [(ms(100), 2, false), (ms(200), 2, true)];
    let changes: Vec<(u64, usize, bool)> = changes.iter().map(|&(at, up)| (ms(at), 0, up)).collect();
    check_joined("a lab", &draw, 0, &cables, &changes, ms(700))
}

#[test]
fn the_cables_alone_predict_the_end_and_the_return_of_a_virtual_link() {
    assert_eq!(check_one(&[(1, true), (140, false), (215, true)]), [1, 1]);
}

#[test]
#[should_panic(expected = "up without a way since Some(100000000000)")]
fn a_virtual_link_that_outlives_its_way_is_found() {
    check_one(&[(1, true), (190, false), (215, true)]);
}

#[test]
#[should_panic(expected = "ended at 90000000000 ps on a whole way")]
fn a_virtual_link_that_ends_on_a_whole_way_is_found() {
    check_one(&[(1, true), (90, false), (95, true), (140, false), (215, true)]);
}

#[test]
#[should_panic(expected = "a way from 200000000000 to 700000000000, down at")]
fn a_virtual_link_that_does_not_return_is_found() {
    check_one(&[(1, true), (140, false)]);
}

#[test]
fn random_virtual_links_and_logins_agree_with_the_plain_model_at_every_instant() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let one = number("SANLOOM_SEED");
    let first = one.or(number("SANLOOM_FIRST_SEED")).unwrap_or(0);
    // A lab takes much longer than a network of `random`.
    let seeds = one.map_or(number("SANLOOM_SEEDS").map_or(SEEDS, |seeds| seeds.div_ceil(20)), |_| 1);
    let mut totals = [0; 4];
    for seed in first..first + seeds {
        compare(seed).iter().zip(&mut totals).for_each(|(part, sum)| *sum += part);
    }
    let [changes, logins, ended, returned] = totals;
    println!(
        "{seeds} labs: {changes} changes of virtual links, {logins} logins; by cables {ended} ends, {returned} returns"
    );
    assert!(one.is_some() || (ended as u64 > seeds && returned as u64 > seeds), "{totals:?}");
    assert!(one.is_some() || (changes as u64 > 2 * seeds && logins as u64 > 2 * seeds), "{totals:?}");
}
