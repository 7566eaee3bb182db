//! The LLDP agent of an Ethernet port and the DCBX that it carries (IEEE 802.1AB, IEEE 802.1Qaz clause 38): [`Dcbx`].
//!
//! ```text
//!                 what we would like ─────────┐
//!   LLDPDU of the peer ──▶ peer, TTL runs ────┼──▶ what is in force
//!                                             │
//!       ETS: the peer's recommendation, if we are willing
//!       PFC: the peer's, if we are willing and it is not; if both are, that of the lower address
//!       application priorities: the peer's, if we are willing
//! ```
//!
//! It speaks every 30 s, and quickly when a peer is new. A peer whose TTL runs out, or that says good-bye, is forgotten, and
//! our own settings are in force again. With two peers on one port nobody can say whose settings count: then ours do.

mod peer;
mod settings;

pub use settings::DcbSettings;

use crate::time::{Instant, Span};
use peer::{Peer, PeerId};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::lldp::{Application, EtsConfiguration, EtsRecommendation, Id, Lldpdu, Pfc, Tlv, TrafficClasses};
use std::collections::{BTreeMap, VecDeque};

/// What an agent is told at its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DcbxConfig {
    /// Address of the port; source of all that it sends.
    pub mac: MacAddr,
    /// Name of the interface.
    pub interface: String,
    /// Name of the system.
    pub system_name: String,
    /// Takes what the peer has, where the rules say so. Hosts are willing, switches are not.
    pub willing: bool,
    /// What we would like.
    pub settings: DcbSettings,
    /// What we would have the peer do; nothing: no recommendation is sent.
    pub recommendation: Option<TrafficClasses>,
    /// Traffic classes that the port has, 1 to 8.
    pub max_classes: u8,
    /// Time between LLDPDUs; a peer remembers them four times as long.
    pub interval: Span,
}

/// Something that happened to an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The Ethernet port is up. One that was up goes down first.
    LinkUp,
    /// The Ethernet port is down.
    LinkDown,
    /// An LLDPDU.
    Lldp {
        /// Source.
        from: MacAddr,
        /// What follows the Ethernet header.
        pdu: Box<[u8]>,
    },
    /// From now on we would like this.
    Settings(DcbSettings),
    /// The agent ends: the peer is told. Then as [`LinkDown`](Input::LinkDown).
    Shutdown,
    /// The time that [`Dcbx::poll_timeout`] named has come; too early is harmless.
    Timeout,
}

/// Something that an agent wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send an LLDPDU to [`MacAddr::NEAREST_BRIDGE`], untagged.
    Send(Lldpdu),
    /// These settings are in force from now on.
    InForce {
        /// The settings.
        settings: DcbSettings,
        /// A peer that speaks DCBX is there, and only one.
        peer: bool,
    },
}

/// What an agent has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// LLDPDUs sent.
    pub sent: u64,
    /// LLDPDUs taken.
    pub received: u64,
    /// LLDPDUs that make no sense, or for which there was no room.
    pub discarded: u64,
    /// TLVs of DCBX that stand twice in an LLDPDU, or say what cannot be. They are taken as absent.
    pub tlvs_in_error: u64,
    /// Peers whose time ran out.
    pub aged_out: u64,
}

/// The LLDP agent of a port. See the [module](self).
#[derive(Debug)]
pub struct Dcbx {
    config: DcbxConfig,
    link: bool,
    peers: BTreeMap<PeerId, Peer>,
    /// When the next LLDPDU is due, and how many follow quickly.
    next: Option<Instant>,
    quick: u8,
    in_force: DcbSettings,
    with_peer: bool,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// LLDPDUs that follow each other quickly when a peer is new.
const QUICK: u8 = 4;
const QUICK_INTERVAL: Span = Span::from_secs(1);
/// More agents than these on one port are not remembered.
const MOST_PEERS: usize = 4;

impl DcbxConfig {
    /// The standard times, FCoE lossless on priority 3 with half of the link; recommended to the peer if we are not willing.
    pub fn new(mac: MacAddr, interface: &str, system_name: &str, willing: bool) -> DcbxConfig {
        let settings = DcbSettings::fcoe(3);
        DcbxConfig {
            mac,
            interface: interface.to_owned(),
            system_name: system_name.to_owned(),
            willing,
            recommendation: (!willing).then_some(settings.traffic),
            settings,
            max_classes: 8,
            interval: Span::from_secs(30),
        }
    }
}

impl Dcbx {
    /// An agent without a link; our own settings are in force.
    pub fn new(config: DcbxConfig) -> Dcbx {
        Dcbx {
            link: false,
            peers: BTreeMap::new(),
            next: None,
            quick: 0,
            in_force: config.settings.clone(),
            with_peer: false,
            outputs: VecDeque::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// One thing happened at `now`, which never decreases. Never panics and never blocks, whatever a peer sent.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::LinkUp => {
                self.stop();
                self.link = true;
                self.quick = QUICK;
                self.send(now);
            }
            Input::LinkDown => self.stop(),
            Input::Lldp { from, pdu } => self.received(now, from, &pdu),
            Input::Settings(settings) => {
                self.config.settings = settings;
                if self.link {
                    self.send(now);
                }
            }
            Input::Shutdown => {
                if self.link {
                    let tlvs = self.identity().into_iter().chain([Tlv::TimeToLive(0)]).collect();
                    self.outputs.push_back(Output::Send(Lldpdu { tlvs }));
                }
                self.stop();
            }
            Input::Timeout => self.timeout(now),
        }
        self.settle();
    }

