//! A plain engine of Fibre Channel over Ethernet: the plain engines of both planes, and between
//! them the rules of virtual links. It shares no code with the planes but their plans, the packet
//! and the random numbers.
//!
//! 1. A frame takes a place in the Ethernet port of its sender, until it begins to leave there. It
//!    has all its bytes from SOF to EOF and those of its encapsulation, and leaves at the time at
//!    which it would leave on a line of its own, or later.
//! 2. The receiver keeps a frame until it leaves for the next line. A frame that finds no room is
//!    lost. Bytes are freed in the order of arrival.
//! 3. With PFC, the interface of the receiver pauses the priority while only the headroom is free,
//!    and ends the pause when three quarters of the rest are used.
//! 4. A frame on Ethernet is lost with its virtual link, although Ethernet still carries it.
//! 5. At one instant, everything happens in Fibre Channel first, then on Ethernet: arrivals, lines
//!    that begin to send, refreshed pauses. Then frames enter their Ethernet ports, in the order in
//!    which they were sent, and interfaces change their pauses. N_Ports empty their buffers last.

use crate::ethernet::plain::{Engine as Ethernet, Handed};
use crate::frame_path::plain::{Engine as Fibre, Frame, Place, Seam};
use sanloom_sim::net::ethernet::{EthernetPlan, Packet};
use sanloom_sim::net::fcoe::FcoePlan;
use std::collections::{BTreeMap, BTreeSet};

/// A direction of a virtual link.
pub struct Lane {
    interfaces: [u16; 2],
    priority: u8,
    vlan: u8,
    uses_pfc: bool,
    buffer_bytes: u64,
    headroom_bytes: u64,
    overhead_bytes: u64,
    /// Sizes of the frames in the receive buffer, the oldest first.
    buffer: Vec<u64>,
    pub most_bytes: u64,
    pub lost: u64,
    pub pauses: bool,
}

impl Lane {
    pub fn held_bytes(&self) -> u64 {
        self.buffer.iter().sum()
    }

    /// Bytes without the headroom.
    fn pause_above(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.headroom_bytes)
    }
}

/// A frame that was handed to Ethernet. Entries stay when their frames have gone.
struct Carried {
    frame: Frame,
    lane: usize,
    bytes: u64,
    waits_at_sender: bool,
    is_on_its_way: bool,
}

/// The virtual links and the Ethernet below. Their Fibre Channel is an argument.
pub struct Below {
    pub ethernet: Ethernet,
    pub lanes: BTreeMap<usize, Lane>,
    carried: Vec<Carried>,
    /// Frames for Ethernet ports, with the earliest time at which they leave.
    entering: Vec<(Packet, u64)>,
    /// Interfaces whose pauses may end.
    freed: BTreeSet<u16>,
    /// Pauses that receivers have begun.
    pub begun_pauses: u64,
    /// Places at senders that were given back.
    pub returned_places: u64,
}

impl Below {
    pub fn new(plan: &FcoePlan, ethernet: &EthernetPlan) -> Below {
        let lane = |&(number, plan): &(u32, sanloom_sim::net::fcoe::FcoeLanePlan)| {
            let lane = Lane {
                interfaces: plan.interfaces,
                priority: plan.priority,
                vlan: plan.vlan,
                uses_pfc: plan.pauses,
                buffer_bytes: plan.buffer_bytes,
                headroom_bytes: plan.headroom_bytes,
                overhead_bytes: plan.overhead_bytes.into(),
                buffer: Vec::new(),
                most_bytes: 0,
                lost: 0,
                pauses: false,
            };
            (number as usize, lane)
        };
        Below {
            ethernet: Ethernet::new(ethernet),
            lanes: plan.lanes.iter().map(lane).collect(),
            carried: Vec::new(),
            entering: Vec::new(),
            freed: BTreeSet::new(),
            begun_pauses: 0,
            returned_places: 0,
        }
    }

    /// Returns the time of the next instant at which something may happen.
    pub fn next_ps(&self, fibre: &Fibre) -> u64 {
        fibre.next_instant().unwrap_or(u64::MAX).min(self.ethernet.next_ps())
    }

    /// Goes to the instant `now` and does all that happens then.
    pub fn go(&mut self, fibre: &mut Fibre, now: u64) {
        (fibre.now, self.ethernet.now) = (now, now);
        loop {
            self.settle(fibre);
            if fibre.step(now, false) {
                continue;
            }
            if self.ethernet.arrive_next() || self.ethernet.send_next() || self.ethernet.refresh_next() {
                continue;
            }
            if self.enter_ethernet() {
                continue;
            }
            let mut empties = false;
            while fibre.step(now, true) {
                empties = true;
            }
            if !empties {
                return;
            }
        }
    }

