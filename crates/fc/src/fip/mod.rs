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
//! | machine | role |
//! |---|---|
//! | [`fcf::Fcf`] | controller of a switch's port in one VLAN: virtual F_Ports and E_Ports |
//! | [`enode::Enode`] | controller of a host's port in one VLAN: finds an FCF and logs in |
//! | [`vlan::VlanResponder`] | responder to VLAN requests on a port without an untagged FCF |
//! | [`vn2vn::Vn2vn`] | station of a segment without FCF |
//!
//! Data frames bypass these machines: drivers pass each frame to [`Bindings`] and count the
//! rejected ones.

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

use sanloom_scsi::time::Span;
use sanloom_wire::ether::FcMap;

/// Default FKA_ADV_PERIOD of an FCF (FC-BB, FIP timers).
pub const DEFAULT_PERIOD: Span = Span::from_ms(8_000);
/// Interval between keep-alives of a VN_Port (FC-BB, FIP timers).
pub const VN_PORT_KEEP_ALIVE: Span = Span::from_secs(90);
/// Maximum random delay added to the advertisement period, so that FCFs do not synchronise.
pub const ADVERTISEMENT_JITTER: Span = Span::from_ms(100);

/// Time without a message after which a peer that sends one every `period` counts as gone: two and
/// a half periods.
pub const fn silence_limit(period: Span) -> Span {
    Span::from_ns(period.as_ns().saturating_mul(5) / 2)
}

/// Returns the FC-MAP if it is legal.
fn usable(map: FcMap) -> Option<FcMap> {
    map.is_usable().then_some(map)
}
