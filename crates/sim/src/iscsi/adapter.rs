//! Interfaces of hosts and storage systems: interrupts, and the work of processors.

use super::plan::{AdapterPlan, Machine};
use super::{Cx, Iscsi, Job, connection, router};
use crate::host::{Interface, RaisedInterrupt};
use crate::net::ethernet::Packet;
use std::collections::VecDeque;

/// Direction of the data that a processor handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the network.
    Receive,
    /// To the network.
    Send,
}

/// Work of a processor for frames of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Number of frames that one interrupt or one call passes on together.
    pub frames: u32,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Direction of the data.
    pub direction: Direction,
    /// PDUs that leave with these bytes.
    pub pdus: u32,
    /// SCSI commands among them.
    pub commands: u32,
    /// Storage system at the other end, for bytes that leave.
    pub target: u16,
    /// The frames are packets of IPoIB.
    pub is_ipoib: bool,
}

impl Load {
    /// Returns the load of frames that arrive.
    fn received(frames: u32, bytes: u64, is_ipoib: bool) -> Load {
        Load { frames, bytes, direction: Direction::Receive, pdus: 0, commands: 0, target: u16::MAX, is_ipoib }
    }
}

/// Receiving side of an interface.
pub(super) struct Adapter {
    plan: AdapterPlan,
    /// Frames that the processor has not handled.
    waiting: VecDeque<Packet>,
    /// Number of frames at the front whose interrupt was raised.
    raised: usize,
    /// Time of the next interrupt in ps.
    interrupt_ps: u64,
    /// Time before which no interrupt is raised, unless many frames wait, in ps.
    quiet_until_ps: u64,
    /// Time at which the bus of a storage system has moved the last frame, in ps.
    moved_ps: u64,
}

impl Adapter {
    pub fn new(plan: AdapterPlan) -> Adapter {
        Adapter { plan, waiting: VecDeque::new(), raised: 0, interrupt_ps: 0, quiet_until_ps: 0, moved_ps: 0 }
    }

    /// Returns the router behind the interface.
    pub fn router(&self) -> Option<u16> {
        self.plan.router
    }
}

/// Takes a frame from the network.
pub(super) fn arrive(iscsi: &mut Iscsi, cx: &mut Cx<'_>, packet: &Packet) {
    iscsi.stacks.forget_lost(cx.net);
    let now = cx.net.now();
    let Some(adapter) = iscsi.adapters.get(usize::from(packet.to)) else { return };
    let plan = adapter.plan;
    if plan.router.is_some() && iscsi.stacks.is_for_router(packet) {
        return router::arrive(iscsi, cx, packet);
    }
    let is_ipoib = iscsi.stacks.is_infiniband(packet.to);
    let adapter = &mut iscsi.adapters[usize::from(packet.to)];
    if plan.gap_ps == 0 {
        let load = Load::received(1, packet.bytes.into(), is_ipoib);
        let at = cx.around.work(plan.owner, now, packet.to, load);
        if let Machine::Storage(storage) = plan.owner
            && let Some(arrival) = cx.around.arrive(storage, Interface::Ip(packet.to), now)
        {
            adapter.waiting.push_back(*packet);
            adapter.moved_ps = at;
            if let Some(at_ps) = arrival.timeout_ps {
                iscsi.agenda.plan(cx.net, at_ps, Job::Interrupt(packet.to));
            }
            return handle(iscsi, cx, packet.to, arrival.raised);
        }
        if at <= now && adapter.waiting.is_empty() {
            return take(iscsi, cx, packet);
        }
        adapter.waiting.push_back(*packet);
        adapter.raised += 1;
        return iscsi.agenda.plan(cx.net, at, Job::Received(packet.to, 1));
    }
    adapter.waiting.push_back(*packet);
    let fresh = adapter.waiting.len() - adapter.raised;
    if fresh >= plan.max_frames.max(1) as usize || adapter.quiet_until_ps <= now {
        raise(iscsi, cx, packet.to);
    } else if fresh == 1 {
        adapter.interrupt_ps = adapter.quiet_until_ps;
        iscsi.agenda.plan(cx.net, adapter.interrupt_ps, Job::Interrupt(packet.to));
    }
}

/// Raises the interrupt of an interface whose moderation is over.
pub(super) fn interrupt(iscsi: &mut Iscsi, cx: &mut Cx<'_>, interface: u16) {
    let plan = iscsi.adapters[usize::from(interface)].plan;
    if let (Machine::Storage(storage), 0) = (plan.owner, plan.gap_ps) {
        let raised = cx.around.time_out(storage, Interface::Ip(interface), cx.net.now());
        return handle(iscsi, cx, interface, raised);
    }
    if iscsi.adapters[usize::from(interface)].interrupt_ps <= cx.net.now() {
        raise(iscsi, cx, interface);
    }
}

/// Plans the end of an interrupt of a storage system, when the bus has moved its frames as well.
fn handle(iscsi: &mut Iscsi, cx: &mut Cx<'_>, interface: u16, raised: Option<RaisedInterrupt>) {
    let Some(RaisedInterrupt { completions, handled_ps }) = raised else { return };
    let adapter = &mut iscsi.adapters[usize::from(interface)];
    adapter.raised += completions as usize;
    let at_ps = handled_ps.max(adapter.moved_ps);
    iscsi.agenda.plan(cx.net, at_ps, Job::Received(interface, completions));
}

fn raise(iscsi: &mut Iscsi, cx: &mut Cx<'_>, interface: u16) {
    let is_ipoib = iscsi.stacks.is_infiniband(interface);
    let adapter = &mut iscsi.adapters[usize::from(interface)];
    let fresh = adapter.waiting.range(adapter.raised..);
    let (frames, bytes) = (fresh.len() as u32, fresh.map(|packet| u64::from(packet.bytes)).sum());
    if frames == 0 {
        return;
    }
    adapter.raised = adapter.waiting.len();
    adapter.quiet_until_ps = cx.net.now().saturating_add(adapter.plan.gap_ps);
    let load = Load::received(frames, bytes, is_ipoib);
    let at = cx.around.work(adapter.plan.owner, cx.net.now(), interface, load);
    iscsi.agenda.plan(cx.net, at, Job::Received(interface, frames));
}

/// Passes frames to TCP that the processor has handled.
pub(super) fn received(iscsi: &mut Iscsi, cx: &mut Cx<'_>, interface: u16, frames: u32) {
    for _ in 0..frames {
        let adapter = &mut iscsi.adapters[usize::from(interface)];
        let Some(packet) = adapter.waiting.pop_front() else { return };
        adapter.raised -= 1;
        take(iscsi, cx, &packet);
    }
}

fn take(iscsi: &mut Iscsi, cx: &mut Cx<'_>, packet: &Packet) {
    let end = iscsi.stacks.receive(cx.net, packet);
    connection::changed(iscsi, cx, end);
}
