//! `sanloom reproduce open-fcoe`: the Open-FCoE slides, the report "FCoE VS FC" of EMC and Yahoo:
//! an array of 150 disks over two paths of 8GFC.

use super::verdict::{Kind, Verdict, sort_by_statement};
use super::{About, SeededArgs};
use sanloom_console::exit::Failure;
use sanloom_console::pool;
use sanloom_console::report::html::escape;
use sanloom_console::run::{self, View};
use sanloom_fc::san::Lab;
use sanloom_lab::Override;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The lab of random reads.
const LAB: &str = include_str!("../../../labs/array-150-disks.toml");
/// The lab of two FCoE ports.
const FCOE_LAB: &str = include_str!("../../../labs/fcoe-two-ports.toml");

/// The disks of [`LAB`] and its random requests in [`FCOE_LAB`], whose forwarder and bus are no
/// limit then.
const DISKS_OVER_FCOE: [(&str, &str); 11] = [
    ("storage.array1.bus.clock", "10GHz"),
    ("storage.array1.disk", "savvio-10k4"),
    ("storage.array1.raid.level", "raid5"),
    ("storage.array1.raid.disks", "5"),
    ("storage.array1.luns", "30"),
    ("storage.array1.lun_size", "2TiB"),
    ("workload.sequential.location", "random"),
    ("workload.sequential.depth", "240"),
    ("workload.sequential.size", "32KiB"),
    ("host.server1.queue_depth", "256"),
    ("host.server1.command_timeout", "60s"),
];
/// A full write cache, and the writes from it to the disks.
const FULL_CACHE: [(&str, &str); 5] = [
    ("storage.array1.controller_cache.size", "1GiB"),
    ("storage.array1.controller_cache.write", "mirrored"),
    ("storage.array1.controller_cache.destages", DESTAGES),
    ("run.warmup", "10s"),
    ("run.duration", "20s"),
];

/// Write cache that fills in the test of a minute, found by trial.
const WRITE_CACHE: &str = "4GiB";
/// Writes to the disks at once: sixteen for each.
const DESTAGES: &str = "2400";

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
    /// Random reads over FCoE from the disks. All ports are at one forwarder, and the disks decide.
    FcoeRandomReads,
    /// Random writes over FCoE to the disks and a full cache.
    FcoeSteadyWrites,
}

const CASES: [Case; 11] = [
    Case::SequentialReads,
    Case::SequentialWrites,
    Case::RandomReads,
    Case::SteadyWrites,
    Case::WritesOfAMinute,
    Case::FcoeReads,
    Case::FcoeWrites,
    Case::FcoeOfTheLine,
    Case::HbaReads,
    Case::FcoeRandomReads,
    Case::FcoeSteadyWrites,
];

impl Case {
    /// Returns the text of the lab, and its settings.
    fn setup(self) -> (&'static str, Vec<(&'static str, &'static str)>) {
        const SEQUENTIAL: [(&str, &str); 3] = [
            ("workload.random.location", "sequential"),
            ("workload.random.depth", "120"),
            ("workload.random.size", "512KiB"),
        ];
        const WRITES: (&str, &str) = ("workload.random.read_share", "0.0");
        const FCOE_WRITES: (&str, &str) = ("workload.sequential.read_share", "0.0");
        match self {
            Case::SequentialReads => (LAB, SEQUENTIAL.to_vec()),
            Case::SequentialWrites => (LAB, [&SEQUENTIAL[..], &[WRITES]].concat()),
            Case::RandomReads => (LAB, Vec::new()),
            Case::FcoeReads => (FCOE_LAB, Vec::new()),
            Case::FcoeWrites => {
                (FCOE_LAB, vec![FCOE_WRITES, ("storage.array1.bus.clock", "216.25MHz"), ("run.duration", "1s")])
            }
            Case::FcoeOfTheLine => (FCOE_LAB, vec![("storage.array1.bus.clock", "10GHz")]),
            Case::HbaReads => (LAB, [&SEQUENTIAL[..], &[("host.server1.preset", "server-2011")]].concat()),
            Case::SteadyWrites => (LAB, [&FULL_CACHE[..], &[WRITES]].concat()),
            Case::FcoeSteadyWrites => (FCOE_LAB, [&DISKS_OVER_FCOE[..], &FULL_CACHE, &[FCOE_WRITES]].concat()),
            Case::FcoeRandomReads => {
                let own = [
                    ("storage.array1.controller_cache.size", "4GiB"),
                    ("storage.array1.controller_cache.write", "back"),
                    ("run.warmup", "1s"),
                    ("run.duration", "4s"),
                ];
                (FCOE_LAB, [&DISKS_OVER_FCOE[..], &own].concat())
            }
            Case::WritesOfAMinute => {
                let own = [
                    ("storage.array1.controller_cache.size", WRITE_CACHE),
                    ("run.warmup", "0s"),
                    ("run.duration", "60s"),
                ];
                let cache = FULL_CACHE.into_iter().filter(|(key, _)| own.iter().all(|(other, _)| other != key));
                (LAB, own.into_iter().chain(cache).chain([WRITES]).collect())
            }
        }
    }

