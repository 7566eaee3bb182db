//! The frame path: lanes, switches and N_Ports that move frames in virtual time, and nothing of the protocols.
//!
//! [`Net::step`] handles events until one concerns somebody above: a frame has arrived at an N_Port or at a switch's own
//! processor, or a timer has run out. One crossing of one lane by one frame is a *frame-hop*; in the best case it costs
//! one event, its arrival. A lane that could not send when a frame came is woken when its line is free, when a credit
//! is back or when a busy input is ready, whichever it waits for.
//!
//! # What the model leaves out
//!
//! - Fill words are counted by arithmetic, never simulated.
//! - An R_RDY does not wait for a frame that is being sent the same way.
//! - Inside a switch nothing limits the crossbar but what [`sanloom_core::config::Queueing`] says.

mod crossbar;
mod faults;
mod flight;
mod frame_ref;
mod input;
mod lane;
mod links;
mod messages;
mod observe;
mod queue;
mod reset;
mod returning;
mod step;

pub use crossbar::{Crossbar, InputCount, WAIT_BUCKETS, WaitCount};
pub use faults::LaneFault;
pub use flight::{Flight, InFlight};
pub use frame_ref::{FrameRef, GAP_BYTES, OVERHEAD_BYTES};
pub use lane::{End, Lane, LaneCount, Sent};
pub use messages::{MessageTx, Messages};
pub use observe::{Incident, Observed, ObservedKind};
pub use queue::{EventQueue, NEVER};

use sanloom_core::config::{Forwarding, IslChoice};
use sanloom_core::exchange::SeqTx;
use sanloom_core::fabric::{self, Fib};
use std::collections::{BTreeMap, VecDeque};

/// Everything that moves frames.
pub struct Net {
    queue: EventQueue,
    /// Time of the event being handled.
    now: u64,
    lanes: Vec<Lane>,
    switches: Vec<SwitchPlane>,
    nports: Vec<NPortPlane>,
    bundles: Vec<Bundle>,
    /// Control messages under way.
    pub messages: Messages,
    /// Frames by fate.
    pub fate: Fate,
    faults: Vec<Option<Box<LaneFault>>>,
    observed: Vec<Observed>,
    incidents: Vec<Incident>,
    losses: BTreeMap<(Place, Loss), Lost>,
    e_d_tov_ps: u64,
    hold_time_ps: u64,
    timers: u32,
}

/// The frame path of a switch.
pub struct SwitchPlane {
    /// Forwarding table, kept by the switch machine's deltas.
    pub fib: Fib,
    /// Input buffers and arbiters.
    pub crossbar: Crossbar,
    /// Lanes that leave, by port.
    tx: Vec<u32>,
    /// Lanes that arrive, by port.
    rx: Vec<u32>,
    /// Output that serves a port: its own, or the first of its bundle.
    output_of: Vec<u16>,
    /// First output of a bundle, by bundle number.
    bundle_output: Vec<u16>,
    /// Ports that an output serves.
    members: Vec<Vec<u16>>,
    /// Next leg of each spray group.
    turn: Vec<u16>,
    /// Frames are dropped at the input when their CRC is bad.
    checks_crc: bool,
}

/// The frame path of an N_Port.
pub struct NPortPlane {
    tx: u32,
    rx: u32,
    waiting: VecDeque<Tx>,
    /// Pause before each data sequence, in ps.
    sequence_overhead_ps: u64,
    /// The sequence in front has had its pause.
    paused: bool,
    /// When the next frame may start after a pause.
    not_before_ps: u64,
    /// Largest data field that is sent, in bytes.
    frame_bytes: u16,
    /// Receive buffers that hold a frame.
    held: u32,
    /// Most at once, sum of their number times ps, and when it last changed, since the counters were restarted.
    held_max: u32,
    held_area_ps: u64,
    held_at_ps: u64,
}

/// What an N_Port has to send.
#[derive(Clone, Debug)]
enum Tx {
    Message(MessageTx),
    Data(SeqTx),
    Frame(FrameRef),
}

/// One direction of a bundle.
#[derive(Clone, Copy, Debug, Default)]
struct Bundle {
    /// Arrival of the last frame, which later ones must not overtake.
    last_at_ps: u64,
}

/// What happened to the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fate {
    /// Frames that an N_Port or a switch's processor has begun to send.
    pub sent: u64,
    /// Frames that arrived where they were going.
    pub delivered: u64,
    /// Frames that did not, by [`Loss`].
    pub lost: [u64; Loss::ALL.len()],
    /// Frames that have crossed a lane.
    pub frame_hops: u64,
}

