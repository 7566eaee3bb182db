//! Settings of a lab for running on real Ethernet ports with real disks. A simulation uses the
//! targets, LUN masks, port groups, volumes and gateways of them, and ignores addresses and files.

use super::fcip::FcipAddresses;
use super::gateway::Gateway;
use super::iscsi::Iscsi;
use super::out_of_band::OutOfBand;
use super::port_groups::PortGroupSpec;
use super::srp::SrpPortals;
use super::units::Picos;
use super::volumes::{BackEnd, BackEndTarget, Pool, VolumeSpec};
use super::workload::Target;
use core::net::SocketAddr;
use sanloom_scsi::scsi::InitiatorName;
use sanloom_wire::Wwpn;
use std::collections::BTreeMap;

/// Settings of a lab for a live run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Live {
    /// Folder for sockets and images without a path; `None`: the program chooses one.
    pub folder: Option<String>,
    /// Path of the control socket; `None`: `control.sock` in the folder.
    pub control: Option<String>,
    /// Address at which metrics are served over the network; `None`: only at the control socket.
    pub metrics: Option<SocketAddr>,
    /// Ethernet links, by index into [`Lab::links`](crate::san::Lab::links). Any other link of a
    /// switch ends inside the process.
    pub ethernet: BTreeMap<usize, Ethernet>,
    /// FCIP links, by index into [`Lab::links`](crate::san::Lab::links).
    pub fcip: BTreeMap<usize, FcipAddresses>,
    /// Storage systems whose first port is a station of a VN2VN segment (FC-BB-6), by index into
    /// [`Lab::storage`](crate::san::Lab::storage).
    pub stations: BTreeMap<u16, Ethernet>,
    /// Host ports of the instance at external FCoE forwarders, by port name; each is the first port
    /// of its host.
    pub uplinks: BTreeMap<Wwpn, Uplink>,
    /// FCoE settings of each switch, by index into [`Lab::switches`](crate::san::Lab::switches); a
    /// switch beyond the list has the default.
    pub fcoe: Vec<Fcoe>,
    /// Medium of the LUNs of each storage system, by index into
    /// [`Lab::storage`](crate::san::Lab::storage); a storage system beyond the list has the
    /// default.
    pub media: Vec<Medium>,
    /// Storage systems that are iSCSI targets, by index into
    /// [`Lab::storage`](crate::san::Lab::storage).
    pub iscsi: BTreeMap<u16, Iscsi>,
    /// Storage systems that are SRP targets on RoCEv2, by index into
    /// [`Lab::storage`](crate::san::Lab::storage).
    pub srp: BTreeMap<u16, SrpPortals>,
    /// Gateways, by index into [`Lab::storage`](crate::san::Lab::storage).
    pub gateways: BTreeMap<u16, Gateway>,
    /// Metadata servers, by index into [`Lab::storage`](crate::san::Lab::storage).
    pub out_of_band: BTreeMap<u16, OutOfBand>,
    /// Target port groups. A storage system without any has one group with all its ports,
    /// active/optimized.
    pub port_groups: Vec<PortGroupSpec>,
    /// LUN masks. A storage system without any presents all its LUNs to all initiators.
    pub masks: Vec<Mask>,
    /// Pools of back-end LUNs.
    pub pools: Vec<Pool>,
    /// Back-end LUNs.
    pub back_ends: Vec<BackEnd>,
    /// Virtual disks to create at the start.
    pub volumes: Vec<VolumeSpec>,
    /// True if simulated hosts register their adapters (FDMI), as hosts of a running fabric do.
    pub registers_adapters: bool,
}

impl Live {
    /// FCoE settings of a switch.
    pub fn fcoe(&self, switch: u16) -> Fcoe {
        self.fcoe.get(usize::from(switch)).copied().unwrap_or_default()
    }

    /// Port names with which the instance logs in to its back ends, in the order of the back ends,
    /// without duplicates.
    pub fn host_ports(&self) -> Vec<Wwpn> {
        let mut ports: Vec<Wwpn> = Vec::new();
        for back_end in &self.back_ends {
            let BackEndTarget::Fcp(target) = &back_end.target else { continue };
            for [initiator, _] in target.paths() {
                if !ports.contains(&initiator) {
                    ports.push(initiator);
                }
            }
        }
        ports
    }

    /// Medium of the LUNs of a storage system.
    pub fn medium(&self, storage: u16) -> Medium {
        self.media.get(usize::from(storage)).cloned().unwrap_or_default()
    }
}

/// Host port of the instance on Ethernet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uplink {
    /// Ethernet port to use.
    pub ethernet: Ethernet,
    /// True if the VLAN of FCoE is discovered from the forwarders.
    pub discovers_vlan: bool,
}

/// Ethernet port of a link of a switch, of a storage system, or of a host in the instance itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ethernet {
    /// Kind of carrier of the frames.
    pub carrier: Carrier,
    /// Path of the socket, name of the interface, or number of the descriptor. `None`: a socket in
    /// the folder of the instance, named after the link or the storage system.
    pub address: Option<String>,
    /// Path of the socket at the other end; `None`: that of `address` with another suffix.
    pub peer: Option<String>,
    /// VLAN for FCoE, 1 to 4094; `None`: untagged.
    pub vlan: Option<u16>,
    /// Maximum number of hosts (ENodes) logged in through the port.
    pub enodes: u16,
    /// True if FCoE starts only after DCBX has agreed on lossless FCoE with the other end.
    pub dcbx: bool,
}

/// Carrier of Ethernet frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Carrier {
    /// Unix datagram socket, one frame per datagram.
    Datagram,
    /// Unix stream socket; each frame is preceded by its length in four bytes, most significant
    /// byte first.
    Stream,
    /// Tap interface of this machine.
    Tap,
    /// Any interface of this machine, through a packet socket.
    Packet,
    /// Datagram socket opened by the parent process.
    Descriptor,
}

/// FCoE settings of a switch (FC-BB-6: an FCoE forwarder).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fcoe {
    /// Priority announced to hosts; the lowest number is preferred.
    pub priority: u8,
    /// Interval between advertisements, and between keep-alives.
    pub keep_alive: Picos,
    /// Last byte of the FC-MAP, after 0E:FC.
    pub fc_map: u8,
}

impl Default for Fcoe {
    fn default() -> Fcoe {
        Fcoe { priority: 128, keep_alive: Picos::from_secs(8), fc_map: 0 }
    }
}

/// Medium of the LUNs of a storage system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Medium {
    /// Location of the bytes.
    pub kind: MediumKind,
    /// Paths of the files, one per LUN. LUNs beyond the list have files in the folder of the
    /// instance, named after the LUN.
    pub files: Vec<String>,
    /// True if files are accessed without the page cache of this machine, provided that their file
    /// system supports it.
    pub direct: bool,
    /// True if data may be lost in a crash until it is flushed. Otherwise it is on stable storage
    /// before the status is sent.
    pub write_back: bool,
}

/// Location of the bytes of a LUN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MediumKind {
    /// Memory; blocks that were never written take none.
    #[default]
    Ram,
    /// Sparse file.
    File,
    /// No storage: every block reads as a function of its address, and writes are discarded.
    Pattern,
    /// No storage: reads return zeros, and writes are discarded.
    Null,
    /// Virtual disks: [`Live::volumes`] and those created by operators.
    Volumes,
}

/// LUNs presented to certain initiators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mask {
    /// Names of the initiators, of either transport.
    pub initiators: Vec<InitiatorName>,
    /// LUNs presented to them.
    pub targets: Vec<Target>,
}
