//! The initiator side of FCP: every command gets exactly one outcome.
//!
//! ```text
//!            Submit                  FCP_RSP, data complete
//!   free ------------> active ---------------------------------> free        Done(Completed)
//!                       |   \ FCP_RSP early
//!                       |    ----> holding -- data complete ---> free        Done(Completed)
//!                       |             | E_D_TOV, gap
//!                       | timeout, gap|
//!                       v             v      BA_ACC                R_A_TOV             reply
//!                      aborting (ABTS) ----------------> resting ---------> reinstating ----> free
//!                       |                Done(Aborted)      | BA_RJT: no RRQ  (RRQ)
//!                       | no answer                         v
//!                       +-------------> resting ----------> free         Done(Aborted(Unanswered))
//! ```
//!
//! When a remote port goes down, its commands end with [`Outcome::PortGone`]. Their OX_IDs rest for
//! R_A_TOV, because their frames may still be in flight. An OX_ID is therefore reused only when no
//! frame of its past can arrive.
//!
//! An ABTS without an answer is repeated twice, unless [`RecoveryLimits`] are given.
//!
//! A command has a slot and a number: `OX_ID = generation * stride + slot`. The stride is the
//! smallest power of two not below [`FcpInitiatorConfig::max_exchanges`]. The most recently used
//! slots are reused first, so that few are touched. The generation cycles, so that a number stays
//! unused for as long as possible, as protocol analysers expect.
//!
//! On a fabric that reorders frames (an exchange sprayed over parallel links), FCP_RSP may overtake
//! data. It is held until the byte count is complete or E_D_TOV expires.

mod data;
mod exchange;
mod recovery;
mod resting;

use super::timers::Timers;
use crate::exchange::{Accepted, SeqIds, SeqTx};
use exchange::{Exchange, List, State};
use resting::Resting;
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::bls::Bls;
use sanloom_wire::cdb::status;
use sanloom_wire::els::Els;
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, FcpXferRdy, Residual, response};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::sense::Condition;
use sanloom_wire::{FcId, Frame, Header, Message, Payload, RCtl};
use std::collections::{BTreeSet, VecDeque};

/// Configuration of an initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FcpInitiatorConfig {
    /// Time that an early FCP_RSP waits for its data.
    pub e_d_tov: Span,
    /// Time that an aborted OX_ID rests. The timeout of an ABTS or RRQ is twice this.
    pub r_a_tov: Span,
    /// Time after which an incomplete command is aborted.
    pub command_timeout: Span,
    /// Limits of error recovery. `None`: an ABTS is sent up to three times and waits for
    /// 2 × R_A_TOV, and a task management function is treated like a command.
    pub recovery: Option<RecoveryLimits>,
    /// Maximum number of commands in flight, limited to [`MAX_EXCHANGES`]; resting OX_IDs do not
    /// count.
    pub max_exchanges: u16,
    /// True if the fabric delivers the frames of an exchange in order, so that a skipped SEQ_CNT
    /// means a lost frame.
    pub in_order: bool,
}

/// Limits of error recovery of an initiator whose driver escalates by itself, as Linux does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryLimits {
    /// Time to wait for the answer to an ABTS, which is sent once.
    pub abort_timeout: Span,
    /// Time to wait for the answer to a task management function. It then ends with
    /// [`AbortReason::Unanswered`], and no ABTS is sent for it.
    pub reset_timeout: Span,
}

/// Exclusive upper bound of the OX_IDs of commands. The RRQ for OX_ID x has the OX_ID
/// `MAX_EXCHANGES + x`.
pub const MAX_EXCHANGES: u16 = 0x4000;

/// SCSI command for a remote port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Tag returned in [`Output::Done`].
    pub tag: u64,
    /// Address of the target port.
    pub d_id: FcId,
    /// LUN in the eight-byte format of SAM.
    pub lun: [u8; 8],
    /// CDB, padded with zeros.
    pub cdb: [u8; 16],
    /// FCP_DL, the length of the data buffer in bytes.
    pub data_len: u32,
    /// Direction of the data transfer.
    pub direction: DataDirection,
    /// Receive size of the target in bytes, which limits write data frames.
    pub frame_size_bytes: u16,
}

