//! iSCSI targets on TCP: [`IscsiServer`], a part of the loop of a running lab.
//!
//! ```text
//!   portal -> Connection: Framer -> Login, then Session <-> Device of its storage system
//!                |  ^                            | Io
//!     socket ----+  +---- buffers of tasks <-----+-----> medium, or a worker
//! ```
//!
//! All connections share one input buffer; what a connection keeps between two reads is the beginning of a PDU. Data of
//! writes that are longer than a few KiB go from the socket to the buffer of their task, and data of reads from there to the
//! socket, many pieces with one system call.
//!
//! Sessions with virtual disks have connections to back ends of their own beside that, on which reads and writes are
//! forwarded: `forward`.

mod buffers;
pub mod ceiling;
mod connection;
mod forward;
pub mod initiator;
mod output;
pub mod secret;
mod settle;

use crate::poll::{Interest, Poller};
use crate::storage::StorageSystem;
use crate::storage::workers::{Done, Owner};
use crate::volumes::VolumeEngine;
use connection::Connection;
use forward::Forwarding;
use sanloom_core::iscsi::Parameters;
use sanloom_core::iscsi::forward::front_wishes;
use sanloom_core::iscsi::parameters::Wishes;
use sanloom_core::iscsi::target::{ConnectionId, Counters, Directory, Node, Session, SessionKey, login};
use sanloom_core::scsi::{Ends, IoTag};
use sanloom_core::time::{Instant, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;

/// Bytes that are read at once.
const INPUT_BYTES: usize = 256 << 10;
/// Connections at once; more wait in the kernel.
const MAX_CONNECTIONS: usize = 16_384;
/// A login that takes longer is given up.
const LOGIN_TIME: Span = Span::from_secs(15);
/// The poller's tokens of listeners begin here.
pub const LISTENERS: u64 = 1 << 61;
/// And those of connections.
const CONNECTIONS: u64 = 1 << 62;
/// And those of their connections to back ends: number of the connection, and of the back end in the last byte.
const LINKS: u64 = 1 << 63;

/// Where a portal listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalPlan {
    /// Where to listen.
    pub listen: SocketAddr,
    /// As targets name it.
    pub address: String,
    /// Its portal group.
    pub group: u16,
}

/// Which storage system a target is, and through which ports of it sessions come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetPlan {
    /// Index of the system.
    pub system: usize,
    /// Its portal groups, at least one, and the number of each as a port in the device.
    pub ports: Vec<(u16, u16)>,
    /// Reads and writes of virtual disks are forwarded.
    pub forward: bool,
}

/// Which storage system a session works on, and through which port of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Behind {
    /// Index of the system.
    system: usize,
    /// Number of the port in its device.
    port: u16,
    /// Reads and writes of virtual disks are forwarded.
    forward: bool,
}

impl TargetPlan {
    fn behind(&self, group: u16) -> Behind {
        let port = self.ports.iter().find(|(of, _)| *of == group).or(self.ports.first());
        Behind { system: self.system, port: port.map_or(0, |(_, port)| *port), forward: self.forward }
    }

    fn has_port(&self, port: u16) -> bool {
        self.ports.iter().any(|(_, of)| *of == port)
    }
}

/// What sessions work on.
#[derive(Debug)]
pub struct Stores<'a> {
    /// The storage systems.
    pub systems: &'a mut [StorageSystem],
    /// Virtual disks.
    pub volumes: Option<&'a mut VolumeEngine>,
}

#[derive(Debug)]
struct Portal {
    listener: TcpListener,
    address: String,
    group: u16,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    node: Arc<Node>,
    /// What each target wants of a session, before back ends are looked at, and what these have agreed to.
    wishes: Vec<Wishes>,
    matched: Vec<Parameters>,
    behind: Vec<TargetPlan>,
    directory: Directory,
    input: Vec<u8>,
    buffers: buffers::Spare,
    /// What sessions say to each other, by the port of the device.
    ends: Vec<(Behind, ConnectionId, Ends)>,
    /// Connections whose session another one took the place of.
    replaced: Vec<ConnectionId>,
    /// Targets that were reset.
    resets: Vec<Behind>,
    /// Task management of a session that waits for the ends of others' tasks.
    ending: Vec<(Behind, u64)>,
    /// Writes of sessions that are over, by the number of their connection.
    writing: BTreeMap<u64, (SessionKey, Vec<IoTag>)>,
    /// Connections whose login waits for such writes.
    waiting: Vec<u64>,
}

