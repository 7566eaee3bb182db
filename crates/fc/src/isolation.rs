//! Reasons why an inter-switch link is not part of the fabric: [`Isolation`].

mod remedy;

use sanloom_wire::sw_ils::{SwRjt, SwRjtExplanation as Why, SwRjtReason as Reason, command};
use std::fmt;

/// Reason why an E_Port is isolated: the link is present but carries no traffic.
///
/// The reasons correspond to those that switches of all vendors show (RFC 4044, RFC 4439, manuals),
/// as far as they can occur here. Exchanges that form trunks, tag virtual fabrics or authenticate
/// switches do not exist.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Isolation {
    /// ELP: incompatible class F parameters.
    ClassF,
    /// ELP: incompatible parameters of class 1, 2 or 3.
    ClassN,
    /// ELP: different R_A_TOV or E_D_TOV.
    Timers,
    /// ELP: no common flow control mode.
    FlowControl,
    /// ELP: rejected for another reason.
    LinkParameters(SwRjt),
    /// The port is connected to a port of its own switch.
    Loopback,
    /// A domain has two owners.
    DomainOverlap,
    /// The principal switch did not grant the domain that the switch insists on, or has no free
    /// domain.
    DomainUnavailable,
    /// The other switch rejects EFP.
    EfpRejected,
    /// The other switch rejects Build Fabric.
    InvalidReconfigure,
    /// One of the two switches does not permit a disruptive reconfiguration.
    RcfDenied,
    /// No switch may become principal, because all have priority 255.
    NoPrincipal,
    /// The zones of the two fabrics conflict.
    ZoneMerge {
        /// Description of the conflict.
        conflict: String,
    },
    /// ESC: no common routing protocol.
    EscMismatch,
    /// The other end isolated the link without giving a reason.
    OtherSide,
}

impl Isolation {
    /// Stable identifier for JSON and scripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Isolation::ClassF => "class-f-parameters",
            Isolation::ClassN => "class-n-parameters",
            Isolation::Timers => "timer-mismatch",
            Isolation::FlowControl => "flow-control",
            Isolation::LinkParameters(_) => "link-parameters",
            Isolation::Loopback => "loopback",
            Isolation::DomainOverlap => "domain-overlap",
            Isolation::DomainUnavailable => "domain-unavailable",
            Isolation::EfpRejected => "efp-rejected",
            Isolation::InvalidReconfigure => "invalid-reconfigure",
            Isolation::RcfDenied => "rcf-denied",
            Isolation::NoPrincipal => "no-principal",
            Isolation::ZoneMerge { .. } => "zone-merge-failure",
            Isolation::EscMismatch => "esc-mismatch",
            Isolation::OtherSide => "other-side",
        }
    }

    /// Reject that an isolated port sends to the other end.
    pub const fn reject(&self) -> SwRjt {
        match self {
            Isolation::ClassF => SwRjt::new(Reason::LOGICAL_ERROR, Why::CLASS_F_PARAMETERS),
            Isolation::ClassN => SwRjt::new(Reason::LOGICAL_ERROR, Why::CLASS_N_PARAMETERS),
            Isolation::Timers => SwRjt::new(Reason::LOGICAL_ERROR, Why::TOV_MISMATCH),
            Isolation::FlowControl => SwRjt::new(Reason::LOGICAL_ERROR, Why::FLOW_CONTROL_MODE),
            Isolation::LinkParameters(reject) => *reject,
            Isolation::Loopback => SwRjt::new(Reason::LOGICAL_ERROR, Why::INVALID_SWITCH_NAME),
            Isolation::DomainOverlap => SwRjt::new(Reason::LOGICAL_ERROR, Why::INVALID_DOMAIN_ID_LIST),
            Isolation::DomainUnavailable => SwRjt::new(Reason::UNABLE, Why::DOMAIN_UNAVAILABLE),
            Isolation::RcfDenied | Isolation::EscMismatch => SwRjt::new(Reason::UNABLE, Why::NOT_SUPPORTED),
            Isolation::InvalidReconfigure => SwRjt::new(Reason::PROTOCOL_ERROR, Why::NONE),
            Isolation::EfpRejected | Isolation::NoPrincipal | Isolation::ZoneMerge { .. } | Isolation::OtherSide => {
                SwRjt::new(Reason::UNABLE, Why::E_PORT_ISOLATED)
            }
        }
    }

    /// Isolation reason that follows from the reject of a request. `request` is the command code of
    /// that request (see [`command`]).
    ///
    /// Rejects that request a retry (see [`is_temporary`]) imply no isolation; the caller must
    /// handle them before.
    pub const fn from_reject(request: u8, reject: SwRjt) -> Isolation {
        match (request, reject.explanation) {
            (_, Why::E_PORT_ISOLATED) => Isolation::OtherSide,
            (command::ELP, Why::CLASS_F_PARAMETERS) => Isolation::ClassF,
            (command::ELP, Why::CLASS_N_PARAMETERS) => Isolation::ClassN,
            (command::ELP, Why::TOV_MISMATCH) => Isolation::Timers,
            (command::ELP, Why::FLOW_CONTROL_MODE | Why::FLOW_CONTROL_PARAMETERS) => Isolation::FlowControl,
            (command::ELP, Why::INVALID_SWITCH_NAME) => Isolation::Loopback,
            (_, Why::INVALID_DOMAIN_ID_LIST) => Isolation::DomainOverlap,
            (command::RDI, _) => Isolation::DomainUnavailable,
            (_, Why::DOMAIN_UNAVAILABLE) => Isolation::OtherSide,
            (command::BF, _) => Isolation::InvalidReconfigure,
            (command::RCF, _) => Isolation::RcfDenied,
            (command::ESC, _) => Isolation::EscMismatch,
            (command::ELP, _) => Isolation::LinkParameters(reject),
            _ => Isolation::EfpRejected,
        }
    }

    /// Returns true if the reason lies in ELP, so that a later ELP with compatible parameters ends
    /// the isolation.
    pub const fn is_of_link_parameters(&self) -> bool {
        matches!(
            self,
            Isolation::ClassF
                | Isolation::ClassN
                | Isolation::Timers
                | Isolation::FlowControl
                | Isolation::LinkParameters(_)
                | Isolation::Loopback
        )
    }
}

