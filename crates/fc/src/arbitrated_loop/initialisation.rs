//! Loop initialisation (FC-AL-2): the loop master, the addresses, the position map and
//! the duration.
//!
//! Each frame of [`sanloom_wire::arbitrated_loop::LoopInit`] goes round once, and each port applies
//! its rule to it. The times of LIP and of the trips are computed; the time of a port's firmware
//! for each frame is a parameter, because it dominates in practice.

use super::circuit;
use super::config::LoopPort;
use super::time::{LoopRate, LoopTime};
use sanloom_wire::Wwpn;
use sanloom_wire::arbitrated_loop::{AcceptsMap, AddressMap, AlPa, LoopInit, PositionMap, Primitive, Step};

/// AL_TIME, 15 ms: more than the longest round. A port sends LIP for this time before LISM
/// (FC-AL-2, loop initialisation; the minimum for which LIP is sent is an assumption).
pub const AL_TIME: LoopTime = LoopTime::from_ps(15_000_000_000);
/// LP_TOV, 2 s: time after which an initialisation without progress starts anew.
pub const LP_TOV: LoopTime = LoopTime::from_ps(2_000_000_000_000);

/// Reason for an initialisation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LipCause {
    /// A port without an address was inserted or powered on.
    Inserted,
    /// A port with an address requests it, for example after an error.
    Requested(AlPa),
    /// A port receives nothing: cable or upstream port failed.
    Failure(Option<AlPa>),
    /// A port is reset by another one.
    Reset {
        /// The port to reset.
        port: AlPa,
        /// The requester.
        by: AlPa,
    },
    /// All ports but one are reset.
    ResetAll {
        /// The requester.
        by: AlPa,
    },
}

/// A port on the loop before initialisation, in the order of the loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Name of the port.
    pub port_name: Wwpn,
    /// FL_Port of a switch; it takes AL_PA 00.
    pub is_fl_port: bool,
    /// Address that the fabric assigned at a FLOGI (taken in LIFA).
    pub fabric_address: Option<AlPa>,
    /// Address before this initialisation (taken in LIPA).
    pub previous_address: Option<AlPa>,
    /// Hard address, for example of a slot (taken in LIHA).
    pub hard_address: Option<AlPa>,
    /// Supports LIRP and LILP.
    pub accepts_map: bool,
    /// Excluded from initialisation: bypassed, or non-participating by choice. The port repeats.
    pub bypassed: bool,
    /// Words from receiver to transmitter.
    pub delay_words: u32,
    /// Propagation time of the cable to the next port.
    pub cable: LoopTime,
    /// Time of the firmware for each received frame before it is sent on.
    pub firmware: LoopTime,
    /// The cable to the next port carries no light.
    pub is_cut: bool,
}

/// Result of an initialisation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Initialised {
    /// The LIP that started it.
    pub lip: Primitive,
    /// Index of the loop master; `None` if the loop is broken or has no port.
    pub master: Option<usize>,
    /// Address of each port; `None` for a port that does not participate.
    pub addresses: Vec<Option<AlPa>>,
    /// Step in which each port took its address.
    pub steps: Vec<Option<Step>>,
    /// Ring order of the addresses, loop master first; `None` if a port does not support the map.
    pub positions: Option<PositionMap>,
    /// The L_bit: all public ports must log in with the fabric anew.
    pub login_required: bool,
    /// Time from the first LIP until all ports monitor. For a broken loop: until the ports give up
    /// the attempt, [`AL_TIME`] + [`LP_TOV`].
    pub duration: LoopTime,
    /// Frames on the loop in order, for captures.
    pub frames: Vec<InitFrame>,
}

/// A frame of an initialisation on its way from one port to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitFrame {
    /// Index of the sender.
    pub from: usize,
    /// Index of the next port that takes part.
    pub to: usize,
    /// Its payload.
    pub frame: LoopInit,
    /// The first bit leaves the sender, relative to the first LIP.
    pub start: LoopTime,
    /// The first bit arrives at the next port.
    pub arrival: LoopTime,
}

