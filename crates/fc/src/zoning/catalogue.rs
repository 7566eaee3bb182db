//! Decoded databases that the switches of one process share: [`ZoneCatalogue`].

use super::objects::Decoded;
use sanloom_wire::sw_ils::ZoneSets;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Databases in use, by the message payload that contains them.
///
/// A switch that receives a payload of another switch of the process finds the database that this
/// switch has already decoded and indexed. Without the sharing, hundreds of switches with a
/// database each would need gigabytes. An entry ends with the last user of its database.
#[derive(Clone, Default)]
pub struct ZoneCatalogue(Arc<Mutex<Vec<Entry>>>);

struct Entry {
    wire: Weak<ZoneSets>,
    decoded: Weak<Decoded>,
}

impl ZoneCatalogue {
    /// Database that was decoded from, or encoded as, this very payload.
    pub(super) fn find(&self, wire: &Arc<ZoneSets>) -> Option<Arc<Decoded>> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // An entry keeps the allocation of its payload, so no other payload has the same address.
        let same = entries.iter().filter(|entry| entry.wire.as_ptr() == Arc::as_ptr(wire));
        same.filter_map(|entry| entry.decoded.upgrade()).next()
    }

    pub(super) fn insert(&self, wire: &Arc<ZoneSets>, decoded: &Arc<Decoded>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.decoded.strong_count() > 0);
        entries.push(Entry { wire: Arc::downgrade(wire), decoded: Arc::downgrade(decoded) });
    }
}

impl fmt::Debug for ZoneCatalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}
