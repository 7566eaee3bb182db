//! One direction of an InfiniBand link.

use super::packet::Packet;
use crate::net::line::{BusyPeriod, ByteTime};
use crate::net::queue::NEVER;
use sanloom_transport::infiniband::arbitration::Arbiter;
use sanloom_transport::infiniband::credit::{CreditReceiver, CreditSender, CreditUpdate};
use sanloom_transport::infiniband::packet::DELIMITERS;
use std::collections::VecDeque;

/// Bytes of a flow-control packet on the line, with its delimiters (IBA volume 1, 7.9.4).
pub const FLOW_BYTES: u64 = 8;
/// Number of lanes, with that of management.
pub const LANES: usize = 16;
/// Drops in a row after which a lane is drained, and the time of it in lifetimes (IBA volume 1,
/// 18.2.5.4).
pub const STALL_DROPS: u8 = 7;
/// Lifetimes for which a stalled lane discards all packets.
pub const STALL_LIVES: u64 = 8;

/// One end of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Station {
    /// A port of a switch, counted from 0; the subnet manager counts it from 1.
    Switch {
        /// Number of the switch.
        switch: u16,
        /// Number of the port.
        port: u8,
    },
    /// The port of an adapter of a host or of a storage system.
    Interface(u16),
}

/// A packet on a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnLine {
    /// Time at which the receiver acts on the packet.
    pub at_ps: u64,
    /// Time at which the receiver could act on the last byte.
    pub tail_ps: u64,
    pub packet: Packet,
}

/// A flow-control packet on a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowUpdate {
    pub at_ps: u64,
    pub lane: u8,
    pub update: CreditUpdate,
    /// Blocks that the line has lost before, which the receiver finds by the total of the sender.
    pub lost: u16,
}

/// A packet that leaves the buffer of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// Line on which the packet came in.
    pub from: u32,
    pub lane: u8,
    pub blocks: u16,
}

/// A lane of a line: credit of its sender, buffer of its receiver, and lifetime of its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneState {
    pub sender: CreditSender,
    pub receiver: CreditReceiver,
    /// Blocks that the line has lost since the last flow-control packet of the lane.
    pub lost: u16,
    /// Drops since the last packet that was sent.
    pub drops: u8,
    /// Start of the lifetime of the first packet, in ps.
    pub since_ps: u64,
    /// Packets are discarded until then, in ps.
    pub stalled_ps: u64,
    /// Packets sent.
    pub packets: u64,
}

/// Counters of a line, which never decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineCount {
    /// Packets sent.
    pub packets: u64,
    /// Bytes of these packets, from the LRH to the VCRC.
    pub bytes: u64,
    /// Flow-control packets sent.
    pub flow: u64,
    /// Times that a lane has been drained.
    pub stalls: u64,
}

impl LineCount {
    /// Returns the bytes on the line, with flow-control packets and delimiters.
    pub fn line_bytes(&self) -> u64 {
        self.bytes + self.packets * u64::from(DELIMITERS) + self.flow * FLOW_BYTES
    }
}

/// One direction of a link with the state of its sender and of its receiver.
pub struct Line {
    pub from: Station,
    pub to: Station,
    pub(super) busy: BusyPeriod,
    pub(super) byte: ByteTime,
    pub(super) wake_ps: u64,
    /// Node and output of the queues of the sender.
    pub(super) queues: (u32, u8),
    /// Lanes with a packet, lanes with a flow-control packet to send, lanes without credit.
    pub(super) used: u16,
    pub(super) due: u16,
    pub(super) blocked: u16,
    pub(super) lanes: [LaneState; LANES],
    pub(super) arbiter: Arbiter,
    pub(super) leaving: Option<Leaving>,
    pub(super) flight: VecDeque<OnLine>,
    pub(super) updates: VecDeque<FlowUpdate>,
    /// Delay of the cable, and of the switch at its end, in ps.
    pub(super) cable_ps: u64,
    pub(super) latency_ps: u64,
    /// Bytes of a packet that have to arrive before the receiver acts on it; all of them without
    /// cut-through.
    pub(super) entry_bytes: u64,
    /// Data lanes.
    pub(super) data_lanes: u8,
    /// Lifetime of the first packet of a lane, in ps; [`NEVER`] for no limit.
    pub(super) life_ps: u64,
    pub(super) expiry_ps: u64,
    /// Time within which each lane sends a flow-control packet, in ps.
    pub(super) refresh_ps: u64,
    /// Chance of a packet to be lost, to be damaged, and of a flow-control packet to be lost, in
    /// 2^-32.
    pub(super) chances: [u32; 3],
    /// True if the link is up.
    pub up: bool,
    /// Packets and events are recorded in [`super::InfinibandPlane::observed`].
    pub(super) watched: bool,
    pub(super) count: LineCount,
    /// Start of the current wait for credit of an idle line, in ps; [`NEVER`] if there is none.
    pub(super) starved_ps: u64,
    /// Number and total time of the waits that have ended, in ps.
    pub(super) waits: (u64, u64),
    /// Lanes that took part in the current wait, and the time of each lane in waits that have
    /// ended, in ps.
    pub(super) starved_lanes: u16,
    pub(super) lane_waits_ps: [u64; LANES],
    /// Bytes for each output of the switch at the end, by output and lane of this line. Empty at an
    /// interface.
    pub(super) onward: Vec<u64>,
}

