//! Zones of virtual fabrics: the zones that apply at a switch of a [`Lab`].

use super::Lab;
use crate::zoning::ZoneDatabase;
use std::sync::Arc;

impl Lab {
    /// Virtual fabric ID of a switch, if any.
    pub fn vf_id(&self, switch: u16) -> Option<u16> {
        self.switches.get(usize::from(switch))?.virtual_fabric.as_ref().map(|fabric| fabric.id)
    }

    /// Returns true if a zone applies at a switch, because it is not restricted to another virtual
    /// fabric.
    pub fn zone_counts_at(&self, zone: &str, switch: u16) -> bool {
        self.zone_fabrics.get(zone).is_none_or(|of| Some(*of) == self.vf_id(switch))
    }

    /// Initial zone database of a switch, without the zones of other virtual fabrics.
    pub fn zone_database_at(&self, switch: u16) -> ZoneDatabase {
        self.zones_at(self.zone_database.clone(), switch)
    }

    /// Part of a zone database of this lab that a switch has: no zones of other virtual fabrics.
    pub fn zones_at(&self, mut database: ZoneDatabase, switch: u16) -> ZoneDatabase {
        if self.zone_fabrics.keys().all(|zone| self.zone_counts_at(zone, switch)) {
            return database;
        }
        let defined = Arc::make_mut(&mut database.defined);
        defined.zones.retain(|zone, _| self.zone_counts_at(zone, switch));
        for zones in defined.configs.values_mut() {
            zones.retain(|zone| self.zone_counts_at(zone, switch));
        }
        defined.configs.retain(|_, zones| !zones.is_empty());
        if let Some(effective) = &mut database.effective {
            Arc::make_mut(effective).zones.retain(|zone| self.zone_counts_at(&zone.name, switch));
        }
        database.effective = database.effective.filter(|effective| !effective.zones.is_empty());
        database
    }
}
