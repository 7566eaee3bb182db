//! The second step: conversion of checked tables to the values of [`sanloom_fc::config`], with
//! names resolved.

mod adapters;
mod back_ends;
mod backstore;
mod changes;
mod ethernet;
mod expectations;
mod faults;
mod fcip;
mod fcoe;
mod gateways;
mod holes;
mod infiniband;
mod interfaces;
mod ipoib;
mod iscsi;
mod lanes;
mod links;
mod live;
mod loops;
mod masks;
mod nodes;
mod out_of_band;
mod persistent;
mod port_groups;
mod ports;
mod processor;
mod srp;
mod traces;
mod vms;
mod volumes;
mod workloads;
mod wwns;
mod zone_edits;
mod zone_members;
mod zones;

pub(crate) use back_ends::HOST_ELSEWHERE;
pub(crate) use faults::{AMBIGUOUS_PORT, UNKNOWN_BACK_END, UNKNOWN_LINK, UNKNOWN_VOLUME};
pub(crate) use iscsi::BAD_ISCSI_NAME;
pub(crate) use links::RANGE_MISMATCH;
pub(crate) use live::{BAD_ADDRESS, BAD_PERIOD};
pub(crate) use nodes::{BAD_DISK, UNKNOWN_NODE};
pub(crate) use out_of_band::POOL_FULL;
pub(crate) use persistent::BAD_FC_ID;
pub(crate) use port_groups::UNKNOWN_PORTAL;
pub(crate) use ports::{BAD_PORT, NO_FREE_PORT};
pub(crate) use traces::BAD_TRACE;
pub(crate) use volumes::{NOT_FOR_VOLUMES, UNKNOWN_POOL};
pub(crate) use workloads::{BAD_LUN, CONFLICT};
pub(crate) use wwns::BAD_PORT_NAMES;
pub(crate) use zone_edits::{BAD_EDIT, Edited, edit_zones};
pub(crate) use zone_members::BAD_MEMBER;
pub(crate) use zones::{BAD_ZONE, NAME_TAKEN, UNKNOWN_CONFIG, UNKNOWN_ZONE, ZONE_LIMIT};

