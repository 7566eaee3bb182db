//! Explanation why two ports can or cannot communicate: [`explain`].

use crate::config::{Zone, ZoneMember, Zoning};
use crate::fabric::PortIdentity;

/// Result of [`explain`]: the verdict and the memberships that it follows from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// Verdict with its reason.
    pub verdict: Verdict,
    /// Zones of the first port, in the order of the zoning.
    pub first: Vec<Membership>,
    /// Zones of the second port, in the order of the zoning.
    pub second: Vec<Membership>,
}

/// Membership of a port in one zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    /// Index in [`Zoning::zones`].
    pub zone: usize,
    /// Members of the zone that match the port.
    pub as_member: Vec<ZoneMember>,
    /// Principals of the zone that match the port.
    pub as_principal: Vec<ZoneMember>,
}

/// Verdict whether two ports may communicate, and its reason. Zones are indices in
/// [`Zoning::zones`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Permitted: both are the same port.
    SamePort,
    /// Permitted by these zones.
    Zones(Vec<usize>),
    /// Permitted: neither is in a zone, and the default zone is open.
    DefaultOpen,
    /// Denied: neither is in a zone, and the default zone is closed.
    DefaultClosed,
    /// Denied: one port is in zones, the other in none.
    OneUnzoned {
        /// True if the first port is the unzoned one.
        first: bool,
    },
    /// Denied: both are in zones, but they share none.
    NoCommonZone,
    /// Denied: they share only these peer zones, and in each both are members or both are
    /// principals.
    PeerRoles(Vec<usize>),
}

impl Verdict {
    /// Returns true if the ports may communicate.
    pub fn permits(&self) -> bool {
        matches!(self, Verdict::SamePort | Verdict::Zones(_) | Verdict::DefaultOpen)
    }
}

/// Determines whether two ports may communicate under a zoning, and why. The cost is one pass over
/// all zones.
pub fn explain(zoning: &Zoning, first: &PortIdentity, second: &PortIdentity) -> Explanation {
    let [a, b] = [first, second].map(|port| memberships(&zoning.zones, port));
    let verdict = verdict(zoning, first == second, &a, &b);
    Explanation { verdict, first: a, second: b }
}

fn verdict(zoning: &Zoning, same: bool, a: &[Membership], b: &[Membership]) -> Verdict {
    if same {
        return Verdict::SamePort;
    }
    match (a, b) {
        ([], []) if zoning.default_is_open() => return Verdict::DefaultOpen,
        ([], []) => return Verdict::DefaultClosed,
        ([], _) => return Verdict::OneUnzoned { first: true },
        (_, []) => return Verdict::OneUnzoned { first: false },
        _ => {}
    }
    let common = a.iter().filter_map(|one| Some((one, b.iter().find(|other| other.zone == one.zone)?)));
    let (talk, apart): (Vec<_>, Vec<_>) = common.partition(|(one, other)| {
        let serves = |one: &Membership, other: &Membership| !one.as_principal.is_empty() && !other.as_member.is_empty();
        !zoning.zones[one.zone].is_peer() || serves(one, other) || serves(other, one)
    });
    let zones = |list: Vec<(&Membership, &Membership)>| list.into_iter().map(|(one, _)| one.zone).collect::<Vec<_>>();
    match (talk.is_empty(), apart.is_empty()) {
        (false, _) => Verdict::Zones(zones(talk)),
        (true, false) => Verdict::PeerRoles(zones(apart)),
        (true, true) => Verdict::NoCommonZone,
    }
}

fn memberships(zones: &[Zone], port: &PortIdentity) -> Vec<Membership> {
    let matching = |list: &[ZoneMember]| list.iter().filter(|member| port.is(member)).copied().collect::<Vec<_>>();
    let of = |(zone, definition): (usize, &Zone)| {
        let (as_member, as_principal) = (matching(&definition.members), matching(&definition.principals));
        let inside = !as_member.is_empty() || !as_principal.is_empty();
        inside.then_some(Membership { zone, as_member, as_principal })
    };
    zones.iter().enumerate().filter_map(of).collect()
}
