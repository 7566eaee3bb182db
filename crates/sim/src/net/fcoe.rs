//! Fibre Channel over Ethernet: lanes of virtual links, whose frames cross the Ethernet plane.
//!
//! A virtual link has two lanes as any link of Fibre Channel has. The credits of such a lane are
//! places in the Ethernet port of its sender: one returns when its frame begins to leave. The
//! receiver has a buffer in bytes. While only the headroom is left of it, its interface pauses the
//! priority of FCoE. A frame that finds no room is lost.
//!
//! # Simplifications
//!
//! - A receive buffer is freed when its frame begins to leave, as in an Ethernet switch. If frames
//!   of different lengths leave out of order, their bytes are freed in the order of arrival.
//! - Each virtual link has a receive buffer of its own.

use super::ethernet::{EthernetPlane, Packet};
use super::events::Events;
use super::fc::{FcPlane, FrameRef, InFlight, Loss, LossSite, Sent};
use super::queue::NEVER;
use super::tunnel::Tunnelled;
use sanloom_wire::Frame;
use std::collections::VecDeque;

/// Construction parameters of the lanes of virtual links.
#[derive(Clone, Debug, Default)]
pub struct FcoePlan {
    /// Lanes with their numbers in the Fibre Channel plane.
    pub lanes: Vec<(u32, FcoeLanePlan)>,
}

/// A lane of an [`FcoePlan`].
#[derive(Clone, Copy, Debug)]
pub struct FcoeLanePlan {
    /// Interface of the sender, and that of the receiver.
    pub interfaces: [u16; 2],
    pub priority: u8,
    /// Number of the VLAN in the lab; 0 for none.
    pub vlan: u8,
    /// True if frames have a tag.
    pub has_tag: bool,
    /// True if the receiver pauses its sender.
    pub pauses: bool,
    /// True if TCP carries the frames (FCIP).
    pub is_tunnel: bool,
    /// Receive buffer, and the part of it that is left for frames after a pause, in bytes.
    pub buffer_bytes: u64,
    pub headroom_bytes: u64,
    /// Bytes of a frame on Ethernet beside those from SOF to EOF.
    pub overhead_bytes: u16,
}

/// Lanes of virtual links, their frames on Ethernet, and their receive buffers.
#[derive(Default)]
pub struct FcoePlane {
    /// By number of the lane in the Fibre Channel plane; empty without virtual links.
    lanes: Vec<Option<Box<FcoeLane>>>,
    /// Frames on Ethernet, by the position of their packets.
    frames: Vec<Carried>,
    free: Vec<u32>,
    /// Frames for the Ethernet plane, with the earliest time at which they begin.
    out: VecDeque<(Packet, u64)>,
    /// Frames for the TCP connections of FCIP links.
    tunnelled: VecDeque<Tunnelled>,
    /// Lanes of FCIP links whose receive buffers have room again.
    resumed: VecDeque<u32>,
    /// Interfaces whose priorities to pause may have changed.
    changed: Vec<u16>,
    /// Frames that a capture may read, by position.
    seen: Option<Vec<Option<Box<SeenFrame>>>>,
    /// Positions without a frame that a capture may still read.
    read: Vec<u32>,
}

/// A lane of a virtual link.
struct FcoeLane {
    plan: FcoeLanePlan,
    /// Sizes of the frames in the receive buffer, in the order of arrival.
    held: VecDeque<u16>,
    held_bytes: u64,
    max_bytes: u64,
    is_pausing: bool,
    /// A frame of an FCIP link waits for room.
    is_waited_for: bool,
    lost: u64,
}

/// A frame on Ethernet.
#[derive(Clone, Copy, Debug)]
struct Carried {
    frame: FrameRef,
    lane: u32,
    bytes: u16,
    /// True while the frame waits in the Ethernet port of its sender.
    is_queued: bool,
    /// False if the frame was lost with its virtual link, or the entry is unused.
    is_alive: bool,
}

/// Contents of a frame for a capture.
#[derive(Clone, Debug)]
pub struct SeenFrame {
    pub frame: FrameRef,
    pub lane: u32,
    /// For a control message: its frame, the bytes of this part, and the number of parts.
    pub message: Option<(Frame, Vec<u8>, u16)>,
}