use crate::diagnostic::{Finding, Origin, Severity, Sink};
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::schema;
use crate::topology;
use crate::value::Value;
use sanloom_fc::config::{Link, Node, Picos, Timers, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::san::{Lab, Place, Problem, ProblemKind, Run, Section};
use sanloom_fc::zoning::ZoneDatabase;
use std::collections::BTreeMap;

/// A lab with the locations of its values.
pub(crate) struct Built<'d> {
    pub lab: Lab,
    places: Vec<(Section, Vec<Where<'d>>)>,
    lab_element: Element<'d>,
    limits: topology::Limits,
    holes: holes::Holes,
    zone_findings: Vec<Finding>,
    pub export_names: crate::export::ExportNames,
    /// An override sets the duration of the run.
    duration_is_set: bool,
}

/// Limit on reported workloads of one range that cannot reach their storage.
const MAX_CUT_OFF: usize = 8;

/// Location of an element of a list of the lab.
pub(crate) struct Where<'d> {
    pub element: std::rc::Rc<Element<'d>>,
    /// Locations that are more exact than those of the element's keys.
    pub exact: Vec<(&'static str, Origin)>,
}

impl<'d> Where<'d> {
    pub fn new(element: Element<'d>) -> Where<'d> {
        Where { element: std::rc::Rc::new(element), exact: Vec::new() }
    }

    fn origin(&self, key: &str) -> Origin {
        match self.exact.iter().find(|(name, _)| *name == key) {
            Some((_, origin)) => origin.clone(),
            None => self.element.origin(key),
        }
    }
}

/// Builds the lab and reports errors in names to `sink`. If there are errors, the lab is used only
/// to find further errors.
pub(crate) fn build<'d>(document: &'d Document, label: &str, sink: &mut Sink) -> Option<Built<'d>> {
    let single = |name| document.element(schema::section(name));
    let lab_element = single("lab")?;
    let mut budget = Budget::new();
    let (switches, switch_places) = nodes::switches(document, &mut budget, sink);
    let (hosts, mut host_places) = nodes::hosts(document, &mut budget, sink);
    let (storage, storage_places) = nodes::storage(document, label, &mut budget, sink);
    let mut lab = Lab {
        name: lab_element.text("name").map_or_else(|| stem(label), str::to_owned),
        description: lab_element.text("description").unwrap_or("").to_owned(),
        run: run(&single("run")?),
        timers: timers(&single("timers")?),
        switches,
        hosts,
        storage,
        loops: Vec::new(),
        links: Vec::new(),
        ethernet_switches: Vec::new(),
        ethernet_links: Vec::new(),
        infiniband: Default::default(),
        zoning: Zoning { zones: Vec::new(), default: ZoneDefault::OpenWithoutZones },
        zone_database: ZoneDatabase::default(),
        zone_policy: Default::default(),
        zone_fabrics: Default::default(),
        zone_priorities: Default::default(),
        workloads: Vec::new(),
        faults: Vec::new(),
        changes: Vec::new(),
        expectations: Vec::new(),
        live: Default::default(),
    };
    let loop_places = loops::build(document, &mut lab, &mut budget, sink);
    let names = nodes::Names::of(&lab);
    loops::resolve(&mut lab, &loop_places, &names, &mut budget, sink);
    vms::build(&mut lab, &names, &host_places, &mut budget, sink);
    gateways::add_nodes(&mut lab, &names, (&mut host_places, &storage_places), &mut budget, sink);
    let names = nodes::Names::of(&lab);
    let nodes = [&switch_places, &host_places, &storage_places];
    let ethernet_switch_places = ethernet::switches(document, &mut lab, &mut budget, sink);
    lab.infiniband.targets = infiniband::targets(nodes[2]);
    lab.infiniband.ipoib = ipoib::build(nodes[1], nodes[2]);
    let infiniband_switch_places = infiniband::switches(document, &mut lab, &mut budget, sink);
    lab.infiniband.subnet = infiniband::subnet(&single("subnet")?, &lab, &mut budget, sink);
    let ethernet_link_places = ethernet::links(document, &mut lab, &names, &mut budget, sink);
    let infiniband_link_places = infiniband::links(document, &mut lab, &names, &mut budget, sink);
    let link_places = links::build(document, &mut lab, &names, nodes, &mut budget, sink);
    adapters::drop_unused_presets(&mut lab, nodes[1]);
    persistent::build(document, &mut lab, &names, sink);
    let zones = zones::build(document, &mut lab, &names, &mut budget, sink);
    let (zone_places, zone_findings) = (zones.places, zones.findings);
    let nodes = nodes.map(Vec::as_slice);
    lab.live = live::build(document, &lab, &names, nodes, &link_places, &mut budget, sink);
    let holes = holes::Holes::before_workloads(document, nodes, sink);
    let workload_places = workloads::build(document, label, &mut lab, &names, &mut budget, sink);
    ethernet::add_implied(&mut lab);
    let fault_places = faults::build(document, &mut lab, &names, &mut budget, sink);
    let change_places = changes::build(document, &mut lab, &names, sink);
    let holes = holes.with_faults(document, sink);
    let expect_places = expectations::build(document, &mut lab, holes.in_topology(), sink);
    let limits = limits(&single("check")?);
    for set in document.sets() {
        set.report_if_unused(|section| known(&lab, section), |section| document.tables(section), sink);
    }
    let places = vec![
        (Section::Run, vec![Where::new(single("run")?)]),
        (Section::Timers, vec![Where::new(single("timers")?)]),
        (Section::Switch, switch_places),
        (Section::Host, host_places),
        (Section::Storage, storage_places),
        (Section::Loop, loop_places),
        (Section::Link, link_places),
        (Section::EthernetSwitch, ethernet_switch_places),
        (Section::EthernetLink, ethernet_link_places),
        (Section::InfinibandSwitch, infiniband_switch_places),
        (Section::InfinibandLink, infiniband_link_places),
        (Section::Subnet, vec![Where::new(single("subnet")?)]),
        (Section::Zone, zone_places),
        (Section::Workload, workload_places),
        (Section::Fault, fault_places),
        (Section::Change, change_places),
        (Section::Expectation, expect_places),
    ];
    let duration_is_set = document.sets().iter().any(|set| set.is_for("run", "duration"));
    let export_names = zones.export_names;
    Some(Built { lab, places, lab_element, limits, holes, zone_findings, export_names, duration_is_set })
}

