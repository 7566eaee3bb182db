//! One connection that carries PDUs: [`Transport`].

use super::buffers::Spare;
use super::{Egress, PduReader};
use crate::poll::Interest;
use rustix::net::sockopt;
use sanloom_scsi::iscsi::Parameters;
use std::io;
use std::net::TcpStream;

/// Socket, reader and output queue of a connection.
#[derive(Debug)]
pub struct Transport {
    /// The socket, which does not block.
    pub stream: TcpStream,
    /// Received PDUs.
    pub reader: PduReader,
    /// PDUs to send.
    pub egress: Egress,
}

impl Transport {
    /// Returns a connection without digests.
    pub fn new(stream: TcpStream) -> Transport {
        Transport { stream, reader: PduReader::default(), egress: Egress::default() }
    }

    /// Applies the parameters agreed at login, in both directions.
    pub fn agree(&mut self, parameters: &Parameters) {
        self.reader.agree(parameters);
        self.egress.agree(parameters.layout());
    }

    /// Events to wait for; `read` is whether more input is accepted.
    pub fn interest(&self, read: bool) -> Interest {
        Interest { read, write: self.egress.wants_write() }
    }

    /// Sends as much as the socket accepts.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn flush(&mut self, spare: &mut Spare) -> io::Result<()> {
        self.egress.flush(&mut self.stream, spare)
    }

    /// Returns the error of the socket, if any. While reads are paused nothing else reports a lost
    /// connection, and epoll reports the hang-up in a loop.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn check(&self) -> io::Result<()> {
        check(&self.stream)
    }
}

/// Returns the pending error of a socket, if any.
///
/// # Errors
/// When the connection is lost.
pub fn check(stream: &TcpStream) -> io::Result<()> {
    Ok(sockopt::socket_error(stream)??)
}
