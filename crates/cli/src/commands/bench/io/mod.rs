//! `sanloom bench io`: requests to disks over iSCSI, FCoE or NBD, over one path or several in turn.
//!
//! Absolute numbers of one machine mean little: what counts is the ratio of two paths, measured in alternating order.

mod drawing;
mod measure;
mod place;
mod session;
mod text;

use super::super::chap::Chap;
use crate::exit::Failure;
use crate::output;
use crate::report::file;
use clap::ValueEnum;
use measure::Path;
use place::{At, FORMS, Place, parse_name, parse_path};
use sanloom_core::iscsi::Parameters;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `sanloom bench io`.
#[derive(clap::Args, Debug)]
#[command(after_help = "A disk is written as\n  127.0.0.1:3260/iqn.2026-11.net.example:disk/0        over iSCSI\n  \
                  fcoe:50:00:00:00:00:00:00:01/0@eth1                  over FCoE: target port, LUN, and our port as --port of\n  \
                  \x20                                                    `sanloom initiator` has it; in front of @ may stand\n  \
                  \x20                                                    ,vlan=N|auto ,wwpn=WWPN ,mac=MAC\n  \
                  nbd+unix:///EXPORT?socket=PATH                       an export of an NBD server\n\
                  with a name and = in front, if you like")]
pub struct Args {
    /// Where the requests go; ratios are to the first one
    #[arg(value_name = FORMS, required = true, value_parser = parse_path)]
    paths: Vec<Place>,
    /// Bytes of a request, such as 4K,64K,1M
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "4K,64K,512K", value_parser = parse_size)]
    size: Vec<u32>,
    /// Requests at a time of each session
    #[arg(long, value_name = "DEPTHS", value_delimiter = ',', default_value = "1,8,32", value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: Vec<u32>,
    /// What is done
    #[arg(long, value_enum, value_delimiter = ',', default_value = "read")]
    op: Vec<Op>,
    /// At random places instead of one behind the other
    #[arg(long)]
    random: bool,
    /// Sessions at once on each path, each with a thread; over FCoE, as many times the requests in one login
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    sessions: u32,
    /// Seconds of each measurement
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
    seconds: f64,
    /// How often each is measured; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Processes whose processor time is counted for a path, such as switch=1234
    #[arg(long = "pid", value_name = "NAME=PID", value_parser = parse_pid)]
    pids: Vec<(String, u32)>,
    /// CRC-32C behind headers and data, of all paths or of this one
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = EVERY)]
    digests: Vec<String>,
    /// Writes destroy what is there: say that they may
    #[arg(long)]
    overwrite: bool,
    /// iSCSI name of this initiator
    #[arg(long, value_name = "NAME", default_value = "iqn.2026-11.example.sanloom:bench", value_parser = parse_name)]
    iscsi_name: String,
    #[command(flatten)]
    chap: Chap,
    /// Write the numbers as JSON into this file; `-` for standard output, which then has no table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Draw the numbers by size of a request into this file, a page of HTML
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// All paths.
const EVERY: &str = "*";

impl Args {
    /// CRC-32C behind headers and data of this path.
    fn has_digests(&self, path: &str) -> bool {
        self.digests.iter().any(|name| name == EVERY || name == path)
    }
}

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Reads
    Read,
    /// Writes
    Write,
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Sessions at once on each path.
    pub sessions: u32,
    /// Whether places were random.
    pub random: bool,
    /// Seconds of each measurement.
    pub seconds: f64,
    /// How often each was measured.
    pub rounds: u32,
    /// Paths, with what was agreed on each.
    pub paths: Vec<Agreed>,
    /// Each combination.
    pub cells: Vec<Cell>,
    /// Geometric means of the ratios to the first path.
    pub means: Vec<Mean>,
}

/// A path, and what was agreed on it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Agreed {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub target: String,
    /// What was agreed.
    #[serde(flatten)]
    pub terms: Terms,
}

/// What both ends of a path have agreed, by what carries the requests.
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

/// What a login over FCoE came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FcoeTerms {
    /// Our address, six hexadecimal digits.
    pub port_id: String,
    /// That of the target port.
    pub target_id: String,
    /// Longest data field of a frame, in bytes.
    pub receive_bytes: u16,
    /// Longest command, in bytes.
    pub max_transfer_bytes: u64,
}

/// What an NBD server says of an export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NbdTerms {
    /// Its size.
    pub export_bytes: u64,
    /// Requests are multiples of this, in bytes.
    pub min_bytes: u32,
    /// Longest request, in bytes.
    pub max_bytes: u32,
}

/// What a session over TCP has agreed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct IscsiTerms {
    /// Longest data segment towards the target, in bytes.
    pub send_bytes: u32,
    /// Longest data segment from the target, in bytes.
    pub receive_bytes: u32,
    /// Longest burst, in bytes.
    pub max_burst_bytes: u32,
    /// Most unasked data, in bytes.
    pub first_burst_bytes: u32,
    /// Data come only when asked for, but for immediate data.
    pub initial_r2t: bool,
    /// Data may come with the command.
    pub immediate_data: bool,
    /// R2Ts of one task at once.
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

