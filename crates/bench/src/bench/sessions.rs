//! `sanloom bench sessions`: hosts at an iSCSI switch with one thread and with several.
//!
//! ```text
//!   sessions of this process ──▶ switch, 1 thread ──────────▶ storage, a process for each back end
//!                            ──▶ switch, several threads ───▶
//!                            ──▶ switches with 1 thread each ▶
//! ```
//!
//! The third path shares nothing between its switches but the machine: the ceiling of the design.
//! Clients and storage need the same processors, so a second ceiling is computed: the processors of
//! the machine, divided by those that all processes use while the switch has one thread. The paths
//! alternate in short slices ([`super::statistics`]).

use super::ethernet::Folder;
use super::io::measure::Quantity;
use super::io::{Compared, Comparison, Op, Row, parse_size};
use super::statistics::{Decision, Estimate, Limit};
use crate::live_lab::{self, free_ports, iscsi_name};
use crate::process::Process;
use sanloom_console::exit::Failure;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use serde::Serialize;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;

/// Options of `sanloom bench sessions`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Threads of the second switch; the first one has one
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = quantity::count::<usize>(2..=16))]
    threads: usize,
    /// Numbers of sessions at the same time
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "1,2,8,64",
        value_parser = quantity::count::<u32>(1..=256)
    )]
    sessions: Vec<u32>,
    /// Bytes of a request, such as 4K,64K
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "4K,64K", value_parser = parse_size)]
    size: Vec<u32>,
    /// Requests in flight in each session
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = quantity::count::<u32>(1..=128))]
    depth: u32,
    /// Kinds of requests
    #[arg(long, value_enum, value_delimiter = ',', default_value = "read")]
    op: Vec<Op>,
    /// Length of each slice, in seconds or with a unit; the switches alternate slice by slice
    #[arg(long, value_name = "TIME", default_value = "0.2", value_parser = quantity::seconds)]
    seconds: f64,
    /// Slices of each switch; the median counts, and an interval of 95 % requires six
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = quantity::count::<u32>(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    outputs: Outputs,
}

/// Results for all numbers of sessions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sessions {
    /// Threads of the second switch.
    pub threads: usize,
    /// Processors that hosts, switch and storage share.
    pub processors: usize,
    /// Requests in flight in each session.
    pub depth: u32,
    /// A row for each kind, size and number of sessions.
    pub rows: Vec<Measured>,
}

/// Results for one number of sessions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// Kind of the requests.
    pub op: Op,
    /// Bytes of a request.
    pub size_bytes: u32,
    /// Sessions at the same time.
    pub sessions: u32,
    /// Requests per second with one thread: median of the slices.
    pub one_iops: f64,
    /// Requests per second with several threads divided by those with one: paired slices.
    pub ratio: Estimate,
    /// Verdict on several threads.
    pub faster: Decision,
    /// The same ratio for switches with one thread each that share the sessions.
    pub apart: Estimate,
    /// Processors that hosts, switch and storage use together while the switch has one thread.
    pub busy_processors: f64,
}

/// Name of the storage system of each switch, so that its target has the same name everywhere.
const SWITCH: &str = "switch";
/// Name of the volume of each switch.
const VOLUME: &str = "v";
/// Share of the commands that must be forwarded; the first ones of a session precede its logins at
/// the back ends.
const MIN_FORWARDED: f64 = 0.9;

/// Measures all numbers of sessions, and prints the results.
///
/// # Errors
/// If a part cannot be started, commands are not forwarded, an output cannot be written, or Ctrl-C
/// was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let sessions = measure(args)?;
    args.outputs.write_or_print("sessions", &sessions, || text(&sessions))
}

fn measure(args: &Args) -> Result<Sessions, Failure> {
    let bed = Bed::start(args.threads)?;
    let mut rows = Vec::new();
    for sessions in &args.sessions {
        let compared = |(name, rig): (&'static str, &Rig)| Compared {
            name,
            portal: rig.portals[0],
            more: rig.portals[1..].to_vec(),
            target: iscsi_name(SWITCH),
            lun: 0,
            pids: rig.pids.iter().chain(&bed.storage).copied().collect(),
            digests: false,
            sessions: None,
        };
        let report = Comparison {
            paths: ["one", "several", "apart"].into_iter().zip(&bed.rigs).map(compared).collect(),
            size: args.size.clone(),
            depth: vec![args.depth],
            op: args.op.clone(),
            sessions: *sessions,
            seconds: args.seconds,
            rounds: args.rounds,
        }
        .run()?;
        for cell in &report.cells {
            let ratio = |path| {
                Estimate::of(cell.ratios(path, 0, Quantity::Throughput))
                    .ok_or_else(|| Failure::environment("the slices are too short to measure throughput"))
            };
            let several = ratio(1)?;
            rows.push(Measured {
                op: cell.op,
                size_bytes: cell.size_bytes,
                sessions: *sessions,
                one_iops: cell.paths[0].iops,
                ratio: several,
                faster: several.decide(Limit::AtLeast(1.0)),
                apart: ratio(2)?,
                busy_processors: busy(&cell.paths[0]),
            });
        }
    }
    bed.check()?;
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Ok(Sessions { threads: args.threads, processors, depth: args.depth, rows })
}

/// Processors that the sessions and the processes of a path use. Milliseconds per GB times MB per
/// second are 10^-6 of a processor.
fn busy(row: &Row) -> f64 {
    (row.own_cpu_ms_per_gb + row.process_cpu_ms_per_gb.unwrap_or_default()) * row.mb_per_s / 1e6
}

