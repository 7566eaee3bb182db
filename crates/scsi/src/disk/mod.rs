//! SCSI disk on the initiator's side: discovery of its properties, and conversion of requests to
//! commands.
//!
//! Sources are SPC-4, SBC-3 and SAM-5; sections are cited where they apply. The driver supplies the
//! transport (FCP, iSCSI). It sends each [`Command`] to the disk's logical unit, ends it in bounded
//! time and passes the result as a [`Reply`].
//!
//! ```text
//!              PathUp                  all pages read
//!   no path ----------> probing ---------------------> ready  <-- unit attention "changed":
//!      ^ PathDown          | not ready: retry later      |         probing again
//!      +-------------------+-----------------------------+-- a command that could not
//!                                                            be aborted --> resetting
//! ```
//!
//! Requests wait while the disk is not ready. [`DiskConfig::dev_loss`] after the loss of the path
//! they fail. Later requests fail at once until the path returns. `verdict.rs` contains one table
//! of all results of a command. Commands are repeated a bounded number of times. If the target
//! reports a temporary condition (BUSY, TASK SET FULL, becoming ready), they are repeated for a
//! bounded time. All commands in use can be repeated safely.
//!
//! The ports of a target may differ in their access state (asymmetric access): [`AccessProbe`]
//! reads the states, and [`Paths`] chooses a path. Commands refused by a standby port are repeated
//! until another path is in use.
//!
//! A disk that returns with another identification (VPD page 83) is a different disk; no requests
//! are sent to it.

mod access;
mod cdb;
mod parts;
pub mod paths;
mod probe;
mod properties;
mod scan;
mod verdict;

pub use access::{Access, AccessGroup, AccessInput, AccessOutput, AccessProbe};
pub use paths::Paths;
pub use properties::{Designator, Properties, Provisioning, WriteCache};
pub use scan::{Scan, ScanInput, ScanOutput};

use crate::ordered::OrderedMap;
use crate::time::{Instant, Span};
use parts::{OpenRequest, Part};
use probe::Probe;
use sanloom_wire::cdb::CDB_BYTES;
use sanloom_wire::sense::{SenseCode, SenseKey};
use std::collections::VecDeque;
use std::fmt;
use verdict::reports_access_change;

/// Limits and time-outs of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskConfig {
    /// Maximum data of one command in bytes, at least one block. The target's own limit applies
    /// too.
    pub max_transfer_bytes: u32,
    /// Maximum number of commands in flight, at least 1. TASK SET FULL reduces it temporarily.
    pub queue_depth: u16,
    /// Time for which requests wait for a lost path.
    pub dev_loss: Span,
    /// Time for which a command is repeated after temporary conditions such as BUSY.
    pub busy_timeout: Span,
    /// Maximum number of repetitions of a command after other errors.
    pub max_retries: u8,
}

impl Default for DiskConfig {
    fn default() -> DiskConfig {
        DiskConfig {
            max_transfer_bytes: 1 << 20,
            queue_depth: 32,
            dev_loss: Span::from_secs(60),
            busy_timeout: Span::from_secs(60),
            max_retries: 5,
        }
    }
}

/// Request to the disk. The tag identifies the driver's buffer with its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Tag returned in [`Output::Done`]; not in use by another request.
    pub tag: u64,
    /// Operation to carry out.
    pub op: Op,
    /// First block; 0 for a flush.
    pub lba: u64,
    /// Number of blocks, at least 1; 0 for a flush.
    pub blocks: u32,
    /// True if the data must be durable before completion.
    pub fua: bool,
}

/// Operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Op {
    /// Read from the disk into the buffer.
    Read,
    /// Write from the buffer to the disk.
    Write,
    /// Make all completed writes durable.
    Flush,
    /// Write zeros. With `unmap`, the disk may deallocate the blocks.
    WriteZeroes {
        /// Hint that deallocation is allowed.
        unmap: bool,
    },
    /// Hint that the contents are no longer needed.
    Unmap,
    /// Report which blocks are mapped.
    Status,
}

/// Event for a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The initiator is logged in to the target port.
    PathUp,
    /// The login is lost. Commands in flight get no valid reply any more.
    PathDown,
    /// Probe the disk again, for example after an RSCN.
    Revalidate,
    /// Start a request.
    Submit(Request),
    /// A command has ended.
    Reply(Reply),
    /// The reset requested by [`Output::ResetUnit`] has ended.
    ResetDone {
        /// True if the target carried it out.
        success: bool,
    },
    /// The deadline of [`Disk::poll_timeout`] has passed.
    Timeout,
}

