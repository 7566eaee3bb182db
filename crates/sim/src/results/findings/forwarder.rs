//! Congestion behind an FCoE forwarder: frames of Ethernet wait for one of its Fibre Channel ports.

use super::percent;
use crate::net::End;
use crate::net::ethernet::Station;
use crate::results::view::View;
use crate::world::Owner;
use sanloom_api::results::Victim;
use sanloom_api::results::measure::{per_s, ratio};
use sanloom_fc::config::EthernetNode;
use sanloom_fc::san::fcoe_paths;
use std::collections::BTreeSet;

/// Share of the time for which a port is busy or waits for credit, from which on frames wait for
/// it.
const FULL: f64 = 0.9;

/// Ports behind an interface that pauses its switch.
#[derive(Default)]
pub(super) struct Behind {
    /// Port for which the frames wait.
    pub port: Option<Port>,
    /// Other receivers of the same senders.
    pub victims: Vec<Victim>,
}

/// A Fibre Channel port of a forwarder.
pub(super) struct Port {
    pub name: String,
    /// Reason for which frames wait for it, in words.
    pub load: String,
}

/// Returns the port of a forwarder for which the frames of one of its interfaces wait, and the
/// receivers at other ports to which their senders send, too.
pub(super) fn behind(view: &View<'_>, station: Station) -> Behind {
    let lab = &view.world.lab;
    let Station::Interface(interface) = station else { return Behind::default() };
    let node = lab.ethernet_interfaces().get(usize::from(interface)).map(|interface| interface.end.node);
    let Some(EthernetNode::Forwarder(switch)) = node else { return Behind::default() };
    // Lanes of virtual links that end at the interface.
    let arriving = |path: &sanloom_fc::san::FcoePath| {
        let side = path.interfaces.iter().position(|own| *own == interface)?;
        Some(2 * u32::from(path.link) + u32::from(side == 0))
    };
    let arriving: BTreeSet<u32> = fcoe_paths(lab).iter().filter_map(arriving).collect();
    let lanes = view.world.net.fc.lanes();
    let leaves = |lane: &u32| {
        let is_own = matches!(lanes[*lane as usize].from, End::Switch { switch: own, .. } if own == switch);
        is_own && !arriving.contains(&(lane ^ 1))
    };
    let leaving: Vec<u32> = (0..lanes.len() as u32).filter(leaves).collect();
    let busy = |lane: u32| ratio(view.busy_ps(lane), view.measured_ps);
    let waits = |lane: u32| ratio(view.lanes[lane as usize].credit_wait_ps.min(view.measured_ps), view.measured_ps);
    let load = |lane: u32| busy(lane) + waits(lane);
    let fullest = leaving.iter().copied().max_by(|a, b| load(*a).total_cmp(&load(*b)).then(b.cmp(a)));
    let Some(full) = fullest.filter(|lane| load(*lane) >= FULL) else { return Behind::default() };
    let text = match waits(full) > busy(full) {
        true => {
            format!("which waits for credit of {} for {}", view.names.port(view.names.to(full)), percent(waits(full)))
        }
        false => format!("whose line is busy for {}", percent(busy(full))),
    };
    let systems: BTreeSet<u16> = arriving
        .iter()
        .filter_map(|lane| match lanes[*lane as usize].from {
            End::NPort(nport) => match view.world.nports.nodes[usize::from(nport)].owner {
                Owner::Host { host, .. } => view.world.hosts.nodes.get(usize::from(host)),
                Owner::Storage { .. } => None,
            },
            End::Switch { .. } | End::Loop { .. } => None,
        })
        .flat_map(|host| host.paths.systems().iter().map(|system| system.storage))
        .collect();
    let is_victim = |lane: &u32| match lanes[*lane as usize].to {
        End::NPort(nport) => match view.world.nports.nodes[usize::from(nport)].owner {
            Owner::Storage { storage, .. } => systems.contains(&storage) && *lane != full && load(*lane) < FULL,
            Owner::Host { .. } => false,
        },
        End::Switch { .. } | End::Loop { .. } => false,
    };
    let victim = |lane: u32| Victim {
        name: view.names.port(view.names.to(lane)),
        during_bytes_per_s: per_s(view.lanes[lane as usize].bytes, view.measured_ps),
        ..Victim::default()
    };
    Behind {
        port: Some(Port { name: view.names.port(view.names.from(full)), load: format!("{text} of the time") }),
        victims: leaving.iter().copied().filter(is_victim).map(victim).collect(),
    }
}
