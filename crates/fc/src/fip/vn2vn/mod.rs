//! A station of a segment without FCF: [`Vn2vn`] (FC-BB-6, VN2VN), modelled on libfcoe.
//!
//! ```text
//!           up to 100 ms    100 ms           400 ms          400 ms
//!   LinkUp ─▶ start ─ probe ─▶ probe1 ─ probe ─▶ probe2 ─ claim ─▶ claim ─ beacon ─▶ up ⟲ beacon,
//!               ▲                │                 │                │                │  8 s
//!               └─ another ID ───┴ in use, or claimed by a station with the greater name
//! ```
//!
//! Stations answer a claim with claim responses padded to the longest frame, after which each has
//! an entry for the other. A station that then receives the other's beacon sends FLOGI. The N_Port
//! ([`crate::nport`]) continues with PLOGI from the port with the greater name, and PRLI. A station
//! without a beacon for 2.5 periods counts as gone. LOGO also uses FIP.
//!
//! Sources: FC-BB-6 (VN2VN), and the behaviour of Linux hosts where the standard leaves a choice.

mod config;
mod neighbours;

pub use config::{Input, Output, State, Vn2vnConfig};

use super::jitter::up_to;
use super::{Discard, Discards};
use neighbours::Neighbour;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::{FcMap, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, Operation, flag};
use sanloom_wire::{FcId, FcType, Wwpn};
use std::collections::{BTreeMap, VecDeque};

const PROBE_WAIT: Span = Span::from_ms(100);
const ANNOUNCE_WAIT: Span = Span::from_ms(400);
const BEACON_INTERVAL: Span = Span::from_ms(8_000);
const BEACON_JITTER: Span = Span::from_ms(100);
/// Number of consecutive conflicts after which new N_Port_IDs are tried only every `SLOW_WAIT`.
const QUICK_TRIES: u32 = 10;
const SLOW_WAIT: Span = Span::from_secs(10);

/// Station of a VN2VN segment. See the [module](self).
#[derive(Debug)]
pub struct Vn2vn {
    config: Vn2vnConfig,
    state: State,
    port_id: FcId,
    /// N_Port_IDs tried since the last established one.
    tries: u32,
    /// Time of the next step of the state.
    step_at: Option<Instant>,
    claimed_at: Instant,
    neighbours: BTreeMap<FcId, Neighbour>,
    next_ox_id: u16,
    random: SplitMix64,
    outputs: VecDeque<Output>,
    discards: Discards,
    conflicts: u64,
}

/// Sender information in probes, claims and beacons.
#[derive(Clone, Copy, Debug)]
struct Sender {
    mac: MacAddr,
    port_id: FcId,
    port_name: Wwpn,
    /// The N_Port_ID is recorded from earlier operation, or the sender requests a point-to-point
    /// link.
    recorded: bool,
    max_fcoe_bytes: u16,
}

impl Vn2vn {
    /// Returns a station without a link.
    pub fn new(config: Vn2vnConfig) -> Vn2vn {
        Vn2vn {
            state: State::Down,
            port_id: FcId::ZERO,
            tries: 0,
            step_at: None,
            claimed_at: Instant::ZERO,
            neighbours: BTreeMap::new(),
            next_ox_id: 0,
            random: SplitMix64(config.seed),
            outputs: VecDeque::new(),
            discards: Discards::default(),
            conflicts: 0,
            config,
        }
    }

