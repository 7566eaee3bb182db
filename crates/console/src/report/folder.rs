//! Output folder of a simulation.

use super::file::{self, WriteError};
use super::{csv, html, json};
use sanloom_api::graph::Graph;
use sanloom_api::results::Results;
use std::path::{Path, PathBuf};

/// Writes `report.html`, `results.json`, `series.csv`, `series.jsonl`, `topology.svg` (if there is
/// one) and `lab.toml` (if the results contain its text) into a folder, which is created if
/// necessary. Returns the path of the report. `graph` and
/// `redundancy`: as for [`html::report`].
///
/// # Errors
/// When a file cannot be written; files written before it remain.
pub fn write(
    folder: &Path,
    results: &Results,
    topology_svg: &str,
    graph: Option<&Graph>,
    redundancy: &[String],
) -> Result<PathBuf, WriteError> {
    file::make_folder(folder)?;
    json::write(&folder.join("results.json"), results)?;
    file::write(&folder.join("series.csv"), |out| csv::write_csv(out, results))?;
    file::write(&folder.join("series.jsonl"), |out| csv::write_json_lines(out, results))?;
    if !topology_svg.is_empty() {
        file::write_text(&folder.join("topology.svg"), topology_svg)?;
    }
    if let Some(source) = &results.lab.source {
        file::write_text(&folder.join("lab.toml"), source)?;
    }
    let report = folder.join("report.html");
    file::write_text(&report, &html::report(results, graph, redundancy))?;
    Ok(report)
}
