//! The target's side of FCP: commands in, block I/O out, answers back.
//!
//! ```text
//!          read                     IoDone
//!   CMND --------> io -------------------------------> data, FCP_RSP        free
//!    |              ^
//!    | write        | all bursts complete
//!    +-------> receiving <---+
//!               |    |       | burst complete: next XFER_RDY
//!               |    +-------+
//!               | gap, no progress for E_D_TOV
//!               v
//!            resting ------------------ R_A_TOV ---------------------------> free
//! ```
//!
//! ABTS in any state: BA_ACC, the I/O is cancelled, and the RX_ID rests for R_A_TOV. An ABTS for an exchange that is over
//! or never began gets BA_RJT "invalid OX_ID/RX_ID". A command from a port that is not logged in gets LOGO, at most one
//! per E_D_TOV, so that the port logs in again instead of waiting for its timeout; the command itself is dropped and
//! counted (FCP, response to frames from ports without a login).

mod abort;
mod command;
mod task;

use super::timers::Timers;
use crate::exchange::{Accepted, SeqRx, SeqTx, usable_frame_size};
use crate::scsi::DeviceServer;
use crate::time::{Instant, Span};
use sanloom_wire::bls::Bls;
use sanloom_wire::{FcId, Frame, Header, Message, Payload};
use std::collections::VecDeque;
use task::{List, State, Task};

pub use crate::scsi::{Identity, IoOp, LunConfig};

/// How a target behaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FcpTargetConfig {
    /// A write that makes no progress for this long is given up.
    pub e_d_tov: Span,
    /// How long an RX_ID rests after its exchange was aborted or given up.
    pub r_a_tov: Span,
    /// Largest burst of one XFER_RDY; rounded down to a multiple of the frame size.
    pub max_burst_bytes: u32,
    /// Tasks at most; more are answered TASK SET FULL.
    pub max_exchanges: u16,
    /// The fabric delivers the frames of an exchange in order, so a skipped SEQ_CNT is a lost frame.
    pub in_order: bool,
    /// Logical units; the LUN number is the index.
    pub luns: Vec<LunConfig>,
    /// The names that INQUIRY and LOGO report.
    pub identity: Identity,
}

/// What happens to a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Our address; [`FcId::ZERO`] when the fabric is gone.
    LocalId(FcId),
    /// An initiator is logged in.
    LoginUp {
        /// Its address.
        port_id: FcId,
        /// Largest data field between the two ports, both ways (see [`crate::nport::Remote`]).
        frame_size_bytes: u16,
    },
    /// An initiator is not logged in any more.
    LoginDown {
        /// Its address.
        port_id: FcId,
    },
    /// FCP_CMND or ABTS.
    Frame(Frame),
    /// What [`SeqRx::accept`] said, when it was `Complete` or `Gap`.
    Data {
        /// The exchange.
        rx_id: u16,
        /// The answer.
        accepted: Accepted,
    },
    /// Block I/O ended.
    IoDone {
        /// Which.
        tag: IoTag,
        /// How.
        status: IoStatus,
    },
    /// Time has passed.
    Timeout,
}

/// What a target does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a frame, after everything that was handed out before.
    Send(Frame),
    /// Send read data.
    Transmit(SeqTx),
    /// Do block I/O and come back with [`Input::IoDone`].
    Io(Io),
    /// Nobody waits for this I/O any more. [`Input::IoDone`] may still come, and changes nothing.
    Cancel(IoTag),
}

/// Block I/O of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// Names the I/O.
    pub tag: IoTag,
    /// Who asked for it.
    pub initiator: FcId,
    /// Logical unit.
    pub lun: u16,
    /// Read or write.
    pub op: IoOp,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes that move between initiator and target: those of the blocks, or less if FCP_DL is less.
    pub bytes: u32,
    /// Force unit access.
    pub fua: bool,
}

/// Names an I/O: RX_ID in the low half, and how often it was used before in the high half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IoTag(pub u32);

impl IoTag {
    const fn new(rx_id: u16, generation: u16) -> IoTag {
        IoTag((generation as u32) << 16 | rx_id as u32)
    }
    /// The exchange that the I/O belongs to.
    pub const fn rx_id(self) -> u16 {
        self.0 as u16
    }
}

/// How block I/O ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoStatus {
    /// Done.
    Good,
    /// The controller's queue is full: status TASK SET FULL.
    TaskSetFull,
    /// The unit cannot take it now: status BUSY.
    Busy,
    /// The medium failed: CHECK CONDITION, medium error.
    MediumError,
}

/// What a target has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Commands and task management requests from ports that are logged in.
    pub commands: u64,
    /// FCP_RSP sent.
    pub responses: u64,
    /// Commands answered TASK SET FULL, for want of an exchange or by the controller.
    pub task_set_full: u64,
    /// Commands that ended in CHECK CONDITION.
    pub check_conditions: u64,
    /// Exchanges aborted by ABTS.
    pub aborted: u64,
    /// ABTS for exchanges that are not here.
    pub unknown_aborts: u64,
    /// Writes given up because data was lost.
    pub stalled: u64,
    /// Frames dropped because the sender is not logged in.
    pub not_logged_in: u64,
    /// Frames for another address, or that make no sense to a target.
    pub unexpected_frames: u64,
}

/// The target's side of all FCP exchanges of a port. See the module for its states and [`crate`] for how to drive it.
#[derive(Debug)]
pub struct FcpTarget {
    config: FcpTargetConfig,
    server: DeviceServer,
    local_id: FcId,
    /// Sorted by address.
    logins: Vec<Login>,
    tasks: Vec<Task>,
    free: Vec<u16>,
    timers: Timers<{ List::COUNT }>,
    last_logo: Option<(FcId, Instant)>,
    outputs: VecDeque<Output>,
    counters: Counters,
    work: u64,
}

