//! Choices of an administrator for a switch: [`Policy`].

use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;

/// Choices that change how a switch handles the same messages. The default is a modern switch
/// without limits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Allocation of N_Port_IDs.
    pub addressing: Addressing,
    /// Limits on logged-in N_Port_IDs.
    pub limits: LoginLimits,
    /// Persistent address by port name. It is used if it belongs to the switch's domain and, with
    /// [`Addressing::AreaPerPort`], to the port's area. Other ports get such an address only if no
    /// other is free.
    pub persistent: BTreeMap<Wwpn, FcId>,
    /// Makes every allocated address persistent and reports it with
    /// [`Output::Persist`](crate::switch::Output::Persist).
    pub learn_addresses: bool,
    /// Treatment of a login with a port name in use.
    pub duplicate_names: DuplicateNames,
    /// Method that computes the permissions of hard zoning.
    pub hard_zoning: HardZoning,
    /// Method that searches for a port name in use.
    pub name_lookup: NameLookup,
}

/// Allocation of N_Port_IDs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Addressing {
    /// Port p allocates dd/pp/00 for its FLOGI and dd/pp/01 to dd/pp/FF for FDISCs (the NPIV paper,
    /// section IV). Ports beyond 255 accept no logins.
    #[default]
    AreaPerPort,
    /// Every port allocates the lowest free of the 65,536 addresses of the domain.
    Flat,
}

/// Limits on logged-in N_Port_IDs; a login beyond them is rejected with 09/29.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LoginLimits {
    /// Limit per port, including the N_Port_ID of the FLOGI. The switch of the NPIV paper has 256.
    pub per_port: u32,
    /// Limit for all ports of the switch together.
    pub per_switch: u32,
}

impl Default for LoginLimits {
    fn default() -> LoginLimits {
        LoginLimits { per_port: u32::MAX, per_switch: u32::MAX }
    }
}

/// Treatment of a login with a port name that another port uses, at this or another switch. All
/// switches of a fabric must have the same rule; otherwise they never agree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum DuplicateNames {
    /// The port that had the name is logged out (the NPIV paper, section IV). After a virtual
    /// machine moves, its old login remains until it is detected, and the new location is the right
    /// one.
    #[default]
    NewWins,
    /// The new login is rejected with 03/0D, logical error, invalid port name.
    ///
    /// The request is well-formed, only its name is wrong. Reason 09 would wrongly suggest that an
    /// unchanged retry may succeed. If two switches accepted the same name before they received
    /// each other's update, the earlier login stays.
    OldWins,
    /// As `OldWins`; in addition the port that received the login rejects logins until its link has
    /// been down, see [`Switch::blocked_ports`](crate::switch::Switch::blocked_ports). Existing
    /// logins of the port stay.
    Block,
}

/// Method that computes the permissions of hard zoning. All methods yield the same permissions;
/// they differ in work and memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HardZoning {
    /// At each login and logout, every N_Port_ID of the changed port is compared with every
    /// N_Port_ID of all other ports. The entries of the port are then rebuilt (the NPIV paper,
    /// section V-IV).
    Standard,
    /// Only the new N_Port_ID is compared with those of all other ports (the NPIV paper, section
    /// V-V).
    ///
    /// The document does nothing at a logout: the entries of the departed N_Port_ID stay, and the
    /// next port with that N_Port_ID inherits the permissions. Here a logout removes exactly those
    /// entries; [`Work::gap_entries`](crate::switch::Work::gap_entries) counts them.
    Modified,
    /// Only the zone-mates of the changed port are examined, and no state is stored besides the
    /// table.
    #[default]
    ZoneMates,
    /// No hard zoning: the name server hides ports, but every frame passes.
    Off,
}

/// Method that searches for a port name in use at a login.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum NameLookup {
    /// One lookup in an index.
    #[default]
    Indexed,
    /// Linear search, as in the switch of the NPIV paper, whose FDISC latency grows with every
    /// entry.
    Linear,
}
