//! Assignment of ports: explicit numbers, and the next free ones.

use super::Where;
use super::nodes::{Names, noun};
use crate::diagnostic::{Origin, Sink};
use crate::value;
use sanloom_fc::config::Node;
use sanloom_fc::san::Lab;
use std::collections::{BTreeMap, BTreeSet};

/// Code of an invalid port number.
pub(crate) const BAD_PORT: &str = "bad-port";
/// Code of a node without a free port.
pub(crate) const NO_FREE_PORT: &str = "no-free-port";

/// Key for the chassis ports of a virtual fabric.
const VF_PORTS: &str = "virtual_fabric.ports";

/// One end of a link as written: a node, optionally with a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    pub node: Node,
    pub port: Option<u16>,
}

/// Splits `name:port`.
pub(super) fn end(
    text: &str,
    names: &Names,
    wanted: &str,
    accept: fn(Node) -> bool,
    origin: &Origin,
    sink: &mut Sink,
) -> Option<End> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    let node = names.find(name, wanted, accept, origin, sink)?;
    Some(End { node, port: number(text, u16::MAX, origin, sink)? })
}

/// Returns the port of `name:port`, if there is one. `None` if it is not a number up to `last`.
pub(super) fn number(text: &str, last: u16, origin: &Origin, sink: &mut Sink) -> Option<Option<u16>> {
    let Some((name, port)) = text.split_once(':') else { return Some(None) };
    let number = port.parse::<u16>().ok().filter(|number| *number <= last);
    if number.is_none() {
        sink.error(
            BAD_PORT,
            origin,
            match last {
                u16::MAX => format!("`{}` is not a port number", value::cut(port)),
                _ => format!("`{}` is not a port number from 0 to {last}", value::cut(port)),
            },
            match ["eth", "ib"].iter().any(|kind| port.starts_with(kind)) {
                true => format!(
                    "write {name}, or {name}:0 for its first port; only `port` of a fault names an interface of a host \
                     or storage system, such as server1:eth0"
                ),
                false => format!("write {name}:0 for the first port, or {name} for the next free one"),
            },
        );
    }
    number.map(Some)
}

/// The ports of a node.
#[derive(Clone, Copy)]
pub(super) enum Supply<'l> {
    /// As many ports as needed.
    Any,
    /// A fixed number of ports.
    Count(u16),
    /// The given port numbers, for a virtual fabric of a chassis.
    These(&'l [u16]),
}

impl Supply<'_> {
    fn get(self, index: u16) -> Option<u16> {
        match self {
            Supply::Any => (index < u16::MAX).then_some(index),
            Supply::Count(count) => (index < count).then_some(index),
            Supply::These(ports) => ports.get(usize::from(index)).copied(),
        }
    }
}

/// Ports of all nodes. Explicit numbers are taken first, then the next free ones.
pub(super) struct Ports {
    taken: BTreeMap<Node, BTreeSet<u16>>,
    next: BTreeMap<Node, u16>,
    /// Nodes without a free port. Each is reported once, with the number of links that request one.
    short: BTreeMap<Node, (Origin, usize)>,
}

impl Ports {
    /// Reserves the explicit port numbers in `ends`, which lists every end of every link.
    pub fn new(ends: impl Iterator<Item = End>) -> Ports {
        let mut taken: BTreeMap<Node, BTreeSet<u16>> = BTreeMap::new();
        for end in ends {
            if let Some(port) = end.port {
                taken.entry(end.node).or_default().insert(port);
            }
        }
        Ports { taken, next: BTreeMap::new(), short: BTreeMap::new() }
    }

    /// Returns the port of an end: its explicit number, or the next free port of its node.
    pub fn assign(&mut self, end: End, supply: Supply<'_>, origin: &Origin) -> Option<u16> {
        if end.port.is_some() {
            return end.port;
        }
        let taken = self.taken.get(&end.node);
        let next = self.next.entry(end.node).or_insert(0);
        while let Some(port) = supply.get(*next) {
            *next += 1;
            if !taken.is_some_and(|taken| taken.contains(&port)) {
                return Some(port);
            }
        }
        self.short.entry(end.node).or_insert((origin.clone(), 0)).1 += 1;
        None
    }

    /// Reports the nodes with too few ports. `nodes` are the locations of switches, hosts and
    /// storage.
    pub fn report(&self, lab: &Lab, nodes: [&[Where<'_>]; 3], sink: &mut Sink) {
        for (&node, (origin, missing)) in &self.short {
            let (name, count, key, places, index) = match node {
                Node::Switch(i) => {
                    let s = &lab.switches[usize::from(i)];
                    match &s.virtual_fabric {
                        Some(fabric) => (&s.name, fabric.ports.len(), VF_PORTS, nodes[0], i),
                        None => (&s.name, usize::from(s.ports), "ports", nodes[0], i),
                    }
                }
                Node::Host(i) => {
                    let h = &lab.hosts[usize::from(i)];
                    (&h.name, h.hbas.len(), "hbas", nodes[1], i)
                }
                Node::Storage(i) => {
                    let s = &lab.storage[usize::from(i)];
                    (&s.name, s.ports.len(), "ports", nodes[2], i)
                }
                // A loop has as many ports as it needs.
                Node::Loop(_) => continue,
            };
            // An invalid port count is reported separately.
            let count_is_good = places.get(usize::from(index)).is_none_or(|place| {
                !sink.has_at(&place.element.origin(key)) || place.element.origin(key) == place.element.header
            });
            if count_is_good {
                let plural = if count == 1 { "" } else { "s" };
                let unit = if key == "hbas" { "HBA" } else { "port" };
                sink.error(
                    NO_FREE_PORT,
                    origin,
                    format!("{} `{name}` has {count} {unit}{plural}, all in use by other links", noun(node)),
                    match key {
                        VF_PORTS => format!("give `{name}` {missing} more in `{key}`, or remove links"),
                        _ => format!("set `{key} = {}` for `{name}`, or remove links", count + missing),
                    },
                );
            }
        }
    }
}

/// Reports a port number that its node does not have.
pub(super) fn no_such_port(text: &str, count: usize, origin: &Origin, sink: &mut Sink) {
    let (name, _) = text.split_once(':').unwrap_or((text, ""));
    let plural = if count == 1 { "" } else { "s" };
    sink.error(
        BAD_PORT,
        origin,
        format!("there is no port `{}`: `{name}` has {count} port{plural}", value::cut(text)),
        match count {
            0 | 1 => format!("write {name}:0; ports are numbered from 0"),
            _ => format!("choose {name}:0 to {name}:{}", count - 1),
        },
    );
}
