//! The FIP controller of a switch's Ethernet port in one VLAN: [`Fcf`].
//!
//! To the switch it is a bundle of ports. An ENode that logs in gets a virtual F_Port (VF_Port) of its own, another FCF a
//! virtual E_Port (VE_Port), both out of [`FcfConfig::ports`]; what it wants of the switch comes as
//! [`Output::Switch`], what the switch wants sent through such a port goes in as [`Input::Send`].
//!
//! ```text
//!   VF_Port:   none ── FLOGI ──▶ asked ── LS_ACC ──▶ logged in ⟲ FDISC, LOGO, keep-alives
//!                ▲                 │ LS_RJT             │ the last LOGO, silence for 2.5 periods, clear virtual links
//!                └─────────────────┴────────────────────┘
//!
//!   VE_Port:   unknown ── advertisement ──▶ heard ── solicited advertisement, or ELP ──▶ open (the switch sends ELP)
//!                ▲                            ▲                                           │
//!                │ silence for 2.5 periods    └───────── clear virtual links ─────────────┤
//!                └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! FLOGI, FDISC, LOGO and ELP travel in FIP, each reply like its request; everything else is FCoE. A login of which the
//! switch takes something back is told so by Clear Virtual Links, except where it asked for that itself.
//!
//! An FCF that starts knows nobody, and says so to everybody: hosts that were logged in before a crash log in again at once.
//!
//! Sources: FC-BB (FCoE Initialization Protocol); what Linux takes for granted about it, as the tests say.

mod config;
mod enodes;
mod logins;
mod neighbours;
mod pool;

pub use config::{Event, FcfConfig, Input, LinkEnd, Output, VirtualLink};

use super::jitter::up_to;
use super::vlan::VlanResponder;
use super::{ADVERTISEMENT_JITTER, Advertisement, BindingChange, Discard, Discards};
use crate::alarms::Alarms;
use crate::fabric_switch;
use crate::random::SplitMix64;
use crate::time::Instant;
use enodes::{Strangers, VfPort, VnPort};
use logins::Pending;
use neighbours::Neighbour;
use pool::PortPool;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, Operation, flag};
use sanloom_wire::{FcId, Frame, Wwnn};
use std::collections::{BTreeMap, VecDeque};

/// What the machine waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    Advertise,
    /// The ENode behind a port is silent.
    Enode(u16),
    VnPort(FcId),
    /// Another FCF is silent.
    Neighbour(MacAddr),
    /// Requests that the switch has not answered.
    Pending,
}

/// The FIP controller of one Ethernet port of a switch. See the [module](self).
#[derive(Debug)]
pub struct Fcf {
    config: FcfConfig,
    vlans: VlanResponder,
    link: bool,
    /// The switch takes logins.
    available: bool,
    fabric_name: Wwnn,
    pool: PortPool,
    /// VF_Ports, by port of the switch.
    vf_ports: BTreeMap<u16, VfPort>,
    /// The VF_Port of each ENode.
    enodes: BTreeMap<MacAddr, u16>,
    vn_ports: BTreeMap<FcId, VnPort>,
    strangers: Strangers,
    /// FCFs that were heard.
    neighbours: BTreeMap<MacAddr, Neighbour>,
    /// FCFs by the VE_Port to them.
    ve_ports: BTreeMap<u16, MacAddr>,
    /// Requests that came in FIP and go out answered in FIP, by port and OX_ID.
    pending: BTreeMap<(u16, u16), Pending>,
    /// When each of them is given up; those that were answered stay until then.
    pending_until: VecDeque<(Instant, (u16, u16))>,
    alarms: Alarms<Timer>,
    random: SplitMix64,
    outputs: VecDeque<Output>,
    discards: Discards,
}

impl Fcf {
    /// An FCF without a link.
    pub fn new(config: FcfConfig) -> Fcf {
        Fcf {
            vlans: VlanResponder::new(config.mac, config.vlans.clone()),
            link: false,
            available: false,
            fabric_name: Wwnn(0),
            pool: PortPool::new(&config.ports),
            vf_ports: BTreeMap::new(),
            enodes: BTreeMap::new(),
            vn_ports: BTreeMap::new(),
            strangers: Strangers::default(),
            neighbours: BTreeMap::new(),
            ve_ports: BTreeMap::new(),
            pending: BTreeMap::new(),
            pending_until: VecDeque::new(),
            alarms: Alarms::new(),
            random: SplitMix64(config.seed),
            outputs: VecDeque::new(),
            discards: Discards::default(),
            config,
        }
    }

