//! Assignment of the nodes of a lab to parts.
//!
//! Nodes that share state without delay stay together. Nodes joined by short links stay together as
//! long as the load of the parts remains balanced, because the shortest cut link limits how far the
//! parts may run apart.

use crate::net::{Half, NEVER, Net, Share};
use crate::world::{World, WorldShare};
use sanloom_fc::config::{FaultKind, Node};
use sanloom_fc::san::Lab;

/// Shortest lookahead of a cut link, in ps. A shorter one costs more than it gains.
const MIN_LOOKAHEAD_PS: u64 = 10_000;

/// Greatest accepted load of a part, in percent of the mean. If no division is that good, the one
/// with the smallest such load is used.
const BALANCED_PERCENT: u64 = 110;

/// Number of lookaheads that are tried.
const TRIED: usize = 16;

/// Numbers of nodes in one sequence: switches, hosts, storage systems.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nodes {
    switches: usize,
    hosts: usize,
    all: usize,
}

impl Nodes {
    pub fn of(lab: &Lab) -> Nodes {
        let (switches, hosts) = (lab.switches.len(), lab.hosts.len());
        Nodes { switches, hosts, all: switches + hosts + lab.storage.len() }
    }

    pub fn count(self) -> usize {
        self.all
    }

    pub fn index(self, node: Node) -> usize {
        match node {
            Node::Switch(switch) => usize::from(switch),
            Node::Host(host) => self.switches + usize::from(host),
            Node::Storage(storage) => self.switches + self.hosts + usize::from(storage),
            // A lab with loops is not divided.
            Node::Loop(_) => 0,
        }
    }
}

/// Sets of nodes that stay together.
#[derive(Clone)]
struct Groups(Vec<usize>);

impl Groups {
    fn root(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// Links that are cut only if nothing else balances the load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// All links of hosts and storage systems.
    Nodes,
    /// The first link of each host and storage system.
    FirstLinks,
    Nothing,
}

/// A division of a lab.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Part of each node.
    pub part_of: Vec<u8>,
    /// Number of parts.
    pub parts: usize,
    /// Shortest time from an event in one part to its first effect in another, in ps;
    /// [`NEVER`] if the parts have no common link. Indexed by the part of the event and then by the
    /// part of the effect.
    pub lookahead_ps: Vec<Vec<u64>>,
}

