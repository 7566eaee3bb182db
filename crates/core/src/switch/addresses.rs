//! Which addresses of a domain are free, and who gets which: [`AddressPool`].

use super::policy::{Addressing, Policy};
use super::rscn::pop_if;
use crate::time::Instant;
use sanloom_wire::{FcId, Wwpn};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// The addresses of a domain. Finding the lowest free one takes a few words, however many are taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AddressPool {
    addressing: Addressing,
    domain: Option<u8>,
    /// Nobody has it.
    free: IdSet,
    /// Nobody has it, and it is kept for nobody.
    open: IdSet,
    /// Persistent addresses, of any domain.
    kept_for: BTreeMap<Wwpn, FcId>,
    /// Port name by persistent address.
    kept: BTreeMap<FcId, Wwpn>,
    learn: bool,
    /// Addresses whose ports have gone to another switch, and until when they are kept for nobody else.
    held: BTreeMap<FcId, Instant>,
    /// When holds end; of an address that is held again, the last one counts.
    hold_ends: VecDeque<(Instant, FcId)>,
}

/// What a port asks an address for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// A FLOGI.
    Base,
    /// An FDISC.
    Virtual,
}

/// An address that a port got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    pub(super) id: FcId,
    /// It is persistent from now on.
    pub(super) learned: bool,
}

impl AddressPool {
    /// The addresses of no domain: nobody gets one.
    pub(super) fn new(policy: &Policy) -> AddressPool {
        let mut pool = AddressPool {
            addressing: policy.addressing,
            domain: None,
            free: IdSet::full(),
            open: IdSet::full(),
            kept_for: BTreeMap::new(),
            kept: BTreeMap::new(),
            learn: policy.learn_addresses,
            held: BTreeMap::new(),
            hold_ends: VecDeque::new(),
        };
        for (&name, &id) in &policy.persistent {
            pool.keep(id, name);
        }
        pool
    }

    /// All addresses of another domain, none of them taken.
    pub(super) fn set_domain(&mut self, domain: Option<u8>) {
        self.domain = domain;
        (self.free, self.open) = (IdSet::full(), IdSet::full());
        self.held.clear();
        self.hold_ends.clear();
        for id in self.kept.keys().filter(|id| Some(id.domain()) == domain) {
            self.open.remove(low(*id));
        }
    }

    /// An address for a port: the one that is kept for its name, else the preferred one, else the lowest that is kept for
    /// nobody, else the lowest.
    pub(super) fn take(
        &mut self,
        now: Instant,
        port: u16,
        wanted: Wanted,
        name: Wwpn,
        preferred: Option<FcId>,
    ) -> Option<Taken> {
        while let Some((end, id)) = pop_if(&mut self.hold_ends, |(end, _)| *end <= now) {
            if self.held.get(&id) == Some(&end) {
                self.held.remove(&id);
                self.open_if_free(id);
            }
        }
        let domain = self.domain?;
        let range = self.range(port, wanted)?;
        let usable = |id: &FcId| id.domain() == domain && range.contains(&low(*id)) && self.free.contains(low(*id));
        let own = self.kept_for.get(&name).copied().filter(usable);
        let preferred = preferred.filter(usable).filter(|id| self.open.contains(low(*id)));
        let chosen = own.or(preferred).map(low);
        let chosen = chosen.or_else(|| self.open.first(range.clone())).or_else(|| self.free.first(range))?;
        let [area, byte] = chosen.to_be_bytes();
        let id = FcId::from_parts(domain, area, byte);
        let learned =
            self.learn && self.kept_for.get(&name).is_none_or(|id| id.domain() != domain) && self.keep(id, name);
        self.free.remove(chosen);
        self.open.remove(chosen);
        Some(Taken { id, learned })
    }

    /// Somebody has left an address.
    pub(super) fn release(&mut self, id: FcId) {
        if Some(id.domain()) == self.domain {
            self.free.insert(low(id));
            self.open_if_free(id);
        }
    }

    /// Everybody may have the address, unless somebody has it or it is kept or held.
    fn open_if_free(&mut self, id: FcId) {
        if self.free.contains(low(id)) && !self.kept.contains_key(&id) && !self.held.contains_key(&id) {
            self.open.insert(low(id));
        }
    }

    /// Nobody gets the address before then if there is another one, though it is free.
    ///
    /// Who says that the port of an address is elsewhere now names the address and the port, and may say it again: it would
    /// end the next login, should the port have come back to the same address.
    pub(super) fn hold(&mut self, id: FcId, until: Instant) {
        if Some(id.domain()) == self.domain {
            self.open.remove(low(id));
            self.held.insert(id, until);
            self.hold_ends.push_back((until, id));
        }
    }

    /// Persistent addresses by port name, those of other domains among them.
    pub(super) fn persistent(&self) -> &BTreeMap<Wwpn, FcId> {
        &self.kept_for
    }

    /// Keeps an address for a name, unless it is kept for another.
    fn keep(&mut self, id: FcId, name: Wwpn) -> bool {
        if self.kept.contains_key(&id) {
            return false;
        }
        if let Some(before) = self.kept_for.insert(name, id) {
            self.kept.remove(&before);
        }
        self.kept.insert(id, name);
        true
    }

    fn range(&self, port: u16, wanted: Wanted) -> Option<RangeInclusive<u16>> {
        let area = match self.addressing {
            Addressing::Flat => return Some(0..=u16::MAX),
            Addressing::AreaPerPort => u8::try_from(port).ok()?,
        };
        let of_area = |byte| u16::from_be_bytes([area, byte]);
        Some(match wanted {
            Wanted::Base => of_area(0)..=of_area(0),
            Wanted::Virtual => of_area(1)..=of_area(u8::MAX),
        })
    }
}

