//! Zones and addresses in the store: [`Keeper`], which writes them before a switch sends anything
//! that depends on them.

use crate::runtime::fabric::switch::LiveSwitch;
use crate::state::StateStore;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::{FcId, Wwpn};
use std::time;

/// Pause between attempts after a failed write.
const RETRY: Span = Span::from_secs(2);

/// The store of an instance, and the time of the next attempt after an error.
#[derive(Debug)]
pub struct Keeper {
    /// The store.
    pub state: StateStore,
    /// Failed writes are not repeated before this time.
    retry_at: Instant,
}

impl Keeper {
    /// Returns a keeper without failed writes.
    pub fn new(state: StateStore) -> Keeper {
        Keeper { state, retry_at: Instant::ZERO }
    }

    /// Stores the new zone database of a switch.
    pub fn keep_zones(&mut self, now: Instant, switch: &mut LiveSwitch, database: ZoneDatabase) {
        switch.zones.commit(database);
        self.write_zones(now, switch);
    }

    /// Stores an address that a switch has learned, or defers it after a failed write.
    pub fn keep_address(&mut self, now: Instant, switch: &mut LiveSwitch, port_name: Wwpn, port_id: FcId) {
        // A name has one address and an address one name, so earlier entries are outdated.
        switch.unkept_addresses.retain(|name, id| *name != port_name && *id != port_id);
        match now < self.retry_at {
            true => _ = switch.unkept_addresses.insert(port_name, port_id),
            false => self.write_address(now, switch, port_name, port_id),
        }
    }

    /// Repeats failed writes. Each attempt may wait for the disk or for another process.
    pub fn retry(&mut self, now: Instant, switches: &mut [LiveSwitch]) {
        for switch in switches {
            if now < self.retry_at {
                return;
            }
            if !switch.zones.is_kept() {
                self.write_zones(now, switch);
            }
            while now >= self.retry_at
                && let Some((name, id)) = switch.unkept_addresses.pop_first()
            {
                self.write_address(now, switch, name, id);
            }
        }
    }

    fn write_zones(&mut self, now: Instant, switch: &mut LiveSwitch) {
        let begun = time::Instant::now();
        let kept = self.state.commit(&switch.name, switch.zones.committed(), switch.zones.previous.as_ref());
        if let Err(error) = &kept {
            if switch.zones.is_kept() {
                tracing::error!(switch = switch.name, %error, "zones are in force but cannot be stored; the write is repeated");
            }
            self.postpone(now, begun);
        }
        switch.zones.set_kept(kept.is_ok());
    }

    fn write_address(&mut self, now: Instant, switch: &mut LiveSwitch, port_name: Wwpn, port_id: FcId) {
        let begun = time::Instant::now();
        match self.state.keep_address(&switch.name, port_name, port_id) {
            Ok(()) => tracing::debug!(switch = switch.name, %port_name, %port_id, "address stored"),
            Err(error) => {
                tracing::error!(switch = switch.name, %port_name, %port_id, %error, "a learned address cannot be stored; the write is repeated");
                switch.unkept_addresses.insert(port_name, port_id);
                self.postpone(now, begun);
            }
        }
    }

    /// Pauses writes. The pause begins at the end of the failed write.
    fn postpone(&mut self, now: Instant, begun: time::Instant) {
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.retry_at = now + Span::from_ns(took) + RETRY;
    }
}
