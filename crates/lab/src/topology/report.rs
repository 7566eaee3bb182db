//! [`Report`]: what `sanloom check` says about the topology of a good lab.

use super::classes::{Class, Classes, Port};
use super::names::compress;
use super::network::{Attachment, Network};
use petgraph::algo::bridges::bridges;
use petgraph::algo::maximum_flow::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::unionfind::UnionFind;
use petgraph::visit::EdgeRef;
use sanloom_core::config::Lab;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes, links, oversubscription, single points of failure and paths of a lab. `Display` prints it for a terminal.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Number of switches.
    pub switches: usize,
    /// Number of hosts that are machines of their own.
    pub hosts: usize,
    /// Number of HBAs of those.
    pub hbas: usize,
    /// Number of virtual machines.
    pub virtual_machines: usize,
    /// Number of storage systems.
    pub storage: usize,
    /// Number of ports of all storage systems.
    pub storage_ports: usize,
    /// Number of LUNs.
    pub luns: usize,
    /// Number of links, ISLs included.
    pub links: usize,
    /// Number of links between switches.
    pub isls: usize,
    /// Names of the links among them that their switches will isolate, in range notation; nothing leads over them.
    pub isolated: Option<String>,
    /// Fabrics: groups of switches that ISLs join, each as names in range notation.
    pub fabrics: Vec<String>,
    /// The ISLs between each pair of switches.
    pub isl_groups: Vec<IslGroup>,
    /// Everything whose loss cuts some host off from some storage that it uses: switches, then links, then ports.
    pub single_points: Vec<SinglePoint>,
    /// Paths between hosts and storage, alike pairs together.
    pub paths: Vec<Paths>,
    /// Names of the hosts that have less than two edge-disjoint paths to some storage that they use.
    pub hosts_without_two_paths: Vec<String>,
    /// Pairs of alike hosts and alike storage that were too many to look at; 0 for every sensible lab.
    pub pairs_left_out: usize,
}

/// All ISLs between two switches.
#[derive(Clone, PartialEq, Debug)]
pub struct IslGroup {
    /// Names of the two switches.
    pub switches: [String; 2],
    /// Indices into the links of the lab.
    pub links: Vec<usize>,
    /// Names of the links, in range notation.
    pub names: String,
    /// Bytes per second, one way, of the links that routing uses (those of the lowest cost).
    pub bytes_per_s: u64,
    /// Bytes per second of the host and storage ports behind each of the two switches whose traffic takes this group:
    /// each port counts with the largest share of its traffic to one partner that the cheapest paths lead over it.
    pub behind_bytes_per_s: [f64; 2],
    /// The smaller side of `behind_bytes_per_s` to `bytes_per_s`: no more can arrive than the other side sends.
    pub oversubscription: f64,
}

/// Something that can fail alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// A switch, by index.
    Switch(u16),
    /// A link, by index.
    Link(usize),
    /// An HBA: host and port.
    Hba(u16, u16),
    /// A port of a storage system: storage and port.
    StoragePort(u16, u16),
}

/// Something whose loss cuts some host off from some storage that it uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SinglePoint {
    /// What.
    pub part: Part,
    /// Its name; ports as `server1:0`.
    pub name: String,
    /// Number of hosts that lose some storage.
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
    /// Pairs of HBA and storage port that can reach each other: the paths of a multipath layer.
    pub port_pairs: u32,
    /// Different cheapest ways through the fabric, link by link, for all port pairs together.
    pub shortest: u64,
    /// Links on a cheapest way, the two node links included; 0 if there is none.
    pub links: u32,
    /// Paths that share no link.
    pub disjoint: u32,
}

impl Report {
    /// Looks at a lab that [`Lab::validate`] accepts; `isolated` are the links that will be isolated, by their indices.
    pub fn of(lab: &Lab, isolated: &[usize]) -> Report {
        let network = Network::of(lab, isolated);
        let classes = Classes::of(lab, &network);
        let isls = network.groups.iter().map(|g| g.links.len()).sum::<usize>() + isolated.len();
        let names = || compress(isolated.iter().map(|&link| lab.links[link].name.as_str()));
        let paths = paths(lab, &network, &classes);
        let mut lonely: Vec<u16> =
            (paths.iter()).filter(|p| p.disjoint < 2).flat_map(|p| p.hosts.iter().copied()).collect();
        lonely.sort_unstable();
        lonely.dedup();
        let physical = || lab.hosts.iter().filter(|h| h.virtual_machine.is_none());
        Report {
            switches: lab.switches.len(),
            hosts: physical().count(),
            hbas: physical().map(|h| h.hbas.len()).sum(),
            virtual_machines: lab.hosts.len() - physical().count(),
            storage: lab.storage.len(),
            storage_ports: lab.storage.iter().map(|s| s.ports.len()).sum(),
            luns: lab.storage.iter().map(|s| s.luns.len()).sum(),
            links: lab.links.len(),
            isls,
            isolated: (!isolated.is_empty()).then(names),
            fabrics: fabrics(lab, &network),
            isl_groups: isl_groups(lab, &network, &classes),
            single_points: single_points(lab, &network, &classes),
            paths,
            hosts_without_two_paths: lonely.into_iter().map(|h| lab.hosts[usize::from(h)].name.clone()).collect(),
            pairs_left_out: classes.left_out,
        }
    }
}

