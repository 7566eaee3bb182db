//! Common parts of benchmarks over Ethernet: [`Folder`] for sockets, [`Worker`], a thread whose
//! processor time a [`Gauge`] reads, and [`switching`], which runs a switch in such a thread.

pub mod station;

use sanloom_console::exit::Failure;
use sanloom_console::machine::thread_cpu;
use sanloom_live::ports::{Datagram, Driver, EthernetPort, PortError};
use sanloom_live::runtime::plan::Options;
use sanloom_live::runtime::{Runtime, UpError};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A folder that is removed on drop.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a folder.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn new(name: &str) -> Result<Folder, Failure> {
        let path = std::env::temp_dir().join(format!("sanloom-bench-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(Failure::environment)?;
        Ok(Folder(path))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates an Ethernet port over unix datagrams with the names of its own socket and its
    /// peer's.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub fn port(&self, own: &str, peer: &str) -> Result<EthernetPort, PortError> {
        let datagram = Datagram::bind(&self.0.join(own), &self.0.join(peer))?;
        Ok(EthernetPort::new(own, Driver::Datagram(datagram)))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Processor time of a thread, which must call [`Gauge::go_on`] often.
#[derive(Debug, Default)]
pub struct Gauge {
    requested: AtomicBool,
    nanoseconds: AtomicU64,
    over: AtomicBool,
}

impl Gauge {
    /// Updates the processor time; the thread calls it often, and ends if it returns false.
    #[inline]
    pub fn go_on(&self) -> bool {
        if self.requested.load(Ordering::Acquire) {
            self.nanoseconds.store(thread_cpu().as_nanos() as u64, Ordering::Relaxed);
            self.requested.store(false, Ordering::Release);
        }
        !self.over.load(Ordering::Relaxed)
    }

    /// Returns the current processor time of the thread; `None` if it has ended.
    pub fn read(&self) -> Option<Duration> {
        self.requested.store(true, Ordering::Release);
        while self.requested.load(Ordering::Acquire) {
            if self.over.load(Ordering::Relaxed) {
                return None;
            }
            thread::sleep(Duration::from_micros(50));
        }
        Some(Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)))
    }

    /// Asks the thread to end, or marks it as ended.
    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// A thread with measured processor time; it is ended on drop.
#[derive(Debug)]
pub struct Worker<E> {
    name: &'static str,
    gauge: Arc<Gauge>,
    thread: Option<JoinHandle<Result<(), E>>>,
}

/// Marks the thread as ended on drop, also after a panic.
struct Ending(Arc<Gauge>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<E: fmt::Display + Send + 'static> Worker<E> {
    /// Starts a thread; its function must call [`Gauge::go_on`] often.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(
        name: &'static str,
        body: impl FnOnce(&Gauge) -> Result<(), E> + Send + 'static,
    ) -> Result<Worker<E>, Failure> {
        let gauge = Arc::new(Gauge::default());
        let ending = Ending(gauge.clone());
        let body = move || body(&ending.0);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body).map_err(Failure::environment)?;
        Ok(Worker { name, gauge, thread: Some(thread) })
    }

    /// Returns the current processor time of the thread.
    ///
    /// # Errors
    /// If the thread has ended, with the reason.
    pub fn cpu(&mut self) -> Result<Duration, Failure> {
        self.gauge.read().ok_or_else(|| self.ended())
    }

    /// Returns the gauge of the thread.
    pub fn gauge(&self) -> Arc<Gauge> {
        self.gauge.clone()
    }

    /// Ends the thread; returns its failure, if it failed.
    pub fn end(&mut self) -> Option<Failure> {
        self.gauge.end();
        match self.thread.take()?.join() {
            Ok(outcome) => outcome.err().map(Failure::environment),
            Err(_) => Some(Failure::bug(format_args!("the thread `{}` has panicked", self.name))),
        }
    }

    /// Returns the reason why the thread has ended.
    fn ended(&mut self) -> Failure {
        self.end().unwrap_or_else(|| Failure::environment(format_args!("the thread `{}` has ended", self.name)))
    }
}

impl<E> Drop for Worker<E> {
    fn drop(&mut self) {
        self.gauge.end();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Runs a lab in its own thread. The text is complete except for the folder of the instance.
///
/// # Errors
/// If the lab cannot be started.
pub fn switching(folder: &Folder, lab: &str) -> Result<Worker<UpError>, Failure> {
    let text = format!("[live]\nfolder = \"{}\"\n{lab}", folder.path().display());
    let lab = Arc::new(sanloom_lab::load("the lab of the benchmark", &text, &[])?.lab);
    let (ready, is_ready) = channel();
    let mut worker = Worker::start("switch", move |gauge| {
        let mut runtime = Runtime::up(lab, &Options::default())?;
        let _ = ready.send(());
        runtime.run(None, |_| gauge.go_on())
    })?;
    match is_ready.recv() {
        Ok(()) => Ok(worker),
        Err(_) => Err(worker.ended()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_console::exit::BUG;

    #[test]
    fn a_worker_tells_its_time_and_why_it_has_ended() {
        let idle = |gauge: &Gauge| {
            while gauge.go_on() {
                thread::yield_now();
            }
            Ok::<(), &str>(())
        };
        let mut worker = Worker::start("idle", idle).unwrap();
        assert!(worker.cpu().is_ok_and(|cpu| !cpu.is_zero()));
        assert!(worker.end().is_none());

        let mut worker = Worker::start("failing", |_| Err("no port")).unwrap();
        assert!(worker.cpu().is_err_and(|failure| failure.message == "error: no port"));

        let mut worker =
            Worker::start("panicking", |_| -> Result<(), &str> { panic!("as the test wants it") }).unwrap();
        assert!(worker.cpu().is_err_and(|failure| failure.code == BUG && failure.message.contains("panicking")));
    }
}