/// All portals and sessions of a running lab.
#[derive(Debug)]
pub struct IscsiServer {
    portals: Vec<Portal>,
    shared: Shared,
    connections: BTreeMap<u64, Connection>,
    next_id: u64,
    /// Listeners and connections with something to read or room to write.
    ready: Vec<u64>,
    /// The system had no descriptor for a connection: nobody is accepted until the next look.
    paused: bool,
    shutting_down: bool,
    /// The last turn was a part of forwarding one small request.
    light: bool,
    /// What sessions have counted that are over, by target.
    ended: Vec<Counters>,
    /// Connections to back ends of sessions that are over, which may still be writing.
    left_behind: BTreeMap<u64, Box<Forwarding>>,
    /// What was forwarded for sessions that are over.
    forwarded: forward::Counters,
}

impl Shared {
    /// A session of this initiator port is over, and something is still written for it.
    fn is_writing_for(&self, key: &SessionKey) -> bool {
        self.writing.values().any(|(of, _)| of == key)
    }

    /// What a session works on; nothing in discovery.
    fn behind(&self, key: &SessionKey) -> Option<Behind> {
        self.behind.get(usize::from(key.target?)).map(|plan| plan.behind(key.group))
    }

    /// I/O of a session that is over is done.
    fn written(&mut self, id: u64, tag: IoTag) {
        if let Some((_, tags)) = self.writing.get_mut(&id) {
            tags.retain(|of| *of != tag);
            if tags.is_empty() {
                self.writing.remove(&id);
            }
        }
    }

    /// What is wished for at logins is what can be forwarded as it is.
    fn match_back_ends(&mut self, stores: &Stores<'_>) {
        let backs: Vec<Parameters> = stores.volumes.iter().flat_map(|engine| engine.parameters()).collect();
        if backs == self.matched {
            return;
        }
        let node = Arc::make_mut(&mut self.node);
        for ((target, wishes), behind) in node.targets.iter_mut().zip(&self.wishes).zip(&self.behind) {
            if behind.forward {
                target.wishes = front_wishes(*wishes, &backs);
            }
        }
        self.matched = backs;
    }
}

impl IscsiServer {
    /// Listens at the portals. `behind`: what each target of the node is.
    ///
    /// # Errors
    /// When an address cannot be listened at; it comes with the error.
    pub fn listen(
        node: Node,
        portals: &[PortalPlan],
        behind: Vec<TargetPlan>,
    ) -> Result<IscsiServer, (SocketAddr, io::Error)> {
        let mut listeners = Vec::new();
        for plan in portals {
            let failed = |error| (plan.listen, error);
            let listener = TcpListener::bind(plan.listen).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            listeners.push(Portal { listener, address: plan.address.clone(), group: plan.group });
        }
        let ended = vec![Counters::default(); node.targets.len()];
        let shared = Shared {
            wishes: node.targets.iter().map(|target| target.wishes).collect(),
            matched: Vec::new(),
            node: Arc::new(node),
            behind,
            directory: Directory::default(),
            input: vec![0; INPUT_BYTES],
            buffers: buffers::Spare::default(),
            ends: Vec::new(),
            replaced: Vec::new(),
            resets: Vec::new(),
            ending: Vec::new(),
            writing: BTreeMap::new(),
            waiting: Vec::new(),
        };
        Ok(IscsiServer {
            portals: listeners,
            shared,
            connections: BTreeMap::new(),
            next_id: 0,
            ready: Vec::new(),
            paused: false,
            shutting_down: false,
            light: false,
            ended,
            left_behind: BTreeMap::new(),
            forwarded: forward::Counters::default(),
        })
    }

