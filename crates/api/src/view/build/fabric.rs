//! Switches, domains, ISLs and paths.

use super::{Shown, SwitchSeen};
use crate::view::{FabricSwitch, FabricView, IslEnd, RouteRow, RoutesView, SwitchRow, SwitchView};
use sanloom_fc::config::{LinkEnd, Node};
use sanloom_fc::fabric::{Leg, PortMode};
use sanloom_fc::fabric_switch::{IslState, IslStatus};
use std::collections::BTreeMap;

pub(super) fn switches(shown: &Shown<'_>) -> SwitchView {
    SwitchView { switches: shown.switches().map(|seen| row(shown, seen)).collect() }
}

fn row(shown: &Shown<'_>, node: &SwitchSeen<'_>) -> SwitchRow {
    let config = &shown.lab.switches[usize::from(node.number)];
    let (machine, counters) = (node.machine, node.machine.counters());
    let count = |mode| (0..config.ports).filter(|port| machine.port_mode(*port) == mode).count() as u32;
    SwitchRow {
        switch: config.name.clone(),
        chassis: config.virtual_fabric.as_ref().map(|fabric| fabric.chassis.clone()),
        vf_id: config.virtual_fabric.as_ref().map(|fabric| fabric.id),
        switch_name: machine.name().to_string(),
        up: node.up,
        disabled: node.disabled,
        domain: machine.domain(),
        principal: machine.domain().is_some() && machine.principal() == Some(machine.name()),
        ports: config.virtual_fabric.as_ref().map_or(config.ports.into(), |fabric| fabric.ports.len() as u32),
        port_numbers: config
            .virtual_fabric
            .iter()
            .flat_map(|fabric| &fabric.ports)
            .map(|port| (*port).into())
            .collect(),
        disabled_ports: disabled(shown, node.number),
        f_ports: count(PortMode::F),
        e_ports: count(PortMode::E),
        isolated_ports: count(PortMode::Isolated),
        logins: machine.logins().count() as u32,
        virtual_logins: machine.logins().filter(|(id, _)| machine.services().is_virtual(*id)).count() as u32,
        name_server_objects: machine.services().name_server().count() as u32,
        logins_rejected: counters.logins_rejected,
        requests_accepted: counters.els_accepted + counters.ct_accepted,
        requests_rejected: counters.els_rejected + counters.ct_rejected,
        rscns_sent: counters.rscn_sent,
        permissions: node.fib.permissions() as u64,
    }
}

/// Disabled ports of a switch without a link.
fn disabled(shown: &Shown<'_>, switch: u16) -> Vec<u32> {
    let has_link = |port: u16| {
        let is_here = |end: &LinkEnd| end.node == Node::Switch(switch) && end.port == port;
        shown.lab.links.iter().any(|link| link.ends.iter().any(is_here))
    };
    let own = shown.disabled.range((switch, 0)..=(switch, u16::MAX)).map(|(_, port)| *port);
    own.filter(|port| !has_link(*port)).map(u32::from).collect()
}

pub(super) fn fabric(shown: &Shown<'_>) -> FabricView {
    let switches = shown.switches().map(|seen| {
        let config = &shown.lab.switches[usize::from(seen.number)];
        let machine = seen.machine;
        FabricSwitch {
            switch: config.name.clone(),
            switch_name: machine.name().to_string(),
            domain: machine.domain(),
            principal: machine.principal().map(|name| name.to_string()),
            fabric_name: machine.principal().map(|name| name.to_string()),
            domains: machine.members().iter().map(|(domain, _)| *domain).collect(),
            isls: isls(shown, seen),
        }
    });
    FabricView { switches: switches.collect() }
}

fn isls(shown: &Shown<'_>, seen: &SwitchSeen<'_>) -> Vec<IslEnd> {
    let statuses: Vec<IslStatus> = seen.machine.isls().collect();
    let known: BTreeMap<u16, &IslStatus> =
        statuses.iter().flat_map(|isl| isl.members.iter().map(move |port| (*port, isl))).collect();
    let mut ends = Vec::new();
    for (number, link) in shown.lab.links.iter().enumerate() {
        let both_switches = link.ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
        for (end, other) in [(0, 1), (1, 0)].map(|(a, b)| (&link.ends[a], &link.ends[b])) {
            if !both_switches || end.node != Node::Switch(seen.number) {
                continue;
            }
            let (state, reason) = match known.get(&end.port).map(|isl| &isl.state) {
                None => ("down", None),
                Some(IslState::Up) => ("up", None),
                Some(IslState::Initialising) => ("initialising", None),
                Some(IslState::Isolated(reason)) => ("isolated", Some(reason.to_string())),
            };
            let isl = IslEnd {
                port: shown.port(end),
                neighbour: shown.port(other),
                state: state.to_owned(),
                reason,
                rate: shown.rate(number).to_owned(),
                cost: known.get(&end.port).map_or(0, |isl| isl.cost),
                bundle: link.bundle.map(|bundle| bundle.to_string()),
            };
            ends.push((end.port, isl));
        }
    }
    ends.sort_by_key(|(port, _)| *port);
    ends.into_iter().map(|(_, isl)| isl).collect()
}

pub(super) fn routes(shown: &Shown<'_>) -> RoutesView {
    let mut routes = Vec::new();
    for seen in shown.switches() {
        let config = &shown.lab.switches[usize::from(seen.number)];
        let mut route = |domain: u8, to: String| {
            let legs = seen.fib.legs(domain).iter().map(|leg| name(shown, seen.number, *leg)).collect();
            routes.push(RouteRow { switch: config.name.clone(), domain, to, legs });
        };
        for other in shown.seen.iter().filter(|other| other.number != seen.number) {
            if let Some(domain) = other.machine.domain() {
                route(domain, shown.lab.switches[usize::from(other.number)].name.clone());
            }
        }
        // For switches of other processes only the name is known.
        for (domain, switch_name) in seen.machine.members() {
            if shown.seen.iter().all(|other| other.machine.name() != *switch_name) {
                route(*domain, switch_name.to_string());
            }
        }
    }
    RoutesView { routes }
}

/// Name of an egress port or bundle: `core:1`, or `bundle 3 (core:1, core:2)`.
fn name(shown: &Shown<'_>, switch: u16, leg: Leg) -> String {
    let switch_name = &shown.lab.switches[usize::from(switch)].name;
    match leg {
        Leg::Port(port) => format!("{switch_name}:{port}"),
        Leg::Bundle(bundle) => {
            let of_bundle = shown.lab.links.iter().filter(|link| link.bundle == Some(bundle));
            let ends = of_bundle.flat_map(|link| &link.ends).filter(|end| end.node == Node::Switch(switch));
            let mut ports: Vec<u16> = ends.map(|end| end.port).collect();
            ports.sort_unstable();
            let ports: Vec<String> = ports.iter().map(|port| format!("{switch_name}:{port}")).collect();
            format!("bundle {bundle} ({})", ports.join(", "))
        }
    }
}
