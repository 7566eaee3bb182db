//! `[[link]]` and `[[isl]]`: conversion of ranges of names to links between ports.

use super::nodes::Names;
use super::ports::{self, End, Ports, Supply};
use super::{Where, ethernet, infiniband};
use crate::diagnostic::{Finding, Origin, Severity, Sink};
use crate::document::{self, Budget, Document};
use crate::element::Element;
use crate::pattern;
use crate::schema::{self, Spread};
use crate::units;
use crate::value::{Value, cut};
use sanloom_fc::config::{LineRate, Link, LinkEnd, Node, Switch};
use sanloom_fc::san::{Lab, MAX_LINKS, ProblemKind};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Code of ranges whose lengths do not match.
pub(crate) const RANGE_MISMATCH: &str = "range-mismatch";

/// Code of a trunk that does not form.
const TRUNK_OF_TWO_VENDORS: &str = "trunk-of-two-vendors";

/// A link before its ports are assigned.
struct Draft<'d> {
    name: Option<String>,
    ends: [End; 2],
    origins: [Origin; 2],
    element: Rc<Element<'d>>,
    bundle: Option<u16>,
    is_isl: bool,
}

/// Fills `lab.links`. `nodes` are the locations of switches, hosts and storage.
pub(super) fn build<'d>(
    document: &'d Document,
    lab: &mut Lab,
    names: &Names,
    nodes: [&Vec<Where<'d>>; 3],
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Where<'d>> {
    let mut elements: Vec<(bool, Element<'d>)> = Vec::new();
    elements.extend(document.list("link").into_iter().map(|e| (false, e)));
    elements.extend(document.list("isl").into_iter().map(|e| (true, e)));
    elements.sort_by(|a, b| a.1.header.cmp(&b.1.header));
    elements
        .retain(|(_, element)| element.ethernet_rate("rate").is_none() && element.infiniband_rate("rate").is_none());
    let mut drafts: Vec<Draft<'d>> = Vec::new();
    let mut bundles = 0;
    for (is_isl, element) in elements {
        element.require_keys(sink);
        if ethernet::is_misplaced(&element, &lab.ethernet_switches, budget, sink)
            || infiniband::is_misplaced(&element, &lab.infiniband.switches, budget, sink)
        {
            continue;
        }
        let before = drafts.len();
        draft(&Rc::new(element), is_isl, names, &mut bundles, &mut drafts, budget, sink);
        if drafts.len() > MAX_LINKS {
            let origin = drafts[before].element.header.clone();
            sink.error(
                pattern::TOO_MANY,
                &origin,
                format!("the file has more than {MAX_LINKS} links"),
                "use fewer or smaller ranges",
            );
            drafts.truncate(before);
            break;
        }
    }
    let mut ports = Ports::new(drafts.iter().flat_map(|d| d.ends));
    let (mut isl_number, mut unused) = (0, BTreeSet::new());
    let mut places = Vec::new();
    for draft in drafts {
        isl_number += usize::from(draft.is_isl);
        let assigned = [0, 1].map(|i| {
            let end = draft.ends[i];
            ports.assign(end, supply(lab, end.node), &draft.origins[i])
        });
        let [Some(a), Some(b)] = assigned else {
            continue;
        };
        let name = match &draft.name {
            Some(name) => name.clone(),
            None if draft.is_isl => format!("ISL{isl_number}"),
            None => default_name(lab, [(draft.ends[0].node, a), (draft.ends[1].node, b)]),
        };
        let element = document.refine(&draft.element, &name);
        let end = |node: Node, port: u16| LinkEnd {
            node,
            port,
            bb_credit: credit(&element, node, nodes),
            bb_sc_n: credit_recovery(&element, node, nodes),
        };
        let fcoe = super::fcoe::virtual_link(lab, &element, draft.ends.map(|end| end.node));
        let usual = || fcoe.map_or(LineRate::Fc16, |_| super::fcoe::line_rate(lab, draft.ends.map(|end| end.node)));
        if fcoe.is_some() {
            report_unused(&element, &name, &mut unused, sink);
        }
        lab.links.push(Link {
            name,
            ends: [end(draft.ends[0].node, a), end(draft.ends[1].node, b)],
            rate: element.line_rate("rate").unwrap_or_else(usual),
            propagation: match element.get("length") {
                Some((Value::Length(millimetres), _)) => units::propagation(*millimetres),
                _ => units::propagation(10_000),
            },
            bundle: draft.bundle.filter(|_| may_trunk(&element, draft.ends, nodes, sink)),
            fcoe,
        });
        let [from, to] = draft.origins;
        places.push(Where { element: Rc::new(element), exact: vec![("from", from), ("to", to)] });
    }
    ports.report(lab, nodes.map(Vec::as_slice), sink);
    grow_switches(lab);
    places
}

/// Warns about keys of a virtual link that have no effect in a simulation. Each line is named once,
/// as for other warnings.
fn report_unused(link: &Element<'_>, name: &str, reported: &mut BTreeSet<Origin>, sink: &mut Sink) {
    for key in ["credits", "bb_sc", "length"].into_iter().filter(|key| link.is_given(key)) {
        if !reported.insert(link.origin(key)) {
            continue;
        }
        sink.add(Finding {
            severity: Severity::Warning,
            code: ProblemKind::UnusedKey.name(),
            origin: link.origin(key),
            reason: format!("`{key}` has no effect, because Ethernet carries the frames of `{}`", cut(name)),
            remedy: format!("remove `{key}`; the Ethernet links below have lengths and buffers"),
        });
    }
}

/// Returns whether links between two nodes may form a trunk; adds a warning if they may not.
fn may_trunk(link: &Element<'_>, ends: [End; 2], nodes: [&Vec<Where<'_>>; 3], sink: &mut Sink) -> bool {
    let vendor = |end: End| element_of(end.node, nodes).and_then(|element| element.text("fabric.vendor"));
    let [Some(one), Some(other)] = ends.map(vendor) else { return true };
    if one == other {
        return true;
    }
    sink.add(Finding {
        severity: Severity::Warning,
        code: TRUNK_OF_TWO_VENDORS,
        origin: link.origin("bundle"),
        reason: format!("switches of {} and {} form no trunk, so the links work one by one", cut(one), cut(other)),
        remedy: "choose switches of one maker for the trunk, or remove `bundle`".to_owned(),
    });
    false
}

