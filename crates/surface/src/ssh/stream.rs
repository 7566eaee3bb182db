//! Connection that the server can end: [`Cut`], [`Held`].

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// Ends a connection.
pub struct Cut(Mutex<Option<oneshot::Sender<()>>>);

impl Cut {
    /// Ends the connection at its next read. Later calls do nothing.
    pub fn cut(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A connection whose reads fail after [`Cut::cut`].
pub struct Held<S> {
    stream: S,
    cut: Option<oneshot::Receiver<()>>,
}

impl<S> Held<S> {
    /// Wraps a connection.
    pub fn new(stream: S) -> (Held<S>, Cut) {
        let (sender, receiver) = oneshot::channel();
        (Held { stream, cut: Some(receiver) }, Cut(Mutex::new(Some(sender))))
    }

    /// True after the cut. Otherwise the task is woken at the cut.
    fn is_cut(&mut self, context: &mut Context<'_>) -> bool {
        let is_cut = self.cut.as_mut().is_none_or(|cut| Pin::new(cut).poll(context).is_ready());
        if is_cut {
            self.cut = None;
        }
        is_cut
    }
}

fn ended() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

impl<S: AsyncRead + Unpin> AsyncRead for Held<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_cut(context) {
            return Poll::Ready(Err(ended()));
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Held<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
