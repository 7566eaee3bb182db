//! Routers of IP between Ethernet and InfiniBand: one packet at a time, with bounded queues.

use super::plan::RouterPlan;
use super::{Cx, Iscsi, Job};
use crate::net::ethernet::Packet;
use std::collections::{BTreeMap, VecDeque};

/// Counters of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouterCount {
    /// Packets that it has passed on.
    pub forwarded: u64,
    /// Packets that it has dropped, because its queue was full.
    pub dropped: u64,
    /// Time for which packets have occupied it, in ps.
    pub busy_ps: u64,
}

/// A router and the packets that wait for it.
pub(super) struct Router {
    pub plan: RouterPlan,
    waiting: VecDeque<Packet>,
    /// Waiting packets of each interface.
    of_interface: BTreeMap<u16, u32>,
    /// Time at which it has finished with the packets that wait, in ps.
    free_ps: u64,
    count: RouterCount,
    before: RouterCount,
}

impl Router {
    pub fn new(plan: RouterPlan) -> Router {
        let (waiting, of_interface) = (VecDeque::new(), BTreeMap::new());
        Router {
            plan,
            waiting,
            of_interface,
            free_ps: 0,
            count: RouterCount::default(),
            before: RouterCount::default(),
        }
    }

    /// Returns the counters since the end of the warm-up.
    pub fn count(&self) -> RouterCount {
        RouterCount {
            forwarded: self.count.forwarded - self.before.forwarded,
            dropped: self.count.dropped - self.before.dropped,
            busy_ps: self.count.busy_ps - self.before.busy_ps,
        }
    }

    /// Restarts the counters at the end of the warm-up.
    pub fn restart(&mut self) {
        self.before = self.count;
    }
}

/// Takes a packet that has arrived at an interface of a router.
pub(super) fn arrive(iscsi: &mut Iscsi, cx: &mut Cx<'_>, packet: &Packet) {
    let Some(number) = iscsi.adapters[usize::from(packet.to)].router() else { return };
    let router = &mut iscsi.routers[usize::from(number)];
    let waiting = router.of_interface.entry(packet.to).or_insert(0);
    if *waiting >= router.plan.queue {
        router.count.dropped += 1;
        return iscsi.stacks.discard(packet);
    }
    *waiting += 1;
    router.waiting.push_back(*packet);
    router.free_ps = router.free_ps.max(cx.net.now()) + router.plan.packet_ps;
    router.count.busy_ps += router.plan.packet_ps;
    iscsi.agenda.plan(cx.net, router.free_ps, Job::Forward(number));
}

/// Passes on the packet with which a router has finished.
pub(super) fn forward(iscsi: &mut Iscsi, cx: &mut Cx<'_>, number: u16) {
    let router = &mut iscsi.routers[usize::from(number)];
    let Some(packet) = router.waiting.pop_front() else { return };
    if let Some(waiting) = router.of_interface.get_mut(&packet.to) {
        *waiting -= 1;
    }
    router.count.forwarded += 1;
    iscsi.stacks.forward(cx.net, &packet);
}
