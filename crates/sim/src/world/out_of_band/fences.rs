//! Back ends that refuse the commands of fenced hosts: [`Fences`].

use super::OutOfBand;
use crate::world::World;
use crate::world::storage::Ended;
use sanloom_fc::config::Target;
use sanloom_fc::san::Lab;
use sanloom_scsi::ordered::OrderedMap;
use sanloom_scsi::scsi::{Device, InitiatorName, Io, IoStatus, IoTag};
use sanloom_wire::sense::{SenseCode, SenseKey};
use std::collections::{BTreeMap, BTreeSet};

/// Result of a refused command: ACCESS DENIED, NO ACCESS RIGHTS (SPC-4, table of additional sense
/// codes).
const REFUSED: IoStatus = IoStatus::Failed { key: SenseKey::ILLEGAL_REQUEST, code: SenseCode(0x2002) };

/// Hosts that each back end refuses.
#[derive(Default)]
pub(in crate::world) struct Fences {
    hosts: BTreeMap<InitiatorName, u16>,
    fenced: BTreeSet<(Target, u16)>,
    /// Hosts of the commands in controllers, by storage system, owner and tag.
    running: OrderedMap<(u16, u16, IoTag), (Target, u16)>,
}

impl Fences {
    /// Returns fences for the hosts of a lab with a metadata server.
    pub fn new(lab: &Lab) -> Option<Box<Fences>> {
        if lab.live.out_of_band.is_empty() {
            return None;
        }
        let mut hosts = BTreeMap::new();
        for (host, number) in lab.hosts.iter().zip(0..) {
            hosts.extend(host.hbas.iter().map(|hba| (InitiatorName::Fcp(hba.wwpn), number)));
            hosts.insert(InitiatorName::Iscsi(host.iscsi.name.as_str().into()), number);
        }
        Some(Box::new(Fences { hosts, ..Fences::default() }))
    }

    /// Returns the result of a command that arrives at a controller, if it is refused.
    #[inline(never)]
    pub fn refusal(&self, device: &Device, storage: u16, io: &Io) -> Option<IoStatus> {
        self.fenced.contains(&self.entry(device, storage, io)?).then_some(REFUSED)
    }

    /// Records a command that a controller has accepted.
    #[inline(never)]
    pub fn accepted(&mut self, device: &Device, storage: u16, owner: u16, io: &Io) {
        if let Some(entry) = self.entry(device, storage, io) {
            self.running.insert((storage, owner, io.tag), entry);
        }
    }

    fn entry(&self, device: &Device, storage: u16, io: &Io) -> Option<(Target, u16)> {
        let name = InitiatorName::from(device.initiator(io.nexus)?);
        Some((Target { storage, lun: io.unit }, *self.hosts.get(&name)?))
    }

    /// Ends a command that leaves a controller. One of a fenced host is refused.
    #[inline(never)]
    pub fn end(&mut self, storage: u16, ended: &mut Ended) {
        let entry = self.running.remove(&(storage, ended.nport, ended.tag));
        if entry.is_some_and(|entry| self.fenced.contains(&entry)) {
            ended.status = REFUSED;
        }
    }

    /// Forgets a command that was aborted.
    #[inline(never)]
    pub fn cancel(&mut self, storage: u16, owner: u16, tag: IoTag) {
        self.running.remove(&(storage, owner, tag));
    }
}

/// Fences and admits hosts as the servers have decided. A server fences the pools of its virtual
/// disks; no pool has virtual disks of two servers.
pub(super) fn execute(world: &mut World, own: &mut OutOfBand) {
    while let Some((number, host, fenced)) = own.fences.pop_front() {
        let Some(fences) = &mut world.storage.fences else { continue };
        for target in own.domains[number].targets() {
            match fenced {
                true => _ = fences.fenced.insert((target, host)),
                false => _ = fences.fenced.remove(&(target, host)),
            }
        }
    }
}