impl LaneState {
    /// Returns a lane whose sender knows the whole buffer of its receiver.
    pub fn new(blocks: u16) -> LaneState {
        let receiver = CreditReceiver::new(blocks);
        let mut sender = CreditSender::default();
        sender.receive(CreditUpdate { fctbs: 0, fccl: receiver.fccl() });
        LaneState { sender, receiver, lost: 0, drops: 0, since_ps: 0, stalled_ps: 0, packets: 0 }
    }
}

impl Line {
    /// Returns the time on the line of `bytes`, in ps, rounded down.
    pub fn time_of(&self, bytes: u64) -> u64 {
        self.byte.time_of(bytes)
    }

    /// Returns the counters.
    pub fn count(&self) -> LineCount {
        self.count
    }

    /// Returns how often the line was idle because no packet had credit, and for how long, in ps.
    pub fn credit_waits(&self, now: u64) -> (u64, u64) {
        let (waits, ps) = self.waits;
        match self.starved_ps {
            NEVER => (waits, ps),
            since => (waits + 1, ps + now.saturating_sub(since)),
        }
    }

    /// Begins or ends a wait for credit.
    #[inline(never)]
    pub(super) fn set_starved(&mut self, now: u64, starves: bool) {
        self.waits = self.credit_waits(now);
        for lane in 0..LANES as u8 {
            self.lane_waits_ps[usize::from(lane)] = self.lane_wait_ps(lane, now);
        }
        (self.starved_ps, self.starved_lanes) = (NEVER, 0);
        if starves {
            self.starved_ps = now;
        }
    }

    /// Returns the time for which a lane had a packet without credit while the line was idle, in
    /// ps.
    pub fn lane_wait_ps(&self, lane: u8, now: u64) -> u64 {
        let is_starved = self.starved_ps != NEVER && self.starved_lanes & 1 << lane != 0;
        let current = if is_starved { now.saturating_sub(self.starved_ps) } else { 0 };
        self.lane_waits_ps[usize::from(lane)] + current
    }

    /// Returns the bytes of packets of a lane that have left the switch at the end by a port.
    pub fn onward_bytes(&self, output: u8, lane: u8) -> u64 {
        self.onward.get(self.onward_slot(output, lane)).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn onward_slot(&self, output: u8, lane: u8) -> usize {
        usize::from(output) * usize::from(self.data_lanes) + usize::from(lane)
    }

    /// Returns the number of data lanes.
    pub fn data_lanes(&self) -> u8 {
        self.data_lanes
    }

    /// Returns the packets of a lane that were sent.
    pub fn packets_of(&self, lane: u8) -> u64 {
        self.lanes[usize::from(lane)].packets
    }

    /// Returns the blocks that the sender of a lane may send now. Flow-control packets that have
    /// arrived by `now` count.
    pub fn available(&self, reverse: &Line, lane: u8, now: u64) -> u16 {
        let mut sender = self.lanes[usize::from(lane)].sender;
        let arrived = reverse.updates.iter().filter(|update| update.at_ps <= now && update.lane == lane);
        arrived.for_each(|update| sender.receive(update.update));
        sender.available()
    }

    /// Puts a packet on the line, which is free. Returns its times at the receiver.
    #[inline]
    pub(super) fn send(&mut self, now: u64, packet: Packet) -> OnLine {
        let bytes = packet.wire_bytes();
        let start_ps = self.busy.free_at_ps.max(now);
        let end_ps = self.busy.occupy(&self.byte, start_ps, bytes, 0);
        self.count.packets += 1;
        self.count.bytes += u64::from(packet.bytes);
        self.lanes[usize::from(packet.lane())].packets += 1;
        let delay_ps = self.cable_ps + self.latency_ps;
        let tail_ps = end_ps + delay_ps;
        let at_ps =
            if self.entry_bytes < bytes { start_ps + self.byte.time_of(self.entry_bytes) + delay_ps } else { tail_ps };
        OnLine { at_ps, tail_ps, packet }
    }

    /// Schedules the expiry of the lifetime. Returns its time if the event is new.
    #[inline]
    pub(super) fn begin_life(&mut self, now: u64) -> Option<u64> {
        if self.life_ps == NEVER || self.expiry_ps != NEVER {
            return None;
        }
        self.expiry_ps = now + self.life_ps;
        Some(self.expiry_ps)
    }
}
