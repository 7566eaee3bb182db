//! Switch ports available for virtual links: [`PortPool`].

use sanloom_wire::ether::MacAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Free port numbers. A station that returns gets its former port unless it was given to another
/// one.
#[derive(Debug, Default)]
pub(super) struct PortPool {
    /// Free ports without a former station: never used, or the last station was removed.
    fresh: BTreeSet<u16>,
    /// Free ports with their last station.
    used: BTreeMap<u16, MacAddr>,
    by_mac: BTreeMap<MacAddr, u16>,
}

impl PortPool {
    pub(super) fn new(ports: &[u16]) -> PortPool {
        PortPool { fresh: ports.iter().copied().collect(), ..PortPool::default() }
    }

    /// Allocates a port for a station: its former one, else the lowest fresh one, else the lowest
    /// used one.
    pub(super) fn take(&mut self, mac: MacAddr) -> Option<u16> {
        if let Some(port) = self.by_mac.remove(&mac) {
            self.used.remove(&port);
            return Some(port);
        }
        self.fresh.pop_first().or_else(|| {
            let (port, last) = self.used.pop_first()?;
            self.by_mac.remove(&last);
            Some(port)
        })
    }

    pub(super) fn give_back(&mut self, port: u16, mac: MacAddr) {
        debug_assert!(!self.fresh.contains(&port) && !self.used.contains_key(&port), "port {port} is free already");
        self.used.insert(port, mac);
        if let Some(older) = self.by_mac.insert(mac, port) {
            self.used.remove(&older);
            self.fresh.insert(older);
        }
        debug_assert_eq!(self.used.len(), self.by_mac.len(), "a used port has one former station");
    }

    pub(super) fn free(&self) -> usize {
        self.fresh.len() + self.used.len()
    }
}
