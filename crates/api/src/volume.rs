//! Virtual disks of a running instance: what an operator asks for, and the tables that show them.

use serde::{Deserialize, Serialize};

/// What an operator does with virtual disks. `do` names it.
///
/// A change is kept before it is answered, and holds for commands of hosts that begin later; those under way end as they began.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum VolumeAction {
    /// A new one.
    Create {
        /// Its name.
        name: String,
        /// The pool whose extents it gets.
        pool: String,
        /// Its size in bytes, whole blocks.
        size_bytes: u64,
        /// Over how many back ends its stripes go round; 1: linear.
        #[serde(default = "one")]
        width: u16,
        /// Bytes of a stripe.
        #[serde(default)]
        stripe_bytes: u64,
        /// Who serves it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        served: Option<Served>,
    },
    /// It has so many bytes from now on, more than before.
    Extend {
        /// Which.
        name: String,
        /// Its size in bytes, whole blocks.
        size_bytes: u64,
    },
    /// It is no more, and nor are its data.
    Delete {
        /// Which.
        name: String,
    },
    /// A storage system serves it.
    Map {
        /// Which.
        name: String,
        /// Who.
        served: Served,
    },
    /// Nobody serves it any more; its data stay.
    Unmap {
        /// Which.
        name: String,
    },
    /// Where its blocks are. Answered with a table.
    Show {
        /// Which; without: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

fn one() -> u16 {
    1
}

/// A storage system, and a LUN there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Served {
    /// The storage system, one with `medium = "volumes"`.
    pub storage: String,
    /// The LUN; without: the lowest that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lun: Option<u16>,
}

/// Virtual disks, in the order of their creation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct VolumesView {
    /// One row for each.
    pub volumes: Vec<VolumeRow>,
    /// The pools that they are made of.
    pub pools: Vec<PoolRow>,
}

/// A virtual disk.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeRow {
    /// Its name.
    pub name: String,
    /// Its pool.
    pub pool: String,
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Over how many back ends its stripes go round; 1: linear.
    pub width: u16,
    /// Bytes of a stripe; 0: linear.
    pub stripe_bytes: u64,
    /// Who serves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<Served>,
    /// How often it was changed or restored since the start, over all volumes.
    pub epoch: u64,
    /// Commands that hold its newest map.
    pub tasks: u64,
    /// What reached back ends as commands of the switch itself.
    pub conventional: CarriedRow,
    /// What was forwarded.
    pub forwarded: CarriedRow,
    /// Where its blocks are, run by run. Only where one volume was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunRow>,
}

/// Commands that went one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CarriedRow {
    /// How many touched the medium.
    pub commands: u64,
    /// Bytes of reads.
    pub read_bytes: u64,
    /// Bytes of writes.
    pub written_bytes: u64,
}

/// A run of a virtual disk: beside each other, or striped over several places.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunRow {
    /// First byte in the volume.
    pub at_bytes: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Back ends, and the first byte at each.
    pub places: Vec<(String, u64)>,
}

/// A pool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolRow {
    /// Its name.
    pub name: String,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Extents of the back ends that were reached.
    pub extents: u64,
    /// How many of them volumes have.
    pub used: u64,
}

/// The back ends, in the lab's order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PathsView {
    /// One row for each.
    pub paths: Vec<PathRow>,
}

/// A back-end LUN and the way to it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathRow {
    /// Its name.
    pub back_end: String,
    /// Its pool.
    pub pool: String,
    /// iSCSI name of the target, or port name of a target port.
    pub target: String,
    /// LUN there.
    pub lun: u16,
    /// Where the session really goes, or the address (N_Port_ID) of the target port that there is a login with; without: `trouble` says why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub portal: Option<String>,
    /// The portal of the lab that has sent the session there, if it was redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirected_by: Option<String>,
    /// The portals of the target.
    pub portals: Vec<PortalRow>,
    /// The host port of the instance that is logged in to it, in a Fibre Channel fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_port: Option<HostPortRow>,
    /// Why there is no session or login, or why the LUN is not used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trouble: String,
    /// Capacity in bytes, once it was reached.
    pub size_bytes: u64,
    /// Its name for itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub identity: String,
    /// Whole extents.
    pub extents: u64,
    /// How many of them volumes have.
    pub used: u64,
    /// Sessions that were begun.
    pub logins: u64,
    /// Sessions that were lost.
    pub lost: u64,
    /// Sessions that were left for a better portal.
    pub moves: u64,
    /// Sessions of hosts that forward there.
    pub forwarding: u64,
}

/// A host port of the instance.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostPortRow {
    /// Its name in the lab.
    pub name: String,
    /// Its port name.
    pub port_name: String,
    /// Its address (N_Port_ID); without: it is not logged in to the fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_id: Option<String>,
}

/// A portal of a back end, as it serves its LUN.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortalRow {
    /// Where it is.
    pub portal: String,
    /// It is the one in use.
    pub used: bool,
    /// Number of its target port group, once it has been asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u16>,
    /// How that serves, as `active/optimized`; `none`: the target has no states (ALUA); empty: not known, as long as nobody has asked through it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// It is preferred to others of this state.
    pub preferred: bool,
}

/// The sessions of hosts, and those of the instance with targets of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SessionsView {
    /// One row for each.
    pub sessions: Vec<SessionRow>,
}

/// An iSCSI session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionRow {
    /// iSCSI name of the initiator.
    pub initiator: String,
    /// Its session identifier, twelve hexadecimal digits.
    pub isid: String,
    /// It is a session of this instance with a target of its own: of a back end.
    pub own: bool,
    /// Address and port that it comes from.
    pub peer: String,
    /// Portal that it came to.
    pub portal: String,
    /// The target; empty: discovery.
    pub target: String,
    /// Tasks that have not ended.
    pub tasks: u64,
    /// Commands that came.
    pub commands: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// CRC-32C behind headers, and behind data.
    pub digests: [bool; 2],
    /// Those of the commands and bytes that were forwarded.
    pub forwarded: CarriedRow,
    /// Back-end sessions on which that is done.
    pub back_ends: u64,
}
