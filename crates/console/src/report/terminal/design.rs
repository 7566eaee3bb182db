//! The topology report of `sanloom check` for a terminal.

use super::format::{clean, trimmed};
use super::grid::{Column, Grid, wrap};
use sanloom_api::words::plural;
use sanloom_lab::topology::{IslGroup, PointGroup, Report, SessionPaths, compress_all, fit};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of rows of a table; the rest is counted.
const MAX_ROWS: usize = 24;
/// Columns for names if the output has no limit.
const WIDE: usize = 400;
/// Columns that a list of names gets at least.
const LEAST: usize = 20;

/// Renders a report for a terminal of `width` columns (at least 60).
pub fn render(report: &Report, width: usize) -> String {
    let width = width.max(60);
    let mut out = String::new();
    head(&mut out, report, width);
    zone_ranges(&mut out, report, width);
    oversubscription(&mut out, report, width);
    paths(&mut out, report, width);
    sessions(&mut out, ("Sessions of iSCSI", "sessions each"), &report.iscsi, width);
    sessions(&mut out, ("Channels of SRP", "channels each"), &report.srp, width);
    verdict(&mut out, report, width);
    points(&mut out, report, width);
    loops(&mut out, report, width);
    durability(&mut out, report, width);
    out
}

/// A line that ends with names, which are cut if they do not fit.
fn named(out: &mut String, before: &str, names: &str, width: usize) {
    let room = width.min(WIDE).saturating_sub(before.chars().count()).max(LEAST);
    let _ = writeln!(out, "{before}{}", clean(&fit(names, room)));
}

fn head(out: &mut String, report: &Report, width: usize) {
    let machines = match report.virtual_machines {
        0 => String::new(),
        machines => format!(" and {}", plural(machines, "virtual machine")),
    };
    let loops = match report.loops.len() {
        0 => String::new(),
        loops => format!(", {}", plural(loops, "loop")),
    };
    let switches = match report.switches {
        0 => String::new(),
        1 => "1 switch".to_owned(),
        switches => format!("{switches} switches"),
    };
    let of_fabric = format!("{switches}{loops}");
    let of_fabric = of_fabric.strip_prefix(", ").unwrap_or(&of_fabric);
    let separator = if of_fabric.is_empty() { "" } else { ", " };
    // A lab of Ethernet or InfiniBand only has no fabric, no HBAs and no zones to describe.
    let has_other_planes = report.ethernet_links + report.infiniband_links > 0;
    let is_without_fabric = report.switches + report.links + report.loops.len() == 0 && has_other_planes;
    let (hbas, ports) = match is_without_fabric {
        true => (String::new(), String::new()),
        false => {
            (format!(" with {}", plural(report.hbas, "HBA")), format!("{} and ", plural(report.storage_ports, "port")))
        }
    };
    let nodes = format!(
        "Nodes    {of_fabric}{separator}{}{hbas}{machines}, {} with {ports}{}",
        plural(report.hosts, "host"),
        plural(report.storage, "storage system"),
        plural(report.luns, "LUN")
    );
    out.push_str(&wrap(&nodes, width, 9));
    if !is_without_fabric {
        let to_nodes = report.links - report.isls;
        let _ = writeln!(out, "Links    {}: {to_nodes} to nodes, {}", report.links, plural(report.isls, "ISL"));
    }
    for (what, names) in [("isolated", &report.isolated), ("down at the start", &report.dark)] {
        if let Some(names) = names {
            named(out, &format!("         {what}: "), names, width);
        }
    }
    if report.ethernet_links > 0 {
        let switches = match report.ethernet_switches {
            1 => "1 switch".to_owned(),
            switches => format!("{switches} switches"),
        };
        let _ = writeln!(out, "Ethernet {switches}, {}", plural(report.ethernet_links, "link"));
    }
    if report.infiniband_links > 0 {
        let switches = match report.infiniband_switches {
            1 => "1 switch".to_owned(),
            switches => format!("{switches} switches"),
        };
        let links = plural(report.infiniband_links, "link");
        let _ = writeln!(out, "InfiniBand {switches}, {links}");
    }
    if is_without_fabric {
        return;
    }
    match report.fabrics.len() {
        0 => out.push_str("Fabrics  none\n"),
        count => {
            let room = (width.min(WIDE).saturating_sub(12) / count.min(8)).max(LEAST);
            let shown = report.fabrics.iter().take(8).map(|names| clean(&fit(names, room)));
            let shown = shown.collect::<Vec<_>>().join(" | ");
            let more = if count > 8 { " | …" } else { "" };
            out.push_str(&wrap(&format!("Fabrics  {count}: {shown}{more}"), width, 9));
        }
    }
    out.push_str(&wrap(&zoning(report), width, 9));
}

