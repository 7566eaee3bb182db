//! `sanloom calibrate-disk`: the free parameters of a disk, fitted to a measured trace.

use super::input;
use sanloom_console::exit::Failure;
use sanloom_console::outputs::Json;
use sanloom_console::pool::Counter;
use sanloom_console::report::file;
use sanloom_console::report::terminal::grid::{Column, Grid, wrap};
use sanloom_console::{interrupt, output};
use sanloom_storage::disk::DiskConfig;
use sanloom_storage::disk::calibrate::{self, Calibration, MIN_REQUESTS};
use sanloom_storage::disk::demerit::Distribution;
use serde::Serialize;
use std::path::PathBuf;

/// Percentiles of the table.
const PERCENTILES: [u32; 9] = [5, 10, 25, 50, 75, 90, 95, 99, 100];

/// Options of `sanloom calibrate-disk`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Disk to start from: a TOML file of parameters, a .parv or .diskspecs file of DiskSim, or the
    /// name of a preset
    #[arg(value_name = "PARAMETERS")]
    parameters: String,
    /// Trace with measured times in the format `validate` of DiskSim; .gz is decompressed
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Write the fitted parameters to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Largest number of replays of the first half
    #[arg(long, value_name = "N", default_value_t = calibrate::REPLAYS,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    replays: usize,
    #[command(flatten)]
    json: Json,
}

/// The whole result; the JSON of `--json`.
#[derive(Serialize)]
struct Report {
    disk: String,
    /// Requests of the first half, to which the parameters were fitted, and of the second.
    requests: [usize; 2],
    replays: usize,
    is_cut: bool,
    /// The second half, which the fit has not seen.
    prediction: [Half; 2],
    /// The first half.
    fit: [Half; 2],
    percentiles: Vec<Percentile>,
    parameters: Vec<Number>,
    choices: Vec<Choice>,
}

/// Measured and modelled times of one half.
#[derive(Serialize)]
struct Half {
    measured_mean_ms: f64,
    mean_ms: f64,
    mean_difference_percent: f64,
    demerit_ms: f64,
    demerit_percent: f64,
}

/// Percentile of the second half.
#[derive(Serialize)]
struct Percentile {
    percent: u32,
    measured_ms: f64,
    before_ms: f64,
    after_ms: f64,
}

#[derive(Serialize)]
struct Number {
    name: &'static str,
    before: f64,
    after: f64,
    /// Change that raises the distance to the first half by 5 percent; none if not determined.
    plus_minus: Option<f64>,
}

#[derive(Serialize)]
struct Choice {
    name: &'static str,
    before: String,
    after: String,
}

/// Fits a disk.
///
/// # Errors
/// If a file cannot be read or written, or the trace is too short.
pub fn run(args: &Args) -> Result<(), Failure> {
    let config = input::disk(&args.parameters)?;
    let records = input::records(&args.trace)?;
    if records.len() < MIN_REQUESTS {
        return Err(Failure::usage(format!(
            "{} has {} requests; a fit needs at least {MIN_REQUESTS}",
            args.trace.display(),
            records.len()
        )));
    }
    let half = records.len() / 2;
    let counter = Counter::new(args.replays, "replays");
    let fitted = calibrate::fit(&config, &records[..half], args.replays, &mut |progress| {
        counter.set(progress.replays, &format!("replays, distance {:.3} ms", progress.distance_ms));
        !interrupt::requested()
    });
    counter.clear();
    let fitted = fitted.map_err(Failure::usage)?;
    if interrupt::requested() {
        return Err(Failure::interrupted("the fit is not finished; nothing was written"));
    }
    let compare = |config: &DiskConfig, until: usize, from: usize| {
        calibrate::compare(config, &records[..until], from).map_err(Failure::usage)
    };
    let [before, after] = [&config, &fitted.config];
    let judged = [compare(before, records.len(), half)?, compare(after, records.len(), half)?];
    let report = Report {
        disk: config.name.clone().into_owned(),
        requests: [half, records.len() - half],
        replays: fitted.replays,
        is_cut: fitted.is_cut,
        prediction: [half_of(&judged[0]), half_of(&judged[1])],
        fit: [half_of(&compare(before, half, 0)?), half_of(&compare(after, half, 0)?)],
        percentiles: percentiles(&judged),
        parameters: numbers(&fitted),
        choices: choices(&fitted),
    };
    if let Some(path) = &args.output {
        output::written(file::write_text(path, &parameters(args, &report, &fitted)?))?;
    }
    args.json.write_or_print(&report, || terminal(args, &report))
}

fn half_of((measured, ours): &(Distribution, Distribution)) -> Half {
    let (measured_us, ours_us) = (measured.mean_us(), ours.mean_us());
    Half {
        measured_mean_ms: measured_us / 1e3,
        mean_ms: ours_us / 1e3,
        mean_difference_percent: 100.0 * (ours_us / measured_us.max(1e-9) - 1.0),
        demerit_ms: ours.demerit_us(measured) / 1e3,
        demerit_percent: 100.0 * ours.demerit_us(measured) / measured_us.max(1e-9),
    }
}

