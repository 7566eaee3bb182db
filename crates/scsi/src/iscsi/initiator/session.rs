//! Session in the full feature phase, on the initiator's side: [`Session`].

use super::command::{Active, Stage};
use super::login::Established;
use crate::iscsi::parameters::Parameters;
use crate::iscsi::sequence::before;
use crate::ordered::OrderedMap;
use crate::scsi::DataDirection;
use crate::time::{Instant, Span};
use sanloom_wire::iscsi::code::{flag, function, task_response};
use sanloom_wire::iscsi::{AsyncEvent, Head, Header, NO_TAG, NopIn, NopOut, SenseSegment};
use sanloom_wire::lun::LunBytes;
use std::collections::VecDeque;

/// Time-outs of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionConfig {
    /// Time after which an incomplete command is aborted.
    pub command_timeout: Span,
    /// Time after which an unanswered abort or reset ends the session.
    pub abort_timeout: Span,
    /// Idle time after which the target is pinged; also the time allowed for the reply.
    pub ping: Span,
}

impl Default for SessionConfig {
    fn default() -> SessionConfig {
        let secs = Span::from_secs;
        SessionConfig { command_timeout: secs(30), abort_timeout: secs(10), ping: secs(10) }
    }
}

/// SCSI command to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Number assigned by the driver, which also names the command's buffer. Never reused in a
    /// session.
    pub id: u64,
    /// Logical unit at the target.
    pub lun: LunBytes,
    /// Command descriptor block, padded with zeros.
    pub cdb: [u8; 16],
    /// Direction of the data transfer.
    pub direction: DataDirection,
    /// Length of the data transfer in bytes.
    pub bytes: u32,
}

/// Destination of a data segment. Text is passed with [`Input::Text`]; the end of another segment
/// with [`Input::Segment`].
pub type Destination = crate::iscsi::Destination<u64>;

/// Event for a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Send a command.
    Submit(Command),
    /// Send LOGICAL UNIT RESET.
    Reset {
        /// Number assigned by the driver, returned in [`Output::Done`].
        id: u64,
        /// Logical unit to reset.
        lun: LunBytes,
    },
    /// Header of a PDU. If it has a data segment, [`Session::destination`] returns the destination.
    Header(Head),
    /// The data segment is complete and in its buffer.
    Segment {
        /// True if the data digest is right or not in use.
        intact: bool,
    },
    /// Data segment that was collected.
    Text {
        /// Bytes of the segment.
        data: Box<[u8]>,
        /// True if the data digest is right or not in use.
        intact: bool,
    },
    /// Ping the target.
    Ping,
    /// Log out and end the session.
    LogOut,
    /// The deadline of [`Session::poll_timeout`] has passed.
    Timeout,
}

/// Action that a session requests of its driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send this PDU.
    Send {
        /// Header of the PDU.
        head: Head,
        /// Data segment, possibly empty.
        data: Box<[u8]>,
    },
    /// Send a PDU whose data segment is a piece of the command's buffer.
    Data {
        /// Number of the command.
        id: u64,
        /// Header of the PDU; its data length is the length of the piece.
        head: Head,
        /// Offset of the piece in the buffer, in bytes.
        at: u32,
    },
    /// A command or reset has ended.
    Done {
        /// Number of the command or reset.
        id: u64,
        /// Result of the command or reset.
        outcome: Outcome,
    },
    /// The session is over: close the connection. Commands that have not ended get no
    /// [`Output::Done`].
    Broken(Broken),
}

/// Result of a command or reset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The target returned a status.
    Completed {
        /// SCSI status.
        status: u8,
        /// Sense data; may be empty.
        sense: Box<[u8]>,
        /// Bytes transferred.
        transferred: u32,
    },
    /// The command timed out and was aborted.
    TimedOut,
    /// The target rejected the command, or its data had a wrong digest.
    Failed,
    /// The target answered a reset.
    Reset {
        /// True if the target carried out the reset.
        success: bool,
    },
}

/// Reason for the end of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum Broken {
    /// The initiator logged out.
    #[error("logged out")]
    LoggedOut,
    /// The target requested a logout or a new negotiation.
    #[error("the target requested a logout")]
    LogoutRequested,
    /// The target violated the protocol.
    #[error("the target violates the protocol")]
    Protocol,
    /// The target did not answer a ping or a task management request in time.
    #[error("the target does not answer")]
    Silent,
    /// A command timed out, and the target failed to abort it.
    #[error("the target refuses to abort a command")]
    Unaborted,
}

/// Counters of one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Commands sent.
    pub commands: u64,
    /// Commands aborted.
    pub aborted: u64,
    /// PDUs that the target rejected.
    pub rejects: u64,
    /// Data segments with a wrong digest.
    pub digest_errors: u64,
    /// PDUs that match no command or request in flight.
    pub unexpected: u64,
}

