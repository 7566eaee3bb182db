//! HTTP and HTTPS server of the surfaces: [`Server`].
//!
//! One thread carries all connections. A few worker threads call the rooms ([`Handler`]) and wait
//! for the fabric. Every queue between a client and the fabric is bounded, and no client can make
//! the fabric wait.
//!
//! ```text
//!   clients -> "surface" thread -> bounded queue -> workers -> Handler -> Fabric
//!              limits, TLS, HTTP                    (few)      a room     its own bounded queue
//! ```

mod attempts;
pub(crate) mod basic;
mod connection;
mod handler;
pub(crate) mod listener;
pub(crate) mod process;
mod serial;
pub mod sessions;
pub mod stream;
pub(crate) mod threads;
pub(crate) mod timed;
pub mod tls;
pub mod users;
pub(crate) mod workers;

pub use connection::{Limits, MAX_BODY};
pub use handler::{Handler, Peer, Reply, is_of_other_site, text};
pub use hyper::body::Bytes;
pub use hyper::http;
pub use serial::{Interface, Now, Serial};
pub use workers::THREADS;

use crate::Fabric;
use connection::{Shared, serve};
use listener::{Accepted, Running, Sockets};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use workers::Workers;

/// Maximum number of connections at once.
const MAX_CONNECTIONS: usize = 2_048;
/// Number of descriptors that the server requests for the process.
const DESCRIPTORS: u64 = 16_384;
/// Time for the handshake of TLS.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// An address and the room behind it.
pub struct Listen {
    /// Address to listen at; port 0 selects a free port.
    pub address: SocketAddr,
    /// Certificate and key; plain HTTP without.
    pub tls: Option<Arc<ServerConfig>>,
    /// The room that answers.
    pub handler: Arc<dyn Handler>,
}

/// An address at which the server cannot listen.
#[derive(Debug)]
pub struct Unusable {
    /// The address; absent if no thread could be started.
    pub address: Option<SocketAddr>,
    /// The cause.
    pub error: io::Error,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "cannot listen at {address}: {}; choose another address", self.error),
            None => write!(f, "the server cannot start: {}", self.error),
        }
    }
}

impl std::error::Error for Unusable {}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Unusable {
        Unusable { address: None, error }
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
        connect: impl Fn() -> Box<dyn Fabric> + Send + Sync + 'static,
    ) -> Result<Server, Unusable> {
        Server::start_with(listens, Limits::default(), connect)
    }

    /// Like [`start`](Server::start), with other time limits.
    ///
    /// # Errors
    /// As [`start`](Server::start).
    pub fn start_with(
        listens: Vec<Listen>,
        limits: Limits,
        connect: impl Fn() -> Box<dyn Fabric> + Send + Sync + 'static,
    ) -> Result<Server, Unusable> {
        let rooms = listens.into_iter().map(|Listen { address, tls, handler }| {
            let tls = tls.map(TlsAcceptor::from);
            (address, Room { tls, handler })
        });
        let sockets = Sockets::bind(rooms)?;
        let shared = Arc::new(Shared::new(Workers::start("surface-worker", Arc::new(connect))?, limits));
        let serve = move |accepted, room| serve_client(accepted, room, shared.clone());
        Ok(Server(sockets.run("surface", (MAX_CONNECTIONS, 2), serve)?))
    }

    /// Addresses at which the server listens, in the order of the arguments.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.0.addresses()
    }
}

/// The room behind an address.
#[derive(Clone)]
struct Room {
    tls: Option<TlsAcceptor>,
    handler: Arc<dyn Handler>,
}

async fn serve_client(accepted: Accepted, Room { tls, handler }: Room, shared: Arc<Shared>) {
    let Accepted { stream, address, local } = accepted;
    let peer = Peer { address, local, tls: tls.is_some() };
    match tls {
        None => serve(stream, peer, handler, shared).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await {
                serve(stream, peer, handler, shared).await;
            }
        }
    }
}

/// Raises the limit of descriptors of the process, and returns the limit.
pub(crate) fn raise_descriptors() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(DESCRIPTORS, |maximum| maximum.min(DESCRIPTORS));
    let Some(limit) = current else { return usize::MAX };
    if limit < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok() {
        return wanted as usize;
    }
    limit as usize
}
