//! Session in the full feature phase, on the target's side: [`Session`].
//!
//! ```text
//!   header, by its kind
//!     SCSI command   -> task: arriving -> held (a lower CmdSN is missing)
//!                        -> device: waiting, receiving, awaiting buffer, io -> ending
//!     Data-Out       -> its task
//!     anything else  -> in CmdSN order; immediate PDUs at once
//! ```
//!
//! A session has one part for each job, and calls go from left to right only:
//!
//! ```text
//!   Session ------> TaskEngine ---> CommandWindow      ExpCmdSN, MaxCmdSN, PDUs held for order
//!     segments,       tasks    ---> BufferSpace        space for data, tasks that wait for it
//!     PDU order                ---> DeferredResponses  task management that waits for tasks
//!     |                        ---> Outbound           output queue, counters
//!     +--> Keepalive                                   pings, deadline of the logout
//!     +--> TextExchange                                text longer than a PDU
//! ```

use super::config::{Node, PING};
use super::directory::SessionKey;
use super::discovery::TextExchange;
use super::engine::TaskEngine;
use super::event::{CloseReason, Counters, Destination, Input, Limits, Output};
use super::keepalive::{Expired, Keepalive};
use super::login::Established;
use super::window::Held;
use crate::iscsi::parameters::Parameters;
use crate::iscsi::sequence::Order;
use crate::scsi::{Device, IoTag, NexusId, Notice};
use crate::time::Instant;
use sanloom_wire::iscsi::code::{function, task_response};
use sanloom_wire::iscsi::{Head, Header, RejectReason, ScsiCommand, TaskRequest};
use sanloom_wire::scsi::transport_id::TransportId;
use std::sync::Arc;

/// Depth of the command window of a discovery session.
const DISCOVERY_DEPTH: u16 = 128;

/// Owner of the data segment that is arriving.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Segment {
    None,
    /// PDU that is handled once its text is complete.
    Text(Head),
    /// Immediate data of a task.
    Immediate(IoTag),
    /// Data of a Data-Out, at this offset.
    Data {
        tag: IoTag,
        at: u32,
        head: Head,
    },
    Skip,
}

/// Session with its one connection. [`super`] describes how to drive it.
#[derive(Debug)]
pub struct Session {
    pub(super) key: SessionKey,
    pub(super) cid: u16,
    pub(super) node: Arc<Node>,
    nexus: Option<NexusId>,
    segment: Segment,
    pub(super) text: TextExchange,
    pub(super) keepalive: Keepalive,
    over: bool,
    pub(in crate::iscsi) engine: TaskEngine,
}

impl Session {
    /// Creates the session after a login that ended at `now`. `port` is the number of the port in
    /// `device`; `None` for discovery.
    pub fn new(
        now: Instant,
        established: Established,
        node: Arc<Node>,
        limits: Limits,
        device: Option<(u16, &mut Device)>,
    ) -> Session {
        let Established { key, cid, parameters, exp_cmd_sn, .. } = established;
        let nexus = device.map(|(port, device)| {
            let initiator = TransportId::iscsi(&key.initiator, Some(key.isid));
            device.connect(port, initiator)
        });
        let target = key.target.and_then(|target| node.targets.get(usize::from(target)));
        let ping = target.map_or(Some(PING), |target| target.ping);
        let depth = target.map_or(DISCOVERY_DEPTH, |target| target.depth).min(limits.depth);
        Session {
            key,
            cid,
            nexus,
            segment: Segment::None,
            text: TextExchange::default(),
            keepalive: Keepalive::new(now, ping),
            over: false,
            engine: TaskEngine::new(parameters, limits, exp_cmd_sn, depth),
            node,
        }
    }

    /// Processes one event. `device` is that of the target; `None` for discovery.
    pub fn handle(&mut self, now: Instant, input: Input, device: Option<&mut Device>) {
        if self.over {
            return;
        }
        debug_assert!(device.is_some() || self.nexus.is_none(), "a session with a nexus needs its device");
        match (input, device) {
            (Input::Header(head), device) => {
                self.keepalive.received(now);
                self.on_header(head, device);
            }
            (Input::Segment { intact }, device) => self.on_segment(intact, device),
            (Input::Arriving { head, bytes }, _) => self.engine.on_arriving(&head, bytes),
            (Input::Text { data, intact }, device) => self.on_text_segment(data, intact, device),
            (Input::IoData { tag, bytes }, _) => self.engine.on_io_data(tag, bytes),
            (Input::IoDone { tag, status }, Some(device)) => self.engine.on_io_done(tag, status, device),
            (Input::Parameters { tag, bytes }, Some(device)) => self.engine.on_parameters(tag, &bytes, device),
            (Input::Notice(Notice::Step { task, step }), Some(device)) => self.engine.on_step(task, step, device),
            (Input::Notice(Notice::End(ends)), Some(device)) => self.engine.end_tasks(&ends, device),
            (Input::IoDone { .. } | Input::Parameters { .. } | Input::Notice(_), None) => {}
            (Input::OthersEnded, _) => self.engine.others_ended(),
            (Input::Shutdown, _) => self.request_logout(now),
            (Input::Timeout, _) => self.on_timeout(now),
        }
    }

