//! Rooms that answer one request after the other: [`Interface`], [`Serial`].

use super::http::request::Parts;
use super::http::{HeaderMap, Request, Response, StatusCode};
use super::{Bytes, Handler, Peer, Reply};
use crate::Fabric;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Time of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Time since the start of the interface.
    pub elapsed: Duration,
    /// Seconds since 1970.
    pub unix_s: u64,
}

/// An interface over HTTP that reads no clock.
pub trait Interface: Send + 'static {
    /// Answers a request.
    fn handle(&mut self, now: Now, request: &Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Response<Bytes>;

    /// Response of the server itself to a request that it refuses.
    fn refusal(headers: &HeaderMap, status: StatusCode, reason: &str) -> Response<Bytes>;
}

/// The room of an interface at its addresses.
pub struct Serial<I> {
    interface: Mutex<I>,
    start: Instant,
}

impl<I: Interface> Serial<I> {
    /// Wraps an interface.
    pub fn new(interface: I) -> Serial<I> {
        Serial { interface: Mutex::new(interface), start: Instant::now() }
    }
}

impl<I: Interface> Handler for Serial<I> {
    fn answer(&self, request: Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Reply {
        let unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = Now { elapsed: self.start.elapsed(), unix_s };
        let mut interface = self.interface.lock().unwrap_or_else(PoisonError::into_inner);
        interface.handle(now, &request, peer, fabric).into()
    }

    fn refuse(&self, head: &Parts, status: StatusCode, reason: &str) -> Response<Bytes> {
        I::refusal(&head.headers, status, reason)
    }
}