/// Switches of one path.
struct Rig {
    portals: Vec<SocketAddr>,
    pids: Vec<u32>,
}

/// Storage and switches, each in its own process.
struct Bed {
    processes: Vec<Process>,
    /// Lab files of the switches.
    labs: Vec<PathBuf>,
    storage: Vec<u32>,
    /// One thread; several; several switches with one thread each.
    rigs: Vec<Rig>,
    folder: Folder,
}

impl Bed {
    fn start(threads: usize) -> Result<Bed, Failure> {
        let folder = Folder::new("sessions")?;
        let switches = threads + 2;
        let mut ports = free_ports(threads + switches)?.into_iter();
        let mut next = || ports.next().ok_or_else(|| Failure::bug("too few ports were opened"));
        let mut bed = Bed { processes: Vec::new(), labs: Vec::new(), storage: Vec::new(), rigs: Vec::new(), folder };
        let back_ends: Vec<SocketAddr> = (0..threads).map(|_| next()).collect::<Result<_, _>>()?;
        for (number, portal) in back_ends.iter().enumerate() {
            let mut lab = String::new();
            for disk in 0..switches {
                let _ = writeln!(
                    lab,
                    "[storage.disk{number}-{disk}]\nlun_size = \"64MiB\"\niscsi = {{ portals = \"{portal}\" }}"
                );
            }
            let pid = bed.up(&format!("storage{number}"), &lab, 1)?;
            bed.storage.push(pid);
        }
        for switch in 0..switches {
            let portal = next()?;
            let mut lab = format!(
                "[storage.{SWITCH}]\nmedium = \"volumes\"\niscsi = {{ portals = \"{portal}\", forward = true }}\n\
                 [pool.disks]\nextent = \"1MiB\"\n[volume.{VOLUME}]\npool = \"disks\"\nsize = \"48MiB\"\n\
                 width = {threads}\nstripe = \"64KiB\"\nstorage = \"{SWITCH}\"\nlun = 0\n"
            );
            for (number, portal) in back_ends.iter().enumerate() {
                let target = iscsi_name(&format!("disk{number}-{switch}"));
                let _ = writeln!(
                    lab,
                    "[back_end.b{number}]\npool = \"disks\"\ntarget = \"{target}\"\nportals = \"{portal}\""
                );
            }
            let name = format!("switch{switch}");
            let pid = bed.up(&name, &lab, if switch == 1 { threads } else { 1 })?;
            bed.labs.push(bed.file(&name));
            match bed.rigs.get_mut(2) {
                Some(apart) => {
                    apart.portals.push(portal);
                    apart.pids.push(pid);
                }
                None => bed.rigs.push(Rig { portals: vec![portal], pids: vec![pid] }),
            }
        }
        for lab in &bed.labs {
            live_lab::wait_for_volume(lab, VOLUME)?;
        }
        Ok(bed)
    }

    /// Starts a lab, and waits until it is ready; returns its process number.
    fn up(&mut self, name: &str, lab: &str, threads: usize) -> Result<u32, Failure> {
        let process = live_lab::up(self.folder.path(), name, lab, &["--threads", &threads.to_string()])?;
        let pid = process.id();
        self.processes.push(process);
        Ok(pid)
    }

    fn file(&self, name: &str) -> PathBuf {
        live_lab::file(self.folder.path(), name)
    }

    /// Checks that the commands of all switches were forwarded.
    fn check(&self) -> Result<(), Failure> {
        for lab in &self.labs {
            let Some(row) = live_lab::volume(lab, VOLUME)? else {
                return Err(Failure::bug(format_args!("the volume `{VOLUME}` of {} is gone", lab.display())));
            };
            let [forwarded, conventional] = [row.forwarded.commands, row.conventional.commands];
            if (forwarded as f64) < MIN_FORWARDED * (forwarded + conventional) as f64 {
                return Err(Failure::bug(format_args!(
                    "{conventional} of {} commands to {} were not forwarded",
                    forwarded + conventional,
                    lab.display()
                )));
            }
        }
        Ok(())
    }
}

fn text(sessions: &Sessions) -> String {
    let Sessions { threads, processors, depth, rows } = sessions;
    let mut text = format!(
        "sessions at an iSCSI switch, {depth} requests each; ratios to one thread: medians of paired slices [95 %]\n\
         {processors} processors, which hosts, switch and storage share\n\
         {:<6} {:>9} {:>8}  {:>10}  {:<18} {:<10} {:<18} {:>4}  limit\n",
        "op",
        "bytes",
        "sessions",
        "1 thread/s",
        format!("{threads} threads"),
        "faster",
        format!("{threads} switches"),
        "busy"
    );
    for row in rows {
        let op = if row.op == Op::Read { "read" } else { "write" };
        let (iops, ratio, faster, apart) = (
            format::grouped(row.one_iops as u64),
            row.ratio.to_string(),
            row.faster.to_string(),
            row.apart.to_string(),
        );
        let limit = *processors as f64 / row.busy_processors.max(f64::MIN_POSITIVE);
        let _ = writeln!(
            text,
            "{op:<6} {:>9} {:>8}  {iops:>10}  {ratio:<18} {faster:<10} {apart:<18} {:>4.2}  {limit:.2}",
            format::grouped(u64::from(row.size_bytes)),
            row.sessions,
            row.busy_processors,
        );
    }
    text += "busy: processors in use with one thread; limit: all processors divided by busy\n";
    text
}
