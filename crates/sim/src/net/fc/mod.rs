//! The frame path of Fibre Channel: lanes, switches and N_Ports that move frames in virtual time.
//!
//! A *frame-hop* is one crossing of one lane by one frame. In the best case it costs one event, the
//! arrival. A lane that cannot send at once is woken when its line is free, when a credit returns,
//! or when a busy input becomes ready.
//!
//! # Simplifications
//!
//! - Fill words are computed, not simulated.
//! - An R_RDY does not wait for a frame in the same direction.
//! - With [`sanloom_fc::config::Queueing::Any`] the crossbar has no limit.

mod channels;
mod crossbar;
mod crossing;
mod deadlock;
pub(crate) mod divide;
mod egress;
mod faults;
mod flight;
mod frame_ref;
pub mod injection;
mod input;
mod lane;
mod links;
mod loop_records;
pub mod loops;
mod mask;
mod messages;
mod nport;
mod observe;
mod over_ethernet;
pub(crate) mod parts;
mod receiver;
mod recovery;
mod reset;
mod returning;
mod step;

pub use channels::{Channel, ChannelCount, LaneChannels, Priorities};
pub use crossbar::{Crossbar, InputCount, Pace, WAIT_BUCKETS, WaitCount};
pub use deadlock::StandingDeadlock;
pub use divide::{Half, Share};
pub use faults::LaneFault;
pub use flight::{Flight, InFlight};
pub use frame_ref::{FrameRef, GAP_BYTES, OVERHEAD_BYTES};
pub use lane::{End, Lane, LaneCount, Sent};
pub use loop_records::LoopTenancy;
pub use messages::{MessageTx, Messages};
pub use nport::{NPortPlane, Unsent};
pub use observe::{Incident, Observed, ObservedKind, Recorder};
pub use parts::{Outbox, Turn};
pub use recovery::StateChanges;

use crate::net::NEVER;
use crate::net::fcoe::{FcoePlan, FcoePlane};
use channels::ChannelOutputs;
use flight::Entry;
use loops::LoopPlane;
use parts::Parts;
use sanloom_fc::config::{ChannelCredits, Forwarding, IslChoice};
use sanloom_fc::fabric::{self, Fib, Leg};

/// State of the frame path.
pub struct FcPlane {
    lanes: Vec<Lane>,
    switches: Vec<SwitchPlane>,
    nports: Vec<NPortPlane>,
    bundles: Vec<Bundle>,
    loops: Vec<LoopPlane>,
    /// In-flight control messages.
    pub messages: Messages,
    /// Frame counters: sent, delivered, lost.
    pub fate: Fate,
    faults: Vec<Option<Box<LaneFault>>>,
    /// Virtual channels of the lanes that have them.
    channels: Vec<Option<Box<LaneChannels>>>,
    /// True if a lane has virtual channels.
    has_channels: bool,
    /// Priorities of frames, for virtual channels.
    pub priorities: Priorities,
    /// Records of the watched lanes, incidents and lost frames.
    pub recorder: Recorder,
    e_d_tov_ps: u64,
    hold_time_ps: u64,
    parts: Parts,
    /// Virtual links over Ethernet.
    pub fcoe: FcoePlane,
}

/// The frame path of a switch.
pub struct SwitchPlane {
    /// Forwarding table, updated by the deltas of the switch machine.
    pub fib: Fib,
    /// Input buffers and arbiters.
    pub crossbar: Crossbar,
    /// Outgoing lane of each port.
    tx: Vec<u32>,
    /// Incoming lane of each port.
    rx: Vec<u32>,
    /// Output of each port: its own, or the first one of its bundle.
    output_of: Vec<u16>,
    /// First output of each bundle, by bundle number.
    bundle_output: Vec<u16>,
    /// Ports served by each output.
    members: Vec<Vec<u16>>,
    /// Next leg of each spray group.
    next_leg: Vec<u16>,
    /// Frames discarded because of the hold time, by the port that they waited for.
    timeouts: Vec<u64>,
    /// Outputs of virtual channels; `None` if no port has them.
    channels: Option<Box<ChannelOutputs>>,
    /// True if the legs of a spray group are chosen by load, not in turn.
    by_load: bool,
    /// True if the input drops frames with a bad CRC.
    checks_crc: bool,
}

