//! Sockets of the agents: [`Server`]. One thread receives, and a few threads wait for the fabric. A
//! packet that finds too many others waiting is dropped; clients repeat their requests.

use super::Agent;
use crate::Fabric;
use crate::server::threads;
use crate::server::workers::Workers;
use crate::server::{Now, Peer, Unusable};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// Longest request in bytes; the rest of a longer one is cut, so it is no request.
const MAX_REQUEST: usize = 4_096;

/// An address, and the agent that answers there.
pub struct Listen {
    /// Address of the socket.
    pub address: SocketAddr,
    /// Agent of a switch.
    pub agent: Agent,
}

/// Running agents. Dropping it closes their sockets.
pub struct Server {
    addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the agents. `connect` is called for each thread that waits for the fabric.
    ///
    /// # Errors
    /// An address is not available, or the limit of threads is reached.
    pub fn start(
        listens: Vec<Listen>,
        connect: impl Fn() -> Box<dyn Fabric> + Send + Sync + 'static,
    ) -> Result<Server, Unusable> {
        let mut sockets = Vec::new();
        let mut addresses = Vec::new();
        for Listen { address, agent } in listens {
            let failed = |error| Unusable { address: Some(address), error };
            let socket = std::net::UdpSocket::bind(address).map_err(failed)?;
            socket.set_nonblocking(true).map_err(failed)?;
            let local = socket.local_addr().map_err(failed)?;
            addresses.push(local);
            sockets.push((socket, local, Arc::new(agent)));
        }
        let workers = Arc::new(Workers::start("snmp-worker", Arc::new(connect))?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (stop, mut stopped) = watch::channel(false);
        let body = move || {
            runtime.block_on(async move {
                let start = Instant::now();
                for (socket, local, agent) in sockets {
                    // An error means that the descriptor cannot be polled; that is a defect of the
                    // system.
                    let Ok(socket) = UdpSocket::from_std(socket) else { continue };
                    tokio::spawn(serve(Arc::new(socket), local, agent, workers.clone(), start));
                }
                let _ = stopped.wait_for(|stopped| *stopped).await;
            });
            runtime.shutdown_background();
        };
        let thread = threads::spawn("snmp", body)?;
        Ok(Server { addresses, stop, thread: Some(thread) })
    }

    /// Addresses at which the agents answer, in the order of the arguments.
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

async fn serve(socket: Arc<UdpSocket>, local: SocketAddr, agent: Arc<Agent>, workers: Arc<Workers>, start: Instant) {
    let mut packet = [0; MAX_REQUEST];
    loop {
        let (length, address) = match socket.recv_from(&mut packet).await {
            Ok(received) => received,
            // An earlier answer did not reach its client.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => {
                tracing::warn!(%error, %local, "the SNMP agent cannot receive");
                return;
            }
        };
        let Some(request) = agent.request(&packet[..length]) else { continue };
        let (socket, agent) = (socket.clone(), agent.clone());
        let job = move |fabric: &mut dyn Fabric| {
            let unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            let now = Now { elapsed: start.elapsed(), unix_s };
            let peer = Peer { address, local, tls: false };
            let answer = agent.answer(now, &request, &peer, fabric);
            // A full socket loses the answer, and the client asks again.
            let _ = socket.try_send_to(&answer, address);
        };
        let _ = workers.submit(Box::new(job));
    }
}
