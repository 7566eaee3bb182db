//! Target port groups of a storage system: [`PortGroupSpec`]. A simulation does not look at them.

use crate::scsi::PortGroup;
use core::net::SocketAddr;

/// Ports of a storage system that serve in the same way (asymmetric logical unit access).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortGroupSpec {
    /// Its name.
    pub name: String,
    /// The storage system, by index into [`super::Lab::storage`].
    pub storage: u16,
    /// Number among the groups of the storage system, from 1.
    pub number: u16,
    /// Its iSCSI portals.
    pub portals: Vec<SocketAddr>,
    /// Its ports in a fabric, by number.
    pub ports: Vec<u16>,
    /// How they serve at the start.
    pub access: PortGroup,
}
