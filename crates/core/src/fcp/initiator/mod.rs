//! The initiator's side of FCP: commands in, exactly one outcome for each.
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
//!                       | no answer, three times            v
//!                       +-------------> resting ----------> free             Done(Aborted(Unanswered))
//! ```
//!
//! A remote port that goes down ends its commands with [`Outcome::PortGone`]; their OX_IDs rest for R_A_TOV, because
//! frames of theirs may still be under way. So an OX_ID is used again only when nothing of its past can arrive.
//!
//! A command has a slot and a number: `OX_ID = generation * stride + slot`, where the stride is the power of two that holds
//! [`FcpInitiatorConfig::max_exchanges`]. The slots that are used again first are the ones used last, so that few are
//! touched; the generation goes round, so that a number stays unused for as long as possible, as analysers expect.
//!
//! On a fabric that reorders (frames of an exchange sprayed over parallel links), FCP_RSP may overtake data: it is held
//! until the byte count is complete or E_D_TOV is over.

mod exchange;
mod recovery;
mod resting;

use super::DataDirection;
use super::timers::Timers;
use crate::exchange::{Accepted, SeqIds, SeqRx, SeqTx, usable_frame_size};
use crate::time::{Instant, Span};
use exchange::{Exchange, List, State};
use resting::Resting;
use sanloom_wire::bls::Bls;
use sanloom_wire::els::Els;
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, FcpXferRdy, Residual, response};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::{FcId, Frame, Header, Message, Payload, RCtl};
use std::collections::VecDeque;

/// How an initiator behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FcpInitiatorConfig {
    /// How long an early FCP_RSP waits for its data.
    pub e_d_tov: Span,
    /// How long an aborted OX_ID rests; twice this, an ABTS or RRQ waits for its answer.
    pub r_a_tov: Span,
    /// A command that is not complete after this time is aborted.
    pub command_timeout: Span,
    /// Commands in flight at most; resting OX_IDs do not count. More than [`MAX_EXCHANGES`] counts as that many.
    pub max_exchanges: u16,
    /// The fabric delivers the frames of an exchange in order, so a skipped SEQ_CNT is a lost frame.
    pub in_order: bool,
}

/// OX_IDs of commands are 0 to this, exclusively; RRQ for OX_ID x has the OX_ID `MAX_EXCHANGES + x`.
pub const MAX_EXCHANGES: u16 = 0x4000;

/// A SCSI command for a remote port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Comes back in [`Output::Done`].
    pub tag: u64,
    /// The target port.
    pub d_id: FcId,
    /// The eight LUN bytes of SAM.
    pub lun: [u8; 8],
    /// CDB, zero filled.
    pub cdb: [u8; 16],
    /// FCP_DL in bytes.
    pub data_len: u32,
    /// Which way the data flows.
    pub direction: DataDirection,
    /// The target's receive size, the limit of write data frames.
    pub frame_size_bytes: u16,
}

/// A task management function for a remote port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manage {
    /// Comes back in [`Output::Done`].
    pub tag: u64,
    /// The target port.
    pub d_id: FcId,
    /// The eight LUN bytes of SAM.
    pub lun: [u8; 8],
    /// One of [`task_management`](sanloom_wire::fcp::task_management).
    pub function: u8,
}

/// What happens to an initiator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Our address; [`FcId::ZERO`] when the fabric is gone. A change ends all commands with [`Outcome::PortGone`].
    LocalId(FcId),
    /// Start a command.
    Submit(Command),
    /// Start a task management function. It ends as a command without data does: completed, if the target did it.
    Manage(Manage),
    /// FCP_RSP, FCP_XFER_RDY, BA_ACC, BA_RJT, or the reply to an RRQ.
    Frame(Frame),
    /// What [`SeqRx::accept`] said, when it was `Complete` or `Gap`.
    Data {
        /// The exchange.
        ox_id: u16,
        /// The answer.
        accepted: Accepted,
    },
    /// The login with a remote port is gone.
    RemoteDown {
        /// Its address.
        port_id: FcId,
    },
    /// Time has passed.
    Timeout,
}

