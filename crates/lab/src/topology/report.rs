//! [`Report`]: the topology part of `sanloom check` for a valid lab.

use super::chassis::{Chassis, chassis};
use super::classes::{Class, Classes};
use super::cut::Reach;
use super::disjoint::{PortPair, disjoint};
use super::durability::{self, Durability};
use super::gateways::port_pairs_behind;
use super::loops::{self, LoopTimes};
use super::names::compress_all;
use super::network::{Network, Remains};
use super::part::{Part, part_name};
use super::sessions::{self, SessionPaths, Sessions};
use super::trunks;
use petgraph::algo::bridges::bridges;
use sanloom_fc::config::{FaultKind, Node};
use sanloom_fc::san::{AttachedPort, Lab};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes, links, oversubscription, single points of failure and paths of a lab.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    pub switches: usize,
    /// Number of physical hosts.
    pub hosts: usize,
    /// Number of HBAs of the physical hosts.
    pub hbas: usize,
    pub virtual_machines: usize,
    /// Number of storage systems.
    pub storage: usize,
    /// Number of ports of all storage systems.
    pub storage_ports: usize,
    pub luns: usize,
    /// Number of links, including ISLs.
    pub links: usize,
    /// Number of links between switches.
    pub isls: usize,
    /// Names of the ISLs that their switches will isolate, in range notation. Isolated ISLs carry
    /// no traffic.
    pub isolated: Option<String>,
    /// Names of the links that are dark when the lab starts, in range notation. Dark links
    /// carry no traffic.
    pub dark: Option<String>,
    /// Number of zones in force.
    pub zones: usize,
    /// Ports in no zone may access each other.
    pub default_open: bool,
    /// Number of linked ports in no zone; 0 if no zone is in force.
    pub unzoned_ports: usize,
    /// Ports of `unzoned_ports` that no other port may access.
    pub closed_ports: usize,
    /// Zones made from each range of zones; empty if the file has no such range.
    pub zone_ranges: Vec<ZoneRange>,
    /// Fabrics: groups of switches that ISLs join, each as names in range notation.
    pub fabrics: Vec<String>,
    /// ISLs between each pair of switches.
    pub isl_groups: Vec<IslGroup>,
    /// Links between each pair of Ethernet switches, as in `isl_groups`. Empty if the Ethernet is
    /// implied.
    pub ethernet_trunks: Vec<IslGroup>,
    /// Links between each pair of InfiniBand switches, as in `isl_groups`.
    pub infiniband_trunks: Vec<IslGroup>,
    /// Single points of failure: switches, then chassis, links, ports and devices. The loss of each
    /// cuts at least one host off from storage that it uses.
    pub single_points: Vec<SinglePoint>,
    /// Paths between hosts and storage, with equal pairs merged.
    pub paths: Vec<Paths>,
    /// Storage systems with disks or SSDs, and how long they keep their data.
    pub durability: Vec<Durability>,
    /// Arbitrated loops, in the order of the lab.
    pub loops: Vec<LoopTimes>,
    /// Number of Ethernet switches.
    pub ethernet_switches: usize,
    /// Number of Ethernet links.
    pub ethernet_links: usize,
    /// Paths of iSCSI between hosts and storage, with equal pairs merged.
    pub iscsi: Vec<SessionPaths>,
    /// The Ethernet of the sessions is not in the lab file, so nothing of it is judged.
    pub ethernet_is_implied: bool,
    /// Number of InfiniBand switches.
    pub infiniband_switches: usize,
    /// Number of InfiniBand links.
    pub infiniband_links: usize,
    /// Paths of SRP between hosts and storage, with equal pairs merged.
    pub srp: Vec<SessionPaths>,
    /// Names of the hosts with fewer than two edge-disjoint paths to some storage that they use, or
    /// without any path to storage.
    pub hosts_without_two_paths: Vec<String>,
    /// Names of the hosts without any path to storage. Hypervisors that have no workload are left
    /// out, because only their virtual machines do I/O.
    pub hosts_without_path: Vec<String>,
    /// Names of the hosts that have a path but no workload, if the lab has workloads. The report
    /// does not judge them.
    pub hosts_without_workload: Vec<String>,
    /// Number of hosts in `paths` that have a path to storage.
    pub hosts_judged: usize,
    /// Number of pairs of host class and storage class beyond the limit; 0 in all realistic labs.
    pub pairs_left_out: usize,
}

