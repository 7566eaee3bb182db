//! `sanloom check`: all mistakes of a lab file, or its topology.

use crate::exit::Failure;
use crate::input::{self, LabFile};
use crate::output;
use crate::report::{file, json};
use sanloom_core::config::Lab;
use sanloom_lab::topology::{self, IslGroup, Paths, Report};
use sanloom_lab::{Diagnostic, Override, Severity};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Options of `sanloom check`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// Set a value of the lab from outside, for example `run.seed=3` or `switch.*.buffers=8`
    #[arg(long, value_name = "KEY=VALUE", value_parser = input::parse_set)]
    set: Vec<Override>,
    /// Draw the topology into this file, `-` for standard output, which then has no text [default: no drawing]
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON instead of text: `ok`, and `mistakes` or `warnings` and `topology`
    #[arg(long)]
    json: bool,
}

/// Checks a lab.
///
/// # Errors
/// All its mistakes; or when something cannot be read or written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let json = args.json.then_some(Path::new("-"));
    output::one_stdout(&[("--json", json), ("--svg", args.svg.as_deref())])?;
    let text = args.file.text()?;
    let loaded = match sanloom_lab::load(&args.file.label(), &text, &args.set) {
        Ok(loaded) => loaded,
        Err(mistakes) => {
            if args.json {
                let list: Vec<Value> = mistakes.iter().map(diagnostic).collect();
                print_json(&json!({ "ok": false, "mistakes": list }))?;
            }
            return Err(mistakes.into());
        }
    };
    let report = Report::of(&loaded.lab, &loaded.isolated);
    if args.json {
        let warnings: Vec<Value> = loaded.warnings.iter().map(diagnostic).collect();
        print_json(&json!({
            "ok": true,
            "warnings": warnings,
            "topology": topology_json(&loaded.lab, &report),
        }))?;
    } else {
        input::warn(&loaded);
    }
    if !args.json && args.svg.as_deref() != Some(Path::new("-")) {
        output::print(&format!(
            "{}: no mistakes{}\n\n{report}",
            loaded.lab.name,
            match loaded.warnings.len() {
                0 => String::new(),
                1 => ", 1 warning".into(),
                n => format!(", {n} warnings"),
            }
        ))?;
    }
    if let Some(path) = &args.svg {
        output::written(file::write_text(path, &topology::svg(&loaded.lab, None)))?;
    }
    Ok(())
}

fn print_json(value: &Value) -> Result<(), Failure> {
    output::written(file::stdout(|out| json::write_value(out, value)))
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
        "fabrics": report.fabrics,
        "isl_groups": report.isl_groups.iter().map(isl_group).collect::<Vec<_>>(),
        "single_points_of_failure": report
            .single_points
            .iter()
            .map(|point| json!({ "name": point.name, "hosts": point.hosts }))
            .collect::<Vec<_>>(),
        "paths": report.paths.iter().map(paths).collect::<Vec<_>>(),
        "hosts_without_two_disjoint_paths": report.hosts_without_two_paths,
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