/// What an initiator does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a frame.
    Send(Frame),
    /// Send write data.
    Transmit(SeqTx),
    /// A command ended.
    Done {
        /// The command's tag.
        tag: u64,
        /// The exchange it had; FFFF if it never got one.
        ox_id: u16,
        /// How it ended.
        outcome: Outcome,
    },
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The target answered, and all data is there.
    Completed {
        /// SCSI status.
        status: u8,
        /// What was not transferred.
        residual: Residual,
        /// Bytes transferred.
        transferred: u32,
    },
    /// The command did not complete, and the exchange is over at both ends; it may be tried again.
    Aborted(AbortReason),
    /// The remote port is gone, or we are.
    PortGone,
}

/// Why a command was aborted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AbortReason {
    /// Not complete within the command timeout.
    Timeout,
    /// A data frame is missing.
    LostFrame,
    /// The target broke the protocol (data beyond FCP_DL, bursts that do not follow each other).
    Protocol,
    /// The target refused the command with this FCP response code.
    Refused(u8),
    /// The target answered no ABTS. It may have executed the command or, in theory, still do so.
    Unanswered,
    /// No exchange was free; nothing was sent.
    NoExchange,
}

/// What an initiator has counted.
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
    /// FCP_RSP that came before all of its data.
    pub early_responses: u64,
    /// ABTS sent, repetitions included.
    pub abts_sent: u64,
    /// RRQ sent, repetitions included.
    pub rrq_sent: u64,
    /// Frames of exchanges that are over, or from a port that is no part of them.
    pub stale_frames: u64,
    /// Frames that make no sense to an initiator.
    pub unexpected_frames: u64,
}

/// The initiator's side of all FCP exchanges of a port. See the module for its states and [`crate`] for how to drive it.
#[derive(Debug)]
pub struct FcpInitiator {
    config: FcpInitiatorConfig,
    local_id: FcId,
    /// By slot.
    exchanges: Vec<Exchange>,
    free: Vec<u16>,
    /// Stride of the numbers, less one.
    slot_mask: u16,
    resting: Resting,
    timers: Timers<{ List::COUNT }>,
    in_flight: u16,
    outputs: VecDeque<Output>,
    counters: Counters,
    work: u64,
}

