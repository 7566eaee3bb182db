//! InfiniBand switches, links with a rate of InfiniBand, the subnet, and SRP.

use super::Where;
use super::interfaces::{NodeAndPort, Ports, draft, unknown, unused_name};
use super::lanes;
use super::nodes::{Names, noun};
use super::ports;
use super::workloads::CONFLICT;
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::value::Value;
use crate::{schema, units};
use sanloom_fc::config::{
    InfinibandEnd, InfinibandLink, InfinibandNode, InfinibandRate, InfinibandSwitch, MAX_INFINIBAND_PORTS, Node, Picos,
    SrpHost, SrpTarget, Subnet,
};
use sanloom_fc::san::Lab;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Keys of a link that have no meaning on InfiniBand, the reason, and rates that have such keys.
const OTHER_KEYS: [(&str, &str, &str); 7] = [
    ("credits", "the credit of an InfiniBand link is counted in `blocks`", "Fibre Channel"),
    ("bb_sc", "an InfiniBand link repeats its credit by itself", "Fibre Channel"),
    ("bundle", "the subnet manager spreads paths over parallel InfiniBand links", "Fibre Channel"),
    ("ethernet", "`ethernet` makes a link of Fibre Channel an FCoE link of `sanloom up`", "Fibre Channel"),
    ("mtu", "the MTU of InfiniBand is that of the whole [subnet]", "Ethernet"),
    ("vlans", "an InfiniBand link has no VLANs", "Ethernet"),
    ("pause_reaction", "an InfiniBand link has no pauses", "Ethernet"),
];

/// Fills the switches of `lab.infiniband`.
pub(super) fn switches<'d>(
    document: &'d Document,
    lab: &mut Lab,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Where<'d>> {
    let elements = document.named("infiniband_switch", budget, sink);
    let mut switch = |element: &Element<'_>| InfinibandSwitch {
        name: element.name.clone(),
        blocks: element.integer("blocks").unwrap_or(256),
        latency: element.time("latency").unwrap_or(Picos::from_ns(100)),
        cut_through: element.flag("cut_through"),
        lifetime: [element.integer("lifetime").unwrap_or(18), element.integer("last_lifetime").unwrap_or(16)],
        lanes: lanes::settings(element, budget, sink),
    };
    lab.infiniband.switches = elements.iter().map(&mut switch).collect();
    elements.into_iter().map(Where::new).collect()
}

/// Returns the settings of the subnet, whose switches are known.
pub(super) fn subnet(element: &Element<'_>, lab: &Lab, budget: &mut Budget, sink: &mut Sink) -> Subnet {
    let default = Subnet::default();
    let switches: BTreeMap<&str, u16> = lab.infiniband.switches.iter().map(|s| s.name.as_str()).zip(0..).collect();
    let mut roots = BTreeSet::new();
    for (text, origin) in element.patterns("roots") {
        let Some(names) = budget.expand(text, origin, sink) else { continue };
        for name in names.iter() {
            match switches.get(name.as_str()) {
                Some(switch) => _ = roots.insert(*switch),
                None => unknown(name, "InfiniBand switch", &switches, origin, sink),
            }
        }
    }
    Subnet {
        routing: element.choice("routing", schema::SUBNET_ROUTINGS).unwrap_or(default.routing),
        roots: roots.into_iter().collect(),
        lmc: element.integer("lmc").unwrap_or(default.lmc),
        sweep: element.time("sweep").unwrap_or(default.sweep),
        mtu: element.integer("mtu").unwrap_or(default.mtu),
        lanes: element.integer("lanes").unwrap_or(default.lanes),
        lane_settings: lanes::settings(element, budget, sink),
        ack_timeout: element.integer("ack_timeout").unwrap_or(default.ack_timeout),
        retries: element.integer("retries").unwrap_or(default.retries),
    }
}

