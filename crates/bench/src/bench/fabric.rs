//! `sanloom bench fabric`: cost of the convergence of a large fabric.

use super::bound::{self, Bound};
use crate::fabric_bed::{FabricBed, FabricPlan, Traffic};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::{rss_bytes, thread_cpu};
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_scsi::time::{Instant, Span};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Options of `sanloom bench fabric`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Number of switches
    #[arg(long, value_name = "N", default_value_t = 239, value_parser = quantity::count::<u16>(2..=239))]
    switches: u16,
    /// N_Ports, distributed over the switches; one in ten is principal of a peer zone with 99 of
    /// the others
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = quantity::count::<u32>(10..=1_000_000))]
    ports: u32,
    /// N_Ports that log in after convergence, while every N_Port receives RSCNs
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = quantity::count::<u32>(0..=10_000))]
    later: u32,
    #[command(flatten)]
    outputs: Outputs,
    /// End with exit code 1 if a bound is missed
    #[arg(long)]
    judge: bool,
}

/// Results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fabric {
    /// Number of switches.
    pub switches: u16,
    /// N_Ports that logged in at the beginning.
    pub ports: u32,
    /// Number of peer zones.
    pub zones: usize,
    /// Virtual time from the start of all switches to convergence, in seconds, with a resolution of
    /// 0.5 s.
    pub converged_after_s: f64,
    /// Processor time until then, in seconds, without the checks for convergence.
    pub cpu_s: f64,
    /// Messages between switches until then.
    pub messages: u64,
    /// The same by topic, with the messages from and to N_Ports.
    pub traffic: BTreeMap<&'static str, u64>,
    /// Resident memory of the process at convergence, in bytes.
    pub rss_bytes: u64,
    /// Cost of the later logins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<Later>,
}

/// Cost of logins while every N_Port receives RSCNs and queries all ports after each.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Later {
    /// Number of logins, one every virtual millisecond.
    pub logins: u32,
    /// Processor time until the fabric has converged again, in seconds.
    pub cpu_s: f64,
    /// Messages between switches.
    pub messages: u64,
    /// The same by topic, with the messages from and to N_Ports.
    pub traffic: BTreeMap<&'static str, u64>,
}

/// Numbers of switches and ports for which the bounds are valid.
const JUDGED: (u16, u32) = (239, 100_000);

impl Fabric {
    fn bounds(&self) -> Vec<Bound> {
        if (self.switches, self.ports) != JUDGED {
            return Vec::new();
        }
        let gib = self.rss_bytes as f64 / (1u64 << 30) as f64;
        vec![Bound::at_most("CPU time", self.cpu_s, 60.0, "s"), Bound::at_most("resident", gib, 2.0, "GiB")]
    }
}

/// Virtual time between two checks for convergence.
const STEP: Span = Span::from_ms(500);
/// Virtual time limit for convergence.
const TIME_LIMIT: Span = Span::from_secs(300);
/// Pairs of N_Ports whose permissions are checked.
const PAIRS: usize = 20_000;

/// Measures the convergence, and prints the results.
///
/// # Errors
/// If an output cannot be written, Ctrl-C was pressed, or the fabric does not converge.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let fabric = measure(args)?;
    let bounds = fabric.bounds();
    args.outputs.write_or_print("fabric", &fabric, || text(&fabric) + &bound::text(&bounds))?;
    if args.judge { bound::judge(&bounds) } else { Ok(()) }
}

fn measure(args: &Args) -> Result<Fabric, Failure> {
    let plan = FabricPlan::new(args.switches.into(), args.ports as usize, args.later as usize);
    let zones = plan.zone_count();
    let start = thread_cpu();
    let mut bed = FabricBed::new(plan);
    bed.log_in_first();
    let mut cpu = thread_cpu() - start;
    cpu += converge(&mut bed)?;
    let traffic = bed.traffic();
    let mut fabric = Fabric {
        switches: args.switches,
        ports: args.ports,
        zones,
        converged_after_s: bed.now().since(Instant::ZERO).as_ns() as f64 / 1e9,
        cpu_s: cpu.as_secs_f64(),
        messages: traffic.between_switches(),
        traffic: traffic.counts().collect(),
        rss_bytes: rss_bytes(),
        later: None,
    };
    if args.later > 0 {
        bed.discover();
        bed.run(STEP);
        let (before, start) = (bed.traffic(), thread_cpu());
        bed.log_in_later(Span::from_ms(1));
        let cpu = thread_cpu() - start + converge(&mut bed)?;
        let traffic: Traffic = bed.traffic().since(before);
        fabric.later = Some(Later {
            logins: args.later,
            cpu_s: cpu.as_secs_f64(),
            messages: traffic.between_switches(),
            traffic: traffic.counts().collect(),
        });
    }
    Ok(fabric)
}

/// Runs until the fabric has converged; returns the processor time.
fn converge(bed: &mut FabricBed) -> Result<Duration, Failure> {
    let mut cpu = Duration::ZERO;
    let end = bed.now() + TIME_LIMIT;
    loop {
        let start = thread_cpu();
        bed.run(STEP);
        cpu += thread_cpu() - start;
        match bed.seems_converged().and_then(|()| bed.check(PAIRS)) {
            Ok(()) => return Ok(cpu),
            Err(disagreement) if bed.now() >= end => {
                return Err(Failure::bug(format!("the fabric does not converge: {disagreement}")));
            }
            Err(_) if interrupt::requested() => return Err(Failure::interrupted("the fabric had not converged")),
            Err(_) => {}
        }
    }
}

fn text(fabric: &Fabric) -> String {
    let grouped = |n: u64| format::grouped(n);
    let mut text = format!(
        "{} switches, {} N_Ports, {} peer zones\n\
         converged after        {} simulated\n\
         CPU time               {:.2} s\n\
         resident               {}\n\
         messages               {} between switches\n",
        fabric.switches,
        grouped(fabric.ports.into()),
        grouped(fabric.zones as u64),
        format::seconds(fabric.converged_after_s),
        fabric.cpu_s,
        format::bytes(fabric.rss_bytes),
        grouped(fabric.messages),
    );
    rows(&mut text, &fabric.traffic);
    if let Some(later) = &fabric.later {
        let _ = write!(
            text,
            "\n{} more logins, every N_Port with SCR and discovery\n\
             CPU time               {:.2} s\n\
             messages               {} between switches\n",
            grouped(later.logins.into()),
            later.cpu_s,
            grouped(later.messages),
        );
        rows(&mut text, &later.traffic);
    }
    text
}

fn rows(text: &mut String, traffic: &BTreeMap<&'static str, u64>) {
    for (name, count) in traffic {
        let _ = writeln!(text, "  {:<20} {}", name.replace('_', " "), format::grouped(*count));
    }
}