    /// Waits for connections, where there is room for more.
    ///
    /// # Errors
    /// When a listener cannot be waited for.
    pub fn watch(&self, poller: &mut Poller) -> io::Result<()> {
        let read = self.connections.len() < MAX_CONNECTIONS && !self.shutting_down && !self.paused;
        for (number, portal) in self.portals.iter().enumerate() {
            let interest = Interest { read, write: false };
            poller.set(LISTENERS + number as u64, Some(portal.listener.as_fd()), interest)?;
        }
        Ok(())
    }

    /// The poller has seen something at this token, from [`LISTENERS`] on.
    pub fn happened(&mut self, token: u64, readable: bool, writable: bool) {
        if token >= LINKS {
            let (id, link) = ((token - LINKS) >> 8, (token & 0xff) as usize);
            let alive = self.connections.get_mut(&id).and_then(|connection| connection.forwarding.as_deref_mut());
            let forwarding = alive.or_else(|| self.left_behind.get_mut(&id).map(|left| &mut **left));
            if let Some(forwarding) = forwarding {
                forwarding.happened(link, readable, writable);
                self.ready.push(CONNECTIONS + id);
            }
            return;
        }
        if token >= CONNECTIONS
            && let Some(connection) = self.connections.get_mut(&(token - CONNECTIONS))
        {
            connection.readable |= readable;
            connection.output.blocked &= !writable;
        }
        self.ready.push(token);
    }

    /// Serves whoever is ready. True if somebody has more.
    pub fn act(&mut self, now: Instant, poller: &mut Poller, stores: &mut Stores<'_>) -> bool {
        // Who has more and was heard of again is served once.
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_unstable();
        ready.dedup();
        self.light = false;
        let alone = ready.len() == 1;
        for token in ready {
            if token < CONNECTIONS {
                let portal = (token - LISTENERS) as usize;
                if let Err(error) = self.accept(now, portal, stores).and_then(|()| self.watch(poller)) {
                    tracing::warn!(%error, "cannot wait for initiators");
                }
                continue;
            }
            let id = token - CONNECTIONS;
            if let Some(connection) = self.connections.get_mut(&id) {
                if connection.serve(now, &mut self.shared, stores) {
                    self.ready.push(token);
                }
                self.light = alone && connection.forwarding.as_ref().is_some_and(|forwarding| forwarding.is_light());
                self.after(now, id, poller, stores);
            }
            self.serve_left_behind(now, id, poller, stores);
        }
        self.settle(now, poller, stores);
        !self.ready.is_empty()
    }

