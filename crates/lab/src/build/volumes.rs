//! Pools and virtual disks of a lab.

use super::workloads::CONFLICT;
use crate::diagnostic::Sink;
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::value;
use sanloom_fc::config::{Medium, MediumKind, Pool, VolumeSpec};
use sanloom_fc::san::Lab;
use sanloom_scsi::map::Shape;

/// Code of a pool that does not exist.
pub(crate) const UNKNOWN_POOL: &str = "unknown-pool";
/// Code of a storage system that does not serve volumes.
pub(crate) const NOT_FOR_VOLUMES: &str = "not-for-volumes";

/// Returns the pools.
pub(super) fn pools(document: &Document, budget: &mut Budget, sink: &mut Sink) -> Vec<Pool> {
    document.named("pool", budget, sink).iter().map(|element| pool(element, sink)).collect()
}

/// Returns the volumes. `media` are the media of the storage systems of the lab.
pub(super) fn build(
    document: &Document,
    lab: &Lab,
    media: &[Medium],
    pools: &[Pool],
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<VolumeSpec> {
    let mut volumes: Vec<VolumeSpec> = Vec::new();
    for element in document.named("volume", budget, sink) {
        element.require_keys(sink);
        if let Some(new) = volume(&element, lab, media, pools, sink) {
            let taken = |other: &&VolumeSpec| matches!(new.storage, Some((_, Some(_)))) && other.storage == new.storage;
            if let Some(other) = volumes.iter().find(taken) {
                let reason = format!("`{}` has this LUN", other.name);
                sink.error(CONFLICT, &element.origin("lun"), reason, "choose another number, or leave `lun` out");
            }
            volumes.push(new);
        }
    }
    volumes
}

fn pool(element: &Element<'_>, sink: &mut Sink) -> Pool {
    let extent_bytes = element.size("extent").unwrap_or(4 << 20);
    let block_bytes = element.size("block_size").unwrap_or(512);
    if !block_bytes.is_power_of_two() {
        let help = "write one, such as \"512B\" or \"4KiB\"";
        sink.error(CONFLICT, &element.origin("block_size"), "it is not a power of two", help);
    }
    if block_bytes.is_power_of_two() && !extent_bytes.is_multiple_of(block_bytes) {
        let reason = format!("it is not a multiple of the {block_bytes} bytes of a block");
        sink.error(CONFLICT, &element.origin("extent"), reason, "write one, such as \"4MiB\"");
    }
    Pool { name: element.name.clone(), extent_bytes, block_bytes: block_bytes as u32 }
}

/// Returns the pool named by an element.
pub(super) fn pool_of(element: &Element<'_>, pools: &[Pool], sink: &mut Sink) -> Option<u16> {
    let name = element.text("pool")?;
    let found = pools.iter().position(|pool| pool.name == name).map(|at| at as u16);
    if found.is_none() {
        let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
        let help = match names.is_empty() {
            true => "add a section such as [pool.disks]".to_owned(),
            false => format!("there are {}", names.join(", ")),
        };
        let reason = format!("there is no pool `{}`", value::cut(name));
        sink.error(UNKNOWN_POOL, &element.origin("pool"), reason, help);
    }
    found
}

fn volume(element: &Element<'_>, lab: &Lab, media: &[Medium], pools: &[Pool], sink: &mut Sink) -> Option<VolumeSpec> {
    let pool = pool_of(element, pools, sink);
    let size_bytes = element.size("size");
    let width: u16 = element.integer("width").unwrap_or(1);
    let stripe = element.size("stripe").unwrap_or(64 << 10);
    if width == 1 && element.is_given("stripe") {
        let help = "add width = 2 or more, or remove `stripe`";
        sink.error(CONFLICT, &element.origin("stripe"), "a linear volume has no stripes", help);
    }
    let mut shape = Shape::Linear;
    if let Some(of) = pool.and_then(|pool| pools.get(usize::from(pool))) {
        let block_bytes = u64::from(of.block_bytes);
        if size_bytes.is_some_and(|bytes| !bytes.is_multiple_of(block_bytes)) {
            let reason = format!("it is not a multiple of the {block_bytes} bytes of a block");
            sink.error(CONFLICT, &element.origin("size"), reason, "give whole blocks");
        }
        if width > 1 {
            if !stripe.is_multiple_of(block_bytes) || !of.extent_bytes.is_multiple_of(stripe) {
                let reason = format!("it does not divide the extents of `{}`, {} bytes", of.name, of.extent_bytes);
                let help = "give whole blocks that do, such as \"64KiB\" of extents of 4 MiB";
                sink.error(CONFLICT, &element.origin("stripe"), reason, help);
            }
            shape = Shape::Striped { width, stripe_blocks: (stripe / block_bytes) as u32 };
        }
    }
    let storage = element.text("storage").and_then(|name| {
        let found = lab.storage.iter().position(|storage| storage.name == name);
        if found.is_none_or(|at| media.get(at).is_none_or(|medium| medium.kind != MediumKind::Volumes)) {
            let reason = match found {
                Some(_) => format!("`{name}` has LUNs of its own"),
                None => format!("there is no storage system `{}`", value::cut(name)),
            };
            let help = "name one with medium = \"volumes\"";
            sink.error(NOT_FOR_VOLUMES, &element.origin("storage"), reason, help);
        }
        Some((found? as u16, element.integer("lun")))
    });
    if storage.is_none() && element.is_given("lun") && !element.is_given("storage") {
        let help = "add storage = \"…\", or remove `lun`";
        sink.error(CONFLICT, &element.origin("lun"), "no storage system serves the volume", help);
    }
    Some(VolumeSpec { name: element.name.clone(), pool: pool?, size_bytes: size_bytes?, shape, storage })
}
