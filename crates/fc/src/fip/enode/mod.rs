//! The FIP controller of a host in a fabric: [`Enode`], modelled on libfcoe.
//!
//! ```text
//!   down ── LinkUp ──▶ search ── solicited advertisement ──▶ choosing ── 2 s ──▶ chosen
//!    ▲                   ▲ solicitation                        ⟲ differing         │ FLOGI
//!    │                   │                                       fabrics           ▼ accepted
//!    │ LinkDown          │                                                     logged in
//!    │                   └──── advertisements stop, or clear virtual links ────────┘
//! ```
//!
//! The N_Ports of the host are separate machines ([`crate::nport`]). The physical one gets its link
//! with [`Output::FcfUp`], virtual ones with its login. FLOGI, FDISC and LOGO to the fabric are
//! sent over FIP, everything else over FCoE with the MAC address from the login.
//!
//! A login that is rejected, or repeated because no reply arrived, goes to the next FCF. After all
//! FCFs have been tried, it goes to the first again.
//!
//! Sources: FC-BB (FCoE Initialization Protocol), and the behaviour of Linux hosts where the
//! standard leaves a choice.

mod candidates;
mod config;
mod logins;

pub use config::{Counters, EnodeConfig, Input, Output};

use super::{Advertisement, DEFAULT_PERIOD, Discard, Discards, VN_PORT_KEEP_ALIVE};
use crate::alarms::Alarms;
use candidates::{Candidates, Key, NoChoice};
use logins::{Pending, RequestKey, VnPort};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, Operation, flag};
use sanloom_wire::{FcId, Frame, Wwpn};
use std::collections::{BTreeMap, VecDeque};

/// FIP controller of a host. See the [module](self).
#[derive(Debug)]
pub struct Enode {
    config: EnodeConfig,
    link: bool,
    candidates: Candidates,
    chosen: Option<Chosen>,
    /// N_Port_ID from the FLOGI.
    base: Option<FcId>,
    vn_ports: BTreeMap<FcId, VnPort>,
    pending: BTreeMap<RequestKey, Pending>,
    /// Time of the next multicast solicitation while no FCF is selected.
    solicit_at: Option<Instant>,
    choose_at: Option<Instant>,
    keep_alive_at: Option<Instant>,
    /// Deadlines of the keep-alives of VN_Ports.
    alarms: Alarms<FcId>,
    /// Remaining VLAN requests and the time of the next.
    vlan_requests: Option<(u8, Instant)>,
    outputs: VecDeque<Output>,
    counters: Counters,
    discards: Discards,
}

/// Selected FCF, to which the logins belong.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    key: Key,
    /// Destination of FCoE frames; differs from the MAC address of the FCF only if a login reply
    /// set it.
    fcoe_mac: MacAddr,
}

/// Maximum number of VLAN requests of an ENode.
const VLAN_REQUESTS: u8 = 3;
/// Interval between the VLAN requests of an ENode.
pub const VLAN_REQUEST_SPACING: Span = Span::from_secs(1);

impl Enode {
    /// Returns an ENode without a link.
    pub fn new(config: EnodeConfig) -> Enode {
        Enode {
            config,
            link: false,
            candidates: Candidates::default(),
            chosen: None,
            base: None,
            vn_ports: BTreeMap::new(),
            pending: BTreeMap::new(),
            solicit_at: None,
            choose_at: None,
            keep_alive_at: None,
            alarms: Alarms::new(),
            vlan_requests: None,
            outputs: VecDeque::new(),
            counters: Counters::default(),
            discards: Discards::default(),
        }
    }

