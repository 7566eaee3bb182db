//! `sanloom bench threads`: pairs of Ethernet ports at a switch with one thread and with several.
//!
//! ```text
//!   source ──▶ veth ──▶ socket of the switch │ measured threads │ ──▶ veth ──▶ counter
//! ```
//!
//! Sources and sinks would need the same processors. Therefore the sources fill the sockets while
//! the switch stands still, and the kernel counts and discards the frames behind it. The time from
//! the start of the switch to the last frame counts. A third measurement has a switch of its own
//! for each pair, which share nothing but the kernel: the ceiling of the machine. All three
//! alternate in short slices ([`super::statistics`]).

use super::ethernet::station::Station;
use super::ethernet::{Folder, Worker};
use super::statistics::{Estimate, median, order};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_live::ports::{Driver, EthernetPort, Packet};
use sanloom_live::runtime::plan::Options;
use sanloom_live::runtime::{Runtime, UpError};
use sanloom_live::sys::batch::{self, BATCH};
use sanloom_wire::ether::MacAddr;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Options of `sanloom bench threads`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Threads of the second switch; the first one has one
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = quantity::count::<usize>(1..=64))]
    threads: usize,
    /// Pairs of ports; frames pass from the first to the second of each pair
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = quantity::count::<u8>(1..=16))]
    pairs: u8,
    /// Frames of each pair in a slice; the buffer of a socket must hold them
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = quantity::count::<u32>(64..=100_000))]
    frames: u32,
    /// Slices of each switch; the median counts, and an interval of 95 % requires six
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = quantity::count::<u32>(1..=10_000))]
    rounds: u32,
    #[command(flatten)]
    outputs: Outputs,
}

/// Results of both switches.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Threads {
    /// Threads of the second switch.
    pub threads: usize,
    /// Pairs of ports.
    pub pairs: u8,
    /// Bytes of each frame, Ethernet header included.
    pub frame_bytes: usize,
    /// Frames per second of the switch with one thread: median of the slices.
    pub one_frames_per_s: f64,
    /// Frames per second of the switch with several threads: median of the slices.
    pub several_frames_per_s: f64,
    /// Frames per second of as many switches as pairs, each with one pair and one thread: what the
    /// machine and its kernel permit. Median of the slices.
    pub apart_frames_per_s: f64,
    /// Frames per second with several threads divided by those with one: paired slices.
    pub ratio: Estimate,
    /// The same for the switches with one pair each.
    pub ceiling: Estimate,
}

/// Time limit of a slice.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Interval at which the counters of the kernel are read.
const LOOK: Duration = Duration::from_micros(100);

/// Measures both switches, and prints the results.
///
/// # Errors
/// Without the permission to create interfaces, if a switch cannot be started or loses frames, an
/// output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let threads = measure(args)?;
    args.outputs.write_or_print("threads", &threads, || text(&threads))
}

fn measure(args: &Args) -> Result<Threads, Failure> {
    let pairs = args.pairs;
    let mut rigs = [
        vec![Switch::start(0, pairs, 1)?],
        vec![Switch::start(1, pairs, args.threads)?],
        (0..pairs).map(|number| Switch::start(2 + number, 1, 1)).collect::<Result<_, _>>()?,
    ];
    let frame_bytes = rigs[0][0].sources.first().map_or(0, |(_, frame)| frame.len());
    let mut samples = [const { Vec::new() }; 3];
    for round in 0..args.rounds {
        for rig in order(rigs.len(), round as usize) {
            if interrupt::requested() {
                return Err(Failure::interrupted("the measurement was not complete"));
            }
            samples[rig].push(measure_slice(&mut rigs[rig], args.frames)?);
        }
    }
    let [one, several, apart] = samples;
    let ratio = |samples: &[f64]| {
        Estimate::of_ratios(samples, &one)
            .ok_or_else(|| Failure::environment("the slices are too short to measure their time"))
    };
    Ok(Threads {
        threads: args.threads,
        pairs,
        frame_bytes,
        ratio: ratio(&several)?,
        ceiling: ratio(&apart)?,
        one_frames_per_s: median(one),
        several_frames_per_s: median(several),
        apart_frames_per_s: median(apart),
    })
}

/// A pair of interfaces, each of which receives what the other one sends; removed on drop.
struct Veth([String; 2]);

