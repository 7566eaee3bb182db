//! The control socket: [`Control`] takes requests of [`sanloom_api::control`] and hands them to the runtime's loop.
//!
//! It speaks HTTP, too, as far as metrics need it ([`crate::http`]). Connections are served by threads of their own, which wait for the loop: a slow client holds up nobody but itself.

use crate::http;
use crate::ports::PortError;
use crate::ports::free_path;
use rustix::event::{EventfdFlags, eventfd};
use sanloom_api::control::{Answer, Request};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A longer request is none.
const MAX_REQUEST_BYTES: u64 = 4 << 20;
/// Clients that are served at once, at the control socket and at the address for metrics each.
const MAX_CLIENTS: usize = 64;
/// How long nobody is served after the system had no descriptor or thread for a client.
const OUT_OF_BREATH: Duration = Duration::from_millis(500);
/// A client that reads metrics over a network says what it wants in this time.
const SCRAPER_PATIENCE: Duration = Duration::from_secs(10);

/// A request, and where its answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What is wanted.
    pub request: Request,
    /// To be answered once.
    pub answer: Sender<Answer>,
}

/// A control socket that listens.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    bell: Arc<OwnedFd>,
    asked: Receiver<Asked>,
}

impl Control {
    /// Listens at a path, and at an address where metrics are read and nothing else. Whoever may write to the socket may
    /// control the instance.
    ///
    /// # Errors
    /// When the path or the address is in use or cannot be had, or the process may not have a thread.
    pub fn listen(path: &Path, metrics: Option<SocketAddr>) -> Result<Control, PortError> {
        free_path(path, |path| UnixStream::connect(path).map(drop))?;
        let failed = |error| PortError::Socket { path: path.to_owned(), error };
        let listener = UnixListener::bind(path).map_err(failed)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from);
        let bell = Arc::new(bell.map_err(failed)?);
        let (sender, asked) = channel();
        let clients = Clients { asked: sender, bell: bell.clone(), room: Arc::default() };
        if let Some(address) = metrics {
            let failed = |error| PortError::Address { address, error };
            let listener = TcpListener::bind(address).map_err(failed)?;
            tracing::info!(address = %listener.local_addr().map_err(failed)?, "metrics");
            let clients = Clients { room: Arc::default(), ..clients.clone() };
            let accept =
                move || clients.accept(|| listener.accept(), |clients, connection| clients.scraper(connection));
            thread::Builder::new().name("metrics".to_owned()).spawn(accept).map_err(failed)?;
        }
        let accept = move || clients.accept(|| listener.accept(), |clients, connection| clients.serve(connection));
        thread::Builder::new().name("control".to_owned()).spawn(accept).map_err(failed)?;
        Ok(Control { path: path.to_owned(), bell, asked })
    }

    /// Somebody listens at a path.
    pub fn answers(path: &Path) -> bool {
        UnixStream::connect(path).is_ok()
    }

    /// Readable when there is a request.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Silences the bell and takes the requests.
    pub fn take(&self) -> Vec<Asked> {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.asked.try_iter().collect()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What a client needs of the loop.
#[derive(Clone)]
struct Clients {
    asked: Sender<Asked>,
    bell: Arc<OwnedFd>,
    room: Arc<Room>,
}

/// How many clients are served, and a bell for when one has ended.
#[derive(Default)]
struct Room {
    served: Mutex<usize>,
    ended: Condvar,
}

impl Room {
    /// Waits until a client more can be served.
    fn enter(&self) {
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let served = self.ended.wait_while(served, |served| *served >= MAX_CLIENTS);
        *served.unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn leave(&self) {
        *self.served.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.ended.notify_one();
    }
}

impl Clients {
    /// Serves each client in a thread of its own. Those that are too many wait in the kernel.
    fn accept<S: Send + 'static, A>(
        &self,
        next: impl Fn() -> io::Result<(S, A)>,
        serve: fn(&Clients, &S) -> io::Result<()>,
    ) {
        loop {
            self.room.enter();
            let clients = self.clone();
            let spawned = next().and_then(|(connection, _)| {
                let body = move || {
                    // A client that goes away in the middle is nobody's loss.
                    let _ = serve(&clients, &connection);
                    clients.room.leave();
                };
                thread::Builder::new().name("control-client".to_owned()).spawn(body)
            });
            if let Err(error) = spawned {
                self.room.leave();
                // A lack of descriptors or threads does not go away by asking again at once.
                tracing::error!(%error, "cannot serve a client of the control socket");
                thread::sleep(OUT_OF_BREATH);
            }
        }
    }

    /// What the loop answers; nothing: it is over.
    fn ask(&self, request: Request) -> Option<Answer> {
        let (answer, receiver) = channel();
        self.asked.send(Asked { request, answer }).ok()?;
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        receiver.recv().ok()
    }

    fn metrics(&self) -> Option<String> {
        match self.ask(Request::Metrics)? {
            Answer::Metrics { text } => Some(text),
            _ => None,
        }
    }

    fn serve(&self, connection: &UnixStream) -> io::Result<()> {
        let mut input = BufReader::new(connection);
        loop {
            let mut line = String::new();
            if input.by_ref().take(MAX_REQUEST_BYTES).read_line(&mut line)? == 0 {
                return Ok(());
            }
            if http::is_request(&line) {
                let mut fields = input.by_ref().take(MAX_REQUEST_BYTES);
                return http::answer(&line, &mut fields, &mut &*connection, || self.metrics());
            }
            let gone = || Answer::Failed { reason: "the instance is going down".to_owned() };
            let answer = match serde_json::from_str(&line) {
                Err(error) => Answer::Failed { reason: format!("this is no request: {error}") },
                Ok(request) => self.ask(request).unwrap_or_else(gone),
            };
            let mut out = serde_json::to_vec(&answer).map_err(io::Error::from)?;
            out.push(b'\n');
            (&*connection).write_all(&out)?;
        }
    }

    /// A client of the address for metrics.
    fn scraper(&self, connection: &TcpStream) -> io::Result<()> {
        connection.set_read_timeout(Some(SCRAPER_PATIENCE))?;
        connection.set_write_timeout(Some(SCRAPER_PATIENCE))?;
        let mut input = BufReader::new(connection).take(MAX_REQUEST_BYTES);
        let mut line = String::new();
        input.read_line(&mut line)?;
        http::answer(&line, &mut input, &mut &*connection, || self.metrics())
    }
}

/// Asks an instance.
///
/// # Errors
/// When nobody listens at the path, or what comes back is no answer.
pub fn ask(path: &Path, request: &Request) -> io::Result<Answer> {
    exchange(UnixStream::connect(path)?, request)
}

/// Asks an instance that may hang.
///
/// # Errors
/// As [`ask`], and when it says nothing for `patience`.
pub fn ask_within(patience: Duration, path: &Path, request: &Request) -> io::Result<Answer> {
    let connection = UnixStream::connect(path)?;
    connection.set_read_timeout(Some(patience))?;
    connection.set_write_timeout(Some(patience))?;
    exchange(connection, request)
}

fn exchange(mut connection: UnixStream, request: &Request) -> io::Result<Answer> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    connection.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(connection).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
