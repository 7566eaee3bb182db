//! Directory of all sessions of a node: [`Directory`] assigns their handles (TSIH) and finds the
//! session that a new login reinstates (RFC 7143, section 6.3.5).

use std::collections::BTreeMap;

/// Number that the driver gives to a connection; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// Identity of a session: initiator port and target portal group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionKey {
    /// Index of the target in [`Node::targets`](super::Node::targets); `None` for a discovery
    /// session.
    pub target: Option<u16>,
    /// iSCSI name of the initiator.
    pub initiator: String,
    /// ISID: the initiator's part of the session identifier.
    pub isid: [u8; 6],
    /// Target portal group tag.
    pub group: u16,
}

/// Connection whose session a new login has ended.
pub type Replaced = ConnectionId;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    tsih: u16,
    connection: ConnectionId,
}

/// Sessions by their identity.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    sessions: BTreeMap<SessionKey, Entry>,
    last_tsih: u16,
}

impl Directory {
    /// Number of sessions of a target.
    pub fn count(&self, target: Option<u16>) -> usize {
        self.sessions.keys().filter(|key| key.target == target).count()
    }

    /// Returns the handle of a session, if the session exists.
    pub fn tsih(&self, key: &SessionKey) -> Option<u16> {
        self.sessions.get(key).map(|entry| entry.tsih)
    }

    /// Registers a session at the end of its login. Returns its handle, and the connection of the
    /// session that it replaces.
    pub fn enter(&mut self, key: SessionKey, connection: ConnectionId) -> (u16, Option<Replaced>) {
        let taken: std::collections::BTreeSet<u16> = self.sessions.values().map(|entry| entry.tsih).collect();
        // Zero is reserved: in a login request it means a new session.
        let next = (1..=u16::MAX)
            .map(|step| self.last_tsih.wrapping_add(step))
            .find(|tsih| *tsih != 0 && !taken.contains(tsih));
        let tsih = next.unwrap_or(u16::MAX);
        self.last_tsih = tsih;
        let before = self.sessions.insert(key, Entry { tsih, connection });
        (tsih, before.map(|entry| entry.connection))
    }

    /// Removes the session of a connection. A session that has replaced it stays.
    pub fn leave(&mut self, key: &SessionKey, connection: ConnectionId) {
        if self.sessions.get(key).is_some_and(|entry| entry.connection == connection) {
            self.sessions.remove(key);
        }
    }
}
