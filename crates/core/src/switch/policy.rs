//! What an administrator decides about a switch: [`Policy`].

use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;

/// Choices that change what a switch does with the same messages. The default is a modern switch that takes what it gets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Which addresses N_Ports get.
    pub addressing: Addressing,
    /// How many may log in.
    pub limits: LoginLimits,
    /// Addresses that port names always get, if they are of the switch's domain and, with [`Addressing::AreaPerPort`], of
    /// the port's area. Others get such an address only when nothing else is free.
    pub persistent: BTreeMap<Wwpn, FcId>,
    /// Every address that is given out becomes a persistent one, reported by [`super::Output::Persist`].
    pub learn_addresses: bool,
    /// What happens to a login with a port name that is in use.
    pub duplicate_names: DuplicateNames,
    /// How the permissions of hard zoning are found.
    pub hard_zoning: HardZoning,
    /// How a port name that is in use is found.
    pub name_lookup: NameLookup,
}

/// Which addresses N_Ports get.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Addressing {
    /// Port p gives out dd/pp/00 for its FLOGI and dd/pp/01 to dd/pp/FF for FDISCs (document 000, section IV). Ports
    /// beyond 255 take no logins.
    #[default]
    AreaPerPort,
    /// Every port gives out the lowest free of the 65,536 addresses of the domain.
    Flat,
}

/// How many N_Port_IDs may be logged in at once; beyond that a login is rejected, 09/29.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LoginLimits {
    /// At one port, that of the FLOGI included. The switch of document 000 takes 256.
    pub per_port: u32,
    /// At all ports together.
    pub per_switch: u32,
}

impl Default for LoginLimits {
    fn default() -> LoginLimits {
        LoginLimits { per_port: u32::MAX, per_switch: u32::MAX }
    }
}

/// What happens to a login with a port name that another port uses, here or at another switch. All switches of a fabric
/// must have the same rule, or they do not come to agree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum DuplicateNames {
    /// The port that has the name is logged out (document 000, section IV). The name of a virtual machine that moved stands
    /// at its old place until somebody notices, and the new place is the true one.
    #[default]
    NewWins,
    /// The new login is rejected with 03/0D, logical error, invalid port name: the request is well-formed and its name is
    /// what is wrong, and repeating it as it is does not help, which 09 would suggest. When two switches accepted the same
    /// name before they heard of each other, the earlier login stays.
    OldWins,
    /// As `OldWins`, and the port where it was tried takes no more logins until its link has been down; see
    /// [`super::Switch::blocked_ports`]. What is logged in there stays.
    Block,
}

/// How the permissions of hard zoning are found. All ways give the same ones; they differ in work and memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HardZoning {
    /// Every N_Port_ID of the port that changed is compared with every one of all other ports, at each login and logout,
    /// and the entries of the port are made anew (document 000, section V-IV).
    Standard,
    /// Only the new N_Port_ID is compared with those of all other ports (document 000, section V-V). The document does
    /// nothing at a logout: the entries of the N_Port_ID that left stay, and whoever gets that N_Port_ID next has the
    /// permissions of its predecessor. Here a logout removes exactly those; [`super::Work::gap_entries`] counts them.
    Modified,
    /// Only the zone-mates of the port that changed are looked at, and nothing is remembered beside the table.
    #[default]
    ZoneMates,
    /// None: the name server hides ports, but every frame passes.
    Off,
}

/// How a port name that is in use is found at a login.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum NameLookup {
    /// In an index.
    #[default]
    Indexed,
    /// Entry by entry, as the switch of document 000 does (its FDISC latency grows with every entry).
    Linear,
}
