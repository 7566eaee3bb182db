//! Clients of the interfaces of an instance, which surround a measurement: [`Clients`].

use rustix::process::setpriority_process;
use sanloom_console::exit::Failure;
use sanloom_console::quantity;
use serde::Serialize;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time after which a client checks whether it has to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Time in which every client must have its first answer.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Largest answer that a client accepts.
const MAX_BODY_BYTES: u64 = 64 << 20;
/// Descriptors of this process besides those of the clients.
const OTHER_DESCRIPTORS: u64 = 256;

/// The server has 2,048 connections at a time; the others are for the other clients.
const MAX_IDLE: u64 = 1_500;

/// Numbers of clients.
#[derive(clap::Args, Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ClientCounts {
    /// Measure the switch of `sanloom up --web` alone and beside N open pages
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = quantity::count::<u32>(0..=200))]
    pub pages: u32,
    /// Measure it beside N connections to the page that send nothing; the server closes each after
    /// 15 s
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = quantity::count::<u32>(0..=MAX_IDLE))]
    pub idle: u32,
    /// Measure it beside N clients that read the table of ports again and again
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = quantity::count::<u32>(0..=1_000))]
    pub busy: u32,
    /// Measure it beside N clients that try wrong passwords over REST, and that break connections
    /// of SSH
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = quantity::count::<u32>(0..=1_000))]
    pub logins: u32,
}

impl ClientCounts {
    /// True if any client is requested.
    pub fn is_any(&self) -> bool {
        *self != ClientCounts::default()
    }
}

/// Addresses of the interfaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interfaces {
    pub(super) page: SocketAddr,
    pub(super) rest: SocketAddr,
    pub(super) ssh: SocketAddr,
}

/// Results of all clients.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Events that the pages have received.
    pub(super) events: AtomicU64,
    /// Answers to busy clients.
    pub(super) answers: AtomicU64,
    /// Requests of busy clients that were refused, as the server was busy.
    pub(super) refused: AtomicU64,
    /// Logins with a wrong password that were refused.
    pub(super) logins: AtomicU64,
    /// Connections of SSH that were broken in the key exchange.
    pub(super) broken: AtomicU64,
    /// Connections of clients that try logins which the servers refused or closed.
    pub(super) closed: AtomicU64,
    /// Idle connections that the server has kept.
    pub(super) kept: AtomicU64,
}

/// Clients that are connected. Dropping them closes all connections.
pub(super) struct Clients {
    over: Arc<AtomicBool>,
    idle: Vec<TcpStream>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    tally: Arc<Tally>,
}

/// State of the thread of a client.
struct Client {
    interfaces: Interfaces,
    over: Arc<AtomicBool>,
    tally: Arc<Tally>,
    /// Clients that have had an answer.
    ready: Arc<AtomicU64>,
    number: u32,
}

type Body = fn(&Client) -> io::Result<()>;