    /// What is to be done next; drained until `None` after every [`handle`](Dcbx::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`] if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next.into_iter().chain(self.peers.values().map(|peer| peer.until)).min()
    }

    /// The settings in force, and whether a peer that speaks DCBX agrees to them.
    pub fn in_force(&self) -> (&DcbSettings, bool) {
        (&self.in_force, self.with_peer)
    }

    /// What the only peer last said, if there is exactly one.
    pub fn peer(&self) -> Option<&Lldpdu> {
        match self.peers.len() {
            1 => self.peers.values().next().map(|peer| &peer.said),
            _ => None,
        }
    }

    /// Events since the beginning.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn stop(&mut self) {
        self.link = false;
        self.peers.clear();
        self.next = None;
        self.quick = 0;
    }

    fn timeout(&mut self, now: Instant) {
        let before = self.peers.len();
        self.peers.retain(|_, peer| peer.until > now);
        self.counters.aged_out += (before - self.peers.len()) as u64;
        if self.next.is_some_and(|at| at <= now) {
            self.send(now);
        }
    }

    fn identity(&self) -> [Tlv; 2] {
        [Tlv::ChassisId(Id::chassis_mac(self.config.mac)), Tlv::PortId(Id::interface(&self.config.interface))]
    }

    fn send(&mut self, now: Instant) {
        self.quick = self.quick.saturating_sub(1);
        self.next = Some(now + if self.quick > 0 { QUICK_INTERVAL } else { self.config.interval });
        let config = &self.config;
        let seconds = config.interval.as_ms() / 1_000 * 4 + 1;
        let DcbSettings { traffic, lossless, max_lossless, applications } = config.settings.clone();
        let mut tlvs = Vec::from(self.identity());
        tlvs.push(Tlv::TimeToLive(u16::try_from(seconds).unwrap_or(u16::MAX)));
        tlvs.push(Tlv::SystemName(config.system_name.as_bytes().into()));
        let max_classes = config.max_classes & 7;
        let willing = config.willing;
        tlvs.push(Tlv::EtsConfiguration(EtsConfiguration { willing, credit_shaper: false, max_classes, traffic }));
        if let Some(traffic) = config.recommendation {
            tlvs.push(Tlv::EtsRecommendation(EtsRecommendation { traffic }));
        }
        tlvs.push(Tlv::Pfc(Pfc { willing, macsec_bypass: false, max_priorities: max_lossless, priorities: lossless }));
        tlvs.push(Tlv::Application(Application { entries: applications }));
        self.counters.sent += 1;
        self.outputs.push_back(Output::Send(Lldpdu { tlvs }));
    }

    fn received(&mut self, now: Instant, from: MacAddr, pdu: &[u8]) {
        if !self.link || from == self.config.mac {
            return;
        }
        let peer = Lldpdu::parse(pdu).ok().and_then(|said| Peer::read(now, from, said, &mut self.counters));
        let Some((id, peer)) = peer else {
            self.counters.discarded += 1;
            return;
        };
        let known = self.peers.contains_key(&id);
        if peer.until == now {
            self.peers.remove(&id);
        } else if known || self.peers.len() < MOST_PEERS {
            self.peers.insert(id, peer);
        } else {
            self.counters.discarded += 1;
            return;
        }
        self.counters.received += 1;
        if !known && self.peers.len() == 1 {
            self.quick = QUICK;
            self.next = Some(now);
        }
    }

    /// Works out what is in force, and says so if it is something new.
    fn settle(&mut self) {
        let only = match self.peers.len() {
            1 => self.peers.values().next(),
            _ => None,
        };
        let with_peer = only.is_some_and(Peer::speaks_dcbx);
        let mut settings = self.config.settings.clone();
        if let Some(peer) = only.filter(|_| self.config.willing) {
            peer.overrule(self.config.mac, &mut settings);
        }
        if (&settings, with_peer) != (&self.in_force, self.with_peer) {
            self.in_force = settings.clone();
            self.with_peer = with_peer;
            self.outputs.push_back(Output::InForce { settings, peer: with_peer });
        }
    }
}
