//! The control socket: [`Control`] accepts requests of [`sanloom_api::control`] and passes them to
//! the runtime's loop.
//!
//! It also serves metrics over HTTP ([`crate::http`]). Each connection has its own thread, which
//! waits for the loop. A slow client does not delay the others. If there are too many clients, the
//! one with the longest idle time is disconnected.

use crate::capture::FrameSink;
use crate::http;
use crate::ports::PortError;
use crate::ports::free_path;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use sanloom_api::control::{Answer, Request};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of a request, in bytes; a longer one is rejected.
const MAX_REQUEST_BYTES: u64 = 4 << 20;
/// Maximum number of clients served at once, separately for the control socket and the metrics
/// address.
const MAX_CLIENTS: usize = 64;
/// Pause before the next client is accepted after the system ran out of descriptors or threads.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);
/// Time in which an HTTP client has to send its whole request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which a client that reads metrics over a network has to read a part of its answer.
const SCRAPER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which a client has to read a part of its answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the last answers of an instance may take to leave before its process ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// A request and the channel for its answer.
#[derive(Debug)]
pub struct ControlRequest {
    pub request: Request,
    /// Receiver of the frames of a capture, instead of its file.
    pub sink: Option<FrameSink>,
    /// Receives exactly one answer.
    pub answer: Sender<Answer>,
}

/// A listening control socket.
pub struct Control {
    path: Option<PathBuf>,
    local: RequestSender,
    pending: Receiver<ControlRequest>,
    clients: Arc<ClientList<UnixStream>>,
}

impl Control {
    /// Listens at a path and, if given, at an address that serves only metrics. Write permission
    /// for the socket permits control of the instance.
    ///
    /// # Errors
    /// When the path or the address is in use or not available, or when the process cannot start a
    /// thread.
    pub fn listen(path: &Path, metrics: Option<SocketAddr>) -> Result<Control, PortError> {
        free_path(path, |path| UnixStream::connect(path).map(drop))?;
        let failed = |error| PortError::Socket { path: path.to_owned(), error };
        let listener = UnixListener::bind(path).map_err(failed)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from);
        let bell = Arc::new(bell.map_err(failed)?);
        let (sender, pending) = channel();
        let requests = RequestSender { pending: sender, bell };
        let local = requests.clone();
        if let Some(address) = metrics {
            let failed = |error| PortError::Address { address, error };
            let listener = TcpListener::bind(address).map_err(failed)?;
            tracing::info!(address = %listener.local_addr().map_err(failed)?, "metrics");
            let requests = requests.clone();
            let scrapers = Arc::new(ClientList::new());
            let accept = move || requests.accept(&scrapers, || listener.accept(), RequestSender::scraper);
            thread::Builder::new().name("metrics".to_owned()).spawn(accept).map_err(failed)?;
        }
        let clients = Arc::new(ClientList::new());
        let list = clients.clone();
        let accept = move || requests.accept(&list, || listener.accept(), RequestSender::serve);
        thread::Builder::new().name("control".to_owned()).spawn(accept).map_err(failed)?;
        Ok(Control { path: Some(path.to_owned()), local, pending, clients })
    }

    /// A queue without a socket, for clients in this process only.
    ///
    /// # Errors
    /// The limit of descriptors is reached.
    pub fn without_socket() -> io::Result<Control> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (sender, pending) = channel();
        let local = RequestSender { pending: sender, bell };
        Ok(Control { path: None, local, pending, clients: Arc::new(ClientList::new()) })
    }

    /// Returns whether a process accepts connections at the path.
    pub fn answers(path: &Path) -> bool {
        UnixStream::connect(path).is_ok()
    }

    /// Descriptor that is readable while requests are pending.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.local.bell.as_fd()
    }

    /// Waits until requests are pending, at most for `limit`.
    pub fn wait(&self, limit: Duration) {
        let nanoseconds = i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX);
        let (tv_sec, tv_nsec) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
        // A signal ends the wait; the caller looks for its reason.
        let _ = poll(&mut [PollFd::new(&self.local.bell, PollFlags::IN)], Some(&Timespec { tv_sec, tv_nsec }));
    }

    /// A client in this process, which uses the same queue.
    pub fn local(&self) -> LocalClient {
        LocalClient(self.local.clone())
    }

    /// Resets the bell and takes the pending requests.
    pub fn take(&self) -> Vec<ControlRequest> {
        let _ = rustix::io::read(&self.local.bell, &mut [0; 8]);
        self.pending.try_iter().collect()
    }

    /// Resets the bell and takes pending requests, one by one, until `limit` is over. Then the bell
    /// rings again for the others.
    pub fn take_within(&self, limit: Duration) -> impl Iterator<Item = ControlRequest> + '_ {
        let began = Instant::now();
        let _ = rustix::io::read(&self.local.bell, &mut [0; 8]);
        std::iter::from_fn(move || {
            if began.elapsed() < limit {
                return self.pending.try_recv().ok();
            }
            self.local.ring();
            None
        })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
        // Requests that nobody takes any more are answered by their threads.
        drop(std::mem::replace(&mut self.pending, channel().1));
        self.clients.wait_for_answers(LAST_ANSWERS);
    }
}

