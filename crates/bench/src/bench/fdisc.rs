//! `sanloom bench fdisc`: logins of the many virtual ports of a host over Ethernet.

use super::ethernet::station::Station;
use super::ethernet::{Folder, switching};
use super::statistics::{median, percentile, sorted};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_wire::Wwpn;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::LinkService;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Options of `sanloom bench fdisc`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Virtual ports that log in at one port of the switch, one after the other
    #[arg(long, value_name = "N", default_value_t = 65_000, value_parser = quantity::count::<u32>(1..=65_000))]
    logins: u32,
    /// Logins in flight
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = quantity::count::<u16>(1..=1024))]
    window: u16,
    #[command(flatten)]
    outputs: Outputs,
}

/// Results. An FDISC passes from a thread through a unix socket to the switch, and its response
/// back.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fdiscs {
    /// Number of logins.
    pub logins: u32,
    /// Logins in flight.
    pub window: u16,
    /// Logins per second.
    pub logins_per_s: f64,
    /// Processor time of the switch per login, system calls included, in microseconds.
    pub switch_cpu_us: f64,
    /// Median time from an FDISC to its response, per thousand logins, in microseconds.
    pub median_us: Vec<f64>,
    /// 99th percentile of the same time, per thousand logins, in microseconds.
    pub p99_us: Vec<f64>,
    /// Median of the last tenth of the thousands divided by that of the first tenth; 1 is flat.
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
/// Time limit for a response.
const TIME_LIMIT: Duration = Duration::from_secs(10);
const STEP: usize = 1_000;

/// Measures logins, and prints the results.
///
/// # Errors
/// If the switch cannot be started, rejects a login or does not respond, an output cannot be
/// written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let fdiscs = measure(args)?;
    args.outputs.write_or_print("fdisc", &fdiscs, || text(&fdiscs))
}

fn measure(args: &Args) -> Result<Fdiscs, Failure> {
    let folder = Folder::new("fdisc")?;
    let mut switch = switching(&folder, LAB)?;
    let mut station = Station::start(&folder, LINK, MAC)?;
    station.log_in()?;
    let mut sent = vec![None; usize::from(u16::MAX) + 1];
    let mut latencies = Vec::with_capacity(args.logins as usize);
    let (mut requested, mut received_at) = (0, Instant::now());
    let cpu = switch.cpu()?;
    let begun = Instant::now();
    while latencies.len() < args.logins as usize {
        while requested < args.logins && (requested as usize - latencies.len()) < usize::from(args.window) {
            let ox_id = requested as u16;
            station.ask(LinkService::Fdisc, Wwpn(0x2500_0000_0000_0000 + u64::from(requested)), ox_id);
            sent[usize::from(ox_id)] = Some(Instant::now());
            requested += 1;
        }
        for answer in station.answers(Duration::from_millis(100))? {
            received_at = Instant::now();
            if answer.granted.is_none() {
                let reason = format!("the switch rejects login {} of {}", latencies.len() + 1, args.logins);
                return Err(Failure::environment(reason));
            }
            if let Some(at) = sent[usize::from(answer.ox_id)].take() {
                latencies.push((received_at - at).as_secs_f64() * 1e6);
            }
        }
        if received_at.elapsed() > TIME_LIMIT {
            let reason = format!("the switch has answered only {} of {} logins in 10 s", latencies.len(), args.logins);
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