    /// I/O of sessions is done.
    pub fn done(&mut self, now: Instant, all: Vec<Done>, poller: &mut Poller, stores: &mut Stores<'_>) {
        let mut touched = BTreeSet::new();
        for Done { owner, tag, data, status } in all {
            let Owner::Session { connection: id } = owner else { continue };
            match self.connections.get_mut(&id) {
                Some(connection) => {
                    connection.io_done(now, tag, status, data, &mut self.shared, stores);
                    touched.insert(id);
                }
                None => {
                    self.shared.buffers.keep(data);
                    self.shared.written(id, tag);
                }
            }
        }
        // What several answers have in common leaves with one call.
        for id in touched {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.flush(now, &mut self.shared, stores);
                self.after(now, id, poller, stores);
            }
        }
        self.settle(now, poller, stores);
    }

    /// What a connection needs after it was served: to be waited for, or to be closed.
    fn after(&mut self, now: Instant, id: u64, poller: &mut Poller, stores: &mut Stores<'_>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.is_over() {
            return self.drop_connection(now, id, poller, stores);
        }
        if connection.is_leaving()
            && let Some(forwarding) = &mut connection.forwarding
        {
            forwarding.close(now, stores, &mut self.shared.buffers);
        }
        let interest = connection.interest();
        let token = CONNECTIONS + id;
        if let Err(error) = poller.set(token, Some(connection.stream.as_fd()), interest) {
            tracing::warn!(connection = id, %error, "cannot wait for an initiator");
        }
        if let Some(forwarding) = &connection.forwarding {
            forwarding.watch(poller, connection.output.bytes);
        }
    }

    /// Connections to back ends whose host is gone.
    fn serve_left_behind(&mut self, now: Instant, id: u64, poller: &mut Poller, stores: &mut Stores<'_>) {
        let (Some(left), Some(engine)) = (self.left_behind.get_mut(&id), stores.volumes.as_deref_mut()) else { return };
        let spare = &mut self.shared.buffers;
        let writes = left.leaves_behind();
        let still = writes && left.tend_left_behind(now, engine, spare);
        if writes && !still {
            tracing::info!(connection = id, "nothing is written any more for a host that is gone");
        }
        if left.leave(now, spare) || still {
            return left.watch(poller, 0);
        }
        left.give_back_port(engine);
        left.forget(poller);
        self.left_behind.remove(&id);
    }

    fn drop_connection(&mut self, now: Instant, id: u64, poller: &mut Poller, stores: &mut Stores<'_>) {
        let Some(connection) = self.connections.remove(&id) else { return };
        poller.remove(CONNECTIONS + id, connection.stream.as_fd());
        if let Some(session) = connection.session()
            && let Some(sum) = session.key().target.and_then(|target| self.ended.get_mut(usize::from(target)))
        {
            sum.add(session.counters());
        }
        let Some(forwarding) = connection.end(now, &mut self.shared, stores) else { return };
        self.forwarded.add(&forwarding.counters());
        if forwarding.leaves_behind() {
            tracing::info!(connection = id, "the host is gone, and back ends may still be writing for it");
        }
        self.left_behind.insert(id, forwarding);
        self.serve_left_behind(now, id, poller, stores);
    }

    /// Takes connections of a portal.
    ///
    /// # Errors
    /// The first time that the system has none left for us; then [`watch`](Self::watch) does not wait for any.
    fn accept(&mut self, now: Instant, portal: usize, stores: &Stores<'_>) -> io::Result<()> {
        /// Connections that one turn accepts.
        const IN_TURN: usize = 64;
        self.shared.match_back_ends(stores);
        let Some(portal) = self.portals.get(portal) else { return Ok(()) };
        for _ in 0..IN_TURN {
            if self.connections.len() >= MAX_CONNECTIONS || self.shutting_down {
                break;
            }
            let (stream, peer) = match portal.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    // The initiator has given up.
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    _ => {
                        self.paused = true;
                        tracing::warn!(portal = portal.address, %error, "accept");
                        break;
                    }
                },
            };
            let mut challenge = [0; 16];
            let random = rustix::rand::getrandom(&mut challenge, rustix::rand::GetRandomFlags::empty());
            let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            if let (Err(error), _) | (_, Err(error)) = (prepared, random.map_err(io::Error::from)) {
                tracing::warn!(%peer, %error, "cannot serve an initiator");
                continue;
            }
            let id = self.next_id;
            self.next_id += 1;
            tracing::debug!(%peer, connection = id, "connected");
            let config = login::LoginConfig {
                node: self.shared.node.clone(),
                address: portal.address.clone(),
                group: portal.group,
                connection: ConnectionId(id),
                challenge,
                timeout: LOGIN_TIME,
            };
            self.connections.insert(id, Connection::new(now, id, stream, peer, config));
            self.ready.push(CONNECTIONS + id);
        }
        Ok(())
    }

    /// Calls machines whose time has come. To be called from time to time.
    pub fn look(&mut self, now: Instant, poller: &mut Poller, stores: &mut Stores<'_>) {
        self.paused = false;
        let due = |connection: &mut Connection| {
            let tends = connection.forwarding.as_ref().is_some_and(|forwarding| forwarding.is_due(now));
            connection.lose_patience(now) || tends || connection.poll_timeout().is_some_and(|at| at <= now)
        };
        // Nothing is written to a disk that took the place of another one. Only the engine's own sessions find that out.
        let engine = stores.volumes.as_deref();
        let refused: Vec<usize> = engine
            .iter()
            .flat_map(|engine| (0..engine.targets()).filter(|target| engine.is_refused(*target)))
            .collect();
        for (id, connection) in self.connections.iter_mut().filter(|_| !refused.is_empty()) {
            if connection.leave_back_ends(now, &refused, &mut self.shared, stores) {
                self.ready.push(CONNECTIONS + id);
            }
        }
        if let Some(engine) = stores.volumes.as_deref_mut() {
            for (id, connection) in &mut self.connections {
                if connection.forwarding.as_deref_mut().is_some_and(|forwarding| forwarding.look(now, engine)) {
                    self.ready.push(CONNECTIONS + id);
                }
            }
        }
        let all: Vec<u64> =
            self.connections.iter_mut().filter_map(|(id, connection)| due(connection).then_some(*id)).collect();
        for id in all {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.timeout(now, &mut self.shared, stores);
                self.after(now, id, poller, stores);
            }
        }
        for id in self.left_behind.keys().copied().collect::<Vec<_>>() {
            self.serve_left_behind(now, id, poller, stores);
        }
        self.settle(now, poller, stores);
    }

    /// All that was done in the last turn is a part of forwarding one small request.
    pub fn is_light(&self) -> bool {
        self.light
    }

    /// Asks all initiators to log out, and listens no more.
    pub fn shut_down(&mut self, now: Instant, stores: &mut Stores<'_>) {
        self.shutting_down = true;
        for connection in self.connections.values_mut() {
            connection.shut_down(now, &mut self.shared, stores);
        }
    }

    /// Ends all sessions and logins.
    pub fn drop_all(&mut self, now: Instant, poller: &mut Poller, stores: &mut Stores<'_>) {
        for id in self.connections.keys().copied().collect::<Vec<_>>() {
            self.drop_connection(now, id, poller, stores);
        }
    }

    /// Connections to back ends of sessions that are over have not all been left.
    pub fn has_left_behind(&self) -> bool {
        !self.left_behind.is_empty()
    }

    /// Sessions and logins.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Name of a target, by index; empty for a discovery session.
    pub fn target_name(&self, target: Option<u16>) -> &str {
        let target = target.and_then(|target| self.shared.node.targets.get(usize::from(target)));
        target.map_or("", |target| &target.name)
    }

    /// Sessions in the full feature phase, what is forwarded for each, and the two ends of its connection: the initiator's, ours.
    pub fn sessions(&self) -> impl Iterator<Item = (&Session, Option<forward::Counters>, [Option<SocketAddr>; 2])> {
        self.connections.values().filter_map(|connection| {
            let forwarding = connection.forwarding.as_deref();
            let ends = [Some(connection.peer), connection.stream.local_addr().ok()];
            Some((connection.session()?, forwarding.map(Forwarding::counters), ends))
        })
    }

    /// Sessions that forward to a target of back ends.
    pub fn forwarding_to(&self, target: usize) -> u64 {
        let all = self.connections.values().filter_map(|connection| connection.forwarding.as_deref());
        all.filter(|forwarding| forwarding.is_up(target)).count() as u64
    }

    /// What was forwarded so far, for all sessions.
    pub fn all_forwarded(&self) -> forward::Counters {
        let mut sum = self.forwarded;
        for (_, counters, _) in self.sessions() {
            counters.iter().for_each(|counters| sum.add(counters));
        }
        sum
    }

    /// Of each target its name, how many sessions it has, and what all of its sessions have counted so far.
    pub fn targets(&self) -> impl Iterator<Item = (&str, u32, Counters)> {
        self.shared.node.targets.iter().zip(0_u16..).map(|(target, number)| {
            let sessions = self.connections.values().filter_map(Connection::session);
            let of_it = sessions.filter(|session| session.key().target == Some(number));
            let mut sum = self.ended[usize::from(number)];
            let count = of_it.map(|session| sum.add(session.counters())).count();
            (&*target.name, count as u32, sum)
        })
    }
}
