//! Connections: time limits, size limits, and the way from a request to its reply.

use super::handler::{Handler, Peer, Reply, is_of_other_site, text};
use super::stream::Feed;
use super::timed::Timed;
use super::workers::Workers;
use crate::Fabric;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, EXPECT, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// Maximum size of a body in bytes.
pub const MAX_BODY: usize = 4 << 20;
/// Size of a body in bytes up to which it is always read.
const SMALL_BODY: u64 = 16 << 10;
/// Number of larger bodies that are read at once; it bounds the memory.
const MAX_LARGE_BODIES: usize = 16;
/// Number of bytes of a refused body that are read after its response.
const MAX_DRAINED: usize = 32 << 20;
/// Time without data after which the rest of a refused body is not read.
const DRAIN_IDLE: Duration = Duration::from_secs(2);
/// Time after which a request without an answer of the fabric is given up.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Time limits for slow clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a whole header, also the idle time between two requests.
    pub header: Duration,
    /// For a whole body.
    pub body: Duration,
    /// For each part of a response that the client has to read.
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let [header, body, write] = [15, 20, 20].map(Duration::from_secs);
        Limits { header, body, write }
    }
}

/// Parts that all connections share.
pub struct Shared {
    limits: Limits,
    /// Threads that answer.
    pub workers: Workers,
    /// Permits for bodies above [`SMALL_BODY`].
    large_bodies: Semaphore,
}

impl Shared {
    /// Wraps the worker threads.
    pub fn new(workers: Workers, limits: Limits) -> Shared {
        Shared { limits, workers, large_bodies: Semaphore::new(MAX_LARGE_BODIES) }
    }
}

/// Serves one connection until it ends.
pub async fn serve<S>(stream: S, peer: Peer, handler: Arc<dyn Handler>, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Limits { header, write, .. } = shared.limits;
    let service = service_fn(move |request| {
        let (handler, shared) = (handler.clone(), shared.clone());
        async move { Ok::<_, Infallible>(respond(request, peer, handler, &shared).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(header).max_buf_size(64 << 10).half_close(false);
    let io = TokioIo::new(Timed::new(stream, write));
    // An error concerns this client only: it disconnected, was too slow, or sent no HTTP.
    let _ = builder.serve_connection(io, service).await;
}

async fn respond(
    request: Request<Incoming>,
    peer: Peer,
    handler: Arc<dyn Handler>,
    shared: &Shared,
) -> Response<ReplyBody> {
    let (head, mut body) = request.into_parts();
    if is_of_other_site(&head.method, &head.headers, &peer) {
        drain(&head, body, shared.limits.body);
        return refuse(&*handler, &head, StatusCode::FORBIDDEN, "the request comes from another site");
    }
    let bytes = match collect(&head, &mut body, shared).await {
        Ok(bytes) => bytes,
        Err((status, reason)) => {
            if status != StatusCode::REQUEST_TIMEOUT {
                drain(&head, body, shared.limits.body);
            }
            return refuse(&*handler, &head, status, reason);
        }
    };
    let copy = || {
        let mut copy = Request::new(());
        *copy.method_mut() = head.method.clone();
        *copy.uri_mut() = head.uri.clone();
        *copy.headers_mut() = head.headers.clone();
        copy.into_parts().0
    };
    let request = Request::from_parts(copy(), bytes);
    if let Some(reply) = handler.at_once(&request, &peer) {
        return reply.into();
    }
    let (reply, receiver) = oneshot::channel();
    let room = handler.clone();
    let job = move |fabric: &mut dyn Fabric| {
        // A closed receiver means that the client has disconnected.
        if !reply.is_closed() {
            let _ = reply.send(room.answer(request, &peer, fabric));
        }
    };
    if !shared.workers.submit(Box::new(job)) {
        return refuse(&*handler, &head, StatusCode::SERVICE_UNAVAILABLE, "too many requests wait; try again");
    }
    match timeout(ANSWER_LIMIT, receiver).await {
        Ok(Ok(reply)) => reply.into(),
        Ok(Err(_)) => {
            Reply::Whole(text(StatusCode::INTERNAL_SERVER_ERROR, "internal error; see the log of the instance")).into()
        }
        Err(_) => refuse(&*handler, &head, StatusCode::SERVICE_UNAVAILABLE, "the fabric does not answer; try again"),
    }
}

/// Reads a body. On failure returns the status and the reason.
async fn collect(head: &Parts, body: &mut Incoming, shared: &Shared) -> Result<Bytes, (StatusCode, &'static str)> {
    const TOO_LARGE: (StatusCode, &str) = (StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 4 MiB");
    let hint = body.size_hint();
    if hint.lower() > MAX_BODY as u64 {
        return Err(TOO_LARGE);
    }
    let _permit = match hint.upper() {
        Some(length) if length <= SMALL_BODY => None,
        _ => match shared.large_bodies.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => return Err((StatusCode::SERVICE_UNAVAILABLE, "too many large requests; try again")),
        },
    };
    match timeout(shared.limits.body, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(TOO_LARGE),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body is not complete")),
        Err(_) => {
            tracing::debug!(method = %head.method, "a client has sent its body too slowly");
            Err((StatusCode::REQUEST_TIMEOUT, "the body arrived too slowly"))
        }
    }
}

/// Reads the rest of a refused body while the response is sent. A client that sends its whole body
/// before it reads would otherwise lose the response, because the system resets a connection that
/// is closed with unread data (RFC 9112, section 9.6). Bytes and time are bounded.
fn drain(head: &Parts, mut body: Incoming, limit: Duration) {
    // A client that waits for `100 Continue` has sent nothing, and the response ends its request.
    if body.is_end_stream() || head.headers.contains_key(EXPECT) {
        return;
    }
    tokio::spawn(async move {
        let rest = async {
            let mut left = MAX_DRAINED;
            while let Ok(Some(Ok(frame))) = timeout(DRAIN_IDLE, body.frame()).await {
                let length = frame.data_ref().map_or(0, Bytes::len);
                let Some(rest) = left.checked_sub(length) else { break };
                left = rest;
            }
        };
        let _ = timeout(limit, rest).await;
    });
}

fn refuse(handler: &dyn Handler, head: &Parts, status: StatusCode, reason: &str) -> Response<ReplyBody> {
    let mut response = handler.refuse(head, status, reason);
    let headers = response.headers_mut();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    } else {
        // The rest of the body is not answered.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Reply::Whole(response).into()
}

/// Body of every response.
pub enum ReplyBody {
    Whole(Option<Bytes>),
    Stream(Feed),
}

impl From<Reply> for Response<ReplyBody> {
    fn from(reply: Reply) -> Response<ReplyBody> {
        match reply {
            Reply::Whole(response) => response.map(|bytes| ReplyBody::Whole(Some(bytes).filter(|it| !it.is_empty()))),
            Reply::Stream(response, feed) => response.map(|()| ReplyBody::Stream(feed)),
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            ReplyBody::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            ReplyBody::Stream(feed) => Pin::new(feed).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ReplyBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            ReplyBody::Stream(_) => SizeHint::default(),
        }
    }
}