/// Effective zones made from one range of the lab file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneRange {
    /// Names of the zones, in range notation.
    pub names: String,
    /// Number of zones.
    pub zones: usize,
    /// Name and ports of the first two and of the last; ports in range notation.
    pub shown: Vec<(String, String)>,
}

/// All links between two switches of one network; those of Ethernet that accept the same VLANs.
#[derive(Clone, PartialEq, Debug)]
pub struct IslGroup {
    pub switches: [String; 2],
    /// Name in texts: both switches, as `a-b`. If other links between the two accept other VLANs,
    /// those that these links accept follow: `a-b (VLANs 10/20..30)`.
    pub label: String,
    /// Indices into the links of the network.
    pub links: Vec<usize>,
    /// Names of the links, in range notation.
    pub names: String,
    /// Bytes per second in one direction of the links that routing uses, which are those of the
    /// lowest cost.
    pub bytes_per_s: u64,
    /// For each of the two switches, bytes per second of the ports of hosts, storage and gateways
    /// whose traffic enters this group there. For each port, the cheapest paths to every partner
    /// lead a share of its traffic over the group; the port counts with its largest share.
    pub behind_bytes_per_s: [f64; 2],
    /// Ratio of the smaller side of `behind_bytes_per_s` to `bytes_per_s`. The smaller side counts
    /// because one side cannot receive more than the other sends.
    pub oversubscription: f64,
}

/// A component whose loss cuts at least one host off from storage that it uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SinglePoint {
    pub part: Part,
    /// Name of the component; ports as `server1:0`.
    pub name: String,
    /// Number of hosts that lose access to storage.
    pub hosts: usize,
}

/// Pairs of host and storage with equal numbers of paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paths {
    /// Indices of the hosts.
    pub hosts: Vec<u16>,
    /// Indices of the storage systems.
    pub storage: Vec<u16>,
    /// The hosts in range notation.
    pub host_names: String,
    /// The storage systems in range notation.
    pub storage_names: String,
    /// Number of pairs of host and storage.
    pub pairs: u64,
    /// Number of pairs of HBA and storage port that can reach each other, which are the paths of a
    /// multipath layer.
    pub port_pairs: u32,
    /// Number of different cheapest routes through the fabric, counted link by link, for all port
    /// pairs together.
    pub shortest: u64,
    /// Number of links on a cheapest route, including the two node links; 0 if there is no route.
    pub links: u32,
    /// Number of paths that share no link.
    pub disjoint: u32,
}

impl Report {
    /// Analyses a lab that [`Lab::validate`] accepts. `isolated` are the indices of the links that
    /// will be isolated.
    pub fn of(lab: &Lab, isolated: &[usize]) -> Report {
        examine(lab, isolated).2
    }

