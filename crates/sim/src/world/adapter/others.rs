//! Interfaces of iSCSI and SRP of a storage system, on the buses and the processor of its adapters.

use super::Adapters;
use crate::host::{Arrival, Bus, Direction, Interface, Interrupts, RaisedInterrupt};
use sanloom_fc::config::{EthernetNode, InfinibandNode, Node};
use sanloom_fc::san::Lab;

impl Adapters {
    /// Moves bytes between an interface and the memory. `adapter` is its number among the Ethernet
    /// interfaces or among those of InfiniBand. Returns the end of the transfer in ps; without a
    /// bus, now.
    pub fn transfer(&mut self, now_ps: u64, adapter: u16, direction: Direction, bytes: u64) -> u64 {
        let bus = self.bus_config.and_then(|config| self.buses.get_mut(usize::from(Bus::index_of(&config, adapter))));
        bus.map_or(now_ps, |bus| bus.occupy(now_ps, direction, bytes))
    }

    /// Returns the number of the channel adapter of a port of SRP.
    pub fn channel_adapter(&self, port: u16) -> u16 {
        port.saturating_sub(self.first_srp)
    }

    /// Adds a frame or an information unit that has arrived. Returns `None` without interrupts: the
    /// target receives it at once.
    pub fn arrive(&mut self, now_ps: u64, interface: Interface) -> Option<Arrival> {
        let config = self.interrupt_config?;
        let adapter = match interface {
            Interface::Ip(number) | Interface::Srp(number) => number,
        };
        let new = || Interrupts::new(Some(config), adapter);
        let interrupts = self.others.entry(interface).or_insert_with(new);
        let waits = interrupts.poll_timeout().is_some();
        let raised = interrupts.complete(now_ps, 0, &mut self.cpu);
        Some(Arrival { raised, timeout_ps: interrupts.poll_timeout().filter(|_| !waits) })
    }

    /// Returns the interrupt of arrivals at an interface that have waited long enough.
    pub fn time_out(&mut self, now_ps: u64, interface: Interface) -> Option<RaisedInterrupt> {
        self.others.get_mut(&interface)?.timeout(now_ps, &mut self.cpu)
    }
}

/// Returns the number of the Ethernet interfaces of a host or storage system, or of those of
/// InfiniBand if there are more.
pub(in crate::world) fn interfaces_of(lab: &Lab, node: Node) -> u16 {
    let ethernet = lab.ethernet_links.iter().flat_map(|link| link.ends);
    let ethernet = ethernet.filter(|end| match end.node {
        EthernetNode::Host(host) => node == Node::Host(host),
        EthernetNode::Storage(storage) => node == Node::Storage(storage),
        EthernetNode::Switch(_) | EthernetNode::Forwarder(_) => false,
    });
    let infiniband = lab.infiniband.links.iter().flat_map(|link| link.ends);
    let infiniband = infiniband.filter(|end| match end.node {
        InfinibandNode::Host(host) => node == Node::Host(host),
        InfinibandNode::Storage(storage) => node == Node::Storage(storage),
        InfinibandNode::Switch(_) => false,
    });
    (ethernet.count().max(infiniband.count())) as u16
}
