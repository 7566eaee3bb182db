//! The FIP controller of a switch's Ethernet port in one VLAN: [`Fcf`].
//!
//! To the switch it is a group of ports. An ENode that logs in gets its own virtual F_Port
//! (VF_Port), another FCF gets a virtual E_Port (VE_Port). Both are allocated from
//! [`FcfConfig::ports`]. Events for the switch are emitted as [`Output::Switch`]; frames that the
//! switch sends through such a port are passed as [`Input::Send`].
//!
//! ```text
//!   VF_Port:   none ── FLOGI ──▶ login ── LS_ACC ──▶ logged in ⟲ FDISC, LOGO, keep-alives
//!                ▲                 │ LS_RJT             │ the last LOGO, clear virtual links,
//!                └─────────────────┴────────────────────┘ or silence for 2.5 periods
//!
//!   VE_Port:   unknown ── advertisement ──▶ known ── solicited advertisement, or ELP ──▶ open
//!                ▲                            ▲                          (the switch sends ELP)
//!                │ silence for 2.5 periods    └───────── clear virtual links ─────────────┤
//!                └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! FLOGI, FDISC, LOGO and ELP travel over FIP, each reply like its request; everything else travels
//! over FCoE. If the switch removes a login, Clear Virtual Links notifies the ENode, unless the
//! ENode's own request caused the removal.
//!
//! An FCF that starts has no logins and announces this to all stations, so hosts that were logged
//! in before a crash log in again at once.
//!
//! Sources: FC-BB (FCoE Initialization Protocol), and the assumptions of Linux hosts, as recorded
//! in the tests.

mod advertiser;
mod config;
mod enodes;
mod logins;
mod neighbours;
mod pending;
mod pool;
mod station;

pub use config::{Event, FcfConfig, Input, LinkEnd, Output, VirtualLink};

use super::vlan::VlanResponder;
use super::{Discard, Discards};
use advertiser::Advertiser;
use enodes::Enodes;
use neighbours::Neighbours;
use sanloom_scsi::time::Instant;
use sanloom_wire::Frame;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Fip, Operation, flag};
use station::{Station, Timer};

/// FIP controller of one Ethernet port of a switch. See the [module](self).
#[derive(Debug)]
pub struct Fcf {
    /// The Ethernet port is up.
    link: bool,
    station: Station,
    vlans: VlanResponder,
    advertiser: Advertiser,
    enodes: Enodes,
    neighbours: Neighbours,
}

impl Fcf {
    /// Returns an FCF without a link.
    pub fn new(config: FcfConfig) -> Fcf {
        Fcf {
            link: false,
            vlans: VlanResponder::new(config.mac, config.vlans.clone()),
            advertiser: Advertiser::new(config.seed),
            enodes: Enodes::default(),
            neighbours: Neighbours::default(),
            station: Station::new(config),
        }
    }

