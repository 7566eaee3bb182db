//! The folder that a simulation leaves.

use super::file::{self, WriteError};
use super::{csv, html, json};
use sanloom_api::results::Results;
use std::path::{Path, PathBuf};

/// Writes `report.html`, `results.json`, `series.csv`, `series.jsonl`, `topology.svg` (if there is one) and `lab.toml`
/// (if the results carry its text) into a folder, which is made if it is not there. Returns the path of the report.
///
/// # Errors
/// At the first file that cannot be written; those before it stay.
pub fn write(folder: &Path, results: &Results, topology_svg: &str) -> Result<PathBuf, WriteError> {
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
    file::write_text(&report, &html::report(results, topology_svg))?;
    Ok(report)
}
