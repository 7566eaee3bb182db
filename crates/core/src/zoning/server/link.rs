//! The merge on each link of a zone server: [`Link`].

use super::{Asked, MergeFailure, Output, ZoneServer};
use crate::ils::{Outcome, Peer, Request};
use crate::isolation::asks_for_patience;
use crate::time::Instant;
use crate::zoning::objects::Zones;
use sanloom_wire::sw_ils::{Mrra, MrraAcc, MrraResponse, SwAcc, SwIls, ZoneReason, ZoneReply, ZoneSets, ZoneStatus};
use sanloom_wire::{Message, Wwnn};
use std::sync::Arc;

/// A link to a switch of the fabric.
#[derive(Debug)]
pub(super) struct Link {
    pub neighbour: Wwnn,
    /// The neighbour is in the same mode of zoning, or need not be asked.
    agreed: bool,
    /// The neighbour has the database that we have now.
    pub synced: bool,
    /// The neighbour's database has come, and ours is merged with it.
    heard: bool,
    /// Both ends had the same: the link is part of the fabric.
    merged: bool,
    /// An ESS, MRRA or MR of ours is on its way.
    waiting: bool,
    /// When to ask again.
    retry_at: Option<Instant>,
    failure: Option<MergeFailure>,
    /// The neighbour has answered an MR of ours for good, and so knows our zones.
    told: bool,
}

/// A larger MR is announced by an MRRA: more than one frame.
const LARGE_BYTES: usize = 2048;

const VENDOR: [u8; 8] = *b"SANLOOM ";
const MRRA_REVISION: u32 = 1;

impl Link {
    fn is_open(&self) -> bool {
        self.failure.is_none()
    }

    /// The link is part of the fabric, and the neighbour may not have our zones.
    pub(super) fn is_behind(&self) -> bool {
        self.is_open() && self.merged && !self.synced
    }

    /// The neighbour lacks our zones, or does not know that we have the same. When they contradict its own, it shall be
    /// able to say where.
    fn wants_merge(&self) -> bool {
        match self.failure {
            None => !self.synced || !self.told,
            Some(MergeFailure::Conflicts(_)) => !self.told,
            Some(_) => false,
        }
    }
}

impl ZoneServer {
    /// A link is part of the fabric, or is so again with another domain of this switch. What its ends have told each other
    /// since it came up still counts then, merged or not: the neighbour need not have noticed, and would not say it again.
    pub(super) fn on_link_up(&mut self, port: u16, neighbour: Wwnn) {
        if self.links.get(&port).is_some_and(|link| link.neighbour == neighbour && link.is_open()) {
            return;
        }
        self.on_link_down(port);
        let link = Link {
            neighbour,
            agreed: !self.config.enhanced(),
            synced: false,
            heard: false,
            merged: false,
            waiting: false,
            retry_at: None,
            failure: None,
            told: false,
        };
        self.links.insert(port, link);
        if !self.config.supported {
            self.outputs.push_back(Output::LinkMerged { port });
        }
    }

    pub(super) fn on_link_down(&mut self, port: u16) {
        self.links.remove(&port);
        let here = |asked: &Asked| matches!(asked, Asked::Support { port: p } | Asked::Room { port: p } | Asked::Merge { port: p, .. } if *p == port);
        self.asked.retain(|_, asked| !here(asked));
    }

    /// The switch behind a port whose link takes part in merges.
    pub fn neighbour(&self, port: u16) -> Option<Wwnn> {
        self.links.get(&port).map(|link| link.neighbour)
    }

    /// No merge is under way, and whoever has merged with us can be reached: a change that leaves it out would part us.
    pub(super) fn links_settled(&self) -> bool {
        let known = |neighbour| self.reachable.values().any(|name| *name == neighbour);
        let mut open = self.links.values().filter(|link| link.is_open());
        open.all(|link| link.merged && link.synced && !link.waiting && known(link.neighbour))
    }

    /// Sends what links wait for.
    pub(super) fn drive_links(&mut self, now: Instant) {
        if !self.config.supported {
            return;
        }
        let due: Vec<u16> = self
            .links
            .iter()
            .filter(|(_, link)| link.wants_merge() && !link.waiting)
            .filter(|(_, link)| link.retry_at.is_none_or(|at| at <= now) && self.may_merge(link))
            .map(|(port, _)| *port)
            .collect();
        for port in due {
            if self.links.get(&port).is_some_and(|link| !link.agreed) {
                self.ask_on_link(port, SwIls::Ess(self.support()), Asked::Support { port });
            } else if self.zones.encoded_len() > LARGE_BYTES {
                let size_words = self.zones.encoded_len().div_ceil(4) as u32;
                let mrra = Mrra { revision: MRRA_REVISION, size_words, vendor: VENDOR, vendor_info: [0; 8] };
                self.ask_on_link(port, SwIls::Mrra(mrra), Asked::Room { port });
            } else {
                self.send_merge(port);
            }
        }
    }

