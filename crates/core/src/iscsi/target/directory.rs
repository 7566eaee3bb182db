//! All sessions of a node: [`Directory`] gives them their handles, and finds the one that a new login takes the place of
//! (RFC 7143, section 6.3.5).

use std::collections::BTreeMap;

/// The driver's number of a connection; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// What makes a session one: the initiator port and the target.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionKey {
    /// Index of the target; `None`: discovery.
    pub target: Option<u16>,
    /// iSCSI name of the initiator.
    pub initiator: String,
    /// The initiator's part of the session identifier.
    pub isid: [u8; 6],
    /// Target portal group.
    pub group: u16,
}

/// A session that a new login has ended.
pub type Replaced = ConnectionId;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    tsih: u16,
    connection: ConnectionId,
}

/// Sessions by what makes them one.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    sessions: BTreeMap<SessionKey, Entry>,
    last_tsih: u16,
}

impl Directory {
    /// Sessions of a target.
    pub fn count(&self, target: Option<u16>) -> usize {
        self.sessions.keys().filter(|key| key.target == target).count()
    }

    /// The handle of a session, if there is one.
    pub fn tsih(&self, key: &SessionKey) -> Option<u16> {
        self.sessions.get(key).map(|entry| entry.tsih)
    }

    /// A login is complete: the session's handle, and the connection whose session it takes the place of.
    pub fn enter(&mut self, key: SessionKey, connection: ConnectionId) -> (u16, Option<Replaced>) {
        let taken: std::collections::BTreeSet<u16> = self.sessions.values().map(|entry| entry.tsih).collect();
        // Zero means a new session.
        let next = (1..=u16::MAX)
            .map(|step| self.last_tsih.wrapping_add(step))
            .find(|tsih| *tsih != 0 && !taken.contains(tsih));
        let tsih = next.unwrap_or(u16::MAX);
        self.last_tsih = tsih;
        let before = self.sessions.insert(key, Entry { tsih, connection });
        (tsih, before.map(|entry| entry.connection))
    }

    /// The session of a connection is over; one that took its place stays.
    pub fn leave(&mut self, key: &SessionKey, connection: ConnectionId) {
        if self.sessions.get(key).is_some_and(|entry| entry.connection == connection) {
            self.sessions.remove(key);
        }
    }
}
