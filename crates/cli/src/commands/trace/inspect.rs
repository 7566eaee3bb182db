//! `sanloom trace inspect`: the statistics of a trace.

use super::Input;
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::outputs::{Json, is_stdout};
use sanloom_console::report::file;
use sanloom_console::report::format::{bytes, grouped, mb_per_s, percent, plain, seconds, us};
use sanloom_console::report::terminal::grid::{Column, Grid};
use sanloom_storage::trace::inspect::{Inspector, Limits, Sizes, Statistics, Times, synthetic};
use serde::Serialize;
use std::path::PathBuf;

/// Version of the JSON.
const SCHEMA_VERSION: u32 = 1;
/// Devices of the table; JSON contains all.
const DEVICES: usize = 20;

/// Options of `sanloom trace inspect`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Print a `[workload]` section for a lab file with the same statistics instead of text; with a
    /// file: write it there and print the text, too
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    workload: Option<PathBuf>,
    /// Name of the section
    #[arg(long, value_name = "NAME", default_value = "trace", value_parser = parse_name)]
    name: String,
    #[command(flatten)]
    json: Json,
}

fn parse_name(text: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !text.is_empty() && text.chars().all(is_name) {
        true => Ok(text.to_owned()),
        false => Err("write letters, digits, - and _".to_owned()),
    }
}

/// The statistics with their source.
#[derive(Serialize)]
struct Report<'a> {
    schema_version: u32,
    trace: String,
    format: &'static str,
    #[serde(flatten)]
    statistics: &'a Statistics,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    output::one_stdout(&[args.json.named(), ("--workload", args.workload.as_deref())])?;
    let mut reader = args.input.open()?;
    let mut inspector = Inspector::new(Limits::default());
    for request in &mut reader {
        inspector.add(&request.map_err(|error| args.input.failure(&error))?);
    }
    let statistics = inspector.statistics(reader.devices());
    let (trace, format) = (args.input.label(), reader.format().word());
    if let Some(path) = &args.workload {
        let section = synthetic(&statistics, &args.name, &trace);
        output::written(file::write_text(path, &section))?;
    }
    let report = Report { schema_version: SCHEMA_VERSION, trace, format, statistics: &statistics };
    args.json.write(&report)?;
    match args.json.is_stdout() || is_stdout(args.workload.as_deref()) {
        true => Ok(()),
        false => output::print(&text(&report)),
    }
}

fn text(report: &Report<'_>) -> String {
    let of = report.statistics;
    let mut text = format!(
        "{}: {}, {} requests in {}, {}/s, {}\n\n",
        report.trace,
        report.format,
        grouped(of.requests),
        seconds(of.duration_s),
        plain(of.iops),
        mb_per_s(of.throughput_bytes_per_s)
    );
    text.push_str(&mix(of));
    text.push_str(&arrivals(of));
    text.push_str(&locality(of));
    text.push_str(&devices(of));
    text
}

fn mix(of: &Statistics) -> String {
    let mut grid = Grid::new(vec![
        Column::left("operation"),
        Column::right("requests"),
        Column::right("share"),
        Column::right("bytes"),
        Column::right("mean size"),
        Column::right("median").rank(2),
        Column::right("p99").rank(3),
        Column::left("most frequent sizes").rank(1),
    ]);
    let mut row = |name: &str, requests: u64, moved: u64, sizes: Option<&Sizes>| {
        if requests == 0 {
            return;
        }
        let share = requests as f64 / of.requests as f64;
        let mut cells = vec![name.to_owned(), grouped(requests), percent(share), bytes(moved)];
        match sizes {
            Some(sizes) => {
                let frequent = sizes.frequent.iter().take(3).map(|size| {
                    format!("{} ({:.0} %)", bytes(size.bytes), size.requests as f64 / requests as f64 * 100.0)
                });
                cells.extend([sizes.mean_bytes as u64, sizes.p50_bytes, sizes.p99_bytes].map(bytes));
                cells.push(frequent.collect::<Vec<_>>().join(", "));
            }
            None => cells.extend(std::iter::repeat_n(String::new(), 4)),
        }
        grid.row(cells);
    };
    row("read", of.reads, of.bytes_read, Some(&of.read_sizes));
    row("write", of.writes, of.bytes_written, Some(&of.write_sizes));
    row("trim", of.trims, of.bytes_trimmed, None);
    row("flush", of.flushes, 0, None);
    grid.render(output::width())
}

