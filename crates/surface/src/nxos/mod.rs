//! NX-API, for software that manages switches in the words of NX-OS: [`NxApi`].
//!
//! The module does no I/O: a command becomes requests of [`sanloom_api::control`], and their
//! answers become text and values. It shares the access to the fabric, its settings and its zone
//! edits with [`crate::fos`]. A VSAN is a virtual fabric.
//!
//! ```text
//!   request -> message (protocol) -> command (pattern, commands) -> show, config -> Fabric
//! ```

mod commands;
mod config;
mod pattern;
mod protocol;
mod reply;
mod session;
mod settings;
mod show;

pub use settings::Shared;

use crate::Fabric;
use crate::fos::room::{Room, Who};
use crate::fos::{Mode, Shared as Common};
use crate::server::basic::basic;
use crate::server::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use crate::server::users::{Place, Refused, Users};
use crate::server::{Bytes, Interface, Now, Peer, text};
use session::Session;
use std::sync::Arc;

/// Path of the interface.
const PATH: &str = "/ins";

/// The interface of one switch.
pub struct NxApi {
    switch: String,
    users: Arc<Users>,
    common: Common,
    shared: Shared,
}

impl NxApi {
    /// Creates the interface of a switch of the lab. `common` has the settings that all interfaces
    /// of the switch share, and `shared` those of its chassis.
    pub fn new(switch: &str, users: Arc<Users>, common: Common, shared: Shared) -> NxApi {
        common.register(switch);
        NxApi { switch: switch.to_owned(), users, common, shared }
    }

    fn answer(
        &self,
        now: Now,
        request: &Request<Bytes>,
        peer: &Peer,
        fabric: &mut dyn Fabric,
    ) -> Result<Response<Bytes>, (StatusCode, &'static str)> {
        let path = request.uri().path();
        if path.strip_suffix('/').unwrap_or(path) != PATH {
            return Err((StatusCode::NOT_FOUND, "404 Not Found: the interface is at /ins"));
        }
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "405 Method Not Allowed: use POST"));
        }
        // A page of another site can send other types with the password that a browser keeps.
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_rpc = match &*kind {
            "application/json-rpc" => true,
            "application/json" => false,
            _ => {
                let text = "415 Unsupported Media Type: use application/json or application/json-rpc";
                return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
            }
        };
        let refused = (StatusCode::UNAUTHORIZED, "401 Authorization Required");
        let (user, password) = basic(request.headers(), &["Basic"]).ok_or(refused)?;
        let place = Place { switch: Some(&self.switch), interface: "NX-API" };
        let role = match self.users.check_at(fabric, &place, peer.address.ip(), &user, &password) {
            Ok(role) => role,
            Err(Refused::Invalid) => return Err(refused),
            Err(Refused::Busy) => return Err((StatusCode::SERVICE_UNAVAILABLE, "503 Service Unavailable")),
            Err(Refused::TooMany) => {
                return Err((StatusCode::UNAUTHORIZED, "401 Too many wrong passwords; wait a minute"));
            }
        };
        let address = peer.address.ip().to_string();
        let session = format!("{}/nxapi/{user}/{address}", self.switch);
        let who = Who { session, user, role, address, application: String::new() };
        let mut room = Room::new(fabric, &self.switch, &self.common, Mode::default(), now, who, peer);
        room.interface = "NX-API";
        let answer = protocol::answer(&mut Session::new(room, &self.shared), request.body(), is_rpc);
        let mut response = Response::new(Bytes::from(format!("{answer}\n")));
        let kind = if is_rpc { "application/json-rpc; charset=UTF-8" } else { "application/json; charset=UTF-8" };
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }
}

impl Interface for NxApi {
    fn handle(&mut self, now: Now, request: &Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Response<Bytes> {
        self.answer(now, request, peer, fabric)
            .unwrap_or_else(|(status, reason)| NxApi::refusal(request.headers(), status, reason))
    }

    fn refusal(_: &HeaderMap, status: StatusCode, reason: &str) -> Response<Bytes> {
        let mut response = text(status, reason);
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"Secure Zone\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Number of the commands of a line that the interface has. The line is not run.
pub fn known_commands(line: &str) -> usize {
    commands::split_line(line).into_iter().filter(|command| commands::check(command)).count()
}
