//! Keep-alives of FCIP links, and the end of links without them.

use super::{Fcip, InStream, Unit};
use crate::net::{NEVER, Net};
use sanloom_wire::fcip::{KeepAlive, SPECIAL_BYTES};

/// Bytes of an LKA and of its accept in their encapsulation: 28, SOF 4, header 24, payload 4,
/// CRC 4, EOF 4.
const BYTES: u64 = 68;

/// Signs of life of the other end, as one end has received them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    /// Time of the last segment.
    heard_ps: u64,
    /// Time of the LKA, if nothing was received since.
    asked_ps: Option<u64>,
}

/// Returns the position of a keep-alive. No frame of a lane has it.
pub(super) fn position(kind: KeepAlive) -> u32 {
    match kind {
        KeepAlive::Request => u32::MAX,
        KeepAlive::Accept => u32::MAX - 1,
    }
}

/// Returns the kind of a keep-alive; `None` for the position of a frame of a lane.
pub(super) fn kind(of: u32) -> Option<KeepAlive> {
    [KeepAlive::Request, KeepAlive::Accept].into_iter().find(|kind| position(*kind) == of)
}

/// Appends a keep-alive to the stream of an end.
pub(super) fn send(fcip: &mut Fcip, net: &mut Net, number: usize, side: usize, kind: KeepAlive) {
    let sent_ps = net.now();
    let direction = &mut fcip.tunnels[number].directions[side];
    direction.end += BYTES;
    direction.frames.push_back(InStream { end: direction.end, position: position(kind), sent_ps });
    direction.keep(Unit::KeepAlive { kind, sent_ps });
    fcip.offer(net, number, side);
}

/// Notes that an end has received something. The link is up when both ends have the special frame.
pub(super) fn hear(fcip: &mut Fcip, net: &mut Net, number: usize, end: usize) {
    let now = net.now();
    let tunnel = &mut fcip.tunnels[number];
    tunnel.watches[end] = Watch { heard_ps: now, asked_ps: None };
    if !tunnel.is_up && tunnel.directions.iter().all(|direction| direction.consumed > SPECIAL_BYTES as u64) {
        tunnel.is_up = true;
        tunnel.watches = [Watch { heard_ps: now, asked_ps: None }; 2];
        fcip.changed.push(tunnel.plan.link);
        net.set_timer_earlier(fcip.keep_alive_timer, now + tunnel.plan.keep_alive_ps);
    }
}

/// Notes that a segment has arrived at an end, with data or without.
pub(super) fn arrived(fcip: &mut Fcip, now_ps: u64, number: usize, end: usize) {
    fcip.tunnels[number].watches[end] = Watch { heard_ps: now_ps, asked_ps: None };
}

/// Ends a link, and opens another connection.
pub(super) fn end(fcip: &mut Fcip, net: &mut Net, number: usize) {
    let tunnel = &mut fcip.tunnels[number];
    if std::mem::take(&mut tunnel.is_up) {
        fcip.changed.push(tunnel.plan.link);
    }
    fcip.restart(net, number);
}

/// Sends the LKAs that are due, and ends links whose time is over.
pub(super) fn check(fcip: &mut Fcip, net: &mut Net) {
    let (now, mut next_ps) = (net.now(), NEVER);
    for number in 0..fcip.tunnels.len() {
        for side in 0..2 {
            let tunnel = &mut fcip.tunnels[number];
            if !tunnel.is_up {
                break;
            }
            if tunnel.is_stopped[side] {
                continue;
            }
            let wait_ps = tunnel.plan.keep_alive_ps;
            let Watch { heard_ps, asked_ps } = tunnel.watches[side];
            let limit_ps = asked_ps.unwrap_or(heard_ps) + wait_ps;
            if limit_ps > now {
                next_ps = next_ps.min(limit_ps);
            } else if asked_ps.is_none() {
                tunnel.watches[side].asked_ps = Some(now);
                next_ps = next_ps.min(now + wait_ps);
                send(fcip, net, number, side, KeepAlive::Request);
            } else {
                end(fcip, net, number);
            }
        }
    }
    net.set_timer_earlier(fcip.keep_alive_timer, next_ps);
}
