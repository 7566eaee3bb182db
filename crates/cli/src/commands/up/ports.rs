//! Arguments of QEMU for the free ports of a lab: [`free_ports`].

use crate::instance;
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::build::Which;
use sanloom_api::view::{Table, View};
use sanloom_fc::config::{Carrier, Node};
use sanloom_fc::san::Lab;
use sanloom_live::runtime::plan::{LabPaths, mac_of};
use sanloom_wire::Wwpn;
use sanloom_wire::ether::MacAddr;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// A free port, and the QEMU arguments of a virtual machine at this port.
#[derive(Serialize)]
pub(super) struct FreePort {
    link: String,
    /// Argument of `-netdev`.
    netdev: String,
    /// Argument of `-device`.
    device: String,
}

impl fmt::Display for FreePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}\n-netdev {} -device {}", self.link, self.netdev, self.device)
    }
}

/// The free Ethernet ports whose other end is a host or storage system, and the stations of
/// segments without a switch. Without a name of a switch, those of all.
pub(super) fn free_ports(lab: &Lab, switch: Option<&str>) -> Vec<FreePort> {
    let lab_paths = LabPaths::of(lab);
    let here = |node: &Node| match node {
        Node::Switch(number) => switch.is_none_or(|name| lab.switches[usize::from(*number)].name == name),
        Node::Host(_) | Node::Storage(_) | Node::Loop(_) => false,
    };
    let links = lab.live.ethernet.iter().filter_map(|(index, ethernet)| {
        let link = &lab.links[*index];
        let end = link.ends.iter().find(|end| !matches!(end.node, Node::Switch(_)))?;
        let ours = link.ends.iter().any(|end| here(&end.node));
        ours.then(|| (link.name.as_str(), ethernet, port_name(lab, end.node, end.port)))
    });
    let stations = lab.live.stations.iter().filter(|_| switch.is_none());
    let stations = stations.map(|(number, ethernet)| {
        (&*lab.storage[usize::from(*number)].name, ethernet, port_name(lab, Node::Storage(*number), 0))
    });
    let mut taken = BTreeSet::new();
    let lit = lit_links(lab, switch);
    let mut ports = Vec::new();
    for (number, (name, ethernet, port_name)) in links.chain(stations).enumerate() {
        let mac = own_mac(port_name, number, &mut taken);
        let (own, peer) = lab_paths.sockets(name, ethernet, false);
        if lit.contains(name) || ethernet.carrier == Carrier::Datagram && is_bound(&peer) {
            continue;
        }
        let (own, peer) = (own.display(), peer.display());
        let netdev = match ethernet.carrier {
            Carrier::Datagram => {
                format!("dgram,id=n{number},local.type=unix,local.path={peer},remote.type=unix,remote.path={own}")
            }
            Carrier::Stream => format!("stream,id=n{number},server=off,addr.type=unix,addr.path={own}"),
            Carrier::Tap | Carrier::Packet | Carrier::Descriptor => continue,
        };
        let device = format!("virtio-net-pci,netdev=n{number},host_mtu=2500,mac={mac}");
        ports.push(FreePort { link: name.to_owned(), netdev, device });
    }
    ports
}

/// Links of a running instance that have a peer; empty if none is running.
fn lit_links(lab: &Lab, switch: Option<&str>) -> BTreeSet<String> {
    let request = Request::Show { table: ShowTable::Fabric(Which::Ports), switch: None };
    match instance::ask(lab, switch, &request) {
        Ok(Answer::View(View { table: Table::Ports(view), .. })) => {
            view.ports.into_iter().filter(|row| row.light).map(|row| row.link).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// The socket is in use, regardless of its peer.
fn is_bound(path: &Path) -> bool {
    let tried = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    !tried.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused))
}

/// The name of the port at the other end of a link.
fn port_name(lab: &Lab, node: Node, port: u16) -> Option<Wwpn> {
    match node {
        Node::Host(host) => lab.hosts[usize::from(host)].hbas.get(usize::from(port)).map(|hba| hba.wwpn),
        Node::Storage(storage) => lab.storage[usize::from(storage)].ports.get(usize::from(port)).map(|port| port.wwpn),
        Node::Switch(_) | Node::Loop(_) => None,
    }
}

/// An Ethernet address that no other line has. From a name such as 20:00:52:54:00:00:00:01 it is
/// the last six bytes, because Linux makes the port name of that address. Without an address of its
/// own each virtual machine would get the same one from QEMU.
fn own_mac(port_name: Option<Wwpn>, number: usize, taken: &mut BTreeSet<MacAddr>) -> MacAddr {
    let spare = (number..=usize::from(u16::MAX)).map(|number| {
        let [high, low] = (number as u16).to_be_bytes();
        MacAddr([0x52, 0x54, 0x00, 0xfc, high, low])
    });
    let wanted = port_name.map(mac_of).into_iter().chain(spare);
    let free = wanted.clone().find(|mac| !taken.contains(mac)).unwrap_or(MacAddr([0x52, 0x54, 0, 0xfc, 0, 0]));
    taken.insert(free);
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_an_address_of_its_own() {
        let mut taken = BTreeSet::new();
        let mut mac = |name: u64, number| own_mac(Some(Wwpn(name)), number, &mut taken).to_string();
        assert_eq!(mac(0x2000_5254_0000_0001, 0), "52:54:00:00:00:01");
        assert_eq!(mac(0x5000_0972_0800_0001, 1), "02:72:08:00:00:01");
        // The same last bytes as before.
        assert_eq!(mac(0x5001_0972_0800_0001, 2), "52:54:00:fc:00:02");
        assert_eq!(own_mac(None, 3, &mut BTreeSet::new()).to_string(), "52:54:00:fc:00:03");
    }
}
