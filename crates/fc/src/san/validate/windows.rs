//! Advice about sessions of iSCSI whose windows do not fill their distance, and the shortest ways
//! of their packets.

use super::Problems;
use super::distance::{Distance, Line};
use crate::config::{FRAME_OVERHEAD_BYTES, Load, MediumKind, PACKET_OVERHEAD_BYTES, Picos, Tcp, Workload};
use crate::san::{EthernetInterface, FcoePath, IpPaths, Lab, Place, ProblemKind, Section, fcoe_paths, lun_of_back_end};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Limit on the warnings about windows.
const MAX_WINDOWS: usize = 4;

/// A session, or several with the same ends.
struct Sessions<'l> {
    /// Place of the settings of the initiator.
    place: Place,
    ends: LimitedEnds,
    names: [&'l str; 2],
    tcp: [&'l Tcp; 2],
    count: u64,
    /// True if data move from the initiator to the target, and from the target to the initiator.
    moves: [bool; 2],
}

/// Window or send buffer of TCP that fills its path only in part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowLimit {
    /// Connections that it limits.
    pub ends: LimitedEnds,
    /// `window` or `send buffer`: the limit.
    pub what: &'static str,
    /// Its bytes, of one connection.
    pub bytes: u64,
    /// Connections that share the path.
    pub connections: u64,
    /// Round-trip time of the path.
    pub round_trip: Picos,
    /// Rate in one direction that the windows of all connections allow, in MB/s.
    pub mb_per_s: f64,
    /// Window and send buffer of each connection that keep the path full, in bytes.
    pub needed: [u64; 2],
}

/// Connections that a [`WindowLimit`] is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitedEnds {
    /// Sessions of a host, or of a storage system with virtual disks, with a storage system.
    Sessions {
        /// Index of the initiator among the hosts, or among the storage systems.
        host: u16,
        /// Index of the target among the storage systems.
        storage: u16,
    },
    /// An FCIP link, by its index in the lab.
    Link(u16),
}

/// Returns the sessions of hosts and the FCIP links whose window or send buffer does not fill their
/// path, as `check` warns of them; at most `most`.
pub fn window_limits(lab: &Lab, most: usize) -> Vec<WindowLimit> {
    let mut found = Vec::new();
    let mut ways = Ways::new(lab);
    let interfaces = lab.ethernet_interfaces();
    for path in fcoe_paths(lab) {
        let Some((distance, limits)) = tunnel_limits(&mut ways, &path, &interfaces) else { continue };
        found.extend(WindowLimit::of(LimitedEnds::Link(path.link), limits, 1, &distance));
    }
    for_each_session(lab, &mut ways, |sessions, distance| {
        found.extend(shortage(sessions.ends, sessions.tcp, sessions.count, sessions.moves, distance));
        found.len() < most
    });
    found.truncate(most);
    found
}

/// Windows that are smaller than the bytes that a path holds.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    let mut reported = 0;
    let mut ways = Ways::new(lab);
    for_each_session(lab, &mut ways, |sessions, distance| {
        reported += usize::from(check(sessions, distance, problems));
        reported < MAX_WINDOWS
    });
    back_ends(lab, &mut ways, MAX_WINDOWS.saturating_sub(reported), problems);
}

