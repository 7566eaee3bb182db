//! `sanloom reproduce iscsi-switch`: the iSCSI switch paper, Figures 9 to 11, on this machine.
//!
//! The document's switch sat between machines with links of 1 Gb/s. Its experiment, the
//! conventional path against the forwarding path over such links, is measured first; a link is a
//! forwarder with a rate limit. All other measurements use loopback, where the switch itself is the
//! limit. Everything shares one machine, so only ratios of slices that are close in time are
//! meaningful.

mod bed;
mod chain;
mod figures;
mod numbers;

use super::super::bench::io::{Compared, Comparison, Op, Report, parse_size};
use super::super::bench::statistics::Decision;
use super::ResultArgs;
use bed::{Bed, DiskAddress};
use numbers::{Number, STOCK, Source};
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::quantity;
use sanloom_console::report::file;
use serde::Serialize;
use std::fmt::{self, Write};
use std::fs;
use std::path::PathBuf;

/// The document's gain is that of requests of at least this size, in bytes.
const LARGE_BYTES: u32 = 64 << 10;
/// The document's "typical block size", in bytes.
const TYPICAL_BYTES: u32 = 512 << 10;
/// Names of the paths, in the order of the indices in [`numbers`].
const PATHS: [&str; 5] = ["end to end", "ceiling", "conventional", "forwarding", "stock chain"];
/// Requests in flight in each session, where depths are not compared.
const DEPTH: u32 = 8;
/// Depths over links. The document does not name its depth; 1 is the default of Iometer.
const LINK_DEPTHS: [u32; 2] = [1, DEPTH];
/// Length of a slice over links, in slices on loopback, because a link carries less in the same
/// time.
const LINK_SLICES: f64 = 4.0;
/// Sessions at the same time in the measurement of many sessions.
const CROWD: u32 = 8;
/// Bytes of their requests.
const CROWD_BYTES: [u32; 2] = [64 << 10, TYPICAL_BYTES];
/// Numbers of sessions that are compared with each other.
const SESSIONS: [(&str, u32); 4] = [("1 session", 1), ("8 sessions", 8), ("64 sessions", 64), ("256 sessions", 256)];

/// Options of `sanloom reproduce iscsi-switch`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Bytes of a request. The document draws 4K to 1M, and names 512K, which is always measured
    /// over links
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "4K,16K,64K,256K,512K,1M",
        value_parser = parse_size
    )]
    size: Vec<u32>,
    /// Requests in flight on loopback
    #[arg(
        long,
        value_name = "DEPTHS",
        value_delimiter = ',',
        default_value = "1,8,32",
        value_parser = quantity::count::<u32>(1..=128)
    )]
    depth: Vec<u32>,
    /// Length of each slice, in seconds or with a unit; the paths alternate slice by slice. Slices
    /// over links are four times as long
    #[arg(long, value_name = "TIME", default_value = "0.05", value_parser = quantity::seconds)]
    seconds: f64,
    /// Slices of each path; a verdict requires six
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = quantity::count::<u32>(1..=999))]
    rounds: u32,
    #[command(flatten)]
    results: ResultArgs,
    /// Old spelling of `--html=FILE`
    #[arg(long, value_name = "FILE", hide = true)]
    plot: Option<PathBuf>,
    /// Targets behind the switches
    #[arg(long, value_name = "TARGET", value_enum, default_value_t = Behind::Own)]
    behind: Behind,
    /// Measure other movers, too, and the gain of cut-through, of batches and of repeated reads
    #[arg(long)]
    ablation: bool,
}

/// Targets behind the switches. Links and striped volumes always use our own.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Behind {
    /// Our own targets, all in one process
    Own,
    /// Debian's tgt, a process for each path; requires root
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

/// Results of all measurements.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Measured {
    /// The document's experiment: all paths over links of 1 Gb/s.
    links: Report,
    /// All paths on loopback.
    paths: Report,
    /// Volumes on one back end and striped over two.
    striped: Report,
    /// Reads of eight sessions at the same time.
    crowd: Report,
    /// Reads through the forwarding path by number of sessions.
    sessions: Report,
    /// End to end, without digests and with them.
    digests: Report,
    /// Reference forwarders with other movers and with known inefficiencies.
    movers: Option<Report>,
}

