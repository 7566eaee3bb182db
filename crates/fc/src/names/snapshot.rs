//! Objects of one switch in an accept: [`Snapshot`].

use sanloom_wire::FcId;
use sanloom_wire::ns::{Entries, NsRecord};
use std::sync::Arc;

/// Objects of a switch, sorted by N_Port_ID. An accept carries them as they are stored, so the
/// switches of one process share them; on a real link they are encoded as entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot(Arc<[Arc<NsRecord>]>);

impl Snapshot {
    /// Objects sorted by N_Port_ID.
    pub(super) fn new(sorted: impl IntoIterator<Item = Arc<NsRecord>>) -> Snapshot {
        Snapshot(sorted.into_iter().collect())
    }

    /// Objects of one domain in an accept. Objects of other domains are omitted.
    pub(super) fn of(entries: &Entries, domain: u8) -> Snapshot {
        match entries {
            Entries::Records(records) => Snapshot(records.clone()),
            Entries::Parsed(parsed) => {
                let all = parsed.iter().filter(|entry| entry.object.port_id.domain() == domain);
                let mut all: Vec<_> = all.cloned().map(|entry| Arc::new(NsRecord::from(entry))).collect();
                all.sort_by_key(|record| record.port_id);
                all.dedup_by_key(|record| record.port_id);
                Snapshot::new(all)
            }
        }
    }

    /// The objects as the entries of an accept.
    pub(super) fn entries(&self) -> Entries {
        Entries::Records(self.0.clone())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<NsRecord>> {
        self.0.iter()
    }

    pub(super) fn get(&self, id: FcId) -> Option<&Arc<NsRecord>> {
        self.0.binary_search_by_key(&id, |record| record.port_id).ok().map(|at| &self.0[at])
    }
}
