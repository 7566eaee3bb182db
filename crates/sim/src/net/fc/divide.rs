//! Division of a network into parts for several threads, and their reunion.

use super::parts::Turn;
use super::{FrameRef, Observed};
use crate::net::Net;
use crate::net::queue::NEVER;

/// State of one part, as numbers of nodes, lanes and timers.
#[derive(Clone, Debug, Default)]
pub struct Share {
    pub switches: Vec<u16>,
    pub nports: Vec<u16>,
    /// Lanes with at least one end in the part.
    pub lanes: Vec<(u32, Half)>,
    pub timers: Vec<u32>,
}

/// The state of a lane that belongs to a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    Both,
    /// That of the sender. The receiver is in this part.
    Sender(u8),
    /// That of the receiver. The sender is in this part.
    Receiver(u8),
}

/// State of a cut lane that both ends read.
#[derive(Clone, Copy, Debug)]
pub struct CutLane {
    lane: u32,
    /// Time of the next run of the watchdog.
    watchdog_ps: u64,
    up: bool,
}

impl Share {
    /// Iterates over the cut lanes, each with the part at the other end.
    fn cut(&self) -> impl Iterator<Item = (u32, u8)> {
        self.lanes.iter().filter_map(|&(lane, half)| match half {
            Half::Both => None,
            Half::Sender(part) | Half::Receiver(part) => Some((lane, part)),
        })
    }
}

/// Returns the common state of the cut lanes of a share.
pub(crate) fn read_cut(net: &Net, share: &Share) -> Vec<CutLane> {
    let read = |(lane, _): (u32, u8)| CutLane {
        lane,
        watchdog_ps: net.events.queue.time_of(net.events.sources.watchdog(lane)),
        up: net.fc.lanes[lane as usize].up,
    };
    share.cut().map(read).collect()
}

/// Clears the times of the watchdogs of the cut lanes of a share.
pub(crate) fn clear_cut(net: &mut Net, share: &Share) {
    share.cut().for_each(|(lane, _)| *net.events.queue.time_mut(net.events.sources.watchdog(lane)) = NEVER);
}

/// Sets the common state of cut lanes. Each end runs the watchdog at its time or earlier,
/// because the times of both ends are needed.
pub(crate) fn put_cut(net: &mut Net, cut: &[CutLane]) {
    for &CutLane { lane, watchdog_ps, up } in cut {
        let time = net.events.queue.time_mut(net.events.sources.watchdog(lane));
        *time = watchdog_ps.min(*time);
        net.fc.lanes[lane as usize].up = up;
    }
}

/// Moves the state of a share to another network of the same lab, which has none of it. Event
/// times move, but events do not: see [`begin_part`] and [`end_part`].
pub(crate) fn hand_over(net: &mut Net, to: &mut Net, share: &Share) {
    let (from_pool, to_pool) = (&mut net.fc.messages, &mut to.fc.messages);
    let mut move_message = |frame: &mut FrameRef| {
        if let Some(message) = frame.message() {
            frame.set_message(to_pool.enter(from_pool.leave(message, 1)));
        }
    };
    for &switch in &share.switches {
        let switch = usize::from(switch);
        net.fc.switches[switch].crossbar.change_frames(&mut move_message);
        std::mem::swap(&mut net.fc.switches[switch], &mut to.fc.switches[switch]);
    }
    for &(number, half) in &share.lanes {
        let lane = number as usize;
        let (own, other) = (&mut net.fc.lanes[lane], &mut to.fc.lanes[lane]);
        if !matches!(half, Half::Sender(_)) {
            own.flight.change_frames(&mut move_message);
            for source in [net.events.sources.input_ready(number), net.events.sources.watchdog(number)] {
                std::mem::swap(net.events.queue.time_mut(source), to.events.queue.time_mut(source));
            }
        }
        if half != Half::Both {
            own.swap_receiver(other);
        }
        if !matches!(half, Half::Receiver(_)) {
            std::mem::swap(own, other);
            std::mem::swap(&mut net.fc.faults[lane], &mut to.fc.faults[lane]);
            std::mem::swap(&mut net.fc.channels[lane], &mut to.fc.channels[lane]);
            if let Some(bundle) = other.bundle {
                to.fc.bundles[usize::from(bundle)] = net.fc.bundles[usize::from(bundle)];
            }
        }
    }
    for &nport in &share.nports {
        // Virtual ports have no frame path of their own.
        if let (Some(own), Some(other)) =
            (net.fc.nports.get_mut(usize::from(nport)), to.fc.nports.get_mut(usize::from(nport)))
        {
            own.queue.move_messages(&mut net.fc.messages, &mut to.fc.messages);
            std::mem::swap(own, other);
        }
    }
    for &timer in &share.timers {
        let source = net.events.sources.timer(timer);
        std::mem::swap(net.events.queue.time_mut(source), to.events.queue.time_mut(source));
    }
}

/// Begins a run as one of `parts` parts at `now`.
pub(crate) fn begin_part(net: &mut Net, share: &Share, parts: usize, now: u64) {
    net.fc.parts.set_away(net.fc.lanes.len(), parts, share.cut());
    share.cut().for_each(|(lane, _)| net.fc.lanes[lane as usize].special = true);
    net.fc.recorder.begin_turns();
    net.events.now = now;
    reschedule(net);
}

/// Ends [`begin_part`]. Returns the records of the watched lanes with their turns.
pub(crate) fn end_part(net: &mut Net) -> Vec<(Turn, Observed)> {
    net.fc.parts.clear();
    net.fc.recorder.end_turns()
}

/// Adds the counts of another part, and restarts them there.
pub(crate) fn add_counts(net: &mut Net, part: &mut Net) {
    let fate = std::mem::take(&mut part.fc.fate);
    net.fc.fate.sent += fate.sent;
    net.fc.fate.delivered += fate.delivered;
    net.fc.fate.frame_hops += fate.frame_hops;
    net.fc.fate.lost.iter_mut().zip(fate.lost).for_each(|(sum, lost)| *sum += lost);
    part.fc.recorder.move_losses(&mut net.fc.recorder);
    net.events.queue.count_popped(part.events.queue.take_popped());
}

/// Fills the event queue again from the event times of lanes and other sources.
pub(crate) fn reschedule(net: &mut Net) {
    net.events.queue.restart(net.events.now);
    for (number, lane) in (0..).zip(&net.fc.lanes) {
        net.events.queue.move_event(net.events.sources.arrival(number), NEVER, lane.flight.next_ps());
        net.events.queue.move_event(net.events.sources.wake(number), NEVER, lane.wake_ps());
    }
    net.events.queue.add_timed();
}

/// Returns the earliest time after which a watchdog may discard frames or reset a link. Unless
/// events before that time change the state, it does so at this time.
pub(crate) fn next_watchdog_effect_ps(net: &Net) -> u64 {
    let mut first = (net.events.now + net.fc.hold_time_ps).min(net.events.now + net.fc.e_d_tov_ps);
    for (number, lane) in (0..).zip(&net.fc.lanes) {
        let mut due = NEVER;
        if let super::End::Switch { switch, port } = lane.to
            && let Some(oldest) = net.fc.switches[usize::from(switch)].crossbar.oldest(port)
        {
            due = oldest + net.fc.hold_time_ps;
        }
        if lane.up && lane.credit_wait_since_ps != NEVER {
            due = due.min(lane.credit_wait_since_ps + net.fc.e_d_tov_ps);
        }
        if due != NEVER {
            first = first.min(due.max(net.events.queue.time_of(net.events.sources.watchdog(number))));
        }
    }
    first
}
