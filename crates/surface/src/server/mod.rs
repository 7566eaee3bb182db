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

mod connection;
mod handler;
pub mod sessions;
pub mod stream;
pub(crate) mod timed;
pub mod tls;
pub mod users;
pub(crate) mod workers;

pub use connection::{Limits, MAX_BODY};
pub use handler::{Handler, Peer, Reply, text};
pub use hyper::body::Bytes;
pub use hyper::http;

use crate::Fabric;
use connection::{Shared, serve};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use workers::Workers;

/// Maximum number of connections at once.
const MAX_CONNECTIONS: usize = 2_048;
/// Number of descriptors that the server requests for the process.
const DESCRIPTORS: u64 = 16_384;
/// Time for the handshake of TLS.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Pause before the next client is accepted when the system has run out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

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
pub struct Server {
    addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

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
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS.min(raise_descriptors() / 2)));
        let mut sockets = Vec::new();
        let mut addresses = Vec::new();
        for Listen { address, tls, handler } in listens {
            let failed = |error| Unusable { address: Some(address), error };
            let socket = std::net::TcpListener::bind(address).map_err(failed)?;
            socket.set_nonblocking(true).map_err(failed)?;
            addresses.push(socket.local_addr().map_err(failed)?);
            sockets.push((socket, tls.map(TlsAcceptor::from), handler));
        }
        let shared = Arc::new(Shared::new(Workers::start("surface-worker", Arc::new(connect))?, limits));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, mut stopped) = watch::channel(false);
        let body = move || {
            runtime.block_on(async move {
                for (socket, tls, handler) in sockets {
                    // An error means that the descriptor cannot be polled; that is a defect of the
                    // system.
                    let Ok(socket) = TcpListener::from_std(socket) else { continue };
                    tokio::spawn(accept(socket, tls, handler, shared.clone(), connections.clone()));
                }
                let _ = stopped.wait_for(|stopped| *stopped).await;
            });
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("surface".to_owned()).spawn(body)?;
        Ok(Server { addresses, stop, thread: Some(thread) })
    }

    /// Addresses at which the server listens, in the order of the arguments.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Arc<dyn Handler>,
    shared: Arc<Shared>,
    connections: Arc<Semaphore>,
) {
    loop {
        // Closed never; without a permit, clients wait in the backlog.
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        let (stream, address) = match socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a client of a surface could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(local) = stream.local_addr() else { continue };
        let _ = stream.set_nodelay(true);
        let (tls, handler, shared) = (tls.clone(), handler.clone(), shared.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let peer = Peer { address, local, tls: tls.is_some() };
            match tls {
                None => serve(stream, peer, handler, shared).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await {
                        serve(stream, peer, handler, shared).await;
                    }
                }
            }
        });
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
