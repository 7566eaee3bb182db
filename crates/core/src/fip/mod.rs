//! FIP and FCoE: Fibre Channel ports as addresses on an Ethernet segment (FC-BB).
//!
//! ```text
//!   ENode                                             FCF
//!     │ VLAN request ─────────────────────────────▶ │   which VLANs carry FCoE
//!     │ ◀───────────────────────────── notification │
//!     │ ◀─────────── multicast advertisement (FKA) ─ │
//!     │ solicitation ──────────────────────────────▶ │
//!     │ ◀────── advertisement, padded to full size ─ │   the path carries full frames
//!     │ FLOGI, FDISC ──────────────────────────────▶ │   a VF_Port of the switch
//!     │ ◀────────────────────────── accept, address ─ │
//!     │ ◀══════════ FCoE frames ═══════════════════▶ │   [`Bindings`] checks and addresses them
//!     │ keep-alives ───────────────────────────────▶ │
//!     │ ◀──────────────────── clear virtual links ─ │
//! ```
//!
//! | machine | is |
//! |---|---|
//! | [`fcf::Fcf`] | the controller of a switch's Ethernet port in one VLAN: virtual F_Ports and E_Ports |
//! | [`enode::Enode`] | the controller of a host's Ethernet port in one VLAN: finds an FCF and logs in to it |
//! | [`vlan::VlanResponder`] | what answers VLAN requests where a port has no FCF in the untagged frames |
//! | [`vn2vn::Vn2vn`] | a station of a segment without FCF |
//!
//! None of them sees a data frame: drivers ask [`Bindings`] for each and count what it refuses.

mod advertisement;
mod bindings;
mod discard;
pub mod enode;
pub mod fcf;
mod jitter;
pub mod vlan;
pub mod vn2vn;

pub use advertisement::Advertisement;
pub use bindings::{BindingChange, Bindings, Ingress};
pub use discard::{Discard, Discards};

use crate::time::Span;
use sanloom_wire::ether::FcMap;

/// FKA_ADV_PERIOD that FCFs have unless told otherwise (FC-BB, FIP timers).
pub const DEFAULT_PERIOD: Span = Span::from_ms(8_000);
/// How often a VN_Port says that it is alive (FC-BB, FIP timers).
pub const VN_PORT_KEEP_ALIVE: Span = Span::from_secs(90);
/// Up to this much is added to the time between advertisements, so that FCFs do not fall into step.
const ADVERTISEMENT_JITTER: Span = Span::from_ms(100);

/// After this long without a sign of life, whoever should have given one every `period` is gone: two and a half periods.
const fn patience(period: Span) -> Span {
    Span::from_ns(period.as_ns().saturating_mul(5) / 2)
}

/// The FC-MAP, unless it cannot be one.
fn usable(map: FcMap) -> Option<FcMap> {
    map.is_usable().then_some(map)
}
