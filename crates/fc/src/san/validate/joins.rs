//! Conditions for switches to form one fabric, and login limits.

use super::Problems;
use crate::config::{Picos, Switch};
use crate::fabric_switch::{Cable, Trial};
use crate::isolation::Isolation;
use crate::san::lab_configs;
use crate::san::{Lab, Place, ProblemKind, Section};
use crate::switch::Addressing;
use std::collections::BTreeMap;

/// Addresses per area: one for the FLOGI and 255 for FDISCs.
const AREA: usize = 256;

/// Finds switches with different settings that must be equal, and domains with two owners that
/// nothing resolves.
pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    domains(lab, problems);
    changes(lab, problems);
    let fabrics = lab.fabrics();
    for (index, (switch, fabric)) in lab.switches.iter().zip(&fabrics).enumerate() {
        let Some(first) = lab.switches.get(usize::from(*fabric)) else { continue };
        if switch.policy.duplicate_names != first.policy.duplicate_names {
            problems.add(
                ProblemKind::UnlikeSwitches,
                Place::of(Section::Switch, index).key("duplicate_names"),
                format!(
                    "`{}` and `{}` are in one fabric but have different values of `duplicate_names`",
                    first.name, switch.name
                ),
                "give all switches of a fabric the same `duplicate_names`",
            );
        }
    }
}

fn changes(lab: &Lab, problems: &mut Problems) {
    let end = lab.run.duration;
    for (index, change) in lab.changes.iter().enumerate() {
        if end != Picos::ZERO && change.at >= end {
            problems.add(
                ProblemKind::FaultOutsideRun,
                Place::of(Section::Change, index).key("at"),
                format!("the zones change at {}, but the run lasts {end}", change.at),
                "choose an earlier time, or a longer `duration`",
            );
        }
    }
}

/// Advice about links that will be isolated, and switches that cannot accept all logins.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    for (link, isolation) in isolated_links(lab) {
        let [a, b] = lab.links[link].ends.map(|end| super::fabric::node_name(lab, end.node));
        problems.add(
            ProblemKind::IsolatedLink,
            Place::of(Section::Link, link),
            format!("the link `{}` between `{a}` and `{b}` will be isolated: {isolation}", lab.links[link].name),
            format!("{}, unless this is intended", isolation.remedy()),
        );
    }
    logins(lab, problems);
}

fn domains(lab: &Lab, problems: &mut Problems) {
    if lab.switches.len() > super::MAX_SWITCHES {
        // Some switches must share a domain then, and that problem is reported already.
        return;
    }
    let together = lab.fabrics_at_start();
    let mut seen: BTreeMap<(u16, u8), &Switch> = BTreeMap::new();
    for (index, (switch, fabric)) in lab.switches.iter().zip(together).enumerate() {
        let first = seen.entry((fabric, switch.domain)).or_insert(switch);
        if first.name != switch.name && !(first.joining.reconfigure && switch.joining.reconfigure) {
            problems.add(
                ProblemKind::DuplicateDomain,
                Place::of(Section::Switch, index).key("domain"),
                format!("switch `{}` has domain {}, the same as `{}`", switch.name, switch.domain, first.name),
                "give every switch a domain of its own, or leave `domain` out; \
                 or let both `reconfigure`, or keep the link between them down at first, if this is intended",
            );
        }
    }
}

/// Links that the machines of their switches isolate, as far as that is known in advance. If the
/// zones of a lab change, only links with light from the start are checked.
fn isolated_links(lab: &Lab) -> Vec<(usize, Isolation)> {
    if agree(lab) {
        return Vec::new();
    }
    let dark = lab.dark_links();
    let isls = (0..).zip(&lab.links).filter_map(|(number, link)| Some((number, Cable::of(link)?)));
    let (numbers, cables): (Vec<u16>, Vec<Cable>) = isls.unzip();
    let mut trial = Trial::new(lab_configs(lab), cables);
    let lit = |cable: &usize| !dark.contains(&numbers[*cable]);
    let (first, later): (Vec<usize>, Vec<usize>) = (0..numbers.len()).partition(lit);
    // The zones at the time when a link comes up later are not known here.
    let later = if lab.changes.is_empty() { later } else { Vec::new() };
    let shown: Vec<usize> = first.iter().chain(&later).copied().collect();
    for group in [first, later] {
        group.into_iter().for_each(|cable| trial.raise(cable));
        trial.run_until_quiet();
    }
    shown.into_iter().filter_map(|cable| Some((usize::from(numbers[cable]), trial.isolation(cable)?.1))).collect()
}

/// Returns true if the settings of the switches cannot cause isolation, so that no trial is needed.
fn agree(lab: &Lab) -> bool {
    let mut domains: Vec<u8> = lab.switches.iter().map(|switch| switch.domain).collect();
    domains.sort_unstable();
    let distinct = domains.windows(2).all(|pair| pair[0] != pair[1]);
    let modes = lab.switches.iter().map(|switch| switch.joining.flow_control);
    let same_modes = modes.clone().zip(modes.skip(1)).all(|(a, b)| a == b);
    let alike = |switch: &Switch| switch.joining.zoning && switch.joining.priority < u8::MAX;
    distinct && same_modes && lab.switches.iter().all(alike)
}

/// Compares the number of ports of hosts, storage and virtual machines with the login limits.
fn logins(lab: &Lab, problems: &mut Problems) {
    let mut at_port: BTreeMap<(u16, u16), usize> = BTreeMap::new();
    let mut at_switch: BTreeMap<u16, usize> = BTreeMap::new();
    for port in lab.attached_ports() {
        *at_port.entry((port.switch, port.identity.port)).or_default() += 1;
        *at_switch.entry(port.switch).or_default() += 1;
    }
    for (index, switch) in lab.switches.iter().enumerate() {
        let number = index as u16;
        let limits = switch.policy.limits;
        let area = if switch.policy.addressing == Addressing::AreaPerPort { AREA } else { usize::MAX };
        let allowed = area.min(limits.per_port as usize);
        let busiest = at_port.range((number, 0)..=(number, u16::MAX)).max_by_key(|(_, count)| **count);
        let place = Place::of(Section::Switch, index);
        if let Some(((_, port), count)) = busiest.filter(|(_, count)| **count > allowed) {
            let (key, remedy) = match allowed < area {
                true => ("logins_per_port", "raise `logins_per_port`, or spread the virtual machines over more HBAs"),
                false => ("addressing", "use addressing = \"flat\", or spread the virtual machines over more HBAs"),
            };
            problems.add(
                ProblemKind::TooManyLogins,
                place.key(key),
                format!("{count} addresses are required at `{}:{port}`, which assigns at most {allowed}", switch.name),
                remedy,
            );
        }
        let count = at_switch.get(&number).copied().unwrap_or(0);
        if count > limits.per_switch as usize {
            problems.add(
                ProblemKind::TooManyLogins,
                place.key("logins_per_switch"),
                format!(
                    "{count} addresses are required at `{}`, which assigns at most {}",
                    switch.name, limits.per_switch
                ),
                "raise `logins_per_switch`",
            );
        }
    }
}
