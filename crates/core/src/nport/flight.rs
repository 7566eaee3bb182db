//! Exchanges of ours that wait for a reply. They are few (the logins in flight are bounded), so a plain vector is searched.

use crate::exchange::CONTROL_OX_IDS;
use crate::time::Instant;
use sanloom_wire::{FcId, Header};

/// Logins and verifications of remote ports that are under way at the same time, at most: hundreds of targets that appear
/// at once must not flood the fabric.
const MAX_LOGINS: usize = 16;

/// What a request was about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flight {
    /// A step of the fabric login or registration; which one, the port's state says.
    Fabric,
    /// The question for all targets.
    Discovery,
    /// N_Port login.
    Plogi(FcId),
    /// Process login.
    Prli(FcId),
    /// Is a login still known at the other side?
    Adisc(FcId),
    /// Is a port still in the name server?
    Verify(FcId),
    /// We log out from a port, whatever it says.
    Farewell,
}

impl Flight {
    fn is_about_remote(self) -> bool {
        !matches!(self, Flight::Fabric | Flight::Discovery | Flight::Farewell)
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    deadline: Instant,
    ox_id: u16,
    d_id: FcId,
    flight: Flight,
}

/// All open exchanges.
#[derive(Debug)]
pub(super) struct Flights {
    open: Vec<Open>,
    next_ox_id: u16,
}

impl Default for Flights {
    fn default() -> Self {
        Flights { open: Vec::new(), next_ox_id: *CONTROL_OX_IDS.start() }
    }
}

impl Flights {
    /// Opens an exchange and gives its OX_ID: the next one in turn, so that a late reply meets no younger exchange.
    pub(super) fn open(&mut self, deadline: Instant, d_id: FcId, flight: Flight) -> u16 {
        while self.open.iter().any(|open| open.ox_id == self.next_ox_id) {
            self.advance();
        }
        let ox_id = self.next_ox_id;
        self.advance();
        self.open_as(ox_id, deadline, d_id, flight);
        ox_id
    }

    /// Opens an exchange with an OX_ID of the caller's choice.
    pub(super) fn open_as(&mut self, ox_id: u16, deadline: Instant, d_id: FcId, flight: Flight) {
        self.open.push(Open { deadline, ox_id, d_id, flight });
    }

    fn advance(&mut self) {
        self.next_ox_id =
            if self.next_ox_id >= *CONTROL_OX_IDS.end() { *CONTROL_OX_IDS.start() } else { self.next_ox_id + 1 };
    }

    fn find(&self, reply: &Header) -> Option<usize> {
        self.open.iter().position(|open| open.ox_id == reply.ox_id && open.d_id == reply.s_id)
    }

    /// A reply belongs to an open exchange.
    pub(super) fn is_open(&self, reply: &Header) -> bool {
        self.find(reply).is_some()
    }

    /// Closes the exchange that a reply belongs to.
    pub(super) fn close(&mut self, reply: &Header) -> Option<Flight> {
        let at = self.find(reply)?;
        Some(self.open.remove(at).flight)
    }

    /// Closes an exchange whose time is over.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<Flight> {
        let at = self.open.iter().position(|open| open.deadline <= now)?;
        Some(self.open.remove(at).flight)
    }

    /// Closes everything that is about a remote port; late replies are stale.
    pub(super) fn forget_remote(&mut self, port_id: FcId) {
        self.open.retain(|open| match open.flight {
            Flight::Plogi(id) | Flight::Prli(id) | Flight::Adisc(id) | Flight::Verify(id) => id != port_id,
            Flight::Fabric | Flight::Discovery | Flight::Farewell => true,
        });
    }

    /// Closes everything that is about the fabric's services.
    pub(super) fn forget_services(&mut self) {
        self.open.retain(|open| open.flight.is_about_remote());
    }

    /// Nothing waits for a reply.
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
        self.open.iter().filter(|open| open.flight.is_about_remote()).count() < MAX_LOGINS
    }
}
