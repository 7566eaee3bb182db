//! What switches tell each other of their zoning before they merge (FC-SW, exchange switch support; RFC 4936): [`support`].
//!
//! ```text
//!   enhanced mode:  link up --ESS--> neighbour: in enhanced mode ---> MR, as in basic mode
//!                                    neighbour: not, or knows no ESS ---> isolated
//!   basic mode:     link up ---> MR, as ever;  ESS from a neighbour in enhanced mode ---> isolated
//! ```
//!
//! It goes over the link, from fabric controller to fabric controller: before the merge no other address is reached there. A
//! switch in basic mode asks nobody, so basic fabrics are as they were without ESS. In enhanced mode merge control is a setting of
//! the whole fabric (RFC 4936), so switches that say different things of it do not join either. A switch of the fabric may ask at
//! any time, from domain controller to domain controller, and is told; what it says of itself changes nothing, because its
//! fabric is ours.

use super::{MergeFailure, ZoneServer, ZoneServerConfig};
use crate::config::ZoneDefault;
use crate::ils::{Outcome, Request};
use crate::isolation::asks_for_patience;
use crate::time::Instant;
use crate::zoning::merge::MergeControl;
use sanloom_wire::Message;
use sanloom_wire::ct::Service;
use sanloom_wire::sw_ils::{Ess, EssCapability, SwAcc, SwIls, SwRjtExplanation, SwRjtReason};

const REVISION: u32 = 1;

/// Flags of the zone server, in the fourth byte of its entry.
mod flag {
    pub(super) const ENHANCED_SUPPORTED: u8 = 0x01;
    pub(super) const ENHANCED_ENABLED: u8 = 0x02;
    /// Merge control is *restrict*.
    pub(super) const RESTRICT: u8 = 0x04;
    pub(super) const DEFAULT_OPEN: u8 = 0x08;
    /// All that is defined is one database of the fabric.
    pub(super) const DATABASE_SUPPORTED: u8 = 0x10;
    pub(super) const DATABASE_ENABLED: u8 = 0x20;
    /// Zones may be put in force that no configuration defines.
    pub(super) const ACTIVATE_DIRECT: u8 = 0x40;
    /// Frames are dropped that no zone permits.
    pub(super) const HARD: u8 = 0x80;
}

const FLAGS_AT: usize = 3;
/// Flags of a switch that knows no ESS.
const BASIC: u8 = 0;

/// What a switch says of its zone server; nothing of one that knows no zones.
fn support(config: &ZoneServerConfig, default_zone: ZoneDefault) -> Ess {
    let has = |wanted: bool, flags: u8| if wanted { flags } else { 0 };
    let flags = flag::DATABASE_SUPPORTED
        | flag::DATABASE_ENABLED
        | flag::ACTIVATE_DIRECT
        | has(config.enhanced(), flag::ENHANCED_SUPPORTED | flag::ENHANCED_ENABLED)
        | has(config.merge_control == MergeControl::Restrict, flag::RESTRICT)
        | has(config.hard, flag::HARD)
        | has(default_zone == ZoneDefault::Open, flag::DEFAULT_OPEN);
    let mut entry = [0; 8];
    entry[FLAGS_AT] = flags;
    let Service { gs_type: service, gs_subtype: subtype } = Service::FABRIC_ZONE_SERVER;
    let zoning = EssCapability { service, subtype, entries: vec![entry] };
    let info = [&b"sanloom"[..], b"", env!("CARGO_PKG_VERSION").as_bytes()].map(Box::from).to_vec();
    Ess { revision: REVISION, info, capabilities: if config.supported { vec![zoning] } else { Vec::new() } }
}

/// What the sender says of its zone server: all flags that any entry has.
fn flags_of(ess: &Ess) -> u8 {
    let of_zoning =
        |one: &&EssCapability| Service { gs_type: one.service, gs_subtype: one.subtype } == Service::FABRIC_ZONE_SERVER;
    let entries = ess.capabilities.iter().filter(of_zoning).flat_map(|one| &one.entries);
    entries.fold(0, |flags, entry| flags | entry[FLAGS_AT])
}

impl ZoneServer {
    pub(super) fn support(&self) -> Ess {
        support(&self.config, self.database().default_zone)
    }

    /// A switch of the fabric wants to know what we can do.
    pub(super) fn on_support_query(&mut self, request: Request) {
        self.answer(request, SwIls::SwAcc(SwAcc::Ess(self.support())));
    }

    /// The neighbour tells what it can do, and wants to know it of us.
    pub(super) fn on_support_request(&mut self, request: Request, port: u16, theirs: &Ess) {
        if self.neighbour(port).is_none() {
            // Our end is not ready: it is to wait, or it would not hear of what we find.
            return self.reject(request, SwRjtReason::LOGICAL_BUSY, SwRjtExplanation::NONE);
        }
        self.on_support_query(request);
        self.on_mode(port, flags_of(theirs));
    }

    /// How our ESS ended.
    pub(super) fn on_support(&mut self, now: Instant, port: u16, outcome: Outcome) {
        let retry_at = now + self.config.retry;
        let answer = match outcome {
            Outcome::Answered(Message::SwIls(ils)) => Some(*ils),
            _ => None,
        };
        match answer {
            Some(SwIls::SwAcc(SwAcc::Ess(theirs))) => {
                self.link_answered(port, None);
                self.on_mode(port, flags_of(&theirs));
            }
            None => self.link_answered(port, Some(retry_at)),
            Some(SwIls::SwRjt(reject)) if asks_for_patience(reject) => self.link_answered(port, Some(retry_at)),
            Some(other) => {
                self.link_answered(port, None);
                match other {
                    // Its own ESS may have said enough before.
                    _ if self.has_agreed(port) => {}
                    SwIls::SwRjt(_) => self.on_mode(port, BASIC),
                    _ => self.isolate(port, MergeFailure::NoAnswer),
                }
            }
        }
    }

    fn on_mode(&mut self, port: u16, theirs: u8) {
        let ours_enhanced = self.config.enhanced();
        let ours_restrict = self.config.merge_control == MergeControl::Restrict;
        let has = |flag| theirs & flag != 0;
        if has(flag::ENHANCED_ENABLED) != ours_enhanced {
            self.isolate(port, MergeFailure::Mode { ours_enhanced });
        } else if ours_enhanced && has(flag::RESTRICT) != ours_restrict {
            self.isolate(port, MergeFailure::MergeControl { ours_restrict });
        } else {
            self.link_agreed(port);
        }
    }
}
