//! The ports of a switch that virtual links can have: [`PortPool`].

use sanloom_wire::ether::MacAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers that are free, and who had them last: a station that comes back gets its old port while nobody needed it.
#[derive(Debug, Default)]
pub(super) struct PortPool {
    /// Free and never used, or forgotten.
    fresh: BTreeSet<u16>,
    /// Free, with the station that had it.
    used: BTreeMap<u16, MacAddr>,
    by_mac: BTreeMap<MacAddr, u16>,
}

impl PortPool {
    pub(super) fn new(ports: &[u16]) -> PortPool {
        PortPool { fresh: ports.iter().copied().collect(), ..PortPool::default() }
    }

    /// The port for a station: its old one, else the lowest that nobody had, else the lowest.
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
        self.used.insert(port, mac);
        if let Some(older) = self.by_mac.insert(mac, port) {
            self.used.remove(&older);
            self.fresh.insert(older);
        }
    }

    pub(super) fn free(&self) -> usize {
        self.fresh.len() + self.used.len()
    }
}