/// Results with their verdicts.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Reproduced {
    /// Targets behind the switches.
    behind: Behind,
    /// Congestion control of TCP on this machine.
    congestion_control: String,
    /// Results.
    measured: Measured,
    /// Verdicts.
    numbers: Vec<Number>,
    /// Reason why the stock chain was not measured.
    no_stock_chain: Option<String>,
}

/// Measures all paths in alternating slices.
///
/// # Errors
/// If a required part does not start, commands took the wrong path, an output cannot be written, or
/// a prediction misses. An interval that crosses a limit is undecided, which is no miss.
pub fn run(args: &Args) -> Result<(), Failure> {
    let folder = args.results.prepare("iscsi-switch")?;
    let bed = Bed::start(args.behind, args.ablation)?;
    if let Err(why) = &bed.chain {
        output::note(&format!("The stock chain is skipped: {why}."));
    }
    let measured = measure(args, &bed)?;
    let numbers = numbers::all(&measured);
    let no_stock_chain = bed.chain.as_ref().err().cloned();
    let congestion_control = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    let congestion_control = congestion_control.trim().to_owned();
    let reproduced = Reproduced { behind: args.behind, congestion_control, measured, numbers, no_stock_chain };
    if let Some(path) = &args.plot {
        output::written(file::write_text(path, &figures::page(&reproduced)))?;
    }
    args.results.write(folder.as_deref(), &reproduced, &reproduced.numbers, || figures::page(&reproduced))?;
    if !args.results.outputs.is_stdout() {
        let report = folder.map(|folder| format!("Report: {}\n", folder.join("report.html").display()));
        output::print(&(text(&reproduced) + &report.unwrap_or_default()))?;
    }
    let missed = |number: &Number| number.kind == Source::Prediction && number.verdict == Some(Decision::Missed);
    if reproduced.numbers.iter().any(missed) { Err(Failure::expectation()) } else { Ok(()) }
}

fn measure(args: &Args, bed: &Bed) -> Result<Measured, Failure> {
    let stock = bed.chain.as_ref().ok().map(|chain| &chain.disk_address);
    let disk_addresses = [&bed.direct, &bed.ceiling, &bed.conventional, &bed.forwarding].into_iter().chain(stock);
    let named = |disks: Vec<&DiskAddress>| PATHS.into_iter().zip(disks).map(compared).collect::<Vec<Compared>>();
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
    let mut link_sizes = large.clone();
    if !link_sizes.contains(&TYPICAL_BYTES) {
        link_sizes.push(TYPICAL_BYTES);
    }
    let links = Comparison {
        size: link_sizes,
        depth: LINK_DEPTHS.to_vec(),
        seconds: args.seconds * LINK_SLICES,
        ..compare(named(bed.links.iter().collect()))
    };
    let links = links.run()?;
    let all = compare(named(disk_addresses.clone().collect()));
    let paths = Comparison { size: args.size.clone(), depth: args.depth.clone(), ..all }.run()?;
    let [conventional, forwarding] = &bed.striped;
    let striped = [
        ("conventional", &bed.conventional),
        ("conventional, striped", conventional),
        ("forwarding", &bed.forwarding),
        ("forwarding, striped", forwarding),
    ];
    let striped = compare(striped.into_iter().map(compared).collect());
    let striped = Comparison { size: vec![TYPICAL_BYTES], ..striped }.run()?;
    let own = || named(disk_addresses.clone().take(STOCK).collect());
    let crowd =
        Comparison { size: CROWD_BYTES.to_vec(), op: vec![Op::Read], sessions: CROWD, ..compare(own()) }.run()?;
    // The measurement of many sessions follows, because their first commands precede the logins at
    // the back ends, and take the conventional path.
    for (switch, forward) in [("conventional", false), ("forwarding", true), ("slow-links", false), ("links", true)] {
        assert_path(bed, switch, "volume", forward)?;
    }
    assert_path(bed, "conventional", "striped", false)?;
    assert_path(bed, "forwarding", "striped", true)?;
    let of_sessions = |(name, sessions)| Compared { sessions: Some(sessions), ..compared((name, &bed.forwarding)) };
    let sessions = compare(SESSIONS.into_iter().map(of_sessions).collect());
    let sessions = Comparison { size: vec![LARGE_BYTES], depth: vec![1], op: vec![Op::Read], ..sessions }.run()?;
    let both = [("end to end", false), ("with digests", true)];
    let both = both.map(|(name, digests)| Compared { digests, ..compared((name, &bed.own)) });
    let digests = compare(both.into()).run()?;
    let movers = || {
        let movers = bed.movers.iter().map(|(name, disk_address)| compared((*name, disk_address)));
        compare(own().into_iter().chain(movers).collect()).run()
    };
    let movers = args.ablation.then(movers).transpose()?;
    Ok(Measured { links, paths, striped, crowd, sessions, digests, movers })
}

