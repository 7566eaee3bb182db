//! Limits of the server: bodies, slow and idle clients, defects of a room, TLS.

use crate::client::{Fake, connect, exchange, request, status};
use sanloom_api::control::{Answer, Request};
use sanloom_surface::Fabric;
use sanloom_surface::server::http::{Response, StatusCode};
use sanloom_surface::server::{Bytes, Handler, Limits, Listen, MAX_BODY, Peer, Reply, Server, stream, text, tls};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Sends back the path and the length of the body.
struct Echo {
    /// A request of `/wait` waits for a message, and reports that it does.
    waits: Mutex<Receiver<()>>,
    waiting: Sender<()>,
}

impl Handler for Echo {
    fn answer(
        &self,
        request: sanloom_surface::server::http::Request<Bytes>,
        peer: &Peer,
        fabric: &mut dyn Fabric,
    ) -> Reply {
        assert!(peer.local.ip().is_loopback());
        match request.uri().path() {
            "/defect" => panic!("a defect, on purpose"),
            "/ask" => {
                let answer = fabric.ask(Request::Metrics).unwrap();
                text(StatusCode::OK, &format!("{answer:?}")).into()
            }
            "/wait" => {
                self.waiting.send(()).unwrap();
                let _ = self.waits.lock().unwrap_or_else(PoisonError::into_inner).recv();
                text(StatusCode::OK, "waited").into()
            }
            "/stream" => {
                let (writer, feed) = stream::pair();
                thread::spawn(move || {
                    for number in 0..3 {
                        assert!(writer.queue(Bytes::from(format!("part {number}\n"))));
                    }
                });
                Reply::Stream(Response::new(()), feed)
            }
            path => text(StatusCode::OK, &format!("{path} {} {}", request.body().len(), peer.tls)).into(),
        }
    }
}

/// A server with one room, the channel that ends `/wait`, and that which reports it.
fn echo() -> (Server, SocketAddr, Sender<()>, Receiver<()>) {
    echo_within(Limits::default())
}

fn echo_within(limits: Limits) -> (Server, SocketAddr, Sender<()>, Receiver<()>) {
    let (release, waits) = channel();
    let (waiting, reports) = channel();
    let handler = Arc::new(Echo { waits: Mutex::new(waits), waiting });
    let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), tls: None, handler };
    let server = Server::start_with(vec![listen], limits, || Box::new(Fake(|_| Answer::Done))).unwrap();
    let address = server.addresses()[0];
    (server, address, release, reports)
}

#[test]
fn a_room_receives_the_raw_path_and_the_body_of_any_method() {
    let (_server, address, ..) = echo();
    assert!(
        request(address, "GET /fibrechannel/name/0%2f1?vf-id=1", &[], "")
            .ends_with("/fibrechannel/name/0%2f1 0 false\n")
    );
    for method in ["GET", "POST", "PATCH", "DELETE"] {
        assert!(request(address, &format!("{method} /x"), &[], "hello").ends_with("/x 5 false\n"));
    }
    assert!(request(address, "GET /ask", &[], "").ends_with("Done\n"));
    let chunked = b"POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    assert!(exchange(address, chunked).ends_with("/x 5 false\n"));
    assert!(request(address, "GET /stream", &[], "").contains("part 2"));
}

#[test]
fn a_request_that_a_page_of_another_site_has_caused_reaches_no_room() {
    let (_server, address, ..) = echo();
    let own = format!("Origin: http://{address}");
    let other_scheme = own.replace("http:", "https:");
    let evil = "Origin: http://evil.example";
    let (cross, link) = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate");
    for (method, fields, expected) in [
        ("POST", &[][..], 200),
        ("POST", &[&*own, "Sec-Fetch-Site: same-origin"], 200),
        ("POST", &[evil], 403),
        ("GET", &[evil], 403),
        ("POST", &["Origin: null"], 403),
        ("POST", &[&*other_scheme], 403),
        ("POST", &[&*own, evil], 403),
        ("PATCH", &[cross], 403),
        ("GET", &[cross], 403),
        // A user has followed a link in another page, or a page has sent a form.
        ("GET", &[cross, link], 200),
        ("POST", &[cross, link], 403),
    ] {
        let response = request(address, &format!("{method} /x"), fields, "hello");
        assert_eq!(status(&response), expected, "{method} {fields:?}: {response}");
    }
}