/// Calls `each` with the sessions of each host and storage system and their path, until it returns
/// false.
fn for_each_session<'l>(lab: &'l Lab, ways: &mut Ways<'l>, mut each: impl FnMut(&Sessions<'l>, &Distance) -> bool) {
    let moves: Vec<Moves> = lab.workloads.iter().map(Moves::of).collect();
    IpPaths::for_each_pair(lab, |paths, host, storage, of_pair| {
        let (Some(target), Some(way)) = (lab.live.iscsi.get(&storage), of_pair.first()) else { return true };
        let [near, far] = way.ends;
        let config = &lab.hosts[usize::from(host)];
        let vlan = config.iscsi.vlan;
        let distance = match way.router {
            None => part(ways, paths, vlan, [near, far]),
            Some((router, [own, beyond])) => {
                let first = part(ways, paths, vlan, [near, own]);
                let per_packet = lab.infiniband.ipoib.routers.get(&router).map_or(0, |router| router.per_packet.0);
                first.zip(part(ways, paths, vlan, [beyond, far])).map(|(first, second)| {
                    let whole = first.and(second);
                    Distance { round_trip: Picos(whole.round_trip.0 + 2 * per_packet), ..whole }
                })
            }
        };
        let sessions = Sessions {
            place: Place::of(Section::Host, usize::from(host)),
            ends: LimitedEnds::Sessions { host, storage },
            names: [&config.name, &lab.storage[usize::from(storage)].name],
            tcp: [&config.iscsi.tcp, &target.tcp],
            count: u64::from(config.iscsi.sessions),
            moves: Moves::between(&moves, host, storage),
        };
        distance.is_none_or(|distance| each(&sessions, &distance))
    });
}

/// Hosts and storage systems of a workload, and whether it moves data to the storage, and from it.
struct Moves {
    hosts: BTreeSet<u16>,
    targets: BTreeSet<u16>,
    moves: [bool; 2],
}

impl Moves {
    fn of(workload: &Workload) -> Moves {
        let is_trace = matches!(workload.load, Load::Trace(_));
        Moves {
            hosts: workload.hosts.iter().copied().collect(),
            targets: workload.targets.iter().map(|target| target.storage).collect(),
            moves: [workload.read_share < 1.0, workload.read_share > 0.0].map(|moves| moves || is_trace),
        }
    }

    /// Returns whether any workload moves data from this host to this storage system, and back.
    fn between(all: &[Moves], host: u16, storage: u16) -> [bool; 2] {
        let own = all.iter().filter(|moves| moves.hosts.contains(&host) && moves.targets.contains(&storage));
        own.fold([false; 2], |sum, own| [sum[0] || own.moves[0], sum[1] || own.moves[1]])
    }
}

/// Sessions of storage systems with virtual disks with their back ends. Each pair is named once, at
/// most `limit` pairs.
fn back_ends(lab: &Lab, ways: &mut Ways<'_>, limit: usize, problems: &mut Problems) {
    let targets = lab.workloads.iter().flat_map(|workload| &workload.targets).map(|target| target.storage);
    let switches: BTreeSet<u16> = targets
        .filter(|storage| lab.live.medium(*storage).kind == MediumKind::Volumes && lab.live.iscsi.contains_key(storage))
        .collect();
    let paths = lab.iscsi_paths();
    let mut reported = 0;
    for switch in switches {
        let pools: BTreeSet<u16> = lab.volumes_of(switch).values().map(|volume| volume.pool).collect();
        let own = lab.live.back_ends.iter().filter(|back_end| pools.contains(&back_end.pool));
        let behind: BTreeSet<u16> =
            own.filter_map(|back_end| lun_of_back_end(lab, &lab.live, back_end)).map(|lun| lun.storage).collect();
        for storage in behind {
            let (Some(near), Some(far)) = (lab.live.iscsi.get(&switch), lab.live.iscsi.get(&storage)) else { continue };
            let session = paths.back_end(switch, storage);
            let Some((ends, _)) = session.and_then(|session| paths.ends_of_back_end(session)) else { continue };
            let links = ends.map(|interface| paths.interfaces[usize::from(interface)].link);
            // Virtualization switches log in without a VLAN.
            let Some(distance) = distance_between(ways, None, links).filter(|_| reported < limit) else { continue };
            let sessions = Sessions {
                place: Place::of(Section::Storage, usize::from(switch)),
                ends: LimitedEnds::Sessions { host: switch, storage },
                names: [switch, storage].map(|node| lab.storage[usize::from(node)].name.as_str()),
                tcp: [&near.tcp, &far.tcp],
                count: 1,
                moves: [true; 2],
            };
            reported += usize::from(check(&sessions, &distance, problems));
        }
    }
}

