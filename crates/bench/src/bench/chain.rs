//! `sanloom bench chain`: reads and writes of our initiator through our switch to our storage,
//! beside a bare chain that exchanges as many datagrams and does not inspect them.
//!
//! ```text
//!   initiator ──▶ unix datagrams ──▶ switch and storage          requester ──▶ unix datagrams ──▶ responder
//!             ◀──                ◀──                                       ◀──                ◀──
//! ```
//!
//! The bare chain sends as many frames per request as were counted in the full one, of the same
//! mean length. Both alternate in short slices, so that other load on the machine affects both
//! ([`super::statistics`]).

use super::ethernet::{Folder, Gauge, Worker, switching};
use super::statistics::{Estimate, median};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::thread_cpu;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_live::clock::Clock;
use sanloom_live::frame::{FrameBuf, Pool};
use sanloom_live::initiator::{Initiator, InitiatorConfig};
use sanloom_live::poll::{Interest, Poller};
use sanloom_live::ports::{EthernetPort, Traffic};
use sanloom_live::runtime::UpError;
use sanloom_live::sys::batch::BATCH;
use sanloom_scsi::disk::Op;
use sanloom_wire::ether::MacAddr;
use serde::Serialize;
use std::fmt::Write as _;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Options of `sanloom bench chain`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Size of a request, a multiple of 512 bytes; a number without a unit counts KiB
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "4KiB,64KiB,512KiB",
        value_parser = parse_size
    )]
    size: Vec<u32>,
    /// Requests in flight
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = quantity::count::<u32>(1..=256))]
    depth: u32,
    /// Length of each slice, in seconds or with a unit; both chains alternate slice by slice
    #[arg(long, value_name = "TIME", default_value = "0.25", value_parser = quantity::seconds)]
    seconds: f64,
    /// Slices of each chain; the median counts, and an interval of 95 % requires six
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = quantity::count::<u32>(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    outputs: Outputs,
}

/// Results of both chains.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chains {
    /// Requests in flight.
    pub depth: u32,
    /// One element for each size and direction.
    pub rows: Vec<Row>,
}

/// Results of one size and direction. Megabytes are 10^6 bytes of data; processor time is that of
/// both ends.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// `read` or `write`.
    pub op: &'static str,
    /// Bytes of a request.
    pub size_bytes: u32,
    /// Mean number of frames per request, from the initiator and to it.
    pub frames: [f64; 2],
    /// Megabytes per second of processor time through initiator, switch and storage.
    pub mb_per_cpu_s: f64,
    /// The same of the bare chain.
    pub bare_mb_per_cpu_s: f64,
    /// Megabytes per second through initiator, switch and storage.
    pub mb_per_s: f64,
    /// The same of the bare chain.
    pub bare_mb_per_s: f64,
    /// `mb_per_cpu_s` of the full chain to that of the bare one: median of the paired slices.
    pub ratio: f64,
    /// The same with its confidence interval.
    pub estimate: Estimate,
}

const LAB: &str = r#"
[switch.sw1]

[host.h1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
lun_size = "64MiB"

[[link]]
from = "h1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "ram"
to = "sw1"
"#;
const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
const UNIT_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: u32 = 512;
/// Time before each slice in which requests run, but are not counted.
const WARM_UP: Duration = Duration::from_millis(60);
/// Time limit for the discovery of the disk, and for each request.
const TIME_LIMIT: Duration = Duration::from_secs(30);

fn parse_size(text: &str) -> Result<u32, String> {
    let bytes = quantity::size::<u32>(512..=1 << 20, quantity::KIB)(text)?;
    match bytes.is_multiple_of(BLOCK_BYTES) {
        true => Ok(bytes),
        false => Err("write a multiple of 512 bytes, such as 4KiB".to_owned()),
    }
}

/// Measures both chains, and prints the results.
///
/// # Errors
/// If the switch cannot be started, a request fails, an output cannot be written, or Ctrl-C was
/// pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let chains = measure(args)?;
    args.outputs.write_or_print("chain", &chains, || text(&chains))
}

