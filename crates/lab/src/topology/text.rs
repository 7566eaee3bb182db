//! A report as text for a terminal.

use super::names::compress;
use super::report::{IslGroup, Part, Report, SinglePoint};
use std::collections::BTreeMap;
use std::fmt;

/// Rows of a table beyond this many are counted.
const MAX_ROWS: usize = 24;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Nodes    {} switch{}, {} with {}{}, {} with {} and {}",
            self.switches,
            if self.switches == 1 { "" } else { "es" },
            plural(self.hosts, "host"),
            plural(self.hbas, "HBA"),
            match self.virtual_machines {
                0 => String::new(),
                machines => format!(" and {}", plural(machines, "virtual machine")),
            },
            plural(self.storage, "storage system"),
            plural(self.storage_ports, "port"),
            plural(self.luns, "LUN")
        )?;
        write!(f, "Links    {}: {} to nodes, {}", self.links, self.links - self.isls, plural(self.isls, "ISL"))?;
        match &self.isolated {
            Some(names) => writeln!(f, ", isolated: {names}")?,
            None => writeln!(f)?,
        }
        let fabrics = self.fabrics.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(" | ");
        let more = if self.fabrics.len() > 8 { " | …" } else { "" };
        match self.fabrics.len() {
            0 => writeln!(f, "Fabrics  none")?,
            count => writeln!(f, "Fabrics  {count}: {fabrics}{more}")?,
        }
        self.oversubscription(f)?;
        self.paths(f)?;
        self.points(f)
    }
}

impl Report {
    fn oversubscription(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.isl_groups.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\nOversubscription of ISLs: bandwidth of the ports whose workloads cross them (smaller side) to their own"
        )?;
        // Alike groups share a row.
        let mut rows: BTreeMap<(u64, u64, usize), Vec<&IslGroup>> = BTreeMap::new();
        for group in &self.isl_groups {
            // Worst first.
            let worst = u64::MAX - (group.oversubscription * 1e3).round() as u64;
            rows.entry((worst, group.bytes_per_s, group.links.len())).or_default().push(group);
        }
        let left_out = rows.len().saturating_sub(MAX_ROWS);
        for groups in rows.into_values().take(MAX_ROWS) {
            let first = groups[0];
            let names: Vec<String> = (groups.iter()).map(|g| format!("{}-{}", g.switches[0], g.switches[1])).collect();
            let ratio = match first.oversubscription {
                0.0 => "  unused".to_owned(),
                ratio => format!("{:>6}:1", decimals(ratio)),
            };
            writeln!(
                f,
                "  {ratio:>9}  {} × {}, {} each: {}",
                groups.len(),
                plural(first.links.len(), "link"),
                megabytes(first.bytes_per_s as f64),
                compress(names.iter().map(String::as_str)),
            )?;
        }
        more(f, left_out)
    }

    fn paths(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.paths.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nPaths from hosts to the storage they use")?;
        for paths in self.paths.iter().take(MAX_ROWS) {
            writeln!(
                f,
                "  {}: {}, {} shortest over {}, {} without a common link: {} to {}",
                plural(paths.pairs as usize, "pair"),
                plural(paths.port_pairs as usize, "port pair"),
                paths.shortest,
                plural(paths.links as usize, "link"),
                paths.disjoint,
                paths.host_names,
                paths.storage_names
            )?;
        }
        more(f, self.paths.len().saturating_sub(MAX_ROWS))?;
        if self.pairs_left_out > 0 {
            writeln!(f, "  (at least {} more pairs were not looked at)", self.pairs_left_out)?;
        }
        match self.hosts_without_two_paths.len() {
            0 => writeln!(f, "Every host has two paths without a common link to all its storage."),
            n => writeln!(
                f,
                "{} without two paths that share no link: {}",
                plural(n, "host"),
                compress(self.hosts_without_two_paths.iter().map(String::as_str))
            ),
        }
    }

    fn points(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.single_points.is_empty() {
            return writeln!(f, "\nNo single point of failure.");
        }
        writeln!(f, "\nSingle points of failure: what alone cuts a host off from storage it uses")?;
        // By sort and number of hosts, worst first within a sort.
        let mut rows: BTreeMap<(u8, usize), Vec<&SinglePoint>> = BTreeMap::new();
        for point in &self.single_points {
            let sort = match point.part {
                Part::Switch(_) => 0,
                Part::Link(_) => 1,
                Part::Hba(..) => 2,
                Part::StoragePort(..) => 3,
            };
            rows.entry((sort, usize::MAX - point.hosts)).or_default().push(point);
        }
        let left_out = rows.len().saturating_sub(MAX_ROWS);
        for ((sort, _), points) in rows.into_iter().take(MAX_ROWS) {
            let noun = ["switch", "link", "HBA", "storage port"][usize::from(sort)];
            let noun = match (points.len(), sort) {
                (1, _) => noun.to_owned(),
                (_, 0) => "switches".to_owned(),
                _ => format!("{noun}s"),
            };
            let each = if points.len() == 1 { "" } else { " each" };
            writeln!(
                f,
                "  {} {noun} ({}{each}): {}",
                points.len(),
                plural(points[0].hosts, "host"),
                compress(points.iter().map(|p| p.name.as_str()))
            )?;
        }
        more(f, left_out)
    }
}

fn more(f: &mut fmt::Formatter<'_>, left_out: usize) -> fmt::Result {
    match left_out {
        0 => Ok(()),
        n => writeln!(f, "  … and {}", plural(n, "more row")),
    }
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn decimals(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn megabytes(bytes_per_s: f64) -> String {
    format!("{} MB/s", decimals(bytes_per_s / 1e6))
}
