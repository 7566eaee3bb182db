//! Zone merge on the links of a switch: [`Links`].

use super::context::{Context, Members};
use super::lock::Lock;
use super::outbox::Pending;
use super::store::Store;
use super::{MergeFailure, Output};
use crate::ils::{Outcome, Peer, Request};
use crate::isolation::is_temporary;
use crate::zoning::objects::Zones;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::{
    Mrra, MrraAcc, MrraResponse, SwAcc, SwIls, SwRjtExplanation, SwRjtReason, ZoneReason, ZoneReply, ZoneSets,
    ZoneStatus,
};
use sanloom_wire::{Message, Wwnn};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Links to other switches of the fabric, by port.
#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<u16, Link>);

/// Link to another switch of the fabric.
#[derive(Debug)]
struct Link {
    neighbour: Wwnn,
    /// The neighbour is in the same zoning mode, or its mode does not matter because this switch is
    /// in basic mode.
    same_mode: bool,
    /// Revision of our database that the neighbour has.
    synced: Option<u64>,
    /// The neighbour's database was received and merged into ours.
    received: bool,
    /// Both ends had the same database at some time; the link is part of the fabric.
    merged: bool,
    /// An ESS, MRRA or MR of this switch is in flight.
    in_flight: bool,
    /// Time of the next attempt.
    retry_at: Option<Instant>,
    failure: Option<MergeFailure>,
    /// The neighbour gave a final reply to one of our MRs, so it has received our zones.
    answered: bool,
}

/// Links on which this switch may send requests of the merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gate {
    /// None: the switch is locked, or manages a change that is not decided.
    Closed,
    /// Links that are part of the fabric: a decided change is being adopted.
    Merged,
    /// All links: no change is in progress.
    Open,
}

/// An MR larger than this, in bytes, is announced by an MRRA because it needs more than one frame.
const LARGE_BYTES: usize = 2048;

const VENDOR: [u8; 8] = *b"SANLOOM ";
const MRRA_REVISION: u32 = 1;

const BUSY: ZoneReply = ZoneReply::new(ZoneStatus::BUSY, ZoneReason::FABRIC_CHANGING);
const CANNOT_MERGE: ZoneReply = ZoneReply::new(ZoneStatus::FAILED, ZoneReason::CANNOT_MERGE);

impl Link {
    fn is_open(&self) -> bool {
        self.failure.is_none()
    }

    fn is_synced(&self, store: &Store) -> bool {
        self.synced == Some(store.revision())
    }

    /// Returns true if an MR must be sent: the neighbour lacks our zones or has not confirmed that
    /// they are equal. After a conflict it is still sent once, so that the neighbour can report the
    /// details.
    fn needs_merge(&self, store: &Store) -> bool {
        match self.failure {
            None => !self.is_synced(store) || !self.answered,
            Some(MergeFailure::Conflicts(_)) => !self.answered,
            Some(_) => false,
        }
    }

    fn passes(&self, gate: Gate) -> bool {
        match gate {
            Gate::Closed => false,
            Gate::Merged => self.merged,
            Gate::Open => true,
        }
    }

    /// Message of a reply; `None` if the request got no reply and must be repeated.
    fn reply(&mut self, retry_at: Instant, outcome: Outcome) -> Option<SwIls> {
        self.in_flight = false;
        match outcome {
            Outcome::Answered(Message::SwIls(ils)) => Some(*ils),
            _ => {
                self.retry_at = Some(retry_at);
                None
            }
        }
    }
}

