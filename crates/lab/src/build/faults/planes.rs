//! Names of Ethernet and InfiniBand in `[[fault]]`: links, ports and switches of each plane.

use super::{CONFLICT, Finder};
use crate::build::ports::BAD_PORT;
use crate::diagnostic::Origin;
use crate::schema::Trouble;
use sanloom_fc::config::{EthernetNode, FaultKind, InfinibandNode, Node};
use sanloom_fc::san::Lab;
use std::collections::BTreeMap;

/// Fabric beside Fibre Channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plane {
    Ethernet,
    Infiniband,
}

/// All of them, in the order in which a name is looked up.
pub(super) const PLANES: [Plane; 2] = [Plane::Ethernet, Plane::Infiniband];

/// Node of a plane, by index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    Switch(u16),
    Host(u16),
    Storage(u16),
    /// A switch of Fibre Channel, by its index: a forwarder of FCoE.
    Forwarder(u16),
}

/// Meaning of a name in a fault.
#[derive(Clone, Copy)]
pub(super) enum At {
    /// A link.
    Link(u16),
    /// A link and one of its ends.
    End(u16, u8),
    /// A switch.
    Switch(u16),
}

impl Plane {
    /// Prefix of the interfaces of this plane in names such as `server1:eth0`.
    fn prefix(self) -> &'static str {
        match self {
            Plane::Ethernet => "eth",
            Plane::Infiniband => "ib",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Plane::Ethernet => "Ethernet",
            Plane::Infiniband => "InfiniBand",
        }
    }

    /// Returns the plane on which alone a kind of fault exists.
    pub fn of(trouble: Trouble) -> Option<Plane> {
        match trouble {
            Trouble::Reordering | Trouble::PauseStorm => Some(Plane::Ethernet),
            Trouble::LostCreditUpdates => Some(Plane::Infiniband),
            _ => None,
        }
    }
}

/// The names of a plane, and its links by the ports at their ends.
#[derive(Default)]
pub(super) struct Index {
    pub links: BTreeMap<String, u16>,
    pub switches: BTreeMap<String, u16>,
    by_port: BTreeMap<(Place, u16), (u16, u8)>,
    /// Names of the links and nodes at their ends, by number.
    ends: Vec<(String, [Place; 2])>,
}

impl Index {
    /// Returns the names of [`PLANES`].
    pub fn of(lab: &Lab) -> [Index; 2] {
        let mut ethernet = Index::default();
        let switches = lab.ethernet_switches.iter().filter(|switch| !switch.is_implied);
        ethernet.switches = switches.map(|switch| switch.name.clone()).zip(0..).collect();
        for link in &lab.ethernet_links {
            ethernet.add(&link.name, link.ends.map(|end| (of_ethernet(end.node), end.port)));
        }
        let mut infiniband = Index::default();
        infiniband.switches = lab.infiniband.switches.iter().map(|switch| switch.name.clone()).zip(0..).collect();
        for link in &lab.infiniband.links {
            infiniband.add(&link.name, link.ends.map(|end| (of_infiniband(end.node), end.port)));
        }
        [ethernet, infiniband]
    }

    fn add(&mut self, name: &str, ends: [(Place, u16); 2]) {
        let number = self.ends.len() as u16;
        self.links.entry(name.to_owned()).or_insert(number);
        for (side, end) in (0..).zip(ends) {
            self.by_port.entry(end).or_insert((number, side));
        }
        self.ends.push((name.to_owned(), ends.map(|(place, _)| place)));
    }

    /// Returns the ports of a node that have links, with the links and their ends there.
    pub fn ports_of(&self, node: Place) -> Vec<(u16, (u16, u8))> {
        self.by_port.range((node, 0)..=(node, u16::MAX)).map(|(&(_, port), &at)| (port, at)).collect()
    }
}

