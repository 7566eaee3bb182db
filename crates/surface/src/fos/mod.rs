//! Management interface of Fabric OS, for software that manages such switches: [`Rest`].
//!
//! The module does no I/O: a request becomes requests of [`sanloom_api::control`], and their
//! answers become a response. One [`Rest`] serves one address, which belongs to one switch.
//!
//! ```text
//!   request -> path, body (xml, json) -> resource (resources) -> Room -> Fabric
//!                       tree::Element <- values of the views of `api` <-
//! ```

pub mod commands;
pub(crate) mod counters;
pub mod fault;
mod fdmi;
mod fields;
pub mod json;
mod logging;
pub(crate) mod names;
mod path;
pub(crate) mod ports;
mod resources;
pub(crate) mod room;
mod sessions;
mod settings;
pub(crate) mod switches;
pub(crate) mod system;
pub mod tree;
pub mod xml;
pub(crate) mod zone_edits;
pub(crate) mod zones;

pub use crate::server::Now;
pub use resources::reference;
pub use settings::{Burst, Mode, Shared};

use crate::Fabric;
use crate::server::basic::basic;
use crate::server::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use crate::server::users::{Place, Refused, Role, Users};
use crate::server::{Bytes, Interface, Peer};
use fault::Fault;
use path::{Address, Target};
use room::{Room as Access, Who};
use sanloom_api::accept::quality;
use sanloom_api::control::ZoneAction;
use sessions::Sessions;
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;
use tree::Element;

/// Maximum number of levels of a body.
pub const MAX_DEPTH: usize = 32;
/// Maximum number of elements of a body.
pub const MAX_ELEMENTS: usize = 200_000;
/// Maximum size of a body in bytes.
const MAX_BODY: usize = 4 << 20;
/// Version of the modules, as clients parse it.
pub const MODULE_VERSION: &str = "1.40.0";
/// Version of the operating system that the interface claims. Clients choose their requests by it.
pub const FIRMWARE: &str = "v9.1.1";

/// Types of a body in JSON.
const JSON: [&str; 2] = ["application/yang-data+json", "application/json"];
/// Types of a body in XML.
const XML: [&str; 3] = ["application/yang-data+xml", "application/xml", "text/xml"];

/// Encoding of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Xml,
    Json,
}

/// The management interface at one address.
pub struct Rest {
    switch: String,
    mode: Mode,
    users: Arc<Users>,
    shared: Shared,
    sessions: Sessions,
    /// Number of requests since the start of the last burst.
    since_burst: u32,
}

/// A decoded request.
struct Call {
    method: Method,
    body: Vec<Element>,
    virtual_fabric: Option<u32>,
}

impl Rest {
    /// Creates the interface of a switch of the lab. `shared` holds the settings that its command
    /// line has, too.
    pub fn new(switch: &str, mode: Mode, users: Arc<Users>, shared: Shared) -> Rest {
        shared.register(switch);
        Rest { switch: switch.to_owned(), mode, users, shared, sessions: Sessions::default(), since_burst: 0 }
    }

    /// True if the next request belongs to a burst.
    fn is_busy(&mut self) -> bool {
        let Some(Burst { served, refused }) = self.mode.burst else { return false };
        let at = self.since_burst;
        self.since_burst = if at + 1 < served.saturating_add(refused) { at + 1 } else { 0 };
        at >= served
    }

    fn answer(
        &mut self,
        now: Now,
        request: &Request<Bytes>,
        peer: &Peer,
        fabric: &mut dyn Fabric,
    ) -> Result<Outcome, Fault> {
        if self.is_busy() {
            return Err(Fault::unavailable());
        }
        if request.body().len() > MAX_BODY {
            return Err(Fault::too_big());
        }
        let address = Address::of(request.uri().path(), self.mode.old_uris)?;
        for session in self.sessions.expire(now.elapsed, self.shared.session_ttl()) {
            self.end(now, session, fabric);
        }
        match address.target {
            Target::Login => return self.login(now, request, peer, fabric),
            Target::Logout => {
                let token = token(request.headers()).ok_or_else(|| Fault::login("Invalid session"))?;
                let session = self.sessions.remove(token).ok_or_else(|| Fault::login("Invalid session"))?;
                self.end(now, session, fabric);
                return Ok(Outcome::status(StatusCode::NO_CONTENT));
            }
            _ => {}
        }
        let who = self.authorize(now, request.headers(), peer, fabric)?;
        let method = request.method().clone();
        if self.mode.strict && method != Method::GET && who.role < Role::Operate {
            return Err(Fault::denied("the role of the user permits reading only"));
        }
        let call = Call { body: body(request)?, virtual_fabric: path::virtual_fabric(request.uri().query())?, method };
        let mut room = Access::new(fabric, &self.switch, &self.shared, self.mode, now, who, peer);
        room.select(call.virtual_fabric)?;
        resources::answer(&mut room, &address, &call)
    }