    /// A change in progress does not let a link join, and a locked switch keeps quiet until it has the new database.
    fn may_merge(&self, link: &Link) -> bool {
        match &self.lock {
            Some(lock) => lock.updated && link.merged,
            None => !self.is_managing() || (self.is_decided() && link.merged),
        }
    }

    fn send_merge(&mut self, port: u16) {
        let zones = self.zones.clone();
        self.ask_on_link(port, SwIls::Mr(zones.wire().clone()), Asked::Merge { port, zones });
    }

    fn ask_on_link(&mut self, port: u16, ils: SwIls, asked: Asked) {
        if let Some(link) = self.links.get_mut(&port) {
            link.waiting = true;
            link.retry_at = None;
            self.ask(Peer::Link(port), ils, asked);
        }
    }

    pub(super) fn link_timeout(&self) -> Option<Instant> {
        let waits = |link: &&Link| link.wants_merge() && self.may_merge(link);
        self.links.values().filter(waits).filter_map(|link| link.retry_at).min()
    }

    /// The neighbour's database: merges it with ours.
    pub(super) fn on_merge_request(&mut self, port: u16, sets: &Arc<ZoneSets>) -> ZoneReply {
        const BUSY: ZoneReply = ZoneReply::new(ZoneStatus::BUSY, ZoneReason::FABRIC_CHANGING);
        let Some(link) = self.links.get(&port) else { return BUSY };
        if !link.agreed {
            return if link.is_open() { BUSY } else { ZoneReply::new(ZoneStatus::FAILED, ZoneReason::CANNOT_MERGE) };
        }
        let (joined, open) = (link.merged, link.is_open());
        if joined && self.is_staged(sets) {
            self.commit_staged(Some(port));
        }
        // Between switches of one process it is the same value, which nobody has to look at.
        let same = *sets == *self.zones.wire();
        if self.locked_by().is_some() && !(joined && same) {
            return BUSY;
        }
        if same && open {
            self.on_heard(port, true);
            return ZoneReply::DONE;
        }
        let default_zone = self.zones.database().default_zone;
        let theirs = match Zones::from_wire(sets, default_zone) {
            Ok(theirs) => theirs,
            Err(bad) => {
                self.isolate(port, MergeFailure::Invalid(bad));
                return ZoneReply::new(ZoneStatus::FAILED, ZoneReason::INVALID_DATA);
            }
        };
        let config = &self.config;
        match self.zones.merge(&theirs, config.merge_control, &config.limits, config.rules) {
            Err(conflicts) => {
                self.isolate(port, MergeFailure::Conflicts(conflicts));
                ZoneReply::new(ZoneStatus::FAILED, ZoneReason::CANNOT_MERGE)
            }
            Ok(_) if !open => ZoneReply::new(ZoneStatus::FAILED, ZoneReason::CANNOT_MERGE),
            Ok(merged) => {
                let known = !merged.changes_theirs;
                if merged.changes_ours {
                    self.adopt(merged.zones, Some(port).filter(|_| known));
                }
                self.on_heard(port, known);
                ZoneReply::DONE
            }
        }
    }

    /// The neighbour's database has come. `known`: ours is no other.
    fn on_heard(&mut self, port: u16, known: bool) {
        if let Some(link) = self.links.get_mut(&port) {
            link.heard = true;
            link.synced = known;
        }
        self.check_merged(port);
    }

    fn check_merged(&mut self, port: u16) {
        if let Some(link) = self.links.get_mut(&port)
            && link.heard
            && link.synced
            && link.told
            && !link.merged
        {
            link.merged = true;
            self.outputs.push_back(Output::LinkMerged { port });
        }
    }