fn of_ethernet(node: EthernetNode) -> Place {
    match node {
        EthernetNode::Switch(switch) => Place::Switch(switch),
        EthernetNode::Host(host) => Place::Host(host),
        EthernetNode::Storage(storage) => Place::Storage(storage),
        EthernetNode::Forwarder(switch) => Place::Forwarder(switch),
    }
}

fn of_infiniband(node: InfinibandNode) -> Place {
    match node {
        InfinibandNode::Switch(switch) => Place::Switch(switch),
        InfinibandNode::Host(host) => Place::Host(host),
        InfinibandNode::Storage(storage) => Place::Storage(storage),
    }
}

/// Returns the plane and the link with this name.
pub(super) fn link(finder: &Finder<'_, '_>, name: &str) -> Option<(Plane, u16)> {
    PLANES.into_iter().zip(&finder.index.planes).find_map(|(plane, index)| Some((plane, *index.links.get(name)?)))
}

/// Returns the plane and the switch with this name.
pub(super) fn switch(finder: &Finder<'_, '_>, name: &str) -> Option<(Plane, u16)> {
    PLANES.into_iter().zip(&finder.index.planes).find_map(|(plane, index)| Some((plane, *index.switches.get(name)?)))
}

/// Returns the node of `name:port` with its plane, if the name is meant as one of a plane: a switch
/// there, or a node without links of Fibre Channel. A kind of fault that exists on one plane only
/// means the interfaces of that plane.
pub(super) fn node(finder: &Finder<'_, '_>, text: &str) -> Option<(Plane, Place)> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    if let Some((plane, number)) = switch(finder, name) {
        return Some((plane, Place::Switch(number)));
    }
    let node = finder.names.get(name)?;
    let place = of_node(node)?;
    let has_port = finder.index.by_port.range((node, 0)..=(node, u16::MAX)).next().is_some();
    let is_meant = |plane: &Plane| finder.only.map_or(!has_port, |only| only == *plane);
    let planes = PLANES.into_iter().zip(&finder.index.planes).filter(|(plane, _)| is_meant(plane));
    let found = planes.filter(|(_, index)| !index.ports_of(place).is_empty()).map(|(plane, _)| (plane, place));
    found.into_iter().next()
}

/// Returns the plane, node and number of an interface as reports name it: `server1:eth0`,
/// `server1:ib0`. Without the prefix, the number is one of the plane on which the node is meant.
pub(super) fn interface(finder: &Finder<'_, '_>, text: &str) -> Option<(Plane, Place, u16)> {
    let (name, port) = text.split_once(':')?;
    let digits = |plane: Plane| port.strip_prefix(plane.prefix());
    let (plane, number) = PLANES.into_iter().find_map(|plane| Some((plane, digits(plane)?.parse().ok()?)))?;
    Some((plane, of_node(finder.names.get(name)?)?, number))
}

fn of_node(node: Node) -> Option<Place> {
    match node {
        Node::Host(host) => Some(Place::Host(host)),
        Node::Storage(storage) => Some(Place::Storage(storage)),
        Node::Switch(switch) => Some(Place::Forwarder(switch)),
        Node::Loop(_) => None,
    }
}

