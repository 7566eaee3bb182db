//! A path to a portal that can be closed, even with PDUs in flight: [`Gate`].

use rustix::net::{listen, shutdown};
use sanloom_test_support::ports::{free_port, unread_bytes};
use sanloom_test_support::wait;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::iter;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Type of data to cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inside {
    /// Data-In.
    Read,
    /// Data-Out, or immediate data of a command.
    Write,
}

/// Number of forwarded PDUs by opcode, and by SCSI command or task management function.
pub type Requests = BTreeMap<(u8, u8), u32>;

/// Parser position in a stream of PDUs without digests.
#[derive(Default)]
struct Track {
    header: Vec<u8>,
    /// Remaining bytes of the PDU after its header.
    left: usize,
}

impl Track {
    /// Parses bytes. Returns the type of the interrupted data at their end; `seen` receives the
    /// headers.
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
    /// Type of data in which a connection is to be cut, and number of cuts: reads, writes.
    cut_inside: Option<Inside>,
    cuts: [u32; 2],
    /// Headers forwarded to the portal and from it.
    seen: [Requests; 2],
    closed: bool,
    refuses: bool,
    streams: Vec<TcpStream>,
    /// Bytes from the portal until the cut.
    left: Option<usize>,
    /// Number of connections so far, and number of connections whose data for the portal are held.
    connections: usize,
    held: usize,
    /// Number of pieces that were read and have not been written, and number of held ones.
    read: usize,
    waiting: usize,
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
    /// Address of the gate.
    pub address: String,
    portal: String,
    listener: TcpListener,
    state: Arc<Mutex<State>>,
    changed: Arc<Condvar>,
}

impl Gate {
    pub fn to(portal: &str) -> Gate {
        // After it stops listening, the socket keeps its port only if the port was requested
        // explicitly.
        let listener = iter::repeat_with(|| TcpListener::bind(free_port())).find_map(Result::ok).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let changed = Arc::new(Condvar::new());
        let (to, shared, bell) = (portal.to_owned(), state.clone(), changed.clone());
        let listens = listener.try_clone().unwrap();
        thread::spawn(move || {
            loop {
                let Ok((from, _)) = listens.accept() else {
                    drop(bell.wait_while(shared.lock().unwrap(), |state| state.refuses).unwrap());
                    continue;
                };
                let Ok(to) = TcpStream::connect(&to) else { continue };
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
                    let is_held = move |state: &State| !answers && number < state.held;
                    // Waits while a piece of this number of bytes, or the close, is held.
                    let wait = move |bytes: usize| {
                        let pieces = usize::from(bytes > 0);
                        let mut state = shared.lock().unwrap();
                        state.read += pieces;
                        state.waiting += pieces;
                        state = bell.wait_while(state, |state| is_held(state)).unwrap();
                        state.waiting -= pieces;
                        drop(state);
                        shared.clone()
                    };
                    thread::spawn(move || {
                        // Small reads, so that a cut falls within PDUs.
                        let (mut piece, mut track) = ([0; 1000], Track::default());
                        while let Ok(got @ 1..) = from.read(&mut piece) {
                            let shared = wait(got);
                            let passes =
                                shared.lock().unwrap().left.filter(|_| answers).map_or(got, |left| left.min(got));
                            let written = to.write_all(&piece[..passes]);
                            let mut state = shared.lock().unwrap();
                            state.read -= 1;
                            if written.is_err() {
                                break;
                            }
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
                        wait(0);
                        let _ = to.shutdown(Shutdown::Both);
                        // Bytes for an end that has closed the connection are discarded.
                        while let Ok(1..) = from.read(&mut piece) {}
                    });
                }
            }
        });
        Gate { address, portal: portal.to_owned(), listener, state, changed }
    }

    /// Cuts every connection. New ones are accepted at once, unless the gate is closed.
    pub fn cut(&self) {
        self.state.lock().unwrap().cut();
    }

    /// Cuts every connection after this number of further bytes from the portal.
    pub fn cut_after(&self, bytes: usize) {
        self.state.lock().unwrap().left = Some(bytes);
    }

    /// Cuts every connection as soon as one is within data of this type; `None` disables this.
    pub fn cut_inside(&self, inside: Option<Inside>) {
        self.state.lock().unwrap().cut_inside = inside;
    }

    /// Number of such cuts.
    pub fn cuts(&self, inside: Inside) -> u32 {
        self.state.lock().unwrap().cuts[inside as usize]
    }

    /// PDUs forwarded to the portal.
    pub fn requests(&self) -> Requests {
        self.state.lock().unwrap().seen[0].clone()
    }

    /// Number of SCSI responses forwarded from the portal.
    pub fn responses(&self) -> u32 {
        const SCSI_RESPONSE: u8 = 0x21;
        self.state.lock().unwrap().seen[1].get(&(SCSI_RESPONSE, 0)).copied().unwrap_or_default()
    }

    /// Holds data and close of existing connections to the portal; later connections pass.
    pub fn hold(&self) {
        let mut state = self.state.lock().unwrap();
        state.held = state.connections;
    }

    /// Releases the held data.
    pub fn release(&self) {
        self.state.lock().unwrap().held = 0;
        self.changed.notify_all();
    }

    /// Waits until data for the portal are held.
    #[track_caller]
    pub fn wait_until_held(&self) {
        wait::until(|| format!("{}: data are held", self.address), || self.state.lock().unwrap().waiting > 0);
    }

    /// Waits until all data have passed and the portal has read them.
    #[track_caller]
    pub fn wait_until_passed(&self) {
        let is_idle = || {
            let unread: u64 = [&self.address, &self.portal].map(|address| unread_bytes(address)).iter().sum();
            unread == 0 && self.state.lock().unwrap().read == 0
        };
        // A piece may be between the buffer of the socket and the count, but not twice.
        wait::until(|| format!("{}: all data have passed", self.address), || is_idle() && is_idle());
    }

    /// Closes or opens the listener. Closing rejects new connections, as a port without a listener
    /// does, and cuts existing ones.
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

    /// Starts or stops to end all connections, existing ones and new ones right after they are
    /// accepted.
    pub fn close(&self, closed: bool) {
        self.state.lock().unwrap().closed = closed;
        if closed {
            self.cut();
        }
    }
}
