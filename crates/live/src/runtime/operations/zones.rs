//! Zone requests to an instance: its side of [`ZoneFabric`].
//!
//! The database is stored before a switch sends anything that depends on it: outputs of a switch
//! are processed in order, and the [`Keeper`](super::keeper::Keeper) waits for the store.

use crate::runtime::instance::Instance;
use sanloom_api::control::RequestError;
pub use sanloom_api::zone_requests::{StartedChange, SwitchZones, ZoneChanges, ZoneFabric, difference};
use sanloom_fc::fabric_switch::{self, FabricSwitch};
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::ZoneDatabase;

impl ZoneFabric for Instance {
    fn lab(&self) -> &Lab {
        &self.lab
    }

    fn switches(&self) -> usize {
        self.fabric.switches.len()
    }

    fn name(&self, switch: usize) -> &str {
        &self.fabric.switches[switch].name
    }

    fn machine(&self, switch: usize) -> &FabricSwitch {
        &self.fabric.switches[switch].machine
    }

    fn zones(&self, switch: usize) -> &SwitchZones {
        &self.fabric.switches[switch].zones
    }

    fn zones_mut(&mut self, switch: usize) -> &mut SwitchZones {
        &mut self.fabric.switches[switch].zones
    }

    fn prepare(&mut self, switch: usize, outcome: &ZoneDatabase) -> Result<(), RequestError> {
        self.keeper.state.prepare(&self.fabric.switches[switch].name, outcome).map_err(|error| {
            RequestError::environment(format!("not committed, because the database cannot be stored: {error}"))
        })
    }

    fn change(&mut self, switch: usize, started: StartedChange) {
        let StartedChange { tag, change, checksum, by } = started;
        self.log.zone_change(self.lab_switches[switch], tag, checksum, by);
        self.work.push_switch(switch, fabric_switch::Input::ChangeZones { tag, change });
    }

    fn store(&self) -> Option<String> {
        Some(self.keeper.state.path().display().to_string())
    }

    fn transaction_ended(&self, switch: usize) {
        tracing::info!(switch = %self.fabric.switches[switch].name, "a zone transaction has ended by itself");
    }
}
