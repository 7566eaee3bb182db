//! Metadata servers of a lab: the keys `out_of_band` of storage systems, and the back ends to which
//! workloads on their virtual disks lead.

use super::workloads::CONFLICT;
use super::{BAD_PERIOD, Where};
use crate::diagnostic::Sink;
use crate::element::Element;
use crate::value;
use sanloom_fc::config::{
    EthernetLink, EthernetNode, InfinibandLink, InfinibandNode, Live, MediumKind, Node, OutOfBand, Picos, Target,
    VolumeSpec,
};
use sanloom_fc::san::{Lab, VirtualDisks, lun_of_back_end};
use sanloom_scsi::map::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// Code of a pool that has too few extents for its virtual disks.
pub(crate) const POOL_FULL: &str = "pool-full";

/// Largest number of extents of the virtual disks of a metadata server, each of which costs memory.
const MAX_EXTENTS: u64 = 1 << 22;

/// Returns all metadata servers, by index of their storage system.
pub(super) fn build(lab: &Lab, live: &Live, storage: &[Where<'_>], sink: &mut Sink) -> BTreeMap<u16, OutOfBand> {
    let given = (0..).zip(storage).filter(|(_, place)| place.element.has_table("out_of_band"));
    given.map(|(number, place)| (number, server(number, &place.element, (lab, live), sink))).collect()
}

fn server(number: u16, element: &Element<'_>, (lab, live): (&Lab, &Live), sink: &mut Sink) -> OutOfBand {
    let name = value::cut(&element.name);
    let time = |key: &str| element.time(&format!("out_of_band.{key}")).unwrap_or(Picos::ZERO);
    if live.medium(number).kind != MediumKind::Volumes {
        let reason = format!("the LUNs of `{name}` are no virtual disks");
        sink.error(CONFLICT, &element.origin("out_of_band"), reason, "add medium = \"volumes\", or remove the table");
    }
    for key in ["iscsi", "srp", "gateway"].into_iter().filter(|key| element.has_table(key)) {
        let reason = format!("no command passes through the metadata server `{name}`");
        sink.error(CONFLICT, &element.origin(key), reason, "remove the table, or remove `out_of_band`");
    }
    if let Some(link) = link_of(lab, number) {
        let reason = format!("`{name}` has the link `{link}`, but its network is not simulated");
        sink.error(CONFLICT, &element.origin("out_of_band"), reason, "remove the link, or remove the table");
    }
    let [retry, give_up, fence_after] = ["retry", "give_up", "fence_after"].map(time);
    let least = Picos(time("round_trip").0.saturating_add(time("service").0));
    for (key, limit) in [("retry", retry), ("give_up", give_up), ("fence_after", fence_after)] {
        if limit == Picos::ZERO || limit < least {
            let reason = format!("an answer takes {least}, the round trip and the service time, or longer");
            let remedy = format!("raise {key}, or shorten `round_trip` and `service`");
            sink.error(BAD_PERIOD, &element.origin(&format!("out_of_band.{key}")), reason, remedy);
        }
    }
    let copy_bytes_per_s = element.bit_rate("out_of_band.copy_rate").unwrap_or(0) / 8;
    disks(number, element, (lab, live), sink);
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

/// Returns the name of a link of a storage system.
fn link_of(lab: &Lab, storage: u16) -> Option<&str> {
    let fc = lab.links.iter().filter(|link| link.ends.iter().any(|end| end.node == Node::Storage(storage)));
    let is_own = |link: &&EthernetLink| link.ends.iter().any(|end| end.node == EthernetNode::Storage(storage));
    let ethernet = lab.ethernet_links.iter().filter(is_own);
    let is_own = |link: &&InfinibandLink| link.ends.iter().any(|end| end.node == InfinibandNode::Storage(storage));
    let infiniband = lab.infiniband.links.iter().filter(is_own);
    let names = fc.map(|link| &link.name).chain(ethernet.map(|link| &link.name));
    names.chain(infiniband.map(|link| &link.name)).next().map(String::as_str)
}

/// Reports virtual disks of a server for which the back ends in the lab have no room, and back ends
/// from which the server cannot keep a host away.
fn disks(number: u16, element: &Element<'_>, (lab, live): (&Lab, &Live), sink: &mut Sink) {
    let origin = element.origin("out_of_band");
    let own = |volume: &&VolumeSpec| volume.storage.is_some_and(|(of, _)| of == number);
    let pools: BTreeSet<u16> = live.volumes.iter().filter(own).map(|volume| volume.pool).collect();
    let mut extents = 0_u64;
    for (pool, config) in pools.iter().filter_map(|pool| Some((*pool, live.pools.get(usize::from(*pool))?))) {
        let name = value::cut(&config.name);
        let all = live.volumes.iter().filter(|volume| volume.pool == pool);
        if let Some(other) = all.clone().find_map(|volume| volume.storage.filter(|(of, _)| *of != number)) {
            let other = lab.storage.get(usize::from(other.0)).map_or("", |storage| storage.name.as_str());
            let reason = format!("`{}` has virtual disks in the pool `{name}` too", value::cut(other));
            sink.error(CONFLICT, &origin, reason, "a pool of a metadata server has no other; add a pool");
        }
        extents += all.map(|volume| volume.size_bytes.div_ceil(config.extent_bytes.max(1))).sum::<u64>();
    }
    if extents > MAX_EXTENTS {
        let reason = format!("the virtual disks have {extents} extents, but a simulation has {MAX_EXTENTS} at most");
        return sink.error(POOL_FULL, &origin, reason, "raise `extent` of the pool, or shrink the virtual disks");
    }
    // `lab.live` is not complete yet.
    let found = VirtualDisks::new(lab, live, number, |_| true);
    for (volume, refusal) in &found.refused {
        let volume = &live.volumes[usize::from(*volume)];
        // The stripes of a volume are checked with the volume.
        let (Some(pool), false) =
            (live.pools.get(usize::from(volume.pool)), matches!(refusal, Refusal::BadStripe { .. }))
        else {
            continue;
        };
        if !pools.contains(&volume.pool) {
            continue;
        }
        let reason = refusal.reason(pool.block_bytes, pool.extent_bytes);
        let reason = format!("the volume `{}` is not possible: {reason}", value::cut(&volume.name));
        match refusal {
            Refusal::TooWide { .. } | Refusal::NoSpace { .. } => {
                let remedy = "add a back end whose storage system is in the lab, or shrink the virtual disks";
                sink.error(POOL_FULL, &origin, reason, remedy);
            }
            other => sink.error(CONFLICT, &origin, reason, other.remedy()),
        }
    }
    for lun in found.luns.iter().filter(|lun| pools.contains(&lun.pool)) {
        let name = value::cut(&live.back_ends[usize::from(lun.back_end)].name);
        let block_bytes = live.pools[usize::from(lun.pool)].block_bytes;
        if lun.block_bytes != block_bytes {
            let reason = format!("blocks of the back end `{name}` have {} bytes, not {block_bytes}", lun.block_bytes);
            sink.error(CONFLICT, &origin, reason, "give the pool the `block_size` of its back ends");
        }
        if lab.infiniband.targets.contains_key(&lun.target.storage) {
            let reason = format!("no fence keeps hosts away that reach the back end `{name}` over SRP");
            sink.error(CONFLICT, &origin, reason, "remove `srp` of that storage system");
        }
    }
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