impl Clients {
    /// Connects all clients, and waits until each has had an answer.
    ///
    /// # Errors
    /// If the system refuses a thread or a connection, or an answer does not arrive.
    pub(super) fn connect(
        wanted: ClientCounts,
        interfaces: Interfaces,
        tally: &Arc<Tally>,
    ) -> Result<Clients, Failure> {
        raise_descriptors(wanted)?;
        let (over, ready) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut clients = Clients { over, idle: Vec::new(), threads: Vec::new(), tally: tally.clone() };
        let kinds: [(u32, Body); 3] =
            [(wanted.pages, Client::view), (wanted.busy, Client::ask), (wanted.logins, Client::try_logins)];
        for (count, body) in kinds {
            for number in 0..count {
                let (over, tally, ready) = (clients.over.clone(), tally.clone(), ready.clone());
                let client = Client { interfaces, over, tally, ready, number };
                let spawned = thread::Builder::new().name("client".to_owned()).spawn(move || {
                    // Clients are usually on other machines, so here they use what the switch and
                    // its hosts leave of the processors. In Linux the call names a thread.
                    let _ = setpriority_process(Some(rustix::thread::gettid()), 19);
                    body(&client)
                });
                clients.threads.push(spawned.map_err(failed)?);
            }
        }
        let (all, begun) = (clients.threads.len() as u64, Instant::now());
        while ready.load(Ordering::Relaxed) < all {
            if let Some(ended) = clients.threads.iter().position(JoinHandle::is_finished) {
                return Err(failed(ended_by(clients.threads.swap_remove(ended))));
            }
            if begun.elapsed() > TIME_LIMIT {
                let ready = ready.load(Ordering::Relaxed);
                return Err(Failure::environment(format_args!(
                    "{ready} of {all} clients have had an answer after {} s; ask for fewer",
                    TIME_LIMIT.as_secs()
                )));
            }
            thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..wanted.idle {
            clients.idle.push(TcpStream::connect_timeout(&interfaces.page, TIME_LIMIT).map_err(failed)?);
        }
        Ok(clients)
    }

    /// Ends all clients.
    ///
    /// # Errors
    /// If a client has ended before.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        match self.threads.iter().position(JoinHandle::is_finished) {
            None => Ok(()),
            Some(ended) => Err(failed(ended_by(self.threads.swap_remove(ended)))),
        }
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::environment(format_args!("a client: {error}"))
}