/// Why a frame did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Loss {
    /// The forwarding table said so.
    Fib(fabric::DropReason),
    /// It was on a link that went down, or waited for one.
    LinkDown,
    /// It was in a receive buffer when the link was reset.
    LinkReset,
    /// It waited longer than the hold time.
    HoldTime,
    /// Its CRC was bad, found by a switch.
    CrcError,
    /// Its CRC was bad, found at its destination.
    CrcAtDestination,
    /// A fault of the lab made it disappear.
    FrameLoss,
    /// Its switch restarted.
    SwitchReset,
}

impl Loss {
    /// Every reason, in the order of [`Fate::lost`].
    pub const ALL: [Loss; 12] = [
        Loss::Fib(fabric::DropReason::BadSourceId),
        Loss::Fib(fabric::DropReason::NoRoute),
        Loss::Fib(fabric::DropReason::UnknownDestination),
        Loss::Fib(fabric::DropReason::ZoneDenied),
        Loss::Fib(fabric::DropReason::PortDown),
        Loss::LinkDown,
        Loss::LinkReset,
        Loss::HoldTime,
        Loss::CrcError,
        Loss::CrcAtDestination,
        Loss::FrameLoss,
        Loss::SwitchReset,
    ];

    fn index(self) -> usize {
        match self {
            Loss::Fib(reason) => reason as usize,
            Loss::LinkDown => 5,
            Loss::LinkReset => 6,
            Loss::HoldTime => 7,
            Loss::CrcError => 8,
            Loss::CrcAtDestination => 9,
            Loss::FrameLoss => 10,
            Loss::SwitchReset => 11,
        }
    }

    /// Name in results: lower case with underscores.
    pub fn name(self) -> &'static str {
        match self {
            Loss::Fib(reason) => reason.name(),
            Loss::LinkDown => "link_down",
            Loss::LinkReset => "link_reset",
            Loss::HoldTime => "hold_time",
            Loss::CrcError => "crc_error",
            Loss::CrcAtDestination => "crc_error_at_destination",
            Loss::FrameLoss => "frame_loss",
            Loss::SwitchReset => "switch_reset",
        }
    }
}

/// Where a frame was lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// On the line of a lane.
    Line(u32),
    /// At the port at which the lane ends: in its buffers, or on its way into them.
    Receiver(u32),
    /// In a switch that had made it itself.
    Processor(u16),
}

/// Frames lost at one place for one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// Frames.
    pub frames: u64,
    /// Their bytes, SOF to EOF.
    pub bytes: u64,
}

/// What happened in the receive buffers of a port since the counters were restarted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferCount {
    /// Sum of occupied buffers times picoseconds.
    pub area_ps: u64,
    /// Most buffers occupied at once.
    pub max: u32,
}

impl Fate {
    /// Frames lost for any reason.
    pub fn lost_frames(&self) -> u64 {
        self.lost.iter().sum()
    }
}

/// Something that the layers above must deal with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NetEvent {
    /// A whole frame is in a receive buffer of an N_Port; the buffer is held until [`Net::release`].
    Deliver {
        /// N_Port.
        nport: u16,
        /// The frame.
        frame: FrameRef,
    },
    /// A frame is for a service of a switch.
    Local {
        /// Switch.
        switch: u16,
        /// Port that it came in through.
        port: u16,
        /// The frame.
        frame: FrameRef,
    },
    /// The timer of this number has run out.
    Timer(u32),
}

/// How a [`Net`] is built.
pub struct NetPlan {
    /// Switches.
    pub switches: Vec<SwitchPlan>,
    /// Lanes in pairs: 2n and 2n + 1 are the directions of link n.
    pub lanes: Vec<Lane>,
    /// N_Ports; each ends one link.
    pub nports: Vec<NPortPlan>,
    /// Timers of the layers above.
    pub timers: u32,
    /// Number of bundle directions.
    pub bundles: usize,
    /// Error detect timeout in ps.
    pub e_d_tov_ps: u64,
    /// Hold time in ps.
    pub hold_time_ps: u64,
}

/// A switch of a [`NetPlan`].
pub struct SwitchPlan {
    /// Its configuration.
    pub config: sanloom_core::config::Switch,
    /// Bundle number (of the lab) of each port, where it has one.
    pub bundle_of_port: Vec<Option<u16>>,
}

/// An N_Port of a [`NetPlan`].
pub struct NPortPlan {
    /// Pause before each data sequence, in ps.
    pub sequence_overhead_ps: u64,
    /// Largest data field, in bytes.
    pub frame_bytes: u16,
}

const NO_LANE: u32 = u32::MAX;

