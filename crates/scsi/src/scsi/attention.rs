//! Unit attentions: conditions reported to a nexus before its next command (SAM, unit attention
//! conditions).

use super::device::Device;
use super::nexus::NexusId;
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::BTreeMap;

/// Returns whether the condition is a power on, reset or nexus loss, which supersedes all
/// conditions recorded before it.
fn is_reset(code: SenseCode) -> bool {
    code.0 >> 8 == 0x29
}

/// Conditions not yet reported.
#[derive(Debug)]
pub(super) struct Attentions {
    /// False if the device reports no unit attentions.
    enabled: bool,
    /// Conditions that were reported to a nexus.
    reported: u64,
    /// By unit and nexus, the oldest first. No list is empty.
    pending: BTreeMap<(u16, NexusId), Vec<SenseCode>>,
}

impl Attentions {
    pub(super) fn new(enabled: bool) -> Attentions {
        Attentions { enabled, reported: 0, pending: BTreeMap::new() }
    }

    pub(super) fn are_enabled(&self) -> bool {
        self.enabled
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns whether a condition of a unit has to be reported to a nexus.
    pub(super) fn are_pending(&self, unit: u16, nexus: NexusId) -> bool {
        self.pending.contains_key(&(unit, nexus))
    }

    fn add(&mut self, unit: u16, nexus: NexusId, code: SenseCode) {
        if self.enabled {
            self.record(unit, nexus, code);
        }
    }

    fn record(&mut self, unit: u16, nexus: NexusId, code: SenseCode) {
        let codes = self.pending.entry((unit, nexus)).or_default();
        if is_reset(code) {
            codes.clear();
        }
        if !codes.contains(&code) {
            codes.push(code);
        }
    }

    /// Removes and returns the oldest condition not yet reported to a nexus.
    fn take(&mut self, unit: u16, nexus: NexusId) -> Option<Sense> {
        let codes = self.pending.get_mut(&(unit, nexus))?;
        debug_assert!(!codes.is_empty(), "a list without conditions was kept");
        let code = (!codes.is_empty()).then(|| codes.remove(0))?;
        if codes.is_empty() {
            self.pending.remove(&(unit, nexus));
        }
        self.reported += 1;
        Some(Sense::new(SenseKey::UNIT_ATTENTION, code))
    }

    /// Removes a condition of a unit that a nexus has received in another way.
    fn remove(&mut self, unit: u16, nexus: NexusId, code: SenseCode) {
        if let Some(codes) = self.pending.get_mut(&(unit, nexus)) {
            codes.retain(|&other| other != code);
            if codes.is_empty() {
                self.pending.remove(&(unit, nexus));
            }
        }
    }

    pub(super) fn remove_nexus(&mut self, nexus: NexusId) {
        self.pending.retain(|&(_, of), _| of != nexus);
    }

    pub(super) fn remove_unit(&mut self, unit: u16) {
        self.pending.retain(|&(of, _), _| of != unit);
    }
}

impl Device {
    /// Records a condition for one nexus.
    pub(super) fn add_attention(&mut self, unit: u16, nexus: NexusId, code: SenseCode) {
        self.attentions.add(unit, nexus, code);
        self.plain &= self.attentions.is_empty();
    }

    /// Records a condition of every unit that some nexuses see, because the storage behind the
    /// device has changed. `concerns` selects them by their number and initiator port. A device
    /// without unit attentions of its own
    /// ([`DeviceConfig::attentions`](super::DeviceConfig::attentions)) reports it as well.
    pub fn report_change(&mut self, code: SenseCode, concerns: impl Fn(NexusId, &TransportId) -> bool) {
        let is_its = |nexus: &NexusId| self.initiator(*nexus).is_some_and(|port| concerns(*nexus, port));
        let nexuses: Vec<NexusId> = self.nexuses.ids().filter(is_its).collect();
        for nexus in nexuses {
            for unit in (0..self.units.len() as u16).filter(|&unit| self.sees(nexus, unit)).collect::<Vec<_>>() {
                self.attentions.record(unit, nexus, code);
            }
        }
        self.update_plain();
    }

    /// Number of unit attentions that were reported to initiators.
    pub fn reported_attentions(&self) -> u64 {
        self.attentions.reported
    }

    /// Records a condition for every nexus that sees the unit, except the nexus that caused it.
    pub(super) fn add_attention_for_all(&mut self, unit: u16, except: Option<NexusId>, code: SenseCode) {
        if !self.attentions.are_enabled() {
            return;
        }
        let all: Vec<NexusId> = self.nexuses.ids().filter(|&id| Some(id) != except).collect();
        for nexus in all {
            if self.sees(nexus, unit) {
                self.add_attention(unit, nexus, code);
            }
        }
    }

    /// Records a condition of every unit that these nexuses see.
    pub(super) fn add_attention_of_all_units(&mut self, nexuses: &[NexusId], code: SenseCode) {
        if !self.attentions.are_enabled() {
            return;
        }
        for &nexus in nexuses {
            for unit in 0..self.units.len() as u16 {
                if self.sees(nexus, unit) {
                    self.add_attention(unit, nexus, code);
                }
            }
        }
    }

    /// Removes and returns the oldest condition not yet reported to a nexus.
    pub(super) fn take_attention(&mut self, unit: u16, nexus: NexusId) -> Option<Sense> {
        let sense = self.attentions.take(unit, nexus)?;
        self.update_plain();
        Some(sense)
    }
}

/// Removes a condition of all units that a nexus has received in another way.
pub(super) fn remove_attention(device: &mut Device, nexus: NexusId, code: SenseCode) {
    if device.attentions.is_empty() {
        return;
    }
    for unit in 0..device.units.len() as u16 {
        device.attentions.remove(unit, nexus, code);
    }
    device.update_plain();
}
