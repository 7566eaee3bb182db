//! Results of arbitrated loops.

use super::view::View;
use crate::net::loops::{self, MemberCount};
use sanloom_api::results::measure::{mean_us, ratio, s_of_ps, us_of_ps};
use sanloom_api::results::{LoopPortResult, LoopResult};
use sanloom_fc::config::{Link, LinkEnd, Node};

pub(super) fn results(view: &View<'_>) -> Vec<LoopResult> {
    (0..view.world.lab.loops.len() as u16).map(|number| one(view, number)).collect()
}

fn one(view: &View<'_>, number: u16) -> LoopResult {
    let members = loops::counts(&view.world.net.fc, number);
    let sum = |of: fn(&MemberCount) -> u64| members.iter().map(|(_, count)| of(count)).sum::<u64>();
    let cost = view.world.lab.loop_config(number).and_then(|config| config.tenancy_cost(0, 1));
    let (initialisations, down_ps) = view.world.loops.initialisations(number, view.now_ps);
    let links = || view.world.lab.links.iter().filter(|link| link.loop_end() == Some(number));
    let held = |held_ps: u64| ratio(held_ps.min(view.measured_ps), view.measured_ps);
    let port = |(port, of_port): &(u16, MemberCount)| LoopPortResult {
        name: links()
            .find_map(|link| other_end(link, number, *port))
            .map_or_else(String::new, |end| view.names.port(end)),
        al_pa: view
            .world
            .loops
            .address(number, *port)
            .map_or_else(String::new, |al_pa| format!("{:02x}", al_pa.value())),
        tenancies: of_port.tenancies,
        held_fraction: held(of_port.held_ps),
        arbitration_mean_us: mean_us(u128::from(of_port.arbitration_ps), of_port.tenancies),
        arbitration_max_us: us_of_ps(of_port.longest_ps),
    };
    LoopResult {
        name: view.names.node(Node::Loop(number)).to_owned(),
        rate: links().next().map_or_else(String::new, |link| link.rate.name().to_owned()),
        tenancy_cost_us: cost.map_or(0.0, |time| us_of_ps(time.ps())),
        tenancies: sum(|count| count.tenancies),
        circuits: sum(|count| count.circuits),
        held_fraction: held(sum(|count| count.held_ps)),
        initialisations,
        down_s: s_of_ps(down_ps.min(view.measured_ps)),
        ports: members.iter().map(port).collect(),
    }
}

/// Returns the port of a host or storage system whose link ends at this port of a loop.
fn other_end(link: &Link, number: u16, port: u16) -> Option<&LinkEnd> {
    let [a, b] = &link.ends;
    let is_meant = |end: &LinkEnd| end.node == Node::Loop(number) && end.port == port;
    if is_meant(a) {
        Some(b)
    } else if is_meant(b) {
        Some(a)
    } else {
        None
    }
}
