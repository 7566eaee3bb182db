//! Selection of the principal switch: [`Selection`].

use super::rebuild::Kind;
use super::{DomainConfig, NEVER_PRINCIPAL, WAS_PRINCIPAL};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Wwnn;

/// Claim to be principal switch, established or proposed. The smaller one is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Claim {
    /// No switch of its fabric has a domain yet.
    pub(super) proposed: bool,
    pub(super) priority: u8,
    pub(super) name: Wwnn,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// No domain and no link. The switch becomes principal at this time if nothing changes.
    Alone(Instant),
    /// The fabric is being rebuilt until this time; information from other switches is ignored.
    Hold(Instant, Kind),
    /// Selection of the principal until this time. `late`: the best claim is known, but no
    /// invitation arrived within the first period.
    Selecting { until: Instant, late: bool },
    /// There is a principal and a path to it.
    Joined,
}

/// End of a phase, to which the other parts react.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PhaseEnd {
    /// No better claim than the own one was received, or the switch is alone.
    BecomePrincipal,
    /// The rebuild is over, so the selection starts.
    Select,
    /// No switch may be principal. `late` as in [`Phase::Selecting`].
    NoCandidate { late: bool },
    /// The switch with the best claim sent no invitation.
    Rebuild,
}

/// Best known claim, and the path to the switch that it names.
#[derive(Debug)]
pub(super) struct Selection {
    name: Wwnn,
    configured_priority: u8,
    f_s_tov: Span,
    phase: Phase,
    claim: Claim,
    /// Own priority; improved after a time as principal.
    priority: u8,
    /// Port towards the principal; `None` if this switch is the principal or there is none.
    upstream: Option<u16>,
}

impl Selection {
    pub(super) fn new(config: &DomainConfig) -> Selection {
        let (name, priority) = (config.switch_name, config.priority.max(1));
        Selection {
            name,
            configured_priority: priority,
            f_s_tov: config.f_s_tov,
            phase: Phase::Alone(Instant::NEVER),
            claim: Claim { proposed: true, priority, name },
            priority,
            upstream: None,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Best known claim.
    pub(super) fn claim(&self) -> Claim {
        self.claim
    }

    pub(super) fn upstream(&self) -> Option<u16> {
        self.upstream
    }

    pub(super) fn is_joined(&self) -> bool {
        self.phase == Phase::Joined
    }

    /// Returns true during a rebuild.
    pub(super) fn is_holding(&self) -> bool {
        matches!(self.phase, Phase::Hold(..))
    }

    pub(super) fn is_selecting(&self) -> bool {
        matches!(self.phase, Phase::Selecting { .. })
    }

    pub(super) fn is_principal(&self) -> bool {
        self.is_joined() && self.claim.name == self.name
    }

    /// Returns true if no known switch may be principal.
    pub(super) fn has_no_candidate(&self) -> bool {
        self.claim.priority == NEVER_PRINCIPAL
    }

    /// Proposal of this switch as principal.
    fn own_claim(&self) -> Claim {
        Claim { proposed: true, priority: self.priority, name: self.name }
    }

    /// Claim that this switch sends to its neighbours.
    pub(super) fn advertised(&self) -> Claim {
        debug_assert!(!self.is_joined() || !self.claim.proposed, "the fabric has only a proposed principal");
        if self.is_holding() { self.own_claim() } else { self.claim }
    }

    fn withdraw(&mut self) {
        self.claim = self.own_claim();
        self.upstream = None;
    }

    /// Time at which the phase ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Alone(at) | Phase::Hold(at, _) | Phase::Selecting { until: at, .. } => Some(at),
            Phase::Joined => None,
        }
    }

    /// Returns the consequence if the phase is over.
    pub(super) fn on_timeout(&mut self, now: Instant) -> Option<PhaseEnd> {
        self.deadline().filter(|at| *at <= now)?;
        match self.phase {
            Phase::Alone(_) => Some(PhaseEnd::BecomePrincipal),
            Phase::Hold(..) => Some(PhaseEnd::Select),
            Phase::Selecting { late, .. } if self.has_no_candidate() => Some(PhaseEnd::NoCandidate { late }),
            Phase::Selecting { .. } if self.upstream.is_none() => Some(PhaseEnd::BecomePrincipal),
            Phase::Selecting { late: true, .. } => Some(PhaseEnd::Rebuild),
            Phase::Selecting { late: false, .. } => {
                self.extend(now);
                None
            }
            Phase::Joined => None,
        }
    }

    /// Extends the selection beyond the quiet time of every other switch, because an invitation
    /// must pass all switches in between.
    pub(super) fn extend(&mut self, now: Instant) {
        self.phase = Phase::Selecting { until: now + self.f_s_tov.times(3), late: true };
    }

    /// Starts the quiet time of a selection again.
    pub(super) fn restart_quiet(&mut self, now: Instant) {
        self.phase = Phase::Selecting { until: now + self.f_s_tov.times(2), late: false };
    }

    /// Starts a selection with only the own claim.
    pub(super) fn select(&mut self, now: Instant) {
        self.withdraw();
        self.restart_quiet(now);
    }

    /// Adopts a better proposal during a selection.
    pub(super) fn prefer(&mut self, now: Instant, claim: Claim, port: u16) {
        self.claim = claim;
        self.upstream = Some(port);
        self.restart_quiet(now);
    }

    /// Joins the fabric of `claim`; `port` leads to its principal.
    pub(super) fn join(&mut self, claim: Claim, port: u16) {
        self.claim = Claim { proposed: false, ..claim };
        self.reset_priority();
        self.upstream = Some(port);
        self.phase = Phase::Joined;
    }

    /// Makes this switch the principal.
    pub(super) fn lead(&mut self) {
        self.phase = Phase::Joined;
        self.claim = Claim { proposed: false, ..self.own_claim() };
        self.upstream = None;
    }

    /// Starts a rebuild. `domains` is the number of domains of the fabric before.
    pub(super) fn hold(&mut self, now: Instant, kind: Kind, domains: usize) {
        if self.is_joined() {
            let was_principal = self.is_principal() && domains > 1;
            self.reset_priority();
            if was_principal {
                self.priority = self.priority.min(WAS_PRINCIPAL);
            }
        }
        self.withdraw();
        self.phase = Phase::Hold(now + self.f_s_tov, kind);
    }

    /// Leaves the fabric, because there is no link. The switch becomes principal at `until`.
    pub(super) fn leave(&mut self, until: Instant) {
        self.withdraw();
        self.phase = Phase::Alone(until);
    }

    /// Withdraws the advantage of a former principal.
    pub(super) fn reset_priority(&mut self) {
        self.priority = self.configured_priority;
    }

    /// Replaces the lost port towards the principal by another one to the same neighbour.
    pub(super) fn reroute(&mut self, port: u16) {
        debug_assert!(self.is_joined(), "there is no principal to reroute to");
        self.upstream = Some(port);
    }
}
