//! A Fibre Channel initiator in user space: [`Initiator`], an FCoE host on any Ethernet port, whose disks programs use through
//! the network block device protocol.
//!
//! ```text
//!   Ethernet port ══▶ Adapter: Controller (FIP) ──▶ Host: NPort, FcpInitiator, Scan, Disk ──▶ NbdServer ══▶ programs
//! ```
//!
//! It is what libfcoe, libfc and the SCSI layer are together (document 002), on the machines of `core`. Virtual ports (NPIV)
//! are hosts of their own behind the same controller. A full egress queue holds back what the hosts send, and with it the
//! clients.

pub mod adapter;
mod commands;
mod control;
pub mod controller;
pub(crate) mod exports;
mod frames;
pub mod host;
pub mod load;
mod vlans;
mod watch;

pub use adapter::{Adapter, AdapterConfig, Vlan};
pub use vlans::{FoundVlan, discover_vlans};
pub use watch::{Seen, VlanWatch};

use crate::clock::{Clock, until};
use crate::exports::Asked;
use crate::nbd::NbdServer;
use crate::poll::{Interest, Poller};
use crate::ports::{EthernetPort, PortError};
use control::Question;
use host::Host;
use sanloom_core::disk::{DiskConfig, Done, Error};
use sanloom_core::fcp::initiator::FcpInitiatorConfig;
use sanloom_core::nbd::Limits;
use sanloom_core::nport::{LoginScript, NPortConfig, VirtualPort};
use sanloom_core::time::{Instant, Span};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

/// Targets and the fabric may answer in this time that we are gone.
const FAREWELL: Span = Span::from_secs(1);

const PORT: u64 = 0;
const LISTENER: u64 = 1;
const NBD: u64 = 2;
const BELL: u64 = 3;

/// Virtual ports of an initiator.
pub const MAX_VIRTUAL_PORTS: usize = 4_094;

/// What an initiator is.
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// Its Ethernet port, its names in the fabric, and how it gets there.
    pub adapter: AdapterConfig,
    /// What tools call it; nothing: the name of its Ethernet port.
    pub name: Option<String>,
    /// Port and node names of further, virtual ports (NPIV), at most [`MAX_VIRTUAL_PORTS`]. Stations have none.
    pub virtual_ports: Vec<(Wwpn, Wwnn)>,
    /// Symbolic name for the name server.
    pub symbolic_name: String,
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
        let (wwpn, wwnn) = (Wwpn(0x2000 << 48 | mac.to_u64()), Wwnn(0x1000 << 48 | mac.to_u64()));
        InitiatorConfig {
            adapter: AdapterConfig::new(mac, wwpn, wwnn),
            name: None,
            virtual_ports: Vec::new(),
            symbolic_name: concat!("sanloom ", env!("CARGO_PKG_VERSION")).to_owned(),
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
    /// Its Ethernet port, and the host there.
    pub adapter: Adapter,
    /// The server of its disks.
    pub nbd: NbdServer,
    /// Time since the start.
    pub clock: Clock,
    poller: Poller,
    /// What NBD clients have asked, by our tag.
    asked: BTreeMap<u64, Asked>,
    /// What became of requests that no NBD client has asked.
    finished: VecDeque<(u64, Result<Done, Error>, Vec<u8>)>,
    next_asked: u64,
    /// What tools have asked that the fabric has to answer, by number of the physical port.
    questions: BTreeMap<u16, Question>,
}

impl Initiator {
    /// An initiator on a port.
    ///
    /// # Errors
    /// When the NBD socket cannot be opened, or the system gives us no descriptor.
    pub fn new(config: InitiatorConfig, port: EthernetPort) -> Result<Initiator, PortError> {
        let failed = |error| PortError::Socket { path: config.nbd.clone(), error };
        let poller = Poller::new().map_err(failed)?;
        let nbd = NbdServer::listen(&config.nbd, Vec::new(), config.limits)?;
        let physical = std::iter::once((config.adapter.wwpn, config.adapter.wwnn));
        let all = physical.chain(config.virtual_ports.iter().copied().take(MAX_VIRTUAL_PORTS));
        let hosts = (0..).zip(all).map(|(number, names)| host(&config, number, names)).collect();
        let adapter = Adapter::new(config.adapter.clone(), port, hosts).map_err(failed)?;
        Ok(Initiator {
            adapter,
            nbd,
            clock: Clock::start(),
            poller,
            asked: BTreeMap::new(),
            finished: VecDeque::new(),
            next_asked: 0,
            questions: BTreeMap::new(),
            config,
        })
    }

    /// Every disk that the targets have listed can be used, and there is at least one.
    pub fn is_ready(&self) -> bool {
        let mut disks = self.adapter.hosts.iter().flat_map(Host::disks).peekable();
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
        self.adapter.log_out(now);
        let patience = now + FAREWELL;
        let mut more = true;
        while self.adapter.is_logged_in() && self.clock.now() < patience {
            match self.turn(more) {
                Ok(left) => more = left,
                Err(_) => break,
            }
        }
        self.adapter.end(self.clock.now());
    }

    /// Waits until there is something to do, at most 100 ms, and does it. True if there is more that need not be waited
    /// for.
    ///
    /// # Errors
    /// When the system does not let us wait.
    pub fn turn(&mut self, busy: bool) -> io::Result<bool> {
        self.adapter.watch(&mut self.poller, PORT)?;
        // Clients wait while the port does.
        let clients = Interest { read: !self.adapter.is_full(), write: false };
        self.poller.set(NBD, Some(self.nbd.descriptor()), clients)?;
        let now = self.clock.now();
        let next = self.nbd.poll_timeout().into_iter().fold(self.adapter.poll_timeout(), Instant::min);
        let wait = if busy { Duration::ZERO } else { until(now, next) };
        let mut clients = false;
        for event in self.poller.wait(wait)? {
            match event.token {
                PORT | LISTENER => self.adapter.happened(event.token == LISTENER, event.readable, event.writable),
                NBD => clients = true,
                _ => {}
            }
        }
        let now = self.clock.now();
        self.adapter.turn(now, &mut self.poller, PORT);
        let nbd_due = self.nbd.poll_timeout().is_some_and(|at| at <= now);
        if clients || nbd_due {
            self.nbd.turn(now, Duration::ZERO)?;
        }
        self.adapter.timers(now);
        self.serve(now);
        Ok(self.adapter.send(now))
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
    host.place(config.adapter.offloads.placement);
    host
}