impl Links {
    /// Handles a link that joins the fabric, possibly again with another domain of this switch.
    ///
    /// In the latter case the existing state is kept, because the neighbour may not have noticed
    /// the change and would not repeat its MR.
    pub(super) fn up(&mut self, cx: &mut Context<'_>, port: u16, neighbour: Wwnn) {
        if self.0.get(&port).is_some_and(|link| link.neighbour == neighbour && link.is_open()) {
            return;
        }
        self.down(cx, port);
        let link = Link {
            neighbour,
            same_mode: !cx.config.enhanced(),
            synced: None,
            received: false,
            merged: false,
            in_flight: false,
            retry_at: None,
            failure: None,
            answered: false,
        };
        self.0.insert(port, link);
        if !cx.config.supported {
            cx.out.push(Output::LinkMerged { port });
        }
    }

    pub(super) fn down(&mut self, cx: &mut Context<'_>, port: u16) {
        self.0.remove(&port);
        cx.out.retain(|pending| pending.port() != Some(port));
    }

    /// Name of the neighbour on a port whose link takes part in merges.
    pub(super) fn neighbour(&self, port: u16) -> Option<Wwnn> {
        self.0.get(&port).map(|link| link.neighbour)
    }

    /// Returns true if no merge is in progress and every merged neighbour is reachable. A change
    /// that omits a neighbour would split the fabric.
    pub(super) fn are_merged(&self, members: &Members, store: &Store) -> bool {
        let known = |neighbour| members.reachable.values().any(|name| *name == neighbour);
        let mut open = self.0.values().filter(|link| link.is_open());
        open.all(|link| link.merged && link.is_synced(store) && !link.in_flight && known(link.neighbour))
    }

    /// Returns true if a neighbour of the fabric may lack our current zones.
    pub(super) fn any_behind(&self, store: &Store) -> bool {
        self.0.values().any(|link| link.is_open() && link.merged && !link.is_synced(store))
    }

