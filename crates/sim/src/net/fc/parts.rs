//! Frames and R_RDYs between the parts of a divided network.
//!
//! Each part is a [`Net`] of the whole lab that owns only some of the nodes. A lane between two
//! parts is *cut*: the sender's half of its state is in one part, the receiver's half in the other.
//! A frame or R_RDY for the other half leaves through an [`Outbox`] and has its effect there at a
//! later time, at least [`Lane::lookahead_ps`](super::Lane::lookahead_ps) after the event.

use super::flight::InFlight;
use super::messages::Parcel;
use super::{FcPlane, channels};
use crate::net::sources::Source;
use crate::net::{NEVER, Net};

/// Most events of one recording.
const MOST_RECORDED: usize = 1 << 20;

/// Place of an event among the events of all parts.
///
/// The events of the undivided network are ordered by time and source, except that an event can
/// cause another one at the same time from a smaller source. Within a part, the turn of an event is
/// therefore the largest pair of time and source so far. Sorted by turns, the events of all parts
/// have the order of the undivided network, because no event has an effect on another part at the
/// same time.
pub type Turn = (u64, u32);

/// Value in [`Parts::away`] of a lane with both ends in this part.
const HERE: u8 = u8::MAX;

/// Cut lanes, and everything that leaves through them.
#[derive(Default)]
pub(super) struct Parts {
    /// For each lane, the part at its other end, or [`HERE`]. Empty if the network is not divided.
    away: Vec<u8>,
    /// Outgoing frames and R_RDYs, by part.
    out: Vec<Outbox>,
    /// True while the network is divided or its events are recorded.
    pub notes_events: bool,
    /// Largest source of an event at the current time; only while events are noted.
    source: u32,
    /// Recorded events: time and source.
    profile: Option<Vec<(u64, u32)>>,
}

/// Frames and R_RDYs for another part.
#[derive(Default)]
pub struct Outbox {
    /// Frames with their lanes and, for the part of a control message, the message.
    frames: Vec<(u32, InFlight, Option<Box<Parcel>>)>,
    /// Arrival times of R_RDYs at the sender of a lane, with the lane and the virtual channel.
    r_rdys: Vec<(u32, u64, u8)>,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.r_rdys.is_empty()
    }

    /// Returns the time of the first effect, or [`NEVER`] if there is none.
    pub fn first_effect_ps(&self) -> u64 {
        let frames = self.frames.iter().map(|(_, on_line, _)| on_line.at_ps);
        frames.chain(self.r_rdys.iter().map(|&(_, at_ps, _)| at_ps)).min().unwrap_or(NEVER)
    }

    /// Moves all items behind those of another outbox.
    pub fn append_to(&mut self, other: &mut Outbox) {
        if other.is_empty() {
            std::mem::swap(self, other);
        } else {
            other.frames.append(&mut self.frames);
            other.r_rdys.append(&mut self.r_rdys);
        }
    }
}

impl Parts {
    /// Notes the event that begins at `time`.
    #[cold]
    pub fn begin(&mut self, now: u64, time: u64, source: u32) {
        self.source = if time > now { source } else { self.source.max(source) };
        if let Some(profile) = &mut self.profile
            && profile.len() < MOST_RECORDED
        {
            profile.push((time, source));
        }
    }

    /// Returns the turn of the current event.
    #[inline]
    pub fn turn(&self, now: u64) -> Turn {
        (now, self.source)
    }

    /// Returns whether the other end of a lane is in another part.
    #[inline]
    pub fn is_away(&self, lane: u32) -> bool {
        self.away.get(lane as usize).is_some_and(|&part| part != HERE)
    }

    /// Sets the cut lanes, each with the part at its other end, of a network with `lanes` lanes and
    /// `parts` parts.
    pub fn set_away(&mut self, lanes: usize, parts: usize, cut: impl Iterator<Item = (u32, u8)>) {
        (self.notes_events, self.source) = (true, 0);
        self.away.clear();
        self.away.resize(lanes, HERE);
        self.out.resize_with(parts, Outbox::default);
        cut.for_each(|(lane, part)| self.away[lane as usize] = part);
    }

