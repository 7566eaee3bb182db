//! A Fibre Channel initiator in user space: [`Initiator`], an FCoE host on any Ethernet port, whose disks programs use through
//! the network block device protocol.
//!
//! ```text
//!   Ethernet port ══▶ Controller (FIP) ──▶ Host: NPort, FcpInitiator, Scan, Disk ──▶ NbdServer ══▶ programs
//! ```
//!
//! It is what libfcoe, libfc and the SCSI layer are together (document 002), on the machines of `core`. Virtual ports (NPIV)
//! are hosts of their own behind the same controller. A full egress queue holds back what the hosts send, and with it the
//! clients.

mod commands;
mod control;
pub mod controller;
pub(crate) mod exports;
mod frames;
pub mod host;
pub mod load;
mod vlans;
mod watch;

pub use vlans::{FoundVlan, discover_vlans};
pub use watch::{Seen, VlanWatch};

use crate::capture::Captures;
use crate::clock::{Clock, until};
use crate::exports::Asked;
use crate::frame::{FrameBuf, Pool};
use crate::lldp::Agent;
use crate::nbd::NbdServer;
use crate::offload::{Offloads, Segmenter, Spreader};
use crate::poll::{Interest, Poller};
use crate::ports::{EthernetPort, PortError};
use crate::sys::batch::BATCH;
use control::Question;
use controller::{Controller, Told};
use host::Host;
use sanloom_core::dcbx;
use sanloom_core::disk::{DiskConfig, Done, Error};
use sanloom_core::fcp::initiator::FcpInitiatorConfig;
use sanloom_core::fip::enode::{Enode, EnodeConfig};
use sanloom_core::fip::vlan::VlanResponder;
use sanloom_core::fip::vn2vn::{Vn2vn, Vn2vnConfig};
use sanloom_core::nbd::Limits;
use sanloom_core::nport::{LoginScript, NPortConfig, VirtualPort};
use sanloom_core::time::{Instant, Span};
use sanloom_wire::ether::{MacAddr, VlanTag};
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

/// How often the port is asked whether its peer is still there, and the caller whether to go on.
const LOOK: Span = Span::from_ms(100);
/// What waits for longer for a peer that takes nothing is dropped.
const HOLD_TIME: Span = Span::from_ms(500);
/// Targets and the fabric may answer in this time that we are gone.
const FAREWELL: Span = Span::from_secs(1);
/// Batches of frames in one turn.
const BATCHES_IN_TURN: usize = 8;
/// Priority of FCoE frames with a tag (IEEE 802.1Q, as DCB networks have it).
const FCOE_PRIORITY: u8 = 3;

/// How often forwarders are asked for their VLAN again, where none has answered.
const VLAN_REQUESTS: Span = Span::from_secs(5);

const PORT: u64 = 0;
const LISTENER: u64 = 1;
const NBD: u64 = 2;
const BELL: u64 = 3;

/// The VLAN of FCoE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Vlan {
    /// Frames have no tag.
    #[default]
    Untagged,
    /// Frames have this tag.
    Tagged(u16),
    /// The one that an FCF names when it is asked (FIP VLAN discovery).
    Discover,
}

/// Virtual ports of an initiator.
pub const MAX_VIRTUAL_PORTS: usize = 4_094;

/// What an initiator is.
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// Address of its Ethernet port.
    pub mac: MacAddr,
    /// Port name.
    pub wwpn: Wwpn,
    /// Node name.
    pub wwnn: Wwnn,
    /// What tools call it; nothing: the name of its Ethernet port.
    pub name: Option<String>,
    /// Port and node names of further, virtual ports (NPIV), at most [`MAX_VIRTUAL_PORTS`]. Stations have none.
    pub virtual_ports: Vec<(Wwpn, Wwnn)>,
    /// It is a station of a segment without a fabric (VN2VN), instead of looking for a forwarder.
    pub vn2vn: bool,
    /// DCBX has to agree first that no frame of FCoE is lost.
    pub dcbx: bool,
    /// FCoE waits until `fcoemon` permits it, which speaks DCBX for all hosts of an interface.
    pub waits_for_permission: bool,
    /// Tells who asks that a VN2VN segment is in our VLAN.
    pub vlan_responder: bool,
    /// Where FCoE is.
    pub vlan: Vlan,
    /// Symbolic name for the name server.
    pub symbolic_name: String,
    /// From the first FCF to the choice of one.
    pub selection_delay: Span,
    /// A command that is not complete after this time is aborted.
    pub command_timeout: Span,
    /// How disks are used.
    pub disk: DiskConfig,
    /// Socket of the NBD server.
    pub nbd: PathBuf,
    /// What an NBD client may ask at once.
    pub limits: Limits,
    /// Which offloads are on.
    pub offloads: Offloads,
}

