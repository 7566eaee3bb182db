//! Validation of virtual disks that a workload uses in band.

use super::Problems;
use crate::config::{BackEnd, BackEndTarget, MediumKind};
use crate::san::{Lab, Place, ProblemKind, Section, VirtualDisks, lun_of_back_end, storage_of_iscsi};
use sanloom_scsi::map::Refusal;
use std::collections::BTreeMap;

/// Reports workloads on virtual disks for which the back ends in the lab have no room, so that
/// every request would fail. Each disk is named once.
pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    let in_band = |storage: u16| {
        lab.live.medium(storage).kind == MediumKind::Volumes && !lab.live.out_of_band.contains_key(&storage)
    };
    // Workload that uses each disk.
    let mut used: BTreeMap<(u16, u16), usize> = BTreeMap::new();
    for (number, workload) in lab.workloads.iter().enumerate() {
        for target in workload.targets.iter().filter(|target| in_band(target.storage)) {
            used.entry((target.storage, target.lun)).or_insert(number);
        }
    }
    let Some((&(first, _), _)) = used.first_key_value() else { return };
    let refused = VirtualDisks::new(lab, &lab.live, first, |_| true).refused;
    for ((storage, lun), workload) in used {
        let volumes = lab.volumes_of(storage);
        let Some(volume) = volumes.get(&lun) else { continue };
        let of_volume = |(number, _): &&(u16, _)| lab.live.volumes[usize::from(*number)].name == volume.name;
        let (Some((_, refusal)), Some(pool)) =
            (refused.iter().find(of_volume), lab.live.pools.get(usize::from(volume.pool)))
        else {
            continue;
        };
        // The stripes of a volume are judged with the volume.
        if matches!(refusal, Refusal::BadStripe { .. }) {
            continue;
        }
        let back_ends = lab.live.back_ends.iter().filter(|back_end| back_end.pool == volume.pool);
        let mut unusable = back_ends.filter(|back_end| lun_of_back_end(lab, &lab.live, back_end).is_none());
        let (detail, remedy) = match unusable.next().map(|back_end| (back_end, is_virtual(lab, back_end))) {
            Some((back_end, true)) => (
                format!("; the back end `{}` is itself a virtual disk, which a simulation does not use", back_end.name),
                "name a LUN of a storage system with disks as the back end",
            ),
            Some((back_end, false)) => (
                format!("; the back end `{}` is not in the lab", back_end.name),
                "add its storage system to the lab, or remove the workload",
            ),
            None => (String::new(), "add a back end, or shrink the volumes of the pool"),
        };
        problems.add(
            ProblemKind::PoolFull,
            Place::of(Section::Workload, workload).key("targets"),
            format!(
                "the volume `{}` is not possible: {}{detail}",
                volume.name,
                refusal.reason(pool.block_bytes, pool.extent_bytes)
            ),
            remedy,
        );
    }
}

fn is_virtual(lab: &Lab, back_end: &BackEnd) -> bool {
    let storage = match &back_end.target {
        BackEndTarget::Iscsi(target) => storage_of_iscsi(&lab.live, &target.name).map(|(storage, _)| storage),
        BackEndTarget::Fcp(_) => None,
    };
    storage.is_some_and(|storage| lab.live.medium(storage).kind == MediumKind::Volumes)
}
