//! Virtual disks of a running instance: operations on them and tables that show them.

use serde::{Deserialize, Serialize};

/// Operation on virtual disks. The field `do` contains its kind.
///
/// A change is stored before the reply is sent. It applies to commands that start later; commands
/// in flight finish with the previous configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum VolumeAction {
    /// Creates a volume.
    Create {
        /// Name of the volume.
        name: String,
        /// Pool that provides its extents.
        pool: String,
        /// Size in bytes, a whole number of blocks.
        size_bytes: u64,
        /// Number of back ends over which the volume is striped; 1: linear.
        #[serde(default = "one")]
        width: u16,
        /// Length of a stripe, in bytes.
        #[serde(default)]
        stripe_bytes: u64,
        /// Storage system and LUN that serve the volume.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        served: Option<Served>,
    },
    /// Extends a volume to a larger size.
    Extend {
        /// Name of the volume.
        name: String,
        /// New size in bytes, a whole number of blocks.
        size_bytes: u64,
    },
    /// Deletes a volume and its data.
    Delete {
        /// Name of the volume.
        name: String,
    },
    /// Makes a storage system serve a volume.
    Map {
        /// Name of the volume.
        name: String,
        /// Storage system and LUN.
        served: Served,
    },
    /// Ends the service of a volume; its data stay.
    Unmap {
        /// Name of the volume.
        name: String,
    },
    /// Shows where the blocks of a volume are stored. Reply: a table.
    Show {
        /// Name of the volume; all volumes if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

fn one() -> u16 {
    1
}

/// A storage system and one of its LUNs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Served {
    /// The storage system, one with `medium = "volumes"`.
    pub storage: String,
    /// The LUN; the lowest free one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lun: Option<u16>,
}

/// Virtual disks, in order of creation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct VolumesView {
    /// One row for each volume.
    pub volumes: Vec<VolumeRow>,
    /// Pools that provide the extents of the volumes.
    pub pools: Vec<PoolRow>,
}

/// A virtual disk.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeRow {
    /// Name of the volume.
    pub name: String,
    /// Name of its pool.
    pub pool: String,
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Number of back ends over which the volume is striped; 1: linear.
    pub width: u16,
    /// Length of a stripe in bytes; 0: linear.
    pub stripe_bytes: u64,
    /// Storage system and LUN that serve the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<Served>,
    /// Number of changes and restores of any volume since the start of the instance.
    pub epoch: u64,
    /// Tasks that use the newest map.
    pub tasks: u64,
    /// Commands that reached back ends as commands of the switch itself.
    pub conventional: CarriedRow,
    /// Commands that were forwarded.
    pub forwarded: CarriedRow,
    /// Location of the blocks, run by run. Present only if a single volume was requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunRow>,
}

/// Counters of one of the two paths, conventional or forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CarriedRow {
    /// Number of commands that accessed the medium.
    pub commands: u64,
    /// Bytes of reads.
    pub read_bytes: u64,
    /// Bytes of writes.
    pub written_bytes: u64,
}

/// A run of a virtual disk: contiguous on one back end, or striped over several.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunRow {
    /// Offset of the run in the volume, in bytes.
    pub at_bytes: u64,
    /// Length of the run, in bytes.
    pub bytes: u64,
    /// Back ends, each with the offset of the run's first byte there.
    pub places: Vec<(String, u64)>,
}

/// A pool of back-end extents.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolRow {
    /// Name of the pool.
    pub name: String,
    /// Length of an extent, in bytes.
    pub extent_bytes: u64,
    /// Number of extents on the back ends that have been reached.
    pub extents: u64,
    /// Number of extents allocated to volumes.
    pub used: u64,
}

/// The back ends, in the order of the lab file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PathsView {
    /// One row for each back end.
    pub paths: Vec<PathRow>,
}

/// A back-end LUN and the path to it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathRow {
    /// Name of the back end.
    pub back_end: String,
    /// Name of its pool.
    pub pool: String,
    /// iSCSI name of the target, or port name of a target port.
    pub target: String,
    /// LUN on the target.
    pub lun: u16,
    /// Current address of the session, or the address (N_Port_ID) of the target port with a login.
    /// If absent, `trouble` gives the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub portal: Option<String>,
    /// Portal in the lab file that redirected the session, if it was redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirected_by: Option<String>,
    /// The portals of the target.
    pub portals: Vec<PortalRow>,
    /// Host port of the instance that is logged in to the target, in a Fibre Channel fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_port: Option<HostPortRow>,
    /// Reason why there is no session or login, or why the LUN is not used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trouble: String,
    /// Capacity in bytes, once the LUN has been reached.
    pub size_bytes: u64,
    /// Identifier that the LUN reports for itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub identity: String,
    /// Number of whole extents.
    pub extents: u64,
    /// Number of extents allocated to volumes.
    pub used: u64,
    /// Number of sessions started.
    pub logins: u64,
    /// Number of sessions lost.
    pub lost: u64,
    /// Number of sessions moved to a better portal.
    pub moves: u64,
    /// Number of host sessions that forward to the back end.
    pub forwarding: u64,
}

/// A host port of the instance.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostPortRow {
    /// Name of the port in the lab.
    pub name: String,
    /// Port name (WWPN).
    pub port_name: String,
    /// Address (N_Port_ID); absent if the port is not logged in to the fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_id: Option<String>,
}

/// A portal of a back end and its access state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortalRow {
    /// Address of the portal.
    pub portal: String,
    /// True if the portal is in use.
    pub used: bool,
    /// Number of its target port group, once the target has reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u16>,
    /// State of that group, for example `active/optimized`. `none`: the target has no states
    /// (ALUA). Empty: unknown, because no query has used this portal yet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// The group is preferred to others in the same state.
    pub preferred: bool,
}

/// Sessions of hosts, and sessions of the instance with its back ends.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SessionsView {
    /// One row for each session.
    pub sessions: Vec<SessionRow>,
}

/// An iSCSI session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionRow {
    /// iSCSI name of the initiator.
    pub initiator: String,
    /// Initiator session identifier, twelve hexadecimal digits.
    pub isid: String,
    /// True for a session of this instance with a back end.
    pub own: bool,
    /// Address and port of the peer.
    pub peer: String,
    /// Portal that the initiator connected to.
    pub portal: String,
    /// iSCSI name of the target; empty for a discovery session.
    pub target: String,
    /// Number of in-flight tasks.
    pub tasks: u64,
    /// Number of received commands.
    pub commands: u64,
    /// Bytes of reads.
    pub read_bytes: u64,
    /// Bytes of writes.
    pub written_bytes: u64,
    /// CRC-32C digests in use: of headers, of data.
    pub digests: [bool; 2],
    /// The forwarded part of commands and bytes.
    pub forwarded: CarriedRow,
    /// Number of back-end sessions that forward for this session.
    pub back_ends: u64,
}
