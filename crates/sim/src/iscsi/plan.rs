//! Sessions and targets of a lab as values.

use super::forward::Front;
use crate::tcp::IpoibPlan;
use sanloom_scsi::iscsi::initiator::{LoginConfig, SessionConfig};
use sanloom_scsi::iscsi::target::{Limits, Node};
use sanloom_scsi::time::Span;
use sanloom_transport::tcp::Config;
use std::sync::Arc;

/// iSCSI of a whole lab.
#[derive(Clone, Debug, Default)]
pub struct IscsiPlan {
    /// Sessions, each with the connection that carries it.
    pub sessions: Vec<SessionPlan>,
    /// Targets, indexed by storage system; `None` for one without iSCSI.
    pub targets: Vec<Option<TargetPlan>>,
    /// Receiving side of each interface of IP.
    pub adapters: Vec<AdapterPlan>,
    /// Interfaces of InfiniBand with IP; `None` without any.
    pub ipoib: Option<IpoibPlan>,
    /// Routers between Ethernet and InfiniBand.
    pub routers: Vec<RouterPlan>,
}

/// A session from an interface of a host to a portal.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    /// Owner of the initiator.
    pub initiator: Machine,
    /// Index of the host; unused if the initiator is a storage system.
    pub host: u16,
    /// Number of the interface among the adapters of the host, after its HBAs.
    pub hba: u16,
    /// Index of the storage system.
    pub storage: u16,
    /// Number of the portal among the ports of the storage system, after its Fibre Channel ports.
    pub port: u16,
    /// Interfaces of IP of the host and of the portal.
    pub interfaces: [u16; 2],
    /// Interfaces of a router on the way, towards the host and towards the portal.
    pub via: Option<[u16; 2]>,
    /// Priority and VLAN of its frames; `None` for frames without a tag.
    pub tag: Option<(u8, u8)>,
    /// TCP of the host and of the storage system.
    pub tcp: [Arc<Config>; 2],
    /// Parameters of its logins.
    pub login: LoginConfig,
    /// Time-outs of the session.
    pub timeouts: SessionConfig,
    /// Maximum number of commands in flight; further ones wait.
    pub depth: u32,
    /// Address and port of the portal.
    pub address: String,
    /// Time from the loss of the connection until the next one is opened.
    pub reconnect: Span,
    /// Session of a host for which it forwards PDUs, if it does.
    pub front: Option<Front>,
}

/// Targets of a storage system.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    /// The targets and their parameters.
    pub node: Arc<Node>,
    /// Number of Fibre Channel ports of the system, which the portals follow.
    pub fc_ports: u16,
    /// Number of portals.
    pub portals: u16,
    /// Limits of each session.
    pub limits: Limits,
    /// Bytes of write data that are passed on before their PDU is complete: those of a frame of the
    /// network behind a gateway. `None`: whole PDUs.
    pub frame_bytes: Option<u32>,
}

/// Owner of an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Machine {
    /// Host with this index.
    Host(u16),
    /// Storage system with this index.
    Storage(u16),
}

/// Receiving side of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdapterPlan {
    /// Owner of the interface.
    pub owner: Machine,
    /// Number of the interface at its owner, among those of Ethernet or those of InfiniBand.
    pub number: u16,
    /// True if the processor takes time for frames that arrive. Frames that arrive while it works
    /// wait until it polls the interface again.
    pub polls: bool,
    /// Shortest time between two interrupts, in ps. Without `polls`, 0 passes each frame on at
    /// once.
    pub gap_ps: u64,
    /// Shortest gap, if the gap adapts to the load, in ps.
    pub min_gap_ps: Option<u64>,
    /// Number of frames that raise the interrupt at once.
    pub max_frames: u32,
    /// Most bytes of payload that the interface joins to one segment (GRO); 0: none.
    pub batch_bytes: u32,
    /// Router behind the interface, by its number in [`IscsiPlan::routers`].
    pub router: Option<u16>,
}

/// A router between Ethernet and InfiniBand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterPlan {
    /// Index of its host.
    pub host: u16,
    /// Time that a packet occupies it, in ps.
    pub packet_ps: u64,
    /// Most packets of an interface that wait.
    pub queue: u32,
}

impl AdapterPlan {
    /// Returns an adapter that passes each frame on at once.
    pub fn immediate(owner: Machine) -> AdapterPlan {
        AdapterPlan {
            owner,
            number: 0,
            polls: false,
            gap_ps: 0,
            min_gap_ps: None,
            max_frames: 1,
            batch_bytes: 0,
            router: None,
        }
    }
}