/// Returns the path between two interfaces of IP without a router.
fn part(ways: &mut Ways<'_>, paths: &IpPaths<'_>, vlan: Option<u16>, ends: [u16; 2]) -> Option<Distance> {
    if ends.iter().all(|end| paths.on_infiniband(*end).is_none()) {
        return distance_between(ways, vlan, ends.map(|end| paths.iscsi.interfaces[usize::from(end)].link));
    }
    let link = |end: u16| Some(paths.infiniband[usize::from(paths.on_infiniband(end)?)].link);
    infiniband_distance(ways, [link(ends[0])?, link(ends[1])?])
}

/// Name of a limit by the receive window.
const WINDOW: &str = "window";

/// Window or send buffer of connections, and the need of their path.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// Bytes of one connection.
    pub bytes: u64,
    /// Bytes of all connections that keep the path full.
    pub needed: u64,
    /// Rate in one direction that the bytes of all connections allow, in MB/s.
    pub mb_per_s: f64,
    /// The path is not full.
    pub is_short: bool,
}

/// Limits of connections by the receive window, and by the send buffer.
type Limits = [Limit; 2];

/// Compares the window and the send buffer of each of `count` connections with their path.
fn limits([window, buffer]: [u64; 2], count: u64, distance: &Distance) -> Limits {
    let limit = |bytes: u64, needed: u64, mb_per_s| Limit { bytes, needed, mb_per_s, is_short: bytes * count < needed };
    [
        limit(window, distance.bytes(), distance.rate_of_window(window * count)),
        limit(buffer, distance.buffer_bytes(), distance.rate_of_buffer(buffer * count)),
    ]
}

/// Returns the path of the TCP connection of an FCIP link, and its limits.
pub(super) fn tunnel_limits(
    ways: &mut Ways<'_>,
    path: &FcoePath,
    interfaces: &[EthernetInterface],
) -> Option<(Distance, Limits)> {
    let tcp = path.config.fcip?.tcp();
    let ends = path.interfaces.map(|number| interfaces[usize::from(number)].link);
    let distance = distance_between(ways, path.config.vlan, ends)?;
    let bytes = [tcp.largest_window_bytes(), tcp.largest_send_buffer_bytes()].map(u64::from);
    let limits = limits(bytes, 1, &distance);
    Some((distance, limits))
}

impl WindowLimit {
    /// Returns the smaller one of window and send buffer, if it does not fill the path.
    fn of(ends: LimitedEnds, [window, buffer]: Limits, count: u64, distance: &Distance) -> Option<WindowLimit> {
        let (what, bytes) = if window.is_short && window.bytes <= buffer.bytes {
            (WINDOW, window.bytes)
        } else if buffer.is_short {
            ("send buffer", buffer.bytes)
        } else {
            return None;
        };
        Some(WindowLimit {
            ends,
            what,
            bytes,
            connections: count,
            round_trip: distance.round_trip,
            mb_per_s: window.mb_per_s.min(buffer.mb_per_s),
            needed: [window, buffer].map(|limit| limit.needed.div_ceil(count)),
        })
    }
}

/// Returns the limit by the window or by the send buffer of `count` connections, if one of them
/// does not fill the path.
fn shortage(
    ends: LimitedEnds,
    tcp: [&Tcp; 2],
    count: u64,
    moves: [bool; 2],
    distance: &Distance,
) -> Option<WindowLimit> {
    // The receiver has the window, the sender the buffer. Both directions have the same rate, so
    // the smaller values are reported.
    let [own, far] = tcp;
    let directions = [(own, far), (far, own)].into_iter().zip(moves).filter(|(_, moves)| *moves);
    let window = directions.clone().map(|((_, to), _)| u64::from(to.largest_window_bytes())).min()?;
    let buffer = directions.map(|((from, _), _)| u64::from(from.largest_send_buffer_bytes())).min()?;
    WindowLimit::of(ends, limits([window, buffer], count, distance), count, distance)
}

