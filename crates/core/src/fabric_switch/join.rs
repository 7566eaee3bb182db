//! What would become of two fabrics that a link joins: [`join`].
//!
//! Machines of both fabrics are started, and a link is raised between them ([`Trial`]). If they isolate it, what they
//! found is noted, made equal on the second side, and they try again: so every obstacle is named, not only the first.

use super::{Cable, FabricSwitch, FabricSwitchConfig, IslConfig, Trial};
use crate::config::{FlowControlModes, Lab, Picos, Switch};
use crate::domain::{DEFAULT_PRIORITY, MAX_DOMAIN};
use crate::isolation::Isolation;
use crate::zoning::{MergeConflict, ZoneDatabase, Zones, merge};
use sanloom_wire::Wwnn;
use std::collections::{BTreeMap, BTreeSet};

/// A fabric, and where the link would end.
#[derive(Clone, Copy, Debug)]
pub struct JoinEnd<'l> {
    /// The lab. Links that are dark from its beginning on stay dark.
    pub lab: &'l Lab,
    /// Index of the switch.
    pub switch: u16,
}

/// Something that would isolate the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    /// What the machines found.
    pub isolation: Isolation,
    /// With the values of both sides, in one sentence without a full stop.
    pub text: String,
    /// What contradicts what in the zone databases; "ours" is the first fabric.
    pub conflict: Option<MergeConflict>,
}

/// What became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Joined {
    /// Everything that isolates the link, in the order in which the switches find it; empty: the fabrics join.
    pub obstacles: Vec<Obstacle>,
    /// The zone database of each fabric before.
    pub before: [ZoneDatabase; 2],
    /// That of the joined fabric; nothing if the zones cannot be merged.
    pub after: Option<ZoneDatabase>,
    /// Indices of the switches that belong to each fabric before.
    pub fabrics: [BTreeSet<u16>; 2],
    /// Pairs of switches, one of each lab by index, that would have one name because a lab leaves it out; another one was made up.
    pub renamed: Vec<(u16, u16)>,
}

/// So many obstacles are lifted: more than there are sorts of them.
const MAX_TRIALS: usize = 8;

/// Raises a link between two switches of two labs, and says what their machines make of it.
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

/// Both labs, as far as obstacles are lifted.
struct Bed {
    labs: [Lab; 2],
    ends: [u16; 2],
    /// Domains that the switches of both fabrics had when the link came up, with their owners.
    domains: [Vec<(u8, Wwnn)>; 2],
    renamed: Vec<(u16, u16)>,
}

impl Bed {
    fn new(first: JoinEnd<'_>, second: JoinEnd<'_>) -> Bed {
        let labs = [first.lab.clone(), second.lab.clone()];
        let mut bed =
            Bed { labs, ends: [first.switch, second.switch], domains: Default::default(), renamed: Vec::new() };
        // Each lab numbers its switches from the first on.
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

    /// Switches of the two labs that have one name.
    fn same_names(&self) -> Vec<(u16, u16)> {
        let [first, second] = &self.labs;
        let firsts: BTreeMap<Wwnn, u16> = first.switches.iter().map(|switch| switch.wwn).zip(0..).collect();
        let seconds = (0..).zip(&second.switches);
        seconds.filter_map(|(number, switch)| Some((*firsts.get(&switch.wwn)?, number))).collect()
    }

    /// Gives a switch a made-up name that no other one has.
    fn rename(&mut self, side: usize, switch: u16) {
        let taken: BTreeSet<Wwnn> = self.labs.iter().flat_map(|lab| &lab.switches).map(|switch| switch.wwn).collect();
        if let Some(free) = (0..=u16::MAX).map(Switch::made_up_wwn).find(|name| !taken.contains(name)) {
            self.labs[side].switches[usize::from(switch)].wwn = free;
        }
    }

    /// Switches of the two fabrics that have one name: before any message says so, because each switch knows others by their names.
    fn equal_names(&self, fabrics: &[BTreeSet<u16>; 2]) -> Vec<Obstacle> {
        let same = self.same_names().into_iter();
        let both = same.filter(|(first, second)| fabrics[0].contains(first) && fabrics[1].contains(second));
        let text = |(first, second): (u16, u16)| {
            let [a, b] =
                [(0, first), (1, second)].map(|(side, n): (usize, u16)| &self.labs[side].switches[usize::from(n)]);
            format!(
                "`{}` of the first fabric and `{}` of the second have one world-wide name, {}",
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
            config.isls.push(IslConfig { bytes_per_s: 1_600_000_000, bb_credit: 16, bundle: None });
            config.services.ports += 1;
        }
        let link = cables.len();
        cables.push(bridge);
        let mut trial = Trial::new(configs, cables);
        (0..link).for_each(|cable| trial.raise(cable));
        trial.settle();
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
        trial.settle();
        let found = trial.isolation(link);
        let after = found.is_none().then(|| trial.switch(nodes[0]).zone_database().clone());
        let obstacles = found.map_or_else(Vec::new, |(end, isolation)| self.obstacles(end, isolation, &before));
        Joined { obstacles, before, after, fabrics, renamed: Vec::new() }
    }

    /// What the machines found, with the values.
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

    /// `` `a` of the first fabric ``.
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

    /// Domains with an owner on either side.
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
            (domain, format!("domain {domain} is that of `{a}` in the first fabric and of `{b}` in the second"))
        })
        .collect()
    }

    /// What the rules of the end that found something wrong, or of the other one, say about the databases.
    fn conflicts(&self, end: usize, before: &[ZoneDatabase; 2]) -> Vec<MergeConflict> {
        let judge = |end: usize| {
            let policy = &self.labs[end].zone_policy;
            merge(&before[0], &before[1], policy.merge_control, &policy.limits, policy.merge_rules).err()
        };
        judge(end).or_else(|| judge(1 - end)).unwrap_or_default()
    }

    /// Makes equal on the second side what was in the way. False: nothing comes after it, or nothing can be done.
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

/// The switches of a lab, as they begin.
pub fn lab_configs(lab: &Lab) -> Vec<FabricSwitchConfig> {
    let config = |switch| {
        let zones = Zones::new(lab.zone_database_at(switch));
        FabricSwitchConfig::of_lab(lab, switch, zones.index(), zones)
    };
    (0..lab.switches.len() as u16).map(config).collect()
}

/// The links between switches of a lab that have light from its beginning on. Its first switch has the number `first`.
fn lab_cables(lab: &Lab, first: usize) -> Vec<Cable> {
    let dark = lab.dark_links();
    let lit = (0..).zip(&lab.links).filter(|(number, _)| !dark.contains(number));
    lit.filter_map(|(_, link)| Cable::of(link)).map(|cable| cable.behind(first)).collect()
}
