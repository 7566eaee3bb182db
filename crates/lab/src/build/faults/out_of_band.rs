//! Changes of out-of-band virtualization, and faults of its network.

use super::{CONFLICT, Finder};
use crate::build::NOT_FOR_VOLUMES;
use crate::value;
use sanloom_fc::config::{FaultKind, OutOfBandFault};
use sanloom_fc::san::lun_of_back_end;

/// Code of a virtual disk that does not exist.
pub(crate) const UNKNOWN_VOLUME: &str = "unknown-volume";
/// Code of a back end that does not exist.
pub(crate) const UNKNOWN_BACK_END: &str = "unknown-back-end";

/// Returns the move of a virtual disk, and reports names that do not fit.
pub(super) fn volume_move(finder: &mut Finder<'_, '_>) -> Vec<FaultKind> {
    finder.need("volume");
    finder.need("to");
    let live = &finder.lab.live;
    let volumes = live.volumes.iter().map(|volume| volume.name.as_str());
    let volume = position(finder, "volume", UNKNOWN_VOLUME, "virtual disk", volumes.collect());
    let back_ends = live.back_ends.iter().map(|back_end| back_end.name.as_str());
    let to = position(finder, "to", UNKNOWN_BACK_END, "back end", back_ends.collect());
    let (Some(volume), Some(to)) = (volume, to) else { return Vec::new() };
    let (own, target) = (&live.volumes[usize::from(volume)], &live.back_ends[usize::from(to)]);
    let name = value::cut(&own.name);
    let has_server = own.storage.is_some_and(|(storage, _)| live.out_of_band.contains_key(&storage));
    if !has_server {
        let reason = format!("no metadata server has the virtual disk `{name}`");
        let remedy = "name one whose `storage` has `out_of_band`";
        finder.sink.error(NOT_FOR_VOLUMES, &finder.element.origin("volume"), reason, remedy);
    } else if own.pool != target.pool {
        let reason = format!("the back end `{}` is in another pool than `{name}`", value::cut(&target.name));
        finder.sink.error(CONFLICT, &finder.element.origin("to"), reason, "name a back end of the same pool");
    } else if lun_of_back_end(finder.lab, live, target).is_none() {
        let reason = format!("the LUN of the back end `{}` is not in the lab", value::cut(&target.name));
        finder.sink.error(CONFLICT, &finder.element.origin("to"), reason, "name a back end of the lab");
    }
    vec![FaultKind::OutOfBand(OutOfBandFault::VolumeMove { volume, to })]
}

/// Returns the hosts that are cut off, and reports a lab without a metadata server.
pub(super) fn metadata_cut(finder: &mut Finder<'_, '_>) -> Vec<FaultKind> {
    let hosts = finder.hosts("host");
    if finder.lab.live.out_of_band.is_empty() {
        let reason = "the lab has no metadata server";
        let remedy = "add `out_of_band` to a storage system with medium = \"volumes\", or remove the fault";
        finder.sink.error(CONFLICT, &finder.element.origin("kind"), reason, remedy);
    }
    hosts.into_iter().map(|host| FaultKind::OutOfBand(OutOfBandFault::MetadataCut { host })).collect()
}

/// Returns the position of the name that a key gives, and reports an unknown one.
fn position(finder: &mut Finder<'_, '_>, key: &str, code: &'static str, what: &str, names: Vec<&str>) -> Option<u16> {
    let name = finder.element.text(key)?;
    let found = names.iter().position(|own| *own == name);
    if found.is_none() {
        let reason = format!("there is no {what} `{}`", value::cut(name));
        let help = match names.is_empty() {
            true => format!("add a {what}, or remove the fault"),
            false => format!("there are {}", names.join(", ")),
        };
        finder.sink.error(code, &finder.element.origin(key), reason, help);
    }
    found.map(|at| at as u16)
}