impl Net {
    /// An idle network: all links up, all credits given, empty forwarding tables.
    pub fn new(plan: NetPlan) -> Net {
        let lanes = plan.lanes.len() as u32;
        let frames_per_s: u64 = plan.lanes.iter().map(|lane| 1_000_000_000_000 / lane.time_of(2108).max(1)).sum();
        let spacing_ps = 2_000_000_000_000 / frames_per_s.max(1);
        let mut net = Net {
            queue: EventQueue::new((4 * lanes + plan.timers) as usize, 2 * lanes as usize, spacing_ps),
            now: 0,
            switches: plan.switches.iter().map(SwitchPlane::new).collect(),
            nports: plan.nports.iter().map(NPortPlane::new).collect(),
            bundles: vec![Bundle::default(); plan.bundles],
            messages: Messages::default(),
            fate: Fate::default(),
            faults: plan.lanes.iter().map(|_| None).collect(),
            observed: Vec::new(),
            incidents: Vec::new(),
            losses: BTreeMap::new(),
            e_d_tov_ps: plan.e_d_tov_ps,
            hold_time_ps: plan.hold_time_ps,
            timers: plan.timers,
            lanes: plan.lanes,
        };
        for (number, lane) in net.lanes.iter_mut().enumerate() {
            let number = number as u32;
            lane.special = lane.bundle.is_some();
            match lane.from {
                End::Switch { switch, port } => {
                    let plane = &mut net.switches[usize::from(switch)];
                    plane.tx[usize::from(port)] = number;
                    lane.output = plane.output_of[usize::from(port)];
                    if let [_] = plane.members[usize::from(lane.output)][..] {
                        plane.crossbar.serve(lane.output, number);
                    }
                }
                End::NPort(nport) => net.nports[usize::from(nport)].tx = number,
            }
            match lane.to {
                End::Switch { switch, port } => {
                    let config = &plan.switches[usize::from(switch)].config;
                    lane.latency_ps = config.latency.0;
                    lane.cut_through = config.forwarding == Forwarding::CutThrough;
                    net.switches[usize::from(switch)].rx[usize::from(port)] = number;
                }
                End::NPort(nport) => net.nports[usize::from(nport)].rx = number,
            }
        }
        net
    }

    /// Simulated time in ps.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.queue.popped()
    }

    /// The lanes; 2n and 2n + 1 are the directions of link n.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// A lane, to be watched or made faulty before the run.
    pub fn lane_mut(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane as usize]
    }

    /// A switch.
    pub fn switch(&self, switch: u16) -> &SwitchPlane {
        &self.switches[usize::from(switch)]
    }

    /// The forwarding table of a switch.
    pub fn fib_mut(&mut self, switch: u16) -> &mut Fib {
        &mut self.switches[usize::from(switch)].fib
    }

    /// The lane that an N_Port sends on.
    pub fn tx_lane(&self, nport: u16) -> u32 {
        self.nports[usize::from(nport)].tx
    }

    /// The lane that an N_Port receives on.
    pub fn rx_lane(&self, nport: u16) -> u32 {
        self.nports[usize::from(nport)].rx
    }

    /// Frames lost so far, by place and reason.
    pub fn losses(&self) -> &BTreeMap<(Place, Loss), Lost> {
        &self.losses
    }

    /// Receive buffers of an N_Port.
    pub fn nport_buffers(&self, nport: u16) -> BufferCount {
        let plane = &self.nports[usize::from(nport)];
        let present = u64::from(plane.held) * self.now.saturating_sub(plane.held_at_ps);
        BufferCount { area_ps: plane.held_area_ps + present, max: plane.held_max }
    }

    /// Restarts the counters that have no earlier state to be compared with: minima, maxima and waiting times.
    pub fn restart_counts(&mut self) {
        let now = self.now;
        self.lanes.iter_mut().for_each(Lane::restart_minimum);
        self.switches.iter_mut().for_each(|switch| switch.crossbar.restart_counts(now));
        for plane in &mut self.nports {
            (plane.held_max, plane.held_area_ps, plane.held_at_ps) = (plane.held, 0, now);
        }
    }

    /// Gives back memory that no frame needs now: logins fill buffers of switches as the run will not do again.
    pub fn trim(&mut self) {
        self.messages.trim();
        self.switches.iter_mut().for_each(|switch| switch.crossbar.trim());
    }

    /// Items that an N_Port still has to send.
    pub fn waiting(&self, nport: u16) -> usize {
        self.nports[usize::from(nport)].waiting.len()
    }

    /// Sets a timer; [`NEVER`] takes it back.
    #[inline]
    pub fn set_timer(&mut self, timer: u32, at_ps: u64) {
        debug_assert!(timer < self.timers);
        let source = self.timer_source(timer);
        self.queue.schedule(source, at_ps.max(self.now));
    }

    /// Sets a timer unless it runs out earlier.
    #[inline]
    pub fn set_timer_earlier(&mut self, timer: u32, at_ps: u64) {
        debug_assert!(timer < self.timers);
        let source = self.timer_source(timer);
        self.queue.schedule_earlier(source, at_ps.max(self.now));
    }

    /// When the timer runs out, [`NEVER`] if it is not set.
    pub fn timer(&self, timer: u32) -> u64 {
        self.queue.time_of(self.timer_source(timer))
    }

    #[inline]
    fn timer_source(&self, timer: u32) -> u32 {
        4 * self.lanes.len() as u32 + timer
    }

    /// Frames on lanes and in buffers, not yet delivered or lost.
    pub fn frames_under_way(&self) -> u64 {
        let on_lanes: u64 = self.lanes.iter().map(|lane| lane.flight.len() as u64).sum();
        on_lanes + self.switches.iter().map(|switch| switch.crossbar.frames()).sum::<u64>()
    }
}