    /// Ends the division.
    pub fn clear(&mut self) {
        debug_assert!(self.out.iter().all(Outbox::is_empty), "all frames and R_RDYs have been received");
        self.away.clear();
        self.notes_events = false;
    }

    pub fn is_divided(&self) -> bool {
        !self.away.is_empty()
    }

    fn outbox(&mut self, lane: u32) -> &mut Outbox {
        &mut self.out[usize::from(self.away[lane as usize])]
    }
}

/// Returns the turn of the current event.
pub fn turn(net: &Net) -> Turn {
    net.fc.parts.turn(net.events.now)
}

/// Returns whether this is one part of a divided network.
pub fn is_divided(net: &Net) -> bool {
    net.fc.parts.is_divided()
}

/// Starts to record the events.
pub fn begin_profile(net: &mut Net) {
    net.fc.parts.profile = Some(Vec::new());
    net.fc.parts.notes_events = true;
}

/// Returns the number of recorded events.
pub fn profiled(net: &Net) -> usize {
    net.fc.parts.profile.as_ref().map_or(0, Vec::len)
}

/// Place of a recorded event: the lane whose sender (`true`) or receiver (`false`) processed it, or
/// else the timer.
pub type Place = Result<(u32, bool), u32>;

/// Ends the recording of events. Returns their times and places.
pub fn end_profile(net: &mut Net) -> Vec<(u64, Place)> {
    let profile = net.fc.parts.profile.take().unwrap_or_default();
    net.fc.parts.notes_events = false;
    let place = |source| match net.events.sources.decode(source) {
        Source::Arrival(lane) | Source::InputReady(lane) | Source::Watchdog(lane) => Ok((lane, false)),
        Source::Wake(lane) => Ok((lane, true)),
        Source::Timer(timer) => Err(timer),
        // A network with loops or Ethernet is not divided, so their place does not matter.
        Source::Other(_) => Ok((0, false)),
    };
    profile.into_iter().map(|(time, source)| (time, place(source))).collect()
}

/// Returns the time of the next event, or [`NEVER`] if there is none.
pub fn next_event_ps(net: &mut Net) -> u64 {
    net.events.queue.next_time()
}

/// Returns the time at which a timer expires, or [`NEVER`].
pub fn timer_ps(net: &Net, timer: u32) -> u64 {
    net.events.queue.time_of(net.events.sources.timer(timer))
}

/// Sends a frame to the part in which the lane ends.
#[cold]
pub(super) fn send_across(net: &mut FcPlane, lane: u32, on_line: InFlight) {
    let parcel = on_line.frame.message().map(|message| Box::new(net.messages.leave(message, 1)));
    net.parts.outbox(lane).frames.push((lane, on_line, parcel));
}

/// Returns the R_RDY for a buffer that becomes free at `free_ps` to the part in which the lane
/// begins. `channel` is ignored if the lane has no virtual channels.
#[cold]
pub(super) fn return_across(net: &mut FcPlane, lane: u32, free_ps: u64, channel: u8) {
    let at_ps = net.lanes[lane as usize].credit_leaves(free_ps);
    net.parts.outbox(lane).r_rdys.push((lane, at_ps, channel));
}

/// Returns the frames and R_RDYs for another part.
pub fn outbox(net: &mut Net, part: usize) -> &mut Outbox {
    &mut net.fc.parts.out[part]
}

/// Receives the frames and R_RDYs of another part. None has an effect before the current time.
pub fn receive(net: &mut Net, inbox: &mut Outbox) {
    for (number, mut on_line, parcel) in inbox.frames.drain(..) {
        debug_assert!(on_line.at_ps > net.events.now, "a frame on lane {number} comes too late");
        if let Some(parcel) = parcel {
            on_line.frame.set_message(net.fc.messages.enter(*parcel));
        }
        if net.fc.lanes[number as usize].flight.push(on_line) {
            net.events.queue.add(net.events.sources.arrival(number), on_line.at_ps);
        }
    }
    for (number, at_ps, channel) in inbox.r_rdys.drain(..) {
        debug_assert!(at_ps > net.events.now, "an R_RDY of lane {number} comes too late");
        channels::expect_credit(&mut net.fc, &mut net.events, number, channel, at_ps);
    }
}