impl InitiatorConfig {
    /// With the names that Linux makes from the address: 20:00 and 10:00 before it.
    pub fn new(mac: MacAddr, nbd: PathBuf) -> InitiatorConfig {
        InitiatorConfig {
            mac,
            wwpn: Wwpn(0x2000 << 48 | mac.to_u64()),
            wwnn: Wwnn(0x1000 << 48 | mac.to_u64()),
            name: None,
            virtual_ports: Vec::new(),
            vn2vn: false,
            dcbx: false,
            waits_for_permission: false,
            vlan_responder: false,
            vlan: Vlan::Untagged,
            symbolic_name: concat!("sanloom ", env!("CARGO_PKG_VERSION")).to_owned(),
            selection_delay: Span::from_secs(2),
            command_timeout: Span::from_secs(30),
            disk: DiskConfig::default(),
            nbd,
            limits: Limits::default(),
            offloads: Offloads::default(),
        }
    }
}

/// An initiator that runs.
#[derive(Debug)]
pub struct Initiator {
    config: InitiatorConfig,
    /// Its Ethernet port.
    pub port: EthernetPort,
    /// The FIP controller.
    pub controller: Controller,
    /// Everything behind it: the physical port, then the virtual ones.
    pub hosts: Vec<Host>,
    /// The server of its disks.
    pub nbd: NbdServer,
    /// The LLDP agent, where DCBX has to agree before FCoE begins.
    pub agent: Option<Agent>,
    responder: Option<VlanResponder>,
    /// Captures of the port.
    pub captures: Captures,
    /// Time since the start.
    pub clock: Clock,
    poller: Poller,
    pool: Pool,
    segmenter: Segmenter,
    spreader: Spreader,
    spare: Vec<FrameBuf>,
    scratch: Vec<u8>,
    /// The VLAN in use; nothing until it is known.
    tag: Option<Option<VlanTag>>,
    link: bool,
    /// FCoE has begun.
    begun: bool,
    /// Nobody who has a say in it keeps FCoE from beginning.
    permitted: bool,
    /// The physical port has a fabric login.
    base_up: bool,
    /// The host that sends next.
    turn_of: usize,
    next_look: Instant,
    /// What NBD clients have asked, by our tag.
    asked: BTreeMap<u64, Asked>,
    /// What became of requests that no NBD client has asked.
    finished: VecDeque<(u64, Result<Done, Error>, Vec<u8>)>,
    next_asked: u64,
    /// What tools have asked that the fabric has to answer, by number of the physical port.
    questions: BTreeMap<u16, Question>,
    /// How often the link went down.
    link_failures: u64,
    /// When to ask for the VLAN again.
    next_vlan_request: Instant,
}

impl Initiator {
    /// An initiator on a port.
    ///
    /// # Errors
    /// When the NBD socket cannot be opened, or the system gives us no descriptor.
    pub fn new(config: InitiatorConfig, port: EthernetPort) -> Result<Initiator, PortError> {
        let poller = Poller::new().map_err(|error| PortError::Socket { path: config.nbd.clone(), error })?;
        let nbd = NbdServer::listen(&config.nbd, Vec::new(), config.limits)?;
        let controller = if config.vn2vn {
            let vn2vn = Vn2vnConfig::new(config.mac, config.wwpn, config.wwnn, true, false);
            Controller::Vn2vn(Box::new(Vn2vn::new(vn2vn)))
        } else {
            let selection_delay = config.selection_delay;
            let enode = EnodeConfig { selection_delay, ..EnodeConfig::new(config.mac, config.wwnn) };
            Controller::Fabric(Box::new(Enode::new(enode)))
        };
        let physical = std::iter::once((config.wwpn, config.wwnn));
        let all = physical.chain(config.virtual_ports.iter().copied().take(MAX_VIRTUAL_PORTS));
        let hosts = (0..).zip(all).map(|(number, names)| host(&config, number, names)).collect();
        let tag = match config.vlan {
            Vlan::Untagged => Some(None),
            Vlan::Tagged(vlan) => Some(Some(tag(vlan))),
            Vlan::Discover => None,
        };
        let agent = config.dcbx.then(|| Agent::new(config.mac, &port.name, true));
        let responder = match config.vlan {
            Vlan::Tagged(vlan) if config.vlan_responder => Some(VlanResponder::vn2vn(config.mac, vec![vlan])),
            _ => None,
        };
        let mut pool = Pool::default();
        let spare = (0..BATCH).map(|_| pool.take()).collect();
        let spreader = Spreader::start(&config.offloads);
        let spreader = spreader.map_err(|error| PortError::Socket { path: config.nbd.clone(), error })?;
        Ok(Initiator {
            port,
            controller,
            hosts,
            nbd,
            agent,
            responder,
            captures: Captures::default(),
            clock: Clock::start(),
            poller,
            segmenter: Segmenter::new(&config.offloads),
            spreader,
            pool,
            spare,
            scratch: Vec::new(),
            tag,
            link: false,
            begun: false,
            permitted: !config.waits_for_permission,
            base_up: false,
            turn_of: 0,
            next_look: Instant::ZERO,
            asked: BTreeMap::new(),
            finished: VecDeque::new(),
            next_asked: 0,
            questions: BTreeMap::new(),
            link_failures: 0,
            next_vlan_request: Instant::ZERO,
            config,
        })
    }