/// Action or report of a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a command, then pass [`Input::Reply`].
    Command(Command),
    /// Send LOGICAL UNIT RESET, then pass [`Input::ResetDone`].
    ResetUnit,
    /// The target does not respond: end the login and start a new one. The disk now has no path.
    DropPath,
    /// The disk is usable and has these properties. Reported again after a change.
    Ready(Box<Properties>),
    /// The disk is not usable for this reason. Requests fail until the next `Ready`.
    Unusable(Error),
    /// The target's list of logical units has changed (unit attention): run [`Scan`] again.
    UnitsChanged,
    /// The target has reported a change of port states, or that this port is not active. Run
    /// [`AccessProbe`] again; [`Paths`] may then choose another path. Commands wait meanwhile.
    AccessChanged,
    /// A request has ended.
    Done {
        /// Tag of the request.
        tag: u64,
        /// Result of the request.
        result: Result<Done, Error>,
    },
}

/// Command for the transport.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Number returned in [`Reply::id`]; never reused.
    pub id: u64,
    /// Command descriptor block, padded with zeros.
    pub cdb: [u8; CDB_BYTES],
    /// Data of the command.
    pub data: Data,
}

/// Data to transfer with a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// No data.
    None,
    /// Read at most this many bytes from the target; they are returned in [`End::Status`].
    In {
        /// Allocation length in bytes.
        max_bytes: u32,
    },
    /// Send these bytes to the target.
    Out(Box<[u8]>),
    /// Send zeros to the target.
    Zeroes {
        /// Number of zero bytes.
        bytes: u32,
    },
    /// Transfer between the target and the buffer of a request.
    Buffer {
        /// Tag of the request.
        tag: u64,
        /// Offset in the buffer, in bytes.
        at: u32,
        /// Length of the transfer in bytes.
        bytes: u32,
        /// True for a transfer to the target.
        write: bool,
    },
}

impl Data {
    /// Maximum length of the transfer in bytes.
    pub fn bytes(&self) -> u32 {
        match self {
            Data::None => 0,
            Data::In { max_bytes: bytes } | Data::Zeroes { bytes } | Data::Buffer { bytes, .. } => *bytes,
            Data::Out(data) => data.len() as u32,
        }
    }
}

/// Result of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Number of the command.
    pub id: u64,
    /// Status, or reason why there is none.
    pub end: End,
}

/// End of a command at the transport.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The target returned a status.
    Status {
        /// SCSI status.
        status: u8,
        /// Sense data as received; may be empty.
        sense: Box<[u8]>,
        /// Bytes transferred.
        transferred: u32,
        /// Data read for [`Data::In`].
        data: Box<[u8]>,
    },
    /// The target did not answer in time.
    TimedOut {
        /// True if the target has confirmed that the command is no longer active.
        aborted: bool,
    },
    /// The transport failed and the command was aborted, for example after lost frames or a
    /// protocol violation.
    Transport,
    /// The path was lost.
    PathGone,
}

/// Result of a successful request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// The operation is complete.
    All,
    /// Result of [`Op::Status`]: runs of blocks from the first block of the request, at least one
    /// run.
    Runs(Vec<Run>),
}

/// Consecutive blocks in the same state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// Number of blocks.
    pub blocks: u32,
    /// True if the blocks are allocated.
    pub mapped: bool,
    /// True if the blocks read as zeros.
    pub zero: bool,
}

