//! A SCSI disk as its initiator sees it: what there is, and requests that become commands.
//!
//! Sources: SPC-4, SBC-3, SAM-5; the sections are named where they are used. The transport (FCP, iSCSI) is the driver's:
//! it carries out each [`Command`] for the disk's logical unit, ends it in bounded time and says how in a [`Reply`].
//!
//! ```text
//!              PathUp                    all pages read
//!   no path ----------> probing -------------------------------> ready  <-- unit attention "changed": probing again
//!      ^ PathDown          | not yet: again later                  |
//!      +-------------------+---------------------------------------+-- a command that nobody could abort --> resetting
//! ```
//!
//! Requests wait while the disk is not ready; [`DiskConfig::dev_loss`] after the path was lost they fail, and later ones at
//! once, until it comes back. What a command's end means is one table: `verdict.rs`. Commands are repeated a bounded
//! number of times, or for a bounded time where the target asks for patience (BUSY, TASK SET FULL, becoming ready). All
//! commands that are used can be repeated without harm.
//!
//! A target may have ports that serve better than others (asymmetric access): [`AccessProbe`] asks for that, and [`Paths`] chooses. What a
//! port refuses that is standing by is repeated until another one is there.
//!
//! A disk that comes back with another identification (VPD page 83) is another disk: nothing is sent to it.

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

use crate::time::{Instant, Span};
use parts::{OpenRequest, Part};
use probe::Probe;
use sanloom_wire::cdb::CDB_BYTES;
use sanloom_wire::sense::{SenseCode, SenseKey};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use verdict::tells_of_access;

/// How a disk is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskConfig {
    /// Most data of one command in bytes, at least one block; the target's own limit counts too.
    pub max_transfer_bytes: u32,
    /// Commands at once, at least 1; TASK SET FULL makes it fewer for a while.
    pub queue_depth: u16,
    /// How long requests wait for a lost path.
    pub dev_loss: Span,
    /// How long a command is repeated for a target that asks for patience.
    pub patience: Span,
    /// How often a command is repeated otherwise.
    pub max_retries: u8,
}

impl Default for DiskConfig {
    fn default() -> DiskConfig {
        DiskConfig {
            max_transfer_bytes: 1 << 20,
            queue_depth: 32,
            dev_loss: Span::from_secs(60),
            patience: Span::from_secs(60),
            max_retries: 5,
        }
    }
}

/// What somebody wants of the disk. Its data are in a buffer of the driver's that the tag names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Comes back in [`Output::Done`]; not in use by another request.
    pub tag: u64,
    /// What to do.
    pub op: Op,
    /// First block; 0 for a flush.
    pub lba: u64,
    /// Number of blocks, at least 1; 0 for a flush.
    pub blocks: u32,
    /// Durable before it is done.
    pub fua: bool,
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Op {
    /// From the disk into the buffer.
    Read,
    /// From the buffer to the disk.
    Write,
    /// What was done before becomes durable.
    Flush,
    /// Zeros; with `unmap`, the space may be given back.
    WriteZeroes {
        /// A hint.
        unmap: bool,
    },
    /// The contents are not needed any more: a hint.
    Unmap,
    /// Which parts are mapped?
    Status,
}

/// What happens to a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// There is a login with the target port.
    PathUp,
    /// The login is gone. Commands under way have no reply, or one that does not count any more.
    PathDown,
    /// Look at the disk again, for example after an RSCN.
    Revalidate,
    /// Do this.
    Submit(Request),
    /// A command ended.
    Reply(Reply),
    /// [`Output::ResetUnit`] ended.
    ResetDone {
        /// The target did it.
        success: bool,
    },
    /// Time has passed.
    Timeout,
}

/// What a disk does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Carry out a command, then [`Input::Reply`].
    Command(Command),
    /// Carry out LOGICAL UNIT RESET, then [`Input::ResetDone`].
    ResetUnit,
    /// The target answers nothing: give up the login and try a new one. The disk is without a path now.
    DropPath,
    /// The disk can be used, and this is what it is. Comes again when something changed.
    Ready(Box<Properties>),
    /// The disk cannot be used, and why. Requests fail until it comes again as ready.
    Unusable(Error),
    /// The target's list of logical units changed (unit attention): [`Scan`] again.
    UnitsChanged,
    /// The target has told that ports serve otherwise than before, or that this one does not: [`AccessProbe`] again, and perhaps another
    /// of [`Paths`]. Commands wait meanwhile.
    AccessChanged,
    /// A request ended.
    Done {
        /// Its tag.
        tag: u64,
        /// How.
        result: Result<Done, Error>,
    },
}

