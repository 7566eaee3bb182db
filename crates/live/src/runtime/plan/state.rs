//! Initial state of the switches of a runtime, from the store, or from the lab file if nothing is
//! stored.

use crate::runtime::UpError;
use crate::state::{Agreement, KeptZones, StateStore, differences, merge};
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;

const NAMES: [&str; 2] = ["the lab file", "the store"];

/// Initial state of a switch.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) database: ZoneDatabase,
    /// The database committed before, for a rollback.
    pub(crate) previous: Option<ZoneDatabase>,
    /// Learned addresses.
    pub(crate) addresses: BTreeMap<Wwpn, FcId>,
}

/// Returns the initial state of each switch. The store has priority, unless the lab file was
/// changed since it last agreed with the store: then `agreement` decides. The store is not changed
/// before all switches agree.
pub(super) fn agree(
    store: &StateStore,
    lab: &Lab,
    switches: &[u16],
    agreement: Agreement,
) -> Result<Vec<Kept>, UpError> {
    let mut found = Vec::new();
    let mut open = Vec::new();
    for number in switches {
        let config = &lab.switches[usize::from(*number)];
        let file = lab.zone_database_at(*number);
        let kept = match store.zones(&config.name) {
            // A reset replaces unreadable records.
            Err(_) if agreement == Agreement::Reset => None,
            other => other?,
        };
        let learned = match config.policy.learn_addresses {
            true => store.addresses(&config.name)?,
            false => BTreeMap::new(),
        };
        let fixed = &config.policy.persistent;
        let contradicts = |(name, id): (&Wwpn, &FcId)| match fixed.get(name) {
            Some(other) => other != id,
            None => fixed.values().any(|other| other == id),
        };
        let wrong: Vec<Wwpn> = learned.iter().filter(|entry| contradicts(*entry)).map(|(name, _)| *name).collect();
        if let Some(kept) = &kept
            && kept.lab != file
            && kept.committed != file
        {
            let lines = differences(&file, &kept.committed, NAMES);
            open.extend(lines.into_iter().map(|line| format!("  {}: {line}", config.name)));
        }
        open.extend(wrong.iter().map(|name| {
            format!(
                "  {}: the store assigns the address {} to {name}, but the lab file assigns it to another port",
                config.name, learned[name]
            )
        }));
        found.push((*number, file, kept, learned, wrong));
    }
    if agreement == Agreement::Ask && !open.is_empty() {
        return Err(UpError::Differs { path: store.path().to_owned(), differences: open });
    }
    found
        .into_iter()
        .map(|(number, file, kept, learned, wrong)| {
            let name = &lab.switches[usize::from(number)].name;
            let (zones, mut addresses) = match (kept, agreement) {
                (None, _) | (_, Agreement::Reset) => {
                    store.forget_addresses(name, None)?;
                    (KeptZones { lab: file.clone(), committed: file, previous: None }, BTreeMap::new())
                }
                (Some(kept), _) if kept.lab == file => (kept, learned),
                (Some(kept), _) => {
                    store.forget_addresses(name, Some(&wrong))?;
                    let merged = merge(&kept.lab, &file, &kept.committed);
                    let previous = if merged == kept.committed { kept.previous } else { Some(kept.committed) };
                    (KeptZones { lab: file, committed: merged, previous }, learned)
                }
            };
            addresses.retain(|name, _| !wrong.contains(name));
            store.agree(name, &zones)?;
            Ok(Kept { database: zones.committed, previous: zones.previous, addresses })
        })
        .collect()
}