    /// One thing happened at `now`, which never decreases. Never panics and never blocks, whatever a peer sent.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::LinkUp => self.link_up(now),
            Input::LinkDown => self.link_down(),
            Input::Fip { to, from, pdu } => {
                if let Err(reason) = self.received(now, to, from, &pdu) {
                    self.discards.count(reason);
                }
            }
            Input::Send { port, frame } => self.send(now, port, frame),
            Input::Removed { port_id } => self.removed(port_id),
            Input::Fabric { name, available } => {
                let news = (self.fabric_name, self.available) != (name, available);
                (self.fabric_name, self.available) = (name, available);
                if news && self.link {
                    self.advertise(now);
                }
            }
            Input::Clear { port } => self.clear(port),
            Input::Shutdown => {
                self.farewell();
                self.link_down();
            }
            Input::Timeout => self.timeout(now),
        }
    }

    /// What is to be done next; drained until `None` after every [`handle`](Fcf::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`] if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.alarms.next()
    }

    /// FIP frames that were not acted on, by reason.
    pub fn discards(&self) -> &Discards {
        &self.discards
    }

    /// Ports of the switch that are free for further virtual links.
    pub fn free_ports(&self) -> usize {
        self.pool.free()
    }

    /// Every virtual link, by port of the switch.
    pub fn links(&self) -> impl Iterator<Item = VirtualLink> + '_ {
        let vf = self.vf_ports.iter().map(|(port, vf)| VirtualLink {
            port: *port,
            mac: vf.mac,
            end: LinkEnd::Enode { vn_ports: vf.ids.len() },
        });
        let ve = self.ve_ports.iter().filter_map(|(port, mac)| {
            let neighbour = self.neighbours.get(mac)?;
            Some(VirtualLink { port: *port, mac: *mac, end: LinkEnd::Fcf { switch_name: neighbour.switch_name } })
        });
        vf.chain(ve)
    }

    /// Memory that grows with what stations send, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.vf_ports.len() * size_of::<(u16, VfPort)>()
            + self.vn_ports.len() * 2 * size_of::<(FcId, VnPort)>()
            + self.neighbours.len() * size_of::<(MacAddr, Neighbour)>()
            + self.pending.len() * size_of::<((u16, u16), Pending)>()
            + self.pending_until.capacity() * size_of::<(Instant, (u16, u16))>()
            + self.outputs.capacity() * size_of::<Output>()
    }

    fn link_up(&mut self, now: Instant) {
        self.link_down();
        self.link = true;
        if self.config.enodes {
            self.farewell();
        }
        if self.config.neighbours {
            self.solicit(MacAddr::ALL_FCFS);
        }
        self.advertise(now);
    }

    /// Every virtual link is gone, without a word.
    fn link_down(&mut self) {
        self.link = false;
        let ports: Vec<u16> = self.vf_ports.keys().copied().collect();
        ports.into_iter().for_each(|port| self.close_vf_port(port));
        let neighbours: Vec<MacAddr> = self.neighbours.keys().copied().collect();
        neighbours.into_iter().for_each(|mac| self.forget_neighbour(mac));
        self.pending.clear();
        self.pending_until.clear();
        self.alarms = Alarms::new();
    }

    /// Multicast advertisements, now and again after a period.
    fn advertise(&mut self, now: Instant) {
        let jitter = up_to(ADVERTISEMENT_JITTER, &mut self.random);
        self.alarms.set(Timer::Advertise, now + self.config.period + jitter);
        if self.config.enodes {
            self.fip(MacAddr::ALL_ENODES, 0, self.advertisement(false).packet());
        }
        if self.config.neighbours {
            self.fip(MacAddr::ALL_FCFS, 0, self.advertisement(false).packet());
        }
    }

    fn advertisement(&self, solicited: bool) -> Advertisement {
        Advertisement {
            mac: self.config.mac,
            switch_name: self.config.switch_name,
            fabric_name: self.fabric_name,
            fc_map: self.config.fc_map,
            vf_id: self.config.vf_id,
            priority: self.config.priority,
            period: self.config.period,
            keep_alives: self.config.keep_alives,
            available: self.available && self.config.enodes,
            solicited,
        }
    }

    fn received(&mut self, now: Instant, to: MacAddr, from: MacAddr, pdu: &[u8]) -> Result<(), Discard> {
        if to.is_group() && to != MacAddr::ALL_FCFS {
            return Ok(());
        }
        if !self.link || to != self.config.mac && to != MacAddr::ALL_FCFS || from == self.config.mac {
            return Err(Discard::NotForUs);
        }
        let packet = Fip::parse(pdu).map_err(|_| Discard::Malformed)?;
        if packet.unknown_critical().is_some() {
            return Err(Discard::UnknownCritical);
        }
        if !from.is_station() {
            return Err(Discard::Spoofed);
        }
        let of_fcf = packet.has(flag::FCF) || self.neighbours.contains_key(&from);
        match packet.operation {
            Operation::VLAN_REQUEST => {
                let answer = self.vlans.answer(to, &packet).ok_or(Discard::UnexpectedOperation)?;
                self.outputs.push_back(Output::Fip(answer));
                Ok(())
            }
            Operation::SOLICITATION if packet.has(flag::FCF) => self.solicited_by_fcf(now, to, from, &packet),
            Operation::SOLICITATION => self.solicited_by_enode(from, &packet),
            Operation::ADVERTISEMENT => self.neighbour_advertised(now, from, &packet),
            Operation::LINK_SERVICE_REQUEST if of_fcf => self.neighbour_elp(now, from, packet, false),
            Operation::LINK_SERVICE_REPLY if of_fcf => self.neighbour_elp(now, from, packet, true),
            Operation::LINK_SERVICE_REQUEST => self.link_service(now, from, packet),
            Operation::KEEP_ALIVE => self.keep_alive(now, from, &packet),
            Operation::CLEAR_VIRTUAL_LINKS if of_fcf => self.cleared_by_fcf(from, &packet),
            Operation::CLEAR_VIRTUAL_LINKS => self.cleared_by_enode(now, from, &packet),
            _ => Err(Discard::UnexpectedOperation),
        }
    }

    /// What the switch sends through a virtual link.
    fn send(&mut self, now: Instant, port: u16, frame: Frame) {
        if let Some(mac) = self.ve_ports.get(&port).copied() {
            self.send_to_fcf(port, mac, frame);
        } else if self.vf_ports.contains_key(&port) {
            self.send_to_enode(now, port, frame);
        } else {
            self.discards.count(Discard::Stale);
        }
    }

    fn timeout(&mut self, now: Instant) {
        while let Some(timer) = self.alarms.due(now) {
            match timer {
                Timer::Advertise => self.advertise(now),
                Timer::Enode(port) => self.clear(port),
                Timer::VnPort(port_id) => self.vn_port_silent(now, port_id),
                Timer::Neighbour(mac) => self.forget_neighbour(mac),
                Timer::Pending => self.give_up_pending(now),
            }
        }
    }

    fn fip(&mut self, to: MacAddr, padded_bytes: u16, packet: Fip) {
        self.outputs.push_back(Output::Fip(FipFrame { to, from: self.config.mac, padded_bytes, packet }));
    }

    fn fcoe(&mut self, to: MacAddr, frame: Frame) {
        self.outputs.push_back(Output::Fcoe { to, frame });
    }

    fn switch(&mut self, input: fabric_switch::Input) {
        self.outputs.push_back(Output::Switch(input));
    }

    fn bind(&mut self, change: BindingChange) {
        self.outputs.push_back(Output::Bind(change));
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Clear Virtual Links to a station, for the VN_Ports in `ports`; without any: for all that it has.
    fn send_clear(&mut self, to: MacAddr, ports: impl IntoIterator<Item = Descriptor>) {
        let own = [Descriptor::Mac(self.config.mac), Descriptor::Name(self.config.switch_name)];
        let descriptors = own.into_iter().chain(ports).collect();
        let packet = Fip { operation: Operation::CLEAR_VIRTUAL_LINKS, flags: flag::FPMA | flag::FCF, descriptors };
        self.fip(to, 0, packet);
    }

    /// Tells everybody on the segment that nobody is logged in here.
    fn farewell(&mut self) {
        if self.config.enodes {
            self.send_clear(MacAddr::ALL_ENODES, None);
        }
        let neighbours: Vec<MacAddr> = self.ve_ports.values().copied().collect();
        neighbours.into_iter().for_each(|mac| self.send_clear(mac, None));
    }
}
