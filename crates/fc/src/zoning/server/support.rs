//! Exchange of zoning capabilities before a merge (FC-SW, exchange switch support; RFC 4936):
//! [`support`].
//!
//! ```text
//!   enhanced mode:  link up --ESS--> neighbour: in enhanced mode ---> MR, as in basic mode
//!                                    neighbour: not, or rejects ESS ---> isolated
//!   basic mode:     link up ---> MR, as ever;  ESS from a neighbour in enhanced mode ---> isolated
//! ```
//!
//! The exchange runs over the link between fabric controllers, because no other address is
//! reachable there before the merge. A switch in basic mode sends no ESS, so basic fabrics behave
//! as without ESS.
//!
//! In enhanced mode merge control is a setting of the whole fabric (RFC 4936), so switches with
//! different settings do not join either. A switch of the fabric may send ESS at any time between
//! domain controllers and gets a reply. Its own capabilities are ignored then, because it is
//! already part of the fabric.

use super::context::Context;
use super::links::Links;
use super::{MergeFailure, ZoneServerConfig};
use crate::config::MergeControl;
use crate::ils::{Outcome, Request};
use crate::isolation::is_temporary;
use crate::zoning::database::ZoneDatabase;
use sanloom_wire::Message;
use sanloom_wire::ct::Service;
use sanloom_wire::sw_ils::{Ess, EssCapability, SwAcc, SwIls, SwRjtExplanation, SwRjtReason};

const REVISION: u32 = 1;

/// Flags of the zone server, in the fourth byte of its ESS entry.
mod flag {
    pub(super) const ENHANCED_SUPPORTED: u8 = 0x01;
    pub(super) const ENHANCED_ENABLED: u8 = 0x02;
    /// Merge control is *restrict*.
    pub(super) const RESTRICT: u8 = 0x04;
    pub(super) const DEFAULT_OPEN: u8 = 0x08;
    /// All definitions form one database of the fabric.
    pub(super) const DATABASE_SUPPORTED: u8 = 0x10;
    pub(super) const DATABASE_ENABLED: u8 = 0x20;
    /// Zones that no configuration defines may be activated.
    pub(super) const ACTIVATE_DIRECT: u8 = 0x40;
    /// Frames that no zone permits are dropped.
    pub(super) const HARD: u8 = 0x80;
}

const FLAGS_AT: usize = 3;
/// Flags of a switch that rejects ESS.
const BASIC: u8 = 0;

/// ESS payload of a switch; without a zone-server capability if it does not support zoning.
pub(super) fn support(config: &ZoneServerConfig, database: &ZoneDatabase) -> Ess {
    let has = |condition: bool, flags: u8| if condition { flags } else { 0 };
    let flags = flag::DATABASE_SUPPORTED
        | flag::DATABASE_ENABLED
        | flag::ACTIVATE_DIRECT
        | has(config.enhanced(), flag::ENHANCED_SUPPORTED | flag::ENHANCED_ENABLED)
        | has(config.merge_control == MergeControl::Restrict, flag::RESTRICT)
        | has(config.hard, flag::HARD)
        | has(database.default_is_open(), flag::DEFAULT_OPEN);
    let mut entry = [0; 8];
    entry[FLAGS_AT] = flags;
    let Service { gs_type: service, gs_subtype: subtype } = Service::FABRIC_ZONE_SERVER;
    let zoning = EssCapability { service, subtype, entries: vec![entry] };
    let info = [&b"sanloom"[..], b"", env!("CARGO_PKG_VERSION").as_bytes()].map(Box::from).to_vec();
    Ess { revision: REVISION, info, capabilities: if config.supported { vec![zoning] } else { Vec::new() } }
}

/// Zone-server flags of the sender, combined over all entries.
fn flags_of(ess: &Ess) -> u8 {
    let of_zoning =
        |one: &&EssCapability| Service { gs_type: one.service, gs_subtype: one.subtype } == Service::FABRIC_ZONE_SERVER;
    let entries = ess.capabilities.iter().filter(of_zoning).flat_map(|one| &one.entries);
    entries.fold(0, |flags, entry| flags | entry[FLAGS_AT])
}

/// Answers an ESS from a switch of the fabric.
pub(super) fn support_query(cx: &mut Context<'_>, request: Request) {
    let support = support(cx.config, cx.store.zones().database());
    cx.out.answer(request, SwIls::SwAcc(SwAcc::Ess(support)));
}

impl Links {
    /// Handles an ESS of a neighbour before the merge: replies and compares the modes.
    pub(super) fn support_request(&mut self, cx: &mut Context<'_>, request: Request, port: u16, theirs: &Ess) {
        if self.neighbour(port).is_none() {
            // This end is not up yet. The neighbour must retry, or it would not receive the result.
            return cx.out.reject(request, SwRjtReason::LOGICAL_BUSY, SwRjtExplanation::NONE);
        }
        support_query(cx, request);
        self.compare_modes(cx, port, flags_of(theirs));
    }

    /// Handles the reply to our ESS.
    pub(super) fn support_outcome(&mut self, cx: &mut Context<'_>, port: u16, outcome: Outcome) {
        let retry_at = cx.now + cx.config.retry;
        let reply = match outcome {
            Outcome::Answered(Message::SwIls(ils)) => Some(*ils),
            _ => None,
        };
        match reply {
            Some(SwIls::SwAcc(SwAcc::Ess(theirs))) => {
                self.support_ended(port, None);
                self.compare_modes(cx, port, flags_of(&theirs));
            }
            None => self.support_ended(port, Some(retry_at)),
            Some(SwIls::SwRjt(reject)) if is_temporary(reject) => self.support_ended(port, Some(retry_at)),
            Some(other) => {
                self.support_ended(port, None);
                match other {
                    // An earlier ESS of the neighbour may already have been sufficient.
                    _ if self.has_same_mode(port) => {}
                    SwIls::SwRjt(_) => self.compare_modes(cx, port, BASIC),
                    _ => self.isolate(cx, port, MergeFailure::NoAnswer),
                }
            }
        }
    }

    fn compare_modes(&mut self, cx: &mut Context<'_>, port: u16, theirs: u8) {
        let ours_enhanced = cx.config.enhanced();
        let ours_restrict = cx.config.merge_control == MergeControl::Restrict;
        let has = |flag| theirs & flag != 0;
        if has(flag::ENHANCED_ENABLED) != ours_enhanced {
            self.isolate(cx, port, MergeFailure::Mode { ours_enhanced });
        } else if ours_enhanced && has(flag::RESTRICT) != ours_restrict {
            self.isolate(cx, port, MergeFailure::MergeControl { ours_restrict });
        } else {
            self.set_same_mode(port);
        }
    }
}
