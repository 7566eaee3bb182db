//! Results and changes of the forwarding table.

use sanloom_wire::FcId;

/// Forwarding decision for a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Decision {
    /// The frame leaves through this egress.
    Forward(Egress),
    /// The frame is addressed to a service of this switch.
    Local,
    /// The frame is discarded and counted by reason.
    Drop(DropReason),
}

/// Egress of a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Egress {
    /// Switch port number.
    Port(u16),
    /// Bundle number. The driver selects a member port for each frame and preserves the order.
    Bundle(u16),
    /// Number of a spray group ([`super::Fib::spray_members`]). The driver selects a leg for each
    /// frame, in turn or by load, and frames may overtake each other.
    Spray(u16),
}

named_variants! {
    /// Reason why a frame is discarded.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum DropReason {
        /// The S_ID does not belong to the F_Port at which the frame entered.
        BadSourceId => "bad_source_id",
        /// There is no path to the domain of the D_ID, or only back over the ingress leg.
        NoRoute => "no_route",
        /// The D_ID is in this domain, but no port owns it.
        UnknownDestination => "unknown_destination",
        /// Hard zoning: S_ID and D_ID share no zone.
        ZoneDenied => "zone_denied",
        /// The ingress port is down.
        PortDown => "port_down",
    }
}

/// One of several equal-cost paths towards a domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Leg {
    /// A single ISL, by local port.
    Port(u16),
    /// A bundle of ISLs, by number; one leg regardless of its number of links.
    Bundle(u16),
}

/// Use of a switch port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PortMode {
    /// N_Ports; the S_ID of every frame is checked.
    F,
    /// Another switch.
    E,
    /// Another switch that is not, or not yet, part of the fabric. Only frames between the fabric
    /// controllers of both ends pass.
    Isolated,
    /// Unused; frames that still arrive are discarded.
    Down,
}

/// Single change of the forwarding table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FibDelta {
    /// Sets the use of a port.
    PortMode {
        /// Switch port number.
        port: u16,
        /// New use of the port.
        mode: PortMode,
    },
    /// Sets whether a port of mode F is the FL_Port of a loop, at which FLOGI comes from 0000xx.
    LoopPort {
        /// Switch port number.
        port: u16,
        /// True for an FL_Port.
        is_loop: bool,
    },
    /// Assigns an N_Port_ID to a port: frames to it leave there, and frames from it may enter
    /// there. An N_Port_ID of another domain is ignored.
    OwnId {
        /// Switch port number.
        port: u16,
        /// N_Port_ID in this domain.
        id: FcId,
    },
    /// Removes the owner of an N_Port_ID. Its permissions are removed individually by
    /// [`FibDelta::Revoke`].
    RemoveId {
        /// N_Port_ID in this domain.
        id: FcId,
    },
    /// Permits frames from `s` to `d` in hard zoning. Needed only in the switch that owns `d`.
    Permit {
        /// S_ID.
        s: FcId,
        /// D_ID.
        d: FcId,
    },
    /// Revokes a permission.
    Revoke {
        /// S_ID.
        s: FcId,
        /// D_ID.
        d: FcId,
    },
    /// Adds an N_Port_ID to the open default zone, in which all may communicate. This takes one
    /// entry per N_Port_ID instead of one per pair.
    JoinDefaultZone {
        /// N_Port_ID of any domain.
        id: FcId,
    },
    /// Removes an N_Port_ID from the default zone.
    LeaveDefaultZone {
        /// N_Port_ID to remove.
        id: FcId,
    },
    /// Sets or clears the domain of the switch. N_Port_IDs of the old domain lose their owner;
    /// their permissions are removed individually.
    Domain {
        /// New domain, or `None`.
        domain: Option<u8>,
    },
    /// Enables hard zoning for every frame to an N_Port_ID of this domain.
    ZoningOn,
    /// Disables hard zoning and clears its tables: nothing is zoned and the default zone is open.
    ZoningOff,
    /// Sets the legs to a domain; without legs it is unreachable.
    Routes {
        /// Destination domain.
        domain: u8,
        /// Equal-cost legs, sorted by port number.
        legs: Vec<Leg>,
    },
}
