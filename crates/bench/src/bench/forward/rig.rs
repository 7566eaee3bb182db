//! A source and a sink around a forwarder: [`Rig`].

use sanloom_console::exit::Failure;
use sanloom_live::frame::{FrameBuf, Pool};
use sanloom_live::poll::{Interest, Poller};
use sanloom_live::ports::EthernetPort;
use sanloom_live::sys::batch::{self, BATCH};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time before each slice in which frames flow, but are not counted.
const WARM_UP: Duration = Duration::from_millis(60);

/// Reads the processor time of the thread that forwards; `None` if it has ended.
pub(super) type Cpu = Box<dyn Fn() -> Option<Duration>>;

/// Result of one slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) frames: u64,
    pub(super) per_cpu_s: f64,
    pub(super) per_s: f64,
}

/// One end of a rig.
pub(super) struct RigPort {
    pub(super) port: EthernetPort,
    /// Frames that keep the login of the port, sent every [`KEEP_ALIVE_INTERVAL`].
    pub(super) keep_alives: Vec<FrameBuf>,
}

/// A source and a sink around a forwarder, each with its own thread.
pub(super) struct Rig {
    cpu: Cpu,
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
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn new(cpu: Cpu, [source, sink]: [RigPort; 2], frame: &[u8]) -> Result<Rig, Failure> {
        let shared = Arc::new(Shared::default());
        let (sending, taking, frame) = (shared.clone(), shared.clone(), frame.to_vec());
        let spawn = |name: &str, body: Box<dyn FnOnce() -> io::Result<()> + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(body).map_err(Failure::environment)
        };
        let threads = vec![
            spawn("source", Box::new(move || sending.send(source, &frame)))?,
            spawn("sink", Box::new(move || taking.take(sink)))?,
        ];
        Ok(Rig { cpu, shared, threads })
    }

    /// Sends frames for this time after a warm-up, and counts those that arrive.
    ///
    /// # Errors
    /// If no frame arrives, or the thread that forwards has ended.
    pub(super) fn measure(&self, time: Duration) -> Result<Sample, Failure> {
        self.shared.sending.store(true, Ordering::SeqCst);
        thread::sleep(WARM_UP);
        let cpu = || (self.cpu)().ok_or_else(|| Failure::environment("the thread that forwards has ended"));
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

/// Half of the interval in which the FCF of [`super::LAB`] expects the keep-alives of a host.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the checks whether a thread has to end.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Sends the keep-alives of a port when they are due.
struct KeepAlives(Vec<FrameBuf>, Instant);

impl KeepAlives {
    fn new(frames: Vec<FrameBuf>) -> KeepAlives {
        KeepAlives(frames, Instant::now())
    }

    fn send(&mut self, port: &EthernetPort) {
        let now = Instant::now();
        if let Some(socket) = port.socket().filter(|_| self.1 <= now) {
            // A full socket takes all of them the next time.
            if batch::send(socket, self.0.iter().map(FrameBuf::bytes)).is_ok_and(|sent| sent == self.0.len()) {
                self.1 = now + KEEP_ALIVE_INTERVAL;
            }
        }
    }
}

impl Shared {
    fn send(&self, end: RigPort, frame: &[u8]) -> io::Result<()> {
        let RigPort { mut port, keep_alives } = end;
        let (mut poller, mut keep_alives) = (Poller::new()?, KeepAlives::new(keep_alives));
        while !self.over.load(Ordering::Relaxed) {
            keep_alives.send(&port);
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

    fn take(&self, end: RigPort) -> io::Result<()> {
        let RigPort { mut port, keep_alives } = end;
        let (mut poller, mut pool, mut keep_alives) = (Poller::new()?, Pool::default(), KeepAlives::new(keep_alives));
        let mut spare: Vec<FrameBuf> = (0..BATCH).map(|_| pool.take()).collect();
        poller.set(0, port.socket(), Interest { read: true, write: false })?;
        while !self.over.load(Ordering::Relaxed) {
            keep_alives.send(&port);
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