    /// Number of frames on Ethernet that are not lost.
    pub fn frames(&self) -> u64 {
        self.carried.iter().filter(|carried| carried.is_on_its_way).count() as u64
    }

    /// Number of frames that were handed to Ethernet.
    pub fn carried(&self) -> u64 {
        self.carried.len() as u64
    }

    fn pausing(&self, interface: u16) -> u8 {
        let pausing = self.lanes.values().filter(|lane| lane.pauses && lane.interfaces[1] == interface);
        pausing.fold(0, |mask, lane| mask | 1 << lane.priority)
    }

    /// Lets both planes take note of what the other one has done.
    fn settle(&mut self, fibre: &mut Fibre) {
        for event in std::mem::take(&mut fibre.seam) {
            match event {
                Seam::Frame { lane, start, frame } => self.hand_over(lane, start, frame),
                Seam::Freed { lane: number } => {
                    let lane = self.lanes.get_mut(&number).unwrap();
                    if !lane.buffer.is_empty() {
                        lane.buffer.remove(0);
                    }
                    if lane.pauses && lane.held_bytes() <= lane.pause_above() / 4 * 3 {
                        lane.pauses = false;
                        self.freed.insert(lane.interfaces[1]);
                    }
                }
                Seam::Cut { lane: number } => {
                    for carried in self.carried.iter_mut().filter(|carried| carried.lane == number) {
                        if std::mem::take(&mut carried.is_on_its_way) {
                            fibre.on_ethernet -= 1;
                            fibre.lose(Place::Line(number), "link_down");
                        }
                    }
                }
            }
        }
        for (position, event) in std::mem::take(&mut self.ethernet.handed) {
            match event {
                Handed::Left => self.leave_sender(fibre, position),
                Handed::Arrived(interface) => self.arrive(fibre, position, interface),
                Handed::Lost => {
                    self.leave_sender(fibre, position);
                    let carried = &mut self.carried[position as usize];
                    if std::mem::take(&mut carried.is_on_its_way) {
                        fibre.on_ethernet -= 1;
                        fibre.lose(Place::Line(carried.lane), "ethernet");
                    }
                }
            }
        }
    }

    fn hand_over(&mut self, number: usize, start: u64, frame: Frame) {
        let lane = &self.lanes[&number];
        let fibre_bytes = 36 + u64::from(frame.len).next_multiple_of(4);
        let bytes = fibre_bytes + lane.overhead_bytes;
        let position = self.carried.len() as u32;
        self.carried.push(Carried { frame, lane: number, bytes, waits_at_sender: true, is_on_its_way: true });
        let [from, to] = lane.interfaces;
        let packet = Packet::new(from, to, number as u32, position, bytes as u16);
        self.entering.push((packet.with_priority(lane.priority).with_vlan(lane.vlan).with_fcoe(), start));
    }

    fn leave_sender(&mut self, fibre: &mut Fibre, position: u32) {
        let carried = &mut self.carried[position as usize];
        if std::mem::take(&mut carried.waits_at_sender) && carried.is_on_its_way {
            self.returned_places += 1;
            fibre.place_is_free(carried.lane);
        }
    }

    fn arrive(&mut self, fibre: &mut Fibre, position: u32, interface: u16) {
        let carried = &mut self.carried[position as usize];
        if !std::mem::take(&mut carried.is_on_its_way) {
            return;
        }
        let (number, bytes, frame) = (carried.lane, carried.bytes, carried.frame);
        let lane = self.lanes.get_mut(&number).unwrap();
        assert_eq!(lane.interfaces[1], interface);
        if lane.held_bytes() + bytes > lane.buffer_bytes {
            lane.lost += 1;
            fibre.on_ethernet -= 1;
            return fibre.lose(Place::Receiver(number), "fcoe_buffer");
        }
        lane.buffer.push(bytes);
        lane.most_bytes = lane.most_bytes.max(lane.held_bytes());
        if lane.uses_pfc && !lane.pauses && lane.held_bytes() > lane.pause_above() {
            lane.pauses = true;
            self.begun_pauses += 1;
            self.ethernet.set_busy(interface, self.pausing(interface));
        }
        fibre.land(number, frame);
    }

    fn enter_ethernet(&mut self) -> bool {
        let (entering, freed) = (std::mem::take(&mut self.entering), std::mem::take(&mut self.freed));
        for &(packet, start) in &entering {
            self.ethernet.send_at(packet, start);
        }
        for &interface in &freed {
            self.ethernet.set_busy(interface, self.pausing(interface));
        }
        !entering.is_empty() || !freed.is_empty()
    }
}
