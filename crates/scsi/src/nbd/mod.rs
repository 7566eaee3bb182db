//! Server side of an NBD connection: negotiation, then requests that complete in any order.
//!
//! Source: the protocol document of the NBD project (see [`sanloom_wire::nbd`]).
//!
//! ```text
//!   greeting -> flags -> options -- GO, EXPORT_NAME --> transmission -- DISC, end --> draining
//!                        |    ^                            |                        ^    |
//!                        +----+ one or more replies        | bad magic     shutdown +    |
//!                                                          +----------> closed <---------+
//! ```
//!
//! The machine handles headers only. [`Connection::wanted`] returns the kind of the next bytes in
//! the stream. The driver passes headers and options to [`Connection::parse`], and its result to
//! [`Connection::handle`]. Data of a WRITE go from the socket directly to the buffer of the
//! request's tag, data of a READ from that buffer to the socket.
//!
//! The resources of a client are bounded by [`Limits::max_in_flight`] requests and
//! [`Limits::max_in_flight_bytes`] of data. At the limit, [`Wanted::Nothing`] stops the driver from
//! reading. The driver has to bound its unsent data in the same way.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod export;
mod negotiation;
mod transmission;

pub use export::{Export, export_named};

use crate::time::{Instant, Span};
use negotiation::Negotiated;
use sanloom_wire::ParseError;
use sanloom_wire::nbd::{
    ClientOption, ErrorNumber, Greeting, OptionCode, OptionHeader, Request, StatusExtent, handshake,
};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use transmission::Flight;

/// Maximum length of option data in bytes. Longer data are skipped and answered with ERR_TOO_BIG.
pub const MAX_OPTION_BYTES: u32 = 64 << 10;

/// Resource limits of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of unanswered requests, at least 1.
    pub max_in_flight: u16,
    /// Maximum total data of such requests in bytes. A single request may exceed it when it is
    /// alone.
    pub max_in_flight_bytes: u32,
    /// Time after which a client that has chosen no export is disconnected.
    pub negotiation_timeout: Span,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_in_flight: 128, max_in_flight_bytes: 64 << 20, negotiation_timeout: Span::from_secs(30) }
    }
}

/// Kind of the next bytes in the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// This many bytes for [`Connection::parse`].
    Bytes(usize),
    /// Data of the WRITE with this tag. Then pass [`Input::Data`].
    Data {
        /// Tag of the request.
        tag: u16,
        /// Length of the data in bytes.
        len_bytes: u32,
    },
    /// This many bytes to be discarded. Then pass [`Input::Skipped`].
    Skip(u32),
    /// Nothing may be read now: other requests have to end first, or the connection is closing.
    Nothing,
}

/// Event for a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The client's flags.
    ClientFlags(u32),
    /// Header of an option with data.
    OptionHeader(OptionHeader),
    /// Option with its data.
    Option(ClientOption),
    /// Header of a request.
    Request(Request),
    /// The bytes are not a valid header.
    Malformed(ParseError),
    /// The data of a WRITE are complete in the buffer of this tag.
    Data {
        /// Tag of the request.
        tag: u16,
    },
    /// The bytes of [`Wanted::Skip`] were discarded.
    Skipped,
    /// An [`Output::Io`] has ended.
    IoDone {
        /// Tag of the request.
        tag: u16,
        /// Result of the I/O.
        result: Result<Done, Failure>,
    },
    /// The client closed its side, or the socket failed.
    Ended,
    /// The server is shutting down.
    Shutdown,
    /// The deadline of [`Connection::poll_timeout`] has passed.
    Timeout,
}

/// Result of successful I/O.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// The operation is complete; data of a read are in the buffer.
    All,
    /// Consecutive extents for [`IoOp::Status`], from the offset of the request. The extents may
    /// cover less than requested, but at least one byte.
    Extents(Vec<StatusExtent>),
}

/// Result of failed I/O.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// NBD error number, for the client program.
    pub error: ErrorNumber,
    /// Reason in words, for people.
    pub message: Cow<'static, str>,
}