impl FcpInitiator {
    /// An initiator without an address.
    pub fn new(config: FcpInitiatorConfig) -> FcpInitiator {
        let max_exchanges = config.max_exchanges.min(MAX_EXCHANGES);
        FcpInitiator {
            config: FcpInitiatorConfig { max_exchanges, ..config },
            local_id: FcId::ZERO,
            exchanges: Vec::new(),
            free: Vec::new(),
            slot_mask: max_exchanges.next_power_of_two() - 1,
            resting: Resting::new(),
            timers: Timers::new(),
            in_flight: 0,
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
            Input::Submit(command) => self.submit(now, &command, 0),
            Input::Manage(Manage { tag, d_id, lun, function }) => {
                let (direction, frame_size_bytes) = (DataDirection::None, 0);
                let command = Command { tag, d_id, lun, cdb: [0; 16], data_len: 0, direction, frame_size_bytes };
                self.submit(now, &command, function);
            }
            Input::Frame(frame) => self.on_frame(now, frame),
            Input::Data { ox_id, accepted } => self.on_data(now, ox_id, accepted),
            Input::RemoteDown { port_id } => self.end_all(now, Some(port_id)),
            Input::Timeout => self.on_timeout(now),
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next(&self.exchanges).into_iter().chain(self.resting.next_deadline()).min()
    }

    /// The reception of a command's read data, for the driver to call [`SeqRx::accept`] on. Nothing for an exchange that
    /// takes no data (any more): the frame is stale.
    #[inline]
    pub fn data(&mut self, ox_id: u16) -> Option<&mut SeqRx> {
        let exchange = self.exchanges.get_mut(usize::from(ox_id & self.slot_mask))?;
        (exchange.ox_id == ox_id && exchange.takes_data()).then_some(&mut exchange.rx)
    }

    /// Commands that have not ended.
    pub fn in_flight(&self) -> usize {
        usize::from(self.in_flight)
    }

    /// Another command can start now.
    pub fn has_free_exchange(&self) -> bool {
        self.in_flight < self.config.max_exchanges
            && (self.exchanges.len() < usize::from(self.config.max_exchanges)
                || self.free.iter().any(|&slot| self.next_number(slot).is_some()))
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

    fn submit(&mut self, now: Instant, command: &Command, task_management: u8) {
        self.counters.submitted += 1;
        if self.local_id == FcId::ZERO {
            return self.done(command.tag, u16::MAX, Outcome::PortGone);
        }
        let Some(slot) = self.allocate(command) else {
            return self.done(command.tag, u16::MAX, Outcome::Aborted(AbortReason::NoExchange));
        };
        self.in_flight += 1;
        self.arm(slot, List::Command, now + self.config.command_timeout);
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

    /// A slot with its new exchange.
    fn allocate(&mut self, command: &Command) -> Option<u16> {
        if self.in_flight >= self.config.max_exchanges {
            return None;
        }
        for at in (0..self.free.len()).rev() {
            let slot = self.free[at];
            if let Some(ox_id) = self.next_number(slot) {
                self.free.remove(at);
                self.exchanges[usize::from(slot)] = Exchange::new(ox_id, command, self.config.in_order);
                return Some(slot);
            }
        }
        if self.exchanges.len() >= usize::from(self.config.max_exchanges) {
            return None;
        }
        let slot = self.exchanges.len() as u16;
        self.exchanges.push(Exchange::new(slot, command, self.config.in_order));
        Some(slot)
    }

    /// The next number of a free slot that does not rest.
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

    /// The slot of an exchange that is neither over nor resting.
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
            // A status or XFER_RDY that does not parse.
            Payload::Bytes(_) if matches!(header.r_ctl, RCtl::COMMAND_STATUS | RCtl::DATA_DESCRIPTOR) => {
                self.counters.unexpected_frames += 1;
                if let Some(slot) = self.active(&header) {
                    self.abort(now, slot, AbortReason::Protocol);
                }
            }
            _ => self.counters.unexpected_frames += 1,
        }
    }

    /// The slot of a frame's exchange, if it is one that waits for frames of the target.
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
        if exchange.direction == DataDirection::Read {
            let sent = match rsp.residual {
                Residual::Under(bytes) => exchange.data_len.saturating_sub(bytes),
                Residual::None | Residual::Over(_) => exchange.data_len,
            };
            exchange.rx.shorten(sent);
            // Some targets refuse a command (BUSY, TASK SET FULL) without saying that no data was sent.
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

    /// All is there: FCP_RSP and data.
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
        let outcome = Outcome::Completed { status: exchange.status, residual: exchange.residual, transferred };
        self.end(slot, outcome);
    }

    /// The command has its outcome and the slot is free at once.
    fn end(&mut self, slot: u16, outcome: Outcome) {
        let Exchange { tag, ox_id, .. } = self.exchanges[usize::from(slot)];
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
        self.free.push(slot);
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

impl Exchange {
    fn new(ox_id: u16, command: &Command, in_order: bool) -> Exchange {
        let expected_bytes = match command.direction {
            DataDirection::Read => command.data_len,
            DataDirection::None | DataDirection::Write => 0,
        };
        let rx = SeqRx::new(expected_bytes, in_order);
        Exchange::start(ox_id, command, rx, usable_frame_size(command.frame_size_bytes))
    }
}
