//! The server's side of an NBD connection: negotiation, then requests that end in any order.
//!
//! Source: the protocol document of the NBD project (see [`sanloom_wire::nbd`]).
//!
//! ```text
//!   greeting -> flags -> options ---- GO, EXPORT_NAME ----> transmission -- DISC, end of stream --> draining -> closed
//!                         |    ^                                |                                      ^
//!                         +----+ one reply or more each         +-- broken magic number --> closed     | Shutdown
//! ```
//!
//! The machine sees heads only. [`Connection::wanted`] says what the next bytes of the stream are: the driver hands heads
//! and options to [`Connection::parse`] and what comes out of that to [`Connection::handle`]; data of a WRITE go from the
//! socket to the buffer of the request's tag, and data of a READ from there to the socket, without the machine.
//!
//! What a client can make the server hold is bounded: [`Limits::max_in_flight`] requests and [`Limits::max_in_flight_bytes`]
//! of data; [`Wanted::Nothing`] makes the driver stop reading. The driver bounds what it has not sent yet in the same way.

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

/// Longest data of an option that is read; more is skipped and answered with ERR_TOO_BIG.
pub const MAX_OPTION_BYTES: u32 = 64 << 10;

/// What one connection may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Requests that have not been answered, at least 1.
    pub max_in_flight: u16,
    /// Bytes of data of such requests. One request alone may have more.
    pub max_in_flight_bytes: u32,
    /// A client that has chosen no export after this time is sent away.
    pub negotiation_timeout: Span,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_in_flight: 128, max_in_flight_bytes: 64 << 20, negotiation_timeout: Span::from_secs(30) }
    }
}

/// What the next bytes of the stream are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// As many bytes for [`Connection::parse`].
    Bytes(usize),
    /// Data of the WRITE with this tag. Then [`Input::Data`].
    Data {
        /// The request.
        tag: u16,
        /// How many.
        len_bytes: u32,
    },
    /// As many bytes that nobody wants. Then [`Input::Skipped`].
    Skip(u32),
    /// Do not read now: other requests have to end first, or the connection ends.
    Nothing,
}

/// What happens to a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The client's flags.
    ClientFlags(u32),
    /// The head of an option that has data.
    OptionHeader(OptionHeader),
    /// An option with its data.
    Option(ClientOption),
    /// The head of a request.
    Request(Request),
    /// The bytes that were wanted are nothing of the kind.
    Malformed(ParseError),
    /// The data of a WRITE are in the buffer of this tag.
    Data {
        /// The request.
        tag: u16,
    },
    /// What [`Wanted::Skip`] asked for.
    Skipped,
    /// An [`Output::Io`] ended.
    IoDone {
        /// The request.
        tag: u16,
        /// How.
        result: Result<Done, Failure>,
    },
    /// The client closed its side, or the socket broke.
    Ended,
    /// The server stops.
    Shutdown,
    /// Time has passed.
    Timeout,
}

/// How I/O succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// All of it; the data of a read are in the buffer.
    All,
    /// The extents of [`IoOp::Status`], one after the other from the request's offset. They may cover less than was asked,
    /// but at least something.
    Extents(Vec<StatusExtent>),
}

/// How I/O failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Why, for the program.
    pub error: ErrorNumber,
    /// Why, for people.
    pub message: Cow<'static, str>,
}

/// What a connection does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send these bytes.
    Send(Box<[u8]>),
    /// The client uses this export, by its index, from now on.
    Opened {
        /// Index in the exports given to [`Connection::new`].
        export: usize,
    },
    /// Do this with the export's disk, then [`Input::IoDone`].
    Io(Io),
    /// Send `head`, then `data_bytes` of the tag's buffer. The tag is free.
    Reply {
        /// The request.
        tag: u16,
        /// The reply without data.
        head: Head,
        /// Data behind it.
        data_bytes: u32,
    },
    /// Close the socket once everything has been sent.
    Close(CloseReason),
}

