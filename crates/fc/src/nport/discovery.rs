//! Target discovery: GID_FF, or GPN_FT if the name server does not support GID_FF.

use super::dispatch::{Failure, MAX_TRIES};
use super::exchanges::Exchanges;
use super::pending::Purpose;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::FcType;
use sanloom_wire::ct::{CtReason, CtReject};
use sanloom_wire::ns::{NsRequest, explanation, fcp_feature};

/// Minimum interval between a reply and the next query. RSCNs in quick succession, as at the start
/// of a fabric, then cause only one query.
const SPACING: Span = Span::from_ms(10);

/// Interval between queries without an RSCN, in units of R_A_TOV. Without it, an RSCN lost on every
/// attempt would hide a target permanently.
const AUDIT_R_A_TOVS: u64 = 6;

/// Query for all targets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Discovery {
    /// A query is pending.
    open: bool,
    /// Something changed since the last query was sent.
    dirty: bool,
    not_before: Instant,
    /// Time of the next query if nothing changes.
    audit_at: Option<Instant>,
    /// GID_FF was rejected as unsupported, so GPN_FT is used.
    plain: bool,
    /// Number of consecutive failures.
    tries: u8,
}

/// Consequence of a failed query.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AfterFailure {
    /// Another query is scheduled.
    Scheduled,
    /// There are no targets.
    NoTargets,
    /// The name server does not reply, so the port starts again with FLOGI.
    GiveUp,
}

impl Discovery {
    /// Time of the next query.
    pub(super) fn due_at(&self) -> Option<Instant> {
        match self.open {
            true => None,
            false if self.dirty => Some(self.not_before),
            false => self.audit_at,
        }
    }

    /// Schedules a query because something changed.
    pub(super) fn schedule(&mut self) {
        self.dirty = true;
    }

    /// Schedules a query, but not before `at`.
    pub(super) fn schedule_at(&mut self, at: Instant) {
        self.dirty = true;
        self.not_before = at;
    }

    /// Clears the pending query, because its exchange was closed.
    pub(super) fn cancel(&mut self) {
        self.open = false;
    }

    /// Sends the query if it is due.
    pub(super) fn start_due(&mut self, now: Instant, exchanges: &mut Exchanges) {
        if self.due_at().is_none_or(|at| at > now) {
            return;
        }
        exchanges.counters.discoveries += 1;
        self.dirty = false;
        self.open = true;
        let fc4_type = FcType::FCP.0;
        let request = if self.plain {
            NsRequest::GpnFt { domain: 0, area: 0, fc4_type }
        } else {
            NsRequest::GidFf { domain: 0, area: 0, features: fcp_feature::TARGET, fc4_type }
        };
        exchanges.request_name_server(now, Purpose::Discovery, request);
    }

    /// Handles the reply to a query, which lists the targets.
    pub(super) fn on_reply(&mut self, now: Instant, r_a_tov: Span) {
        self.open = false;
        self.tries = 0;
        self.audit_at = Some(now + r_a_tov.times(AUDIT_R_A_TOVS));
        self.not_before = now + SPACING;
    }

    /// Handles the failure of a query.
    pub(super) fn on_failure(&mut self, now: Instant, failure: Failure, exchanges: &mut Exchanges) -> AfterFailure {
        self.open = false;
        if let Failure::CtReject(reject) = failure {
            if is_no_target(&reject) {
                return AfterFailure::NoTargets;
            }
            let unsupported = matches!(reject.reason, CtReason::INVALID_COMMAND | CtReason::NOT_SUPPORTED);
            if unsupported && !self.plain {
                self.plain = true;
                self.schedule_at(now);
                return AfterFailure::Scheduled;
            }
        }
        self.tries = self.tries.saturating_add(1);
        let at = match failure {
            Failure::Timeout if self.tries < MAX_TRIES => now,
            Failure::Timeout => return AfterFailure::GiveUp,
            _ => now + exchanges.back_off(self.tries),
        };
        self.schedule_at(at);
        AfterFailure::Scheduled
    }
}

/// Returns true for "unable to perform" with an explanation that no such port exists.
fn is_no_target(reject: &CtReject) -> bool {
    reject.reason == CtReason::UNABLE
        && matches!(
            reject.explanation,
            explanation::FC4_TYPES_NOT_REGISTERED
                | explanation::FC4_FEATURES_NOT_REGISTERED
                | explanation::DATABASE_EMPTY
                | explanation::NO_OBJECT_IN_SCOPE
        )
}
