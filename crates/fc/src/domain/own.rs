//! Domain of this switch, and the request for it: [`OwnDomain`].

use sanloom_scsi::time::Instant;

/// Domain of this switch.
#[derive(Debug, Default)]
pub(super) struct OwnDomain {
    /// Kept during a rebuild.
    domain: Option<u8>,
    /// The current principal has granted the domain.
    confirmed: bool,
    /// Time to request a domain, or as principal to grant the own one.
    request_at: Option<Instant>,
    /// Tag of the pending RDI of this switch.
    requesting: Option<u32>,
    /// Time at which waiting for a domain ends.
    give_up_at: Option<Instant>,
}

impl OwnDomain {
    pub(super) fn domain(&self) -> Option<u8> {
        self.domain
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Deadlines of the request.
    pub(super) fn deadlines(&self) -> [Option<Instant>; 2] {
        [self.request_at, self.give_up_at]
    }

    /// Returns true once at the time to request a domain.
    pub(super) fn take_request(&mut self, now: Instant) -> bool {
        self.request_at.take_if(|at| *at <= now).is_some()
    }

    /// Returns true once when waiting for a domain ends.
    pub(super) fn take_give_up(&mut self, now: Instant) -> bool {
        self.give_up_at.take_if(|at| *at <= now).is_some()
    }

    pub(super) fn schedule_request(&mut self, at: Instant) {
        self.request_at = Some(at);
    }

    /// Starts a request to a new principal at `request_at`.
    pub(super) fn start(&mut self, request_at: Instant, give_up_at: Instant) {
        self.confirmed = false;
        self.requesting = None;
        self.request_at = Some(request_at);
        self.give_up_at = Some(give_up_at);
    }

    /// Requests the domain again at `now`, because the path to the principal has changed.
    pub(super) fn restart_unless_confirmed(&mut self, now: Instant) {
        if !self.confirmed {
            self.requesting = None;
            self.request_at = Some(now);
        }
    }

    /// Clears the confirmation and any request.
    pub(super) fn cancel(&mut self) {
        *self = OwnDomain { domain: self.domain, ..OwnDomain::default() };
    }

    /// Stores the tag of the RDI sent for this switch.
    pub(super) fn set_requesting(&mut self, tag: u32) {
        self.requesting = Some(tag);
    }

    /// Returns true if the reply with this tag belongs to the pending RDI, which it ends.
    pub(super) fn take_reply(&mut self, tag: u32) -> bool {
        self.requesting.take_if(|requesting| *requesting == tag).is_some()
    }

    /// Records a domain as valid in the current fabric. Returns true if it is a new one.
    pub(super) fn confirm(&mut self, domain: u8) -> bool {
        let changed = self.domain != Some(domain);
        self.domain = Some(domain);
        self.confirmed = true;
        self.give_up_at = None;
        changed
    }

    /// Removes the domain. Returns false if there was none.
    pub(super) fn remove(&mut self) -> bool {
        self.domain.take().is_some()
    }
}
