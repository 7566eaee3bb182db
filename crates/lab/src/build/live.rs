//! Configuration for running a lab on real Ethernet: [`Live`].

use super::Where;
use super::links::RANGE_MISMATCH;
use super::masks;
use super::nodes::Names;
use super::workloads;
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::schema;
use crate::value;
use sanloom_fc::config::{Carrier, Ethernet, Fcoe, Live, Medium, MediumKind, Node, Uplink};
use sanloom_fc::san::Lab;
use sanloom_wire::Wwpn;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// Code of an address that is invalid for its carrier.
pub(crate) const BAD_ADDRESS: &str = "bad-address";
/// Code of a time outside its range.
pub(crate) const BAD_PERIOD: &str = "bad-period";

/// Range of FKA_ADV_PERIOD in milliseconds (FC-BB-6, timers). With a longer period, hosts would
/// assume that the switch has failed.
const KEEP_ALIVE_MS: RangeInclusive<u64> = 250..=90_000;
/// Length of `sun_path` in a socket address, without the final zero.
const MAX_SOCKET_PATH_BYTES: usize = 107;
/// `IFNAMSIZ`, without the final zero.
const MAX_INTERFACE_BYTES: usize = 15;

/// Returns the values of `[live]`, `[[mask]]` and the related keys of switches, hosts, links and
/// storage. The first slice argument holds the locations of switches, hosts and storage.
pub(super) fn build<'d>(
    document: &'d Document,
    lab: &Lab,
    names: &Names,
    [switches, hosts, storage]: [&[Where<'d>]; 3],
    links: &[Where<'d>],
    budget: &mut Budget,
    sink: &mut Sink,
) -> Live {
    let section = document.element(schema::section("live"));
    let text = |key| section.as_ref().and_then(|live| live.text(key)).map(str::to_owned);
    let media: Vec<Medium> =
        storage.iter().zip(&lab.storage).map(|(place, s)| medium(&place.element, s.luns.len(), budget, sink)).collect();
    let pools = super::volumes::pools(document, budget, sink);
    let volumes = super::volumes::build(document, lab, &media, &pools, budget, sink);
    let iscsi = super::iscsi::build(lab, storage, budget, sink);
    let mut live = Live {
        port_groups: super::port_groups::build(document, lab, &iscsi, names, budget, sink),
        folder: text("folder"),
        control: section.as_ref().filter(|live| live.is_given("control")).and_then(|_| text("control")),
        metrics: section.as_ref().and_then(|live| metrics(live, sink)),
        ethernet: ethernet(lab, links, budget, sink),
        fcip: super::fcip::build(lab, links, sink),
        stations: stations(lab, storage, budget, sink),
        uplinks: uplinks(lab, hosts, budget, sink),
        fcoe: switches.iter().map(|place| fcoe(&place.element, sink)).collect(),
        media,
        iscsi,
        srp: super::srp::build(lab, storage, budget, sink),
        gateways: Default::default(),
        out_of_band: Default::default(),
        masks: Vec::new(),
        pools: Vec::new(),
        back_ends: Vec::new(),
        volumes,
        registers_adapters: false,
    };
    live.masks = masks::build(document, lab, &live.media, names, budget, sink);
    live.back_ends = super::back_ends::build(document, lab, &live, names, &pools, budget, sink);
    live.pools = pools;
    live.out_of_band = super::out_of_band::build(lab, &live, storage, sink);
    live.gateways = super::gateways::build(lab, &live, names, storage, budget, sink);
    live
}

fn metrics(live: &Element<'_>, sink: &mut Sink) -> Option<SocketAddr> {
    let text = live.text("metrics")?;
    let address = text.parse();
    if address.is_err() {
        let reason = format!("`{}` is not an address with a port", value::cut(text));
        sink.error(BAD_ADDRESS, &live.origin("metrics"), reason, "write it as in metrics = \"127.0.0.1:9464\"");
    }
    address.ok()
}

fn fcoe(element: &Element<'_>, sink: &mut Sink) -> Fcoe {
    let default = Fcoe::default();
    let keep_alive = element.time("fcoe.keep_alive").unwrap_or(default.keep_alive);
    if !KEEP_ALIVE_MS.contains(&(keep_alive.0 / 1_000_000_000)) {
        sink.error(
            BAD_PERIOD,
            &element.origin("fcoe.keep_alive"),
            "keep-alives have periods from 250 ms to 90 s",
            "write keep_alive = \"8s\", which is what hosts expect",
        );
    }
    Fcoe {
        priority: element.integer("fcoe.priority").unwrap_or(default.priority),
        keep_alive,
        fc_map: element.integer("fcoe.fc_map").unwrap_or(default.fc_map),
    }
}

fn medium(element: &Element<'_>, luns: usize, budget: &mut Budget, sink: &mut Sink) -> Medium {
    let kind = element.choice("medium", schema::MEDIA).unwrap_or_default();
    let mut files = Vec::new();
    if let Some((text, origin)) = element.patterns("file").first() {
        let all = budget.expand(text, origin, sink).unwrap_or_default();
        // A range of storage systems may share one range of files.
        let (count, offset) = (element.count as usize, element.offset as usize);
        files = match all.len() {
            n if n == luns * count && n > 0 => all[offset * luns..(offset + 1) * luns].to_vec(),
            0 => Vec::new(),
            n => {
                let reason = format!("{n} files cannot hold {} LUNs", luns * count);
                sink.error(RANGE_MISMATCH, origin, reason, "give as many files as LUNs, or leave `file` out");
                Vec::new()
            }
        };
        if kind != MediumKind::File {
            sink.error(
                workloads::CONFLICT,
                origin,
                "`file` has no effect without `medium = \"file\"`",
                "add it, or remove `file`",
            );
        }
    }
    let write_back = element.choice("cache", schema::CACHES).unwrap_or_default();
    Medium { kind, files, direct: element.flag("direct"), write_back }
}

/// Returns the Ethernet ports of links. The links of one table use the addresses of its range in
/// order.
fn ethernet(lab: &Lab, links: &[Where<'_>], budget: &mut Budget, sink: &mut Sink) -> BTreeMap<usize, Ethernet> {
    let mut found = BTreeMap::new();
    // Index of the link within its table.
    let mut seen: BTreeMap<Origin, usize> = BTreeMap::new();
    let mut totals: BTreeMap<&Origin, usize> = BTreeMap::new();
    for place in links {
        *totals.entry(&place.element.header).or_default() += 1;
    }
    for (index, place) in links.iter().enumerate() {
        let element = &place.element;
        let number = seen.entry(element.header.clone()).or_default();
        let position = std::mem::replace(number, *number + 1);
        if !element.has_table("ethernet") {
            continue;
        }
        if !lab.links[index].ends.iter().any(|end| matches!(end.node, Node::Switch(_))) {
            continue;
        }
        let carrier = element.choice("ethernet.carrier", schema::CARRIERS).unwrap_or(Carrier::Datagram);
        let total = totals[&element.header];
        let mut of = |key| {
            let (text, origin) = element.patterns(key).first()?;
            let all = budget.expand(text, origin, sink)?;
            if all.len() != total && all.len() != 1
                || all.len() == 1 && total > 1 && element.integer::<u16>("ethernet.vlan").is_none()
            {
                if position == 0 {
                    let reason = format!("{} addresses cannot serve {total} links", all.len());
                    sink.error(RANGE_MISMATCH, origin, reason, "give as many addresses as links, or leave the key out");
                }
                return None;
            }
            let address = all[position.min(all.len() - 1)].clone();
            check_address(carrier, &address, origin, sink);
            Some(address)
        };
        let ethernet = Ethernet {
            carrier,
            address: of("ethernet.address"),
            peer: of("ethernet.peer"),
            vlan: element.integer("ethernet.vlan"),
            enodes: element.integer("ethernet.enodes").unwrap_or(1),
            dcbx: element.flag("ethernet.dcbx"),
        };
        require_address(element, "ethernet", &ethernet, sink);
        found.insert(index, ethernet);
    }
    found
}

/// Reports a missing address, which all carriers except sockets require.
fn require_address(element: &Element<'_>, table: &str, ethernet: &Ethernet, sink: &mut Sink) {
    let needs_address = matches!(ethernet.carrier, Carrier::Tap | Carrier::Packet | Carrier::Descriptor);
    if needs_address && ethernet.address.is_none() && !element.is_given(&format!("{table}.address")) {
        let (what, example) = match ethernet.carrier {
            Carrier::Descriptor => ("the number of a descriptor", "3"),
            _ => ("the name of an interface", "veth0"),
        };
        sink.error(
            crate::check::MISSING_KEY,
            &element.origin(&format!("{table}.carrier")),
            format!("this carrier needs {what}"),
            format!("add address = \"{example}\""),
        );
    }
}

/// Returns the Ethernet ports of storage systems. The storage systems of one table use the
/// addresses of its range in order.
fn stations(lab: &Lab, storage: &[Where<'_>], budget: &mut Budget, sink: &mut Sink) -> BTreeMap<u16, Ethernet> {
    let mut found = BTreeMap::new();
    for (place, number) in storage.iter().zip(0..lab.storage.len() as u16) {
        let element = &place.element;
        if !element.has_table("vn2vn") {
            continue;
        }
        let linked = lab.links.iter().flat_map(|link| &link.ends);
        if linked.into_iter().any(|end| end.node == Node::Storage(number) && end.port == 0) {
            sink.error(
                workloads::CONFLICT,
                &element.origin("vn2vn"),
                "the port has a link to a switch, too",
                "remove `vn2vn`, or begin with port 1 in [[link]]",
            );
        }
        let ethernet = own_port(element, "vn2vn", "storage systems", element.integer("vn2vn.vlan"), budget, sink);
        found.insert(number, ethernet);
    }
    found
}

/// Returns the host ports of the instance. The hosts of one table use the addresses of its range in
/// order.
fn uplinks(lab: &Lab, hosts: &[Where<'_>], budget: &mut Budget, sink: &mut Sink) -> BTreeMap<Wwpn, Uplink> {
    let mut found = BTreeMap::new();
    for (place, number) in hosts.iter().zip(0..lab.hosts.len() as u16) {
        let element = &place.element;
        let Some(hba) = lab.hosts[usize::from(number)].hbas.first() else { continue };
        if !element.has_table("fcoe") {
            continue;
        }
        let linked = lab.links.iter().flat_map(|link| &link.ends);
        if linked.into_iter().any(|end| end.node == Node::Host(number) && end.port == 0) {
            let help = "remove `fcoe`, or begin with port 1 in [[link]]";
            sink.error(workloads::CONFLICT, &element.origin("fcoe"), "the port has a link to a switch, too", help);
        }
        let vlan = element.integer("fcoe.vlan");
        let ethernet = own_port(element, "fcoe", "hosts", vlan, budget, sink);
        let discovers_vlan = element.is_given("fcoe.vlan") && vlan.is_none();
        found.insert(
            hba.wwpn,
            Uplink { ethernet: Ethernet { dcbx: element.flag("fcoe.dcbx"), ..ethernet }, discovers_vlan },
        );
    }
    found
}

/// Returns the Ethernet port of the first port of a node.
fn own_port(
    element: &Element<'_>,
    table: &str,
    nodes: &str,
    vlan: Option<u16>,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Ethernet {
    let carrier = element.choice(&format!("{table}.carrier"), schema::CARRIERS).unwrap_or(Carrier::Datagram);
    let mut of = |key: &str| {
        let (text, origin) = element.patterns(&format!("{table}.{key}")).first()?;
        let all = budget.expand(text, origin, sink)?;
        let Some(address) = all.get(element.offset as usize).filter(|_| all.len() == element.count as usize) else {
            let reason = format!("{} addresses cannot serve {} {nodes}", all.len(), element.count);
            let help = format!("give as many addresses as {nodes}, or leave the key out");
            sink.error(RANGE_MISMATCH, origin, reason, help);
            return None;
        };
        check_address(carrier, address, origin, sink);
        Some(address.clone())
    };
    let (address, peer) = (of("address"), of("peer"));
    let ethernet = Ethernet { carrier, address, peer, vlan, enodes: 1, dcbx: false };
    require_address(element, table, &ethernet, sink);
    ethernet
}

fn check_address(carrier: Carrier, address: &str, origin: &Origin, sink: &mut Sink) {
    let (bad, wanted) = match carrier {
        Carrier::Datagram | Carrier::Stream => (
            address.is_empty() || address.len() > MAX_SOCKET_PATH_BYTES || address.contains('\0'),
            "the path of a socket, 1 to 107 bytes",
        ),
        Carrier::Tap | Carrier::Packet => (
            address.is_empty() || address.len() > MAX_INTERFACE_BYTES || address.contains(['/', ' ', '\0']),
            "the name of an interface, 1 to 15 bytes",
        ),
        Carrier::Descriptor => {
            (address.parse::<i32>().map_or(true, |number| number < 3), "the number of a descriptor, from 3 on")
        }
    };
    if bad {
        let reason = format!("`{}` is not {wanted}", value::cut(address));
        sink.error(BAD_ADDRESS, origin, reason, format!("write {wanted}"));
    }
}
