//! The interface of the page to hostile clients: hosts, origins, logins, roles, bodies.

use crate::client::{Fake, connect, page, request, status};
use sanloom_api::control::{Answer, Request};
use sanloom_api::view::{PortRow, PortsView, Table, View};
use sanloom_surface::Fabric;
use sanloom_surface::server::users::{Role, Users};
use sanloom_surface::web::Access;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

fn answer(request: Request) -> Answer {
    match request {
        Request::Show { .. } => {
            let ports = vec![PortRow { port: "sw1:0".to_owned(), ..PortRow::default() }];
            Answer::View(View::new("lab", 1.0, Table::Ports(PortsView { ports })))
        }
        Request::Metrics => Answer::Metrics { text: "# TYPE x counter\nx_total 1\n# EOF\n".to_owned() },
        _ => Answer::Done,
    }
}

fn fabric() -> Box<dyn Fabric> {
    Box::new(Fake(answer))
}

const JSON: &str = "Content-Type: application/json";
const STOP: &str = r#"{"request":"stop"}"#;

#[test]
fn requests_of_other_sites_are_refused() {
    let (_server, address) = page(Access::Open, fabric);
    let own = format!("Origin: http://{address}");
    let post = |fields: &[&str]| status(&request(address, "POST /api/v1/request", fields, STOP));
    assert_eq!(post(&[JSON]), 200);
    assert_eq!(post(&[JSON, &own, "Sec-Fetch-Site: same-origin"]), 200);
    assert_eq!(post(&[JSON, "Origin: http://evil.example"]), 403);
    assert_eq!(post(&[JSON, "Origin: null"]), 403);
    assert_eq!(post(&[JSON, &own.replace("http:", "https:")]), 403);
    assert_eq!(post(&[JSON, "Sec-Fetch-Site: cross-site"]), 403);
    assert_eq!(post(&["Content-Type: text/plain"]), 415);
    // A foreign name that resolves to this address.
    assert_eq!(post(&[JSON, "Host: evil.example"]), 421);
    for path in ["/", "/api/v1/show/ports", "/metrics", "/page/main.js"] {
        assert_eq!(status(&request(address, &format!("GET {path}"), &["Host: evil.example"], "")), 421, "{path}");
        let here = request(address, &format!("GET {path}"), &[], "");
        assert_eq!(status(&here), 200, "{path}");
        assert!(here.contains("content-security-policy: default-src 'self';"), "{here}");
        assert!(!here.to_lowercase().contains("access-control-allow"), "{here}");
    }
}

