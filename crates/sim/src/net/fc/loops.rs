//! Arbitrated loops on the frame path: `LoopPlane`.
//!
//! A loop takes the frames of its ports out of their send queues and passes them to the engine of
//! [`sanloom_fc::arbitrated_loop`], circuit by circuit. The engine computes when each frame leaves
//! and arrives; the arrival is then an event of the lane that ends at the receiver. A port has one
//! lane to the loop and one from it, which only count and record.
//!
//! # Simplifications
//!
//! - A port frees each receive buffer of the loop at once. Frames that wait for the bus of a host
//!   are in the memory of its adapter.
//! - Frames in a circuit cannot be taken back, for example by an abort of their exchange.

use super::flight::InFlight;
use super::frame_ref::FrameRef;
use super::lane::{End, Lane, Sent};
use super::nport::Next;
use super::{FcPlane, Loss, LossSite, loop_records};
use crate::net::Net;
use crate::net::events::Events;
use crate::net::queue::NEVER;

pub use loop_records::{initialisation_frame, lip};
use sanloom_fc::arbitrated_loop::{
    Loop, LoopConfig, LoopFrame, LoopPort, LoopRate, LoopTime, Output, Request, Tenancy,
};
use sanloom_wire::arbitrated_loop::AlPa;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of requests that a port has in the engine. More than one lets the engine know
/// that the port has more to send.
const MOST_REQUESTS: u32 = 4;

/// Maximum number of frames of one request.
const MOST_FRAMES: usize = 1024;

/// Bit of the lane number of an N_Port on a loop. No lane has such a number, so an attempt to send
/// on it ends here, and attempts on other lanes need not ask.
const ON_LOOP: u32 = 1 << 31;

/// Number by which an N_Port sends on a lane to a loop.
pub(super) fn loop_tx(lane: u32) -> u32 {
    lane | ON_LOOP
}

/// Number of the lane by which an N_Port sends.
pub(super) fn lane_of(tx: u32) -> u32 {
    if tx == super::NO_LANE { tx } else { tx & !ON_LOOP }
}

/// An arbitrated loop.
pub(super) struct LoopPlane {
    /// Carries frames; `None` during the initialisation.
    engine: Option<Loop>,
    /// Ports in the order of the loop.
    members: Vec<Member>,
    /// Index of the member of each port of the engine.
    ring: Vec<usize>,
    /// Requests in the engine, by tag.
    requests: BTreeMap<u64, Sending>,
    next_tag: u64,
    /// Members whose send queue may have frames that are not in the engine.
    ready: Vec<usize>,
    /// Members that wait for room at the FL_Port, the longest wait first.
    blocked: VecDeque<usize>,
    /// A link of the loop is watched.
    is_watched: bool,
}

/// A port of a loop.
struct Member {
    /// Port number at the loop.
    port: u16,
    /// N_Port, or `None` for the FL_Port of a switch.
    nport: Option<u16>,
    /// Lanes to the loop and from it.
    tx: u32,
    rx: u32,
    /// Port number of the engine; `None` without an address.
    place: Option<usize>,
    /// The member is among the ready or the blocked ones.
    is_ready: bool,
    /// Requests in the engine.
    requests: u32,
    /// Frames that are not in the engine: those that an initialisation interrupted, those that wait
    /// for room at the FL_Port, and all frames of an FL_Port.
    unsent: VecDeque<FrameRef>,
    count: MemberCount,
}

/// A request in the engine.
struct Sending {
    member: usize,
    /// The frames go to the FL_Port.
    to_switch: bool,
    frames: VecDeque<FrameRef>,
}

/// Counters of a port of a loop since they were reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemberCount {
    /// Tenancies that the port has won.
    pub tenancies: u64,
    /// Circuits of these tenancies.
    pub circuits: u64,
    /// Time of arbitration, in ps: the sum over all tenancies, and the longest one.
    pub arbitration_ps: u64,
    pub longest_ps: u64,
    /// Time for which the port has held the loop, in ps.
    pub held_ps: u64,
}

/// A port for [`start`].
pub struct Participant {
    /// Port number at the loop.
    pub port: u16,
    pub config: LoopPort,
}

