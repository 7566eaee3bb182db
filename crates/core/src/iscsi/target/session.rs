//! A session in the full feature phase: [`Session`].
//!
//! ```text
//!   header -> what kind?
//!     SCSI command   -> task: arriving -> held (a lower CmdSN is missing) -> device: waiting, receiving, hungry, io -> ending
//!     Data-Out       -> its task
//!     anything else  -> in its turn, by CmdSN; immediate ones at once
//! ```

use super::config::{Node, PING};
use super::directory::SessionKey;
use super::login::Established;
use super::task::TaskTable;
use crate::iscsi::parameters::Parameters;
use crate::iscsi::sequence::{Order, SessionSeq, UNNUMBERED};
use crate::scsi::{Device, Ends, Io, IoStatus, IoTag, NexusId, Notice};
use crate::time::{Instant, Span};
use sanloom_wire::iscsi::{AsyncEvent, AsyncMessage, Head, Header, NO_TAG, NopIn, RejectReason};
use sanloom_wire::scsi::transport_id::TransportId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How long an initiator has to log out when the target asks it to.
const LOGOUT_TIME: Span = Span::from_secs(5);

/// What one session may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Commands at once.
    pub depth: u16,
    /// Immediate commands at once, beside the window.
    pub max_immediate: u16,
    /// Bytes of data of tasks that move at once. One task alone may have more.
    pub max_bytes: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { depth: 128, max_immediate: 8, max_bytes: 64 << 20 }
    }
}

/// Where a data segment goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Collect it for [`Input::Text`].
    Text,
    /// Into the buffer of this tag, from this byte on; the buffer grows as it comes. Then [`Input::Segment`].
    Buffer {
        /// The task.
        tag: IoTag,
        /// Where its first byte goes.
        at: u32,
    },
    /// Nowhere. Then [`Input::Segment`].
    Skip,
}

/// What happens to a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A header. If it has a data segment, [`Session::place`] says where that goes.
    Header(Head),
    /// The data segment is complete and in its place.
    Segment {
        /// Its digest is right.
        intact: bool,
    },
    /// A data segment that was to be collected.
    Text {
        /// It.
        data: Box<[u8]>,
        /// Its digest is right.
        intact: bool,
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
        /// The list.
        bytes: Vec<u8>,
    },
    /// What the device has for a task of this session, or what ended tasks ([`Output::Ends`] of another session too).
    Notice(Notice),
    /// Tasks of other sessions that [`Output::Ends`] has ended are over, and their writes have left the medium alone.
    OthersEnded,
    /// The target goes away: ask for a logout.
    Shutdown,
    /// Time has passed.
    Timeout,
}

/// What a session does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a PDU.
    Send {
        /// Header.
        head: Head,
        /// Data segment.
        data: Box<[u8]>,
    },
    /// Send a PDU with a piece of the tag's buffer.
    Data {
        /// The task.
        tag: IoTag,
        /// Header.
        head: Head,
        /// Offset in the buffer.
        at: u32,
    },
    /// Do block I/O and come back with [`Input::IoDone`].
    Io(Io),
    /// A parameter list is complete in the task's buffer: hand it over with [`Input::Parameters`].
    Fetch {
        /// Names the task.
        tag: IoTag,
        /// Length of the list.
        bytes: u32,
    },
    /// The buffer is free once everything before has left.
    Release(IoTag),
    /// The task is over before its time: its buffer is free, and an [`Input::IoDone`] that still comes changes nothing.
    Cancel(IoTag),
    /// A task of the forwarding path is aborted: [`Forward::recall`](crate::iscsi::forward::Forward::recall).
    Recall(IoTag),
    /// Tasks of other sessions end: tell them with [`Notice::End`], and come back with [`Input::OthersEnded`] when they are over.
    Ends(Ends),
    /// The target is reset: close all its sessions once everything has been sent.
    Reset,
    /// Close the connection once everything has been sent.
    Close(CloseReason),
}

