//! Where boxes and lines of a drawing go: hosts at the top, switches in tiers, storage at the bottom.

use super::names::compress;
use sanloom_core::config::{Host, Lab, Node};
use std::collections::{BTreeMap, VecDeque};

/// A node, or a group of nodes with the same links.
pub(super) struct Shape {
    pub kind: Kind,
    pub label: String,
    pub tooltip: String,
    /// Centre.
    pub x: f64,
    /// Centre.
    pub y: f64,
    pub width: f64,
    row: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Host,
    Switch,
    Storage,
}

/// All links between two shapes.
pub(super) struct Cable {
    pub shapes: [usize; 2],
    /// Indices into the links of the lab.
    pub links: Vec<usize>,
}

/// A drawing without colours.
pub(super) struct Layout {
    pub shapes: Vec<Shape>,
    pub cables: Vec<Cable>,
    pub width: f64,
    pub height: f64,
}

/// More nodes than this of one sort are drawn as groups.
const MAX_SINGLE: usize = 48;
const MARGIN: f64 = 24.0;
/// Least distance of rows; wide drawings get more, so that lines do not lie flat.
const ROW_HEIGHT: f64 = 130.0;
/// Rows of more boxes than this are drawn tight.
const MANY: usize = 16;
pub(super) const BOX_HEIGHT: f64 = 34.0;
/// Width of a letter of the label's font.
const LETTER: f64 = 7.2;

impl Layout {
    pub fn of(lab: &Lab) -> Layout {
        let mut shapes = Vec::new();
        let shape_of = collect(lab, &mut shapes);
        let cables = cables(lab, &shape_of);
        let rows = rows(&mut shapes, &cables);
        let mut layout = Layout { shapes, cables, width: 0.0, height: 0.0 };
        layout.place(rows);
        layout
    }

    fn place(&mut self, rows: usize) {
        let mut order: Vec<Vec<usize>> = vec![Vec::new(); rows];
        for (index, shape) in self.shapes.iter().enumerate() {
            order[shape.row].push(index);
        }
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); self.shapes.len()];
        for cable in &self.cables {
            let [a, b] = cable.shapes;
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        self.spread(&order);
        // Each row in the order of where its neighbours stand, from the top and from the bottom: fewer lines cross.
        for sweep in 0..6 {
            let down = sweep % 2 == 0;
            let mut indices: Vec<usize> = (0..rows).collect();
            if !down {
                indices.reverse();
            }
            for row in indices {
                let mut keyed: Vec<(f64, usize)> = order[row]
                    .iter()
                    .map(|&shape| {
                        let near: Vec<f64> = (neighbours[shape].iter())
                            .filter(|&&n| (self.shapes[n].row < row) == down && self.shapes[n].row != row)
                            .map(|&n| self.shapes[n].x)
                            .collect();
                        let mean = near.iter().sum::<f64>() / near.len() as f64;
                        (if near.is_empty() { self.shapes[shape].x } else { mean }, shape)
                    })
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                order[row] = keyed.into_iter().map(|(_, shape)| shape).collect();
                self.spread(&order);
            }
        }
    }

    /// Puts the shapes of each row side by side, all rows centred.
    fn spread(&mut self, order: &[Vec<usize>]) {
        let most = order.iter().map(Vec::len).max().unwrap_or(0);
        let gap = if most > MANY { 8.0 } else { 18.0 };
        let width_of = |row: &Vec<usize>| -> f64 { row.iter().map(|&s| self.shapes[s].width + gap).sum::<f64>() - gap };
        let widest = order.iter().map(width_of).fold(200.0, f64::max);
        let widths: Vec<f64> = order.iter().map(width_of).collect();
        let row_height = ROW_HEIGHT.max(widest / 14.0);
        for (number, (row, width)) in order.iter().zip(widths).enumerate() {
            // Stretched a little, so that few boxes do not huddle below many.
            let free = ((widest - width) / (row.len() as f64 + 1.0)).min(widest / 6.0).max(0.0);
            let total = width + free * (row.len() as f64 - 1.0).max(0.0);
            let mut left = MARGIN + (widest - total) / 2.0;
            for &shape in row {
                let shape = &mut self.shapes[shape];
                shape.x = left + shape.width / 2.0;
                shape.y = MARGIN + BOX_HEIGHT / 2.0 + number as f64 * row_height;
                left += shape.width + gap + free;
            }
        }
        self.width = widest + 2.0 * MARGIN;
        self.height = 2.0 * MARGIN + BOX_HEIGHT + (order.len().max(1) - 1) as f64 * row_height;
    }
}

