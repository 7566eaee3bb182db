//! Allocation of the N_Port_IDs of one domain: [`AddressPool`].

use super::rscn::pop_if;
use crate::config::{Addressing, Policy};
use sanloom_scsi::time::Instant;
use sanloom_wire::{FcId, Wwpn};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// N_Port_IDs of one domain. Finding the lowest free one reads only a few words, however many are
/// in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AddressPool {
    addressing: Addressing,
    domain: Option<u8>,
    /// Addresses that no login uses.
    free: IdSet,
    /// Addresses that no login uses and that are neither persistent nor held.
    open: IdSet,
    /// Persistent address by port name. Addresses of other domains are included.
    persistent: BTreeMap<Wwpn, FcId>,
    /// Port name by persistent address.
    names: BTreeMap<FcId, Wwpn>,
    learn_addresses: bool,
    /// Addresses of ports that logged in at another switch, with the end of the hold. Until then
    /// other ports get such an address only if no other is free.
    held: BTreeMap<FcId, Instant>,
    /// Ends of holds in the order of insertion. If an address is held again, only its latest entry
    /// counts.
    hold_ends: VecDeque<(Instant, FcId)>,
    /// Areas of loops by port. Other ports get their addresses only if no other is free.
    loop_areas: BTreeMap<u16, u8>,
}

/// The kind of login that needs an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoginKind {
    /// FLOGI.
    Base,
    /// FDISC.
    Virtual,
    /// FLOGI of an NL_Port with this AL_PA.
    Loop(u8),
}

/// Address allocated to a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Allocated {
    pub(super) id: FcId,
    /// True if this allocation made the address persistent.
    pub(super) learned: bool,
}

impl AddressPool {
    /// Returns a pool without a domain, which allocates no address until
    /// [`set_domain`](Self::set_domain).
    pub(super) fn new(policy: &Policy) -> AddressPool {
        let mut pool = AddressPool {
            addressing: policy.addressing,
            domain: None,
            free: IdSet::full(),
            open: IdSet::full(),
            persistent: BTreeMap::new(),
            names: BTreeMap::new(),
            learn_addresses: policy.learn_addresses,
            held: BTreeMap::new(),
            hold_ends: VecDeque::new(),
            loop_areas: BTreeMap::new(),
        };
        for (&name, &id) in &policy.persistent {
            pool.keep(id, name);
        }
        pool
    }

    /// Changes the domain; all its addresses are free and no hold remains.
    pub(super) fn set_domain(&mut self, domain: Option<u8>) {
        self.domain = domain;
        (self.free, self.open) = (IdSet::full(), IdSet::full());
        self.held.clear();
        self.hold_ends.clear();
        self.loop_areas.clear();
        for id in self.names.keys().filter(|id| Some(id.domain()) == domain) {
            self.open.remove(low(*id));
        }
    }

    /// Allocates an address for a port.
    ///
    /// The AL_PA determines the address of an NL_Port. For other ports the order of preference is:
    /// the persistent address of its name, the `preferred` address, the lowest open address
    /// (neither persistent nor held), the lowest free address.
    pub(super) fn allocate(
        &mut self,
        now: Instant,
        port: u16,
        kind: LoginKind,
        name: Wwpn,
        preferred: Option<FcId>,
    ) -> Option<Allocated> {
        while let Some((end, id)) = pop_if(&mut self.hold_ends, |(end, _)| *end <= now) {
            if self.held.get(&id) == Some(&end) {
                self.held.remove(&id);
                self.open_if_free(id);
            }
        }
        let domain = self.domain?;
        if let LoginKind::Loop(al_pa) = kind {
            let id = FcId::from_parts(domain, self.loop_area(port)?, al_pa);
            let is_free = self.free.contains(low(id));
            self.free.remove(low(id));
            self.open.remove(low(id));
            return is_free.then_some(Allocated { id, learned: false });
        }
        let range = self.range(port, kind)?;
        let usable = |id: &FcId| id.domain() == domain && range.contains(&low(*id)) && self.free.contains(low(*id));
        let own = self.persistent.get(&name).copied().filter(usable);
        let preferred = preferred.filter(usable).filter(|id| self.open.contains(low(*id)));
        let chosen = own.or(preferred).map(low);
        let chosen = chosen.or_else(|| self.open.first(range.clone())).or_else(|| self.free.first(range))?;
        debug_assert!(self.free.contains(chosen), "address {chosen:#06x} of domain {domain} is allocated twice");
        let [area, byte] = chosen.to_be_bytes();
        let id = FcId::from_parts(domain, area, byte);
        let learned = self.learn_addresses
            && self.persistent.get(&name).is_none_or(|id| id.domain() != domain)
            && self.keep(id, name);
        self.free.remove(chosen);
        self.open.remove(chosen);
        Some(Allocated { id, learned })
    }