/// A command for the transport.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Comes back in [`Reply::id`]; never used twice.
    pub id: u64,
    /// Zero filled.
    pub cdb: [u8; CDB_BYTES],
    /// What moves.
    pub data: Data,
}

/// The data of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// None.
    None,
    /// At most so many bytes from the target, which come in [`End::Status`].
    In {
        /// In bytes.
        max_bytes: u32,
    },
    /// To the target.
    Out(Box<[u8]>),
    /// Zeros to the target.
    Zeroes {
        /// How many.
        bytes: u32,
    },
    /// Between the target and the buffer of a request.
    Buffer {
        /// The request.
        tag: u64,
        /// Where in the buffer, in bytes.
        at: u32,
        /// How many bytes.
        bytes: u32,
        /// To the target.
        write: bool,
    },
}

impl Data {
    /// Bytes that may move at most.
    pub fn bytes(&self) -> u32 {
        match self {
            Data::None => 0,
            Data::In { max_bytes: bytes } | Data::Zeroes { bytes } | Data::Buffer { bytes, .. } => *bytes,
            Data::Out(data) => data.len() as u32,
        }
    }
}

/// The end of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The command's number.
    pub id: u64,
    /// How.
    pub end: End,
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The target answered.
    Status {
        /// SCSI status.
        status: u8,
        /// Sense data as they came; may be empty.
        sense: Box<[u8]>,
        /// Bytes that moved.
        transferred: u32,
        /// The bytes, for [`Data::In`].
        data: Box<[u8]>,
    },
    /// Not answered in time.
    TimedOut {
        /// The target has confirmed that it does not go on with it.
        aborted: bool,
    },
    /// The transport could not carry it out, and it was aborted: lost frames, a broken protocol.
    Transport,
    /// The path is gone.
    PathGone,
}

/// How a request succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// All of it.
    All,
    /// For [`Op::Status`]: runs of blocks from the request's first on, at least one.
    Runs(Vec<Run>),
}

/// Blocks that are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// How many.
    pub blocks: u32,
    /// They take space.
    pub mapped: bool,
    /// They read as zeros.
    pub zero: bool,
}

/// Why a request failed, or a disk cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Error {
    /// What kind.
    pub kind: ErrorKind,
    /// What the target said.
    pub sense: Option<(SenseKey, SenseCode)>,
}

/// What kind of error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ErrorKind {
    /// The path has been lost for longer than [`DiskConfig::dev_loss`].
    PathLost,
    /// No answer, again and again.
    TimedOut,
    /// The transport failed again and again.
    Transport,
    /// The target was busy for longer than [`DiskConfig::patience`].
    Busy,
    /// Another initiator has reserved the disk.
    ReservationConflict,
    /// The disk is not ready.
    NotReady,
    /// The medium failed.
    Medium,
    /// The disk may not be written.
    WriteProtected,
    /// A thin disk is full.
    NoSpace,
    /// Blocks that the disk does not have.
    OutOfRange,
    /// A command that the disk does not know, or not so.
    NotSupported,
    /// Another disk is at this place than before.
    OtherDisk,
    /// Not a disk, or one that says senseless things about itself.
    NotADisk,
    /// Any other refusal.
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
            ErrorKind::NotSupported => "the disk does not know the command",
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

/// What a disk has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Requests that came.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Commands sent, repetitions included.
    pub commands: u64,
    /// Commands repeated at once.
    pub retries: u64,
    /// Commands repeated later because the target asked for patience.
    pub delays: u64,
    /// Unit attentions.
    pub unit_attentions: u64,
    /// Commands that were not answered in time.
    pub timeouts: u64,
    /// LOGICAL UNIT RESETs.
    pub resets: u64,
    /// Times that the path was lost.
    pub paths_lost: u64,
    /// Replies to commands that are over.
    pub stale_replies: u64,
}