/// Returns the loops of a network, of which no port participates yet.
pub(super) fn of_lanes(count: usize, lanes: &mut [Lane]) -> Vec<LoopPlane> {
    let mut loops: Vec<LoopPlane> = (0..count).map(|_| LoopPlane::new()).collect();
    for (number, lane) in (0..).zip(lanes.iter_mut()) {
        // The lane from a switch carries frames as any other does.
        if matches!(lane.from, End::Loop { .. }) || matches!((lane.from, lane.to), (End::NPort(_), End::Loop { .. })) {
            (lane.on_loop, lane.special) = (true, true);
        }
        if let End::Loop { number: of_loop, port } = lane.to {
            let nport = if let End::NPort(nport) = lane.from { Some(nport) } else { None };
            // The lanes of a link differ in the lowest bit.
            loops[usize::from(of_loop)].members.push(Member {
                port,
                nport,
                tx: number,
                rx: number ^ 1,
                place: None,
                is_ready: false,
                requests: 0,
                unsent: VecDeque::new(),
                count: MemberCount::default(),
            });
        }
    }
    loops.iter_mut().for_each(|plane| plane.members.sort_by_key(|member| member.port));
    loops
}

impl LoopPlane {
    fn new() -> LoopPlane {
        LoopPlane {
            engine: None,
            members: Vec::new(),
            ring: Vec::new(),
            requests: BTreeMap::new(),
            next_tag: 0,
            ready: Vec::new(),
            blocked: VecDeque::new(),
            is_watched: false,
        }
    }

    fn make_ready(&mut self, index: usize) {
        if !std::mem::replace(&mut self.members[index].is_ready, true) {
            self.ready.push(index);
        }
    }

    /// Lets the engine report the words of each tenancy.
    pub(super) fn report_signals(&mut self) {
        self.is_watched = true;
        self.engine.iter_mut().for_each(Loop::report_signals);
    }

    /// Lanes of a port of the engine: to the loop, and from it.
    pub(super) fn lanes_of(&self, place: usize) -> (u32, u32) {
        let member = &self.members[self.ring[place]];
        (member.tx, member.rx)
    }

    /// Number at the loop of a port of the engine.
    pub(super) fn port_of(&self, place: usize) -> u16 {
        self.members[self.ring[place]].port
    }

    /// Lanes of a port by its number at the loop: to the loop, and from it.
    pub(super) fn lanes_at(&self, port: u16) -> Option<(u32, u32)> {
        let at = self.members.binary_search_by_key(&port, |member| member.port).ok()?;
        Some((self.members[at].tx, self.members[at].rx))
    }

    /// Lanes to the loop from its ports.
    pub(super) fn sending_lanes(&self) -> Vec<u32> {
        self.members.iter().map(|member| member.tx).collect()
    }

    /// Lanes from the loop to its ports.
    pub(super) fn receiving_lanes(&self) -> Vec<u32> {
        self.members.iter().map(|member| member.rx).collect()
    }

    /// Resets the counters.
    pub(super) fn restart_counts(&mut self) {
        self.members.iter_mut().for_each(|member| member.count = MemberCount::default());
    }
}

/// Returns the counters of the ports of a loop, in its order, with their port numbers.
pub fn counts(net: &FcPlane, number: u16) -> Vec<(u16, MemberCount)> {
    net.loops[usize::from(number)].members.iter().map(|member| (member.port, member.count)).collect()
}

/// Starts a loop after its initialisation. `ports` are its participants in the order of the loop.
pub fn start(net: &mut Net, number: u16, rate: LoopRate, ports: Vec<Participant>) {
    let Net { events, fc: net, .. } = net;
    let plane = &mut net.loops[usize::from(number)];
    plane.ring.clear();
    for (place, participant) in ports.iter().enumerate() {
        let found = plane.members.iter().position(|member| member.port == participant.port);
        debug_assert!(found.is_some(), "port {} is linked to the loop", participant.port);
        if let Some(index) = found {
            plane.members[index].place = Some(place);
            plane.make_ready(index);
            plane.ring.push(index);
        }
    }
    let config = LoopConfig { rate, ports: ports.into_iter().map(|participant| participant.config).collect() };
    let engine = Loop::new(config);
    debug_assert!(engine.is_ok(), "validation refuses such a loop: {:?}", engine.err());
    plane.engine = engine.ok();
    loop_records::watch(net, number);
    run(net, events, number);
}