/// Client in the same process. It has at most one request in the queue of the loop.
#[derive(Clone)]
pub struct LocalClient(RequestSender);

/// Reason why a request has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoAnswer {
    /// The loop has ended.
    Ended,
    /// The time limit is over. The loop may still process the request.
    Late,
}

impl LocalClient {
    /// Sends a request and returns its answer.
    ///
    /// # Errors
    /// The loop has ended, or does not answer within `limit`.
    pub fn ask(&self, request: Request, sink: Option<FrameSink>, limit: Duration) -> Result<Answer, NoAnswer> {
        let (answer, receiver) = channel();
        self.0.send(ControlRequest { request, sink, answer }).ok_or(NoAnswer::Ended)?;
        receiver.recv_timeout(limit).map_err(|error| match error {
            RecvTimeoutError::Timeout => NoAnswer::Late,
            RecvTimeoutError::Disconnected => NoAnswer::Ended,
        })
    }
}

/// Passes requests of client threads to the loop of the runtime.
#[derive(Clone)]
struct RequestSender {
    pending: Sender<ControlRequest>,
    bell: Arc<OwnedFd>,
}

/// A connected client.
struct Client<S> {
    connection: Arc<S>,
    /// Start of the idle time; `None` while a request is in progress.
    idle_since: Option<Instant>,
}

/// Connected clients of a listener, at most [`MAX_CLIENTS`].
struct ClientList<S> {
    table: Mutex<ClientTable<S>>,
    /// Notified when a client has ended or become idle.
    changed: Condvar,
}

struct ClientTable<S> {
    /// Clients by number.
    connected: BTreeMap<u64, Client<S>>,
    next: u64,
}