    /// Frees the address of a logout.
    pub(super) fn release(&mut self, id: FcId) {
        if Some(id.domain()) == self.domain {
            self.free.insert(low(id));
            self.open_if_free(id);
        }
    }

    /// Marks the address as open unless it is in use, persistent or held.
    fn open_if_free(&mut self, id: FcId) {
        let is_of_loop = self.loop_areas.values().any(|&area| area == id.area());
        let is_reserved = is_of_loop || self.names.contains_key(&id) || self.held.contains_key(&id);
        if self.free.contains(low(id)) && !is_reserved {
            self.open.insert(low(id));
        }
    }

    /// Holds an address until `until`: other ports get it before then only if no other address is
    /// free.
    ///
    /// The hold is needed because a switch that reports the new location of a port names the
    /// address and the port name, and may repeat the report. A repeated report would end the next
    /// login if the port had returned to the same address.
    pub(super) fn hold(&mut self, id: FcId, until: Instant) {
        if Some(id.domain()) == self.domain {
            self.open.remove(low(id));
            self.held.insert(id, until);
            self.hold_ends.push_back((until, id));
        }
    }

    /// Persistent addresses by port name, including those of other domains.
    pub(super) fn persistent(&self) -> &BTreeMap<Wwpn, FcId> {
        &self.persistent
    }

    /// Makes an address persistent for a name, unless it already is for another name. Returns true
    /// if it did.
    fn keep(&mut self, id: FcId, name: Wwpn) -> bool {
        if self.names.contains_key(&id) {
            return false;
        }
        if let Some(before) = self.persistent.insert(name, id) {
            self.names.remove(&before);
        }
        self.names.insert(id, name);
        debug_assert_eq!(self.names.len(), self.persistent.len(), "a name has one persistent address");
        true
    }

    fn range(&self, port: u16, kind: LoginKind) -> Option<RangeInclusive<u16>> {
        let area = match self.addressing {
            Addressing::Flat => return Some(0..=u16::MAX),
            Addressing::AreaPerPort => u8::try_from(port).ok()?,
        };
        let of_area = |byte| u16::from_be_bytes([area, byte]);
        Some(match kind {
            LoginKind::Base => of_area(0)..=of_area(0),
            LoginKind::Virtual => of_area(1)..=of_area(u8::MAX),
            LoginKind::Loop(al_pa) => of_area(al_pa)..=of_area(al_pa),
        })
    }

    /// Area of the loop at a port. With flat addresses the first login of a loop reserves the
    /// highest free area.
    fn loop_area(&mut self, port: u16) -> Option<u8> {
        if self.addressing == Addressing::AreaPerPort {
            return u8::try_from(port).ok();
        }
        if let Some(&area) = self.loop_areas.get(&port) {
            return Some(area);
        }
        let addresses = |area: u8| u16::from_be_bytes([area, 0])..=u16::from_be_bytes([area, u8::MAX]);
        let area = (0..=u8::MAX).rev().find(|&area| addresses(area).all(|address| self.open.contains(address)))?;
        addresses(area).for_each(|address| self.open.remove(address));
        self.loop_areas.insert(port, area);
        Some(area)
    }
}

/// Area and port byte, the low 16 bits of an N_Port_ID.
fn low(id: FcId) -> u16 {
    u16::from_be_bytes([id.area(), id.port()])
}