    fn login(
        &mut self,
        now: Now,
        request: &Request<Bytes>,
        peer: &Peer,
        fabric: &mut dyn Fabric,
    ) -> Result<Outcome, Fault> {
        if request.method() != Method::POST {
            return Err(Fault::method());
        }
        let (user, role) = self.credentials(request.headers(), peer, &["Custom_Basic", "Basic"], fabric)?;
        if self.sessions.len() >= self.shared.max_sessions(self.mode) as usize {
            return Err(Fault::sessions());
        }
        let application = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let who = Who {
            session: String::new(),
            user,
            role,
            address: peer.address.ip().to_string(),
            application: application.unwrap_or_default().chars().take(64).collect(),
        };
        let token = self.sessions.add(now.elapsed, &self.switch, who.clone()).map_err(|_| Fault::unavailable())?;
        let mut room = Access::new(fabric, &self.switch, &self.shared, self.mode, now, who, peer);
        let parameters = switches::login_parameters(&mut room)?;
        let mut outcome = Outcome::tree(vec![parameters]);
        outcome.token = Some(format!("Custom_Basic {token}"));
        Ok(outcome)
    }

    /// Ends the zone transaction of a session that has ended.
    fn end(&self, now: Now, who: Who, fabric: &mut dyn Fabric) {
        let local = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
        let peer = Peer { address: local, local, tls: false };
        let mut room = Access::new(fabric, &self.switch, &self.shared, self.mode, now, who, &peer);
        if room.owns_transaction() {
            let _ = room.zone(None, ZoneAction::Abort);
        }
    }

    /// User of a request: the owner of its session, or a user who sends a password with each
    /// request.
    fn authorize(&mut self, now: Now, headers: &HeaderMap, peer: &Peer, fabric: &mut dyn Fabric) -> Result<Who, Fault> {
        if let Some(token) = token(headers)
            && let Some(who) = self.sessions.find(now.elapsed, token)
        {
            return Ok(who);
        }
        let (user, role) = self.credentials(headers, peer, &["Basic"], fabric)?;
        let address = peer.address.ip().to_string();
        let session = format!("{}/basic/{user}/{address}", self.switch);
        Ok(Who { session, user, role, address, application: String::new() })
    }

    fn credentials(
        &self,
        headers: &HeaderMap,
        peer: &Peer,
        schemes: &[&str],
        fabric: &mut dyn Fabric,
    ) -> Result<(String, Role), Fault> {
        let invalid = || Fault::login("Invalid credentials");
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if value.split(' ').next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("Custom_Auth")) {
            return Err(Fault { code: 20, ..Fault::login("Invalid auth-type") });
        }
        let (user, password) = basic(headers, schemes).ok_or_else(invalid)?;
        let place = Place { switch: Some(&self.switch), interface: "REST" };
        match self.users.check_at(fabric, &place, peer.address.ip(), &user, &password) {
            Ok(role) => Ok((user, role)),
            Err(Refused::Invalid) => Err(invalid()),
            Err(Refused::Busy) => Err(Fault::unavailable()),
            Err(Refused::TooMany) => Err(Fault::login("Invalid credentials: too many wrong passwords; wait a minute")),
        }
    }
}

impl Interface for Rest {
    fn handle(&mut self, now: Now, request: &Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Response<Bytes> {
        let form = response_form(request.headers());
        let old = path::is_old(request.uri().path());
        match self.answer(now, request, peer, fabric) {
            Ok(answer) => answer.response(form, old),
            Err(fault) => failure(&fault, form),
        }
    }

    fn refusal(headers: &HeaderMap, status: StatusCode, reason: &str) -> Response<Bytes> {
        let fault = match status {
            StatusCode::SERVICE_UNAVAILABLE => Fault::unavailable(),
            StatusCode::PAYLOAD_TOO_LARGE => Fault::too_big(),
            StatusCode::FORBIDDEN => Fault::denied(reason),
            _ => Fault { status: status.as_u16(), ..Fault::failed(reason) },
        };
        failure(&fault, response_form(headers))
    }
}

/// Result of a request.
pub(crate) struct Outcome {
    status: StatusCode,
    /// Elements below the root.
    tree: Option<Vec<Element>>,
    /// Token of a new session.
    token: Option<String>,
    /// Permitted methods.
    allow: Option<&'static str>,
}

impl Outcome {
    fn status(status: StatusCode) -> Outcome {
        Outcome { status, tree: None, token: None, allow: None }
    }