fn zoning(report: &Report) -> String {
    let zones = match (report.zones, report.default_open) {
        (0, true) => return "Zones    none in force: every port may access every other port".to_owned(),
        (0, false) => {
            return "Zones    none in force, and the default zone is closed: no port may access another port"
                .to_owned();
        }
        (zones, _) => format!("Zones    {} in force", plural(zones, "zone")),
    };
    match (report.unzoned_ports, report.closed_ports) {
        (0, _) => format!("{zones}, every port is in one"),
        (ports, 0) => format!("{zones}, {} in none: open to each other", plural(ports, "port")),
        (ports, closed) if ports == closed => format!("{zones}, {} in none: closed", plural(ports, "port")),
        (ports, closed) => format!("{zones}, {} in none: {closed} of them closed", plural(ports, "port")),
    }
}

fn zone_ranges(out: &mut String, report: &Report, width: usize) {
    if report.zone_ranges.is_empty() {
        return;
    }
    out.push_str("\nZones of ranges, with the ports that each was given\n");
    for range in report.zone_ranges.iter().take(MAX_ROWS) {
        let _ = writeln!(out, "  {}: {}", clean(&range.names), plural(range.zones, "zone"));
        for (zone, ports) in &range.shown {
            named(out, &format!("    {}: ", clean(zone)), ports, width);
        }
    }
    more(out, report.zone_ranges.len().saturating_sub(MAX_ROWS));
}

fn oversubscription(out: &mut String, report: &Report, width: usize) {
    oversubscribed(out, "ISLs", &report.isl_groups, width);
    oversubscribed(out, "links between Ethernet switches", &report.ethernet_trunks, width);
    oversubscribed(out, "links between InfiniBand switches", &report.infiniband_trunks, width);
}

fn oversubscribed(out: &mut String, links: &str, groups: &[IslGroup], width: usize) {
    if groups.is_empty() {
        return;
    }
    let text = format!(
        "Oversubscription of {links}: bandwidth of the ports whose workloads cross them (smaller side) to their own"
    );
    let _ = write!(out, "\n{}", wrap(&text, width, 2));
    // Equal groups share a row. The key sorts the highest ratio first.
    let mut rows: BTreeMap<(u64, u64, usize), Vec<&IslGroup>> = BTreeMap::new();
    for group in groups {
        let highest = u64::MAX - (group.oversubscription * 1e3).round() as u64;
        rows.entry((highest, group.bytes_per_s, group.links.len())).or_default().push(group);
    }
    let left_out = rows.len().saturating_sub(MAX_ROWS);
    for groups in rows.into_values().take(MAX_ROWS) {
        let first = groups[0];
        let ratio = match first.oversubscription {
            0.0 => "  unused".to_owned(),
            ratio => format!("{:>6}:1", trimmed(ratio, 2)),
        };
        let before = format!(
            "  {ratio:>9}  {} × {}, {} MB/s each: ",
            groups.len(),
            plural(first.links.len(), "link"),
            trimmed(first.bytes_per_s as f64 / 1e6, 2)
        );
        named(out, &before, &compress_all(groups.iter().map(|group| group.label.as_str())), width);
    }
    more(out, left_out);
}

fn paths(out: &mut String, report: &Report, width: usize) {
    if report.paths.is_empty() {
        return;
    }
    out.push_str("\nPaths from hosts to the storage they use, as zones and masks permit them\n");
    let numbers = [Column::right("pairs"), Column::right("port pairs"), Column::right("no common link")];
    let least = [Column::right("shortest").rank(2), Column::right("links").rank(1)];
    let columns = [Column::left("hosts"), Column::left("storage")].into_iter().chain(numbers).chain(least);
    // Width of the columns of numbers and their gaps. A narrow table has only three of them.
    let numbers_width = if width < 110 { 39 } else { 58 };
    let room = width.min(WIDE).saturating_sub(numbers_width).max(2 * LEAST);
    let widest = |names: fn(&sanloom_lab::topology::Paths) -> &str| {
        report.paths.iter().take(MAX_ROWS).map(|row| names(row).chars().count()).max().unwrap_or(0)
    };
    let (hosts, storage) = (widest(|row| &row.host_names), widest(|row| &row.storage_names));
    // The shorter column leaves its space to the other.
    let storage = storage.min((room / 2).max(room.saturating_sub(hosts)));
    let hosts = room - storage;
    let mut grid = Grid::new(columns.collect());
    for row in report.paths.iter().take(MAX_ROWS) {
        let numbers = match row.port_pairs {
            0 => ["no path".to_owned(), String::new(), String::new(), String::new()],
            _ => {
                [row.port_pairs.to_string(), row.disjoint.to_string(), row.shortest.to_string(), row.links.to_string()]
            }
        };
        let names = [clean(&fit(&row.host_names, hosts)), clean(&fit(&row.storage_names, storage))];
        grid.row(names.into_iter().chain([row.pairs.to_string()]).chain(numbers).collect());
    }
    out.push_str(&grid.render(width));
    more(out, report.paths.len().saturating_sub(MAX_ROWS));
    if report.pairs_left_out > 0 {
        let _ = writeln!(out, "(at least {} more pairs are not shown)", report.pairs_left_out);
    }
}

/// Judgement of the paths of all hosts.
fn verdict(out: &mut String, report: &Report, width: usize) {
    if report.has_paths() {
        for (text, names) in report.path_sentences() {
            named(out, &text, &names, width);
        }
    }
}