/// Reports a port that another plane has than the one on which it is looked up, and returns whether
/// there is one. `plane` is `None` for Fibre Channel, and `linked` has the ports of the node there.
pub(super) fn report_elsewhere(
    finder: &mut Finder<'_, '_>,
    text: &str,
    port: Option<u16>,
    plane: Option<Plane>,
    linked: &[(u16, (u16, u8))],
) -> bool {
    let is_at = |ports: &[(u16, (u16, u8))]| match port {
        Some(port) => ports.iter().find(|(own, _)| *own == port).map(|(_, at)| at.0),
        None => ports.first().map(|(_, at)| at.0),
    };
    let Some(node) = finder.names.get(text.split_once(':').map_or(text, |(name, _)| name)) else { return false };
    if is_at(linked).is_some() {
        return false;
    }
    let others = PLANES.into_iter().zip(&finder.index.planes).filter(|(other, _)| Some(*other) != plane);
    let on_planes = others.filter_map(|(other, index)| {
        let link = is_at(&index.ports_of(of_node(node)?))?;
        Some((Some(other), index.ends[usize::from(link)].0.as_str()))
    });
    let of_node = finder.index.by_port.range((node, 0)..=(node, u16::MAX));
    let own: Vec<(u16, (u16, u8))> = of_node.map(|(&(_, port), &at)| (port, at)).collect();
    let fibre_channel = is_at(&own).filter(|_| plane.is_some());
    let fibre_channel = fibre_channel.map(|link| (None, finder.lab.links[usize::from(link)].name.as_str()));
    let Some((other, link)) = { on_planes }.next().or(fibre_channel) else { return false };
    let name = |plane: Option<Plane>| plane.map_or("Fibre Channel", Plane::name);
    let (reason, remedy) = match (finder.only, other) {
        (Some(only), other) => (
            format!("this kind of fault exists on {} only", only.name()),
            match other {
                Some(Plane::Ethernet) => super::ethernet::refused(finder.trouble).1.to_owned(),
                Some(Plane::Infiniband) => super::infiniband::refused(finder.trouble).1.to_owned(),
                None => format!("name a link or an interface of {}", only.name()),
            },
        ),
        (None, other) => (
            format!("`port` means the ports of {} here", name(plane)),
            match (other, text.split_once(':')) {
                (Some(other), Some((node, port))) => {
                    format!("write \"{}:{}{port}\"", crate::value::cut(node), other.prefix())
                }
                _ => format!("name its link `{link}`, with `end` for a fault of one port"),
            },
        ),
    };
    let origin = finder.element.origin(if finder.only.is_some() { "kind" } else { "port" });
    let reason = format!("`{}` is a port of {}, and {reason}", crate::value::cut(text), name(other));
    finder.sink.error(CONFLICT, &origin, reason, remedy);
    true
}

/// Replaces the links of planes by their ends at the node `name`.
pub(super) fn choose_ends(finder: &mut Finder<'_, '_>, name: &str, origin: &Origin) {
    let lab = finder.lab;
    let name_of = |plane: Plane, place: Place| match (place, plane) {
        (Place::Switch(switch), Plane::Ethernet) => lab.ethernet_switches[usize::from(switch)].name.as_str(),
        (Place::Switch(switch), Plane::Infiniband) => &lab.infiniband.switches[usize::from(switch)].name,
        (Place::Host(host), _) => &lab.hosts[usize::from(host)].name,
        (Place::Storage(storage), _) => &lab.storage[usize::from(storage)].name,
        (Place::Forwarder(switch), _) => &lab.switches[usize::from(switch)].name,
    };
    for (plane, at) in std::mem::take(&mut finder.on_planes) {
        let At::Link(number) = at else { continue };
        let (link, ends) = &finder.index.planes[plane as usize].ends[usize::from(number)];
        match ends.iter().position(|place| name_of(plane, *place) == name) {
            Some(side) => finder.on_planes.push((plane, At::End(number, side as u8))),
            None => finder.sink.error(
                BAD_PORT,
                origin,
                format!("the link `{link}` does not end at `{}`", crate::value::cut(name)),
                "name one of the two nodes that the link joins",
            ),
        }
    }
}

/// Reports links of Fibre Channel, which do not have the kind of fault of a plane.
pub(super) fn refuse(finder: &mut Finder<'_, '_>, plane: Plane, links: &[u16]) -> Vec<FaultKind> {
    if let Some(link) = links.first() {
        let name = &finder.lab.links[usize::from(*link)].name;
        let plane = plane.name();
        finder.sink.error(
            CONFLICT,
            &finder.element.origin("kind"),
            format!("the link `{name}` is one of Fibre Channel, and this kind of fault exists on {plane} only"),
            format!("name a link or an interface of {plane}"),
        );
    }
    Vec::new()
}
