//! The planes that move frames in virtual time, and the event queue that they share. Protocols are
//! not handled here.
//!
//! [`Net::step`] processes events until one concerns the layers above: a frame has arrived at an
//! N_Port or at a switch's processor, or a timer has expired. Each plane owns the state of its
//! lines and switches, and receives the queue as an argument: [`FcPlane`] for Fibre Channel,
//! [`EthernetPlane`], and [`InfinibandPlane`].

mod circle;
pub mod ethernet;
mod events;
pub mod fc;
pub mod fcoe;
pub mod infiniband;
pub mod line;
mod queue;
mod record;
mod sources;
pub mod tunnel;

pub use fc::{
    BufferCount, Channel, ChannelCount, Crossbar, End, Fate, FcPlane, Flight, FrameRef, GAP_BYTES, Half, InFlight,
    Incident, InputCount, Lane, LaneChannels, LaneCount, LaneFault, LoopTenancy, Loss, LossSite, Lost, MessageTx,
    Messages, NPortPlan, NPortPlane, NetPlan, OVERHEAD_BYTES, Observed, ObservedKind, Outbox, Pace, Priorities,
    Recorder, Sent, Share, StandingDeadlock, StateChanges, SwitchPlan, SwitchPlane, Turn, Unsent, WAIT_BUCKETS,
    WaitCount, injection, loops,
};
pub(crate) use fc::{divide, parts};
pub use queue::{EventQueue, NEVER};

use ethernet::{EthernetPlane, GAP_BYTES as ETHERNET_GAP_BYTES, PREAMBLE_BYTES, Packet};
use events::Events;
use infiniband::InfinibandPlane;
use sanloom_fc::exchange::SeqTx;
use sanloom_wire::Frame;
use sources::{Other, OtherSource, Source, Sources};

/// All planes and their clock.
pub struct Net {
    events: Events,
    /// Fibre Channel.
    pub fc: FcPlane,
    /// Ethernet.
    pub ethernet: EthernetPlane,
    /// InfiniBand.
    pub infiniband: InfinibandPlane,
}

/// An event for the layers above.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NetEvent {
    /// A complete frame is in a receive buffer of an N_Port. The buffer is held until
    /// [`Net::release`].
    Deliver { nport: u16, frame: FrameRef },
    /// A frame has arrived for a service of a switch.
    Local {
        switch: u16,
        /// Ingress port.
        port: u16,
        frame: FrameRef,
    },
    /// The timer with this number has expired.
    Timer(u32),
    /// A link was reset, or frames were discarded after the hold time.
    Incident,
    /// A frame has arrived at an Ethernet interface.
    Packet { interface: u16, packet: Packet },
    /// FCIP links have frames to send, or room for frames that have arrived.
    Tunnel,
    /// A packet has arrived at an InfiniBand interface.
    Infiniband { interface: u16, packet: infiniband::Packet },
}

/// Processes an event of an arbitrated loop, of Ethernet or of InfiniBand. A function of its own
/// keeps the loop of [`Net::step`] small.
#[inline(never)]
fn run_other(
    events: &mut Events,
    fc: &mut FcPlane,
    (ethernet, infiniband): (&mut EthernetPlane, &mut InfinibandPlane),
    source: OtherSource,
) -> Option<NetEvent> {
    match source.decode(events.sources) {
        Other::Loop(number) => loops::run(fc, events, number),
        Other::EthernetArrival(line) => match ethernet.arrive(events, line) {
            Some(NetEvent::Packet { packet, .. }) if packet.is_fcoe() => fcoe::arrive(fc, ethernet, events, packet),
            event if ethernet.has_handed() => {
                fcoe::settle(fc, ethernet, events);
                return event;
            }
            event => return event,
        },
        Other::Fcoe if fcoe::run(fc, ethernet, events) => return Some(NetEvent::Tunnel),
        Other::Fcoe => {}
        Other::EthernetWake(line) => ethernet.wake(events, line),
        Other::EthernetRefresh(line) => ethernet.refresh(events, line),
        Other::InfinibandCredit(line) => infiniband.credit(events, line),
        Other::InfinibandArrival(line) => return infiniband.arrive(events, line),
        Other::InfinibandWake(line) => infiniband.wake(events, line),
        Other::InfinibandExpiry(line) => infiniband.expire(events, line),
        Other::InfinibandRefresh(line) => infiniband.refresh(events, line),
        Other::InfinibandSweep => infiniband.swept(),
    }
    if ethernet.has_handed() {
        fcoe::settle(fc, ethernet, events);
    }
    None
}