    /// Processes one input at `now`, which never decreases. It never panics and never blocks, for
    /// any data of a peer.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::LinkUp => self.link_up(now),
            Input::LinkDown => self.link_down(),
            Input::Fip { to, from, pdu } => {
                if let Err(reason) = self.on_fip(now, to, from, &pdu) {
                    self.station.discards.count(reason);
                }
            }
            Input::Send { port, frame } => self.send(now, port, frame),
            Input::Removed { port_id } => self.enodes.on_removed(port_id, &mut self.station),
            Input::Fabric { name, available } => {
                if self.advertiser.set_fabric(name, available) && self.link {
                    self.advertiser.advertise(now, &mut self.station);
                }
            }
            Input::Clear { port } => {
                self.enodes.clear(port, &mut self.station);
                self.neighbours.clear(port, &mut self.station);
            }
            Input::Shutdown => {
                self.clear_all();
                self.link_down();
            }
            Input::Timeout => self.on_timeout(now),
        }
    }

    /// Returns the next output. Drain until `None` after every [`handle`](Fcf::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.station.poll_output()
    }

    /// Time at which to pass [`Input::Timeout`] if no other input comes first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.station.alarms.next()
    }

    /// Discarded FIP frames by reason.
    pub fn discards(&self) -> &Discards {
        &self.station.discards
    }

    /// Number of switch ports free for further virtual links.
    pub fn free_ports(&self) -> usize {
        self.station.ports.free()
    }

    /// All virtual links: first those of ENodes, then those of other FCFs, each sorted by switch
    /// port.
    pub fn links(&self) -> impl Iterator<Item = VirtualLink> + '_ {
        self.enodes.links().chain(self.neighbours.links())
    }

    /// Memory that grows with the traffic of stations, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.enodes.table_bytes() + self.neighbours.table_bytes() + self.station.table_bytes()
    }

    fn link_up(&mut self, now: Instant) {
        self.link_down();
        self.link = true;
        if self.station.config.enodes {
            self.clear_all();
        }
        if self.station.config.neighbours {
            neighbours::solicit(MacAddr::ALL_FCFS, &mut self.station);
        }
        self.advertiser.advertise(now, &mut self.station);
    }

    /// Ends all virtual links without notification.
    fn link_down(&mut self) {
        self.link = false;
        self.enodes.close_all(&mut self.station);
        self.neighbours.remove_all(&mut self.station);
        self.station.reset();
    }

    /// Notifies all stations of the segment that no login is valid here.
    fn clear_all(&mut self) {
        if self.station.config.enodes {
            self.station.send_clear(MacAddr::ALL_ENODES, None);
        }
        self.neighbours.clear_all(&mut self.station);
    }

    fn on_fip(&mut self, now: Instant, to: MacAddr, from: MacAddr, pdu: &[u8]) -> Result<(), Discard> {
        if to.is_group() && to != MacAddr::ALL_FCFS {
            return Ok(());
        }
        let own = self.station.config.mac;
        if !self.link || to != own && to != MacAddr::ALL_FCFS || from == own {
            return Err(Discard::NotForUs);
        }
        let packet = Fip::parse(pdu).map_err(|_| Discard::Malformed)?;
        if packet.unknown_critical().is_some() {
            return Err(Discard::UnknownCritical);
        }
        if !from.is_station() {
            return Err(Discard::Spoofed);
        }
        let of_fcf = packet.has(flag::FCF) || self.neighbours.contains(from);
        let station = &mut self.station;
        match packet.operation {
            Operation::VLAN_REQUEST => {
                let answer = self.vlans.answer(to, &packet).ok_or(Discard::UnexpectedOperation)?;
                station.send_fip(answer);
                Ok(())
            }
            Operation::SOLICITATION if packet.has(flag::FCF) => {
                // Two FCFs that never become neighbours would otherwise solicit each other forever.
                let is_new = to == MacAddr::ALL_FCFS || !self.neighbours.contains(from);
                let bytes = self.neighbours.on_solicitation(now, to, from, &packet, station)?;
                self.advertiser.reply(from, bytes, station);
                if is_new {
                    self.neighbours.solicit_unless_usable(from, station);
                }
                Ok(())
            }
            Operation::SOLICITATION => {
                let bytes = self.enodes.on_solicitation(from, &packet, station)?;
                self.advertiser.reply(from, bytes, station);
                Ok(())
            }
            Operation::ADVERTISEMENT => self.neighbours.on_advertisement(now, from, &packet, station),
            Operation::LINK_SERVICE_REQUEST if of_fcf => self.neighbours.on_elp(now, from, packet, false, station),
            Operation::LINK_SERVICE_REPLY if of_fcf => self.neighbours.on_elp(now, from, packet, true, station),
            Operation::LINK_SERVICE_REQUEST => self.enodes.on_link_service(now, from, packet, station),
            Operation::KEEP_ALIVE => self.enodes.on_keep_alive(now, from, &packet, station),
            Operation::CLEAR_VIRTUAL_LINKS if of_fcf => self.neighbours.on_clear(from, &packet, station),
            Operation::CLEAR_VIRTUAL_LINKS => self.enodes.on_clear(now, from, &packet, station),
            _ => Err(Discard::UnexpectedOperation),
        }
    }

    /// Sends a frame of the switch through a virtual link.
    fn send(&mut self, now: Instant, port: u16, frame: Frame) {
        if let Some(mac) = self.neighbours.mac_of(port) {
            neighbours::send(port, mac, frame, &mut self.station);
        } else if self.enodes.has_port(port) {
            self.enodes.send(now, port, frame, &mut self.station);
        } else {
            self.station.discards.count(Discard::Stale);
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.station.alarms.due(now) {
            let station = &mut self.station;
            match timer {
                Timer::Advertise => self.advertiser.advertise(now, station),
                Timer::Enode(port) => self.enodes.clear(port, station),
                Timer::VnPort(port_id) => self.enodes.on_vn_port_timeout(now, port_id, station),
                Timer::Neighbour(mac) => self.neighbours.remove(mac, station),
                Timer::Pending => station.expire_pending(now),
            }
        }
    }
}