    fn new(lab: &Lab, isolated: &[usize], network: &Network, classes: &Classes) -> Report {
        let isls = lab.links.iter().filter(|link| link.ends.iter().all(|end| matches!(end.node, Node::Switch(_))));
        let named = |links: &mut dyn Iterator<Item = usize>| {
            let names = compress_all(links.map(|link| lab.links[link].name.as_str()));
            (!names.is_empty()).then_some(names)
        };
        let dark = lab.links_down_at_start();
        let dark = named(&mut dark.iter().map(|link| usize::from(*link)).filter(|link| !isolated.contains(link)));
        let [sessions, channels, both] = sessions::all(lab);
        let paths = paths(lab, network, classes, &both);
        let judged: BTreeSet<u16> = paths.iter().flat_map(|p| p.hosts.iter().copied()).collect();
        let hypervisors = hypervisors(lab);
        let permitted = &network.permitted;
        let has_path = |host: u16| permitted.ports_of_host(host).any(|port| !permitted.partners(port).is_empty());
        // A router of IP passes on the packets of others, and needs no storage.
        let routers = &lab.infiniband.ipoib.routers;
        let needs_none = |host: &u16| hypervisors.contains(host) || routers.contains_key(host);
        let of_interest = (0..lab.hosts.len() as u16).filter(|h| judged.contains(h) || !needs_none(h));
        let in_sessions: BTreeSet<u16> = both.keys().map(|(host, _)| *host).collect();
        let of_interest = of_interest.filter(|host| has_path(*host) || !in_sessions.contains(host));
        let (linked, pathless): (Vec<u16>, Vec<u16>) = of_interest.partition(|host| has_path(*host));
        let (linked, idle): (Vec<u16>, Vec<u16>) = linked.into_iter().partition(|host| judged.contains(host));
        let sessions_are_judged = !sessions.is_empty() && !lab.ethernet_is_implied();
        let judged_sessions = sessions.keys().filter(|_| sessions_are_judged).chain(channels.keys());
        let over_sessions: BTreeSet<u16> = judged_sessions.map(|(host, _)| *host).collect();
        let has_fcoe = lab.links.iter().any(|link| link.fcoe.is_some());
        let reach = (sessions_are_judged || has_fcoe || !channels.is_empty()).then(|| Reach::of(lab, isolated));
        let lonely = match &reach {
            Some(reach) => sessions::lonely_hosts(lab, reach, &paths),
            None => paths.iter().filter(|p| p.disjoint < 2).flat_map(|p| p.hosts.iter().copied()).collect(),
        };
        let lonely: BTreeSet<u16> = lonely.union(&pathless.iter().copied().collect()).copied().collect();
        let only_in_sessions = over_sessions.iter().filter(|host| !has_path(**host)).count();
        let host_names = |hosts: &mut dyn Iterator<Item = u16>| -> Vec<String> {
            hosts.map(|host| lab.hosts[usize::from(host)].name.clone()).collect()
        };
        let physical = || lab.hosts.iter().filter(|h| h.virtual_machine.is_none());
        let (open_ports, closed_ports) = network.permitted.unzoned(lab);
        let mut single_points = single_points(lab, network, classes);
        single_points.extend(loops_controllers_and_servers(lab, isolated));
        single_points.extend(unprotected_luns(lab, classes));
        if let Some(reach) = &reach {
            sessions::add_points(lab, reach, &mut single_points);
        }
        single_points.sort_by_key(|point| point.part);
        Report {
            switches: lab.switches.len(),
            hosts: physical().count(),
            hbas: physical().map(|h| h.hbas.len()).sum(),
            virtual_machines: lab.hosts.len() - physical().count(),
            storage: lab.storage.len(),
            storage_ports: lab.storage.iter().map(|s| s.ports.len()).sum(),
            luns: lab.storage.iter().map(|s| s.luns.len()).sum(),
            links: lab.links.len(),
            isls: isls.count(),
            isolated: named(&mut isolated.iter().copied()),
            dark,
            zone_ranges: Vec::new(),
            zones: lab.zoning.zones.len(),
            default_open: lab.zoning.default_is_open(),
            unzoned_ports: open_ports + closed_ports,
            closed_ports,
            fabrics: fabrics(lab, network),
            isl_groups: isl_groups(lab, network, classes),
            ethernet_trunks: trunks::of_ethernet(lab),
            infiniband_trunks: trunks::of_infiniband(lab),
            single_points,
            paths,
            durability: durability::of(lab),
            loops: loops::of(lab),
            ethernet_switches: lab.ethernet_switches.len(),
            ethernet_links: lab.ethernet_links.len(),
            iscsi: sessions::rows(lab, &sessions),
            ethernet_is_implied: lab.ethernet_is_implied(),
            infiniband_switches: lab.infiniband.switches.len(),
            infiniband_links: lab.infiniband.links.len(),
            srp: sessions::rows(lab, &channels),
            hosts_without_two_paths: host_names(&mut lonely.into_iter()),
            hosts_without_path: host_names(&mut pathless.into_iter()),
            hosts_without_workload: host_names(&mut idle.into_iter()),
            hosts_judged: linked.len() + only_in_sessions,
            pairs_left_out: classes.left_out,
        }
    }
}