fn fabrics(lab: &Lab, network: &Network) -> Vec<String> {
    let mut members: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for (switch, fabric) in lab.switches.iter().zip(&network.fabric) {
        members.entry(*fabric).or_default().push(&switch.name);
    }
    members.into_values().map(compress).collect()
}

fn isl_groups(lab: &Lab, network: &Network, classes: &Classes) -> Vec<IslGroup> {
    let mut behind = vec![[0.0_f64; 2]; network.groups.len()];
    // For each class the switches of those it works with.
    let mut of_hosts: Vec<BTreeSet<u16>> = vec![BTreeSet::new(); classes.hosts.len()];
    let mut of_storage: Vec<BTreeSet<u16>> = vec![BTreeSet::new(); classes.storage.len()];
    for &(h, s) in &classes.pairs {
        of_hosts[h].extend(classes.storage[s].ports.iter().map(|p| p.switch));
        of_storage[s].extend(classes.hosts[h].ports.iter().map(|p| p.switch));
    }
    // By link: its port, and the switches that all who share it talk to.
    let mut links: BTreeMap<usize, (Attachment, BTreeSet<u16>)> = BTreeMap::new();
    for (list, nodes, partners) in
        [(&classes.hosts, &network.hosts, of_hosts), (&classes.storage, &network.storage, of_storage)]
    {
        for (class, targets) in list.iter().zip(partners) {
            for at in class.members.iter().flat_map(|&node| &nodes[usize::from(node)]) {
                links.entry(at.link).or_insert_with(|| (*at, BTreeSet::new())).1.extend(&targets);
            }
        }
    }
    // By source switch: bytes per second of the ports there, and the switches that they talk to.
    let mut sources: BTreeMap<u16, BTreeMap<BTreeSet<u16>, u64>> = BTreeMap::new();
    for (at, targets) in links.into_values() {
        *sources.entry(at.switch).or_default().entry(targets).or_insert(0) += at.bytes_per_s;
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
            links: group.links.clone(),
            names: compress(group.links.iter().map(|&l| lab.links[l].name.as_str())),
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

fn paths(lab: &Lab, network: &Network, classes: &Classes) -> Vec<Paths> {
    let mut routes: BTreeMap<u16, Vec<(u64, u32)>> = BTreeMap::new();
    let mut flows: BTreeMap<(Vec<u16>, Vec<u16>), u32> = BTreeMap::new();
    // By disjoint, port pairs, shortest, links.
    let mut found: BTreeMap<(u32, u32, u64, u32), Alike> = BTreeMap::new();
    for &(h, s) in &classes.pairs {
        let (hosts, storage) = (&classes.hosts[h], &classes.storage[s]);
        let (mut port_pairs, mut shortest, mut links) = (0, 0_u64, u32::MAX);
        for to in storage.ports.iter().map(|p| p.switch) {
            let routes = routes.entry(to).or_insert_with(|| network.routes_to(to));
            for from in &hosts.ports {
                let (ways, hops) = routes[usize::from(from.switch)];
                if ways > 0 {
                    port_pairs += 1;
                    shortest = shortest.saturating_add(ways);
                    links = links.min(hops + 2);
                }
            }
        }
        let key = (switches(hosts), switches(storage));
        let disjoint = if port_pairs == 0 || key.0.len().min(key.1.len()) == 1 {
            u32::from(port_pairs > 0)
        } else {
            *flows.entry(key).or_insert_with_key(|(hosts, storage)| disjoint(network, hosts, storage))
        };
        let links = if port_pairs == 0 { 0 } else { links };
        let entry = found.entry((disjoint, port_pairs, shortest, links)).or_default();
        entry.hosts.extend(&hosts.members);
        entry.storage.extend(&storage.members);
        entry.pairs += hosts.members.len() as u64 * storage.members.len() as u64;
    }
    found
        .into_iter()
        .map(|((disjoint, port_pairs, shortest, links), Alike { hosts, storage, pairs })| Paths {
            host_names: compress(hosts.iter().map(|&h| lab.hosts[usize::from(h)].name.as_str())),
            storage_names: compress(storage.iter().map(|&s| lab.storage[usize::from(s)].name.as_str())),
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

/// The switch of each link of the nodes of a class.
fn switches(class: &Class) -> Vec<u16> {
    let mut switches: Vec<u16> = class.ports.iter().filter(|p| !p.shares_hba).map(|p| p.switch).collect();
    switches.sort_unstable();
    switches
}

/// Menger: as many edge-disjoint paths as the largest flow, every link carrying one.
fn disjoint(network: &Network, hosts: &[u16], storage: &[u16]) -> u32 {
    let mut graph: DiGraph<(), u32, u32> = DiGraph::default();
    for _ in network.graph.node_indices() {
        graph.add_node(());
    }
    let [source, sink] = [graph.add_node(()), graph.add_node(())];
    for &switch in hosts {
        graph.add_edge(source, NodeIndex::new(usize::from(switch)), 1);
    }
    for &switch in storage {
        graph.add_edge(NodeIndex::new(usize::from(switch)), sink, 1);
    }
    for group in &network.groups {
        let [a, b] = group.switches.map(|s| NodeIndex::new(usize::from(s)));
        graph.add_edge(a, b, group.links.len() as u32);
        graph.add_edge(b, a, group.links.len() as u32);
    }
    dinics(&graph, source, sink).0
}

fn single_points(lab: &Lab, network: &Network, classes: &Classes) -> Vec<SinglePoint> {
    let mut lost: BTreeMap<Part, Losers> = BTreeMap::new();
    let whole = Remains::of(network, None, None);
    let joined: Vec<(usize, usize)> =
        (classes.pairs.iter().copied()).filter(|&(h, s)| whole.joins(&classes.hosts[h], &classes.storage[s])).collect();
    let mut cut = |part: Part, remains: Remains| {
        for &(h, s) in &joined {
            if !remains.joins(&classes.hosts[h], &classes.storage[s]) {
                lost.entry(part).or_default().classes.insert(h);
            }
        }
    };
    for switch in 0..lab.switches.len() as u16 {
        cut(Part::Switch(switch), Remains::of(network, Some(switch), None));
    }
    let mut single: Vec<usize> = bridges(&network.graph).map(|e| *e.weight()).collect();
    single.sort_unstable();
    for group in single {
        if let [link] = network.groups[group].links[..] {
            cut(Part::Link(link), Remains::of(network, None, Some(group)));
        }
    }
    lonely_ports(network, classes, &whole, &joined, &mut lost);
    (lost.into_iter())
        .map(|(part, losers)| SinglePoint { part, name: part_name(lab, part), hosts: losers.count(classes) })
        .collect()
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

/// Adds HBAs and storage ports, with their links, that alone lead from one side of a pair to the other.
fn lonely_ports(
    network: &Network,
    classes: &Classes,
    whole: &Remains,
    joined: &[(usize, usize)],
    lost: &mut BTreeMap<Part, Losers>,
) {
    // The port of a class, and the hosts that depend on it.
    let mut hbas: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut ports: BTreeMap<(usize, usize), BTreeSet<usize>> = BTreeMap::new();
    for &(h, s) in joined {
        let (hosts, storage) = (&classes.hosts[h], &classes.storage[s]);
        let only = |mine: &Class, other: &Class| -> Option<usize> {
            let leads = |port: &Port| other.ports.iter().any(|o| whole.is_joined(port.switch, o.switch));
            let mut leading =
                (mine.ports.iter().enumerate()).filter(|(_, p)| !p.shares_hba && leads(p)).map(|(i, _)| i);
            let first = leading.next();
            first.filter(|_| leading.next().is_none())
        };
        if let Some(port) = only(hosts, storage) {
            hbas.insert((h, port));
        }
        if let Some(port) = only(storage, hosts) {
            ports.entry((s, port)).or_default().insert(h);
        }
    }
    for (class, port) in hbas {
        for &host in &classes.hosts[class].members {
            let at = network.hosts[usize::from(host)][port];
            for part in [Part::Hba(at.owner, at.port), Part::Link(at.link)] {
                lost.entry(part).or_default().hosts.insert((class, host));
            }
        }
    }
    for ((class, port), hosts) in ports {
        for &storage in &classes.storage[class].members {
            let at = network.storage[usize::from(storage)][port];
            for part in [Part::StoragePort(at.owner, at.port), Part::Link(at.link)] {
                lost.entry(part).or_default().classes.extend(&hosts);
            }
        }
    }
}

fn part_name(lab: &Lab, part: Part) -> String {
    match part {
        Part::Switch(i) => lab.switches[usize::from(i)].name.clone(),
        Part::Link(i) => lab.links[i].name.clone(),
        Part::Hba(i, port) => format!("{}:{port}", lab.hosts[usize::from(i)].name),
        Part::StoragePort(i, port) => format!("{}:{port}", lab.storage[usize::from(i)].name),
    }
}

/// What is left of the fabric without a switch or a group of ISLs.
struct Remains {
    component: Vec<u32>,
    gone: Option<u16>,
}

impl Remains {
    fn of(network: &Network, switch: Option<u16>, group: Option<usize>) -> Remains {
        let mut union: UnionFind<u32> = UnionFind::new(network.graph.node_count());
        for edge in network.graph.edge_references() {
            let ends = [edge.source().index() as u16, edge.target().index() as u16];
            if Some(*edge.weight()) != group && !ends.iter().any(|&e| Some(e) == switch) {
                union.union(u32::from(ends[0]), u32::from(ends[1]));
            }
        }
        Remains { component: union.into_labeling(), gone: switch }
    }

    fn is_joined(&self, a: u16, b: u16) -> bool {
        Some(a) != self.gone && Some(b) != self.gone && self.component[usize::from(a)] == self.component[usize::from(b)]
    }

    fn joins(&self, hosts: &Class, storage: &Class) -> bool {
        (hosts.ports.iter()).any(|a| storage.ports.iter().any(|b| self.is_joined(a.switch, b.switch)))
    }
}
