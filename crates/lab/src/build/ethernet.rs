//! Ethernet switches, and links with a rate of Ethernet.

use super::Where;
use super::interfaces::{NodeAndPort, Ports, draft, unknown, unused_name};
use super::nodes::{Names, noun};
use super::ports;
use super::workloads::CONFLICT;
use crate::check::MISSING_KEY;
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::units;
use crate::value::Value;
use sanloom_fc::config::{
    EcnMarks, EthernetEnd, EthernetLink, EthernetNode, EthernetRate, EthernetSwitch, Node, PRIORITIES,
};
use sanloom_fc::san::Lab;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Payload of frames, in bytes, unless a link says otherwise.
const DEFAULT_MTU: u16 = 1500;
/// Ports of an Ethernet switch, or interfaces of a node.
const MAX_PORTS: u16 = 4_096;
/// Keys of a link that have no meaning on Ethernet, and the reason.
const FIBRE_CHANNEL_KEYS: [(&str, &str); 5] = [
    ("credits", "an Ethernet link has no credits"),
    ("bb_sc", "an Ethernet link has no credits to recover"),
    ("bundle", "parallel Ethernet links share the traffic by the hash of each flow, also without it"),
    ("ethernet", "`ethernet` makes a link of Fibre Channel one of FCoE"),
    ("fcip", "`fcip` makes an ISL of Fibre Channel a tunnel"),
];
/// Keys of a link that have a meaning on Ethernet only.
const ETHERNET_KEYS: [&str; 3] = ["mtu", "vlans", "pause_reaction"];

/// Fills `lab.ethernet_switches`.
pub(super) fn switches<'d>(
    document: &'d Document,
    lab: &mut Lab,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Where<'d>> {
    let elements = document.named("ethernet_switch", budget, sink);
    for element in &elements {
        lab.ethernet_switches.push(switch(element, sink));
    }
    elements.into_iter().map(Where::new).collect()
}

fn switch(element: &Element<'_>, sink: &mut Sink) -> EthernetSwitch {
    let in_256 = |key, default: f64| (element.number(key).unwrap_or(default).min(1e4) * 256.0).round() as u32;
    let pauses_links = element.flag("pause");
    if pauses_links && !element.numbers("pfc").is_empty() {
        let reason =
            format!("`{}` has both PFC and the pause of whole links, and a link uses only one of them", element.name);
        sink.error(CONFLICT, &element.origin("pause"), reason, "leave `pause` or `pfc` out");
    }
    let mut shares = [0; PRIORITIES];
    for (share, key) in shares.iter_mut().zip(SHARES) {
        *share = element.integer(key).unwrap_or(0);
    }
    EthernetSwitch {
        name: element.name.clone(),
        memory_bytes: element.size("memory").unwrap_or(16 << 20),
        cell_bytes: element.size("cell").unwrap_or(1) as u32,
        reserve_bytes: element.size("reserve").unwrap_or(4_096),
        headroom_bytes: element.size("headroom"),
        alpha_256: in_256("alpha", 0.125),
        lossy_alpha_256: in_256("lossy_alpha", 1.0),
        resume_bytes: element.size("resume").unwrap_or(3_072),
        lossless: mask(element.numbers("pfc")),
        pauses_links,
        shares,
        ecn: ecn(element, sink),
        mtu: element.integer("mtu").unwrap_or(9_216),
        latency: element.time("latency").unwrap_or_default(),
        cut_through: element.flag("cut_through"),
        is_implied: false,
    }
}

/// Keys of the shares of the priorities.
const SHARES: [&str; PRIORITIES] = ["ets.0", "ets.1", "ets.2", "ets.3", "ets.4", "ets.5", "ets.6", "ets.7"];

fn mask(priorities: &[u64]) -> u8 {
    priorities.iter().fold(0, |mask, priority| mask | 1 << (priority & 7))
}

fn ecn(element: &Element<'_>, sink: &mut Sink) -> Option<EcnMarks> {
    if !element.has_table("ecn") {
        return None;
    }
    let Some(from_bytes) = element.size("ecn.from") else {
        if !element.is_given("ecn.from") {
            let remedy = "add from = \"100KB\": the bytes in a queue from which on frames are marked";
            sink.error(MISSING_KEY, &element.origin("ecn"), "`from` is missing", remedy);
        }
        return None;
    };
    let to_bytes = element.size("ecn.to").unwrap_or(from_bytes);
    if to_bytes < from_bytes {
        let reason = format!("frames are marked from {from_bytes} bytes on, but all of them from {to_bytes} bytes on");
        sink.error(CONFLICT, &element.origin("ecn.to"), reason, "make `to` at least as large as `from`");
    }
    Some(EcnMarks {
        from_bytes,
        to_bytes,
        chance_ppm: (element.number("ecn.chance").unwrap_or(1.0) * 1e6).round() as u32,
        priorities: mask(element.numbers("ecn.priorities")),
    })
}