    /// What it was made of.
    pub fn config(&self) -> &InitiatorConfig {
        &self.config
    }

    /// Every disk that the targets have listed can be used, and there is at least one.
    pub fn is_ready(&self) -> bool {
        let mut disks = self.hosts.iter().flat_map(Host::disks).peekable();
        disks.peek().is_some() && disks.all(|disk| disk.ready)
    }

    /// Runs until `go_on` says no. It is asked every 100 ms, and whenever `bell` is readable.
    ///
    /// # Errors
    /// When the system does not let us wait.
    pub fn run(
        &mut self,
        bell: Option<BorrowedFd<'_>>,
        mut go_on: impl FnMut(&mut Initiator) -> bool,
    ) -> io::Result<()> {
        self.poller.set(BELL, bell, Interest { read: true, write: false })?;
        let mut busy = false;
        while go_on(self) {
            busy = self.turn(busy)?;
        }
        Ok(())
    }

    /// Logs out, waits a moment for the answers, and lets clients go as soon as what they have asked is done.
    pub fn shut_down(&mut self) {
        let now = self.clock.now();
        self.nbd.shut_down(now);
        self.hosts.iter_mut().for_each(|host| host.log_out(now));
        let patience = now + FAREWELL;
        let mut more = true;
        while self.hosts.iter().any(|host| host.port_id() != FcId::ZERO) && self.clock.now() < patience {
            match self.turn(more) {
                Ok(left) => more = left,
                Err(_) => break,
            }
        }
        let now = self.clock.now();
        self.pump(now);
        self.tell_agent(now, dcbx::Input::Shutdown);
        self.port.flush(&mut self.pool);
        self.captures.flush();
    }

    /// Waits until there is something to do, at most 100 ms, and does it. True if there is more that need not be waited
    /// for.
    ///
    /// # Errors
    /// When the system does not let us wait.
    pub fn turn(&mut self, busy: bool) -> io::Result<bool> {
        let egress = &self.port.egress;
        let interest = Interest { read: true, write: egress.blocked && !egress.queue.is_empty() };
        self.poller.set(PORT, self.port.socket(), interest)?;
        let reading = Interest { read: true, write: false };
        self.poller.set(LISTENER, self.port.listener(), reading)?;
        // Clients wait while the port does.
        let clients = Interest { read: !self.port.egress.is_full(), write: false };
        self.poller.set(NBD, Some(self.nbd.descriptor()), clients)?;
        let now = self.clock.now();
        let wait = if busy { Duration::ZERO } else { until(now, self.next_timer()) };
        let (mut readable, mut clients, mut look) = (busy, false, false);
        for event in self.poller.wait(wait)? {
            match event.token {
                PORT => {
                    readable |= event.readable;
                    self.port.egress.blocked &= !event.writable;
                }
                LISTENER => look = true,
                NBD => clients = true,
                _ => {}
            }
        }
        let now = self.clock.now();
        if look || self.next_look <= now {
            self.look(now);
        }
        let more = readable && self.receive(now);
        let nbd_due = self.nbd.poll_timeout().is_some_and(|at| at <= now);
        if clients || nbd_due {
            self.nbd.turn(now, Duration::ZERO)?;
        }
        self.timers(now);
        self.serve(now);
        self.pump(now);
        self.port.flush(&mut self.pool);
        let late = self.port.egress.expire(now, HOLD_TIME, &mut self.pool);
        if late > 0 {
            self.port.count(crate::ports::reason::HOLD_TIME, late);
        }
        let waits = self.hosts.iter().any(Host::has_output);
        Ok(more || waits && !self.port.egress.is_full())
    }

