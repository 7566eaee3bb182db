//! `sanloom bench login`: cost of an FDISC at a switch with zoning and name server.

use super::bound::{self, Bound};
use super::switch::{Bench, PORTS, zones};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::{rss_bytes, thread_cpu};
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_fc::switch::HardZoning;
use sanloom_scsi::time::Span;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Options of `sanloom bench login`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Logins at one switch, one after the other
    #[arg(long, value_name = "N", default_value_t = 65_000, value_parser = quantity::count::<u32>(1..=65_536))]
    logins: u32,
    /// Algorithm that finds the permissions of hard zoning
    #[arg(long, value_enum, default_value = "zone-mates")]
    zoning: ZoningAlgorithm,
    /// Members of each zone [default: 2 to 16 in turn]
    #[arg(long, value_name = "N", value_parser = quantity::count::<u32>(2..=16))]
    zone_members: Option<u32>,
    #[command(flatten)]
    outputs: Outputs,
    /// End with exit code 1 if a bound is missed
    #[arg(long)]
    judge: bool,
}

/// Algorithm that finds the permissions of hard zoning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ZoningAlgorithm {
    /// Compare every N_Port_ID of the port with every one of all other ports (the NPIV paper)
    Standard,
    /// Compare the new N_Port_ID only (the NPIV paper, modified)
    Modified,
    /// Inspect the zone-mates of the new N_Port_ID
    ZoneMates,
}

/// Results. Times are processor times in microseconds, unless stated otherwise.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Logins {
    /// Algorithm.
    pub zoning: ZoningAlgorithm,
    /// Number of logins on the command line.
    pub logins_asked: u32,
    /// Number of logins done; smaller if the comparisons took too long.
    pub logins: u32,
    /// Members of each zone; 2 to 16 in turn if absent.
    pub zone_members: Option<u32>,
    /// Ports over which the logins are distributed.
    pub ports: u16,
    /// Mean of an FDISC, from its bytes to the bytes of its LS_ACC, per thousand logins.
    pub mean_us: Vec<f64>,
    /// Mean of the following registration (SCR, PLOGI, RFT_ID, RFF_ID, and RSCNs to zone-mates),
    /// per thousand logins.
    pub registration_mean_us: Vec<f64>,
    /// Slowest FDISC, real time.
    pub slowest_us: f64,
    /// Zone comparisons of all logins.
    pub comparisons: u64,
    /// Inspected zone members of all logins.
    pub zone_members_compared: u64,
    /// RSCNs sent.
    pub rscns: u64,
    /// Permissions in the forwarding table at the end.
    pub permissions: u64,
    /// Resident memory of the process at the end, in bytes.
    pub rss_bytes: u64,
    /// Growth of the resident memory per login.
    pub bytes_per_login: f64,
    /// Results of the standard algorithm on the first of these logins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contrast: Option<Box<Logins>>,
}

/// Number of logins for which the bounds are valid.
const JUDGED: u32 = 65_000;

impl Logins {
    fn bounds(&self) -> Vec<Bound> {
        let (Some(second), Some(last)) = (self.mean_us.get(1), self.mean_us.last()) else { return Vec::new() };
        if self.zoning != ZoningAlgorithm::ZoneMates || self.logins < JUDGED {
            return Vec::new();
        }
        let largest = self.mean_us.iter().copied().fold(0.0, f64::max);
        vec![
            Bound::at_most("largest mean of a thousand FDISCs", largest, 20.0, "us"),
            Bound::at_most("mean of the last by that of the second thousand", last / second, 1.5, "times"),
        ]
    }
}

/// Time limit of the algorithms that compare.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Largest number of logins of the contrast.
const CONTRAST: u32 = 4_000;
const STEP: usize = 1_000;

/// Measures logins, and prints the results.
///
/// # Errors
/// If an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let mut logins = measure(args.logins, args.zoning, args.zone_members)?;
    if args.zoning == ZoningAlgorithm::ZoneMates {
        let contrast = measure(args.logins.min(CONTRAST), ZoningAlgorithm::Standard, args.zone_members)?;
        logins.contrast = Some(Box::new(contrast));
    }
    let mut text = text(&logins);
    if let Some(contrast) = &logins.contrast {
        let _ = write!(text, "\nFor contrast, the first {} logins:\n{}", contrast.logins, self::text(contrast));
    }
    let bounds = logins.bounds();
    args.outputs.write_or_print("login", &logins, || text + &bound::text(&bounds))?;
    if args.judge { bound::judge(&bounds) } else { Ok(()) }
}