/// Returns whether a warning was added.
fn check(sessions: &Sessions<'_>, distance: &Distance, problems: &mut Problems) -> bool {
    let [own_tcp, far_tcp] = sessions.tcp;
    let count = sessions.count;
    let Some(limit) = shortage(sessions.ends, sessions.tcp, count, sessions.moves, distance) else { return false };
    let WindowLimit { what, bytes, mb_per_s, .. } = limit;
    let key = if what == WINDOW { "iscsi.tcp.window" } else { "iscsi.tcp.send_buffer" };
    let [own, far] = sessions.names;
    let more = match sessions.place.section {
        Section::Host => ", or use more `sessions`",
        _ => "",
    };
    problems.add(
        ProblemKind::SmallWindow,
        sessions.place.key(key),
        format!(
            "between `{own}` and `{far}`, {} with a round trip of {} holds {} bytes, but the {what} of {bytes} bytes of {count} session{} fills it only to {mb_per_s:.1} MB/s",
            distance.rate,
            distance.round_trip,
            distance.bytes(),
            if count == 1 { "" } else { "s" },
        ),
        match own_tcp.window_scaling && far_tcp.window_scaling {
            true => format!(
                "in `iscsi.tcp` of both, set `window` to {} bytes and `send_buffer` to {} bytes at least{more}",
                distance.bytes().div_ceil(count),
                distance.buffer_bytes().div_ceil(count)
            ),
            false => format!(
                "leave `window_scaling` in `iscsi.tcp` of both out, because no window exceeds 65535 bytes without it{more}"
            ),
        },
    );
    true
}

/// Shortest ways between interfaces of one network; those between its switches are found once.
pub(super) struct Ways<'l> {
    lab: &'l Lab,
    /// By VLAN: the links that accept it.
    ethernet: BTreeMap<Option<u16>, Graph>,
    infiniband: Graph,
}

/// Switches of a network.
struct Graph {
    /// Neighbours of each switch, with the links to them.
    neighbours: BTreeMap<u16, Vec<(u16, usize)>>,
    /// Links of the way between two switches; `None` if there is none.
    found: BTreeMap<(u16, u16), Option<Vec<usize>>>,
}

impl Graph {
    /// Graph of the links, each with its number and the switches at its ends.
    fn of(links: impl Iterator<Item = (usize, Vec<u16>)>) -> Graph {
        let mut neighbours: BTreeMap<u16, Vec<(u16, usize)>> = BTreeMap::new();
        for (number, switches) in links {
            if let [a, b] = switches[..] {
                neighbours.entry(a).or_default().push((b, number));
                neighbours.entry(b).or_default().push((a, number));
            }
        }
        Graph { neighbours, found: BTreeMap::new() }
    }

    /// Links of a shortest way that begins and ends with these links of interfaces. `switch`
    /// returns the switch of such a link.
    fn between(&mut self, [start, goal]: [usize; 2], switch: impl Fn(usize) -> Option<u16>) -> Option<Vec<usize>> {
        if start == goal {
            return Some(vec![start]);
        }
        let ends = (switch(start)?, switch(goal)?);
        let neighbours = &self.neighbours;
        let between = self.found.entry(ends).or_insert_with(|| search(neighbours, ends)).as_deref()?;
        Some([start, goal].iter().chain(between).copied().collect())
    }
}

