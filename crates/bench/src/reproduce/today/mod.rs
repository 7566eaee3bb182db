//! `sanloom reproduce today`: the comparison of the GUPFS report, section 4, with the rates of
//! today.

mod labs;

use super::SeededArgs;
use super::gupfs::by_size;
use labs::{DEPTH, Fabric};
use sanloom_console::exit::Failure;
use sanloom_console::report::html::{Cell, Table, escape, plain_page};
use sanloom_console::report::plot::{self, Plot, PlotCurve};
use sanloom_console::report::terminal::grid::{Column, Grid, wrap};
use sanloom_console::report::{file, json};
use sanloom_console::run::{self, View};
use sanloom_console::{output, pool};
use sanloom_fc::san::Lab;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// Sizes of the requests.
const SIZES_KIB: [u32; 5] = [4, 16, 64, 256, 1_024];

const TITLE: &str = "One host and one array behind the fabrics of today: random reads";
const NOTE: &str = "The GUPFS report compared the fabrics of 2003 and gives no numbers for this table. The host (preset \
                    server-2021, 32 cores) and the array (80 us for a request, 64 at once) are the same for all fabrics. \
                    Latency is that of one request at a time; throughput, processor time and the loaded latency are those \
                    of 32 in flight. The costs of the host are assumptions except those of TCP, see the preset. One \
                    core handles what a NIC receives, and its 5.2 GB/s end iSCSI at 100 GbE. The bus of the host, PCI \
                    Express 4.0 with 16 lanes, ends SRP over NDR at 31.5 GB/s.";

/// Numbers of one fabric and size; an element of the JSON list.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Row {
    /// Name of the fabric.
    fabric: &'static str,
    size_kib: u32,
    /// With 32 requests in flight.
    throughput_bytes_per_s: f64,
    /// Throughput as a share of the data that the line carries.
    share_of_line: f64,
    /// One request at a time.
    p50_us: f64,
    p99_us: f64,
    /// With 32 requests in flight.
    loaded_p50_us: f64,
    loaded_p99_us: f64,
    /// Processor time of the host per 10^9 bytes, with 32 requests in flight.
    cpu_s_per_gb: f64,
}

/// Numbers of a run.
#[derive(Clone, Copy, Debug)]
struct Measured {
    bytes_per_s: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_s_per_gb: f64,
}

/// Simulates a lab; returns `None` if the run was interrupted.
fn measure(lab: &Arc<Lab>) -> Option<Measured> {
    let results = run::run(lab, View::default()).results;
    let host = results.hosts.first()?;
    let measured = Measured {
        bytes_per_s: results.totals.io.throughput_bytes_per_s,
        p50_us: results.totals.io.latency.p50_us,
        p99_us: results.totals.io.latency.p99_us,
        cpu_s_per_gb: host.cpu_s_per_gb,
    };
    (!results.lab.interrupted).then_some(measured)
}

/// Returns the rows, by size and then by fabric, from the runs with one request and with many.
fn rows(measured: &[Measured]) -> Vec<Row> {
    let cases = SIZES_KIB.into_iter().flat_map(|size| Fabric::ALL.map(|fabric| (size, fabric)));
    let row = |((size_kib, fabric), pair): ((u32, Fabric), &[Measured])| {
        let (alone, busy) = (pair[0], pair[1]);
        Row {
            fabric: fabric.name(),
            size_kib,
            throughput_bytes_per_s: busy.bytes_per_s,
            share_of_line: busy.bytes_per_s / fabric.line_bytes_per_s(),
            p50_us: alone.p50_us,
            p99_us: alone.p99_us,
            loaded_p50_us: busy.p50_us,
            loaded_p99_us: busy.p99_us,
            cpu_s_per_gb: busy.cpu_s_per_gb,
        }
    };
    cases.zip(measured.chunks_exact(2)).map(row).collect()
}

const HEADINGS: [&str; 9] = [
    "Size, KiB",
    "Fabric",
    "MB/s",
    "of the line",
    "p50, us",
    "p99, us",
    "loaded p50, us",
    "loaded p99, us",
    "CPU, s/GB",
];

fn cells(row: &Row) -> [String; 9] {
    [
        row.size_kib.to_string(),
        row.fabric.to_owned(),
        format!("{:.0}", row.throughput_bytes_per_s / 1e6),
        format!("{:.0} %", 100.0 * row.share_of_line),
        format!("{:.0}", row.p50_us),
        format!("{:.0}", row.p99_us),
        format!("{:.0}", row.loaded_p50_us),
        format!("{:.0}", row.loaded_p99_us),
        format!("{:.3}", row.cpu_s_per_gb),
    ]
}

fn table(rows: &[Row], width: usize) -> String {
    let column = |(number, title): (usize, &&str)| match number {
        1 => Column::left(title),
        5 | 6 => Column::right(title).rank(1),
        _ => Column::right(title),
    };
    let mut grid = Grid::new(HEADINGS.iter().enumerate().map(column).collect());
    rows.iter().for_each(|row| grid.row(cells(row).to_vec()));
    grid.render(width)
}

