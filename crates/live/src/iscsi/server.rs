//! Portals and sessions of a running lab: [`IscsiServer`].

use super::connection::Connection;
use super::forward::{self, Forwarding};
use super::shared::{Common, Shared};
use super::spread::Crew;
use super::{CONNECTIONS, Context, LINKS, LISTENERS, PortalPlan, ServerContext, TargetPlan};
use crate::poll::{Interest, Poller};
use crate::session::socket::random;
use crate::storage::workers::{Done, Owner};
use sanloom_scsi::iscsi::target::{ConnectionId, Counters, Node, Session, login};
use sanloom_scsi::time::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Mutex;

/// Maximum number of connections. Further ones wait in the kernel.
const MAX_CONNECTIONS: usize = 16_384;
/// Maximum duration of a login.
const LOGIN_TIME: Span = Span::from_secs(15);

#[derive(Debug)]
struct Portal {
    listener: TcpListener,
    address: String,
    group: u16,
}

/// All portals and sessions of a running lab.
#[derive(Debug)]
pub struct IscsiServer {
    portals: Vec<Portal>,
    pub(super) shared: Shared,
    pub(super) connections: BTreeMap<u64, Box<Connection>>,
    /// Threads that serve connections.
    pub(super) crew: Crew,
    next_id: u64,
    /// Tokens of listeners and connections with work.
    ready: Vec<u64>,
    /// True if the system had no descriptor for a connection. Listeners are then ignored until the
    /// next [`run_timers`](Self::run_timers).
    paused: bool,
    shutting_down: bool,
    /// True if the last step served only one connection, with one small forwarded request.
    light: bool,
    /// Counters of ended sessions, by target.
    ended: Vec<Counters>,
    /// Forwarding paths of ended sessions whose back ends may still be writing.
    left_behind: BTreeMap<u64, Box<Forwarding>>,
    /// Forwarding counters of ended sessions.
    forwarded: forward::Counters,
}

