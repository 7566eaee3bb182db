//! Target port groups of a storage system: [`PortGroupSpec`]. A simulation ignores them.

use core::net::SocketAddr;
use sanloom_scsi::scsi::PortGroup;

/// Ports of a storage system with the same access state (asymmetric logical unit access).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortGroupSpec {
    /// Name of the group.
    pub name: String,
    /// Index of the storage system in [`Lab::storage`](crate::san::Lab::storage).
    pub storage: u16,
    /// Group number within the storage system, from 1.
    pub number: u16,
    /// iSCSI portals of the group.
    pub portals: Vec<SocketAddr>,
    /// Fibre Channel ports of the group, by number.
    pub ports: Vec<u16>,
    /// Access state at the start.
    pub access: PortGroup,
}