/// Task management function for a remote port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manage {
    /// Tag returned in [`Output::Done`].
    pub tag: u64,
    /// Address of the target port.
    pub d_id: FcId,
    /// LUN in the eight-byte format of SAM.
    pub lun: [u8; 8],
    /// One of [`task_management`](sanloom_wire::fcp::task_management).
    pub function: u8,
}

/// Event for an initiator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Own address; [`FcId::ZERO`] when the fabric is lost. A change ends all commands with
    /// [`Outcome::PortGone`].
    LocalId(FcId),
    /// Start a command.
    Submit(Command),
    /// Start a task management function. It ends like a command without data; the outcome is
    /// completed if the target performed it.
    Manage(Manage),
    /// Abort a command with ABTS. It ends with [`AbortReason::Recalled`], or with its result if
    /// that arrives first.
    Abort {
        /// Tag of the command.
        tag: u64,
    },
    /// FCP_RSP, FCP_XFER_RDY, BA_ACC, BA_RJT, or the reply to an RRQ.
    Frame(Frame),
    /// Result of [`SeqRx::accept`](crate::exchange::SeqRx::accept) if it was `Complete` or `Gap`.
    Data {
        /// OX_ID of the exchange.
        ox_id: u16,
        /// Result of the call.
        accepted: Accepted,
    },
    /// The login with a remote port ended.
    RemoteDown {
        /// Address of the remote port.
        port_id: FcId,
    },
    /// The deadline of [`FcpInitiator::poll_timeout`] was reached.
    Timeout,
}

/// Action or result for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a frame.
    Send(Frame),
    /// Send write data.
    Transmit(SeqTx),
    /// A command ended.
    Done {
        /// Tag of the command.
        tag: u64,
        /// OX_ID of its exchange; FFFF if it never got one.
        ox_id: u16,
        /// Outcome of the command.
        outcome: Outcome,
    },
}

/// Outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The target replied and all data arrived.
    Completed {
        /// SCSI status code.
        status: u8,
        /// Difference between the expected and the transferred length.
        residual: Residual,
        /// Bytes transferred.
        transferred: u32,
        /// Sense data of CHECK CONDITION; `None` with other statuses, and if they are unreadable.
        condition: Option<Condition>,
    },
    /// The command did not complete. The exchange has ended at both ends, so the command may be
    /// retried.
    Aborted(AbortReason),
    /// The login with the remote port, or the own address, is lost.
    PortGone,
}

/// Reason why a command was aborted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AbortReason {
    /// The command timeout expired.
    Timeout,
    /// A data frame is missing.
    LostFrame,
    /// The target violated the protocol (data beyond FCP_DL, or bursts that are not contiguous).
    Protocol,
    /// The target rejected the command with this FCP response code.
    Refused(u8),
    /// The target did not reply to any ABTS. It may have executed the command or, in theory, still
    /// do so.
    Unanswered,
    /// No exchange was free; nothing was sent.
    NoExchange,
    /// The driver aborted it ([`Input::Abort`]).
    Recalled,
}

/// Counters of an initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Commands submitted.
    pub submitted: u64,
    /// Commands that ended as [`Outcome::Completed`].
    pub completed: u64,
    /// Commands that ended as [`Outcome::Aborted`].
    pub aborted: u64,
    /// Commands that ended as [`Outcome::PortGone`].
    pub port_gone: u64,
    /// FCP_RSPs that arrived before all of their data.
    pub early_responses: u64,
    /// ABTS frames sent, repetitions included.
    pub abts_sent: u64,
    /// RRQs sent, repetitions included.
    pub rrq_sent: u64,
    /// Frames of ended exchanges, or from a port that is not part of the exchange.
    pub stale_frames: u64,
    /// Frames that are not valid for an initiator.
    pub unexpected_frames: u64,
    /// Data frames that [`FcpInitiator::accept_data`] has discarded.
    pub discarded_data: u64,
}

/// Initiator side of all FCP exchanges of a port. The module describes its states, [`crate`] how to
/// drive it.
#[derive(Debug)]
pub struct FcpInitiator {
    config: FcpInitiatorConfig,
    local_id: FcId,
    /// Exchanges by slot.
    exchanges: Vec<Exchange>,
    free: Vec<u16>,
    /// Free slots of which every exchange number rests.
    exhausted: BTreeSet<u16>,
    /// Stride of the exchange numbers minus one.
    slot_mask: u16,
    resting: Resting,
    timers: Timers<{ List::COUNT }>,
    in_flight: u16,
    outputs: VecDeque<Output>,
    counters: Counters,
    work: u64,
}

