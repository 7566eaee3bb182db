//! A table of Python: [`Table`].

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

/// Columns of equal length in the format of Arrow. Readers of that format, such as
/// `polars.DataFrame`, `pandas.DataFrame.from_arrow` and `pyarrow.table`, take it without copying.
#[pyclass(frozen, module = "sanloom")]
pub struct Table(pub RecordBatch);

/// Converts an error of Arrow.
pub fn failed(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// The table as a stream of the Arrow C data interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to ignore the requested types.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<sanloom.Table of {} rows and {} columns>", self.0.num_rows(), self.0.num_columns())
    }

    /// The values of a column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.0.column_by_name(name).ok_or_else(|| {
            PyKeyError::new_err(format!("the table has no column `{name}`; `columns` has the names of its columns"))
        })?;
        list(py, column.as_ref())
    }

    /// All columns as lists, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (field, column) in self.0.schema_ref().fields().iter().zip(self.0.columns()) {
            columns.set_item(field.name(), list(py, column.as_ref())?)?;
        }
        Ok(columns)
    }

    /// The table as a frame of polars, which must be installed.
    fn to_polars(slf: Bound<'_, Table>) -> PyResult<Bound<'_, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// The table as a frame of pandas, which must be installed, with pyarrow.
    fn to_pandas(slf: Bound<'_, Table>) -> PyResult<Bound<'_, PyAny>> {
        slf.py().import("pandas")?.getattr("DataFrame")?.call_method1("from_arrow", (slf,))
    }

    /// The table as a stream of Arrow IPC.
    fn to_ipc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &ipc(&self.0).map_err(failed)?))
    }

    /// The table of a stream of Arrow IPC.
    #[staticmethod]
    fn from_ipc(bytes: &[u8]) -> PyResult<Table> {
        let mut stream = StreamReader::try_new(bytes, None).map_err(failed)?;
        match stream.next() {
            Some(batch) => batch.map(Table).map_err(failed),
            None => Ok(Table(RecordBatch::new_empty(stream.schema()))),
        }
    }
}

/// A table as a stream of Arrow IPC.
///
/// # Errors
/// If Arrow cannot write it.
pub fn ipc(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut stream = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    stream.write(batch)?;
    stream.into_inner()
}

fn list<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Bound<'py, PyList>> {
    let values: PyResult<Vec<Bound<'py, PyAny>>> = (0..array.len()).map(|row| value(py, array, row)).collect();
    PyList::new(py, values?)
}

fn value<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
        DataType::List(_) => list(py, array.as_list::<i32>().value(row).as_ref())?.into_any(),
        DataType::Struct(fields) => {
            let members = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                members.set_item(field.name(), value(py, column.as_ref(), row)?)?;
            }
            members.into_any()
        }
        _ => py.None().into_bound(py),
    })
}