/// Reason why a request failed or a disk is not usable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Error {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Sense key and code from the target, if it sent any.
    pub sense: Option<(SenseKey, SenseCode)>,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ErrorKind {
    /// The path has been lost for longer than [`DiskConfig::dev_loss`].
    PathLost,
    /// The target repeatedly did not answer in time.
    TimedOut,
    /// The transport failed repeatedly.
    Transport,
    /// The target was busy for longer than [`DiskConfig::busy_timeout`].
    Busy,
    /// Another initiator has reserved the disk.
    ReservationConflict,
    /// The disk is not ready.
    NotReady,
    /// The medium failed.
    Medium,
    /// The disk is write-protected.
    WriteProtected,
    /// A thin disk is full.
    NoSpace,
    /// The request exceeds the size of the disk.
    OutOfRange,
    /// The disk does not support the command or one of its fields.
    NotSupported,
    /// The disk at this address is not the expected one.
    OtherDisk,
    /// The unit is not a disk, or its properties are invalid.
    NotADisk,
    /// The target refused the command for another reason.
    Target,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ErrorKind::PathLost => "the path to the disk is lost",
            ErrorKind::TimedOut => "the disk does not answer",
            ErrorKind::Transport => "the transport failed",
            ErrorKind::Busy => "the disk is busy",
            ErrorKind::ReservationConflict => "the disk is reserved by another initiator",
            ErrorKind::NotReady => "the disk is not ready",
            ErrorKind::Medium => "the medium failed",
            ErrorKind::WriteProtected => "the disk is write protected",
            ErrorKind::NoSpace => "the disk is full",
            ErrorKind::OutOfRange => "beyond the end of the disk",
            ErrorKind::NotSupported => "the disk does not support the command",
            ErrorKind::OtherDisk => "another disk is in its place",
            ErrorKind::NotADisk => "not a disk",
            ErrorKind::Target => "the disk refused",
        })?;
        match self.sense {
            Some((key, code)) => write!(f, " ({key}: {code})"),
            None => Ok(()),
        }
    }
}

/// Counters of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Requests received.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Commands sent, repetitions included.
    pub commands: u64,
    /// Commands repeated at once.
    pub retries: u64,
    /// Commands repeated after a delay, because of a temporary condition.
    pub delays: u64,
    /// Unit attentions received.
    pub unit_attentions: u64,
    /// Commands that were not answered in time.
    pub timeouts: u64,
    /// LOGICAL UNIT RESETs sent.
    pub resets: u64,
    /// Number of times that the path was lost.
    pub paths_lost: u64,
    /// Replies to commands that were no longer in flight.
    pub stale_replies: u64,
}

/// SCSI disk. See the module for its states and [`crate`] for the driver's duties.
#[derive(Debug)]
pub struct Disk {
    config: DiskConfig,
    state: State,
    properties: Option<Box<Properties>>,
    /// Required identification of the disk, if it is known.
    expected: Option<Box<str>>,
    /// Reason for which requests fail at once.
    unusable: Option<Error>,
    /// Time at which requests fail unless the disk has become ready.
    lost_deadline: Option<Instant>,
    /// Requests by tag.
    requests: OrderedMap<u64, OpenRequest>,
    /// Parts to be sent, in order.
    waiting: VecDeque<Part>,
    /// Parts to be sent again at a later time.
    delayed: OrderedMap<(Instant, u64), Part>,
    /// Parts in flight, by command number.
    in_flight: OrderedMap<u64, Part>,
    /// Current limit of commands in flight.
    depth: u16,
    /// Successful commands since the last change of `depth`.
    good_ends: u16,
    /// True if the target has rejected WRITE SAME.
    write_same_refused: bool,
    /// True if the target has rejected SYNCHRONIZE CACHE.
    flush_refused: bool,
    next_id: u64,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// State of the disk; see the figure of the module.
#[derive(Debug)]
enum State {
    NoPath,
    Probing(Box<Probe>),
    Ready,
    Resetting,
}

/// Number of successful commands after which the queue depth, reduced by TASK SET FULL, increases
/// by one.
const GOOD_ENDS_FOR_DEPTH: u16 = 64;

impl Disk {
    /// Creates a disk without a path at `now`.
    pub fn new(now: Instant, config: DiskConfig) -> Disk {
        let config = DiskConfig { queue_depth: config.queue_depth.max(1), ..config };
        Disk {
            config,
            state: State::NoPath,
            properties: None,
            expected: None,
            unusable: None,
            lost_deadline: Some(now + config.dev_loss),
            requests: OrderedMap::new(),
            waiting: VecDeque::new(),
            delayed: OrderedMap::new(),
            in_flight: OrderedMap::new(),
            depth: config.queue_depth,
            good_ends: 0,
            write_same_refused: false,
            flush_refused: false,
            next_id: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Restricts the disk to this identification ([`Properties::designator`] as text). No requests
    /// are sent to a disk with another one.
    #[must_use]
    pub fn named(self, name: &str) -> Disk {
        Disk { expected: Some(name.into()), ..self }
    }

    /// Processes one event at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::PathUp => {
                if matches!(self.state, State::NoPath) {
                    // A login ends the commands of the one before, as a reset does.
                    self.end_exhausted();
                    self.probe();
                }
            }
            Input::PathDown => self.path_down(now),
            Input::Revalidate => {
                if matches!(self.state, State::Ready) {
                    self.probe();
                }
            }
            Input::Submit(request) => self.submit(request),
            Input::Reply(reply) => self.on_reply(now, reply),
            Input::ResetDone { success } => self.on_reset_done(now, success),
            Input::Timeout => self.on_timeout(now),
        }
        self.send_waiting();
    }

