//! A way to a portal that can be closed, with whatever is under way: [`Gate`].

use crate::bed::free_port;
use rustix::net::{listen, shutdown};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::iter;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What is cut in two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inside {
    /// Data-In.
    Read,
    /// Data-Out, or the data of a command.
    Write,
}

/// How often PDUs of an opcode have passed, by command (of SCSI) or function (of task management).
pub type Requests = BTreeMap<(u8, u8), u32>;

/// Where a stream of PDUs without digests stands.
#[derive(Default)]
struct Track {
    header: Vec<u8>,
    /// Bytes of the PDU behind its header that have not passed.
    left: usize,
}

impl Track {
    /// Bytes pass. What the next ones are the middle of; `seen` gets the headers.
    fn pass(&mut self, mut bytes: &[u8], seen: &mut Requests) -> Option<Inside> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let passes = self.left.min(bytes.len());
                (self.left, bytes) = (self.left - passes, &bytes[passes..]);
                continue;
            }
            if self.header.len() == 48 {
                self.header.clear();
            }
            let passes = bytes.len().min(48 - self.header.len());
            self.header.extend_from_slice(&bytes[..passes]);
            bytes = &bytes[passes..];
            if let [_, _, _, _, more, a, b, c, ..] = self.header[..]
                && self.header.len() == 48
            {
                let data = u32::from_be_bytes([0, a, b, c]) as usize;
                self.left = 4 * usize::from(more) + data.next_multiple_of(4);
                let detail = match self.header[0] & 0x3f {
                    0x01 => self.header[32],
                    0x02 => self.header[1] & 0x7f,
                    _ => 0,
                };
                *seen.entry((self.header[0] & 0x3f, detail)).or_default() += 1;
            }
        }
        match self.header.first()? & 0x3f {
            _ if self.left == 0 => None,
            0x25 => Some(Inside::Read),
            0x01 | 0x05 => Some(Inside::Write),
            _ => None,
        }
    }
}

#[derive(Default)]
struct State {
    /// To be cut when a connection is in the middle of that, and how often that was done: reads, writes.
    cut_inside: Option<Inside>,
    cuts: [u32; 2],
    /// Headers that have passed: those for the portal, and its answers.
    seen: [Requests; 2],
    closed: bool,
    refuses: bool,
    streams: Vec<TcpStream>,
    /// Bytes of the portal that still pass.
    left: Option<usize>,
    /// Connections so far, and how many of them wait with what they have for the portal.
    connections: usize,
    held: usize,
}

impl State {
    fn cut(&mut self) {
        for stream in self.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// A relay to a portal.
pub struct Gate {
    /// Where it listens.
    pub address: String,
    listener: TcpListener,
    state: Arc<Mutex<State>>,
    changed: Arc<Condvar>,
}

impl Gate {
    pub fn to(portal: &str) -> Gate {
        // A socket that does not listen any more keeps only a port that it asked for.
        let listener = iter::repeat_with(|| TcpListener::bind(free_port())).find_map(Result::ok).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let changed = Arc::new(Condvar::new());
        let (portal, shared, bell) = (portal.to_owned(), state.clone(), changed.clone());
        let listens = listener.try_clone().unwrap();
        thread::spawn(move || {
            loop {
                let Ok((from, _)) = listens.accept() else {
                    drop(bell.wait_while(shared.lock().unwrap(), |state| state.refuses).unwrap());
                    continue;
                };
                let Ok(to) = TcpStream::connect(&portal) else { continue };
                from.set_nodelay(true).unwrap();
                to.set_nodelay(true).unwrap();
                let mut state = shared.lock().unwrap();
                if state.closed || state.refuses {
                    continue;
                }
                let number = state.connections;
                state.connections += 1;
                for (from, to, answers) in [(&from, &to, false), (&to, &from, true)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    state.streams.push(from.try_clone().unwrap());
                    let (shared, bell) = (shared.clone(), bell.clone());
                    let wait = move || {
                        let free = |state: &mut State| answers || number >= state.held;
                        drop(bell.wait_while(shared.lock().unwrap(), |state| !free(state)).unwrap());
                        shared.clone()
                    };
                    thread::spawn(move || {
                        // Small pieces, so that a cut goes through PDUs.
                        let (mut piece, mut track) = ([0; 1000], Track::default());
                        while let Ok(got @ 1..) = from.read(&mut piece) {
                            let shared = wait();
                            let passes =
                                shared.lock().unwrap().left.filter(|_| answers).map_or(got, |left| left.min(got));
                            if to.write_all(&piece[..passes]).is_err() {
                                break;
                            }
                            let mut state = shared.lock().unwrap();
                            let inside = track.pass(&piece[..passes], &mut state.seen[usize::from(answers)]);
                            if let Some(inside) = inside.filter(|inside| state.cut_inside == Some(*inside)) {
                                state.cut_inside = None;
                                state.cuts[inside as usize] += 1;
                                state.cut();
                            }
                            if let Some(left) = state.left.as_mut().filter(|_| answers) {
                                *left = left.saturating_sub(passes);
                                if *left == 0 {
                                    state.left = None;
                                    state.cut();
                                }
                            }
                        }
                        wait();
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Gate { address, listener, state, changed }
    }

    /// Cuts every connection. New ones are let through again at once, unless the gate is closed.
    pub fn cut(&self) {
        self.state.lock().unwrap().cut();
    }

    /// Cuts every connection when so many more bytes of the portal have passed.
    pub fn cut_after(&self, bytes: usize) {
        self.state.lock().unwrap().left = Some(bytes);
    }

    /// Cuts every connection as soon as one is in the middle of such data; `None`: not any more.
    pub fn cut_inside(&self, inside: Option<Inside>) {
        self.state.lock().unwrap().cut_inside = inside;
    }

    /// How often that was done.
    pub fn cuts(&self, inside: Inside) -> u32 {
        self.state.lock().unwrap().cuts[inside as usize]
    }

    /// What has passed to the portal.
    pub fn requests(&self) -> Requests {
        self.state.lock().unwrap().seen[0].clone()
    }

    /// Keeps back what connections that are there have for the portal, even their end; those that come later pass.
    pub fn hold(&self) {
        let mut state = self.state.lock().unwrap();
        state.held = state.connections;
    }

    /// Lets go on what was kept back.
    pub fn release(&self) {
        self.state.lock().unwrap().held = 0;
        self.changed.notify_all();
    }

    /// Refuses connections, as a port does where nobody listens, and cuts those that there are; or listens again.
    pub fn refuse(&self, refuses: bool) {
        let mut state = self.state.lock().unwrap();
        state.refuses = refuses;
        if refuses {
            shutdown(&self.listener, rustix::net::Shutdown::Both).unwrap();
            state.cut();
        } else {
            listen(&self.listener, 16).unwrap();
            self.changed.notify_all();
        }
    }

    /// Ends connections as soon as they are there, and those that there are; or lets everybody through again.
    pub fn close(&self, closed: bool) {
        self.state.lock().unwrap().closed = closed;
        if closed {
            self.cut();
        }
    }
}
