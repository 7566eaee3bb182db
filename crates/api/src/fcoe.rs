//! FCoE instances of hosts, for the tools of the Open-FCoE slides: [`FcoeRequest`] and
//! [`FcoeAnswer`], which [`control`](crate::control) carries.
//!
//! An instance is a host on an Ethernet port (`sanloom initiator`) and has a control socket. The
//! monitor `fcoemon` has a control socket, too, and accepts [`FcoeRequest::Create`] and
//! [`FcoeRequest::Destroy`].
//!
//! Port names, node names, addresses and FC-IDs are numbers here. Each tool formats them itself.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request of a tool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "fcoe", rename_all = "snake_case")]
pub enum FcoeRequest {
    /// To an instance: returns its whole state. Reply: [`FcoeAnswer::Instance`].
    Describe,
    /// To an instance: takes its link down and up again.
    Reset,
    /// To an instance that waits for DCBX: the result of the negotiation. `fcoemon` sends it,
    /// because it runs DCBX for all VLANs of an interface.
    Permit {
        /// True if FCoE may start; false stops it.
        agreed: bool,
    },
    /// To an instance: requests the logical units of every target again.
    Scan,
    /// To an instance: sends a query to the name server. Reply: [`FcoeAnswer::Named`], which may be
    /// empty.
    NameServer {
        /// The query to send.
        query: NameQuery,
    },
    /// To an instance: sends ECHO to a port (FC-LS). Reply: [`FcoeAnswer::Echoed`].
    Echo {
        /// FC-ID of the destination.
        port_id: u32,
        /// Length of the ECHO data, in bytes.
        bytes: u16,
    },
    /// To the monitor: starts an instance.
    Create {
        /// Ethernet interface of the instance.
        interface: String,
        /// True for a segment without an FCoE switch (VN2VN).
        vn2vn: bool,
    },
    /// To the monitor: ends an instance.
    Destroy {
        /// Ethernet interface of the instance.
        interface: String,
    },
}

/// A query to the name server (FC-GS). Port and node names are 64-bit numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "query", rename_all = "snake_case")]
#[allow(missing_docs)] // each field is the object of the query
pub enum NameQuery {
    /// GPN_ID: the port name of an address.
    PortName { port_id: u32 },
    /// GNN_ID: the node name of an address.
    NodeName { port_id: u32 },
    /// GSPN_ID: the symbolic port name of an address.
    SymbolicPortName { port_id: u32 },
    /// GSNN_NN: the symbolic name of a node.
    SymbolicNodeName { node_name: u64 },
    /// GID_PN: the address of a port name.
    PortIdOfPort { port_name: u64 },
    /// GID_NN: the first port of the node.
    PortIdOfNode { node_name: u64 },
    /// GA_NXT: all attributes of the port with the next higher FC-ID.
    Next { port_id: u32 },
}

/// Attributes of a port in the name server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "named", rename_all = "snake_case")]
#[allow(missing_docs)] // each field is named after its object
pub enum Named {
    PortName { name: u64 },
    NodeName { name: u64 },
    SymbolicName { name: String },
    PortId { port_id: u32 },
    Port { port_id: u32, port_name: u64, node_name: u64, symbolic_port_name: String, symbolic_node_name: String },
}

/// A reply to a tool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "fcoe", rename_all = "snake_case")]
pub enum FcoeAnswer {
    /// State of an instance.
    Instance(Box<Instance>),
    /// Reply of the name server.
    Named {
        /// Attributes that were found.
        found: Named,
    },
    /// Reply of a port to ECHO.
    Echoed {
        /// Time from the request to the reply, in microseconds.
        micros: u64,
        /// True if the reply contained the same bytes.
        same: bool,
    },
}

