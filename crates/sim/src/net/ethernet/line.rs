//! One direction of an Ethernet link.

use super::egress::Egress;
use super::ets::Ets;
use super::packet::{GAP_BYTES, PREAMBLE_BYTES, PRIORITIES, Packet, SHORTEST_BYTES};
use super::pause::{LONGEST_QUANTA, Pauses, QUANTUM_BITS};
use crate::net::line::{BusyPeriod, ByteTime};
use crate::net::queue::NEVER;
use std::collections::VecDeque;

/// One end of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Station {
    /// A port of a switch.
    Switch {
        /// Number of the switch.
        switch: u16,
        /// Number of the port.
        port: u16,
    },
    /// An interface of a host, a storage system or a gateway.
    Interface(u16),
}

/// A frame on a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnLine {
    /// Time at which the receiver acts on the frame.
    pub at_ps: u64,
    /// Time at which the last byte arrives.
    pub tail_ps: u64,
    pub packet: Packet,
}

/// Faults of a line. Chances are those of a frame, in 2^-32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineErrors {
    /// Chance to be lost.
    pub loss: u32,
    /// Chance to arrive with a bad FCS.
    pub damage: u32,
    /// Chance to arrive late.
    pub lateness: u32,
    /// Extra time of a late frame, in ps.
    pub late_ps: u64,
}

impl LineErrors {
    /// Returns whether no frame arrives whole.
    pub fn loses_all(&self) -> bool {
        self.loss.max(self.damage) == u32::MAX
    }
}

/// Counters of a line, which never decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineCount {
    /// Frames sent, without pause frames.
    pub packets: u64,
    /// Bytes of these frames, from the destination address to the FCS.
    pub bytes: u64,
    /// Pause frames sent.
    pub pauses: u64,
    /// Frames marked when they entered a queue of the sender (ECN).
    pub marked: u64,
    /// Frames that found no memory for a queue of the sender.
    pub refused: u64,
    /// Frames of FCoE among them that no headroom was meant for.
    pub refused_fcoe: u64,
}

/// Frames of lossless priorities that a line has brought to a switch for one of its ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Onward {
    /// Bytes of these frames.
    pub bytes: u64,
    /// Sum of their bytes, each times the KiB that waited for the port before it.
    pub behind: u64,
}

impl LineCount {
    /// Returns the bytes on the line, with pause frames, preambles and gaps.
    pub fn line_bytes(&self) -> u64 {
        const AROUND: u64 = PREAMBLE_BYTES + GAP_BYTES;
        self.bytes + self.packets * AROUND + self.pauses * (SHORTEST_BYTES as u64 + AROUND)
    }
}

/// One direction of a link with the queues of its sender.
#[derive(Clone, Debug)]
pub struct Line {
    pub from: Station,
    pub to: Station,
    pub(super) busy: BusyPeriod,
    pub(super) byte: ByteTime,
    pub(super) wake_ps: u64,
    pub(super) egress: Egress,
    pub(super) pauses: Pauses,
    pub(super) flight: VecDeque<OnLine>,
    /// Propagation delay of the cable, in ps.
    pub propagation_ps: u64,
    /// Time within which the sender may begin a frame although it is paused, in ps.
    pub reaction_ps: u64,
    /// Bytes of a frame that have to arrive before the receiver acts on it; all of them without
    /// cut-through.
    pub(super) entry_bytes: u64,
    pub errors: LineErrors,
    /// Priorities whose pauses the sender obeys.
    pub obeys: u8,
    /// True if both ends pause the whole link (IEEE 802.3, annex 31B), not priorities of it.
    pub pauses_link: bool,
    /// Frames and events are recorded in [`super::EthernetPlane::observed`].
    pub(super) watched: bool,
    /// True if the link is up.
    pub up: bool,
    pub(super) count: LineCount,
    /// Frames that the line has brought for each port of the switch at its end.
    pub(super) onward: Vec<Onward>,
}

impl Line {
    pub(super) fn new(from: Station, to: Station, byte: ByteTime, propagation_ps: u64, ets: Ets) -> Line {
        Line {
            from,
            to,
            busy: BusyPeriod::default(),
            byte,
            wake_ps: NEVER,
            egress: Egress::new(ets),
            pauses: Pauses::default(),
            flight: VecDeque::new(),
            propagation_ps,
            reaction_ps: 0,
            entry_bytes: u64::MAX,
            errors: LineErrors::default(),
            obeys: u8::MAX,
            pauses_link: false,
            watched: false,
            up: true,
            count: LineCount::default(),
            onward: Vec::new(),
        }
    }

    /// Returns what the line has brought for a port of the switch at its end.
    pub fn onward(&self, port: u16) -> Onward {
        self.onward.get(usize::from(port)).copied().unwrap_or_default()
    }

    /// Returns the time on the line of `bytes`, in ps, rounded down.
    pub fn time_of(&self, bytes: u64) -> u64 {
        self.byte.time_of(bytes)
    }

    /// Returns the length of the longest pause, in ps.
    pub fn longest_pause_ps(&self) -> u64 {
        self.byte.time_of(LONGEST_QUANTA * QUANTUM_BITS / 8)
    }

    /// Puts a frame on the line at `now`, when the line is free. Returns its times at the receiver.
    #[inline]
    pub(super) fn send(&mut self, now: u64, packet: Packet) -> OnLine {
        let bytes = packet.wire_bytes();
        let end_ps = self.busy.occupy(&self.byte, now, bytes, GAP_BYTES);
        if packet.paused().is_some() {
            self.count.pauses += 1;
        } else {
            self.count.packets += 1;
            self.count.bytes += u64::from(packet.bytes);
        }
        let tail_ps = end_ps + self.propagation_ps;
        let at_ps = if self.entry_bytes < bytes && packet.paused().is_none() {
            now + self.byte.time_of(self.entry_bytes) + self.propagation_ps
        } else {
            tail_ps
        };
        OnLine { at_ps, tail_ps, packet }
    }

    /// Puts a frame among those in flight. Returns whether it arrives before all others.
    #[inline]
    pub(super) fn fly(&mut self, on_line: OnLine) -> bool {
        let mut place = self.flight.len();
        while place > 0 && self.flight[place - 1].at_ps > on_line.at_ps {
            place -= 1;
        }
        if place == self.flight.len() {
            self.flight.push_back(on_line);
        } else {
            self.flight.insert(place, on_line);
        }
        place == 0
    }

    /// Returns the counters.
    pub fn count(&self) -> LineCount {
        self.count
    }

    /// Returns the bytes that wait for the line in a priority.
    pub fn queued_bytes(&self, priority: usize) -> u64 {
        self.egress.bytes(priority)
    }

    /// Returns the most bytes that have waited for the line in one priority.
    pub fn queue_max_bytes(&self) -> u64 {
        self.egress.max_bytes()
    }

    /// Returns the time for which the sender has been paused in a priority up to `now`, in ps.
    pub fn paused_ps(&self, priority: usize, now: u64) -> u64 {
        self.pauses.paused_ps(priority, now)
    }

    /// Gives the times of pauses of the priorities their names in results: one for the whole link
    /// if it is paused as a whole.
    pub fn pauses_by_name(&self, times_ps: [u64; PRIORITIES]) -> impl Iterator<Item = (String, u64)> {
        let count = if self.pauses_link { 1 } else { PRIORITIES };
        let name = move |number: usize| if count == 1 { "link".to_owned() } else { number.to_string() };
        times_ps.into_iter().take(count).enumerate().map(move |(number, ps)| (name(number), ps))
    }
}
