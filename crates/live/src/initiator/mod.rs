//! A Fibre Channel initiator in user space: [`Initiator`], an FCoE host on any Ethernet port.
//! Programs use its disks through the network block device (NBD) protocol.
//!
//! ```text
//!   Ethernet port ══▶ Adapter: Controller (FIP) ──▶ Host: NPort, FcpInitiator, Scan, Disk ──▶ NbdServer ══▶ programs
//! ```
//!
//! It combines the functions of libfcoe, libfc and the SCSI layer (document 002) on the machines of
//! `sanloom-fc` and `sanloom-scsi`. Virtual ports (NPIV) are separate hosts behind the same
//! controller. A full egress queue pauses the output of the hosts, and thereby the clients.

pub mod adapter;
mod commands;
mod control;
pub mod controller;
pub(crate) mod exports;
mod frames;
pub mod host;
mod vlans;
mod watch;

pub use adapter::{Adapter, AdapterConfig, Vlan};
pub use vlans::{FoundVlan, discover_vlans};
pub use watch::{Seen, VlanWatch};

use crate::clock::{Clock, until};
use crate::exports::NbdRequest;
use crate::nbd::NbdServer;
use crate::poll::{Interest, Poller};
use crate::ports::{EthernetPort, PortError};
use control::Question;
use host::Host;
use sanloom_fc::fcp::initiator::FcpInitiatorConfig;
use sanloom_fc::nport::{LoginScript, NPortConfig, VirtualPort};
use sanloom_scsi::disk::{DiskConfig, Done, Error};
use sanloom_scsi::nbd::Limits;
use sanloom_scsi::time::{Instant, Span};
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

/// Maximum number of virtual ports of an initiator.
pub const MAX_VIRTUAL_PORTS: usize = 4_094;

/// Configuration of an initiator.
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// Ethernet port, fabric names, and FCoE settings.
    pub adapter: AdapterConfig,
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

/// A running initiator.
#[derive(Debug)]
pub struct Initiator {
    config: InitiatorConfig,
    /// Ethernet port with its hosts.
    pub adapter: Adapter,
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
            nbd_requests: BTreeMap::new(),
            finished: VecDeque::new(),
            next_asked: 0,
            questions: BTreeMap::new(),
            config,
        })
    }

    /// Returns whether there is a disk and all disks listed by the targets are usable.
    pub fn is_ready(&self) -> bool {
        let mut disks = self.adapter.hosts.iter().flat_map(Host::disks).peekable();
        disks.peek().is_some() && disks.all(|disk| disk.ready)
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
        self.adapter.log_out(now);
        let deadline = now + LOGOUT_TIME;
        let mut more = true;
        while self.adapter.is_logged_in() && self.clock.now() < deadline {
            match self.step(more) {
                Ok(left) => more = left,
                Err(_) => break,
            }
        }
        self.adapter.end(self.clock.now());
    }

    /// Waits for work for at most 100 ms and processes it. Returns true if more work can be done
    /// without waiting.
    ///
    /// # Errors
    /// When the poller fails.
    pub fn step(&mut self, busy: bool) -> io::Result<bool> {
        self.adapter.watch(&mut self.poller, PORT)?;
        // Clients are not read while the port is full.
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
        self.adapter.process_events(now, &mut self.poller, PORT);
        let nbd_due = self.nbd.poll_timeout().is_some_and(|at| at <= now);
        if clients || nbd_due {
            self.nbd.process_events(now, Duration::ZERO)?;
        }
        self.adapter.timers(now);
        self.serve(now);
        Ok(self.adapter.send(now))
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
    let mut host = Host::new(login, fcp, config.disk);
    host.place(config.adapter.offloads.placement);
    host.login.describe(host::description::description(&config.symbolic_name, wwpn.to_string()));
    host
}
