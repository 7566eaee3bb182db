//! `sanloom reproduce iscsi-switch`: document 003, Figures 9 to 11, on this machine.
//!
//! The document's switch sat between machines with gigabit links; here everything is one machine and loopback, so only ratios of the same run
//! say anything: they are printed beside those of the document and judge nothing.

mod bed;
mod chain;
mod figures;
mod numbers;

use super::super::bench;
use super::super::bench::io::{Compared, Comparison, Op, Report, parse_seconds, parse_size};
use crate::exit::Failure;
use crate::output;
use crate::report::file;
use bed::{Bed, Place};
use numbers::Number;
use serde::Serialize;
use std::fmt::{self, Write};
use std::fs;
use std::path::PathBuf;

/// Requests of this size and more are what the document's gain is about, in bytes.
const LARGE_BYTES: u32 = 64 << 10;
/// Paths, in the order in which they are measured.
const PATHS: [&str; 5] = ["end to end", "ceiling", "conventional", "forwarding", "stock chain"];

/// The same over links.
const LINKS: [&str; 3] = ["end to end", "ceiling", "forwarding"];
/// Requests at a time of each session, where depths are not what is compared.
const DEPTH: u32 = 8;
/// Sessions at once, where there are many.
const CROWD: u32 = 8;
/// Bytes of their requests.
const CROWD_BYTES: [u32; 2] = [64 << 10, 512 << 10];
/// Sessions at once, to see whether more of them are slower.
const SESSIONS: [u32; 4] = [1, 8, 64, 256];

/// Options of `sanloom reproduce iscsi-switch`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Bytes of a request; the document has 4K to 1M
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "4K,16K,64K,256K,1M", value_parser = parse_size)]
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
    /// What the targets behind are
    #[arg(long, value_name = "TARGET", value_enum, default_value_t = Behind::Own)]
    behind: Behind,
    /// Measure also other ways to move data, and what a forwarder gains by cut-through, by batches and by reading on
    #[arg(long)]
    ablation: bool,
}

/// What the targets behind are.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Behind {
    /// Our own, all in one process
    Own,
    /// Debian's tgt, a process for each path; for root
    Tgt,
}

impl fmt::Display for Behind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Behind::Own => "our own targets",
            Behind::Tgt => "tgt",
        })
    }
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Measured {
    /// All paths.
    paths: Report,
    /// Reads of eight sessions at once.
    crowd: Report,
    /// Reads that are forwarded, of more and more sessions at once.
    sessions: Vec<Report>,
    /// End to end over a link of 1 Gb/s, and through a forwarder or a switch between two of them.
    links: Report,
    /// End to end, without digests and with them.
    digests: Report,
    /// Forwarders that move data in other ways, or do something worse.
    movers: Option<Report>,
}

