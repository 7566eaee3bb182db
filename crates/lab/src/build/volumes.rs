//! Pools, back ends and virtual disks of a lab.

use super::iscsi::{address, check_name, expanded};
use super::workloads::CONFLICT;
use crate::check::MISSING_KEY;
use crate::diagnostic::Sink;
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::schema;
use crate::value;
use sanloom_core::config::{BackEnd, Chap, Lab, MediumKind, Picos, Pool, VolumeSpec};
use sanloom_core::map::Shape;

/// Code of the name of a pool that is not there.
pub(crate) const UNKNOWN_POOL: &str = "unknown-pool";
/// Code of a storage system that does not serve volumes.
pub(crate) const NOT_FOR_VOLUMES: &str = "not-for-volumes";

/// All of them. `media`: what the storage systems of the lab are made of.
pub(super) fn build(
    document: &Document,
    lab: &Lab,
    media: &[MediumKind],
    budget: &mut Budget,
    sink: &mut Sink,
) -> (Vec<Pool>, Vec<BackEnd>, Vec<VolumeSpec>) {
    let pools: Vec<Pool> = document.named("pool", budget, sink).iter().map(|element| pool(element, sink)).collect();
    let mut back_ends: Vec<BackEnd> = Vec::new();
    for element in document.named("back_end", budget, sink) {
        element.require_keys(sink);
        if let Some(new) = back_end(&element, &pools, budget, sink) {
            let same = |other: &&BackEnd| (&other.target, other.lun) == (&new.target, new.lun);
            if let Some(other) = back_ends.iter().find(same) {
                let reason = format!("`{}` is the same LUN of the same target", other.name);
                sink.error(CONFLICT, &element.origin("target"), reason, "name each LUN once");
            }
            let agrees = |other: &&BackEnd| {
                let settings = |one: &BackEnd| (one.chap.clone(), one.header_digest, one.data_digest, one.retry_for);
                (&other.target, &other.portals, &other.initiator) != (&new.target, &new.portals, &new.initiator)
                    || settings(other) == settings(&new)
            };
            if let Some(other) = back_ends.iter().find(|other| !agrees(other)) {
                let reason = format!("`{}` is at the same target, and a session has one set of them", other.name);
                let help = "give both the same CHAP, digests and retry_for, or different values of `initiator`";
                sink.error(CONFLICT, &element.origin("target"), reason, help);
            }
            back_ends.push(new);
        }
    }
    let mut volumes: Vec<VolumeSpec> = Vec::new();
    for element in document.named("volume", budget, sink) {
        element.require_keys(sink);
        if let Some(new) = volume(&element, lab, media, &pools, sink) {
            let taken = |other: &&VolumeSpec| matches!(new.storage, Some((_, Some(_)))) && other.storage == new.storage;
            if let Some(other) = volumes.iter().find(taken) {
                let reason = format!("`{}` has this LUN", other.name);
                sink.error(CONFLICT, &element.origin("lun"), reason, "choose another number, or leave `lun` out");
            }
            volumes.push(new);
        }
    }
    (pools, back_ends, volumes)
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

fn pool_of(element: &Element<'_>, pools: &[Pool], sink: &mut Sink) -> Option<u16> {
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

fn back_end(element: &Element<'_>, pools: &[Pool], budget: &mut Budget, sink: &mut Sink) -> Option<BackEnd> {
    let text = |key| element.text(key).map(str::to_owned);
    let mut portals = Vec::new();
    for (text, origin) in expanded(element, "portals", budget, sink) {
        portals.extend(address(&text, &origin, sink));
    }
    for key in ["target", "initiator"] {
        if let Some(name) = element.text(key) {
            check_name(name, &element.origin(key), sink);
        }
    }
    let chap = Chap {
        name: text("chap_name"),
        secret_file: text("chap_secret_file"),
        own_name: text("target_chap_name"),
        own_secret_file: text("target_chap_secret_file"),
    };
    for (name, file) in [("chap_name", "chap_secret_file"), ("target_chap_name", "target_chap_secret_file")] {
        let (here, missing) = match (element.is_given(name), element.is_given(file)) {
            (true, false) => (name, file),
            (false, true) => (file, name),
            _ => continue,
        };
        let reason = format!("it needs `{missing}` too");
        sink.error(MISSING_KEY, &element.origin(here), reason, format!("add {missing} = \"…\""));
    }
    if chap.own_name.is_some() && chap.name.is_none() {
        let reason = "a target proves itself only to initiators that do";
        sink.error(CONFLICT, &element.origin("target_chap_name"), reason, "add chap_name and chap_secret_file");
    }
    let retry_for = element.time("retry_for").unwrap_or(Picos::from_secs(20));
    if retry_for < Picos::SECOND || retry_for > Picos::from_secs(600) {
        let reason = "requests are tried again for 1 s to 600 s";
        sink.error(super::BAD_PERIOD, &element.origin("retry_for"), reason, "write retry_for = \"20s\"");
    }
    Some(BackEnd {
        name: element.name.clone(),
        pool: pool_of(element, pools, sink)?,
        target: text("target")?,
        portals: Some(portals).filter(|portals| !portals.is_empty())?,
        lun: element.integer("lun").unwrap_or(0),
        initiator: text("initiator")?,
        chap,
        header_digest: element.choice("header_digest", schema::DIGESTS).unwrap_or_default(),
        data_digest: element.choice("data_digest", schema::DIGESTS).unwrap_or_default(),
        retry_for,
    })
}

fn volume(
    element: &Element<'_>,
    lab: &Lab,
    media: &[MediumKind],
    pools: &[Pool],
    sink: &mut Sink,
) -> Option<VolumeSpec> {
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
        if found.is_none_or(|at| media.get(at) != Some(&MediumKind::Volumes)) {
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
        sink.error(CONFLICT, &element.origin("lun"), "nobody serves the volume", help);
    }
    Some(VolumeSpec { name: element.name.clone(), pool: pool?, size_bytes: size_bytes?, shape, storage })
}
