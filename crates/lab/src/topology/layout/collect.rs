//! The shapes, cables, rows and fabrics of a drawing.

use super::super::names::compress;
use super::super::wires::{Place, Wire};
use super::{BOX_HEIGHT, Cable, Cell, Kind, Shape, text_width};
use sanloom_api::view::Plane;
use sanloom_fc::config::{Host, Node};
use sanloom_fc::san::Lab;
use std::collections::{BTreeMap, VecDeque};

/// Number of nodes of one kind above which those with the same links share a panel.
const MAX_SINGLE: usize = 12;
/// Number of nodes of one kind above which a panel shows only their number.
const MAX_NAMED: usize = 2_000;

/// A node that is neither a switch nor a loop.
struct Leaf<'l> {
    place: Place,
    name: &'l str,
    tooltip: String,
}

/// Adds the shapes, and returns the shape of each node.
pub(super) fn shapes(lab: &Lab, wires: &[Wire<'_>], shapes: &mut Vec<Shape>) -> BTreeMap<Place, usize> {
    let mut ends: BTreeMap<Place, Vec<Place>> = BTreeMap::new();
    for wire in wires {
        let [a, b] = wire.places;
        ends.entry(a).or_default().push(b);
        ends.entry(b).or_default().push(a);
    }
    let mut shape_of = BTreeMap::new();
    let ports = |place: Place| ends.get(&place).map_or(0, Vec::len);
    let switches = (0..).zip(&lab.switches).map(|(index, switch)| {
        let tooltip = format!("switch {}, domain {}, {} ports", switch.name, switch.domain, switch.ports);
        (Place::Node(Node::Switch(index)), Plane::FibreChannel, &switch.name, tooltip)
    });
    let loops = (0..).zip(&lab.loops).map(|(index, of_lab)| {
        let place = Place::Node(Node::Loop(index));
        let tooltip = format!("arbitrated loop {}, {} ports", of_lab.name, ports(place));
        (place, Plane::FibreChannel, &of_lab.name, tooltip)
    });
    let of_file = lab.ethernet_switches.iter().filter(|_| !lab.ethernet_is_implied());
    let ethernet = (0..).zip(of_file).map(|(index, switch)| {
        let place = Place::Ethernet(index);
        let tooltip = format!("Ethernet switch {}, {} links", switch.name, ports(place));
        (place, Plane::Ethernet, &switch.name, tooltip)
    });
    let infiniband = (0..).zip(&lab.infiniband.switches).map(|(index, switch)| {
        let place = Place::Infiniband(index);
        let tooltip = format!("InfiniBand switch {}, {} links", switch.name, ports(place));
        (place, Plane::Infiniband, &switch.name, tooltip)
    });
    for (place, plane, name, tooltip) in switches.chain(loops).chain(ethernet).chain(infiniband) {
        shape_of.insert(place, shapes.len());
        shapes.push(Shape { plane, ..single(Kind::Switch, name, &tooltip) });
    }
    for (kind, leaves) in [(Kind::Host, hosts(lab)), (Kind::Storage, storage(lab))] {
        let are_named = leaves.len() <= MAX_NAMED;
        if leaves.len() <= MAX_SINGLE {
            for leaf in leaves {
                shape_of.insert(leaf.place, shapes.len());
                shapes.push(single(kind, leaf.name, &leaf.tooltip));
            }
            continue;
        }
        let mut groups: BTreeMap<Vec<Place>, Vec<Leaf<'_>>> = BTreeMap::new();
        for leaf in leaves {
            let mut near = ends.get(&leaf.place).cloned().unwrap_or_default();
            near.sort_unstable();
            groups.entry(near).or_default().push(leaf);
        }
        for members in groups.into_values() {
            for leaf in &members {
                shape_of.insert(leaf.place, shapes.len());
            }
            let names = members.iter().filter(|_| members.len() > 1).map(|leaf| leaf.name.to_owned()).collect();
            let shape = match &members[..] {
                [leaf] => single(kind, leaf.name, &leaf.tooltip),
                _ if are_named => panel(kind, &members),
                _ => {
                    let (first, last) = (members[0].name, members[members.len() - 1].name);
                    single(kind, &heading(kind, &members), &format!("{first} to {last}, with the same links"))
                }
            };
            shapes.push(Shape { members: names, ..shape });
        }
    }
    shape_of
}

/// A virtual machine is drawn as part of its hypervisor.
fn hosts(lab: &Lab) -> Vec<Leaf<'_>> {
    let mut machines: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for host in &lab.hosts {
        if let Some(vm) = host.virtual_machine {
            machines.entry(vm.on).or_default().push(&host.name);
        }
    }
    let tooltip = |number: u16, host: &Host| match machines.get(&number) {
        None => format!("host {}, HBAs: {}", host.name, host.hbas.len()),
        Some(names) => {
            let (count, names) = (names.len(), compress(names.iter().copied()));
            format!("host {}, HBAs: {}, virtual machines: {count} ({names})", host.name, host.hbas.len())
        }
    };
    let physical = (0..).zip(&lab.hosts).filter(|(_, host)| host.virtual_machine.is_none());
    physical
        .map(|(i, host)| Leaf { place: Place::Node(Node::Host(i)), name: &host.name, tooltip: tooltip(i, host) })
        .collect()
}