/// Reports a link without a rate of Ethernet that has a key or an end of Ethernet. Returns whether
/// it cannot be a link of Fibre Channel.
pub(super) fn is_misplaced(
    element: &Element<'_>,
    switches: &[EthernetSwitch],
    budget: &mut Budget,
    sink: &mut Sink,
) -> bool {
    let remedy = "give the link a rate of Ethernet, such as rate = \"10GbE\"";
    let has_bad_rate = element.is_given("rate") && sink.has_within(&element.origin("rate"));
    for key in ["from", "to"] {
        let Some((text, origin)) = element.patterns(key).first().filter(|_| !switches.is_empty()) else { continue };
        let Some(names) = budget.expand(text, origin, sink) else { return true };
        let plain = names.iter().map(|name| name.split_once(':').map_or(name.as_str(), |(name, _)| name));
        let mut known = plain.filter(|name| switches.iter().any(|switch| switch.name == **name));
        if let Some(name) = known.next() {
            if has_bad_rate {
                return true;
            }
            let rate = element.line_rate("rate").map_or(String::new(), |rate| format!(" {rate}"));
            let reason = format!("`{name}` is an Ethernet switch, but the rate{rate} is one of Fibre Channel");
            sink.error(CONFLICT, origin, reason, remedy);
            return true;
        }
    }
    if let Some(key) = ETHERNET_KEYS.into_iter().find(|key| element.is_given(key)) {
        let reason = format!("`{key}` is a key of Ethernet links, but the link is one of Fibre Channel");
        sink.error(CONFLICT, &element.origin(key), reason, format!("{remedy}, or leave `{key}` out"));
    }
    false
}

/// Fills `lab.ethernet_links`.
pub(super) fn links<'d>(
    document: &'d Document,
    lab: &mut Lab,
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Where<'d>> {
    let mut elements = document.list("link");
    elements.extend(document.list("isl"));
    elements.retain(|element| element.ethernet_rate("rate").is_some());
    elements.sort_by(|a, b| a.header.cmp(&b.header));
    let switches: BTreeMap<&str, u16> = lab.ethernet_switches.iter().map(|s| s.name.as_str()).zip(0..).collect();
    let mut drafts = Vec::new();
    for element in elements {
        element.require_keys(sink);
        let is_given = |key: &str| element.is_given(key) || element.gives_table(key);
        for (key, reason) in FIBRE_CHANNEL_KEYS.into_iter().filter(|(key, _)| is_given(key)) {
            sink.error(
                CONFLICT,
                &element.origin(key),
                reason,
                format!("leave `{key}` out, or give a rate of Fibre Channel"),
            );
        }
        super::infiniband::report_blocks(&element, "Ethernet", sink);
        let element = Rc::new(element);
        draft(&element, |name, origin, sink| end(name, lab, &switches, names, origin, sink), &mut drafts, budget, sink);
    }
    let mut ports = Ports::new(&drafts, (MAX_PORTS, "an Ethernet"));
    let mut places = Vec::new();
    let mut used = BTreeSet::new();
    for draft in drafts {
        let assigned = [0, 1].map(|side| ports.assign(draft.ends[side], &draft.origins[side], sink));
        let [Some(a), Some(b)] = assigned else { continue };
        let ends = [a, b].map(|(node, port)| EthernetEnd { node, port });
        let name = draft.name.clone().unwrap_or_else(|| unused_name(&used, default_name(lab, ends)));
        used.insert(name.clone());
        let element = document.refine(&draft.element, &name);
        let mut rate = element.ethernet_rate("rate");
        if rate.is_none() {
            let reason = format!("`{name}` is an Ethernet link");
            sink.error(CONFLICT, &element.origin("rate"), reason, "choose a rate of Ethernet, such as \"10GbE\"");
            rate = draft.element.ethernet_rate("rate");
        }
        let at_interface = ends.iter().any(|end| !matches!(end.node, EthernetNode::Switch(_)));
        let of_switches = || {
            let mtus = ends.iter().filter_map(|end| match end.node {
                EthernetNode::Switch(switch) => Some(lab.ethernet_switches[usize::from(switch)].mtu),
                EthernetNode::Host(_) | EthernetNode::Storage(_) | EthernetNode::Forwarder(_) => None,
            });
            mtus.min().filter(|_| !at_interface)
        };
        lab.ethernet_links.push(EthernetLink {
            name,
            ends,
            rate: rate.unwrap_or(EthernetRate::G10),
            propagation: match element.get("length") {
                Some((Value::Length(millimetres), _)) => units::propagation(*millimetres),
                _ => units::propagation(10_000),
            },
            mtu: element.integer("mtu").or_else(of_switches).unwrap_or(DEFAULT_MTU),
            pause_reaction: element.time("pause_reaction"),
            vlans: element.numbers("vlans").iter().map(|vlan| *vlan as u16).collect(),
        });
        let [from, to] = draft.origins;
        places.push(Where { element: Rc::new(element), exact: vec![("from", from), ("to", to)] });
    }
    places
}

