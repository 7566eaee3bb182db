//! SSH server of the command lines of switches: [`Server`].
//!
//! One thread carries all connections and their cryptography. A few worker threads hash passwords
//! and run commands, which wait for the fabric. Each queue is bounded, and the memory of a
//! connection is, too.
//!
//! ```text
//!   clients -> "ssh" thread -> bounded queue -> workers -> Console -> Fabric
//!              limits, SSH, line editor         (few)      one per channel
//! ```

mod channel;
mod connection;
mod keys;
mod stream;
mod terminal;

pub use keys::{UserKeys, host_key, host_keys};
pub use russh::keys::{PrivateKey, PublicKey};
pub use terminal::{Key, MAX_LINE, Terminal};

use crate::Fabric;
use crate::fos::Shared;
use crate::server::listener::{Accepted, Running, Sockets};
use crate::server::timed::Timed;
use crate::server::users::Users;
use crate::server::workers::Workers;
use crate::server::{Peer, Unusable};
use connection::{Client, Connection};
use russh::server::{Config, run_stream};
use russh::{MethodKind, MethodSet, Preferred, SshId, kex};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use stream::{Cut, Held};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum number of connections at once.
const MAX_CONNECTIONS: usize = 1_024;
/// Maximum number of connections whose users have not logged in yet. A further one ends the oldest.
const MAX_STARTUPS: usize = 64;
/// Maximum number of connections of a switch whose users have logged in.
pub const MAX_SESSIONS: usize = 32;
/// Number of wrong passwords or keys after which a connection ends.
const MAX_ATTEMPTS: usize = 6;
/// Period of the checks of a connection.
const TICK: Duration = Duration::from_millis(500);

/// A switch that is reached by SSH.
pub struct Host {
    switch: String,
    shared: Shared,
    /// Permits for connections whose users have logged in.
    sessions: Arc<Semaphore>,
}

/// An address and the switch behind it.
pub struct Listen {
    /// Address to listen at; port 0 selects a free port.
    pub address: SocketAddr,
    /// Name of the switch in the lab.
    pub switch: String,
    /// Settings of the switch, which its other interfaces have, too.
    pub shared: Shared,
}

/// Users and keys of a server.
pub struct Access {
    /// The user table.
    pub users: Arc<Users>,
    /// Public keys of users of the table.
    pub keys: UserKeys,
    /// Keys of the server, of different algorithms.
    pub host_keys: Vec<PrivateKey>,
}

/// Time limits for slow clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the start of a connection to the login.
    pub login: Duration,
    /// For each part of an output that the client has to read.
    pub write: Duration,
    /// Delay of the reply to a wrong password.
    pub rejection: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let [login, write, rejection] = [30_000, 20_000, 500].map(Duration::from_millis);
        Limits { login, write, rejection }
    }
}

/// Parts that all connections share.
struct Common {
    users: Arc<Users>,
    keys: UserKeys,
    limits: Limits,
    workers: Workers,
    config: Arc<Config>,
    /// One password of SSH is hashed at a time, so that a flood of logins occupies one worker.
    hashing: Semaphore,
    /// Connections whose users have not logged in yet, oldest first.
    startups: Mutex<VecDeque<Startup>>,
    /// Number of the next connection, for the identifiers of sessions.
    next: AtomicU64,
    start: Instant,
}

/// A connection whose user has not logged in yet.
struct Startup {
    number: u64,
    cut: Arc<Cut>,
}

impl Common {
    /// Notes a new connection. If there are too many without a login, the oldest one ends.
    fn begin(&self, number: u64, cut: Arc<Cut>) {
        let mut startups = self.startups.lock().unwrap_or_else(PoisonError::into_inner);
        if startups.len() >= MAX_STARTUPS
            && let Some(oldest) = startups.pop_front()
        {
            oldest.cut.cut();
        }
        startups.push_back(Startup { number, cut });
    }

    /// Notes that the user of a connection has logged in, or that the connection has ended.
    fn settle(&self, number: u64) {
        let mut startups = self.startups.lock().unwrap_or_else(PoisonError::into_inner);
        startups.retain(|startup| startup.number != number);
    }
}

/// A running server. Dropping it closes all connections.
pub struct Server(Running);

