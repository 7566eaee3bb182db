//! Why two ports can or cannot talk: [`explain`].

use crate::config::{Zone, ZoneDefault, ZoneMember, Zoning};
use crate::fabric::PortIdentity;

/// Whether two ports may talk, why, and everything that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The answer and its reason.
    pub verdict: Verdict,
    /// The zones of the first port, in the order of the zoning.
    pub first: Vec<Membership>,
    /// The zones of the second port.
    pub second: Vec<Membership>,
}

/// A zone that a port is in, and by what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    /// Index in [`Zoning::zones`].
    pub zone: usize,
    /// Members that mean the port.
    pub as_member: Vec<ZoneMember>,
    /// Principals that mean the port.
    pub as_principal: Vec<ZoneMember>,
}

/// Whether two ports may talk, and why. Zones are indices in [`Zoning::zones`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Yes: it is one port.
    SamePort,
    /// Yes: these zones let them.
    Zones(Vec<usize>),
    /// Yes: neither is in a zone, and the default zone is open.
    DefaultOpen,
    /// No: neither is in a zone, and the default zone is closed.
    DefaultClosed,
    /// No: one is in zones and the other in none.
    OneUnzoned {
        /// The first port is the one in no zone.
        first: bool,
    },
    /// No: both are in zones, and none of these is common.
    NoCommonZone,
    /// No: they share peer zones only, and in each of these both are members or both are principals.
    PeerRoles(Vec<usize>),
}

impl Verdict {
    /// They may talk.
    pub fn permits(&self) -> bool {
        matches!(self, Verdict::SamePort | Verdict::Zones(_) | Verdict::DefaultOpen)
    }
}

/// Says whether two ports may talk under a zoning, and why. The cost is that of reading all zones once.
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
        ([], []) if zoning.default == ZoneDefault::Open => return Verdict::DefaultOpen,
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