    fn next_timer(&self) -> Instant {
        let agent = self.agent.as_ref().and_then(|agent| agent.machine.poll_timeout());
        let own = [self.controller.poll_timeout(), self.nbd.poll_timeout(), agent];
        let hosts = self.hosts.iter().map(Host::poll_timeout);
        let queue = self.port.egress.expires(HOLD_TIME);
        own.into_iter().chain(hosts).chain([queue]).flatten().fold(self.next_look, Instant::min)
    }

    fn timers(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.controller.poll_timeout()) {
            self.tell(now, Told::Timeout);
        }
        if due(self.agent.as_ref().and_then(|agent| agent.machine.poll_timeout())) {
            self.tell_agent(now, dcbx::Input::Timeout);
            self.settle_link(now);
        }
        for host in self.hosts.iter_mut().filter(|host| due(host.poll_timeout())) {
            host.timeout(now);
        }
        self.virtual_links(now);
    }

    /// Finds out whether the peer has come or gone.
    fn look(&mut self, now: Instant) {
        self.next_look = now + LOOK;
        self.captures.flush();
        if self.port.look_for_peer() {
            self.poller.forget(PORT);
        }
        let up = self.port.has_peer();
        if self.begun && self.tag.is_none() && self.next_vlan_request <= now {
            self.begin(now);
        }
        if std::mem::replace(&mut self.link, up) == up {
            return;
        }
        tracing::info!(port = self.port.name, up, "link");
        self.link_failures += u64::from(!up);
        self.tell_agent(now, if up { dcbx::Input::LinkUp } else { dcbx::Input::LinkDown });
        self.settle_link(now);
    }

    /// FCoE begins when the link is up and DCBX agrees, and ends when one of them does not hold any more.
    pub(super) fn settle_link(&mut self, now: Instant) {
        let up = self.link && self.permitted && self.agent.as_ref().is_none_or(Agent::may_begin);
        if std::mem::replace(&mut self.begun, up) == up {
            return;
        }
        if up {
            self.begin(now);
            return;
        }
        self.tell(now, Told::LinkDown);
        self.forget_vlan(now);
    }

    /// Whoever comes next may be in another VLAN: it is asked for again, if nobody has said which one it is.
    pub(super) fn forget_vlan(&mut self, now: Instant) {
        if self.config.vlan == Vlan::Discover && self.tag.take().is_some() {
            self.next_vlan_request = now;
            self.tell(now, Told::LinkDown);
        }
    }

    /// Looks for a forwarder or for neighbours, or for the VLAN that they are in.
    fn begin(&mut self, now: Instant) {
        if self.tag.is_some() {
            self.tell(now, Told::LinkUp);
        } else {
            self.next_vlan_request = now + VLAN_REQUESTS;
            self.tell(now, Told::DiscoverVlans);
        }
    }

    /// Something happened to the LLDP agent, if there is one.
    fn tell_agent(&mut self, now: Instant, input: dcbx::Input) {
        if let Some(agent) = &mut self.agent {
            agent.machine.handle(now, input);
            self.drain_agent(now);
        }
    }

    pub(super) fn drain_agent(&mut self, now: Instant) {
        while let Some(agent) = &mut self.agent
            && let Some(pdu) = agent.poll()
        {
            let mut buffer = self.pool.take();
            buffer.compose(&mut self.scratch, |out| agent.emit(&pdu, out));
            self.untagged_out(now, buffer);
        }
    }
}

/// An N_Port and what is behind it; 0 is the physical one.
fn host(config: &InitiatorConfig, number: u16, (wwpn, wwnn): (Wwpn, Wwnn)) -> Host {
    let (e_d_tov, r_a_tov) = (Span::from_secs(2), Span::from_secs(10));
    let login = NPortConfig {
        wwpn,
        wwnn,
        receive_size_bytes: 2112,
        bb_credit: 16,
        initiator: true,
        target: false,
        symbolic_name: config.symbolic_name.clone(),
        e_d_tov,
        r_a_tov,
        seed: wwpn.0,
        virtual_port: (number > 0).then_some(VirtualPort { number, script: LoginScript::Standard }),
    };
    let command_timeout = config.command_timeout;
    let fcp = FcpInitiatorConfig { e_d_tov, r_a_tov, command_timeout, max_exchanges: u16::MAX, in_order: true };
    let mut host = Host::new(login, fcp, config.disk);
    host.place(config.offloads.placement);
    host
}

fn tag(vlan: u16) -> VlanTag {
    VlanTag { priority: FCOE_PRIORITY, drop_eligible: false, vlan }
}