    fn lab(self, seed: u64) -> Result<Arc<Lab>, Failure> {
        let (text, settings) = self.setup();
        let settings = settings.into_iter().map(|(key, value)| (key, value.to_owned()));
        let overrides: Vec<Override> = settings
            .chain([("run.seed", seed.to_string())])
            .map(|(key, value)| Override { key: key.to_owned(), value })
            .collect();
        Ok(Arc::new(sanloom_lab::load("open-fcoe.toml", text, &overrides)?.lab))
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

/// Our number, unless a rate that it needs is 0.
fn known(ours: f64) -> Option<f64> {
    (ours.is_finite() && ours > 0.0).then_some(ours)
}

fn shown(kind: Kind, id: &str, what: &str, paper: f64, ours: f64, unit: &'static str) -> Verdict {
    Verdict::shown(kind, id, what, paper, known(ours), unit)
}

fn judged(measured: &BTreeMap<Case, Measured>) -> Vec<Verdict> {
    let mut verdicts = sequential(measured);
    let iops = |case| measured[&case].iops;
    let of_disk =
        "the disk is modelled from the data sheet of a Savvio 10K.4, which fits the text \"600G SAS 10K RPM\"";
    // A kind of random requests over both networks, and the ratio of the networks.
    let random = |id: &str, statement, [kind, more]: [&str; 2], paper: f64, note: &str, [fibre, fcoe]: [Case; 2]| {
        let row = |id: String, over, case| {
            let what = format!("random {kind} of {more}, over {over}");
            shown(Kind::Prediction, &id, &what, paper, iops(case) / 1e3, "k/s")
                .of(statement)
                .note(note)
                .predicted(0.1)
                .tolerance_reason(of_disk)
        };
        let ratio = 100.0 * iops(fcoe) / iops(fibre);
        let equal =
            shown(Kind::Prediction, &format!("{id}-equal"), &format!("random {kind}: FCoE / FC"), 100.0, ratio, "%")
                .of(statement)
                .predicted(0.02)
                .tolerance_reason("the report gives two digits, and calls random I/O \"about the same\"");
        ([row(id.to_owned(), "8GFC", fibre), row(format!("{id}-fcoe"), "FCoE", fcoe)], equal)
    };
    let (reads, equal_reads) = random(
        "random-read",
        "O4",
        ["reads", "32 KiB, 240 threads"],
        20.0,
        "Assumed: LUNs fill 2 of 2.4 TB of their groups, so the arm crosses most of the disk; reads miss the cache.",
        [Case::RandomReads, Case::FcoeRandomReads],
    );
    let (writes, equal_writes) = random(
        "random-write",
        "O5",
        ["writes", "32 KiB, 240 threads, steady state"],
        13.0,
        "Assumed: parity by read-modify-write, 4 accesses for each write, and 16 of them at each disk at once.",
        [Case::SteadyWrites, Case::FcoeSteadyWrites],
    );
    let too_many = "13 k/s would be 347 accesses per second at each disk, more than a disk of 10,000 rpm serves over this \
                    part of its surface. The text does not say how long the test was, nor how large the write cache.";
    let minute = shown(
        Kind::Fit,
        "random-write-minute",
        "the same over 8GFC for a minute, with an empty write cache of 4 GiB at the start",
        13.0,
        iops(Case::WritesOfAMinute) / 1e3,
        "k/s",
    )
    .of("O5")
    .held(0.1)
    .tolerance_reason(of_disk)
    .note("The size of the cache was chosen; it adds its requests once, which is 2.2 k/s over a minute.");
    verdicts.extend(reads);
    verdicts.push(equal_reads);
    verdicts.extend(writes.map(|row| row.known_miss(too_many)));
    verdicts.extend([minute, equal_writes]);
    verdicts
}

/// Verdicts on sequential requests, over two lines of 8GFC and over two FCoE ports.
fn sequential(measured: &BTreeMap<Case, Measured>) -> Vec<Verdict> {
    let [fc_reads, fc_writes] = [Case::SequentialReads, Case::SequentialWrites].map(|case| measured[&case]);
    let [reads, writes] = [Case::FcoeReads, Case::FcoeWrites].map(|case| measured[&case]);
    let [of_line, hba] = [Case::FcoeOfTheLine, Case::HbaReads].map(|case| measured[&case]);
    let gb = |kind, id, what, paper, of: Measured| shown(kind, id, what, paper, of.bytes_per_s / 1e9, "GB/s");
    let of_link = "94 to 97 % of a line are usual";
    let of_report = "the report gives three digits";
    let no_loss = "The model loses nothing of the line: two of 8GFC carry 1.65 GB/s, and the report has 94.5 % of it. Its \
                   text does not say where the rest is lost.";
    vec![
        gb(Kind::Prediction, "sequential-read", "sequential reads of 512 KiB, 120 threads, 8GFC", 1.56, fc_reads)
            .of("O1")
            .predicted(0.05)
            .tolerance_reason(of_link)
            .known_miss(no_loss),
        gb(Kind::Input, "fcoe-read", "the same over two FCoE ports of 10 Gb/s", 1.84, reads)
            .of("O2")
            .held(0.02)
            .tolerance_reason(of_report)
            .note("The limit of the array is given to the model; the lines would carry 2.40 GB/s."),
        gb(Kind::Prediction, "sequential-write", "sequential writes of 512 KiB, 120 threads, 8GFC", 1.55, fc_writes)
            .of("O3")
            .predicted(0.05)
            .tolerance_reason(of_link)
            .known_miss(no_loss),
        gb(Kind::Input, "fcoe-write", "the same over FCoE", 1.73, writes)
            .of("O3")
            .held(0.02)
            .tolerance_reason(of_report)
            .note("The limit of the array is given to the model here as well."),
        shown(Kind::Prediction, "fc-port", "a port of 8GFC, one direction", 800.0, fc_reads.bytes_per_s / 2e6, "MB/s")
            .of("O6")
            .predicted(0.05)
            .tolerance_reason(of_link),
        shown(Kind::Derived, "fcoe-port", "a port of FCoE, one direction", 920.0, reads.bytes_per_s / 2e6, "MB/s")
            .of("O6")
            .note("Half of the reads of O2."),
        shown(Kind::Input, "fc-cpu", "processor time of FC", 0.192, hba.cpu_s_per_gb, "s/GB")
            .of("O7")
            .held(0.02)
            .tolerance_reason(of_report),
        shown(Kind::Input, "fcoe-cpu", "processor time of FCoE", 0.245, reads.cpu_s_per_gb, "s/GB")
            .of("O7")
            .held(0.02)
            .tolerance_reason(of_report),
        shown(
            Kind::Input,
            "fcoe-cpu-ratio",
            "processor time of FCoE relative to FC",
            1.27,
            reads.cpu_s_per_gb / hba.cpu_s_per_gb,
            "",
        )
        .of("O7")
        .held(0.1)
        .tolerance_reason("the report rounds to 30 and 45 % of a core")
        .note("30 % and 45 % of a core in the report, at 1.56 and 1.84 GB/s."),
        shown(
            Kind::Derived,
            "fcoe-gain",
            "FCoE relative to FC, reads, with the limit of the array",
            1.18,
            reads.bytes_per_s / fc_reads.bytes_per_s,
            "",
        )
        .of("O8")
        .note("The report writes 15 %: 920 / 800 MB/s. Our FC loses nothing of its line."),
        shown(
            Kind::Derived,
            "fcoe-gain-writes",
            "the same for writes",
            1.12,
            writes.bytes_per_s / fc_writes.bytes_per_s,
            "",
        )
        .of("O8"),
        shown(
            Kind::Comparison,
            "fcoe-gain-of-the-line",
            "reads without the limit of the array",
            1.15,
            of_line.bytes_per_s / fc_reads.bytes_per_s,
            "",
        )
        .of("O8")
        .note("The lines differ by 1.45: 1,198.5 against 825.8 MB/s. The 15 % of the report are those of its storage."),
    ]
}

/// Statements that are not checked, with the reasons.
const NOT_CHECKED: [&str; 4] = [
    "O9 and O10 (the tests on Linux and Windows): the slides name processors, queue depths and targets; the charts with the \
     numbers are lost, so nothing can be compared.",
    "O11 (offloads): a list of features. Their effect, work for each sequence instead of each frame, is in the costs of O7.",
    "O12 (no advantage of HBA, CNA or full offload in applications): the charts of Exchange Jetstress are lost. The rows of \
     O4 and O5 show the same for random requests: the disks decide.",
    "O13 (profiles of a data mart and a warehouse, with peaks of 1 and 4 GB/s of reads): a load, and no result.",
];

/// Runs the reproduction.
///
/// # Errors
/// If a prediction misses unexpectedly, or an output cannot be written.
pub fn run(args: &SeededArgs) -> Result<(), Failure> {
    let folder = args.results.prepare("open-fcoe")?;
    let labs = CASES.iter().map(|case| case.lab(args.seed)).collect::<Result<Vec<_>, _>>()?;
    let finished = pool::all(args.threads, "runs", &labs, |_, lab| measure(lab))?;
    let measured: Option<Vec<Measured>> = finished.into_iter().collect();
    let measured = measured.ok_or_else(|| Failure::interrupted("not all runs are finished; nothing was written"))?;
    let measured = CASES.into_iter().zip(measured).collect();
    let mut verdicts = judged(&measured);
    sort_by_statement(&mut verdicts);
    let title = "Deuskar, Open-FCoE (2011), report \"FCoE VS FC\": an array of 150 disks over two paths of 8GFC";
    let command = format!("sanloom reproduce open-fcoe --seed {}", args.seed);
    let note = "Its charts are lost, so the numbers are those of its text. The report lists the statements that are not checked.";
    let about = About { heading: "Open-FCoE's array, reproduced", title, note: Some(note), command };
    let left_out: String = NOT_CHECKED.iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
    let sections = [("left-out", "Statements that are not checked", format!("<ul>\n{left_out}</ul>\n"))];
    args.results.publish(folder.as_deref(), &about, &verdicts, &sections)
}
