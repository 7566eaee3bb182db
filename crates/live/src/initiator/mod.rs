//! A Fibre Channel initiator in user space: [`Initiator`], an FCoE host on any Ethernet port.
//! Programs use its disks through the network block device (NBD) protocol.
//!
//! ```text
//!   Ethernet port ══▶ Adapter: Controller (FIP) ──▶ Host: NPort, FcpInitiator, Scan, Disk ──▶ NbdServer ══▶ programs
//! ```
//!
//! It combines the functions of libfcoe, libfc and the SCSI layer (the Open-FCoE slides) on the
//! machines of `sanloom-fc` and `sanloom-scsi`. Virtual ports (NPIV) are separate hosts behind the
//! same controller. With several Ethernet ports, disks have several paths. A full egress queue
//! pauses the output of the hosts, and thereby the clients.

pub mod adapter;
mod commands;
mod control;
pub mod controller;
pub(crate) mod exports;
mod frames;
pub mod host;
mod multipath;
mod vlans;
mod watch;

pub use adapter::{Adapter, AdapterConfig, Vlan};
pub use multipath::FAST_IO_FAIL;
pub use vlans::{FoundVlan, discover_vlans};
pub use watch::{Seen, VlanWatch};

use crate::clock::{Clock, until};
use crate::exports::NbdRequest;
use crate::nbd::NbdServer;
use crate::poll::{Interest, Poller};
use crate::ports::{EthernetPort, PortError};
use control::Question;
use host::Host;
use multipath::Multipath;
use sanloom_api::fcoe::{MultipathDisk, PathState};
use sanloom_fc::fcp::initiator::FcpInitiatorConfig;
use sanloom_fc::nport::{LoginScript, NPortConfig, VirtualPort};
use sanloom_scsi::disk::{DiskConfig, Done, Error};
use sanloom_scsi::nbd::Limits;
use sanloom_scsi::time::Span;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

/// Time for targets and the fabric to answer the logout.
const LOGOUT_TIME: Span = Span::from_secs(1);

const PORT: u64 = 0;
const LISTENER: u64 = 1;
const NBD: u64 = 2;
const BELL: u64 = 3;
/// Token of the socket of the first further port; its listener follows, then the next port.
const OTHERS: u64 = 4;

/// Maximum number of virtual ports of an initiator.
pub const MAX_VIRTUAL_PORTS: usize = 4_094;

/// Configuration of an initiator.
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// Ethernet port, fabric names, and FCoE settings.
    pub adapter: AdapterConfig,
    /// Further Ethernet ports of the host, each with a physical N_Port. With such ports, a disk is
    /// one export, whatever the number of its paths.
    pub others: Vec<AdapterConfig>,
    /// Name for tools; `None` means the name of the Ethernet port.
    pub name: Option<String>,
    /// Port and node names of virtual ports (NPIV), at most [`MAX_VIRTUAL_PORTS`]. VN2VN stations
    /// have none.
    pub virtual_ports: Vec<(Wwpn, Wwnn)>,
    /// Symbolic name for the name server.
    pub symbolic_name: String,
    /// Time after which an incomplete command is aborted.
    pub command_timeout: Span,
    /// Configuration of the disks.
    pub disk: DiskConfig,
    /// Path of the NBD server's socket.
    pub nbd: PathBuf,
    /// Limits of each NBD client.
    pub limits: Limits,
}

