//! Checks and runs of a lab: [`check`], [`simulate`], [`point`].

use crate::results::Results;
use crate::table::{self, Table};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sanloom_api::results::is_metric_path;
use sanloom_console::exit::Failure;
use sanloom_console::input::Threads;
use sanloom_console::node::Node;
use sanloom_console::outputs::Sets;
use sanloom_console::report::check as outcome;
use sanloom_console::run::{self, View};
use sanloom_console::simulation::Simulation;
use sanloom_console::{remedy, sweep};
use sanloom_lab::{Diagnostic, Diagnostics, LoadedLab, Override};
use sanloom_sim::run::Progress;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longest time between two checks of signals and two reports of progress.
const CHECK_INTERVAL: Duration = Duration::from_millis(40);

/// A lab as Python names it.
#[derive(Clone, FromPyObject)]
pub struct Source(
    /// Name of the lab file in diagnostics; its folder is that of the files that it names.
    pub String,
    /// Name of the lab file in commands.
    String,
    /// Text of the lab file.
    pub String,
    /// Overrides, as key and value.
    Vec<(String, String)>,
);

impl Source {
    /// The overrides.
    pub fn sets(&self) -> Vec<Override> {
        self.3.iter().map(|(key, value)| Override { key: key.clone(), value: value.clone() }).collect()
    }
}

/// A mistake or a warning: its JSON, and its text with the line of the file.
type Rendered = (String, String);

fn rendered<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>) -> Vec<Rendered> {
    let text = |diagnostic: &Diagnostic| (outcome::diagnostic(diagnostic).to_string(), diagnostic.render(false));
    diagnostics.into_iter().map(text).collect()
}

/// Checks a lab. Returns its diagnostics, and its topology as JSON if it has no mistakes.
#[pyfunction]
pub fn check(py: Python<'_>, source: Source) -> (Vec<Rendered>, Option<String>) {
    py.detach(|| match sanloom_lab::check(&source.0, &source.2, &source.sets()) {
        Ok((loaded, report)) => {
            (rendered(&loaded.warnings), Some(outcome::topology_json(&loaded.lab, &report).to_string()))
        }
        Err(mistakes) => (rendered(&mistakes), None),
    })
}

/// Returns the mistakes of a lab, without its design.
#[pyfunction]
pub fn mistakes(py: Python<'_>, source: Source) -> Vec<Rendered> {
    let loaded = py.detach(|| sanloom_lab::load(&source.0, &source.2, &source.sets()));
    loaded.map_or_else(|mistakes| rendered(&mistakes), |_| Vec::new())
}

/// End of a run, requested by Python.
#[pyclass(frozen, module = "sanloom")]
#[derive(Default)]
pub struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Stop {
        Stop::default()
    }

    /// Ends the runs that have this stop.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Simulates a lab without holding the interpreter. Returns its results, and the exception that cut
/// the run short.
///
/// `progress` receives simulated time and duration in seconds, frame-hops, and whether ports still
/// log in.
#[pyfunction]
#[pyo3(signature = (source, *, seed, duration, threads, remedies, progress))]
pub fn simulate<'py>(
    py: Python<'py>,
    source: Source,
    seed: Option<u64>,
    duration: Option<String>,
    threads: usize,
    remedies: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Results, Option<PyErr>)> {
    let simulation =
        Simulation { path: source.1.clone(), sets: Sets { set: source.sets() }, seed, duration, replications: 1 };
    let sets = simulation.overrides();
    let loaded = py.detach(|| sanloom_lab::load(&source.0, &source.2, &sets)).map_err(wrong)?;
    let stop = Arc::new(AtomicBool::new(false));
    let latest = Arc::new(Mutex::new(None));
    let work = {
        let (stop, latest) = (stop.clone(), latest.clone());
        move || complete(&source.0, loaded, &simulation, threads, remedies, &stop, &latest)
    };
    let mut report = |progress: &Bound<'py, PyAny>| {
        let now: Option<Progress> = latest.lock().ok().and_then(|latest| *latest);
        let Some(Progress { run_ps, duration_ps, frame_hops, logging_in }) = now else { return Ok(()) };
        progress.call1((run_ps as f64 / 1e12, duration_ps as f64 / 1e12, frame_hops, logging_in)).map(|_| ())
    };
    let (finished, error) = watched(py, &stop, work, || progress.as_ref().map_or(Ok(()), &mut report))?;
    Ok((finished.map_err(|failure| PyRuntimeError::new_err(failure.message))?, error))
}

