//! Ordered sets of the loop (FC-AL-2, ordered sets; Seagate Fibre Channel Interface manual
//! 77767496, tables 5 and 7).
//!
//! The codes of CLS, DHD, MRK, LPB and LPE are not in that manual. A second public table
//! (liquisearch.com, "Fibre Channel network protocols", primitives) lists the same codes.

use crate::arbitrated_loop::AlPa;
use crate::delimiter::OrderedSet;
use std::fmt;

/// An ordered set of an arbitrated loop. `x` is the sender, `y` the destination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Primitive {
    /// Fill word: no port wants the loop.
    Idle,
    /// Receiver ready: one buffer is free.
    RRdy,
    /// Arbitration of port x.
    Arb {
        /// The arbitrating port.
        x: AlPa,
    },
    /// ARB(F0): fill word with which a loop owner asks for other arbitrating ports.
    ArbF0,
    /// ARB(FF): fill word with the lowest priority of all.
    ArbFf,
    /// OPNyx: opens port y, full duplex.
    OpenFull {
        /// The opened port.
        y: AlPa,
        /// The loop owner.
        x: AlPa,
    },
    /// OPNyy: opens port y, half duplex.
    OpenHalf {
        /// The opened port.
        y: AlPa,
    },
    /// OPNfr: opens all ports for replication (broadcast).
    OpenBroadcast,
    /// OPNyr: opens port y for replication.
    OpenReplicate {
        /// The opened port.
        y: AlPa,
    },
    /// Close of a circuit.
    Close,
    /// Dynamic half duplex: the sender has no more data frames.
    DynamicHalfDuplex,
    /// Mark, for example for the synchronisation of spindles.
    Mark {
        /// Type of the mark.
        mark_type: u8,
        /// The sender.
        x: AlPa,
    },
    /// LIP(F7,F7) or LIP(F7,x): initialisation requested by a port.
    LipInit {
        /// The sender; `None` without an address.
        x: Option<AlPa>,
    },
    /// LIP(F8,F7) or LIP(F8,x): a port receives nothing.
    LipFailure {
        /// The sender; `None` without an address.
        x: Option<AlPa>,
    },
    /// LIP(y,x): port y is reset.
    LipReset {
        /// The port to reset.
        y: AlPa,
        /// The sender.
        x: AlPa,
    },
    /// LIP(FF,x): all ports but x are reset.
    LipResetAll {
        /// The sender.
        x: AlPa,
    },
    /// LPByx, or LPBfx without `y`: bypass of one port, or of all but the sender.
    Bypass {
        /// The port; `None` for all.
        y: Option<AlPa>,
        /// The sender.
        x: AlPa,
    },
    /// LPEyx, or LPEfx without `y`: end of a bypass.
    Enable {
        /// The port; `None` for all.
        y: Option<AlPa>,
        /// The sender.
        x: AlPa,
    },
}

/// Address in the place of a destination that stands for all ports.
pub const ALL_PORTS: u8 = 0xff;
const K28_5: u8 = 0xbc;
const D21_5: u8 = 0xb5;
/// Third byte of a LIP without a destination.
const LIP_INIT: u8 = 0xf7;
const LIP_FAILURE: u8 = 0xf8;
/// Fourth byte of a LIP whose sender has no address.
const NO_ADDRESS: u8 = 0xf7;

impl Primitive {
    /// The four bytes on the link. K28.5 is written as BC.
    pub fn ordered_set(self) -> OrderedSet {
        let [second, third, fourth] = match self {
            Primitive::Idle => [0x95, D21_5, D21_5],
            Primitive::RRdy => [0x95, 0x4a, 0x4a],
            Primitive::Arb { x } => [0x94, x.value(), x.value()],
            Primitive::ArbF0 => [0x94, 0xf0, 0xf0],
            Primitive::ArbFf => [0x94, 0xff, 0xff],
            Primitive::OpenFull { y, x } => [0x91, y.value(), x.value()],
            Primitive::OpenHalf { y } => [0x91, y.value(), y.value()],
            Primitive::OpenBroadcast => [0x91, ALL_PORTS, ALL_PORTS],
            Primitive::OpenReplicate { y } => [0x91, y.value(), ALL_PORTS],
            Primitive::Close => [0x85, D21_5, D21_5],
            Primitive::DynamicHalfDuplex => [0x8a, D21_5, D21_5],
            Primitive::Mark { mark_type, x } => [0x5f, mark_type, x.value()],
            Primitive::LipInit { x } => [0x15, LIP_INIT, x.map_or(NO_ADDRESS, AlPa::value)],
            Primitive::LipFailure { x } => [0x15, LIP_FAILURE, x.map_or(NO_ADDRESS, AlPa::value)],
            Primitive::LipReset { y, x } => [0x15, y.value(), x.value()],
            Primitive::LipResetAll { x } => [0x15, ALL_PORTS, x.value()],
            Primitive::Bypass { y, x } => [0x09, y.map_or(ALL_PORTS, AlPa::value), x.value()],
            Primitive::Enable { y, x } => [0x05, y.map_or(ALL_PORTS, AlPa::value), x.value()],
        };
        [K28_5, second, third, fourth]
    }

