//! The target's side of FCP: commands in, block I/O out, answers back.
//!
//! ```text
//!          read                     IoDone
//!   CMND --------> io -------------------------------> data, FCP_RSP        free
//!    |  |           ^
//!    |  | write     | all bursts complete
//!    |  +----> receiving <---+
//!    |          |   |    |   | burst complete: next XFER_RDY
//!    |          |   |    +---+
//!    |          |   +---------- parameter list complete -> fetching -> FCP_RSP
//!    |          | gap, no progress for E_D_TOV
//!    |          v
//!    |       resting ------------------ R_A_TOV ---------------------------> free
//!    |
//!    +-------> waiting     until the device lets it begin
//! ```
//!
//! ABTS in any state: BA_ACC, the I/O is cancelled, and the RX_ID rests for R_A_TOV. An ABTS for an exchange that is over
//! or never began gets BA_RJT "invalid OX_ID/RX_ID". A command from a port that is not logged in gets LOGO, at most one
//! per E_D_TOV, so that the port logs in again instead of waiting for its timeout; the command itself is dropped and
//! counted (FCP, response to frames from ports without a login).
//!
//! # How a driver uses it
//!
//! One [`FcpTarget`] for each target port, one [`Device`] for the storage system that the ports belong to:
//!
//! 1. Call [`FcpTarget::handle`] with the device; drain [`FcpTarget::poll_output`], then [`Device::poll_output`].
//!    [`scsi::Output::Port`](crate::scsi::Output::Port) goes to the target of that port as [`Input::Notice`], and so on
//!    until both are silent.
//! 2. FCP_DATA frames do not enter: look up [`FcpTarget::data`] by RX_ID, call [`SeqRx::accept`], and put the payload at
//!    its relative offset (the header's parameter) into a buffer that belongs to the RX_ID. An answer
//!    [`Accepted::Complete`] or [`Accepted::Gap`] becomes [`Input::Data`]. [`FcpTarget::expected_bytes`] says how large
//!    the buffer has to be.
//! 3. [`Output::Io`]: do the I/O between that buffer and the medium, then [`Input::IoDone`]. After a good read
//!    [`Output::Transmit`] says which bytes of the buffer to send, framed by [`SeqTx`]. [`Output::Fetch`]: hand the buffer
//!    over with [`Input::Parameters`].
//! 4. The buffer is free after the FCP_RSP of the exchange is sent, or after [`Output::Cancel`].
//!
//! Confirmed completion, SRR and REC are not offered: FCP_RSP never asks for FCP_CONF, PRLI does not announce retry, the
//! node port refuses the ELS REC, and the target SRR with every other FC-4 link service.

mod abort;
mod command;
mod task;

use super::timers::Timers;
use crate::exchange::{Accepted, SeqRx, SeqTx, usable_frame_size};
use crate::scsi::{Device, IoStatus, IoTag, NexusId, Notice};
use crate::time::{Instant, Span};
use sanloom_wire::bls::Bls;
use sanloom_wire::els::{Els, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::{FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwpn};
use std::collections::VecDeque;
use task::{List, State, Task};

pub use crate::scsi::Io;

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
    /// Number of this port in its device.
    pub port: u16,
    /// Its name, for LOGO.
    pub port_name: Wwpn,
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
        /// Its port name, by which masking and reservations know it.
        port_name: Wwpn,
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
    /// The bytes that [`Output::Fetch`] asked for.
    Parameters {
        /// Of which task.
        tag: IoTag,
        /// All of the data-out.
        bytes: Vec<u8>,
    },
    /// What the device has for this port ([`crate::scsi::Output::Port`]).
    Notice(Notice),
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
    /// A parameter list is complete in the task's buffer: hand it over with [`Input::Parameters`].
    Fetch {
        /// Names the task.
        tag: IoTag,
        /// Length of the list.
        bytes: u32,
    },
    /// Nobody waits for this I/O any more. [`Input::IoDone`] may still come, and changes nothing.
    Cancel(IoTag),
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
    nexus: NexusId,
}

const _: () = assert!(size_of::<Login>() <= 12);

/// OX_ID of the LOGO that tells a port to log in again. Its answer tells nothing.
const LOGO_OX_ID: u16 = *crate::exchange::FCP_OX_IDS.end();