    /// Returns the next action for the driver.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.engine.out.pop()
    }

    /// Returns whether actions are queued.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.engine.out.is_empty()
    }

    /// Time at which the driver must pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.keepalive.poll_timeout().filter(|_| !self.over)
    }

    /// Destination of the data segment of the last header.
    #[inline]
    pub fn destination(&self) -> Destination {
        let is_live = |tag| self.engine.tasks.find_io(tag).is_some();
        match self.segment {
            Segment::Text(_) => Destination::Text,
            Segment::Immediate(tag) if is_live(tag) => Destination::Buffer { id: tag, at: 0 },
            Segment::Data { tag, at, .. } if is_live(tag) => Destination::Buffer { id: tag, at },
            _ => Destination::Skip,
        }
    }

    /// Ends the session after the loss of its connection: all tasks end without a response, and the
    /// nexus is lost. No other call may follow. Returns the tags of block I/O for which the medium
    /// is still writing.
    pub fn close(&mut self, device: Option<&mut Device>) -> Vec<IoTag> {
        self.over = true;
        let Some(device) = device else { return Vec::new() };
        let writing = self.engine.drop_all(device);
        if let Some(nexus) = self.nexus.take() {
            device.disconnect(nexus);
        }
        writing
    }

    /// Returns whether aborted tasks are still active, in the medium or in back ends.
    pub fn is_ending_tasks(&self) -> bool {
        self.engine.tasks.aborted() > 0
    }

    /// Identity of the session.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Initiator-target nexus of this session in the device; `None` for discovery.
    pub fn nexus(&self) -> Option<NexusId> {
        self.nexus
    }

    /// Negotiated parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.engine.parameters
    }

    /// Number of tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.engine.tasks.len()
    }

    /// Counters since the session began.
    pub fn counters(&self) -> &Counters {
        &self.engine.out.counters
    }

    /// Returns whether the session is closing; no new task begins then.
    pub fn is_over(&self) -> bool {
        self.over
    }

    fn on_header(&mut self, head: Head, device: Option<&mut Device>) {
        self.segment = if head.data_bytes > 0 { Segment::Skip } else { Segment::None };
        match (head.header, device) {
            (Header::ScsiCommand(command), Some(device)) => self.on_command(&head, command, device),
            (Header::DataOut(data), Some(device)) => {
                if let Some(tag) = self.engine.on_data_out(&head, data, device) {
                    self.segment = Segment::Data { tag, at: data.offset, head };
                }
            }
            // With one connection and error recovery level 0 no PDU is lost, so none is sent again.
            (Header::Snack(_), _) => self.engine.reject(&head, RejectReason::SNACK_REJECT),
            (
                Header::NopOut(_) | Header::TaskRequest(_) | Header::TextRequest(_) | Header::LogoutRequest(_),
                device,
            ) => {
                if head.data_bytes > 0 {
                    self.segment = Segment::Text(head);
                } else {
                    self.on_pdu(head, Box::default(), device);
                }
            }
            (Header::ScsiCommand(_) | Header::DataOut(_), None) => {
                self.engine.reject(&head, RejectReason::PROTOCOL_ERROR);
            }
            (Header::LoginRequest(_), _) => self.end(CloseReason::Protocol),
            _ => self.engine.reject(&head, RejectReason::NOT_SUPPORTED),
        }
    }

    fn on_command(&mut self, head: &Head, command: ScsiCommand, device: &mut Device) {
        self.engine.out.counters.commands += 1;
        let Some(nexus) = self.nexus else { return };
        let window = &self.engine.window;
        let order = if head.immediate { Order::Next } else { window.order(command.cmd_sn) };
        if order == Order::Outside || (order == Order::Ahead && window.is_held(command.cmd_sn)) {
            self.engine.out.counters.outside_window += 1;
            return;
        }
        if let Some(reason) = self.engine.reject_reason(head, &command) {
            // The command number counts as not received, so the initiator fills the gap (section
            // 7.3).
            return self.engine.reject(head, reason);
        }
        let slot = self.engine.create(head, command, nexus);
        if head.data_bytes > 0 {
            self.segment = Segment::Immediate(self.engine.tasks.at(slot).tag(slot));
        } else {
            self.on_complete_command(slot, device);
        }
    }

    /// Handles a command that is complete with its immediate data: starts it, or holds it until the
    /// lower command numbers have arrived.
    fn on_complete_command(&mut self, slot: u16, device: &mut Device) {
        if self.engine.admit(slot) {
            self.engine.begin(slot, device);
            self.drain_held(Some(device));
        }
    }

    fn on_segment(&mut self, intact: bool, device: Option<&mut Device>) {
        let segment = std::mem::replace(&mut self.segment, Segment::None);
        if !intact {
            self.engine.out.counters.digest_errors += 1;
        }
        let Some(device) = device else { return };
        match segment {
            Segment::Immediate(tag) => match self.engine.on_immediate_data(tag, intact) {
                Some(slot) => self.on_complete_command(slot, device),
                // The task ended while its data arrived, but its command number still counts.
                None => self.drain_held(Some(device)),
            },
            Segment::Data { tag, head, .. } => self.engine.on_data_complete(tag, &head, intact, device),
            Segment::None | Segment::Text(_) | Segment::Skip => {}
        }
    }

    fn on_text_segment(&mut self, data: Box<[u8]>, intact: bool, device: Option<&mut Device>) {
        if let Segment::Text(head) = std::mem::replace(&mut self.segment, Segment::None) {
            if intact {
                self.on_pdu(head, data, device);
            } else {
                self.engine.out.counters.digest_errors += 1;
                self.engine.reject(&head, RejectReason::DATA_DIGEST_ERROR);
            }
        }
    }

    /// Handles a complete PDU other than a SCSI command, in command number order.
    fn on_pdu(&mut self, head: Head, data: Box<[u8]>, mut device: Option<&mut Device>) {
        let cmd_sn = match head.header {
            Header::NopOut(nop) => nop.cmd_sn,
            Header::TaskRequest(request) => request.cmd_sn,
            Header::TextRequest(request) => request.cmd_sn,
            Header::LogoutRequest(request) => request.cmd_sn,
            _ => return,
        };
        if head.immediate {
            return self.execute(head, &data, device);
        }
        let window = &mut self.engine.window;
        match window.order(cmd_sn) {
            Order::Outside => self.engine.out.counters.outside_window += 1,
            Order::Ahead => {
                if !window.is_held(cmd_sn) {
                    window.hold(cmd_sn, Held::Pdu(head, data));
                }
            }
            Order::Next => {
                window.advance();
                self.execute(head, &data, device.as_deref_mut());
                self.drain_held(device);
            }
        }
    }

    /// Handles held PDUs whose command number is now expected.
    fn drain_held(&mut self, mut device: Option<&mut Device>) {
        while !self.over
            && let Some(held) = self.engine.window.next_held()
        {
            match (held, device.as_deref_mut()) {
                (Held::Task(slot), Some(device)) => self.engine.begin(slot, device),
                (Held::Pdu(head, data), device) => self.execute(head, &data, device),
                (Held::Hole | Held::Task(_), _) => {}
            }
        }
    }

    fn execute(&mut self, head: Head, data: &[u8], device: Option<&mut Device>) {
        match head.header {
            Header::NopOut(nop) => self.on_nop(&nop, data),
            Header::TextRequest(request) => self.on_text(&head, &request, data),
            Header::LogoutRequest(request) => self.on_logout(&request),
            Header::TaskRequest(request) => match device {
                Some(device) => self.on_task_request(&head, &request, device),
                None => self.engine.reject(&head, RejectReason::PROTOCOL_ERROR),
            },
            _ => {}
        }
    }

    fn on_task_request(&mut self, head: &Head, request: &TaskRequest, device: &mut Device) {
        let Some(nexus) = self.nexus else { return };
        if request.function == function::ABORT_TASK {
            let response = self.abort_task(head, request, device);
            self.engine.respond_to(request, response);
        } else if self.engine.manage(request, nexus, device) {
            self.end(CloseReason::Reset);
        }
    }

    /// ABORT TASK. It also covers a task that has not arrived yet; that task is then ignored.
    fn abort_task(&mut self, head: &Head, request: &TaskRequest, device: &mut Device) -> u8 {
        if let Some(response) = self.engine.abort(request, device) {
            return response;
        }
        // The referenced task must be older than this request.
        if head.immediate && self.engine.window.skip_missing(request.ref_cmd_sn, request.cmd_sn) {
            self.drain_held(Some(device));
            return task_response::COMPLETE;
        }
        task_response::NO_TASK
    }

    fn on_timeout(&mut self, now: Instant) {
        match self.keepalive.expire(now) {
            Some(Expired::Logout) => self.end(CloseReason::Shutdown),
            Some(Expired::Silent) => self.end(CloseReason::Silent),
            Some(Expired::Idle) => self.ping(),
            None => {}
        }
    }

    /// Closes the session; later input is ignored.
    pub(super) fn end(&mut self, reason: CloseReason) {
        debug_assert!(!self.over, "a session ends once");
        self.over = true;
        self.engine.out.push(Output::Close(reason));
    }
}