/// Graph, classes and report of a lab.
pub(super) fn examine(lab: &Lab, isolated: &[usize]) -> (Network, Classes, Report) {
    let network = Network::of(lab, isolated);
    let classes = Classes::of(lab, &network);
    let report = Report::new(lab, isolated, &network, &classes);
    (network, classes, report)
}

/// Hosts that carry virtual machines at some time.
fn hypervisors(lab: &Lab) -> BTreeSet<u16> {
    let moves = lab.faults.iter().filter_map(|fault| match fault.kind {
        FaultKind::VmMove { to, .. } => Some(to),
        _ => None,
    });
    lab.hosts.iter().filter_map(|host| Some(host.virtual_machine?.on)).chain(moves).collect()
}

fn fabrics(lab: &Lab, network: &Network) -> Vec<String> {
    let mut members: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for (switch, fabric) in lab.switches.iter().zip(&network.fabric) {
        members.entry(*fabric).or_default().push(&switch.name);
    }
    members.into_values().map(compress_all).collect()
}

fn isl_groups(lab: &Lab, network: &Network, classes: &Classes) -> Vec<IslGroup> {
    if network.groups.is_empty() {
        return Vec::new();
    }
    let mut behind = vec![[0.0_f64; 2]; network.groups.len()];
    let permitted = &network.permitted;
    // For each port of a class the switches of its partners.
    let empty = |classes: &[Class]| -> Vec<Vec<BTreeSet<u16>>> {
        classes.iter().map(|class| vec![BTreeSet::new(); class.ports.len()]).collect()
    };
    let (mut of_hosts, mut of_storage) = (empty(&classes.hosts), empty(&classes.storage));
    for &(h, s) in &classes.pairs {
        for (i, j) in classes.port_pairs(permitted, (h, s)) {
            of_hosts[h][i].insert(classes.storage[s].ports[j].switch);
            of_storage[s][j].insert(classes.hosts[h].ports[i].switch);
        }
    }
    // By link: the port at its end, and the switches of the partners of all who share it.
    let mut links: BTreeMap<usize, (u16, BTreeSet<u16>)> = BTreeMap::new();
    let mut add_port = |port: &AttachedPort, partners: &BTreeSet<u16>| {
        links.entry(port.link).or_insert_with(|| (port.switch, BTreeSet::new())).1.extend(partners);
    };
    for [own, far] in port_pairs_behind(lab, permitted) {
        let ends = [&permitted.hosts[own], &permitted.storage[far]];
        add_port(ends[0], &BTreeSet::from([ends[1].switch]));
        add_port(ends[1], &BTreeSet::from([ends[0].switch]));
    }
    let mut add = |ports: &[AttachedPort], partners: &[BTreeSet<u16>]| {
        ports.iter().zip(partners).for_each(|(port, partners)| add_port(port, partners));
    };
    for (class, partners) in classes.hosts.iter().zip(&of_hosts) {
        class.members.iter().for_each(|host| add(&permitted.hosts[permitted.ports_of_host(*host)], partners));
    }
    for (class, partners) in classes.storage.iter().zip(&of_storage) {
        let ports = |system: &u16| &permitted.storage[permitted.ports_of_storage(*system)];
        class.members.iter().for_each(|system| add(ports(system), partners));
    }
    // By source switch: bytes per second of the ports there, and the switches of their partners.
    let mut sources: BTreeMap<u16, BTreeMap<BTreeSet<u16>, u64>> = BTreeMap::new();
    for (link, (switch, targets)) in links {
        *sources.entry(switch).or_default().entry(targets).or_insert(0) += network.bytes_per_s[link];
    }
    for (&source, by_targets) in &sources {
        let all: BTreeSet<u16> = by_targets.keys().flatten().copied().collect();
        let flows: BTreeMap<u16, Vec<(usize, usize, f64)>> = all
            .into_iter()
            .filter(|&t| t != source && network.is_joined(source, t))
            .map(|t| (t, network.flow(source, t)))
            .collect();
        for (targets, &bytes_per_s) in by_targets {
            let mut largest: BTreeMap<(usize, usize), f64> = BTreeMap::new();
            for &(group, side, share) in targets.iter().filter_map(|t| flows.get(t)).flatten() {
                let entry = largest.entry((group, side)).or_insert(0.0);
                *entry = entry.max(share);
            }
            for ((group, side), share) in largest {
                behind[group][side] += share * bytes_per_s as f64;
            }
        }
    }
    let name = |s: u16| lab.switches[usize::from(s)].name.clone();
    (network.groups.iter().zip(behind))
        .map(|(group, behind)| IslGroup {
            switches: group.switches.map(name),
            label: group.switches.map(name).join("-"),
            links: group.links.clone(),
            names: compress_all(group.links.iter().map(|&l| lab.links[l].name.as_str())),
            bytes_per_s: group.bytes_per_s(),
            behind_bytes_per_s: behind,
            oversubscription: behind[0].min(behind[1]) / group.bytes_per_s() as f64,
        })
        .collect()
}