/// Records what happens on loops with a watched link from now on.
pub fn watch(net: &mut FcPlane) {
    (0..net.loops.len() as u16).for_each(|number| loop_records::watch(net, number));
}

/// Returns whether a link of a loop is watched.
pub fn is_watched(net: &FcPlane, number: u16) -> bool {
    net.loops[usize::from(number)].is_watched
}

/// Interrupts a loop, because a LIP has begun. Frames on the loop are lost. The rest of their
/// requests is sent after the initialisation, except from a port without light.
pub fn interrupt(net: &mut Net, number: u16) {
    let Net { events, fc: net, .. } = net;
    let now = LoopTime::from_ps(events.now);
    let Some(mut engine) = net.loops[usize::from(number)].engine.take() else { return };
    let left = engine.interrupt(now);
    drain(net, events, number, &mut engine);
    let plane = &mut net.loops[usize::from(number)];
    let mut frames: BTreeMap<usize, VecDeque<FrameRef>> = BTreeMap::new();
    for (_, request) in left {
        if let Some(sending) = plane.requests.remove(&request.tag) {
            frames.entry(sending.member).or_default().extend(sending.frames);
        }
    }
    for (member, mut frames) in frames {
        // Frames that have not entered the engine come after those that have.
        frames.append(&mut plane.members[member].unsent);
        plane.members[member].unsent = frames;
    }
    events.queue.schedule(events.sources.arbitrated_loop(number), NEVER);
    for index in 0..net.loops[usize::from(number)].members.len() {
        let member = &mut net.loops[usize::from(number)].members[index];
        (member.place, member.requests) = (None, 0);
        let (tx, rx, nport) = (member.tx, member.rx, member.nport);
        if !net.lanes[tx as usize].up {
            for frame in std::mem::take(&mut member.unsent) {
                match nport {
                    // An N_Port has not sent them yet.
                    Some(_) => frame.message().into_iter().for_each(|message| net.messages.part_ended(message)),
                    None => net.count_loss(&frame, Loss::LinkDown, LossSite::Receiver(tx)),
                }
            }
        }
        let lane = &mut net.lanes[rx as usize];
        let arrival_ps = lane.flight.next_ps();
        events.queue.move_event(events.sources.arrival(rx), arrival_ps, NEVER);
        for frame in lane.flight.take() {
            net.count_loss(&frame, Loss::LoopInitialised, LossSite::Line(rx));
        }
    }
}

/// Takes a frame of a switch into the memory of its FL_Port.
#[inline(never)]
pub(super) fn take(net: &mut FcPlane, events: &mut Events, lane: u32, frame: FrameRef) {
    let End::Loop { number, .. } = net.lanes[lane as usize].to else { return };
    let plane = &mut net.loops[usize::from(number)];
    if let Some(index) = plane.members.iter().position(|member| member.tx == lane) {
        plane.members[index].unsent.push_back(frame);
        become_ready(net, events, number, index);
    }
}

/// Number of frames in the memory of the FL_Port at the end of a lane.
#[inline(never)]
pub(super) fn held(net: &FcPlane, lane: u32) -> u32 {
    let End::Loop { number, .. } = net.lanes[lane as usize].to else { return 0 };
    let plane = &net.loops[usize::from(number)];
    let Some(index) = plane.members.iter().position(|member| member.tx == lane && member.nport.is_none()) else {
        return 0;
    };
    let in_engine = plane.requests.values().filter(|sending| sending.member == index);
    (plane.members[index].unsent.len() + in_engine.map(|sending| sending.frames.len()).sum::<usize>()) as u32
}

