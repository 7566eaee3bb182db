//! Validation of the lanes of InfiniBand: arbitration tables, and lanes of service levels.

use super::Problems;
use crate::config::{DISCARDED_LANE, InfinibandNode, LaneSettings, MAX_LANE_WEIGHTS};
use crate::san::{Lab, Place, ProblemKind, Section, ipoib_level};
use std::collections::BTreeMap;

/// Limit on the warnings about lanes.
const MOST: usize = 8;

/// Returns the settings of the subnet, then those of its switches, with their places.
fn settings(lab: &Lab) -> impl Iterator<Item = (Option<u16>, &LaneSettings, Place)> {
    let subnet = (None, &lab.infiniband.subnet.lane_settings, Place::of(Section::Subnet, 0));
    let switches = (0_u16..).zip(&lab.infiniband.switches).map(|(number, switch)| {
        (Some(number), &switch.lanes, Place::of(Section::InfinibandSwitch, usize::from(number)))
    });
    std::iter::once(subnet).chain(switches)
}

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    let lanes = lab.infiniband.subnet.lanes.max(1);
    for (_, own, place) in settings(lab) {
        let tables = own.arbitration.as_ref().map(|own| [Some(&own.high), own.low.as_ref()]);
        let keys = ["arbitration.high", "arbitration.low"];
        for (table, key) in tables.into_iter().flatten().zip(keys) {
            let Some(table) = table else { continue };
            if let Some(entry) = table.iter().find(|entry| entry.lane >= lanes) {
                let reason = format!("the links have the lanes 0 to {}, and no lane {}", lanes - 1, entry.lane);
                let remedy = "name one of these lanes, or increase `lanes` of [subnet]";
                problems.add(ProblemKind::BadNumber, place.key(key), reason, remedy);
            }
            if table.len() > MAX_LANE_WEIGHTS {
                let reason = format!("an arbitration table has at most {MAX_LANE_WEIGHTS} entries");
                problems.add(ProblemKind::BadNumber, place.key(key), reason, "leave the other entries out");
            }
        }
        let missing = |lane: &u8| *lane >= lanes && *lane != DISCARDED_LANE;
        if let Some(lane) = own.levels.iter().flatten().find(|lane| missing(lane)) {
            let reason = format!("the links have the lanes 0 to {}, and no lane {lane}", lanes - 1);
            let remedy = format!("name one of these lanes, or {DISCARDED_LANE} to discard the packets");
            problems.add(ProblemKind::BadNumber, place.key("levels"), reason, remedy);
        }
    }
}

/// Returns the service levels of packets, each with a sender.
fn levels_in_use(lab: &Lab) -> BTreeMap<u8, String> {
    let mut levels = BTreeMap::new();
    lab.for_each_srp_pair(|_, host, _| {
        let host = &lab.hosts[usize::from(host)];
        levels.entry(host.srp.level).or_insert_with(|| format!("SRP of `{}`", host.name));
        true
    });
    for interface in lab.infiniband_interfaces() {
        if let Some(level) = ipoib_level(lab, interface.end.node) {
            let name = lab.infiniband_node_name(interface.end.node);
            levels.entry(level).or_insert_with(|| format!("IPoIB of `{name}`"));
        }
    }
    levels
}

/// Lanes of service levels in use that no table serves, or that discard their packets.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    if lab.infiniband.links.is_empty() {
        return;
    }
    let lanes = lab.infiniband.subnet.lanes;
    let used = levels_in_use(lab);
    let has_links = |switch: Option<u16>| {
        let is_own = |node: InfinibandNode| switch.is_none_or(|switch| node == InfinibandNode::Switch(switch));
        lab.infiniband.links.iter().any(|link| link.ends.iter().any(|end| is_own(end.node)))
    };
    let mut reported = 0;
    for (switch, own, place) in settings(lab) {
        if !has_links(switch) {
            continue;
        }
        let (tables, map) = (lab.infiniband.arbitration(switch), lab.infiniband.lanes_of_levels(switch));
        for (&level, sender) in &used {
            let lane = map[usize::from(level)];
            // A switch without settings of its own is like the subnet, which has been reported.
            let is_own = own.arbitration.is_some() || own.levels[usize::from(level)].is_some();
            if switch.is_some() && !is_own {
                continue;
            }
            let at = match switch {
                Some(switch) => format!("at `{}`", lab.infiniband_node_name(InfinibandNode::Switch(switch))),
                None => "in [subnet]".to_owned(),
            };
            let (key, reason, remedy) = if lane == DISCARDED_LANE {
                let reason = format!("{sender} uses service level {level}, whose packets are discarded {at}");
                ("levels", reason, format!("give level {level} another lane than {lane}"))
            } else if !tables.serves(lane, lanes) {
                let reason = format!(
                    "{sender} uses service level {level} on lane {lane}, which has no weight {at}: its packets never \
                     leave"
                );
                ("arbitration", reason, format!("add \"{lane}:64\" to `arbitration.low`, or choose another level"))
            } else {
                continue;
            };
            problems.add(ProblemKind::StarvedLane, place.key(key), reason, remedy);
            reported += 1;
            if reported == MOST {
                return;
            }
        }
    }
}