impl Veth {
    fn new(name: &str) -> Result<Veth, Failure> {
        let ends = ["a", "b"].map(|end| format!("{name}{end}"));
        let [a, b] = &ends;
        let ip = |words: &str| -> Result<(), Failure> {
            let done = Command::new("ip").args(words.split(' ')).output().map_err(|error| {
                Failure::environment(format!("cannot run `ip`: {error}; install the package iproute2"))
            })?;
            match done.status.success() {
                true => Ok(()),
                false => Err(Failure::environment(format!(
                    "`ip {words}` failed: {}; run as root, or with the capabilities CAP_NET_ADMIN and CAP_NET_RAW",
                    String::from_utf8_lossy(&done.stderr).trim()
                ))),
            }
        };
        ip(&format!("link add {a} mtu 2500 type veth peer name {b} mtu 2500"))?;
        let veth = Veth(ends.clone());
        // Nothing but FCoE is to be counted.
        for end in &ends {
            ip(&format!("link set {end} addrgenmode none up"))?;
        }
        Ok(veth)
    }

    /// Frames that one end has received.
    fn received(end: &str) -> Result<u64, Failure> {
        let path = format!("/sys/class/net/{end}/statistics/rx_packets");
        let text = std::fs::read_to_string(path).map_err(Failure::environment)?;
        text.trim().parse().map_err(Failure::environment)
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "delete", &self.0[0]]).output();
    }
}

/// A switch with a number of threads, its interfaces, and the hosts at them.
struct Switch {
    /// Port of the source of each pair, and its frame.
    sources: Vec<(EthernetPort, Vec<u8>)>,
    /// Interfaces behind the switch, which count the frames.
    sinks: Vec<String>,
    gate: Gate,
    worker: Worker<UpError>,
    /// Removed after the switch has ended.
    _interfaces: Vec<Veth>,
    _folder: Folder,
}

impl Switch {
    /// Starts a switch; `number` makes its names unique.
    fn start(number: u8, pairs: u8, threads: usize) -> Result<Switch, Failure> {
        let folder = Folder::new(&format!("threads-{number}"))?;
        let mut text = format!("[live]\nfolder = \"{}\"\n", folder.path().display());
        // Nobody sends keep-alives during the measurement.
        text += "[switch.sw1]\nfcoe = { keep_alive = \"90s\" }\n";
        let mut interfaces = Vec::new();
        for host in 0..2 * pairs {
            let veth = Veth::new(&format!("sl{}x{number}x{host}", std::process::id() % 10_000))?;
            let _ = writeln!(
                text,
                "[host.h{host}]\n[[link]]\nfrom = \"h{host}\"\nto = \"sw1\"\n\
                 ethernet = {{ carrier = \"packet\", address = \"{}\" }}",
                veth.0[0]
            );
            interfaces.push(veth);
        }
        let (gate, mut worker) = switching(&text, threads)?;
        let mut hosts = Vec::new();
        for (host, veth) in (0..).zip(&interfaces) {
            let packet = Packet::open(&veth.0[1]).map_err(Failure::environment)?;
            let port = EthernetPort::new(&veth.0[1], Driver::Packet(packet));
            let mut station = Station::at(port, MacAddr([0x52, 0x54, 0, 0, number, host]))
                .map_err(|failure| worker.end().unwrap_or(failure))?;
            let (port_id, mac) = station.log_in()?;
            hosts.push((station, port_id, mac, veth.0[1].clone()));
        }
        let (mut sources, mut sinks) = (Vec::new(), Vec::new());
        let mut hosts = hosts.into_iter();
        while let (Some((source, s_id, mac, _)), Some((_, d_id, _, sink))) = (hosts.next(), hosts.next()) {
            let frame = source.data_frame((s_id, mac), d_id);
            sources.push((source.port, frame.bytes().to_vec()));
            sinks.push(sink);
        }
        Ok(Switch { sources, sinks, gate, worker, _interfaces: interfaces, _folder: folder })
    }

    /// Stops the switch, and fills its sockets. The switch runs when the result is dropped.
    fn fill(&mut self, frames: u32) -> Result<Sender<()>, Failure> {
        let ended = || Failure::environment("the switch has ended");
        let go = self.gate.close().ok_or_else(|| self.worker.end().unwrap_or_else(ended))?;
        for (port, frame) in &self.sources {
            let Some(socket) = port.socket() else { continue };
            let mut left = frames as usize;
            while left > 0 {
                let batch = std::iter::repeat_n(&frame[..], left.min(BATCH));
                left -= batch::send(socket, batch).map_err(Failure::environment)?;
            }
        }
        Ok(go)
    }

