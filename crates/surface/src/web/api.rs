//! Requests below `/api/v1` and `/metrics`.

use super::login::PLACE;
use super::{Web, capture, decode, zones};
use crate::Busy;
use crate::Fabric;
use crate::server::http::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use crate::server::http::{Method, Request, Response, StatusCode};
use crate::server::sessions::Session;
use crate::server::users::Role;
use crate::server::{Bytes, Peer, Reply};
use sanloom_api::control::{self, Answer, ErrorKind, RequestUser, ShowTable, ZoneAction};
use sanloom_api::metrics::Format;
use sanloom_api::volume::VolumeAction;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Response to a request that is refused.
pub(super) type Refusal = Box<Response<Bytes>>;

impl Web {
    pub(super) fn api(&self, request: Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Reply {
        let path = request.uri().path().to_owned();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let is_post = request.method() == Method::POST;
        match path.as_str() {
            "/api/v1/login" if is_post => return self.login(&request, peer, fabric).into(),
            "/api/v1/logout" if is_post => return self.logout(&request, peer, fabric).into(),
            "/api/v1/me" if is_read => return self.me(&request, peer, fabric).into(),
            _ => {}
        }
        let session = match self.session(&request, peer, fabric) {
            Ok(session) => session,
            Err(response) => return Reply::Whole(*response),
        };
        let known = |methods: &'static str| -> Reply {
            let mut response = failed(StatusCode::METHOD_NOT_ALLOWED, &format!("use {methods}"));
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
            response.into()
        };
        match path.strip_prefix("/api/v1/") {
            Some("request") if is_post => match parse(request.body()) {
                Ok(body) => self.request(body, &session, peer, fabric).into(),
                Err(response) => Reply::Whole(*response),
            },
            Some("decode") if is_post => decoded_frames(request.body()).into(),
            Some("request" | "decode") => known("POST"),
            Some("login" | "logout") => known("POST"),
            _ if !is_read => known("GET, HEAD"),
            Some("graph") => match fabric.graph() {
                Ok(graph) => json(StatusCode::OK, &*graph).into(),
                Err(busy) => unavailable(busy).into(),
            },
            Some("events") => match self.hub.subscribe() {
                Some(feed) => Reply::Stream(stream_of("text/event-stream"), feed),
                None => failed(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open; close one").into(),
            },
            Some(rest) if rest.starts_with("results/") => match self.result(rest) {
                Some(bytes) => typed(bytes, "application/json").into(),
                None => failed(StatusCode::NOT_FOUND, "no such run").into(),
            },
            Some(rest) => match (rest.strip_prefix("show/"), rest.strip_prefix("capture/")) {
                (Some(table), _) => show(table, request.uri().query(), fabric).into(),
                (_, Some(file)) if session.role >= Role::Operate => capture::start(file, fabric),
                (_, Some(_)) => forbidden(Role::Operate).into(),
                _ => failed(StatusCode::NOT_FOUND, "no such resource").into(),
            },
            None if path == "/metrics" => metrics(&request, fabric).into(),
            None => failed(StatusCode::NOT_FOUND, "no such resource").into(),
        }
    }

    fn result(&self, path: &str) -> Option<Bytes> {
        let number: usize = path.strip_prefix("results/")?.parse().ok()?;
        self.shown().results.get(number).cloned()
    }

    fn request(
        &self,
        mut request: control::Request,
        session: &Session,
        peer: &Peer,
        fabric: &mut dyn Fabric,
    ) -> Response<Bytes> {
        let needed = permission(&request);
        if session.role < needed {
            return forbidden(needed);
        }
        if needed > Role::View {
            // The kind only: a lab file may hold secrets.
            let kind = serde_json::to_value(&request).ok();
            let kind = kind.as_ref().and_then(|value| value.get("request")).and_then(|kind| kind.as_str());
            tracing::info!(user = session.user, request = kind.unwrap_or_default(), "request of the page");
        }
        set_user(&mut request, &session.user);
        let outcome = match request {
            control::Request::Zone { switch, by, action } => zones::ask(session, peer, (switch, by, action), fabric),
            request => fabric.ask(request),
        };
        match outcome {
            Ok(answer) => {
                self.hub.wake();
                json(status_of(&answer), &answer)
            }
            Err(busy) => unavailable(busy),
        }
    }
}

/// Role that a request needs.
pub fn permission(request: &control::Request) -> Role {
    use control::Request as R;
    match request {
        R::Show { .. } | R::Events { .. } | R::Metrics => Role::View,
        R::Volume { action: VolumeAction::Show { .. } } => Role::View,
        R::Zone { action, .. } => match action {
            ZoneAction::Show | ZoneAction::Preview { .. } => Role::View,
            _ => Role::Operate,
        },
        R::Port { .. } | R::Ports { .. } | R::Switch { .. } | R::PortGroup { .. } => Role::Operate,
        R::Inject { .. } | R::ClearInjections { .. } => Role::Operate,
        // Such requests write files of the machine, or read files that a lab names.
        R::Capture { .. } | R::Trace { .. } | R::Apply { .. } => Role::Administer,
        R::Fcoe(_) | R::Volume { .. } | R::Log { .. } | R::Stop => Role::Administer,
    }
}

/// Sets the user of a request for the event log: the one who has logged in, whatever the client has
/// sent.
fn set_user(request: &mut control::Request, user: &str) {
    use control::Request as R;
    if let R::Port { by, .. } | R::Ports { by, .. } | R::Switch { by, .. } | R::Zone { by, .. } = request {
        *by = Some(RequestUser { user: user.to_owned(), interface: PLACE.interface.to_owned() });
    }
}

fn decoded_frames(body: &[u8]) -> Response<Bytes> {
    match parse(body) {
        Ok(captured) => match decode::decode(&captured) {
            Ok(decoded) => json(StatusCode::OK, &decoded),
            Err(reason) => failed(StatusCode::BAD_REQUEST, &reason),
        },
        Err(response) => *response,
    }
}

fn show(table: &str, query: Option<&str>, fabric: &mut dyn Fabric) -> Response<Bytes> {
    let table = match serde_json::from_value::<ShowTable>(json!(table)) {
        Ok(table) => table,
        Err(error) => return failed(StatusCode::NOT_FOUND, &error.to_string()),
    };
    let switch = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("switch="));
    let switch = match switch.map(decoded) {
        Some(None) => return failed(StatusCode::BAD_REQUEST, "the name of the switch is not valid"),
        Some(name) => name,
        None => None,
    };
    match fabric.ask(control::Request::Show { table, switch }) {
        Ok(Answer::View(view)) => json(StatusCode::OK, &view),
        Ok(answer) => json(status_of(&answer), &answer),
        Err(busy) => unavailable(busy),
    }
}

