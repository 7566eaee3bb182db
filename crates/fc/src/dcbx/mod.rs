//! LLDP agent of an Ethernet port with DCBX (IEEE 802.1AB, IEEE 802.1Qaz clause 38): [`Dcbx`].
//!
//! ```text
//!                 own settings ────────────────┐
//!   LLDPDU of the peer ──▶ peer, TTL runs ─────┼──▶ settings in force
//!                                              │
//!       ETS: the peer's recommendation, if this port is willing
//!       PFC: the peer's, if this port is willing and the peer is not;
//!            if both are, that of the port with the lower address
//!       application priorities: the peer's, if this port is willing
//! ```
//!
//! The agent sends an LLDPDU every 30 s, and faster for a new peer. When the TTL of a peer expires,
//! or the peer sends a shutdown LLDPDU, the peer is removed and the own settings are in force
//! again. With two peers on one port the standard does not define the applicable settings, so the
//! own settings apply.

mod peer;
mod settings;

pub use settings::DcbSettings;

use peer::{Peer, PeerId};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::lldp::{Application, EtsConfiguration, EtsRecommendation, Id, Lldpdu, Pfc, Tlv, TrafficClasses};
use std::collections::{BTreeMap, VecDeque};

/// Initial configuration of an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DcbxConfig {
    /// MAC address of the port; source of all LLDPDUs.
    pub mac: MacAddr,
    /// Name of the interface, sent as port ID.
    pub interface: String,
    /// Name of the system, sent in LLDPDUs.
    pub system_name: String,
    /// True if the agent adopts the peer's settings where the rules permit. Hosts are willing,
    /// switches are not.
    pub willing: bool,
    /// Own settings.
    pub settings: DcbSettings,
    /// Settings recommended to the peer; `None` sends no recommendation.
    pub recommendation: Option<TrafficClasses>,
    /// Number of traffic classes of the port, 1 to 8.
    pub max_classes: u8,
    /// Interval between LLDPDUs; the TTL is four times as long.
    pub interval: Span,
}

/// Event for an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The Ethernet port is up. A port that was already up goes down first.
    LinkUp,
    /// The Ethernet port is down.
    LinkDown,
    /// An LLDPDU was received.
    Lldp {
        /// Source MAC address.
        from: MacAddr,
        /// Bytes after the Ethernet header.
        pdu: Box<[u8]>,
    },
    /// New own settings.
    Settings(DcbSettings),
    /// The agent shuts down: the peer is notified, then the effect is that of
    /// [`LinkDown`](Input::LinkDown).
    Shutdown,
    /// The deadline of [`Dcbx::poll_timeout`] was reached. An early call is harmless.
    Timeout,
}

/// Action or event for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send an LLDPDU to [`MacAddr::NEAREST_BRIDGE`], untagged.
    Send(Lldpdu),
    /// New settings are in force.
    InForce {
        /// Settings to apply.
        settings: DcbSettings,
        /// True if exactly one peer is present and it sends DCBX TLVs.
        peer: bool,
    },
}

/// Counters of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// LLDPDUs sent.
    pub sent: u64,
    /// LLDPDUs accepted.
    pub received: u64,
    /// LLDPDUs discarded because they were invalid or the peer table was full.
    pub discarded: u64,
    /// DCBX TLVs that are duplicated or have invalid values. Such TLVs are treated as absent.
    pub tlvs_in_error: u64,
    /// Peers removed because their TTL expired.
    pub aged_out: u64,
}

/// LLDP agent of a port. See the [module](self).
#[derive(Debug)]
pub struct Dcbx {
    config: DcbxConfig,
    link: bool,
    peers: BTreeMap<PeerId, Peer>,
    /// Time of the next LLDPDU.
    next: Option<Instant>,
    /// Remaining LLDPDUs at the fast interval.
    quick: u8,
    in_force: DcbSettings,
    with_peer: bool,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// Number of LLDPDUs sent at the fast interval for a new peer, and that interval.
const QUICK: u8 = 4;
const QUICK_INTERVAL: Span = Span::from_secs(1);
/// Maximum number of peers stored per port.
const MOST_PEERS: usize = 4;

impl DcbxConfig {
    /// Returns a configuration with the standard timers, and lossless FCoE on priority 3 with half
    /// of the bandwidth. A port that is not willing recommends these settings to the peer.
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
    /// Returns an agent without a link; the own settings are in force.
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

    /// Processes one input at `now`, which never decreases. It never panics and never blocks, for
    /// any data of a peer.
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
        self.update_settings();
    }

    /// Returns the next output. Drain until `None` after every [`handle`](Dcbx::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which to pass [`Input::Timeout`] if no other input comes first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next.into_iter().chain(self.peers.values().map(|peer| peer.until)).min()
    }

    /// Settings in force, and whether exactly one peer with DCBX is present.
    pub fn in_force(&self) -> (&DcbSettings, bool) {
        (&self.in_force, self.with_peer)
    }

    /// Last LLDPDU of the peer, if there is exactly one peer.
    pub fn peer(&self) -> Option<&Lldpdu> {
        match self.peers.len() {
            1 => self.peers.values().next().map(|peer| &peer.lldpdu),
            _ => None,
        }
    }

    /// Event counts since the start.
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
        let peer = Lldpdu::parse(pdu).ok().and_then(|lldpdu| Peer::read(now, from, lldpdu, &mut self.counters));
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

    /// Computes the settings in force and emits them if they changed.
    fn update_settings(&mut self) {
        let only = match self.peers.len() {
            1 => self.peers.values().next(),
            _ => None,
        };
        let with_peer = only.is_some_and(Peer::supports_dcbx);
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
