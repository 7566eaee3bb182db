//! Bodies that are written while the client reads them: [`Writer`] and [`Feed`].

use hyper::body::{Body, Bytes, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Maximum number of bytes that wait for a client.
const MAX_QUEUED: usize = 1 << 20;

#[derive(Debug, Default)]
struct State {
    /// Newest unsent state of each kind.
    latest: Vec<(&'static str, Bytes)>,
    /// Unsent parts, in order.
    queue: VecDeque<Bytes>,
    /// Number of bytes in `queue`.
    queued: usize,
    closed: bool,
    abandoned: bool,
    waker: Option<Waker>,
}

#[derive(Debug, Default)]
struct Shared(Mutex<State>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let outcome = change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        outcome
    }
}

/// Creates a body and its writer.
pub fn pair() -> (Writer, Feed) {
    let shared = Arc::new(Shared::default());
    (Writer(shared.clone()), Feed(shared))
}

/// Writer of a [`Feed`]. No method waits. The body ends when the writer is dropped.
#[derive(Debug)]
pub struct Writer(Arc<Shared>);

impl Writer {
    /// Sends a state. It replaces the state of the same kind that the client has not read yet.
    pub fn latest(&self, kind: &'static str, bytes: Bytes) {
        self.0.change(|state| match state.latest.iter_mut().find(|(of, _)| *of == kind) {
            Some((_, old)) => *old = bytes,
            None => state.latest.push((kind, bytes)),
        });
    }

    /// Sends a part after all others. Returns false, and discards the part, if too many bytes wait
    /// for the client.
    pub fn queue(&self, bytes: Bytes) -> bool {
        self.0.change(|state| {
            if state.queued + bytes.len() > MAX_QUEUED {
                return false;
            }
            state.queued += bytes.len();
            state.queue.push_back(bytes);
            true
        })
    }

    /// True if the client has disconnected.
    pub fn is_abandoned(&self) -> bool {
        self.0.lock().abandoned
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.change(|state| state.closed = true);
    }
}

/// Body of a response. Parts in the queue precede states.
#[derive(Debug)]
pub struct Feed(Arc<Shared>);

impl Body for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut state = self.0.lock();
        if let Some(bytes) = state.queue.pop_front() {
            state.queued -= bytes.len();
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if !state.latest.is_empty() {
            let (_, bytes) = state.latest.remove(0);
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.lock().abandoned = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(feed: &mut Feed) -> Option<Bytes> {
        match Pin::new(feed).poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            _ => None,
        }
    }

    #[test]
    fn a_slow_client_receives_the_newest_state_of_each_kind() {
        let (writer, mut feed) = pair();
        for number in 0..1000 {
            writer.latest("rates", Bytes::from(format!("rates {number}")));
            writer.latest("view", Bytes::from(format!("view {number}")));
        }
        assert_eq!(next(&mut feed).unwrap(), "rates 999");
        assert_eq!(next(&mut feed).unwrap(), "view 999");
        assert_eq!(next(&mut feed), None);
    }

    #[test]
    fn a_full_queue_discards_the_newest_part() {
        let (writer, mut feed) = pair();
        let part = Bytes::from(vec![7; MAX_QUEUED / 2]);
        assert!(writer.queue(part.clone()) && writer.queue(part.clone()));
        assert!(!writer.queue(Bytes::from_static(b"x")));
        assert_eq!(next(&mut feed).unwrap().len(), MAX_QUEUED / 2);
        assert!(writer.queue(part));
    }

    #[test]
    fn the_writer_learns_that_the_client_has_disconnected() {
        let (writer, feed) = pair();
        assert!(!writer.is_abandoned());
        drop(feed);
        assert!(writer.is_abandoned());
    }
}