/// One direction of a bundle.
#[derive(Clone, Copy, Debug, Default)]
struct Bundle {
    /// Arrival time of the last frame. Later frames must not overtake it.
    last_at_ps: u64,
}

/// Frame counters by outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fate {
    /// Frames that an N_Port or a switch's processor has started to send.
    pub sent: u64,
    /// Frames that reached their destination.
    pub delivered: u64,
    /// Frames that did not reach their destination, indexed by [`Loss`].
    pub lost: [u64; Loss::ALL.len()],
    /// Number of lane crossings of all frames.
    pub frame_hops: u64,
}

/// Declares [`Loss`], its list and its names.
macro_rules! losses {
    ($($(#[$doc:meta])+ $variant:ident => $name:literal,)+) => {
        /// Reason for a lost frame.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Loss {
            /// Dropped by the forwarding table.
            Fib(fabric::DropReason),
            $($(#[$doc])+ $variant,)+
        }

        impl Loss {
            /// Reasons outside of the forwarding table.
            const OWN: &[Loss] = &[$(Loss::$variant,)+];

            /// Returns the name used in results: lower case with underscores.
            pub fn name(self) -> &'static str {
                match self {
                    Loss::Fib(reason) => reason.name(),
                    $(Loss::$variant => $name,)+
                }
            }
        }
    };
}

losses! {
    /// On a link that went down, or queued for one.
    LinkDown => "link_down",
    /// In a receive buffer during a link reset.
    LinkReset => "link_reset",
    /// Held in a buffer for longer than the hold time.
    HoldTime => "hold_time",
    /// Bad CRC, detected by a switch.
    CrcError => "crc_error",
    /// Bad CRC, detected at the destination.
    CrcAtDestination => "crc_error_at_destination",
    /// Lost through a frame-loss fault of the lab.
    FrameLoss => "frame_loss",
    /// In a switch that restarted.
    SwitchReset => "switch_reset",
    /// On an arbitrated loop whose initialisation began.
    LoopInitialised => "loop_initialised",
    /// To a port that an arbitrated loop does not have.
    NoLoopPort => "no_loop_port",
    /// On Ethernet, below a virtual link.
    Ethernet => "ethernet",
    /// At the end of a virtual link, without room in the receive buffer.
    FcoeBuffer => "fcoe_buffer",
    /// Older than R_A_TOV at the end of an FCIP link.
    Stale => "stale",
}

impl Loss {
    /// All reasons, in the order of [`Fate::lost`]: those of the forwarding table, then the others.
    pub const ALL: [Loss; fabric::DropReason::ALL.len() + Loss::OWN.len()] = {
        let of_fib = fabric::DropReason::ALL;
        let mut all = [Loss::LinkDown; fabric::DropReason::ALL.len() + Loss::OWN.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < of_fib.len() { Loss::Fib(of_fib[at]) } else { Loss::OWN[at - of_fib.len()] };
            at += 1;
        }
        all
    };

    /// Last reason in the order of [`Loss::ALL`], which is also the order of comparisons.
    pub const LAST: Loss = Loss::ALL[Loss::ALL.len() - 1];

    /// Position in [`Loss::ALL`].
    fn index(self) -> usize {
        Loss::ALL.iter().position(|loss| *loss == self).unwrap_or(Loss::ALL.len() - 1)
    }
}

/// Location of a frame loss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LossSite {
    /// On the line of a lane.
    Line(u32),
    /// At the port where the lane ends: in its buffers or on entry to them.
    Receiver(u32),
    /// In the switch that generated the frame.
    Processor(u16),
}

/// Frames lost at one location for one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    pub frames: u64,
    /// Bytes of these frames, from SOF to EOF.
    pub bytes: u64,
}

