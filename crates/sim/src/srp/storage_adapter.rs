//! Channel adapters of storage systems: their bus and their interrupts.
//!
//! Data of reads cross the bus before they leave, and data of writes when they have arrived. A
//! response behind such data waits for them. An information unit reaches the target when its
//! interrupt has been handled.

use super::connection::Pull;
use super::{Cx, Job, Srp, connection, target};
use crate::host::{Direction, Interface, RaisedInterrupt};
use sanloom_scsi::scsi::IoTag;
use sanloom_transport::infiniband::rc::packet::Operation;
use sanloom_wire::srp::Iu;
use std::ops::Range;

/// Part of a connection that the target sends.
pub(super) enum Leaving {
    /// Data of a read: the time at which the bus has moved them, in ps, their task and their place.
    Data(u64, IoTag, Range<u32>),
    Unit(Iu),
}

/// Returns the storage system of a connection, and the number of the port.
fn port(srp: &Srp, number: u32) -> (u16, u16) {
    let plan = &srp.channels[srp.connections[number as usize].channel as usize].plan;
    (plan.storage, plan.port)
}

/// Takes an information unit from the network.
pub(super) fn arrive(srp: &mut Srp, cx: &mut Cx<'_>, number: u32, unit: Iu) {
    let ((storage, port), now_ps) = (port(srp, number), cx.net.now());
    let Some(arrival) = cx.around.arrive(storage, Interface::Srp(port), now_ps) else {
        return target::unit(srp, cx, number, unit);
    };
    let Some(Some(system)) = srp.systems.get_mut(usize::from(storage)) else { return };
    system.arrived.entry(port).or_default().push_back((number, unit));
    if let Some(at_ps) = arrival.timeout_ps {
        srp.agenda.plan(cx.net, at_ps, Job::Interrupt(storage, port));
    }
    handle(srp, cx, (storage, port), arrival.raised);
}

/// Raises the interrupt of a port whose information units have waited long enough.
pub(super) fn interrupt(srp: &mut Srp, cx: &mut Cx<'_>, storage: u16, port: u16) {
    let raised = cx.around.time_out(storage, Interface::Srp(port), cx.net.now());
    handle(srp, cx, (storage, port), raised);
}

fn handle(srp: &mut Srp, cx: &mut Cx<'_>, (storage, port): (u16, u16), raised: Option<RaisedInterrupt>) {
    if let Some(RaisedInterrupt { completions, handled_ps }) = raised {
        srp.agenda.plan(cx.net, handled_ps, Job::Units(storage, port, completions));
    }
}

/// Passes information units to their targets whose interrupt the processor has handled.
pub(super) fn units(srp: &mut Srp, cx: &mut Cx<'_>, storage: u16, port: u16, count: u32) {
    for _ in 0..count {
        let Some(Some(system)) = srp.systems.get_mut(usize::from(storage)) else { return };
        let Some((number, unit)) = system.arrived.get_mut(&port).and_then(|units| units.pop_front()) else { return };
        target::unit(srp, cx, number, unit);
    }
}

/// Sends an information unit of a target, behind the data before it.
pub(super) fn send(srp: &mut Srp, cx: &mut Cx<'_>, number: u32, unit: Iu) {
    let leaving = &mut srp.connections[number as usize].leaving;
    match leaving.is_empty() {
        true => connection::send(srp, cx, 2 * number + 1, unit),
        false => leaving.push_back(Leaving::Unit(unit)),
    }
}

/// Writes data of a read to the host, when the bus has moved them.
pub(super) fn write(srp: &mut Srp, cx: &mut Cx<'_>, number: u32, tag: IoTag, part: Range<u32>) {
    let ((storage, port), now_ps) = (port(srp, number), cx.net.now());
    let at_ps = cx.around.transfer(storage, port, (Direction::Send, part.end - part.start), now_ps);
    let leaving = &mut srp.connections[number as usize].leaving;
    if at_ps <= now_ps && leaving.is_empty() {
        target::rdma(srp, cx, number, Operation::Write, part);
        return;
    }
    leaving.push_back(Leaving::Data(at_ps, tag, part));
    srp.agenda.plan(cx.net, at_ps, Job::Leave(number));
}

/// Sends what the bus has moved.
pub(super) fn leave(srp: &mut Srp, cx: &mut Cx<'_>, number: u32) {
    let now_ps = cx.net.now();
    loop {
        let leaving = &mut srp.connections[number as usize].leaving;
        if leaving.front().is_none_or(|front| matches!(front, Leaving::Data(at_ps, ..) if *at_ps > now_ps)) {
            return;
        }
        match leaving.pop_front() {
            Some(Leaving::Data(_, _, part)) => {
                target::rdma(srp, cx, number, Operation::Write, part);
            }
            Some(Leaving::Unit(unit)) => connection::send(srp, cx, 2 * number + 1, unit),
            None => return,
        }
    }
}

/// Moves data of a write over the bus. The target receives them afterwards.
pub(super) fn arrive_data(srp: &mut Srp, cx: &mut Cx<'_>, number: u32, pull: Pull) {
    let ((storage, port), now_ps) = (port(srp, number), cx.net.now());
    let at_ps = cx.around.transfer(storage, port, (Direction::Receive, pull.bytes), now_ps);
    if at_ps <= now_ps {
        return target::pulled(srp, cx, number, &pull);
    }
    srp.connections[number as usize].arriving.push_back(pull);
    srp.agenda.plan(cx.net, at_ps, Job::Pulled(number));
}

/// Passes data to the target that the bus has moved.
pub(super) fn pulled(srp: &mut Srp, cx: &mut Cx<'_>, number: u32) {
    if let Some(pull) = srp.connections[number as usize].arriving.pop_front() {
        target::pulled(srp, cx, number, &pull);
    }
}