impl Plan {
    /// Returns the division into at most `parts` parts with balanced sums of `load`, which holds a
    /// number for each node. `None` if the lab cannot be divided.
    pub fn new(lab: &Lab, net: &Net, load: &[u64], parts: usize) -> Option<Plan> {
        if !lab.loops.is_empty()
            || !lab.live.out_of_band.is_empty()
            || !lab.ethernet_links.is_empty()
            || !lab.infiniband.links.is_empty()
        {
            return None;
        }
        let nodes = Nodes::of(lab);
        let together = together(lab, net, nodes);
        let lookahead = |link: usize| link_lookahead_ps(net, link);
        let mut tried: Vec<u64> = (0..lab.links.len()).map(lookahead).filter(|&ps| ps >= MIN_LOOKAHEAD_PS).collect();
        tried.sort_unstable_by(|a, b| b.cmp(a));
        tried.dedup();
        let every = tried.len().div_ceil(TRIED).max(1);
        let mut best: Option<(u64, Vec<u8>)> = None;
        let mean = load.iter().sum::<u64>() / parts as u64;
        'all: for keep in [Keep::Nodes, Keep::FirstLinks, Keep::Nothing] {
            for &shortest in tried.iter().rev().step_by(every).collect::<Vec<_>>().into_iter().rev() {
                let mut groups = together.clone();
                let mut has_link = vec![false; nodes.count()];
                for (number, link) in lab.links.iter().enumerate() {
                    let ends = link.ends.map(|end| nodes.index(end.node));
                    let leaf = ends.into_iter().find(|&end| end >= nodes.switches);
                    let first = leaf.is_some_and(|leaf| !std::mem::replace(&mut has_link[leaf], true));
                    let kept = match keep {
                        Keep::Nodes => leaf.is_some(),
                        Keep::FirstLinks => first,
                        Keep::Nothing => false,
                    };
                    if kept || lookahead(number) < shortest {
                        groups.join(ends[0], ends[1]);
                    }
                }
                let (most, part_of) = assign(&mut groups, lab, nodes, load, parts);
                if best.as_ref().is_none_or(|(least, _)| most < *least) {
                    best = Some((most, part_of));
                }
                if most * 100 <= mean * BALANCED_PERCENT {
                    break 'all;
                }
            }
        }
        let (_, part_of) = best?;
        let used = part_of.iter().max().map_or(0, |&most| usize::from(most) + 1);
        (used > 1).then(|| Plan { lookahead_ps: lookaheads(lab, net, nodes, &part_of, used), part_of, parts: used })
    }

    /// Returns the state that belongs to each part.
    pub fn shares(&self, lab: &Lab, world: &World) -> Vec<WorldShare> {
        let nodes = Nodes::of(lab);
        let part = |node: Node| usize::from(self.part_of[nodes.index(node)]);
        let mut shares = vec![WorldShare::default(); self.parts];
        for switch in 0..lab.switches.len() as u16 {
            shares[part(Node::Switch(switch))].net.switches.push(switch);
        }
        for host in 0..lab.hosts.len() as u16 {
            shares[part(Node::Host(host))].hosts.push(host);
        }
        for storage in 0..lab.storage.len() as u16 {
            shares[part(Node::Storage(storage))].storage.push(storage);
        }
        for nport in 0..world.nports.nodes.len() as u16 {
            shares[part(world.node_of_nport(nport))].net.nports.push(nport);
        }
        for timer in 0..world.timers() {
            if let Some(node) = world.node_of_timer(timer) {
                shares[part(node)].net.timers.push(timer);
            }
        }
        for lane in 0..2 * lab.links.len() as u32 {
            let [from, to] = ends(lab, lane).map(part);
            let push = |share: &mut Share, half| share.lanes.push((lane, half));
            if from == to {
                push(&mut shares[from].net, Half::Both);
            } else {
                push(&mut shares[from].net, Half::Sender(to as u8));
                push(&mut shares[to].net, Half::Receiver(from as u8));
            }
        }
        shares
    }
}

/// Returns sender and receiver of a lane.
pub(super) fn ends(lab: &Lab, lane: u32) -> [Node; 2] {
    let [first, second] = lab.links[lane as usize / 2].ends.map(|end| end.node);
    if lane.is_multiple_of(2) { [first, second] } else { [second, first] }
}

fn link_lookahead_ps(net: &Net, link: usize) -> u64 {
    let lanes = &net.fc.lanes()[2 * link..2 * link + 2];
    lanes.iter().flat_map(|lane| lane.lookahead_ps()).min().unwrap_or(0)
}

