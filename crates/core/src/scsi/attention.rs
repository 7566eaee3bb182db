//! Unit attentions: what a nexus is told before its next command (SAM, unit attention conditions).

use super::device::Device;
use super::nexus::NexusId;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::BTreeMap;

/// Conditions that nobody has been told yet, by unit and nexus, the oldest first.
pub(super) type Attentions = BTreeMap<(u16, NexusId), Vec<SenseCode>>;

/// Power on, resets and nexus loss: whatever else was to be told is moot then.
fn is_reset(code: SenseCode) -> bool {
    code.0 >> 8 == 0x29
}

impl Device {
    /// A condition for one nexus.
    pub(super) fn attend(&mut self, unit: u16, nexus: NexusId, code: SenseCode) {
        if !self.config.attentions {
            return;
        }
        let codes = self.attentions.entry((unit, nexus)).or_default();
        if is_reset(code) {
            codes.clear();
        }
        if !codes.contains(&code) {
            codes.push(code);
        }
        self.quiet = false;
    }

    /// A condition for every nexus that sees the unit, but not for the one that caused it.
    pub(super) fn attend_all(&mut self, unit: u16, except: Option<NexusId>, code: SenseCode) {
        if !self.config.attentions {
            return;
        }
        let all: Vec<NexusId> = self.nexuses.iter().map(|(id, _)| id).filter(|&id| Some(id) != except).collect();
        for nexus in all {
            if self.sees(nexus, unit) {
                self.attend(unit, nexus, code);
            }
        }
    }

    /// The oldest condition that a nexus has not been told.
    pub(super) fn take_attention(&mut self, unit: u16, nexus: NexusId) -> Option<Sense> {
        let codes = self.attentions.get_mut(&(unit, nexus))?;
        let code = (!codes.is_empty()).then(|| codes.remove(0))?;
        if codes.is_empty() {
            self.attentions.remove(&(unit, nexus));
            self.settle();
        }
        Some(Sense::new(SenseKey::UNIT_ATTENTION, code))
    }

    /// A condition is known to a nexus in another way.
    pub(super) fn forget_attention(&mut self, unit: u16, nexus: NexusId, code: SenseCode) {
        if let Some(codes) = self.attentions.get_mut(&(unit, nexus)) {
            codes.retain(|&other| other != code);
            if codes.is_empty() {
                self.attentions.remove(&(unit, nexus));
                self.settle();
            }
        }
    }

    /// What a new nexus is told: for it, everything has just been switched on.
    pub(super) fn attend_new(&mut self, nexus: NexusId) {
        for unit in 0..self.units.len() as u16 {
            if self.sees(nexus, unit) {
                self.attend(unit, nexus, SenseCode::POWER_ON_OR_RESET);
            }
        }
    }
}
