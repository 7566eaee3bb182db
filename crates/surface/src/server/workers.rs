//! Threads that wait for the fabric on behalf of clients: [`Workers`].

use super::threads;
use crate::Fabric;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of threads of a server. One slow request, such as a commit of zones, does not delay the
/// others.
pub const THREADS: usize = 4;
/// Maximum number of requests that wait for a thread.
const MAX_WAITING: usize = 128;

/// Work that may wait for the fabric. It sends its own result; if it fails by a defect, the result
/// is never sent.
pub type Job = Box<dyn FnOnce(&mut dyn Fabric) + Send>;

/// Queue of the threads. Dropping it ends the threads.
pub struct Workers(SyncSender<Job>);

impl Workers {
    /// Starts the threads under a name. `connect` is called for each.
    ///
    /// # Errors
    /// The limit of threads is reached.
    pub fn start(name: &str, connect: Arc<dyn Fn() -> Box<dyn Fabric> + Send + Sync>) -> io::Result<Workers> {
        let (sender, jobs) = sync_channel::<Job>(MAX_WAITING);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..THREADS {
            let (jobs, connect) = (jobs.clone(), connect.clone());
            threads::spawn(name, move || work(&jobs, &*connect))?;
        }
        Ok(Workers(sender))
    }

    /// Passes a request to the threads. Returns false if too many requests wait.
    pub fn submit(&self, job: Job) -> bool {
        self.0.try_send(job).is_ok()
    }
}

fn work(jobs: &Mutex<Receiver<Job>>, connect: &dyn Fn() -> Box<dyn Fabric>) {
    let mut fabric = connect();
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        if catch_unwind(AssertUnwindSafe(|| job(&mut *fabric))).is_err() {
            tracing::error!("a request to a surface has failed by a defect of sanloom; the other requests go on");
            fabric = connect();
        }
    }
}
