//! Switches, domains, ISLs and paths.

use super::Shown;
use sanloom_api::view::{FabricSwitch, FabricView, IslEnd, RouteRow, RoutesView, SwitchRow, SwitchView};
use sanloom_core::config::Node;
use sanloom_core::fabric::{Leg, PortMode};
use sanloom_core::fabric_switch::{IslState, IslStatus};
use std::collections::BTreeMap;

pub(super) fn switches(shown: &Shown<'_>) -> SwitchView {
    SwitchView { switches: shown.switches().map(|switch| row(shown, switch)).collect() }
}

fn row(shown: &Shown<'_>, switch: u16) -> SwitchRow {
    let config = &shown.world.lab.switches[usize::from(switch)];
    let node = &shown.world.switches[usize::from(switch)];
    let (machine, counters) = (&node.machine, node.machine.counters());
    let count = |mode| (0..config.ports).filter(|port| machine.port_mode(*port) == mode).count() as u32;
    SwitchRow {
        switch: config.name.clone(),
        chassis: config.virtual_fabric.as_ref().map(|fabric| fabric.chassis.clone()),
        vf_id: config.virtual_fabric.as_ref().map(|fabric| fabric.id),
        switch_name: machine.name().to_string(),
        up: node.up,
        domain: machine.domain(),
        principal: machine.domain().is_some() && machine.principal() == Some(machine.name()),
        ports: config.virtual_fabric.as_ref().map_or(config.ports.into(), |fabric| fabric.ports.len() as u32),
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
        permissions: shown.world.net.switch(switch).fib.permissions() as u64,
    }
}

pub(super) fn fabric(shown: &Shown<'_>) -> FabricView {
    let switches = shown.switches().map(|switch| {
        let config = &shown.world.lab.switches[usize::from(switch)];
        let machine = &shown.world.switches[usize::from(switch)].machine;
        FabricSwitch {
            switch: config.name.clone(),
            switch_name: machine.name().to_string(),
            domain: machine.domain(),
            principal: machine.principal().map(|name| name.to_string()),
            fabric_name: machine.principal().map(|name| name.to_string()),
            domains: machine.members().iter().map(|(domain, _)| *domain).collect(),
            isls: isls(shown, switch),
        }
    });
    FabricView { switches: switches.collect() }
}

fn isls(shown: &Shown<'_>, switch: u16) -> Vec<IslEnd> {
    let statuses: Vec<IslStatus> = shown.world.switches[usize::from(switch)].machine.isls().collect();
    let known: BTreeMap<u16, &IslStatus> =
        statuses.iter().flat_map(|isl| isl.members.iter().map(move |port| (*port, isl))).collect();
    let mut ends = Vec::new();
    for link in &shown.world.lab.links {
        let both_switches = link.ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
        for (end, other) in [(0, 1), (1, 0)].map(|(a, b)| (&link.ends[a], &link.ends[b])) {
            if !both_switches || end.node != Node::Switch(switch) {
                continue;
            }
            let (state, reason) = match known.get(&end.port).map(|isl| &isl.state) {
                None => ("down", None),
                Some(IslState::Up) => ("up", None),
                Some(IslState::Initialising) => ("initialising", None),
                Some(IslState::Isolated(reason)) => ("isolated", Some(reason.to_string())),
            };
            let isl = IslEnd {
                port: shown.names.port(end),
                neighbour: shown.names.port(other),
                state: state.to_owned(),
                reason,
                rate: link.rate.to_string(),
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
    for switch in shown.switches() {
        let config = &shown.world.lab.switches[usize::from(switch)];
        let fib = &shown.world.net.switch(switch).fib;
        for to in shown.world.switches.iter().zip(&shown.world.lab.switches) {
            let (machine, other) = to;
            let Some(domain) = machine.machine.domain().filter(|_| other.name != config.name) else { continue };
            routes.push(RouteRow {
                switch: config.name.clone(),
                domain,
                to: other.name.clone(),
                legs: fib.legs(domain).iter().map(|leg| name(shown, switch, *leg)).collect(),
            });
        }
    }
    RoutesView { routes }
}

/// `core:1`, or `bundle 3 (core:1, core:2)`.
fn name(shown: &Shown<'_>, switch: u16, leg: Leg) -> String {
    let switch_name = &shown.world.lab.switches[usize::from(switch)].name;
    match leg {
        Leg::Port(port) => format!("{switch_name}:{port}"),
        Leg::Bundle(bundle) => {
            let of_bundle = shown.world.lab.links.iter().filter(|link| link.bundle == Some(bundle));
            let ends = of_bundle.flat_map(|link| &link.ends).filter(|end| end.node == Node::Switch(switch));
            let mut ports: Vec<u16> = ends.map(|end| end.port).collect();
            ports.sort_unstable();
            let ports: Vec<String> = ports.iter().map(|port| format!("{switch_name}:{port}")).collect();
            format!("bundle {bundle} ({})", ports.join(", "))
        }
    }
}
