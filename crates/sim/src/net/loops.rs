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
use super::queue::NEVER;
use super::{Loss, LossSite, Net};
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
    tenancy_cost_ps: Option<u64>,
    count: LoopCount,
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
    /// The send queue may have frames that are not in the engine.
    has_frames: bool,
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

/// Counters of a loop since they were reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopCount {
    /// Tenancies that have ended.
    pub tenancies: u64,
    /// Circuits of these tenancies.
    pub circuits: u64,
    /// Time from the end of arbitration to the end of each tenancy, in ps.
    pub held_ps: u64,
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
                has_frames: false,
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
            tenancy_cost_ps: None,
            count: LoopCount::default(),
        }
    }

    /// Resets the counters.
    pub(super) fn restart_counts(&mut self) {
        self.count = LoopCount::default();
        self.members.iter_mut().for_each(|member| member.count = MemberCount::default());
    }
}

/// Returns the counters of a loop and, in the order of the loop, of its ports.
pub fn count(net: &Net, number: u16) -> (LoopCount, Vec<(u16, MemberCount)>) {
    let plane = &net.loops[usize::from(number)];
    (plane.count, plane.members.iter().map(|member| (member.port, member.count)).collect())
}

/// Returns the time that a tenancy of the first two ports costs beside its frames, in ps; see
/// [`LoopConfig::tenancy_cost`]. `None` if the loop has not been initialised.
pub fn tenancy_cost_ps(net: &Net, number: u16) -> Option<u64> {
    net.loops[usize::from(number)].tenancy_cost_ps
}

/// Starts a loop after its initialisation. `ports` are its participants in the order of the loop.
pub fn start(net: &mut Net, number: u16, rate: LoopRate, ports: Vec<Participant>) {
    let plane = &mut net.loops[usize::from(number)];
    plane.ring.clear();
    for (place, participant) in ports.iter().enumerate() {
        let found = plane.members.iter().position(|member| member.port == participant.port);
        debug_assert!(found.is_some(), "port {} is linked to the loop", participant.port);
        if let Some(index) = found {
            plane.members[index].place = Some(place);
            plane.members[index].has_frames = true;
            plane.ring.push(index);
        }
    }
    let config = LoopConfig { rate, ports: ports.into_iter().map(|participant| participant.config).collect() };
    plane.tenancy_cost_ps = config.tenancy_cost(0, 1).map(LoopTime::ps);
    let engine = Loop::new(config);
    debug_assert!(engine.is_ok(), "validation refuses such a loop: {:?}", engine.err());
    plane.engine = engine.ok();
    run(net, number);
}

/// Interrupts a loop, because a LIP has begun. Frames on the loop are lost. The rest of their
/// requests is sent after the initialisation, except from a port without light.
pub fn interrupt(net: &mut Net, number: u16) {
    let now = LoopTime::from_ps(net.now);
    let Some(mut engine) = net.loops[usize::from(number)].engine.take() else { return };
    let left = engine.interrupt(now);
    drain(net, number, &mut engine);
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
    net.queue.schedule(net.sources.arbitrated_loop(number), NEVER);
    for index in 0..net.loops[usize::from(number)].members.len() {
        let member = &mut net.loops[usize::from(number)].members[index];
        (member.place, member.requests) = (None, 0);
        let (tx, rx, nport) = (member.tx, member.rx, member.nport);
        if !net.lanes[tx as usize].up {
            let unsent = std::mem::take(&mut member.unsent);
            for frame in unsent {
                match nport {
                    // An N_Port has not sent them yet.
                    Some(_) => frame.message().into_iter().for_each(|message| net.messages.part_ended(message)),
                    None => net.count_loss(&frame, Loss::LinkDown, LossSite::Receiver(tx)),
                }
            }
        }
        let lane = &mut net.lanes[rx as usize];
        let arrival_ps = lane.flight.next_ps();
        net.queue.move_event(net.sources.arrival(rx), arrival_ps, NEVER);
        for frame in lane.flight.take() {
            net.count_loss(&frame, Loss::LoopInitialised, LossSite::Line(rx));
        }
    }
}

/// Takes a frame of a switch into the memory of its FL_Port.
pub(super) fn take(net: &mut Net, lane: u32, frame: FrameRef) {
    let End::Loop { number, .. } = net.lanes[lane as usize].to else { return };
    if let Some(member) = net.loops[usize::from(number)].members.iter_mut().find(|member| member.tx == lane) {
        member.unsent.push_back(frame);
    }
    has_frames(net, lane);
}