/// Returns the SRP initiator of a host.
pub(super) fn initiator(element: &Element<'_>) -> SrpHost {
    let default = SrpHost::default();
    SrpHost {
        queue_depth: element.integer("srp.queue_depth").unwrap_or(default.queue_depth),
        level: element.integer("srp.level").unwrap_or(default.level),
        partition: element.integer("srp.partition").unwrap_or(default.partition),
        membership: element.choice("srp.membership", schema::MEMBERSHIPS).unwrap_or_default(),
        blocks: element.integer("srp.blocks").unwrap_or(default.blocks),
    }
}

/// Returns all SRP targets, by index of their storage system.
pub(super) fn targets(storage: &[Where<'_>]) -> BTreeMap<u16, SrpTarget> {
    let default = SrpTarget::default();
    let target = |element: &Element<'_>| SrpTarget {
        request_limit: element.integer("srp.request_limit").unwrap_or(default.request_limit),
        partitions: match element.is_given("srp.partitions") {
            true => element.numbers("srp.partitions").iter().map(|number| *number as u16).collect(),
            false => default.partitions.clone(),
        },
        membership: element.choice("srp.membership", schema::MEMBERSHIPS).unwrap_or_default(),
        blocks: element.integer("srp.blocks").unwrap_or(default.blocks),
    };
    let given = (0..).zip(storage).filter(|(_, place)| place.element.has_table("srp"));
    given.map(|(number, place)| (number, target(&place.element))).collect()
}

/// Reports a link without a rate of InfiniBand that has a key or an end of InfiniBand. Returns
/// whether it cannot be a link of Fibre Channel.
pub(super) fn is_misplaced(
    element: &Element<'_>,
    switches: &[InfinibandSwitch],
    budget: &mut Budget,
    sink: &mut Sink,
) -> bool {
    let remedy = "give the link a rate of InfiniBand, such as rate = \"4xEDR\"";
    let has_bad_rate = element.is_given("rate") && sink.has_within(&element.origin("rate"));
    for key in ["from", "to"] {
        let Some((text, origin)) = element.patterns(key).first().filter(|_| !switches.is_empty()) else { continue };
        let Some(names) = budget.expand(text, origin, sink) else { return true };
        let plain = names.iter().map(|name| name.split_once(':').map_or(name.as_str(), |(name, _)| name));
        let mut known = plain.filter(|name| switches.iter().any(|switch| switch.name == **name));
        if let Some(name) = known.next() {
            if !has_bad_rate {
                let rate = element.line_rate("rate").map_or(String::new(), |rate| format!(" {rate}"));
                let reason = format!("`{name}` is an InfiniBand switch, but the rate{rate} is one of Fibre Channel");
                sink.error(CONFLICT, origin, reason, remedy);
            }
            return true;
        }
    }
    report_blocks(element, "Fibre Channel", sink);
    false
}

/// Reports the key `blocks` of a link that is not one of InfiniBand.
pub(super) fn report_blocks(element: &Element<'_>, plane: &str, sink: &mut Sink) {
    if element.is_given("blocks") {
        let reason = format!("`blocks` is a key of InfiniBand links, but the link is one of {plane}");
        let remedy = "give the link a rate of InfiniBand, such as rate = \"4xEDR\", or leave `blocks` out";
        sink.error(CONFLICT, &element.origin("blocks"), reason, remedy);
    }
}