/// All of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Reproduced {
    /// What the targets behind are.
    behind: Behind,
    /// Congestion control of TCP, as the system has it.
    congestion_control: String,
    /// What was measured.
    measured: Measured,
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
    let bed = Bed::start(args.behind, args.ablation)?;
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
    let own: Vec<Compared> = PATHS.into_iter().zip(places.clone().take(4)).map(compared).collect();
    let paths = Comparison { size: args.size.clone(), depth: args.depth.clone(), ..compare(all) }.run()?;
    let crowd = Comparison { size: CROWD_BYTES.to_vec(), op: vec![Op::Read], sessions: CROWD, ..compare(own) }.run()?;
    // Later on there are many sessions, whose first commands come before theirs with the back ends.
    assert_path(&bed, "conventional", false)?;
    assert_path(&bed, "forwarding", true)?;
    let of_one = |sessions| Comparison {
        size: vec![LARGE_BYTES],
        depth: vec![1],
        op: vec![Op::Read],
        sessions,
        ..compare(vec![compared(("forwarding", &bed.forwarding))])
    };
    let sessions: Result<Vec<Report>, Failure> = SESSIONS.into_iter().map(|sessions| of_one(sessions).run()).collect();
    let linked = LINKS.into_iter().zip([&bed.link, &bed.copied_links, &bed.links]);
    let links = compare(linked.map(compared).collect()).run()?;
    let both = [("end to end", false), ("with digests", true)];
    let both = both.map(|(name, digests)| Compared { digests, ..compared((name, &bed.own)) });
    let digests = compare(both.into()).run()?;
    let movers = || {
        let best = PATHS.into_iter().zip(places.take(4)).map(compared);
        compare(best.chain(bed.movers.iter().map(|(name, place)| compared((*name, place)))).collect()).run()
    };
    let movers = args.ablation.then(movers).transpose()?;
    assert_path(&bed, "links", true)?;
    let measured = Measured { paths, crowd, sessions: sessions?, links, digests, movers };
    let numbers = numbers::all(&measured);
    let no_stock_chain = bed.chain.as_ref().err().cloned();
    let congestion_control = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    let congestion_control = congestion_control.trim().to_owned();
    let reproduced = Reproduced { behind: args.behind, congestion_control, measured, numbers, no_stock_chain };
    if let Some(path) = &args.plot {
        output::written(file::write_text(path, &figures::page(&reproduced)))?;
    }
    bench::report(args.json.as_deref(), &reproduced, &text(&reproduced))
}

/// A path to be measured.
fn compared((name, place): (&'static str, &Place)) -> Compared {
    let Place { portal, target, lun, pids } = place;
    Compared { name, portal: *portal, target: target.clone(), lun: *lun, pids: pids.clone(), digests: false }
}

/// A switch has taken the path that it is measured for.
fn assert_path(bed: &Bed, switch: &str, forward: bool) -> Result<(), Failure> {
    let Some(volume) = bed.volume(switch)? else { return Err(Failure::bug("the volume is gone")) };
    let (right, wrong) = match forward {
        true => (volume.forwarded.commands, volume.conventional.commands),
        false => (volume.conventional.commands, volume.forwarded.commands),
    };
    // What comes before there are sessions with the back ends cannot be forwarded.
    if right == 0 || wrong > right / 100 {
        return Err(Failure::bug(format_args!("{wrong} of {} commands took the wrong path", right + wrong)));
    }
    Ok(())
}

fn text(reproduced: &Reproduced) -> String {
    let Reproduced { behind, congestion_control, measured, numbers, no_stock_chain } = reproduced;
    let mut text = format!("Behind: {behind}. TCP congestion control: {congestion_control}");
    if congestion_control.starts_with("bbr") {
        text += ", which paces what it sends: on loopback that is what is measured (net.ipv4.tcp_congestion_control=cubic does not)";
    }
    let _ = writeln!(text, "\n{}", measured.paths.text());
    let _ = write!(text, "\nMany sessions\n{}", measured.crowd.text());
    for report in &measured.sessions {
        let _ = write!(text, "\n{}", report.text());
    }
    let _ = write!(text, "\nLinks of 1 Gb/s\n{}", measured.links.text());
    let _ = write!(text, "\nDigests\n{}", measured.digests.text());
    if let Some(movers) = &measured.movers {
        let _ = write!(text, "\nMovers, and what is done worse\n{}", movers.text());
    }
    let _ = writeln!(text, "\n{:<5} {:<60} {:>9}  wanted", "", "geometric means", "here");
    for Number { what, op, ours, wanted } in numbers {
        let op = if *op == Op::Read { "read" } else { "write" };
        let ours = ours.map_or_else(|| "none".to_owned(), |ours| format!("{ours:.2}"));
        let _ = writeln!(text, "{op:<5} {what:<60} {ours:>9}  {wanted}");
    }
    if let Some(why) = no_stock_chain {
        let _ = writeln!(text, "The stock chain was not measured: {why}.");
    }
    text
}