/// I/O within the export, a multiple of its minimum block size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// Number of the request in this connection, less than [`Limits::max_in_flight`].
    pub tag: u16,
    /// What to do.
    pub op: IoOp,
    /// First byte; 0 for a flush.
    pub offset_bytes: u64,
    /// Number of bytes; 0 for a flush.
    pub len_bytes: u32,
    /// Durable before it is done.
    pub fua: bool,
}

/// What I/O does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IoOp {
    /// Into the tag's buffer.
    Read,
    /// From the tag's buffer.
    Write,
    /// Everything that was answered before becomes durable.
    Flush,
    /// The contents are not needed any more.
    Trim,
    /// Zeros; with `no_hole`, the space stays allocated.
    WriteZeroes {
        /// From the client.
        no_hole: bool,
    },
    /// Have it at hand: a hint.
    Cache,
    /// Which parts are holes or zeros?
    Status {
        /// The first extent is enough.
        one: bool,
    },
}

/// A reply without data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head(HeadBytes);

#[derive(Clone, PartialEq, Eq, Debug)]
enum HeadBytes {
    /// Bytes of a reply to most requests, and how many count.
    Short([u8; 28], u8),
    Long(Box<[u8]>),
}

impl Head {
    fn new(bytes: &[u8]) -> Head {
        let mut short = [0; 28];
        Head(match short.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                HeadBytes::Short(short, bytes.len() as u8)
            }
            None => HeadBytes::Long(bytes.into()),
        })
    }

    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            HeadBytes::Short(bytes, len) => &bytes[..usize::from(*len)],
            HeadBytes::Long(bytes) => bytes,
        }
    }
}

/// Why a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CloseReason {
    /// The client asked for it: ABORT, DISC, end of its stream.
    Client,
    /// The client broke the protocol where no answer is possible.
    Protocol,
    /// EXPORT_NAME, to which no error can be answered, named an export that does not exist.
    UnknownExport,
    /// No export chosen in time.
    NegotiationTimeout,
    /// The server stops.
    Shutdown,
}

/// What a connection has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Options answered.
    pub options: u64,
    /// Options answered with an error.
    pub refused_options: u64,
    /// Requests that came.
    pub requests: u64,
    /// Requests that the machine answered with an error without any I/O.
    pub refused_requests: u64,
    /// Requests whose I/O failed.
    pub failed_requests: u64,
    /// Heads with a broken magic number, and inputs that the state does not allow.
    pub protocol_errors: u64,
    /// Times that reading stopped because of [`Limits`].
    pub stalls: u64,
}

/// A connection. See the module, and [`crate`] for how to drive it.
#[derive(Debug)]
pub struct Connection {
    exports: Arc<[Export]>,
    limits: Limits,
    state: State,
    /// Until an export is chosen.
    deadline: Option<Instant>,
    negotiated: Negotiated,
    /// By tag.
    flights: Vec<Option<Flight>>,
    free: Vec<u16>,
    in_flight: u16,
    in_flight_bytes: u64,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// What the next bytes belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Flags,
    Option,
    OptionData(OptionHeader),
    /// Data of an option that is refused.
    OptionSkip(OptionCode, u32),
    Request,
    /// Data of a WRITE.
    Data(u16),
    /// Data of a WRITE that was refused.
    DataSkip(u32),
    /// Nothing more is read; open requests end.
    Draining(CloseReason),
    Closed,
}

impl Connection {
    /// A connection that was accepted at `now`; its greeting is the first output. The first export is the default.
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

    /// What to read next.
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

    /// What the bytes that [`Wanted::Bytes`] asked for are. Pure; the result goes to [`handle`](Self::handle).
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

    /// One thing happened at `now`.
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

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Requests that have not been answered.
    pub fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// The export in use.
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

    /// Reads nothing more, and closes when the last request has ended.
    fn drain(&mut self, reason: CloseReason) {
        if let State::Data(tag) = self.state {
            // Its data will not come.
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