/// Adds the network of [`Lab::implied_ethernet`].
pub(super) fn add_implied(lab: &mut Lab) {
    if let Some((switch, links)) = lab.implied_ethernet() {
        lab.ethernet_switches.push(switch);
        lab.ethernet_links.extend(links);
    }
}

/// Returns the node with this name and its port, if one is given.
fn end(
    text: &str,
    lab: &Lab,
    switches: &BTreeMap<&str, u16>,
    names: &Names,
    origin: &Origin,
    sink: &mut Sink,
) -> Option<NodeAndPort<EthernetNode>> {
    const WANTED: &str = "Ethernet switch, host, storage system or switch";
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    let node = match (switches.get(name), names.get(name)) {
        (Some(&switch), _) => EthernetNode::Switch(switch),
        (None, Some(Node::Host(host))) => EthernetNode::Host(host),
        (None, Some(Node::Storage(storage))) => EthernetNode::Storage(storage),
        (None, Some(Node::Switch(switch))) => EthernetNode::Forwarder(switch),
        (None, Some(node @ Node::Loop(_))) => {
            let reason = format!("`{name}` is a {} of Fibre Channel, but the link has a rate of Ethernet", noun(node));
            let remedy = "choose a rate of Fibre Channel, such as \"16GFC\", or an [ethernet_switch.NAME]";
            sink.error(CONFLICT, origin, reason, remedy);
            return None;
        }
        (None, None) if lab.infiniband.switches.iter().any(|switch| switch.name == name) => {
            let reason = format!("`{name}` is an InfiniBand switch, but the link has a rate of Ethernet");
            let remedy = "choose a rate of InfiniBand, such as \"4xEDR\", or an [ethernet_switch.NAME]";
            sink.error(CONFLICT, origin, reason, remedy);
            return None;
        }
        (None, None) => {
            unknown(name, WANTED, switches, origin, sink);
            return None;
        }
    };
    Some((node, ports::number(text, MAX_PORTS - 1, origin, sink)?))
}

/// Returns the names of both ends, with the interface if it is not the first one.
fn default_name(lab: &Lab, ends: [EthernetEnd; 2]) -> String {
    let name = |end: EthernetEnd| {
        let (name, is_switch) = match end.node {
            EthernetNode::Switch(switch) => (&lab.ethernet_switches[usize::from(switch)].name, true),
            EthernetNode::Host(host) => (&lab.hosts[usize::from(host)].name, false),
            EthernetNode::Storage(storage) => (&lab.storage[usize::from(storage)].name, false),
            EthernetNode::Forwarder(switch) => (&lab.switches[usize::from(switch)].name, false),
        };
        if is_switch || end.port == 0 { name.clone() } else { format!("{name}:{}", end.port) }
    };
    // A virtual link between the same two nodes has the name without the suffix.
    let is_at = |wanted: fn(EthernetNode) -> bool| ends.iter().any(|end| wanted(end.node));
    let is_direct = is_at(|node| matches!(node, EthernetNode::Forwarder(_)))
        && !is_at(|node| matches!(node, EthernetNode::Switch(_)));
    format!("{}-{}{}", name(ends[0]), name(ends[1]), if is_direct { "-ethernet" } else { "" })
}