/// Area and port byte.
fn low(id: FcId) -> u16 {
    u16::from_be_bytes([id.area(), id.port()])
}

/// A set of 16-bit numbers that lacks few of them: a bit for each that it lacks, up to the highest, and a bit for each word
/// of 64 numbers of which it has one.
#[derive(Clone, PartialEq, Eq, Debug)]
struct IdSet {
    /// As many words as there are up to the highest number that is missing.
    missing: Vec<u64>,
    summary: [u64; 16],
}

impl IdSet {
    fn full() -> IdSet {
        IdSet { missing: Vec::new(), summary: [u64::MAX; 16] }
    }

    /// The numbers of a word that are in the set.
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

    /// The lowest number of a range.
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

    /// The first word from `from` on that has a number.
    fn next_word(&self, from: usize) -> Option<usize> {
        let masked = |(place, bits): (usize, u64)| match place == from >> 6 {
            true => (place, bits & u64::MAX << (from & 63)),
            false => (place, bits),
        };
        let later = self.summary.iter().copied().enumerate().skip(from >> 6).map(masked);
        later.filter(|(_, bits)| *bits != 0).map(|(place, bits)| (place << 6) + bits.trailing_zeros() as usize).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_first_of_a_range_is_that_of_an_ordered_set(
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

    fn take(pool: &mut AddressPool, name: u64) -> Option<u32> {
        pool.take(Instant::ZERO, 300, Wanted::Virtual, Wwpn(name), None).map(|taken| taken.id.to_u32())
    }

    #[test]
    fn a_kept_address_goes_to_others_only_when_nothing_else_is_free() {
        let mut pool = flat(&[(7, 0x01_0000), (8, 0x02_0001)], false);
        assert_eq!(take(&mut pool, 1), Some(0x01_0001));
        // That of another domain is of no use.
        assert_eq!(take(&mut pool, 8), Some(0x01_0002));
        assert_eq!(take(&mut pool, 7), Some(0x01_0000));
        pool.release(FcId::new(0x01_0000));
        let all: Vec<_> = std::iter::from_fn(|| take(&mut pool, 1)).collect();
        assert_eq!((all.len(), all.last()), (0xfffe, Some(&0x01_0000)));
        assert_eq!(take(&mut pool, 7), None);
    }

    #[test]
    fn an_address_that_is_held_goes_to_others_later_or_when_nothing_else_is_free() {
        let mut pool = flat(&[], false);
        let until = Instant::from_ns(10);
        for name in 0..2 {
            take(&mut pool, name);
        }
        for id in [0x01_0000, 0x01_0001] {
            pool.release(FcId::new(id));
            pool.hold(FcId::new(id), until);
        }
        assert_eq!(take(&mut pool, 1), Some(0x01_0002));
        let all: Vec<_> = std::iter::from_fn(|| take(&mut pool, 1)).collect();
        assert_eq!((all.len(), &all[0xfffc..]), (0xffff, &[0x01_ffff, 0x01_0000, 0x01_0001][..]));
        // One that was given all the same and comes back before its time is over is held on.
        pool.release(FcId::new(0x01_0000));
        pool.release(FcId::new(0x01_0007));
        assert_eq!(take(&mut pool, 1), Some(0x01_0007));
        assert_eq!(take(&mut pool, 1), Some(0x01_0000));
        // One that is not given back is not free when its time is over.
        assert_eq!(pool.take(until, 300, Wanted::Virtual, Wwpn(1), None), None);
        pool.release(FcId::new(0x01_0001));
        let again = pool.take(until, 300, Wanted::Virtual, Wwpn(1), None);
        assert_eq!(again.map(|taken| taken.id), Some(FcId::new(0x01_0001)));
    }

    #[test]
    fn an_address_that_is_held_twice_is_held_until_the_later_end() {
        let mut pool = flat(&[], false);
        let id = FcId::new(0x01_0000);
        for (end, found) in [(10, 0x01_0001), (30, 0x01_0002)] {
            pool.hold(id, Instant::from_ns(end));
            assert_eq!(take(&mut pool, 1), Some(found));
        }
        let mut at = |now| pool.take(Instant::from_ns(now), 300, Wanted::Virtual, Wwpn(1), None).unwrap().id.to_u32();
        assert_eq!([at(10), at(29), at(30)], [0x01_0003, 0x01_0004, 0x01_0000]);
    }

    #[test]
    fn a_learned_address_comes_again_and_an_emptied_pool_is_as_it_was() {
        let mut pool = flat(&[], true);
        let first = pool.take(Instant::ZERO, 0, Wanted::Base, Wwpn(5), None).unwrap();
        assert!(first.learned);
        pool.release(first.id);
        assert_eq!(take(&mut pool, 6), Some(0x01_0001));
        assert_eq!(pool.take(Instant::ZERO, 0, Wanted::Base, Wwpn(5), None), Some(Taken { learned: false, ..first }));
        let names: Vec<_> = pool.persistent().iter().map(|(name, id)| (name.0, id.to_u32())).collect();
        assert_eq!(names, [(5, 0x01_0000), (6, 0x01_0001)]);

        let (mut pool, fresh) = (flat(&[(7, 0x01_0003)], false), flat(&[(7, 0x01_0003)], false));
        let ids: Vec<_> = (0..100).filter_map(|name| take(&mut pool, name)).collect();
        ids.into_iter().for_each(|id| pool.release(FcId::new(id)));
        assert_eq!(pool, fresh);
    }
}
