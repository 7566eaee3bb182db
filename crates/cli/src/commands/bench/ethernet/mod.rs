//! What benchmarks over Ethernet have in common: [`Folder`] for sockets, [`Switching`], a switch in a thread of its own, and
//! [`Gauge`], which reads the processor time of a thread.

pub mod station;

use crate::exit::Failure;
use crate::machine::thread_cpu;
use sanloom_live::ports::{Datagram, Driver, EthernetPort, PortError};
use sanloom_live::runtime::plan::Options;
use sanloom_live::runtime::{Runtime, UpError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A folder that goes with its owner.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(name: &str) -> Result<Folder, Failure> {
        let path = std::env::temp_dir().join(format!("sanloom-bench-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(Failure::environment)?;
        Ok(Folder(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// An Ethernet port of unix datagrams with this socket; its peer has that one.
    ///
    /// # Errors
    /// When the socket cannot be bound.
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

/// Tells the processor time of a thread that looks at it now and then.
#[derive(Debug, Default)]
pub struct Gauge {
    asked: AtomicBool,
    nanoseconds: AtomicU64,
    over: AtomicBool,
}

impl Gauge {
    /// To be called by the thread, often. False: it is to end.
    #[inline]
    pub fn go_on(&self) -> bool {
        if self.asked.load(Ordering::Acquire) {
            self.nanoseconds.store(thread_cpu().as_nanos() as u64, Ordering::Relaxed);
            self.asked.store(false, Ordering::Release);
        }
        !self.over.load(Ordering::Relaxed)
    }

    /// Processor time that the thread has used, as it is now.
    pub fn read(&self) -> Duration {
        self.asked.store(true, Ordering::Release);
        while self.asked.load(Ordering::Acquire) && !self.over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_micros(50));
        }
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    /// The thread is to end.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// A lab that runs in a thread of its own.
#[derive(Debug)]
pub struct Switching {
    /// Its processor time.
    pub gauge: Arc<Gauge>,
    thread: Option<JoinHandle<Result<(), UpError>>>,
}

impl Switching {
    /// Brings up a lab, whose text lacks the folder of the instance only.
    ///
    /// # Errors
    /// When it cannot be brought up.
    pub fn up(folder: &Folder, lab: &str) -> Result<Switching, Failure> {
        let text = format!("[live]\nfolder = \"{}\"\n{lab}", folder.path().display());
        let lab = Arc::new(sanloom_lab::load("the lab of the benchmark", &text, &[])?.lab);
        let gauge = Arc::new(Gauge::default());
        let (ready, is_ready) = channel();
        let seen = gauge.clone();
        let body = move || {
            let mut runtime = match Runtime::up(lab, &Options::default()) {
                Ok(runtime) => runtime,
                Err(error) => return Err(error),
            };
            let _ = ready.send(());
            let outcome = runtime.run(None, |_| seen.go_on());
            seen.end();
            outcome
        };
        let thread = thread::Builder::new().name("switch".to_owned()).spawn(body).map_err(Failure::environment)?;
        let mut switching = Switching { gauge, thread: Some(thread) };
        match is_ready.recv() {
            Ok(()) => Ok(switching),
            Err(_) => Err(switching.end().unwrap_or_else(|| Failure::environment("the switch has ended"))),
        }
    }

    /// Ends it; gives back why it failed, if it has.
    pub fn end(&mut self) -> Option<Failure> {
        self.gauge.end();
        let outcome = self.thread.take()?.join();
        outcome.ok()?.err().map(Failure::environment)
    }
}

impl Drop for Switching {
    fn drop(&mut self) {
        self.end();
    }
}