/// Number of frames in the memory of all FL_Ports.
#[inline(never)]
pub(super) fn all_held(net: &FcPlane) -> u64 {
    let members = net.loops.iter().flat_map(|plane| &plane.members).filter(|member| member.nport.is_none());
    members.map(|member| u64::from(held(net, member.tx))).sum()
}

/// Takes note that the input of a switch at the end of a lane from a loop has room again.
#[inline(never)]
pub(super) fn has_room(net: &mut FcPlane, events: &mut Events, lane: u32) {
    let End::Loop { number, .. } = net.lanes[lane as usize].from else { return };
    let plane = &net.loops[usize::from(number)];
    if plane.engine.is_some() && !plane.blocked.is_empty() {
        events.queue.schedule_earlier(events.sources.arbitrated_loop(number), events.now);
    }
}

/// Takes note that an N_Port has frames. `tx` is its [`loop_tx`]; other numbers have no effect.
/// Frames enter the engine after all others of this moment, because a request takes all of one
/// destination.
#[inline(never)]
pub(super) fn has_frames(net: &mut FcPlane, events: &mut Events, tx: u32) {
    let lane = lane_of(tx);
    if lane == tx {
        return;
    }
    let End::Loop { number, port } = net.lanes[lane as usize].to else { return };
    let plane = &mut net.loops[usize::from(number)];
    if let Ok(index) = plane.members.binary_search_by_key(&port, |member| member.port) {
        become_ready(net, events, number, index);
    }
}

fn become_ready(net: &mut FcPlane, events: &mut Events, number: u16, index: usize) {
    let plane = &mut net.loops[usize::from(number)];
    plane.make_ready(index);
    if plane.engine.is_some() {
        events.queue.schedule_earlier(events.sources.arbitrated_loop(number), events.now);
    }
}

/// Runs a loop at the current time.
#[inline(never)]
pub(in crate::net) fn run(net: &mut FcPlane, events: &mut Events, number: u16) {
    let Some(mut engine) = net.loops[usize::from(number)].engine.take() else { return };
    let mut next_ps = NEVER;
    let mut waiting = Vec::new();
    loop {
        // Requests of one moment are in the order of the loop, after those that wait for room.
        let plane = &mut net.loops[usize::from(number)];
        plane.ready.sort_unstable();
        let blocked = std::mem::take(&mut plane.blocked);
        for index in blocked.into_iter().chain(std::mem::take(&mut plane.ready)) {
            net.loops[usize::from(number)].members[index].is_ready = false;
            match fill(net, events, number, index, &mut engine) {
                Fill::Done => {}
                Fill::Pause(at_ps) => {
                    next_ps = next_ps.min(at_ps);
                    waiting.push(index);
                }
                Fill::NoRoom => {
                    let plane = &mut net.loops[usize::from(number)];
                    plane.members[index].is_ready = true;
                    plane.blocked.push_back(index);
                }
            }
        }
        engine.handle_timeout(LoopTime::from_ps(events.now));
        drain(net, events, number, &mut engine);
        // A circuit that has opened leaves its port room for more.
        if net.loops[usize::from(number)].ready.is_empty() {
            break;
        }
    }
    // The first picosecond at which the time has come.
    let of_engine_ps = engine.poll_timeout().map_or(NEVER, |time| (time + LoopTime::from_ps(1) - LoopTime(1)).ps());
    events.queue.schedule_earlier(events.sources.arbitrated_loop(number), next_ps.min(of_engine_ps).max(events.now));
    let plane = &mut net.loops[usize::from(number)];
    waiting.into_iter().for_each(|index| plane.make_ready(index));
    plane.engine = Some(engine);
}

/// Why no further frame of a port moves to the engine.
enum Fill {
    /// None is left, or a circuit must open first.
    Done,
    /// A pause ends at this time, in ps.
    Pause(u64),
    /// The switch at the loop has no buffer for it.
    NoRoom,
}

