//! What a lab needs beyond the model to run on real Ethernet ports with real disks. A simulation does not look at it.

use super::iscsi::Iscsi;
use super::port_groups::PortGroupSpec;
use super::units::Picos;
use super::volumes::{BackEnd, BackEndTarget, FcpBackEnd, Pool, VolumeSpec};
use super::workload::Target;
use crate::scsi::InitiatorName;
use core::net::SocketAddr;
use sanloom_wire::Wwpn;
use std::collections::BTreeMap;

/// How a lab runs live.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Live {
    /// Folder of sockets and images that have no path of their own; `None`: the program chooses one.
    pub folder: Option<String>,
    /// Path of the control socket; `None`: `control.sock` in the folder.
    pub control: Option<String>,
    /// Where monitoring reads metrics over the network; `None`: at the control socket only.
    pub metrics: Option<SocketAddr>,
    /// The links that are Ethernet, by index into [`super::Lab::links`]. A link of a switch that is not among them ends
    /// inside the process.
    pub ethernet: BTreeMap<usize, Ethernet>,
    /// Storage systems whose first port is a station of a VN2VN segment (FC-BB-6), by index into [`super::Lab::storage`].
    pub stations: BTreeMap<u16, Ethernet>,
    /// Host ports of the instance at FCoE forwarders of somebody else, by port name; each is the first port of its host.
    pub uplinks: BTreeMap<Wwpn, Uplink>,
    /// The FCoE side of each switch, by index into [`super::Lab::switches`]; a switch beyond the list has the default.
    pub fcoe: Vec<Fcoe>,
    /// What the LUNs of each storage system are made of, by index into [`super::Lab::storage`]; as `fcoe`.
    pub media: Vec<Medium>,
    /// The storage systems that are iSCSI targets, by index into [`super::Lab::storage`].
    pub iscsi: BTreeMap<u16, Iscsi>,
    /// Target port groups. A storage system that none names has one group with all its ports, active/optimized.
    pub port_groups: Vec<PortGroupSpec>,
    /// Who sees which LUNs. A storage system that no mask names shows all its LUNs to everybody.
    pub masks: Vec<Mask>,
    /// Pools of back-end LUNs.
    pub pools: Vec<Pool>,
    /// Back-end LUNs.
    pub back_ends: Vec<BackEnd>,
    /// Virtual disks that are to be there.
    pub volumes: Vec<VolumeSpec>,
}

impl Live {
    /// The FCoE side of a switch.
    pub fn fcoe(&self, switch: u16) -> Fcoe {
        self.fcoe.get(usize::from(switch)).copied().unwrap_or_default()
    }

    /// The host ports that the instance logs in with for its back ends, by port name, in the order of the back ends.
    pub fn host_ports(&self) -> Vec<Wwpn> {
        let mut ports: Vec<Wwpn> = Vec::new();
        for back_end in &self.back_ends {
            if let BackEndTarget::Fcp(FcpBackEnd { initiator, .. }) = back_end.target
                && !ports.contains(&initiator)
            {
                ports.push(initiator);
            }
        }
        ports
    }

    /// What the LUNs of a storage system are made of.
    pub fn medium(&self, storage: u16) -> Medium {
        self.media.get(usize::from(storage)).cloned().unwrap_or_default()
    }
}

/// A host port of the instance on Ethernet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uplink {
    /// Where it is.
    pub ethernet: Ethernet,
    /// Forwarders are asked for the VLAN of FCoE.
    pub discovers_vlan: bool,
}

/// An Ethernet port: of a switch at a link, of a storage system, or of a host that is the instance itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ethernet {
    /// What carries the frames.
    pub carrier: Carrier,
    /// Path of the socket, name of the interface, or number of the descriptor; `None`: a socket in the folder of the
    /// instance, named after the link or the storage system.
    pub address: Option<String>,
    /// Path of the socket at the other end; `None`: as `address`, with another ending.
    pub peer: Option<String>,
    /// The VLAN of FCoE here, 1 to 4094; `None`: untagged.
    pub vlan: Option<u16>,
    /// Hosts (ENodes) that may log in through the port at once.
    pub enodes: u16,
    /// FCoE begins when DCBX has agreed with the other end that no frame of it is lost.
    pub dcbx: bool,
}

/// What carries Ethernet frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Carrier {
    /// A unix datagram socket, one frame in each datagram.
    Datagram,
    /// A unix stream socket; each frame behind its length in four bytes, the most significant first.
    Stream,
    /// A tap interface of this machine.
    Tap,
    /// Any interface of this machine, through a packet socket.
    Packet,
    /// A datagram socket that the parent process opened.
    Descriptor,
}

/// The FCoE side of a switch (FC-BB-6: an FCoE forwarder).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fcoe {
    /// What hosts prefer it by, the lowest number first.
    pub priority: u8,
    /// From one advertisement to the next, and from one keep-alive to the next.
    pub keep_alive: Picos,
    /// Last byte of the FC-MAP, behind 0E:FC.
    pub fc_map: u8,
}

impl Default for Fcoe {
    fn default() -> Fcoe {
        Fcoe { priority: 128, keep_alive: Picos::from_secs(8), fc_map: 0 }
    }
}

/// What the LUNs of a storage system are made of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Medium {
    /// Where the bytes are.
    pub kind: MediumKind,
    /// Paths of the files, one for each LUN; fewer: files in the folder of the instance, named after the LUN.
    pub files: Vec<String>,
    /// Files are read and written without the page cache of this machine, where their file system does that.
    pub direct: bool,
    /// Data may be lost in a crash until it is flushed; otherwise it is on stable storage before the status is sent.
    pub write_back: bool,
}

/// Where the bytes of a LUN are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MediumKind {
    /// In memory, blocks that were never written take none.
    #[default]
    Ram,
    /// In a sparse file.
    File,
    /// Nowhere: every block reads as a function of its address, and writes are taken and forgotten.
    Pattern,
    /// Nowhere: reads give zeros, and writes are taken and forgotten.
    Null,
    /// They are virtual disks: [`Live::volumes`], and what operators create.
    Volumes,
}

/// LUNs that some initiators see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mask {
    /// The initiators, of either transport.
    pub initiators: Vec<InitiatorName>,
    /// The LUNs.
    pub targets: Vec<Target>,
}