/// Why a session ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CloseReason {
    /// The initiator logged out.
    Logout,
    /// The initiator broke the protocol.
    Protocol,
    /// The initiator does not answer.
    Silent,
    /// The target was reset.
    Reset,
    /// The target goes away.
    Shutdown,
}

/// What a session has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// SCSI commands.
    pub commands: u64,
    /// SCSI responses, with those in Data-In.
    pub responses: u64,
    /// Commands that ended in CHECK CONDITION.
    pub check_conditions: u64,
    /// Bytes read and written.
    pub read_bytes: u64,
    /// Bytes of data-out that were taken.
    pub written_bytes: u64,
    /// PDUs rejected.
    pub rejects: u64,
    /// Commands outside of the window, which were not looked at.
    pub outside_window: u64,
    /// Data segments with a wrong digest.
    pub digest_errors: u64,
    /// Data-Out of tasks that are not here.
    pub unknown_data: u64,
    /// Tasks that ended by task management.
    pub aborted: u64,
}

impl Counters {
    /// What another session has counted comes on top.
    pub fn add(&mut self, other: &Counters) {
        let Counters { commands, responses, check_conditions, read_bytes, written_bytes, .. } = *other;
        let Counters { rejects, outside_window, digest_errors, unknown_data, aborted, .. } = *other;
        self.commands += commands;
        self.responses += responses;
        self.check_conditions += check_conditions;
        self.read_bytes += read_bytes;
        self.written_bytes += written_bytes;
        self.rejects += rejects;
        self.outside_window += outside_window;
        self.digest_errors += digest_errors;
        self.unknown_data += unknown_data;
        self.aborted += aborted;
    }
}

/// What the data segment under way belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Segment {
    None,
    /// Of a PDU that is handled when its text is there.
    Text(Head),
    /// Immediate data of a task.
    Immediate(IoTag),
    /// Of a Data-Out.
    Data {
        tag: IoTag,
        at: u32,
        last: bool,
        head: Head,
    },
    Skip,
}

/// A command whose turn has not come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Held {
    Task(u16),
    Pdu(Head, Box<[u8]>),
    /// It was aborted before it came.
    Hole,
}

/// A session with its one connection. See the module, and [`super`] for how to drive it.
#[derive(Debug)]
pub struct Session {
    pub(super) key: SessionKey,
    pub(super) cid: u16,
    pub(super) node: Arc<Node>,
    pub(super) parameters: Parameters,
    pub(super) limits: Limits,
    pub(super) nexus: Option<NexusId>,
    pub(super) seq: SessionSeq,
    pub(super) tasks: TaskTable,
    pub(super) held: BTreeMap<u32, Held>,
    pub(super) segment: Segment,
    /// Tasks that wait for room.
    pub(super) hungry: VecDeque<IoTag>,
    pub(super) reserved_bytes: u64,
    pub(super) next_transfer: u16,
    /// Answers to task management that wait for the medium: initiator task tag and response.
    pub(super) held_back: VecDeque<(u32, u8)>,
    /// Task management that waits for tasks of other sessions.
    pub(super) ending_others: u32,
    /// Text that did not fit the last response, by its target transfer tag.
    pub(super) rest_of_text: Option<(u32, Vec<u8>)>,
    pub(super) over: bool,
    pub(super) heard: Instant,
    /// When the initiator was asked whether it is there.
    asked: Option<Instant>,
    ping: Option<Span>,
    /// The target goes away; the initiator has until then.
    leaving: Option<Instant>,
    pub(super) outputs: VecDeque<Output>,
    pub(super) counters: Counters,
}