fn arrivals(of: &Statistics) -> String {
    let mut text = String::new();
    let mut grid = Grid::new(vec![
        Column::left("time"),
        Column::right("mean"),
        Column::right("median"),
        Column::right("p90"),
        Column::right("p99"),
        Column::right("max"),
    ]);
    let mut rows = 0;
    let mut row = |name: &str, times: &Option<Times>| {
        if let Some(times) = times {
            let values = [times.mean_us, times.p50_us, times.p90_us, times.p99_us, times.max_us];
            grid.row([name.to_owned()].into_iter().chain(values.map(us)).collect());
            rows += 1;
        }
    };
    row("between arrivals", &of.arrivals.between);
    row("response", &of.response);
    row("think", &of.think);
    if rows > 0 {
        text.push('\n');
        text.push_str(&grid.render(output::width()));
    }
    if !of.arrivals.bursts.is_empty() {
        let mut grid = Grid::new(vec![
            Column::right("window"),
            Column::right("windows"),
            Column::right("index of dispersion (Poisson: 1)"),
        ]);
        for burst in &of.arrivals.bursts {
            grid.row(vec![seconds(burst.window_s), grouped(burst.windows), plain(burst.index_of_dispersion)]);
        }
        text.push('\n');
        text.push_str(&grid.render(output::width()));
        if let Some(hurst) = of.arrivals.hurst {
            text.push_str(&format!("Hurst parameter: {hurst:.2} (0.5: independent, towards 1: long bursts)\n"));
        }
    }
    text
}

fn locality(of: &Statistics) -> String {
    let (runs, local) = (&of.sequential, &of.locality);
    if of.reads + of.writes == 0 {
        return String::new();
    }
    let mut text = format!(
        "\nSequential: {} directly behind the request before, {} in one of 32 streams; {} requests per run on average\n",
        percent(runs.share),
        percent(runs.stream_share),
        plain(runs.mean_requests)
    );
    let how =
        if local.sampled < 1.0 { format!(", from {} of the blocks", percent(local.sampled)) } else { String::new() };
    text.push_str(&format!("Footprint: {} in blocks of 4 KiB{how}\n", bytes(local.footprint_bytes)));
    let hot = local.hot.iter().map(|hot| format!("{} to {:.0} %", percent(hot.accesses), hot.space * 100.0));
    text.push_str(&format!("Accesses to the hottest blocks: {} of them\n", hot.collect::<Vec<_>>().join(", ")));
    let distance = |bytes_of: Option<u64>| bytes_of.map_or_else(|| "none".to_owned(), bytes);
    text.push_str(&format!(
        "Reuse: {} of the accesses; distance: median {}, p90 {}\n",
        percent(local.reused),
        distance(local.reuse_p50_bytes),
        distance(local.reuse_p90_bytes)
    ));
    let mut grid = Grid::new(vec![Column::right("LRU cache"), Column::right("hits")]);
    // Every second size, counted from the largest.
    let mut shown: Vec<_> = local.lru.iter().rev().step_by(2).filter(|point| point.hits > 0.0).collect();
    shown.reverse();
    for point in &shown {
        grid.row(vec![bytes(point.bytes), percent(point.hits)]);
    }
    if !shown.is_empty() {
        text.push('\n');
        text.push_str(&grid.render(output::width()));
    }
    text
}

fn devices(of: &Statistics) -> String {
    let mut grid = Grid::new(vec![
        Column::left("device"),
        Column::right("requests"),
        Column::right("reads"),
        Column::right("bytes").rank(3),
        Column::right("sequential").rank(2),
        Column::right("footprint"),
        Column::right("end").rank(1),
    ]);
    let mut order: Vec<_> = of.devices.iter().collect();
    order.sort_by_key(|device| std::cmp::Reverse(device.requests));
    for device in order.iter().take(DEVICES) {
        let data = (device.reads + device.writes).max(1) as f64;
        grid.row(vec![
            device.name.clone(),
            grouped(device.requests),
            percent(device.reads as f64 / data),
            bytes(device.bytes),
            percent(device.sequential),
            bytes(device.footprint_bytes),
            bytes(device.end_bytes),
        ]);
    }
    grid.more(order.len().saturating_sub(DEVICES));
    if order.is_empty() { String::new() } else { format!("\n{}", grid.render(output::width())) }
}
