//! `sanloom bench io`: requests to disks over iSCSI, FCoE or NBD, over one path or several in turn.
//!
//! Absolute numbers of one machine mean little. The result is the ratio of two paths, which
//! alternate in short slices ([`super::statistics`]).

mod drawing;
pub(crate) mod measure;
mod path_spec;
mod session;
mod text;

use clap::ValueEnum;
use measure::Path;
use path_spec::{At, FORMS, PathSpec, parse_path};
use sanloom_console::chap::Chap;
use sanloom_console::endpoint::parse_iscsi_name;
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::file;
use sanloom_scsi::iscsi::Parameters;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `sanloom bench io`.
#[derive(clap::Args, Debug)]
#[command(after_help = "A disk is written as\n  127.0.0.1:3260/iqn.2026-11.net.example:disk/0        over iSCSI\n  \
                  fcoe:50:00:00:00:00:00:00:01/0@eth1                  over FCoE: target port, LUN, and our port as in --port\n  \
                  \x20                                                    of `sanloom initiator`; ,vlan=N|auto ,wwpn=WWPN\n  \
                  \x20                                                    ,mac=MAC may precede @\n  \
                  nbd+unix:///EXPORT?socket=PATH                       an export of an NBD server\n\
                  NAME= in front gives a path a name\n\n\
                  Example:\n  sanloom bench io 127.0.0.1:3260/iqn.2026-11.net.example:disk/0 --size 4K --depth 8")]
pub struct Args {
    /// Disks to measure, one for each path; ratios are relative to the first one
    #[arg(value_name = FORMS, required = true, value_parser = parse_path)]
    paths: Vec<PathSpec>,
    /// Bytes of a request, such as 4K,64K,1M
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "4K,64K,512K", value_parser = parse_size)]
    size: Vec<u32>,
    /// Requests in flight in each session
    #[arg(
        long,
        value_name = "DEPTHS",
        value_delimiter = ',',
        default_value = "1,8,32",
        value_parser = quantity::count::<u32>(1..=1024)
    )]
    depth: Vec<u32>,
    /// Kinds of requests
    #[arg(long, value_enum, value_delimiter = ',', default_value = "read")]
    op: Vec<Op>,
    /// Use random addresses instead of sequential ones
    #[arg(long)]
    random: bool,
    /// Sessions on each path at the same time, each with a thread; over FCoE, one login with that
    /// many times the requests
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::count::<u32>(1..=256))]
    sessions: u32,
    /// Length of each slice, in seconds or with a unit; the paths alternate slice by slice
    #[arg(long, value_name = "TIME", default_value = "0.2", value_parser = quantity::seconds)]
    seconds: f64,
    /// Slices of each path; medians are printed, and an interval of 95 % requires six
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = quantity::count::<u32>(1..=999))]
    rounds: u32,
    /// Process whose processor time is counted for a path, such as switch=1234; may be repeated
    #[arg(long = "pid", value_name = "NAME=PID", value_parser = parse_pid)]
    pids: Vec<(String, u32)>,
    /// Use CRC-32C digests of headers and data on all paths, or on this one
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = EVERY)]
    digests: Vec<String>,
    /// Permit writes, which destroy the data on the disks
    #[arg(long)]
    overwrite: bool,
    /// iSCSI name of this initiator
    #[arg(long, value_name = "NAME", default_value = "iqn.2026-11.example.sanloom:bench", value_parser = parse_iscsi_name)]
    iscsi_name: String,
    #[command(flatten)]
    chap: Chap,
    #[command(flatten)]
    outputs: Outputs,
    /// Old spelling of `--html=FILE`
    #[arg(long, value_name = "FILE", hide = true)]
    plot: Option<PathBuf>,
}

/// Value of `--digests` that stands for all paths.
const EVERY: &str = "*";

impl Args {
    fn has_digests(&self, path: &str) -> bool {
        self.digests.iter().any(|name| name == EVERY || name == path)
    }
}

/// Kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Reads
    Read,
    /// Writes
    Write,
}

/// Results of all combinations.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Sessions on each path at the same time.
    pub sessions: u32,
    /// True if the addresses were random.
    pub random: bool,
    /// Seconds of each slice.
    pub seconds: f64,
    /// Slices of each path.
    pub rounds: u32,
    /// Paths with their negotiated parameters.
    pub paths: Vec<Agreed>,
    /// One element for each combination of kind, size and depth.
    pub cells: Vec<Cell>,
    /// Geometric means of the ratios to the first path.
    pub means: Vec<Mean>,
}