    /// Processes one input at `now`, which never decreases. It never panics and never blocks, for
    /// any data of a peer.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::LinkUp => {
                self.stop();
                self.tries = 0;
                self.port_id = first_id(self.config.port_name);
                self.start(now);
            }
            Input::LinkDown => self.stop(),
            Input::Fip { to, from, pdu } => {
                if let Err(reason) = self.received(now, to, from, &pdu) {
                    self.discards.count(reason);
                }
            }
            Input::Send(frame) => match self.path(frame.header.d_id) {
                Some((to, from)) => self.outputs.push_back(Output::Fcoe { to, from, frame }),
                None => self.discards.count(Discard::NotLoggedIn),
            },
            Input::Timeout => {
                if self.step_at.is_some_and(|at| at <= now) {
                    self.step(now);
                }
                self.neighbours_due(now);
            }
        }
    }

    /// Returns the next output. Drain until `None` after every [`handle`](Vn2vn::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which to pass [`Input::Timeout`] if no other input comes first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.step_at.into_iter().chain(self.neighbours_deadline()).min()
    }

    /// Progress towards an established N_Port_ID.
    pub fn state(&self) -> State {
        self.state
    }

    /// Own N_Port_ID, valid from the first probe on.
    pub fn port_id(&self) -> FcId {
        self.port_id
    }

    /// Destination and source MAC address of FCoE frames with this D_ID; `None` without a login.
    pub fn path(&self, d_id: FcId) -> Option<(MacAddr, MacAddr)> {
        let known = self.neighbours.get(&d_id).is_some_and(Neighbour::is_up);
        known.then(|| (vn_mac(d_id), vn_mac(self.port_id)))
    }

    /// Checks a received FCoE frame by its addresses: it must come from a neighbour with a login.
    pub fn ingress(&self, to: MacAddr, from: MacAddr, s_id: FcId, d_id: FcId) -> Result<(), Discard> {
        if d_id != self.port_id || to != vn_mac(d_id) {
            return Err(Discard::NotForUs);
        }
        match self.neighbours.get(&s_id).is_some_and(Neighbour::is_up) {
            false => Err(Discard::NotLoggedIn),
            true if from != vn_mac(s_id) => Err(Discard::Spoofed),
            true => Ok(()),
        }
    }

    /// Other stations: N_Port_ID, MAC address, port name, and whether a login exists.
    pub fn neighbours(&self) -> impl Iterator<Item = (FcId, MacAddr, Wwpn, bool)> + '_ {
        self.neighbours.iter().map(|(id, known)| (*id, known.mac, known.port_name, known.is_up()))
    }

    /// Number of conflicts with other stations over the own N_Port_ID.
    pub fn conflicts(&self) -> u64 {
        self.conflicts
    }

    /// Discarded FIP frames by reason.
    pub fn discards(&self) -> &Discards {
        &self.discards
    }

    /// Starts probing whether the N_Port_ID is free.
    fn start(&mut self, now: Instant) {
        self.tries += 1;
        let wait = if self.tries > QUICK_TRIES { SLOW_WAIT } else { up_to(PROBE_WAIT, &mut self.random) };
        self.state = State::Start;
        self.step_at = Some(now + wait);
    }

    /// Gives up the N_Port_ID after a conflict and tries another one.
    fn abandon_address(&mut self, now: Instant) {
        self.conflicts += 1;
        self.stop();
        self.port_id = self.random_id();
        self.start(now);
    }

    fn random_id(&mut self) -> FcId {
        loop {
            let id = (self.random.bits() & 0xffff) as u32;
            if is_assignable(id) && FcId::new(id) != self.port_id {
                return FcId::new(id);
            }
        }
    }

    fn stop(&mut self) {
        let was_up = self.state == State::Up;
        self.state = State::Down;
        self.step_at = None;
        self.neighbours.clear();
        if was_up {
            self.outputs.push_back(Output::Down);
        }
    }

    /// Advances to the next state.
    fn step(&mut self, now: Instant) {
        let (next, wait) = match self.state {
            State::Down => return self.step_at = None,
            State::Start => (State::Probe1, PROBE_WAIT),
            State::Probe1 => (State::Probe2, ANNOUNCE_WAIT),
            State::Probe2 => (State::Claim, ANNOUNCE_WAIT),
            State::Claim | State::Up => (State::Up, BEACON_INTERVAL + up_to(BEACON_JITTER, &mut self.random)),
        };
        let first = self.state != next;
        self.state = next;
        self.step_at = Some(now + wait);
        match next {
            State::Probe1 | State::Probe2 => self.multicast(Operation::PROBE_REQUEST),
            State::Claim => self.claim(now),
            _ => {
                if first {
                    self.tries = 0;
                    self.outputs.push_back(Output::Up { port_id: self.port_id });
                }
                self.multicast(Operation::BEACON);
                self.log_in_to_all(now);
            }
        }
    }

    fn claim(&mut self, now: Instant) {
        self.claimed_at = now;
        self.multicast(Operation::CLAIM_NOTIFICATION);
    }

    fn multicast(&mut self, operation: Operation) {
        self.send_vn2vn(MacAddr::ALL_VN2VN_ENODES, 0, operation);
    }

    /// Sends a probe, claim or beacon. Beacons have the MAC address of the VN_Port as source, all
    /// others that of the Ethernet port.
    fn send_vn2vn(&mut self, to: MacAddr, padded_bytes: u16, operation: Operation) {
        let (mac, port_id, port_name) = (vn_mac(self.port_id), self.port_id, self.config.port_name);
        let mut descriptors = vec![
            Descriptor::Mac(self.config.mac),
            Descriptor::Name(self.config.node_name),
            Descriptor::VxPort { mac, port_id, port_name },
        ];
        if matches!(operation, Operation::CLAIM_NOTIFICATION | Operation::CLAIM_RESPONSE) {
            descriptors.extend([self.fc4_attributes(), Descriptor::MaxFcoeBytes(self.config.max_fcoe_bytes)]);
        }
        let from = if operation == Operation::BEACON { mac } else { self.config.mac };
        let packet = Fip { operation, flags: 0, descriptors };
        self.outputs.push_back(Output::Fip(FipFrame { to, from, padded_bytes, packet }));
    }

    fn fc4_attributes(&self) -> Descriptor {
        const FCP_TARGET: u32 = 1;
        const FCP_INITIATOR: u32 = 2;
        let word = |fc4_type: FcType| usize::from(fc4_type.0) / 32;
        let mut types = [0; 8];
        for fc4_type in [FcType::FCP, FcType::CT] {
            types[word(fc4_type)] |= 1 << (fc4_type.0 % 32);
        }
        let target = if self.config.target { FCP_TARGET } else { 0 };
        let initiator = if self.config.initiator { FCP_INITIATOR } else { 0 };
        let mut features = Box::new([0; 32]);
        features[usize::from(FcType::FCP.0) / 8] = (target | initiator) << (4 * (FcType::FCP.0 % 8));
        Descriptor::Fc4Attributes { types, features }
    }

    fn received(&mut self, now: Instant, to: MacAddr, from: MacAddr, pdu: &[u8]) -> Result<(), Discard> {
        if to.is_group() && to != MacAddr::ALL_VN2VN_ENODES {
            return Ok(());
        }
        let ours = [self.config.mac, MacAddr::ALL_VN2VN_ENODES, vn_mac(self.port_id)];
        if self.state == State::Down || !ours.contains(&to) || from == self.config.mac {
            return Err(Discard::NotForUs);
        }
        let packet = Fip::parse(pdu).map_err(|_| Discard::Malformed)?;
        if packet.unknown_critical().is_some() {
            return Err(Discard::UnknownCritical);
        }
        match packet.operation {
            Operation::LINK_SERVICE_REQUEST => return self.link_service(now, from, packet),
            Operation::LINK_SERVICE_REPLY => return self.flogi_answered(now, from, packet),
            _ => {}
        }
        if !(Operation::PROBE_REQUEST..=Operation::BEACON).contains(&packet.operation) {
            return Err(Discard::UnexpectedOperation);
        }
        let sender = sender(&packet)?;
        if sender.port_name == self.config.port_name {
            return Err(Discard::Spoofed);
        }
        match packet.operation {
            Operation::PROBE_REQUEST => self.probed(now, sender),
            Operation::PROBE_REPLY => self.probe_answered(now, sender),
            Operation::CLAIM_NOTIFICATION => return self.claimed(now, sender),
            Operation::CLAIM_RESPONSE if self.state >= State::Claim => return self.add_neighbour(now, sender),
            Operation::CLAIM_RESPONSE => {}
            _ => self.beacon(now, sender),
        }
        Ok(())
    }

    /// Handles a probe: another station checks whether an N_Port_ID is free.
    fn probed(&mut self, now: Instant, sender: Sender) {
        if sender.port_id != self.port_id {
            return;
        }
        match self.state {
            State::Claim | State::Up => self.send_vn2vn(sender.mac, 0, Operation::PROBE_REPLY),
            State::Probe1 | State::Probe2 if self.config.port_name > sender.port_name && !sender.recorded => {
                self.send_vn2vn(sender.mac, 0, Operation::PROBE_REPLY);
            }
            _ => self.abandon_address(now),
        }
    }

    /// Handles a probe reply: an N_Port_ID is in use.
    fn probe_answered(&mut self, now: Instant, sender: Sender) {
        match self.state {
            _ if sender.port_id != self.port_id => {}
            State::Up => self.claim(now),
            _ => self.abandon_address(now),
        }
    }

    /// Handles a claim of another station.
    fn claimed(&mut self, now: Instant, sender: Sender) -> Result<(), Discard> {
        if sender.recorded {
            self.multicast(Operation::PROBE_REQUEST);
            return Ok(());
        }
        let same = sender.port_id == self.port_id;
        match self.state {
            State::Claim | State::Up if same && sender.port_name > self.config.port_name => self.abandon_address(now),
            State::Claim | State::Up if same => self.claim(now),
            State::Claim | State::Up => {
                self.add_neighbour(now, sender)?;
                let bytes = sender.max_fcoe_bytes.min(self.config.max_fcoe_bytes);
                self.send_vn2vn(sender.mac, bytes, Operation::CLAIM_RESPONSE);
            }
            _ if same => self.abandon_address(now),
            _ => {}
        }
        Ok(())
    }
}

