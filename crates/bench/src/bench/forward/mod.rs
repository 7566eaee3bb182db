//! `sanloom bench forward`: cost of a frame in the switch, beside a forwarder that does not inspect
//! it.
//!
//! ```text
//!   source ──▶ unix datagrams ──▶ the thread that is measured ──▶ unix datagrams ──▶ sink
//! ```
//!
//! Both are a loop of `epoll_wait`, `recvmmsg` and `sendmmsg` over the same kind of ports. The two
//! alternate in short slices, so that other load on the machine affects both
//! ([`super::statistics`]).
//!
//! With `--pages`, `--idle`, `--busy` or `--logins`, the switch of an instance is measured alone
//! and beside such clients of its interfaces ([`beside`]).

mod beside;
mod clients;
mod rig;

use self::clients::ClientCounts;
use self::rig::{CHECK_INTERVAL, Cpu, Rig, RigPort, Sample};
use super::ethernet::station::Station;
use super::ethernet::{Folder, Gauge, Worker, switching};
use super::statistics::{Estimate, median, order};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_live::clock::Clock;
use sanloom_live::frame::{FrameBuf, Pool};
use sanloom_live::poll::{Interest, Poller};
use sanloom_live::ports::EthernetPort;
use sanloom_live::sys::batch::BATCH;
use sanloom_wire::ether::MacAddr;
use serde::Serialize;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Options of `sanloom bench forward`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Length of each slice, in seconds or with a unit; what is compared alternates slice by slice
    /// [default: 0.25, or 2 beside clients]
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    seconds: Option<f64>,
    /// Slices of each of both; the median counts, and an interval of 95 % requires six
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = quantity::count::<u32>(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    clients: ClientCounts,
    #[command(flatten)]
    outputs: Outputs,
}

/// Results of both forwarders.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Forwarded {
    /// Bytes of each frame, Ethernet header included.
    pub frame_bytes: usize,
    /// The switch: tables, zones, source addresses, counters.
    pub switch: Rates,
    /// The forwarder that does not inspect frames.
    pub bare: Rates,
    /// Frames per second of processor time, switch to bare forwarder: median of the paired slices.
    pub ratio: f64,
    /// The same with its confidence interval.
    pub estimate: Estimate,
}

/// Results of one forwarder.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rates {
    /// Frames per second of processor time: median of the slices.
    pub frames_per_cpu_s: f64,
    /// Frames per second: median of the slices.
    pub frames_per_s: f64,
    /// Frames that arrived in all slices.
    pub frames: u64,
}

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "2s" }

[host."h{1..2}"]
wwpn = "20:00:52:54:00:00:00:01"

[[link]]
from = "h{1..2}"
to = "sw1"
ethernet = { carrier = "dgram" }
"#;
/// Length of a slice, in seconds.
const SLICE_S: f64 = 0.25;
/// Batches that one port may bring before the other port is read; the switch uses the same number.
const BATCHES_IN_TURN: usize = 4;

/// Measures both forwarders, and prints the results.
///
/// # Errors
/// If the switch cannot be started, an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    if args.clients.is_any() {
        let beside = beside::measure(args)?;
        return args.outputs.write_or_print("forward", &beside, || beside.text());
    }
    let forwarded = measure(args)?;
    args.outputs.write_or_print("forward", &forwarded, || text(&forwarded))
}

fn measure(args: &Args) -> Result<Forwarded, Failure> {
    let folder = Folder::new("forward")?;
    let switch_thread = switching(&folder, LAB)?;
    let Stations { ports, frame } = Stations::log_in(&folder)?;
    let frame_bytes = frame.bytes().len();
    let switch = Rig::new(cpu_of(switch_thread.gauge()), ports, frame.bytes())?;

    let port = |own: &str, peer: &str| folder.port(own, peer).map_err(Failure::environment);
    let inner = [port("bare.1", "source")?, port("bare.2", "sink")?];
    let outer = [port("source", "bare.1")?, port("sink", "bare.2")?];
    let outer = outer.map(|port| RigPort { port, keep_alives: Vec::new() });
    let bare_thread = Worker::start("bare", |gauge| forward(inner, gauge))?;
    let bare = Rig::new(cpu_of(bare_thread.gauge()), outer, frame.bytes())?;

    let rigs = [&bare, &switch];
    let mut samples = [Vec::new(), Vec::new()];
    let time = Duration::from_secs_f64(args.seconds.unwrap_or(SLICE_S));
    for round in 0..args.rounds {
        for rig in order(rigs.len(), round as usize) {
            check_interrupt()?;
            samples[rig].push(rigs[rig].measure(time)?);
        }
    }
    let [of_bare, of_switch] = samples;
    let estimate = ratio(&of_switch, &of_bare)?;
    Ok(Forwarded { frame_bytes, ratio: estimate.median, estimate, switch: rates(&of_switch), bare: rates(&of_bare) })
}