/// Number of frames in the memory of the FL_Port at the end of a lane.
pub(super) fn held(net: &Net, lane: u32) -> u32 {
    let End::Loop { number, .. } = net.lanes[lane as usize].to else { return 0 };
    let plane = &net.loops[usize::from(number)];
    let Some(index) = plane.members.iter().position(|member| member.tx == lane && member.nport.is_none()) else {
        return 0;
    };
    let in_engine = plane.requests.values().filter(|sending| sending.member == index);
    (plane.members[index].unsent.len() + in_engine.map(|sending| sending.frames.len()).sum::<usize>()) as u32
}

/// Number of frames in the memory of all FL_Ports.
pub(super) fn all_held(net: &Net) -> u64 {
    let members = net.loops.iter().flat_map(|plane| &plane.members).filter(|member| member.nport.is_none());
    members.map(|member| u64::from(held(net, member.tx))).sum()
}

/// Takes note that the input of a switch at the end of a lane from a loop has room again.
pub(super) fn has_room(net: &mut Net, lane: u32) {
    let End::Loop { number, .. } = net.lanes[lane as usize].from else { return };
    let plane = &net.loops[usize::from(number)];
    if plane.engine.is_some() && plane.members.iter().any(|member| member.has_frames) {
        net.queue.schedule_earlier(net.sources.arbitrated_loop(number), net.now);
    }
}

/// Takes note that the N_Port at the beginning of a lane to a loop has frames. Frames enter the
/// engine after all others of this moment, because a request takes all of one destination.
#[inline(never)]
pub(super) fn has_frames(net: &mut Net, lane: u32) {
    let End::Loop { number, .. } = net.lanes[lane as usize].to else { return };
    let plane = &mut net.loops[usize::from(number)];
    if let Some(member) = plane.members.iter_mut().find(|member| member.tx == lane) {
        member.has_frames = true;
    }
    if plane.engine.is_some() {
        net.queue.schedule_earlier(net.sources.arbitrated_loop(number), net.now);
    }
}

/// Runs a loop at the current time.
#[inline(never)]
pub(super) fn run(net: &mut Net, number: u16) {
    let Some(mut engine) = net.loops[usize::from(number)].engine.take() else { return };
    for member in 0..net.loops[usize::from(number)].members.len() {
        if net.loops[usize::from(number)].members[member].has_frames {
            fill(net, number, member, &mut engine);
        }
    }
    engine.handle_timeout(LoopTime::from_ps(net.now));
    drain(net, number, &mut engine);
    // The first picosecond at which the time has come.
    let next_ps = engine.poll_timeout().map_or(NEVER, |time| (time + LoopTime::from_ps(1) - LoopTime(1)).ps());
    net.queue.schedule_earlier(net.sources.arbitrated_loop(number), next_ps.max(net.now));
    net.loops[usize::from(number)].engine = Some(engine);
}

