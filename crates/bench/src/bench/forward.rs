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
use sanloom_live::sys::batch::{self, BATCH};
use sanloom_wire::ether::MacAddr;
use serde::Serialize;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Options of `sanloom bench forward`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Length of each slice, in seconds or with a unit; both forwarders alternate slice by slice
    #[arg(long, value_name = "TIME", default_value = "0.25", value_parser = quantity::seconds)]
    seconds: f64,
    /// Slices of each forwarder; the median counts, and an interval of 95 % requires six
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = quantity::count::<u32>(1..=1000))]
    rounds: u32,
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

[host."h{1..2}"]
wwpn = "20:00:52:54:00:00:00:01"

[[link]]
from = "h{1..2}"
to = "sw1"
ethernet = { carrier = "dgram" }
"#;
/// Batches that one port may bring before the other port is read; the switch uses the same number.
const BATCHES_IN_TURN: usize = 4;
/// Time before each slice in which frames flow, but are not counted.
const WARM_UP: Duration = Duration::from_millis(60);

/// Measures both forwarders, and prints the results.
///
/// # Errors
/// If the switch cannot be started, an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let forwarded = measure(args)?;
    args.outputs.write_or_print("forward", &forwarded, || text(&forwarded))
}

fn measure(args: &Args) -> Result<Forwarded, Failure> {
    let folder = Folder::new("forward")?;
    let switch_thread = switching(&folder, LAB)?;
    let mut stations = Vec::new();
    for number in 1..=2_u8 {
        let mut station = Station::start(&folder, &format!("h{number}-sw1"), MacAddr([0x52, 0x54, 0, 0, 0, number]))?;
        let (port_id, mac) = station.log_in()?;
        stations.push((station, port_id, mac));
    }
    let (source, s_id, mac) = &stations[0];
    let frame = source.data_frame((*s_id, *mac), stations[1].1);
    let frame_bytes = frame.bytes().len();
    let mut ports = stations.into_iter().map(|(station, ..)| station.port);
    let (Some(source), Some(sink)) = (ports.next(), ports.next()) else {
        return Err(Failure::bug("two stations make two ports"));
    };
    let switch = Rig::new(switch_thread.gauge(), source, sink, frame.bytes())?;

    let port = |own: &str, peer: &str| folder.port(own, peer).map_err(Failure::environment);
    let inner = [port("bare.1", "source")?, port("bare.2", "sink")?];
    let outer = [port("source", "bare.1")?, port("sink", "bare.2")?];
    let [source, sink] = outer;
    let bare_thread = Worker::start("bare", |gauge| forward(inner, gauge))?;
    let bare = Rig::new(bare_thread.gauge(), source, sink, frame.bytes())?;

    let rigs = [&bare, &switch];
    let mut samples = [Vec::new(), Vec::new()];
    for round in 0..args.rounds {
        for rig in order(rigs.len(), round as usize) {
            if interrupt::requested() {
                return Err(Failure::interrupted("the measurement was not complete"));
            }
            samples[rig].push(rigs[rig].measure(Duration::from_secs_f64(args.seconds))?);
        }
    }
    let [of_bare, of_switch] = samples;
    let per_cpu_s = |samples: &[Sample]| samples.iter().map(|sample| sample.per_cpu_s).collect::<Vec<f64>>();
    let estimate = Estimate::of_ratios(&per_cpu_s(&of_switch), &per_cpu_s(&of_bare))
        .ok_or_else(|| Failure::environment("the slices are too short to measure processor time"))?;
    Ok(Forwarded { frame_bytes, ratio: estimate.median, estimate, switch: rates(&of_switch), bare: rates(&of_bare) })
}

/// Result of one slice.
#[derive(Clone, Copy, Debug)]
struct Sample {
    frames: u64,
    per_cpu_s: f64,
    per_s: f64,
}

fn rates(samples: &[Sample]) -> Rates {
    Rates {
        frames_per_cpu_s: median(samples.iter().map(|sample| sample.per_cpu_s)),
        frames_per_s: median(samples.iter().map(|sample| sample.per_s)),
        frames: samples.iter().map(|sample| sample.frames).sum(),
    }
}

