//! Interfaces of hosts and storage systems: interrupts, and the work of processors.

use super::plan::{AdapterPlan, Machine};
use super::{Cx, Iscsi, Job, connection, router};
use crate::host::{Direction, Interface, RaisedInterrupt};
use crate::net::ethernet::Packet;
use crate::tcp::{Joined, Stacks};
use std::collections::VecDeque;

/// Most frames that a processor takes from an interface in one go, if it does not join them. Linux
/// polls a device for as many (`NAPI_POLL_WEIGHT`).
const POLL_FRAMES: usize = 64;

/// Gap of an interface whose gap adapts and was zero, in ps.
const LEAST_STEP_PS: u64 = 1_000;

/// Work of a processor for frames of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Number of the interface at its owner, among those of its kind.
    pub adapter: u16,
    /// True if an interrupt begins the work.
    pub interrupts: bool,
    /// Number of segments with data that one interrupt, poll or call passes on together.
    pub segments: u32,
    /// Bytes that cross the bus: those of frames that arrive, or of PDUs that leave.
    pub bytes: u64,
    /// Bytes of payload.
    pub payload: u64,
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
    /// Returns the load of frames that arrive. Acknowledgements without data cost the bus and the
    /// interrupt only: measured times of segments that leave contain them.
    fn received<'p>(
        stacks: &Stacks,
        adapter: u16,
        frames: impl IntoIterator<Item = &'p Packet>,
        is_ipoib: bool,
    ) -> Load {
        let mut load = Load {
            adapter,
            interrupts: true,
            segments: 0,
            bytes: 0,
            payload: 0,
            direction: Direction::Receive,
            pdus: 0,
            commands: 0,
            target: u16::MAX,
            is_ipoib,
        };
        for packet in frames {
            let payload = stacks.payload_of(packet);
            load.segments += u32::from(payload > 0);
            load.payload += u64::from(payload);
            load.bytes += u64::from(packet.bytes);
        }
        load
    }
}

/// Receiving side of an interface.
pub(super) struct Adapter {
    plan: AdapterPlan,
    /// Frames that the processor has not handled.
    waiting: VecDeque<Packet>,
    /// Number of frames at the front that the bus or the processor works on.
    raised: usize,
    /// The processor works on frames, and polls the interface when it has ended.
    is_polled: bool,
    /// Time of the next interrupt in ps.
    interrupt_ps: u64,
    /// Gap after the next interrupt in ps.
    gap_ps: u64,
    /// Time before which no interrupt is raised, unless many frames wait, in ps.
    quiet_until_ps: u64,
    /// Time at which the bus of a storage system has moved the last frame, in ps.
    moved_ps: u64,
}

impl Adapter {
    pub fn new(plan: AdapterPlan) -> Adapter {
        Adapter {
            plan,
            waiting: VecDeque::new(),
            raised: 0,
            is_polled: false,
            interrupt_ps: 0,
            gap_ps: plan.min_gap_ps.unwrap_or(plan.gap_ps),
            quiet_until_ps: 0,
            moved_ps: 0,
        }
    }

    /// Returns the number of the interface at its owner.
    pub fn number(&self) -> u16 {
        self.plan.number
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
    if plan.gap_ps == 0 && !plan.polls {
        let load = Load::received(&iscsi.stacks, plan.number, [packet], is_ipoib);
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
    if adapter.is_polled {
        return;
    }
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
    let adapter = &iscsi.adapters[usize::from(interface)];
    if !adapter.is_polled && adapter.interrupt_ps <= cx.net.now() {
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
    let adapter = &mut iscsi.adapters[usize::from(interface)];
    if let Some(shortest) = adapter.plan.min_gap_ps {
        adapter.gap_ps = match adapter.waiting.len() - adapter.raised {
            0 | 1 => (adapter.gap_ps / 2).max(shortest),
            _ => adapter.gap_ps.saturating_mul(2).max(LEAST_STEP_PS).min(adapter.plan.gap_ps),
        };
    }
    adapter.quiet_until_ps = cx.net.now().saturating_add(adapter.gap_ps);
    work(iscsi, cx, interface, true);
}

/// Gives frames that wait to the bus and the processor: as many as the interface joins, if it is
/// polled, otherwise all.
fn work(iscsi: &mut Iscsi, cx: &mut Cx<'_>, interface: u16, interrupts: bool) {
    let is_ipoib = iscsi.stacks.is_infiniband(interface);
    let Iscsi { adapters, stacks, .. } = iscsi;
    let adapter = &mut adapters[usize::from(interface)];
    let fresh = adapter.waiting.range(adapter.raised..);
    let (polls, most_bytes) = (adapter.plan.polls, u64::from(adapter.plan.batch_bytes));
    let mut payload = 0;
    let taken = fresh.clone().enumerate().take_while(|(number, packet)| {
        payload += u64::from(stacks.payload_of(packet));
        !polls || *number == 0 || if most_bytes > 0 { payload <= most_bytes } else { *number < POLL_FRAMES }
    });
    let frames = taken.count();
    if frames == 0 {
        return;
    }
    let load = Load { interrupts, ..Load::received(stacks, adapter.plan.number, fresh.take(frames), is_ipoib) };
    adapter.raised += frames;
    adapter.is_polled = polls;
    let at = cx.around.work(adapter.plan.owner, cx.net.now(), interface, load);
    iscsi.agenda.plan(cx.net, at, Job::Received(interface, frames as u32));
}

/// Passes frames to TCP that the processor has handled, and polls the interface again.
pub(super) fn received(iscsi: &mut Iscsi, cx: &mut Cx<'_>, interface: u16, frames: u32) {
    let most_bytes = iscsi.adapters[usize::from(interface)].plan.batch_bytes;
    let mut joined: Option<Joined> = None;
    for _ in 0..frames {
        let adapter = &mut iscsi.adapters[usize::from(interface)];
        let Some(packet) = adapter.waiting.pop_front() else { break };
        adapter.raised -= 1;
        if most_bytes == 0 {
            take(iscsi, cx, &packet);
            continue;
        }
        let next = iscsi.stacks.unpack(&packet);
        if joined.as_mut().is_some_and(|joined| joined.join(&next, most_bytes)) {
            continue;
        }
        if let Some(whole) = joined.replace(next) {
            pass(iscsi, cx, &whole);
        }
    }
    if let Some(whole) = joined {
        pass(iscsi, cx, &whole);
    }
    let adapter = &mut iscsi.adapters[usize::from(interface)];
    if std::mem::take(&mut adapter.is_polled) {
        work(iscsi, cx, interface, false);
    }
}

fn pass(iscsi: &mut Iscsi, cx: &mut Cx<'_>, joined: &Joined) {
    let end = iscsi.stacks.arrive(cx.net, joined);
    connection::changed(iscsi, cx, end);
}

fn take(iscsi: &mut Iscsi, cx: &mut Cx<'_>, packet: &Packet) {
    let end = iscsi.stacks.receive(cx.net, packet);
    connection::changed(iscsi, cx, end);
}
