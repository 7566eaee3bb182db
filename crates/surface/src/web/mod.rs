//! The page and its interface `/api/v1`: [`Web`].
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /api/v1/me`, `POST /api/v1/login`, `POST /api/v1/logout` | session |
//! | `GET /api/v1/show/TABLE` | a table, as of `sanloom show --json` |
//! | `POST /api/v1/request` | answer to a request of [`sanloom_api::control`] |
//! | `GET /api/v1/graph` | nodes, links and positions |
//! | `GET /api/v1/events` | server-sent events: state, rates, log |
//! | `GET /api/v1/capture/PORT.pcapng` | frames of a port, until the client disconnects |
//! | `GET /api/v1/results/0` | results of a finished run; 1 for the second |
//! | `POST /api/v1/decode` | fields of captured frames |
//! | `GET /metrics` | metrics, as OpenMetrics if the client accepts it |

mod api;
mod assets;
mod capture;
mod decode;
mod guard;
mod hub;
mod login;
mod zones;

pub use api::permission;

use crate::Fabric;
use crate::server::http::header::{CACHE_CONTROL, HeaderValue};
use crate::server::http::{Method, Request, Response};
use crate::server::sessions::Sessions;
use crate::server::users::Users;
use crate::server::{Bytes, Handler, Peer, Reply};
use hub::Hub;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Maximum number of sessions.
const MAX_SESSIONS: usize = 256;
/// Idle time after which a session ends.
const SESSION_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// Permission to use the page.
pub enum Access {
    /// Everybody may do everything. Accepted only at loopback addresses.
    Open,
    /// Users log in.
    Users(Arc<Users>),
}

/// Function that connects to the fabric.
pub type Connect = Arc<dyn Fn() -> Box<dyn Fabric> + Send + Sync>;

/// Settings of the page.
pub struct Settings {
    /// Permission to use the page.
    pub access: Access,
    /// Host names at which the page is reached, besides addresses and `localhost`.
    pub names: Vec<String>,
    /// Folder with the files of the page, instead of those in the program; for development.
    pub assets: Option<PathBuf>,
    /// Kind of the fabric, shown by the page: `live`, `simulated` or `finished`.
    pub kind: &'static str,
    /// Results of finished runs as JSON.
    pub results: Vec<Bytes>,
}

/// Kind of the fabric, and results of runs.
#[derive(Clone)]
struct Shown {
    kind: &'static str,
    results: Vec<Bytes>,
}

/// Room of the page.
pub struct Web {
    settings: Settings,
    /// Kind and results, which change when a run ends.
    shown: RwLock<Shown>,
    sessions: Sessions,
    hub: Arc<Hub>,
}

impl Web {
    /// Creates the room. Its own thread asks the fabric once per second while a page is open.
    ///
    /// # Errors
    /// The limit of threads is reached.
    pub fn start(settings: Settings, connect: &Connect) -> io::Result<Web> {
        let hub = Hub::start(connect.clone())?;
        let shown = RwLock::new(Shown { kind: settings.kind, results: settings.results.clone() });
        Ok(Web { settings, shown, sessions: Sessions::new(MAX_SESSIONS, SESSION_IDLE), hub })
    }
}

impl Web {
    /// Shows the results of a run that has ended, instead of its fabric. Open pages load them.
    pub fn finish(&self, results: Vec<Bytes>) {
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = Shown { kind: "finished", results };
        self.hub.finish();
    }

    fn shown(&self) -> Shown {
        self.shown.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.hub.stop();
    }
}

impl Handler for Web {
    fn at_once(&self, request: &Request<Bytes>, peer: &Peer) -> Option<Reply> {
        if let Err(refused) = guard::check(request, peer, &self.settings.names) {
            return Some(secured(*refused).into());
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let path = request.uri().path();
        let is_asset = is_read && path != "/metrics" && !path.starts_with("/api/");
        is_asset.then(|| secured(assets::answer(request, self.settings.assets.as_deref())).into())
    }

    fn answer(&self, request: Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Reply {
        match self.api(request, peer, fabric) {
            Reply::Whole(response) => Reply::Whole(uncached(secured(response))),
            Reply::Stream(response, feed) => Reply::Stream(uncached(secured(response)), feed),
        }
    }
}

/// Adds the header fields that restrict a page.
fn secured<T>(mut response: Response<T>) -> Response<T> {
    const FIELDS: [(&str, &str); 5] = [
        ("content-security-policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ];
    for (name, value) in FIELDS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn uncached<T>(mut response: Response<T>) -> Response<T> {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
