//! Virtual disks on back-end LUNs: [`Pool`], [`BackEnd`], [`VolumeSpec`]. A simulation does not look at them.

use super::iscsi::Chap;
use super::units::Picos;
use crate::iscsi::parameters::Digests;
use crate::map::Shape;
use core::net::SocketAddr;
use sanloom_wire::Wwpn;

/// A pool of back-end LUNs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Bytes of an extent, whole blocks.
    pub extent_bytes: u64,
    /// Bytes of a block: that of its back ends and volumes.
    pub block_bytes: u32,
}

/// A LUN of somebody's that volumes are made of.
#[derive(Clone, PartialEq, Debug)]
pub struct BackEnd {
    /// Its name.
    pub name: String,
    /// Index of its pool.
    pub pool: u16,
    /// LUN at the target.
    pub lun: u16,
    /// How long requests wait for a target that is lost.
    pub retry_for: Picos,
    /// Its target.
    pub target: BackEndTarget,
}

/// What a back-end LUN is behind.
#[derive(Clone, PartialEq, Debug)]
pub enum BackEndTarget {
    /// An iSCSI target.
    Iscsi(Box<IscsiBackEnd>),
    /// A target port of a Fibre Channel fabric.
    Fcp(FcpBackEnd),
}

/// An iSCSI target of back ends.
#[derive(Clone, PartialEq, Debug)]
pub struct IscsiBackEnd {
    /// Its iSCSI name.
    pub name: String,
    /// Where it is; the next one is tried when one is lost.
    pub portals: Vec<SocketAddr>,
    /// Our iSCSI name there.
    pub initiator: String,
    /// What we prove, and what the target has to prove (`own_…`).
    pub chap: Chap,
    /// Which header digests are taken.
    pub header_digest: Digests,
    /// Which data digests are taken.
    pub data_digest: Digests,
}

/// A target port of back ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FcpBackEnd {
    /// Port name of the host port of the lab that the instance logs in with.
    pub initiator: Wwpn,
    /// Port name of the target.
    pub target: Wwpn,
}

/// A volume that is created when its pool is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeSpec {
    /// Its name.
    pub name: String,
    /// Index of its pool.
    pub pool: u16,
    /// Its size.
    pub size_bytes: u64,
    /// How it is spread.
    pub shape: Shape,
    /// The storage system that serves it, by index into [`super::Lab::storage`], and its LUN there; without: the lowest that is
    /// free.
    pub storage: Option<(u16, Option<u16>)>,
}
