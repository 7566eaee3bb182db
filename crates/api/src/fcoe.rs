//! FCoE instances of hosts, as the tools of document 002 see them: [`FcoeRequest`] and [`FcoeAnswer`], carried by
//! [`control`](crate::control).
//!
//! An instance is a host on an Ethernet port (`sanloom initiator`) and has a control socket. `fcoemon` has one, too, and takes
//! [`FcoeRequest::Create`] and [`FcoeRequest::Destroy`].
//!
//! Names of ports and nodes, addresses and FC-IDs are numbers here; how they are spelled is a matter of the tool.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a tool wants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "fcoe", rename_all = "snake_case")]
pub enum FcoeRequest {
    /// Of an instance: everything about it. Answered with [`FcoeAnswer::Instance`].
    Describe,
    /// Of an instance: its link goes down and up again.
    Reset,
    /// Of an instance that waits for it: whether DCBX agrees, from `fcoemon`, which speaks it for all VLANs of an interface.
    Permit {
        /// FCoE may begin; else it ends.
        agreed: bool,
    },
    /// Of an instance: ask every target for its units again.
    Scan,
    /// Of an instance: ask the name server. Answered with [`FcoeAnswer::Named`], or with nothing found.
    NameServer {
        /// What for.
        query: NameQuery,
    },
    /// Of an instance: ECHO to a port (FC-LS). Answered with [`FcoeAnswer::Echoed`].
    Echo {
        /// Its FC-ID.
        port_id: u32,
        /// Bytes to be sent and come back.
        bytes: u16,
    },
    /// Of the monitor: begin an instance.
    Create {
        /// Its interface.
        interface: String,
        /// On a segment without a switch.
        vn2vn: bool,
    },
    /// Of the monitor: end an instance.
    Destroy {
        /// Its interface.
        interface: String,
    },
}

/// A question to the name server (FC-GS). Port and node names are numbers of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "query", rename_all = "snake_case")]
#[allow(missing_docs)] // each asks for what it is called
pub enum NameQuery {
    /// GPN_ID.
    PortName { port_id: u32 },
    /// GNN_ID.
    NodeName { port_id: u32 },
    /// GSPN_ID.
    SymbolicPortName { port_id: u32 },
    /// GSNN_NN.
    SymbolicNodeName { node_name: u64 },
    /// GID_PN.
    PortIdOfPort { port_name: u64 },
    /// GID_NN: the first port of the node.
    PortIdOfNode { node_name: u64 },
    /// GA_NXT: the port with the next greater FC-ID, and everything about it.
    Next { port_id: u32 },
}

/// What the name server knows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "named", rename_all = "snake_case")]
#[allow(missing_docs)] // each is what it is called
pub enum Named {
    PortName { name: u64 },
    NodeName { name: u64 },
    SymbolicName { name: String },
    PortId { port_id: u32 },
    Port { port_id: u32, port_name: u64, node_name: u64, symbolic_port_name: String, symbolic_node_name: String },
}

/// What a tool is answered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "fcoe", rename_all = "snake_case")]
pub enum FcoeAnswer {
    /// An instance.
    Instance(Box<Instance>),
    /// What the name server knows.
    Named {
        /// It.
        found: Named,
    },
    /// A port has answered ECHO.
    Echoed {
        /// Time from the request to the answer, in microseconds.
        micros: u64,
        /// The bytes came back as they were.
        same: bool,
    },
}

/// A host on an Ethernet port.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Its name, for example `eth2.152-fcoe`.
    pub name: String,
    /// The Ethernet port: an interface, or as `sanloom initiator --port` names it.
    pub interface: String,
    /// Address of the Ethernet port.
    pub mac: String,
    /// VLAN of FCoE, once it is known; nothing: untagged.
    pub vlan: Option<u16>,
    /// 802.1Q priority of its frames.
    pub priority: u8,
    /// On a segment without a switch.
    pub vn2vn: bool,
    /// Somebody is at the other end of the link.
    pub link: bool,
    /// DCBX: nothing if it is not wanted, else whether the other end agrees to carry FCoE without loss.
    pub dcbx: Option<bool>,
    /// The forwarder that was chosen.
    pub fcf: Option<Forwarder>,
    /// Socket of the NBD server.
    pub nbd: String,
    /// The physical port, then the virtual ones.
    pub ports: Vec<Port>,
    /// What was counted.
    pub statistics: Statistics,
}

/// An FCoE forwarder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Forwarder {
    /// Its address.
    pub mac: String,
    /// Name of the fabric.
    pub fabric_name: u64,
    /// Name of the switch.
    pub switch_name: u64,
    /// Its priority; the lowest number is preferred.
    pub priority: u8,
    /// From one keep-alive to the next, in milliseconds.
    pub keep_alive_ms: u64,
}

/// A port of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Port {
    /// For people.
    pub symbolic_name: String,
    /// Name of the node.
    pub node_name: u64,
    /// Its own name.
    pub port_name: u64,
    /// Its address; nothing without a login.
    pub port_id: Option<u32>,
    /// Ethernet address of the virtual port; nothing without a login.
    pub vn_mac: Option<String>,
    /// Largest data field that it takes, in bytes.
    pub max_frame_bytes: u16,
    /// The targets that it has a login with, or had one.
    pub targets: Vec<Target>,
}

/// A target port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Target {
    /// Its name.
    pub port_name: u64,
    /// Name of the node; 0 if there never was a login.
    pub node_name: u64,
    /// Its address; nothing without a login.
    pub port_id: Option<u32>,
    /// Largest data field on the way, in bytes; 0 without a login.
    pub max_frame_bytes: u16,
    /// Its units.
    pub units: Vec<Unit>,
}

/// A logical unit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unit {
    /// Its number, or its eight bytes where it is none.
    pub lun: String,
    /// Name of the export.
    pub device: String,
    /// Vendor, product and revision.
    pub vendor: String,
    /// See `vendor`.
    pub product: String,
    /// See `vendor`.
    pub revision: String,
    /// Number of blocks.
    pub blocks: u64,
    /// Their size in bytes.
    pub block_bytes: u32,
    /// It can be used now.
    pub ready: bool,
}

/// What an instance has counted since it began. Words are 4 bytes, megabytes 10^6 bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // as fcoeadm names them
pub struct Statistics {
    pub seconds: u64,
    pub tx_frames: u64,
    pub tx_words: u64,
    pub rx_frames: u64,
    pub rx_words: u64,
    pub error_frames: u64,
    pub invalid_crcs: u64,
    pub link_failures: u64,
    pub control_requests: u64,
    pub input_requests: u64,
    pub input_megabytes: u64,
    pub output_requests: u64,
    pub output_megabytes: u64,
    /// What `error_frames` is the sum of, by reason.
    pub drops: BTreeMap<String, u64>,
}
