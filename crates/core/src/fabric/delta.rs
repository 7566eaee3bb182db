//! What goes into the forwarding table and what comes out of it.

use sanloom_wire::FcId;

/// What a switch does with a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Decision {
    /// It leaves through this egress.
    Forward(Egress),
    /// It is for a service of this switch.
    Local,
    /// It is discarded, and counted by reason.
    Drop(DropReason),
}

/// Where a frame leaves a switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Egress {
    /// Through this port.
    Port(u16),
    /// Through the bundle of this number: the driver picks a member port frame by frame and keeps the order.
    Bundle(u16),
    /// Through a leg of this spray group ([`super::Fib::spray_members`]): the driver takes the legs in turn, frame by
    /// frame, and frames may overtake each other.
    Spray(u16),
}

/// Why a frame is discarded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// The S_ID was not given to the F_Port that the frame came in through.
    BadSourceId,
    /// No path to the domain of the D_ID, or only back where the frame came from.
    NoRoute,
    /// The D_ID is of this domain, but no port has it.
    UnknownDestination,
    /// Hard zoning: S_ID and D_ID have no zone in common.
    ZoneDenied,
    /// The port that the frame came in through is down.
    PortDown,
}

impl DropReason {
    /// Every reason, in the order of their numbers as `usize`.
    pub const ALL: [DropReason; 5] = [
        DropReason::BadSourceId,
        DropReason::NoRoute,
        DropReason::UnknownDestination,
        DropReason::ZoneDenied,
        DropReason::PortDown,
    ];

    /// A name for results, lower case with underscores.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::BadSourceId => "bad_source_id",
            DropReason::NoRoute => "no_route",
            DropReason::UnknownDestination => "unknown_destination",
            DropReason::ZoneDenied => "zone_denied",
            DropReason::PortDown => "port_down",
        }
    }
}

/// One of several equal-cost ways towards a domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Leg {
    /// A single ISL, by local port.
    Port(u16),
    /// A bundle of ISLs, by number: one leg, however many links it has.
    Bundle(u16),
}

/// What a port is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PortMode {
    /// N_Ports: the S_ID of every frame is checked.
    F,
    /// Another switch.
    E,
    /// Another switch that is not part of the fabric, or not yet: only the fabric controllers at both ends hear each other.
    Isolated,
    /// Nothing: frames that still arrive are discarded.
    Down,
}

/// One change of the forwarding table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FibDelta {
    /// The port is used so from now on.
    PortMode {
        /// The port.
        port: u16,
        /// Its use.
        mode: PortMode,
    },
    /// The id belongs to the port: frames to it leave there, frames from it may enter there. An id of another domain is
    /// not taken.
    OwnId {
        /// The port.
        port: u16,
        /// An id of this domain.
        id: FcId,
    },
    /// The id belongs to no port. Its permissions are taken away one by one, by [`FibDelta::Revoke`].
    RemoveId {
        /// An id of this domain.
        id: FcId,
    },
    /// Frames from `s` to `d` pass hard zoning. Needed only in the switch that owns `d`.
    Permit {
        /// S_ID.
        s: FcId,
        /// D_ID.
        d: FcId,
    },
    /// They pass no more.
    Revoke {
        /// S_ID.
        s: FcId,
        /// D_ID.
        d: FcId,
    },
    /// The id is in the open default zone: it may talk to every other id there. One entry per id instead of one per pair.
    JoinDefaultZone {
        /// The id, of any domain.
        id: FcId,
    },
    /// It is there no more.
    LeaveDefaultZone {
        /// The id.
        id: FcId,
    },
    /// The switch has this domain from now on, or none. The ids of the old one belong to no port; their permissions are
    /// taken away one by one.
    Domain {
        /// The domain.
        domain: Option<u8>,
    },
    /// Hard zoning checks every frame to an id of this domain.
    ZoningOn,
    /// Hard zoning checks nothing and its tables are gone: nothing is zoned and the default zone is open.
    ZoningOff,
    /// Frames to the domain leave by these legs; none: it is unreachable.
    Routes {
        /// The destination domain.
        domain: u8,
        /// Equal-cost legs, sorted by port number.
        legs: Vec<Leg>,
    },
}
