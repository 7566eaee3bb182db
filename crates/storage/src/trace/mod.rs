//! Traces of requests: readers of text formats, one line at a time.

mod error;
pub mod validate;

pub use error::TraceError;