/// Action that a connection requests of its driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send these bytes.
    Send(Box<[u8]>),
    /// The client has chosen this export.
    Opened {
        /// Index in the exports passed to [`Connection::new`].
        export: usize,
    },
    /// Do this I/O on the export's disk, then pass [`Input::IoDone`].
    Io(Io),
    /// Send `head`, then `data_bytes` of the tag's buffer. The tag is free afterwards.
    Reply {
        /// Tag of the request.
        tag: u16,
        /// Reply without its data.
        head: Head,
        /// Number of data bytes that follow.
        data_bytes: u32,
    },
    /// Close the socket once everything has been sent.
    Close(CloseReason),
}

/// I/O within the export, in multiples of its minimum block size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// Tag of the request in this connection, less than [`Limits::max_in_flight`].
    pub tag: u16,
    /// Operation to carry out.
    pub op: IoOp,
    /// Offset of the first byte; 0 for a flush.
    pub offset_bytes: u64,
    /// Length in bytes; 0 for a flush.
    pub len_bytes: u32,
    /// True if the data must be durable before completion.
    pub fua: bool,
}

/// Operation of I/O.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IoOp {
    /// Read into the tag's buffer.
    Read,
    /// Write from the tag's buffer.
    Write,
    /// Make all acknowledged writes durable.
    Flush,
    /// Hint that the contents are no longer needed.
    Trim,
    /// Write zeros. With `no_hole`, the space must stay allocated.
    WriteZeroes {
        /// Flag from the client.
        no_hole: bool,
    },
    /// Hint that the range will be read.
    Cache,
    /// Report holes and zeros.
    Status {
        /// True if the first extent is sufficient.
        one: bool,
    },
}

/// Reply without its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head(HeadBytes);

#[derive(Clone, PartialEq, Eq, Debug)]
enum HeadBytes {
    /// Bytes of a short reply, and how many of them are valid.
    Short([u8; 28], u8),
    Long(Box<[u8]>),
}

impl Head {
    fn new(bytes: &[u8]) -> Head {
        let mut short = [0; 28];
        Head(match short.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                HeadBytes::Short(short, u8::try_from(bytes.len()).unwrap_or(u8::MAX))
            }
            None => HeadBytes::Long(bytes.into()),
        })
    }

    /// Bytes to send.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            HeadBytes::Short(bytes, len) => &bytes[..usize::from(*len)],
            HeadBytes::Long(bytes) => bytes,
        }
    }
}

/// Reason for the end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CloseReason {
    /// The client ended it with ABORT, DISC or the end of its stream.
    Client,
    /// The client violated the protocol in a way that permits no answer.
    Protocol,
    /// EXPORT_NAME, which permits no error reply, named an unknown export.
    UnknownExport,
    /// The client chose no export in time.
    NegotiationTimeout,
    /// The server is shutting down.
    Shutdown,
}

/// Counters of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Options answered.
    pub options: u64,
    /// Options answered with an error.
    pub refused_options: u64,
    /// Requests received.
    pub requests: u64,
    /// Requests answered with an error before any I/O.
    pub refused_requests: u64,
    /// Requests whose I/O failed.
    pub failed_requests: u64,
    /// Headers with a wrong magic number, and inputs that the state does not permit.
    pub protocol_errors: u64,
    /// Number of times that reading stopped because of [`Limits`].
    pub stalls: u64,
}

/// NBD connection. See the module for its states and [`crate`] for the driver's duties.
#[derive(Debug)]
pub struct Connection {
    exports: Arc<[Export]>,
    limits: Limits,
    state: State,
    /// Time by which an export must be chosen; `None` afterwards.
    deadline: Option<Instant>,
    negotiated: Negotiated,
    /// Requests by tag.
    flights: Vec<Option<Flight>>,
    free: Vec<u16>,
    in_flight: u16,
    in_flight_bytes: u64,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// State of the stream: the owner of the next bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Flags,
    Option,
    OptionData(OptionHeader),
    /// Data of a refused option.
    OptionSkip(OptionCode, u32),
    Request,
    /// Data of a WRITE.
    Data(u16),
    /// Data of a refused WRITE.
    DataSkip(u32),
    /// Nothing more is read; open requests complete.
    Draining(CloseReason),
    Closed,
}

impl Connection {
    /// Creates a connection that was accepted at `now`. Its greeting is the first output. The first
    /// export is the default.
    pub fn new(now: Instant, exports: Arc<[Export]>, limits: Limits) -> Connection {
        let limits = Limits { max_in_flight: limits.max_in_flight.max(1), ..limits };
        let greeting = Greeting { flags: handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES };
        Connection {
            exports,
            limits,
            state: State::Flags,
            deadline: Some(now + limits.negotiation_timeout),
            negotiated: Negotiated::default(),
            flights: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            in_flight_bytes: 0,
            outputs: VecDeque::from([Output::Send(greeting.to_bytes().into())]),
            counters: Counters::default(),
        }
    }

