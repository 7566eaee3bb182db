//! I_T nexuses: which initiator port reaches the device through which of its ports, and which units it sees.

use super::config::{InitiatorName, LunMap, Masking};
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::scsi::transport_id::TransportId;

/// An initiator port that is logged in to a target port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NexusId(pub u32);

/// A device that many hosts log in to has half a million of these.
#[derive(Clone, Debug)]
pub(super) struct Nexus {
    pub(super) initiator: TransportId,
    pub(super) port: u16,
    up: bool,
}

const _: () = assert!(size_of::<Nexus>() <= 24);

/// All nexuses of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Nexuses {
    nexuses: Vec<Nexus>,
    free: Vec<u32>,
    /// What each nexus sees, `None`: all; may be empty with [`Masking::Open`].
    luns: Vec<Option<Vec<LunMap>>>,
}

impl Nexuses {
    pub(super) fn connect(&mut self, port: u16, initiator: TransportId, masking: &Masking) -> NexusId {
        let luns = visible(&initiator, masking);
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
        if *masking != Masking::Open {
            self.luns.resize(self.nexuses.len(), None);
        }
        if let Some(before) = self.luns.get_mut(at as usize) {
            *before = luns;
        }
        NexusId(at)
    }

    /// False if there is no such nexus (any more).
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

    /// The nexuses of an initiator port, in the order of their numbers.
    pub(super) fn of<'a>(&'a self, initiator: &'a TransportId) -> impl Iterator<Item = (NexusId, u16)> + 'a {
        self.iter().filter(move |(_, nexus)| nexus.initiator == *initiator).map(|(id, nexus)| (id, nexus.port))
    }

    /// All of them, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NexusId, &Nexus)> {
        let up = self.nexuses.iter().zip(0..).filter(|(nexus, _)| nexus.up);
        up.map(|(nexus, at)| (NexusId(at), nexus))
    }

    /// What a nexus sees, where masking is in force. `None`: all.
    pub(super) fn luns(&self, nexus: NexusId) -> Option<&[LunMap]> {
        match self.get(nexus) {
            Some(_) => self.luns.get(nexus.0 as usize).and_then(Option::as_deref),
            None => Some(&[]),
        }
    }

    /// Masking has changed. Returns the nexuses that see other units than before.
    pub(super) fn remask(&mut self, masking: &Masking) -> Vec<NexusId> {
        self.luns.resize(self.nexuses.len(), None);
        let mut changed = Vec::new();
        for (at, nexus) in self.nexuses.iter().enumerate().filter(|(_, nexus)| nexus.up) {
            let luns = visible(&nexus.initiator, masking);
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

/// What an initiator port sees; `None`: all.
fn visible(id: &TransportId, masking: &Masking) -> Option<Vec<LunMap>> {
    let Masking::Listed(list) = masking else { return None };
    let name = InitiatorName::from(id);
    // Names of Fibre Channel stand before those of iSCSI.
    let listed = match name {
        InitiatorName::Fcp(_) => matches!(list.keys().next(), Some(InitiatorName::Fcp(_))),
        InitiatorName::Iscsi(_) => matches!(list.keys().next_back(), Some(InitiatorName::Iscsi(_))),
    };
    listed.then(|| list.get(&name).cloned().unwrap_or_default())
}

/// The unit behind LUN bytes, for a map sorted by LUN.
pub(super) fn mapped(luns: &[LunMap], bytes: LunBytes) -> Option<u16> {
    let number = lun::from_bytes(bytes)?;
    luns.binary_search_by_key(&number, |map| map.lun).ok().map(|at| luns[at].unit)
}
