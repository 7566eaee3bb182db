//! The control socket: [`Control`] takes requests of [`sanloom_api::control`] and hands them to the runtime's loop.
//!
//! Connections are served by threads of their own, which wait for the loop: a slow client holds up nobody but itself.

use crate::ports::PortError;
use crate::ports::free_path;
use rustix::event::{EventfdFlags, eventfd};
use sanloom_api::control::{Answer, Request};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A longer request is none.
const MAX_REQUEST_BYTES: u64 = 64 << 10;

/// A request, and where its answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What is wanted.
    pub request: Request,
    /// To be answered once.
    pub answer: Sender<Answer>,
}

/// A control socket that listens.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    bell: Arc<OwnedFd>,
    asked: Receiver<Asked>,
}

impl Control {
    /// Listens at a path. Whoever may write to the socket may control the instance.
    ///
    /// # Errors
    /// When the path is in use or cannot be written, or the process may not have a thread.
    pub fn listen(path: &Path) -> Result<Control, PortError> {
        free_path(path, |path| UnixStream::connect(path).map(drop))?;
        let failed = |error| PortError::Socket { path: path.to_owned(), error };
        let listener = UnixListener::bind(path).map_err(failed)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from);
        let bell = Arc::new(bell.map_err(failed)?);
        let (sender, asked) = channel();
        let ring = bell.clone();
        let accept = move || {
            for connection in listener.incoming().flatten() {
                let (sender, ring) = (sender.clone(), ring.clone());
                let serve = move || {
                    // A client that goes away in the middle is nobody's loss.
                    let _ = serve(&connection, &sender, &ring);
                };
                if let Err(error) = thread::Builder::new().name("control-client".to_owned()).spawn(serve) {
                    tracing::error!(%error, "no thread for a client of the control socket");
                }
            }
        };
        thread::Builder::new().name("control".to_owned()).spawn(accept).map_err(failed)?;
        Ok(Control { path: path.to_owned(), bell, asked })
    }

    /// Readable when there is a request.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Silences the bell and takes the requests.
    pub fn take(&self) -> Vec<Asked> {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.asked.try_iter().collect()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn serve(connection: &UnixStream, asked: &Sender<Asked>, bell: &OwnedFd) -> io::Result<()> {
    let mut input = BufReader::new(connection);
    loop {
        let mut line = String::new();
        if input.by_ref().take(MAX_REQUEST_BYTES).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str(&line) {
            Err(error) => Answer::Failed { reason: format!("this is no request: {error}") },
            Ok(request) => {
                let (sender, receiver) = channel();
                let gone = || Answer::Failed { reason: "the instance is going down".to_owned() };
                match asked.send(Asked { request, answer: sender }) {
                    Err(_) => gone(),
                    Ok(()) => {
                        let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
                        receiver.recv().unwrap_or_else(|_| gone())
                    }
                }
            }
        };
        let mut out = serde_json::to_vec(&answer).map_err(io::Error::from)?;
        out.push(b'\n');
        (&*connection).write_all(&out)?;
    }
}

/// Asks an instance.
///
/// # Errors
/// When nobody listens at the path, or what comes back is no answer.
pub fn ask(path: &Path, request: &Request) -> io::Result<Answer> {
    let mut connection = UnixStream::connect(path)?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    connection.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(connection).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
