//! Links between switches and numbered interfaces of hosts and storage: ranges of names and free
//! ports, for Ethernet and InfiniBand.

use super::links::{RANGE_MISMATCH, own_names, pair};
use super::nodes::UNKNOWN_NODE;
use super::ports::NO_FREE_PORT;
use crate::diagnostic::{Origin, Sink};
use crate::document::Budget;
use crate::element::Element;
use crate::schema::{self, Spread};
use crate::{pattern, suggest, value};
use sanloom_fc::san::MAX_LINKS;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A node with a port, if the end names one.
pub(super) type NodeAndPort<N> = (N, Option<u16>);

/// A link before its ports are assigned.
pub(super) struct Draft<'d, N> {
    pub name: Option<String>,
    pub ends: [NodeAndPort<N>; 2],
    pub origins: [Origin; 2],
    pub element: Rc<Element<'d>>,
}

/// Adds the links of one table. `end` finds the node and the port of a name.
pub(super) fn draft<'d, N: Copy>(
    element: &Rc<Element<'d>>,
    mut end: impl FnMut(&str, &Origin, &mut Sink) -> Option<NodeAndPort<N>>,
    drafts: &mut Vec<Draft<'d, N>>,
    budget: &mut Budget,
    sink: &mut Sink,
) {
    let mut ends: [Vec<Option<NodeAndPort<N>>>; 2] = [Vec::new(), Vec::new()];
    let mut origins = [element.header.clone(), element.header.clone()];
    for (side, key) in ["from", "to"].into_iter().enumerate() {
        let Some((text, origin)) = element.patterns(key).first() else { return };
        origins[side] = origin.clone();
        let Some(expanded) = budget.expand(text, origin, sink) else { return };
        ends[side] = expanded.iter().map(|name| end(name, origin, sink)).collect();
    }
    let spread = element.choice("spread", schema::SPREADS).unwrap_or(Spread::Blocks);
    let Some(pairs) = pair(ends[0].len(), ends[1].len(), spread) else {
        sink.error(
            RANGE_MISMATCH,
            &origins[1],
            format!("{} names in `from` cannot be joined to {} in `to`", ends[0].len(), ends[1].len()),
            "use ranges of equal length, or let one be a multiple of the other",
        );
        return;
    };
    let count: usize = element.integer("count").unwrap_or(1);
    let own = own_names(element, pairs.len() * count, budget, sink);
    for (number, (a, b)) in pairs.into_iter().enumerate() {
        for k in 0..count {
            let (Some(a), Some(b)) = (ends[0][a], ends[1][b]) else { continue };
            if drafts.len() >= MAX_LINKS {
                let reason = format!("the file has more than {MAX_LINKS} links");
                sink.error(pattern::TOO_MANY, &element.header, reason, "use fewer or smaller ranges");
                return;
            }
            let name = own.as_ref().and_then(|names| names.get(number * count + k).cloned());
            drafts.push(Draft { name, ends: [a, b], origins: origins.clone(), element: element.clone() });
        }
    }
}

/// Reports a name that no node has; `switches` are those of the plane.
pub(super) fn unknown(name: &str, wanted: &str, switches: &BTreeMap<&str, u16>, origin: &Origin, sink: &mut Sink) {
    if !sink.repeats(UNKNOWN_NODE, origin) {
        let remedy = match suggest::closest(name, switches.keys().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("name an {wanted} that the file defines"),
        };
        sink.error(UNKNOWN_NODE, origin, format!("there is no {wanted} `{}`", value::cut(name)), remedy);
    }
}

/// Ports and interfaces of all nodes. Explicit numbers are taken first, then the next free ones.
pub(super) struct Ports<N> {
    taken: BTreeMap<N, BTreeSet<u16>>,
    next: BTreeMap<N, u16>,
    /// Most ports of a node, and the noun of its switches for messages.
    most: (u16, &'static str),
}

impl<N: Copy + Ord> Ports<N> {
    pub fn new(drafts: &[Draft<'_, N>], most: (u16, &'static str)) -> Ports<N> {
        let mut taken: BTreeMap<N, BTreeSet<u16>> = BTreeMap::new();
        for (node, port) in drafts.iter().flat_map(|draft| draft.ends) {
            if let Some(port) = port {
                taken.entry(node).or_default().insert(port);
            }
        }
        Ports { taken, next: BTreeMap::new(), most }
    }

    pub fn assign(&mut self, (node, port): NodeAndPort<N>, origin: &Origin, sink: &mut Sink) -> Option<(N, u16)> {
        let port = match port {
            Some(port) => port,
            None => {
                let taken = self.taken.entry(node).or_default();
                let next = self.next.entry(node).or_insert(0);
                while taken.contains(next) {
                    *next += 1;
                }
                *next += 1;
                *next - 1
            }
        };
        let (most, noun) = self.most;
        if port >= most {
            let reason = format!("{noun} switch or node has at most {most} ports");
            sink.error(NO_FREE_PORT, origin, reason, "use fewer links, or more switches");
            return None;
        }
        Some((node, port))
    }
}

/// Returns the name, with a number if another link has it already.
pub(super) fn unused_name(used: &BTreeSet<String>, name: String) -> String {
    if !used.contains(&name) {
        return name;
    }
    (2..).map(|number| format!("{name}-{number}")).find(|name| !used.contains(name)).unwrap_or(name)
}
