//! The target side of FCP: commands in, block I/O out, responses back.
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
//!    |          | gap, no progress for E_D_TOV, no first frame for RR_TOV
//!    |          v
//!    |       resting ------------------ R_A_TOV ---------------------------> free
//!    |
//!    +-------> waiting     until the device starts the task
//! ```
//!
//! ABTS in any state is answered with BA_ACC; the I/O is cancelled, and the RX_ID rests for
//! R_A_TOV. An ABTS for an exchange that has ended or never began gets BA_RJT "invalid
//! OX_ID/RX_ID".
//!
//! A command from a port that is not logged in is dropped and counted (FCP, response to frames from
//! ports without a login). The port gets a LOGO, at most one per E_D_TOV, so that it logs in again
//! instead of waiting for its timeout.
//!
//! # How a driver uses it
//!
//! Use one [`FcpTarget`] for each target port, and one [`Device`] for the storage system that the
//! ports belong to:
//!
//! 1. Call [`FcpTarget::handle`] with the device; drain [`FcpTarget::poll_output`], then
//!    [`Device::poll_output`]. Pass [`scsi::Output::Port`](sanloom_scsi::scsi::Output::Port) to the
//!    target of that port as [`Input::Notice`]. Repeat until both have no output.
//! 2. FCP_DATA frames are not passed as inputs. Look up [`FcpTarget::data`] by RX_ID and call
//!    [`SeqRx::accept`]. Copy the payload to its relative offset (the header's parameter) in the
//!    buffer of the RX_ID. Pass a result of [`Accepted::Complete`] or [`Accepted::Gap`] as
//!    [`Input::Data`]. [`FcpTarget::expected_bytes`] returns the required buffer size.
//! 3. On [`Output::Io`], perform the I/O between that buffer and the medium, then pass
//!    [`Input::IoDone`]. After a successful read, [`Output::Transmit`] selects the bytes of the
//!    buffer to send, framed by [`SeqTx`]. On [`Output::Fetch`], pass the buffer with
//!    [`Input::Parameters`].
//! 4. The buffer is free after the FCP_RSP of the exchange is sent, or after [`Output::Cancel`].
//!
//! Confirmed completion, SRR and REC are not offered: FCP_RSP never requests FCP_CONF, and PRLI
//! does not announce retry. The node port rejects the ELS REC, and the target rejects SRR and all
//! other FC-4 link services.

mod abort;
mod command;
mod task;

use super::timers::Timers;
use crate::exchange::{Accepted, SeqRx, SeqTx, usable_frame_size};
use sanloom_scsi::scsi::{Device, IoStatus, IoTag, NexusId, Notice};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::bls::Bls;
use sanloom_wire::els::{Els, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::{FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwpn};
use std::collections::VecDeque;
use task::{List, State, Task};

pub use sanloom_scsi::scsi::Io;

/// Configuration of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FcpTargetConfig {
    /// Time without progress after which a write is abandoned. The first frame of a burst may take
    /// 2 s (FCP-4: RR_TOV) if that is longer.
    pub e_d_tov: Span,
    /// Time that an RX_ID rests after its exchange was aborted or abandoned.
    pub r_a_tov: Span,
    /// Largest burst of one XFER_RDY in bytes; rounded down to a multiple of the frame size.
    pub max_burst_bytes: u32,
    /// Maximum number of tasks; further commands get TASK SET FULL.
    pub max_exchanges: u16,
    /// True if the fabric delivers the frames of an exchange in order, so that a skipped SEQ_CNT
    /// means a lost frame.
    pub in_order: bool,
    /// Port number within its device.
    pub port: u16,
    /// World-wide port name, needed for LOGO.
    pub port_name: Wwpn,
}

/// Event for a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Own address; [`FcId::ZERO`] when the fabric is lost.
    LocalId(FcId),
    /// An initiator logged in.
    LoginUp {
        /// Address of the initiator.
        port_id: FcId,
        /// Port name of the initiator, which masking and reservations use.
        port_name: Wwpn,
        /// Largest data field in either direction, in bytes (see [`crate::nport::Remote`]).
        frame_size_bytes: u16,
    },
    /// An initiator logged out.
    LoginDown {
        /// Address of the initiator.
        port_id: FcId,
    },
    /// FCP_CMND, ABTS or an FC-4 link service.
    Frame(Frame),
    /// Result of [`SeqRx::accept`] if it was `Complete` or `Gap`.
    Data {
        /// RX_ID of the exchange.
        rx_id: u16,
        /// Result of the call.
        accepted: Accepted,
    },
    /// Block I/O ended.
    IoDone {
        /// Tag of the I/O.
        tag: IoTag,
        /// Result of the I/O.
        status: IoStatus,
    },
    /// Bytes requested by [`Output::Fetch`].
    Parameters {
        /// Tag of the task.
        tag: IoTag,
        /// Complete data-out buffer.
        bytes: Vec<u8>,
    },
    /// Output of the device for this port ([`sanloom_scsi::scsi::Output::Port`]).
    Notice(Notice),
    /// The deadline of [`FcpTarget::poll_timeout`] was reached.
    Timeout,
}

/// Action for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a frame after all earlier outputs.
    Send(Frame),
    /// Send read data.
    Transmit(SeqTx),
    /// Perform block I/O, then pass [`Input::IoDone`].
    Io(Io),
    /// The parameter list in the task's buffer is complete; pass it with [`Input::Parameters`].
    Fetch {
        /// Tag of the task.
        tag: IoTag,
        /// Length of the list, in bytes.
        bytes: u32,
    },
    /// The result of this I/O is no longer needed. A later [`Input::IoDone`] has no effect.
    Cancel(IoTag),
}