/// Adds the links of one table. With `bundle`, all of them between the same two nodes are one
/// trunk.
fn draft<'d>(
    element: &Rc<Element<'d>>,
    is_isl: bool,
    names: &Names,
    bundles: &mut u16,
    drafts: &mut Vec<Draft<'d>>,
    budget: &mut Budget,
    sink: &mut Sink,
) {
    let (wanted, accept): (&str, fn(Node) -> bool) = if is_isl {
        ("switch", |n| matches!(n, Node::Switch(_)))
    } else {
        ("host, storage system, switch or loop", |_| true)
    };
    let mut ends: [Vec<Option<End>>; 2] = [Vec::new(), Vec::new()];
    let mut origins = [element.header.clone(), element.header.clone()];
    for (side, key) in ["from", "to"].into_iter().enumerate() {
        let Some((text, origin)) = element.patterns(key).first() else {
            return;
        };
        origins[side] = origin.clone();
        let Some(expanded) = budget.expand(text, origin, sink) else {
            return;
        };
        ends[side] = expanded.iter().map(|name| ports::end(name, names, wanted, accept, origin, sink)).collect();
    }
    let bundle = element.flag("bundle");
    let have_ports = ends.iter().all(|ends| ends.iter().flatten().any(|end| end.port.is_some()));
    if bundle && have_ports && ends[0].len() != ends[1].len() {
        sink.error(
            RANGE_MISMATCH,
            &origins[1],
            format!("a trunk cannot join {} ports in `from` to {} in `to`", ends[0].len(), ends[1].len()),
            "list as many ports at both ends; they are paired in order",
        );
        return;
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
    let total = pairs.len() * count;
    let own = own_names(element, total, budget, sink);
    // Trunk numbers of this table by pair of nodes.
    let mut trunks: BTreeMap<[Node; 2], u16> = BTreeMap::new();
    for (i, (a, b)) in pairs.into_iter().enumerate() {
        let (Some(a), Some(b)) = (ends[0][a], ends[1][b]) else {
            continue;
        };
        let trunk = bundle.then(|| {
            *trunks.entry([a.node.min(b.node), a.node.max(b.node)]).or_insert_with(|| {
                *bundles = bundles.saturating_add(1);
                *bundles
            })
        });
        for k in 0..count {
            drafts.push(Draft {
                name: own.as_ref().and_then(|names| names.get(i * count + k).cloned()),
                ends: [a, b],
                origins: origins.clone(),
                element: element.clone(),
                bundle: trunk,
                is_isl,
            });
            if drafts.len() > MAX_LINKS {
                return;
            }
        }
    }
}

/// Returns the names in `name` for `total` links.
pub(super) fn own_names(
    element: &Element<'_>,
    total: usize,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Option<Rc<Vec<String>>> {
    let (text, origin) = element.patterns("name").first()?;
    let names = budget.expand(text, origin, sink)?;
    if let Some(name) = names.iter().find(|n| !document::good_name(n)) {
        document::bad_name(name, origin, sink);
        return None;
    }
    if names.len() != total {
        let plural = if total == 1 { "" } else { "s" };
        sink.error(
            RANGE_MISMATCH,
            origin,
            format!("{} names cannot name {total} link{plural}", names.len()),
            "give as many names as links, or leave `name` out",
        );
        return None;
    }
    Some(names)
}

/// Pairs `n` items with `m` items. Returns `None` if neither number is a multiple of the other.
pub(super) fn pair(n: usize, m: usize, spread: Spread) -> Option<Vec<(usize, usize)>> {
    if n == 0 || m == 0 {
        return Some(Vec::new());
    }
    let (long, short) = (n.max(m), n.min(m));
    if !long.is_multiple_of(short) {
        return None;
    }
    let partner = |i: usize| match spread {
        Spread::Blocks => i / (long / short),
        Spread::RoundRobin => i % short,
    };
    Some((0..long).map(|i| if n >= m { (i, partner(i)) } else { (partner(i), i) }).collect())
}

/// Returns the indices, out of `n` names, that belong to the element at `offset` of a range of
/// `count`. Returns `None` if the lengths do not match.
pub(super) fn share(n: usize, count: usize, offset: usize, spread: Spread) -> Option<Vec<usize>> {
    if n <= 1 || count <= 1 {
        return Some((0..n).collect());
    }
    let blocks = spread == Spread::Blocks;
    if n.is_multiple_of(count) {
        let size = n / count;
        return Some(match blocks {
            true => (offset * size..(offset + 1) * size).collect(),
            false => (offset..n).step_by(count).collect(),
        });
    }
    count.is_multiple_of(n).then(|| vec![if blocks { offset / (count / n) } else { offset % n }])
}

fn supply(lab: &Lab, node: Node) -> Supply<'_> {
    match node {
        Node::Switch(i) => match &lab.switches[usize::from(i)] {
            Switch { virtual_fabric: Some(fabric), .. } => Supply::These(&fabric.ports),
            Switch { ports: 0, .. } => Supply::Any,
            switch => Supply::Count(switch.ports),
        },
        Node::Host(i) => Supply::Count(lab.hosts[usize::from(i)].hbas.len() as u16),
        Node::Storage(i) => Supply::Count(lab.storage[usize::from(i)].ports.len() as u16),
        Node::Loop(_) => Supply::Any,
    }
}

/// Returns the names of both ends, with the port if a host or storage system has several.
fn default_name(lab: &Lab, ends: [(Node, u16); 2]) -> String {
    let name = |(node, port): (Node, u16)| match node {
        Node::Switch(i) => lab.switches[usize::from(i)].name.clone(),
        Node::Host(i) => {
            let host = &lab.hosts[usize::from(i)];
            if host.hbas.len() > 1 { format!("{}:{port}", host.name) } else { host.name.clone() }
        }
        Node::Storage(i) => {
            let storage = &lab.storage[usize::from(i)];
            if storage.ports.len() > 1 { format!("{}:{port}", storage.name) } else { storage.name.clone() }
        }
        Node::Loop(i) => lab.loops[usize::from(i)].name.clone(),
    };
    format!("{}-{}", name(ends[0]), name(ends[1]))
}

/// Returns the receive buffers of one end of a link.
fn credit(link: &Element<'_>, node: Node, nodes: [&Vec<Where<'_>>; 3]) -> u16 {
    let key = if matches!(node, Node::Switch(_)) { "buffers" } else { "frame_buffers" };
    let of_node = || element_of(node, nodes)?.integer(key);
    link.integer("credits").or_else(of_node).unwrap_or(16)
}

