//! Traces and random requests for the tests.

use sanloom_storage::trace::validate::{Record, Records};
use std::io::{BufReader, Read};

/// Returns the records of a trace of the folder of `reproduce disks`.
pub fn records(name: &str) -> Vec<Record> {
    let path = format!("{}/../bench/data/disk-traces/{name}.trace.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("the trace is compressed by gzip");
    Records::new(BufReader::new(bytes.as_slice())).collect::<Result<_, _>>().expect("the trace is well-formed")
}
