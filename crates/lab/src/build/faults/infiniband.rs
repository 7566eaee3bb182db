//! `[[fault]]` of InfiniBand links, ports and switches.

use super::Settings;
use super::planes::At;
use crate::schema::Trouble;
use sanloom_fc::config::{FaultKind, InfinibandFault};

/// Reason and remedy for a kind of fault that InfiniBand does not have.
pub(super) fn refused(trouble: Trouble) -> (&'static str, &'static str) {
    match trouble {
        Trouble::PauseStorm => (
            "ports of InfiniBand send no pauses: credits hold their link partners back",
            "use \"withheld-credits\", with which the port frees no buffer, so that its link partner stops",
        ),
        Trouble::Reordering => (
            "packets on a link of InfiniBand do not overtake each other",
            "use \"frame-loss\", or name a link of Ethernet",
        ),
        _ => (
            "links of InfiniBand do not have this kind of fault",
            "use \"withheld-credits\", with which a port frees no buffer, \"lost-credit-updates\" or \"frame-loss\"",
        ),
    }
}

/// Returns the fault at a place of InfiniBand; `None` if InfiniBand does not have this kind.
pub(super) fn kind(trouble: Trouble, at: At, settings: &Settings) -> Option<FaultKind> {
    let &Settings { direction, probability, .. } = settings;
    let (link, end) = match at {
        At::Switch(switch) => return Some(FaultKind::Infiniband(InfinibandFault::SwitchReset { switch })),
        At::Link(link) => (link, 0),
        At::End(link, end) => (link, end),
    };
    let fault = match trouble {
        Trouble::LinkDown => InfinibandFault::LinkDown { link },
        Trouble::LinkUp => InfinibandFault::LinkUp { link },
        Trouble::PortDown => InfinibandFault::PortDown { link, end },
        Trouble::FrameLoss => InfinibandFault::PacketLoss { link, direction, probability },
        Trouble::CrcErrors => InfinibandFault::CrcErrors { link, direction, probability },
        Trouble::LostCreditUpdates => InfinibandFault::LostCreditUpdates { link, end, probability },
        Trouble::WithheldCredits => InfinibandFault::WithheldCredits { link, end },
        _ => return None,
    };
    Some(FaultKind::Infiniband(fault))
}
