//! Result of joining two fabrics by a link: [`join`].
//!
//! The machines of both fabrics run, and a link between them comes up ([`Trial`]). If they isolate
//! it, the obstacle is recorded and removed on the second side, and the trial is repeated. So all
//! obstacles are reported, not only the first.

use super::switches::lab_cables;
use super::{Lab, lab_configs};
use crate::config::{DEFAULT_PRIORITY, FlowControlModes, Picos, Switch};
use crate::domain::MAX_DOMAIN;
use crate::fabric_switch::{Cable, FabricSwitch, IslConfig, Trial};
use crate::isolation::Isolation;
use crate::zoning::{MergeConflict, ZoneDatabase, merge};
use sanloom_wire::Wwnn;
use std::collections::{BTreeMap, BTreeSet};

/// One of the two fabrics, and the end of the link in it.
#[derive(Clone, Copy, Debug)]
pub struct JoinEnd<'l> {
    /// Lab of the fabric. Links that are dark at its start stay dark.
    pub lab: &'l Lab,
    /// Index of the switch at the end of the link.
    pub switch: u16,
}

/// Condition that would isolate the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    /// Isolation reason reported by the machines.
    pub isolation: Isolation,
    /// Description with the values of both sides, as one sentence without a full stop.
    pub text: String,
    /// Conflict between the zone databases, if any; "ours" is the first fabric.
    pub conflict: Option<MergeConflict>,
}

/// Result of [`join`].
#[derive(Clone, PartialEq, Debug)]
pub struct Joined {
    /// All reasons for isolation, in the order of detection; empty if the fabrics join.
    pub obstacles: Vec<Obstacle>,
    /// Zone database of each fabric before the join.
    pub before: [ZoneDatabase; 2],
    /// Zone database of the joined fabric; `None` if the zones cannot be merged.
    pub after: Option<ZoneDatabase>,
    /// Indices of the switches in each fabric before the join.
    pub fabrics: [BTreeSet<u16>; 2],
    /// Pairs of switches, one of each lab by index, whose default names were equal. One of each
    /// pair got another default name.
    pub renamed: Vec<(u16, u16)>,
}

/// Maximum number of obstacles removed; more than there are kinds.
const MAX_TRIALS: usize = 8;

/// Brings up a link between two switches of two labs, and returns the result.
pub fn join(first: JoinEnd<'_>, second: JoinEnd<'_>) -> Joined {
    let mut bed = Bed::new(first, second);
    let mut joined = bed.try_link();
    for _ in 0..MAX_TRIALS {
        let Some(Obstacle { isolation, .. }) = joined.obstacles.last() else { break };
        if !bed.lift(&isolation.clone()) {
            break;
        }
        let next = bed.try_link();
        let repeats = next.obstacles.iter().any(|new| joined.obstacles.contains(new));
        if repeats {
            break;
        }
        joined.after = next.after;
        if next.obstacles.is_empty() {
            break;
        }
        joined.obstacles.extend(next.obstacles);
    }
    joined.renamed = bed.renamed;
    joined
}

/// Both labs, with the obstacles removed so far.
struct Bed {
    labs: [Lab; 2],
    ends: [u16; 2],
    /// Domains in both fabrics before the link came up, with their owners.
    domains: [Vec<(u8, Wwnn)>; 2],
    renamed: Vec<(u16, u16)>,
}

impl Bed {
    fn new(first: JoinEnd<'_>, second: JoinEnd<'_>) -> Bed {
        let labs = [first.lab.clone(), second.lab.clone()];
        let mut bed =
            Bed { labs, ends: [first.switch, second.switch], domains: Default::default(), renamed: Vec::new() };
        // Default names start at the same value in each lab, so they may be equal.
        let made_up = |index: u16, switch: &Switch| switch.wwn == Switch::made_up_wwn(index);
        for (first, second) in bed.same_names() {
            let side = [first, second]
                .into_iter()
                .zip(&bed.labs)
                .rposition(|(n, lab)| made_up(n, &lab.switches[usize::from(n)]));
            if let Some(side) = side {
                bed.rename(side, [first, second][side]);
                bed.renamed.push((first, second));
            }
        }
        bed
    }

    /// Switches of the two labs with the same name.
    fn same_names(&self) -> Vec<(u16, u16)> {
        let [first, second] = &self.labs;
        let firsts: BTreeMap<Wwnn, u16> = first.switches.iter().map(|switch| switch.wwn).zip(0..).collect();
        let seconds = (0..).zip(&second.switches);
        seconds.filter_map(|(number, switch)| Some((*firsts.get(&switch.wwn)?, number))).collect()
    }

