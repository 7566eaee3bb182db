//! LRU, FIFO and CLOCK on a public trace of block requests: the misses must be the published ones.
//! The licence of the trace does not fit this project, so a user fetches it.

use super::row::{Basis, Row};
use sanloom_console::exit::Failure;
use sanloom_storage::cache::{Access, Directory, Policy};
use std::path::Path;

/// Name of the trace in the folder of `tests/traces/fetch.sh`.
const FILE: &str = "cloudPhysicsIO.oracleGeneral.bin";
/// Records of the trace: seconds (u32), object (u64), bytes (u32) and the next use (i64), all
/// little-endian.
const RECORDS: usize = 113_872;
const RECORD_BYTES: usize = 24;

/// Line about the rows that a run without the trace leaves out.
pub const LEFT_OUT: &str = "24 numbers left out: misses of LRU, FIFO and CLOCK on a public trace; fetch it with \
                            `tests/traces/fetch.sh target/traces`, and add `--traces target/traces`";

const BASIS: Basis = Basis {
    section: "Caches on the public trace",
    source: "Misses that libCacheSim publishes in its tests for its sample of the CloudPhysics traces (Waldspurger, Park, \
             Garthwaite and Ahmad 2015): 113,872 requests for 48,974 objects of different sizes",
    tolerance_reason: "exact, because the trace and the policy leave nothing open",
};

/// Misses with 128, 256, ... 1,024 MiB.
const PUBLISHED: [(Policy, &str, [u32; 8]); 3] = [
    (Policy::Lru, "LRU", [93374, 89783, 83572, 81722, 72494, 72104, 71972, 71704]),
    (Policy::Fifo, "FIFO", [93403, 89386, 84387, 84025, 72498, 72228, 72182, 72140]),
    (Policy::Clock, "CLOCK", [93313, 89775, 83411, 81328, 74815, 72283, 71927, 64456]),
];

/// Reads the trace from its folder.
pub fn read(folder: &Path) -> Result<Vec<u8>, Failure> {
    let path = folder.join(FILE);
    let (name, fetch) = (path.display(), format!("fetch it with `tests/traces/fetch.sh {}`", folder.display()));
    let trace = std::fs::read(&path)
        .map_err(|error| Failure::usage(format_args!("--traces: cannot read {name}: {error}; {fetch}")))?;
    if trace.len() != RECORDS * RECORD_BYTES {
        let (found, expected) = (trace.len(), RECORDS * RECORD_BYTES);
        return Err(Failure::usage(format_args!(
            "--traces: {name} has {found} bytes instead of {expected}; delete it, and {fetch}"
        )));
    }
    Ok(trace)
}

/// Object and bytes of each record.
fn accesses(trace: &[u8]) -> impl Iterator<Item = (u64, u32)> {
    trace.chunks_exact(RECORD_BYTES).map(|record| {
        let object = record[4..12].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let bytes = record[12..16].iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        (object, bytes)
    })
}

fn misses(policy: Policy, capacity_bytes: u64, trace: &[u8]) -> u32 {
    let mut directory = Directory::new(policy, capacity_bytes, 32 << 10);
    let is_miss = |(object, bytes): (u64, u32)| !matches!(directory.access(object, bytes, |_, _| {}), Access::Hit(_));
    accesses(trace).map(is_miss).map(u32::from).sum()
}

/// Returns a row for each policy and capacity.
pub fn rows(trace: &[u8]) -> Vec<Row> {
    let row = |(policy, name, at, published): (Policy, &str, u64, u32)| {
        let mib = (at + 1) * 128;
        let ours = misses(policy, mib << 20, trace);
        let id = format!("misses-{}-{mib}", name.to_lowercase());
        BASIS.row(id, format!("{name}, {mib} MiB"), "misses", published.into(), Some(ours.into()), 0.0)
    };
    let cases = PUBLISHED
        .into_iter()
        .flat_map(|(policy, name, misses)| (0..).zip(misses).map(move |(at, misses)| (policy, name, at, misses)));
    cases.map(row).collect()
}