impl IscsiServer {
    /// Listens at the portals. `behind`: storage of each target of the node.
    ///
    /// # Errors
    /// An address on which the process cannot listen; the error names it.
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
        Ok(IscsiServer {
            portals: listeners,
            shared: Shared::new(node, behind),
            connections: BTreeMap::new(),
            crew: Crew::default(),
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

    /// Registers the listeners, if there is room for more connections.
    ///
    /// # Errors
    /// A listener that cannot be polled.
    pub fn watch(&self, poller: &mut Poller) -> io::Result<()> {
        let read = self.connections.len() < MAX_CONNECTIONS && !self.shutting_down && !self.paused;
        for (number, portal) in self.portals.iter().enumerate() {
            let interest = Interest { read, write: false };
            poller.set(LISTENERS + number as u64, Some(portal.listener.as_fd()), interest)?;
        }
        Ok(())
    }

    /// Handles an event of the poller for a token from [`LISTENERS`] on.
    pub fn set_ready(&mut self, token: u64, readable: bool, writable: bool) {
        if token >= LINKS {
            let (id, link) = ((token - LINKS) >> 8, (token & 0xff) as usize);
            let alive = self.connections.get_mut(&id).and_then(|connection| connection.forwarding.as_deref_mut());
            let forwarding = alive.or_else(|| self.left_behind.get_mut(&id).map(|left| &mut **left));
            if let Some(forwarding) = forwarding {
                forwarding.set_ready(link, readable, writable);
                self.ready.push(CONNECTIONS + id);
            }
            return;
        }
        if token >= CONNECTIONS
            && let Some(connection) = self.connections.get_mut(&(token - CONNECTIONS))
        {
            connection.readable |= readable;
            if writable {
                connection.transport.egress.set_writable();
            }
        }
        self.ready.push(token);
    }

    /// Serves all connections with work. Returns whether any has more.
    pub fn serve_ready(&mut self, cx: &mut ServerContext<'_, '_>) -> bool {
        // A connection that was reported twice is served once.
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_unstable();
        ready.dedup();
        self.light = false;
        let only_one = ready.len() == 1;
        let ids = ready.iter().filter_map(|token| token.checked_sub(CONNECTIONS));
        let served = self.serve_together(cx, ids, Connection::serve);
        for token in ready {
            if token < CONNECTIONS {
                let portal = (token - LISTENERS) as usize;
                if let Err(error) = self.accept(cx, portal).and_then(|()| self.watch(cx.poller)) {
                    tracing::warn!(%error, "events of a portal cannot be polled");
                }
                continue;
            }
            let id = token - CONNECTIONS;
            let more = match served.binary_search_by_key(&id, |(id, _)| *id) {
                Ok(at) => Some(served[at].1),
                Err(_) => self.call(cx, id, Connection::serve),
            };
            if more == Some(true) {
                self.ready.push(token);
            }
            if let Some(connection) = self.connections.get(&id) {
                self.light = only_one && connection.forwarding.as_ref().is_some_and(|forwarding| forwarding.is_light());
                self.finish_service(cx, id);
            }
            self.serve_left_behind(cx, id);
        }
        self.exchange_notices(cx);
        !self.ready.is_empty()
    }

    /// Passes finished I/O to sessions.
    pub fn complete_io(&mut self, cx: &mut ServerContext<'_, '_>, all: Vec<Done>) {
        let mut touched = BTreeSet::new();
        for Done { owner, tag, data, status } in all {
            let Owner::Session { connection: id } = owner else { continue };
            if self.connections.contains_key(&id) {
                self.call(cx, id, |connection, cx| connection.complete_io(cx, tag, status, data));
                touched.insert(id);
            } else {
                self.crew.local().buffers.keep(data);
                self.shared.write_ended(id, tag);
            }
        }
        // Send all answers of a connection with one system call.
        let flush = |connection: &mut Connection, cx: &mut Context<'_, '_>| connection.flush(cx);
        let flushed = self.serve_together(cx, touched.iter().copied(), flush);
        for id in touched {
            if flushed.binary_search_by_key(&id, |(id, ())| *id).is_err() {
                self.call(cx, id, flush);
            }
            self.finish_service(cx, id);
        }
        self.exchange_notices(cx);
    }

    /// Updates the events that a connection waits for, or drops it.
    pub(super) fn finish_service(&mut self, cx: &mut ServerContext<'_, '_>, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.is_over() {
            return self.drop_connection(cx, id);
        }
        if connection.is_leaving()
            && let Some(forwarding) = &mut connection.forwarding
        {
            forwarding.close(cx.now, cx.stores, &mut self.crew.local().buffers);
        }
        let interest = connection.interest();
        let token = CONNECTIONS + id;
        if let Err(error) = cx.poller.set(token, Some(connection.transport.stream.as_fd()), interest) {
            tracing::warn!(connection = id, %error, "events of an initiator's socket cannot be polled");
        }
        if let Some(forwarding) = &connection.forwarding {
            forwarding.watch(cx.poller, connection.unsent_bytes());
        }
    }

    /// Continues with the back-end connections of a lost host.
    fn serve_left_behind(&mut self, cx: &mut ServerContext<'_, '_>, id: u64) {
        let (Some(left), Some(engine)) = (self.left_behind.get_mut(&id), cx.stores.volumes.as_deref_mut()) else {
            return;
        };
        let spare = &mut self.crew.local().buffers;
        let writes = left.leaves_behind();
        let still = writes && left.end_left_behind(cx.now, engine, spare);
        if writes && !still {
            tracing::info!(connection = id, "all writes of a disconnected host have ended");
        }
        if left.leave(cx.now, spare) || still {
            return left.watch(cx.poller, 0);
        }
        left.give_back_port(engine);
        left.forget(cx.poller);
        self.left_behind.remove(&id);
    }

    pub(super) fn drop_connection(&mut self, cx: &mut ServerContext<'_, '_>, id: u64) {
        let Some(connection) = self.connections.remove(&id) else { return };
        cx.poller.remove(CONNECTIONS + id, connection.transport.stream.as_fd());
        if let Some(session) = connection.session()
            && let Some(sum) = session.key().target.and_then(|target| self.ended.get_mut(usize::from(target)))
        {
            sum.add(session.counters());
        }
        let common = Mutex::new(Common { shared: &mut self.shared, stores: cx.stores.reborrow() });
        let context = &mut Context { now: cx.now, local: self.crew.local(), common: &common };
        let Some(forwarding) = connection.end(context) else { return };
        self.forwarded.add(&forwarding.counters());
        if forwarding.leaves_behind() {
            tracing::info!(connection = id, "the host disconnected while back ends may still be writing for it");
        }
        self.left_behind.insert(id, forwarding);
        self.serve_left_behind(cx, id);
    }

    /// Accepts connections of a portal.
    ///
    /// # Errors
    /// The process has no more descriptors. [`watch`](Self::watch) then ignores listeners.
    fn accept(&mut self, cx: &mut ServerContext<'_, '_>, portal: usize) -> io::Result<()> {
        /// Maximum number of connections accepted per step.
        const MAX_AT_ONCE: usize = 64;
        self.shared.match_back_ends(cx.stores);
        let Some(portal) = self.portals.get(portal) else { return Ok(()) };
        for _ in 0..MAX_AT_ONCE {
            if self.connections.len() >= MAX_CONNECTIONS || self.shutting_down {
                break;
            }
            let (stream, peer) = match portal.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    // The initiator has closed the connection already.
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    _ => {
                        self.paused = true;
                        tracing::warn!(portal = portal.address, %error, "accept");
                        break;
                    }
                },
            };
            let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            let challenge = match prepared.and_then(|()| random()) {
                Ok(challenge) => challenge,
                Err(error) => {
                    tracing::warn!(%peer, %error, "an initiator's connection cannot be set up");
                    continue;
                }
            };
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
            self.connections.insert(id, Box::new(Connection::new(cx.now, id, stream, peer, config)));
            self.ready.push(CONNECTIONS + id);
        }
        Ok(())
    }