/// Decodes the sender information of a probe, claim or beacon. It must have exactly one MAC
/// address, name and VN_Port, and a claim also its attributes.
fn sender(packet: &Fip) -> Result<Sender, Discard> {
    let (mut mac, mut name, mut vx_port, mut attributes, mut bytes) = (None, None, None, false, None);
    for descriptor in &packet.descriptors {
        let twice = match descriptor {
            Descriptor::Mac(value) => mac.replace(*value).is_some(),
            Descriptor::Name(value) => name.replace(*value).is_some(),
            Descriptor::VxPort { mac, port_id, port_name } => vx_port.replace((*mac, *port_id, *port_name)).is_some(),
            Descriptor::Fc4Attributes { .. } => std::mem::replace(&mut attributes, true),
            Descriptor::MaxFcoeBytes(value) => bytes.replace(*value).is_some(),
            Descriptor::Other { .. } => false,
            _ => true,
        };
        if twice {
            return Err(Discard::Descriptors);
        }
    }
    let (Some(mac), Some(_), Some((port_mac, port_id, port_name))) = (mac, name, vx_port) else {
        return Err(Discard::Descriptors);
    };
    let valid = mac.is_station() && port_mac == vn_mac(port_id) && is_assignable(port_id.to_u32()) && port_name.0 != 0;
    let is_claim = matches!(packet.operation, Operation::CLAIM_NOTIFICATION | Operation::CLAIM_RESPONSE);
    if !valid || is_claim && !(attributes && bytes.is_some()) {
        return Err(Discard::Descriptors);
    }
    let recorded = packet.has(flag::RECORDED);
    Ok(Sender { mac, port_id, port_name, recorded, max_fcoe_bytes: bytes.unwrap_or(0) })
}

/// MAC address of a VN_Port.
fn vn_mac(id: FcId) -> MacAddr {
    MacAddr::fpma(FcMap::VN2VN, id)
}

/// Returns true for a legal N_Port_ID: 16 bits, neither all zeros nor all ones.
fn is_assignable(id: u32) -> bool {
    (1..0xffff).contains(&id)
}

/// First N_Port_ID that a port tries: the low half of its name.
fn first_id(port_name: Wwpn) -> FcId {
    let id = (port_name.0 & 0xffff) as u32;
    FcId::new(if is_assignable(id) { id } else { 1 })
}
