//! Remedies for isolated links: [`Isolation::remedy`].

use super::Isolation;

impl Isolation {
    /// Action that an administrator can take, as one sentence without a full stop.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Isolation::ClassF | Isolation::ClassN | Isolation::LinkParameters(_) => {
                "give the ports at both ends the same link parameters"
            }
            Isolation::Timers => "set the same `e_d_tov` and `r_a_tov` at all switches of both fabrics",
            Isolation::FlowControl => "give both switches a common mode with `fabric = { flow_control = ... }`",
            Isolation::Loopback => "link two different switches, and give each a `wwn` of its own",
            Isolation::DomainOverlap => {
                "give every switch a `domain` of its own, or set `fabric = { reconfigure = true }` at both ends of the link"
            }
            Isolation::DomainUnavailable => "choose a `domain` that is free, or leave `insistent` out",
            Isolation::EfpRejected | Isolation::InvalidReconfigure => "check the fabric parameters of the neighbour",
            Isolation::RcfDenied => {
                "set `fabric = { reconfigure = true }` at both ends, or correct the domains by hand"
            }
            Isolation::NoPrincipal => "give at least one switch a `priority` below 255",
            Isolation::ZoneMerge { .. } => {
                "make conflicting objects equal on both sides, or rename one of them; both switches must support zoning"
            }
            Isolation::EscMismatch => "enable FSPF on both switches",
            Isolation::OtherSide => "check the other end of the link for the reason",
        }
    }
}