/// A SCSI disk. See the module, and [`crate`] for how to drive it.
#[derive(Debug)]
pub struct Disk {
    config: DiskConfig,
    state: State,
    properties: Option<Box<Properties>>,
    /// What it has to call itself, if anybody knows.
    expected: Option<Box<str>>,
    /// Why requests fail at once.
    unusable: Option<Error>,
    /// Requests fail then, unless the disk has become ready.
    lost_deadline: Option<Instant>,
    /// By tag.
    requests: BTreeMap<u64, OpenRequest>,
    /// What is to be sent, first the front.
    waiting: VecDeque<Part>,
    /// What is to wait before it is sent again.
    delayed: BTreeMap<(Instant, u64), Part>,
    /// By command number.
    in_flight: BTreeMap<u64, Part>,
    /// Commands at once, for now.
    depth: u16,
    /// Good ends since `depth` was last changed.
    good_ends: u16,
    /// The target does not know WRITE SAME.
    write_same_refused: bool,
    /// It does not know SYNCHRONIZE CACHE.
    flush_refused: bool,
    next_id: u64,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// Where the disk is. See the module's figure.
#[derive(Debug)]
enum State {
    NoPath,
    Probing(Box<Probe>),
    Ready,
    Resetting,
}

/// Fewer commands at once after TASK SET FULL, by one more each time so many ended well.
const GOOD_ENDS_FOR_DEPTH: u16 = 64;

impl Disk {
    /// A disk without a path, created at `now`.
    pub fn new(now: Instant, config: DiskConfig) -> Disk {
        let config = DiskConfig { queue_depth: config.queue_depth.max(1), ..config };
        Disk {
            config,
            state: State::NoPath,
            properties: None,
            expected: None,
            unusable: None,
            lost_deadline: Some(now + config.dev_loss),
            requests: BTreeMap::new(),
            waiting: VecDeque::new(),
            delayed: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            depth: config.queue_depth,
            good_ends: 0,
            write_same_refused: false,
            flush_refused: false,
            next_id: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Only the disk with this name ([`Properties::designator`], as text) is used; another one gets nothing.
    #[must_use]
    pub fn named(self, name: &str) -> Disk {
        Disk { expected: Some(name.into()), ..self }
    }

    /// One thing happened at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::PathUp => {
                if matches!(self.state, State::NoPath) {
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

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let probe = match &self.state {
            State::Probing(probe) => probe.retry_at(),
            _ => None,
        };
        let delayed = self.delayed.keys().next().map(|(at, _)| *at);
        Instant::earliest(&[self.lost_deadline, probe, delayed])
    }

    /// What the disk is, once it was ready.
    pub fn properties(&self) -> Option<&Properties> {
        self.properties.as_deref()
    }

    /// Commands go to the disk.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// Why requests fail at once, if they do.
    pub fn unusable(&self) -> Option<Error> {
        self.unusable
    }

    /// Requests that have not ended.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn on_reply(&mut self, now: Instant, reply: Reply) {
        if tells_of_access(&reply.end) && self.outputs.back() != Some(&Output::AccessChanged) {
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

    /// What is under way is to be sent again, in the old order.
    fn recall(&mut self) {
        let mut parts: Vec<Part> = std::mem::take(&mut self.in_flight).into_values().collect();
        parts.extend(std::mem::take(&mut self.delayed).into_values());
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
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            let part = entry.remove();
            self.waiting.push_back(part);
        }
    }

    /// All requests fail, and later ones too, until the disk is ready.
    fn give_up(&mut self, error: Error) {
        self.lost_deadline = None;
        if self.unusable.replace(error) != Some(error) {
            self.outputs.push_back(Output::Unusable(error));
        }
        self.waiting.clear();
        self.delayed.clear();
        self.in_flight.clear();
        for tag in std::mem::take(&mut self.requests).into_keys() {
            self.done(tag, Err(error));
        }
    }

    fn on_reset_done(&mut self, now: Instant, success: bool) {
        if !matches!(self.state, State::Resetting) {
            return;
        }
        if success {
            // The reset left a unit attention, and perhaps more than that has changed.
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