/// Owner of the data segment that is arriving.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Segment {
    None,
    Text(Head),
    Data { id: u64, at: u32, head: Head },
    Skip,
}

/// Request that an initiator task tag identifies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tag {
    Command(u64),
    /// ABORT TASK for the command with this number.
    Abort(u64),
    Reset(u64),
    Logout,
}

/// Session with its one connection.
#[derive(Debug)]
pub struct Session {
    pub(super) config: SessionConfig,
    pub(super) parameters: Parameters,
    pub(super) cmd_sn: u32,
    max_cmd_sn: u32,
    pub(super) exp_stat_sn: u32,
    pub(super) next_tag: u32,
    pub(super) tags: OrderedMap<u32, Tag>,
    pub(super) active: OrderedMap<u64, Active>,
    /// Commands that wait for the command window.
    backlog: VecDeque<u64>,
    /// Deadlines of commands, in order because all commands have the same time-out.
    pub(super) deadlines: VecDeque<(Instant, u64)>,
    /// Deadlines and tags of unanswered aborts and resets, the oldest first.
    pub(super) managed: VecDeque<(Instant, u32)>,
    segment: Segment,
    /// Time of the last PDU from the target.
    pub(super) last_pdu_at: Instant,
    /// Time of the unanswered ping, if any.
    pub(super) ping_sent_at: Option<Instant>,
    over: bool,
    pub(super) outputs: VecDeque<Output>,
    pub(super) counters: Counters,
}

impl Session {
    /// Creates the session after a login that ended at `now`.
    pub fn new(now: Instant, established: Established, config: SessionConfig) -> Session {
        let Established { parameters, cmd_sn, max_cmd_sn, exp_stat_sn, .. } = established;
        Session {
            config,
            parameters,
            cmd_sn,
            max_cmd_sn,
            exp_stat_sn,
            next_tag: 1,
            tags: OrderedMap::new(),
            active: OrderedMap::new(),
            backlog: VecDeque::new(),
            deadlines: VecDeque::new(),
            managed: VecDeque::new(),
            segment: Segment::None,
            last_pdu_at: now,
            ping_sent_at: None,
            over: false,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Processes one event at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if self.over {
            return;
        }
        match input {
            Input::Submit(command) => self.submit(now, command),
            Input::Reset { id, lun } => self.manage(now, function::LUN_RESET, lun, NO_TAG, 0, Tag::Reset(id)),
            Input::Header(head) => {
                self.last_pdu_at = now;
                self.ping_sent_at = None;
                self.on_header(head);
            }
            Input::Segment { intact } => self.on_segment(intact),
            Input::Text { data, intact } => {
                if let Segment::Text(head) = std::mem::replace(&mut self.segment, Segment::None) {
                    if intact {
                        self.on_pdu(head, &data);
                    } else {
                        // The damaged PDU carried a status, and at this recovery level the target
                        // does not send it again.
                        self.counters.digest_errors += 1;
                        self.end(Broken::Protocol);
                    }
                }
            }
            Input::Ping => self.ping(now),
            Input::LogOut => self.log_out(),
            Input::Timeout => self.on_timeout(now),
        }
        if !self.over {
            self.send_backlog();
        }
        while self.deadlines.front().is_some_and(|(_, id)| !self.active.contains_key(id)) {
            self.deadlines.pop_front();
        }
    }

    /// Returns the next action for the driver.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time of the last PDU from the target.
    pub fn last_pdu_at(&self) -> Instant {
        self.last_pdu_at
    }

    /// Time at which the driver must pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let ping = self.ping_sent_at.unwrap_or(self.last_pdu_at) + self.config.ping;
        let command = self.deadlines.front().map(|(at, _)| *at);
        let managed = self.managed.front().map(|(at, _)| *at);
        Instant::earliest(&[Some(ping), command, managed]).filter(|_| !self.over)
    }

    /// Destination of the data segment of the last header.
    pub fn destination(&self) -> Destination {
        match &self.segment {
            Segment::Text(_) => Destination::Text,
            Segment::Data { id, at, .. } if self.active.contains_key(id) => Destination::Buffer { id: *id, at: *at },
            _ => Destination::Skip,
        }
    }

    /// Negotiated parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Number of commands that have not ended.
    pub fn commands(&self) -> usize {
        self.active.len()
    }

