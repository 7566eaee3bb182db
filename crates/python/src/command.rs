//! The command of the package: [`main`].

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs a command line of `sanloom`, whose first word is the name of the program. Returns its exit
/// code.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| sanloom::main(arguments))
}
