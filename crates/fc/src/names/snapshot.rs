//! Objects in the form exchanged between switches: [`Snapshot`].

use crate::switch::{NsEntry, NsExtra, NsRare};
use sanloom_scsi::time::Instant;
use sanloom_wire::ns::{Entries, Entry, EntryFc4, EntrySource, NsObject, feature, port_type};
use sanloom_wire::{FcId, FcType};
use std::sync::Arc;

/// Objects of a switch, sorted by N_Port_ID. An accept carries the snapshot itself, so the switches
/// of one process share it; on a real link it is encoded as entries.
#[derive(Debug, Default)]
pub(super) struct Snapshot(pub(super) Vec<Arc<NsEntry>>);

impl EntrySource for Snapshot {
    fn count(&self) -> usize {
        self.0.len()
    }
    fn entry(&self, at: usize) -> Entry {
        to_wire(&self.0[at])
    }
}

impl Snapshot {
    /// Objects of one domain in an accept. Objects of other domains are omitted.
    pub(super) fn of(entries: &Entries, domain: u8) -> Arc<Snapshot> {
        if let Some(shared) = entries.source::<Snapshot>() {
            return shared;
        }
        let all = entries.iter().map(from_wire).filter(|entry| entry.port_id.domain() == domain);
        let mut all: Vec<_> = all.map(Arc::new).collect();
        all.sort_by_key(|entry| entry.port_id);
        all.dedup_by_key(|entry| entry.port_id);
        Arc::new(Snapshot(all))
    }

    pub(super) fn get(&self, id: FcId) -> Option<&Arc<NsEntry>> {
        self.0.binary_search_by_key(&id, |entry| entry.port_id).ok().map(|at| &self.0[at])
    }
}

/// Object without the attributes that only its own switch needs.
pub(super) fn published(entry: &Arc<NsEntry>) -> Arc<NsEntry> {
    match entry.logged_in_at {
        Instant::ZERO => entry.clone(),
        _ => Arc::new(NsEntry { logged_in_at: Instant::ZERO, ..(**entry).clone() }),
    }
}

/// Encodes an object. A port that removed itself from the name server has the port type "unknown"
/// for other switches.
fn to_wire(entry: &NsEntry) -> Entry {
    let rare = entry.rare();
    let first = rare.descriptors.first();
    let features = entry.feature_map();
    let fc4 = (first.is_some() || features.iter().any(|bits| *bits != 0)).then(|| {
        let (fc4_type, descriptor) = first.cloned().unwrap_or_default();
        let descriptors = u8::try_from(rare.descriptors.len()).unwrap_or(u8::MAX);
        Box::new(EntryFc4 { features: *features, fc4_type, descriptors, descriptor })
    });
    let object = NsObject {
        port_type: if entry.listed { entry.port_type } else { port_type::UNKNOWN },
        port_id: entry.port_id,
        port_name: entry.port_name,
        symbolic_port_name: entry.symbolic_port_name().into(),
        node_name: entry.node_name,
        symbolic_node_name: entry.symbolic_node_name().into(),
        process_associator: rare.process_associator,
        node_ip: rare.node_ip,
        classes: entry.classes,
        types: entry.types,
        port_ip: rare.port_ip,
        fabric_port_name: entry.fabric_port_name,
        hard_address: rare.hard_address,
    };
    Entry { owner: FcId::domain_controller(entry.port_id.domain()), object, fc4 }
}

fn from_wire(entry: Entry) -> NsEntry {
    let Entry { object, fc4, .. } = entry;
    let listed = object.port_type != port_type::UNKNOWN;
    let features = fc4.as_ref().map_or([0; 128], |fc4| fc4.features);
    let others = (0..=u8::MAX).filter(|fc4_type| *fc4_type != FcType::FCP.0);
    let others = others.map(|fc4_type| (fc4_type, feature(&features, fc4_type)));
    let descriptors = fc4.filter(|fc4| fc4.descriptors > 0).map(|fc4| (fc4.fc4_type, fc4.descriptor));
    let rare = NsRare {
        hard_address: object.hard_address,
        port_ip: object.port_ip,
        node_ip: object.node_ip,
        process_associator: object.process_associator,
        descriptors: descriptors.into_iter().collect(),
    };
    let extra = NsExtra {
        symbolic_port_name: object.symbolic_port_name,
        symbolic_node_name: object.symbolic_node_name,
        features: others.filter(|(_, bits)| *bits != 0).collect(),
        rare: (rare != NsRare::default()).then(|| Box::new(rare)),
    };
    NsEntry {
        port_id: object.port_id,
        port_type: if listed { object.port_type } else { port_type::N_PORT },
        fcp_features: feature(&features, FcType::FCP.0),
        listed,
        classes: object.classes,
        port_name: object.port_name,
        node_name: object.node_name,
        fabric_port_name: object.fabric_port_name,
        types: object.types,
        logged_in_at: Instant::ZERO,
        extra: (extra != NsExtra::default()).then(|| Box::new(extra)),
    }
}