/// Moves frames of a port to the engine.
fn fill(net: &mut Net, number: u16, index: usize, engine: &mut Loop) {
    let now = net.now;
    loop {
        let plane = &mut net.loops[usize::from(number)];
        let member = &mut plane.members[index];
        let (tx, nport, place) = (member.tx, member.nport, member.place);
        let Some(place) = place.filter(|_| net.lanes[tx as usize].up && member.requests < MOST_REQUESTS) else { return };
        let mut frames = take_unsent(&mut member.unsent);
        if let Some(nport) = nport.filter(|_| frames.is_empty()) {
            let may_pause = member.requests == 0 && net.lanes[tx as usize].free_at_ps <= now;
            let queue = &mut net.nports[usize::from(nport)].queue;
            let next = queue.take_for_circuit((now, may_pause), &net.messages, MOST_FRAMES, &mut frames);
            if let Next::Pause(until_ps) = next {
                let wake = net.sources.wake(tx);
                net.lanes[tx as usize].wake_at(&mut net.queue, wake, until_ps);
            }
        }
        let Some(first) = frames.front() else {
            net.loops[usize::from(number)].members[index].has_frames = false;
            return;
        };
        let to = destination(first, nport.is_some());
        let to_switch = to == Some(AlPa::FL_PORT);
        if to_switch {
            let room = room(net, number);
            let rest = frames.split_off(room.min(frames.len()));
            let member = &mut net.loops[usize::from(number)].members[index];
            rest.into_iter().rev().for_each(|frame| member.unsent.push_front(frame));
            if frames.is_empty() {
                return;
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
            lose(net, (tx, nport.is_some()), frames);
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
fn room(net: &Net, number: u16) -> usize {
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
fn lose(net: &mut Net, (tx, is_nport): (u32, bool), frames: VecDeque<FrameRef>) {
    for frame in frames {
        // Frames of an FL_Port were sent by another port.
        net.fate.sent += u64::from(is_nport);
        net.count_loss(&frame, Loss::NoLoopPort, LossSite::Line(tx));
        if !is_nport {
            net.return_credit(tx, net.now);
        }
    }
}

/// Executes the outputs of the engine.
fn drain(net: &mut Net, number: u16, engine: &mut Loop) {
    while let Some(output) = engine.poll_output() {
        match output {
            Output::Frame(frame) => send(net, number, &frame),
            Output::NoSuchPort { tag, time, .. } => {
                let plane = &mut net.loops[usize::from(number)];
                let Some(Sending { member, frames, .. }) = plane.requests.remove(&tag) else { continue };
                let sender = (plane.members[member].tx, plane.members[member].nport.is_some());
                lose(net, sender, frames);
                ended(net, number, member, time.ps());
            }
            Output::Tenancy(tenancy) => net.loops[usize::from(number)].add(&tenancy),
        }
    }
}

impl LoopPlane {
    fn add(&mut self, tenancy: &Tenancy) {
        let (circuits, held_ps) = (u64::from(tenancy.circuits), (tenancy.left - tenancy.won).ps());
        let member = &mut self.members[self.ring[tenancy.owner]].count;
        let waited_ps = (tenancy.won - tenancy.wish).ps();
        member.tenancies += 1;
        member.circuits += circuits;
        member.arbitration_ps += waited_ps;
        member.longest_ps = member.longest_ps.max(waited_ps);
        member.held_ps += held_ps;
        self.count.tenancies += 1;
        self.count.circuits += circuits;
        self.count.held_ps += held_ps;
    }
}

/// Puts a frame on the loop.
fn send(net: &mut Net, number: u16, of_engine: &LoopFrame) {
    let plane = &mut net.loops[usize::from(number)];
    let Some(sending) = plane.requests.get_mut(&of_engine.tag) else { return };
    let Some(mut frame) = sending.frames.pop_front() else { return };
    let (member, is_last) = (sending.member, sending.frames.is_empty());
    let (tx, is_nport) = (plane.members[member].tx, plane.members[member].nport.is_some());
    let rx = plane.members[plane.ring[of_engine.to]].rx;
    if is_last {
        plane.requests.remove(&of_engine.tag);
    }
    let line_ps = net.lanes[tx as usize].time_of(frame.wire_bytes());
    let (start_ps, arrival_ps) = (of_engine.start.ps(), of_engine.arrival.ps().max(net.now));
    let end_ps = start_ps + line_ps;
    if is_nport {
        net.fate.sent += 1;
    } else {
        net.return_credit(tx, end_ps);
    }
    if is_last {
        if is_nport {
            net.lanes[tx as usize].free_at_ps = end_ps;
        }
        ended(net, number, member, end_ps);
    }
    // At the end of the frame's own link, it begins when it arrives there. The lane from a switch
    // has counted its frames.
    let lanes = [(tx, start_ps), (rx, arrival_ps.saturating_sub(line_ps))];
    for (lane, start_ps) in lanes.into_iter().skip(usize::from(!is_nport)) {
        net.lanes[lane as usize].count_frame(&frame);
        let end_ps = start_ps + line_ps;
        if net.lanes[lane as usize].faulty && net.apply_frame_faults(lane, &mut frame, end_ps) {
            return;
        }
        if net.lanes[lane as usize].watched {
            let sent = Sent { start_ps, end_ps, at_ps: arrival_ps, tail_ps: arrival_ps };
            net.recorder.frame(lane, &net.lanes[lane as usize], &net.messages, frame, sent);
            net.recorder.stamp(net.parts.turn(net.now));
        }
    }
    // A switch needs its latency; an N_Port has none.
    let at_ps = arrival_ps + net.lanes[rx as usize].latency_ps;
    if net.lanes[rx as usize].flight.push(InFlight::new(frame, at_ps, at_ps)) {
        net.queue.add(net.sources.arrival(rx), at_ps);
    }
}

/// Takes note that the last frame of a request has left at `end_ps`. The port may then send more.
fn ended(net: &mut Net, number: u16, member: usize, end_ps: u64) {
    let member = &mut net.loops[usize::from(number)].members[member];
    member.requests = member.requests.saturating_sub(1);
    if member.nport.is_some() {
        let tx = member.tx;
        let wake = net.sources.wake(tx);
        net.lanes[tx as usize].wake_by(&mut net.queue, wake, end_ps.max(net.now));
    } else {
        // The event of the engine at the end of the circuit follows.
        member.has_frames |= !member.unsent.is_empty();
    }
}