/// A source and a sink around a forwarder, each with its own thread.
struct Rig {
    gauge: Arc<Gauge>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

#[derive(Default)]
struct Shared {
    sending: AtomicBool,
    over: AtomicBool,
    arrived: AtomicU64,
}

impl Rig {
    fn new(gauge: Arc<Gauge>, source: EthernetPort, sink: EthernetPort, frame: &[u8]) -> Result<Rig, Failure> {
        let shared = Arc::new(Shared::default());
        let (sending, taking, frame) = (shared.clone(), shared.clone(), frame.to_vec());
        let spawn = |name: &str, body: Box<dyn FnOnce() -> io::Result<()> + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(body).map_err(Failure::environment)
        };
        let threads = vec![
            spawn("source", Box::new(move || sending.send(source, &frame)))?,
            spawn("sink", Box::new(move || taking.take(sink)))?,
        ];
        Ok(Rig { gauge, shared, threads })
    }

    fn measure(&self, time: Duration) -> Result<Sample, Failure> {
        self.shared.sending.store(true, Ordering::SeqCst);
        thread::sleep(WARM_UP);
        let cpu = || self.gauge.read().ok_or_else(|| Failure::environment("the thread that forwards has ended"));
        let (before, arrived, begun) = (cpu()?, self.shared.arrived.load(Ordering::SeqCst), Instant::now());
        thread::sleep(time);
        let cpu = (cpu()? - before).as_secs_f64();
        let frames = self.shared.arrived.load(Ordering::SeqCst) - arrived;
        let wall = begun.elapsed().as_secs_f64();
        self.shared.sending.store(false, Ordering::SeqCst);
        if frames == 0 || self.threads.iter().any(JoinHandle::is_finished) {
            return Err(Failure::environment("no frame arrives"));
        }
        Ok(Sample { frames, per_cpu_s: frames as f64 / cpu, per_s: frames as f64 / wall })
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Interval of the checks whether a thread has to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

impl Shared {
    fn send(&self, mut port: EthernetPort, frame: &[u8]) -> io::Result<()> {
        let mut poller = Poller::new()?;
        while !self.over.load(Ordering::Relaxed) {
            if !self.sending.load(Ordering::Relaxed) || !port.has_peer() {
                port.check_peer();
                thread::sleep(CHECK_INTERVAL);
                continue;
            }
            let Some(socket) = port.socket() else { continue };
            match batch::send(socket, std::iter::repeat_n(frame, BATCH)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poller.set(0, Some(socket), Interest { read: false, write: true })?;
                    poller.wait(CHECK_INTERVAL)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn take(&self, mut port: EthernetPort) -> io::Result<()> {
        let (mut poller, mut pool) = (Poller::new()?, Pool::default());
        let mut spare: Vec<FrameBuf> = (0..BATCH).map(|_| pool.take()).collect();
        poller.set(0, port.socket(), Interest { read: true, write: false })?;
        while !self.over.load(Ordering::Relaxed) {
            poller.wait(CHECK_INTERVAL)?;
            loop {
                match port.receive(&mut spare) {
                    Ok((got, _)) => _ = self.arrived.fetch_add(got as u64, Ordering::Relaxed),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
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
    let mut text = format!(
        "frames of {} bytes between two ports (unix datagrams)\n\
         {:<14} frames per CPU s   frames per s\n",
        format::grouped(forwarded.frame_bytes as u64),
        "",
    );
    for (name, rates) in [("switch", &forwarded.switch), ("bare forwarder", &forwarded.bare)] {
        let per_cpu = format::grouped(rates.frames_per_cpu_s as u64);
        let _ = writeln!(text, "{name:<14} {per_cpu:<18} {}", format::grouped(rates.frames_per_s as u64));
    }
    let _ = writeln!(text, "{:<14} {}", "ratio", forwarded.estimate);
    text
}
