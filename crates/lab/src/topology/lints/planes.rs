//! Lints about ports of storage on Ethernet and InfiniBand.

use super::ratios::overload;
use super::zones::node;
use super::{Design, FAN_IN};
use sanloom_fc::config::{EthernetNode, InfinibandNode, Node};
use sanloom_fc::san::{IpPaths, Lab};
use std::collections::{BTreeMap, BTreeSet};

/// Link of an interface, by index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Port {
    Ethernet(usize),
    Infiniband(usize),
}

impl Port {
    fn bytes_per_s(self, lab: &Lab) -> u64 {
        match self {
            Port::Ethernet(link) => lab.ethernet_links[link].rate.bytes_per_s(),
            Port::Infiniband(link) => lab.infiniband.links[link].rate.bytes_per_s(),
        }
    }

    /// Name of the end of the link at a storage system, such as `array:eth0`.
    fn name(self, lab: &Lab, storage: u16) -> String {
        match self {
            Port::Ethernet(link) => {
                let ends = lab.ethernet_links[link].ends;
                ends.iter().find(|end| end.node == EthernetNode::Storage(storage)).map(|end| end.name(lab))
            }
            Port::Infiniband(link) => {
                let ends = lab.infiniband.links[link].ends;
                ends.iter().find(|end| end.node == InfinibandNode::Storage(storage)).map(|end| end.name(lab))
            }
        }
        .unwrap_or_default()
    }
}

/// Ports of hosts at each port of storage, and the reverse.
#[derive(Default)]
struct Users {
    of_storage: BTreeMap<(Port, u16), BTreeSet<Port>>,
    of_host: BTreeMap<Port, BTreeSet<Port>>,
}

impl Users {
    fn add(&mut self, near: Port, far: Port, storage: u16) {
        self.of_storage.entry((far, storage)).or_default().insert(near);
        self.of_host.entry(near).or_default().insert(far);
    }
}

/// Ports of iSCSI and SRP targets with more hosts behind them than the limits allow, as for ports
/// of Fibre Channel: a host port counts with an equal share of its rate at each port that it uses.
pub(super) fn fan_in(design: &mut Design<'_>) {
    let lab = design.lab;
    let mut users = Users::default();
    IpPaths::for_each_pair(lab, |paths, _, storage, ways| {
        let port = |end: u16| match paths.on_infiniband(end) {
            Some(end) => Port::Infiniband(paths.infiniband[usize::from(end)].link),
            None => Port::Ethernet(paths.iscsi.interfaces[usize::from(end)].link),
        };
        ways.iter().for_each(|way| users.add(port(way.ends[0]), port(way.ends[1]), storage));
        true
    });
    lab.for_each_srp_pair(|paths, host, storage| {
        let port = |interface: u16| Port::Infiniband(paths.interfaces[usize::from(interface)].link);
        let far = paths.target_ports(storage);
        for (own, number) in paths.pairs(host, storage) {
            users.add(port(own), port(far[usize::from(number)]), storage);
        }
        true
    });
    for ((port, storage), near) in &users.of_storage {
        let part = |host: &Port| host.bytes_per_s(lab) as f64 / users.of_host[host].len() as f64;
        let ratio = near.iter().map(part).sum::<f64>() / port.bytes_per_s(lab) as f64;
        let Some((reason, remedy)) = overload(design.limits, ratio, near.len() as u64) else { continue };
        let (place, _) = node(lab, Node::Storage(*storage));
        design.add(FAN_IN, place, port.name(lab, *storage), reason, &remedy);
    }
}
