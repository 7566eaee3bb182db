//! The judgement of a report in sentences: [`Report::redundancy`].

use super::names::compress_all;
use super::report::{Part, Report, SinglePoint};
use std::collections::BTreeMap;

/// Single points of failure of one kind that cut off the same number of hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointGroup {
    /// `switch`, `link`, `HBA` or `storage port`.
    pub kind: &'static str,
    /// Number of components.
    pub count: usize,
    /// Number of hosts that each cuts off.
    pub hosts: usize,
    /// Names of the components, in range notation.
    pub names: String,
}

impl Report {
    /// Single points of failure by kind and number of hosts, the most hosts first within a kind.
    pub fn point_groups(&self) -> Vec<PointGroup> {
        let mut groups: BTreeMap<(usize, usize), Vec<&SinglePoint>> = BTreeMap::new();
        for point in &self.single_points {
            let kind = match point.part {
                Part::Switch(_) => 0,
                Part::Link(_) => 1,
                Part::Hba(..) => 2,
                Part::StoragePort(..) => 3,
            };
            groups.entry((kind, usize::MAX - point.hosts)).or_default().push(point);
        }
        let group = |((kind, _), points): ((usize, usize), Vec<&SinglePoint>)| PointGroup {
            kind: ["switch", "link", "HBA", "storage port"][kind],
            count: points.len(),
            hosts: points[0].hosts,
            names: compress_all(points.iter().map(|point| point.name.as_str())),
        };
        groups.into_iter().map(group).collect()
    }

    /// Judges redundancy: the hosts with two paths, then the single points of failure.
    pub fn redundancy(&self) -> Vec<String> {
        if !self.paths.iter().any(|paths| paths.port_pairs > 0) {
            return vec!["No host has a path to storage.".to_owned()];
        }
        let mut sentences = vec![match self.hosts_without_two_paths.len() {
            0 => "Every host has two paths without a common link to all its storage.".to_owned(),
            count => format!(
                "{} without two paths that share no link: {}",
                plural(count, "host"),
                compress_all(self.hosts_without_two_paths.iter().map(String::as_str))
            ),
        }];
        let points = self.point_groups();
        if points.is_empty() {
            sentences.push("No single point of failure.".to_owned());
        }
        sentences.extend(points.into_iter().map(|PointGroup { kind, count, hosts, names }| {
            let (point, verb) = if count == 1 { ("Single point", "cuts") } else { ("Single points", "each cut") };
            format!("{point} of failure: {kind} {names} {verb} off {}", plural(hosts, "host"))
        }));
        sentences
    }
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Formats a number with at most two decimals.
pub(super) fn decimals(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
