//! `sanloom reproduce iscsi-switch`: document 003, Figures 9 to 11, on this machine.
//!
//! The document's switch sat between machines with gigabit links; here everything is one machine and loopback, so only ratios of the same run
//! say anything: they are printed beside those of the document and judge nothing.

mod bed;
mod chain;
mod figures;

use super::super::bench::io::{Cell, Compared, Comparison, Op, Report, parse_seconds, parse_size};
use super::super::bench::{self, statistics::geometric_mean};
use crate::exit::Failure;
use crate::output;
use crate::report::file;
use bed::{Bed, Place};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// Requests of this size and more are what the document's gain is about, in bytes.
const LARGE_BYTES: u32 = 64 << 10;
/// Paths, in the order in which they are measured.
const PATHS: [&str; 5] = ["end to end", "ceiling", "conventional", "forwarding", "stock chain"];

/// The same over links.
const LINKS: [&str; 2] = ["end to end", "forwarding"];
/// Requests at a time of each session, where depths are not what is compared.
const DEPTH: u32 = 8;
/// Sessions at once, where there are many.
const CROWD: u32 = 8;

/// Options of `sanloom reproduce iscsi-switch`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Bytes of a request; the document has 4K to 1M
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "4K,64K,512K", value_parser = parse_size)]
    size: Vec<u32>,
    /// Requests at a time
    #[arg(long, value_name = "DEPTHS", value_delimiter = ',', default_value = "1,8,32", value_parser = clap::value_parser!(u32).range(1..=128))]
    depth: Vec<u32>,
    /// Seconds of each measurement
    #[arg(long, value_name = "SECONDS", default_value = "0.2", value_parser = parse_seconds)]
    seconds: f64,
    /// How often each is measured; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Write the numbers as JSON into this file; `-` for standard output, which then has no table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Draw Figures 9 to 11 of what was measured here into this file, a page of HTML
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// A number of the document, and ours.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Number {
    /// What it is.
    what: &'static str,
    /// Of reads or writes.
    op: Op,
    /// Ours; not where there were no such requests.
    ours: Option<f64>,
    /// What the document, or our own bar, says.
    wanted: &'static str,
}

/// All numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Reproduced {
    /// What was measured.
    measured: Report,
    /// Reads of eight sessions at once.
    crowd: Report,
    /// End to end over a link of 1 Gb/s, and through a switch between two of them.
    links: Report,
    /// Beside the document.
    numbers: Vec<Number>,
    /// Why the stock chain was not measured, if it was not.
    no_stock_chain: Option<String>,
}

/// Measures all paths in turn.
///
/// # Errors
/// When something does not come up, a path was not the one it should have been, or something cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let bed = Bed::start()?;
    let stock = bed.chain.as_ref().ok().map(|chain| &chain.place);
    let places = [&bed.direct, &bed.ceiling, &bed.conventional, &bed.forwarding].into_iter().chain(stock);
    let large: Vec<u32> = args.size.iter().copied().filter(|size| *size >= LARGE_BYTES).collect();
    let compare = |paths: Vec<Compared>| Comparison {
        paths,
        size: if large.is_empty() { vec![LARGE_BYTES] } else { large.clone() },
        depth: vec![DEPTH],
        op: vec![Op::Read, Op::Write],
        sessions: 1,
        seconds: args.seconds,
        rounds: args.rounds,
    };
    let all: Vec<Compared> = PATHS.into_iter().zip(places.clone()).map(compared).collect();
    let own: Vec<Compared> = PATHS.into_iter().zip(places.take(4)).map(compared).collect();
    let measured = Comparison { size: args.size.clone(), depth: args.depth.clone(), ..compare(all) }.run()?;
    let crowd = Comparison { op: vec![Op::Read], sessions: CROWD, ..compare(own) }.run()?;
    let links = compare(LINKS.into_iter().zip([&bed.link, &bed.links]).map(compared).collect()).run()?;
    assert_paths(&bed)?;
    let numbers = [Op::Read, Op::Write].into_iter().flat_map(|op| numbers(&measured, op));
    let numbers = numbers.chain([crowd_number(&crowd)]).chain(link_numbers(&links)).collect();
    let no_stock_chain = bed.chain.as_ref().err().cloned();
    let reproduced = Reproduced { measured, crowd, links, numbers, no_stock_chain };
    if let Some(path) = &args.plot {
        output::written(file::write_text(path, &figures::page(&reproduced)))?;
    }
    bench::report(args.json.as_deref(), &reproduced, &text(&reproduced))
}

