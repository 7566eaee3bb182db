//! SRP targets on RoCEv2: [`SrpServer`], a part of the loop of a running lab.
//!
//! ```text
//!   UDP 4791 -> RoceSocket -> queue pair 1: Passive (connection manager)
//!                    |                         | Requested: a LOGIN_REQ in the private data
//!                    +-----> Channel: QueuePair, then Target <-> Device of its storage system
//!                                        | Read, Write         | Io
//!                                  memory of the host   medium, or a worker
//! ```
//!
//! An initiator connects by the RDMA connection manager: an address, and a port of the TCP space.
//! Packets go through an ordinary UDP socket, so neither an adapter nor a kernel module nor a
//! privilege is needed. The machines are in `sanloom_transport::infiniband` and
//! `sanloom_scsi::srp`.

mod channel;
mod login;
mod pair;
mod server;
mod socket;
mod table;
#[cfg(test)]
mod tests;

use crate::ready::Tracked;
use crate::storage::StorageSystem;
pub use channel::Counters;
use sanloom_scsi::scsi;
use sanloom_scsi::time::Instant;
use sanloom_wire::srp::PortId;
pub use server::SrpServer;
use std::net::SocketAddrV4;

/// First token of sockets in the poller.
pub const SOCKETS: u64 = 1 << 59;
/// Maximum number of sockets: one per address.
pub const MAX_SOCKETS: u64 = 1 << 16;

/// A target: a storage system, and where initiators reach it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetPlan {
    /// Name in messages.
    pub name: String,
    /// Index of the storage system, and number of the port in its device.
    pub system: usize,
    /// Number of the port in the device.
    pub port: u16,
    /// Addresses, each with a port of the RDMA connection manager.
    pub portals: Vec<SocketAddrV4>,
    /// Target port: identifier extension, then GUID of the I/O controller.
    pub id: PortId,
    /// Initiator ports that may log in; empty for all.
    pub initiators: Vec<PortId>,
    /// Requests that an initiator may have outstanding.
    pub request_limit: u16,
}

/// Environment of a call.
struct Context<'c> {
    now: Instant,
    systems: &'c mut Tracked<StorageSystem>,
    /// Tasks of other channels that task management ends, with the channel that asked.
    ends: Vec<(channel::Ends, scsi::Ends)>,
}
