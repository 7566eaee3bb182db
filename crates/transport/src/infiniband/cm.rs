//! Connection manager of an end point that only accepts connections (IBA volume 1, 12.9).
//!
//! ```text
//!   REQ -> Requested   Accept -> REP   RTU -> Established      DREQ -> DREP, Closed
//!                      Reject -> REJ   no RTU -> Closed        Close -> DREQ, DREP -> Closed
//! ```
//!
//! A REQ that comes again is answered with the same REP. REP and DREQ are repeated a limited number
//! of times. The machine follows the contract of `sanloom_scsi`.

use core::net::Ipv4Addr;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::infiniband::cm::{RejFields, ReqPath, reason};
use sanloom_wire::infiniband::mad::{CmKind, CmMessage, RepFields, ReqFields};
use std::collections::{BTreeMap, VecDeque};

/// Settings of an end point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Time after which a REP or DREQ without an answer is repeated.
    pub response_timeout: Span,
    /// Repetitions of a REP or DREQ.
    pub retries: u8,
    /// Maximum number of connections, open and closing ones.
    pub connections: usize,
    /// Communication ID of the first connection. Take it from a random generator, so that messages
    /// for an end point before a restart match none.
    pub first_id: u32,
}

/// Event of the connection manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A message of a peer.
    Message(Ipv4Addr, Box<CmMessage>),
    /// Accept the connection of [`Output::Requested`]. Its `ids` are set by the machine.
    Accept {
        /// Communication ID.
        id: u32,
        /// Fields of the REP.
        rep: RepFields,
        /// Private data, at most 196 bytes.
        private: Vec<u8>,
    },
    /// Reject the connection of [`Output::Requested`].
    Reject {
        /// Communication ID.
        id: u32,
        /// Reason; see [`reason`].
        reason: u16,
        /// Private data, at most 148 bytes.
        private: Vec<u8>,
    },
    /// A packet of the peer has arrived on the connection, which implies the RTU.
    Communicating(u32),
    /// End a connection.
    Close(u32),
    /// The time of `poll_timeout` has come.
    Timeout,
}

/// Effect of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message.
    Send(Ipv4Addr, Box<CmMessage>),
    /// A peer asks for a connection. Pass [`Input::Accept`] or [`Input::Reject`].
    Requested {
        /// Communication ID, unique among the open connections.
        id: u32,
        /// Address of the peer.
        from: Ipv4Addr,
        /// Fields of the REQ.
        req: ReqFields,
        /// Fields of the REQ about path and transport.
        path: ReqPath,
        /// Private data.
        private: Vec<u8>,
    },
    /// The peer is ready to use an accepted connection.
    Established(u32),
    /// A connection that was accepted has ended: by the peer, by [`Input::Close`], or because no
    /// answer came.
    Closed(u32),
}

#[derive(Clone, Debug)]
enum State {
    Requested,
    /// The REP waits for the RTU.
    Replied(Box<CmMessage>),
    Established,
    /// The DREQ waits for the DREP.
    Leaving(Box<CmMessage>),
}

#[derive(Clone, Debug)]
struct Connection {
    peer: Ipv4Addr,
    remote_id: u32,
    remote_pair: u32,
    transaction: u64,
    state: State,
    deadline: Option<Instant>,
    retries: u8,
}

/// Counters of an end point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Requests for connections.
    pub requests: u64,
    /// Requests that were rejected.
    pub rejects: u64,
    /// Messages that fit no connection.
    pub unexpected: u64,
    /// Repetitions of a REP or DREQ.
    pub repetitions: u64,
}

/// Connection manager of an end point.
#[derive(Clone, Debug)]
pub struct Passive {
    config: Config,
    connections: BTreeMap<u32, Connection>,
    outputs: VecDeque<Output>,
    next_id: u32,
    /// Counters.
    pub counters: Counters,
}

impl Passive {
    /// End point without connections.
    pub fn new(config: Config) -> Passive {
        Passive {
            config,
            connections: BTreeMap::new(),
            outputs: VecDeque::new(),
            next_id: config.first_id,
            counters: Counters::default(),
        }
    }

