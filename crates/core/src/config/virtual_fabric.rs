//! Virtual fabrics: a chassis that is several switches, [`VirtualFabric`].

use super::Lab;
use crate::zoning::ZoneDatabase;
use std::sync::Arc;

/// The highest VF_ID of a virtual fabric; from FEFh on they mean something else (FC-FS, virtual fabric tagging header).
pub const MAX_VF_ID: u16 = 0xfee;

/// What makes a switch one of several in a chassis: a virtual fabric, with some of the ports of the chassis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VirtualFabric {
    /// Name of the chassis.
    pub chassis: String,
    /// Number of the virtual fabric (VF_ID), 1 to [`MAX_VF_ID`], the same in every chassis that has a part of it.
    pub id: u16,
    /// The ports, by their numbers in the chassis, which are those of the switch, too; sorted, each once.
    pub ports: Vec<u16>,
}

impl Lab {
    /// The virtual fabric that a switch is of.
    pub fn vf_id(&self, switch: u16) -> Option<u16> {
        self.switches.get(usize::from(switch))?.virtual_fabric.as_ref().map(|fabric| fabric.id)
    }

    /// A zone counts in the fabric of a switch: it is not of another virtual fabric alone.
    pub fn zone_counts_at(&self, zone: &str, switch: u16) -> bool {
        self.zone_fabrics.get(zone).is_none_or(|of| Some(*of) == self.vf_id(switch))
    }

    /// The zone database that a switch begins with: everything but the zones of other virtual fabrics.
    pub fn zone_database_at(&self, switch: u16) -> ZoneDatabase {
        let mut database = self.zone_database.clone();
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
