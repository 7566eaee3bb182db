//! Traces with measured times, and their replay.

use super::super::verdict::{Kind, Ruling};
use super::row::{MEAN_TOLERANCE_PERCENT, Row};
use crate::disk::input;
use flate2::read::GzDecoder;
use sanloom_console::exit::Failure;
use sanloom_storage::disk::demerit::Distribution;
use sanloom_storage::disk::replay::Replay;
use sanloom_storage::disk::{DiskConfig, preset};
use sanloom_storage::trace::validate::Records;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Bar of a disk that is not part of the program, in percent.
const BAR_OF_OTHER_DISKS_PERCENT: f64 = 8.0;

/// Origin of a trace.
enum Origin {
    /// Compressed by gzip, part of the program.
    Included(&'static [u8]),
    File(PathBuf),
}

/// A disk with its trace.
pub struct Case {
    id: String,
    config: DiskConfig,
    trace: Origin,
    bar_percent: f64,
    disksim_percent: Option<f64>,
}

/// A disk beside the model.
pub struct Compared {
    pub row: Row,
    pub measured: Distribution,
    pub ours: Distribution,
    /// Parts of the modelled times.
    pub stats: String,
}

/// Returns the disks whose traces are part of the program. DiskSim's own figures were recomputed
/// from a finished run of its validation.
pub fn cases() -> Vec<Case> {
    let case = |config: DiskConfig, trace: &'static [u8], bar_percent, disksim| Case {
        id: config.name.clone().into_owned(),
        config,
        trace: Origin::Included(trace),
        bar_percent,
        disksim_percent: Some(disksim),
    };
    vec![
        case(preset::cheetah_9lp(), include_bytes!("../../../data/disk-traces/cheetah-9lp.trace.gz"), 6.0, 2.5),
        case(preset::atlas_10k(), include_bytes!("../../../data/disk-traces/atlas-10k.trace.gz"), 5.0, 6.9),
        case(preset::c2247a(), include_bytes!("../../../data/disk-traces/hp-c2247a.trace.gz"), 4.0, 0.59),
    ]
}

/// Returns the case of `--disk` and `--trace`.
///
/// # Errors
/// If the disk is neither a preset nor a file of parameters or of DiskSim.
pub fn own_case(disk: &str, trace: &Path) -> Result<Case, Failure> {
    let id = trace.file_stem().map_or_else(|| "trace".to_owned(), |name| name.to_string_lossy().into_owned());
    let config = input::disk(disk)?;
    Ok(Case {
        id,
        config,
        trace: Origin::File(trace.to_path_buf()),
        bar_percent: BAR_OF_OTHER_DISKS_PERCENT,
        disksim_percent: None,
    })
}

/// Returns the parameters of a preset as TOML.
///
/// # Errors
/// If there is no such preset.
pub fn parameters(name: &str) -> Result<String, Failure> {
    let config = preset::find(name)
        .ok_or_else(|| Failure::usage(format!("{name} is no preset; presets: {}", input::names())))?;
    toml::to_string(&config).map_err(Failure::bug)
}

/// Replays a trace and compares both distributions.
///
/// # Errors
/// If the trace or the parameters are wrong.
pub fn compare(case: &Case) -> Result<Compared, Failure> {
    let (name, input): (String, Box<dyn BufRead>) = match &case.trace {
        Origin::Included(bytes) => (case.id.clone(), Box::new(BufReader::new(GzDecoder::new(*bytes)))),
        Origin::File(path) => {
            let name = path.display().to_string();
            (name, input::open(path)?)
        }
    };
    let mut replay = Replay::new(&case.config).map_err(Failure::usage)?;
    let (mut measured, mut ours) = (Vec::new(), Vec::new());
    for record in Records::new(input) {
        let record = record.map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        let ended = replay.step(&record).ok_or_else(|| Failure::bug("the disk lost a request"))?;
        measured.push(record.response_ps);
        ours.push(ended.response_ps());
    }
    if measured.is_empty() {
        return Err(Failure::usage(format!("{name} has no requests; give a trace with at least one line")));
    }
    let (measured, ours) = (Distribution::new(measured), Distribution::new(ours));
    let (measured_us, ours_us) = (measured.mean_us(), ours.mean_us());
    let row = Row {
        id: case.id.clone(),
        disk: case.config.name.clone().into_owned(),
        requests: measured.len(),
        kind: Kind::Prediction,
        measured_mean_ms: measured_us / 1e3,
        mean_ms: ours_us / 1e3,
        mean_difference_percent: 100.0 * (ours_us / measured_us - 1.0),
        mean_tolerance_percent: MEAN_TOLERANCE_PERCENT,
        demerit_ms: ours.demerit_us(&measured) / 1e3,
        demerit_percent: ours.demerit_percent(&measured),
        demerit_bar_percent: case.bar_percent,
        disksim_percent: case.disksim_percent,
        verdict: Ruling::NotJudged,
    };
    Ok(Compared { row: row.judged(), measured, ours, stats: replay.disk().stats().to_string() })
}
