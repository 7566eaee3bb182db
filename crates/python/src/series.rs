//! The time series of a run as a table, without copying its values: [`batch`].

use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use sanloom_api::results::{Results, SeriesValues};
use std::sync::Arc;

/// Owner of the values of a column: the results, and the place of the column.
struct Owner {
    results: Arc<Results>,
    part: &'static str,
    /// Index in the list of the part.
    index: usize,
    quantity: &'static str,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        let columns = self.results.series.columns_of(self.part, self.index);
        match columns.into_iter().find(|column| column.quantity == self.quantity).map(|column| column.values) {
            Some(SeriesValues::Floats(values)) => bytemuck::cast_slice(values),
            Some(SeriesValues::Counts(values)) => bytemuck::cast_slice(values),
            None => &[],
        }
    }
}

/// Returns the table of a time series; `at_s` is the start of each step.
///
/// # Errors
/// If Arrow refuses the columns.
pub fn batch(results: &Arc<Results>) -> Result<RecordBatch, ArrowError> {
    let series = &results.series;
    let at_s: Vec<f64> = (0..series.steps as usize).map(|step| series.at_s(step)).collect();
    let mut fields = vec![Field::new("at_s", DataType::Float64, true)];
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Float64Array::from(at_s))];
    for column in series.columns() {
        let (part, quantity) = (column.part, column.quantity);
        let owner = Owner { results: results.clone(), part, index: column.index, quantity };
        let buffer = Buffer::from(Bytes::from_owner(owner));
        let (data_type, array): (DataType, ArrayRef) = match column.values {
            SeriesValues::Floats(_) => {
                (DataType::Float64, Arc::new(Float64Array::new(ScalarBuffer::from(buffer), None)))
            }
            SeriesValues::Counts(_) => (DataType::UInt64, Arc::new(UInt64Array::new(ScalarBuffer::from(buffer), None))),
        };
        fields.push(Field::new(column.name(), data_type, true));
        columns.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(series.steps as usize));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}
