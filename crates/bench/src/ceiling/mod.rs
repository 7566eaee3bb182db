//! The PDU-copy ceiling: a minimal forwarder that polls, reads into one large buffer, parses PDU
//! headers in place, and writes. It is the upper bound for a switch in user space that copies, and
//! the reference for a forwarding path. It does not support connections with digests.
//!
//! The same forwarder with another [`Mover`] or with worse [`Habits`] measures the effect of each.

mod copy;
mod splice;
mod uring;

use copy::Copying;
use sanloom_live::poll::{Interest, Poller};
use sanloom_live::sys::stream::pace;
use splice::Splicing;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Bytes per read.
const BUFFER_BYTES: usize = 256 << 10;
/// Interval between calls of `go_on`.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
const LISTENER: u64 = 0;

/// Method of moving bytes from one socket to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mover {
    /// `recv` into a buffer and `send` from it, many PDUs per call.
    #[default]
    Copy,
    /// The header through a buffer and the data through a pipe with splice(2), without a copy in
    /// user space; one PDU at a time.
    Splice,
    /// Through a buffer, with io_uring(7) requests.
    IoUring,
}

/// Deliberate inefficiencies whose cost is measured. Only [`Mover::Copy`] supports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Habits {
    /// Store and forward: send a PDU only after it has been received completely.
    pub whole_pdus: bool,
    /// Send each PDU with its own system call.
    pub single_pdus: bool,
    /// Perform one read per wake-up.
    pub single_reads: bool,
}

/// Configuration of the forwarder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Manner {
    /// Method of moving bytes.
    pub mover: Mover,
    /// Deliberate inefficiencies.
    pub habits: Habits,
    /// Rate limit in bytes per second for each direction of a connection, as on a link.
    pub bytes_per_second: Option<u32>,
}

/// State of a direction after a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Served {
    /// It waits for either socket.
    Waits,
    /// More data are available, which are left for the next turn.
    More,
    /// The connection has ended.
    Ended,
}

/// One direction of a connection.
#[derive(Debug)]
enum Way {
    Copy(Copying),
    Splice(Splicing),
}

impl Way {
    fn new(manner: &Manner) -> io::Result<Way> {
        Ok(match manner.mover {
            Mover::Splice => Way::Splice(Splicing::new()?),
            _ => Way::Copy(Copying::new(manner.habits)),
        })
    }

    fn is_blocked(&self) -> bool {
        match self {
            Way::Copy(way) => way.is_blocked(),
            Way::Splice(way) => way.is_blocked(),
        }
    }

    fn pdus(&self) -> u64 {
        match self {
            Way::Copy(way) => way.pdus,
            Way::Splice(way) => way.pdus,
        }
    }

    /// Moves the available data.
    fn serve(&mut self, from: &mut TcpStream, to: &mut TcpStream) -> io::Result<Served> {
        match self {
            Way::Copy(way) => way.serve(from, to),
            Way::Splice(way) => way.serve(from, to),
        }
    }
}

#[derive(Debug)]
struct Pair {
    host: TcpStream,
    target: TcpStream,
    up: Way,
    down: Way,
}

impl Pair {
    fn serve(&mut self) -> io::Result<Served> {
        let up = self.up.serve(&mut self.host, &mut self.target)?;
        let down = self.down.serve(&mut self.target, &mut self.host)?;
        Ok(match (up, down) {
            (Served::Ended, _) | (_, Served::Ended) => Served::Ended,
            (Served::More, _) | (_, Served::More) => Served::More,
            (Served::Waits, Served::Waits) => Served::Waits,
        })
    }

    /// Returns the readiness to wait for at either socket.
    fn interests(&self) -> [Interest; 2] {
        let (up, down) = (self.up.is_blocked(), self.down.is_blocked());
        [Interest { read: !up, write: down }, Interest { read: !down, write: up }]
    }
}

/// Opens the connection to the target.
fn connect(host: &TcpStream, to: SocketAddr, manner: &Manner) -> io::Result<TcpStream> {
    let target = TcpStream::connect(to)?;
    for stream in [host, &target] {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        if let Some(bytes_per_second) = manner.bytes_per_second {
            pace(stream, bytes_per_second)?;
        }
    }
    Ok(target)
}

/// Forwards connections without digests until `go_on` returns false. Returns the number of
/// forwarded PDUs.
///
/// # Errors
/// When the system does not permit to listen or wait, or does not support the mover.
pub fn run(listen: &TcpListener, to: SocketAddr, manner: &Manner, mut go_on: impl FnMut() -> bool) -> io::Result<u64> {
    listen.set_nonblocking(true)?;
    if manner.mover == Mover::IoUring {
        return uring::run(listen, to, manner, go_on);
    }
    let mut poller = Poller::new()?;
    poller.set(LISTENER, Some(listen.as_fd()), Interest { read: true, write: false })?;
    let mut pairs: BTreeMap<u64, Pair> = BTreeMap::new();
    let (mut next, mut pdus) = (1, 0);
    let mut again: Vec<u64> = Vec::new();
    while go_on() {
        let wait = if again.is_empty() { CHECK_INTERVAL } else { Duration::ZERO };
        let mut ready: Vec<u64> = poller.wait(wait)?.iter().map(|event| event.token).collect();
        if ready.contains(&LISTENER) {
            while let Ok((host, _)) = listen.accept() {
                let Ok(target) = connect(&host, to, manner) else { continue };
                pairs.insert(next, Pair { host, target, up: Way::new(manner)?, down: Way::new(manner)? });
                ready.push(next * 2);
                next += 1;
            }
        }
        let served = ready.into_iter().map(|token| token / 2).filter(|number| *number > 0);
        let mut served: Vec<u64> = served.chain(again.drain(..)).collect();
        served.sort_unstable();
        served.dedup();
        for number in served {
            let Some(pair) = pairs.get_mut(&number) else { continue };
            match pair.serve() {
                Ok(Served::Waits) => {}
                Ok(Served::More) => again.push(number),
                Ok(Served::Ended) | Err(_) => {
                    pdus += pair.up.pdus() + pair.down.pdus();
                    poller.remove(number * 2, pair.host.as_fd());
                    poller.remove(number * 2 + 1, pair.target.as_fd());
                    pairs.remove(&number);
                    continue;
                }
            }
            let [host, target] = pair.interests();
            poller.set(number * 2, Some(pair.host.as_fd()), host)?;
            poller.set(number * 2 + 1, Some(pair.target.as_fd()), target)?;
        }
    }
    Ok(pdus + pairs.values().map(|pair| pair.up.pdus() + pair.down.pdus()).sum::<u64>())
}