#[test]
fn a_body_above_4_mib_is_refused_and_one_of_4_mib_is_not() {
    let (_server, address, ..) = echo();
    assert_eq!(status(&request(address, "POST /x", &[], &"x".repeat(MAX_BODY))), 200);
    let declared = format!("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", MAX_BODY + 1);
    assert_eq!(status(&exchange(address, declared.as_bytes())), 413);
    // Without a length, the limit is found while the body is read.
    let mut stream = connect(address);
    stream.write_all(b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    let chunk = [&b"10000\r\n"[..], &[b'x'; 0x10000], b"\r\n"].concat();
    while stream.write_all(&chunk).is_ok() {}
    assert_eq!(status(&request(address, "GET /x", &[], "")), 200);
}

#[test]
fn a_client_that_sends_a_whole_body_before_it_reads_receives_the_refusal() {
    let (_server, address, ..) = echo();
    let chunked = |length: usize| {
        let chunks = [format!("{length:x}\r\n").into_bytes(), vec![b'x'; length], b"\r\n0\r\n\r\n".to_vec()];
        ("Transfer-Encoding: chunked".to_owned(), chunks.concat())
    };
    let declared = |length: usize| (format!("Content-Length: {length}"), vec![b'x'; length]);
    let (over, more) = (MAX_BODY + 1, 6 << 20);
    for (origin, expected, (length, body)) in [
        ("", 413, declared(over)),
        ("", 413, declared(more)),
        ("", 413, chunked(over)),
        ("", 413, chunked(more)),
        ("Origin: http://evil\r\n", 403, declared(more)),
    ] {
        let mut stream = connect(address);
        let head = format!("POST /x HTTP/1.1\r\nHost: a\r\n{origin}{length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(status(&answer), expected, "{length}: {answer}");
    }
    // A client that waits for a permission to send receives the refusal instead.
    let waits = format!("POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {over}\r\n\r\n");
    assert_eq!(status(&exchange(address, waits.as_bytes())), 413);
}

#[test]
fn a_defect_of_a_room_concerns_one_request() {
    let (_server, address, ..) = echo();
    for _ in 0..16 {
        assert_eq!(status(&request(address, "GET /defect", &[], "")), 500);
    }
    assert_eq!(status(&request(address, "GET /ask", &[], "")), 200);
}

#[test]
fn a_request_that_finds_the_queue_full_is_refused_at_once() {
    let (_server, address, release, reports) = echo();
    let get = b"GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut waiting: Vec<TcpStream> = Vec::new();
    // Threads, then places in the queue, then no place.
    let refused = (0..1000).any(|_| {
        let mut stream = connect(address);
        stream.write_all(get).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut start = [0; 12];
        let is_refused = stream.read_exact(&mut start).is_ok();
        if is_refused {
            assert_eq!(&start, b"HTTP/1.1 503");
        }
        waiting.push(stream);
        is_refused
    });
    assert!(refused && waiting.len() < 500, "{} requests", waiting.len());
    reports.recv().unwrap();
    drop(release);
    waiting.pop();
    for mut stream in waiting {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("waited\n"), "{answer}");
    }
}

#[test]
fn idle_and_slow_clients_do_not_exclude_others() {
    let second = Duration::from_secs(1);
    let (_server, address, ..) = echo_within(Limits { header: second, body: second, write: second });
    let idle: Vec<TcpStream> = (0..1000).map(|_| connect(address)).collect();
    let slow: Vec<TcpStream> = (0..100)
        .map(|number| {
            let mut stream = connect(address);
            let part: &[u8] = match number % 2 {
                0 => b"GET /x HTTP/1.1\r\nHo",
                _ => b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx",
            };
            stream.write_all(part).unwrap();
            stream
        })
        .collect();
    for _ in 0..100 {
        assert_eq!(status(&request(address, "GET /ask", &[], "")), 200);
    }
    // A slow client is disconnected after a time.
    let mut answer = String::new();
    let _ = (&slow[1]).read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    for mut quiet in [&slow[0], &idle[0]] {
        let ended = quiet.read_to_end(&mut Vec::new());
        assert!(!ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "it is still connected");
    }
    assert_eq!(status(&request(address, "GET /ask", &[], "")), 200);
}

#[test]
fn a_server_that_is_dropped_closes_its_connections_and_frees_its_address() {
    let (server, address, ..) = echo();
    let mut stream = connect(address);
    drop(server);
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    std::net::TcpListener::bind(address).unwrap();
}

#[test]
fn an_address_in_use_is_named() {
    let (_server, address, ..) = echo();
    let (waiting, _reports) = channel();
    let handler = Arc::new(Echo { waits: Mutex::new(channel().1), waiting });
    let again = Server::start(vec![Listen { address, tls: None, handler }], || Box::new(Fake(|_| Answer::Done)));
    let error = again.err().unwrap().to_string();
    assert!(error.contains(&format!("cannot listen at {address}")), "{error}");
}

#[test]
fn https_is_served_with_the_stored_certificate_and_plain_http_is_not_answered_there() {
    let folder = std::env::temp_dir().join(format!("sanloom-https-{}", std::process::id()));
    let identity = tls::identity(&folder, &["localhost".to_owned()], &["127.0.0.1".parse().unwrap()]).unwrap();
    let (waiting, _reports) = channel();
    let handler = Arc::new(Echo { waits: Mutex::new(channel().1), waiting });
    let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), tls: Some(identity), handler };
    let server = Server::start(vec![listen], || Box::new(Fake(|_| Answer::Done))).unwrap();
    let address = server.addresses()[0];
    assert!(!exchange(address, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").contains("HTTP/1.1 200"));
    let body =
        over_tls(address, &folder.join("surface.pem"), "GET /secret HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(body.ends_with("/secret 0 true\n"), "{body}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Sends a request over TLS to a server whose certificate is in the file.
fn over_tls(address: SocketAddr, trusted: &std::path::Path, request: &str) -> String {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let mut client = rustls::ClientConnection::new(Arc::new(config), address.ip().into()).unwrap();
    let mut stream = connect(address);
    let mut tls = rustls::Stream::new(&mut client, &mut stream);
    tls.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = tls.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}
