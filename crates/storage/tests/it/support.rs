//! Traces and random requests for the tests.

use sanloom_storage::disk::DiskConfig;
use sanloom_storage::disk::demerit::Distribution;
use sanloom_storage::disk::replay::Replay;
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

/// Returns the demerit figure of a disk for a trace, and the difference of the means, both in
/// percent.
pub fn compare(config: &DiskConfig, records: &[Record]) -> (f64, f64) {
    let mut replay = Replay::new(config).expect("the disk is possible");
    let times: Vec<u64> = records.iter().filter_map(|record| replay.step(record)).map(|e| e.response_ps()).collect();
    assert_eq!(times.len(), records.len(), "each request ends");
    let measured = Distribution::new(records.iter().map(|record| record.response_ps));
    let ours = Distribution::new(times.iter().copied());
    (ours.demerit_percent(&measured), 100.0 * (ours.mean_us() / measured.mean_us() - 1.0))
}