/// The shapes, and which one each node is part of.
fn collect(lab: &Lab, shapes: &mut Vec<Shape>) -> BTreeMap<Node, usize> {
    let mut ends: BTreeMap<Node, Vec<Node>> = BTreeMap::new();
    for link in &lab.links {
        let [a, b] = link.ends.map(|e| e.node);
        ends.entry(a).or_default().push(b);
        ends.entry(b).or_default().push(a);
    }
    let mut shape_of = BTreeMap::new();
    for (index, switch) in lab.switches.iter().enumerate() {
        let node = Node::Switch(index as u16);
        shape_of.insert(node, shapes.len());
        shapes.push(shape(
            Kind::Switch,
            &switch.name,
            &format!("switch {}, domain {}, {} ports", switch.name, switch.domain, switch.ports),
        ));
    }
    let mut machines: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for host in &lab.hosts {
        if let Some(vm) = host.virtual_machine {
            machines.entry(vm.on).or_default().push(&host.name);
        }
    }
    let tooltip_of = |number: u16, host: &Host| match machines.get(&number) {
        None => format!("host {}, HBAs: {}", host.name, host.hbas.len()),
        Some(names) => {
            let (count, names) = (names.len(), compress(names.iter().copied()));
            format!("host {}, HBAs: {}, virtual machines: {count} ({names})", host.name, host.hbas.len())
        }
    };
    // A virtual machine is drawn as part of its hypervisor.
    let hosts: Vec<(Node, &str, String)> = ((0..).zip(&lab.hosts))
        .filter(|(_, h)| h.virtual_machine.is_none())
        .map(|(i, h)| (Node::Host(i), h.name.as_str(), tooltip_of(i, h)))
        .collect();
    let storage: Vec<(Node, &str, String)> = (lab.storage.iter().enumerate())
        .map(|(i, s)| {
            let tooltip = format!("storage {}, ports: {}, LUNs: {}", s.name, s.ports.len(), s.luns.len());
            (Node::Storage(i as u16), s.name.as_str(), tooltip)
        })
        .collect();
    for (kind, nodes) in [(Kind::Host, hosts), (Kind::Storage, storage)] {
        if nodes.len() <= MAX_SINGLE {
            for (node, name, tooltip) in nodes {
                shape_of.insert(node, shapes.len());
                shapes.push(shape(kind, name, &tooltip));
            }
            continue;
        }
        let mut groups: BTreeMap<Vec<Node>, Vec<(Node, &str)>> = BTreeMap::new();
        for (node, name, _) in nodes {
            let mut near = ends.get(&node).cloned().unwrap_or_default();
            near.sort_unstable();
            groups.entry(near).or_default().push((node, name));
        }
        let tight = groups.len() > MANY;
        for members in groups.into_values() {
            let names = compress(members.iter().map(|&(_, name)| name));
            let noun = if kind == Kind::Host { "hosts" } else { "storage systems" };
            for &(node, _) in &members {
                shape_of.insert(node, shapes.len());
            }
            let short = if kind == Kind::Host { "hosts" } else { "storage" };
            let label = match names.len() {
                0..=24 if !tight => names.clone(),
                _ => format!("{} {short}", members.len()),
            };
            shapes.push(shape(kind, &label, &format!("{} {noun}: {names}", members.len())));
        }
    }
    shape_of
}

fn shape(kind: Kind, label: &str, tooltip: &str) -> Shape {
    let width = (label.chars().count() as f64 * LETTER + 18.0).max(48.0);
    Shape { kind, label: label.to_owned(), tooltip: tooltip.to_owned(), x: 0.0, y: 0.0, width, row: 0 }
}

fn cables(lab: &Lab, shape_of: &BTreeMap<Node, usize>) -> Vec<Cable> {
    let mut cables: BTreeMap<[usize; 2], Vec<usize>> = BTreeMap::new();
    for (index, link) in lab.links.iter().enumerate() {
        let found = link.ends.map(|e| shape_of.get(&e.node).copied());
        if let [Some(a), Some(b)] = found
            && a != b
        {
            cables.entry([a.min(b), a.max(b)]).or_default().push(index);
        }
    }
    cables.into_iter().map(|(shapes, links)| Cable { shapes, links }).collect()
}

/// Gives each shape its row: switches by how much nearer they are to hosts than to storage, then by how far they are
/// from any node. Returns the number of rows.
fn rows(shapes: &mut [Shape], cables: &[Cable]) -> usize {
    let from_hosts = distances(shapes, cables, Kind::Host);
    let from_storage = distances(shapes, cables, Kind::Storage);
    let tier = |i: usize| (from_hosts[i] - from_storage[i], from_hosts[i].min(from_storage[i]));
    let mut tiers: Vec<(i32, i32)> = (0..shapes.len()).filter(|&i| shapes[i].kind == Kind::Switch).map(tier).collect();
    tiers.sort_unstable();
    tiers.dedup();
    let has_hosts = usize::from(shapes.iter().any(|s| s.kind == Kind::Host));
    for (i, shape) in shapes.iter_mut().enumerate() {
        shape.row = match shape.kind {
            Kind::Host => 0,
            Kind::Switch => has_hosts + tiers.binary_search(&tier(i)).unwrap_or(0),
            Kind::Storage => has_hosts + tiers.len(),
        };
    }
    shapes.iter().map(|s| s.row + 1).max().unwrap_or(1)
}

/// ISLs between each switch and the nearest node of a sort; far away if there is none.
fn distances(shapes: &[Shape], cables: &[Cable], kind: Kind) -> Vec<i32> {
    const FAR: i32 = 1000;
    let mut distance = vec![FAR; shapes.len()];
    let mut near: Vec<Vec<usize>> = vec![Vec::new(); shapes.len()];
    let mut open = VecDeque::new();
    for cable in cables {
        for [a, b] in [cable.shapes, [cable.shapes[1], cable.shapes[0]]] {
            match (shapes[a].kind, shapes[b].kind) {
                (Kind::Switch, Kind::Switch) => near[a].push(b),
                (Kind::Switch, other) if other == kind && distance[a] == FAR => {
                    distance[a] = 0;
                    open.push_back(a);
                }
                _ => {}
            }
        }
    }
    while let Some(at) = open.pop_front() {
        for &next in &near[at] {
            if distance[next] == FAR {
                distance[next] = distance[at] + 1;
                open.push_back(next);
            }
        }
    }
    distance
}