fn html_table(rows: &[Row]) -> String {
    let mut table = Table::new("today").number(HEADINGS[0]).text(HEADINGS[1]);
    for heading in &HEADINGS[2..] {
        table = table.number(heading);
    }
    for row in rows {
        let [size, fabric, shown @ ..] = cells(row);
        let values = [
            row.throughput_bytes_per_s,
            row.share_of_line,
            row.p50_us,
            row.p99_us,
            row.loaded_p50_us,
            row.loaded_p99_us,
            row.cpu_s_per_gb,
        ];
        let mut cells = vec![Cell::number(row.size_kib.into(), size), Cell::text(&fabric)];
        cells.extend(values.into_iter().zip(shown).map(|(value, shown)| Cell::number(value, shown)));
        table.row(cells);
    }
    table.html()
}

/// Returns the figures: throughput, latency and processor time over the size.
fn plots(rows: &[Row]) -> Vec<Plot> {
    let plot = |title: &str, y: &str, value: fn(&Row) -> f64| {
        let curve = |fabric: Fabric| {
            let own = rows.iter().filter(|row| row.fabric == fabric.name());
            let points = own.map(|row| (row.size_kib.into(), value(row))).collect();
            PlotCurve { name: fabric.name().to_owned(), points }
        };
        by_size(title.to_owned(), y, Fabric::ALL.map(curve).to_vec())
    };
    vec![
        plot("Throughput, 32 reads in flight", "GB/s", |row| row.throughput_bytes_per_s / 1e9),
        plot("Median latency, one read at a time", "us", |row| row.p50_us),
        plot("99th percentile, 32 reads in flight", "us", |row| row.loaded_p99_us),
        plot("Processor time of the host", "s/GB", |row| row.cpu_s_per_gb),
    ]
}

/// Returns what a reader sees at once: the fastest and the cheapest fabric of large and of small
/// reads.
fn summary(rows: &[Row]) -> String {
    let of = |size: u32| rows.iter().filter(move |row| row.size_kib == size);
    let (small, large) = (SIZES_KIB[0], SIZES_KIB[SIZES_KIB.len() - 1]);
    let fastest = of(large).max_by(|a, b| a.throughput_bytes_per_s.total_cmp(&b.throughput_bytes_per_s));
    let quickest = of(small).min_by(|a, b| a.p50_us.total_cmp(&b.p50_us));
    let cheapest = of(large).min_by(|a, b| a.cpu_s_per_gb.total_cmp(&b.cpu_s_per_gb));
    let dearest = of(large).max_by(|a, b| a.cpu_s_per_gb.total_cmp(&b.cpu_s_per_gb));
    let (Some(fastest), Some(quickest), Some(cheapest), Some(dearest)) = (fastest, quickest, cheapest, dearest) else {
        return String::new();
    };
    format!(
        "Most throughput of reads of {large} KiB: {} with {:.1} GB/s. Shortest read of {small} KiB: {} with {:.0} us. \
         Processor time per GB of reads of {large} KiB: from {:.3} s ({}) to {:.3} s ({}).",
        fastest.fabric,
        fastest.throughput_bytes_per_s / 1e9,
        quickest.fabric,
        quickest.p50_us,
        cheapest.cpu_s_per_gb,
        cheapest.fabric,
        dearest.cpu_s_per_gb,
        dearest.fabric,
    )
}

fn write(args: &SeededArgs, folder: Option<&Path>, rows: &[Row]) -> Result<(), Failure> {
    let plots = plots(rows);
    if let Some(folder) = folder {
        output::written(file::write(&folder.join("figures.json"), |out| json::write_value(out, &plots)))?;
    }
    let page = || {
        let command = format!("sanloom reproduce today --seed {}", args.seed);
        plain_page(
            "The comparison of the GUPFS report with the rates of today",
            TITLE,
            &[summary(rows), NOTE.to_owned()],
            vec![
                ("figures", "Throughput, latency and processor time", plot::drawings(&plots)),
                ("numbers", "Numbers", html_table(rows)),
                ("command", "Command", format!("<pre class=\"command\">{}</pre>\n", escape(&command))),
            ],
        )
    };
    args.results.write(folder, &rows, &rows, page)?;
    if args.results.outputs.is_stdout() {
        return Ok(());
    }
    let width = output::width();
    let mut text =
        format!("{TITLE}\n\n{}\n{}\n{}\n", table(rows, width), wrap(&summary(rows), width, 0), wrap(NOTE, width, 0));
    if let Some(folder) = folder {
        text.push_str(&format!("Report: {}\n", folder.join("report.html").display()));
    }
    output::print(&text)
}

/// Runs the comparison.
///
/// # Errors
/// If an output cannot be written.
pub fn run(args: &SeededArgs) -> Result<(), Failure> {
    let folder = args.results.prepare("today")?;
    let cases = SIZES_KIB.into_iter().flat_map(|size| Fabric::ALL.map(|fabric| (size, fabric)));
    let labs = cases.flat_map(|(size, fabric)| [1, DEPTH].map(|depth| fabric.lab(size, depth, args.seed)));
    let labs = labs.collect::<Result<Vec<_>, _>>()?;
    let finished = pool::all(args.threads, "runs", &labs, |_, lab| measure(lab))?;
    let measured: Option<Vec<Measured>> = finished.into_iter().collect();
    let measured = measured.ok_or_else(|| Failure::interrupted("not all runs are finished; nothing was written"))?;
    write(args, folder.as_deref(), &rows(&measured))
}
