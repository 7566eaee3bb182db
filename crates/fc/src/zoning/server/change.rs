//! Zone changes that this switch manages: [`Changes`].

use super::context::Context;
use super::links::Links;
use super::lock::Lock;
use super::{ChangeFailure, Output, TransactionState, ZoneChange, ZoneServerConfig};
use crate::ils::Outcome;
use crate::isolation::is_temporary;
use crate::zoning::objects::Zones;
use sanloom_scsi::time::Instant;
use sanloom_wire::Message;
use sanloom_wire::sw_ils::{SfcOperation, SwAcc, SwIls, ZoneReason, ZoneReply, ZoneStatus};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Changes that this switch manages; the first is in progress.
#[derive(Debug, Default)]
pub(super) struct Changes(VecDeque<Change>);

/// Change with its progress.
#[derive(Debug)]
struct Change {
    tag: u32,
    change: ZoneChange,
    requested_at: Instant,
    phase: Phase,
    /// Domain that last reported busy; `None` for this switch itself.
    busy: Option<u8>,
}

/// Phases of a change, in their order.
#[derive(Debug)]
enum Phase {
    /// Not started, or to be restarted at `until`.
    Waiting { until: Instant },
    /// ACA sent to all other switches.
    Locking { others: BTreeMap<u8, Locking> },
    /// All switches are locked; SFC sent to all. `pending` holds those that have not replied.
    Staging { outcome: Zones, pending: BTreeSet<u8> },
    /// All switches have staged the database, so the change is decided; UFC sent to all.
    Updating { pending: BTreeSet<u8> },
    /// RCA is sent to each switch after its reply to the previous request, so that a retransmitted
    /// ACA cannot arrive after the RCA.
    Releasing { pending: BTreeMap<u8, Releasing>, end: End },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Locking {
    /// ACA is in flight.
    Requested,
    Granted,
    /// Busy with another change; ACA is repeated at this time. The other change ends, yields to
    /// this one, or locked other switches first.
    RetryAt(Instant),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Releasing {
    /// The reply to the previous request is pending.
    AfterReply,
    /// RCA is in flight.
    Requested,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Over,
    Restart,
}

impl Change {
    /// Returns true if other switches are or may be locked for this change and it is not over.
    fn holds_the_fabric(&self) -> bool {
        matches!(self.phase, Phase::Locking { .. } | Phase::Staging { .. } | Phase::Updating { .. })
    }

    fn state(&self) -> TransactionState {
        match self.phase {
            Phase::Waiting { .. } => TransactionState::Waiting,
            Phase::Locking { .. } => TransactionState::Locking,
            Phase::Staging { .. } => TransactionState::Staging,
            Phase::Updating { .. } => TransactionState::Updating,
            Phase::Releasing { .. } => TransactionState::Releasing,
        }
    }

    fn timeout(&self, config: &ZoneServerConfig) -> Option<Instant> {
        let give_up = self.requested_at + config.change_timeout;
        match &self.phase {
            Phase::Waiting { until } => Some((*until).min(give_up)),
            Phase::Locking { others } => {
                let retries = others.values().filter_map(|state| match state {
                    Locking::RetryAt(at) => Some(*at),
                    _ => None,
                });
                Some(retries.fold(give_up, Instant::min))
            }
            _ => None,
        }
    }
}

impl Changes {
    /// Adds a change after those that are already requested.
    pub(super) fn push(&mut self, now: Instant, tag: u32, change: ZoneChange) {
        let phase = Phase::Waiting { until: now };
        self.0.push_back(Change { tag, change, requested_at: now, phase, busy: None });
    }

    /// Returns true if a change managed by this switch holds the fabric.
    pub(super) fn holds_the_fabric(&self) -> bool {
        self.0.front().is_some_and(Change::holds_the_fabric)
    }

    /// Returns true if the change managed by this switch is decided but not over.
    pub(super) fn is_decided(&self) -> bool {
        self.0.front().is_some_and(|change| matches!(change.phase, Phase::Updating { .. }))
    }

    pub(super) fn state(&self) -> TransactionState {
        self.0.front().map_or(TransactionState::Free, Change::state)
    }

    pub(super) fn timeout(&self, config: &ZoneServerConfig) -> Option<Instant> {
        self.0.front()?.timeout(config)
    }

    /// Starts, repeats or ends what is due.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>, links: &Links, lock: &Lock) {
        while let Some(change) = self.0.front_mut() {
            let late = change.requested_at + cx.config.change_timeout <= cx.now;
            let due = match &mut change.phase {
                _ if !cx.config.supported => {
                    self.finish(cx, Err(vec![ChangeFailure::NotSupported]));
                    continue;
                }
                Phase::Waiting { .. } | Phase::Locking { .. } if late => {
                    let domain = change.busy;
                    self.finish(cx, Err(vec![ChangeFailure::Busy { domain }]));
                    continue;
                }
                Phase::Waiting { until } if *until > cx.now => return,
                Phase::Waiting { .. } => {
                    let ready = lock.manager().is_none() && links.are_merged(cx.members, cx.store);
                    if self.begin(cx, ready) {
                        continue;
                    }
                    return;
                }
                Phase::Locking { others } => {
                    let due = |state: &Locking| matches!(state, Locking::RetryAt(at) if *at <= cx.now);
                    let due: Vec<u8> = others.iter().filter(|(_, s)| due(s)).map(|(domain, _)| *domain).collect();
                    due.iter().for_each(|domain| _ = others.insert(*domain, Locking::Requested));
                    due
                }
                _ => return,
            };
            for domain in due {
                request_lock(cx, domain);
            }
            return;
        }
    }

    /// Locks the fabric, or waits. Returns true if the change continued at once because there is no
    /// other switch.
    fn begin(&mut self, cx: &mut Context<'_>, ready: bool) -> bool {
        let others = cx.members.others();
        let Some(change) = self.0.front_mut() else { return false };
        if !ready || (cx.members.domain.is_none() && !others.is_empty()) {
            change.busy = None;
            change.phase = Phase::Waiting { until: cx.now + cx.config.retry };
            return false;
        }
        change.phase = Phase::Locking { others: others.iter().map(|domain| (*domain, Locking::Requested)).collect() };
        for domain in &others {
            request_lock(cx, *domain);
        }
        self.check_locked(cx);
        others.is_empty()
    }

    /// Handles a change of the reachable switches or of the own domain.
    pub(super) fn members_changed(&mut self, cx: &mut Context<'_>) {
        let reachable = &cx.members.reachable;
        let Some(change) = self.0.front_mut() else { return };
        match &mut change.phase {
            Phase::Locking { .. } | Phase::Staging { .. } => self.restart(cx),
            Phase::Updating { pending } => {
                pending.retain(|domain| reachable.contains_key(domain));
                self.check_updated(cx);
            }
            Phase::Releasing { pending, .. } => {
                pending.retain(|domain, _| reachable.contains_key(domain));
                self.check_released(cx);
            }
            Phase::Waiting { .. } => {}
        }
    }

    /// Handles the reply to the pending ACA, SFC, UFC or RCA.
    pub(super) fn outcome(&mut self, cx: &mut Context<'_>, domain: u8, outcome: Outcome) {
        let retry_at = cx.now + cx.config.retry;
        let Some(change) = self.0.front_mut() else { return };
        let unanswered = outcome == Outcome::Unanswered;
        let reply = read(domain, outcome);
        match &mut change.phase {
            Phase::Waiting { .. } => {}
            Phase::Locking { others } => match reply {
                Ok(ZoneReply { status: ZoneStatus::DONE, .. }) => {
                    others.insert(domain, Locking::Granted);
                    self.check_locked(cx);
                }
                Ok(ZoneReply { status: ZoneStatus::BUSY, reason: ZoneReason::FABRIC_CHANGING, .. }) => {
                    change.busy = Some(domain);
                    self.restart(cx);
                }
                Ok(ZoneReply { status: ZoneStatus::BUSY, .. }) => {
                    others.insert(domain, Locking::RetryAt(retry_at));
                    change.busy = Some(domain);
                }
                Err(ChangeFailure::Rejected { reject, .. }) if is_temporary(reject) => {
                    others.insert(domain, Locking::RetryAt(retry_at));
                    change.busy = Some(domain);
                }
                Ok(ZoneReply { reason, .. }) => self.finish(cx, Err(vec![ChangeFailure::Refused { domain, reason }])),
                Err(failure) => self.finish(cx, Err(vec![failure])),
            },
            Phase::Staging { pending, .. } => match reply {
                Ok(ZoneReply { status: ZoneStatus::DONE, .. }) => {
                    pending.remove(&domain);
                    self.check_staged(cx);
                }
                Ok(ZoneReply { reason, .. }) => self.finish(cx, Err(vec![ChangeFailure::Refused { domain, reason }])),
                Err(failure) => self.finish(cx, Err(vec![failure])),
            },
            Phase::Updating { pending } => {
                // The change is decided. A switch that does not reply may have missed the UFC; a
                // switch that rejects it got the database from a neighbour.
                if unanswered {
                    cx.out.request_domain(domain, SwIls::Ufc);
                } else {
                    pending.remove(&domain);
                    self.check_updated(cx);
                }
            }
            Phase::Releasing { pending, .. } => match pending.get_mut(&domain) {
                Some(state @ Releasing::AfterReply) => {
                    *state = Releasing::Requested;
                    cx.out.request_domain(domain, SwIls::Rca);
                }
                Some(Releasing::Requested) => {
                    pending.remove(&domain);
                    self.check_released(cx);
                }
                None => {}
            },
        }
    }

    /// Abandons locking the fabric in favour of a switch with precedence. Returns false if this
    /// switch has precedence or is past locking.
    pub(super) fn yield_to(&mut self, cx: &mut Context<'_>, manager: u8) -> bool {
        let first = cx.members.domain.is_some_and(|own| own < manager);
        let locking = self.0.front().is_some_and(|change| matches!(change.phase, Phase::Locking { .. }));
        if first || !locking {
            return false;
        }
        self.restart(cx);
        true
    }

    /// After all switches are locked, computes the new database and stages it.
    fn check_locked(&mut self, cx: &mut Context<'_>) {
        let Some(change) = self.0.front_mut() else { return };
        let Phase::Locking { others } = &change.phase else { return };
        if others.values().any(|state| *state != Locking::Granted) {
            return;
        }
        let pending: BTreeSet<u8> = others.keys().copied().collect();
        let current = cx.store.zones().database();
        match change.change.outcome(current, &cx.config.limits) {
            Err(problems) => self.finish(cx, Err(problems.into_iter().map(ChangeFailure::Zones).collect())),
            Ok(database) if database == *current => self.finish(cx, Ok(())),
            Ok(database) => {
                let operation = match database.effective {
                    Some(_) => SfcOperation::ACTIVATE,
                    None => SfcOperation::DEACTIVATE,
                };
                let outcome = cx.store.zones().successor(database);
                let sets = outcome.wire().clone();
                change.phase = Phase::Staging { outcome, pending: pending.clone() };
                for domain in pending {
                    cx.out.request_domain(domain, SwIls::Sfc { operation, zones: sets.clone() });
                }
                self.check_staged(cx);
            }
        }
    }

    /// Decides the change after all switches have staged it.
    fn check_staged(&mut self, cx: &mut Context<'_>) {
        let Some(change) = self.0.front_mut() else { return };
        let Phase::Staging { outcome, pending } = &change.phase else { return };
        if !pending.is_empty() {
            return;
        }
        let outcome = outcome.clone();
        let others = cx.members.others();
        change.phase = Phase::Updating { pending: others.iter().copied().collect() };
        cx.store.adopt(outcome, cx.out);
        for domain in others {
            cx.out.request_domain(domain, SwIls::Ufc);
        }
        self.check_updated(cx);
    }

    fn check_updated(&mut self, cx: &mut Context<'_>) {
        let done = |change: &Change| matches!(&change.phase, Phase::Updating { pending } if pending.is_empty());
        if self.0.front().is_some_and(done) {
            self.finish(cx, Ok(()));
        }
    }

    /// Reports the result of the change and releases all switches that may be locked.
    fn finish(&mut self, cx: &mut Context<'_>, result: Result<(), Vec<ChangeFailure>>) {
        let Some(change) = self.0.front() else { return };
        cx.out.push(Output::ChangeDone { tag: change.tag, result });
        self.release(cx, End::Over);
    }

    /// Releases all switches and schedules another attempt.
    fn restart(&mut self, cx: &mut Context<'_>) {
        self.release(cx, End::Restart);
        self.check_released(cx);
    }

    fn release(&mut self, cx: &mut Context<'_>, end: End) {
        let Some(change) = self.0.front_mut() else { return };
        let others = if change.holds_the_fabric() { cx.members.others() } else { Vec::new() };
        if others.is_empty() && end == End::Over {
            self.0.pop_front();
            return;
        }
        let state = |other| if cx.out.is_pending(other) { Releasing::AfterReply } else { Releasing::Requested };
        let pending: BTreeMap<u8, Releasing> = others.into_iter().map(|other| (other, state(other))).collect();
        let requested = pending.iter().filter(|(_, state)| **state == Releasing::Requested);
        let requested: Vec<u8> = requested.map(|(other, _)| *other).collect();
        change.phase = Phase::Releasing { pending, end };
        for domain in requested {
            cx.out.request_domain(domain, SwIls::Rca);
        }
    }

    fn check_released(&mut self, cx: &mut Context<'_>) {
        let Some(change) = self.0.front_mut() else { return };
        let Phase::Releasing { pending, end } = &change.phase else { return };
        if pending.is_empty() {
            match end {
                End::Over => _ = self.0.pop_front(),
                End::Restart => change.phase = Phase::Waiting { until: cx.now + cx.config.retry },
            }
        }
    }
}

/// Sends ACA to a switch.
fn request_lock(cx: &mut Context<'_>, domain: u8) {
    let domains = cx.members.domains().into_iter().collect();
    cx.out.request_domain(domain, SwIls::Aca(domains));
}

/// Classifies the reply of a domain.
fn read(domain: u8, outcome: Outcome) -> Result<ZoneReply, ChangeFailure> {
    match outcome {
        Outcome::Answered(Message::SwIls(ils)) => match *ils {
            SwIls::SwAcc(SwAcc::Zone(reply)) => Ok(reply),
            SwIls::SwRjt(reject) => Err(ChangeFailure::Rejected { domain, reject }),
            _ => Err(ChangeFailure::NoAnswer { domain }),
        },
        _ => Err(ChangeFailure::NoAnswer { domain }),
    }
}
