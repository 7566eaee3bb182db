//! Threads that do I/O on slow media, so that the switch does not wait: [`Workers`].

use super::medium::{BlockWork, Medium};
use rustix::event::{EventfdFlags, eventfd};
use sanloom_core::scsi::{IoStatus, IoTag};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Threads; enough that a few flushes of a disk overlap.
const THREADS: usize = 4;

/// Who waits for a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A port of a storage system.
    Port {
        /// The system, by index.
        system: usize,
        /// Its port.
        port: u16,
    },
    /// An iSCSI session.
    Session {
        /// Its connection.
        connection: u64,
    },
}

/// Work on a medium, with the buffer that it is done in.
#[derive(Debug)]
pub struct Job {
    /// Who asked.
    pub owner: Owner,
    /// Names the I/O there.
    pub tag: IoTag,
    /// What to do.
    pub work: BlockWork,
    /// Where.
    pub medium: Arc<Medium>,
    /// Data of a write, or room for a read.
    pub data: Vec<u8>,
}

/// I/O that is done.
#[derive(Debug)]
pub struct Done {
    /// Who asked.
    pub owner: Owner,
    /// Names the I/O there.
    pub tag: IoTag,
    /// The buffer, with what was read.
    pub data: Vec<u8>,
    /// How it ended.
    pub status: IoStatus,
}

/// Threads that take jobs. They end when this goes, after what they have begun.
#[derive(Debug)]
pub struct Workers {
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    bell: Arc<OwnedFd>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Workers {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the process may not have more threads or descriptors.
    pub fn start() -> io::Result<Workers> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (jobs, queue) = channel::<Job>();
        let (finished, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::new();
        for number in 0..THREADS {
            let (queue, finished, bell) = (queue.clone(), finished.clone(), bell.clone());
            let body = move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(Job { owner, tag, work, medium, mut data }) = job else { return };
                    let status = medium.perform(work, &mut data);
                    if finished.send(Done { owner, tag, data, status }).is_err() {
                        return;
                    }
                    let _ = rustix::io::write(&bell, &1_u64.to_ne_bytes());
                }
            };
            threads.push(thread::Builder::new().name(format!("disk-{number}")).spawn(body)?);
        }
        Ok(Workers { jobs: Some(jobs), done, bell, threads })
    }

    /// Hands a job over.
    pub fn submit(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The threads live as long as this does.
            let _ = jobs.send(job);
        }
    }

    /// Readable when a job is done.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Silences the bell and takes what is done.
    pub fn take_done(&self) -> Vec<Done> {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.done.try_iter().collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