/// A host on an Ethernet port (FCoE instance).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Name of the instance, for example `eth2.152-fcoe`.
    pub name: String,
    /// The Ethernet port: an interface, or the name given to `sanloom initiator --port`.
    pub interface: String,
    /// MAC address of the Ethernet port.
    pub mac: String,
    /// VLAN of FCoE, once it is known; `None` for untagged frames.
    pub vlan: Option<u16>,
    /// 802.1Q priority of its frames.
    pub priority: u8,
    /// True on a segment without an FCoE switch (VN2VN).
    pub vn2vn: bool,
    /// True if the link has a peer.
    pub link: bool,
    /// Speed of the interface in Mb/s; `None` if it is unknown, as without a link and on a unix
    /// socket.
    #[serde(default)]
    pub speed_mbit_per_s: Option<u32>,
    /// Result of DCBX: true if the peer agrees to carry FCoE without loss. `None` if DCBX is not
    /// required.
    pub dcbx: Option<bool>,
    /// The selected FCoE forwarder.
    pub fcf: Option<Forwarder>,
    /// Path of the NBD server's socket.
    pub nbd: String,
    /// The physical port, then the virtual ports.
    pub ports: Vec<Port>,
    /// Counters of the instance.
    pub statistics: Statistics,
    /// Further Ethernet ports of the same host, each as an instance.
    #[serde(default)]
    pub others: Vec<Instance>,
    /// Disks that the host reaches on several paths.
    #[serde(default)]
    pub disks: Vec<MultipathDisk>,
}

/// A disk with several paths, of which one is used at a time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MultipathDisk {
    /// Name of the NBD export.
    pub device: String,
    /// Paths in the order of the host's ports.
    pub paths: Vec<DiskPath>,
}

/// A path to a disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DiskPath {
    /// Port name of the host's port.
    pub host_port: u64,
    /// Port name of the target.
    pub target_port: u64,
    /// LUN as in [`Unit::lun`].
    pub lun: String,
    /// State of the path.
    pub state: PathState,
}

/// State of a path to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathState {
    /// In use.
    Active,
    /// Usable.
    Enabled,
    /// Not usable.
    Failed,
}

/// An FCoE forwarder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Forwarder {
    /// MAC address of the forwarder.
    pub mac: String,
    /// Name of the fabric.
    pub fabric_name: u64,
    /// Name of the switch.
    pub switch_name: u64,
    /// Priority of the forwarder; the lowest number is preferred.
    pub priority: u8,
    /// Interval between keep-alives, in milliseconds.
    pub keep_alive_ms: u64,
}

/// A port of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Port {
    /// Symbolic name for users.
    pub symbolic_name: String,
    /// Name of the node.
    pub node_name: u64,
    /// Port name (WWPN).
    pub port_name: u64,
    /// Address (N_Port_ID); `None` without a login.
    pub port_id: Option<u32>,
    /// MAC address of the virtual port; `None` without a login.
    pub vn_mac: Option<String>,
    /// Largest data field that the port can receive, in bytes.
    pub max_frame_bytes: u16,
    /// Targets with a login now or in the past.
    pub targets: Vec<Target>,
}

/// A target port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Target {
    /// Port name of the target.
    pub port_name: u64,
    /// Node name of the target; 0 if there has never been a login.
    pub node_name: u64,
    /// Address of the target port; `None` without a login.
    pub port_id: Option<u32>,
    /// Largest data field on the path, in bytes; 0 without a login.
    pub max_frame_bytes: u16,
    /// Logical units of the target.
    pub units: Vec<Unit>,
}

/// A logical unit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unit {
    /// LUN as a number, or its eight bytes if they are not a simple LUN.
    pub lun: String,
    /// Name of the NBD export.
    pub device: String,
    /// Vendor from the INQUIRY data.
    pub vendor: String,
    /// Product from the INQUIRY data.
    pub product: String,
    /// Revision from the INQUIRY data.
    pub revision: String,
    /// Number of blocks.
    pub blocks: u64,
    /// Block size in bytes.
    pub block_bytes: u32,
    /// True if the unit is ready for I/O.
    pub ready: bool,
}

/// Counters of an instance since its start. Words are 4 bytes, megabytes 10^6 bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are those of fcoeadm
pub struct Statistics {
    pub seconds: u64,
    pub tx_frames: u64,
    pub tx_bytes: u64,
    pub rx_frames: u64,
    pub rx_bytes: u64,
    pub error_frames: u64,
    pub invalid_crcs: u64,
    pub link_failures: u64,
    pub control_requests: u64,
    pub input_requests: u64,
    pub input_megabytes: u64,
    pub output_requests: u64,
    pub output_megabytes: u64,
    /// Dropped frames by reason; their sum is `error_frames`.
    pub drops: BTreeMap<String, u64>,
}
