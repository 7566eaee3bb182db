//! A change that this switch manages: [`Change`].

use super::{Asked, ChangeFailure, Output, TransactionState, ZoneChange, ZoneServer, ZoneServerConfig};
use crate::ils::{Outcome, Peer};
use crate::isolation::asks_for_patience;
use crate::time::Instant;
use crate::zoning::objects::Zones;
use sanloom_wire::Message;
use sanloom_wire::sw_ils::{SfcOperation, SwAcc, SwIls, ZoneReason, ZoneReply, ZoneStatus};
use std::collections::{BTreeMap, BTreeSet};

/// A change and how far it is.
#[derive(Debug)]
pub(super) struct Change {
    tag: u32,
    change: ZoneChange,
    asked_at: Instant,
    phase: Phase,
    /// Who was busy last; nothing: this switch itself.
    busy: Option<u8>,
}

/// The states of a change, in their order.
#[derive(Debug)]
enum Phase {
    /// Not begun, or to begin again.
    Waiting { until: Instant },
    /// ACA to all.
    Locking { others: BTreeMap<u8, Locking> },
    /// All are locked: SFC to all. Those of `waiting` have not answered.
    Staging { outcome: Zones, waiting: BTreeSet<u8> },
    /// All have staged it, so it is decided: UFC to all.
    Updating { waiting: BTreeSet<u8> },
    /// RCA to all, to each when it has answered what was asked before: an ACA that is sent once more must not follow.
    Releasing { waiting: BTreeMap<u8, Releasing>, end: End },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Locking {
    Asked,
    Granted,
    /// Busy with another change: to be asked again. That one ends, or yields to us, or has locked others before we did.
    AskAgain(Instant),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Releasing {
    AnswersFirst,
    Asked,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Over,
    StartAgain,
}

impl Change {
    pub(super) fn new(tag: u32, change: ZoneChange, now: Instant) -> Change {
        Change { tag, change, asked_at: now, phase: Phase::Waiting { until: now }, busy: None }
    }

    /// Others are, or may be, locked for it, and it is not over.
    pub(super) fn holds_the_fabric(&self) -> bool {
        matches!(self.phase, Phase::Locking { .. } | Phase::Staging { .. } | Phase::Updating { .. })
    }

    pub(super) fn is_locking(&self) -> bool {
        matches!(self.phase, Phase::Locking { .. })
    }

    pub(super) fn state(&self) -> TransactionState {
        match self.phase {
            Phase::Waiting { .. } => TransactionState::Waiting,
            Phase::Locking { .. } => TransactionState::Locking,
            Phase::Staging { .. } => TransactionState::Staging,
            Phase::Updating { .. } => TransactionState::Updating,
            Phase::Releasing { .. } => TransactionState::Releasing,
        }
    }

    pub(super) fn timeout(&self, config: &ZoneServerConfig) -> Option<Instant> {
        let give_up = self.asked_at + config.change_patience;
        match &self.phase {
            Phase::Waiting { until } => Some((*until).min(give_up)),
            Phase::Locking { others } => {
                let again = others.values().filter_map(|state| match state {
                    Locking::AskAgain(at) => Some(*at),
                    _ => None,
                });
                Some(again.fold(give_up, Instant::min))
            }
            _ => None,
        }
    }
}

impl ZoneServer {
    /// A change of our own holds the fabric.
    pub(super) fn is_managing(&self) -> bool {
        self.changes.front().is_some_and(Change::holds_the_fabric)
    }

    /// Our own change is decided and not over.
    pub(super) fn is_decided(&self) -> bool {
        self.changes.front().is_some_and(|change| matches!(change.phase, Phase::Updating { .. }))
    }

    /// Does what time asks for.
    pub(super) fn drive_changes(&mut self, now: Instant) {
        while let Some(change) = self.changes.front_mut() {
            let late = change.asked_at + self.config.change_patience <= now;
            let again = match &mut change.phase {
                _ if !self.config.supported => {
                    self.finish(Err(vec![ChangeFailure::NotSupported]));
                    continue;
                }
                Phase::Waiting { .. } | Phase::Locking { .. } if late => {
                    let domain = change.busy;
                    self.finish(Err(vec![ChangeFailure::Busy { domain }]));
                    continue;
                }
                Phase::Waiting { until } if *until > now => return,
                Phase::Waiting { .. } => {
                    if self.begin(now) {
                        continue;
                    }
                    return;
                }
                Phase::Locking { others } => {
                    let due = |state: &Locking| matches!(state, Locking::AskAgain(at) if *at <= now);
                    let again: Vec<u8> = others.iter().filter(|(_, s)| due(s)).map(|(domain, _)| *domain).collect();
                    again.iter().for_each(|domain| _ = others.insert(*domain, Locking::Asked));
                    again
                }
                _ => return,
            };
            for domain in again {
                self.ask_for_lock(domain);
            }
            return;
        }
    }

    /// Locks the fabric, or waits. True: the change went on at once, because there is nobody to wait for.
    fn begin(&mut self, now: Instant) -> bool {
        let ready = self.lock.is_none() && self.links_settled();
        let others: Vec<u8> = self.reachable.keys().copied().collect();
        let retry_at = now + self.config.retry;
        let Some(change) = self.changes.front_mut() else { return false };
        if !ready || (self.domain.is_none() && !others.is_empty()) {
            change.busy = None;
            change.phase = Phase::Waiting { until: retry_at };
            return false;
        }
        change.phase = Phase::Locking { others: others.iter().map(|domain| (*domain, Locking::Asked)).collect() };
        for domain in &others {
            self.ask_for_lock(*domain);
        }
        self.check_locked();
        others.is_empty()
    }

    fn ask_for_lock(&mut self, domain: u8) {
        let known = self.reachable.keys().copied().chain(self.domain).collect::<BTreeSet<u8>>();
        self.ask_domain(domain, SwIls::Aca(known.into_iter().collect()));
    }

    fn ask_domain(&mut self, domain: u8, ils: SwIls) {
        self.ask(Peer::Domain(domain), ils, Asked::Domain { domain });
    }

    /// The fabric has other switches than before, or we have another domain.
    pub(super) fn on_participants_changed(&mut self, now: Instant) {
        let reachable = &self.reachable;
        let Some(change) = self.changes.front_mut() else { return };
        match &mut change.phase {
            Phase::Locking { .. } | Phase::Staging { .. } => self.start_again(now),
            Phase::Updating { waiting } => {
                waiting.retain(|domain| reachable.contains_key(domain));
                self.check_updated();
            }
            Phase::Releasing { waiting, .. } => {
                waiting.retain(|domain, _| reachable.contains_key(domain));
                self.check_released(now);
            }
            Phase::Waiting { .. } => {}
        }
    }

    /// The answer to ACA, SFC, UFC or RCA, whichever the change waits for.
    pub(super) fn on_domain_outcome(&mut self, now: Instant, domain: u8, outcome: Outcome) {
        let retry_at = now + self.config.retry;
        let Some(change) = self.changes.front_mut() else { return };
        let unanswered = outcome == Outcome::Unanswered;
        let reply = read(domain, outcome);
        match &mut change.phase {
            Phase::Waiting { .. } => {}
            Phase::Locking { others } => match reply {
                Ok(ZoneReply { status: ZoneStatus::DONE, .. }) => {
                    others.insert(domain, Locking::Granted);
                    self.check_locked();
                }
                Ok(ZoneReply { status: ZoneStatus::BUSY, reason: ZoneReason::FABRIC_CHANGING, .. }) => {
                    change.busy = Some(domain);
                    self.start_again(now);
                }
                Ok(ZoneReply { status: ZoneStatus::BUSY, .. }) => {
                    others.insert(domain, Locking::AskAgain(retry_at));
                    change.busy = Some(domain);
                }
                Err(ChangeFailure::Rejected { reject, .. }) if asks_for_patience(reject) => {
                    others.insert(domain, Locking::AskAgain(retry_at));
                    change.busy = Some(domain);
                }
                Ok(ZoneReply { reason, .. }) => self.finish(Err(vec![ChangeFailure::Refused { domain, reason }])),
                Err(failure) => self.finish(Err(vec![failure])),
            },
            Phase::Staging { waiting, .. } => match reply {
                Ok(ZoneReply { status: ZoneStatus::DONE, .. }) => {
                    waiting.remove(&domain);
                    self.check_staged();
                }
                Ok(ZoneReply { reason, .. }) => self.finish(Err(vec![ChangeFailure::Refused { domain, reason }])),
                Err(failure) => self.finish(Err(vec![failure])),
            },
            Phase::Updating { waiting } => {
                // It is decided. Who does not answer may not have heard of it; who refuses has it from a neighbour.
                if unanswered {
                    self.ask_domain(domain, SwIls::Ufc);
                } else {
                    waiting.remove(&domain);
                    self.check_updated();
                }
            }
            Phase::Releasing { waiting, .. } => match waiting.get_mut(&domain) {
                Some(state @ Releasing::AnswersFirst) => {
                    *state = Releasing::Asked;
                    self.ask_domain(domain, SwIls::Rca);
                }
                Some(Releasing::Asked) => {
                    waiting.remove(&domain);
                    self.check_released(now);
                }
                None => {}
            },
        }
    }

    /// Goes on when all are locked: works out what the change makes of the database, and stages it.
    fn check_locked(&mut self) {
        let Some(change) = self.changes.front_mut() else { return };
        let Phase::Locking { others } = &change.phase else { return };
        if others.values().any(|state| *state != Locking::Granted) {
            return;
        }
        let waiting: BTreeSet<u8> = others.keys().copied().collect();
        let current = self.zones.database();
        match change.change.outcome(current, &self.config.limits) {
            Err(problems) => self.finish(Err(problems.into_iter().map(ChangeFailure::Zones).collect())),
            Ok(database) if database == *current => self.finish(Ok(())),
            Ok(database) => {
                let operation = match database.effective {
                    Some(_) => SfcOperation::ACTIVATE,
                    None => SfcOperation::DEACTIVATE,
                };
                let outcome = Zones::new(database);
                let sets = outcome.wire().clone();
                change.phase = Phase::Staging { outcome, waiting: waiting.clone() };
                for domain in waiting {
                    self.ask_domain(domain, SwIls::Sfc { operation, zones: sets.clone() });
                }
                self.check_staged();
            }
        }
    }

    /// Decides when all have staged it.
    fn check_staged(&mut self) {
        let others: BTreeSet<u8> = self.reachable.keys().copied().collect();
        let Some(change) = self.changes.front_mut() else { return };
        let Phase::Staging { outcome, waiting } = &change.phase else { return };
        if !waiting.is_empty() {
            return;
        }
        let outcome = outcome.clone();
        change.phase = Phase::Updating { waiting: others.clone() };
        self.adopt(outcome, None);
        for domain in others {
            self.ask_domain(domain, SwIls::Ufc);
        }
        self.check_updated();
    }

    fn check_updated(&mut self) {
        let done = |change: &Change| matches!(&change.phase, Phase::Updating { waiting } if waiting.is_empty());
        if self.changes.front().is_some_and(done) {
            self.finish(Ok(()));
        }
    }

    /// Says how the change ended, and unlocks all that may be locked.
    fn finish(&mut self, result: Result<(), Vec<ChangeFailure>>) {
        let Some(change) = self.changes.front() else { return };
        self.outputs.push_back(Output::ChangeDone { tag: change.tag, result });
        self.release(End::Over);
    }

    /// Unlocks all and tries once more after a while.
    pub(super) fn start_again(&mut self, now: Instant) {
        self.release(End::StartAgain);
        self.check_released(now);
    }

    fn release(&mut self, end: End) {
        let Some(change) = self.changes.front_mut() else { return };
        let others: Vec<u8> =
            if change.holds_the_fabric() { self.reachable.keys().copied().collect() } else { Vec::new() };
        if others.is_empty() && end == End::Over {
            self.changes.pop_front();
            return;
        }
        let open = |other: u8| self.asked.values().any(|asked| *asked == Asked::Domain { domain: other });
        let state = |other| if open(other) { Releasing::AnswersFirst } else { Releasing::Asked };
        let waiting: BTreeMap<u8, Releasing> = others.into_iter().map(|other| (other, state(other))).collect();
        let free: Vec<u8> = waiting.iter().filter(|(_, s)| **s == Releasing::Asked).map(|(other, _)| *other).collect();
        change.phase = Phase::Releasing { waiting, end };
        for domain in free {
            self.ask_domain(domain, SwIls::Rca);
        }
    }

    fn check_released(&mut self, now: Instant) {
        let Some(change) = self.changes.front_mut() else { return };
        let Phase::Releasing { waiting, end } = &change.phase else { return };
        if waiting.is_empty() {
            match end {
                End::Over => _ = self.changes.pop_front(),
                End::StartAgain => change.phase = Phase::Waiting { until: now + self.config.retry },
            }
        }
    }
}

/// What a domain answered.
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
