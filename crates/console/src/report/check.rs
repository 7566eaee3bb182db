//! The outcome of a check as JSON, for `sanloom check --json` and for Python.

use sanloom_fc::san::Lab;
use sanloom_lab::topology::{Durability, IslGroup, Paths, Report, SessionPaths};
use sanloom_lab::{Diagnostic, Diagnostics, LoadedLab, Severity};
use serde_json::{Value, json};

/// The outcome for a lab with mistakes.
pub fn mistakes(mistakes: &Diagnostics) -> Value {
    json!({ "ok": false, "mistakes": mistakes.iter().map(diagnostic).collect::<Vec<_>>() })
}

/// The outcome for a lab without mistakes.
pub fn passed(loaded: &LoadedLab, report: &Report) -> Value {
    json!({
        "ok": true,
        "warnings": loaded.warnings.iter().map(diagnostic).collect::<Vec<_>>(),
        "topology": topology_json(&loaded.lab, report),
    })
}

/// One mistake or warning.
pub fn diagnostic(diagnostic: &Diagnostic) -> Value {
    json!({
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "code": diagnostic.code,
        "source": diagnostic.source,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "span": [diagnostic.span.start, diagnostic.span.end],
        "reason": diagnostic.reason,
        "remedy": diagnostic.remedy,
    })
}

/// The topology of a lab.
pub fn topology_json(lab: &Lab, report: &Report) -> Value {
    json!({
        "name": lab.name,
        "switches": report.switches,
        "hosts": report.hosts,
        "hbas": report.hbas,
        "virtual_machines": report.virtual_machines,
        "storage": report.storage,
        "storage_ports": report.storage_ports,
        "luns": report.luns,
        "links": report.links,
        "isls": report.isls,
        "ethernet_switches": report.ethernet_switches,
        "ethernet_links": report.ethernet_links,
        "infiniband_switches": report.infiniband_switches,
        "infiniband_links": report.infiniband_links,
        "iscsi": report.iscsi.iter().map(sessions).collect::<Vec<_>>(),
        "srp": report.srp.iter().map(sessions).collect::<Vec<_>>(),
        "isolated": report.isolated,
        "down_at_start": report.dark,
        "zones": report.zones,
        "default_zone_open": report.default_open,
        "unzoned_ports": report.unzoned_ports,
        "fabrics": report.fabrics,
        "isl_groups": report.isl_groups.iter().map(isl_group).collect::<Vec<_>>(),
        "ethernet_trunks": report.ethernet_trunks.iter().map(isl_group).collect::<Vec<_>>(),
        "infiniband_trunks": report.infiniband_trunks.iter().map(isl_group).collect::<Vec<_>>(),
        "single_points_of_failure": report
            .single_points
            .iter()
            .map(|point| json!({ "name": point.name, "hosts": point.hosts }))
            .collect::<Vec<_>>(),
        "durability": report.durability.iter().map(durability).collect::<Vec<_>>(),
        "paths": report.paths.iter().map(paths).collect::<Vec<_>>(),
        "hosts_without_two_disjoint_paths": report.hosts_without_two_paths,
        "hosts_without_path": report.hosts_without_path,
        "hosts_without_workload": report.hosts_without_workload,
    })
}

fn durability(row: &Durability) -> Value {
    json!({
        "storage": row.storage,
        "model": row.model,
        "organisation": row.organisation,
        "luns": row.luns,
        "devices": row.devices,
        "failures_survived": row.tolerated,
        "rebuild_h": row.rebuild_h,
        "mttdl_years": row.mttdl_years,
        "loss_in_5_years": row.loss,
    })
}

fn isl_group(group: &IslGroup) -> Value {
    json!({
        "switches": group.switches,
        "links": group.names,
        "bytes_per_s": group.bytes_per_s,
        "behind_bytes_per_s": group.behind_bytes_per_s,
        "oversubscription": group.oversubscription,
    })
}

/// Sessions of iSCSI or channels of SRP.
fn sessions(row: &SessionPaths) -> Value {
    json!({
        "hosts": row.host_names,
        "storage": row.storage_names,
        "pairs": row.pairs,
        "sessions": row.sessions,
        "interfaces": row.interfaces,
    })
}

fn paths(paths: &Paths) -> Value {
    json!({
        "hosts": paths.host_names,
        "storage": paths.storage_names,
        "pairs": paths.pairs,
        "port_pairs": paths.port_pairs,
        "shortest": paths.shortest,
        "links": paths.links,
        "disjoint": paths.disjoint,
    })
}