fn percentiles(judged: &[(Distribution, Distribution); 2]) -> Vec<Percentile> {
    let row = |percent: u32| {
        let ms = |distribution: &Distribution| distribution.quantile_us(f64::from(percent) / 100.0) / 1e3;
        let [before, after] = judged;
        Percentile { percent, measured_ms: ms(&before.0), before_ms: ms(&before.1), after_ms: ms(&after.1) }
    };
    PERCENTILES.into_iter().map(row).collect()
}

fn numbers(fitted: &Calibration) -> Vec<Number> {
    let number = |value: &calibrate::Fitted| Number {
        name: value.name,
        before: value.before,
        after: value.after,
        plus_minus: value.plus_minus,
    };
    fitted.fitted.iter().map(number).collect()
}

fn choices(fitted: &Calibration) -> Vec<Choice> {
    let choice = |changed: &calibrate::Changed| Choice {
        name: changed.name,
        before: changed.before.clone(),
        after: changed.after.clone(),
    };
    fitted.changed.iter().map(choice).collect()
}

/// Returns the fitted parameter file.
fn parameters(args: &Args, report: &Report, fitted: &Calibration) -> Result<String, Failure> {
    let [before, after] = &report.prediction;
    let body = toml::to_string(&fitted.config).map_err(Failure::bug)?;
    Ok(format!(
        "# Fitted by `sanloom calibrate-disk` from {} to the first {} requests of {}.\n# Demerit figure of the other {} \
         requests: {:.1} % of the mean before, {:.1} % after.\n\n{body}",
        args.parameters,
        report.requests[0],
        args.trace.display(),
        report.requests[1],
        before.demerit_percent,
        after.demerit_percent,
    ))
}

fn terminal(args: &Args, report: &Report) -> String {
    let width = output::width();
    let mut halves = Grid::new(vec![
        Column::left("Requests"),
        Column::left("Parameters"),
        Column::right("Measured mean ms"),
        Column::right("Our mean ms"),
        Column::right("Difference"),
        Column::right("Demerit ms"),
        Column::right("Demerit of mean"),
    ]);
    let parts = [
        (format!("first {} (fit)", report.requests[0]), &report.fit),
        (format!("last {} (prediction)", report.requests[1]), &report.prediction),
    ];
    for (requests, rows) in parts {
        for (half, parameters) in rows.iter().zip(["before", "after"]) {
            halves.row(vec![
                requests.clone(),
                parameters.to_owned(),
                format!("{:.3}", half.measured_mean_ms),
                format!("{:.3}", half.mean_ms),
                format!("{:+.1} %", half.mean_difference_percent),
                format!("{:.3}", half.demerit_ms),
                format!("{:.1} %", half.demerit_percent),
            ]);
        }
    }
    let mut percentiles = Grid::new(vec![
        Column::right("Percentile of the prediction"),
        Column::right("Measured ms"),
        Column::right("Before ms"),
        Column::right("After ms"),
    ]);
    for row in &report.percentiles {
        let ms = [row.measured_ms, row.before_ms, row.after_ms].map(|ms| format!("{ms:.2}"));
        percentiles.row([format!("{} %", row.percent)].into_iter().chain(ms).collect());
    }
    let mut numbers = Grid::new(vec![
        Column::left("Parameter"),
        Column::right("Before"),
        Column::right("After"),
        Column::right("Determined to"),
    ]);
    for number in &report.parameters {
        let determined = number.plus_minus.map_or("not determined".to_owned(), |change| format!("± {change:.4}"));
        let cells = [format!("{:.4}", number.before), format!("{:.4}", number.after), determined];
        numbers.row([number.name.to_owned()].into_iter().chain(cells).collect());
    }
    for choice in &report.choices {
        numbers.row(vec![choice.name.to_owned(), choice.before.clone(), choice.after.clone(), "choice".to_owned()]);
    }
    let explained = "Times are in ms. ± is the change of a value that raises the distance to the first half by 5 \
                     percent although all other values are fitted again. The layout and the speed of rotation were not \
                     fitted.";
    let ended = match report.is_cut {
        true => format!("The limit of replays ended the fit after {}.", report.replays),
        false => format!("The fit needed {} replays.", report.replays),
    };
    let written = match &args.output {
        Some(path) => format!("Parameters: {}\n", path.display()),
        None => "Give -o FILE to write the fitted parameters.\n".to_owned(),
    };
    format!(
        "{}: fitted to the first half of {}, judged on the second\n\n{}\n{}\n{}\n{}\n{ended}\n{written}",
        report.disk,
        args.trace.display(),
        halves.render(width),
        percentiles.render(width),
        numbers.render(width),
        wrap(explained, width, 0),
    )
}
