//! The PDU-copy ceiling: a forwarder that polls, reads into one large buffer, walks the headers of PDUs in place and writes on, and
//! nothing else. What a switch in user space could do at best where it copies, and what a forwarding path is to be measured
//! against; connections with digests cannot pass.

use crate::poll::{Interest, Poller};
use crate::sys::stream::pace;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// What is read at once.
const BUFFER_BYTES: usize = 256 << 10;
/// How often the caller is asked whether to go on.
const LOOK: Duration = Duration::from_millis(100);
const LISTENER: u64 = 0;

/// One direction of a connection.
#[derive(Debug)]
struct Way {
    buffer: Box<[u8]>,
    /// Bytes that were read, whose headers were seen, that have left.
    filled: usize,
    walked: usize,
    sent: usize,
    /// Bytes of the PDU under way that are still to come.
    left: usize,
    pdus: u64,
}

impl Way {
    fn new() -> Way {
        Way { buffer: vec![0; BUFFER_BYTES].into(), filled: 0, walked: 0, sent: 0, left: 0, pdus: 0 }
    }

    fn is_blocked(&self) -> bool {
        self.sent < self.walked
    }

    /// Looks at every header that is complete.
    fn walk(&mut self) {
        loop {
            let step = self.left.min(self.filled - self.walked);
            (self.walked, self.left) = (self.walked + step, self.left - step);
            let Some(header) = self.buffer[self.walked..self.filled].first_chunk::<BHS_BYTES>() else { return };
            let bhs = Bhs(*header);
            self.left = BHS_BYTES + bhs.ahs_bytes() + (bhs.data_bytes() + bhs.padding()) as usize;
            self.pdus += 1;
        }
    }

    /// Moves what there is. False if the connection has ended.
    fn serve(&mut self, from: &mut TcpStream, to: &mut TcpStream) -> io::Result<bool> {
        loop {
            while self.is_blocked() {
                match to.write(&self.buffer[self.sent..self.walked]) {
                    Ok(sent) => self.sent += sent,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                    Err(error) => return Err(error),
                }
            }
            // What is left is the beginning of a header.
            self.buffer.copy_within(self.walked..self.filled, 0);
            self.filled -= self.walked;
            (self.walked, self.sent) = (0, 0);
            match from.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Ok(false),
                Ok(got) => self.filled += got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
            self.walk();
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
    fn serve(&mut self) -> io::Result<bool> {
        Ok(self.up.serve(&mut self.host, &mut self.target)? && self.down.serve(&mut self.target, &mut self.host)?)
    }

    /// What to wait for at either side.
    fn interests(&self) -> [Interest; 2] {
        let (up, down) = (self.up.is_blocked(), self.down.is_blocked());
        [Interest { read: !up, write: down }, Interest { read: !down, write: up }]
    }
}

/// Forwards connections without digests until `go_on` says no. The PDUs that passed. `link`: so many bytes in a second pass each way of a
/// connection at most, as on a link.
///
/// # Errors
/// When the system does not let us listen or wait.
pub fn run(
    listen: &TcpListener,
    to: SocketAddr,
    link: Option<u32>,
    mut go_on: impl FnMut() -> bool,
) -> io::Result<u64> {
    listen.set_nonblocking(true)?;
    let mut poller = Poller::new()?;
    poller.set(LISTENER, Some(listen.as_fd()), Interest { read: true, write: false })?;
    let mut pairs: BTreeMap<u64, Pair> = BTreeMap::new();
    let (mut next, mut pdus) = (1, 0);
    while go_on() {
        let mut ready: Vec<u64> = poller.wait(LOOK)?.iter().map(|event| event.token).collect();
        if ready.contains(&LISTENER) {
            while let Ok((host, _)) = listen.accept() {
                let Ok(target) = TcpStream::connect(to) else { continue };
                for stream in [&host, &target] {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    if let Some(bytes_per_second) = link {
                        pace(stream, bytes_per_second)?;
                    }
                }
                pairs.insert(next, Pair { host, target, up: Way::new(), down: Way::new() });
                ready.push(next * 2);
                next += 1;
            }
        }
        let mut served: Vec<u64> = ready.into_iter().map(|token| token / 2).filter(|number| *number > 0).collect();
        served.dedup();
        for number in served {
            let Some(pair) = pairs.get_mut(&number) else { continue };
            let alive = matches!(pair.serve(), Ok(true));
            if !alive {
                pdus += pair.up.pdus + pair.down.pdus;
                poller.remove(number * 2, pair.host.as_fd());
                poller.remove(number * 2 + 1, pair.target.as_fd());
                pairs.remove(&number);
                continue;
            }
            let [host, target] = pair.interests();
            poller.set(number * 2, Some(pair.host.as_fd()), host)?;
            poller.set(number * 2 + 1, Some(pair.target.as_fd()), target)?;
        }
    }
    Ok(pdus + pairs.values().map(|pair| pair.up.pdus + pair.down.pdus).sum::<u64>())
}