fn measure(login_count: u32, zoning: ZoningAlgorithm, zone_members: Option<u32>) -> Result<Logins, Failure> {
    let algorithm = match zoning {
        ZoningAlgorithm::Standard => HardZoning::Standard,
        ZoningAlgorithm::Modified => HardZoning::Modified,
        ZoningAlgorithm::ZoneMates => HardZoning::ZoneMates,
    };
    let zones = zones(login_count, zone_members, false);
    let before = rss_bytes();
    let mut bench = Bench::new(zones, algorithm);
    let (mut logins, mut registrations) = (Vec::new(), Vec::new());
    let mut slowest = Duration::ZERO;
    let began = thread_cpu();
    let mut done = 0;
    while done < login_count && (zoning == ZoningAlgorithm::ZoneMates || thread_cpu() - began < TIME_LIMIT) {
        if done % 64 == 0 && interrupt::requested() {
            return Err(Failure::interrupted("the logins were not complete"));
        }
        let (port, bytes) = Bench::login(done);
        let (start, wall) = (thread_cpu(), Instant::now());
        let id = bench.offer(port, &bytes);
        slowest = slowest.max(wall.elapsed());
        logins.push(thread_cpu() - start);
        let messages = Bench::registration(id, done);
        let start = thread_cpu();
        for bytes in &messages {
            bench.offer(port, bytes);
        }
        bench.pass(Span::from_ms(6));
        registrations.push(thread_cpu() - start);
        done += 1;
    }
    let rss = rss_bytes();
    let work = bench.switch().work();
    Ok(Logins {
        zoning,
        logins_asked: login_count,
        logins: done,
        zone_members,
        ports: PORTS,
        mean_us: means(&logins),
        registration_mean_us: means(&registrations),
        slowest_us: slowest.as_secs_f64() * 1e6,
        comparisons: work.comparisons + work.own_port_comparisons,
        zone_members_compared: work.zone_members,
        rscns: bench.switch().counters().rscn_sent,
        permissions: bench.fib().permissions() as u64,
        rss_bytes: rss,
        bytes_per_login: rss.saturating_sub(before) as f64 / f64::from(done.max(1)),
        contrast: None,
    })
}

fn means(times: &[Duration]) -> Vec<f64> {
    let mean = |part: &[Duration]| part.iter().sum::<Duration>().as_secs_f64() * 1e6 / part.len() as f64;
    times.chunks(STEP).map(mean).collect()
}

fn text(logins: &Logins) -> String {
    let algorithm = match logins.zoning {
        ZoningAlgorithm::Standard => "standard algorithm of the NPIV paper",
        ZoningAlgorithm::Modified => "modified algorithm of the NPIV paper",
        ZoningAlgorithm::ZoneMates => "zone-mates",
    };
    let members = logins.zone_members.map_or("2 to 16".into(), |members| members.to_string());
    let mut text = format!(
        "{} logins at {} ports, zones of {members} members, hard zoning by {algorithm}\n",
        format::grouped(logins.logins.into()),
        logins.ports,
    );
    if logins.logins < logins.logins_asked {
        let _ = writeln!(
            text,
            "stopped after {:.0} s: {} logins were requested",
            TIME_LIMIT.as_secs_f64(),
            format::grouped(logins.logins_asked.into())
        );
    }
    let row = |values: &[f64], at: usize| values.get(at).map_or("-".into(), |us| format!("{us:.2} us"));
    text.push_str("logins                 FDISC        registration\n");
    let shown = [0, 1, 2, 3, 9, 29, logins.mean_us.len().saturating_sub(1)];
    let mut shown: Vec<usize> = shown.into_iter().filter(|at| *at < logins.mean_us.len()).collect();
    shown.dedup();
    for at in shown {
        let up_to = ((at + 1) * STEP).min(logins.logins as usize);
        let range = format!("{} to {}", at * STEP + 1, up_to);
        let _ =
            writeln!(text, "{range:<22} {:<12} {}", row(&logins.mean_us, at), row(&logins.registration_mean_us, at));
    }
    let _ = write!(
        text,
        "slowest FDISC          {:.0} us\n\
         zone comparisons       {}\n\
         zone members compared  {}\n\
         permissions            {}\n\
         RSCNs                  {}\n\
         resident               {}, {:.0} bytes per login\n",
        logins.slowest_us,
        format::grouped(logins.comparisons),
        format::grouped(logins.zone_members_compared),
        format::grouped(logins.permissions),
        format::grouped(logins.rscns),
        format::bytes(logins.rss_bytes),
        logins.bytes_per_login,
    );
    text
}