/// Usage of the receive buffer of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FcoeBuffer {
    /// Size, in bytes.
    pub bytes: u64,
    /// Bytes that it holds.
    pub held_bytes: u64,
    /// True while the receiver pauses its sender because of this buffer.
    pub is_pausing: bool,
    /// Most bytes that it has held.
    pub max_bytes: u64,
    /// Frames that found no room.
    pub lost: u64,
}

/// An event of a frame of FCoE on the Ethernet plane, with the position of its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Handed {
    /// It has begun to leave the interface of its sender.
    Left(u32),
    /// It is lost.
    Lost(u32),
}

impl FcoePlane {
    /// Returns whether a lane belongs to a virtual link.
    #[inline]
    pub fn has(&self, lane: u32) -> bool {
        self.lanes.get(lane as usize).is_some_and(Option::is_some)
    }

    /// Returns the number of frames on Ethernet.
    pub fn frames(&self) -> u64 {
        self.frames.iter().filter(|carried| carried.is_alive).count() as u64
    }

    /// Returns the usage of the receive buffer of a lane, unless it belongs to no virtual link.
    pub fn buffer(&self, lane: u32) -> Option<FcoeBuffer> {
        let lane = self.lanes.get(lane as usize)?.as_deref()?;
        Some(FcoeBuffer {
            bytes: lane.plan.buffer_bytes,
            held_bytes: lane.held_bytes,
            is_pausing: lane.is_pausing,
            max_bytes: lane.max_bytes,
            lost: lane.lost,
        })
    }

    /// Keeps the contents of frames from now on, for a capture.
    pub fn watch(&mut self) {
        self.seen.get_or_insert_default();
    }

    /// Forgets the contents of frames that have arrived or were lost. Call it when a capture has
    /// read them.
    pub fn forget(&mut self) {
        let Some(seen) = &mut self.seen else { return };
        for position in &self.read {
            // Frames that left before the capture began have no contents.
            if let Some(frame) = seen.get_mut(*position as usize) {
                *frame = None;
            }
        }
        self.free.append(&mut self.read);
    }

    /// Ends the record that [`FcoePlane::watch`] began.
    pub fn unwatch(&mut self) {
        self.seen = None;
        self.free.append(&mut self.read);
    }

    /// Returns the contents of a frame; only while frames are kept.
    pub fn seen(&self, packet: &Packet) -> Option<&SeenFrame> {
        self.seen.as_ref()?.get(packet.position as usize)?.as_deref()
    }

    /// Returns a frame that a lane of an FCIP link has handed over.
    pub fn take_tunnelled(&mut self) -> Option<Tunnelled> {
        self.tunnelled.pop_front()
    }

    /// Returns a lane of an FCIP link whose receive buffer has room again.
    pub fn take_resumed(&mut self) -> Option<u32> {
        self.resumed.pop_front()
    }

    /// Returns a frame, its lane, and whether its link is still up.
    pub(super) fn carried(&self, position: u32) -> (FrameRef, u32, bool) {
        let carried = self.frames[position as usize];
        (carried.frame, carried.lane, carried.is_alive)
    }

    /// Lets a frame leave the queue of its sender. Returns whether it was there.
    pub(super) fn leave_queue(&mut self, position: u32) -> bool {
        std::mem::take(&mut self.frames[position as usize].is_queued)
    }

    /// Removes a frame of an FCIP link.
    pub(super) fn remove_tunnelled(&mut self, position: u32) {
        self.remove(position);
    }

    /// Puts a frame into the receive buffer of a lane. Returns false if it has no room.
    pub(super) fn hold(&mut self, number: u32, position: u32) -> bool {
        let bytes = self.frames[position as usize].bytes;
        let Some(lane) = self.lane_mut(number) else { return false };
        if lane.held_bytes + u64::from(bytes) > lane.plan.buffer_bytes {
            lane.is_waited_for = true;
            return false;
        }
        lane.held.push_back(bytes);
        lane.held_bytes += u64::from(bytes);
        lane.max_bytes = lane.max_bytes.max(lane.held_bytes);
        true
    }

