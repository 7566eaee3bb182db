//! I_T nexuses: an initiator port, the device port that it uses, and the units that it sees.

use super::config::{InitiatorName, LunMap, Masking};
use super::reservation::Party;
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::scsi::transport_id::TransportId;

/// Number of a nexus: an initiator port that is logged in to a target port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NexusId(pub u32);

/// Ports of a nexus. The entry is small because a device may have half a million nexuses.
#[derive(Clone, Debug)]
pub(super) struct Nexus {
    pub(super) initiator: TransportId,
    pub(super) port: u16,
    up: bool,
}

const _: () = assert!(size_of::<Nexus>() <= 24);

/// All nexuses of a device, and the masking that determines what they see.
#[derive(Clone, Debug)]
pub(super) struct Nexuses {
    masking: Masking,
    nexuses: Vec<Nexus>,
    free: Vec<u32>,
    /// Units visible to each nexus; `None` means all. May be empty with [`Masking::Open`].
    luns: Vec<Option<Vec<LunMap>>>,
}

impl Nexuses {
    pub(super) fn new(masking: Masking) -> Nexuses {
        Nexuses { masking, nexuses: Vec::new(), free: Vec::new(), luns: Vec::new() }
    }

    pub(super) fn connect(&mut self, port: u16, initiator: TransportId) -> NexusId {
        let luns = visible(&initiator, &self.masking);
        let nexus = Nexus { initiator, port, up: true };
        let at = match self.free.pop() {
            Some(at) => {
                self.nexuses[at as usize] = nexus;
                at
            }
            None => {
                self.nexuses.push(nexus);
                (self.nexuses.len() - 1) as u32
            }
        };
        if self.masking != Masking::Open {
            self.luns.resize(self.nexuses.len(), None);
        }
        if let Some(before) = self.luns.get_mut(at as usize) {
            *before = luns;
        }
        NexusId(at)
    }

    /// Removes a nexus. Returns false if it does not exist or was removed before.
    pub(super) fn disconnect(&mut self, nexus: NexusId) -> bool {
        let Some(slot) = self.nexuses.get_mut(nexus.0 as usize).filter(|slot| slot.up) else {
            return false;
        };
        slot.up = false;
        self.free.push(nexus.0);
        true
    }

    pub(super) fn get(&self, nexus: NexusId) -> Option<&Nexus> {
        self.nexuses.get(nexus.0 as usize).filter(|slot| slot.up)
    }

    /// Number of the device port that a nexus uses.
    pub(super) fn port_of(&self, nexus: NexusId) -> Option<u16> {
        self.get(nexus).map(|nexus| nexus.port)
    }

    /// Initiator port and target port of a nexus.
    pub(super) fn party(&self, nexus: NexusId) -> Option<Party> {
        self.get(nexus).map(|nexus| Party { initiator: nexus.initiator.clone(), port: nexus.port })
    }

    /// Nexuses of an initiator port through a target port, in ascending order: none, one, or with
    /// iSCSI one per session.
    pub(super) fn of(&self, party: &Party) -> Vec<NexusId> {
        let of_party = |nexus: &Nexus| nexus.port == party.port && nexus.initiator == party.initiator;
        self.iter().filter(|(_, nexus)| of_party(nexus)).map(|(id, _)| id).collect()
    }

    /// Numbers of all nexuses, in ascending order.
    pub(super) fn ids(&self) -> impl Iterator<Item = NexusId> {
        self.iter().map(|(id, _)| id)
    }

    fn iter(&self) -> impl Iterator<Item = (NexusId, &Nexus)> {
        let up = self.nexuses.iter().zip(0..).filter(|(nexus, _)| nexus.up);
        up.map(|(nexus, at)| (NexusId(at), nexus))
    }

    /// Units visible to a nexus; `None` means all.
    #[inline]
    pub(super) fn luns(&self, nexus: NexusId) -> Option<&[LunMap]> {
        if self.masking == Masking::Open {
            return None;
        }
        match self.get(nexus) {
            Some(_) => self.luns.get(nexus.0 as usize).and_then(Option::as_deref),
            None => Some(&[]),
        }
    }

    /// Applies a masking and returns the nexuses whose visible units have changed.
    pub(super) fn remask(&mut self, masking: Masking) -> Vec<NexusId> {
        if masking == self.masking {
            return Vec::new();
        }
        self.masking = masking;
        self.luns.resize(self.nexuses.len(), None);
        let mut changed = Vec::new();
        for (at, nexus) in self.nexuses.iter().enumerate().filter(|(_, nexus)| nexus.up) {
            let luns = visible(&nexus.initiator, &self.masking);
            if luns != self.luns[at] {
                self.luns[at] = luns;
                changed.push(NexusId(at as u32));
            }
        }
        changed
    }

    pub(super) fn bytes(&self) -> usize {
        self.nexuses.capacity() * size_of::<Nexus>() + self.luns.capacity() * size_of::<Vec<LunMap>>()
    }
}

/// Units visible to an initiator port; `None` means all.
fn visible(id: &TransportId, masking: &Masking) -> Option<Vec<LunMap>> {
    let Masking::Listed(list) = masking else { return None };
    let name = InitiatorName::from(id);
    // Names sort by transport: Fibre Channel, SRP, iSCSI.
    let listed = match name {
        InitiatorName::Fcp(_) => matches!(list.keys().next(), Some(InitiatorName::Fcp(_))),
        InitiatorName::Srp(_) => list.keys().any(|name| matches!(name, InitiatorName::Srp(_))),
        InitiatorName::Iscsi(_) => matches!(list.keys().next_back(), Some(InitiatorName::Iscsi(_))),
    };
    listed.then(|| list.get(&name).cloned().unwrap_or_default())
}

/// Returns the unit for LUN bytes, from a map sorted by LUN.
pub(super) fn mapped(luns: &[LunMap], bytes: LunBytes) -> Option<u16> {
    let number = lun::from_bytes(bytes)?;
    luns.binary_search_by_key(&number, |map| map.lun).ok().map(|at| luns[at].unit)
}