fn measure(args: &Args) -> Result<Chains, Failure> {
    let folder = Folder::new("chain")?;
    let mut whole = Whole::start(&folder)?;
    let mut bare = Bare::start(&folder)?;
    let time = Duration::from_secs_f64(args.seconds);
    let mut rows = Vec::new();
    for size in args.size.iter().copied() {
        for (name, op) in [("read", Op::Read), ("write", Op::Write)] {
            let (mut of_whole, mut of_bare) = (Vec::new(), Vec::new());
            let mut traffic: Option<[Burst; 2]> = None;
            for round in 0..args.rounds {
                if interrupt::requested() {
                    return Err(Failure::interrupted("the measurement was not complete"));
                }
                // The bare chain repeats the traffic of the first slice of the full one, and goes
                // first in every other round.
                let bare_first = traffic.filter(|_| round % 2 == 1);
                if let Some(traffic) = bare_first {
                    of_bare.push(bare.measure(traffic, args.depth, time)?);
                }
                let sample = whole.measure(op, size, args.depth, time)?;
                let traffic = *traffic.get_or_insert(sample.traffic());
                if bare_first.is_none() {
                    of_bare.push(bare.measure(traffic, args.depth, time)?);
                }
                of_whole.push(sample);
            }
            let of = |samples: &[Sample], value: fn(&Sample) -> f64| {
                f64::from(size) / 1e6 * median(samples.iter().map(value))
            };
            let per_cpu_s = |samples: &[Sample]| samples.iter().map(Sample::per_cpu_s).collect::<Vec<f64>>();
            let estimate = Estimate::of_ratios(&per_cpu_s(&of_whole), &per_cpu_s(&of_bare))
                .ok_or_else(|| Failure::environment("no request ended in a slice; use more --seconds"))?;
            rows.push(Row {
                op: name,
                size_bytes: size,
                frames: [0, 1]
                    .map(|direction| median(of_whole.iter().map(|sample| sample.frames_of_request(direction)))),
                mb_per_cpu_s: of(&of_whole, Sample::per_cpu_s),
                bare_mb_per_cpu_s: of(&of_bare, Sample::per_cpu_s),
                mb_per_s: of(&of_whole, Sample::per_s),
                bare_mb_per_s: of(&of_bare, Sample::per_s),
                ratio: estimate.median,
                estimate,
            });
        }
    }
    Ok(Chains { depth: args.depth, rows })
}

/// Result of one slice.
#[derive(Clone, Copy, Debug)]
struct Sample {
    requests: u64,
    cpu: Duration,
    wall: Duration,
    /// From the initiator, and to it.
    moved: [Traffic; 2],
}

/// Frames of a request in one direction, and the length of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Burst {
    frames: u32,
    bytes: usize,
}

impl Sample {
    fn per_cpu_s(&self) -> f64 {
        self.requests as f64 / self.cpu.as_secs_f64()
    }

    fn per_s(&self) -> f64 {
        self.requests as f64 / self.wall.as_secs_f64()
    }

    fn frames_of_request(&self, direction: usize) -> f64 {
        self.moved[direction].frames as f64 / self.requests as f64
    }

    /// Returns the frames of a request in each direction.
    fn traffic(&self) -> [Burst; 2] {
        [0, 1].map(|direction| Burst {
            frames: self.frames_of_request(direction).round().max(1.0) as u32,
            bytes: (self.moved[direction].bytes / self.moved[direction].frames.max(1)) as usize,
        })
    }
}

/// The full chain: initiator, switch, storage.
struct Whole {
    switch: Worker<UpError>,
    initiator: Initiator,
}

impl Whole {
    fn start(folder: &Folder) -> Result<Whole, Failure> {
        let switch = switching(folder, LAB)?;
        let port = folder.port("h1-sw1.peer.sock", "h1-sw1.sock").map_err(Failure::environment)?;
        let config = InitiatorConfig::new(MAC, folder.path().join("nbd.sock"));
        let mut initiator = Initiator::new(config, port).map_err(Failure::environment)?;
        let begun = Instant::now();
        let mut busy = false;
        while !initiator.is_ready() {
            if begun.elapsed() > TIME_LIMIT {
                return Err(Failure::environment("the initiator has not found its disk in 30 s"));
            }
            busy = initiator.step(busy).map_err(Failure::environment)?;
        }
        Ok(Whole { switch, initiator })
    }