fn metrics(request: &Request<Bytes>, fabric: &mut dyn Fabric) -> Response<Bytes> {
    let fields = request.headers().get_all(ACCEPT).iter().filter_map(|field| field.to_str().ok());
    let format = Format::accepted(&fields.collect::<Vec<_>>().join(","));
    match fabric.ask(control::Request::Metrics) {
        Ok(Answer::Metrics { text }) => typed(Bytes::from(format.of(text)), format.content_type()),
        Ok(answer) => json(status_of(&answer), &answer),
        Err(busy) => unavailable(busy),
    }
}

fn status_of(answer: &Answer) -> StatusCode {
    match answer {
        Answer::Failed(error) if error.kind == ErrorKind::Environment => StatusCode::INTERNAL_SERVER_ERROR,
        Answer::Failed(_) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// Decodes `%2F` and the like. Returns `None` if the text is not valid.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    sanloom_api::json::from_slice(body)
        .map_err(|error| failed(StatusCode::BAD_REQUEST, &format!("the body is no valid request: {error}")).into())
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Bytes> {
    // A value of the interface always has a JSON form.
    let mut response = typed(Bytes::from(serde_json::to_vec(value).unwrap_or_default()), "application/json");
    *response.status_mut() = status;
    response
}

fn typed(bytes: Bytes, kind: &'static str) -> Response<Bytes> {
    let mut response = Response::new(bytes);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn failed(status: StatusCode, reason: &str) -> Response<Bytes> {
    json(status, &Answer::failed(reason))
}

fn forbidden(role: Role) -> Response<Bytes> {
    failed(StatusCode::FORBIDDEN, &format!("the request needs the role {role}"))
}

pub(super) fn unavailable(busy: Busy) -> Response<Bytes> {
    failed(StatusCode::SERVICE_UNAVAILABLE, &busy.to_string())
}

pub(super) fn stream_of(kind: &'static str) -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_decoded_strictly() {
        assert_eq!(decoded("sw1%3A0").as_deref(), Some("sw1:0"));
        assert_eq!(decoded("0%2f1").as_deref(), Some("0/1"));
        for wrong in ["%", "%4", "%zz", "%+1", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_client_cannot_choose_the_user_of_the_event_log() {
        let by = r#""by":{"user":"eve","interface":"console"}"#;
        let requests = [
            format!(r#"{{"request":"port","port":"sw1:0","enabled":false,{by}}}"#),
            format!(r#"{{"request":"ports","changes":[{{"port":"sw1:0","enabled":false}}],{by}}}"#),
            format!(r#"{{"request":"switch","switch":"sw1","enabled":false,{by}}}"#),
            format!(r#"{{"request":"zone","do":"commit",{by}}}"#),
            r#"{"request":"port","port":"sw1:0","enabled":false}"#.to_owned(),
        ];
        for text in requests {
            let mut request = serde_json::from_str(&text).unwrap();
            set_user(&mut request, "jane");
            let sent = serde_json::to_value(&request).unwrap();
            assert_eq!(sent["by"], json!({"user": "jane", "interface": "HTTP"}), "{text}");
        }
    }

    #[test]
    fn only_requests_that_change_nothing_need_the_role_view() {
        let request = |text: &str| permission(&serde_json::from_str(text).unwrap());
        assert_eq!(request(r#"{"request":"show","table":"ports"}"#), Role::View);
        assert_eq!(request(r#"{"request":"zone","do":"preview","edits":[]}"#), Role::View);
        assert_eq!(request(r#"{"request":"zone","do":"commit"}"#), Role::Operate);
        assert_eq!(request(r#"{"request":"zone","do":"edit_and_commit","edits":[]}"#), Role::Operate);
        assert_eq!(request(r#"{"request":"port","port":"sw1:0","enabled":false}"#), Role::Operate);
        assert_eq!(request(r#"{"request":"ports","changes":[]}"#), Role::Operate);
        assert_eq!(request(r#"{"request":"capture","link":"a","file":"/etc/passwd"}"#), Role::Administer);
        assert_eq!(request(r#"{"request":"stop"}"#), Role::Administer);
    }
}