/// Set of 16-bit numbers that is nearly full.
///
/// One bit is stored for each missing number, up to the highest missing one. A summary bit per word
/// of 64 numbers is set while the word has a number in the set.
#[derive(Clone, PartialEq, Eq, Debug)]
struct IdSet {
    /// Bit set of the missing numbers; ends with the word of the highest one.
    missing: Vec<u64>,
    summary: [u64; 16],
}

impl IdSet {
    fn full() -> IdSet {
        IdSet { missing: Vec::new(), summary: [u64::MAX; 16] }
    }

    /// Bits of the numbers of a word that are in the set.
    fn present(&self, word: usize) -> u64 {
        !self.missing.get(word).copied().unwrap_or(0)
    }

    fn contains(&self, number: u16) -> bool {
        self.present(usize::from(number >> 6)) >> (number & 63) & 1 != 0
    }

    fn insert(&mut self, number: u16) {
        let word = usize::from(number >> 6);
        if let Some(bits) = self.missing.get_mut(word) {
            *bits &= !(1 << (number & 63));
            self.summary[word >> 6] |= 1 << (word & 63);
        }
        let used = self.missing.iter().rposition(|bits| *bits != 0).map_or(0, |last| last + 1);
        self.missing.truncate(used);
    }

    fn remove(&mut self, number: u16) {
        let word = usize::from(number >> 6);
        if word >= self.missing.len() {
            self.missing.resize(word + 1, 0);
        }
        self.missing[word] |= 1 << (number & 63);
        if self.missing[word] == u64::MAX {
            self.summary[word >> 6] &= !(1 << (word & 63));
        }
    }

    /// Lowest number of the set within a range.
    fn first(&self, range: RangeInclusive<u16>) -> Option<u16> {
        let (from, to) = (*range.start(), *range.end());
        let word = usize::from(from >> 6);
        let number = match self.present(word) & u64::MAX << (from & 63) {
            0 => {
                let word = self.next_word(word + 1)?;
                (word << 6) as u32 + self.present(word).trailing_zeros()
            }
            bits => (word << 6) as u32 + bits.trailing_zeros(),
        };
        u16::try_from(number).ok().filter(|found| *found <= to)
    }

    /// First word from `from` on with a number in the set.
    fn next_word(&self, from: usize) -> Option<usize> {
        let masked = |(word, bits): (usize, u64)| match word == from >> 6 {
            true => (word, bits & u64::MAX << (from & 63)),
            false => (word, bits),
        };
        let later = self.summary.iter().copied().enumerate().skip(from >> 6).map(masked);
        later.filter(|(_, bits)| *bits != 0).map(|(word, bits)| (word << 6) + bits.trailing_zeros() as usize).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_first_address_of_a_range_is_that_of_an_ordered_set(
            taken in prop::collection::vec(0u16..700, 0..600),
            given_back in prop::collection::vec(0u16..700, 0..100),
            from in 0u16..800,
            length in 0u16..300,
        ) {
            let (mut set, mut model) = (IdSet::full(), (0..=u16::MAX).collect::<BTreeSet<_>>());
            for number in taken {
                set.remove(number);
                model.remove(&number);
            }
            for number in given_back {
                set.insert(number);
                model.insert(number);
            }
            let range = from..=from + length;
            prop_assert_eq!(set.first(range.clone()), model.range(range).next().copied());
        }
    }

    fn flat(persistent: &[(u64, u32)], learn: bool) -> AddressPool {
        let mut pool = AddressPool::new(&Policy {
            addressing: Addressing::Flat,
            persistent: persistent.iter().map(|(name, id)| (Wwpn(*name), FcId::new(*id))).collect(),
            learn_addresses: learn,
            ..Policy::default()
        });
        pool.set_domain(Some(1));
        pool
    }

    fn allocate(pool: &mut AddressPool, name: u64) -> Option<u32> {
        pool.allocate(Instant::ZERO, 300, LoginKind::Virtual, Wwpn(name), None).map(|allocated| allocated.id.to_u32())
    }

