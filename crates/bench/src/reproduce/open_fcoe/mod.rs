//! `sanloom reproduce open-fcoe`: document 002, the report "FCoE VS FC" of EMC and Yahoo: an array
//! of 150 disks over two paths of 8GFC.

use super::verdict::{Kind, Verdict};
use super::{About, SeededArgs};
use sanloom_console::exit::Failure;
use sanloom_console::pool;
use sanloom_console::run::{self, View};
use sanloom_fc::san::Lab;
use sanloom_lab::Override;
use std::sync::Arc;

/// The lab of random reads.
const LAB: &str = include_str!("../../../labs/array-150-disks.toml");
/// The lab of two FCoE ports.
const FCOE_LAB: &str = include_str!("../../../labs/fcoe-two-ports.toml");

/// Write cache that fills in the test of a minute, found by trial.
const WRITE_CACHE: &str = "4GiB";
/// Writes to the disks at once: sixteen for each.
const DESTAGES: &str = "2400";

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    SequentialReads,
    SequentialWrites,
    RandomReads,
    /// Random writes to a full cache.
    SteadyWrites,
    /// Random writes of a minute to an empty cache.
    WritesOfAMinute,
    /// Sequential reads over FCoE, with the limit of the array.
    FcoeReads,
    FcoeWrites,
    /// Sequential reads over FCoE without a limit of the array.
    FcoeOfTheLine,
    /// Sequential reads over 8GFC at the costs of a server with HBAs.
    HbaReads,
}

const CASES: [Case; 9] = [
    Case::SequentialReads,
    Case::SequentialWrites,
    Case::RandomReads,
    Case::SteadyWrites,
    Case::WritesOfAMinute,
    Case::FcoeReads,
    Case::FcoeWrites,
    Case::FcoeOfTheLine,
    Case::HbaReads,
];

impl Case {
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        const SEQUENTIAL: [(&str, &str); 3] = [
            ("workload.random.location", "sequential"),
            ("workload.random.depth", "120"),
            ("workload.random.size", "512KiB"),
        ];
        match self {
            Case::SequentialReads => &SEQUENTIAL,
            Case::SequentialWrites => {
                const { &[SEQUENTIAL[0], SEQUENTIAL[1], SEQUENTIAL[2], ("workload.random.read_share", "0.0")] }
            }
            Case::RandomReads | Case::FcoeReads => &[],
            Case::FcoeWrites => &[("workload.sequential.read_share", "0.0"), ("storage.array1.bus.clock", "216.25MHz")],
            Case::FcoeOfTheLine => &[("storage.array1.bus.clock", "10GHz")],
            Case::HbaReads => {
                const { &[SEQUENTIAL[0], SEQUENTIAL[1], SEQUENTIAL[2], ("host.server1.preset", "server-2011")] }
            }
            Case::SteadyWrites => &[
                ("workload.random.read_share", "0.0"),
                ("storage.array1.controller_cache.size", "1GiB"),
                ("storage.array1.controller_cache.write", "mirrored"),
                ("storage.array1.controller_cache.destages", DESTAGES),
                ("run.warmup", "10s"),
                ("run.duration", "20s"),
            ],
            Case::WritesOfAMinute => &[
                ("workload.random.read_share", "0.0"),
                ("storage.array1.controller_cache.size", WRITE_CACHE),
                ("storage.array1.controller_cache.write", "mirrored"),
                ("storage.array1.controller_cache.destages", DESTAGES),
                ("run.warmup", "0s"),
                ("run.duration", "60s"),
            ],
        }
    }

    fn lab(self, seed: u64) -> Result<Arc<Lab>, Failure> {
        let seed = ("run.seed", seed.to_string());
        let settings = self.settings().iter().map(|(key, value)| (*key, (*value).to_owned()));
        let overrides: Vec<Override> =
            settings.chain([seed]).map(|(key, value)| Override { key: key.to_owned(), value }).collect();
        let (name, text) = match self {
            Case::FcoeReads | Case::FcoeWrites | Case::FcoeOfTheLine => ("fcoe-two-ports.toml", FCOE_LAB),
            _ => ("array-150-disks.toml", LAB),
        };
        Ok(Arc::new(sanloom_lab::load(name, text, &overrides)?.lab))
    }
}

/// Requests and bytes per second of a run, and the processor time of its host per GB.
#[derive(Clone, Copy, Debug)]
struct Measured {
    iops: f64,
    bytes_per_s: f64,
    cpu_s_per_gb: f64,
}

/// Simulates a lab; returns `None` if the run was interrupted.
fn measure(lab: &Arc<Lab>) -> Option<Measured> {
    let results = run::run(lab, View::default()).results;
    let io = &results.totals.io;
    let cpu_s_per_gb = results.hosts.first().map_or(0.0, |host| host.cpu_s_per_gb);
    let measured = Measured { iops: io.iops, bytes_per_s: io.throughput_bytes_per_s, cpu_s_per_gb };
    (!results.lab.interrupted).then_some(measured)
}

