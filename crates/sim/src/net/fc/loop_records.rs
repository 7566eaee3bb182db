//! Records of arbitrated loops for traces and captures. A loop without a watched link records
//! nothing.

use super::FcPlane;
use super::observe::{Observed, ObservedKind};
use crate::net::Net;
use crate::net::events::Events;
use sanloom_fc::arbitrated_loop::{Signal, Tenancy};
use sanloom_wire::arbitrated_loop::{LoopInit, Primitive};

/// Times of a tenancy of a loop in ps, with the ports by their numbers at the loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LoopTenancy {
    pub owner: u16,
    /// Port that was opened last.
    pub peer: Option<u16>,
    /// Start of the arbitration.
    pub wish_ps: u64,
    /// The last OPN left the owner.
    pub opened_ps: u64,
    /// CLS left the owner.
    pub closed_ps: u64,
    /// The owner has left.
    pub left_ps: u64,
    pub circuits: u32,
}

/// Records a word at its sender and at its receiver, if their links are watched.
#[inline(never)]
pub(super) fn signal(net: &mut FcPlane, events: &mut Events, number: u16, signal: &Signal) {
    let plane = &net.loops[usize::from(number)];
    let (tx, rx) = (plane.lanes_of(signal.from).0, plane.lanes_of(signal.to).1);
    let word =
        |at_ps| ObservedKind::LoopWord { at_ps, since_ps: signal.sent.ps(), word: signal.word, count: signal.count };
    // An ARB is replaced and sent again on its way, so only its return counts.
    if !signal.word.is_fill_word() {
        record(net, events, tx, word(signal.sent.ps()));
    }
    record(net, events, rx, word(signal.read.ps()));
}

/// Records the end of a tenancy at each watched link.
#[inline(never)]
pub(super) fn tenancy(net: &mut FcPlane, events: &mut Events, number: u16, of_engine: &Tenancy) {
    let plane = &net.loops[usize::from(number)];
    let tenancy = LoopTenancy {
        owner: plane.port_of(of_engine.owner),
        peer: of_engine.peer.map(|peer| plane.port_of(peer)),
        wish_ps: of_engine.wish.ps(),
        opened_ps: of_engine.opened.ps(),
        closed_ps: of_engine.closed.ps(),
        left_ps: of_engine.left.ps(),
        circuits: of_engine.circuits,
    };
    for lane in plane.receiving_lanes() {
        record(net, events, lane, ObservedKind::LoopTenancy(tenancy));
    }
}

/// Records the LIP with which an initialisation begins, at each port that has light.
#[inline(never)]
pub fn lip(net: &mut Net, number: u16, word: Primitive) {
    let Net { events, fc: net, .. } = net;
    let now = events.now;
    for lane in net.loops[usize::from(number)].sending_lanes() {
        if net.lanes[lane as usize].up {
            record(net, events, lane, ObservedKind::LoopWord { at_ps: now, since_ps: now, word, count: 1 });
        }
    }
}

/// Records a frame of an initialisation at its sender and at the next port. `times_ps`: its first
/// bit leaves, and arrives.
#[inline(never)]
pub fn initialisation_frame(
    net: &mut Net,
    number: u16,
    ports: [u16; 2],
    times_ps: [u64; 2],
    (frame, from_fl_port): (&LoopInit, bool),
) {
    let Net { events, fc: net, .. } = net;
    let plane = &net.loops[usize::from(number)];
    let lanes = [plane.lanes_at(ports[0]).map(|lanes| lanes.0), plane.lanes_at(ports[1]).map(|lanes| lanes.1)];
    for (lane, start_ps) in lanes.into_iter().zip(times_ps) {
        if let Some(lane) = lane {
            record(
                net,
                events,
                lane,
                ObservedKind::LoopInit { start_ps, frame: Box::new(frame.clone()), from_fl_port },
            );
        }
    }
}

fn record(net: &mut FcPlane, events: &mut Events, lane: u32, kind: ObservedKind) {
    if net.lanes[lane as usize].watched {
        net.recorder.add(Observed { lane, credits: 0, kind });
        net.recorder.stamp(net.parts.turn(events.now));
    }
}

/// Lets a loop report its words if one of its links is watched.
#[inline(never)]
pub(super) fn watch(net: &mut FcPlane, number: u16) {
    let is_watched =
        net.loops[usize::from(number)].receiving_lanes().iter().any(|lane| net.lanes[*lane as usize].watched);
    if is_watched {
        net.loops[usize::from(number)].report_signals();
    }
}
