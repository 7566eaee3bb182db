//! `[workload.NAME]`: hosts, targets and load.

use super::links::{RANGE_MISMATCH, share};
use super::nodes::Names;
use super::{Where, traces};
use crate::check::MISSING_KEY;
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::pattern;
use crate::schema::{self, Spread};
use crate::value::{self, Value};
use sanloom_fc::config::{HotSet, Load, Location, Medium, MediumKind, Node, Picos, SizeDistribution, Target, Workload};
use sanloom_fc::san::Lab;
use sanloom_wire::lun::MAX_LUN;
use std::collections::BTreeSet;

/// Code of keys that exclude each other.
pub(crate) const CONFLICT: &str = "conflicting-keys";
/// Code of an invalid LUN.
pub(crate) const BAD_LUN: &str = "bad-lun";

/// Limit on hosts and LUNs of all workloads together.
const MAX_ENTRIES: usize = 1 << 22;

/// Fills `lab.workloads`.
pub(super) fn build<'d>(
    document: &'d Document,
    label: &str,
    lab: &mut Lab,
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Where<'d>> {
    let mut places = Vec::new();
    let mut checked = BTreeSet::new();
    let mut entries = 0;
    for element in document.named("workload", budget, sink) {
        element.require_keys(sink);
        let hosts = hosts(&element, names, budget, sink);
        let (targets, virtual_targets) =
            super::out_of_band::behind(lab, targets(lab, &element, &[], names, budget, sink));
        entries += hosts.len() + targets.len();
        if entries > MAX_ENTRIES {
            sink.error(
                pattern::TOO_MANY,
                &element.header,
                format!("the workloads together name more than {MAX_ENTRIES} hosts and LUNs"),
                "use fewer workloads or smaller ranges",
            );
            break;
        }
        lab.workloads.push(Workload {
            name: element.name.clone(),
            hosts,
            targets,
            virtual_targets,
            load: match traces::trace(&element, label, &mut checked, sink) {
                Some(trace) => Load::Trace(Box::new(trace)),
                None => load(&element, sink),
            },
            size: match element.get("size") {
                Some((Value::Sizes(sizes), _)) => sizes.clone(),
                _ => SizeDistribution::Fixed(4096),
            },
            read_share: element.number("read_share").unwrap_or(1.0),
            location: location(&element, sink),
            hot_set: hot_set(&element),
            span_bytes: element.size("span"),
            start: element.time("start").unwrap_or_default(),
            stop: element.time("stop"),
        });
        places.push(Where::new(element));
    }
    places
}

/// Calls `each` with those names of a key that belong to this workload of a range of workloads.
fn chosen(
    element: &Element<'_>,
    key: &str,
    budget: &mut Budget,
    sink: &mut Sink,
    mut each: impl FnMut(&str, &Origin, &mut Sink),
) {
    let spread = element.choice("spread", schema::SPREADS).unwrap_or(Spread::Blocks);
    for (text, origin) in element.patterns(key) {
        let Some(names) = budget.expand(text, origin, sink) else {
            continue;
        };
        let share = share(names.len(), element.count as usize, element.offset as usize, spread);
        let Some(share) = share else {
            sink.error(
                RANGE_MISMATCH,
                origin,
                format!("{} names cannot be distributed over {} workloads", names.len(), element.count),
                "use as many names as workloads, or a multiple of them",
            );
            continue;
        };
        for i in share {
            each(&names[i], origin, sink);
        }
    }
}

