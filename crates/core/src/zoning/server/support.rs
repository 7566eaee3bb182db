//! What switches tell each other of their zoning before they merge (FC-SW, exchange switch support; RFC 4936): [`support`].
//!
//! ```text
//!   enhanced mode:  link up --ESS--> neighbour: in enhanced mode ---> MR, as in basic mode
//!                                    neighbour: not, or knows no ESS ---> isolated
//!   basic mode:     link up ---> MR, as ever;  ESS from a neighbour in enhanced mode ---> isolated
//! ```
//!
//! It goes over the link, from fabric controller to fabric controller: before the merge no other address is reached there. A
//! switch in basic mode asks nobody, so basic fabrics are as they were without ESS.

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
}

const FLAGS_AT: usize = 3;

/// What a switch says of its zone server; nothing of one that knows no zones.
fn support(config: &ZoneServerConfig, default_zone: ZoneDefault) -> Ess {
    let has = |wanted: bool, flags: u8| if wanted { flags } else { 0 };
    let flags = flag::DATABASE_SUPPORTED
        | flag::DATABASE_ENABLED
        | flag::ACTIVATE_DIRECT
        | has(config.enhanced(), flag::ENHANCED_SUPPORTED | flag::ENHANCED_ENABLED)
        | has(config.merge_control == MergeControl::Restrict, flag::RESTRICT)
        | has(default_zone == ZoneDefault::Open, flag::DEFAULT_OPEN);
    let mut entry = [0; 8];
    entry[FLAGS_AT] = flags;
    let Service { gs_type: service, gs_subtype: subtype } = Service::FABRIC_ZONE_SERVER;
    let zoning = EssCapability { service, subtype, entries: vec![entry] };
    let info = [&b"sanloom"[..], b"", env!("CARGO_PKG_VERSION").as_bytes()].map(Box::from).to_vec();
    Ess { revision: REVISION, info, capabilities: if config.supported { vec![zoning] } else { Vec::new() } }
}

/// The sender is in enhanced mode.
fn is_enhanced(ess: &Ess) -> bool {
    let of_zoning =
        |one: &&EssCapability| Service { gs_type: one.service, gs_subtype: one.subtype } == Service::FABRIC_ZONE_SERVER;
    let entries = ess.capabilities.iter().filter(of_zoning).flat_map(|one| &one.entries);
    entries.into_iter().any(|entry| entry[FLAGS_AT] & flag::ENHANCED_ENABLED != 0)
}

impl ZoneServer {
    pub(super) fn support(&self) -> Ess {
        support(&self.config, self.database().default_zone)
    }

    /// The neighbour tells what it can do, and wants to know it of us.
    pub(super) fn on_support_request(&mut self, request: Request, port: u16, theirs: &Ess) {
        if self.neighbour(port).is_none() {
            // Our end is not ready: it is to wait, or it would not hear of what we find.
            return self.reject(request, SwRjtReason::LOGICAL_BUSY, SwRjtExplanation::NONE);
        }
        self.answer(request, SwIls::SwAcc(SwAcc::Ess(self.support())));
        self.on_mode(port, is_enhanced(theirs));
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
                self.on_mode(port, is_enhanced(&theirs));
            }
            None => self.link_answered(port, Some(retry_at)),
            Some(SwIls::SwRjt(reject)) if asks_for_patience(reject) => self.link_answered(port, Some(retry_at)),
            Some(other) => {
                self.link_answered(port, None);
                match other {
                    // Its own ESS may have said enough before.
                    _ if self.has_agreed(port) => {}
                    SwIls::SwRjt(_) => self.on_mode(port, false),
                    _ => self.isolate(port, MergeFailure::NoAnswer),
                }
            }
        }
    }

    fn on_mode(&mut self, port: u16, enhanced: bool) {
        match enhanced == self.config.enhanced() {
            true => self.link_agreed(port),
            false => self.isolate(port, MergeFailure::Mode { ours_enhanced: !enhanced }),
        }
    }
}