/// Handles the frames of FCoE that a call of the Ethernet plane let leave or lost.
#[inline]
fn settle_fcoe(net: &mut Net) {
    if net.ethernet.has_handed() {
        fcoe::settle(&mut net.fc, &mut net.ethernet, &mut net.events);
    }
}

impl Net {
    /// Returns an idle network of Fibre Channel: all links up, all credits granted, empty
    /// forwarding tables.
    pub fn new(plan: NetPlan) -> Net {
        Net::with_ethernet(plan, EthernetPlane::default())
    }

    /// Returns an idle network of Fibre Channel and Ethernet.
    pub fn with_ethernet(plan: NetPlan, ethernet: EthernetPlane) -> Net {
        Net::with_planes(plan, ethernet, InfinibandPlane::default())
    }

    fn with_planes(plan: NetPlan, ethernet: EthernetPlane, infiniband: InfinibandPlane) -> Net {
        let ib_lines = infiniband.lines().len() as u32;
        let lines = ethernet.lines().len() as u32;
        let sources = Sources::new(plan.lanes.len() as u32, plan.timers, plan.loops as u32, lines, ib_lines);
        let per_s = |frame_ps: u64| 1_000_000_000_000 / frame_ps.max(1);
        let fc_per_s: u64 = plan.lanes.iter().map(|lane| per_s(lane.time_of(2108))).sum();
        let packet_ps = |line: &ethernet::Line| line.time_of(1518 + PREAMBLE_BYTES + ETHERNET_GAP_BYTES);
        let ib_per_s: u64 = infiniband.lines().iter().map(|line| per_s(line.time_of(1024))).sum();
        let frames_per_s =
            fc_per_s + ib_per_s + ethernet.lines().iter().map(|line| per_s(packet_ps(line))).sum::<u64>();
        let spacing_ps = 2_000_000_000_000 / frames_per_s.max(1);
        // Most events are due within the time of a frame and the latency of a switch.
        let line_count = plan.lanes.len() as u64 + u64::from(lines) + u64::from(ib_lines);
        let frame_ps = 1_000_000_000_000 * line_count / frames_per_s.max(1);
        let window_ps = frame_ps + frame_ps / 2;
        let fcoe = plan.fcoe.clone();
        let mut fc = FcPlane::new(plan);
        fcoe::add(&mut fc, &fcoe);
        Net { events: Events::new(sources, spacing_ps, window_ps), fc, ethernet, infiniband }
    }

    /// Processes events up to `limit_ps` until one concerns the layers above. Returns `None` if no
    /// such event occurs before the limit.
    #[inline]
    pub fn step(&mut self, limit_ps: u64) -> Option<NetEvent> {
        let Net { events, fc, ethernet, infiniband } = self;
        while let Some((time, source)) = events.queue.pop_until(limit_ps) {
            debug_assert!(time >= events.now, "source {source} was due at {time}, it is {}", events.now);
            fc.begin_event(events.now, time, source);
            events.now = time;
            let event = match events.sources.decode(source) {
                Source::Arrival(lane) => fc.arrive(events, lane),
                Source::Wake(lane) => {
                    fc.wake(events, lane);
                    continue;
                }
                Source::InputReady(lane) => {
                    fc.input_ready(events, lane);
                    continue;
                }
                Source::Watchdog(lane) => fc.watch_lane(events, lane),
                Source::Timer(timer) => return Some(NetEvent::Timer(timer)),
                Source::Other(source) => match run_other(events, fc, (ethernet, infiniband), source) {
                    Some(event) => return Some(event),
                    None => continue,
                },
            };
            if event.is_some() {
                return event;
            }
        }
        events.now = events.now.max(limit_ps);
        None
    }

    /// Returns the simulated time in ps.
    pub fn now(&self) -> u64 {
        self.events.now
    }

