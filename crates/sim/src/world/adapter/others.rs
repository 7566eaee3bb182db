//! Interfaces of iSCSI and SRP of a storage system, on the buses and the processor of its adapters.

use super::Adapters;
use crate::host::{Arrival, Bus, Direction, Interface, Interrupts, RaisedInterrupt};

impl Adapters {
    /// Moves bytes between an interface and the memory. Returns the end of the transfer in ps;
    /// without a bus, now.
    pub fn transfer(&mut self, now_ps: u64, interface: Interface, direction: Direction, bytes: u64) -> u64 {
        let Some(config) = &self.bus_config else { return now_ps };
        let (Interface::Ip(number) | Interface::Srp(number)) = interface;
        // Interfaces of IPoIB have numbers behind those of Ethernet.
        let bus = usize::from(Bus::index_of(config, number)) % self.buses.len();
        self.buses[bus].occupy(now_ps, direction, bytes)
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