impl<S: AsFd> ClientList<S> {
    fn new() -> ClientList<S> {
        ClientList { table: Mutex::new(ClientTable { connected: BTreeMap::new(), next: 0 }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, ClientTable<S>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client and returns its number. If the list is full, disconnects the client with the
    /// longest idle time, or waits until a client is idle.
    fn enter(&self, connection: Arc<S>) -> u64 {
        let mut table = self.lock();
        while table.connected.len() >= MAX_CLIENTS {
            let idle = table.connected.values_mut().filter(|client| client.idle_since.is_some());
            if let Some(client) = idle.min_by_key(|client| client.idle_since) {
                // Its thread ends when it reads the end of the connection.
                client.idle_since = None;
                let _ = rustix::net::shutdown(&*client.connection, rustix::net::Shutdown::Both);
                tracing::info!("a control client was disconnected because it was idle and other clients were waiting");
            }
            table = self.changed.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        let number = table.next;
        table.next += 1;
        table.connected.insert(number, Client { connection, idle_since: Some(Instant::now()) });
        number
    }

    /// Records the start or the end of a client's idle time.
    fn set_idle(&self, number: u64, idle: bool) {
        if let Some(client) = self.lock().connected.get_mut(&number) {
            client.idle_since = idle.then(Instant::now);
        }
        self.changed.notify_one();
    }

    /// Waits until each request in progress has been answered, at most for `limit`.
    fn wait_for_answers(&self, limit: Duration) {
        let is_busy = |table: &mut ClientTable<S>| table.connected.values().any(|client| client.idle_since.is_none());
        let _ = self.changed.wait_timeout_while(self.lock(), limit, is_busy);
    }

    fn leave(&self, number: u64) {
        self.lock().connected.remove(&number);
        self.changed.notify_one();
    }
}

/// Serves one client. The last argument is called with false when a request begins, and with true
/// when it has been answered.
type Serve<S> = fn(&RequestSender, &S, &dyn Fn(bool)) -> io::Result<()>;

impl RequestSender {
    /// Serves each client in its own thread. `serve` receives the connection and a function. It
    /// calls the function with false when a request begins, and with true when the request has been
    /// answered.
    fn accept<S: AsFd + Send + Sync + 'static, A>(
        &self,
        clients: &Arc<ClientList<S>>,
        next: impl Fn() -> io::Result<(S, A)>,
        serve: Serve<S>,
    ) {
        loop {
            let spawned = next().and_then(|(connection, _)| {
                let connection = Arc::new(connection);
                let number = clients.enter(connection.clone());
                let (sender, list) = (self.clone(), clients.clone());
                let body = move || {
                    // An error here means that the client disconnected; only that client is
                    // affected.
                    let _ = serve(&sender, &connection, &|idle| list.set_idle(number, idle));
                    list.leave(number);
                };
                let spawned = thread::Builder::new().name("control-client".to_owned()).spawn(body);
                spawned.inspect_err(|_| clients.leave(number))
            });
            if let Err(error) = spawned {
                // Retrying at once would fail again, because descriptors and threads are still
                // exhausted.
                tracing::error!(%error, "a client of the control socket could not be served");
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }

    /// Passes a request to the loop and returns its answer, or `None` if the loop has ended.
    fn ask(&self, request: Request) -> Option<Answer> {
        let (answer, receiver) = channel();
        self.send(ControlRequest { request, sink: None, answer })?;
        receiver.recv().ok()
    }

    fn send(&self, request: ControlRequest) -> Option<()> {
        self.pending.send(request).ok()?;
        self.ring();
        Some(())
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    fn metrics(&self) -> Option<String> {
        match self.ask(Request::Metrics)? {
            Answer::Metrics { text } => Some(text),
            _ => None,
        }
    }

    fn serve(&self, connection: &UnixStream, set_idle: &dyn Fn(bool)) -> io::Result<()> {
        connection.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let mut input = BufReader::new(TimedReader { connection, end: None });
        loop {
            let mut line = String::new();
            if input.by_ref().take(MAX_REQUEST_BYTES).read_line(&mut line)? == 0 {
                return Ok(());
            }
            if http::is_request(&line) {
                input.get_mut().end = Some(Instant::now() + HEADER_TIMEOUT);
                let format = http::read_fields(&mut input.by_ref().take(MAX_REQUEST_BYTES))?;
                set_idle(false);
                return http::answer(&line, format, &mut &*connection, || self.metrics());
            }
            if line.len() as u64 == MAX_REQUEST_BYTES && !line.ends_with('\n') {
                set_idle(false);
                let answer = Answer::failed(format!("the request is longer than {} MiB", MAX_REQUEST_BYTES >> 20));
                return (&*connection).write_all(&answer.to_line()?);
            }
            set_idle(false);
            let gone = || Answer::failed("the instance is shutting down");
            let answer = match Request::from_line(&line) {
                Err(error) => Answer::failed(format!("invalid request: {error}")),
                Ok(request) => self.ask(request).unwrap_or_else(gone),
            };
            (&*connection).write_all(&answer.to_line()?)?;
            set_idle(true);
        }
    }

    /// A client of the address for metrics.
    fn scraper(&self, connection: &TcpStream, set_idle: &dyn Fn(bool)) -> io::Result<()> {
        connection.set_write_timeout(Some(SCRAPER_TIMEOUT))?;
        let timed = TimedReader { connection, end: Some(Instant::now() + HEADER_TIMEOUT) };
        let mut input = BufReader::new(timed).take(MAX_REQUEST_BYTES);
        let mut line = String::new();
        input.read_line(&mut line)?;
        let format = http::read_fields(&mut input)?;
        set_idle(false);
        http::answer(&line, format, &mut &*connection, || self.metrics())
    }
}

/// Reads from a connection until a time limit. The limit covers all reads together, so that a
/// client that sends slowly cannot extend it.
struct TimedReader<'c, S> {
    connection: &'c S,
    /// Without it, a read waits until the client sends or disconnects.
    end: Option<Instant>,
}

impl<S: AsFd> Read for TimedReader<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(end) = self.end {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            rustix::net::sockopt::set_socket_timeout(self.connection, rustix::net::sockopt::Timeout::Recv, Some(left))?;
        }
        Ok(rustix::io::read(self.connection, into)?)
    }
}

/// Sends a request to an instance and returns the answer.
///
/// # Errors
/// When no instance listens at the path, or the reply is not a valid answer.
pub fn ask(path: &Path, request: &Request) -> io::Result<Answer> {
    exchange(UnixStream::connect(path)?, request)
}

/// Sends a request to an instance that may hang.
///
/// # Errors
/// As [`ask`], and when no answer arrives within `timeout`.
pub fn ask_within(timeout: Duration, path: &Path, request: &Request) -> io::Result<Answer> {
    let connection = UnixStream::connect(path)?;
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))?;
    exchange(connection, request)
}

fn exchange(mut connection: UnixStream, request: &Request) -> io::Result<Answer> {
    connection.write_all(&request.to_line()?)?;
    let mut answer = String::new();
    BufReader::new(connection).read_line(&mut answer)?;
    Ok(Answer::from_line(&answer)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(120);

    /// A control socket whose requests are answered until it is dropped.
    fn serve(name: &str) -> (PathBuf, thread::JoinHandle<()>, Sender<()>) {
        let path = std::env::temp_dir().join(format!("sanloom-control-{name}-{}.sock", std::process::id()));
        let control = Control::listen(&path, None).unwrap();
        let (end, ended) = channel();
        let answers = thread::spawn(move || {
            while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                let answer = |pending: ControlRequest| pending.answer.send(Answer::Metrics { text: "x".to_owned() });
                // The time limit lets the thread notice the end.
                let limit = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
                let bell = control.bell();
                let _ = poll(&mut [PollFd::new(&bell, PollFlags::IN)], Some(&limit));
                control.take().into_iter().for_each(|pending| _ = answer(pending));
            }
        });
        (path, answers, end)
    }

    #[test]
    fn idle_clients_do_not_exclude_others() {
        let (path, answers, end) = serve("idle");
        let idle: Vec<UnixStream> = (0..3 * MAX_CLIENTS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let answer = ask_within(TIMEOUT, &path, &Request::Metrics).unwrap();
        assert_eq!(answer, Answer::Metrics { text: "x".to_owned() });
        // The first ones were disconnected, and the last one is still served.
        idle[0].set_read_timeout(Some(TIMEOUT)).unwrap();
        assert_eq!((&idle[0]).read(&mut [0]).unwrap(), 0);
        let mut last = idle.last().unwrap().try_clone().unwrap();
        last.write_all(b"no request\n").unwrap();
        last.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut line = String::new();
        BufReader::new(last).read_line(&mut line).unwrap();
        assert!(line.contains("invalid request"), "{line}");
        end.send(()).unwrap();
        answers.join().unwrap();
    }

    #[test]
    fn an_instance_ends_only_after_its_last_answers_have_left() {
        for number in 0..50 {
            let path = std::env::temp_dir().join(format!("sanloom-control-last-{number}-{}.sock", std::process::id()));
            let control = Control::listen(&path, None).unwrap();
            let clients: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&path).unwrap()).collect();
            clients.iter().for_each(|mut client| client.write_all(&Request::Stop.to_line().unwrap()).unwrap());
            let mut pending = Vec::new();
            while pending.len() < clients.len() {
                let bell = control.bell();
                poll(&mut [PollFd::new(&bell, PollFlags::IN)], None).unwrap();
                pending.extend(control.take());
            }
            // The last request is never answered by the loop.
            pending.drain(1..).for_each(|request| request.answer.send(Answer::Done).unwrap());
            drop(pending);
            drop(control);
            for mut client in clients {
                client.set_nonblocking(true).unwrap();
                assert!(client.read(&mut [0]).is_ok_and(|bytes| bytes == 1), "an answer is there at once");
            }
        }
    }