    fn tree(tree: Vec<Element>) -> Outcome {
        Outcome { tree: Some(tree), ..Outcome::status(StatusCode::OK) }
    }

    fn allow(methods: &'static str) -> Outcome {
        Outcome { allow: Some(methods), ..Outcome::status(StatusCode::NO_CONTENT) }
    }

    fn response(self, form: Form, old: bool) -> Response<Bytes> {
        let body = match self.tree {
            None => String::new(),
            Some(tree) => encode(&Element::container("Response", tree), form, old),
        };
        let mut response = response(self.status, form, body);
        if let Some(token) = self.token.and_then(|token| HeaderValue::try_from(token).ok()) {
            let mut token = token;
            token.set_sensitive(true);
            response.headers_mut().insert(header::AUTHORIZATION, token);
        }
        if let Some(methods) = self.allow {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
        }
        response
    }
}

fn encode(root: &Element, form: Form, old: bool) -> String {
    match form {
        Form::Xml => xml::write(root),
        Form::Json => json::write(root, old),
    }
}

fn failure(fault: &Fault, form: Form) -> Response<Bytes> {
    let tree = fault.tree();
    let body = match form {
        Form::Json => json::write(&tree, false),
        Form::Xml => xml::write(&tree).replacen("<errors>", &format!("<errors xmlns=\"{}\">", fault::NAMESPACE), 1),
    };
    response(StatusCode::from_u16(fault.status).unwrap_or(StatusCode::BAD_REQUEST), form, body)
}

fn response(status: StatusCode, form: Form, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let kind = match form {
        Form::Xml => "application/yang-data+xml;version=1.40.0",
        Form::Json => "application/yang-data+json;version=1.40.0",
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn response_form(headers: &HeaderMap) -> Form {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let (json, xml) = (quality(accept, &JSON), quality(accept, &XML));
    // A client that sends JSON and accepts anything receives JSON.
    let is_open = !json.is_named && !xml.is_named && matches!(body_form(headers), Ok(Some(Form::Json)));
    match json.thousandths.cmp(&xml.thousandths) {
        Ordering::Greater => Form::Json,
        Ordering::Equal if json.thousandths > 0 && (json.is_named || is_open) => Form::Json,
        _ => Form::Xml,
    }
}

/// Encoding of the body of a request; `None` if the request does not name it.
fn body_form(headers: &HeaderMap) -> Result<Option<Form>, Fault> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(None) };
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match &*kind {
        "" => Ok(None),
        kind if JSON.contains(&kind) => Ok(Some(Form::Json)),
        kind if XML.contains(&kind) => Ok(Some(Form::Xml)),
        _ => Err(Fault::media_type()),
    }
}

fn body(request: &Request<Bytes>) -> Result<Vec<Element>, Fault> {
    // A page of another site can send other types with the password that a browser keeps. Clients
    // such as pyfos send XML without a type.
    let form = if request.body().is_empty() { None } else { body_form(request.headers())? };
    let text = std::str::from_utf8(request.body()).map_err(|_| Fault::invalid("the body is not UTF-8"))?;
    let json = match form {
        Some(form) => form == Form::Json,
        None => response_form(request.headers()) == Form::Json && !text.trim_start().starts_with('<'),
    };
    let elements = if json { json::read(text) } else { xml::read(text) };
    elements.map_err(Fault::invalid)
}

fn token(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Custom_Basic ")
}

/// Returns whether the interface has such an address. `path` may have a query.
pub fn check_path(path: &str) -> bool {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    Address::of(path, true).is_ok() && path::virtual_fabric(query).is_ok()
}

/// Idle time after which a session ends, at least and at most, in seconds.
const SESSION_TTL: std::ops::RangeInclusive<u32> = 60..=432_000;

fn seconds(number: u32) -> Duration {
    Duration::from_secs(number.into())
}
