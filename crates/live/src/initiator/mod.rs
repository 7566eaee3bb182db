//! A Fibre Channel initiator in user space: [`Initiator`], an FCoE host on any Ethernet port, whose disks programs use through
//! the network block device protocol.
//!
//! ```text
//!   Ethernet port ══▶ Enode (FIP) ──▶ Host: NPort, FcpInitiator, Scan, Disk ──▶ NbdServer ══▶ programs
//! ```
//!
//! It is what libfcoe, libfc and the SCSI layer are together (document 002), on the machines of `core`. A full egress queue
//! holds back what the host sends, and with it the clients.

mod commands;
pub(crate) mod exports;
mod frames;
pub mod host;
mod vlans;

pub use vlans::{FoundVlan, discover_vlans};

use crate::capture::Captures;
use crate::clock::{Clock, until};
use crate::frame::{FrameBuf, Pool};
use crate::nbd::NbdServer;
use crate::poll::{Interest, Poller};
use crate::ports::{EthernetPort, PortError};
use crate::sys::batch::BATCH;
use exports::Asked;
use host::Host;
use sanloom_core::disk::DiskConfig;
use sanloom_core::fcp::initiator::FcpInitiatorConfig;
use sanloom_core::fip::enode::{self, Enode, EnodeConfig};
use sanloom_core::nbd::Limits;
use sanloom_core::nport::NPortConfig;
use sanloom_core::time::{Instant, Span};
use sanloom_wire::ether::{MacAddr, VlanTag};
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

/// How often the port is asked whether its peer is still there, and the caller whether to go on.
const LOOK: Span = Span::from_ms(100);
/// What waits for longer for a peer that takes nothing is dropped.
const HOLD_TIME: Span = Span::from_ms(500);
/// Batches of frames in one turn.
const BATCHES_IN_TURN: usize = 8;
/// Priority of FCoE frames with a tag (IEEE 802.1Q, as DCB networks have it).
const FCOE_PRIORITY: u8 = 3;

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

/// What an initiator is.
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// Address of its Ethernet port.
    pub mac: MacAddr,
    /// Port name.
    pub wwpn: Wwpn,
    /// Node name.
    pub wwnn: Wwnn,
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
}

