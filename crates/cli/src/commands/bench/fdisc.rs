//! `sanloom bench fdisc`: logins of virtual ports over the wire, as a host with very many of them sends them.

use super::ethernet::station::Station;
use super::ethernet::{Folder, switching};
use super::report;
use super::statistics::{median, percentile, sorted};
use crate::exit::Failure;
use crate::interrupt;
use crate::report::format;
use sanloom_wire::Wwpn;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::LinkService;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of `sanloom bench fdisc`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Virtual ports that log in at one port of the switch, one after the other
    #[arg(long, value_name = "N", default_value_t = 65_000, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    logins: u32,
    /// Logins under way at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    window: u16,
    /// Write the numbers as JSON into this file; `-` for standard output, which then has no table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// What was measured. An FDISC goes from a thread through a unix socket to the switch, and its answer back.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fdiscs {
    /// Logins done.
    pub logins: u32,
    /// Logins under way at a time.
    pub window: u16,
    /// Logins per second of the clock.
    pub logins_per_s: f64,
    /// Processor time of the switch for a login, with its system calls, in microseconds.
    pub switch_cpu_us: f64,
    /// Median of the time from FDISC to its answer, by thousand logins, in microseconds.
    pub median_us: Vec<f64>,
    /// 99 % took no longer, by thousand logins, in microseconds.
    pub p99_us: Vec<f64>,
    /// Median of the last tenth of the thousands over that of the first tenth: 1 is flat.
    pub last_over_first: f64,
}

const LAB: &str = r#"
[switch.sw1]
addressing = "flat"

[host.load]
wwpn = "20:00:52:54:00:00:00:01"

[[link]]
from = "load"
to = "sw1"
ethernet = { carrier = "dgram" }
"#;
const LINK: &str = "load-sw1";
const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
/// An answer takes no longer.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: usize = 1_000;

/// Measures, and prints what was measured.
///
/// # Errors
/// When the switch cannot be brought up, refuses a login or does not answer, something cannot be written, or Ctrl-C came.
pub fn run(args: &Args) -> Result<(), Failure> {
    let fdiscs = measure(args)?;
    report(args.json.as_deref(), &fdiscs, &text(&fdiscs))
}

fn measure(args: &Args) -> Result<Fdiscs, Failure> {
    let folder = Folder::new("fdisc")?;
    let mut switch = switching(&folder, LAB)?;
    let mut station = Station::start(&folder, LINK, MAC)?;
    station.log_in()?;
    let mut sent = vec![None; usize::from(u16::MAX) + 1];
    let mut latencies = Vec::with_capacity(args.logins as usize);
    let (mut asked, mut heard_at) = (0, Instant::now());
    let cpu = switch.cpu()?;
    let begun = Instant::now();
    while latencies.len() < args.logins as usize {
        while asked < args.logins && (asked as usize - latencies.len()) < usize::from(args.window) {
            let ox_id = asked as u16;
            station.ask(LinkService::Fdisc, Wwpn(0x2500_0000_0000_0000 + u64::from(asked)), ox_id);
            sent[usize::from(ox_id)] = Some(Instant::now());
            asked += 1;
        }
        for answer in station.answers(Duration::from_millis(100))? {
            heard_at = Instant::now();
            if answer.granted.is_none() {
                let reason = format!("the switch refuses login {} of {}", latencies.len() + 1, args.logins);
                return Err(Failure::environment(reason));
            }
            if let Some(at) = sent[usize::from(answer.ox_id)].take() {
                latencies.push((heard_at - at).as_secs_f64() * 1e6);
            }
        }
        if heard_at.elapsed() > PATIENCE {
            let reason = format!("the switch has answered {} of {} logins", latencies.len(), args.logins);
            return Err(Failure::environment(reason));
        }
        if interrupt::requested() {
            return Err(Failure::interrupted("the logins were not complete"));
        }
    }
    let wall = begun.elapsed().as_secs_f64();
    let cpu = switch.cpu()? - cpu;
    if let Some(failure) = switch.end() {
        return Err(failure);
    }
    let thousands: Vec<Vec<f64>> = latencies.chunks(STEP).map(|part| sorted(part.iter().copied())).collect();
    let of = |share: f64| -> Vec<f64> { thousands.iter().map(|part| percentile(part, share)).collect() };
    let median_us = of(0.5);
    let tenth = median_us.len().div_ceil(10);
    let median_of = |medians: &[f64]| median(medians.iter().copied());
    Ok(Fdiscs {
        logins: args.logins,
        window: args.window,
        logins_per_s: f64::from(args.logins) / wall,
        switch_cpu_us: cpu.as_secs_f64() * 1e6 / f64::from(args.logins),
        last_over_first: median_of(&median_us[median_us.len() - tenth..]) / median_of(&median_us[..tenth]),
        median_us,
        p99_us: of(0.99),
    })
}

fn text(fdiscs: &Fdiscs) -> String {
    let mut text = format!(
        "{} logins of virtual ports over a unix socket, {} at a time\n\
         logins per second      {}\n\
         switch, processor time {:.1} us per login\n\
         logins                 median       99 %\n",
        format::grouped(fdiscs.logins.into()),
        fdiscs.window,
        format::grouped(fdiscs.logins_per_s as u64),
        fdiscs.switch_cpu_us,
    );
    let last = fdiscs.median_us.len().saturating_sub(1);
    let mut shown: Vec<usize> = [0, 1, 4, 9, 19, 39, last].into_iter().filter(|at| *at <= last).collect();
    shown.dedup();
    for at in shown {
        let range = format!("{} to {}", at * STEP + 1, ((at + 1) * STEP).min(fdiscs.logins as usize));
        let _ =
            writeln!(text, "{range:<22} {:<12} {:.0} us", format!("{:.0} us", fdiscs.median_us[at]), fdiscs.p99_us[at]);
    }
    let _ = writeln!(text, "last over first        {:.2}", fdiscs.last_over_first);
    text
}
