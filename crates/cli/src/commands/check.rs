//! `sanloom check`: all errors of a lab file, or its topology.

use sanloom_api::words::plural;
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::output;
use sanloom_console::outputs::{Json, Sets, is_stdout};
use sanloom_console::report::file;
use sanloom_console::report::terminal::design;
use sanloom_fc::san::Lab;
use sanloom_lab::topology::{self, Durability, IslGroup, Paths, Report};
use sanloom_lab::{Diagnostic, Severity};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Options of `sanloom check`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    #[command(flatten)]
    sets: Sets,
    /// Draw the topology into this file, `-` for standard output, which then has no text [default:
    /// no drawing]
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    json: Json,
}

/// Checks a lab.
///
/// # Errors
/// All errors of the lab, or a file that cannot be read or written.
pub fn run(args: &Args) -> Result<(), Failure> {
    output::one_stdout(&[args.json.named(), ("--svg", args.svg.as_deref())])?;
    let text = args.file.text()?;
    let (loaded, report) = match sanloom_lab::check(&args.file.label(), &text, &args.sets.set) {
        Ok(checked) => checked,
        Err(mistakes) => {
            let list: Vec<Value> = mistakes.iter().map(diagnostic).collect();
            args.json.write(&json!({ "ok": false, "mistakes": list }))?;
            return Err(mistakes.into());
        }
    };
    let warnings: Vec<Value> = loaded.warnings.iter().map(diagnostic).collect();
    args.json.write(&json!({
        "ok": true,
        "warnings": warnings,
        "topology": topology_json(&loaded.lab, &report),
    }))?;
    if !args.json.is_stdout() {
        input::warn(&loaded);
    }
    if !args.json.is_stdout() && !is_stdout(args.svg.as_deref()) {
        output::print(&format!(
            "{}: no mistakes{}\n\n{}",
            loaded.lab.name,
            match loaded.warnings.len() {
                0 => String::new(),
                n => format!(", {}", plural(n, "warning")),
            },
            design::render(&report, output::width())
        ))?;
    }
    if let Some(path) = &args.svg {
        output::written(file::write_text(path, &topology::svg(&loaded.lab, &loaded.isolated, None)))?;
    }
    Ok(())
}

fn diagnostic(diagnostic: &Diagnostic) -> Value {
    json!({
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "code": diagnostic.code,
        "source": diagnostic.source,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "reason": diagnostic.reason,
        "remedy": diagnostic.remedy,
    })
}

fn topology_json(lab: &Lab, report: &Report) -> Value {
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
        "isolated": report.isolated,
        "down_at_start": report.dark,
        "zones": report.zones,
        "default_zone_open": report.default_open,
        "unzoned_ports": report.unzoned_ports,
        "fabrics": report.fabrics,
        "isl_groups": report.isl_groups.iter().map(isl_group).collect::<Vec<_>>(),
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