/// Usage of the receive buffers of a port since the counters were reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferCount {
    /// Integral of the occupied buffers over time, in buffers × ps.
    pub area_ps: u64,
    /// Highest number of occupied buffers.
    pub max: u32,
}

impl Fate {
    /// Returns the number of frames lost for any reason.
    pub fn lost_frames(&self) -> u64 {
        self.lost.iter().sum()
    }
}

/// Construction parameters of an [`FcPlane`].
pub struct NetPlan {
    pub switches: Vec<SwitchPlan>,
    /// Lanes in pairs: 2n and 2n + 1 are the two directions of link n.
    pub lanes: Vec<Lane>,
    /// Virtual channels of the lanes that have them. Both ends are switches with virtual output
    /// queues, and all lanes of a bundle have the same channels.
    pub channels: Vec<(u32, ChannelCredits)>,
    /// N_Ports; each is the end of one link.
    pub nports: Vec<NPortPlan>,
    /// Number of timers for the layers above.
    pub timers: u32,
    /// Number of bundle directions.
    pub bundles: usize,
    /// Number of arbitrated loops.
    pub loops: usize,
    /// Lanes of virtual links.
    pub fcoe: FcoePlan,
    /// Error detect timeout, in ps.
    pub e_d_tov_ps: u64,
    /// Hold time, in ps.
    pub hold_time_ps: u64,
}

/// A switch of a [`NetPlan`].
pub struct SwitchPlan {
    pub config: sanloom_fc::config::Switch,
    /// For each port, the number of its bundle in the lab, if it belongs to one.
    pub bundle_of_port: Vec<Option<u16>>,
}

/// An N_Port of a [`NetPlan`].
pub struct NPortPlan {
    /// Pause before each data sequence, in ps.
    pub sequence_overhead_ps: u64,
    /// Further pause for each frame of the sequence, in ps.
    pub frame_overhead_ps: u64,
    /// Largest data field sent, in bytes.
    pub frame_bytes: u16,
}

const NO_LANE: u32 = u32::MAX;

impl FcPlane {
    /// Returns an idle network: all links up, all credits granted, empty forwarding tables.
    pub fn new(mut plan: NetPlan) -> FcPlane {
        let loops = loops::of_lanes(plan.loops, &mut plan.lanes);
        let mut net = FcPlane {
            switches: (0..)
                .zip(&plan.switches)
                .map(|(number, switch)| SwitchPlane::new(number, switch, &plan))
                .collect(),
            nports: plan.nports.iter().map(NPortPlane::new).collect(),
            bundles: vec![Bundle::default(); plan.bundles],
            loops,
            messages: Messages::default(),
            fate: Fate::default(),
            faults: plan.lanes.iter().map(|_| None).collect(),
            channels: plan.lanes.iter().map(|_| None).collect(),
            has_channels: false,
            priorities: Priorities::default(),
            recorder: Recorder::default(),
            e_d_tov_ps: plan.e_d_tov_ps,
            hold_time_ps: plan.hold_time_ps,
            parts: Parts::default(),
            fcoe: FcoePlane::default(),
            lanes: plan.lanes,
        };
        for (number, lane) in net.lanes.iter_mut().enumerate() {
            let number = number as u32;
            lane.special = lane.bundle.is_some() || lane.on_loop;
            match lane.from {
                End::Switch { switch, port } => {
                    let plane = &mut net.switches[usize::from(switch)];
                    plane.tx[usize::from(port)] = number;
                    lane.output = plane.output_of[usize::from(port)];
                    if plane.members[usize::from(lane.output)].len() == 1 && plane.outputs_of(lane.output).count() == 1
                    {
                        plane.crossbar.serve(lane.output, number);
                    }
                }
                End::NPort(nport) => {
                    let tx = if lane.on_loop { loops::loop_tx(number) } else { number };
                    net.nports[usize::from(nport)].tx = tx;
                }
                End::Loop { .. } => {}
            }
            match lane.to {
                End::Switch { switch, port } => {
                    let config = &plan.switches[usize::from(switch)].config;
                    lane.latency_ps = config.latency.0;
                    if config.forwarding == Forwarding::CutThrough && !lane.on_loop {
                        lane.entry = Entry::Header;
                    }
                    net.switches[usize::from(switch)].rx[usize::from(port)] = number;
                }
                End::NPort(nport) => net.nports[usize::from(nport)].rx = number,
                End::Loop { .. } => {}
            }
        }
        for (lane, credits) in &plan.channels {
            channels::add(&mut net, *lane, credits);
        }
        for (number, plan) in (0..).zip(&plan.switches) {
            let at_switch = |end| matches!(end, End::Switch { switch, .. } if switch == number);
            let lanes = net.lanes.iter().filter(|lane| at_switch(lane.from) || at_switch(lane.to));
            if let Some(fastest) = lanes.map(Lane::ps_per_byte).min_by_key(|&(ps, bytes)| (ps << 20) / bytes) {
                net.switches[usize::from(number)].crossbar.set_pace(Pace::new(&plan.config.crossbar, fastest));
            }
            crossing::mark_fast_lines(&mut net.lanes, &mut net.switches[usize::from(number)], number, &plan.config);
        }
        net
    }