impl Session {
    /// After a login that ended at `now`. `port`: number of the target's port in `device`; `None` for discovery.
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
        let depth = target.map_or(limits.depth, |target| target.depth.min(limits.depth));
        Session {
            key,
            cid,
            parameters,
            limits,
            nexus,
            seq: SessionSeq::new(exp_cmd_sn, depth),
            tasks: TaskTable::default(),
            held: BTreeMap::new(),
            segment: Segment::None,
            hungry: VecDeque::new(),
            reserved_bytes: 0,
            next_transfer: 0,
            held_back: VecDeque::new(),
            ending_others: 0,
            rest_of_text: None,
            over: false,
            heard: now,
            asked: None,
            ping,
            leaving: None,
            node,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// One thing happened. `device` is that of the target; `None` for discovery.
    pub fn handle(&mut self, now: Instant, input: Input, device: Option<&mut Device>) {
        if self.over {
            return;
        }
        match input {
            Input::Header(head) => {
                self.heard(now);
                self.on_header(head, device);
            }
            Input::Segment { intact } => self.on_segment(intact, device),
            Input::Text { data, intact } => self.on_text_segment(data, intact, device),
            Input::IoDone { tag, status } => {
                if let Some(device) = device {
                    self.on_io_done(tag, status, device);
                }
            }
            Input::Parameters { tag, bytes } => {
                if let Some(device) = device {
                    self.on_parameters(tag, &bytes, device);
                }
            }
            Input::Notice(Notice::Step { task, step }) => {
                if let Some(device) = device {
                    self.on_step(task, step, device);
                }
            }
            Input::Notice(Notice::End(ends)) => {
                if let Some(device) = device {
                    self.end_tasks(&ends, device);
                }
            }
            Input::OthersEnded => {
                self.ending_others = self.ending_others.saturating_sub(1);
                self.answer_held_back();
            }
            Input::Shutdown => self.ask_for_logout(now),
            Input::Timeout => self.on_timeout(now),
        }
    }

    /// The next thing to do.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// There is something to do.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let ping = self.ping.map(|ping| self.asked.unwrap_or(self.heard) + ping);
        let earlier = Instant::earliest(&[ping, self.leaving]);
        earlier.filter(|_| !self.over)
    }

    /// Where the data segment of the last header goes.
    #[inline]
    pub fn place(&self) -> Place {
        match &self.segment {
            Segment::Text(_) => Place::Text,
            Segment::Immediate(tag) if self.tasks.of(*tag).is_some() => Place::Buffer { tag: *tag, at: 0 },
            Segment::Data { tag, at, .. } if self.tasks.of(*tag).is_some() => Place::Buffer { tag: *tag, at: *at },
            _ => Place::Skip,
        }
    }

    /// The connection is gone: all tasks end without a word, and the nexus is lost. The last call. Block I/O that the medium is still
    /// writing for.
    pub fn close(&mut self, device: Option<&mut Device>) -> Vec<IoTag> {
        self.over = true;
        let Some(device) = device else { return Vec::new() };
        for slot in self.tasks.live() {
            self.drop_task(slot, device);
        }
        if let Some(nexus) = self.nexus.take() {
            device.disconnect(nexus);
        }
        self.tasks.writing()
    }

    /// Tasks that were aborted are not over: the medium is writing, or back ends are.
    pub fn is_ending_tasks(&self) -> bool {
        self.tasks.dying() > 0
    }

    /// What makes the session one.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The initiator port and the device, to the device.
    pub fn nexus(&self) -> Option<NexusId> {
        self.nexus
    }