impl Server {
    /// Starts the server. `connect` is called for each worker thread, and again after a defect.
    ///
    /// # Errors
    /// An address is not available, or the limit of threads is reached.
    pub fn start(
        listens: Vec<Listen>,
        access: Access,
        connect: impl Fn() -> Box<dyn Fabric> + Send + Sync + 'static,
    ) -> Result<Server, Unusable> {
        Server::start_with(listens, access, Limits::default(), connect)
    }

    /// Like [`start`](Server::start), with other time limits.
    ///
    /// # Errors
    /// As [`start`](Server::start).
    pub fn start_with(
        listens: Vec<Listen>,
        access: Access,
        limits: Limits,
        connect: impl Fn() -> Box<dyn Fabric> + Send + Sync + 'static,
    ) -> Result<Server, Unusable> {
        let hosts = listens.into_iter().map(|Listen { address, switch, shared }| {
            let sessions = Arc::new(Semaphore::new(MAX_SESSIONS));
            (address, Arc::new(Host { switch, shared, sessions }))
        });
        let sockets = Sockets::bind(hosts)?;
        let Access { users, keys, host_keys } = access;
        let common = Arc::new(Common {
            users,
            keys,
            limits,
            workers: Workers::start("ssh-worker", Arc::new(connect))?,
            config: Arc::new(config(host_keys, limits)),
            hashing: Semaphore::new(1),
            startups: Mutex::default(),
            next: AtomicU64::new(1),
            start: Instant::now(),
        });
        let serve = move |accepted, host| serve(accepted, host, common.clone());
        Ok(Server(sockets.run("ssh", (MAX_CONNECTIONS, 4), serve)?))
    }

    /// Addresses at which the server listens, in the order of the arguments.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.0.addresses()
    }
}

/// Key exchanges: those that the library prefers, and for older clients those on the curves of
/// NIST (RFC 5656).
fn key_exchanges() -> Vec<kex::Name> {
    let more = [kex::ECDH_SHA2_NISTP256, kex::ECDH_SHA2_NISTP384, kex::ECDH_SHA2_NISTP521];
    Preferred::DEFAULT.kex.iter().copied().chain(more).collect()
}

fn config(host_keys: Vec<PrivateKey>, limits: Limits) -> Config {
    Config {
        server_id: SshId::Standard(concat!("SSH-2.0-sanloom_", env!("CARGO_PKG_VERSION")).into()),
        methods: MethodSet::from(&[MethodKind::PublicKey, MethodKind::Password][..]),
        auth_rejection_time: limits.rejection,
        // Clients ask for the methods by a login without a password.
        auth_rejection_time_initial: Some(Duration::ZERO),
        preferred: Preferred { kex: key_exchanges().into(), ..Preferred::DEFAULT },
        keys: host_keys,
        max_auth_attempts: MAX_ATTEMPTS,
        // A few messages for each channel bound the memory.
        window_size: 64 << 10,
        maximum_packet_size: connection::MAX_DATA as u32,
        channel_buffer_size: 2,
        event_buffer_size: 8,
        // A client that is gone ends its connection after a few minutes.
        keepalive_interval: Some(Duration::from_secs(60)),
        inactivity_timeout: Some(Duration::from_secs(240)),
        ..Config::default()
    }
}

/// Serves one connection until it ends.
async fn serve(accepted: Accepted, host: Arc<Host>, common: Arc<Common>) {
    let Accepted { stream, address, local } = accepted;
    let peer = Peer { address, local, tls: true };
    let number = common.next.fetch_add(1, Ordering::Relaxed);
    let (stream, cut) = Held::new(Timed::new(stream, common.limits.write));
    let cut = Arc::new(cut);
    common.begin(number, cut.clone());
    let connection = Arc::new(Connection::new(number, peer, host, common.clone()));
    let client = Client::new(connection.clone());
    let config = common.config.clone();
    let mut running = tokio::spawn(async move { run_stream(config, stream, client).await?.await });
    // An error concerns this client only: it disconnected, was too slow, or sent no SSH.
    while timeout(TICK, &mut running).await.is_err() {
        if connection.is_overdue() {
            cut.cut();
        }
    }
    common.settle(number);
    connection.end();
}
