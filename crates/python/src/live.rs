//! Requests to a running instance: [`ask`].

use crate::simulate::{Source, wrong};
use pyo3::exceptions::{PyConnectionError, PyValueError};
use pyo3::prelude::*;
use sanloom_api::control::{Answer, Request};
use sanloom_console::zones;
use sanloom_live::control;
use sanloom_live::runtime::plan::LabPaths;
use std::path::PathBuf;

/// Sends a request, as JSON, to the instance at a control socket. Returns its answer as JSON.
#[pyfunction]
pub fn ask(py: Python<'_>, socket: PathBuf, request: &str) -> PyResult<String> {
    let request = Request::from_line(request)
        .map_err(|error| PyValueError::new_err(format!("this is not a request of the control interface: {error}")))?;
    let answer = py.detach(|| control::ask(&socket, &request)).map_err(|error| {
        let socket = socket.display();
        PyConnectionError::new_err(format!("no instance answers at {socket}: {error}; start it with `sanloom up`"))
    })?;
    let line = answer.to_line().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// The control socket of the instance of a lab.
#[pyfunction]
pub fn control_socket(source: Source) -> PyResult<PathBuf> {
    let loaded = sanloom_lab::load(&source.0, &source.2, &source.sets()).map_err(wrong)?;
    Ok(LabPaths::of(&loaded.lab).control(None))
}

/// Reads the text of zone edits with the names of a lab, for zones of a running switch: the JSON of
/// an answer. Returns the edits as JSON.
#[pyfunction]
pub fn zone_edits(source: Source, zones: &str, edits: &str) -> PyResult<String> {
    let loaded = sanloom_lab::load(&source.0, &source.2, &source.sets()).map_err(wrong)?;
    let Ok(Answer::Zones(status)) = Answer::from_line(zones) else {
        return Err(PyValueError::new_err("this is no answer with zones"));
    };
    let edits = zones::edits(&loaded.lab, &status, "the zone edits", edits)
        .map_err(|failure| PyValueError::new_err(failure.message))?;
    serde_json::to_string(&edits).map_err(|error| PyValueError::new_err(error.to_string()))
}