    /// Gives a switch an unused default name.
    fn rename(&mut self, side: usize, switch: u16) {
        let taken: BTreeSet<Wwnn> = self.labs.iter().flat_map(|lab| &lab.switches).map(|switch| switch.wwn).collect();
        if let Some(free) = (0..=u16::MAX).map(Switch::made_up_wwn).find(|name| !taken.contains(name)) {
            self.labs[side].switches[usize::from(switch)].wwn = free;
        }
    }

    /// Obstacles for switches of the two fabrics with the same name. The check precedes all
    /// messages, because switches identify each other by name.
    fn equal_names(&self, fabrics: &[BTreeSet<u16>; 2]) -> Vec<Obstacle> {
        let same = self.same_names().into_iter();
        let both = same.filter(|(first, second)| fabrics[0].contains(first) && fabrics[1].contains(second));
        let text = |(first, second): (u16, u16)| {
            let [a, b] =
                [(0, first), (1, second)].map(|(side, n): (usize, u16)| &self.labs[side].switches[usize::from(n)]);
            format!(
                "`{}` of the first fabric and `{}` of the second have the same world-wide name, {}",
                a.name, b.name, a.wwn
            )
        };
        let obstacle = |text| Obstacle { isolation: Isolation::Loopback, text, conflict: None };
        both.map(text).map(obstacle).collect()
    }

    fn try_link(&mut self) -> Joined {
        let [first, second] = &self.labs;
        let behind = first.switches.len() as u16;
        let mut configs = lab_configs(first);
        configs.extend(lab_configs(second));
        let mut cables = lab_cables(first, 0);
        cables.extend(lab_cables(second, behind.into()));
        let nodes = [usize::from(self.ends[0]), usize::from(behind + self.ends[1])];
        let bridge = Cable { ends: nodes.map(|node| (node, configs[node].services.ports)) };
        for node in nodes {
            let config = &mut configs[node];
            config.isls.resize(usize::from(config.services.ports), IslConfig::default());
            config.isls.push(IslConfig { bytes_per_s: 1_600_000_000, bb_credit: 16, bb_sc_n: 0, bundle: None });
            config.services.ports += 1;
        }
        let link = cables.len();
        cables.push(bridge);
        let mut trial = Trial::new(configs, cables);
        (0..link).for_each(|cable| trial.raise(cable));
        trial.run_until_quiet();
        let of = trial.fabrics();
        let fabric = |end: usize, range: std::ops::Range<usize>| -> BTreeSet<u16> {
            let first = range.start;
            range.filter(|node| of[*node] == of[nodes[end]]).map(|node| (node - first) as u16).collect()
        };
        let boundary = usize::from(behind);
        let fabrics = [fabric(0, 0..boundary), fabric(1, boundary..boundary + second.switches.len())];
        let before = nodes.map(|node| trial.switch(node).zone_database().clone());
        self.domains = nodes.map(|node| members(trial.switch(node)));
        let equal_names = self.equal_names(&fabrics);
        if !equal_names.is_empty() {
            return Joined { obstacles: equal_names, before, after: None, fabrics, renamed: Vec::new() };
        }
        trial.raise(link);
        trial.run_until_quiet();
        let found = trial.isolation(link);
        let after = found.is_none().then(|| trial.switch(nodes[0]).zone_database().clone());
        let obstacles = found.map_or_else(Vec::new, |(end, isolation)| self.obstacles(end, isolation, &before));
        Joined { obstacles, before, after, fabrics, renamed: Vec::new() }
    }

    /// Obstacles with values for the isolation that the machines reported.
    fn obstacles(&self, end: usize, isolation: Isolation, before: &[ZoneDatabase; 2]) -> Vec<Obstacle> {
        let texts: Vec<(String, Option<MergeConflict>)> = match &isolation {
            Isolation::Timers => self.timers().into_iter().map(|text| (text, None)).collect(),
            Isolation::FlowControl => vec![(self.flow_control(), None)],
            Isolation::DomainOverlap => self.overlaps().into_iter().map(|(_, text)| (text, None)).collect(),
            Isolation::ZoneMerge { conflict } => {
                let mode = |lab: &Lab| lab.zone_policy.merge_rules.enhanced.then_some(lab.zone_policy.merge_control);
                let modes_differ = mode(&self.labs[0]) != mode(&self.labs[1]);
                let conflicts = self.conflicts(end, before).into_iter();
                let mut texts: Vec<_> = conflicts.map(|found| (found.to_string(), Some(found))).collect();
                if modes_differ || texts.is_empty() {
                    texts.insert(0, (format!("{}: {conflict}", self.name(end)), None));
                }
                texts
            }
            other => vec![(format!("{}: {other}", self.name(end)), None)],
        };
        let obstacle = |(text, conflict)| Obstacle { isolation: isolation.clone(), text, conflict };
        match texts.is_empty() {
            true => vec![obstacle((isolation.to_string(), None))],
            false => texts.into_iter().map(obstacle).collect(),
        }
    }