/// Counters of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Commands and task management requests from logged-in ports.
    pub commands: u64,
    /// FCP_RSPs sent.
    pub responses: u64,
    /// Commands answered with TASK SET FULL, by the port because no exchange was free, or by the
    /// device.
    pub task_set_full: u64,
    /// Commands that ended in CHECK CONDITION.
    pub check_conditions: u64,
    /// Exchanges aborted by ABTS.
    pub aborted: u64,
    /// ABTS for unknown exchanges.
    pub unknown_aborts: u64,
    /// Writes abandoned after data was lost.
    pub stalled: u64,
    /// Frames dropped because their sender is not logged in.
    pub not_logged_in: u64,
    /// Frames for another address, or not valid for a target.
    pub unexpected_frames: u64,
    /// Data frames that [`FcpTarget::accept_data`] has discarded.
    pub discarded_data: u64,
}

/// Target side of all FCP exchanges of a port. The module describes its states, [`crate`] how to
/// drive it.
#[derive(Debug)]
pub struct FcpTarget {
    config: FcpTargetConfig,
    local_id: FcId,
    /// Logins sorted by address.
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

/// OX_ID of the LOGO that makes a port log in again. Its reply is ignored.
const LOGO_OX_ID: u16 = *crate::exchange::FCP_OX_IDS.end();

impl FcpTarget {
    /// Returns a target without an address and logins.
    pub fn new(mut config: FcpTargetConfig) -> FcpTarget {
        // The highest exchange number means "not assigned".
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

    /// Processes one input at `now`. Pass the same `device` to all ports of a device.
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
            Input::Notice(Notice::Step { task, step }) => {
                device.confirm(task, &step);
                self.on_step(now, task, step, device);
            }
            Input::Notice(Notice::End(ends)) => self.end_tasks(now, &ends, device),
            Input::Timeout => self.on_timeout(now, device),
        }
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which to pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next(&self.tasks)
    }

    /// Reception state of a task's write data. `None` if the exchange takes no data (any more).
    #[inline]
    pub fn data(&mut self, rx_id: u16) -> Option<&mut SeqRx> {
        let task = self.tasks.get_mut(usize::from(rx_id))?;
        (task.state == State::Receiving).then_some(&mut task.rx)
    }

    /// Takes a data frame and returns its effect; a frame for an exchange that takes no data (any
    /// more) is stale. Gaps and stale frames are discarded, and counted as such.
    #[inline]
    pub fn accept_data(&mut self, rx_id: u16, seq_cnt: u16, len_bytes: u16) -> Accepted {
        let accepted = self.data(rx_id).map_or(Accepted::Stale, |rx| rx.accept(seq_cnt, len_bytes));
        if matches!(accepted, Accepted::Gap | Accepted::Stale) {
            self.discard_data();
        }
        accepted
    }

    #[cold]
    fn discard_data(&mut self) {
        self.counters.discarded_data += 1;
    }

    /// Number of bytes that a task transfers in either direction, for the driver's buffer. `None`
    /// if the exchange has ended.
    pub fn expected_bytes(&self, rx_id: u16) -> Option<u32> {
        let task = self.tasks.get(usize::from(rx_id))?;
        task.is_live().then(|| task.transfer_bytes())
    }

    /// Number of logged-in initiators.
    pub fn logins(&self) -> usize {
        self.logins.len()
    }

    /// Memory that grows with the number of logins, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.logins.capacity() * size_of::<Login>()
    }

    /// Number of exchanges in use: tasks and resting exchanges.
    pub fn exchanges_in_use(&self) -> usize {
        self.tasks.len() - self.free.len()
    }

    /// Event counts since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Inputs handled and exchanges searched since the start.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Raises the timeouts to the fabric's values where those are longer.
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

    /// Sends FCP_RJT: an LS_RJT as the reply to an FC-4 link service (FCP-4, FC-4 link services).
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
        // ABTS needs no login: the exchange may be older than the logout, or belong to an earlier
        // login of the sender.
        if matches!(frame.payload, Payload::Typed(Message::Bls(Bls::Abts))) {
            return self.on_abts(now, &header, device);
        }
        let Ok(login) = self.find_login(header.s_id) else {
            return self.request_login(now, header.s_id);
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
                List::FirstData => self.check_progress(now, rx_id, device),
                List::Rest => self.release(rx_id),
            }
        }
    }

    fn arm(&mut self, rx_id: u16, list: List, deadline: Instant) {
        self.timers.arm(&mut self.tasks, rx_id, list as u8, deadline);
    }

    fn release(&mut self, rx_id: u16) {
        self.timers.cancel(&mut self.tasks, rx_id);
        debug_assert_ne!(self.tasks[usize::from(rx_id)].state, State::Free, "RX_ID {rx_id:#x} is released twice");
        self.tasks[usize::from(rx_id)].state = State::Free;
        self.free.push(rx_id);
    }

    /// Sends a message of an exchange with `d_id`.
    fn send(&mut self, d_id: FcId, ox_id: u16, rx_id: u16, seq_id: u8, message: Message) {
        let header = message.header(self.local_id, d_id, ox_id, rx_id);
        let frame = Frame { header: Header { seq_id, ..header }, payload: Payload::Typed(message) };
        self.outputs.push_back(Output::Send(frame));
    }
}
