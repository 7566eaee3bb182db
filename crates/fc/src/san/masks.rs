//! LUN masks: [`Lab::masking`], and the LUNs that each host port sees.

use super::{Lab, srp_port};
use crate::config::{Mask, Target, Workload};
use sanloom_scsi::scsi::{InitiatorName, LunMap, Masking};
use sanloom_wire::Wwpn;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the hosts whose workloads name a LUN, which may be a virtual disk of a metadata server;
/// all hosts in a lab without workloads.
pub fn users_of(lab: &Lab, lun: Target) -> BTreeSet<u16> {
    if lab.workloads.is_empty() {
        return (0..lab.hosts.len() as u16).collect();
    }
    let workloads = lab.workloads.iter().filter(|workload| workload.named_targets().contains(&lun));
    workloads.flat_map(|workload| &workload.hosts).copied().collect()
}

impl Lab {
    /// Masking of a storage system. A unit has the same number for every initiator that sees it.
    pub fn masking(&self, storage: u16) -> Masking {
        let masks = self.live.masks.iter().filter(|mask| mask.targets.iter().any(|target| target.storage == storage));
        let mut listed: BTreeMap<InitiatorName, Vec<LunMap>> = BTreeMap::new();
        let mut is_masked = false;
        for mask in masks {
            is_masked = true;
            for initiator in &mask.initiators {
                let luns = listed.entry(initiator.clone()).or_default();
                let own = mask.targets.iter().filter(|target| target.storage == storage);
                luns.extend(own.map(|target| LunMap { lun: target.lun, unit: target.lun }));
                luns.sort_unstable();
                luns.dedup();
            }
        }
        if is_masked { Masking::Listed(listed) } else { Masking::Open }
    }

    /// Returns whether masks hide a LUN from the iSCSI name of a host.
    pub(super) fn is_hidden_over_iscsi(&self, host: u16, target: &Target) -> bool {
        let Masking::Listed(listed) = self.masking(target.storage) else { return false };
        let Some(host) = self.hosts.get(usize::from(host)) else { return false };
        let own = listed.get(&InitiatorName::Iscsi(host.iscsi.name.as_str().into()));
        listed.keys().any(|name| matches!(name, InitiatorName::Iscsi(_)))
            && !own.is_some_and(|luns| luns.iter().any(|map| map.lun == target.lun))
    }

    /// LUNs of a storage system that the workloads of a host use; all of them in a lab without
    /// workloads.
    pub fn luns_in_use(&self, host: u16, storage: u16) -> BTreeSet<u16> {
        self.luns_of(storage, |workload| workload.hosts.contains(&host))
    }

    /// LUNs of a storage system that any workload uses; all of them in a lab without workloads.
    pub fn luns_in_any_use(&self, storage: u16) -> BTreeSet<u16> {
        self.luns_of(storage, |_| true)
    }

    fn luns_of(&self, storage: u16, counts: impl Fn(&Workload) -> bool) -> BTreeSet<u16> {
        if self.workloads.is_empty() {
            let luns = self.storage.get(usize::from(storage)).map_or(0, |system| system.luns.len() as u16);
            return (0..luns).collect();
        }
        let workloads = self.workloads.iter().filter(|workload| counts(workload));
        let is_here = |target: &&Target| target.storage == storage;
        workloads.flat_map(|workload| &workload.targets).filter(is_here).map(|target| target.lun).collect()
    }
}

/// Returns whether masks hide a LUN from all SRP initiator ports of a host, which are those of its
/// interfaces.
pub(super) fn is_hidden_over_srp(lab: &Lab, interfaces: &[u16], target: &Target) -> bool {
    let Masking::Listed(listed) = lab.masking(target.storage) else { return false };
    let sees = |interface: &u16| {
        let own = listed.get(&InitiatorName::Srp(Box::new(srp_port(*interface))));
        own.is_some_and(|luns| luns.iter().any(|map| map.lun == target.lun))
    };
    listed.keys().any(|name| matches!(name, InitiatorName::Srp(_))) && !interfaces.iter().any(sees)
}

