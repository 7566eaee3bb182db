//! The judgement of a report in sentences: [`Report::redundancy`].

use super::names::compress_all;
use super::part::Part;
use super::report::{Report, SinglePoint};
use sanloom_api::words::plural;
use std::collections::{BTreeMap, BTreeSet};

/// Single points of failure of one kind that cut off the same number of hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointGroup {
    /// Noun for a component; an `unprotected LUN` loses data with a disk.
    pub kind: &'static str,
    /// Number of components.
    pub count: usize,
    /// Number of hosts that each cuts off.
    pub hosts: usize,
    /// Names of the components, in range notation.
    pub names: String,
}

/// Kinds of single points of failure, in the order of a report.
const KINDS: [&str; 18] = [
    "switch",
    "chassis",
    "link",
    "HBA",
    "storage port",
    "unprotected LUN",
    "loop",
    "controller",
    "Ethernet switch",
    "Ethernet link",
    "NIC",
    "storage NIC",
    "InfiniBand switch",
    "InfiniBand link",
    "HCA",
    "storage HCA",
    "gateway",
    "metadata server",
];

impl Report {
    /// Single points of failure by kind and number of hosts, the most hosts first within a kind.
    pub fn point_groups(&self) -> Vec<PointGroup> {
        let mut groups: BTreeMap<(usize, usize), Vec<&SinglePoint>> = BTreeMap::new();
        for point in &self.single_points {
            let kind = match point.part {
                Part::Switch(_) => 0,
                Part::Chassis(_) => 1,
                Part::Link(_) => 2,
                Part::Hba(..) => 3,
                Part::StoragePort(..) => 4,
                Part::Unprotected(..) => 5,
                Part::Loop(_) => 6,
                Part::Controller(..) => 7,
                Part::EthernetSwitch(_) => 8,
                Part::EthernetLink(_) => 9,
                Part::Nic(..) => 10,
                Part::StorageNic(..) => 11,
                Part::InfinibandSwitch(_) => 12,
                Part::InfinibandLink(_) => 13,
                Part::Hca(..) => 14,
                Part::StorageHca(..) => 15,
                Part::Gateway(_) => 16,
                Part::MetadataServer(_) => 17,
            };
            groups.entry((kind, usize::MAX - point.hosts)).or_default().push(point);
        }
        let group = |((kind, _), points): ((usize, usize), Vec<&SinglePoint>)| PointGroup {
            kind: KINDS[kind],
            count: points.len(),
            hosts: points[0].hosts,
            names: compress_all(points.iter().map(|point| point.name.as_str())),
        };
        groups.into_iter().map(group).collect()
    }

    /// Judges the paths of all hosts in sentences. Each has a text, and the names of the hosts
    /// after it in range notation. Hosts without any path and hosts without a workload are named
    /// apart, so that no sentence covers them.
    pub fn path_sentences(&self) -> Vec<(String, String)> {
        let names = |hosts: &[&str]| compress_all(hosts.iter().copied());
        let pathless: BTreeSet<&str> = self.hosts_without_path.iter().map(String::as_str).collect();
        let lonely = self.hosts_without_two_paths.iter().map(String::as_str);
        let lonely: Vec<&str> = lonely.filter(|host| !pathless.contains(host)).collect();
        let pathless: Vec<&str> = self.hosts_without_path.iter().map(String::as_str).collect();
        let idle: Vec<&str> = self.hosts_without_workload.iter().map(String::as_str).collect();
        let mut sentences = Vec::new();
        if !pathless.is_empty() {
            let verb = if pathless.len() == 1 { "reaches" } else { "reach" };
            let text = format!("{} {verb} no storage: ", plural(pathless.len(), "host"));
            sentences.push((text, names(&pathless)));
        }
        if !idle.is_empty() {
            let verb = if idle.len() == 1 { "has" } else { "have" };
            let text = format!("{} {verb} no workload and {verb} not been judged: ", plural(idle.len(), "host"));
            sentences.push((text, names(&idle)));
        }
        if !lonely.is_empty() {
            let text = format!("{} without two paths that share no link: ", plural(lonely.len(), "host"));
            sentences.push((text, names(&lonely)));
        } else if let Some(subject) = match (self.is_partial(), self.hosts_judged) {
            (false, _) => Some("Every host has".to_owned()),
            (true, 0) => None,
            (true, 1) => Some("The other host has".to_owned()),
            (true, others) => Some(format!("Each of the other {others} hosts has")),
        } {
            let text = format!("{subject} two paths without a common link to all its storage.");
            sentences.push((text, String::new()));
        }
        sentences
    }

    /// Returns whether a path is judged: one over Fibre Channel, a session of iSCSI over the
    /// Ethernet of the lab, or a channel of SRP.
    pub fn has_paths(&self) -> bool {
        let over_ethernet = !self.iscsi.is_empty() && !self.ethernet_is_implied;
        over_ethernet || !self.srp.is_empty() || self.paths.iter().any(|paths| paths.port_pairs > 0)
    }

    /// The sentence of a report without single points of failure.
    pub fn no_single_point(&self) -> String {
        match (self.is_partial(), self.hosts_judged) {
            (false, _) => "No single point of failure.".to_owned(),
            (true, 1) => "No single point of failure for the other host.".to_owned(),
            (true, others) => format!("No single point of failure for the other {others} hosts."),
        }
    }

    /// Names what is not judged: Ethernet that the lab does not describe.
    pub fn not_examined(&self) -> Option<&'static str> {
        let is_left_out = self.ethernet_is_implied && !self.iscsi.is_empty();
        is_left_out.then_some("The lab does not describe its Ethernet, so it is not examined.")
    }

    /// Returns whether the verdict covers only some of the hosts.
    fn is_partial(&self) -> bool {
        !self.hosts_without_path.is_empty() || !self.hosts_without_workload.is_empty()
    }

    /// Judges redundancy: the hosts with two paths, then the single points of failure.
    pub fn redundancy(&self) -> Vec<String> {
        if !self.has_paths() && self.single_points.is_empty() {
            let text = self.not_examined().unwrap_or("No host has a path to storage.");
            return vec![text.to_owned()];
        }
        let paths = if self.has_paths() { self.path_sentences() } else { Vec::new() };
        let mut sentences: Vec<String> = paths.into_iter().map(|(text, names)| format!("{text}{names}")).collect();
        let points = self.point_groups();
        if points.is_empty() {
            sentences.push(self.no_single_point());
        }
        sentences.extend(points.into_iter().map(|PointGroup { kind, count, hosts, names }| {
            let (point, verb) = if count == 1 { ("Single point", "cuts") } else { ("Single points", "each cut") };
            format!("{point} of failure: {kind} {names} {verb} off {}", plural(hosts, "host"))
        }));
        sentences.extend(self.not_examined().map(str::to_owned));
        sentences
    }
}

/// Formats a number with at most two decimals.
pub(super) fn decimals(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