    /// Frames that all sinks have received.
    fn arrived(&self) -> Result<u64, Failure> {
        self.sinks.iter().map(|sink| Veth::received(sink)).sum()
    }
}

/// Fills the sockets of switches, lets all of them run, and returns their frames per second.
fn measure_slice(switches: &mut [Switch], frames: u32) -> Result<f64, Failure> {
    let mut gates = Vec::new();
    for switch in &mut *switches {
        gates.push(switch.fill(frames)?);
    }
    let total = || switches.iter().map(Switch::arrived).sum::<Result<u64, Failure>>();
    let sent = u64::from(frames) * switches.iter().map(|switch| switch.sources.len() as u64).sum::<u64>();
    let wanted = total()? + sent;
    let begun = Instant::now();
    drop(gates);
    while total()? < wanted {
        if begun.elapsed() > TIME_LIMIT {
            return Err(Failure::environment(
                "frames are lost; use fewer `--frames`, so that the buffers of the sockets hold them",
            ));
        }
        thread::sleep(LOOK);
    }
    Ok(sent as f64 / begun.elapsed().as_secs_f64())
}

/// Stops a switch while the sockets are filled.
struct Gate {
    bell: UnixStream,
    /// A channel on which the switch waits until the other end is dropped.
    waits: Sender<Receiver<()>>,
    stands: Receiver<()>,
}

impl Gate {
    /// Stops the switch, which runs again when the result is dropped. `None`: the switch has ended.
    fn close(&mut self) -> Option<Sender<()>> {
        let (go, wait) = channel();
        self.waits.send(wait).ok()?;
        self.bell.write_all(b"!").ok()?;
        self.stands.recv().ok()?;
        Some(go)
    }
}

/// Runs a lab in its own thread, which a gate can stop.
fn switching(text: &str, threads: usize) -> Result<(Gate, Worker<UpError>), Failure> {
    let lab = Arc::new(sanloom_lab::load("the lab of the benchmark", text, &[])?.lab);
    let (bell, rings) = UnixStream::pair().map_err(Failure::environment)?;
    rings.set_nonblocking(true).map_err(Failure::environment)?;
    let (waits, wanted) = channel::<Receiver<()>>();
    let (stand, stands) = channel();
    let (ready, is_ready) = channel();
    let wanted = Mutex::new(wanted);
    let mut worker = Worker::start("switch", move |gauge| {
        let mut runtime = Runtime::up(lab, &Options { threads: Some(threads), ..Options::default() })?;
        let _ = ready.send(());
        runtime.run(Some(rings.as_fd()), |_| {
            let mut rung = [0; 16];
            let _ = std::io::Read::read(&mut &rings, &mut rung);
            let wait = wanted.lock().ok().and_then(|wanted| wanted.try_recv().ok());
            if let Some(wait) = wait {
                let _ = stand.send(());
                // Ends with an error when the other end is dropped.
                let _ = wait.recv();
            }
            gauge.go_on()
        })
    })?;
    match is_ready.recv() {
        Ok(()) => Ok((Gate { bell, waits, stands }, worker)),
        Err(_) => Err(worker.end().unwrap_or_else(|| Failure::environment("the switch has ended"))),
    }
}

fn text(threads: &Threads) -> String {
    let mut text = format!(
        "frames of {} bytes through {} pairs of ports (packet sockets)\n{:<22} {:<12} ratio\n",
        format::grouped(threads.frame_bytes as u64),
        threads.pairs,
        "",
        "frames/s",
    );
    for (name, rate, ratio) in [
        ("1 thread".to_owned(), threads.one_frames_per_s, None),
        (format!("{} threads", threads.threads), threads.several_frames_per_s, Some(threads.ratio)),
        ("a switch for each pair".to_owned(), threads.apart_frames_per_s, Some(threads.ceiling)),
    ] {
        let ratio = ratio.map_or_else(|| "1".to_owned(), |ratio| ratio.to_string());
        let _ = writeln!(text, "{name:<22} {:<12} {ratio}", format::grouped(rate as u64));
    }
    text
}
