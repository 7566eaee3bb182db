//! Listening sockets of a server, and the thread that carries all their connections: [`Sockets`],
//! [`Running`].

use super::{Unusable, raise_descriptors, threads};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

/// Pause before the next client is accepted when the system has run out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Listening sockets, each with what serves its clients.
pub(crate) struct Sockets<H> {
    sockets: Vec<(std::net::TcpListener, H)>,
    addresses: Vec<SocketAddr>,
}

/// A client that was accepted.
pub(crate) struct Accepted {
    pub stream: TcpStream,
    /// Address of the client.
    pub address: SocketAddr,
    /// Address at which it was accepted.
    pub local: SocketAddr,
}

/// The thread of a server. Dropping it closes all connections.
pub(crate) struct Running {
    addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl<H: Clone + Send + 'static> Sockets<H> {
    /// Binds each address.
    pub fn bind(listens: impl IntoIterator<Item = (SocketAddr, H)>) -> Result<Sockets<H>, Unusable> {
        let mut bound = Sockets { sockets: Vec::new(), addresses: Vec::new() };
        for (address, host) in listens {
            let failed = |error| Unusable { address: Some(address), error };
            let socket = std::net::TcpListener::bind(address).map_err(failed)?;
            socket.set_nonblocking(true).map_err(failed)?;
            bound.addresses.push(socket.local_addr().map_err(failed)?);
            bound.sockets.push((socket, host));
        }
        Ok(bound)
    }

    /// Starts a thread that accepts clients and runs `serve` for each. There are at most `most`
    /// clients at once, and at most one for `share` descriptors of the process; further ones wait
    /// in the backlog.
    pub fn run<F: Future<Output = ()> + Send + 'static>(
        self,
        name: &'static str,
        (most, share): (usize, usize),
        serve: impl Fn(Accepted, H) -> F + Clone + Send + 'static,
    ) -> io::Result<Running> {
        let connections = Arc::new(Semaphore::new(most.min(raise_descriptors() / share)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, mut stopped) = watch::channel(false);
        let sockets = self.sockets;
        let body = move || {
            runtime.block_on(async move {
                for (socket, host) in sockets {
                    // An error means that the descriptor cannot be polled; that is a defect of the
                    // system.
                    let Ok(socket) = TcpListener::from_std(socket) else { continue };
                    let (serve, connections) = (serve.clone(), connections.clone());
                    tokio::spawn(accept(name, socket, connections, move |accepted| serve(accepted, host.clone())));
                }
                let _ = stopped.wait_for(|stopped| *stopped).await;
            });
            runtime.shutdown_background();
        };
        let thread = threads::spawn(name, body)?;
        Ok(Running { addresses: self.addresses, stop, thread: Some(thread) })
    }
}

impl Running {
    /// Addresses at which the server listens, in the order of the arguments.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept<F: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    socket: TcpListener,
    connections: Arc<Semaphore>,
    serve: impl Fn(Accepted) -> F,
) {
    loop {
        // Closed never; without a permit, clients wait in the backlog.
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        let (stream, address) = match socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(server = name, %error, "a client could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(local) = stream.local_addr() else { continue };
        let _ = stream.set_nodelay(true);
        let served = serve(Accepted { stream, address, local });
        tokio::spawn(async move {
            let _permit = permit;
            served.await;
        });
    }
}