fn judged(measured: [Measured; CASES.len()]) -> Vec<Verdict> {
    let [sequential_reads, sequential_writes, reads, steady, minute, fcoe @ ..] = measured;
    let shown = |id, what, paper, ours, unit| Verdict::shown(Kind::Prediction, id, what, paper, Some(ours), unit);
    let of_link = "the paper's servers and array lose some of the line rate, and the model loses none of it";
    let of_disk =
        "the disk is modelled from the data sheet of a Savvio 10K.4, which fits the text \"600G SAS 10K RPM\"";
    let mut verdicts = vec![
        shown("sequential-read", "sequential reads of 512 KiB, 120 threads", 1.56, sequential_reads.bytes_per_s / 1e9, "GB/s")
            .note("Two 8GFC lines carry 826 MB/s each.")
            .predicted(0.1)
            .tolerance_reason(of_link),
        shown("sequential-write", "sequential writes of 512 KiB, 120 threads", 1.55, sequential_writes.bytes_per_s / 1e9, "GB/s")
            .predicted(0.1)
            .tolerance_reason(of_link),
        shown("random-read", "random reads of 32 KiB, 240 threads", 20.0, reads.iops / 1e3, "k/s")
            .note("Assumed: LUNs fill 2 of 2.4 TB of their groups, so the arm crosses most of the disk; reads miss the cache.")
            .predicted(0.1)
            .tolerance_reason(of_disk),
        shown("random-write", "random writes of 32 KiB, 240 threads, steady state", 13.0, steady.iops / 1e3, "k/s")
            .note("Assumed: parity by read-modify-write, 4 accesses for each write, and 16 of them at each disk at once.")
            .predicted(0.1)
            .tolerance_reason(of_disk)
            .known_miss(
                "13 k/s would be 347 accesses per second at each disk, more than a disk of 10,000 rpm serves over this \
                 part of its surface. The text does not say how long the test was, nor how large the write cache.",
            ),
        Verdict::shown(
            Kind::Fit,
            "random-write-minute",
            "the same for a minute, with an empty write cache of 4 GiB at the start",
            13.0,
            Some(minute.iops / 1e3),
            "k/s",
        )
        .note("The size of the cache was chosen; it adds its requests once, which is 2.2 k/s over a minute."),
    ];
    verdicts.extend(over_fcoe(sequential_reads, fcoe));
    verdicts
}

/// Verdicts on two FCoE ports. `fibre` are the sequential reads over two lines of 8GFC.
fn over_fcoe(fibre: Measured, [reads, writes, of_line, hba]: [Measured; 4]) -> Vec<Verdict> {
    let shown = |kind, id, what, paper, ours, unit| Verdict::shown(kind, id, what, paper, Some(ours), unit);
    let of_link = "the paper's servers lose some of the line rate, and the model loses none of it";
    vec![
        shown(
            Kind::Input,
            "fcoe-read",
            "sequential reads of 512 KiB over two FCoE ports of 10 Gb/s",
            1.84,
            reads.bytes_per_s / 1e9,
            "GB/s",
        )
        .note("The limit of the array is given to the model; the lines would carry 2.40 GB/s."),
        shown(
            Kind::Input,
            "fcoe-write",
            "sequential writes of 512 KiB over FCoE",
            1.73,
            writes.bytes_per_s / 1e9,
            "GB/s",
        ),
        shown(Kind::Prediction, "fc-port", "a port of 8GFC, one direction", 800.0, fibre.bytes_per_s / 2e6, "MB/s")
            .predicted(0.05)
            .tolerance_reason(of_link),
        shown(Kind::Derived, "fcoe-port", "a port of FCoE, one direction", 920.0, reads.bytes_per_s / 2e6, "MB/s")
            .note("Half of the reads above."),
        shown(
            Kind::Derived,
            "fcoe-gain",
            "FCoE relative to FC, reads, with the limit of the array",
            1.18,
            reads.bytes_per_s / fibre.bytes_per_s,
            "",
        )
        .note("The report writes 15 %: 920 / 800 MB/s. Our FC loses nothing of its line."),
        shown(
            Kind::Comparison,
            "fcoe-gain-of-the-line",
            "the same without the limit of the array",
            1.15,
            of_line.bytes_per_s / fibre.bytes_per_s,
            "",
        )
        .note("The lines differ by 1.45: 1,198.5 against 825.8 MB/s. The 15 % of the report are those of its storage."),
        shown(Kind::Input, "fc-cpu", "processor time of FC", 0.192, hba.cpu_s_per_gb, "s/GB"),
        shown(Kind::Input, "fcoe-cpu", "processor time of FCoE", 0.245, reads.cpu_s_per_gb, "s/GB"),
        shown(
            Kind::Input,
            "fcoe-cpu-ratio",
            "processor time of FCoE relative to FC",
            1.27,
            reads.cpu_s_per_gb / hba.cpu_s_per_gb,
            "",
        )
        .note("30 % and 45 % of a core in the report, at 1.56 and 1.84 GB/s."),
    ]
}

/// Runs the reproduction.
///
/// # Errors
/// If a prediction misses unexpectedly, or an output cannot be written.
pub fn run(args: &SeededArgs) -> Result<(), Failure> {
    let folder = args.results.prepare("open-fcoe")?;
    let labs = CASES.iter().map(|case| case.lab(args.seed)).collect::<Result<Vec<_>, _>>()?;
    let finished = pool::all(args.threads, "runs", &labs, |_, lab| measure(lab))?;
    let measured: Option<Vec<Measured>> = finished.into_iter().collect();
    let measured = measured.and_then(|all| <[Measured; CASES.len()]>::try_from(all).ok());
    let measured = measured.ok_or_else(|| Failure::interrupted("not all runs are finished; nothing was written"))?;
    let verdicts = judged(measured);
    let title = "Document 002 (Open-FCoE), report \"FCoE VS FC\": an array of 150 disks over two paths of 8GFC";
    let command = format!("sanloom reproduce open-fcoe --seed {}", args.seed);
    let about = About { heading: "Open-FCoE's array, reproduced", title, note: None, command };
    args.results.publish(folder.as_deref(), &about, &verdicts)
}