    /// Returns the next action or report.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which the driver must pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let probe = match &self.state {
            State::Probing(probe) => probe.retry_at(),
            _ => None,
        };
        let delayed = self.delayed.keys().next().map(|(at, _)| *at);
        Instant::earliest(&[self.lost_deadline, probe, delayed])
    }

    /// Properties of the disk, available once it was ready.
    pub fn properties(&self) -> Option<&Properties> {
        self.properties.as_deref()
    }

    /// Returns whether commands are sent to the disk.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// Reason for which requests fail at once, if they do.
    pub fn unusable(&self) -> Option<Error> {
        self.unusable
    }

    /// Number of requests that have not ended.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// Counters since the disk was created.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn on_reply(&mut self, now: Instant, reply: Reply) {
        if reports_access_change(&reply.end) && self.outputs.back() != Some(&Output::AccessChanged) {
            self.outputs.push_back(Output::AccessChanged);
        }
        if let State::Probing(probe) = &mut self.state
            && probe.waits_for(reply.id)
        {
            return self.on_probe_reply(now, reply.end);
        }
        match self.in_flight.remove(&reply.id) {
            Some(part) => self.on_part_end(now, part, &reply.end),
            None => self.counters.stale_replies += 1,
        }
    }

    fn path_down(&mut self, now: Instant) {
        if matches!(self.state, State::NoPath) {
            return;
        }
        self.counters.paths_lost += 1;
        self.state = State::NoPath;
        self.recall();
        if self.lost_deadline.is_none() && self.unusable.is_none() {
            self.lost_deadline = Some(now + self.config.dev_loss);
        }
    }

    /// Queues all commands in flight again, in their original order.
    fn recall(&mut self) {
        let mut parts: Vec<Part> = self.in_flight.drain().map(|(_, part)| part).collect();
        parts.extend(self.delayed.drain().map(|(_, part)| part));
        for part in parts.into_iter().rev() {
            self.waiting.push_front(part);
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.lost_deadline.is_some_and(|deadline| deadline <= now) {
            self.give_up(Error { kind: ErrorKind::PathLost, sense: None });
        }
        if let State::Probing(probe) = &self.state
            && probe.retry_at().is_some_and(|at| at <= now)
        {
            self.probe_step();
        }
        while self.delayed.first().is_some_and(|((at, _), _)| *at <= now) {
            self.waiting.extend(self.delayed.pop_first().map(|(_, part)| part));
        }
    }

    /// Fails all requests, and later ones until the disk is ready.
    fn give_up(&mut self, error: Error) {
        self.lost_deadline = None;
        if self.unusable.replace(error) != Some(error) {
            self.outputs.push_back(Output::Unusable(error));
        }
        self.waiting.clear();
        self.delayed.clear();
        self.in_flight.clear();
        for (tag, _) in std::mem::take(&mut self.requests).drain() {
            self.done(tag, Err(error));
        }
    }

    fn on_reset_done(&mut self, now: Instant, success: bool) {
        if !matches!(self.state, State::Resetting) {
            return;
        }
        if success {
            self.end_exhausted();
            // The reset causes a unit attention, and the properties may have changed.
            self.probe();
        } else {
            self.outputs.push_back(Output::DropPath);
            self.path_down(now);
        }
    }

    fn done(&mut self, tag: u64, result: Result<Done, Error>) {
        self.counters.failed += u64::from(result.is_err());
        self.outputs.push_back(Output::Done { tag, result });
    }

    fn command(&mut self, cdb: [u8; CDB_BYTES], data: Data) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.counters.commands += 1;
        self.outputs.push_back(Output::Command(Command { id, cdb, data }));
        id
    }
}