    /// Primitive with the given ordered set; `None` if there is none. An OPN in which both
    /// addresses are equal is half duplex.
    pub fn from_ordered_set(set: OrderedSet) -> Option<Primitive> {
        let [K28_5, second, third, fourth] = set else {
            return None;
        };
        let address = AlPa::new;
        let all_or = |value: u8| if value == ALL_PORTS { Some(None) } else { address(value).map(Some) };
        let sender_or_none = |value: u8| if value == NO_ADDRESS { Some(None) } else { address(value).map(Some) };
        Some(match (second, third, fourth) {
            (0x95, D21_5, D21_5) => Primitive::Idle,
            (0x95, 0x4a, 0x4a) => Primitive::RRdy,
            (0x94, 0xf0, 0xf0) => Primitive::ArbF0,
            (0x94, 0xff, 0xff) => Primitive::ArbFf,
            (0x94, x, same) if x == same => Primitive::Arb { x: address(x)? },
            (0x91, ALL_PORTS, ALL_PORTS) => Primitive::OpenBroadcast,
            (0x91, y, ALL_PORTS) => Primitive::OpenReplicate { y: address(y)? },
            (0x91, y, same) if y == same => Primitive::OpenHalf { y: address(y)? },
            (0x91, y, x) => Primitive::OpenFull { y: address(y)?, x: address(x)? },
            (0x85, D21_5, D21_5) => Primitive::Close,
            (0x8a, D21_5, D21_5) => Primitive::DynamicHalfDuplex,
            (0x5f, mark_type, x) => Primitive::Mark { mark_type, x: address(x)? },
            (0x15, LIP_INIT, x) => Primitive::LipInit { x: sender_or_none(x)? },
            (0x15, LIP_FAILURE, x) => Primitive::LipFailure { x: sender_or_none(x)? },
            (0x15, ALL_PORTS, x) => Primitive::LipResetAll { x: address(x)? },
            (0x15, y, x) => Primitive::LipReset { y: address(y)?, x: address(x)? },
            (0x09, y, x) => Primitive::Bypass { y: all_or(y)?, x: address(x)? },
            (0x05, y, x) => Primitive::Enable { y: all_or(y)?, x: address(x)? },
            _ => return None,
        })
    }

    /// True for LIP, LPB and LPE, which count only after three in a row.
    pub const fn is_sequence(self) -> bool {
        matches!(
            self,
            Primitive::LipInit { .. }
                | Primitive::LipFailure { .. }
                | Primitive::LipReset { .. }
                | Primitive::LipResetAll { .. }
                | Primitive::Bypass { .. }
                | Primitive::Enable { .. }
        )
    }

    /// True for words that a port may remove or insert between frames: IDLE and every ARB.
    pub const fn is_fill_word(self) -> bool {
        matches!(self, Primitive::Idle | Primitive::Arb { .. } | Primitive::ArbF0 | Primitive::ArbFf)
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, _, third, fourth] = self.ordered_set();
        match self {
            Primitive::Idle => f.pad("IDLE"),
            Primitive::RRdy => f.pad("R_RDY"),
            Primitive::Arb { .. } | Primitive::ArbF0 | Primitive::ArbFf => write!(f, "ARB({third:02x})"),
            Primitive::OpenFull { .. }
            | Primitive::OpenHalf { .. }
            | Primitive::OpenBroadcast
            | Primitive::OpenReplicate { .. } => write!(f, "OPN({third:02x},{fourth:02x})"),
            Primitive::Close => f.pad("CLS"),
            Primitive::DynamicHalfDuplex => f.pad("DHD"),
            Primitive::Mark { .. } => write!(f, "MRK({third:02x},{fourth:02x})"),
            Primitive::Bypass { .. } => write!(f, "LPB({third:02x},{fourth:02x})"),
            Primitive::Enable { .. } => write!(f, "LPE({third:02x},{fourth:02x})"),
            _ => write!(f, "LIP({third:02x},{fourth:02x})"),
        }
    }
}
