//! Zone changes in progress, with their requesters: [`ZoneRequests`].

use std::collections::BTreeMap;

/// Requester of a zone change, with its tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Requester {
    Operator(u32),
    NPort(u32),
}

/// Requesters by the tag used with the zone server.
#[derive(Debug, Default)]
pub(super) struct ZoneRequests {
    requesters: BTreeMap<u32, Requester>,
    next_tag: u32,
}

impl ZoneRequests {
    /// Allocates the tag of a new change.
    pub(super) fn open(&mut self, requester: Requester) -> u32 {
        let tag = self.next_tag;
        self.next_tag = tag.wrapping_add(1);
        self.requesters.insert(tag, requester);
        tag
    }

    /// Returns the requester of a change that has ended.
    pub(super) fn close(&mut self, tag: u32) -> Option<Requester> {
        self.requesters.remove(&tag)
    }
}
