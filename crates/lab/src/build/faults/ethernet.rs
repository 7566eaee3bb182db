//! `[[fault]]` of Ethernet links, ports and switches.

use super::Settings;
use super::planes::At;
use crate::schema::Trouble;
use sanloom_fc::config::{EthernetFault, FaultKind};

/// Reason and remedy for a kind of fault that Ethernet does not have.
pub(super) fn refused(trouble: Trouble) -> (&'static str, &'static str) {
    match trouble {
        Trouble::LostCreditUpdates => (
            "links of Ethernet have no credits",
            "use \"pause-storm\", with which an interface stops its link partner, or name a link of InfiniBand",
        ),
        _ => (
            "links of Ethernet have no credits",
            "use \"pause-storm\", with which an interface stops its link partner, or name a link of Fibre Channel",
        ),
    }
}

/// Returns the fault at a place of Ethernet; `None` if Ethernet does not have this kind.
pub(super) fn kind(trouble: Trouble, at: At, settings: &Settings) -> Option<FaultKind> {
    let &Settings { direction, probability, delay, priorities } = settings;
    let (link, end) = match at {
        At::Switch(switch) => return Some(FaultKind::Ethernet(EthernetFault::SwitchReset { switch })),
        At::Link(link) => (link, 0),
        At::End(link, end) => (link, end),
    };
    let fault = match trouble {
        Trouble::LinkDown => EthernetFault::LinkDown { link },
        Trouble::LinkUp => EthernetFault::LinkUp { link },
        Trouble::PortDown => EthernetFault::PortDown { link, end },
        Trouble::FrameLoss => EthernetFault::FrameLoss { link, direction, probability },
        Trouble::CrcErrors => EthernetFault::FcsErrors { link, direction, probability },
        Trouble::Reordering => EthernetFault::Reordering { link, direction, probability, delay },
        Trouble::PauseStorm => EthernetFault::PauseStorm { link, end, priorities },
        _ => return None,
    };
    Some(FaultKind::Ethernet(fault))
}