impl SwitchPlane {
    fn new(plan: &SwitchPlan) -> SwitchPlane {
        let config = &plan.config;
        let ports = usize::from(config.ports);
        let mut output_of: Vec<u16> = (0..config.ports).collect();
        let most = plan.bundle_of_port.iter().flatten().max().map_or(0, |&b| usize::from(b) + 1);
        let mut bundle_output = vec![u16::MAX; most];
        for (port, bundle) in plan.bundle_of_port.iter().enumerate() {
            if let Some(bundle) = bundle {
                let first = &mut bundle_output[usize::from(*bundle)];
                if *first == u16::MAX {
                    *first = port as u16;
                }
                output_of[port] = *first;
            }
        }
        let mut members = vec![Vec::new(); ports];
        for (port, &output) in output_of.iter().enumerate() {
            members[usize::from(output)].push(port as u16);
        }
        let isl_choice: IslChoice = config.isl_choice;
        let mut fib = Fib::new(config.domain, config.ports, isl_choice);
        for (port, bundle) in (0..).zip(&plan.bundle_of_port) {
            bundle.iter().for_each(|bundle| fib.join_bundle(port, output_of[usize::from(port)], *bundle));
        }
        SwitchPlane {
            fib,
            crossbar: Crossbar::new(config.ports, config.queueing, config.arbitration).with_trunks(&members),
            tx: vec![NO_LANE; ports],
            rx: vec![NO_LANE; ports],
            output_of,
            bundle_output,
            members,
            turn: vec![0; 256],
            checks_crc: config.forwarding == Forwarding::StoreAndForward,
        }
    }

    /// Where a frame in the buffer of an input is, for the books.
    fn place(&self, switch: u16, input: u16) -> Place {
        match self.rx.get(usize::from(input)) {
            Some(&lane) if lane != NO_LANE => Place::Receiver(lane),
            _ => Place::Processor(switch),
        }
    }

    /// The lane that arrives at a port, if a link is there.
    pub fn rx_lane(&self, port: u16) -> Option<u32> {
        self.rx.get(usize::from(port)).copied().filter(|&lane| lane != NO_LANE)
    }

    /// The lane that leaves through a port, if a link is there.
    pub fn tx_lane(&self, port: u16) -> Option<u32> {
        self.tx.get(usize::from(port)).copied().filter(|&lane| lane != NO_LANE)
    }
}

impl NPortPlane {
    #[inline]
    fn hold(&mut self, now: u64) {
        self.held_area_ps += u64::from(self.held) * now.saturating_sub(self.held_at_ps);
        self.held_at_ps = now;
        self.held += 1;
        self.held_max = self.held_max.max(self.held);
    }

    #[inline]
    fn let_go(&mut self, now: u64) {
        self.held_area_ps += u64::from(self.held) * now.saturating_sub(self.held_at_ps);
        self.held_at_ps = now;
        self.held -= 1;
    }

    fn new(plan: &NPortPlan) -> NPortPlane {
        NPortPlane {
            tx: NO_LANE,
            rx: NO_LANE,
            waiting: VecDeque::new(),
            sequence_overhead_ps: plan.sequence_overhead_ps,
            paused: false,
            not_before_ps: 0,
            frame_bytes: plan.frame_bytes,
            held: 0,
            held_max: 0,
            held_area_ps: 0,
            held_at_ps: 0,
        }
    }
}
