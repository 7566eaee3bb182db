//! Log of the changes of own objects, and its position for each domain: [`Log`], [`Progress`].

use sanloom_wire::FcId;
use sanloom_wire::sw_ils::{SwRscn, SwRscnEntry, port_event};
use std::collections::{BTreeMap, VecDeque};

/// Last changes, numbered. The log is shared by all domains; each has received it up to some
/// number.
#[derive(Debug, Default)]
pub(super) struct Log {
    changes: VecDeque<SwRscnEntry>,
    /// Number of the next change.
    next: u64,
}

/// Number of changes kept; a domain further behind must query everything.
const KEPT: usize = 1000;
/// Maximum number of ports in one SW_RSCN.
const PORTS: usize = 100;

impl Log {
    pub(super) fn push(&mut self, change: SwRscnEntry) {
        if self.changes.len() == KEPT {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
        self.next += 1;
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Changes from a number on and the number after them. Each port appears once, at most
    /// [`PORTS`] are returned. `None` if the changes are no longer in the log.
    pub(super) fn read(&self, from: u64) -> Option<(Vec<SwRscnEntry>, u64)> {
        let first = self.next - self.changes.len() as u64;
        let skip = usize::try_from(from.checked_sub(first)?).ok()?;
        let mut ports: BTreeMap<FcId, SwRscnEntry> = BTreeMap::new();
        let mut up_to = from;
        for change in self.changes.iter().skip(skip) {
            if ports.len() == PORTS && !ports.contains_key(&change.port_id) {
                break;
            }
            up_to += 1;
            let known = ports.entry(change.port_id).or_insert(*change);
            // A new port that changed is still reported as new.
            let state = if change.state == port_event::NONE { known.state } else { change.state };
            *known = SwRscnEntry { state, ..*change };
        }
        Some((ports.into_values().collect(), up_to))
    }
}

/// Notification state of one domain.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The domain has the changes before this number; `None` if it never queried everything.
    pub(super) up_to: Option<u64>,
    /// Notification in flight.
    pub(super) sending: Option<Sending>,
    /// The domain must query everything again.
    pub(super) query_again: bool,
}

/// Notification in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    /// Number after the last change in it.
    pub(super) up_to: u64,
    /// It contains no changes and only requests a query for everything.
    pub(super) query_again: bool,
}

/// Builds the notification of some changes.
pub(super) fn notification(domain: u8, entries: Vec<SwRscnEntry>) -> SwRscn {
    let (event, format, affected) = match entries[..] {
        [only] => (only.state, SwRscn::FORMAT_PORT, only.port_id),
        _ => (port_event::NONE, SwRscn::FORMAT_DOMAIN, FcId::from_parts(domain, 0, 0)),
    };
    SwRscn { event, format, affected, detection: SwRscn::DETECTED_BY_FABRIC, entries }
}