/// Simulates a lab and completes its results, as `sanloom sim` does.
fn complete(
    label: &str,
    loaded: LoadedLab,
    simulation: &Simulation,
    threads: usize,
    remedies: bool,
    stop: &AtomicBool,
    latest: &Mutex<Option<Progress>>,
) -> Result<Results, Failure> {
    let lab = Arc::new(loaded.lab.clone());
    let stopped = || stop.load(Ordering::Relaxed);
    let mut progress = |progress: &Progress| {
        if let Ok(mut latest) = latest.lock() {
            *latest = Some(*progress);
        }
    };
    let view = View { progress: Some(&mut progress), stop: Some(&stopped), threads, ..View::default() };
    let mut results = run::run(&lab, view).results;
    simulation.describe(&mut results, &loaded.text);
    if remedies {
        let sets = simulation.overrides();
        let source = remedy::Source { label, text: &loaded.text, sets: &sets };
        let at_once = Threads { threads: NonZeroUsize::new(threads) };
        remedy::try_all(&source, &lab, &mut results, at_once, &stopped)?;
    }
    run::judge(&lab, &mut results);
    Ok(Results::new(loaded, results))
}

/// Runs work in another thread. Meanwhile signals are checked and `report` is called. An exception
/// of either stops the work and is returned beside its outcome.
fn watched<T: Send + 'static>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
    mut report: impl FnMut() -> PyResult<()>,
) -> PyResult<(T, Option<PyErr>)> {
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("sanloom".to_owned()).spawn(move || {
        // The receiver waits until the work is done.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    thread.map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
    let receiver = Mutex::new(receiver);
    let wait = |receiver: &Mutex<Receiver<_>>| {
        receiver.lock().map_or(Err(RecvTimeoutError::Disconnected), |receiver| receiver.recv_timeout(CHECK_INTERVAL))
    };
    let mut error = None;
    loop {
        match py.detach(|| wait(&receiver)) {
            Ok(Ok(done)) => {
                // The last report shows the end.
                let last = if error.is_none() { report().err() } else { None };
                return Ok((done, error.or(last)));
            }
            Err(RecvTimeoutError::Timeout) if error.is_none() => {
                error = py.check_signals().and_then(|()| report()).err();
                stop.fetch_or(error.is_some(), Ordering::Relaxed);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(sanloom_console::exit::REPORT_IT));
            }
        }
    }
}

/// Simulates one point of a sweep without holding the interpreter. Returns a row with the metrics
/// as a stream of Arrow IPC; `None` if `stop` was set.
#[pyfunction]
#[pyo3(signature = (source, metrics, stop = None))]
pub fn point<'py>(
    py: Python<'py>,
    source: Source,
    metrics: Vec<String>,
    stop: Option<Bound<'py, Stop>>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if let Some(bad) = metrics.iter().find(|path| !is_metric_path(path)) {
        return Err(PyValueError::new_err(format!(
            "`{bad}` is no path into the results; write it like totals.iops or max(hosts.*.latency.p99_us)"
        )));
    }
    let lab = py.detach(|| sanloom_lab::load(&source.0, &source.2, &source.sets())).map_err(wrong)?.lab;
    let stop = stop.map_or_else(Arc::default, |stop| stop.get().0.clone());
    let work = {
        let (stop, metrics) = (stop.clone(), metrics.clone());
        move || sweep::measure(&lab, 1, &metrics, Some(&|| stop.load(Ordering::Relaxed)))
    };
    let (measured, error) = watched(py, &stop, work, || Ok(()))?;
    if let Some(error) = error {
        return Err(error);
    }
    let Some(measured) = measured else { return Ok(None) };
    if let Some((path, remedy)) = measured.absent.iter().find(|(path, _)| !sweep::comes_and_goes(path)) {
        return Err(PyValueError::new_err(format!("{path}: the results have no such single number; {remedy}")));
    }
    let value = |path| measured.values.get(path).and_then(|values| values.first()).copied();
    let columns = metrics.iter().map(|path| Arc::new(Float64Array::from(vec![value(path)])) as ArrayRef).collect();
    let schema = Schema::new(metrics.iter().map(|path| Field::new(path, DataType::Float64, true)).collect::<Vec<_>>());
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(schema), columns, &options).map_err(table::failed)?;
    Ok(Some(PyBytes::new(py, &table::ipc(&row).map_err(table::failed)?)))
}

/// Default columns of a sweep.
#[pyfunction]
pub fn default_metrics() -> Vec<&'static str> {
    sweep::DEFAULT_METRICS.to_vec()
}

/// Makes a table of a list of JSON objects. `example` is a row with every column.
#[pyfunction]
#[pyo3(signature = (rows, example = None))]
pub fn table_of(rows: &str, example: Option<&str>) -> PyResult<Table> {
    let wrong = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let rows: Vec<Node> = serde_json::from_str(rows).map_err(wrong)?;
    let example: Option<Node> = example.map(serde_json::from_str).transpose().map_err(wrong)?;
    crate::columns::batch(example.as_ref(), &rows).map(Table).map_err(table::failed)
}

/// The exception for a lab with mistakes.
pub fn wrong(mistakes: Diagnostics) -> PyErr {
    let error = |py: Python<'_>| -> PyResult<PyErr> {
        let class = py.import("sanloom._lab")?.getattr("LabError")?;
        Ok(PyErr::from_value(class.call1((mistakes.render(false), rendered(&mistakes)))?))
    };
    Python::attach(|py| error(py).unwrap_or_else(|other| other))
}
