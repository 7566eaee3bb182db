//! Virtual disks on back-end LUNs: [`Pool`], [`BackEnd`], [`VolumeSpec`].

use super::iscsi::Chap;
use super::units::Picos;
use core::net::SocketAddr;
use sanloom_scsi::iscsi::parameters::Digests;
use sanloom_scsi::map::Shape;
use sanloom_wire::Wwpn;

/// Pool of back-end LUNs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Name of the pool.
    pub name: String,
    /// Extent size in bytes, a multiple of the block size.
    pub extent_bytes: u64,
    /// Block size in bytes, equal for its back ends and volumes.
    pub block_bytes: u32,
}

/// LUN of an external target that provides space for volumes.
#[derive(Clone, PartialEq, Debug)]
pub struct BackEnd {
    /// Name of the back end.
    pub name: String,
    /// Index of its pool in [`Live::pools`](super::Live::pools).
    pub pool: u16,
    /// LUN at the target.
    pub lun: u16,
    /// Time that requests wait for a lost target before they fail.
    pub retry_for: Picos,
    /// Target of the LUN.
    pub target: BackEndTarget,
}

/// Target of a back-end LUN.
#[derive(Clone, PartialEq, Debug)]
pub enum BackEndTarget {
    /// iSCSI target.
    Iscsi(Box<IscsiBackEnd>),
    /// Target port in a Fibre Channel fabric.
    Fcp(FcpBackEnd),
}

/// iSCSI target of back ends.
#[derive(Clone, PartialEq, Debug)]
pub struct IscsiBackEnd {
    /// iSCSI name of the target.
    pub name: String,
    /// Addresses of the target; the next one is tried when a connection is lost.
    pub portals: Vec<SocketAddr>,
    /// iSCSI name of the instance as initiator.
    pub initiator: String,
    /// Name and secret of the instance, and those with which the target must authenticate
    /// (`own_…`).
    pub chap: Chap,
    /// Accepted header digests.
    pub header_digest: Digests,
    /// Accepted data digests.
    pub data_digest: Digests,
}

/// Fibre Channel target ports of back ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FcpBackEnd {
    /// Port name of the lab's host port with which the instance logs in.
    pub initiator: Wwpn,
    /// Port name of the target.
    pub target: Wwpn,
    /// Host port and target port of each further path; only a simulation has any.
    pub more: Vec<[Wwpn; 2]>,
}

impl FcpBackEnd {
    /// Returns the host port and the target port of each path.
    pub fn paths(&self) -> impl Iterator<Item = [Wwpn; 2]> + '_ {
        std::iter::once([self.initiator, self.target]).chain(self.more.iter().copied())
    }
}

/// Volume to create when its pool is available.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeSpec {
    /// Name of the volume.
    pub name: String,
    /// Index of its pool in [`Live::pools`](super::Live::pools).
    pub pool: u16,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Layout over the extents.
    pub shape: Shape,
    /// Storage system that presents it, by index into [`Lab::storage`](crate::san::Lab::storage),
    /// and its LUN there. Without a LUN, the lowest free one is used.
    pub storage: Option<(u16, Option<u16>)>,
}
