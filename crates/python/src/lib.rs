//! The compiled part of the Python package: runs without holding the interpreter, and tables
//! without copies. `crates/python/python` has the classes of the package.

mod columns;
mod command;
mod live;
mod results;
mod series;
mod simulate;
mod table;

#[pyo3::pymodule]
mod _sanloom {
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::live::{ask, control_socket, zone_edits};
    #[pymodule_export]
    use crate::results::Results;
    #[pymodule_export]
    use crate::simulate::{Stop, check, default_metrics, mistakes, point, simulate, table_of};
    #[pymodule_export]
    use crate::table::Table;
}