    /// Calls machines whose deadline is over. Call it regularly.
    pub fn run_timers(&mut self, cx: &mut ServerContext<'_, '_>) {
        self.paused = false;
        let now = cx.now;
        let due = |connection: &mut Connection| {
            let has_due_link = connection.forwarding.as_ref().is_some_and(|forwarding| forwarding.is_due(now));
            connection.expire(now) || has_due_link || connection.poll_timeout().is_some_and(|at| at <= now)
        };
        // Only the engine's own sessions detect that another disk has replaced one. That disk must
        // not be written.
        let engine = cx.stores.volumes.as_deref();
        let refused: Vec<usize> = engine
            .iter()
            .flat_map(|engine| (0..engine.targets()).filter(|target| engine.is_refused(*target)))
            .collect();
        for id in self.ids().filter(|_| !refused.is_empty()) {
            if self.call(cx, id, |connection, cx| connection.leave_back_ends(cx, &refused)) == Some(true) {
                self.ready.push(CONNECTIONS + id);
            }
        }
        if let Some(engine) = cx.stores.volumes.as_deref_mut() {
            for (id, connection) in &mut self.connections {
                if let (Some(forwarding), Some(statuses)) =
                    (connection.forwarding.as_deref_mut(), connection.transport.egress.statuses())
                    && forwarding.refresh(cx.now, engine, statuses)
                {
                    self.ready.push(CONNECTIONS + id);
                }
            }
        }
        let all: Vec<u64> =
            self.connections.iter_mut().filter_map(|(id, connection)| due(connection).then_some(*id)).collect();
        for id in all {
            self.call(cx, id, Connection::timeout);
            self.finish_service(cx, id);
        }
        for id in self.left_behind.keys().copied().collect::<Vec<_>>() {
            self.serve_left_behind(cx, id);
        }
        self.exchange_notices(cx);
    }

    /// Numbers of the connections at the time of the call.
    fn ids(&self) -> std::vec::IntoIter<u64> {
        self.connections.keys().copied().collect::<Vec<_>>().into_iter()
    }

    /// Returns whether the last step did nothing but forward one small request.
    pub fn is_light(&self) -> bool {
        self.light
    }

    /// Asks all initiators to log out, and stops listening.
    pub fn shut_down(&mut self, cx: &mut ServerContext<'_, '_>) {
        self.shutting_down = true;
        for id in self.ids() {
            self.call(cx, id, Connection::shut_down);
        }
    }

    /// Ends all sessions and logins.
    pub fn drop_all(&mut self, cx: &mut ServerContext<'_, '_>) {
        for id in self.ids() {
            self.drop_connection(cx, id);
        }
    }

    /// Returns whether back-end connections of ended sessions are still open.
    pub fn has_left_behind(&self) -> bool {
        !self.left_behind.is_empty()
    }

    /// Number of sessions and logins.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Name of a target, by index; empty for a discovery session.
    pub fn target_name(&self, target: Option<u16>) -> &str {
        let target = target.and_then(|target| self.shared.node.targets.get(usize::from(target)));
        target.map_or("", |target| &target.name)
    }

    /// Sessions in the full feature phase, with their forwarding counters and the addresses of the
    /// initiator and of the portal.
    pub fn sessions(&self) -> impl Iterator<Item = (&Session, Option<forward::Counters>, [Option<SocketAddr>; 2])> {
        self.connections.values().filter_map(|connection| {
            let forwarding = connection.forwarding.as_deref();
            let ends = [Some(connection.peer), connection.transport.stream.local_addr().ok()];
            Some((connection.session()?, forwarding.map(Forwarding::counters), ends))
        })
    }

    /// Number of sessions that forward to a target of back ends.
    pub fn forwarding_to(&self, target: usize) -> u64 {
        let all = self.connections.values().filter_map(|connection| connection.forwarding.as_deref());
        all.filter(|forwarding| forwarding.is_up(target)).count() as u64
    }

    /// Forwarding counters of all sessions.
    pub fn all_forwarded(&self) -> forward::Counters {
        let mut sum = self.forwarded;
        for (_, counters, _) in self.sessions() {
            counters.iter().for_each(|counters| sum.add(counters));
        }
        sum
    }

    /// Name, number of sessions, and counters of each target.
    pub fn targets(&self) -> impl Iterator<Item = (&str, u32, Counters)> {
        self.shared.node.targets.iter().zip(0_u16..).map(|(target, number)| {
            let sessions = self.connections.values().filter_map(|connection| connection.session());
            let of_it = sessions.filter(|session| session.key().target == Some(number));
            let mut sum = self.ended[usize::from(number)];
            let count = of_it.map(|session| sum.add(session.counters())).count();
            (&*target.name, count as u32, sum)
        })
    }
}