    /// Returns the kind of the next bytes to read.
    pub fn wanted(&self) -> Wanted {
        match self.state {
            State::Flags => Wanted::Bytes(4),
            State::Option => Wanted::Bytes(OptionHeader::BYTES),
            State::OptionData(header) => Wanted::Bytes(header.data_bytes as usize),
            State::OptionSkip(_, bytes) | State::DataSkip(bytes) => Wanted::Skip(bytes),
            State::Request if self.is_full() => Wanted::Nothing,
            State::Request => Wanted::Bytes(Request::BYTES),
            State::Data(tag) => {
                let len_bytes = self.flight(tag).map_or(0, |flight| flight.request.len_bytes);
                Wanted::Data { tag, len_bytes }
            }
            State::Draining(_) | State::Closed => Wanted::Nothing,
        }
    }

    /// Parses the bytes requested by [`Wanted::Bytes`]. The result has to be passed to
    /// [`handle`](Self::handle); the connection is not changed.
    pub fn parse(&self, bytes: &[u8]) -> Input {
        let parsed = match self.state {
            State::Flags => bytes
                .first_chunk()
                .map(|flags| Input::ClientFlags(u32::from_be_bytes(*flags)))
                .ok_or(ParseError::Truncated { field: "NBD client flags", needed_bytes: 4, got_bytes: bytes.len() }),
            State::Option => OptionHeader::parse(bytes).map(Input::OptionHeader),
            State::OptionData(header) => ClientOption::parse(header.option, bytes).map(Input::Option),
            _ => Request::parse(bytes).map(Input::Request),
        };
        parsed.unwrap_or_else(Input::Malformed)
    }

    /// Processes one event at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match (input, self.state) {
            (_, State::Closed) => {}
            (Input::IoDone { tag, result }, _) => self.on_io_done(tag, result),
            (Input::Ended, _) => self.drain(CloseReason::Client),
            (Input::Shutdown, _) => self.on_shutdown(),
            (Input::Timeout, _) => {
                if self.deadline.is_some_and(|deadline| deadline <= now) {
                    self.deadline = None;
                    self.drain(CloseReason::NegotiationTimeout);
                }
            }
            (_, State::Draining(_)) => {}
            (Input::ClientFlags(flags), State::Flags) => self.on_client_flags(flags),
            (Input::OptionHeader(header), State::Option) => self.on_option_header(header),
            (Input::Option(option), State::OptionData(_)) => self.on_option(&option),
            (Input::Malformed(error), State::OptionData(header)) => self.on_malformed_option(header.option, error),
            (Input::Skipped, State::OptionSkip(option, _)) => self.on_skipped_option(option),
            (Input::Request(request), State::Request) => self.on_request(&request),
            (Input::Data { tag }, State::Data(expected)) if tag == expected => self.on_data(tag),
            (Input::Skipped, State::DataSkip(_)) => self.state = State::Request,
            _ => {
                self.counters.protocol_errors += 1;
                self.drain(CloseReason::Protocol);
            }
        }
    }

    /// Returns the next action for the driver.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which the driver must pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// Counters since the connection began.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of unanswered requests.
    pub fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// Chosen export.
    pub fn export(&self) -> Option<&Export> {
        self.exports.get(self.negotiated.export?)
    }

    fn is_full(&self) -> bool {
        self.in_flight >= self.limits.max_in_flight
            || self.in_flight_bytes >= u64::from(self.limits.max_in_flight_bytes)
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Send(bytes.into()));
    }

    /// Stops reading, and closes after the last request has ended.
    fn drain(&mut self, reason: CloseReason) {
        if let State::Data(tag) = self.state {
            // The data of this WRITE will not arrive.
            self.release(tag);
        }
        self.deadline = None;
        if !matches!(self.state, State::Draining(_)) {
            self.state = State::Draining(reason);
        }
        self.close_if_drained();
    }

    fn close_if_drained(&mut self) {
        if let State::Draining(reason) = self.state
            && self.in_flight == 0
        {
            self.state = State::Closed;
            self.outputs.push_back(Output::Close(reason));
        }
    }
}