/// Hosts and storage whose pairs have equal numbers of paths.
#[derive(Default)]
struct Alike {
    hosts: BTreeSet<u16>,
    storage: BTreeSet<u16>,
    pairs: u64,
}

fn paths(lab: &Lab, network: &Network, classes: &Classes, sessions: &Sessions) -> Vec<Paths> {
    let mut routes: BTreeMap<u16, Vec<(u64, u32)>> = BTreeMap::new();
    let mut known: BTreeMap<Vec<PortPair>, u32> = BTreeMap::new();
    // By disjoint, port pairs, shortest, links.
    let mut found: BTreeMap<(u32, u32, u64, u32), Alike> = BTreeMap::new();
    for &(h, s) in &classes.pairs {
        let (hosts, storage) = (&classes.hosts[h], &classes.storage[s]);
        let mut of_luns = |pairs: Vec<(usize, usize)>| {
            let (mut port_pairs, mut shortest, mut links) = (0, 0_u64, u32::MAX);
            let mut over = Vec::new();
            for (i, j) in pairs {
                let (from, to) = (hosts.ports[i].switch, storage.ports[j].switch);
                let (count, hops) = routes.entry(to).or_insert_with(|| network.routes_to(to))[usize::from(from)];
                if count > 0 {
                    port_pairs += 1;
                    shortest = shortest.saturating_add(count);
                    // A direct link is the link of the host and of the storage.
                    let is_direct = usize::from(from) >= lab.switches.len() + lab.loops.len();
                    links = links.min(if is_direct { 1 } else { hops + 2 });
                    over.push(((hosts.ports[i].hba, from), (j, to)));
                }
            }
            if port_pairs == 0 {
                return (0, 0, 0, 0);
            }
            let disjoint = *known.entry(over).or_insert_with_key(|pairs| disjoint(network, pairs));
            (disjoint, port_pairs, shortest, links)
        };
        // The LUNs with the fewest paths count.
        let by_luns = classes.port_pairs_by_luns(&network.permitted, (h, s));
        let fewest = by_luns.into_iter().map(&mut of_luns).min().unwrap_or((0, 0, 0, 0));
        let mut members = hosts.members.iter().flat_map(|host| storage.members.iter().map(move |s| (*host, *s)));
        if fewest.1 == 0 && members.all(|pair| sessions.contains_key(&pair)) {
            continue;
        }
        let entry = found.entry(fewest).or_default();
        entry.hosts.extend(&hosts.members);
        entry.storage.extend(&storage.members);
        entry.pairs += hosts.members.len() as u64 * storage.members.len() as u64;
    }
    found
        .into_iter()
        .map(|((disjoint, port_pairs, shortest, links), Alike { hosts, storage, pairs })| Paths {
            host_names: compress_all(hosts.iter().map(|&h| lab.hosts[usize::from(h)].name.as_str())),
            storage_names: compress_all(storage.iter().map(|&s| lab.storage[usize::from(s)].name.as_str())),
            hosts: hosts.into_iter().collect(),
            storage: storage.into_iter().collect(),
            pairs,
            port_pairs,
            shortest,
            links,
            disjoint,
        })
        .collect()
}