fn storage(lab: &Lab) -> Vec<Leaf<'_>> {
    (lab.storage.iter().enumerate())
        .map(|(i, s)| Leaf {
            place: Place::Node(Node::Storage(i as u16)),
            name: &s.name,
            tooltip: format!("storage {}, ports: {}, LUNs: {}", s.name, s.ports.len(), s.luns.len()),
        })
        .collect()
}

fn single(kind: Kind, label: &str, tooltip: &str) -> Shape {
    Shape {
        kind,
        label: label.to_owned(),
        tooltip: tooltip.to_owned(),
        x: 0.0,
        y: 0.0,
        width: (text_width(label) + 18.0).max(48.0),
        height: BOX_HEIGHT,
        cells: Vec::new(),
        members: Vec::new(),
        plane: Plane::FibreChannel,
        row: 0,
        fabric: 0,
    }
}

fn heading(kind: Kind, members: &[Leaf<'_>]) -> String {
    let noun = if kind == Kind::Host { "hosts" } else { "storage systems" };
    format!("{} {noun}", members.len())
}

/// A panel without a size, which depends on the number of panels in its row.
fn panel(kind: Kind, members: &[Leaf<'_>]) -> Shape {
    let label = heading(kind, members);
    let names = compress(members.iter().map(|leaf| leaf.name));
    let widest = members.iter().map(|leaf| text_width(leaf.name)).fold(0.0, f64::max);
    let cell = |leaf: &Leaf<'_>| Cell {
        name: leaf.name.to_owned(),
        tooltip: leaf.tooltip.clone(),
        x: 0.0,
        y: 0.0,
        width: widest + 12.0,
    };
    let cells = members.iter().map(cell).collect();
    Shape { cells, ..single(kind, &label, &format!("{label}: {names}")) }
}

pub(super) fn cables(wires: &[Wire<'_>], shape_of: &BTreeMap<Place, usize>) -> Vec<Cable> {
    let mut cables: BTreeMap<[usize; 2], Vec<usize>> = BTreeMap::new();
    for (index, wire) in wires.iter().enumerate() {
        let found = wire.places.map(|place| shape_of.get(&place).copied());
        if let [Some(a), Some(b)] = found
            && a != b
        {
            cables.entry([a.min(b), a.max(b)]).or_default().push(index);
        }
    }
    cables.into_iter().map(|(shapes, links)| Cable { shapes, links }).collect()
}

/// Assigns each shape to a row. Switches are ordered by how much closer they are to hosts than to
/// storage, then by their distance from any node. Returns the number of rows.
pub(super) fn rows(shapes: &mut [Shape], cables: &[Cable]) -> usize {
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

/// Numbers the fabrics, in the order of their first switches, and the networks of the other
/// switches behind them. Returns their names. `fabric_of` has a value for each switch of Fibre
/// Channel, which is equal in one fabric.
pub(super) fn fabrics(shapes: &mut [Shape], fabric_of: &[u16]) -> Vec<String> {
    let mut found: Vec<u16> = Vec::new();
    // The shapes of the switches are first, in the order of the lab.
    let of_fabrics = shapes.iter_mut().filter(|shape| shape.kind == Kind::Switch && shape.plane == Plane::FibreChannel);
    for (shape, fabric) in of_fabrics.zip(fabric_of) {
        shape.fabric = found.iter().position(|known| known == fabric).unwrap_or_else(|| {
            found.push(*fabric);
            found.len() - 1
        });
    }
    let mut names: Vec<String> = match found.len() {
        1 => vec!["Fibre Channel".to_owned()],
        count => (0..count).map(|fabric| format!("Fabric {}", letters(fabric))).collect(),
    };
    for (plane, name) in [(Plane::Ethernet, "Ethernet"), (Plane::Infiniband, "InfiniBand")] {
        let mut of_plane = shapes.iter_mut().filter(|shape| shape.plane == plane).peekable();
        if of_plane.peek().is_some() {
            of_plane.for_each(|shape| shape.fabric = names.len());
            names.push(name.to_owned());
        }
    }
    names
}

/// A, B, … Z, AA, AB, …
fn letters(index: usize) -> String {
    let letter = |index: usize| char::from(b'A' + (index % 26) as u8);
    match index {
        0..=25 => letter(index).to_string(),
        _ => format!("{}{}", letter(index / 26 - 1), letter(index)),
    }
}

/// Returns the number of ISLs between each switch and the nearest node of a kind, or a large number
/// if there is none.
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
