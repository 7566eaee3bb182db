//! Components that can fail alone: [`Part`].

use sanloom_fc::san::Lab;

/// A component that can fail alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// A switch, by index.
    Switch(u16),
    /// A chassis with several switches, by the index of the first of them.
    Chassis(u16),
    /// A link, by index.
    Link(usize),
    /// An HBA: host and port.
    Hba(u16, u16),
    /// A port of a storage system: storage and port.
    StoragePort(u16, u16),
    /// A LUN that loses data with any of its disks or SSDs: storage and LUN.
    Unprotected(u16, u16),
    /// An arbitrated loop, by index.
    Loop(u16),
    /// One of several controllers of a storage system: storage and number.
    Controller(u16, u8),
    /// An Ethernet switch, by index.
    EthernetSwitch(u16),
    /// An Ethernet link, by index.
    EthernetLink(u16),
    /// An Ethernet interface of a host: its link and its end there. Its loss is that of the link.
    Nic(u16, u8),
    /// An Ethernet interface of a storage system: its link and its end there.
    StorageNic(u16, u8),
    /// An InfiniBand switch, by index.
    InfinibandSwitch(u16),
    /// An InfiniBand link, by index.
    InfinibandLink(u16),
    /// An InfiniBand interface of a host: its link and its end there. Its loss is that of the link.
    Hca(u16, u8),
    /// An InfiniBand interface of a storage system: its link and its end there.
    StorageHca(u16, u8),
    /// A gateway between hosts and the storage behind it, by index of its storage system.
    Gateway(u16),
    /// A metadata server of virtual disks, by index of its storage system.
    MetadataServer(u16),
}

/// Name of a component; ports as `server1:0`.
pub(super) fn part_name(lab: &Lab, part: Part) -> String {
    match part {
        Part::EthernetSwitch(i) => lab.ethernet_switches[usize::from(i)].name.clone(),
        Part::EthernetLink(i) => lab.ethernet_links[usize::from(i)].name.clone(),
        Part::Nic(link, side) | Part::StorageNic(link, side) => {
            lab.ethernet_links[usize::from(link)].ends[usize::from(side)].name(lab)
        }
        Part::InfinibandSwitch(i) => lab.infiniband.switches[usize::from(i)].name.clone(),
        Part::InfinibandLink(i) => lab.infiniband.links[usize::from(i)].name.clone(),
        Part::Hca(link, side) | Part::StorageHca(link, side) => {
            lab.infiniband.links[usize::from(link)].ends[usize::from(side)].name(lab)
        }
        Part::Switch(i) => lab.switches[usize::from(i)].name.clone(),
        Part::Chassis(i) => {
            let fabric = lab.switches[usize::from(i)].virtual_fabric.as_ref();
            fabric.map_or_else(String::new, |fabric| fabric.chassis.clone())
        }
        Part::Link(i) => lab.links[i].name.clone(),
        Part::Hba(i, port) => format!("{}:{port}", lab.hosts[usize::from(i)].name),
        Part::StoragePort(i, port) => format!("{}:{port}", lab.storage[usize::from(i)].name),
        Part::Unprotected(i, lun) => format!("{}:lun{lun}", lab.storage[usize::from(i)].name),
        Part::Loop(i) => lab.loops[usize::from(i)].name.clone(),
        Part::Gateway(i) | Part::MetadataServer(i) => lab.storage[usize::from(i)].name.clone(),
        Part::Controller(i, number) => format!("{}:controller{number}", lab.storage[usize::from(i)].name),
    }
}
