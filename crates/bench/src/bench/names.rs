//! `sanloom bench names`: speed of name-server responses.

use super::bound::{self, Bound};
use super::switch::{Bench, zones};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::{rss_bytes, thread_cpu};
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_fc::switch::HardZoning;
use sanloom_scsi::time::Span;
use serde::Serialize;
use std::time::Duration;

/// Options of `sanloom bench names`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Ports that are logged in and registered; one more sees them all
    #[arg(long, value_name = "N", default_value_t = 65_000, value_parser = quantity::count::<u32>(1..=65_535))]
    logins: u32,
    /// Members of each zone [default: 2 to 16 in turn]
    #[arg(long, value_name = "N", value_parser = quantity::count::<u32>(2..=16))]
    zone_members: Option<u32>,
    /// Queries of ports in a zone
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = quantity::count::<u32>(1..=u32::MAX.into()))]
    questions: u32,
    #[command(flatten)]
    outputs: Outputs,
    /// End with exit code 1 if a bound is missed
    #[arg(long)]
    judge: bool,
}

/// Results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Names {
    /// Ports that are logged in and registered.
    pub logins: u32,
    /// Members of each zone; 2 to 16 in turn if absent.
    pub zone_members: Option<u32>,
    /// Number of GPN_FT queries of ports that see their zone-mates, from request bytes to response
    /// bytes.
    pub questions: u32,
    /// Responses per second of processor time.
    pub answers_per_cpu_s: f64,
    /// Mean size of a response with its frame header, in bytes.
    pub mean_answer_bytes: f64,
    /// Mean processor time of a GPN_FT of a port that sees all others, in milliseconds.
    pub all_seeing_ms: f64,
    /// Size of its response with one frame header, in bytes.
    pub all_seeing_answer_bytes: u64,
    /// Resident memory of the process at the end, in bytes.
    pub rss_bytes: u64,
}

/// Number of ports for which the bounds are valid.
const JUDGED: u32 = 65_000;

impl Names {
    fn bounds(&self) -> Vec<Bound> {
        if self.logins < JUDGED {
            return Vec::new();
        }
        vec![
            Bound::at_least("answers per CPU second", self.answers_per_cpu_s, 50_000.0, "GPN_FT"),
            Bound::at_most("one all-seeing GPN_FT", self.all_seeing_ms, 5.0, "ms"),
        ]
    }
}

/// Queries of the port that sees all others.
const ALL_SEEING: u32 = 20;

/// Measures the name server, and prints the results.
///
/// # Errors
/// If an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let names = measure(args)?;
    let bounds = names.bounds();
    args.outputs.write_or_print("names", &names, || text(&names) + &bound::text(&bounds))?;
    if args.judge { bound::judge(&bounds) } else { Ok(()) }
}

fn measure(args: &Args) -> Result<Names, Failure> {
    let mut bench = Bench::new(zones(args.logins, args.zone_members, true), HardZoning::ZoneMates);
    let mut ids = Vec::new();
    for login in 0..=args.logins {
        if login % 64 == 0 && interrupt::requested() {
            return Err(Failure::interrupted("the logins were not complete"));
        }
        let (port, bytes) = Bench::login(login);
        let id = bench.offer(port, &bytes);
        // The first request, SCR, is left out, because no port needs RSCNs here.
        for bytes in &Bench::registration(id, login)[1..] {
            bench.offer(port, bytes);
        }
        bench.pass(Span::from_us(1));
        ids.push(id);
    }
    let all_seeing = ids.pop().unwrap_or_default();
    let queries: Vec<(u16, Vec<u8>)> = ids.iter().map(|id| (bench.port_of(*id), Bench::gpn_ft(*id))).collect();
    let mut bytes = 0;
    let mut time = Duration::ZERO;
    let mut done = 0;
    // A stride through the addresses, so that the queries of neighbours are far apart.
    let mut next = 0;
    while done < args.questions {
        let start = thread_cpu();
        for _ in 0..1_000.min(args.questions - done) {
            let (port, question) = &queries[next];
            bench.offer(*port, question);
            bytes += bench.answer_bytes();
            next = (next + 25_013) % queries.len();
            done += 1;
        }
        time += thread_cpu() - start;
        if interrupt::requested() {
            return Err(Failure::interrupted("the queries were not complete"));
        }
    }
    let (port, question) = (bench.port_of(all_seeing), Bench::gpn_ft(all_seeing));
    let start = thread_cpu();
    for _ in 0..ALL_SEEING {
        bench.offer(port, &question);
    }
    let all = thread_cpu() - start;
    Ok(Names {
        logins: args.logins,
        zone_members: args.zone_members,
        questions: done,
        answers_per_cpu_s: f64::from(done) / time.as_secs_f64().max(1e-9),
        mean_answer_bytes: bytes as f64 / f64::from(done),
        all_seeing_ms: all.as_secs_f64() * 1e3 / f64::from(ALL_SEEING),
        all_seeing_answer_bytes: bench.answer_bytes() as u64,
        rss_bytes: rss_bytes(),
    })
}

fn text(names: &Names) -> String {
    let members = names.zone_members.map_or("2 to 16".into(), |members| members.to_string());
    format!(
        "{} ports registered, zones of {members} members, and one port that sees all\n\
         GPN_FT of ports in a zone   {} answers per CPU s ({} questions, {:.0} bytes each)\n\
         GPN_FT of the one           {:.2} ms ({})\n\
         resident                    {}\n",
        format::grouped(names.logins.into()),
        format::grouped(names.answers_per_cpu_s as u64),
        format::grouped(names.questions.into()),
        names.mean_answer_bytes,
        names.all_seeing_ms,
        format::bytes(names.all_seeing_answer_bytes),
        format::bytes(names.rss_bytes),
    )
}