/// Creates the path of a comparison.
fn compared((name, disk_address): (&'static str, &DiskAddress)) -> Compared {
    let DiskAddress { portal, target, lun, pids } = disk_address;
    let (portal, target, lun, pids) = (*portal, target.clone(), *lun, pids.clone());
    Compared { name, portal, more: Vec::new(), target, lun, pids, digests: false, sessions: None }
}

/// Checks that the commands of a volume took the path that was to be measured.
fn assert_path(bed: &Bed, switch: &str, volume: &str, forward: bool) -> Result<(), Failure> {
    let Some(row) = bed.volume(switch, volume)? else {
        return Err(Failure::bug(format_args!("the volume `{volume}` of `{switch}` is gone")));
    };
    let (right, wrong) = match forward {
        true => (row.forwarded.commands, row.conventional.commands),
        false => (row.conventional.commands, row.forwarded.commands),
    };
    // Commands that precede the logins at the back ends cannot be forwarded.
    if right == 0 || wrong > right / 100 {
        let all = right + wrong;
        return Err(Failure::bug(format_args!(
            "{wrong} of {all} commands to `{volume}` of `{switch}` took the wrong path"
        )));
    }
    Ok(())
}

fn text(reproduced: &Reproduced) -> String {
    let Reproduced { behind, congestion_control, measured, numbers, no_stock_chain } = reproduced;
    let mut text = String::from("Chung, Lee and Chen (2007): an iSCSI virtualization switch with a forwarding path\n");
    let _ = write!(text, "Behind the switches: {behind}. TCP congestion control: {congestion_control}");
    if congestion_control.starts_with("bbr") {
        text += ", which paces what it sends: on loopback the pacing is measured \
                 (net.ipv4.tcp_congestion_control=cubic avoids that)";
    }
    let sections = [
        ("Links of 1 Gb/s: the document's experiment", Some(&measured.links)),
        ("Loopback", Some(&measured.paths)),
        ("Volumes over two back ends", Some(&measured.striped)),
        ("Many sessions", Some(&measured.crowd)),
        ("Numbers of sessions", Some(&measured.sessions)),
        ("Digests", Some(&measured.digests)),
        ("Movers, and known inefficiencies", measured.movers.as_ref()),
    ];
    text += "\n";
    for (head, report) in sections {
        if let Some(report) = report {
            let _ = write!(text, "\n{head}\n{}", report.text());
        }
    }
    text += "\nMedians of the paired slices [interval of 95 %]\n";
    let _ =
        writeln!(text, "{:<5} {:<63} {:>28} {:<11} {:<15} {:<10} verdict", "", "", "here", "unit", "wanted", "kind");
    for Number { what, op, kind, ours, wanted, unit, verdict } in numbers {
        let op = if *op == Op::Read { "read" } else { "write" };
        let kind = if *kind == Source::Prediction { "prediction" } else { "bound" };
        let ours = ours.map_or_else(|| "–".to_owned(), |ours| ours.to_string());
        let verdict = verdict.map_or_else(|| "not measured".to_owned(), |verdict| verdict.to_string());
        let wanted = wanted.to_string();
        let _ = writeln!(text, "{op:<5} {what:<63} {ours:>28} {unit:<11} {wanted:<15} {kind:<10} {verdict}");
    }
    let _ = writeln!(text, "{}", numbers::summary(numbers));
    if let Some(why) = no_stock_chain {
        let _ = writeln!(text, "The stock chain was not measured: {why}.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use numbers::{CEILING, CONVENTIONAL, DIRECT, FORWARDING};

    #[test]
    fn the_paths_have_the_indices_of_the_numbers() {
        let named = [(DIRECT, "end to end"), (CEILING, "ceiling"), (CONVENTIONAL, "conventional")];
        for (index, name) in named.into_iter().chain([(FORWARDING, "forwarding"), (STOCK, "stock chain")]) {
            assert_eq!(PATHS[index], name);
        }
    }
}