/// A path with its negotiated parameters.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Agreed {
    /// Name of the path.
    pub name: String,
    /// Address of the disk.
    pub target: String,
    /// Negotiated parameters.
    #[serde(flatten)]
    pub terms: Terms,
}

/// Negotiated parameters of a path, by transport.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "transport", rename_all = "lowercase")]
pub enum Terms {
    /// Over TCP.
    Iscsi(IscsiTerms),
    /// Over Ethernet.
    Fcoe(FcoeTerms),
    /// Over a unix socket.
    Nbd(NbdTerms),
}

/// Parameters of a login over FCoE.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FcoeTerms {
    /// Our address, six hexadecimal digits.
    pub port_id: String,
    /// Address of the target port.
    pub target_id: String,
    /// Longest data field of a frame, in bytes.
    pub receive_bytes: u16,
    /// Longest command, in bytes.
    pub max_transfer_bytes: u64,
}

/// Parameters of an export of an NBD server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NbdTerms {
    /// Size of the export.
    pub export_bytes: u64,
    /// Every request is a multiple of this, in bytes.
    pub min_bytes: u32,
    /// Longest request, in bytes.
    pub max_bytes: u32,
}

/// Negotiated parameters of an iSCSI session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct IscsiTerms {
    /// Longest data segment to the target, in bytes.
    pub send_bytes: u32,
    /// Longest data segment from the target, in bytes.
    pub receive_bytes: u32,
    /// Longest burst, in bytes.
    pub max_burst_bytes: u32,
    /// Limit of unsolicited data, in bytes.
    pub first_burst_bytes: u32,
    /// True if data other than immediate data require an R2T.
    pub initial_r2t: bool,
    /// True if data may come with the command.
    pub immediate_data: bool,
    /// R2Ts of one task at the same time.
    pub max_outstanding_r2t: u16,
    /// CRC-32C behind headers, behind data.
    pub digests: [bool; 2],
}

impl IscsiTerms {
    fn of(p: &Parameters) -> IscsiTerms {
        IscsiTerms {
            send_bytes: p.send_bytes,
            receive_bytes: p.receive_bytes,
            max_burst_bytes: p.max_burst_bytes,
            first_burst_bytes: p.first_burst_bytes,
            initial_r2t: p.initial_r2t,
            immediate_data: p.immediate_data,
            max_outstanding_r2t: p.max_outstanding_r2t,
            digests: [p.header_digest, p.data_digest],
        }
    }
}

/// One combination of kind, size and depth, on each path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// Kind of the requests.
    pub op: Op,
    /// Bytes of a request.
    pub size_bytes: u32,
    /// Requests in flight in each session.
    pub depth: u32,
    /// Results of each path.
    pub paths: Vec<Row>,
}

/// Results of one path in a cell: medians of its slices.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Name of the path.
    pub name: String,
    /// Megabytes (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// The same for each slice.
    pub rounds_mb_per_s: Vec<f64>,
    /// Median of the ratios of throughput to the first path, slice by slice.
    pub ratio: f64,
    /// Confidence interval of `ratio`: at 95 % or more if there are six slices, the range
    /// otherwise.
    pub ratio_interval: [f64; 2],
    /// Requests per second.
    pub iops: f64,
    /// Percentiles of the latency of all slices, in microseconds: 50, 95, 99 and 99.9 %.
    pub latency_us: [f64; 4],
    /// Median latency of each slice, in microseconds.
    pub rounds_p50_us: Vec<f64>,
    /// Processor time of our threads, in milliseconds per 10^9 bytes.
    pub own_cpu_ms_per_gb: f64,
    /// Processor time of the named processes of the path, in milliseconds per 10^9 bytes.
    pub process_cpu_ms_per_gb: Option<f64>,
    /// The same for each slice.
    pub rounds_process_cpu_ms_per_gb: Option<Vec<f64>>,
}

/// Comparison of a path with the first one over all sizes and depths.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Mean {
    /// Name of the path.
    pub name: String,
    /// Kind of the requests.
    pub op: Op,
    /// Geometric mean over the cells of the ratio of throughput: median of the slices.
    pub ratio: f64,
    /// Confidence interval of `ratio`, as in [`Row`].
    pub ratio_interval: [f64; 2],
}