impl InitiatorConfig {
    /// With the names that Linux makes from the address: 20:00 and 10:00 before it.
    pub fn new(mac: MacAddr, nbd: PathBuf) -> InitiatorConfig {
        InitiatorConfig {
            mac,
            wwpn: Wwpn(0x2000 << 48 | mac.to_u64()),
            wwnn: Wwnn(0x1000 << 48 | mac.to_u64()),
            vlan: Vlan::Untagged,
            symbolic_name: concat!("sanloom ", env!("CARGO_PKG_VERSION")).to_owned(),
            selection_delay: Span::from_secs(2),
            command_timeout: Span::from_secs(30),
            disk: DiskConfig::default(),
            nbd,
            limits: Limits::default(),
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
    pub enode: Enode,
    /// Everything behind it.
    pub host: Host,
    /// The server of its disks.
    pub nbd: NbdServer,
    /// Captures of the port.
    pub captures: Captures,
    /// Time since the start.
    pub clock: Clock,
    poller: Poller,
    pool: Pool,
    spare: Vec<FrameBuf>,
    scratch: Vec<u8>,
    /// The VLAN in use; nothing until it is known.
    tag: Option<Option<VlanTag>>,
    link: bool,
    next_look: Instant,
    /// What NBD clients have asked, by our tag.
    asked: BTreeMap<u64, Asked>,
    next_asked: u64,
}

impl Initiator {
    /// An initiator on a port.
    ///
    /// # Errors
    /// When the NBD socket cannot be opened, or the system gives us no descriptor.
    pub fn new(config: InitiatorConfig, port: EthernetPort) -> Result<Initiator, PortError> {
        let poller = Poller::new().map_err(|error| PortError::Socket { path: config.nbd.clone(), error })?;
        let nbd = NbdServer::listen(&config.nbd, Vec::new(), config.limits)?;
        let enode = Enode::new(EnodeConfig {
            selection_delay: config.selection_delay,
            ..EnodeConfig::new(config.mac, config.wwnn)
        });
        let (e_d_tov, r_a_tov) = (Span::from_secs(2), Span::from_secs(10));
        let login = NPortConfig {
            wwpn: config.wwpn,
            wwnn: config.wwnn,
            receive_size_bytes: 2112,
            bb_credit: 16,
            initiator: true,
            target: false,
            symbolic_name: config.symbolic_name.clone(),
            e_d_tov,
            r_a_tov,
            seed: config.wwpn.0,
            virtual_port: None,
        };
        let command_timeout = config.command_timeout;
        let fcp = FcpInitiatorConfig { e_d_tov, r_a_tov, command_timeout, max_exchanges: u16::MAX, in_order: true };
        let host = Host::new(login, fcp, config.disk);
        let tag = match config.vlan {
            Vlan::Untagged => Some(None),
            Vlan::Tagged(vlan) => Some(Some(tag(vlan))),
            Vlan::Discover => None,
        };
        let mut pool = Pool::default();
        let spare = (0..BATCH).map(|_| pool.take()).collect();
        Ok(Initiator {
            config,
            port,
            enode,
            host,
            nbd,
            captures: Captures::default(),
            clock: Clock::start(),
            poller,
            pool,
            spare,
            scratch: Vec::new(),
            tag,
            link: false,
            next_look: Instant::ZERO,
            asked: BTreeMap::new(),
            next_asked: 0,
        })
    }

    /// What it was made of.
    pub fn config(&self) -> &InitiatorConfig {
        &self.config
    }

    /// Every disk that the targets have listed can be used, and there is at least one.
    pub fn is_ready(&self) -> bool {
        let mut disks = self.host.disks().peekable();
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

    /// Logs out, and lets clients go as soon as what they have asked is done.
    pub fn shut_down(&mut self) {
        let now = self.clock.now();
        self.nbd.shut_down(now);
        self.host.log_out(now);
        self.pump(now);
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
        Ok(more || self.host.has_output() && !self.port.egress.is_full())
    }

    fn next_timer(&self) -> Instant {
        let own = [self.enode.poll_timeout(), self.host.poll_timeout(), self.nbd.poll_timeout()];
        let queue = self.port.egress.expires(HOLD_TIME);
        own.into_iter().chain([queue]).flatten().fold(self.next_look, Instant::min)
    }

    fn timers(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.enode.poll_timeout()) {
            self.tell_enode(now, enode::Input::Timeout);
        }
        if due(self.host.poll_timeout()) {
            self.host.timeout(now);
        }
    }

    /// Finds out whether the peer has come or gone.
    fn look(&mut self, now: Instant) {
        self.next_look = now + LOOK;
        self.captures.flush();
        let socket = self.port.socket().map(|socket| std::os::fd::AsRawFd::as_raw_fd(&socket));
        self.port.look_for_peer();
        if self.port.socket().map(|socket| std::os::fd::AsRawFd::as_raw_fd(&socket)) != socket {
            self.poller.forget(PORT);
        }
        let up = self.port.has_peer();
        if std::mem::replace(&mut self.link, up) == up {
            return;
        }
        tracing::info!(port = self.port.name, up, "link");
        if !up {
            self.tell_enode(now, enode::Input::LinkDown);
        } else if self.tag.is_some() {
            self.tell_enode(now, enode::Input::LinkUp);
        } else {
            self.tell_enode(now, enode::Input::DiscoverVlans);
        }
    }
}

fn tag(vlan: u16) -> VlanTag {
    VlanTag { priority: FCOE_PRIORITY, drop_eligible: false, vlan }
}