    /// What was agreed.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn on_header(&mut self, head: Head, device: Option<&mut Device>) {
        self.segment = if head.data_bytes > 0 { Segment::Skip } else { Segment::None };
        match (head.header, device) {
            (Header::ScsiCommand(command), Some(device)) => self.on_command(&head, command, device),
            (Header::DataOut(data), Some(device)) => self.on_data_out(&head, data, device),
            // Nothing to do: with one connection and level 0, everything that was sent has come.
            (Header::Snack(_), _) => self.reject(&head, RejectReason::SNACK_REJECT),
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
                self.reject(&head, RejectReason::PROTOCOL_ERROR);
            }
            (Header::LoginRequest(_), _) => self.shut(CloseReason::Protocol),
            _ => self.reject(&head, RejectReason::NOT_SUPPORTED),
        }
    }

    fn on_segment(&mut self, intact: bool, device: Option<&mut Device>) {
        let segment = std::mem::replace(&mut self.segment, Segment::None);
        if !intact {
            self.counters.digest_errors += 1;
        }
        let Some(device) = device else { return };
        match segment {
            Segment::Immediate(tag) => self.on_immediate_data(tag, intact, device),
            Segment::Data { tag, last, head, .. } => self.on_data_complete(tag, last, &head, intact, device),
            Segment::None | Segment::Text(_) | Segment::Skip => {}
        }
    }

    fn on_text_segment(&mut self, data: Box<[u8]>, intact: bool, device: Option<&mut Device>) {
        if let Segment::Text(head) = std::mem::replace(&mut self.segment, Segment::None) {
            if intact {
                self.on_pdu(head, data, device);
            } else {
                self.counters.digest_errors += 1;
                self.reject(&head, RejectReason::DATA_DIGEST_ERROR);
            }
        }
    }

    /// A whole PDU that is no SCSI command: in its turn.
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
        match self.seq.order(cmd_sn) {
            Order::Outside => self.counters.outside_window += 1,
            Order::Ahead => {
                self.held.entry(cmd_sn).or_insert(Held::Pdu(head, data));
            }
            Order::Next => {
                self.seq.advance();
                self.execute(head, &data, device.as_deref_mut());
                self.drain_held(device);
            }
        }
    }

    /// Commands whose turn has come.
    pub(super) fn drain_held(&mut self, mut device: Option<&mut Device>) {
        while !self.over
            && let Some(held) = self.held.remove(&self.seq.exp_cmd_sn())
        {
            self.seq.advance();
            match (held, device.as_deref_mut()) {
                (Held::Task(slot), Some(device)) => self.begin(slot, device),
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
                None => self.reject(&head, RejectReason::PROTOCOL_ERROR),
            },
            _ => {}
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.leaving.is_some_and(|until| until <= now) {
            return self.shut(CloseReason::Shutdown);
        }
        let Some(ping) = self.ping else { return };
        match self.asked {
            Some(asked) if asked + ping <= now => self.shut(CloseReason::Silent),
            None if self.heard + ping <= now => {
                self.asked = Some(now);
                let (exp_cmd_sn, max_cmd_sn) = self.window();
                let nop = NopIn {
                    lun: [0; 8],
                    initiator_tag: NO_TAG,
                    target_tag: 0,
                    stat_sn: UNNUMBERED,
                    exp_cmd_sn,
                    max_cmd_sn,
                };
                self.send(nop, Box::default());
            }
            _ => {}
        }
    }

    fn ask_for_logout(&mut self, now: Instant) {
        if self.leaving.is_some() {
            return;
        }
        self.leaving = Some(now + LOGOUT_TIME);
        let (exp_cmd_sn, max_cmd_sn) = self.window();
        self.send(
            AsyncMessage {
                lun: [0; 8],
                initiator_tag: NO_TAG,
                stat_sn: UNNUMBERED,
                exp_cmd_sn,
                max_cmd_sn,
                event: AsyncEvent::LOGOUT,
                vendor_code: 0,
                parameter1: 0,
                parameter2: 0,
                parameter3: (LOGOUT_TIME.as_ns() / 1_000_000_000) as u16,
            },
            Box::default(),
        );
    }

    /// ExpCmdSN and MaxCmdSN.
    pub(in crate::iscsi) fn window(&self) -> (u32, u32) {
        (self.seq.exp_cmd_sn(), self.seq.max_cmd_sn())
    }

    pub(in crate::iscsi) fn send(&mut self, header: impl Into<Header>, data: Box<[u8]>) {
        let head = Head::with_data(header, data.len() as u32);
        self.outputs.push_back(Output::Send { head, data });
    }

    /// The initiator is there.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
        self.asked = None;
    }

    /// It ends: nothing more begins.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Nothing more is heard.
    pub(super) fn shut(&mut self, reason: CloseReason) {
        self.over = true;
        self.outputs.push_back(Output::Close(reason));
    }
}
