//! Metadata servers of a lab: the keys `out_of_band` of storage systems, and the back ends to which
//! workloads on their virtual disks lead.

use super::nodes::has_table;
use super::workloads::CONFLICT;
use super::{BAD_PERIOD, Where};
use crate::diagnostic::Sink;
use crate::element::Element;
use crate::value;
use sanloom_fc::config::{Live, MediumKind, OutOfBand, Picos, Target};
use sanloom_fc::san::{Lab, lun_of_back_end};
use std::collections::{BTreeMap, BTreeSet};

/// Code of a pool that has too few extents for its virtual disks.
pub(crate) const POOL_FULL: &str = "pool-full";

/// Returns all metadata servers, by index of their storage system.
pub(super) fn build(lab: &Lab, live: &Live, storage: &[Where<'_>], sink: &mut Sink) -> BTreeMap<u16, OutOfBand> {
    let given = (0..).zip(storage).filter(|(_, place)| has_table(&place.element, "out_of_band"));
    given.map(|(number, place)| (number, server(number, &place.element, (lab, live), sink))).collect()
}

fn server(number: u16, element: &Element<'_>, (lab, live): (&Lab, &Live), sink: &mut Sink) -> OutOfBand {
    let name = value::cut(&element.name);
    let time = |key: &str| element.time(&format!("out_of_band.{key}")).unwrap_or(Picos::ZERO);
    if live.medium(number).kind != MediumKind::Volumes {
        let reason = format!("the LUNs of `{name}` are no virtual disks");
        sink.error(CONFLICT, &element.origin("out_of_band"), reason, "add medium = \"volumes\", or remove the table");
    }
    for key in ["iscsi", "srp", "gateway"].into_iter().filter(|key| has_table(element, key)) {
        let reason = format!("no command passes through the metadata server `{name}`");
        sink.error(CONFLICT, &element.origin(key), reason, "remove the table, or remove `out_of_band`");
    }
    let [retry, give_up, fence_after] = ["retry", "give_up", "fence_after"].map(time);
    if retry == Picos::ZERO {
        let (reason, remedy) = ("requests would be repeated all the time", "write retry = \"1s\"");
        sink.error(BAD_PERIOD, &element.origin("out_of_band.retry"), reason, remedy);
    }
    for (key, limit) in [("give_up", give_up), ("fence_after", fence_after)] {
        if limit < time("round_trip") {
            let reason = format!("that is shorter than the round trip of {}", time("round_trip"));
            let remedy = format!("raise {key}, or shorten `round_trip`");
            sink.error(BAD_PERIOD, &element.origin(&format!("out_of_band.{key}")), reason, remedy);
        }
    }
    let copy_bytes_per_s = element.bit_rate("out_of_band.copy_rate").unwrap_or(0) / 8;
    full_pools(number, element, (lab, live), sink);
    OutOfBand {
        round_trip: time("round_trip"),
        service: time("service"),
        entries: element.integer("out_of_band.entries").unwrap_or(65_536),
        retry,
        give_up,
        fence_after,
        copy_bytes_per_s,
    }
}

/// Reports pools whose back ends in the lab have too few extents for the virtual disks.
fn full_pools(number: u16, element: &Element<'_>, (lab, live): (&Lab, &Live), sink: &mut Sink) {
    let is_own = |volume: &&sanloom_fc::config::VolumeSpec| volume.storage.is_some_and(|(of, _)| of == number);
    let pools: BTreeSet<u16> = live.volumes.iter().filter(is_own).map(|volume| volume.pool).collect();
    for pool in pools {
        let Some(config) = live.pools.get(usize::from(pool)) else { continue };
        let extent = config.extent_bytes.max(1);
        let volumes = live.volumes.iter().filter(|volume| volume.pool == pool);
        let wanted: u64 = volumes.map(|volume| volume.size_bytes.div_ceil(extent)).sum();
        let back_ends = live.back_ends.iter().filter(|back_end| back_end.pool == pool);
        // `lab.live` is not complete yet.
        let luns = back_ends.filter_map(|back_end| lun_of(lab, live, back_end));
        let extents: u64 = luns.map(|lun| lun.blocks.saturating_mul(lun.block_bytes.into()) / extent).sum();
        if wanted > extents {
            let name = value::cut(&config.name);
            let reason = format!(
                "the virtual disks of the pool `{name}` need {wanted} extents, but its back ends have {extents}"
            );
            let remedy = "add a back end whose storage system is in the lab, or shrink the virtual disks";
            sink.error(POOL_FULL, &element.origin("out_of_band"), reason, remedy);
        }
    }
}

fn lun_of(lab: &Lab, live: &Live, back_end: &sanloom_fc::config::BackEnd) -> Option<sanloom_fc::config::Lun> {
    let Target { storage, lun } = lun_of_back_end(lab, live, back_end)?;
    lab.storage.get(usize::from(storage))?.luns.get(usize::from(lun)).copied()
}

/// Replaces virtual disks of metadata servers by their back ends. Returns the LUNs to which
/// commands go, and the LUNs that requests name if they differ.
pub(super) fn behind(lab: &Lab, targets: Vec<Target>) -> (Vec<Target>, Vec<Target>) {
    let live = &lab.live;
    if !targets.iter().any(|target| live.out_of_band.contains_key(&target.storage)) {
        return (targets, Vec::new());
    }
    let mut behind = BTreeSet::new();
    for target in &targets {
        if !live.out_of_band.contains_key(&target.storage) {
            behind.insert(*target);
            continue;
        }
        let Some(pool) = lab.volumes_of(target.storage).get(&target.lun).map(|volume| volume.pool) else { continue };
        let back_ends = live.back_ends.iter().filter(|back_end| back_end.pool == pool);
        behind.extend(back_ends.filter_map(|back_end| lun_of_back_end(lab, live, back_end)));
    }
    (behind.into_iter().collect(), targets)
}