    fn lane_mut(&mut self, lane: u32) -> Option<&mut FcoeLane> {
        self.lanes.get_mut(lane as usize)?.as_deref_mut()
    }

    /// Returns the priorities that an interface pauses.
    fn pausing(&self, interface: u16) -> u8 {
        let of_interface = self.lanes.iter().flatten().filter(|lane| lane.plan.interfaces[1] == interface);
        of_interface.filter(|lane| lane.is_pausing).fold(0, |mask, lane| mask | 1 << lane.plan.priority)
    }

    fn store(&mut self, carried: Carried) -> u32 {
        match self.free.pop() {
            Some(position) => {
                self.frames[position as usize] = carried;
                position
            }
            None => {
                self.frames.push(carried);
                self.frames.len() as u32 - 1
            }
        }
    }

    /// Removes a frame from Ethernet. A capture may read its contents until [`FcoePlane::forget`].
    fn remove(&mut self, position: u32) -> Carried {
        let carried = self.frames[position as usize];
        self.frames[position as usize].is_alive = false;
        if self.seen.is_none() {
            self.free.push(position)
        } else {
            self.read.push(position)
        }
        carried
    }
}

/// Adds the lanes of virtual links to an idle network.
pub(super) fn add(fc: &mut FcPlane, plan: &FcoePlan) {
    if plan.lanes.is_empty() {
        return;
    }
    let mut lanes: Vec<Option<Box<FcoeLane>>> = fc.lanes().iter().map(|_| None).collect();
    for &(number, plan) in &plan.lanes {
        let idle = FcoeLane {
            plan,
            held: VecDeque::new(),
            held_bytes: 0,
            max_bytes: 0,
            is_pausing: false,
            is_waited_for: false,
            lost: 0,
        };
        lanes[number as usize] = Some(Box::new(idle));
        fc.lane_mut(number).carry_over_ethernet();
    }
    fc.fcoe.lanes = lanes;
}

/// Hands a frame that leaves on a lane of a virtual link over to its Ethernet port.
#[cold]
pub(super) fn send(fc: &mut FcPlane, events: &mut Events, number: u32, frame: FrameRef, sent: Sent) {
    let Some(plan) = fc.fcoe.lane_mut(number).map(|lane| lane.plan) else { return };
    let bytes = frame.wire_bytes() as u16 + plan.overhead_bytes;
    let position = fc.fcoe.store(Carried { frame, lane: number, bytes, is_queued: true, is_alive: true });
    if let Some(seen) = &mut fc.fcoe.seen {
        let messages = &fc.messages;
        let message = frame.message().and_then(|message| {
            let whole = messages.get(message)?.clone();
            let mut bytes = Vec::new();
            messages.part_bytes(&frame, &mut bytes);
            Some((whole, bytes, messages.parts(message)))
        });
        seen.resize_with(seen.len().max(position as usize + 1), || None);
        seen[position as usize] = Some(Box::new(SeenFrame { frame, lane: number, message }));
    }
    if plan.is_tunnel {
        let seen = fc.fcoe.seen.as_ref().and_then(|seen| seen[position as usize].clone());
        fc.fcoe.tunnelled.push_back(Tunnelled { lane: number, position, bytes, seen });
        events.queue.schedule(events.sources.fcoe(), events.now);
        return;
    }
    let [from, to] = plan.interfaces;
    let packet = Packet::new(from, to, number, position, bytes);
    fc.fcoe.out.push_back((packet.with_priority(plan.priority).with_vlan(plan.vlan).with_fcoe(), sent.start_ps));
    events.queue.schedule(events.sources.fcoe(), events.now);
}

/// Frees the place of the oldest frame in the receive buffer of a lane.
#[cold]
pub(super) fn free(fc: &mut FcPlane, events: &mut Events, number: u32) {
    let Some(lane) = fc.fcoe.lane_mut(number) else { return };
    let bytes = lane.held.pop_front().unwrap_or(0);
    lane.held_bytes -= u64::from(bytes);
    if std::mem::take(&mut lane.is_waited_for) {
        fc.fcoe.resumed.push_back(number);
        return events.queue.schedule(events.sources.fcoe(), events.now);
    }
    if lane.is_pausing && lane.held_bytes <= lane.resume_bytes() {
        lane.is_pausing = false;
        let interface = lane.plan.interfaces[1];
        fc.fcoe.changed.push(interface);
        events.queue.schedule(events.sources.fcoe(), events.now);
    }
}

