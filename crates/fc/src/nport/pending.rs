//! Exchanges originated by this port that await a reply. The number of logins in flight is
//! bounded, so a linear search suffices.

use super::adapter::AdapterStep;
use crate::exchange::CONTROL_OX_IDS;
use sanloom_scsi::time::Instant;
use sanloom_wire::{FcId, Header};

/// Maximum number of logins and checks of remote ports in flight. Hundreds of targets that appear
/// at once must not flood the fabric.
const MAX_LOGINS: usize = 16;

/// Purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Registration of the own adapter.
    Adapter(AdapterStep),
    /// Step of the fabric login or registration; the port's state determines which one.
    Fabric,
    /// Query for all targets.
    Discovery,
    /// N_Port login with this port.
    Plogi(FcId),
    /// Process login with this port.
    Prli(FcId),
    /// Check at the other port whether the login still exists.
    Adisc(FcId),
    /// Check at the name server whether the port still exists.
    Verify(FcId),
    /// LOGO to a port; its reply has no effect.
    Logout,
}

impl Purpose {
    fn is_about_remote(self) -> bool {
        !matches!(self, Purpose::Fabric | Purpose::Discovery | Purpose::Adapter(_) | Purpose::Logout)
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    deadline: Instant,
    ox_id: u16,
    d_id: FcId,
    purpose: Purpose,
}

/// All pending exchanges.
#[derive(Debug)]
pub(super) struct Pending {
    open: Vec<Open>,
    next_ox_id: u16,
}

impl Default for Pending {
    fn default() -> Self {
        Pending { open: Vec::new(), next_ox_id: *CONTROL_OX_IDS.start() }
    }
}

impl Pending {
    /// Opens an exchange and returns its OX_ID. The numbers are used in turn, so that a late reply
    /// does not match a newer exchange.
    pub(super) fn open(&mut self, deadline: Instant, d_id: FcId, purpose: Purpose) -> u16 {
        while self.open.iter().any(|open| open.ox_id == self.next_ox_id) {
            self.advance();
        }
        let ox_id = self.next_ox_id;
        self.advance();
        self.open_as(ox_id, deadline, d_id, purpose);
        ox_id
    }

    /// Opens an exchange with a given OX_ID.
    pub(super) fn open_as(&mut self, ox_id: u16, deadline: Instant, d_id: FcId, purpose: Purpose) {
        self.open.push(Open { deadline, ox_id, d_id, purpose });
    }

    fn advance(&mut self) {
        self.next_ox_id =
            if self.next_ox_id >= *CONTROL_OX_IDS.end() { *CONTROL_OX_IDS.start() } else { self.next_ox_id + 1 };
    }

    fn find(&self, reply: &Header) -> Option<usize> {
        self.open.iter().position(|open| open.ox_id == reply.ox_id && open.d_id == reply.s_id)
    }

    /// Returns true if the reply belongs to a pending exchange.
    pub(super) fn is_open(&self, reply: &Header) -> bool {
        self.find(reply).is_some()
    }

    /// Closes the exchange of a reply.
    pub(super) fn close(&mut self, reply: &Header) -> Option<Purpose> {
        let at = self.find(reply)?;
        Some(self.open.remove(at).purpose)
    }

    /// Closes and returns an expired exchange.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<Purpose> {
        let at = self.open.iter().position(|open| open.deadline <= now)?;
        Some(self.open.remove(at).purpose)
    }

    /// Closes all exchanges about a remote port; their late replies count as stale.
    pub(super) fn forget_remote(&mut self, port_id: FcId) {
        self.open.retain(|open| match open.purpose {
            Purpose::Plogi(id) | Purpose::Prli(id) | Purpose::Adisc(id) | Purpose::Verify(id) => id != port_id,
            Purpose::Fabric | Purpose::Discovery | Purpose::Adapter(_) | Purpose::Logout => true,
        });
    }

    /// Closes all exchanges with the fabric services.
    pub(super) fn forget_services(&mut self) {
        self.open.retain(|open| open.purpose.is_about_remote());
    }

    /// Returns true if no exchange is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.open.iter().map(|open| open.deadline).min()
    }

    pub(super) fn may_start_login(&self) -> bool {
        self.open.iter().filter(|open| open.purpose.is_about_remote()).count() < MAX_LOGINS
    }
}
