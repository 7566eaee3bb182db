//! `sanloom trace`: statistics of a trace of requests, other formats of it, and traces of labs.

mod convert;
mod inspect;
mod record;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use sanloom_console::exit::Failure;
use sanloom_console::input::LabFile;
use sanloom_console::quantity;
use sanloom_storage::trace::{BlockEvent, Format, Pattern, Settings, TraceError, TraceReader};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Options of `sanloom trace`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand, Debug)]
enum Question {
    /// Show the statistics of a trace: mix, sizes, rate, bursts, sequential runs, locality, devices
    #[command(after_help = "Example:\n  sanloom trace inspect financial.spc.gz --workload=oltp.toml")]
    Inspect(Box<inspect::Args>),
    /// Write a trace in another format
    #[command(after_help = "Example:\n  sanloom trace convert financial.spc.gz financial.iolog --to fio-3")]
    Convert(Box<convert::Args>),
    /// Simulate a lab and write the requests of its hosts as a trace, or write those that the
    /// storage systems of a running lab receive
    #[command(after_help = "Example:\n  sanloom trace record examples/workload-mix.toml mix.fio --host server1")]
    Record(Box<record::Args>),
}

/// The trace and its format.
#[derive(clap::Args, Debug)]
struct Input {
    /// Trace, also compressed by gzip or zstd; `-` reads it from standard input
    #[arg(value_name = "TRACE")]
    path: PathBuf,
    /// Format of the trace [default: recognised from its first lines]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    format: Option<String>,
    /// Regular expression of a line, with the groups time, offset, length and op, and optionally
    /// device, response and think: `(?<time>[0-9.]+) (?<op>[RW]) ...`
    #[arg(long, value_name = "REGEX")]
    regex: Option<String>,
    /// Unit of the times of --regex and of the format mqsim: s, ms, us, ns or 100ns [default: us
    /// with --regex, ns with mqsim]
    #[arg(long, value_name = "UNIT", value_parser = parse_time_unit)]
    time_unit: Option<u64>,
    /// Unit of the group offset of --regex, for example 512B
    #[arg(long, value_name = "SIZE", requires = "regex", default_value = "1B", value_parser = quantity::size::<u64>(1..=1 << 30, quantity::BYTES))]
    offset_unit: u64,
    /// Unit of the group length of --regex, for example 512B
    #[arg(long, value_name = "SIZE", requires = "regex", default_value = "1B", value_parser = quantity::size::<u64>(1..=1 << 30, quantity::BYTES))]
    length_unit: u64,
    /// Skip lines that --regex does not match, such as headers
    #[arg(long, requires = "regex")]
    skip_unmatched: bool,
    /// Event of blktrace and blkparse that is a request: queue, issue or complete
    #[arg(long, value_name = "EVENT", default_value = "queue", value_parser = ["queue", "issue", "complete"])]
    event: String,
    /// Number of requests that are sorted by time; the formats require traces in the order of time
    #[arg(long, value_name = "N", default_value = "1024", value_parser = quantity::count::<usize>(1..=1 << 20))]
    reorder: usize,
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(Format::ALL.map(Format::word))
}

/// Picoseconds of a unit of time.
fn parse_time_unit(text: &str) -> Result<u64, String> {
    match text {
        "s" => Ok(1_000_000_000_000),
        "ms" => Ok(1_000_000_000),
        "us" => Ok(1_000_000),
        "100ns" => Ok(100_000),
        "ns" => Ok(1_000),
        _ => Err("write s, ms, us, ns or 100ns".to_owned()),
    }
}

impl Input {
    /// Name of the trace in messages.
    fn label(&self) -> String {
        LabFile { path: self.path.clone() }.label()
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let format = self.format.as_deref().and_then(Format::from_word);
        let pattern = match &self.regex {
            Some(expression) => {
                let unit = self.time_unit.unwrap_or(1_000_000);
                let pattern =
                    Pattern::new(expression).map_err(|error| Failure::usage(format_args!("--regex: {error}")))?;
                let pattern = pattern.time_unit_ps(unit).response_unit_ps(unit).skip_unmatched(self.skip_unmatched);
                Some(pattern.offset_unit_bytes(self.offset_unit).length_unit_bytes(self.length_unit))
            }
            None => None,
        };
        let event = match self.event.as_str() {
            "issue" => BlockEvent::Issue,
            "complete" => BlockEvent::Complete,
            _ => BlockEvent::Queue,
        };
        let mqsim_unit_ps = self.time_unit.unwrap_or(1_000);
        Ok(Settings { format, reorder: self.reorder, event, mqsim_unit_ps, pattern })
    }

    fn open(&self) -> Result<TraceReader<'static>, Failure> {
        let source: Box<dyn Read + Send> = if self.path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            let file = File::open(&self.path);
            let wrong = |error| Failure::usage(format_args!("cannot read the trace {}: {error}", self.label()));
            Box::new(file.map_err(wrong)?)
        };
        let reader = TraceReader::new(source, &self.settings()?).map_err(|error| self.failure(&error))?;
        match reader.format() {
            Format::Mqsim | Format::Regex => Ok(reader),
            format if self.time_unit.is_some() => Err(Failure::usage(format_args!(
                "--time-unit has no effect, because the format {} has a unit of its own; leave it out",
                format.word()
            ))),
            _ => Ok(reader),
        }
    }

    /// Failure of an error in the trace.
    fn failure(&self, error: &TraceError) -> Failure {
        let message = format!("{}: {error}", self.label());
        if error.is_io() { Failure::environment(message) } else { Failure::usage(message) }
    }
}

/// Runs the subcommand.
///
/// # Errors
/// When the trace or lab is invalid, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.question {
        Question::Inspect(args) => inspect::run(args),
        Question::Convert(args) => convert::run(args),
        Question::Record(args) => record::run(args),
    }
}
