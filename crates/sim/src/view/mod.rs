//! Tables of `sanloom show` for a simulated fabric at its current time.

mod nodes;
mod planes;
mod ports;

pub use sanloom_api::view::build::Which;

use crate::world::{World, operator};
use sanloom_api::view::build::{Shown, SwitchSeen};
use sanloom_api::view::{EventsView, PlaneWhich, Table, View};
use sanloom_scsi::time::Instant;

/// Returns a table of the current state of a world. `on` limits it to one switch of the lab, by
/// index. The name server and the zones come from that switch, or from the first running switch.
pub fn of(world: &World, which: Which, on: Option<u16>) -> View {
    let shown = shown(world, on);
    let table = shown.table(which).unwrap_or_else(|| match which {
        Which::Events => Table::Events(events(world, 0, on)),
        Which::Nodes => Table::Nodes(nodes::nodes(world, &shown)),
        _ => Table::Ports(ports::ports(world, &shown)),
    });
    View::new(&world.lab.name, run_s(world), table)
}

/// Returns the events after a sequence number; `on` limits them to a switch of the lab, by index. A
/// world has events from [`operator::permit`](crate::world::operator::permit) on.
pub(crate) fn events(world: &World, after: u64, on: Option<u16>) -> EventsView {
    let Some(operator) = operator::state(world) else { return EventsView::default() };
    let since_start_s = since_start(world);
    let seconds = |at: Instant| since_start_s(at.as_ns().saturating_mul(1_000));
    operator.log.view(after, on, |switch| &world.lab.switches[usize::from(switch)].name, seconds)
}

/// Returns a table of the planes of a world.
pub fn of_planes(world: &World, which: PlaneWhich) -> View {
    View::new(&world.lab.name, run_s(world), planes::table(world, which))
}

/// Returns the builder of tables.
pub(crate) fn shown(world: &World, on: Option<u16>) -> Shown<'_> {
    let nodes = (0u16..).zip(&world.control.switches);
    let seen = nodes.map(|(number, node)| {
        let fib = &world.net.fc.switch(number).fib;
        let disabled = operator::state(world).is_some_and(|operator| operator.is_switch_disabled(number));
        SwitchSeen { number, machine: &node.machine, fib, up: node.up, disabled }
    });
    let since_start_s = since_start(world);
    let since = move |at: Instant| since_start_s(at.as_ns().saturating_mul(1_000));
    let mut shown = Shown::new(&world.lab, seen.collect(), on, since);
    shown.disabled = operator::state(world).map(|operator| operator.disabled().clone()).unwrap_or_default();
    shown
}

/// Returns the current time in seconds since the start of the workloads; 0 before it.
pub fn run_s(world: &World) -> f64 {
    since_start(world)(world.net.now())
}

/// Converts a time in ps since the first login to seconds since the start of the workloads.
fn since_start(world: &World) -> impl Fn(u64) -> f64 + use<> {
    let start_ps = if world.start_ps == 0 { world.net.now() } else { world.start_ps };
    move |at_ps: u64| (i128::from(at_ps) - i128::from(start_ps)) as f64 / 1e12
}