fn hosts(element: &Element<'_>, names: &Names, budget: &mut Budget, sink: &mut Sink) -> Vec<u16> {
    let mut hosts = Vec::new();
    chosen(element, "hosts", budget, sink, |name, origin, sink| {
        let accept = |node| matches!(node, Node::Host(_));
        if let Some(Node::Host(i)) = names.find(name, "host", accept, origin, sink) {
            hosts.push(i);
        }
    });
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// Returns the LUNs in `targets`. `media` are the media of the LUNs of each storage system, where
/// they matter.
pub(super) fn targets(
    lab: &Lab,
    element: &Element<'_>,
    media: &[Medium],
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Target> {
    luns(lab, element, "targets", media, names, budget, sink)
}

/// Returns the LUNs that a key names.
pub(super) fn luns(
    lab: &Lab,
    element: &Element<'_>,
    key: &str,
    media: &[Medium],
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Target> {
    let mut targets: BTreeSet<Target> = BTreeSet::new();
    chosen(element, key, budget, sink, |text, origin, sink| {
        let (name, lun) = match text.split_once(':') {
            Some((name, lun)) => (name, Some(lun)),
            None => (text, None),
        };
        let accept = |node| matches!(node, Node::Storage(_));
        let Some(Node::Storage(i)) = names.find(name, "storage system", accept, origin, sink) else {
            return;
        };
        // Virtual disks can be created and deleted at any LUN.
        let virtual_disks = media.get(usize::from(i)).is_some_and(|medium| medium.kind == MediumKind::Volumes);
        let count = if virtual_disks { usize::from(MAX_LUN) + 1 } else { lab.storage[usize::from(i)].luns.len() };
        // A workload uses the volumes of the lab.
        let volumes = lab.volumes_of(i);
        let Some(lun) = lun else {
            if virtual_disks {
                let reason = format!("the LUNs of `{name}` are virtual disks, which can be created and deleted");
                sink.error(BAD_LUN, origin, reason, format!("name them, as in {name}:lun{{0..7}}"));
                return;
            }
            if targets.len() <= MAX_ENTRIES {
                let all = (0..count as u16).chain(volumes.into_keys());
                targets.extend(all.map(|lun| Target { storage: i, lun }));
            }
            return;
        };
        let number = lun.strip_prefix("lun").unwrap_or(lun).parse::<u16>().ok();
        match number.filter(|n| usize::from(*n) < count || volumes.contains_key(n)) {
            Some(lun) => {
                targets.insert(Target { storage: i, lun });
            }
            None => sink.error(
                BAD_LUN,
                origin,
                format!("`{name}` has no LUN `{}`", value::cut(lun)),
                match count {
                    0 | 1 => format!("write {name}:lun0, or raise `luns` of `{name}`"),
                    _ => format!("choose {name}:lun0 to {name}:lun{}, or raise `luns` of `{name}`", count - 1),
                },
            ),
        }
    });
    targets.into_iter().collect()
}

fn load(element: &Element<'_>, sink: &mut Sink) -> Load {
    if let Some((Value::Arrivals(arrivals), _)) = element.get("arrivals") {
        for key in ["depth", "think_time"] {
            if element.is_given(key) {
                sink.error(
                    CONFLICT,
                    &element.origin(key),
                    format!("`{key}` belongs to a closed loop, `arrivals` to an open one"),
                    format!("remove `{key}` or `arrivals`; `queue_depth` of the host limits an open loop"),
                );
            }
        }
        return Load::Open(arrivals.clone());
    }
    Load::Closed {
        depth: element.integer("depth").unwrap_or(32),
        think_time: element.times("think_time").unwrap_or(Picos::ZERO.into()),
    }
}

fn location(element: &Element<'_>, sink: &mut Sink) -> Location {
    let place = element.choice("location", schema::LOCATIONS).unwrap_or(schema::LocationKind::Random);
    let stride = element.size("stride");
    if place != schema::LocationKind::Strided {
        if stride.is_some() {
            sink.error(
                CONFLICT,
                &element.origin("stride"),
                "`stride` has no effect without `location = \"strided\"`",
                "add it, or remove `stride`",
            );
        }
        return match place {
            schema::LocationKind::Sequential => Location::Sequential,
            _ => Location::Random,
        };
    }
    if stride.is_none() && !element.is_given("stride") {
        sink.error(
            MISSING_KEY,
            &element.origin("location"),
            "`stride` is missing: how far is one request from the next?",
            "add it, for example stride = \"1MiB\"",
        );
    }
    Location::Strided { stride_bytes: stride.unwrap_or(512) }
}

fn hot_set(element: &Element<'_>) -> Option<HotSet> {
    let given = ["hot", "hot.requests", "hot.space", "hot.zipf", "hot.items"];
    if !given.iter().any(|key| element.is_given(key)) {
        return None;
    }
    Some(HotSet {
        share_of_requests: element.number("hot.requests").unwrap_or(0.8),
        share_of_space: element.number("hot.space").unwrap_or(0.2),
        zipf_exponent: element.number("hot.zipf").unwrap_or(0.0),
        items: element.integer("hot.items").unwrap_or(1000),
    })
}