impl Built<'_> {
    /// Reports the problems that `Lab::validate` finds in the lab as a whole. `unzoned` is the
    /// severity of a workload to which the zones permit nothing.
    pub fn validate(&self, unzoned: Severity, sink: &mut Sink) {
        let mut found = Vec::new();
        let mut cut_off: BTreeMap<Origin, usize> = BTreeMap::new();
        for problem in self.lab.validate() {
            let origin = self.origin(problem.place);
            let element = self.element(problem.place);
            // Problems caused by an error in the text are not reported separately.
            if sink.has_within(&origin) || self.holes.explain(&problem, element, sink) {
                continue;
            }
            if self.is_late(&problem) {
                continue;
            }
            if matches!(problem.kind, ProblemKind::Unreachable | ProblemKind::NotZoned | ProblemKind::Masked) {
                let count = cut_off.entry(origin.clone()).or_insert(0);
                *count += 1;
                if *count > MAX_CUT_OFF {
                    continue;
                }
            }
            found.push((problem, origin));
        }
        for (problem, origin) in found {
            let severity = if problem.kind == ProblemKind::NotZoned { unzoned } else { Severity::Error };
            add(problem, origin, severity, sink);
        }
        for finding in &self.zone_findings {
            let follows = finding.code == ProblemKind::EmptyZone.name() && self.holes.in_topology();
            if !follows && !sink.has_within(&finding.origin) {
                sink.add(finding.clone());
            }
        }
    }

    /// Returns whether a fault or a zone change is outside of a run that an override has shortened.
    /// It is then only left out.
    fn is_late(&self, problem: &Problem) -> bool {
        self.duration_is_set && problem.kind == ProblemKind::FaultOutsideRun
    }

    /// Reports warnings, and returns the links that will be isolated.
    pub fn advise(&mut self, sink: &mut Sink) -> Vec<usize> {
        let mut isolated = Vec::new();
        if self.duration_is_set {
            for problem in self.lab.validate().into_iter().filter(|problem| self.is_late(problem)) {
                let origin = self.origin(problem.place);
                add(problem, origin, Severity::Warning, sink);
            }
            let end = self.lab.run.duration;
            self.lab.faults.retain(|fault| fault.at < end);
            self.lab.changes.retain(|change| change.at < end);
        }
        for problem in self.lab.advice() {
            if problem.kind == ProblemKind::IsolatedLink {
                isolated.push(problem.place.index);
            }
            let origin = self.origin(problem.place);
            add(problem, origin, Severity::Warning, sink);
        }
        let hosts = self.places.iter().find(|(section, _)| *section == Section::Host);
        processor::advise(&self.lab, hosts.map_or(&[], |(_, places)| places), sink);
        isolated
    }

    /// Topology report; adds the lints of the design. Equal findings at one place share a warning.
    pub fn examine(&self, isolated: &[usize], sink: &mut Sink) -> topology::Report {
        let (mut report, lints) = topology::examine(&self.lab, isolated, self.limits);
        report.zone_ranges = self.zone_ranges();
        let mut alike: Vec<(Origin, topology::Lint, Vec<String>)> = Vec::new();
        let mut known: BTreeMap<(&'static str, Origin, String), usize> = BTreeMap::new();
        for lint in lints {
            let origin = self.origin(lint.place);
            let number = *known.entry((lint.code, origin.clone(), lint.reason.clone())).or_insert(alike.len());
            match alike.get_mut(number) {
                Some((.., subjects)) => subjects.push(lint.subject),
                None => alike.push((origin, lint.clone(), vec![lint.subject])),
            }
        }
        for (origin, lint, subjects) in alike {
            let subjects = topology::compress(subjects.iter().map(String::as_str));
            let reason = lint.reason.replace(topology::SUBJECTS, &format!("`{subjects}`"));
            sink.add(Finding { severity: Severity::Warning, code: lint.code, origin, reason, remedy: lint.remedy });
        }
        report
    }

    /// Returns the zones made from each range of the file.
    fn zone_ranges(&self) -> Vec<topology::ZoneRange> {
        let zones = &self.lab.zoning.zones;
        let mut by_table: BTreeMap<Origin, Vec<usize>> = BTreeMap::new();
        for number in 0..zones.len() {
            let table = self.element(Place::of(Section::Zone, number)).header.clone();
            by_table.entry(table).or_default().push(number);
        }
        by_table.retain(|_, zones| zones.len() > 1);
        if by_table.is_empty() {
            return Vec::new();
        }
        let mut ports: BTreeMap<ZoneMember, Vec<String>> = BTreeMap::new();
        for port in self.lab.attached_ports() {
            let name = match port.node {
                Node::Host(host) => &self.lab.hosts[usize::from(host)].name,
                Node::Storage(system) => &self.lab.storage[usize::from(system)].name,
                Node::Switch(_) | Node::Loop(_) => continue,
            };
            for key in port.identity.keys() {
                ports.entry(key).or_default().push(format!("{name}:{}", port.port));
            }
        }
        let named = |member: &ZoneMember| ports.get(member).cloned().unwrap_or_else(|| vec![member.to_string()]);
        let shown = |number: &usize| {
            let zone = &zones[*number];
            let members: Vec<String> = zone.all_members().flat_map(named).collect();
            (zone.name.clone(), topology::compress_all(members.iter().map(String::as_str)))
        };
        let range = |numbers: Vec<usize>| {
            let of_interest = numbers.iter().take(2).chain(numbers.last().filter(|_| numbers.len() > 2));
            topology::ZoneRange {
                names: topology::compress(numbers.iter().map(|number| zones[*number].name.as_str())),
                zones: numbers.len(),
                shown: of_interest.map(shown).collect(),
            }
        };
        by_table.into_values().map(range).collect()
    }

    fn origin(&self, place: Place) -> Origin {
        self.written(place).map_or_else(|| self.lab_element.origin(place.key), |w| w.origin(place.key))
    }

    fn element(&self, place: Place) -> &Element<'_> {
        self.written(place).map_or(&self.lab_element, |w| &w.element)
    }

    fn written(&self, place: Place) -> Option<&Where<'_>> {
        let (_, list) = self.places.iter().find(|(section, _)| *section == place.section)?;
        list.get(place.index)
    }
}

