//! Partitions: P_Key tables of ports, and the check of each packet (IBA volume 1, 10.9).

use super::fabric::PortId;
use std::collections::BTreeMap;

/// P_Key: 15 bits of partition number, and the membership in bit 15.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PKey(pub u16);

/// Kind of membership of a port in a partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Membership {
    /// Communicates with full members only.
    Limited,
    /// Communicates with all members.
    Full,
}

impl PKey {
    /// Full member of the default partition.
    pub const DEFAULT: PKey = PKey(0xFFFF);

    /// Key of a partition number, of which the low 15 bits count.
    pub const fn new(number: u16, membership: Membership) -> PKey {
        match membership {
            Membership::Limited => PKey(number & 0x7FFF),
            Membership::Full => PKey(number | 0x8000),
        }
    }

    /// Number of the partition: 15 bits.
    pub const fn number(self) -> u16 {
        self.0 & 0x7FFF
    }

    /// Membership in the partition.
    pub const fn membership(self) -> Membership {
        if self.0 & 0x8000 == 0 { Membership::Limited } else { Membership::Full }
    }

    /// False for number 0, which no partition has.
    pub const fn is_valid(self) -> bool {
        self.number() != 0
    }

    /// True if a packet with key `self` matches a table entry: the numbers are equal, and at least
    /// one of the two is a full member (IBA volume 1, 10.9.3).
    pub fn matches(self, entry: PKey) -> bool {
        let full = self.membership() == Membership::Full || entry.membership() == Membership::Full;
        self.is_valid() && self.number() == entry.number() && full
    }
}

/// P_Key table of a port.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PKeyTable {
    keys: Vec<PKey>,
}

impl PKeyTable {
    /// Keys in the order in which the port joined.
    pub fn keys(&self) -> &[PKey] {
        &self.keys
    }

    /// Adds a key. Full membership replaces limited membership of one partition, and remains.
    pub fn join(&mut self, key: PKey) {
        if !key.is_valid() {
            return;
        }
        match self.keys.iter_mut().find(|present| present.number() == key.number()) {
            Some(present) => present.0 |= key.0,
            None => self.keys.push(key),
        }
    }

    /// True if the port accepts a packet with this key.
    pub fn accepts(&self, key: PKey) -> bool {
        self.keys.iter().any(|entry| key.matches(*entry))
    }
}

/// P_Key tables of all end ports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Partitions {
    tables: BTreeMap<PortId, PKeyTable>,
}

impl Partitions {
    /// Adds a port to a partition.
    pub fn join(&mut self, port: PortId, key: PKey) {
        self.tables.entry(port).or_default().join(key);
    }

    /// Table of a port; empty if the port has joined no partition.
    pub fn table(&self, port: PortId) -> PKeyTable {
        self.tables.get(&port).cloned().unwrap_or_default()
    }

    /// Keys with which `a` can send to `b`, and `b` to `a`.
    pub fn common(&self, a: PortId, b: PortId) -> Vec<PKey> {
        let (from, to) = (self.table(a), self.table(b));
        from.keys.into_iter().filter(|key| to.accepts(*key)).collect()
    }
}