/// Two hosts at the switch of [`LAB`], and a frame from the first to the second.
struct Stations {
    ports: [RigPort; 2],
    frame: FrameBuf,
}

impl Stations {
    fn log_in(folder: &Folder) -> Result<Stations, Failure> {
        let station = |number: u8| {
            let mac = MacAddr([0x52, 0x54, 0, 0, 0, number]);
            let mut station = Station::start(folder, &format!("h{number}-sw1"), mac)?;
            let (port_id, mac) = station.log_in()?;
            Ok::<_, Failure>((station, port_id, mac))
        };
        let stations = [station(1)?, station(2)?];
        let [(source, s_id, mac), (_, d_id, _)] = &stations;
        let frame = source.data_frame((*s_id, *mac), *d_id);
        let ports = stations.map(|(station, port_id, mac)| RigPort {
            keep_alives: station.keep_alives((port_id, mac)),
            port: station.port,
        });
        Ok(Stations { ports, frame })
    }
}

fn cpu_of(gauge: Arc<Gauge>) -> Cpu {
    Box::new(move || gauge.read())
}

fn check_interrupt() -> Result<(), Failure> {
    match interrupt::requested() {
        true => Err(Failure::interrupted("the measurement was not complete")),
        false => Ok(()),
    }
}

/// Frames per second of processor time of paired slices, as a ratio.
fn ratio(samples: &[Sample], to: &[Sample]) -> Result<Estimate, Failure> {
    let per_cpu_s = |samples: &[Sample]| samples.iter().map(|sample| sample.per_cpu_s).collect::<Vec<f64>>();
    Estimate::of_ratios(&per_cpu_s(samples), &per_cpu_s(to))
        .ok_or_else(|| Failure::environment("the slices are too short to measure processor time"))
}

fn rates(samples: &[Sample]) -> Rates {
    Rates {
        frames_per_cpu_s: median(samples.iter().map(|sample| sample.per_cpu_s)),
        frames_per_s: median(samples.iter().map(|sample| sample.per_s)),
        frames: samples.iter().map(|sample| sample.frames).sum(),
    }
}

/// Forwards the frames of each port through the other one without inspecting them.
fn forward(mut ports: [EthernetPort; 2], gauge: &Gauge) -> io::Result<()> {
    let (mut poller, mut pool, clock) = (Poller::new()?, Pool::default(), Clock::start());
    let mut spare: Vec<FrameBuf> = (0..BATCH).map(|_| pool.take()).collect();
    let mut ready = [false; 2];
    let mut held = [false; 2];
    while gauge.go_on() {
        let now = clock.now();
        for from in 0..2 {
            let to = 1 - from;
            for _ in 0..BATCHES_IN_TURN {
                if !ready[from] || held[from] {
                    break;
                }
                let got = match ports[from].receive(&mut spare) {
                    Ok((got, _)) => got,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                    Err(error) => return Err(error),
                };
                ready[from] = got == BATCH;
                for place in &mut spare[..got] {
                    let frame = std::mem::replace(place, pool.take());
                    ports[to].push(now, frame);
                }
                held[from] = ports[to].egress.is_full();
            }
        }
        for (to, port) in ports.iter_mut().enumerate() {
            if !port.has_peer() {
                port.check_peer();
            }
            if !port.egress.blocked {
                port.flush(&mut pool);
            }
            held[1 - to] &= !port.egress.has_room();
            let interest =
                Interest { read: !held[to] && !ready[to], write: port.egress.blocked && !port.egress.is_empty() };
            poller.set(to as u64, port.socket(), interest)?;
        }
        let busy = (0..2).any(|port| ready[port] && !held[port]);
        for event in poller.wait(if busy { Duration::ZERO } else { CHECK_INTERVAL })? {
            let port = event.token as usize;
            ready[port] |= event.readable;
            ports[port].egress.blocked &= !event.writable;
        }
    }
    Ok(())
}

fn text(forwarded: &Forwarded) -> String {
    let (ways, estimate) = ([("switch", &forwarded.switch), ("bare forwarder", &forwarded.bare)], forwarded.estimate);
    table(forwarded.frame_bytes, ways, estimate)
}

/// The rates of two ways to forward, and their ratio.
fn table(frame_bytes: usize, ways: [(&str, &Rates); 2], estimate: Estimate) -> String {
    let mut text = format!(
        "frames of {} bytes between two ports (unix datagrams)\n\
         {:<14} frames per CPU s   frames per s\n",
        format::grouped(frame_bytes as u64),
        "",
    );
    for (name, rates) in ways {
        let per_cpu = format::grouped(rates.frames_per_cpu_s as u64);
        let _ = writeln!(text, "{name:<14} {per_cpu:<18} {}", format::grouped(rates.frames_per_s as u64));
    }
    let _ = writeln!(text, "{:<14} {estimate}", "ratio");
    text
}
