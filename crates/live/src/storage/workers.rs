//! Threads for I/O on slow media, so that the loop does not wait: [`Workers`].

use super::medium::{BlockWork, Medium};
use rustix::event::{EventfdFlags, eventfd};
use sanloom_scsi::scsi::{IoStatus, IoTag};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Number of threads; enough that several flushes of a disk overlap.
const THREADS: usize = 4;

/// Receiver of the result of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A port of a storage system.
    Port {
        /// Its storage system, by index.
        system: usize,
        /// Its port.
        port: u16,
    },
    /// An iSCSI session.
    Session {
        /// Its connection.
        connection: u64,
    },
    /// An SRP channel.
    Channel {
        /// Its number.
        channel: u64,
    },
}

/// Work on a medium, with its buffer.
#[derive(Debug)]
pub struct Job {
    /// Receiver of the result.
    pub owner: Owner,
    /// Tag of the I/O at its owner.
    pub tag: IoTag,
    /// The operation.
    pub work: BlockWork,
    /// The medium.
    pub medium: Arc<Medium>,
    /// Data of a write, or space for those of a read.
    pub data: Vec<u8>,
}

/// A finished job.
#[derive(Debug)]
pub struct Done {
    /// Receiver of the result.
    pub owner: Owner,
    /// Tag of the I/O at its owner.
    pub tag: IoTag,
    /// The buffer, with the data of a read.
    pub data: Vec<u8>,
    /// The result.
    pub status: IoStatus,
}

/// Worker threads. Dropped, the threads finish the jobs they have begun and end.
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
    /// The limit of threads or descriptors is reached.
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

    /// Queues a job.
    pub fn submit(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The threads run as long as `self` exists.
            let _ = jobs.send(job);
        }
    }

    /// A descriptor that is readable when a job is done.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Resets the descriptor and returns the finished jobs.
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
