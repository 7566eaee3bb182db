//! The switch of an instance (`sanloom up`), alone and beside clients of its page, of its REST
//! interface and of its command line.
//!
//! The clients connect before each slice of theirs, and leave after it. Frames per second of
//! processor time of the forwarding thread count. Threads of the servers and of the clients use
//! other processors, or what the switch leaves of its own. The forwarding thread itself answers the
//! requests for tables, so these are a part of the ratio: also those that it answers while no frame
//! is there.

use super::clients::{ClientCounts, Clients, Interfaces, Tally};
use super::rig::{Cpu, Rig};
use super::{Args, LAB, Rates, Stations, check_interrupt, rates, ratio, table};
use crate::bench::ethernet::Folder;
use crate::bench::statistics::{Estimate, order};
use crate::process::{Process, program};
use sanloom_console::exit::Failure;
use sanloom_console::report::format;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Length of a slice, in seconds. Pages receive events once per second.
const SLICE_S: f64 = 2.0;
/// Port of the REST interface; that of the command line is two more.
const REST_PORT: u16 = 8080;

/// Results of the switch alone and beside clients.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Beside {
    /// Bytes of each frame, Ethernet header included.
    pub frame_bytes: usize,
    /// Numbers of clients.
    pub clients: ClientCounts,
    /// The switch alone.
    pub alone: Rates,
    /// The switch beside the clients.
    pub beside: Rates,
    /// Frames per second of processor time, beside clients to alone: paired slices.
    pub estimate: Estimate,
    /// Events that the pages have received.
    pub events: u64,
    /// Answers to busy clients.
    pub answers: u64,
    /// Requests of busy clients that were refused, as the server was busy.
    pub refused: u64,
    /// Logins with a wrong password that were refused.
    pub logins: u64,
    /// Connections of SSH that were broken in the key exchange.
    pub broken: u64,
    /// Connections of clients that try logins which the servers refused or closed, to protect
    /// themselves.
    pub closed: u64,
    /// Idle connections that were open at the end of a slice, at most.
    pub kept: u64,
    /// Largest memory of the instance, in bytes.
    pub max_rss_bytes: u64,
}

/// Measures an instance in a process of its own.
///
/// # Errors
/// If the instance or a client cannot be started, or Ctrl-C was pressed.
pub(super) fn measure(args: &Args) -> Result<Beside, Failure> {
    let folder = Folder::new("forward-beside")?;
    let (process, interfaces) = start(&folder)?;
    let Stations { ports, frame } = Stations::log_in(&folder)?;
    let rig = Rig::new(cpu_of(process.id()), ports, frame.bytes())?;
    let time = Duration::from_secs_f64(args.seconds.unwrap_or(SLICE_S));
    let (mut samples, tally) = ([Vec::new(), Vec::new()], Arc::new(Tally::default()));
    for round in 0..args.rounds {
        for way in order(samples.len(), round as usize) {
            check_interrupt()?;
            let clients = (way == 1).then(|| Clients::connect(args.clients, interfaces, &tally)).transpose()?;
            samples[way].push(rig.measure(time)?);
            clients.map_or(Ok(()), Clients::finish)?;
        }
    }
    let [alone, beside] = samples;
    let count = |value: &std::sync::atomic::AtomicU64| value.load(Ordering::Relaxed);
    Ok(Beside {
        frame_bytes: frame.bytes().len(),
        clients: args.clients,
        estimate: ratio(&beside, &alone)?,
        alone: rates(&alone),
        beside: rates(&beside),
        events: count(&tally.events),
        answers: count(&tally.answers),
        refused: count(&tally.refused),
        logins: count(&tally.logins),
        broken: count(&tally.broken),
        closed: count(&tally.closed),
        kept: count(&tally.kept),
        max_rss_bytes: max_rss_bytes(process.id()),
    })
}

/// Starts an instance with all its interfaces, and waits until they are served.
fn start(folder: &Folder) -> Result<(Process, Interfaces), Failure> {
    let path = folder.path().join("lab.toml");
    let lab = format!("[live]\nfolder = \"{}\"\n{LAB}", folder.path().display());
    fs::write(&path, lab).map_err(Failure::environment)?;
    let address = free_address()?;
    let mut command = program()?;
    command.args(["up", "--threads", "1", "--log-json", "--web", "127.0.0.1:0", "--web-open", "--fos-ssh", "--fos"]);
    command.arg(format!("{address}:{REST_PORT}")).arg(&path);
    let mut process = Process::start(command, "the instance", folder.path()).map_err(Failure::environment)?;
    let mut page = None;
    process
        .wait_until("its page was served", || {
            let log = process_log(folder);
            page = page_of(&log).filter(|_| log.contains("\"up\""));
            page.is_some()
        })
        .map_err(Failure::environment)?;
    let at = |port| SocketAddr::V4(SocketAddrV4::new(address, port));
    let page = page.ok_or_else(|| Failure::bug("the page has no address"))?;
    Ok((process, Interfaces { page, rest: at(REST_PORT), ssh: at(REST_PORT + 2) }))
}

/// Finds a loopback address whose ports of the interfaces are free.
fn free_address() -> Result<Ipv4Addr, Failure> {
    let [_, _, third, last] = std::process::id().to_be_bytes();
    let mut addresses = (2..=254).map(|second| Ipv4Addr::new(127, second, third, last));
    let is_free = |address: &Ipv4Addr| (0..3).all(|port| TcpListener::bind((*address, REST_PORT + port)).is_ok());
    addresses.find(is_free).ok_or_else(|| {
        Failure::environment(format_args!("no loopback address has the ports {REST_PORT} to {} free", REST_PORT + 2))
    })
}

fn process_log(folder: &Folder) -> String {
    fs::read_to_string(folder.path().join("the instance.err")).unwrap_or_default()
}

/// Finds the address of the page in the log of an instance.
fn page_of(log: &str) -> Option<SocketAddr> {
    log.lines().find_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        let url = line.get("url").or_else(|| line.get("fields")?.get("url"))?.as_str()?;
        url.strip_prefix("http://")?.trim_end_matches('/').parse().ok()
    })
}

/// Reads the processor time of the main thread of a process, which forwards.
fn cpu_of(process: u32) -> Cpu {
    let path = format!("/proc/{process}/task/{process}/schedstat");
    Box::new(move || {
        let text = fs::read_to_string(&path).ok()?;
        Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
    })
}

/// Largest resident memory of a process, 0 if it is unknown.
fn max_rss_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    peak.unwrap_or(0_u64) << 10
}

impl Beside {
    /// The results as a table.
    pub(super) fn text(&self) -> String {
        let mut text =
            table(self.frame_bytes, [("alone", &self.alone), ("beside clients", &self.beside)], self.estimate);
        let ClientCounts { pages, idle, busy, logins } = self.clients;
        let number = format::grouped;
        let rows = [
            (pages, format!("pages received {} events", number(self.events))),
            (idle, format!("idle connections, {} kept", number(self.kept))),
            (busy, format!("busy clients had {} answers, {} refused", number(self.answers), number(self.refused))),
            (
                logins,
                format!(
                    "clients had {} logins refused, broke {} connections of SSH, and had {} closed",
                    number(self.logins),
                    number(self.broken),
                    number(self.closed)
                ),
            ),
        ];
        for (count, row) in rows.into_iter().filter(|(count, _)| *count > 0) {
            let _ = writeln!(text, "{count:>6} {row}");
        }
        let _ =
            writeln!(text, "memory of the instance: at most {:.1} MiB", self.max_rss_bytes as f64 / f64::from(1 << 20));
        text
    }
}