/// A path to be measured.
fn compared((name, place): (&'static str, &Place)) -> Compared {
    let Place { portal, target, lun, pids } = place;
    Compared { name, portal: *portal, target: target.clone(), lun: *lun, pids: pids.clone() }
}

/// Each switch has taken the path that it is measured for.
fn assert_paths(bed: &Bed) -> Result<(), Failure> {
    for (switch, forward) in [("conventional", false), ("forwarding", true), ("links", true)] {
        let Some(volume) = bed.volume(switch)? else { return Err(Failure::bug("the volume is gone")) };
        let (right, wrong) = match forward {
            true => (volume.forwarded, volume.conventional),
            false => (volume.conventional, volume.forwarded),
        };
        // What comes before there are sessions with the back ends cannot be forwarded.
        if right.commands == 0 || wrong.commands > right.commands / 100 {
            let (right, wrong) = (right.commands, wrong.commands);
            return Err(Failure::bug(format_args!("{wrong} of {} commands took the wrong path", right + wrong)));
        }
    }
    Ok(())
}

/// How a path does, in a cell.
fn row(cell: &Cell, path: usize) -> (f64, f64) {
    // Without the chain nothing is compared with it: no ratio to zero counts.
    cell.paths.get(path).map_or((0.0, 0.0), |row| (row.mb_per_s, row.process_cpu_ms_per_gb.unwrap_or(0.0)))
}

/// Share of a core, in percent: milliseconds for each GB, times GB for each second.
fn share(cell: &Cell, path: usize) -> f64 {
    let (mb_per_s, ms_per_gb) = row(cell, path);
    mb_per_s * ms_per_gb / 1e4
}

/// Many sessions at once.
fn crowd_number(crowd: &Report) -> Number {
    let ratios: Vec<f64> = crowd.cells.iter().map(|cell| row(cell, 3).0 / row(cell, 0).0).collect();
    Number {
        what: "forwarding to end to end, throughput, eight sessions",
        op: Op::Read,
        ours: Some(geometric_mean(&ratios)),
        wanted: "at least 0.88",
    }
}

/// What a switch costs where links are what is slow.
fn link_numbers(links: &Report) -> Vec<Number> {
    let of = |op, what, value: &dyn Fn(&Cell) -> f64, wanted| {
        let worst = links.cells.iter().filter(|cell| cell.op == op).map(value).reduce(f64::max);
        Number { what, op, ours: worst, wanted }
    };
    let loss = |cell: &Cell| row(cell, 0).0 - row(cell, 1).0;
    let document = |op| if op == Op::Read { "at most 1 (document: 5)" } else { "at most 1 (document: 3)" };
    let ops = [Op::Read, Op::Write].into_iter();
    ops.flat_map(|op| {
        [
            of(op, "links of 1 Gb/s: end to end less forwarding, MB/s, at worst", &loss, document(op)),
            of(op, "links of 1 Gb/s: processor, % of a core, at worst", &|cell| share(cell, 1), "at most 6"),
        ]
    })
    .collect()
}

fn numbers(measured: &Report, op: Op) -> Vec<Number> {
    let cells = |least: u32| measured.cells.iter().filter(move |cell| cell.op == op && cell.size_bytes >= least);
    let mean = |least: u32, value: &dyn Fn(&Cell) -> f64| {
        let all: Vec<f64> = cells(least).map(value).filter(|value| value.is_finite() && *value > 0.0).collect();
        (!all.is_empty()).then(|| geometric_mean(&all))
    };
    let at_64k = |value: &dyn Fn(&Cell) -> f64| {
        let all = cells(LARGE_BYTES).filter(|cell| cell.size_bytes == LARGE_BYTES).map(value);
        let all: Vec<f64> = all.filter(|value| value.is_finite() && *value > 0.0).collect();
        (!all.is_empty()).then(|| geometric_mean(&all))
    };
    let speed = |a: usize, b: usize| move |cell: &Cell| row(cell, a).0 / row(cell, b).0;
    let cost = |a: usize, b: usize| move |cell: &Cell| row(cell, a).1 / row(cell, b).1;
    let points: Vec<f64> = cells(LARGE_BYTES).map(|cell| share(cell, 3) - share(cell, 2)).collect();
    let points = (!points.is_empty()).then(|| points.iter().sum::<f64>() / points.len() as f64);
    let gain = |ratio: Option<f64>| ratio.map(|ratio| (ratio - 1.0) * 100.0);
    let document = if op == Op::Read { "+30 (document)" } else { "+25 (document)" };
    let end_to_end = if op == Op::Read { "at least 0.72" } else { "at least 0.66" };
    let conventional = if op == Op::Read { "at least 0.50" } else { "at least 0.45" };
    let number = |what, ours, wanted| Number { what, op, ours, wanted };
    vec![
        number(
            "forwarding over conventional, throughput from 64 KiB, %",
            gain(mean(LARGE_BYTES, &speed(3, 2))),
            document,
        ),
        number("forwarding less conventional, processor, points of a core", points, "-10 to -15 (document)"),
        number("forwarding to conventional, processor for each byte", mean(LARGE_BYTES, &cost(3, 2)), "at most 0.75"),
        number("forwarding to ceiling, throughput from 64 KiB", mean(LARGE_BYTES, &speed(3, 1)), "at least 0.95"),
        number("forwarding to ceiling, processor for each byte", mean(LARGE_BYTES, &cost(3, 1)), "at most 1.15"),
        number("forwarding to end to end, throughput, all sizes", mean(0, &speed(3, 0)), end_to_end),
        number("conventional to end to end, throughput, all sizes", mean(0, &speed(2, 0)), conventional),
        number("conventional to stock chain, throughput, all sizes", mean(0, &speed(2, 4)), "at least 1.00"),
        number("forwarding to stock chain, throughput, all sizes", mean(0, &speed(3, 4)), "at least 1.80"),
        number("forwarding to stock chain, processor for each byte, 64 KiB", at_64k(&cost(3, 4)), "at most 0.33"),
    ]
}

fn text(reproduced: &Reproduced) -> String {
    let mut text = reproduced.measured.text();
    let _ = write!(text, "\nMany sessions\n{}", reproduced.crowd.text());
    let _ = write!(text, "\nLinks of 1 Gb/s\n{}", reproduced.links.text());
    let _ = writeln!(text, "\n{:<5} {:<60} {:>9}  wanted", "", "geometric means", "here");
    for Number { what, op, ours, wanted } in &reproduced.numbers {
        let op = if *op == Op::Read { "read" } else { "write" };
        let ours = ours.map_or_else(|| "none".to_owned(), |ours| format!("{ours:.2}"));
        let _ = writeln!(text, "{op:<5} {what:<60} {ours:>9}  {wanted}");
    }
    if let Some(why) = &reproduced.no_stock_chain {
        let _ = writeln!(text, "The stock chain was not measured: {why}.");
    }
    text
}