    /// Returns the number of events processed so far.
    pub fn events(&self) -> u64 {
        self.events.queue.popped()
    }

    /// Sets a timer; [`NEVER`] cancels it.
    #[inline]
    pub fn set_timer(&mut self, timer: u32, at_ps: u64) {
        let Events { queue, sources, now } = &mut self.events;
        queue.schedule(sources.timer(timer), at_ps.max(*now));
    }

    /// Sets a timer, unless it expires earlier anyway.
    #[inline]
    pub fn set_timer_earlier(&mut self, timer: u32, at_ps: u64) {
        let Events { queue, sources, now } = &mut self.events;
        queue.schedule_earlier(sources.timer(timer), at_ps.max(*now));
    }

    /// Appends a control message to the send queue of an N_Port.
    pub fn send_message(&mut self, nport: u16, frame: Frame) {
        self.fc.send_message(&mut self.events, nport, frame);
    }

    /// Appends a data sequence to the send queue of an N_Port.
    #[inline]
    pub fn send_data(&mut self, nport: u16, seq: SeqTx) {
        self.fc.send_data(&mut self.events, nport, seq);
    }

    /// Appends a single data frame to the send queue of an N_Port.
    pub fn send_frame(&mut self, nport: u16, frame: FrameRef) {
        self.fc.send_frame(&mut self.events, nport, frame);
    }

    /// Sends a control message from a switch's processor through a port.
    pub fn send_from_switch(&mut self, switch: u16, port: u16, frame: Frame) {
        self.fc.send_from_switch(&mut self.events, switch, port, frame);
    }

    /// Frees a receive buffer of the N_Port; the R_RDY leaves at `at_ps`.
    #[inline]
    pub fn release(&mut self, nport: u16, at_ps: u64) {
        self.fc.release(&mut self.events, nport, at_ps);
    }

    /// Takes a Fibre Channel link down. Frames on it and frames queued for it are lost.
    pub fn link_down(&mut self, link: u16) {
        self.fc.link_down(&mut self.events, link);
    }

    /// Brings a Fibre Channel link up. Both senders get one credit for each free receive buffer.
    pub fn link_up(&mut self, link: u16) {
        self.fc.link_up(&mut self.events, link);
    }

    /// Discards every frame in a Fibre Channel switch that restarts.
    pub fn reset_switch(&mut self, switch: u16) {
        self.fc.reset_switch(&mut self.events, switch);
    }

    /// Starts or stops withholding the R_RDYs of the receiver of a lane. At the end, all withheld
    /// R_RDYs are sent.
    pub fn withhold_credits(&mut self, lane: u32, withhold: bool) {
        self.fc.withhold_credits(&mut self.events, lane, withhold);
    }

    /// Resets the counters that cannot be reported as a difference of two readings: minima, maxima
    /// and waiting times. Of the deadlocks, those that hold now count on.
    pub fn restart_counts(&mut self) {
        let now = self.events.now;
        self.fc.restart_counts(now);
        self.ethernet.confirm_deadlocks(now);
        self.infiniband.restart_deadlocks(now);
    }

    /// Appends a frame to the queue of an Ethernet interface.
    pub fn send_packet(&mut self, packet: Packet) {
        self.ethernet.send(&mut self.events, packet);
        settle_fcoe(self);
    }

    /// Appends a frame that is for the other end of an Ethernet line to the queue of its sender.
    pub(crate) fn send_on_line(&mut self, line: u32, packet: Packet) {
        self.ethernet.send_on_line(&mut self.events, line, packet);
        settle_fcoe(self);
    }

    /// Takes an Ethernet link down or brings it up. Frames on it and frames queued for it are lost.
    pub fn set_ethernet_link(&mut self, link: u32, up: bool) {
        self.ethernet.set_link(&mut self.events, link, up);
        settle_fcoe(self);
    }

    /// Lets an Ethernet interface pause the priorities in `storm`, a mask, until the next call.
    pub fn set_pause_storm(&mut self, interface: u16, storm: u8) {
        self.ethernet.set_storm(&mut self.events, interface, storm);
        settle_fcoe(self);
    }
}
