//! Levels, groups of links and numbering of a fat tree.

use crate::infiniband::fabric::Guid;
use crate::infiniband::routing::Refusal;
use crate::infiniband::routing::topology::Topology;
use crate::infiniband::routing::updn::ranks;
use std::collections::VecDeque;

/// Greatest number of levels.
const MAX_LEVELS: usize = 8;

/// Parallel links from a switch to one switch of a neighbouring level.
#[derive(Clone, Debug)]
pub struct Group {
    /// Switch at the far end.
    pub far: usize,
    /// In the order of the ports of this end.
    pub links: Vec<Link>,
    /// Routes on all links.
    pub load: u32,
}

/// Link of a group.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Port at the far end.
    pub far_port: u8,
    /// Routes on the link.
    pub load: u32,
}

/// Switch of the tree.
#[derive(Clone, Debug)]
pub struct Level {
    /// Level, from 0 at the roots.
    pub rank: usize,
    /// Groups towards the roots.
    pub up: Vec<Group>,
    /// Groups towards the leaves.
    pub down: Vec<Group>,
    /// Numbers of the branches from the root: the position in the tree.
    pub place: Vec<u16>,
}

/// Fat tree over the switches of a topology.
#[derive(Debug)]
pub struct Tree {
    pub switches: Vec<Level>,
    /// Leaf switches in the order of their places.
    pub leaves: Vec<usize>,
}

impl Group {
    /// Index of the link with the fewest routes; a group has at least one link.
    pub fn least_loaded(&self) -> usize {
        (0..self.links.len()).min_by_key(|link| self.links[*link].load).unwrap_or(0)
    }

    /// Counts a route on a link.
    pub fn count(&mut self, link: usize) {
        self.links[link].load += 1;
        self.load += 1;
    }
}

impl Tree {
    /// True for a switch with adapters.
    pub fn is_leaf(&self, switch: usize) -> bool {
        self.leaves.contains(&switch)
    }

    /// Finds the levels of a topology, checks that it is a fat tree, and numbers the switches.
    pub fn new(topology: &Topology, roots: &[Guid]) -> Result<Tree, Refusal> {
        let has_adapter = |switch: &usize| topology.switches[*switch].adapters().next().is_some();
        let with_adapters: Vec<usize> = (0..topology.switches.len()).filter(has_adapter).collect();
        let named: Vec<usize> =
            (0..topology.switches.len()).filter(|switch| roots.contains(&topology.switches[*switch].guid)).collect();
        let distance = ranks(topology, if named.is_empty() { &with_adapters } else { &named });
        let farthest = distance.iter().copied().max().map_or(0, usize::from);
        let rank = |switch: usize| match usize::from(distance[switch]) {
            distance if named.is_empty() => farthest - distance,
            distance => distance,
        };
        let levels = farthest + 1;
        if !(2..=MAX_LEVELS).contains(&levels) || topology.adapters < 2 {
            return Err(Refusal::Shape { levels, adapters: topology.adapters });
        }
        let mut switches = Vec::new();
        for (index, data) in topology.switches.iter().enumerate() {
            let mut level = Level { rank: rank(index), up: Vec::new(), down: Vec::new(), place: Vec::new() };
            for (_, far, far_port) in data.neighbours() {
                let groups = match (rank(far) + 1 == level.rank, rank(far) == level.rank + 1) {
                    (true, _) => &mut level.up,
                    (_, true) => &mut level.down,
                    _ => return Err(Refusal::Level(data.node, topology.switches[far].node)),
                };
                let link = Link { far_port, load: 0 };
                match groups.iter_mut().find(|group| group.far == far) {
                    Some(group) => group.links.push(link),
                    None => groups.push(Group { far, links: vec![link], load: 0 }),
                }
            }
            switches.push(level);
        }
        let mut tree = Tree { switches, leaves: with_adapters };
        tree.number(farthest);
        tree.leaves.sort_by(|a, b| tree.switches[*a].place.cmp(&tree.switches[*b].place));
        if named.is_empty() {
            tree.check(topology, farthest)?;
        }
        Ok(tree)
    }

    /// Numbers the switches breadth first from the first leaf, and sorts the groups by the numbers
    /// of their far ends. Over a link between levels r-1 and r only digit r changes: the new switch
    /// takes the lowest value that is free.
    fn number(&mut self, farthest: usize) {
        let Some(first) = self.leaves.first().copied() else { return };
        self.switches[first].place = vec![0; farthest + 2];
        self.switches[first].place[0] = self.switches[first].rank as u16;
        let mut queue = VecDeque::from([first]);
        while let Some(at) = queue.pop_front() {
            for down in [true, false] {
                let groups = if down { &self.switches[at].down } else { &self.switches[at].up };
                let fars: Vec<usize> = groups.iter().map(|group| group.far).collect();
                for far in fars {
                    if !self.switches[far].place.is_empty() {
                        continue;
                    }
                    let mut place = self.switches[at].place.clone();
                    let rank = self.switches[far].rank;
                    place[0] = rank as u16;
                    let digit = rank.max(self.switches[at].rank);
                    place[digit] = 0;
                    while self.switches.iter().any(|switch| switch.place == place) {
                        place[digit] += 1;
                    }
                    self.switches[far].place = place;
                    queue.push_back(far);
                }
                let places: Vec<Vec<u16>> = self.switches.iter().map(|switch| switch.place.clone()).collect();
                let switch = &mut self.switches[at];
                let groups = if down { &mut switch.down } else { &mut switch.up };
                groups.sort_by(|a, b| places[a.far].cmp(&places[b.far]));
            }
        }
    }

    /// Requires that the switches of a level have equal groups of links.
    fn check(&self, topology: &Topology, farthest: usize) -> Result<(), Refusal> {
        for rank in 0..=farthest {
            let mut level = self.switches.iter().enumerate().filter(|(_, switch)| switch.rank == rank);
            let Some((_, reference)) = level.next() else { continue };
            let sizes = |groups: &[Group]| -> Vec<usize> { groups.iter().map(|group| group.links.len()).collect() };
            let even = |groups: &[Group], like: &[Group]| {
                let like = like.first().map(|group| group.links.len());
                sizes(groups).into_iter().all(|size| Some(size) == like)
            };
            for (index, switch) in std::iter::once((0, reference)).chain(level) {
                let same_up = switch.up.len() == reference.up.len() && even(&switch.up, &reference.up);
                let down = rank == farthest || switch.down.len() == reference.down.len();
                if !same_up || !down || !even(&switch.down, &reference.down) {
                    return Err(Refusal::Uneven(topology.switches[index].node));
                }
            }
        }
        Ok(())
    }
}
