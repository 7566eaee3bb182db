//! Capture of a port as a stream: `GET /api/v1/capture/PORT.pcapng`.

use super::api::{decoded, failed, json, stream_of, unavailable};
use crate::Fabric;
use crate::server::http::StatusCode;
use crate::server::stream::{Writer, pair};
use crate::server::{Bytes, Reply};
use sanloom_api::control::Answer;
use std::io::{self, Write};

/// Starts a capture whose frames are the body of the response. Frames that a slow client does not
/// read in time are left out.
pub fn start(file: &str, fabric: &mut dyn Fabric) -> Reply {
    let Some(port) = file.strip_suffix(".pcapng").and_then(decoded) else {
        return failed(StatusCode::NOT_FOUND, "name the port as in capture/sw1:0.pcapng").into();
    };
    let (writer, feed) = pair();
    match fabric.capture(&port, Box::new(Sink(writer))) {
        Ok(Answer::Done) => Reply::Stream(stream_of("application/x-pcapng"), feed),
        Ok(answer @ Answer::Failed(_)) => json(StatusCode::CONFLICT, &answer).into(),
        Ok(_) => failed(StatusCode::INTERNAL_SERVER_ERROR, "the fabric sent an unexpected answer").into(),
        Err(busy) => unavailable(busy).into(),
    }
}

/// Passes whole blocks to the body of a response. It never waits.
struct Sink(Writer);

impl Write for Sink {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.flush()?;
        // A block that finds the queue full is left out.
        self.0.queue(Bytes::copy_from_slice(block));
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.0.is_abandoned() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}