    #[test]
    fn clients_that_send_a_header_slowly_do_not_exclude_others() {
        let (path, answers, end) = serve("slow-header");
        let slow: Vec<UnixStream> = (0..MAX_CLIENTS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        for mut client in &slow {
            client.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n").unwrap();
        }
        // Time for the instance to read the lines; nothing reports that.
        thread::sleep(Duration::from_millis(300));
        let answer = ask_within(HEADER_TIMEOUT / 2, &path, &Request::Metrics).unwrap();
        assert_eq!(answer, Answer::Metrics { text: "x".to_owned() });
        end.send(()).unwrap();
        answers.join().unwrap();
    }

    #[test]
    fn a_request_that_is_too_long_gets_one_answer_with_the_reason() {
        let (path, answers, end) = serve("too-long");
        let mut client = UnixStream::connect(&path).unwrap();
        client.set_read_timeout(Some(TIMEOUT)).unwrap();
        // The connection may be closed before all bytes are written.
        let _ = client.write_all(&vec![b' '; MAX_REQUEST_BYTES as usize]);
        let mut lines = BufReader::new(client).lines();
        let answer = lines.next().unwrap().unwrap();
        assert!(answer.contains("the request is longer than 4 MiB"), "{answer}");
        assert!(!matches!(lines.next(), Some(Ok(_))));
        end.send(()).unwrap();
        answers.join().unwrap();
    }

    #[test]
    fn the_time_limit_of_a_header_covers_all_reads() {
        let (mut client, connection) = UnixStream::pair().unwrap();
        let mut reader = TimedReader { connection: &connection, end: Some(Instant::now() + Duration::from_millis(60)) };
        let ended = std::iter::repeat_with(|| {
            client.write_all(b"x").unwrap();
            thread::sleep(Duration::from_millis(1));
            reader.read(&mut [0])
        });
        let error = ended.take(10_000).find_map(Result::err).unwrap();
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
    }

    #[test]
    fn a_client_with_a_request_in_progress_is_not_disconnected() {
        let path = std::env::temp_dir().join(format!("sanloom-control-busy-{}.sock", std::process::id()));
        let control = Control::listen(&path, None).unwrap();
        let busy = UnixStream::connect(&path).unwrap();
        (&busy).write_all(&Request::Metrics.to_line().unwrap()).unwrap();
        let pending = std::iter::repeat_with(|| control.take()).find(|pending| !pending.is_empty()).unwrap();
        let idle: Vec<UnixStream> = (0..2 * MAX_CLIENTS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        idle[0].set_read_timeout(Some(TIMEOUT)).unwrap();
        assert_eq!((&idle[0]).read(&mut [0]).unwrap(), 0, "the first idle one is disconnected");
        pending.into_iter().for_each(|pending| pending.answer.send(Answer::Done).unwrap());
        busy.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut answer = String::new();
        BufReader::new(busy).read_line(&mut answer).unwrap();
        assert_eq!(Answer::from_line(&answer).unwrap(), Answer::Done);
    }
}
