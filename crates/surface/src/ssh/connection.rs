//! A connection: login, requests for channels, and the end: [`Client`], [`Connection`].

use super::{Common, Host, channel};
use crate::Fabric;
use crate::fos::Now;
use crate::fos::commands::Console;
use crate::server::Peer;
use crate::server::users::{Place, Role};
use russh::keys::PublicKey;
use russh::server::{Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelOpenFailure, Error, Pty};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Maximum number of channels of a connection at once.
pub const MAX_CHANNELS: usize = 8;
/// Maximum size of a message with input in bytes.
pub const MAX_DATA: usize = 32 << 10;

/// Interface of the client, as other clients see it.
const INTERFACE: &str = "SSH";

/// State that the tasks of a connection share.
pub struct Connection {
    number: u64,
    peer: Peer,
    host: Arc<Host>,
    /// Parts of the server.
    pub common: Arc<Common>,
    since: Instant,
    login: Mutex<Option<Login>>,
    channels: AtomicUsize,
    /// Time at which the last channel ended.
    unused_since: Mutex<Instant>,
}

/// A user who has logged in.
struct Login {
    user: String,
    role: Role,
    /// Idle time of the switch at the login.
    idle: Option<Duration>,
    _permit: OwnedSemaphorePermit,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// A connection without a login.
    pub fn new(number: u64, peer: Peer, host: Arc<Host>, common: Arc<Common>) -> Connection {
        let since = Instant::now();
        let (login, unused_since) = (Mutex::default(), Mutex::new(since));
        Connection { number, peer, host, common, since, login, channels: AtomicUsize::new(0), unused_since }
    }

    /// True if the connection has to end: its login takes too long, or it has had no channel for
    /// the idle time of the switch.
    pub fn is_overdue(&self) -> bool {
        let idle = match &*lock(&self.login) {
            None => return self.since.elapsed() > self.common.limits.login,
            Some(login) => login.idle,
        };
        self.channels.load(Ordering::Relaxed) == 0 && idle.is_some_and(|idle| lock(&self.unused_since).elapsed() > idle)
    }

    /// Time after which an idle channel ends, if it does.
    pub fn idle(&self) -> Option<Duration> {
        lock(&self.login).as_ref().and_then(|login| login.idle)
    }

    /// Time of a command.
    pub fn now(&self) -> Now {
        let unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        Now { elapsed: self.common.start.elapsed(), unix_s }
    }

    /// A command line for a channel; `None` before the login. All channels of a connection share
    /// one zone transaction.
    pub fn console(&self) -> Option<Console> {
        let login = lock(&self.login);
        let login = login.as_ref()?;
        let host = &self.host;
        let session = format!("{}/ssh/{}", host.switch, self.number);
        let user = (&*login.user, login.role);
        Some(Console::new(&host.switch, host.shared.clone(), user, &session, INTERFACE, self.peer))
    }

    /// Text that a shell shows at its start.
    pub fn banner(&self) -> String {
        crate::fos::commands::banner(&self.host.switch, &self.host.shared)
    }

    /// Notes a new channel, unless there are too many.
    fn open_channel(self: &Arc<Connection>) -> Option<OpenChannel> {
        let before = self.channels.fetch_add(1, Ordering::Relaxed);
        let open = OpenChannel(self.clone());
        (before < MAX_CHANNELS).then_some(open)
    }

    /// Discards the zone transaction of the connection.
    pub fn end(self: &Arc<Connection>) {
        let Some(mut console) = self.console() else { return };
        let now = self.now();
        // Without a place in the queue, the transaction ends by its own time limit.
        self.common.workers.submit(Box::new(move |fabric: &mut dyn Fabric| console.end(now, fabric)));
    }
}

/// A channel that counts.
pub struct OpenChannel(pub Arc<Connection>);

