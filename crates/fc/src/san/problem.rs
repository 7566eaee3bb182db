//! Problems of a lab and their places.

use std::fmt;

/// Error or advice about a lab, described for the person who can correct it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Kind of problem.
    pub kind: ProblemKind,
    /// Place in the lab.
    pub place: Place,
    /// Description as one sentence without a full stop.
    pub reason: String,
    /// Suggested correction.
    pub remedy: String,
}

/// Value in the lab: an element of a section, and optionally one of its keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// List of [`super::Lab`] that contains the element.
    pub section: Section,
    /// Index in that list; 0 for sections that are not lists.
    pub index: usize,
    /// Key in the spelling of the lab file; empty for the whole element.
    pub key: &'static str,
}

impl Place {
    /// Place of a whole element.
    pub const fn of(section: Section, index: usize) -> Place {
        Place { section, index, key: "" }
    }
    /// Place of one key of the element.
    pub const fn key(self, key: &'static str) -> Place {
        Place { key, ..self }
    }
}

/// Section of a lab.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)] // named after the fields of `Lab`
pub enum Section {
    Lab,
    Run,
    Timers,
    Switch,
    Host,
    Storage,
    Loop,
    Link,
    EthernetSwitch,
    EthernetLink,
    InfinibandSwitch,
    InfinibandLink,
    Subnet,
    Zone,
    Workload,
    Fault,
    Change,
    Expectation,
}

macro_rules! problem_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// Kinds of problems found by [`super::Lab::validate`] and [`super::Lab::advice`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ProblemKind { $($(#[$doc])* $kind,)* }

        impl ProblemKind {
            /// All kinds.
            pub const ALL: &'static [ProblemKind] = &[$(ProblemKind::$kind,)*];

            /// Stable identifier for scripts.
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
    /// The hypervisor of a virtual machine is missing or is a virtual machine itself.
    BadHypervisor = "bad-hypervisor",
    /// A host that uses its own names or addresses as those of another.
    OwnIdentity = "own-identity",
    /// A link joins nodes that cannot be linked.
    BadLink = "bad-link",
    /// A switch cannot have the virtual channels that its settings need.
    NoChannels = "no-virtual-channels",
    /// A link has a rate that a switch at its end does not support.
    RateNotSupported = "rate-not-supported",
    /// A loop has too few or too many ports, or no rate of its own.
    BadLoop = "bad-loop",
    /// Links of one bundle differ in rate or ends.
    BadBundle = "bad-bundle",
    /// Two switches of one chassis have the same virtual fabric.
    DuplicateFabric = "duplicate-virtual-fabric",
    /// Two virtual fabrics own the same port of a chassis.
    PortInTwoFabrics = "port-in-two-fabrics",
    /// A link or a zone would join different virtual fabrics.
    AcrossFabrics = "across-virtual-fabrics",
    /// No switch belongs to the named virtual fabric.
    UnknownFabric = "unknown-virtual-fabric",
    /// The lab has more nodes or links than sanloom supports.
    TooLarge = "too-large",
    /// A number is outside its range.
    BadNumber = "bad-number",
    /// A time is outside its range.
    BadTime = "bad-time",
    /// A size is not a multiple of its unit, or does not fit.
    BadSize = "bad-size",
    /// Times contradict each other.
    TimeOrder = "time-order",
    /// A fault is outside the run.
    FaultOutsideRun = "fault-outside-run",
    /// A link comes up that was not down.
    LinkNotDown = "link-not-down",
    /// A fault of a disk or cache that the storage system does not have.
    NoDisk = "no-such-disk",
    /// A workload has no hosts or targets, or names a LUN that does not exist.
    NoTarget = "no-target",
    /// A workload's host has no path to its storage.
    Unreachable = "unreachable-storage",
    /// A workload's host has a path to its storage, but no zone permits it.
    NotZoned = "not-zoned",
    /// A workload's host has a path to its storage, but masks hide the LUN.
    Masked = "masked-lun",
    /// A workload uses a virtual disk for which its pool has no room.
    PoolFull = "pool-full",
    /// A bound cannot be satisfied, or is missing.
    BadExpectation = "bad-expectation",
    /// A zone has no members.
    EmptyZone = "empty-zone",
    /// Advice: a node has no link.
    Unconnected = "unconnected",
    /// Advice: there is no workload.
    NoWorkload = "no-workload",
    /// Advice: a link has too few credits for its length.
    FewCredits = "few-credits",
    /// InfiniBand links do not form one subnet.
    SplitSubnet = "split-subnet",
    /// Advice: the subnet manager cannot route the subnet with the engine of the lab, or the engine
    /// leaves interfaces without a path.
    RefusedRouting = "refused-routing",
    /// Advice: root switches of a routing engine that has none.
    UnusedRoots = "unused-roots",
    /// Advice: packets of a service level in use never leave a port, because their lane has no
    /// weight there or does not exist.
    StarvedLane = "starved-lane",
    /// Advice: the headroom of an Ethernet switch does not cover what arrives after a pause.
    SmallHeadroom = "small-headroom",
    /// Advice: the queue of an Ethernet port has room for few frames.
    SmallMemory = "small-memory",
    /// Advice: a priority is lossless at one end of an Ethernet link only.
    PauseMismatch = "pause-mismatch",
    /// Advice: a priority in use has no share of the line beside priorities with shares.
    MissingShare = "missing-share",
    /// Advice: FCoE crosses a switch or adapter that does not treat it as lossless traffic with a
    /// share of its own.
    LossyFcoe = "lossy-fcoe",
    /// Advice: a host uses DCTCP, and no switch marks frames.
    NoMarks = "no-marks",
    /// Advice: the window of TCP is smaller than the bytes that a path holds.
    SmallWindow = "small-window",
    /// Advice: one end of a session retransmits before the other acknowledges.
    EarlyTimeout = "early-timeout",
    /// An initiator requires digests that its target refuses, or the other way round.
    UnlikeDigests = "unlike-digests",
    /// Advice: two storage systems have one IP address on one Ethernet.
    DuplicateAddress = "duplicate-address",
    /// Advice: a key of a virtual link that has no effect, because Ethernet carries its frames.
    UnusedKey = "unused-key",
    /// Advice: a host has costs of a fabric to which it has no link.
    UnusedCost = "unused-cost",
    /// Advice: a zone has a priority, but no link has virtual channels.
    UnusedPriority = "unused-priority",
    /// Switches of one fabric differ in settings that must be equal.
    UnlikeSwitches = "unlike-switches",
    /// Advice: a link between switches will be isolated.
    IsolatedLink = "isolated-link",
    /// Advice: more ports need to log in than a limit permits.
    TooManyLogins = "too-many-logins",
    /// Advice: a zone permits nothing.
    IdleZone = "idle-zone",
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
