//! Channels and targets of a lab as values.

use sanloom_scsi::srp::target;
use sanloom_scsi::time::Span;
use sanloom_transport::infiniband::partition::PKey;
use sanloom_transport::infiniband::rc;
use sanloom_wire::srp::LoginReq;

/// SRP of a whole lab.
#[derive(Clone, Debug, Default)]
pub struct SrpPlan {
    /// Channels, each with the connection that carries it.
    pub channels: Vec<ChannelPlan>,
    /// Targets, indexed by storage system; `None` for one without SRP.
    pub targets: Vec<Option<TargetPlan>>,
}

/// A channel from an interface of a host to one of a storage system.
#[derive(Clone, Debug)]
pub struct ChannelPlan {
    /// Index of the host.
    pub host: u16,
    /// Number of the interface among the adapters of the host, after its HBAs and iSCSI
    /// initiators.
    pub hba: u16,
    /// Index of the storage system.
    pub storage: u16,
    /// Number of the interface among the ports of the storage system, after its Fibre Channel ports
    /// and portals.
    pub port: u16,
    /// Interfaces of the host and of the storage system in the InfiniBand plane.
    pub interfaces: [u16; 2],
    /// Keys of the partitions of both.
    pub keys: [PKey; 2],
    /// Service level of its packets.
    pub level: u8,
    /// Parameters of the reliable connection.
    pub connection: rc::Config,
    /// Parameters of the login.
    pub login: LoginReq,
    /// Maximum number of commands in flight; further ones wait.
    pub depth: u32,
    /// Time after which a command is aborted.
    pub command_timeout: Span,
    /// Time for the response to task management; the connection ends after it.
    pub abort_timeout: Span,
    /// Time for the login.
    pub login_timeout: Span,
    /// Time from the loss of the connection until the next one is opened.
    pub reconnect: Span,
}

/// Target of a storage system.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    /// Settings of its channels.
    pub config: target::Config,
    /// Number of the first of its interfaces among the ports of the system.
    pub first_port: u16,
    /// Number of interfaces.
    pub ports: u16,
    /// Write data that a gateway passes on together, in bytes; `None`: those of a command.
    pub grain: Option<u32>,
}