impl Drop for OpenChannel {
    fn drop(&mut self) {
        *lock(&self.0.unused_since) = Instant::now();
        self.0.channels.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the requests of the protocol.
pub struct Client {
    connection: Arc<Connection>,
    /// Channels that have started a command or a shell.
    started: BTreeSet<ChannelId>,
}

impl Client {
    /// The client of a connection.
    pub fn new(connection: Arc<Connection>) -> Client {
        Client { connection, started: BTreeSet::new() }
    }

    /// Accepts a user, if the switch has a free session.
    fn accept(&self, user: &str, role: Role, method: &str) -> Auth {
        let Connection { host, peer, common, number, .. } = &*self.connection;
        let Ok(permit) = host.sessions.clone().try_acquire_owned() else {
            tracing::warn!(switch = host.switch, "a login by SSH is refused, because there are too many sessions");
            return Auth::reject();
        };
        tracing::info!(switch = host.switch, user, method, from = %peer.address, "login by SSH");
        common.settle(*number);
        *lock(&self.connection.unused_since) = Instant::now();
        let login = Login { user: user.to_owned(), role, idle: host.shared.idle_timeout(), _permit: permit };
        *lock(&self.connection.login) = Some(login);
        Auth::Accept
    }

    /// Role of a user who may log in with a key.
    fn role_by_key(&self, user: &str, key: &PublicKey) -> Option<Role> {
        let common = &self.connection.common;
        let role = common.users.iter().find(|(name, _)| *name == user).map(|(_, role)| role)?;
        common.keys.accept(user, key).then_some(role)
    }

    fn start(&mut self, channel: ChannelId, session: &mut Session) -> Result<(), Error> {
        match self.started.insert(channel) {
            true => session.channel_success(channel),
            false => session.channel_failure(channel),
        }
    }
}

impl Handler for Client {
    type Error = Error;

    async fn authentication_banner(&mut self) -> Result<Option<String>, Error> {
        // A banner that a client has set is shown before the login, as a switch does.
        Ok(self.connection.host.shared.name("banner").map(|banner| format!("{banner}\n")))
    }

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, Error> {
        let common = self.connection.common.clone();
        // Closed never.
        let Ok(_permit) = common.hashing.acquire().await else { return Ok(Auth::reject()) };
        let (users, from) = (common.users.clone(), self.connection.peer.address.ip());
        let (name, password) = (user.to_owned(), password.to_owned());
        let (sender, result) = oneshot::channel();
        let switch = self.connection.host.switch.clone();
        let check = move |fabric: &mut dyn Fabric| {
            let place = Place { switch: Some(&switch), interface: INTERFACE };
            let _ = sender.send(users.check_at(fabric, &place, from, &name, &password));
        };
        if !common.workers.submit(Box::new(check)) {
            return Ok(Auth::reject());
        }
        Ok(match result.await {
            Ok(Ok(role)) => self.accept(user, role, "password"),
            _ => {
                tracing::debug!(from = %self.connection.peer.address, "a login by SSH is refused");
                Auth::reject()
            }
        })
    }

    async fn auth_publickey_offered(&mut self, user: &str, offer: PublicKeyOffer<'_>) -> Result<Auth, Error> {
        let role = self.role_by_key(user, offer.public_key);
        Ok(if role.is_some() { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Error> {
        let role = self.role_by_key(user, key.public_key);
        Ok(role.map_or_else(Auth::reject, |role| self.accept(user, role, "publickey")))
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Error> {
        match self.connection.open_channel() {
            None => reply.reject(ChannelOpenFailure::ResourceShortage).await,
            Some(open) => {
                reply.accept().await;
                tokio::spawn(channel::serve(channel, open));
            }
        }
        Ok(())
    }

    async fn channel_close(&mut self, channel: ChannelId, _: &mut Session) -> Result<(), Error> {
        self.started.remove(&channel);
        Ok(())
    }

    async fn data(&mut self, _: ChannelId, data: &[u8], _: &mut Session) -> Result<(), Error> {
        // The library does not hold clients to the size that the server has announced.
        if data.len() > MAX_DATA { Err(Error::Inconsistent) } else { Ok(()) }
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _: &str,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Error> {
        session.channel_success(channel)
    }

    async fn shell_request(&mut self, channel: ChannelId, session: &mut Session) -> Result<(), Error> {
        self.start(channel, session)
    }

    async fn exec_request(&mut self, channel: ChannelId, _: &[u8], session: &mut Session) -> Result<(), Error> {
        self.start(channel, session)
    }

    async fn env_request(&mut self, channel: ChannelId, _: &str, _: &str, session: &mut Session) -> Result<(), Error> {
        session.channel_failure(channel)
    }

    async fn subsystem_request(&mut self, channel: ChannelId, _: &str, session: &mut Session) -> Result<(), Error> {
        session.channel_failure(channel)
    }

    async fn x11_request(
        &mut self,
        channel: ChannelId,
        _: bool,
        _: &str,
        _: &str,
        _: u32,
        session: &mut Session,
    ) -> Result<(), Error> {
        session.channel_failure(channel)
    }
}