    /// Processes an event.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Message(from, message) => self.receive(now, from, &message),
            Input::Accept { id, rep, private } => self.accept(now, id, rep, &private),
            Input::Reject { id, reason, private } => {
                if let Some(Connection { state: State::Requested, peer, remote_id, transaction, .. }) =
                    self.connections.get(&id)
                {
                    let (peer, ids, transaction) = (*peer, [id, *remote_id], *transaction);
                    self.connections.remove(&id);
                    self.reject(peer, transaction, ids, reason, &private);
                }
            }
            Input::Communicating(id) => self.establish(id),
            Input::Close(id) => self.close(now, id),
            Input::Timeout => self.expire(now),
        }
    }

    /// Next effect.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time of the next [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connections.values().filter_map(|connection| connection.deadline).min()
    }

    /// Number of connections, open and closing ones.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    fn send(&mut self, to: Ipv4Addr, message: CmMessage) {
        self.outputs.push_back(Output::Send(to, Box::new(message)));
    }

    fn receive(&mut self, now: Instant, from: Ipv4Addr, message: &CmMessage) {
        if message.kind == CmKind::Req {
            return self.request(now, from, message);
        }
        // The remote ID of a peer's message is the one of this end.
        let [remote_id, id] = message.ids();
        let known = self.connections.get(&id);
        let known = known.filter(|known| known.peer == from && (known.remote_id == remote_id || remote_id == 0));
        match (message.kind, known.map(|known| &known.state)) {
            (CmKind::Rtu, Some(_)) => self.establish(id),
            // The peer received the REP and needs time: the whole time-out begins again.
            (CmKind::Mra, Some(State::Replied(_))) => {
                let deadline = Some(now + self.config.response_timeout);
                if let Some(known) = self.connections.get_mut(&id).filter(|known| known.retries < self.config.retries) {
                    (known.deadline, known.retries) = (deadline, known.retries + 1);
                }
            }
            (CmKind::Rej, Some(_)) => self.end(id),
            (CmKind::Dreq, state) => {
                // A DREQ that comes again is answered, because the first DREP may be lost.
                let is_known = state.is_some();
                let mut answer = CmMessage::new(CmKind::Drep, message.transaction);
                answer.set_ids([id, remote_id]);
                self.send(from, answer);
                if is_known {
                    self.end(id);
                } else {
                    self.counters.unexpected += 1;
                }
            }
            (CmKind::Drep, Some(State::Leaving(_))) => self.end(id),
            _ => self.counters.unexpected += 1,
        }
    }

    fn request(&mut self, now: Instant, from: Ipv4Addr, message: &CmMessage) {
        let (req, path) = (message.req(), message.req_path());
        let is_again = |known: &Connection| known.peer == from && known.remote_id == req.local_id;
        if let Some((&id, known)) = self.connections.iter_mut().find(|(_, known)| is_again(known)) {
            let is_repeated = (known.transaction, known.remote_pair) == (message.transaction, req.pair);
            if !is_repeated {
                // The peer has begun anew, and knows nothing of the connection before.
                self.end(id);
            } else if let State::Replied(rep) = &known.state {
                if known.retries < self.config.retries {
                    known.deadline = Some(now + self.config.response_timeout);
                    known.retries += 1;
                }
                let rep = **rep;
                return self.send(from, rep);
            } else {
                return;
            }
        }
        self.counters.requests += 1;
        if self.connections.len() >= self.config.connections {
            return self.reject(from, message.transaction, [0, req.local_id], reason::NO_QUEUE_PAIR, &[]);
        }
        if path.transport != 0 {
            return self.reject(from, message.transaction, [0, req.local_id], reason::INVALID_TRANSPORT, &[]);
        }
        let id = self.free_id();
        let connection = Connection {
            peer: from,
            remote_id: req.local_id,
            remote_pair: req.pair,
            transaction: message.transaction,
            state: State::Requested,
            deadline: None,
            retries: 0,
        };
        self.connections.insert(id, connection);
        self.outputs.push_back(Output::Requested { id, from, req, path, private: message.private().to_vec() });
    }

    /// Next communication ID that no connection has. Zero means none.
    fn free_id(&mut self) -> u32 {
        loop {
            let id = self.next_id;
            self.next_id = self.next_id.wrapping_add(1);
            if id != 0 && !self.connections.contains_key(&id) {
                return id;
            }
        }
    }

    fn accept(&mut self, now: Instant, id: u32, rep: RepFields, private: &[u8]) {
        let timeout = self.config.response_timeout;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !matches!(connection.state, State::Requested) {
            return;
        }
        let mut message = CmMessage::new(CmKind::Rep, connection.transaction);
        message.set_rep(&RepFields { ids: [id, connection.remote_id], ..rep });
        message.set_rep_rnr_retries(7);
        debug_assert!(private.len() <= message.private().len(), "private data of a REP");
        message.set_private(private);
        connection.state = State::Replied(Box::new(message));
        connection.deadline = Some(now + timeout);
        let peer = connection.peer;
        self.send(peer, message);
    }

    fn reject(&mut self, to: Ipv4Addr, transaction: u64, ids: [u32; 2], reason: u16, private: &[u8]) {
        self.counters.rejects += 1;
        let mut message = CmMessage::new(CmKind::Rej, transaction);
        message.set_rej(&RejFields { ids, message: 0, reason });
        message.set_private(private);
        self.send(to, message);
    }

    fn establish(&mut self, id: u32) {
        if let Some(connection) = self.connections.get_mut(&id)
            && matches!(connection.state, State::Replied(_))
        {
            connection.state = State::Established;
            connection.deadline = None;
            self.outputs.push_back(Output::Established(id));
        }
    }

    fn close(&mut self, now: Instant, id: u32) {
        let timeout = self.config.response_timeout;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.state {
            State::Leaving(_) => {}
            State::Requested => _ = self.connections.remove(&id),
            State::Replied(_) | State::Established => {
                let mut message =
                    CmMessage::new(CmKind::Dreq, u64::from(id) << 32 | connection.transaction & 0xffff_ffff);
                message.set_ids([id, connection.remote_id]);
                message.set_dreq_pair(connection.remote_pair);
                connection.state = State::Leaving(Box::new(message));
                connection.deadline = Some(now + timeout);
                connection.retries = 0;
                let peer = connection.peer;
                self.send(peer, message);
            }
        }
    }

    fn end(&mut self, id: u32) {
        if self.connections.remove(&id).is_some() {
            self.outputs.push_back(Output::Closed(id));
        }
    }

    fn expire(&mut self, now: Instant) {
        let is_due = |connection: &Connection| connection.deadline.is_some_and(|at| at <= now);
        let due: Vec<u32> =
            self.connections.iter().filter(|(_, connection)| is_due(connection)).map(|(id, _)| *id).collect();
        for id in due {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let (State::Replied(message) | State::Leaving(message)) = &connection.state else { continue };
            if connection.retries >= self.config.retries {
                self.end(id);
                continue;
            }
            let (peer, message) = (connection.peer, **message);
            connection.retries += 1;
            connection.deadline = Some(now + self.config.response_timeout);
            self.counters.repetitions += 1;
            self.send(peer, message);
        }
    }
}
