//! What is wrong with a lab, and where.

use std::fmt;

/// A mistake in a lab, for a person who can mend it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// What sort of mistake.
    pub kind: ProblemKind,
    /// Where.
    pub place: Place,
    /// What is wrong, in one sentence without a full stop.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// A value of the lab: an element of a section, and a key of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Which list of [`super::Lab`].
    pub section: Section,
    /// Index in that list; 0 for sections that are no list.
    pub index: usize,
    /// Key as the lab file spells it; empty for the element as a whole.
    pub key: &'static str,
}

impl Place {
    /// The element as a whole.
    pub const fn of(section: Section, index: usize) -> Place {
        Place { section, index, key: "" }
    }
    /// One key of the element.
    pub const fn key(self, key: &'static str) -> Place {
        Place { key, ..self }
    }
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
    Change,
    Expectation,
}

macro_rules! problem_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The sorts of mistakes that [`super::Lab::validate`] and [`super::Lab::advice`] find.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ProblemKind { $($(#[$doc])* $kind,)* }

        impl ProblemKind {
            /// Every sort.
            pub const ALL: &'static [ProblemKind] = &[$(ProblemKind::$kind,)*];

            /// A short fixed name, for machines.
            pub const fn name(self) -> &'static str {
                match self { $(ProblemKind::$kind => $name,)* }
            }
        }
    };
}

problem_kinds! {
    /// Two elements have the same name.
    DuplicateName = "duplicate-name",
    /// Two switches have the same domain.
    DuplicateDomain = "duplicate-domain",
    /// Two ports have the same port name, or a port name is zero.
    DuplicateWwn = "duplicate-wwn",
    /// Two links end at one port.
    PortUsedTwice = "port-used-twice",
    /// A link ends at a port that its node does not have.
    NoSuchPort = "no-such-port",
    /// A virtual machine on what is no host that could carry it.
    BadHypervisor = "bad-hypervisor",
    /// A link that joins what cannot be joined.
    BadLink = "bad-link",
    /// Links of one bundle that differ in rate or ends.
    BadBundle = "bad-bundle",
    /// Two switches of one chassis have the same virtual fabric.
    DuplicateFabric = "duplicate-virtual-fabric",
    /// A port of a chassis that two virtual fabrics have.
    PortInTwoFabrics = "port-in-two-fabrics",
    /// A link or a zone that would join virtual fabrics.
    AcrossFabrics = "across-virtual-fabrics",
    /// A virtual fabric that no switch is of.
    UnknownFabric = "unknown-virtual-fabric",
    /// More nodes or links than sanloom handles.
    TooLarge = "too-large",
    /// A number outside its range.
    BadNumber = "bad-number",
    /// A length of time outside its range.
    BadTime = "bad-time",
    /// A size that is no multiple of what it must be, or does not fit.
    BadSize = "bad-size",
    /// Times that contradict each other.
    TimeOrder = "time-order",
    /// A fault outside the run.
    FaultOutsideRun = "fault-outside-run",
    /// A link comes up that never went down.
    LinkNotDown = "link-not-down",
    /// A workload without hosts or targets, or that names a LUN that does not exist.
    NoTarget = "no-target",
    /// A workload's host has no path to its storage.
    Unreachable = "unreachable-storage",
    /// A workload's host has a path to its storage but no zone that allows it.
    NotZoned = "not-zoned",
    /// A bound that nothing can satisfy, or no bound at all.
    BadExpectation = "bad-expectation",
    /// A zone without members.
    EmptyZone = "empty-zone",
    /// Advice: a node without a link.
    Unconnected = "unconnected",
    /// Advice: nothing to do.
    NoWorkload = "no-workload",
    /// Advice: too few credits for the length of a link.
    FewCredits = "few-credits",
    /// Switches of one fabric that differ in what must be the same.
    UnlikeSwitches = "unlike-switches",
    /// Advice: a link between switches that will carry no traffic.
    IsolatedLink = "isolated-link",
    /// Advice: more ports than may log in.
    TooManyLogins = "too-many-logins",
    /// Advice: a zone that permits nothing.
    IdleZone = "idle-zone",
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
