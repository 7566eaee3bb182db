//! Set of domains in four words: [`DomainSet`].

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct DomainSet([u64; 4]);

impl DomainSet {
    pub(super) fn insert(&mut self, domain: u8) {
        self.0[usize::from(domain) / 64] |= 1 << (domain % 64);
    }

    pub(super) fn remove(&mut self, domain: u8) {
        self.0[usize::from(domain) / 64] &= !(1 << (domain % 64));
    }

    pub(super) fn has(&self, domain: u8) -> bool {
        self.0[usize::from(domain) / 64] >> (domain % 64) & 1 != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub(super) fn add(&mut self, other: DomainSet) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    /// Domains in ascending order.
    pub(super) fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |domain| self.has(*domain))
    }
}