/// LUNs of a storage system that a host uses over the same HBAs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LunGroup {
    /// LUN numbers; `None` if masks do not distinguish the LUNs.
    pub luns: Option<BTreeSet<u16>>,
    /// HBAs that see the LUNs.
    pub hbas: BTreeSet<u16>,
}

impl Lab {
    /// LUNs that the workloads of a host use, in groups that masks show to the same HBAs. Without
    /// masks there is one group.
    pub fn lun_groups(&self, host: u16, storage: u16) -> Vec<LunGroup> {
        let Some(config) = self.hosts.get(usize::from(host)) else { return Vec::new() };
        let hbas = || (0..).zip(&config.hbas);
        let all = || LunGroup { luns: None, hbas: hbas().map(|(hba, _)| hba).collect() };
        let is_here = |target: &Target| target.storage == storage;
        let masks = self.live.masks.iter().filter(|mask| mask.targets.iter().any(is_here) && mask.has_fcp_initiator());
        let masks: Vec<&Mask> = masks.collect();
        if masks.is_empty() {
            return vec![all()];
        }
        let mut groups: BTreeMap<BTreeSet<u16>, BTreeSet<u16>> = BTreeMap::new();
        for lun in self.luns_in_use(host, storage) {
            let sees = |name: Wwpn| {
                let name = InitiatorName::Fcp(name);
                let target = Target { storage, lun };
                masks.iter().any(|mask| mask.initiators.contains(&name) && mask.targets.contains(&target))
            };
            let seeing = hbas().filter(|(_, hba)| sees(hba.wwpn)).map(|(hba, _)| hba).collect();
            groups.entry(seeing).or_default().insert(lun);
        }
        groups.into_iter().map(|(hbas, luns)| LunGroup { luns: Some(luns), hbas }).collect()
    }
}

impl Mask {
    fn has_fcp_initiator(&self) -> bool {
        self.initiators.iter().any(|initiator| matches!(initiator, InitiatorName::Fcp(_)))
    }
}

/// LUNs that masks show to Fibre Channel ports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Masks {
    /// Storage systems of which a port sees the listed LUNs only.
    masked: BTreeSet<u16>,
    /// Storage systems and LUNs that are listed for a port.
    seen: BTreeMap<Wwpn, BTreeSet<(u16, u16)>>,
}

impl Masks {
    pub(super) fn of(lab: &Lab) -> Masks {
        let mut masks = Masks::default();
        // Masks of iSCSI names alone restrict no Fibre Channel port.
        for mask in lab.live.masks.iter().filter(|mask| mask.has_fcp_initiator()) {
            masks.masked.extend(mask.targets.iter().map(|target| target.storage));
            for initiator in &mask.initiators {
                if let InitiatorName::Fcp(name) = initiator {
                    let luns = mask.targets.iter().map(|target| (target.storage, target.lun));
                    masks.seen.entry(*name).or_default().extend(luns);
                }
            }
        }
        masks
    }

    /// Storage systems and LUNs that are listed for a port.
    pub(super) fn seen(&self, port: Wwpn) -> Option<&BTreeSet<(u16, u16)>> {
        self.seen.get(&port)
    }

    pub(super) fn is_masked(&self, storage: u16) -> bool {
        self.masked.contains(&storage)
    }

    /// Returns whether a port sees a LUN.
    pub(super) fn shows(&self, port: Wwpn, storage: u16, lun: u16) -> bool {
        !self.is_masked(storage) || self.seen(port).is_some_and(|seen| seen.contains(&(storage, lun)))
    }

    /// Returns whether a port for which `seen` is listed sees any LUN of a storage system.
    pub(super) fn shows_any(&self, seen: Option<&BTreeSet<(u16, u16)>>, storage: u16) -> bool {
        let range = (storage, 0)..=(storage, u16::MAX);
        !self.is_masked(storage) || seen.is_some_and(|seen| seen.range(range).next().is_some())
    }
}
