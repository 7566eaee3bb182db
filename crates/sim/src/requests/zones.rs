//! Zones of the switches of a world, for zone requests.

use crate::world::World;
use crate::world::operator::{self, TAGS};
use sanloom_api::control::RequestError;
use sanloom_api::zone_requests::{StartedChange, SwitchZones, ZoneFabric};
use sanloom_fc::fabric_switch::FabricSwitch;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::ZoneDatabase;

/// A world that permits requests.
pub(super) struct Zones<'w>(pub &'w mut World);

const PERMITTED: &str = "requests are permitted";

impl ZoneFabric for Zones<'_> {
    fn lab(&self) -> &Lab {
        &self.0.lab
    }

    fn switches(&self) -> usize {
        self.0.control.switches.len()
    }

    fn name(&self, switch: usize) -> &str {
        &self.0.lab.switches[switch].name
    }

    fn machine(&self, switch: usize) -> &FabricSwitch {
        &self.0.control.switches[switch].machine
    }

    fn zones(&self, switch: usize) -> &SwitchZones {
        operator::state(self.0).expect(PERMITTED).zones(switch as u16)
    }

    fn zones_mut(&mut self, switch: usize) -> &mut SwitchZones {
        operator::state_mut(self.0).expect(PERMITTED).zones_mut(switch as u16)
    }

    fn prepare(&mut self, switch: usize, _: &ZoneDatabase) -> Result<(), RequestError> {
        match operator::runs(self.0, switch as u16) {
            true => Ok(()),
            false => Err(format!("{} does not run; wait for the end of its restart", self.name(switch)).into()),
        }
    }

    fn change(&mut self, switch: usize, started: StartedChange) {
        let started = StartedChange { tag: started.tag.saturating_add(TAGS), ..started };
        operator::change_zones(self.0, switch as u16, started);
    }

    /// A simulation stores nothing.
    fn store(&self) -> Option<String> {
        None
    }

    fn transaction_ended(&self, _: usize) {}
}