    /// Returns the lanes; 2n and 2n + 1 are the two directions of link n.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Returns a lane, for example to watch it or to set a fault before the run.
    pub fn lane_mut(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane as usize]
    }

    pub fn switch(&self, switch: u16) -> &SwitchPlane {
        &self.switches[usize::from(switch)]
    }

    /// Returns the forwarding table of a switch.
    pub fn fib_mut(&mut self, switch: u16) -> &mut Fib {
        &mut self.switches[usize::from(switch)].fib
    }

    pub fn nport(&self, nport: u16) -> &NPortPlane {
        &self.nports[usize::from(nport)]
    }

    /// Returns the send queue of an N_Port, to discard frames that must not leave.
    pub fn unsent(&mut self, nport: u16) -> Unsent<'_> {
        Unsent { queue: &mut self.nports[usize::from(nport)].queue, messages: &mut self.messages }
    }

    /// Resets the counters that cannot be reported as a difference of two readings: minima, maxima
    /// and waiting times.
    pub fn restart_counts(&mut self, now: u64) {
        self.lanes.iter_mut().for_each(Lane::restart_minimum);
        self.switches.iter_mut().for_each(|switch| switch.crossbar.restart_counts(now));
        self.nports.iter_mut().for_each(|plane| plane.buffers.restart_counts(now));
        self.loops.iter_mut().for_each(LoopPlane::restart_counts);
    }

    /// Frees memory that no frame uses now. Logins fill switch buffers further than the rest of a
    /// run does.
    pub fn trim(&mut self) {
        self.messages.trim();
        self.switches.iter_mut().for_each(|switch| switch.crossbar.trim());
    }

    /// Returns the number of frames on lanes and in buffers that are neither delivered nor lost.
    pub fn frames_in_flight(&self) -> u64 {
        let on_lanes: u64 = self.lanes.iter().map(|lane| lane.flight.len() as u64).sum();
        on_lanes
            + self.fcoe.frames()
            + loops::all_held(self)
            + self.switches.iter().map(|switch| switch.crossbar.frames()).sum::<u64>()
    }
}

