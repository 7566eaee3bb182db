//! Virtual links and logins of random labs against a plain model of them, at every instant.
//!
//! The model knows the Ethernet links and their changes only. A virtual link ends at once when an
//! interface at its end has no light, and otherwise when its ends have not been joined for 2.5
//! periods of the keep-alives (FC-BB-6). It comes up when they are joined again. A host whose
//! virtual link ends loses its targets at that instant, and logs in soon after it comes up.

use crate::labs;
use sanloom_fc::config::Picos;
use sanloom_scsi::random::SplitMix64;
use sanloom_sim::host::PathState;
use sanloom_sim::run::{Blind, Options, simulate};
use sanloom_sim::world::NoteKind;
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

/// Returns whether cables that are up join two nodes. Only Ethernet switches pass frames on.
fn are_joined(cables: &[[String; 2]], dark: &BTreeSet<usize>, [from, to]: &[String; 2]) -> bool {
    let mut reached = BTreeSet::from([from.clone()]);
    loop {
        let mut more = reached.clone();
        for (_, [a, b]) in cables.iter().enumerate().filter(|(number, _)| !dark.contains(number)) {
            for [one, other] in [[a, b], [b, a]] {
                if reached.contains(one) && (one == from || one.starts_with('e')) {
                    more.insert(other.clone());
                }
            }
        }
        if more == reached {
            return reached.contains(to);
        }
        reached = more;
    }
}

/// Changes of the virtual links by the plain model: time, link and whether it comes up. Changes
/// of a link at one instant are in their order.
fn expected(draw: &Draw, changes: &[(u64, usize, bool)], end_ps: u64) -> Vec<(u64, usize, bool)> {
    let mut instants: BTreeSet<u64> = changes.iter().map(|change| change.0).collect();
    // Several cables may change at one instant, and each change counts.
    let mut found = Vec::new();
    let mut broken: BTreeMap<usize, (u64, bool)> = BTreeMap::new();
    let mut dark = BTreeSet::new();
    while let Some(now) = instants.pop_first().filter(|now| *now <= end_ps) {
        let of_now: Vec<Option<(usize, bool)>> =
            changes.iter().filter(|change| change.0 == now).map(|change| Some((change.1, change.2))).collect();
        for change in of_now.into_iter().chain([None]) {
            match change {
                Some((cable, true)) => drop(dark.remove(&cable)),
                Some((cable, false)) => drop(dark.insert(cable)),
                None => {}
            }
            for (number, ends) in draw.virtual_links.iter().enumerate() {
                if are_joined(&draw.cables, &dark, ends) {
                    if let Some((_, true)) = broken.remove(&number) {
                        found.push((now, number, true));
                    }
                    continue;
                }
                let (since, has_ended) = *broken.entry(number).or_insert((now, false));
                let has_light = |node: &String| {
                    draw.cables.iter().enumerate().any(|(cable, ends)| ends.contains(node) && !dark.contains(&cable))
                };
                if !has_ended && (now >= since + PATIENCE_PS || !ends.iter().all(has_light)) {
                    broken.insert(number, (since, true));
                    found.push((now, number, false));
                } else if !has_ended {
                    instants.insert(since + PATIENCE_PS);
                }
            }
        }
    }
    found.sort_by_key(|&(at, number, _)| (at, number));
    found
}

/// Runs one lab and compares. Returns the changes of virtual links, and the logins.
fn compare(seed: u64) -> [usize; 2] {
    let draw = draw(seed);
    let mut lab = (*labs::lab(&draw.text)).clone();
    lab.live.fcoe.iter_mut().for_each(|fcoe| fcoe.keep_alive = Picos(KEEP_ALIVE_PS));
    let lab = Arc::new(lab);
    let finished = simulate(&lab, &Options::default(), &mut Blind);
    labs::check(&finished);
    let name_of = |links: Vec<&String>, prefix: char| -> Vec<Option<usize>> {
        links.into_iter().map(|name| name.strip_prefix(prefix).and_then(|number| number.parse().ok())).collect()
    };
    let cables = name_of(lab.ethernet_links.iter().map(|link| &link.name).collect(), 'c');
    let virtual_links = name_of(lab.links.iter().map(|link| &link.name).collect(), 'v');
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
    let expected = expected(&draw, &changes, end_ps);
    assert_eq!(found, expected, "seed {seed}: {changes:?}\n{}", draw.text);
    for host in 0..draw.virtual_links.len() {
        check_logins(
            seed,
            host,
            &expected,
            paths.get(&host).map_or(&[], Vec::as_slice),
            [finished.world.start_ps, end_ps],
        );
    }
    [expected.len(), paths.values().flatten().filter(|change| change.1).count()]
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

#[test]
fn random_virtual_links_and_logins_agree_with_the_plain_model_at_every_instant() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let one = number("SANLOOM_SEED");
    let first = one.or(number("SANLOOM_FIRST_SEED")).unwrap_or(0);
    // A lab takes much longer than a network of `random`.
    let seeds = one.map_or(number("SANLOOM_SEEDS").map_or(SEEDS, |seeds| seeds.div_ceil(20)), |_| 1);
    let mut totals = [0; 2];
    for seed in first..first + seeds {
        compare(seed).iter().zip(&mut totals).for_each(|(part, sum)| *sum += part);
    }
    let [changes, logins] = totals;
    println!("{seeds} labs: {changes} changes of virtual links, {logins} logins");
    assert!(one.is_some() || (changes as u64 > 2 * seeds && logins as u64 > 2 * seeds), "{totals:?}");
}
