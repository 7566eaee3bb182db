//! Sessions of the page: cookies, and Basic authentication for programs.

use super::api::{Refusal, failed, json, parse};
use super::{Access, Web};
use crate::Fabric;
use crate::server::http::header::{AUTHORIZATION, COOKIE, HeaderValue, SET_COOKIE, WWW_AUTHENTICATE};
use crate::server::http::{Request, Response, StatusCode};
use crate::server::sessions::Session;
use crate::server::users::{Place, Refused, Role};
use crate::server::{Bytes, Peer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

/// The page as a place of logins. It belongs to the whole instance.
pub(super) const PLACE: Place<'static> = Place { switch: None, interface: "HTTP" };

#[derive(Deserialize)]
struct Credentials {
    user: String,
    password: String,
}

impl Web {
    /// The session of a request, or the response that asks for one.
    pub(super) fn session(
        &self,
        request: &Request<Bytes>,
        peer: &Peer,
        fabric: &mut dyn Fabric,
    ) -> Result<Session, Refusal> {
        let users = match &self.settings.access {
            Access::Open if peer.local.ip().is_loopback() => {
                return Ok(Session { user: "anybody".to_owned(), role: Role::Administer, id: String::new() });
            }
            Access::Open => {
                return Err(failed(StatusCode::FORBIDDEN, "without login, only loopback addresses are served").into());
            }
            Access::Users(users) => users,
        };
        if let Some(session) = cookie(request, peer).and_then(|secret| self.sessions.find(secret)) {
            return Ok(session);
        }
        match basic(request) {
            Some((user, password)) => match users.check_at(fabric, &PLACE, peer.address.ip(), &user, &password) {
                Ok(role) => Ok(Session { user, role, id: String::new() }),
                Err(reason) => Err(refusal(reason).into()),
            },
            None => {
                let mut response = failed(StatusCode::UNAUTHORIZED, "log in first");
                // A browser would show its own dialogue.
                if !request.headers().contains_key("sec-fetch-mode") {
                    let basic = HeaderValue::from_static("Basic realm=\"sanloom\", charset=\"UTF-8\"");
                    response.headers_mut().insert(WWW_AUTHENTICATE, basic);
                }
                Err(response.into())
            }
        }
    }

    pub(super) fn me(&self, request: &Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Response<Bytes> {
        let (kind, version) = (self.shown().kind, env!("CARGO_PKG_VERSION"));
        let is_open = matches!(self.settings.access, Access::Open);
        match self.session(request, peer, fabric) {
            Ok(session) => {
                let (user, role) = (session.user, session.role.word());
                json(
                    StatusCode::OK,
                    &json!({ "user": user, "role": role, "open": is_open, "kind": kind, "version": version }),
                )
            }
            Err(response) => *response,
        }
    }

    pub(super) fn login(&self, request: &Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Response<Bytes> {
        let Access::Users(users) = &self.settings.access else {
            return failed(StatusCode::BAD_REQUEST, "no login is necessary");
        };
        let Credentials { user, password } = match parse(request.body()) {
            Ok(credentials) => credentials,
            Err(response) => return *response,
        };
        let role = match users.check_at(fabric, &PLACE, peer.address.ip(), &user, &password) {
            Ok(role) => role,
            Err(reason) => return refusal(reason),
        };
        let Some(token) = self.sessions.open(Session { user: user.clone(), role, id: String::new() }) else {
            return failed(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open; log out of one");
        };
        tracing::info!(user, %role, from = %peer.address, "login");
        let mut response = json(StatusCode::OK, &json!({ "user": user, "role": role.word() }));
        set_cookie(&mut response, peer, token.secret(), "");
        response
    }

    /// Ends the session of the cookie, and its zone transactions.
    pub(super) fn logout(&self, request: &Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Response<Bytes> {
        if let Some(secret) = cookie(request, peer) {
            let session = self.sessions.find(secret);
            self.sessions.close(secret);
            // If the fabric is busy, the edits end after the time of an unused transaction.
            if let Some(session) = session {
                let _ = super::zones::end(&session, peer, fabric);
            }
        }
        let mut response = json(StatusCode::OK, &json!({}));
        set_cookie(&mut response, peer, "", "; Max-Age=0");
        response
    }
}

fn refusal(reason: Refused) -> Response<Bytes> {
    match reason {
        Refused::Invalid => failed(StatusCode::UNAUTHORIZED, "no user has this name and password"),
        Refused::Busy => {
            let mut response = failed(StatusCode::SERVICE_UNAVAILABLE, "many logins wait; try again in a moment");
            response.headers_mut().insert("retry-after", HeaderValue::from_static("2"));
            response
        }
        Refused::TooMany => {
            let reason = "too many wrong passwords from this address; wait a minute";
            let mut response = failed(StatusCode::TOO_MANY_REQUESTS, reason);
            response.headers_mut().insert("retry-after", HeaderValue::from_static("60"));
            response
        }
    }
}

/// Name of the cookie. Cookies do not depend on the port, so the name does.
fn cookie_name(peer: &Peer) -> String {
    format!("sanloom-{}", peer.local.port())
}

fn set_cookie(response: &mut Response<Bytes>, peer: &Peer, secret: &str, more: &str) {
    let (name, secure) = (cookie_name(peer), if peer.tls { "; Secure" } else { "" });
    let text = format!("{name}={secret}; HttpOnly; SameSite=Strict; Path=/{secure}{more}");
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
}

fn cookie<'r>(request: &'r Request<Bytes>, peer: &Peer) -> Option<&'r str> {
    let name = cookie_name(peer);
    let fields = request.headers().get_all(COOKIE).iter().filter_map(|field| field.to_str().ok());
    let mut pairs = fields.flat_map(|field| field.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(of, _)| *of == name).map(|(_, secret)| secret)
}

fn basic(request: &Request<Bytes>) -> Option<(String, String)> {
    let field = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = field.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}