/// Returns the BB_SC_N of one end of a link. Ports on Ethernet have no credits to recover.
fn credit_recovery(link: &Element<'_>, node: Node, nodes: [&Vec<Where<'_>>; 3]) -> u8 {
    if link.has_table("ethernet") {
        return 0;
    }
    let of_node = || element_of(node, nodes)?.integer("bb_sc");
    link.integer("bb_sc").or_else(of_node).unwrap_or(0)
}

fn element_of<'e, 'd>(node: Node, nodes: [&'e Vec<Where<'d>>; 3]) -> Option<&'e Element<'d>> {
    let (places, index) = match node {
        Node::Switch(i) => (nodes[0], i),
        Node::Host(i) => (nodes[1], i),
        Node::Storage(i) => (nodes[2], i),
        // Its ports have no buffers of their own.
        Node::Loop(_) => return None,
    };
    places.get(usize::from(index)).map(|place| &*place.element)
}

/// Sets the number of ports of switches with `ports = "auto"` to the ports that links use.
fn grow_switches(lab: &mut Lab) {
    let mut needed = vec![1; lab.switches.len()];
    for end in lab.links.iter().flat_map(|l| l.ends) {
        if let Node::Switch(i) = end.node {
            let needed = &mut needed[usize::from(i)];
            *needed = end.port.saturating_add(1).max(*needed);
        }
    }
    for (switch, needed) in lab.switches.iter_mut().zip(needed) {
        if switch.ports == 0 {
            switch.ports = needed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_zip_broadcast_and_spread() {
        let pairs = |n, m, spread| pair(n, m, spread).map(|p| p.into_iter().map(|(_, b)| b).collect::<Vec<_>>());
        assert_eq!(pairs(3, 3, Spread::Blocks), Some(vec![0, 1, 2]));
        assert_eq!(pairs(4, 1, Spread::Blocks), Some(vec![0; 4]));
        assert_eq!(pairs(4, 2, Spread::Blocks), Some(vec![0, 0, 1, 1]));
        assert_eq!(pairs(4, 2, Spread::RoundRobin), Some(vec![0, 1, 0, 1]));
        assert_eq!(pair(2, 4, Spread::Blocks), Some(vec![(0, 0), (0, 1), (1, 2), (1, 3)]));
        assert_eq!(pairs(4, 3, Spread::Blocks), None);
        for (n, count) in [(6, 3), (3, 6), (5, 5), (1, 4)] {
            for spread in [Spread::Blocks, Spread::RoundRobin] {
                for offset in 0..count {
                    let of_pairs: Vec<usize> = pair(n, count, spread)
                        .unwrap()
                        .into_iter()
                        .filter(|&(_, element)| element == offset)
                        .map(|(name, _)| name)
                        .collect();
                    assert_eq!(share(n, count, offset, spread), Some(of_pairs));
                }
            }
        }
        assert_eq!(share(4, 3, 0, Spread::Blocks), None);
        assert_eq!(share(4, 1, 0, Spread::Blocks), Some(vec![0, 1, 2, 3]));
    }
}