/// Returns the groups of nodes that share state without delay: a virtual machine and its
/// hypervisors, a host that sends with the address of another, and the ends of a link with a fault
/// of one direction or with an observer.
fn together(lab: &Lab, net: &Net, nodes: Nodes) -> Groups {
    let mut groups = Groups((0..nodes.count()).collect());
    let host = |host: u16| nodes.index(Node::Host(host));
    for (machine, config) in (0..).zip(&lab.hosts) {
        config.virtual_machine.iter().for_each(|vm| groups.join(host(machine), host(vm.on)));
    }
    let join_link = |groups: &mut Groups, link: usize| {
        let [a, b] = lab.links[link].ends.map(|end| nodes.index(end.node));
        groups.join(a, b);
    };
    for fault in &lab.faults {
        match fault.kind {
            FaultKind::VmMove { host: machine, to } => groups.join(host(machine), host(to)),
            FaultKind::ForeignAddress { host: machine, of } => groups.join(host(machine), host(of)),
            FaultKind::FrameLoss { link, .. }
            | FaultKind::CrcErrors { link, .. }
            | FaultKind::SlowReceiver { link, .. }
            | FaultKind::WithheldCredits { link, .. }
            | FaultKind::LostRRdy { link, .. } => join_link(&mut groups, usize::from(link)),
            FaultKind::LinkDown { .. }
            | FaultKind::LinkUp { .. }
            | FaultKind::PortDown { .. }
            | FaultKind::SwitchReset { .. }
            | FaultKind::VmStop { .. }
            | FaultKind::DuplicateName { .. }
            | FaultKind::DiskFailure { .. }
            | FaultKind::LatentError { .. }
            | FaultKind::PowerFailure { .. }
            | FaultKind::ControllerFailure { .. }
            | FaultKind::CacheBattery { .. }
            | FaultKind::OutOfBand(_)
            | FaultKind::Ethernet(_)
            | FaultKind::Infiniband(_) => {}
        }
    }
    for (number, lane) in net.fc.lanes().iter().enumerate() {
        if lane.watched || lane.faulty {
            join_link(&mut groups, number / 2);
        }
    }
    groups
}

/// Assigns groups to parts: the largest first, each to the part with most links to it among the
/// parts with room, or else to the part with the least load. Returns the greatest load of a part.
fn assign(groups: &mut Groups, lab: &Lab, nodes: Nodes, load: &[u64], parts: usize) -> (u64, Vec<u8>) {
    let root: Vec<usize> = (0..nodes.count()).map(|node| groups.root(node)).collect();
    let mut load_of = vec![0; nodes.count()];
    root.iter().zip(load).for_each(|(&root, load)| load_of[root] += load + 1);
    let mut links_of = vec![Vec::new(); nodes.count()];
    for link in &lab.links {
        let [a, b] = link.ends.map(|end| root[nodes.index(end.node)]);
        if a != b {
            links_of[a].push(b);
            links_of[b].push(a);
        }
    }
    let mut order: Vec<usize> = (0..nodes.count()).filter(|&node| root[node] == node).collect();
    order.sort_by_key(|&group| (std::cmp::Reverse(load_of[group]), group));
    let room = load_of.iter().sum::<u64>().div_ceil(parts as u64);
    let (mut loads, mut part_of_root) = (vec![0; parts], vec![u8::MAX; nodes.count()]);
    for group in order {
        let mut links = vec![0; parts];
        for &other in &links_of[group] {
            if let Some(links) = links.get_mut(usize::from(part_of_root[other])) {
                *links += 1;
            }
        }
        let has_room = |part: &usize| loads[*part] + load_of[group] <= room;
        let near = (0..parts).filter(has_room).max_by_key(|&part| (links[part], std::cmp::Reverse(part)));
        let free = || (0..parts).min_by_key(|&part| (loads[part], part));
        let part = near.or_else(free).unwrap_or(0);
        loads[part] += load_of[group];
        part_of_root[group] = part as u8;
    }
    let most = loads.iter().copied().max().unwrap_or(0);
    // Parts without nodes are left out.
    let mut number = 0..;
    let renumbered: Vec<u8> =
        loads.iter().map(|&load| if load > 0 { number.next().unwrap_or(0) } else { u8::MAX }).collect();
    (most, root.iter().map(|&root| renumbered[usize::from(part_of_root[root])]).collect())
}

fn lookaheads(lab: &Lab, net: &Net, nodes: Nodes, part_of: &[u8], parts: usize) -> Vec<Vec<u64>> {
    let mut shortest = vec![vec![NEVER; parts]; parts];
    for (lane, state) in (0..).zip(net.fc.lanes()) {
        let [from, to] = ends(lab, lane).map(|node| usize::from(part_of[nodes.index(node)]));
        if from != to {
            let [frame, r_rdy] = state.lookahead_ps();
            shortest[from][to] = shortest[from][to].min(frame);
            shortest[to][from] = shortest[to][from].min(r_rdy);
        }
    }
    shortest
}
