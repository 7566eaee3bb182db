//! The results of a run: [`Results`].

use crate::table::{Table, failed};
use crate::{columns, series};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use sanloom_api::graph::Graph;
use sanloom_api::results::{self as api, HistogramBucket, example};
use sanloom_console::node::Node;
use sanloom_console::report::html::{escape, report};
use sanloom_console::report::{folder, json, terminal};
use sanloom_console::simulation::{coloured_topology, redundancy};
use sanloom_lab::{LoadedLab, topology};
use std::path::PathBuf;
use std::sync::Arc;

/// Width of the table in a notebook, in characters.
const WIDTH: usize = 110;

/// Everything that a run measured.
#[pyclass(frozen, module = "sanloom")]
pub struct Results {
    loaded: LoadedLab,
    results: Arc<api::Results>,
}

impl Results {
    /// The results of a run of a lab.
    pub fn new(loaded: LoadedLab, results: api::Results) -> Results {
        Results { loaded, results: Arc::new(results) }
    }

    fn latency(&self) -> Result<RecordBatch, arrow_schema::ArrowError> {
        let results = &self.results;
        let totals = [("totals", "", &results.totals.latency_histogram)];
        let hosts = results.hosts.iter().map(|host| ("hosts", host.name.as_str(), &host.latency_histogram));
        let streams = results.streams.iter().map(|stream| ("streams", stream.name.as_str(), &stream.latency_histogram));
        let all = totals.into_iter().chain(hosts).chain(streams);
        let rows: Vec<(&str, &str, HistogramBucket)> =
            all.flat_map(|(of, name, buckets)| buckets.iter().map(move |bucket| (of, name, *bucket))).collect();
        let text = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
        let schema = Schema::new(vec![
            Field::new("of", DataType::Utf8, true),
            Field::new("name", DataType::Utf8, true),
            Field::new("upper_us", DataType::Float64, true),
            Field::new("count", DataType::UInt64, true),
        ]);
        let columns = vec![
            text(rows.iter().map(|row| row.0).collect()),
            text(rows.iter().map(|row| row.1).collect()),
            Arc::new(rows.iter().map(|row| row.2.0).collect::<Float64Array>()) as ArrayRef,
            Arc::new(rows.iter().map(|row| row.2.1).collect::<UInt64Array>()) as ArrayRef,
        ];
        RecordBatch::try_new(Arc::new(schema), columns)
    }

    fn drawing(&self) -> String {
        coloured_topology(&self.loaded.lab, &self.loaded.isolated, &self.results)
    }

    fn graph(&self) -> Graph {
        topology::graph(&self.loaded.lab, &self.loaded.isolated)
    }
}

/// The list `name` of results.
fn rows(results: &api::Results, name: &str) -> Option<serde_json::Result<Node>> {
    Some(match name {
        "hosts" => Node::of(&results.hosts),
        "streams" => Node::of(&results.streams),
        "links" => Node::of(&results.links),
        "ports" => Node::of(&results.ports),
        "storage" => Node::of(&results.storage),
        "switches" => Node::of(&results.switches),
        "loops" => Node::of(&results.loops),
        "ethernet_links" => Node::of(&results.ethernet_links),
        "ethernet_switches" => Node::of(&results.ethernet_switches),
        "faults" => Node::of(&results.faults),
        "events" => Node::of(&results.events),
        "findings" => Node::of(&results.findings),
        "expectations" => Node::of(&results.expectations),
        _ => return None,
    })
}

/// Elements of a list.
fn elements(node: Node) -> Vec<Node> {
    match node {
        Node::List(elements) => elements,
        other => vec![other],
    }
}

#[pymethods]
impl Results {
    /// The text of `results.json`.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let mut out = Vec::new();
        py.detach(|| json::write_value(&mut out, &*self.results))?;
        String::from_utf8(out).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The table of a list of the results.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let wrong = |error: serde_json::Error| PyValueError::new_err(error.to_string());
        let batch = match name {
            "series" => py.detach(|| series::batch(&self.results)),
            "latency" => py.detach(|| self.latency()),
            _ => {
                let mut example = example();
                let buckets = || vec![HistogramBucket(0.5, 0)];
                example.hosts.iter_mut().for_each(|host| host.latency_histogram = buckets());
                example.streams.iter_mut().for_each(|stream| stream.latency_histogram = buckets());
                let row = rows(&example, name)
                    .ok_or_else(|| PyKeyError::new_err(format!("the results have no list `{name}`")))?
                    .map_err(wrong)?;
                let found = rows(&self.results, name).unwrap_or(Ok(Node::List(Vec::new()))).map_err(wrong)?;
                py.detach(|| columns::batch(elements(row).first(), &elements(found)))
            }
        };
        batch.map(Table).map_err(failed)
    }

    /// One number by its path; `None` if there is no such number.
    fn metric(&self, path: &str) -> Option<f64> {
        self.results.metric(path)
    }

    /// True if the run was cut short.
    #[getter]
    fn interrupted(&self) -> bool {
        self.results.lab.interrupted
    }

    /// True if every expectation of the lab holds.
    #[getter]
    fn ok(&self) -> bool {
        !self.results.lab.interrupted && self.results.expectations.iter().all(|verdict| verdict.ok)
    }

    /// The tables that `sanloom sim` prints.
    #[pyo3(signature = (width = 110))]
    fn text(&self, width: usize) -> String {
        terminal::render(&self.results, width)
    }

    /// The page of `report.html`.
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| report(&self.results, Some(&self.graph()), &redundancy(&self.loaded)))
    }

    /// Writes the folder of `sanloom sim`; returns the path of its report.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<PathBuf> {
        let (drawing, graph) = (self.drawing(), self.graph());
        py.detach(|| folder::write(&path, &self.results, &drawing, Some(&graph), &redundancy(&self.loaded)))
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }

    fn _repr_html_(&self) -> String {
        format!("<pre>{}</pre>", escape(&self.text(WIDTH)))
    }
}
