//! Disks for programs: [`NbdServer`], the network block device protocol on a unix socket.
//!
//! The server waits on an epoll of its own, so that it is one descriptor for the loop around it.
//! Requests of clients are returned as [`Work`]. The caller carries them out in any order and
//! passes the results to [`NbdServer::done`].
//!
//! ```text
//!   program ══ unix socket ══▶ Client (scsi::nbd::Connection, buffers) ──▶ Work ──▶ a disk
//!                                 ◀── reply: head and the buffer, in one system call ──┘
//! ```

mod client;
pub mod local;

use crate::poll::{Interest, Poller};
use crate::ports::{PortError, free_path};
use client::Client;
use sanloom_scsi::nbd::{Counters, Done, Export, Failure, Input, Io, Limits};
use sanloom_scsi::time::{Instant, Span};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of connected clients; further ones wait in the kernel's queue.
const MAX_CLIENTS: usize = 64;
/// Time between attempts to accept a client without free descriptors or memory.
const ACCEPT_PAUSE: Span = Span::from_ms(100);
/// Poller token of the listener; the tokens of clients are their numbers.
const LISTENER: u64 = u64::MAX;

/// A request of a client for a disk.
#[derive(Debug)]
pub struct Work {
    /// Number of the client, for [`NbdServer::done`].
    pub client: u64,
    /// [`Export::disk`] of the export that it has opened.
    pub disk: u64,
    /// The operation.
    pub io: Io,
    /// The data of a write; for a read, a buffer to be filled.
    pub data: Vec<u8>,
}

/// A server on a unix socket, with all its clients.
#[derive(Debug)]
pub struct NbdServer {
    path: PathBuf,
    listener: UnixListener,
    poller: Poller,
    exports: Arc<[Export]>,
    limits: Limits,
    clients: BTreeMap<u64, Client>,
    next_client: u64,
    work: VecDeque<Work>,
    /// Counters of clients that have disconnected.
    past: Counters,
    accepting: bool,
    /// Time of the next attempt to accept a client, after the process or the system had no
    /// descriptors or memory left.
    retry: Option<Instant>,
}