impl LipCause {
    /// The LIP on the loop.
    pub fn primitive(self) -> Primitive {
        match self {
            LipCause::Inserted => Primitive::LipInit { x: None },
            LipCause::Requested(x) => Primitive::LipInit { x: Some(x) },
            LipCause::Failure(x) => Primitive::LipFailure { x },
            LipCause::Reset { port, by } => Primitive::LipReset { y: port, x: by },
            LipCause::ResetAll { by } => Primitive::LipResetAll { x: by },
        }
    }
}

impl Candidate {
    /// An NL_Port without any address, with 6 words of delay, 10 m of cable and no firmware time.
    pub fn new(port_name: Wwpn) -> Candidate {
        Candidate {
            port_name,
            is_fl_port: false,
            fabric_address: None,
            previous_address: None,
            hard_address: None,
            accepts_map: true,
            bypassed: false,
            delay_words: 6,
            cable: LoopTime::from_ps(50_000),
            firmware: LoopTime::ZERO,
            is_cut: false,
        }
    }
    /// An FL_Port, otherwise as [`Candidate::new`].
    pub fn fl_port(port_name: Wwpn) -> Candidate {
        Candidate { is_fl_port: true, ..Candidate::new(port_name) }
    }
    /// The port for a [`LoopConfig`](super::LoopConfig), with the address of an initialisation.
    pub fn loop_port(&self, al_pa: Option<AlPa>) -> LoopPort {
        let (delay_words, cable) = (self.delay_words, self.cable);
        LoopPort { al_pa, delay_words, cable, ..LoopPort::new(AlPa::FL_PORT) }
    }
    /// Rank in the selection of the loop master: an FL_Port before all NL_Ports, then the lowest
    /// name.
    fn rank(&self) -> (bool, Wwpn) {
        (!self.is_fl_port, self.port_name)
    }
    /// Address that the port claims in a step.
    fn claim(&self, step: Step, map: &AddressMap) -> Option<AlPa> {
        match step {
            Step::Fabric if self.is_fl_port => Some(AlPa::FL_PORT),
            _ if self.is_fl_port => None,
            Step::Fabric => self.fabric_address,
            Step::Previous => self.previous_address,
            Step::Hard => self.hard_address,
            Step::Soft(_) => map.lowest_free(),
        }
        .filter(|address| self.is_fl_port || *address != AlPa::FL_PORT)
    }
}

/// Runs an initialisation. `first_of_fabric` is true if the FL_Port initialises for the first time
/// and therefore sets the L_bit.
///
/// A loop with a cut cable has no closed path: LIP does not come back, and no port participates
/// until the cable carries light again or the ports behind the cut are bypassed.
pub fn initialise(rate: LoopRate, ports: &[Candidate], cause: LipCause, first_of_fabric: bool) -> Initialised {
    let lip = cause.primitive();
    let mut result = Initialised {
        lip,
        master: None,
        addresses: vec![None; ports.len()],
        steps: vec![None; ports.len()],
        positions: None,
        login_required: false,
        duration: AL_TIME + LP_TOV,
        frames: Vec::new(),
    };
    let active: Vec<usize> = (0..ports.len()).filter(|port| !ports[*port].bypassed).collect();
    let master = active.iter().copied().min_by_key(|port| ports[*port].rank());
    let Some(master) = master.filter(|_| ports.iter().all(|port| !port.is_cut)) else {
        return result;
    };
    result.master = Some(master);
    // All other frames begin at the loop master and go round once.
    let start = active.iter().position(|port| *port == master).unwrap_or(0);
    let order: Vec<usize> = active[start..].iter().chain(&active[..start]).copied().collect();
    let mut round = Round { rate, ports, order: &order, frames: Vec::new(), duration: AL_TIME };
    // Until the lowest name has gone round, each port replaces higher names by its own. The frame
    // of the master then passes every port.
    round.travel(&LoopInit::Master { port_name: ports[master].port_name });
    round.signal(); // ARB(F0) of the loop master

    let mut map = AddressMap::default();
    // AL_PA 00 has one owner. A further FL_Port stays non-participating.
    if ports[master].is_fl_port && first_of_fabric {
        map.require_login();
    }
    let accepts = |port: &usize| ports[*port].accepts_map;
    let soft = Step::Soft(if order.iter().all(accepts) { AcceptsMap::Yes } else { AcceptsMap::No });
    for step in [Step::Fabric, Step::Previous, Step::Hard, soft] {
        for (place, port) in order.iter().copied().enumerate() {
            if result.addresses[port].is_none()
                && let Some(address) = ports[port].claim(step, &map)
                && map.take(address)
            {
                result.addresses[port] = Some(address);
                result.steps[port] = Some(step);
            }
            // A port that cannot process the map clears the flag for all ports behind it.
            let passed = match step {
                Step::Soft(_) if !order[..=place].iter().all(accepts) => Step::Soft(AcceptsMap::No),
                Step::Soft(_) => Step::Soft(AcceptsMap::Yes),
                other => other,
            };
            round.send(port, LoopInit::Addresses { step: passed, map });
        }
    }
    result.login_required = map.login_required();
    if soft == Step::Soft(AcceptsMap::Yes) {
        let mut positions = PositionMap::default();
        for port in order.iter().copied() {
            if let Some(address) = result.addresses[port] {
                positions.append(address);
            }
            round.send(port, LoopInit::ReportPosition(positions.clone()));
        }
        round.travel(&LoopInit::LoopPosition(positions.clone()));
        result.positions = Some(positions);
    }
    round.signal(); // CLS of the loop master
    result.duration = round.duration;
    result.frames = round.frames;
    result
}