impl<'l> Ways<'l> {
    pub(super) fn new(lab: &'l Lab) -> Ways<'l> {
        let infiniband = lab.infiniband.links.iter().map(|link| link.switches().map(|(_, switch)| switch).collect());
        Ways { lab, ethernet: BTreeMap::new(), infiniband: Graph::of(infiniband.enumerate()) }
    }

    /// Ethernet links of a shortest way for the frames of a VLAN that begins and ends with these
    /// links of interfaces.
    pub(super) fn between(&mut self, vlan: Option<u16>, [start, goal]: [usize; 2]) -> Option<Vec<usize>> {
        let links = &self.lab.ethernet_links;
        let graph = self.ethernet.entry(vlan).or_insert_with(|| {
            let accepted = links.iter().enumerate().filter(|(_, link)| link.accepts(vlan));
            Graph::of(accepted.map(|(number, link)| (number, link.switches().map(|(_, switch)| switch).collect())))
        });
        graph.between([start, goal], |link| links[link].switches().next().map(|(_, switch)| switch))
    }
}

/// Searches a shortest way between two switches, breadth first.
fn search(neighbours: &BTreeMap<u16, Vec<(u16, usize)>>, (from, to): (u16, u16)) -> Option<Vec<usize>> {
    let mut before: BTreeMap<u16, Option<(u16, usize)>> = BTreeMap::from([(from, None)]);
    let mut next = VecDeque::from([from]);
    while let Some(switch) = next.pop_front().filter(|_| !before.contains_key(&to)) {
        for &(other, link) in neighbours.get(&switch).into_iter().flatten() {
            before.entry(other).or_insert_with(|| {
                next.push_back(other);
                Some((switch, link))
            });
        }
    }
    let mut way = Vec::new();
    let mut at = to;
    while let Some((switch, link)) = *before.get(&at)? {
        way.push(link);
        at = switch;
    }
    Some(way)
}

/// Returns the shortest path in a VLAN between two Ethernet links of interfaces.
pub(super) fn distance_between(ways: &mut Ways<'_>, vlan: Option<u16>, [start, goal]: [usize; 2]) -> Option<Distance> {
    let way = ways.between(vlan, [start, goal])?;
    let lab = ways.lab;
    let rate = way.iter().map(|link| lab.ethernet_links[*link].rate).min()?;
    let mtu = u64::from(lab.ethernet_links[goal].mtu.min(lab.ethernet_links[start].mtu));
    let mut round_trip = 0;
    for &link in &way {
        let config = &lab.ethernet_links[link];
        // A full frame one way and an acknowledgement the other way.
        let frames = mtu + u64::from(FRAME_OVERHEAD_BYTES) + 20 + 84;
        round_trip += 2 * config.propagation.0 + frames * config.rate.ps_per_byte();
    }
    let switches: BTreeSet<u16> =
        way.iter().flat_map(|link| lab.ethernet_links[*link].switches()).map(|(_, s)| s).collect();
    let latency = |switch: &u16| lab.ethernet_switches.get(usize::from(*switch)).map_or(0, |switch| switch.latency.0);
    let rate = Line::Ethernet(rate);
    Some(Distance { rate, round_trip: Picos(round_trip + 2 * switches.iter().map(latency).sum::<u64>()) })
}

/// Returns the shortest path between two InfiniBand links of interfaces.
fn infiniband_distance(ways: &mut Ways<'_>, [start, goal]: [usize; 2]) -> Option<Distance> {
    let lab = ways.lab;
    let links = &lab.infiniband.links;
    let first = |link: usize| links[link].switches().next().map(|(_, switch)| switch);
    let way = ways.infiniband.between([start, goal], first)?;
    let packet = u64::from(lab.infiniband.subnet.mtu) + PACKET_OVERHEAD_BYTES;
    let mut round_trip = 0;
    let mut rate = Line::Infiniband(links[start].rate);
    for link in way.iter().map(|link| &links[*link]) {
        let own = Line::Infiniband(link.rate);
        rate = rate.slower(own);
        // A full packet one way and an acknowledgement the other way.
        round_trip += 2 * link.propagation.0 + own.time_of(packet + PACKET_OVERHEAD_BYTES);
    }
    let switches: BTreeSet<u16> = way.iter().flat_map(|link| links[*link].switches()).map(|(_, s)| s).collect();
    let latency = |switch: &u16| lab.infiniband.switches.get(usize::from(*switch)).map_or(0, |switch| switch.latency.0);
    Some(Distance { rate, round_trip: Picos(round_trip + 2 * switches.iter().map(latency).sum::<u64>()) })
}