fn single_points(lab: &Lab, network: &Network, classes: &Classes) -> Vec<SinglePoint> {
    let mut lost: BTreeMap<Part, Losers> = BTreeMap::new();
    let joined: Vec<Joined> = classes.pairs.iter().flat_map(|pair| Joined::of(network, classes, *pair)).collect();
    let mut cut = |part: Part, remains: Remains| {
        for pair in &joined {
            if !pair.switches.iter().any(|(a, b)| remains.is_joined(*a, *b)) {
                lost.entry(part).or_default().classes.insert(pair.hosts);
            }
        }
    };
    for switch in 0..lab.switches.len() as u16 {
        cut(Part::Switch(switch), Remains::of(network, &[switch], None));
    }
    for number in (0..lab.loops.len() as u16).filter(|number| lab.fl_port_link(*number).is_none()) {
        cut(Part::Loop(number), Remains::of(network, &[lab.switches.len() as u16 + number], None));
    }
    for Chassis { switches, .. } in chassis(lab) {
        cut(Part::Chassis(switches[0]), Remains::of(network, &switches, None));
    }
    let mut single: Vec<usize> = bridges(&network.graph).map(|e| *e.weight()).collect();
    single.sort_unstable();
    for group in single {
        if let [link] = network.groups[group].links[..] {
            cut(Part::Link(link), Remains::of(network, &[], Some(group)));
        }
    }
    lonely_ports(network, classes, &joined, &mut lost);
    (lost.into_iter())
        .map(|(part, losers)| SinglePoint { part, name: part_name(lab, part), hosts: losers.count(classes) })
        .collect()
}

/// Public loops with their links to switches, controllers, and metadata servers.
fn loops_controllers_and_servers(lab: &Lab, isolated: &[usize]) -> Vec<SinglePoint> {
    let loops = (0..lab.loops.len() as u16)
        .filter_map(|number| Some([Part::Loop(number), Part::Link(lab.fl_port_link(number)?)]));
    let several = (0..).zip(&lab.storage).filter(|(_, system)| system.controllers.count > 1);
    let controllers =
        several.flat_map(|(at, system)| (0..system.controllers.count).map(move |n| Part::Controller(at, n)));
    let servers = lab.live.out_of_band.keys().map(|server| Part::MetadataServer(*server));
    let mut parts = loops.flatten().chain(controllers).chain(servers).peekable();
    if parts.peek().is_none() {
        return Vec::new();
    }
    let reach = Reach::of(lab, isolated);
    let point = |part: Part| SinglePoint { part, name: part_name(lab, part), hosts: reach.hosts_cut_off(part) };
    parts.map(point).filter(|point| point.hosts > 0).collect()
}

/// LUNs that lose data with any of their devices.
fn unprotected_luns(lab: &Lab, classes: &Classes) -> Vec<SinglePoint> {
    let mut lost: BTreeMap<Part, Losers> = BTreeMap::new();
    for &(h, s) in &classes.pairs {
        let is_fragile = |system: &&u16| durability::is_unprotected(&lab.storage[usize::from(**system)]);
        for &system in classes.storage[s].members.iter().filter(is_fragile) {
            // Hosts of a class have the same workloads.
            for lun in lab.luns_in_use(classes.hosts[h].members[0], system) {
                lost.entry(Part::Unprotected(system, lun)).or_default().classes.insert(h);
            }
        }
    }
    (lost.into_iter())
        .map(|(part, losers)| SinglePoint { part, name: part_name(lab, part), hosts: losers.count(classes) })
        .collect()
}