    /// The answer to our MR.
    pub(super) fn on_merge_outcome(&mut self, now: Instant, port: u16, sent: &Zones, outcome: Outcome) {
        let retry_at = now + self.config.retry;
        let current = sent == &self.zones;
        let Some(link) = self.links.get_mut(&port) else { return };
        link.waiting = false;
        let Some(ils) = answered(link, retry_at, outcome) else { return };
        match ils {
            SwIls::SwAcc(SwAcc::Zone(reply)) => match reply.status {
                ZoneStatus::DONE => {
                    link.told = true;
                    link.synced |= current;
                    self.check_merged(port);
                }
                ZoneStatus::BUSY => link.retry_at = Some(retry_at),
                _ => {
                    link.told = true;
                    self.isolate(port, MergeFailure::Refused(reply.reason));
                }
            },
            SwIls::SwRjt(reject) if asks_for_patience(reject) => link.retry_at = Some(retry_at),
            SwIls::SwRjt(reject) => self.isolate(port, MergeFailure::NotSupported(reject)),
            _ => self.isolate(port, MergeFailure::NoAnswer),
        }
    }

    /// The answer to our MRRA. A switch that rejects it gets the MR all the same.
    pub(super) fn on_room(&mut self, now: Instant, port: u16, outcome: Outcome) {
        let retry_at = now + self.config.retry;
        let wanted = self.zones.encoded_len() as u64;
        let Some(link) = self.links.get_mut(&port) else { return };
        link.waiting = false;
        let Some(ils) = answered(link, retry_at, outcome) else { return };
        match ils {
            SwIls::SwAcc(SwAcc::Mrra(accept)) if accept.response != MrraResponse::AVAILABLE => {
                let max_bytes = 4 * u64::from(accept.max_words);
                if max_bytes < wanted {
                    self.isolate(port, MergeFailure::TooLarge { max_bytes });
                } else {
                    let wait = crate::time::Span::from_secs(accept.wait_seconds.into());
                    link.retry_at = Some(retry_at.max(now + wait));
                }
            }
            SwIls::SwAcc(SwAcc::Mrra(_)) | SwIls::SwRjt(_) if self.link_may_merge(port) => self.send_merge(port),
            _ => link_retry(self.links.get_mut(&port), retry_at),
        }
    }

    /// Our ESS has ended; nothing: for good.
    pub(super) fn link_answered(&mut self, port: u16, retry_at: Option<Instant>) {
        if let Some(link) = self.links.get_mut(&port) {
            (link.waiting, link.retry_at) = (false, retry_at);
        }
    }

    /// The neighbour is in the same mode.
    pub(super) fn link_agreed(&mut self, port: u16) {
        if let Some(link) = self.links.get_mut(&port) {
            link.agreed = true;
            link.retry_at.take_if(|_| !link.waiting);
        }
    }

    /// It has said that it is in the same mode.
    pub(super) fn has_agreed(&self, port: u16) -> bool {
        self.links.get(&port).is_some_and(|link| link.agreed)
    }

    fn link_may_merge(&self, port: u16) -> bool {
        self.links.get(&port).is_some_and(|link| link.wants_merge() && self.may_merge(link))
    }

    /// The neighbour asks whether there is room for its MR.
    pub(super) fn on_room_request(&mut self, port: u16, request: Request, mrra: Mrra) {
        let max_words = u32::try_from(self.config.limits.database_bytes / 4).unwrap_or(u32::MAX);
        let response = match mrra.size_words <= max_words {
            true => MrraResponse::AVAILABLE,
            false => MrraResponse::NOT_AVAILABLE,
        };
        let accept = MrraAcc { vendor: VENDOR, response, max_words, wait_seconds: 0 };
        self.answer(request, SwIls::SwAcc(SwAcc::Mrra(accept)));
        if response == MrraResponse::NOT_AVAILABLE {
            self.isolate(port, MergeFailure::NoRoom { bytes: 4 * u64::from(mrra.size_words) });
        }
    }

    /// Isolates a link, or says more about one that is: conflicts are worth more than "refused".
    pub(super) fn isolate(&mut self, port: u16, failure: MergeFailure) {
        let Some(link) = self.links.get_mut(&port) else { return };
        let says_more = matches!(failure, MergeFailure::Conflicts(_) | MergeFailure::Invalid(_));
        let said = matches!(link.failure, Some(MergeFailure::Conflicts(_) | MergeFailure::Invalid(_)));
        if link.is_open() || (says_more && !said) {
            link.failure = Some(failure.clone());
            self.outputs.push_back(Output::Isolate { port, failure });
        }
    }
}

/// The message of an answer; nothing for a request that nobody answered, which is to be sent again.
fn answered(link: &mut Link, retry_at: Instant, outcome: Outcome) -> Option<SwIls> {
    match outcome {
        Outcome::Answered(Message::SwIls(ils)) => Some(*ils),
        _ => {
            link.retry_at = Some(retry_at);
            None
        }
    }
}

fn link_retry(link: Option<&mut Link>, retry_at: Instant) {
    if let Some(link) = link {
        link.retry_at = Some(retry_at);
    }
}