impl NbdServer {
    /// Listens at a path, and replaces a socket on which no process listens.
    ///
    /// # Errors
    /// The path is in use or cannot be used.
    pub fn listen(path: &Path, exports: Vec<Export>, limits: Limits) -> Result<NbdServer, PortError> {
        let failed = |error| PortError::Socket { path: path.to_owned(), error };
        free_path(path, |path| UnixStream::connect(path).map(drop))?;
        let listener = UnixListener::bind(path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let mut poller = Poller::new().map_err(failed)?;
        poller.set(LISTENER, Some(listener.as_fd()), Interest { read: true, write: false }).map_err(failed)?;
        Ok(NbdServer {
            path: path.to_owned(),
            listener,
            poller,
            exports: exports.into(),
            limits,
            clients: BTreeMap::new(),
            next_client: 0,
            work: VecDeque::new(),
            past: Counters::default(),
            accepting: true,
            retry: None,
        })
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the exports for clients that connect from now on.
    pub fn set_exports(&mut self, exports: Vec<Export>) {
        self.exports = exports.into();
    }

    /// Returns the exports offered to new clients.
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// Descriptor that is readable when [`process_events`](Self::process_events) has work.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    /// Returns the number of connected clients.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Returns the counters of all clients, including those that have disconnected.
    pub fn counters(&self) -> Counters {
        self.clients.values().map(|client| *client.machine.counters()).fold(self.past, add)
    }

    /// Time of the next call of [`process_events`](Self::process_events) if no event occurs before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.clients.values().filter_map(|client| client.machine.poll_timeout()).chain(self.retry).min()
    }

    /// Waits for at most `wait` and processes the events of sockets and timers.
    ///
    /// # Errors
    /// Errors of waiting for sockets.
    pub fn process_events(&mut self, now: Instant, wait: Duration) -> io::Result<()> {
        let happened: Vec<_> = self.poller.wait(wait)?.to_vec();
        for event in happened {
            if event.token == LISTENER {
                self.accept(now);
            } else if let Some(client) = self.clients.get_mut(&event.token) {
                if event.writable {
                    client.blocked = false;
                }
                client.serve(now, &mut self.work);
                self.update_client(event.token);
            }
        }
        if self.retry.is_some_and(|at| at <= now) {
            self.accept(now);
        }
        let late = |client: &Client| client.machine.poll_timeout().is_some_and(|at| at <= now);
        let due: Vec<u64> = self.clients.iter().filter(|(_, client)| late(client)).map(|(id, _)| *id).collect();
        for id in due {
            self.handle_input(now, id, Input::Timeout);
        }
        Ok(())
    }

    /// Returns the next request.
    pub fn next_work(&mut self) -> Option<Work> {
        self.work.pop_front()
    }

    /// Reports the result of a request; `data` is its buffer, filled by a read.
    pub fn done(&mut self, now: Instant, client: u64, tag: u16, result: Result<Done, Failure>, data: Vec<u8>) {
        let Some(served) = self.clients.get_mut(&client) else {
            return;
        };
        served.done(now, tag, result, data, &mut self.work);
        self.update_client(client);
    }

    /// Accepts no more clients, and closes each connection when its requests are done.
    pub fn shut_down(&mut self, now: Instant) {
        (self.accepting, self.retry) = (false, None);
        self.listen_again();
        for id in self.clients.keys().copied().collect::<Vec<_>>() {
            self.handle_input(now, id, Input::Shutdown);
        }
    }

    fn handle_input(&mut self, now: Instant, id: u64, input: Input) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.handle_input(now, input, &mut self.work);
            self.update_client(id);
        }
    }

    fn accept(&mut self, now: Instant) {
        let retried = self.retry.take().is_some();
        while self.clients.len() < MAX_CLIENTS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    // The client has closed the connection already.
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    _ => {
                        self.retry = self.accepting.then(|| now + ACCEPT_PAUSE);
                        if !retried {
                            let path = self.path.display();
                            tracing::warn!(%path, %error, "a client cannot be accepted; further attempts follow");
                        }
                        break;
                    }
                },
            };
            if let Err(error) = stream.set_nonblocking(true) {
                tracing::warn!(path = %self.path.display(), %error, "a client's connection was not accepted");
                continue;
            }
            let id = self.next_client;
            self.next_client += 1;
            let mut client = Client::new(now, id, stream, self.exports.clone(), self.limits);
            client.serve(now, &mut self.work);
            self.clients.insert(id, client);
            self.update_client(id);
        }
        self.listen_again();
    }

    /// Updates the events that a client waits for, or removes it.
    fn update_client(&mut self, id: u64) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let mut is_over = client.is_over();
        if !is_over {
            let interest = client.interest();
            if interest == Interest::default() {
                // Remove the socket from the poller: it would report the hang-up again and again.
                self.poller.remove(id, client.stream.as_fd());
            } else if let Err(error) = self.poller.set(id, Some(client.stream.as_fd()), interest) {
                tracing::warn!(client = id, %error, "events of a client's socket cannot be polled; the connection is closed");
                is_over = true;
            }
        }
        if !is_over {
            return;
        }
        if let Some(client) = self.clients.remove(&id) {
            tracing::debug!(path = %self.path.display(), client = id, reason = ?client.closing, "client disconnected");
            self.past = add(self.past, *client.machine.counters());
            self.poller.forget(id);
        }
        self.listen_again();
    }

    fn listen_again(&mut self) {
        // Otherwise the waiting connection would be reported again and again.
        let read = self.accepting && self.retry.is_none() && self.clients.len() < MAX_CLIENTS;
        if let Err(error) = self.poller.set(LISTENER, Some(self.listener.as_fd()), Interest { read, write: false }) {
            tracing::warn!(path = %self.path.display(), %error, "events of the NBD socket cannot be polled; no clients are accepted until one disconnects");
        }
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        // A leftover socket would have to be removed by another process.
        let _ = fs::remove_file(&self.path);
    }
}

fn add(a: Counters, b: Counters) -> Counters {
    Counters {
        options: a.options + b.options,
        refused_options: a.refused_options + b.refused_options,
        requests: a.requests + b.requests,
        refused_requests: a.refused_requests + b.refused_requests,
        failed_requests: a.failed_requests + b.failed_requests,
        protocol_errors: a.protocol_errors + b.protocol_errors,
        stalls: a.stalls + b.stalls,
    }
}