/// The error that has ended the thread of a client.
fn ended_by(thread: JoinHandle<io::Result<()>>) -> io::Error {
    thread.join().ok().and_then(Result::err).unwrap_or_else(|| io::Error::other("its thread has ended"))
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let is_open = |stream: &&TcpStream| {
            let waits = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
            waits.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        self.tally.kept.fetch_max(self.idle.iter().filter(is_open).count() as u64, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Client {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    /// Counts this client as ready at its first answer.
    fn is_answered(&self, answered: &mut bool) {
        if !std::mem::replace(answered, true) {
            self.ready.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reads the page, the map and a table, and then the events, as a browser does.
    fn view(&self) -> io::Result<()> {
        let mut http = Http::connect(self.interfaces.page)?;
        for path in ["/", "/api/v1/me", "/api/v1/graph", "/api/v1/show/ports"] {
            let status = http.request(&format!("GET {path}"), "", self)?;
            if status != 200 {
                return Err(io::Error::other(format!("{path} was answered with status {status}")));
            }
        }
        http.send("GET /api/v1/events", "")?;
        let (mut answered, mut line) = (false, Vec::new());
        while http.line(&mut line, self)? {
            if line.starts_with(b"event:") {
                self.tally.events.fetch_add(1, Ordering::Relaxed);
                self.is_answered(&mut answered);
            }
        }
        match self.goes_on() {
            true => Err(io::Error::other("the stream of events ended")),
            false => Ok(()),
        }
    }

    /// Reads the table of ports without a pause. A server that is busy may refuse a request.
    fn ask(&self) -> io::Result<()> {
        let (mut http, mut answered) = (None, false);
        while self.goes_on() {
            let connection = match &mut http {
                Some(connection) => connection,
                none => none.insert(Http::connect(self.interfaces.page)?),
            };
            let count = match connection.request("GET /api/v1/show/ports", "", self) {
                Ok(200) => &self.tally.answers,
                Ok(503) => &self.tally.refused,
                Ok(status) => return Err(io::Error::other(format!("a table was answered with status {status}"))),
                Err(_) if !self.goes_on() => return Ok(()),
                Err(error) => return Err(error),
            };
            count.fetch_add(1, Ordering::Relaxed);
            self.is_answered(&mut answered);
        }
        Ok(())
    }

    /// Tries a wrong password over REST, or breaks a connection of SSH in its key exchange.
    fn try_logins(&self) -> io::Result<()> {
        let (mut answered, is_rest) = (false, self.number.is_multiple_of(2));
        while self.goes_on() {
            let outcome = if is_rest { self.wrong_password() } else { self.broken_ssh() };
            match outcome {
                Ok(()) => {
                    let count = if is_rest { &self.tally.logins } else { &self.tally.broken };
                    count.fetch_add(1, Ordering::Relaxed);
                    self.is_answered(&mut answered);
                }
                // A server may close a connection without an answer while it refuses a flood.
                Err(_) => {
                    self.tally.closed.fetch_add(u64::from(self.goes_on()), Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        Ok(())
    }

    fn wrong_password(&self) -> io::Result<()> {
        // The user is admin, and the password is wrong.
        let fields = "Authorization: Basic YWRtaW46d3Jvbmc=\r\nContent-Length: 0\r\n";
        match Http::connect(self.interfaces.rest)?.request("POST /rest/login", fields, self)? {
            400..=499 => Ok(()),
            status => Err(io::Error::other(format!("a wrong password was answered with status {status}"))),
        }
    }

    fn broken_ssh(&self) -> io::Result<()> {
        let mut http = Http::connect(self.interfaces.ssh)?;
        let mut line = Vec::new();
        if !http.line(&mut line, self)? || !line.starts_with(b"SSH-2.0-") {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let stream = http.stream.get_mut();
        stream.write_all(b"SSH-2.0-broken\r\n")?;
        stream.write_all(&[0xa5; 64])
    }
}

/// A connection of HTTP 1.1.
struct Http {
    stream: BufReader<TcpStream>,
    host: SocketAddr,
}

impl Http {
    fn connect(address: SocketAddr) -> io::Result<Http> {
        let stream = TcpStream::connect_timeout(&address, TIME_LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(CHECK_INTERVAL))?;
        stream.set_write_timeout(Some(TIME_LIMIT))?;
        Ok(Http { stream: BufReader::new(stream), host: address })
    }

    fn send(&mut self, request: &str, fields: &str) -> io::Result<()> {
        let head = format!("{request} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.host);
        self.stream.get_mut().write_all(head.as_bytes())
    }

    /// Sends a request, reads the whole response, and returns its status.
    fn request(&mut self, request: &str, fields: &str, client: &Client) -> io::Result<u16> {
        self.send(request, fields)?;
        let broken = || io::Error::new(ErrorKind::InvalidData, "no response of HTTP");
        let mut line = Vec::new();
        let mut next = |http: &mut Http| match http.line(&mut line, client)? {
            true => Ok(String::from_utf8_lossy(&line).trim_end().to_ascii_lowercase()),
            false => Err(io::Error::from(ErrorKind::UnexpectedEof)),
        };
        let status = next(self)?.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
        let mut length = 0;
        loop {
            let field = next(self)?;
            if field.is_empty() {
                break;
            }
            if let Some(value) = field.strip_prefix("content-length:") {
                length = value.trim().parse::<u64>().ok().filter(|&bytes| bytes < MAX_BODY_BYTES).ok_or_else(broken)?;
            }
        }
        let mut left = length;
        while left > 0 {
            let bytes = match self.stream.fill_buf() {
                Ok(bytes) => (bytes.len() as u64).min(left),
                Err(error) if is_late(&error) && client.goes_on() => continue,
                Err(error) => return Err(error),
            };
            if bytes == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.stream.consume(bytes as usize);
            left -= bytes;
        }
        Ok(status)
    }

    /// Reads a line. Returns false at the end of the stream, or if the client has to end.
    fn line(&mut self, line: &mut Vec<u8>, client: &Client) -> io::Result<bool> {
        line.clear();
        loop {
            match self.stream.read_until(b'\n', line) {
                Ok(_) => return Ok(!line.is_empty()),
                Err(error) if !is_late(&error) => return Err(error),
                Err(_) if client.goes_on() => {}
                Err(_) => return Ok(false),
            }
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Lets this process open a descriptor for each client.
fn raise_descriptors(wanted: ClientCounts) -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = u64::from(wanted.pages + wanted.idle + wanted.busy + wanted.logins) + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised).map_err(|error| {
            Failure::environment(format_args!("{needed} descriptors are necessary ({error}); raise `ulimit -n`"))
        })?;
    }
    Ok(())
}
