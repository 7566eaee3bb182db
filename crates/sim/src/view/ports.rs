//! Logins, the name server and the ports of the switches.

use super::Shown;
use crate::net::Place;
use crate::world::SwitchNode;
use sanloom_api::view::{FlogiView, LoginKind, LoginRow, NameRow, NsView, PortMode, PortRow, PortsView};
use sanloom_core::config::{Link, Node};
use sanloom_core::fabric::PortMode as Mode;
use sanloom_core::fabric_switch::IslState;
use sanloom_core::switch::NsEntry;
use sanloom_wire::ns::{fcp_feature, has_type, port_type};
use sanloom_wire::{FcId, FcType};
use std::collections::BTreeMap;

pub(super) fn logins(shown: &Shown<'_>) -> FlogiView {
    let mut logins = Vec::new();
    for switch in shown.switches() {
        let machine = &shown.world.switches[usize::from(switch)].machine;
        let policy = &shown.world.lab.switches[usize::from(switch)].policy;
        let objects: BTreeMap<FcId, &NsEntry> =
            machine.services().name_server().map(|entry| (entry.port_id, entry)).collect();
        for (id, port) in machine.logins() {
            let Some(entry) = objects.get(&id) else { continue };
            logins.push(LoginRow {
                port: format!("{}:{port}", shown.world.lab.switches[usize::from(switch)].name),
                port_id: id.to_string(),
                port_name: entry.port_name.to_string(),
                node_name: entry.node_name.to_string(),
                owner: shown.owner(entry.port_name),
                login: if machine.services().is_virtual(id) { LoginKind::Fdisc } else { LoginKind::Flogi },
                persistent: policy.learn_addresses || policy.persistent.get(&entry.port_name) == Some(&id),
                since_s: shown.since_start(entry.logged_in_at.as_ns().saturating_mul(1_000)),
            });
        }
    }
    logins.sort_by(|a, b| a.port_id.cmp(&b.port_id));
    FlogiView { logins }
}

pub(super) fn name_server(shown: &Shown<'_>) -> NsView {
    let Some(switch) = shown.database() else { return NsView::default() };
    let machine = &shown.world.switches[usize::from(switch)].machine;
    let listed = machine.services().name_server().filter(|entry| entry.listed);
    NsView {
        switch: shown.world.lab.switches[usize::from(switch)].name.clone(),
        objects: listed.map(|entry| object(shown, entry)).collect(),
    }
}

fn object(shown: &Shown<'_>, entry: &NsEntry) -> NameRow {
    let types = (0..=u8::MAX).filter(|fc4_type| has_type(&entry.types, *fc4_type));
    let features = [(fcp_feature::INITIATOR, "initiator"), (fcp_feature::TARGET, "target")];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    NameRow {
        port_id: entry.port_id.to_string(),
        port_type: port_type::name(entry.port_type).map_or(format!("{:02x}", entry.port_type), str::to_owned),
        port_name: entry.port_name.to_string(),
        node_name: entry.node_name.to_string(),
        fabric_port_name: entry.fabric_port_name.to_string(),
        fc4_types: types.map(|fc4_type| FcType(fc4_type).to_string()).collect(),
        fcp_features: (features.iter())
            .filter(|(bit, _)| entry.fcp_features & bit != 0)
            .map(|(_, name)| (*name).to_owned())
            .collect(),
        symbolic_port_name: text(entry.symbolic_port_name()),
        symbolic_node_name: text(entry.symbolic_node_name()),
        owner: shown.owner(entry.port_name),
    }
}

pub(super) fn ports(shown: &Shown<'_>) -> PortsView {
    let mut rows: Vec<(u16, u16, PortRow)> = Vec::new();
    for (link, number) in shown.world.lab.links.iter().zip(0u32..) {
        for side in 0..2u32 {
            let end = &link.ends[side as usize];
            if let Node::Switch(switch) = end.node
                && shown.on.is_none_or(|on| on == switch)
            {
                rows.push((switch, end.port, row(shown, link, number, side, switch)));
            }
        }
    }
    rows.sort_by_key(|(switch, port, _)| (*switch, *port));
    PortsView { ports: rows.into_iter().map(|(.., row)| row).collect() }
}

fn row(shown: &Shown<'_>, link: &Link, number: u32, side: u32, switch: u16) -> PortRow {
    let (net, node) = (&shown.world.net, &shown.world.switches[usize::from(switch)]);
    let end = &link.ends[side as usize];
    // The lane that leaves from an end has its number.
    let (tx, rx) = (2 * number + side, 2 * number + 1 - side);
    let lane = &net.lanes()[tx as usize];
    let mut discards = BTreeMap::new();
    for (&(place, reason), lost) in net.losses() {
        if place == Place::Receiver(rx) {
            *discards.entry(reason.name().to_owned()).or_default() += lost.frames;
        }
    }
    PortRow {
        port: shown.names.port(end),
        mode: match node.machine.port_mode(end.port) {
            Mode::F => PortMode::F,
            Mode::E => PortMode::E,
            Mode::Isolated => PortMode::Isolated,
            Mode::Down => PortMode::Down,
        },
        light: lane.up,
        isolated: isolated(node, end.port),
        rate: link.rate.to_string(),
        link: link.name.clone(),
        attached: shown.names.port(&link.ends[1 - side as usize]),
        logins: node.machine.logins().filter(|(_, port)| *port == end.port).count() as u32,
        credits: [lane.credits_at(net.now()), lane.bb_credit],
        frames_sent: lane.count().frames,
        frames_received: shown.world.received(rx).0,
        discards,
    }
}

fn isolated(node: &SwitchNode, port: u16) -> Option<String> {
    node.machine.isls().find(|isl| isl.members.contains(&port)).and_then(|isl| match isl.state {
        IslState::Isolated(reason) => Some(reason.to_string()),
        IslState::Up | IslState::Initialising => None,
    })
}
