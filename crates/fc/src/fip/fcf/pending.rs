//! Requests pending at the switch whose replies are sent over FIP: [`PendingRequests`].

use crate::fip::Discard;
use sanloom_scsi::time::Instant;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::LinkService;
use sanloom_wire::{FcId, Wwpn};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of requests pending at the switch.
const MAX_PENDING: usize = 4096;

/// Request pending at the switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) service: LinkService,
    /// Destination of the reply; `None` if this FCF originated the request.
    pub(super) to: Option<MacAddr>,
    /// S_ID of the request.
    pub(super) s_id: FcId,
    /// Port name in the request.
    pub(super) name: Wwpn,
}

/// Switch port and OX_ID of a request.
type Key = (u16, u16);

/// Pending requests by switch port and OX_ID.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    by_key: BTreeMap<Key, Pending>,
    /// Expiry times, in the order of insertion.
    expiry: VecDeque<(Instant, Key)>,
}

impl PendingRequests {
    /// Stores a request until `until`. One with the same key keeps the earlier expiry time. Returns
    /// false in that case, and an error if the table is full.
    pub(super) fn insert(&mut self, until: Instant, port: u16, ox_id: u16, pending: Pending) -> Result<bool, Discard> {
        let key = (port, ox_id);
        if self.by_key.insert(key, pending).is_some() {
            return Ok(false);
        }
        if self.expiry.len() >= MAX_PENDING {
            self.by_key.remove(&key);
            return Err(Discard::NoRoom);
        }
        self.expiry.push_back((until, key));
        debug_assert_eq!(self.by_key.len(), self.expiry.len(), "a pending request has one expiry time");
        Ok(true)
    }

    /// Removes and returns the request that a reply of the switch belongs to.
    pub(super) fn take(&mut self, port: u16, ox_id: u16) -> Option<Pending> {
        let key = (port, ox_id);
        let pending = self.by_key.remove(&key)?;
        // It is nearly always the first entry, because the switch replies in order.
        if let Some(at) = self.expiry.iter().position(|(_, waiting)| *waiting == key) {
            self.expiry.remove(at);
        }
        Some(pending)
    }

    /// Removes expired requests. Returns the next expiry time.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        while let Some(&(until, key)) = self.expiry.front() {
            if until > now {
                return Some(until);
            }
            self.by_key.remove(&key);
            self.expiry.pop_front();
        }
        None
    }

    /// Requests of the station behind a switch port.
    pub(super) fn of_port(&self, port: u16) -> impl Iterator<Item = &Pending> {
        self.by_key.range((port, 0)..=(port, u16::MAX)).map(|(_, pending)| pending)
    }

    /// Highest OX_ID that no pending request of a switch port has.
    pub(super) fn free_ox_id(&self, port: u16) -> Option<u16> {
        (0..=u16::MAX).rev().find(|ox_id| !self.by_key.contains_key(&(port, *ox_id)))
    }

    /// Removes the requests of a switch port.
    pub(super) fn remove_port(&mut self, port: u16) {
        if self.of_port(port).next().is_some() {
            self.by_key.retain(|(of, _), _| *of != port);
            self.expiry.retain(|(_, (of, _))| *of != port);
        }
    }

    pub(super) fn clear(&mut self) {
        self.by_key.clear();
        self.expiry.clear();
    }

    /// Memory of the table, in bytes.
    pub(super) fn table_bytes(&self) -> usize {
        self.by_key.len() * size_of::<(Key, Pending)>() + self.expiry.capacity() * size_of::<(Instant, Key)>()
    }
}