/// A pair of classes with at least one permitted pair of ports; with masks, for LUNs that the same
/// host ports see.
struct Joined {
    /// Index of the class of hosts, and of the class of storage systems.
    hosts: usize,
    storage: usize,
    /// Switches of the permitted pairs of ports, each pair of switches once.
    switches: BTreeSet<(u16, u16)>,
    /// The only HBA, or storage port, of the permitted pairs; nothing if there are several.
    only_hba: Option<usize>,
    only_storage_port: Option<usize>,
}

impl Joined {
    fn of(network: &Network, classes: &Classes, pair: (usize, usize)) -> Vec<Joined> {
        let (hosts, storage) = (&classes.hosts[pair.0], &classes.storage[pair.1]);
        let only = |set: BTreeSet<usize>| set.first().copied().filter(|_| set.len() == 1);
        let of_luns = |port_pairs: Vec<(usize, usize)>| {
            let (mut switches, mut hbas, mut ports) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            for (i, j) in port_pairs {
                switches.insert((hosts.ports[i].switch, storage.ports[j].switch));
                hbas.insert(hosts.ports[i].hba);
                ports.insert(j);
            }
            let is_joined = !switches.is_empty();
            let (only_hba, only_storage_port) = (only(hbas), only(ports));
            is_joined.then_some(Joined { hosts: pair.0, storage: pair.1, switches, only_hba, only_storage_port })
        };
        classes.port_pairs_by_luns(&network.permitted, pair).into_iter().filter_map(of_luns).collect()
    }
}

/// The hosts that lose storage: whole classes, and single ones with their class.
#[derive(Default)]
struct Losers {
    classes: BTreeSet<usize>,
    hosts: BTreeSet<(usize, u16)>,
}

impl Losers {
    fn count(&self, classes: &Classes) -> usize {
        let whole: usize = self.classes.iter().map(|&h| classes.hosts[h].members.len()).sum();
        whole + self.hosts.iter().filter(|(class, _)| !self.classes.contains(class)).count()
    }
}

/// Adds HBAs and storage ports, with their links, that all permitted pairs of ports of a host and a
/// storage system need.
fn lonely_ports(network: &Network, classes: &Classes, joined: &[Joined], lost: &mut BTreeMap<Part, Losers>) {
    let permitted = &network.permitted;
    // The port of a class, and the hosts that depend on it.
    let hbas: BTreeSet<(usize, usize)> = joined.iter().filter_map(|pair| Some((pair.hosts, pair.only_hba?))).collect();
    let mut ports: BTreeMap<(usize, usize), BTreeSet<usize>> = BTreeMap::new();
    for pair in joined {
        if let Some(port) = pair.only_storage_port {
            ports.entry((pair.storage, port)).or_default().insert(pair.hosts);
        }
    }
    for (class, port) in hbas {
        for &host in &classes.hosts[class].members {
            let at = &permitted.hosts[permitted.ports_of_host(host)][port];
            for part in [carrier(at), Part::Link(at.link)] {
                lost.entry(part).or_default().hosts.insert((class, host));
            }
        }
    }
    for ((class, port), hosts) in ports {
        for &storage in &classes.storage[class].members {
            let at = &permitted.storage[permitted.ports_of_storage(storage)][port];
            for part in [carrier(at), Part::Link(at.link)] {
                lost.entry(part).or_default().classes.extend(&hosts);
            }
        }
    }
}

/// The physical port.
fn carrier(port: &AttachedPort) -> Part {
    match port.carrier {
        Node::Host(host) => Part::Hba(host, port.carrier_port),
        Node::Storage(storage) => Part::StoragePort(storage, port.carrier_port),
        Node::Switch(switch) => Part::Switch(switch),
        Node::Loop(number) => Part::Loop(number),
    }
}