    /// Processes one input at `now`, which never decreases. It never panics and never blocks, for
    /// any data of a peer.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::LinkUp => {
                self.stop();
                self.link = true;
                self.solicit_all(now);
            }
            Input::LinkDown => {
                self.stop();
                self.link = false;
                self.vlan_requests = None;
            }
            Input::Fip { to, from, pdu } => {
                if let Err(reason) = self.received(now, to, from, &pdu) {
                    self.discards.count(reason);
                }
            }
            Input::Send(frame) => self.send(now, frame),
            Input::DiscoverVlans => {
                self.vlan_requests = Some((VLAN_REQUESTS, now));
                self.request_vlans(now);
            }
            Input::Timeout => self.timeout(now),
        }
    }

    /// Returns the next output. Drain until `None` after every [`handle`](Enode::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which to pass [`Input::Timeout`] if no other input comes first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let vlans = self.vlan_requests.map(|(_, at)| at);
        let own = [self.solicit_at, self.choose_at, self.keep_alive_at, vlans];
        let others = [self.candidates.next_deadline(), self.alarms.next()];
        own.into_iter().chain(others).flatten().min()
    }

    /// Selected FCF.
    pub fn fcf(&self) -> Option<&Advertisement> {
        self.chosen.and_then(|chosen| self.candidates.get(chosen.key)).map(|candidate| &candidate.advertisement)
    }

    /// All known FCFs, each with a flag whether it is usable.
    pub fn fcfs(&self) -> impl Iterator<Item = (&Advertisement, bool)> + '_ {
        self.candidates.iter().map(|candidate| (&candidate.advertisement, candidate.usable))
    }

    /// Logged-in VN_Ports: N_Port_ID, MAC address, port name.
    pub fn vn_ports(&self) -> impl Iterator<Item = (FcId, MacAddr, Wwpn)> + '_ {
        self.vn_ports.iter().map(|(id, vn_port)| (*id, vn_port.mac, vn_port.name))
    }

    /// Destination and source MAC address of FCoE frames with this S_ID; `None` without a login.
    pub fn path(&self, s_id: FcId) -> Option<(MacAddr, MacAddr)> {
        Some((self.chosen?.fcoe_mac, self.vn_ports.get(&s_id)?.mac))
    }

    /// Checks a received FCoE frame by its addresses: it must come from the FCF and be addressed to
    /// a logged-in VN_Port.
    ///
    /// Frames from the F_Port are rejected: its login replies use FIP, and Clear Virtual Links
    /// replaces its LOGO.
    pub fn ingress(&self, to: MacAddr, from: MacAddr, s_id: FcId, d_id: FcId) -> Result<(), Discard> {
        match self.vn_ports.get(&d_id) {
            _ if self.chosen.map(|chosen| chosen.fcoe_mac) != Some(from) => Err(Discard::Spoofed),
            Some(vn_port) if vn_port.mac == to && s_id != FcId::F_PORT => Ok(()),
            Some(_) => Err(Discard::NotForUs),
            None => Err(Discard::NotLoggedIn),
        }
    }

    /// Event counts since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Discarded FIP frames by reason.
    pub fn discards(&self) -> &Discards {
        &self.discards
    }

    fn timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.vlan_requests.map(|(_, at)| at)) {
            self.request_vlans(now);
        }
        let (missed, gone) = self.candidates.age(now);
        self.counters.missed_advertisements += missed;
        if gone {
            self.somebody_gone(now);
        }
        if due(self.solicit_at) {
            self.solicit_all(now);
        }
        if due(self.choose_at) {
            self.choose(now);
        }
        if due(self.keep_alive_at) {
            self.keep_alive(now);
        }
        while let Some(port_id) = self.alarms.due(now) {
            self.vn_port_keep_alive(now, port_id);
        }
    }

    /// Handles the loss of an FCF. If it was the selected one, all logins end.
    fn somebody_gone(&mut self, now: Instant) {
        let lost = self.chosen.is_some_and(|chosen| self.candidates.get(chosen.key).is_none());
        if lost {
            self.counters.virtual_link_failures += 1;
            self.lose_fcf();
        }
        if self.chosen.is_none() {
            self.solicit_all(now);
            if self.choose_at.is_none() && self.candidates.iter().any(|candidate| candidate.usable) {
                self.choose_at = Some(now);
            }
        }
    }

    /// Drops all discovered state.
    fn stop(&mut self) {
        self.lose_fcf();
        self.candidates.clear();
        self.choose_at = None;
        self.solicit_at = None;
    }

    /// Restarts discovery.
    fn start_over(&mut self, now: Instant) {
        self.stop();
        self.solicit_all(now);
    }

    /// Drops the selected FCF and all logins.
    fn lose_fcf(&mut self) {
        self.vn_ports.clear();
        self.pending.clear();
        self.alarms = Alarms::new();
        self.keep_alive_at = None;
        self.base = None;
        self.candidates.reset_tried();
        if self.chosen.take().is_some() {
            self.outputs.push_back(Output::FcfDown);
        }
    }

    /// Sends a multicast solicitation, repeated after a period if no FCF is selected.
    fn solicit_all(&mut self, now: Instant) {
        self.solicit_at = Some(now + DEFAULT_PERIOD);
        self.solicit(MacAddr::ALL_FCFS);
    }

    fn solicit(&mut self, to: MacAddr) {
        let descriptors = vec![
            Descriptor::Mac(self.config.mac),
            Descriptor::Name(self.config.node_name),
            Descriptor::MaxFcoeBytes(self.config.max_fcoe_bytes),
        ];
        self.fip(to, self.config.mac, Fip { operation: Operation::SOLICITATION, flags: flag::FPMA, descriptors });
    }

    fn request_vlans(&mut self, now: Instant) {
        let Some((left, _)) = self.vlan_requests else { return };
        self.vlan_requests = left.checked_sub(1).map(|left| (left, now + VLAN_REQUEST_SPACING));
        if left > 0 {
            let descriptors = vec![Descriptor::Mac(self.config.mac)];
            let packet = Fip { operation: Operation::VLAN_REQUEST, flags: 0, descriptors };
            self.fip(MacAddr::ALL_FCFS, self.config.mac, packet);
        }
    }

    fn received(&mut self, now: Instant, to: MacAddr, from: MacAddr, pdu: &[u8]) -> Result<(), Discard> {
        if to.is_group() && to != MacAddr::ALL_ENODES {
            return Ok(());
        }
        if to != self.config.mac && to != MacAddr::ALL_ENODES || from == self.config.mac {
            return Err(Discard::NotForUs);
        }
        let packet = Fip::parse(pdu).map_err(|_| Discard::Malformed)?;
        if packet.unknown_critical().is_some() {
            return Err(Discard::UnknownCritical);
        }
        match packet.operation {
            Operation::VLAN_NOTIFICATION => self.vlans_named(&packet),
            _ if !self.link => Err(Discard::NotForUs),
            Operation::ADVERTISEMENT => self.advertised(now, &packet),
            Operation::LINK_SERVICE_REPLY => self.answered(now, to, from, packet),
            Operation::CLEAR_VIRTUAL_LINKS => self.cleared(now, from, &packet),
            _ => Err(Discard::UnexpectedOperation),
        }
    }

    fn vlans_named(&mut self, packet: &Fip) -> Result<(), Discard> {
        if self.vlan_requests.is_none() {
            return Err(Discard::Stale);
        }
        let known = |descriptor: &Descriptor| {
            matches!(descriptor, Descriptor::Mac(_) | Descriptor::Vlan(_) | Descriptor::Other { .. })
        };
        let fcf = packet.mac().filter(|mac| mac.is_station()).ok_or(Discard::Descriptors)?;
        let vlans: Vec<u16> = packet.vlans().collect();
        if vlans.is_empty() || !packet.descriptors.iter().all(known) {
            return Err(Discard::Descriptors);
        }
        // Other FCFs may still reply to this request, but no further request is needed.
        self.vlan_requests = self.vlan_requests.map(|(_, at)| (0, at));
        self.outputs.push_back(Output::Vlans { fcf, vlans });
        Ok(())
    }

    fn advertised(&mut self, now: Instant, packet: &Fip) -> Result<(), Discard> {
        let advertisement = Advertisement::read(packet)?;
        let usable = self.candidates.update(now, advertisement)?;
        if !usable {
            if !advertisement.solicited {
                self.solicit(advertisement.mac);
            }
            return Ok(());
        }
        if self.chosen.is_none() && self.choose_at.is_none() {
            self.choose_at = Some(now + self.config.selection_delay);
        }
        if self.fcf().is_some_and(|fcf| !fcf.keep_alives) {
            self.keep_alive_at = None;
        } else if self.chosen.is_some() && self.keep_alive_at.is_none() {
            self.keep_alive_at = Some(now);
        }
        Ok(())
    }

    /// Selects an FCF if there is a usable one.
    fn choose(&mut self, now: Instant) {
        self.choose_at = None;
        match self.candidates.choose() {
            Ok(best) => {
                let (key, advertisement) = (best.key(), best.advertisement);
                self.use_fcf(now, key);
                self.outputs.push_back(Output::FcfUp(advertisement));
            }
            Err(NoChoice::Conflict) => {
                self.counters.conflicts += 1;
                self.choose_at = Some(now + self.config.selection_delay);
            }
            Err(NoChoice::NoCandidate) => {}
        }
    }

    fn use_fcf(&mut self, now: Instant, key: Key) {
        self.counters.selections += 1;
        self.chosen = Some(Chosen { key, fcoe_mac: key.mac });
        self.solicit_at = None;
        let advertisement = self.fcf().copied();
        self.keep_alive_at = advertisement
            .filter(|advertisement| advertisement.keep_alives)
            .map(|advertisement| now + advertisement.period);
    }

    /// Sends the keep-alive of the ENode.
    fn keep_alive(&mut self, now: Instant) {
        let Some(fcf) = self.fcf().copied() else { return };
        self.keep_alive_at = Some(now + fcf.period);
        let descriptors = vec![Descriptor::Mac(self.config.mac)];
        let packet = Fip { operation: Operation::KEEP_ALIVE, flags: flag::FPMA, descriptors };
        self.fip(fcf.mac, self.config.mac, packet);
    }

    /// Sends the keep-alive of a VN_Port.
    fn vn_port_keep_alive(&mut self, now: Instant, port_id: FcId) {
        let Some(VnPort { mac, name: port_name }) = self.vn_ports.get(&port_id).copied() else { return };
        self.alarms.set(port_id, now + VN_PORT_KEEP_ALIVE);
        let Some(fcf) = self.fcf().copied().filter(|fcf| fcf.keep_alives) else { return };
        let descriptors = vec![Descriptor::Mac(self.config.mac), Descriptor::VxPort { mac, port_id, port_name }];
        let packet = Fip { operation: Operation::KEEP_ALIVE, flags: flag::FPMA, descriptors };
        self.fip(fcf.mac, mac, packet);
    }

    /// Handles Clear Virtual Links. Before the first login it restarts discovery, regardless of the
    /// sender, because libfcoe then treats the discovered state as outdated.
    fn cleared(&mut self, now: Instant, from: MacAddr, packet: &Fip) -> Result<(), Discard> {
        let (Some(fcf), Some(base)) = (self.fcf().copied(), self.base) else {
            self.start_over(now);
            return Ok(());
        };
        if from != fcf.mac {
            return Err(Discard::Spoofed);
        }
        let known = |descriptor: &Descriptor| {
            matches!(
                descriptor,
                Descriptor::Mac(_) | Descriptor::Name(_) | Descriptor::VxPort { .. } | Descriptor::Other { .. }
            )
        };
        let names_it = packet.mac() == Some(fcf.mac) && packet.name() == Some(fcf.switch_name);
        if !names_it || !packet.descriptors.iter().all(known) {
            return Err(Discard::Descriptors);
        }
        let named: Vec<(MacAddr, FcId, Wwpn)> = packet.vx_ports().collect();
        let ours = |(mac, id, name): &(MacAddr, FcId, Wwpn)| {
            self.vn_ports.get(id).is_some_and(|vn_port| (vn_port.mac, vn_port.name) == (*mac, *name))
        };
        let hit: Vec<FcId> = named.iter().filter(|vx_port| ours(vx_port)).map(|(_, id, _)| *id).collect();
        if named.is_empty() || hit.contains(&base) {
            self.counters.virtual_link_failures += 1;
            self.start_over(now);
            return Ok(());
        }
        if hit.is_empty() {
            return Err(Discard::NotLoggedIn);
        }
        for port_id in hit {
            self.counters.virtual_link_failures += 1;
            self.drop_vn_port(port_id);
            self.outputs.push_back(Output::Cleared { port_id });
        }
        Ok(())
    }

    fn fip(&mut self, to: MacAddr, from: MacAddr, packet: Fip) {
        self.outputs.push_back(Output::Fip(FipFrame { to, from, padded_bytes: 0, packet }));
    }

    fn fcoe(&mut self, s_id: FcId, frame: Frame) {
        match self.path(s_id) {
            Some((to, from)) => self.outputs.push_back(Output::Fcoe { to, from, frame }),
            None => self.discards.count(Discard::NotLoggedIn),
        }
    }
}