#[derive(Clone, Copy, Debug)]
struct Login {
    port_id: FcId,
    frame_size_bytes: u16,
}

const _: () = assert!(size_of::<Login>() <= 8);

/// OX_ID of the LOGO that tells a port to log in again. Its answer tells nothing.
const LOGO_OX_ID: u16 = *crate::exchange::FCP_OX_IDS.end();

impl FcpTarget {
    /// A target without an address and without logins.
    pub fn new(mut config: FcpTargetConfig) -> FcpTarget {
        // The last number means "not assigned".
        config.max_exchanges = config.max_exchanges.min(u16::MAX - 1);
        let server = DeviceServer::new(std::mem::take(&mut config.luns), config.identity);
        FcpTarget {
            config,
            server,
            local_id: FcId::ZERO,
            logins: Vec::new(),
            tasks: Vec::new(),
            free: Vec::new(),
            timers: Timers::new(),
            last_logo: None,
            outputs: VecDeque::new(),
            counters: Counters::default(),
            work: 0,
        }
    }

    /// One thing happened at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.work += 1;
        match input {
            Input::LocalId(local_id) => self.set_local_id(now, local_id),
            Input::LoginUp { port_id, frame_size_bytes } => self.login_up(port_id, frame_size_bytes),
            Input::LoginDown { port_id } => self.login_down(now, port_id),
            Input::Frame(frame) => self.on_frame(now, frame),
            Input::Data { rx_id, accepted } => self.on_data(now, rx_id, accepted),
            Input::IoDone { tag, status } => self.on_io_done(tag, status),
            Input::Timeout => self.on_timeout(now),
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next(&self.tasks)
    }

    /// The reception of a task's write data, for the driver to call [`SeqRx::accept`] on. Nothing for an exchange that
    /// takes no data (any more): the frame is stale.
    #[inline]
    pub fn data(&mut self, rx_id: u16) -> Option<&mut SeqRx> {
        let task = self.tasks.get_mut(usize::from(rx_id))?;
        (task.state == State::Receiving).then_some(&mut task.rx)
    }

    /// Initiators that are logged in.
    pub fn logins(&self) -> usize {
        self.logins.len()
    }

    /// Memory that grows with the logins, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.logins.capacity() * size_of::<Login>()
    }

    /// Exchanges that are not free: tasks, and those that rest.
    pub fn exchanges_in_use(&self) -> usize {
        self.tasks.len() - self.free.len()
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Inputs handled and exchanges searched so far.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Takes the fabric's timeout values where they are longer than ours.
    pub fn raise_timeouts(&mut self, e_d_tov: Span, r_a_tov: Span) {
        self.config.e_d_tov = self.config.e_d_tov.max(e_d_tov);
        self.config.r_a_tov = self.config.r_a_tov.max(r_a_tov);
    }

    fn set_local_id(&mut self, now: Instant, local_id: FcId) {
        if local_id != self.local_id {
            self.drop_tasks(now, |_| true);
            self.logins.clear();
            self.local_id = local_id;
        }
    }

    fn find_login(&self, port_id: FcId) -> Result<usize, usize> {
        self.logins.binary_search_by_key(&port_id, |login| login.port_id)
    }

    fn login_up(&mut self, port_id: FcId, frame_size_bytes: u16) {
        let login = Login { port_id, frame_size_bytes: usable_frame_size(frame_size_bytes) };
        match self.find_login(port_id) {
            Ok(at) => self.logins[at] = login,
            Err(at) => self.logins.insert(at, login),
        }
    }

    fn login_down(&mut self, now: Instant, port_id: FcId) {
        if let Ok(at) = self.find_login(port_id) {
            self.logins.remove(at);
        }
        self.drop_tasks(now, |task| task.initiator == port_id);
    }

    fn on_frame(&mut self, now: Instant, frame: Frame) {
        let header = frame.header;
        if header.d_id != self.local_id {
            self.counters.unexpected_frames += 1;
            return;
        }
        // Also without a login: the exchange may be older than the logout, or one of the sender's own logins.
        if matches!(frame.payload, Payload::Typed(Message::Bls(Bls::Abts))) {
            return self.on_abts(now, &header);
        }
        let Ok(login) = self.find_login(header.s_id) else {
            return self.ask_for_login(now, header.s_id);
        };
        match frame.payload {
            Payload::Typed(Message::FcpCmnd(command)) => {
                let frame_size_bytes = self.logins[login].frame_size_bytes;
                self.on_command(now, &header, frame_size_bytes, &command);
            }
            _ => self.counters.unexpected_frames += 1,
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        while let Some((list, rx_id)) = self.timers.pop_due(&mut self.tasks, now) {
            match List::ALL[usize::from(list)] {
                List::Data => self.on_data_timeout(now, rx_id),
                List::Rest => self.release(rx_id),
            }
        }
    }

    fn arm(&mut self, rx_id: u16, list: List, deadline: Instant) {
        self.timers.arm(&mut self.tasks, rx_id, list as u8, deadline);
    }

    fn release(&mut self, rx_id: u16) {
        self.timers.cancel(&mut self.tasks, rx_id);
        self.tasks[usize::from(rx_id)].state = State::Free;
        self.free.push(rx_id);
    }

    /// Sends a message of the exchange of `d_id`.
    fn send(&mut self, d_id: FcId, ox_id: u16, rx_id: u16, seq_id: u8, message: Message) {
        let header = message.header(self.local_id, d_id, ox_id, rx_id);
        let frame = Frame { header: Header { seq_id, ..header }, payload: Payload::Typed(message) };
        self.outputs.push_back(Output::Send(frame));
    }
}