fn sessions(out: &mut String, (title, each): (&str, &'static str), rows: &[SessionPaths], width: usize) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title} from hosts to the storage they use; each is a path");
    let numbers = [Column::right("pairs"), Column::right(each), Column::right("interfaces each")];
    let columns = [Column::left("hosts"), Column::left("storage")].into_iter().chain(numbers);
    let mut grid = Grid::new(columns.collect());
    let room = (width.min(WIDE).saturating_sub(45) / 2).max(LEAST);
    for row in rows.iter().take(MAX_ROWS) {
        let names = [&row.host_names, &row.storage_names].map(|names| clean(&fit(names, room)));
        let numbers = [row.pairs, row.sessions, row.interfaces].map(|number| number.to_string());
        grid.row(names.into_iter().chain(numbers).collect());
    }
    out.push_str(&grid.render(width));
    more(out, rows.len().saturating_sub(MAX_ROWS));
}

fn points(out: &mut String, report: &Report, width: usize) {
    let groups = report.point_groups();
    if groups.is_empty() {
        let text = match report.has_paths() {
            true => report.no_single_point(),
            false => {
                let nothing = "No host has a path to storage, so there is nothing to fail.";
                report.not_examined().unwrap_or(nothing).to_owned()
            }
        };
        let _ = writeln!(out, "\n{text}");
        return;
    }
    out.push_str("\nSingle points of failure: each alone cuts a host off from storage or data it uses\n");
    let left_out = groups.len().saturating_sub(MAX_ROWS);
    for PointGroup { kind, count, hosts, names } in groups.into_iter().take(MAX_ROWS) {
        let noun = match (count, kind) {
            (1, _) => kind.to_owned(),
            (_, kind) if kind.ends_with("switch") => format!("{kind}es"),
            (_, "chassis") => "chassis".to_owned(),
            _ => format!("{kind}s"),
        };
        let each = if count == 1 { "" } else { " each" };
        named(out, &format!("  {count} {noun} ({}{each}): ", plural(hosts, "host")), &names, width);
    }
    more(out, left_out);
    if let Some(text) = report.not_examined().filter(|_| !report.has_paths()) {
        let _ = writeln!(out, "{text}");
    }
}

fn loops(out: &mut String, report: &Report, width: usize) {
    if report.loops.is_empty() {
        return;
    }
    let text = "Arbitrated loops: time of a tenancy beside its frames on an idle loop (arbitration, OPN and CLS), and \
                reads of 4 KiB that the loop can carry.";
    let _ = write!(out, "\n{}", wrap(text, width, 2));
    let mut grid = Grid::new(vec![
        Column::left("loop"),
        Column::right("ports"),
        Column::left("rate"),
        Column::right("tenancy"),
        Column::right("reads/s"),
    ]);
    for row in report.loops.iter().take(MAX_ROWS) {
        grid.row(vec![
            clean(&fit(&row.name, LEAST * 2)),
            row.ports.to_string(),
            row.rate.clone(),
            format!("{} us", trimmed(row.tenancy_us, 2)),
            trimmed(row.reads_per_s, 0),
        ]);
    }
    out.push_str(&grid.render(width));
    more(out, report.loops.len().saturating_sub(MAX_ROWS));
}

fn durability(out: &mut String, report: &Report, width: usize) {
    if report.durability.is_empty() {
        return;
    }
    let text = "Data on disks and SSDs: mean time to the loss of any LUN of one system, for independent failures and \
                rebuilds of idle groups. `failures` of a storage system has the assumptions.";
    let _ = write!(out, "\n{}", wrap(text, width, 2));
    let mut grid = Grid::new(vec![
        Column::left("storage"),
        Column::right("LUNs"),
        Column::left("each"),
        Column::left("model").rank(1),
        Column::right("survives"),
        Column::right("rebuild"),
        Column::right("mean time to loss"),
        Column::right("loss in 5 years"),
    ]);
    for row in report.durability.iter().take(MAX_ROWS) {
        grid.row(vec![
            clean(&fit(&row.storage, LEAST * 2)),
            row.luns.to_string(),
            row.organisation.clone(),
            row.model.clone(),
            row.tolerated.map_or_else(String::new, |count| plural(u64::from(count), "failure")),
            row.rebuild_h.map_or_else(String::new, |hours| format!("{} h", trimmed(hours, 1))),
            row.mttdl_years.map_or_else(|| "not modelled".to_owned(), years),
            row.loss.map_or_else(String::new, probability),
        ]);
    }
    out.push_str(&grid.render(width));
    more(out, report.durability.len().saturating_sub(MAX_ROWS));
}

/// Years with two significant digits.
fn years(years: f64) -> String {
    match years {
        0.0..10.0 => format!("{years:.1} years"),
        10.0..1e4 => format!("{years:.0} years"),
        _ => format!("{years:.0e} years"),
    }
}

fn probability(share: f64) -> String {
    if share >= 1e-4 { format!("{} %", trimmed(share * 100.0, 2)) } else { format!("{share:.0e}") }
}

fn more(out: &mut String, left_out: usize) {
    if left_out > 0 {
        let _ = writeln!(out, "  … and {}", plural(left_out, "more row"));
    }
}