impl FcpInitiator {
    /// Returns an initiator without an address.
    pub fn new(config: FcpInitiatorConfig) -> FcpInitiator {
        let max_exchanges = config.max_exchanges.min(MAX_EXCHANGES);
        FcpInitiator {
            config: FcpInitiatorConfig { max_exchanges, ..config },
            local_id: FcId::ZERO,
            exchanges: Vec::new(),
            free: Vec::new(),
            exhausted: BTreeSet::new(),
            slot_mask: max_exchanges.next_power_of_two() - 1,
            resting: Resting::new(),
            timers: Timers::new(),
            in_flight: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
            work: 0,
        }
    }

    /// Processes one input at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.work += 1;
        match input {
            Input::LocalId(local_id) => self.set_local_id(now, local_id),
            Input::Submit(command) => self.submit(now, &command, 0),
            Input::Manage(Manage { tag, d_id, lun, function }) => {
                let (direction, frame_size_bytes) = (DataDirection::None, 0);
                let command = Command { tag, d_id, lun, cdb: [0; 16], data_len: 0, direction, frame_size_bytes };
                self.submit(now, &command, function);
            }
            Input::Abort { tag } => self.recall(now, tag),
            Input::Frame(frame) => self.on_frame(now, frame),
            Input::Data { ox_id, accepted } => self.on_data(now, ox_id, accepted),
            Input::RemoteDown { port_id } => self.end_all(now, Some(port_id)),
            Input::Timeout => self.on_timeout(now),
        }
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which to pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next(&self.exchanges).into_iter().chain(self.resting.next_deadline()).min()
    }

    /// Number of commands in flight.
    pub fn in_flight(&self) -> usize {
        usize::from(self.in_flight)
    }

    /// Returns true if another command can start now.
    pub fn has_free_exchange(&self) -> bool {
        self.in_flight < self.config.max_exchanges
            && (self.exchanges.len() < usize::from(self.config.max_exchanges) || !self.free.is_empty())
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

    fn submit(&mut self, now: Instant, command: &Command, task_management: u8) {
        self.counters.submitted += 1;
        if self.local_id == FcId::ZERO {
            return self.done(command.tag, u16::MAX, Outcome::PortGone);
        }
        let Some(slot) = self.allocate(command) else {
            return self.done(command.tag, u16::MAX, Outcome::Aborted(AbortReason::NoExchange));
        };
        self.in_flight += 1;
        debug_assert!(self.in_flight <= self.config.max_exchanges, "{} commands are in flight", self.in_flight);
        match self.config.recovery.filter(|_| task_management != 0) {
            Some(limits) => self.arm(slot, List::Manage, now + limits.reset_timeout),
            None => self.arm(slot, List::Command, now + self.config.command_timeout),
        }
        let flags = match command.direction {
            DataDirection::None => 0,
            DataDirection::Read => FcpCmnd::READ,
            DataDirection::Write => FcpCmnd::WRITE,
        };
        let message = Message::FcpCmnd(FcpCmnd {
            lun: command.lun,
            crn: 0,
            attribute: 0,
            task_management,
            flags,
            cdb: command.cdb,
            data_len: command.data_len,
        });
        let ox_id = self.exchanges[usize::from(slot)].ox_id;
        let header = self.header(&message, command.d_id, ox_id);
        self.send(header, message);
    }

    /// Allocates a slot and a new exchange in it.
    fn allocate(&mut self, command: &Command) -> Option<u16> {
        if self.in_flight >= self.config.max_exchanges {
            return None;
        }
        while let Some(slot) = self.free.pop() {
            self.work += 1;
            match self.next_number(slot) {
                Some(ox_id) => {
                    self.exchanges[usize::from(slot)] = Exchange::new(ox_id, command, self.config.in_order);
                    return Some(slot);
                }
                None => _ = self.exhausted.insert(slot),
            }
        }
        if self.exchanges.len() >= usize::from(self.config.max_exchanges) {
            return None;
        }
        let slot = self.exchanges.len() as u16;
        self.exchanges.push(Exchange::new(slot, command, self.config.in_order));
        Some(slot)
    }

    /// Next exchange number of a free slot that is not resting.
    fn next_number(&self, slot: u16) -> Option<u16> {
        let stride = self.slot_mask + 1;
        let mut ox_id = self.exchanges[usize::from(slot)].ox_id;
        for _ in 0..MAX_EXCHANGES / stride {
            ox_id = (ox_id + stride) % MAX_EXCHANGES;
            if !self.resting.contains(ox_id) {
                return Some(ox_id);
            }
        }
        None
    }

    /// Slot of an exchange that has neither ended nor is resting.
    fn slot_of(&self, ox_id: u16) -> Option<u16> {
        let slot = ox_id & self.slot_mask;
        let exchange = self.exchanges.get(usize::from(slot))?;
        (exchange.ox_id == ox_id && exchange.state != State::Free).then_some(slot)
    }

    fn on_frame(&mut self, now: Instant, frame: Frame) {
        let Frame { header, payload } = frame;
        if header.d_id != self.local_id {
            self.counters.stale_frames += 1;
            return;
        }
        match payload {
            Payload::Typed(Message::FcpRsp(response)) => self.on_response(now, &header, &response),
            Payload::Typed(Message::FcpXferRdy(ready)) => self.on_transfer_ready(now, &header, ready),
            Payload::Typed(Message::Bls(Bls::BaAcc(accept))) => self.on_abort_answer(now, &header, Some(accept)),
            Payload::Typed(Message::Bls(Bls::BaRjt(_))) => self.on_abort_answer(now, &header, None),
            Payload::Typed(Message::Els(els)) if matches!(*els, Els::LsAcc(_) | Els::LsRjt(_)) => {
                self.on_reinstate_answer(&header);
            }
            // An FCP_RSP or FCP_XFER_RDY that cannot be parsed.
            Payload::Bytes(_) if matches!(header.r_ctl, RCtl::COMMAND_STATUS | RCtl::DATA_DESCRIPTOR) => {
                self.counters.unexpected_frames += 1;
                if let Some(slot) = self.active(&header) {
                    self.abort(now, slot, AbortReason::Protocol);
                }
            }
            _ => self.counters.unexpected_frames += 1,
        }
    }

    /// Slot of a frame's exchange, if the exchange awaits frames of the target.
    fn active(&mut self, header: &Header) -> Option<u16> {
        if let Some(slot) = self.slot_of(header.ox_id) {
            let exchange = &mut self.exchanges[usize::from(slot)];
            if exchange.state == State::Active && exchange.d_id == header.s_id {
                exchange.rx_id = header.rx_id;
                return Some(slot);
            }
        }
        self.counters.stale_frames += 1;
        None
    }

    fn on_response(&mut self, now: Instant, header: &Header, rsp: &FcpRsp) {
        let Some(slot) = self.active(header) else {
            return;
        };
        if let Some(code) = rsp.response_code.filter(|&code| code != response::COMPLETE) {
            return self.end(slot, Outcome::Aborted(AbortReason::Refused(code)));
        }
        let exchange = &mut self.exchanges[usize::from(slot)];
        exchange.status = rsp.status;
        exchange.residual = rsp.residual;
        let sense = rsp.sense.as_ref().filter(|_| rsp.status == status::CHECK_CONDITION);
        exchange.condition = sense.and_then(|sense| Condition::parse(sense));
        if exchange.direction == DataDirection::Read {
            let sent = match rsp.residual {
                Residual::Under(bytes) => exchange.data_len.saturating_sub(bytes),
                Residual::None | Residual::Over(_) => exchange.data_len,
            };
            exchange.rx.shorten(sent);
            // Some targets reject a command (BUSY, TASK SET FULL) without a residual that shows
            // that no data was sent.
            let refused = rsp.status != 0 && exchange.rx.received_bytes() == 0 && sent == exchange.data_len;
            if !exchange.rx.is_complete() && !refused {
                if exchange.rx.received_bytes() > sent {
                    return self.abort(now, slot, AbortReason::Protocol);
                }
                self.counters.early_responses += 1;
                exchange.state = State::Holding;
                return self.arm(slot, List::Hold, now + self.config.e_d_tov);
            }
        }
        self.complete(slot);
    }

    fn on_transfer_ready(&mut self, now: Instant, header: &Header, ready: FcpXferRdy) {
        let Some(slot) = self.active(header) else {
            return;
        };
        let local_id = self.local_id;
        let exchange = &mut self.exchanges[usize::from(slot)];
        let fits = ready.offset.checked_add(ready.burst_len).is_some_and(|end| end <= exchange.data_len);
        let follows = exchange.direction == DataDirection::Write && ready.offset == exchange.sent_bytes;
        if !fits || !follows || ready.burst_len == 0 {
            return self.abort(now, slot, AbortReason::Protocol);
        }
        let ids = SeqIds {
            s_id: local_id,
            d_id: exchange.d_id,
            ox_id: exchange.ox_id,
            rx_id: header.rx_id,
            seq_id: exchange.next_seq_id(),
            from_responder: false,
        };
        let sequence = SeqTx::new(ids, exchange.frame_size_bytes, exchange.next_seq_cnt, ready.offset, ready.burst_len);
        exchange.sent_bytes += ready.burst_len;
        exchange.next_seq_cnt = exchange.next_seq_cnt.wrapping_add(sequence.remaining_frames() as u16);
        self.outputs.push_back(Output::Transmit(sequence));
    }

    fn on_data(&mut self, now: Instant, ox_id: u16, accepted: Accepted) {
        let Some(slot) = self.slot_of(ox_id) else {
            return;
        };
        let exchange = &self.exchanges[usize::from(slot)];
        match (accepted, exchange.state) {
            (Accepted::Complete, State::Holding) if exchange.rx.is_complete() => self.complete(slot),
            (Accepted::Gap, State::Active | State::Holding) => self.abort(now, slot, AbortReason::LostFrame),
            _ => {}
        }
    }

    /// Completes a command after FCP_RSP and all data arrived.
    fn complete(&mut self, slot: u16) {
        let exchange = &self.exchanges[usize::from(slot)];
        let transferred = match exchange.direction {
            DataDirection::None => 0,
            DataDirection::Read => exchange.rx.received_bytes(),
            DataDirection::Write => match exchange.residual {
                Residual::Under(bytes) => exchange.data_len.saturating_sub(bytes),
                Residual::None | Residual::Over(_) => exchange.sent_bytes,
            },
        };
        let Exchange { status, residual, condition, .. } = *exchange;
        let outcome = Outcome::Completed { status, residual, transferred, condition };
        self.end(slot, outcome);
    }

    /// Ends a command with an outcome and frees its slot at once.
    fn end(&mut self, slot: u16, outcome: Outcome) {
        let Exchange { tag, ox_id, state, .. } = self.exchanges[usize::from(slot)];
        debug_assert_ne!(state, State::Free, "the command of OX_ID {ox_id:#x} ends twice");
        self.in_flight -= 1;
        self.done(tag, ox_id, outcome);
        self.release(slot);
    }

    fn done(&mut self, tag: u64, ox_id: u16, outcome: Outcome) {
        match outcome {
            Outcome::Completed { .. } => self.counters.completed += 1,
            Outcome::Aborted(_) => self.counters.aborted += 1,
            Outcome::PortGone => self.counters.port_gone += 1,
        }
        self.outputs.push_back(Output::Done { tag, ox_id, outcome });
    }

    fn release(&mut self, slot: u16) {
        self.timers.cancel(&mut self.exchanges, slot);
        self.exchanges[usize::from(slot)].state = State::Free;
        match self.next_number(slot) {
            Some(_) => self.free.push(slot),
            None => _ = self.exhausted.insert(slot),
        }
        debug_assert_eq!(
            usize::from(self.in_flight) + self.free.len() + self.exhausted.len(),
            self.exchanges.len(),
            "each slot is free, waits for a number, or has a command in flight"
        );
    }

    /// Ends the rest of an exchange number. Its slot can be used again.
    fn end_rest(&mut self, index: u16) {
        let slot = self.resting.end(index) & self.slot_mask;
        if self.exhausted.remove(&slot) {
            self.free.push(slot);
        }
    }

    fn set_local_id(&mut self, now: Instant, local_id: FcId) {
        if local_id != self.local_id {
            self.end_all(now, None);
            self.local_id = local_id;
        }
    }

    fn arm(&mut self, slot: u16, list: List, deadline: Instant) {
        self.timers.arm(&mut self.exchanges, slot, list as u8, deadline);
    }

    fn header(&self, message: &Message, d_id: FcId, ox_id: u16) -> Header {
        message.header(self.local_id, d_id, ox_id, RX_ID_UNASSIGNED)
    }

    fn send(&mut self, header: Header, message: Message) {
        self.outputs.push_back(Output::Send(Frame { header, payload: Payload::Typed(message) }));
    }
}
