//! iSCSI targets on TCP: [`IscsiServer`], a part of the loop of a running lab.
//!
//! ```text
//!   portal -> Connection: PduReader -> Login, then Session <-> Device of its storage system
//!                |  ^                               | Io
//!     socket ----+  +---- buffers of tasks <--------+-----> medium, or a worker
//! ```
//!
//! All connections share one input buffer. Between two reads a connection keeps only the start of a
//! PDU. Data of long writes go from the socket straight to the buffer of their task. Data of reads
//! leave from there, many pieces with one system call.
//!
//! Sessions with virtual disks also have connections of their own to back ends, on which reads and
//! writes are forwarded (`forward`). Several threads may share the connections of a step
//! (`spread`). The layer below, common to targets and initiators, is [`crate::session`].

mod connection;
mod forward;
mod notices;
pub mod secret;
mod server;
mod shared;
mod slots;
mod spread;

use crate::poll::Poller;
use crate::ready::Tracked;
use crate::storage::StorageSystem;
use crate::volumes::VolumeEngine;
use sanloom_scsi::time::Instant;
pub use server::IscsiServer;
use shared::{Common, Local};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// First token of listeners in the poller.
pub const LISTENERS: u64 = 1 << 61;
/// First token of connections.
const CONNECTIONS: u64 = 1 << 62;
/// First token of connections to back ends. Such a token has the number of the host's connection,
/// and in its last byte the number of the back end.
const LINKS: u64 = 1 << 63;

/// A portal: an address at which initiators connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalPlan {
    /// Address of the listening socket.
    pub listen: SocketAddr,
    /// Address as targets announce it.
    pub address: String,
    /// Portal group.
    pub group: u16,
}

/// Storage system of a target, and the ports at which its sessions arrive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetPlan {
    /// Index of the storage system.
    pub system: usize,
    /// Portal groups, at least one, each with its port number in the device.
    pub ports: Vec<(u16, u16)>,
    /// True if reads and writes of virtual disks are forwarded.
    pub forward: bool,
}

/// Storage system of a session, and its port there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Behind {
    /// Index of the storage system.
    system: usize,
    /// Port number in the device.
    port: u16,
    /// True if reads and writes of virtual disks are forwarded.
    forward: bool,
}

impl TargetPlan {
    fn behind(&self, group: u16) -> Behind {
        let port = self.ports.iter().find(|(of, _)| *of == group).or(self.ports.first());
        Behind { system: self.system, port: port.map_or(0, |(_, port)| *port), forward: self.forward }
    }

    fn has_port(&self, port: u16) -> bool {
        self.ports.iter().any(|(_, of)| *of == port)
    }
}

/// Storage that sessions access.
#[derive(Debug)]
pub struct Stores<'a> {
    /// Storage systems.
    pub systems: &'a mut Tracked<StorageSystem>,
    /// Virtual disks, if the lab has any.
    pub volumes: Option<&'a mut VolumeEngine>,
}

/// Environment of one call of the server.
#[derive(Debug)]
pub struct ServerContext<'t, 's> {
    /// Current time.
    pub now: Instant,
    /// Poller of the thread.
    pub poller: &'t mut Poller,
    /// Storage that sessions access.
    pub stores: &'t mut Stores<'s>,
}

/// Environment of one call of a connection.
#[derive(Debug)]
struct Context<'c, 's> {
    now: Instant,
    /// Memory of the thread.
    local: &'c mut Local,
    common: &'c Mutex<Common<'s>>,
}

impl<'c, 's> Context<'c, 's> {
    /// Locks the state that all connections share, for one call of a machine. Reads and writes of
    /// sessions in use are made without it. Code that holds it must not lock it again.
    fn lock(&self) -> MutexGuard<'c, Common<'s>> {
        self.common.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stores<'_> {
    /// The same storage, for a shorter time.
    fn reborrow(&mut self) -> Stores<'_> {
        Stores { systems: &mut *self.systems, volumes: self.volumes.as_deref_mut() }
    }
}
