//! What happened to the own objects and which domain was told of it: [`Log`], [`Told`].

use sanloom_wire::FcId;
use sanloom_wire::sw_ils::{SwRscn, SwRscnEntry, port_event};
use std::collections::{BTreeMap, VecDeque};

/// The last changes, numbered. It is the same for all domains: each has read up to some number.
#[derive(Debug, Default)]
pub(super) struct Log {
    changes: VecDeque<SwRscnEntry>,
    /// Number of the next change.
    next: u64,
}

/// So many changes are kept: whoever is further behind asks for everything.
const KEPT: usize = 1000;
/// Ports in one SW_RSCN.
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

    /// The changes from a number on, each port once, at most [`PORTS`], and the number behind them. Nothing if they are not
    /// kept any more.
    pub(super) fn read(&self, from: u64) -> Option<(Vec<SwRscnEntry>, u64)> {
        let first = self.next - self.changes.len() as u64;
        let skip = usize::try_from(from.checked_sub(first)?).ok()?;
        let mut ports: BTreeMap<FcId, SwRscnEntry> = BTreeMap::new();
        let mut upto = from;
        for change in self.changes.iter().skip(skip) {
            if ports.len() == PORTS && !ports.contains_key(&change.port_id) {
                break;
            }
            upto += 1;
            let known = ports.entry(change.port_id).or_insert(*change);
            // New and then changed is new.
            let state = if change.state == port_event::NONE { known.state } else { change.state };
            *known = SwRscnEntry { state, ..*change };
        }
        Some((ports.into_values().collect(), upto))
    }
}

/// What one domain was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// It knows the changes before this number; nothing: it never asked for everything.
    pub(super) upto: Option<u64>,
    /// A notification is on its way.
    pub(super) sending: Option<Sending>,
    /// It is to ask for everything again.
    pub(super) anew: bool,
}

/// A notification on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    /// It goes up to the change before this number.
    pub(super) upto: u64,
    /// It says nothing but that everything is to be asked for.
    pub(super) anew: bool,
}

/// The notification of some changes.
pub(super) fn notification(domain: u8, entries: Vec<SwRscnEntry>) -> SwRscn {
    let (event, format, affected) = match entries[..] {
        [only] => (only.state, SwRscn::FORMAT_PORT, only.port_id),
        _ => (port_event::NONE, SwRscn::FORMAT_DOMAIN, FcId::from_parts(domain, 0, 0)),
    };
    SwRscn { event, format, affected, detection: SwRscn::DETECTED_BY_FABRIC, entries }
}