/// Moves frames of a port to the engine.
fn fill(net: &mut FcPlane, events: &mut Events, number: u16, index: usize, engine: &mut Loop) -> Fill {
    let now = events.now;
    loop {
        let plane = &mut net.loops[usize::from(number)];
        let member = &mut plane.members[index];
        let lane = &net.lanes[member.tx as usize];
        let (tx, nport) = (member.tx, member.nport);
        let free = member.place.filter(|_| lane.up && member.requests < MOST_REQUESTS);
        let Some(place) = free else { return Fill::Done };
        let mut frames = take_unsent(&mut member.unsent);
        if let Some(nport) = nport.filter(|_| frames.is_empty()) {
            // A pause begins when the last frame before it has left.
            let is_free = member.requests == 0 && lane.free_at_ps <= now;
            let queue = &mut net.nports[usize::from(nport)].queue;
            if let Next::Pause(until_ps) =
                queue.take_for_circuit((now, is_free), &net.messages, MOST_FRAMES, &mut frames)
            {
                return Fill::Pause(until_ps);
            }
            if frames.is_empty() {
                return match !queue.is_empty() && member.requests == 0 {
                    true => Fill::Pause(lane.free_at_ps),
                    false => Fill::Done,
                };
            }
        }
        let Some(first) = frames.front() else { return Fill::Done };
        let to = destination(first, nport.is_some());
        let to_switch = to == Some(AlPa::FL_PORT);
        if to_switch {
            let rest = frames.split_off(room(net, number).min(frames.len()));
            let unsent = &mut net.loops[usize::from(number)].members[index].unsent;
            rest.into_iter().rev().for_each(|frame| unsent.push_front(frame));
            if frames.is_empty() {
                return Fill::NoRoom;
            }
        }
        let sizes = frames.iter().map(FrameRef::len_bytes).collect();
        let plane = &mut net.loops[usize::from(number)];
        let tag = plane.next_tag;
        plane.next_tag += 1;
        let is_sent = to.is_some_and(|to| {
            engine.request(LoopTime::from_ps(now), place, Request { to, frames: sizes, full_duplex: true, tag })
        });
        if is_sent {
            plane.requests.insert(tag, Sending { member: index, to_switch, frames });
            plane.members[index].requests += 1;
        } else {
            lose(net, events, (tx, nport.is_some()), frames);
        }
    }
}

/// Returns the address on the loop of a frame's destination. A frame to another area goes to the
/// FL_Port, which sends to its loop only. `None` if no port can have the address.
fn destination(frame: &FrameRef, from_node: bool) -> Option<AlPa> {
    let (s_id, d_id) = (frame.s_id().to_u32(), frame.d_id().to_u32());
    match from_node && s_id >> 8 != d_id >> 8 {
        true => Some(AlPa::FL_PORT),
        false => AlPa::new(d_id as u8),
    }
}

/// Returns the number of frames for which the input of the switch at a loop has buffers. A loop
/// without an FL_Port has room, so that its ports learn that there is none.
fn room(net: &FcPlane, number: u16) -> usize {
    let plane = &net.loops[usize::from(number)];
    let Some(rx) = plane.members.iter().find(|member| member.nport.is_none()).map(|member| member.rx) else {
        return MOST_FRAMES;
    };
    let lane = &net.lanes[rx as usize];
    let coming = plane.requests.values().filter(|sending| sending.to_switch).map(|sending| sending.frames.len());
    let used = coming.sum::<usize>() + lane.flight.len() + net.held_by_receiver(rx) as usize;
    (lane.bb_credit as usize).saturating_sub(used)
}

/// Removes the first frames, which go to one destination.
fn take_unsent(unsent: &mut VecDeque<FrameRef>) -> VecDeque<FrameRef> {
    let of_first = unsent.iter().take_while(|frame| frame.d_id() == unsent[0].d_id()).count();
    unsent.drain(..of_first).collect()
}

/// Counts frames to a port that does not exist. `tx` is the lane of their sender, with true for an
/// N_Port.
fn lose(net: &mut FcPlane, events: &mut Events, (tx, is_nport): (u32, bool), frames: VecDeque<FrameRef>) {
    for frame in frames {
        // Frames of an FL_Port were sent by another port.
        net.fate.sent += u64::from(is_nport);
        net.count_loss(&frame, Loss::NoLoopPort, LossSite::Line(tx));
        if !is_nport {
            net.return_credit(events, tx, events.now);
        }
    }
}