fn add(problem: Problem, origin: Origin, severity: Severity, sink: &mut Sink) {
    sink.add(Finding { severity, code: problem.kind.name(), origin, reason: problem.reason, remedy: problem.remedy });
}

fn limits(element: &Element<'_>) -> topology::Limits {
    topology::Limits {
        fan_in: element.number("fan_in").unwrap_or(f64::INFINITY),
        host_ports: element.integer("host_ports").unwrap_or(u64::MAX),
        isl: element.number("isl_oversubscription").unwrap_or(f64::INFINITY),
        slow_port: element.number("slow_port").unwrap_or(f64::INFINITY),
    }
}

fn run(element: &Element<'_>) -> Run {
    let duration = element.time("duration").unwrap_or(Picos::SECOND);
    Run {
        duration,
        warmup: element.time("warmup").unwrap_or(Picos(duration.0 / 10)),
        seed: element.integer("seed").unwrap_or(1),
        sample_interval: element.time("sample_interval").unwrap_or(Picos((duration.0 / 100).max(1))),
        stop_issuing: element.time("stop_issuing"),
        until: match element.get("until") {
            Some((Value::StopRule(rule), _)) => Some(rule.clone()),
            _ => None,
        },
    }
}

fn timers(element: &Element<'_>) -> Timers {
    let default = Timers::default();
    Timers {
        e_d_tov: element.time("e_d_tov").unwrap_or(default.e_d_tov),
        r_a_tov: element.time("r_a_tov").unwrap_or(default.r_a_tov),
        hold_time: element.time("hold_time").unwrap_or(default.hold_time),
        hello: element.time("fspf_hello").unwrap_or(default.hello),
        dead: element.time("fspf_dead").unwrap_or(default.dead),
        f_s_tov: element.time("f_s_tov").unwrap_or(default.f_s_tov),
        rscn_delay: element.time("rscn_delay").unwrap_or(default.rscn_delay),
    }
}

/// Returns the names to which an override of this section can refer.
fn known<'l>(lab: &'l Lab, section: &str) -> Vec<&'l str> {
    match section {
        "switch" => lab.switches.iter().map(|s| s.name.as_str()).collect(),
        "host" => lab.hosts.iter().map(|h| h.name.as_str()).collect(),
        "ethernet_switch" => lab.ethernet_switches.iter().map(|s| s.name.as_str()).collect(),
        "infiniband_switch" => lab.infiniband.switches.iter().map(|s| s.name.as_str()).collect(),
        "storage" => lab.storage.iter().map(|s| s.name.as_str()).collect(),
        "loop" => lab.loops.iter().map(|l| l.name.as_str()).collect(),
        "link" | "isl" => {
            let is_isl = |l: &Link| l.ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
            let links = lab.links.iter().filter(|l| is_isl(l) == (section == "isl")).map(|l| l.name.as_str());
            let links = links.chain(lab.ethernet_links.iter().map(|l| l.name.as_str()));
            links.chain(lab.infiniband.links.iter().map(|l| l.name.as_str())).collect()
        }
        "port_group" => lab.live.port_groups.iter().map(|g| g.name.as_str()).collect(),
        "pool" => lab.live.pools.iter().map(|p| p.name.as_str()).collect(),
        "back_end" => lab.live.back_ends.iter().map(|b| b.name.as_str()).collect(),
        "volume" => lab.live.volumes.iter().map(|v| v.name.as_str()).collect(),
        "workload" => lab.workloads.iter().map(|w| w.name.as_str()).collect(),
        _ => Vec::new(),
    }
}

/// Returns the file name without folder and extension.
fn stem(label: &str) -> String {
    let file = label.rsplit(['/', '\\']).next().unwrap_or(label);
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    if stem.is_empty() { "lab".to_owned() } else { stem.to_owned() }
}
