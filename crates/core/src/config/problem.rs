//! What is wrong with a lab, and where.

/// A mistake in a lab, for a person who can mend it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What is wrong, in one sentence without a full stop.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// A value of the lab: an element of a section, and a key of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Which list of [`super::Lab`].
    pub section: Section,
    /// Index in that list; 0 for sections that are no list.
    pub index: usize,
    /// Key as the lab file spells it; empty for the element as a whole.
    pub key: &'static str,
}

/// A part of a lab.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)] // named after the fields of `Lab`
pub enum Section {
    Lab,
    Run,
    Timers,
    Switch,
    Host,
    Storage,
    Link,
    Zone,
    Workload,
    Fault,
    Expectation,
}