/// Executes the outputs of the engine.
fn drain(net: &mut FcPlane, events: &mut Events, number: u16, engine: &mut Loop) {
    while let Some(output) = engine.poll_output() {
        match output {
            Output::Frame(frame) => send(net, events, number, &frame),
            Output::NoSuchPort { tag, .. } => {
                let plane = &mut net.loops[usize::from(number)];
                let Some(Sending { member, frames, .. }) = plane.requests.remove(&tag) else { continue };
                let sender = (plane.members[member].tx, plane.members[member].nport.is_some());
                lose(net, events, sender, frames);
                net.loops[usize::from(number)].ended(member);
            }
            Output::Tenancy(tenancy) => {
                net.loops[usize::from(number)].add(&tenancy);
                if net.loops[usize::from(number)].is_watched {
                    loop_records::tenancy(net, events, number, &tenancy);
                }
            }
            Output::Signal(signal) => loop_records::signal(net, events, number, &signal),
        }
    }
}

impl LoopPlane {
    fn add(&mut self, tenancy: &Tenancy) {
        let member = &mut self.members[self.ring[tenancy.owner]].count;
        let waited_ps = (tenancy.won - tenancy.wish).ps();
        member.tenancies += 1;
        member.circuits += u64::from(tenancy.circuits);
        member.arbitration_ps += waited_ps;
        member.longest_ps = member.longest_ps.max(waited_ps);
        member.held_ps += (tenancy.left - tenancy.won).ps();
    }

    /// Takes note that a circuit has taken the last frame of a request.
    fn ended(&mut self, index: usize) {
        self.members[index].requests -= 1;
        self.make_ready(index);
    }
}

/// Puts a frame on the loop.
fn send(net: &mut FcPlane, events: &mut Events, number: u16, of_engine: &LoopFrame) {
    let plane = &mut net.loops[usize::from(number)];
    let Some(sending) = plane.requests.get_mut(&of_engine.tag) else { return };
    let Some(mut frame) = sending.frames.pop_front() else { return };
    let (member, is_last) = (sending.member, sending.frames.is_empty());
    let (tx, is_nport) = (plane.members[member].tx, plane.members[member].nport.is_some());
    let rx = plane.members[plane.ring[of_engine.to]].rx;
    if is_last {
        plane.requests.remove(&of_engine.tag);
        plane.ended(member);
    }
    let line_ps = net.lanes[tx as usize].time_of(frame.wire_bytes());
    let (start_ps, arrival_ps) = (of_engine.start.ps(), of_engine.arrival.ps().max(events.now));
    let end_ps = start_ps + line_ps;
    if is_nport {
        net.fate.sent += 1;
        if is_last {
            net.lanes[tx as usize].free_at_ps = end_ps;
        }
    } else {
        // The frame has left the memory of the FL_Port.
        net.return_credit(events, tx, end_ps);
    }
    // At the end of the frame's own link, it begins when it arrives there. The lane from a switch
    // has counted its frames.
    let lanes = [(tx, start_ps), (rx, arrival_ps.saturating_sub(line_ps))];
    for (lane, start_ps) in lanes {
        let end_ps = start_ps + line_ps;
        if is_nport || lane == rx {
            net.lanes[lane as usize].count_frame(&frame);
            if net.lanes[lane as usize].faulty && net.apply_frame_faults(events, lane, &mut frame, end_ps) {
                return;
            }
        }
        if net.lanes[lane as usize].watched {
            let sent = Sent { start_ps, end_ps, at_ps: arrival_ps, tail_ps: arrival_ps };
            net.recorder.frame(lane, &net.lanes[lane as usize], &net.messages, frame, sent);
            net.recorder.stamp(net.parts.turn(events.now));
        }
    }
    // A switch needs its latency; an N_Port has none.
    let at_ps = arrival_ps + net.lanes[rx as usize].latency_ps;
    if net.lanes[rx as usize].flight.push(InFlight::new(frame, at_ps, at_ps)) {
        events.queue.add(events.sources.arrival(rx), at_ps);
    }
}
