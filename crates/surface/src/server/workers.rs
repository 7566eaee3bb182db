//! Threads that wait for the fabric on behalf of clients: [`Workers`].

use super::handler::{Handler, Peer, Reply, text};
use crate::Fabric;
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tokio::sync::oneshot;

/// Number of threads. One slow request, such as a commit of zones, does not delay the others.
const THREADS: usize = 4;
/// Maximum number of requests that wait for a thread.
const MAX_WAITING: usize = 128;

/// A request for a handler.
pub struct Job {
    /// The room that answers.
    pub handler: Arc<dyn Handler>,
    /// The request with its body.
    pub request: Request<Bytes>,
    /// Both ends of its connection.
    pub peer: Peer,
    /// Receives the reply. Closed if the client has disconnected.
    pub reply: oneshot::Sender<Reply>,
}

/// Queue of the threads. Dropping it ends the threads.
pub struct Workers(SyncSender<Job>);

impl Workers {
    /// Starts the threads. `connect` is called for each.
    ///
    /// # Errors
    /// The limit of threads is reached.
    pub fn start(connect: Arc<dyn Fn() -> Box<dyn Fabric> + Send + Sync>) -> io::Result<Workers> {
        let (sender, jobs) = sync_channel::<Job>(MAX_WAITING);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..THREADS {
            let (jobs, connect) = (jobs.clone(), connect.clone());
            thread::Builder::new().name("surface-worker".to_owned()).spawn(move || work(&jobs, &*connect))?;
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
        let Ok(Job { handler, request, peer, reply }) = next else { return };
        if reply.is_closed() {
            continue;
        }
        let answer = catch_unwind(AssertUnwindSafe(|| handler.answer(request, &peer, &mut *fabric)));
        let answer = answer.unwrap_or_else(|_| {
            tracing::error!("a request to a surface has failed by a defect of sanloom; the other requests go on");
            fabric = connect();
            text(StatusCode::INTERNAL_SERVER_ERROR, "internal error; see the log of the instance").into()
        });
        // The client has disconnected.
        let _ = reply.send(answer);
    }
}