/// Returns true if the reject is temporary and the request should be sent again later.
pub fn is_temporary(reject: SwRjt) -> bool {
    reject.reason == Reason::LOGICAL_BUSY
        || matches!(reject.explanation, Why::COMMAND_IN_PROGRESS | Why::LINK_PARAMETERS_NOT_ESTABLISHED)
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Isolation::ClassF => f.pad("the class F parameters of the two switches are incompatible"),
            Isolation::ClassN => f.pad("the class 2 or class 3 parameters of the two switches are incompatible"),
            Isolation::Timers => f.pad("R_A_TOV or E_D_TOV of the two switches differ"),
            Isolation::FlowControl => f.pad("the two switches have no common flow control mode"),
            Isolation::LinkParameters(reject) => {
                write!(f, "the neighbour rejects the link parameters: {}, {}", reject.reason, reject.explanation)
            }
            Isolation::Loopback => f.pad("the port is connected to its own switch"),
            Isolation::DomainOverlap => f.pad("a domain is in use in both fabrics"),
            Isolation::DomainUnavailable => f.pad("the principal switch does not grant the domain"),
            Isolation::EfpRejected => f.pad("the neighbour rejects the fabric parameters"),
            Isolation::InvalidReconfigure => f.pad("the neighbour rejects the rebuild of the fabric"),
            Isolation::RcfDenied => f.pad("a disruptive reconfiguration is needed, but not allowed on both sides"),
            Isolation::NoPrincipal => f.pad("every switch has priority 255, so none may be principal"),
            Isolation::ZoneMerge { conflict } => write!(f, "the zones cannot be merged: {conflict}"),
            Isolation::EscMismatch => f.pad("the two switches have no common routing protocol"),
            Isolation::OtherSide => f.pad("the neighbour has isolated the link"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reject_of_one_end_gives_the_reason_at_the_other() {
        let wrong_name = SwRjt::new(Reason::LOGICAL_ERROR, Why::INVALID_PORT_NAME);
        for (request, reason, understood) in [
            (command::ELP, Isolation::ClassF, Isolation::ClassF),
            (command::ELP, Isolation::ClassN, Isolation::ClassN),
            (command::ELP, Isolation::Timers, Isolation::Timers),
            (command::ELP, Isolation::FlowControl, Isolation::FlowControl),
            (command::ELP, Isolation::Loopback, Isolation::Loopback),
            (command::ELP, Isolation::LinkParameters(wrong_name), Isolation::LinkParameters(wrong_name)),
            (command::ELP, Isolation::NoPrincipal, Isolation::OtherSide),
            (command::ELP, Isolation::DomainOverlap, Isolation::DomainOverlap),
            (command::EFP, Isolation::DomainOverlap, Isolation::DomainOverlap),
            (command::EFP, Isolation::DomainUnavailable, Isolation::OtherSide),
            (command::EFP, Isolation::ZoneMerge { conflict: "zone a".into() }, Isolation::OtherSide),
            (command::RDI, Isolation::DomainUnavailable, Isolation::DomainUnavailable),
            (command::BF, Isolation::InvalidReconfigure, Isolation::InvalidReconfigure),
            (command::RCF, Isolation::RcfDenied, Isolation::RcfDenied),
            (command::ESC, Isolation::EscMismatch, Isolation::EscMismatch),
        ] {
            assert!(!is_temporary(reason.reject()), "{reason}");
            assert_eq!(Isolation::from_reject(request, reason.reject()), understood, "{reason}");
        }
    }

    #[test]
    fn a_reason_has_a_text_and_a_stable_identifier() {
        let merge = Isolation::ZoneMerge { conflict: "zone blue has other members there".into() };
        assert_eq!(merge.to_string(), "the zones cannot be merged: zone blue has other members there");
        assert_eq!((merge.name(), Isolation::FlowControl.name()), ("zone-merge-failure", "flow-control"));
        let reject = SwRjt::new(Reason::LOGICAL_ERROR, Why::INVALID_PORT_NAME);
        let text = Isolation::LinkParameters(reject).to_string();
        assert_eq!(text, "the neighbour rejects the link parameters: logical error, invalid port name");
    }
}