    fn measure(&mut self, op: Op, size: u32, depth: u32, time: Duration) -> Result<Sample, Failure> {
        let blocks = size / BLOCK_BYTES;
        let places = UNIT_BYTES / u64::from(size);
        let mut buffers = vec![vec![0_u8; size as usize]; depth as usize];
        let (mut submitted, mut done, mut busy) = (0_u64, 0_u64, false);
        let cpu = |whole: &mut Whole| whole.switch.cpu().map(|cpu| thread_cpu() + cpu);
        let moved = |whole: &Whole| [whole.initiator.adapter.port.sent, whole.initiator.adapter.port.received];
        let begun = Instant::now();
        let mut from = None;
        loop {
            let now = Instant::now();
            if from.is_none() && now - begun >= WARM_UP {
                from = Some((now, done, cpu(self)?, moved(self)));
            }
            if let Some((at, before, cpu_before, moved_before)) = from
                && now - at >= time
            {
                let sample = Sample {
                    requests: done - before,
                    cpu: cpu(self)? - cpu_before,
                    wall: at.elapsed(),
                    moved: difference(moved_before, moved(self)),
                };
                while done < submitted {
                    done += self.step(&mut busy, &mut buffers)?;
                }
                return Ok(sample);
            }
            while let Some(buffer) = buffers.pop() {
                self.initiator.submit(0, op, submitted % places * u64::from(blocks), blocks, buffer);
                submitted += 1;
                busy = true;
            }
            done += self.step(&mut busy, &mut buffers)?;
        }
    }

    /// Runs the initiator once; returns the number of finished requests.
    fn step(&mut self, busy: &mut bool, buffers: &mut Vec<Vec<u8>>) -> Result<u64, Failure> {
        *busy = self.initiator.step(*busy).map_err(Failure::environment)?;
        let mut ended = 0;
        while let Some((_, result, buffer)) = self.initiator.next_finished() {
            result.map_err(|error| Failure::protocol(format_args!("a request failed: {error}")))?;
            buffers.push(buffer);
            ended += 1;
        }
        Ok(ended)
    }
}

fn difference(before: [Traffic; 2], after: [Traffic; 2]) -> [Traffic; 2] {
    [0, 1].map(|direction| Traffic {
        frames: after[direction].frames - before[direction].frames,
        bytes: after[direction].bytes - before[direction].bytes,
    })
}

/// The bare chain: two ends that count datagrams. The far end sends the frames of an answer when
/// all frames of a request have arrived.
struct Bare {
    near: End,
    responder: Worker<io::Error>,
    /// Frames of a request and of its answer, for the far end.
    plan: Sender<[Burst; 2]>,
}

impl Bare {
    fn start(folder: &Folder) -> Result<Bare, Failure> {
        let port = |own: &str, peer: &str| folder.port(own, peer).map_err(Failure::environment);
        let far = port("far", "near")?;
        let near = port("near", "far")?;
        let (plan, plans) = channel();
        let mut far = End::new(far).map_err(Failure::environment)?;
        let responder = Worker::start("responder", move |gauge| far.respond(gauge, &plans))?;
        Ok(Bare { near: End::new(near).map_err(Failure::environment)?, responder, plan })
    }

    fn measure(&mut self, traffic: [Burst; 2], depth: u32, time: Duration) -> Result<Sample, Failure> {
        let [request, answer] = traffic;
        if self.plan.send(traffic).is_err() {
            return Err(Failure::environment("the thread of the bare chain has ended"));
        }
        let (mut submitted, mut done, mut got) = (0_u64, 0_u64, 0_u32);
        let begun = Instant::now();
        let mut from = None;
        let mut sample = None;
        loop {
            let now = Instant::now();
            if now - begun > WARM_UP + time + TIME_LIMIT {
                return Err(Failure::environment("the bare chain has made no progress for 30 s"));
            }
            let mut state = |near: &End| -> Result<_, Failure> {
                Ok((thread_cpu() + self.responder.cpu()?, [near.port.sent, near.port.received]))
            };
            if from.is_none() && now - begun >= WARM_UP {
                from = Some((now, done, state(&self.near)?));
            }
            if let Some((at, before, (cpu, moved))) = from
                && sample.is_none()
                && now - at >= time
            {
                let (cpu_now, moved_now) = state(&self.near)?;
                let moved = difference(moved, moved_now);
                sample = Some(Sample { requests: done - before, cpu: cpu_now - cpu, wall: at.elapsed(), moved });
            }
            match sample {
                Some(sample) if done == submitted => return Ok(sample),
                Some(_) => {}
                None => {
                    while submitted - done < u64::from(depth) {
                        self.near.push(request);
                        submitted += 1;
                    }
                }
            }
            got += self.near.step().map_err(Failure::environment)?;
            done += u64::from(got / answer.frames);
            got %= answer.frames;
        }
    }
}