/// Frames that go round.
struct Round<'a> {
    rate: LoopRate,
    ports: &'a [Candidate],
    /// Ports that take part, loop master first.
    order: &'a [usize],
    frames: Vec<InitFrame>,
    duration: LoopTime,
}

impl Round<'_> {
    /// Adds a frame and the fill words after it, with the time until the next port has received it
    /// and its firmware sends it on. Ports between both repeat it.
    fn send(&mut self, from: usize, frame: LoopInit) {
        let words = circuit::frame_words(frame.encoded_len() as u16) + circuit::GAP_WORDS;
        let start = self.duration + self.ports[from].firmware;
        let arrival = start + self.hop(from);
        self.duration = arrival + self.rate.word().times(words);
        let place = self.order.iter().position(|port| *port == from).unwrap_or(0);
        let to = self.order[(place + 1) % self.order.len()];
        self.frames.push(InitFrame { from, to, frame, start, arrival });
    }
    /// Cables and repeating ports behind a port, up to the next one that takes part.
    fn hop(&self, from: usize) -> LoopTime {
        let count = self.ports.len();
        let mut time = self.ports[from].cable;
        for port in (1..count).map(|step| &self.ports[(from + step) % count]).take_while(|port| port.bypassed) {
            time = time + self.rate.word().times(port.delay_words.into()) + port.cable;
        }
        time
    }
    /// Sends an unchanged frame through all ports.
    fn travel(&mut self, frame: &LoopInit) {
        for port in self.order {
            self.send(*port, frame.clone());
        }
    }
    /// Adds the time of one word that every port repeats.
    fn signal(&mut self) {
        let word = self.rate.word();
        let round = self.ports.iter().fold(word, |time, port| time + word.times(port.delay_words.into()) + port.cable);
        self.duration = self.duration + round;
    }
}

/// Initialisations of a loop that LIP interrupts again and again (a LIP storm): no port
/// communicates while LIP follows LIP in less than the time of an initialisation.
///
/// `lips` are the times of LIPs in order. Returns the intervals during which the loop is down; a
/// LIP within an interval restarts the initialisation.
pub fn outages(lips: &[LoopTime], duration: LoopTime) -> Vec<(LoopTime, LoopTime)> {
    let mut down: Vec<(LoopTime, LoopTime)> = Vec::new();
    for lip in lips.iter().copied() {
        match down.last_mut() {
            Some((_, end)) if lip <= *end => *end = lip + duration,
            _ => down.push((lip, lip + duration)),
        }
    }
    down
}
