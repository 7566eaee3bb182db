//! Interface between the server and its rooms: [`Handler`], [`Peer`], [`Reply`].

use super::stream::Feed;
use crate::Fabric;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use std::net::SocketAddr;

/// Both ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Address of the client.
    pub address: SocketAddr,
    /// Address at which the client connected.
    pub local: SocketAddr,
    /// True if the connection is encrypted.
    pub tls: bool,
}

/// Reply to a request.
#[derive(Debug)]
pub enum Reply {
    /// A response with its whole body.
    Whole(Response<Bytes>),
    /// A response whose body is written while the client reads it.
    Stream(Response<()>, Feed),
}

/// Room of the server: answers the requests that arrive at one or several addresses.
///
/// The path of a request is raw: `%2F` is not decoded.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request that needs neither the fabric nor much time. The thread of all connections
    /// calls it. With `None`, the request goes to [`answer`](Handler::answer).
    fn at_once(&self, request: &Request<Bytes>, peer: &Peer) -> Option<Reply> {
        let _ = (request, peer);
        None
    }

    /// Answers a request. One of a few worker threads calls it; it may wait for the fabric.
    fn answer(&self, request: Request<Bytes>, peer: &Peer, fabric: &mut dyn Fabric) -> Reply;

    /// Response to a request that the server refuses: 403, 408, 413, 500 or 503.
    fn refuse(&self, head: &Parts, status: StatusCode, reason: &str) -> Response<Bytes> {
        let _ = head;
        text(status, reason)
    }
}

/// Returns whether a page of another site has caused the request. A browser sends the address of
/// that page as `Origin`, or `Sec-Fetch-Site: cross-site`; programs send neither. A link in another
/// page that a user follows is no such request.
pub fn is_of_other_site(method: &Method, headers: &HeaderMap, peer: &Peer) -> bool {
    let host = headers.get(HOST).map_or(&b""[..], HeaderValue::as_bytes);
    let own = [if peer.tls { &b"https://"[..] } else { b"http://" }, host].concat();
    let has = |name: &str, value: &str| headers.get_all(name).iter().any(|field| field.as_bytes() == value.as_bytes());
    let is_link = matches!(*method, Method::GET | Method::HEAD) && has("sec-fetch-mode", "navigate");
    headers.get_all(ORIGIN).iter().any(|origin| origin.as_bytes() != own)
        || has("sec-fetch-site", "cross-site") && !is_link
}

/// Response with a line of text.
pub fn text(status: StatusCode, line: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(format!("{line}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

impl From<Response<Bytes>> for Reply {
    fn from(response: Response<Bytes>) -> Reply {
        Reply::Whole(response)
    }
}