    #[test]
    fn a_persistent_address_is_assigned_to_others_only_if_no_other_is_free() {
        let mut pool = flat(&[(7, 0x01_0000), (8, 0x02_0001)], false);
        assert_eq!(allocate(&mut pool, 1), Some(0x01_0001));
        // A persistent address of another domain has no effect.
        assert_eq!(allocate(&mut pool, 8), Some(0x01_0002));
        assert_eq!(allocate(&mut pool, 7), Some(0x01_0000));
        pool.release(FcId::new(0x01_0000));
        let all: Vec<_> = std::iter::from_fn(|| allocate(&mut pool, 1)).collect();
        assert_eq!((all.len(), all.last()), (0xfffe, Some(&0x01_0000)));
        assert_eq!(allocate(&mut pool, 7), None);
    }

    #[test]
    fn a_held_address_is_assigned_to_others_after_its_hold_or_if_no_other_is_free() {
        let mut pool = flat(&[], false);
        let until = Instant::from_ns(10);
        for name in 0..2 {
            allocate(&mut pool, name);
        }
        for id in [0x01_0000, 0x01_0001] {
            pool.release(FcId::new(id));
            pool.hold(FcId::new(id), until);
        }
        assert_eq!(allocate(&mut pool, 1), Some(0x01_0002));
        let all: Vec<_> = std::iter::from_fn(|| allocate(&mut pool, 1)).collect();
        assert_eq!((all.len(), &all[0xfffc..]), (0xffff, &[0x01_ffff, 0x01_0000, 0x01_0001][..]));
        // An address that was allocated during its hold is held again if it is released before the
        // hold ends.
        pool.release(FcId::new(0x01_0000));
        pool.release(FcId::new(0x01_0007));
        assert_eq!(allocate(&mut pool, 1), Some(0x01_0007));
        assert_eq!(allocate(&mut pool, 1), Some(0x01_0000));
        // An address still in use is not free when its hold ends.
        assert_eq!(pool.allocate(until, 300, LoginKind::Virtual, Wwpn(1), None), None);
        pool.release(FcId::new(0x01_0001));
        let again = pool.allocate(until, 300, LoginKind::Virtual, Wwpn(1), None);
        assert_eq!(again.map(|allocated| allocated.id), Some(FcId::new(0x01_0001)));
    }

    #[test]
    fn an_address_that_is_held_twice_is_held_until_the_later_end() {
        let mut pool = flat(&[], false);
        let id = FcId::new(0x01_0000);
        for (end, found) in [(10, 0x01_0001), (30, 0x01_0002)] {
            pool.hold(id, Instant::from_ns(end));
            assert_eq!(allocate(&mut pool, 1), Some(found));
        }
        let mut at =
            |now| pool.allocate(Instant::from_ns(now), 300, LoginKind::Virtual, Wwpn(1), None).unwrap().id.to_u32();
        assert_eq!([at(10), at(29), at(30)], [0x01_0003, 0x01_0004, 0x01_0000]);
    }

    #[test]
    fn a_learned_address_is_assigned_again_and_an_emptied_pool_equals_a_new_one() {
        let mut pool = flat(&[], true);
        let first = pool.allocate(Instant::ZERO, 0, LoginKind::Base, Wwpn(5), None).unwrap();
        assert!(first.learned);
        pool.release(first.id);
        assert_eq!(allocate(&mut pool, 6), Some(0x01_0001));
        assert_eq!(
            pool.allocate(Instant::ZERO, 0, LoginKind::Base, Wwpn(5), None),
            Some(Allocated { learned: false, ..first })
        );
        let names: Vec<_> = pool.persistent().iter().map(|(name, id)| (name.0, id.to_u32())).collect();
        assert_eq!(names, [(5, 0x01_0000), (6, 0x01_0001)]);

        let (mut pool, fresh) = (flat(&[(7, 0x01_0003)], false), flat(&[(7, 0x01_0003)], false));
        let ids: Vec<_> = (0..100).filter_map(|name| allocate(&mut pool, name)).collect();
        ids.into_iter().for_each(|id| pool.release(FcId::new(id)));
        assert_eq!(pool, fresh);
    }
}