/// Fills the links of `lab.infiniband`.
pub(super) fn links<'d>(
    document: &'d Document,
    lab: &mut Lab,
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Where<'d>> {
    let mut elements = document.list("link");
    elements.extend(document.list("isl"));
    elements.retain(|element| element.infiniband_rate("rate").is_some());
    elements.sort_by(|a, b| a.header.cmp(&b.header));
    let switches: BTreeMap<&str, u16> = lab.infiniband.switches.iter().map(|s| s.name.as_str()).zip(0..).collect();
    let mut drafts = Vec::new();
    for element in elements {
        element.require_keys(sink);
        for (key, reason, plane) in OTHER_KEYS.into_iter().filter(|(key, ..)| element.is_given(key)) {
            let remedy = format!("leave `{key}` out, or give a rate of {plane}");
            sink.error(CONFLICT, &element.origin(key), reason, remedy);
        }
        let find = |name: &str, origin: &Origin, sink: &mut Sink| end(name, lab, &switches, names, origin, sink);
        draft(&Rc::new(element), find, &mut drafts, budget, sink);
    }
    let mut ports = Ports::new(&drafts, (MAX_INFINIBAND_PORTS, "an InfiniBand"));
    let mut places = Vec::new();
    let mut used = BTreeSet::new();
    for draft in drafts {
        let assigned = [0, 1].map(|side| ports.assign(draft.ends[side], &draft.origins[side], sink));
        let [Some(a), Some(b)] = assigned else { continue };
        let ends = [a, b].map(|(node, port)| InfinibandEnd { node, port });
        let name = draft.name.clone().unwrap_or_else(|| unused_name(&used, default_name(lab, ends)));
        used.insert(name.clone());
        let element = document.refine(&draft.element, &name);
        let mut rate = element.infiniband_rate("rate");
        if rate.is_none() {
            let reason = format!("`{name}` is an InfiniBand link");
            sink.error(CONFLICT, &element.origin("rate"), reason, "choose a rate of InfiniBand, such as \"4xEDR\"");
            rate = draft.element.infiniband_rate("rate");
        }
        lab.infiniband.links.push(InfinibandLink {
            name,
            ends,
            rate: rate.unwrap_or(InfinibandRate::Edr4),
            propagation: match element.get("length") {
                Some((Value::Length(millimetres), _)) => units::propagation(*millimetres),
                _ => units::propagation(10_000),
            },
            blocks: element.integer("blocks"),
        });
        let [from, to] = draft.origins;
        places.push(Where { element: Rc::new(element), exact: vec![("from", from), ("to", to)] });
    }
    places
}

/// Returns the node with this name and its port, if one is given.
fn end(
    text: &str,
    lab: &Lab,
    switches: &BTreeMap<&str, u16>,
    names: &Names,
    origin: &Origin,
    sink: &mut Sink,
) -> Option<NodeAndPort<InfinibandNode>> {
    const WANTED: &str = "InfiniBand switch, host or storage system";
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    let of_another_plane = |what: String, sink: &mut Sink| {
        let reason = format!("`{name}` is {what}, but the link has a rate of InfiniBand");
        sink.error(CONFLICT, origin, reason, "choose another rate, or an [infiniband_switch.NAME]");
    };
    let node = match (switches.get(name), names.get(name)) {
        (Some(&switch), _) => InfinibandNode::Switch(switch),
        (None, Some(Node::Host(host))) => InfinibandNode::Host(host),
        (None, Some(Node::Storage(storage))) => InfinibandNode::Storage(storage),
        (None, Some(node @ (Node::Switch(_) | Node::Loop(_)))) => {
            of_another_plane(format!("a {} of Fibre Channel", noun(node)), sink);
            return None;
        }
        (None, None) if lab.ethernet_switches.iter().any(|switch| switch.name == name) => {
            of_another_plane("an Ethernet switch".to_owned(), sink);
            return None;
        }
        (None, None) => {
            unknown(name, WANTED, switches, origin, sink);
            return None;
        }
    };
    Some((node, ports::number(text, MAX_INFINIBAND_PORTS - 1, origin, sink)?))
}

/// Returns the names of both ends, with the interface if it is not the first one.
fn default_name(lab: &Lab, ends: [InfinibandEnd; 2]) -> String {
    let name = |end: InfinibandEnd| {
        let name = lab.infiniband_node_name(end.node);
        let is_plain = matches!(end.node, InfinibandNode::Switch(_)) || end.port == 0;
        if is_plain { name.to_owned() } else { format!("{name}:{}", end.port) }
    };
    format!("{}-{}", name(ends[0]), name(ends[1]))
}