/// Loses the frames of a lane on Ethernet, because its virtual link has ended.
pub(super) fn cut(fc: &mut FcPlane, number: u32) {
    for position in 0..fc.fcoe.frames.len() {
        let carried = &mut fc.fcoe.frames[position];
        if carried.lane == number && carried.is_alive {
            // The packet is still on its way, so the position stays in use.
            carried.is_alive = false;
            let frame = carried.frame;
            fc.count_loss(&frame, Loss::LinkDown, LossSite::Line(number));
        }
    }
}

impl FcoeLane {
    /// Returns the bytes above which the sender is paused.
    fn stop_bytes(&self) -> u64 {
        self.plan.buffer_bytes.saturating_sub(self.plan.headroom_bytes)
    }

    /// Returns the bytes at which a pause ends: three quarters of those at which it begins.
    fn resume_bytes(&self) -> u64 {
        self.stop_bytes() / 4 * 3
    }
}

/// Passes frames and pauses to the Ethernet plane. Returns whether FCIP links have frames or room.
pub(super) fn run(fc: &mut FcPlane, ethernet: &mut EthernetPlane, events: &mut Events) -> bool {
    while let Some((packet, ready_ps)) = fc.fcoe.out.pop_front() {
        ethernet.send_at(events, packet, ready_ps);
    }
    while let Some(interface) = fc.fcoe.changed.pop() {
        let pausing = fc.fcoe.pausing(interface);
        ethernet.set_busy(events, interface, pausing);
    }
    !fc.fcoe.tunnelled.is_empty() || !fc.fcoe.resumed.is_empty()
}

/// Takes a frame that has arrived at its interface.
pub(super) fn arrive(fc: &mut FcPlane, ethernet: &mut EthernetPlane, events: &mut Events, packet: Packet) {
    let is_alive = fc.fcoe.frames[packet.position as usize].is_alive;
    let Carried { frame, lane: number, bytes, .. } = fc.fcoe.remove(packet.position);
    if !is_alive {
        return;
    }
    let Some(lane) = fc.fcoe.lane_mut(number) else { return };
    if lane.held_bytes + u64::from(bytes) > lane.plan.buffer_bytes {
        lane.lost += 1;
        fc.count_loss(&frame, Loss::FcoeBuffer, LossSite::Receiver(number));
        return;
    }
    lane.held.push_back(bytes);
    lane.held_bytes += u64::from(bytes);
    lane.max_bytes = lane.max_bytes.max(lane.held_bytes);
    if lane.plan.pauses && !lane.is_pausing && lane.held_bytes > lane.stop_bytes() {
        lane.is_pausing = true;
        let pausing = fc.fcoe.pausing(packet.to);
        ethernet.set_busy(events, packet.to, pausing);
    }
    fc.land(events, number, frame);
}

/// Handles the frames of FCoE that have left their interface or were lost, and those that they let
/// leave.
#[cold]
pub(super) fn settle(fc: &mut FcPlane, ethernet: &mut EthernetPlane, events: &mut Events) {
    while let Some(handed) = ethernet.take_handed() {
        let (position, is_lost) = match handed {
            Handed::Left(position) => (position, false),
            Handed::Lost(position) => (position, true),
        };
        let carried = &mut fc.fcoe.frames[position as usize];
        let (was_queued, is_alive, number) = (carried.is_queued, carried.is_alive, carried.lane);
        carried.is_queued = false;
        if is_lost {
            let frame = fc.fcoe.remove(position).frame;
            if is_alive {
                fc.count_loss(&frame, Loss::Ethernet, LossSite::Line(number));
            }
        }
        if was_queued && is_alive {
            fc.place_is_free(events, number);
        }
    }
}

/// Returns a frame on the line, as it is for the receiver at the end of a lane.
pub(super) fn landed(frame: FrameRef, now: u64, latency_ps: u64) -> InFlight {
    debug_assert!(now != NEVER, "the frame has arrived");
    InFlight::new(frame, now + latency_ps, now + latency_ps)
}