    /// Sends the requests that are due.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>, gate: Gate) {
        if !cx.config.supported {
            return;
        }
        let is_due = |link: &Link| {
            link.needs_merge(cx.store)
                && !link.in_flight
                && link.retry_at.is_none_or(|at| at <= cx.now)
                && link.passes(gate)
        };
        let due: Vec<u16> = self.0.iter().filter(|(_, link)| is_due(link)).map(|(port, _)| *port).collect();
        for port in due {
            let encoded_len = cx.store.zones().encoded_len();
            if !self.has_same_mode(port) {
                let ess = SwIls::Ess(super::support::support(cx.config, cx.store.zones().database()));
                self.request(cx, port, ess, Pending::Support { port });
            } else if encoded_len > LARGE_BYTES {
                let size_words = encoded_len.div_ceil(4) as u32;
                let mrra = Mrra { revision: MRRA_REVISION, size_words, vendor: VENDOR, vendor_info: [0; 8] };
                self.request(cx, port, SwIls::Mrra(mrra), Pending::Room { port });
            } else {
                self.send_merge(cx, port);
            }
        }
    }

    /// Time of the next request on a link.
    pub(super) fn timeout(&self, store: &Store, gate: Gate) -> Option<Instant> {
        let waiting = self.0.values().filter(|link| link.needs_merge(store) && link.passes(gate));
        waiting.filter_map(|link| link.retry_at).min()
    }

    /// Handles an MR: merges the neighbour's database into ours. `locked`: this switch or another
    /// one holds the fabric for a change.
    pub(super) fn merge_request(
        &mut self,
        cx: &mut Context<'_>,
        lock: &mut Lock,
        locked: bool,
        port: u16,
        sets: &Arc<ZoneSets>,
    ) -> ZoneReply {
        let Some(link) = self.0.get(&port) else { return BUSY };
        let (joined, open) = (link.merged, link.is_open());
        if !link.same_mode {
            return if open { BUSY } else { CANNOT_MERGE };
        }
        if joined && cx.store.is_staged(sets) {
            lock.commit_staged(cx);
        }
        // Switches of one process share the value, so this comparison is cheap.
        let same = *sets == *cx.store.zones().wire();
        if locked && !(joined && same) {
            return BUSY;
        }
        if same && open {
            self.database_received(cx, port, true);
            return ZoneReply::DONE;
        }
        let ours = cx.store.zones();
        let theirs = match ours.decode(sets) {
            Ok(theirs) => theirs,
            Err(bad) => {
                self.isolate(cx, port, MergeFailure::Invalid(bad));
                return ZoneReply::new(ZoneStatus::FAILED, ZoneReason::INVALID_DATA);
            }
        };
        let config = cx.config;
        match ours.merge(&theirs, config.merge_control, &config.limits, config.rules) {
            Err(conflicts) => {
                self.isolate(cx, port, MergeFailure::Conflicts(conflicts));
                CANNOT_MERGE
            }
            Ok(_) if !open => CANNOT_MERGE,
            Ok(merged) => {
                if merged.changes_ours {
                    cx.store.adopt(merged.zones, cx.out);
                }
                self.database_received(cx, port, !merged.changes_theirs);
                ZoneReply::DONE
            }
        }
    }

    /// Records that the neighbour's database was received. `equal`: it equals ours.
    fn database_received(&mut self, cx: &mut Context<'_>, port: u16, equal: bool) {
        if let Some(link) = self.0.get_mut(&port) {
            link.received = true;
            link.synced = Some(cx.store.revision()).filter(|_| equal);
        }
        self.check_merged(cx, port);
    }

    fn check_merged(&mut self, cx: &mut Context<'_>, port: u16) {
        if let Some(link) = self.0.get_mut(&port)
            && link.received
            && link.is_synced(cx.store)
            && link.answered
            && !link.merged
        {
            link.merged = true;
            cx.out.push(Output::LinkMerged { port });
        }
    }

    /// Handles the reply to our MR.
    pub(super) fn merge_outcome(&mut self, cx: &mut Context<'_>, port: u16, sent: &Zones, outcome: Outcome) {
        let retry_at = cx.now + cx.config.retry;
        let Some(link) = self.0.get_mut(&port) else { return };
        let Some(ils) = link.reply(retry_at, outcome) else { return };
        match ils {
            SwIls::SwAcc(SwAcc::Zone(reply)) => match reply.status {
                ZoneStatus::DONE => {
                    link.answered = true;
                    if sent == cx.store.zones() {
                        link.synced = Some(cx.store.revision());
                    }
                    self.check_merged(cx, port);
                }
                ZoneStatus::BUSY => link.retry_at = Some(retry_at),
                _ => {
                    link.answered = true;
                    self.isolate(cx, port, MergeFailure::Refused(reply.reason));
                }
            },
            SwIls::SwRjt(reject) if is_temporary(reject) => link.retry_at = Some(retry_at),
            SwIls::SwRjt(reject) => self.isolate(cx, port, MergeFailure::NotSupported(reject)),
            _ => self.isolate(cx, port, MergeFailure::NoAnswer),
        }
    }

    /// Handles the reply to our MRRA. After a reject the MR is sent anyway.
    pub(super) fn room_outcome(&mut self, cx: &mut Context<'_>, gate: Gate, port: u16, outcome: Outcome) {
        let retry_at = cx.now + cx.config.retry;
        let needed = cx.store.zones().encoded_len() as u64;
        let Some(link) = self.0.get_mut(&port) else { return };
        let Some(ils) = link.reply(retry_at, outcome) else { return };
        match ils {
            SwIls::SwAcc(SwAcc::Mrra(accept)) if accept.response != MrraResponse::AVAILABLE => {
                let max_bytes = 4 * u64::from(accept.max_words);
                if max_bytes < needed {
                    self.isolate(cx, port, MergeFailure::TooLarge { max_bytes });
                } else {
                    let wait = Span::from_secs(accept.wait_seconds.into());
                    link.retry_at = Some(retry_at.max(cx.now + wait));
                }
            }
            SwIls::SwAcc(SwAcc::Mrra(_)) | SwIls::SwRjt(_) if link.needs_merge(cx.store) && link.passes(gate) => {
                self.send_merge(cx, port);
            }
            _ => link.retry_at = Some(retry_at),
        }
    }

    /// Handles an MRRA: the neighbour requests room for its MR.
    pub(super) fn room_request(&mut self, cx: &mut Context<'_>, port: u16, request: Request, mrra: Mrra) {
        let max_words = u32::try_from(cx.config.limits.database_bytes / 4).unwrap_or(u32::MAX);
        let response = match mrra.size_words <= max_words {
            true => MrraResponse::AVAILABLE,
            false => MrraResponse::NOT_AVAILABLE,
        };
        let accept = MrraAcc { vendor: VENDOR, response, max_words, wait_seconds: 0 };
        cx.out.answer(request, SwIls::SwAcc(SwAcc::Mrra(accept)));
        if response == MrraResponse::NOT_AVAILABLE {
            self.isolate(cx, port, MergeFailure::NoRoom { bytes: 4 * u64::from(mrra.size_words) });
        }
    }

    /// Rejects a request because this switch does not support zoning.
    ///
    /// A neighbour that requests a merge isolates its end upon the reject and sends nothing more,
    /// so this end is isolated too. Before this end is up, the neighbour gets "busy" instead.
    pub(super) fn reject_unsupported(&mut self, cx: &mut Context<'_>, request: Request, ils: &SwIls) {
        let merge = match (ils, request.from) {
            (SwIls::Mr(_), Peer::Link(port)) => Some(port),
            _ => None,
        };
        if merge.is_some_and(|port| !self.0.contains_key(&port)) {
            return cx.out.reject(request, SwRjtReason::LOGICAL_BUSY, SwRjtExplanation::NONE);
        }
        cx.out.reject(request, SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED);
        if let Some(port) = merge {
            self.isolate(cx, port, MergeFailure::Unsupported);
        }
    }

    /// Isolates a link. If it is isolated already, a failure with more detail replaces the stored
    /// one: conflicts are more useful than a reject.
    pub(super) fn isolate(&mut self, cx: &mut Context<'_>, port: u16, failure: MergeFailure) {
        let Some(link) = self.0.get_mut(&port) else { return };
        let is_detailed =
            |failure: &MergeFailure| matches!(failure, MergeFailure::Conflicts(_) | MergeFailure::Invalid(_));
        let has_detail = link.failure.as_ref().is_some_and(is_detailed);
        if link.is_open() || (is_detailed(&failure) && !has_detail) {
            link.failure = Some(failure.clone());
            cx.out.push(Output::Isolate { port, failure });
        }
    }

    /// Records the end of our ESS. `retry_at` is `None` if the result is final.
    pub(super) fn support_ended(&mut self, port: u16, retry_at: Option<Instant>) {
        if let Some(link) = self.0.get_mut(&port) {
            (link.in_flight, link.retry_at) = (false, retry_at);
        }
    }

    /// Records that the neighbour is in the same mode.
    pub(super) fn set_same_mode(&mut self, port: u16) {
        if let Some(link) = self.0.get_mut(&port) {
            link.same_mode = true;
            link.retry_at.take_if(|_| !link.in_flight);
        }
    }

    /// Returns true if the neighbour is known to be in the same mode.
    pub(super) fn has_same_mode(&self, port: u16) -> bool {
        self.0.get(&port).is_some_and(|link| link.same_mode)
    }

    fn send_merge(&mut self, cx: &mut Context<'_>, port: u16) {
        let zones = cx.store.zones().clone();
        self.request(cx, port, SwIls::Mr(zones.wire().clone()), Pending::Merge { port, zones });
    }

    fn request(&mut self, cx: &mut Context<'_>, port: u16, ils: SwIls, pending: Pending) {
        if let Some(link) = self.0.get_mut(&port) {
            link.in_flight = true;
            link.retry_at = None;
            cx.out.request(Peer::Link(port), ils, pending);
        }
    }
}