impl FcpTarget {
    /// A target without an address and without logins.
    pub fn new(mut config: FcpTargetConfig) -> FcpTarget {
        // The last number means "not assigned".
        config.max_exchanges = config.max_exchanges.min(u16::MAX - 1);
        FcpTarget {
            config,
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

    /// One thing happened at `now`. All ports of a device are given the same `device`.
    pub fn handle(&mut self, now: Instant, input: Input, device: &mut Device) {
        self.work += 1;
        match input {
            Input::LocalId(local_id) => self.set_local_id(now, local_id, device),
            Input::LoginUp { port_id, port_name, frame_size_bytes } => {
                self.login_up(now, port_id, port_name, frame_size_bytes, device);
            }
            Input::LoginDown { port_id } => self.login_down(now, port_id, device),
            Input::Frame(frame) => self.on_frame(now, frame, device),
            Input::Data { rx_id, accepted } => self.on_data(now, rx_id, accepted, device),
            Input::Parameters { tag, bytes } => self.on_parameters(now, tag, &bytes, device),
            Input::IoDone { tag, status } => self.on_io_done(now, tag, status, device),
            Input::Notice(Notice::Step { task, step }) => self.on_step(now, task, step, device),
            Input::Notice(Notice::End(ends)) => self.end_tasks(now, &ends, device),
            Input::Timeout => self.on_timeout(now, device),
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

    /// Bytes that a task takes from the initiator or sends to it, for the driver's buffer. Nothing for an exchange that is
    /// over.
    pub fn expected_bytes(&self, rx_id: u16) -> Option<u32> {
        let task = self.tasks.get(usize::from(rx_id))?;
        task.is_live().then(|| task.transfer_bytes())
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

    fn set_local_id(&mut self, now: Instant, local_id: FcId, device: &mut Device) {
        if local_id != self.local_id {
            self.drop_tasks(now, device, |_| true);
            for login in self.logins.drain(..) {
                device.disconnect(login.nexus);
            }
            self.local_id = local_id;
        }
    }

    fn find_login(&self, port_id: FcId) -> Result<usize, usize> {
        self.logins.binary_search_by_key(&port_id, |login| login.port_id)
    }

    fn login_up(&mut self, now: Instant, port_id: FcId, name: Wwpn, frame_size_bytes: u16, device: &mut Device) {
        let frame_size_bytes = usable_frame_size(frame_size_bytes);
        let initiator = TransportId::Fcp(name);
        if let Ok(at) = self.find_login(port_id) {
            if device.initiator(self.logins[at].nexus) == Some(&initiator) {
                self.logins[at].frame_size_bytes = frame_size_bytes;
                return;
            }
            self.login_down(now, port_id, device);
        }
        if let Err(at) = self.find_login(port_id) {
            let nexus = device.connect(self.config.port, initiator);
            self.logins.insert(at, Login { port_id, frame_size_bytes, nexus });
        }
    }

    fn login_down(&mut self, now: Instant, port_id: FcId, device: &mut Device) {
        self.drop_tasks(now, device, |task| task.initiator == port_id);
        if let Ok(at) = self.find_login(port_id) {
            device.disconnect(self.logins.remove(at).nexus);
        }
    }

    /// FCP_RJT: that of an extended link service, as a link service of FCP (FCP-4, FC-4 link services).
    fn refuse_link_service(&mut self, request: &Header) {
        self.counters.unexpected_frames += 1;
        let (reason, explanation) = (LsRjtReason::NOT_SUPPORTED, LsRjtExplanation::NOT_SUPPORTED);
        let reject = Message::from(Els::LsRjt(LsRjt { reason, explanation, vendor: 0 }));
        let mut bytes = Vec::new();
        reject.emit(&mut bytes);
        let reply = reject.header(self.local_id, request.s_id, request.ox_id, request.rx_id);
        let header = Header { r_ctl: RCtl::FC4_LS_REPLY, fc_type: FcType::FCP, ..reply };
        self.outputs.push_back(Output::Send(Frame { header, payload: Payload::Bytes(bytes.into()) }));
    }

    fn on_frame(&mut self, now: Instant, frame: Frame, device: &mut Device) {
        let header = frame.header;
        if header.d_id != self.local_id {
            self.counters.unexpected_frames += 1;
            return;
        }
        // Also without a login: the exchange may be older than the logout, or one of the sender's own logins.
        if matches!(frame.payload, Payload::Typed(Message::Bls(Bls::Abts))) {
            return self.on_abts(now, &header, device);
        }
        let Ok(login) = self.find_login(header.s_id) else {
            return self.ask_for_login(now, header.s_id);
        };
        match frame.payload {
            Payload::Typed(Message::FcpCmnd(command)) => {
                let login = self.logins[login];
                self.on_command(now, &header, &login, &command, device);
            }
            Payload::Bytes(_) if header.r_ctl == RCtl::FC4_LS_REQUEST => self.refuse_link_service(&header),
            _ => self.counters.unexpected_frames += 1,
        }
    }

    fn on_timeout(&mut self, now: Instant, device: &mut Device) {
        while let Some((list, rx_id)) = self.timers.pop_due(&mut self.tasks, now) {
            match List::ALL[usize::from(list)] {
                List::Data => self.on_data_timeout(now, rx_id, device),
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