impl InitiatorConfig {
    /// Creates a configuration with the names that Linux derives from the MAC address, with the
    /// prefixes 20:00 and 10:00.
    pub fn new(mac: MacAddr, nbd: PathBuf) -> InitiatorConfig {
        InitiatorConfig {
            adapter: AdapterConfig::named_by(mac),
            others: Vec::new(),
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

/// A running initiator.
#[derive(Debug)]
pub struct Initiator {
    config: InitiatorConfig,
    /// Ethernet port with its hosts.
    pub adapter: Adapter,
    /// Further Ethernet ports.
    pub others: Vec<Adapter>,
    multipath: Multipath,
    /// NBD server of the disks.
    pub nbd: NbdServer,
    /// Clock since the start of the initiator.
    pub clock: Clock,
    poller: Poller,
    /// Requests of NBD clients, by our tag.
    nbd_requests: BTreeMap<u64, NbdRequest>,
    /// Results of requests that did not come from an NBD client.
    finished: VecDeque<(u64, Result<Done, Error>, Vec<u8>)>,
    next_asked: u64,
    /// Control requests that wait for a reply of the fabric, by request number of the physical
    /// port.
    questions: BTreeMap<u16, Question>,
}

impl Initiator {
    /// Creates an initiator on a port.
    ///
    /// # Errors
    /// When the NBD socket cannot be opened, or the process has no descriptor left.
    pub fn new(config: InitiatorConfig, port: EthernetPort) -> Result<Initiator, PortError> {
        Initiator::with_ports(config, port, Vec::new())
    }

    /// Creates an initiator on several ports, in the order of [`InitiatorConfig::others`].
    ///
    /// # Errors
    /// As [`Initiator::new`].
    pub fn with_ports(
        config: InitiatorConfig,
        port: EthernetPort,
        others: Vec<EthernetPort>,
    ) -> Result<Initiator, PortError> {
        debug_assert_eq!(config.others.len(), others.len(), "each port has a configuration");
        let failed = |error| PortError::Socket { path: config.nbd.clone(), error };
        let poller = Poller::new().map_err(failed)?;
        let nbd = NbdServer::listen(&config.nbd, Vec::new(), config.limits)?;
        let physical = std::iter::once((config.adapter.wwpn, config.adapter.wwnn));
        let all = physical.chain(config.virtual_ports.iter().copied().take(MAX_VIRTUAL_PORTS));
        let hosts = (0..).zip(all).map(|(number, names)| host(&config, number, names)).collect();
        let adapter = Adapter::new(config.adapter.clone(), port, hosts).map_err(failed)?;
        let others = config.others.iter().zip(others).map(|(other, port)| {
            let hosts = vec![host(&config, 0, (other.wwpn, other.wwnn))];
            Adapter::new(other.clone(), port, hosts).map_err(failed)
        });
        let others = others.collect::<Result<Vec<Adapter>, PortError>>()?;
        Ok(Initiator {
            adapter,
            others,
            multipath: Multipath::default(),
            nbd,
            clock: Clock::start(),
            poller,
            nbd_requests: BTreeMap::new(),
            finished: VecDeque::new(),
            next_asked: 0,
            questions: BTreeMap::new(),
            config,
        })
    }

    /// Returns whether there is a disk, and all disks that the targets list are usable. With
    /// several ports, one usable path of each disk is enough.
    pub fn is_ready(&self) -> bool {
        if self.has_paths() {
            let is_usable = |disk: &MultipathDisk| disk.paths.iter().any(|path| path.state != PathState::Failed);
            let disks = self.describe_disks();
            return !disks.is_empty() && disks.iter().all(is_usable);
        }
        let mut disks = self.adapter.hosts.iter().flat_map(Host::disks).peekable();
        disks.peek().is_some() && disks.all(|disk| disk.ready)
    }

    /// Returns the Ethernet ports.
    fn adapters(&self) -> impl Iterator<Item = &Adapter> {
        std::iter::once(&self.adapter).chain(&self.others)
    }

    fn adapters_mut(&mut self) -> impl Iterator<Item = &mut Adapter> {
        std::iter::once(&mut self.adapter).chain(&mut self.others)
    }

    /// Runs until `go_on` returns false. `go_on` is called every 100 ms and whenever `bell` is
    /// readable.
    ///
    /// # Errors
    /// When the poller fails.
    pub fn run(
        &mut self,
        bell: Option<BorrowedFd<'_>>,
        mut go_on: impl FnMut(&mut Initiator) -> bool,
    ) -> io::Result<()> {
        self.poller.set(BELL, bell, Interest { read: true, write: false })?;
        let mut busy = false;
        while go_on(self) {
            busy = self.step(busy)?;
        }
        Ok(())
    }

    /// Logs out, waits for the replies for a limited time, and disconnects each client when its
    /// requests are complete.
    pub fn shut_down(&mut self) {
        let now = self.clock.now();
        self.nbd.shut_down(now);
        self.adapters_mut().for_each(|adapter| adapter.log_out(now));
        let deadline = now + LOGOUT_TIME;
        let mut more = true;
        while self.adapters().any(Adapter::is_logged_in) && self.clock.now() < deadline {
            match self.step(more) {
                Ok(left) => more = left,
                Err(_) => break,
            }
        }
        let now = self.clock.now();
        self.adapters_mut().for_each(|adapter| adapter.end(now));
    }

    /// Waits for work for at most 100 ms and processes it. Returns true if more work can be done
    /// without waiting.
    ///
    /// # Errors
    /// When the poller fails.
    pub fn step(&mut self, busy: bool) -> io::Result<bool> {
        let Initiator { adapter, others, poller, .. } = self;
        adapter.watch(poller, PORT)?;
        for (other, token) in others.iter().zip((OTHERS..).step_by(2)) {
            other.watch(poller, token)?;
        }
        // Clients are not read while all ports are full.
        let clients = Interest { read: !self.adapters().all(Adapter::is_full), write: false };
        self.poller.set(NBD, Some(self.nbd.descriptor()), clients)?;
        let now = self.clock.now();
        let next = self.adapters().map(Adapter::poll_timeout).chain(self.nbd.poll_timeout()).min().unwrap_or(now);
        let wait = if busy { Duration::ZERO } else { until(now, next) };
        let mut clients = false;
        for event in self.poller.wait(wait)? {
            match event.token {
                PORT | LISTENER => self.adapter.happened(event.token == LISTENER, event.readable, event.writable),
                NBD => clients = true,
                BELL => {}
                token => {
                    let number = token.saturating_sub(OTHERS);
                    if let Some(other) = self.others.get_mut((number / 2) as usize) {
                        other.happened(number % 2 == 1, event.readable, event.writable);
                    }
                }
            }
        }
        let now = self.clock.now();
        let Initiator { adapter, others, poller, .. } = self;
        adapter.process_events(now, poller, PORT);
        for (other, token) in others.iter_mut().zip((OTHERS..).step_by(2)) {
            other.process_events(now, poller, token);
        }
        let nbd_due = self.nbd.poll_timeout().is_some_and(|at| at <= now);
        if clients || nbd_due {
            self.nbd.process_events(now, Duration::ZERO)?;
        }
        self.adapters_mut().for_each(|adapter| adapter.timers(now));
        self.serve(now);
        Ok(self.adapters_mut().fold(false, |more, adapter| adapter.send(now) | more))
    }
}

/// Creates the host of an N_Port; number 0 is the physical one.
fn host(config: &InitiatorConfig, number: u16, (wwpn, wwnn): (Wwpn, Wwnn)) -> Host {
    let (e_d_tov, r_a_tov) = (Span::from_secs(2), Span::from_secs(10));
    let login = NPortConfig {
        wwpn,
        wwnn,
        receive_size_bytes: 2112,
        bb_credit: 16,
        bb_sc_n: 0,
        initiator: true,
        target: false,
        symbolic_name: config.symbolic_name.clone(),
        e_d_tov,
        r_a_tov,
        seed: wwpn.0,
        virtual_port: (number > 0).then_some(VirtualPort { number, script: LoginScript::Standard }),
    };
    let command_timeout = config.command_timeout;
    let fcp = FcpInitiatorConfig {
        e_d_tov,
        r_a_tov,
        command_timeout,
        recovery: None,
        max_exchanges: u16::MAX,
        in_order: true,
    };
    let dev_loss = if config.others.is_empty() { config.disk.dev_loss } else { FAST_IO_FAIL };
    let mut host = Host::new(login, fcp, DiskConfig { dev_loss, ..config.disk });
    host.follows_access = !config.others.is_empty();
    host.place(config.adapter.offloads.placement);
    host.login.describe(host::description::description(&config.symbolic_name, wwpn.to_string()));
    host
}
