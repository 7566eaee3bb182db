//! What is known of other ports. An all-to-all login of 512 initiators with 512 targets has half a million of these
//! records, so they are small and nothing hangs on them.

use sanloom_wire::{FcId, Wwnn, Wwpn};

/// Where the login with another port stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RemoteState {
    /// We are going to log in, at once or after a back-off.
    Waiting,
    /// Our PLOGI is under way.
    Plogi,
    /// N_Port login without process login.
    LoggedIn,
    /// Our PRLI is under way.
    Prli,
    /// Process login established.
    Up,
    /// As up, and we are finding out whether it still is.
    Checking,
}

impl RemoteState {
    /// There is a process login.
    pub const fn is_up(self) -> bool {
        matches!(self, RemoteState::Up | RemoteState::Checking)
    }
    /// There is an N_Port login.
    pub const fn is_logged_in(self) -> bool {
        matches!(self, RemoteState::LoggedIn | RemoteState::Prli | RemoteState::Up | RemoteState::Checking)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RemotePort {
    /// Zero until a login or the name server tells it.
    pub(super) wwpn: Wwpn,
    pub(super) wwnn: Wwnn,
    pub(super) port_id: FcId,
    pub(super) state: RemoteState,
    pub(super) receive_size_bytes: u16,
    pub(super) flags: u8,
    /// Failures in a row.
    pub(super) tries: u8,
}

const _: () = assert!(size_of::<RemotePort>() == 24);

/// Bits of [`RemotePort::flags`].
pub(super) mod flag {
    /// The name server told us: we want a login.
    pub(crate) const DISCOVERED: u8 = 0x01;
    /// In the answer of the discovery that is being looked at.
    pub(crate) const SEEN: u8 = 0x02;
    /// An RSCN named the port.
    pub(crate) const AFFECTED: u8 = 0x04;
    /// Has the initiator function.
    pub(crate) const INITIATOR: u8 = 0x08;
    /// Has the target function.
    pub(crate) const TARGET: u8 = 0x10;
    /// The other side sent PRLI.
    pub(crate) const THEIR_PRLI: u8 = 0x20;
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
        // Logins mostly come in the order of the addresses.
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

    /// The record of `port_id`, a new one in state `fresh` if there is none.
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

    /// Another address that goes by the same port name: the port has moved.
    pub(super) fn elsewhere(&self, wwpn: Wwpn, port_id: FcId) -> Option<FcId> {
        self.0.iter().find(|remote| remote.wwpn == wwpn && remote.port_id != port_id).map(|remote| remote.port_id)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn table_bytes(&self) -> usize {
        self.0.capacity() * size_of::<RemotePort>()
    }

    /// Records whose addresses lie in `first..=last`.
    pub(super) fn range_mut(&mut self, first: FcId, last: FcId) -> &mut [RemotePort] {
        let start = self.0.partition_point(|remote| remote.port_id < first);
        let end = self.0.partition_point(|remote| remote.port_id <= last);
        &mut self.0[start..end]
    }
}