/// One size, depth and kind of request, on each path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// What was done.
    pub op: Op,
    /// Bytes of a request.
    pub size_bytes: u32,
    /// Requests at a time of each session.
    pub depth: u32,
    /// Each path.
    pub paths: Vec<Row>,
}

/// One path in a cell: medians of the rounds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The path.
    pub name: String,
    /// Megabytes (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// The same of each round.
    pub rounds_mb_per_s: Vec<f64>,
    /// Median of the ratios to the first path, round by round.
    pub ratio: f64,
    /// Requests per second.
    pub iops: f64,
    /// Percentiles of the latency of all rounds, in microseconds: 50, 95, 99 and 99.9 %.
    pub latency_us: [f64; 4],
    /// Processor time of our threads, in milliseconds for each 10^9 bytes.
    pub own_cpu_ms_per_gb: f64,
    /// The same of the processes that were named for the path.
    pub process_cpu_ms_per_gb: Option<f64>,
}

/// How a path compares over all sizes and depths.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Mean {
    /// The path.
    pub name: String,
    /// What was done.
    pub op: Op,
    /// Geometric mean of the ratios of throughput to the first path.
    pub ratio: f64,
}

/// Measures, and prints what was measured.
///
/// # Errors
/// When a target is not there or fails, something cannot be written, or Ctrl-C came.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.op.contains(&Op::Write) && !args.overwrite {
        return Err(Failure::usage(
            "writes destroy what is on the disk; add --overwrite if it may go, or leave --op write away",
        ));
    }
    let names: Vec<&str> = args.paths.iter().map(|place| place.name.as_str()).collect();
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(*name)) {
        return Err(Failure::usage(format_args!("two paths are called {}; name them, as in near=…", twice.1)));
    }
    if let Some((name, _)) = args.pids.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        return Err(Failure::usage(format_args!(
            "--pid {name}=…: no path has this name; there are {}",
            names.join(", ")
        )));
    }
    if let Some(name) = args.digests.iter().find(|name| *name != EVERY && !names.contains(&name.as_str())) {
        return Err(Failure::usage(format_args!(
            "--digests={name}: no path has this name; there are {}",
            names.join(", ")
        )));
    }
    let report = measured(args)?;
    if let Some(path) = &args.plot {
        output::written(file::write_text(path, &drawing::page(&report)))?;
    }
    super::report(args.json.as_deref(), &report, &report.text())
}

fn measured(args: &Args) -> Result<Report, Failure> {
    let mut paths = Vec::new();
    for (number, place) in args.paths.iter().enumerate() {
        paths.push(Path::open(args, place, number)?);
    }
    measure::measure(args, &mut paths)
}

/// A path of a [`Comparison`].
pub struct Compared {
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub portal: SocketAddr,
    /// iSCSI name.
    pub target: String,
    /// Logical unit.
    pub lun: u16,
    /// The processes in between.
    pub pids: Vec<u32>,
    /// CRC-32C behind headers and data.
    pub digests: bool,
}

/// What is measured on all paths, at random places.
pub struct Comparison {
    /// The paths; ratios are to the first one.
    pub paths: Vec<Compared>,
    /// Bytes of a request.
    pub size: Vec<u32>,
    /// Requests at a time.
    pub depth: Vec<u32>,
    /// What is done. Writes destroy what is there.
    pub op: Vec<Op>,
    /// Sessions at once on each path.
    pub sessions: u32,
    /// Seconds of each measurement.
    pub seconds: f64,
    /// How often each is measured.
    pub rounds: u32,
}

impl Comparison {
    /// Measures.
    ///
    /// # Errors
    /// When a target is not there or fails, or Ctrl-C came.
    pub fn run(self) -> Result<Report, Failure> {
        let Comparison { paths, size, depth, op, sessions, seconds, rounds } = self;
        let pids = paths.iter().flat_map(|path| path.pids.iter().map(|&pid| (path.name.to_owned(), pid))).collect();
        let with = paths.iter().filter(|path| path.digests).map(|path| path.name.to_owned());
        let digests = with.collect();
        let place = |path: Compared| {
            let Compared { name, portal, target, lun, .. } = path;
            Place { name: name.to_owned(), at: At::Iscsi { portal, target, lun } }
        };
        let args = Args {
            paths: paths.into_iter().map(place).collect(),
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
            json: None,
            plot: None,
        };
        measured(&args)
    }
}

impl Report {
    /// As a table.
    pub fn text(&self) -> String {
        text::text(self)
    }
}

impl Args {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

pub fn parse_size(text: &str) -> Result<u32, String> {
    const MAX_BYTES: u32 = 16 << 20;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        _ => 0,
    };
    let bytes = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    bytes
        .filter(|bytes| (512..=MAX_BYTES).contains(bytes) && bytes.is_multiple_of(512))
        .ok_or_else(|| "write a multiple of 512 bytes up to 16M, such as 4K".to_owned())
}

pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok();
    seconds
        .filter(|seconds| (0.01..=3600.0).contains(seconds))
        .ok_or_else(|| "write seconds from 0.01 to 3600".to_owned())
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