/// Batches that an end receives before it sends; the initiator uses the same number.
const BATCHES_IN_TURN: usize = 4;
/// Interval of the checks whether an end has to stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// An end of the bare chain.
struct End {
    port: EthernetPort,
    poller: Poller,
    pool: Pool,
    spare: Vec<FrameBuf>,
    clock: Clock,
    more: bool,
}

impl End {
    fn new(port: EthernetPort) -> io::Result<End> {
        let mut pool = Pool::default();
        let spare = (0..BATCH).map(|_| pool.take()).collect();
        let (poller, clock) = (Poller::new()?, Clock::start());
        Ok(End { port, poller, pool, spare, clock, more: false })
    }

    fn push(&mut self, burst: Burst) {
        let now = self.clock.now();
        for _ in 0..burst.frames {
            let mut buffer = self.pool.take();
            // The content is arbitrary, because nobody inspects it.
            buffer.received(burst.bytes, None);
            self.port.push(now, buffer);
        }
    }

    /// Sends queued frames, waits for an event, and receives; returns the number of received
    /// frames.
    fn step(&mut self) -> io::Result<u32> {
        if !self.port.has_peer() {
            self.port.check_peer();
        }
        if !self.port.egress.blocked && self.port.has_peer() {
            self.port.flush(&mut self.pool);
        }
        let write = self.port.egress.blocked && !self.port.egress.is_empty();
        self.poller.set(0, self.port.socket(), Interest { read: true, write })?;
        for event in self.poller.wait(if self.more { Duration::ZERO } else { CHECK_INTERVAL })? {
            self.port.egress.blocked &= !event.writable;
            self.more |= event.readable;
        }
        if !self.more {
            return Ok(0);
        }
        let mut all = 0;
        for _ in 0..BATCHES_IN_TURN {
            let got = match self.port.receive(&mut self.spare) {
                Ok((got, _)) => got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            };
            all += got as u32;
            self.more = got == BATCH;
            if !self.more {
                break;
            }
        }
        Ok(all)
    }

    fn respond(&mut self, gauge: &Gauge, plans: &Receiver<[Burst; 2]>) -> io::Result<()> {
        let mut plan = None;
        let mut got = 0;
        while gauge.go_on() {
            // The requester sends nothing while it changes the plan.
            plan = plans.try_iter().last().or(plan);
            let frames = self.step()?;
            if frames > 0 {
                plan = plans.try_iter().last().or(plan);
            }
            let Some([request, answer]) = plan else { continue };
            got += frames;
            while got >= request.frames {
                got -= request.frames;
                self.push(answer);
            }
        }
        Ok(())
    }
}

fn text(chains: &Chains) -> String {
    let mut text = format!(
        "{} requests in flight through initiator, switch and storage, and through a chain of as many datagrams\n\
         {:<18} {:>13} {:>12} {:>12} {:>10} {:>10}  ratio\n",
        chains.depth, "", "frames", "MB/CPU s", "bare", "MB/s", "bare"
    );
    for row in &chains.rows {
        let what = format!("{} {}", row.op, format::bytes(row.size_bytes.into()));
        let frames = format!("{:.1} + {:.1}", row.frames[0], row.frames[1]);
        let _ = writeln!(
            text,
            "{what:<18} {frames:>13} {:>12.0} {:>12.0} {:>10.0} {:>10.0}  {}",
            row.mb_per_cpu_s, row.bare_mb_per_cpu_s, row.mb_per_s, row.bare_mb_per_s, row.estimate
        );
    }
    text
}
