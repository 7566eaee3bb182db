//! Forwarding through a buffer with io_uring(7): one system call for all pending reads and writes.

use super::copy::Walk;
use super::{BUFFER_BYTES, CHECK_INTERVAL, LISTENER, Manner, connect};
use crate::ring::{Ended, Ring};
use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

/// One direction of a connection. While a request is in flight, the ring owns the buffer.
#[derive(Debug)]
struct Way {
    walk: Walk,
    under_way: bool,
    pdus: u64,
}

impl Way {
    fn new() -> Way {
        Way { walk: Walk::new(BUFFER_BYTES), under_way: false, pdus: 0 }
    }
}

#[derive(Debug)]
struct Pair {
    streams: [TcpStream; 2],
    /// Directions: from the host, and from the target.
    ways: [Way; 2],
    ended: bool,
}

impl Pair {
    /// Submits the next request of a direction: a write of received bytes, or a read.
    fn ask(&mut self, ring: &mut Ring, token: u64) -> io::Result<()> {
        let direction = (token % 2) as usize;
        let Way { walk, under_way, .. } = &mut self.ways[direction];
        *under_way = true;
        if walk.sent < walk.walked {
            return ring.send(token, &self.streams[1 - direction], mem::take(&mut walk.buffer), walk.sent..walk.walked);
        }
        walk.compact();
        ring.receive(token, &self.streams[direction], mem::take(&mut walk.buffer), walk.filled..BUFFER_BYTES)
    }

    /// Processes a completed request.
    fn complete(&mut self, Ended { token, outcome, buffer }: Ended) {
        let Way { walk, under_way, pdus } = &mut self.ways[(token % 2) as usize];
        (*under_way, walk.buffer) = (false, buffer);
        match outcome {
            Ok(moved) if walk.sent < walk.walked => walk.sent += moved,
            Ok(moved @ 1..) => {
                walk.filled += moved;
                walk.walk(|_| *pdus += 1);
            }
            Ok(_) | Err(_) => self.ended = true,
        }
    }

    fn is_idle(&self) -> bool {
        self.ways.iter().all(|way| !way.under_way)
    }

    fn pdus(&self) -> u64 {
        self.ways.iter().map(|way| way.pdus).sum()
    }

    /// Shuts down both sockets, so that in-flight requests end soon.
    fn close(&self) {
        for stream in &self.streams {
            // An error means that the peer has closed the connection first.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// As [`super::run`].
pub(super) fn run(
    listen: &TcpListener,
    to: SocketAddr,
    manner: &Manner,
    mut go_on: impl FnMut() -> bool,
) -> io::Result<u64> {
    let mut ring = Ring::new()?;
    let mut pairs: BTreeMap<u64, Pair> = BTreeMap::new();
    let (mut next, mut pdus) = (1, 0);
    ring.poll(LISTENER, listen)?;
    while go_on() {
        let mut ready = Vec::new();
        for ended in ring.wait(CHECK_INTERVAL)? {
            ready.push(ended.token);
            if let Some(pair) = pairs.get_mut(&(ended.token / 2)) {
                pair.complete(ended);
            }
        }
        for token in ready {
            if token == LISTENER {
                while let Ok((host, _)) = listen.accept() {
                    let Ok(target) = connect(&host, to, manner) else { continue };
                    // Requests wait for their sockets themselves, so the sockets block.
                    [&host, &target].into_iter().try_for_each(|stream| stream.set_nonblocking(false))?;
                    let mut pair = Pair { streams: [host, target], ways: [Way::new(), Way::new()], ended: false };
                    (2 * next..2 * next + 2).try_for_each(|token| pair.ask(&mut ring, token))?;
                    pairs.insert(next, pair);
                    next += 1;
                }
                ring.poll(LISTENER, listen)?;
                continue;
            }
            let Some(pair) = pairs.get_mut(&(token / 2)) else { continue };
            if !pair.ended {
                pair.ask(&mut ring, token)?;
                continue;
            }
            pair.close();
            if pair.is_idle() {
                pdus += pair.pdus();
                pairs.remove(&(token / 2));
            }
        }
    }
    Ok(pdus + pairs.values().map(Pair::pdus).sum::<u64>())
}
