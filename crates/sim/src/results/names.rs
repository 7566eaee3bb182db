//! Names of ports and lanes.

use sanloom_fc::config::{EthernetNode, LinkEnd, Node};
use sanloom_fc::san::{IpPaths, Lab};
use std::cell::OnceCell;

/// Names of the elements of a lab.
pub(crate) struct Names<'l> {
    lab: &'l Lab,
    /// Paths of IP, from the first name of a session on.
    ip: OnceCell<Option<IpPaths<'l>>>,
}

impl<'l> Names<'l> {
    pub fn new(lab: &'l Lab) -> Names<'l> {
        Names { lab, ip: OnceCell::new() }
    }

    fn ip(&self) -> Option<&IpPaths<'l>> {
        self.ip.get_or_init(|| crate::world::ip_paths(self.lab)).as_ref()
    }

    /// Returns the number of portals of a storage system that hosts can use.
    fn portals(&self, storage: u16) -> u16 {
        self.ip().map_or(0, |ip| ip.portals(storage).len() as u16)
    }

    pub fn node(&self, node: Node) -> &'l str {
        match node {
            Node::Switch(switch) => &self.lab.switches[usize::from(switch)].name,
            Node::Host(host) => &self.lab.hosts[usize::from(host)].name,
            Node::Storage(storage) => &self.lab.storage[usize::from(storage)].name,
            Node::Loop(number) => &self.lab.loops[usize::from(number)].name,
        }
    }

    /// Returns the name of a port, for example `edge1:3`.
    pub fn port(&self, end: &LinkEnd) -> String {
        format!("{}:{}", self.node(end.node), end.port)
    }

    /// Returns the name of the link of a lane.
    pub fn link(&self, lane: u32) -> &'l str {
        &self.lab.links[lane as usize / 2].name
    }

    /// Returns the end at which a lane begins.
    pub fn from(&self, lane: u32) -> &'l LinkEnd {
        &self.lab.links[lane as usize / 2].ends[lane as usize % 2]
    }

    /// Returns the end at which a lane ends.
    pub fn to(&self, lane: u32) -> &'l LinkEnd {
        &self.lab.links[lane as usize / 2].ends[1 - lane as usize % 2]
    }

    /// Returns the name of a lane, which is its link and direction: `ISL1.forward`.
    pub fn lane(&self, lane: u32) -> String {
        let direction = if lane.is_multiple_of(2) { "forward" } else { "backward" };
        format!("{}.{direction}", self.link(lane))
    }

    /// Returns the name of a path: `hba1>array1:2`, or `nic0>array1:portal1` for sessions of
    /// iSCSI (`ipoib0` on InfiniBand), or `ib0>array1:ib1` for channels of SRP.
    pub fn path(&self, host: u16, storage: u16, path: u16) -> String {
        let system = &self.lab.storage[usize::from(storage)];
        let fc_ports = system.ports.len() as u16;
        let portals = self.portals(storage);
        let ports = (fc_ports + portals + crate::world::channel_ports(self.lab, storage)).max(1);
        let (hba, port) = (path / ports, path % ports);
        if port < fc_ports {
            return format!("hba{hba}>{}:{port}", system.name);
        }
        self.session(host, hba, storage, port)
    }

    /// Returns the name of a session of iSCSI or a channel of SRP. `hba` and `port` are numbered
    /// behind those of Fibre Channel.
    pub fn session(&self, host: u16, hba: u16, storage: u16, port: u16) -> String {
        let system = &self.lab.storage[usize::from(storage)];
        let fc_ports = system.ports.len() as u16;
        let portals = self.portals(storage);
        let config = &self.lab.hosts[usize::from(host)];
        let number = hba.saturating_sub(config.hbas.len() as u16);
        if port >= fc_ports + portals {
            let number = number.saturating_sub(self.ip().map_or(0, |ip| crate::world::initiators(self.lab, ip, host)));
            return format!("ib{number}>{}:ib{}", system.name, port - fc_ports - portals);
        }
        let sessions = config.iscsi.sessions.max(1);
        let session = if sessions > 1 { format!(".{}", number % sessions) } else { String::new() };
        let (mut nic, mut kind) = (number / sessions, "nic");
        if let Some(ip) = self.ip().filter(|_| self.lab.infiniband.has_ipoib()) {
            let on_ethernet = ip.iscsi.interfaces_of(EthernetNode::Host(host)).len() as u16;
            if let Some(on_infiniband) = nic.checked_sub(on_ethernet) {
                (nic, kind) = (on_infiniband, "ipoib");
            }
        }
        format!("{kind}{nic}{session}>{}:portal{}", system.name, port - fc_ports)
    }
}