    /// Text such as `` `a` of the first fabric ``.
    fn name(&self, end: usize) -> String {
        let name = &self.labs[end].switches[usize::from(self.ends[end])].name;
        format!("`{name}` of the {} fabric", ["first", "second"][end])
    }

    fn timers(&self) -> Vec<String> {
        let [a, b] = [&self.labs[0].timers, &self.labs[1].timers];
        let differ = |(name, a, b): (&str, Picos, Picos)| {
            (a != b).then(|| format!("{name} is {a} in the first fabric and {b} in the second"))
        };
        let both = [("E_D_TOV", a.e_d_tov, b.e_d_tov), ("R_A_TOV", a.r_a_tov, b.r_a_tov)];
        both.into_iter().filter_map(differ).collect()
    }

    fn flow_control(&self) -> String {
        let modes = |end: usize| {
            let modes = self.labs[end].switches[usize::from(self.ends[end])].joining.flow_control.modes();
            modes.iter().map(|mode| format!("{:04x}", mode.0)).collect::<Vec<_>>().join(" or ")
        };
        let (a, b) = (self.name(0), self.name(1));
        format!("{a} offers flow control mode {}, {b} {}", modes(0), modes(1))
    }

    /// Domains with an owner on both sides.
    fn overlaps(&self) -> Vec<(u8, String)> {
        let [first, second] = &self.domains;
        let first: BTreeMap<u8, Wwnn> = first.iter().copied().collect();
        let owner = |name: Wwnn| {
            let mut all = self.labs.iter().flat_map(|lab| &lab.switches);
            all.find(|switch| switch.wwn == name).map_or("", |switch| &switch.name)
        };
        let both = second.iter().filter_map(|(domain, theirs)| Some((*domain, *first.get(domain)?, *theirs)));
        both.map(|(domain, ours, theirs)| {
            let (a, b) = (owner(ours), owner(theirs));
            (domain, format!("domain {domain} belongs to `{a}` in the first fabric and to `{b}` in the second"))
        })
        .collect()
    }

    /// Conflicts between the databases by the rules of the end that reported the isolation, or else
    /// of the other end.
    fn conflicts(&self, end: usize, before: &[ZoneDatabase; 2]) -> Vec<MergeConflict> {
        let judge = |end: usize| {
            let policy = &self.labs[end].zone_policy;
            merge(&before[0], &before[1], policy.merge_control, &policy.limits, policy.merge_rules).err()
        };
        judge(end).or_else(|| judge(1 - end)).unwrap_or_default()
    }

    /// Removes an obstacle on the second side. Returns false if it cannot be removed or is the last
    /// possible one.
    fn lift(&mut self, isolation: &Isolation) -> bool {
        let overlaps: BTreeSet<u8> = self.overlaps().into_iter().map(|(domain, _)| domain).collect();
        let same_names = self.same_names();
        if *isolation == Isolation::Loopback {
            same_names.iter().for_each(|(_, second)| self.rename(1, *second));
            return !same_names.is_empty();
        }
        let [first, second] = &mut self.labs;
        let ends = self.ends.map(usize::from);
        match isolation {
            Isolation::Timers => {
                second.timers.e_d_tov = first.timers.e_d_tov;
                second.timers.r_a_tov = first.timers.r_a_tov;
            }
            Isolation::FlowControl => {
                first.switches[ends[0]].joining.flow_control = FlowControlModes::RRdy;
                second.switches[ends[1]].joining.flow_control = FlowControlModes::RRdy;
            }
            Isolation::DomainOverlap | Isolation::DomainUnavailable | Isolation::RcfDenied => {
                let mut taken: BTreeSet<u8> = self.domains.iter().flatten().map(|(domain, _)| *domain).collect();
                for switch in &mut second.switches {
                    if overlaps.contains(&switch.domain)
                        && let Some(free) = (1..=MAX_DOMAIN).find(|domain| !taken.contains(domain))
                    {
                        taken.insert(free);
                        switch.domain = free;
                    }
                }
                return !overlaps.is_empty();
            }
            Isolation::NoPrincipal => second.switches[ends[1]].joining.priority = DEFAULT_PRIORITY,
            _ => return false,
        }
        true
    }
}

fn members(switch: &FabricSwitch) -> Vec<(u8, Wwnn)> {
    let own = switch.domain().map(|domain| (domain, switch.name()));
    let all: BTreeMap<u8, Wwnn> = switch.members().iter().copied().chain(own).collect();
    all.into_iter().collect()
}