#[test]
fn nothing_but_the_files_of_the_page_is_served_without_login() {
    let (users, password) = Users::with_random_password().unwrap();
    let (_server, address) = page(Access::Users(Arc::new(users)), fabric);
    for path in ["/api/v1/me", "/api/v1/show/ports", "/api/v1/graph", "/api/v1/events", "/metrics", "/api/v1/none"] {
        assert_eq!(status(&request(address, &format!("GET {path}"), &[], "")), 401, "{path}");
    }
    assert_eq!(status(&request(address, "POST /api/v1/request", &[JSON], STOP)), 401);
    assert_eq!(status(&request(address, "GET /", &[], "")), 200);
    assert_eq!(status(&request(address, "GET /page/../Cargo.toml", &[], "")), 404);
    let body = format!(r#"{{"user":"admin","password":"{password}"}}"#);
    let response = request(address, "POST /api/v1/login", &[JSON], &body);
    let cookie = response.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    let cookie = format!("Cookie: a=b; {}", cookie.split(';').next().unwrap());
    assert!(request(address, "GET /api/v1/me", &[&cookie], "").contains(r#""role":"administer""#));
    assert_eq!(status(&request(address, "POST /api/v1/logout", &[JSON, &cookie], "{}")), 200);
    assert_eq!(status(&request(address, "GET /api/v1/me", &[&cookie], "")), 401);
}

#[test]
fn a_role_permits_its_requests_only() {
    let mut users = Users::new().unwrap();
    users.set("v", Role::View, "password").unwrap();
    users.set("o", Role::Operate, "password").unwrap();
    let (_server, address) = page(Access::Users(Arc::new(users)), fabric);
    let (view, operate) = ("Authorization: Basic djpwYXNzd29yZA==", "Authorization: Basic bzpwYXNzd29yZA==");
    let port = r#"{"request":"port","port":"sw1:0","enabled":false}"#;
    let post = |field: &str, body: &str| status(&request(address, "POST /api/v1/request", &[JSON, field], body));
    assert_eq!(status(&request(address, "GET /api/v1/show/ports", &[view], "")), 200);
    assert_eq!((post(view, port), post(operate, port)), (403, 200));
    assert_eq!((post(view, STOP), post(operate, STOP)), (403, 403));
    assert_eq!(status(&request(address, "GET /api/v1/capture/sw1:0.pcapng", &[view], "")), 403);
}

#[test]
fn a_flood_of_logins_is_refused_and_open_sessions_go_on() {
    let (users, password) = Users::with_random_password().unwrap();
    let (_server, address) = page(Access::Users(Arc::new(users)), fabric);
    let login = |password: &str| {
        let body = format!(r#"{{"user":"admin","password":"{password}"}}"#);
        request(address, "POST /api/v1/login", &[JSON], &body)
    };
    let open = login(&password);
    let cookie = open.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let answers: Vec<u16> = (0..100).map(|_| status(&login("wrong password"))).collect();
    assert!(answers[..10].iter().all(|code| *code == 401) && answers[10..].iter().all(|code| *code == 429));
    assert_eq!(status(&request(address, "GET /api/v1/show/ports", &[&cookie], "")), 200);
}

#[test]
fn invalid_bodies_and_names_are_answered_with_the_reason() {
    let (_server, address) = page(Access::Open, fabric);
    for body in ["", "{", "[]", "null", r#"{"request":"nothing"}"#, "\u{0}", r#"{"request":"show"}"#] {
        let response = request(address, "POST /api/v1/request", &[JSON], body);
        assert_eq!(status(&response), 400, "{response}");
        assert!(response.contains("no valid request"), "{response}");
    }
    let deep = "[".repeat(1 << 20);
    assert_eq!(status(&request(address, "POST /api/v1/request", &[JSON], &deep)), 400);
    for path in ["/api/v1/show/none", "/api/v1/show/", "/api/v2/show", "/api/v1/capture/sw1", "/none", "/page/none.js"]
    {
        assert_eq!(status(&request(address, &format!("GET {path}"), &[], "")), 404, "{path}");
    }
    assert_eq!(status(&request(address, "GET /api/v1/show/ports?switch=%ff", &[], "")), 400);
    assert_eq!(status(&request(address, "DELETE /api/v1/request", &[JSON], "")), 405);
}

#[test]
fn metrics_have_the_format_that_the_client_accepts() {
    let (_server, address) = page(Access::Open, fabric);
    let plain = request(address, "GET /metrics", &["Accept: */*"], "");
    assert!(plain.contains("text/plain; version=0.0.4") && plain.ends_with("# TYPE x_total counter\nx_total 1\n"));
    let open = request(address, "GET /metrics", &["Accept: application/openmetrics-text;version=1.0.0"], "");
    assert!(open.contains("application/openmetrics-text; version=1.0.0") && open.ends_with("# EOF\n"));
}

#[test]
fn a_file_that_the_browser_has_is_not_sent_again() {
    let (_server, address) = page(Access::Open, fabric);
    let first = request(address, "GET /page/main.js", &[], "");
    let tag = first.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let again = request(address, "GET /page/main.js", &[&format!("If-None-Match: {tag}")], "");
    assert_eq!(status(&again), 304);
    assert!(again.ends_with("\r\n\r\n"), "{again}");
}

#[test]
fn at_most_256_pages_receive_events_and_closed_ones_free_their_place() {
    let (_server, address) = page(Access::Open, fabric);
    let streams: Vec<_> = (0..300).map(|_| subscribe(address)).collect();
    let served = streams.iter().filter(|(first, _)| first.starts_with("HTTP/1.1 200")).count();
    assert_eq!(served, 256);
    drop(streams);
    // The server notices that the clients are gone when it sends the next rates.
    let again = std::iter::repeat_with(|| subscribe(address).0).take(1000);
    assert!(again.into_iter().any(|first| first.starts_with("HTTP/1.1 200")));
}

/// Opens a stream of events and returns the begin of its response.
fn subscribe(address: SocketAddr) -> (String, std::net::TcpStream) {
    let mut stream = connect(address);
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut start = [0; 64];
    let length = stream.read(&mut start).unwrap();
    (String::from_utf8_lossy(&start[..length]).into_owned(), stream)
}
