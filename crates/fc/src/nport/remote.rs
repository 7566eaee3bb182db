//! Records of remote ports. An all-to-all login of 512 initiators with 512 targets has half a
//! million records, so they are small and own no heap memory.

use sanloom_wire::{FcId, Wwnn, Wwpn};

/// State of the login with another port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RemoteState {
    /// A login is scheduled, at once or after a back-off.
    Waiting,
    /// PLOGI of this port in flight.
    Plogi,
    /// N_Port login without process login.
    LoggedIn,
    /// PRLI of this port in flight.
    Prli,
    /// Process login established.
    Up,
    /// Process login established, and a check of it is in progress.
    Checking,
}

impl RemoteState {
    /// Returns true if there is a process login.
    pub const fn is_up(self) -> bool {
        matches!(self, RemoteState::Up | RemoteState::Checking)
    }

    /// Returns true if there is an N_Port login.
    pub const fn is_logged_in(self) -> bool {
        matches!(self, RemoteState::LoggedIn | RemoteState::Prli | RemoteState::Up | RemoteState::Checking)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RemotePort {
    /// Zero until a login or the name server provides the name.
    pub(super) wwpn: Wwpn,
    pub(super) wwnn: Wwnn,
    pub(super) port_id: FcId,
    pub(super) state: RemoteState,
    pub(super) receive_size_bytes: u16,
    pub(super) flags: u8,
    /// Number of consecutive failures.
    pub(super) tries: u8,
}

const _: () = assert!(size_of::<RemotePort>() == 24);

/// Bits of [`RemotePort::flags`].
pub(super) mod flag {
    /// Listed by the name server or known from the medium, so this port logs in to it.
    pub(crate) const DISCOVERED: u8 = 0x01;
    /// Contained in the discovery reply being processed.
    pub(crate) const SEEN: u8 = 0x02;
    /// Affected by an RSCN.
    pub(crate) const AFFECTED: u8 = 0x04;
    /// Has the initiator function.
    pub(crate) const INITIATOR: u8 = 0x08;
    /// Has the target function.
    pub(crate) const TARGET: u8 = 0x10;
    /// The remote port sent PRLI.
    pub(crate) const THEIR_PRLI: u8 = 0x20;
    /// This port sends PLOGI but no PRLI to it, because this port is no initiator.
    pub(crate) const NO_PRLI: u8 = 0x40;
}

impl RemotePort {
    pub(super) fn new(port_id: FcId, state: RemoteState) -> RemotePort {
        RemotePort { wwpn: Wwpn(0), wwnn: Wwnn(0), port_id, state, receive_size_bytes: 0, flags: 0, tries: 0 }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn set(&mut self, flags: u8) {
        self.flags |= flags;
    }

    pub(super) fn clear(&mut self, flags: u8) {
        self.flags &= !flags;
    }
}

/// Remote ports, sorted by address.
#[derive(Debug, Default)]
pub(super) struct Remotes(Vec<RemotePort>);

impl Remotes {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, RemotePort> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, RemotePort> {
        self.0.iter_mut()
    }

    fn find(&self, port_id: FcId) -> Result<usize, usize> {
        // Logins mostly happen in the order of addresses.
        match self.0.last() {
            Some(last) if last.port_id < port_id => Err(self.0.len()),
            _ => self.0.binary_search_by_key(&port_id, |remote| remote.port_id),
        }
    }

    pub(super) fn get_mut(&mut self, port_id: FcId) -> Option<&mut RemotePort> {
        let at = self.find(port_id).ok()?;
        self.0.get_mut(at)
    }

    pub(super) fn get(&self, port_id: FcId) -> Option<&RemotePort> {
        let at = self.find(port_id).ok()?;
        self.0.get(at)
    }

    /// Returns the record of `port_id`; inserts one in state `fresh` if there is none.
    pub(super) fn get_or_insert(&mut self, port_id: FcId, fresh: RemoteState) -> &mut RemotePort {
        let at = match self.find(port_id) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, RemotePort::new(port_id, fresh));
                at
            }
        };
        &mut self.0[at]
    }

    pub(super) fn remove(&mut self, port_id: FcId) -> Option<RemotePort> {
        let at = self.find(port_id).ok()?;
        Some(self.0.remove(at))
    }

    /// Another address with the same port name, which means that the port has moved.
    pub(super) fn elsewhere(&self, wwpn: Wwpn, port_id: FcId) -> Option<FcId> {
        self.0.iter().find(|remote| remote.wwpn == wwpn && remote.port_id != port_id).map(|remote| remote.port_id)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn table_bytes(&self) -> usize {
        self.0.capacity() * size_of::<RemotePort>()
    }

    /// Records with addresses in `first..=last`.
    pub(super) fn range_mut(&mut self, first: FcId, last: FcId) -> &mut [RemotePort] {
        let start = self.0.partition_point(|remote| remote.port_id < first);
        let end = self.0.partition_point(|remote| remote.port_id <= last);
        &mut self.0[start..end]
    }
}
