//! The interface as a room of the server: [`Room`].

use super::{Mode, Now, Rest, Shared, refusal};
use crate::Fabric;
use crate::server::http::request::Parts;
use crate::server::http::{Request, Response, StatusCode};
use crate::server::users::Users;
use crate::server::{Bytes, Handler, Peer, Reply};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// The interface of one switch at its addresses.
pub struct Room {
    rest: Mutex<Rest>,
    start: Instant,
}

impl Room {
    /// As [`Rest::new`].
    pub fn new(switch: &str, mode: Mode, users: Arc<Users>, shared: Shared) -> Room {
        Room { rest: Mutex::new(Rest::new(switch, mode, users, shared)), start: Instant::now() }
    }
}

impl Handler for Room {
    fn answer(&self, request: Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Reply {
        let unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = Now { elapsed: self.start.elapsed(), unix_s };
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.handle(now, &request, peer, fabric).into()
    }

    fn refuse(&self, head: &Parts, status: StatusCode, reason: &str) -> Response<Bytes> {
        refusal(&head.headers, status, reason)
    }
}