/// Measures all paths, and prints the results.
///
/// # Errors
/// If a target cannot be reached or fails, an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    if args.op.contains(&Op::Write) && !args.overwrite {
        return Err(Failure::usage(
            "writes destroy the data on the disk; permit that with --overwrite, or omit --op write",
        ));
    }
    let names: Vec<&str> = args.paths.iter().map(|path_spec| path_spec.name.as_str()).collect();
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(*name)) {
        return Err(Failure::usage(format_args!("two paths have the name {}; give them names, as in near=…", twice.1)));
    }
    if let Some((name, _)) = args.pids.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        return Err(Failure::usage(format_args!(
            "--pid {name}=…: no path has this name; the paths are {}",
            names.join(", ")
        )));
    }
    if let Some(name) = args.digests.iter().find(|name| *name != EVERY && !names.contains(&name.as_str())) {
        return Err(Failure::usage(format_args!(
            "--digests={name}: no path has this name; the paths are {}",
            names.join(", ")
        )));
    }
    let report = measured(args)?;
    if let Some(path) = &args.plot {
        output::written(file::write_text(path, &drawing::page(&report)))?;
    }
    args.outputs.write_files("io", &report, &report.cells, &|| drawing::page(&report))?;
    if args.outputs.is_stdout() { Ok(()) } else { output::print(&report.text()) }
}

fn measured(args: &Args) -> Result<Report, Failure> {
    let mut paths = Vec::new();
    for (number, path_spec) in args.paths.iter().enumerate() {
        paths.push(Path::open(args, path_spec, number)?);
    }
    measure::measure(args, &mut paths)
}

/// A path of a [`Comparison`].
pub struct Compared {
    /// Name of the path.
    pub name: &'static str,
    /// Portal of the target.
    pub portal: SocketAddr,
    /// Further portals, which may belong to other targets of this name; sessions use all in turn.
    pub more: Vec<SocketAddr>,
    /// iSCSI name of the target.
    pub target: String,
    /// Logical unit.
    pub lun: u16,
    /// Processes whose processor time is counted.
    pub pids: Vec<u32>,
    /// True for CRC-32C digests of headers and data.
    pub digests: bool,
    /// Sessions of this path, if they are not those of the comparison.
    pub sessions: Option<u32>,
}

/// A measurement of several paths with requests at random addresses.
pub struct Comparison {
    /// Paths; ratios are relative to the first one.
    pub paths: Vec<Compared>,
    /// Bytes of a request.
    pub size: Vec<u32>,
    /// Requests in flight in each session.
    pub depth: Vec<u32>,
    /// Kinds of requests. Writes destroy the data on the disks.
    pub op: Vec<Op>,
    /// Sessions on each path at the same time.
    pub sessions: u32,
    /// Seconds of each slice.
    pub seconds: f64,
    /// Slices of each path.
    pub rounds: u32,
}

impl Comparison {
    /// Measures all paths.
    ///
    /// # Errors
    /// If a target cannot be reached or fails, or Ctrl-C was pressed.
    pub fn run(self) -> Result<Report, Failure> {
        let Comparison { paths, size, depth, op, sessions, seconds, rounds } = self;
        let pids = paths.iter().flat_map(|path| path.pids.iter().map(|&pid| (path.name.to_owned(), pid))).collect();
        let with = paths.iter().filter(|path| path.digests).map(|path| path.name.to_owned());
        let digests = with.collect();
        let path_spec = |path: Compared| {
            let Compared { name, portal, more, target, lun, sessions, .. } = path;
            PathSpec { name: name.to_owned(), at: At::Iscsi { portal, target, lun }, sessions, more }
        };
        let args = Args {
            paths: paths.into_iter().map(path_spec).collect(),
            size,
            depth,
            op,
            random: true,
            sessions,
            seconds,
            rounds,
            pids,
            digests,
            overwrite: true,
            iscsi_name: "iqn.2026-11.example.sanloom:bench".to_owned(),
            chap: Chap::default(),
            outputs: Outputs::default(),
            plot: None,
        };
        measured(&args)
    }
}

impl Report {
    /// Returns the table for a terminal.
    pub fn text(&self) -> String {
        text::text(self)
    }
}

impl Args {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// Reads a size of a request; a number without a unit counts bytes.
pub fn parse_size(text: &str) -> Result<u32, String> {
    let bytes = quantity::size::<u32>(512..=16 << 20, quantity::BYTES)(text).ok();
    bytes
        .filter(|bytes| bytes.is_multiple_of(512))
        .ok_or_else(|| "write a multiple of 512 bytes up to 16M, such as 4K".to_owned())
}

fn parse_pid(text: &str) -> Result<(String, u32), String> {
    let parsed = text.split_once('=').and_then(|(name, pid)| Some((name.to_owned(), pid.parse().ok()?)));
    parsed.ok_or_else(|| "write the name of a path and a process number, as in switch=1234".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_blocks() {
        assert_eq!([parse_size("4K"), parse_size("512"), parse_size("1MiB")], [Ok(4096), Ok(512), Ok(1 << 20)]);
        for wrong in ["", "4", "4x", "100", "17M", "99999999999"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