impl SwitchPlane {
    fn new(number: u16, plan: &SwitchPlan, net: &NetPlan) -> SwitchPlane {
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
        let channels = ChannelOutputs::of_switch(number, &output_of, net);
        if let Some(channels) = &channels {
            for port in channels.ports() {
                members.push(members[usize::from(port)].clone());
            }
        }
        let mut fib = Fib::new(config.domain, config.ports, config.isl_choice).with_salt(config.isl_salt());
        for (port, bundle) in (0..).zip(&plan.bundle_of_port) {
            bundle.iter().for_each(|bundle| fib.join_bundle(port, output_of[usize::from(port)], *bundle));
        }
        SwitchPlane {
            fib,
            crossbar: Crossbar::new(config.ports, config.queueing, config.arbitration)
                .with_trunks(&members[..ports])
                .with_outputs(members.len())
                .with_egress(config.crossbar.egress_frames, members.iter().map(Vec::len)),
            tx: vec![NO_LANE; ports],
            rx: vec![NO_LANE; ports],
            output_of,
            bundle_output,
            members,
            next_leg: vec![0; 256],
            timeouts: vec![0; ports],
            channels,
            by_load: config.isl_choice == IslChoice::LeastLoaded,
            checks_crc: config.forwarding == Forwarding::StoreAndForward,
        }
    }

    /// Returns the output for the next frame of a spray group that arrives at `port`. Successive
    /// frames use successive legs of the group, or the leg with the least load. No frame leaves
    /// through the port of its arrival.
    fn spray(&mut self, group: u16, port: u16, lanes: &[Lane], now: u64) -> u16 {
        let legs = self.fib.spray_members(group);
        if self.by_load {
            let others = legs.iter().filter(|leg| !self.fib.leads_back(port, **leg));
            let outputs = others.map(|leg| self.output_of_leg(*leg));
            return outputs.min_by_key(|output| self.load(*output, lanes, now)).unwrap_or(port);
        }
        let next_leg = &mut self.next_leg[usize::from(group)];
        let mut number = if (*next_leg as usize) < legs.len() { *next_leg as usize } else { 0 };
        if self.fib.leads_back(port, legs[number]) {
            number = (number + 1) % legs.len();
        }
        *next_leg = number as u16 + 1;
        self.output_of_leg(legs[number])
    }

    fn output_of_leg(&self, leg: Leg) -> u16 {
        match leg {
            Leg::Port(port) => port,
            Leg::Bundle(bundle) => self.bundle_output[usize::from(bundle)],
        }
    }

    /// Returns the load of an output: the frames that wait for it, the time at which its first line
    /// is free, and the bytes that its lines have carried.
    fn load(&self, output: u16, lanes: &[Lane], now: u64) -> (u32, u64, u64) {
        let members = &self.members[usize::from(output)];
        let lines = || members.iter().filter_map(|&port| lanes.get(self.tx[usize::from(port)] as usize));
        let free_ps = lines().filter(|lane| lane.up).map(|lane| lane.free_at_ps.max(now)).min();
        let waiting = self.outputs_of(output).map(|output| self.crossbar.waiting(output)).sum();
        (waiting, free_ps.unwrap_or(NEVER), lines().map(Lane::bytes).sum())
    }

    /// Returns the loss location of a frame in the buffer of an input.
    fn loss_site(&self, switch: u16, input: u16) -> LossSite {
        match self.rx.get(usize::from(input)) {
            Some(&lane) if lane != NO_LANE => LossSite::Receiver(lane),
            _ => LossSite::Processor(switch),
        }
    }

    /// Returns the frames discarded because of the hold time that waited for a port, or for the
    /// bundle of which it is the first.
    pub fn timeouts(&self, port: u16) -> u64 {
        self.timeouts.get(usize::from(port)).copied().unwrap_or_default()
    }

    /// Returns the incoming lane of a port, if a link is connected.
    pub fn rx_lane(&self, port: u16) -> Option<u32> {
        self.rx.get(usize::from(port)).copied().filter(|&lane| lane != NO_LANE)
    }

    /// Returns the outgoing lane of a port, if a link is connected.
    pub fn tx_lane(&self, port: u16) -> Option<u32> {
        self.tx.get(usize::from(port)).copied().filter(|&lane| lane != NO_LANE)
    }
}