    /// Numbers of the commands that have not ended, in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.active.keys().copied()
    }

    /// Counters since the session began.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn tag(&mut self, of: Tag) -> u32 {
        let tag = self.fresh_tag();
        self.tags.insert(tag, of);
        tag
    }

    /// Returns the next initiator task tag, which is never [`NO_TAG`].
    pub(super) fn fresh_tag(&mut self) -> u32 {
        let tag = self.next_tag;
        self.next_tag = if tag == NO_TAG - 1 { 0 } else { tag + 1 };
        tag
    }

    fn submit(&mut self, now: Instant, command: Command) {
        let initiator_tag = self.tag(Tag::Command(command.id));
        self.active.insert(command.id, Active::new(command, initiator_tag));
        self.deadlines.push_back((now + self.config.command_timeout, command.id));
        self.backlog.push_back(command.id);
    }

    /// Returns the number of commands that wait for the command window (RFC 7143, section 4.2.2.1).
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.backlog.len()
    }

    /// Sends queued commands while the window is open.
    fn send_backlog(&mut self) {
        while !before(self.max_cmd_sn, self.cmd_sn)
            && let Some(id) = self.backlog.pop_front()
        {
            if self.active.contains_key(&id) {
                self.counters.commands += 1;
                self.send_command(id);
            }
        }
    }

    fn on_header(&mut self, head: Head) {
        self.segment = if head.data_bytes > 0 { Segment::Skip } else { Segment::None };
        match head.header {
            Header::DataIn(data) => {
                let found = match self.tags.get(&data.initiator_tag) {
                    Some(Tag::Command(id)) => Some(*id),
                    _ => None,
                };
                let Some(id) = found.filter(|id| self.active.contains_key(id)) else {
                    // The command was aborted. The StatSN still has to be counted.
                    self.counters.unexpected += 1;
                    self.count_status(data.flags & flag::STATUS != 0, data.stat_sn);
                    self.widen(data.max_cmd_sn);
                    return;
                };
                // Data must arrive in order, because DataPDUInOrder and DataSequenceInOrder are
                // Yes.
                let active = &self.active[&id];
                let end = data.offset.checked_add(head.data_bytes);
                if end.is_none_or(|end| end > active.command.bytes)
                    || data.offset != active.moved
                    || active.command.direction != DataDirection::Read
                {
                    return self.end(Broken::Protocol);
                }
                if head.data_bytes > 0 {
                    self.segment = Segment::Data { id, at: data.offset, head };
                } else {
                    self.on_data_in(id, &head);
                }
            }
            _ if head.data_bytes > 0 => self.segment = Segment::Text(head),
            _ => self.on_pdu(head, &[]),
        }
    }

    fn on_segment(&mut self, intact: bool) {
        let Segment::Data { id, head, .. } = std::mem::replace(&mut self.segment, Segment::None) else { return };
        if !intact {
            self.counters.digest_errors += 1;
            if let Some(active) = self.active.get_mut(&id) {
                active.damaged = true;
            }
        }
        if self.active.contains_key(&id) {
            self.on_data_in(id, &head);
        }
    }

    fn on_data_in(&mut self, id: u64, head: &Head) {
        let Header::DataIn(data) = head.header else { return };
        self.widen(data.max_cmd_sn);
        let Some(active) = self.active.get_mut(&id) else { return };
        active.moved += head.data_bytes;
        if data.flags & flag::STATUS != 0 {
            self.count_status(true, data.stat_sn);
            self.complete(id, data.status, &[], (data.flags, data.residual));
        }
    }

    /// Ends a command with its status.
    fn complete(&mut self, id: u64, status: u8, sense: &[u8], (flags, residual): (u8, u32)) {
        let Some(active) = self.active.remove(&id) else { return };
        self.tags.remove(&active.initiator_tag);
        if active.stage == Stage::Aborting {
            // The command ended before the target handled the abort.
            self.managed.retain(|(_, tag)| Some(*tag) != active.abort_tag);
            if let Some(tag) = active.abort_tag {
                self.tags.remove(&tag);
            }
        }
        let all = active.command.bytes;
        let transferred = match active.command.direction {
            DataDirection::None => 0,
            DataDirection::Read => active.moved.min(all),
            DataDirection::Write if flags & flag::UNDERFLOW != 0 => all.saturating_sub(residual),
            DataDirection::Write => all,
        };
        let outcome = match active.damaged {
            true => Outcome::Failed,
            false => Outcome::Completed { status, sense: sense.into(), transferred },
        };
        self.outputs.push_back(Output::Done { id, outcome });
    }

    /// Counts a StatSN, if the PDU carries a status.
    fn count_status(&mut self, is_one: bool, stat_sn: u32) {
        if is_one && !before(stat_sn, self.exp_stat_sn) {
            self.exp_stat_sn = stat_sn.wrapping_add(1);
        }
    }

    fn widen(&mut self, max_cmd_sn: u32) {
        if before(self.max_cmd_sn, max_cmd_sn) {
            self.max_cmd_sn = max_cmd_sn;
        }
    }

    /// Handles a complete PDU other than Data-In.
    fn on_pdu(&mut self, head: Head, data: &[u8]) {
        match head.header {
            Header::ScsiResponse(response) => {
                self.count_status(true, response.stat_sn);
                self.widen(response.max_cmd_sn);
                let Some(Tag::Command(id)) = self.tags.get(&response.initiator_tag).copied() else {
                    self.counters.unexpected += 1;
                    return;
                };
                let Ok(segment) = SenseSegment::parse(data) else { return self.end(Broken::Protocol) };
                if response.response != 0 {
                    return self.fail(id);
                }
                self.complete(id, response.status, segment.sense, (response.flags, response.residual));
            }
            Header::R2t(r2t) => {
                self.widen(r2t.max_cmd_sn);
                let Some(Tag::Command(id)) = self.tags.get(&r2t.initiator_tag).copied() else {
                    self.counters.unexpected += 1;
                    return;
                };
                if !self.on_r2t(id, &r2t) {
                    self.end(Broken::Protocol);
                }
            }
            Header::TaskResponse(response) => {
                self.count_status(true, response.stat_sn);
                self.widen(response.max_cmd_sn);
                self.managed.retain(|(_, tag)| *tag != response.initiator_tag);
                match self.tags.remove(&response.initiator_tag) {
                    Some(Tag::Abort(id)) => match response.response {
                        task_response::COMPLETE | task_response::NO_TASK => self.on_aborted(id),
                        // The command may still be active. Only the end of the session stops it for
                        // certain.
                        _ => self.end(Broken::Unaborted),
                    },
                    Some(Tag::Reset(id)) => {
                        // A reset of a unit that no longer exists counts as carried out.
                        let success = matches!(response.response, task_response::COMPLETE | task_response::NO_LUN);
                        self.outputs.push_back(Output::Done { id, outcome: Outcome::Reset { success } });
                    }
                    _ => self.counters.unexpected += 1,
                }
            }
            Header::NopIn(nop) => {
                self.count_status(nop.initiator_tag != NO_TAG, nop.stat_sn);
                self.widen(nop.max_cmd_sn);
                if nop.target_tag != NO_TAG {
                    self.answer_ping(&nop);
                }
            }
            Header::Reject(reject) => {
                self.count_status(true, reject.stat_sn);
                self.widen(reject.max_cmd_sn);
                self.counters.rejects += 1;
                self.on_reject(data);
            }
            Header::AsyncMessage(message) => {
                self.count_status(
                    message.event != AsyncEvent::SCSI || message.stat_sn == self.exp_stat_sn,
                    message.stat_sn,
                );
                self.widen(message.max_cmd_sn);
                match message.event {
                    // A new login renegotiates all parameters.
                    AsyncEvent::LOGOUT | AsyncEvent::NEGOTIATION => {
                        self.log_out();
                        self.end(Broken::LogoutRequested);
                    }
                    AsyncEvent::CONNECTION_DROP | AsyncEvent::SESSION_DROP => self.end(Broken::LogoutRequested),
                    _ => {}
                }
            }
            Header::LogoutResponse(_) => self.end(Broken::LoggedOut),
            _ => self.counters.unexpected += 1,
        }
    }

    fn answer_ping(&mut self, nop: &NopIn) {
        let answer = NopOut {
            lun: nop.lun,
            initiator_tag: NO_TAG,
            target_tag: nop.target_tag,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        self.send(Head { immediate: true, ..Head::new(answer) });
    }

    pub(super) fn send(&mut self, head: Head) {
        self.outputs.push_back(Output::Send { head, data: Box::default() });
    }

    pub(super) fn end(&mut self, why: Broken) {
        self.over = true;
        self.outputs.push_back(Output::Broken(why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A NOP-Out without a tag is not answered (RFC 7143, section 11.18). So a ping without a tag
    /// would end the session with a live target.
    #[test]
    fn every_request_that_needs_an_answer_has_a_tag() {
        let parameters = Parameters::default();
        let established =
            Established { tsih: 1, parameters, cmd_sn: 1, max_cmd_sn: 9, exp_stat_sn: 1, portal_group: None };
        let mut session = Session::new(Instant::ZERO, established, SessionConfig::default());
        session.next_tag = NO_TAG - 1;
        session.handle(Instant::ZERO, Input::Ping);
        session.handle(Instant::ZERO, Input::Reset { id: 1, lun: [0; 8] });
        let tags = std::iter::from_fn(|| session.poll_output()).filter_map(|output| match output {
            Output::Send { head: Head { header: Header::NopOut(nop), .. }, .. } => Some(nop.initiator_tag),
            Output::Send { head: Head { header: Header::TaskRequest(request), .. }, .. } => Some(request.initiator_tag),
            _ => None,
        });
        assert_eq!(tags.collect::<Vec<_>>(), [NO_TAG - 1, 0]);
    }
}
