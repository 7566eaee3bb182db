//! `[[fault]]` of Ethernet links, ports and switches.

use super::{CONFLICT, Finder};
use crate::build::ports::BAD_PORT;
use crate::diagnostic::Origin;
use crate::schema::{self, Trouble};
use sanloom_fc::config::{Direction, EthernetFault, EthernetNode, FaultKind, Node};
use sanloom_fc::san::Lab;
use std::collections::BTreeMap;

/// Ethernet by name, and links by the ports at their ends.
pub(super) struct Index {
    pub links: BTreeMap<String, u16>,
    pub switches: BTreeMap<String, u16>,
    by_port: BTreeMap<(EthernetNode, u16), (u16, u8)>,
}

/// Meaning of a name in a fault.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// A link.
    Link(u16),
    /// A link and one of its ends.
    End(u16, u8),
    /// A switch.
    Switch(u16),
}

impl Index {
    pub fn of(lab: &Lab) -> Index {
        let switches = lab.ethernet_switches.iter().filter(|switch| !switch.is_implied);
        let mut index = Index {
            links: BTreeMap::new(),
            switches: switches.map(|switch| switch.name.clone()).zip(0..).collect(),
            by_port: BTreeMap::new(),
        };
        for (number, link) in (0..).zip(&lab.ethernet_links) {
            index.links.entry(link.name.clone()).or_insert(number);
            for (side, end) in (0..).zip(&link.ends) {
                index.by_port.entry((end.node, end.port)).or_insert((number, side));
            }
        }
        index
    }

    /// Returns the ports of a node that have links, with the links and their ends there.
    pub fn ports_of(&self, node: EthernetNode) -> Vec<(u16, (u16, u8))> {
        self.by_port.range((node, 0)..=(node, u16::MAX)).map(|(&(_, port), &place)| (port, place)).collect()
    }
}

/// Returns whether a kind of fault exists on Ethernet only.
pub(super) fn is_of_ethernet(trouble: Trouble) -> bool {
    matches!(trouble, Trouble::Reordering | Trouble::PauseStorm)
}

/// Returns the node of `name:port`, if the name is meant as one of Ethernet: an Ethernet switch, or
/// a node whose links are all of Ethernet. A kind of fault that exists on Ethernet only means the
/// interfaces of nodes that have links of Fibre Channel as well.
pub(super) fn node(finder: &Finder<'_, '_>, text: &str) -> Option<EthernetNode> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    if let Some(&switch) = finder.index.ethernet.switches.get(name) {
        return Some(EthernetNode::Switch(switch));
    }
    let node = finder.names.get(name)?;
    let on_ethernet = match node {
        Node::Host(host) => EthernetNode::Host(host),
        Node::Storage(storage) => EthernetNode::Storage(storage),
        Node::Switch(switch) => EthernetNode::Forwarder(switch),
        Node::Loop(_) => return None,
    };
    let has_port = |index: &super::Index| index.by_port.range((node, 0)..=(node, u16::MAX)).next().is_some();
    let has_interface = !finder.index.ethernet.ports_of(on_ethernet).is_empty();
    (has_interface && (finder.is_of_ethernet || !has_port(finder.index))).then_some(on_ethernet)
}

/// Replaces the links of Ethernet by their ends at the node `name`.
pub(super) fn choose_ends(finder: &mut Finder<'_, '_>, name: &str, origin: &Origin) {
    let lab = finder.lab;
    let name_of = |node| match node {
        EthernetNode::Switch(switch) => lab.ethernet_switches[usize::from(switch)].name.as_str(),
        EthernetNode::Host(host) => &lab.hosts[usize::from(host)].name,
        EthernetNode::Storage(storage) => &lab.storage[usize::from(storage)].name,
        EthernetNode::Forwarder(switch) => &lab.switches[usize::from(switch)].name,
    };
    for place in std::mem::take(&mut finder.on_ethernet) {
        let Place::Link(number) = place else { continue };
        let link = &lab.ethernet_links[usize::from(number)];
        match link.ends.iter().position(|end| name_of(end.node) == name) {
            Some(side) => finder.on_ethernet.push(Place::End(number, side as u8)),
            None => finder.sink.error(
                BAD_PORT,
                origin,
                format!("the link `{}` does not end at `{}`", link.name, crate::value::cut(name)),
                "name one of the two nodes that the link joins",
            ),
        }
    }
}

/// Reports links of Fibre Channel, which do not have this kind of fault.
pub(super) fn refuse(finder: &mut Finder<'_, '_>, links: impl Fn(&mut Finder<'_, '_>) -> Vec<u16>) -> Vec<FaultKind> {
    if let Some(link) = links(finder).first() {
        let name = &finder.lab.links[usize::from(*link)].name;
        finder.sink.error(
            CONFLICT,
            &finder.element.origin("kind"),
            format!("the link `{name}` is one of Fibre Channel, and this kind of fault exists on Ethernet only"),
            "name a link or an interface of Ethernet",
        );
    }
    Vec::new()
}

/// Returns one fault for each named link, port or switch of Ethernet.
pub(super) fn kinds(finder: &mut Finder<'_, '_>, trouble: Trouble) -> Vec<FaultKind> {
    let places = std::mem::take(&mut finder.on_ethernet);
    let element = finder.element;
    let direction = element.choice("direction", schema::DIRECTIONS).unwrap_or(Direction::Both);
    let probability = element.number("probability").unwrap_or(0.0);
    let delay = element.time("delay").unwrap_or_default();
    let priorities = match element.numbers("priorities") {
        [] => u8::MAX,
        some => some.iter().fold(0, |mask, priority| mask | 1 << (priority & 7)),
    };
    let mut refused = false;
    let mut kinds = Vec::new();
    for place in places {
        let (link, end) = match place {
            Place::Switch(switch) => {
                kinds.push(FaultKind::Ethernet(EthernetFault::SwitchReset { switch }));
                continue;
            }
            Place::Link(link) => (link, 0),
            Place::End(link, end) => (link, end),
        };
        let fault = match trouble {
            Trouble::LinkDown => EthernetFault::LinkDown { link },
            Trouble::LinkUp => EthernetFault::LinkUp { link },
            Trouble::PortDown => EthernetFault::PortDown { link, end },
            Trouble::FrameLoss => EthernetFault::FrameLoss { link, direction, probability },
            Trouble::CrcErrors => EthernetFault::FcsErrors { link, direction, probability },
            Trouble::Reordering => EthernetFault::Reordering { link, direction, probability, delay },
            Trouble::PauseStorm => EthernetFault::PauseStorm { link, end, priorities },
            _ => {
                refused = true;
                continue;
            }
        };
        kinds.push(FaultKind::Ethernet(fault));
    }
    if refused {
        finder.sink.error(
            CONFLICT,
            &element.origin("kind"),
            "links of Ethernet have no credits",
            "use \"pause-storm\", with which an interface stops its link partner, or name a link of Fibre Channel",
        );
    }
    kinds
}
