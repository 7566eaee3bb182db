//! PDUs from back ends: data, R2Ts, responses, and PDUs that concern only the back end's session.

use super::action::{Action, CloseReason, Conn, close_broken};
use super::adaptor::{DataInOf, data_in};
use super::backends::{CHECK_TAG, PROBE_TAG};
use super::machine::{Forward, PATH_GONE, Switch};
use super::table::{BackR2t, Stage};
use crate::scsi::{IoTag, Response};
use crate::time::Instant;
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::code::{RejectReason, flag, response, task_response};
use sanloom_wire::iscsi::{
    AsyncEvent, BHS_BYTES, Bhs, DataIn, Head, Header, NO_TAG, R2t, ScsiResponse, SenseSegment, TaskResponse,
};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// Sense for an impossible answer of a back end: too few data with status GOOD, or an undefined
/// response code.
const TARGET_FAILURE: Sense = Sense::new(SenseKey::HARDWARE_ERROR, SenseCode::INTERNAL_TARGET_FAILURE);

/// Returns whether a unit attention reports that the unit may be another disk or have another size.
fn is_change(sense: &Sense) -> bool {
    let changes = [
        SenseCode::CAPACITY_CHANGED,
        SenseCode::MODE_PARAMETERS_CHANGED,
        SenseCode::INQUIRY_DATA_CHANGED,
        SenseCode::REPORTED_LUNS_CHANGED,
    ];
    sense.key == SenseKey::UNIT_ATTENTION && changes.contains(&sense.code)
}

/// Returns whether a unit attention reports that commands were ended: a reset of any kind, or
/// another initiator's CLEAR TASK SET.
fn is_reset(sense: &Sense) -> bool {
    let reset = sense.code.0 >> 8 == SenseCode::POWER_ON_OR_RESET.0 >> 8;
    sense.key == SenseKey::UNIT_ATTENTION && (reset || sense.code == SenseCode::COMMANDS_CLEARED)
}

/// Result of a part, from a Data-In with status or a SCSI Response.
struct Ended<'a> {
    status: u8,
    residual: bool,
    sense: &'a [u8],
}

impl Forward {
    pub(super) fn on_back(
        &mut self,
        now: Instant,
        number: u8,
        bhs: &mut Bhs,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let bytes = bhs.data_bytes();
        let head = Head::parse(&bhs.0);
        let Some(back) = self.backs.get_mut(number) else {
            return actions.push(Action::Discard { bytes });
        };
        if let Some(max_cmd_sn) = max_cmd_sn(&head.header) {
            back.received(now, max_cmd_sn);
        }
        if let Some(stat_sn) = status_number(&head.header) {
            back.count_status(stat_sn);
        }
        if bytes > back.parameters.receive_bytes {
            actions.push(Action::Discard { bytes });
            return close_broken(number, actions);
        }
        if bytes > 0 && matches!(head.header, Header::R2t(_) | Header::TaskResponse(_)) {
            // PDUs of these kinds have no data, so drop any that are declared.
            actions.push(Action::Discard { bytes });
        }
        match head.header {
            Header::DataIn(data) => self.on_data_in(number, &head, &data, bhs, switch, actions),
            Header::R2t(r2t) => self.on_r2t(number, &r2t, switch, actions),
            Header::ScsiResponse(answer) if bytes == 0 => {
                self.on_response(number, &answer, &[], switch, actions);
            }
            Header::ScsiResponse(_) | Header::Reject(_) if bytes > 0 => actions.push(Action::Collect),
            Header::TaskResponse(answer) => self.on_task_response(number, &answer, switch, actions),
            Header::NopIn(nop) => {
                actions.push(Action::Discard { bytes });
                if nop.target_tag != NO_TAG {
                    actions.push(Action::Send { to: Conn::Back(number), header: back.pong(&nop) });
                }
            }
            Header::AsyncMessage(message) => {
                actions.push(Action::Discard { bytes });
                match message.event {
                    AsyncEvent::LOGOUT | AsyncEvent::NEGOTIATION => back.retire(),
                    AsyncEvent::CONNECTION_DROP | AsyncEvent::SESSION_DROP => {
                        actions.push(Action::Close { conn: Conn::Back(number), reason: CloseReason::LogoutRequested });
                    }
                    _ => {}
                }
            }
            _ => {
                self.counters.unexpected += 1;
                actions.push(Action::Discard { bytes });
            }
        }
        // If data follow the header, they have to reach the host before the connection is closed.
        if bytes == 0 {
            self.close_retired(number, actions);
        }
    }

    /// Processes the data segment requested by [`Action::Collect`], with its header.
    pub fn on_collected(
        &mut self,
        number: u8,
        header: &[u8; BHS_BYTES],
        data: &[u8],
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let head = Head::parse(header);
        match head.header {
            Header::ScsiResponse(answer) => match SenseSegment::parse(data) {
                Ok(segment) => self.on_response(number, &answer, segment.sense, switch, actions),
                Err(_) => close_broken(number, actions),
            },
            Header::Reject(reject) => self.on_reject(number, reject.reason, data, switch, actions),
            _ => {}
        }
        self.close_retired(number, actions);
        self.send_queued(actions);
    }

    /// Time of the last PDU from a back end. While such a PDU is being handled, that is the current
    /// time.
    pub(super) fn last_received(&self, number: u8) -> Instant {
        self.backs.get(number).map_or(Instant::ZERO, |back| back.last_received)
    }

    fn on_data_in(
        &mut self,
        number: u8,
        head: &Head,
        data: &DataIn,
        bhs: &mut Bhs,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let bytes = head.data_bytes;
        let Some((tag, of)) = self.table.find(number, data.initiator_tag) else {
            self.counters.unexpected += 1;
            return actions.push(Action::Discard { bytes });
        };
        let number_of_part = usize::from(of.part);
        let has_status = data.flags & flag::STATUS != 0;
        let residual = data.flags & (flag::UNDERFLOW | flag::OVERFLOW) != 0;
        let Some(entry) = self.table.get_mut(tag) else { return };
        let part = &entry.parts[number_of_part];
        if !entry.is_in_flight(number_of_part) {
            self.counters.unexpected += 1;
            return actions.push(Action::Discard { bytes });
        }
        let in_order = data.offset == part.moved && part.bytes - part.moved >= bytes;
        if entry.is_lost() {
            actions.push(Action::Discard { bytes });
        } else if !entry.is_read() || number_of_part != entry.current || !in_order {
            actions.push(Action::Discard { bytes });
            return close_broken(number, actions);
        } else {
            let part = &mut entry.parts[number_of_part];
            part.moved += bytes;
            let full = part.moved == part.bytes;
            let at = part.at + data.offset;
            let next = (full && number_of_part + 1 < entry.parts.len()).then_some(number_of_part + 1);
            // The status of the whole task, if it comes with the last data.
            let others = entry.parts.iter().enumerate().all(|(n, p)| n == number_of_part || p.stage == Stage::Over);
            let collapses =
                bytes > 0 && has_status && data.status == status::GOOD && !residual && full && next.is_none() && others;
            if collapses {
                entry.parts[number_of_part].stage = Stage::Over;
                switch.session.engine.collapse_forwarded(tag);
            }
            if let Some(next) = next {
                entry.current = next;
                self.send_or_queue(tag, next, actions);
            }
            self.counters.read_bytes += u64::from(bytes);
            let ends = data.flags & flag::FINAL != 0;
            if !self.pass_data_in(tag, (at, bytes), (collapses, ends), bhs, switch, actions) {
                return close_broken(number, actions);
            }
            if collapses {
                if let Some(back) = self.backs.get_mut(number) {
                    back.end_command();
                }
                return self.remove_task(tag, switch);
            }
        }
        if has_status {
            let ended = Ended { status: data.status, residual, sense: &[] };
            self.on_part_status(tag, number_of_part, ended, switch, actions);
        }
    }

    /// Splits data for the host: no segment is longer than the host accepts, and sequences end as
    /// agreed with it. With data digests nothing can be split, and the sequences are those of the
    /// back end. Returns false if a segment would have to be split.
    fn pass_data_in(
        &mut self,
        tag: IoTag,
        (offset, bytes): (u32, u32),
        (status, ends): (bool, bool),
        bhs: &mut Bhs,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) -> bool {
        let (longest, burst) = (self.front.send_bytes, self.front.max_burst_bytes);
        let window = switch.session.engine.window_numbers();
        let end_of_all = self.table.get(tag).map_or(0, |entry| entry.io.bytes);
        let (mut at, end) = (offset, offset + bytes);
        let mut first = true;
        let whole = self.front.data_digest;
        if whole && bytes > longest {
            actions.push(Action::Discard { bytes });
            return false;
        }
        while at < end {
            let left_of_burst = if whole { bytes } else { burst - at % burst };
            let len = longest.min(left_of_burst).min(end - at);
            let Some((initiator_tag, data_sn)) = switch.session.engine.next_data_in(tag, len) else { break };
            let all = at + len == end_of_all;
            let of = DataInOf {
                initiator_tag,
                data_sn,
                offset: at,
                bytes: len,
                last: all || if whole { ends } else { len == left_of_burst },
                status: status && all,
                window,
            };
            let to = Conn::Host;
            if first {
                data_in(bhs, &of);
                actions.push(Action::SendHeader { to });
            } else {
                let mut other = *bhs;
                data_in(&mut other, &of);
                actions.push(Action::Send { to, header: other.0 });
            }
            actions.push(Action::Move { to, bytes: len });
            first = false;
            at += len;
        }
        if at < end {
            actions.push(Action::Discard { bytes: end - at });
        }
        true
    }

    fn on_r2t(&mut self, number: u8, r2t: &R2t, switch: &mut Switch<'_>, actions: &mut Vec<Action>) {
        let Some((tag, of)) = self.table.find(number, r2t.initiator_tag) else {
            self.counters.unexpected += 1;
            return;
        };
        let Some(entry) = self.table.get_mut(tag) else { return };
        let part = &entry.parts[usize::from(of.part)];
        if entry.is_lost() || part.stage != Stage::Sent {
            return;
        }
        let end = r2t.offset.checked_add(r2t.desired_bytes).filter(|end| *end <= part.bytes);
        let solicited = entry.r2ts.iter().filter(|one| one.part == of.part).map(|one| one.end).max();
        let from = part.at.wrapping_add(r2t.offset);
        let fresh = r2t.offset >= part.moved && solicited.is_none_or(|end| from >= end);
        let (Some(end), true, true) = (end, fresh && !entry.is_read(), r2t.desired_bytes > 0) else {
            return close_broken(number, actions);
        };
        let one = BackR2t { part: of.part, target_tag: r2t.target_tag, from, end: part.at + end, data_sn: 0 };
        let position = entry.r2ts.partition_point(|other| other.from < from);
        entry.r2ts.insert(position, one);
        self.solicit(tag, switch);
    }

    fn on_response(
        &mut self,
        number: u8,
        answer: &ScsiResponse,
        sense: &[u8],
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        if answer.initiator_tag == PROBE_TAG {
            if answer.status == status::CHECK_CONDITION && Sense::parse(sense).is_ok_and(|sense| is_change(&sense)) {
                return actions.push(Action::Close { conn: Conn::Back(number), reason: CloseReason::Changed });
            }
            let expected = self.backs.probed(number, answer.status == status::GOOD, actions);
            self.counters.unexpected += u64::from(!expected);
            return;
        }
        if answer.initiator_tag == CHECK_TAG {
            let sense = Sense::parse(sense).ok().filter(|_| answer.status == status::CHECK_CONDITION);
            if sense.is_some_and(|sense| is_change(&sense)) {
                return actions.push(Action::Close { conn: Conn::Back(number), reason: CloseReason::Changed });
            }
            let Some((lun, cmd_sn)) = self.backs.checked(number) else {
                self.counters.unexpected += 1;
                return;
            };
            if sense.is_some_and(|sense| is_reset(&sense)) {
                self.on_unit_reset(number, lun, cmd_sn, switch, actions);
            }
            return;
        }
        let Some((tag, of)) = self.table.find(number, answer.initiator_tag).filter(|(_, of)| !of.abort) else {
            self.counters.unexpected += 1;
            return;
        };
        let part = usize::from(of.part);
        if !self.is_in_flight(tag, part) {
            self.counters.unexpected += 1;
            return;
        }
        if answer.response != response::COMPLETED {
            return self.fail_part(tag, part, Response::check(TARGET_FAILURE), switch, actions);
        }
        let residual = answer.flags & (flag::UNDERFLOW | flag::OVERFLOW) != 0;
        self.on_part_status(tag, part, Ended { status: answer.status, residual, sense }, switch, actions);
    }

    /// Returns whether a part was sent to its back end and is unanswered.
    fn is_in_flight(&self, tag: IoTag, part: usize) -> bool {
        self.table.get(tag).is_some_and(|entry| entry.is_in_flight(part))
    }

    /// Handles the status of a part.
    fn on_part_status(
        &mut self,
        tag: IoTag,
        number: usize,
        Ended { status: scsi_status, residual, sense }: Ended<'_>,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let Some(entry) = self.table.get(tag) else { return };
        let part = entry.parts[number];
        if entry.is_lost() {
            return self.end_part(tag, number, switch);
        }
        match scsi_status {
            status::GOOD if !residual && part.moved == part.bytes => self.end_part(tag, number, switch),
            status::GOOD => self.fail_part(tag, number, Response::check(TARGET_FAILURE), switch, actions),
            status::CHECK_CONDITION => {
                let sense = Sense::parse(sense).unwrap_or(TARGET_FAILURE);
                if is_change(&sense) {
                    // The unit may only be written again after its identity has been checked.
                    let back = part.back;
                    actions.push(Action::Close { conn: Conn::Back(back), reason: CloseReason::Changed });
                    let answer = entry.for_whole(Response::status(status::BUSY));
                    return self.fail_part(tag, number, answer, switch, actions);
                }
                if sense.condition().refuses_port() {
                    // Hosts repeat a command that ends in BUSY. The conventional path then waits
                    // until a port accepts it.
                    self.backs.access_changed(part.back);
                    self.retire(part.back);
                    return self.fail_part(tag, number, PATH_GONE, switch, actions);
                }
                if sense.key == SenseKey::UNIT_ATTENTION {
                    if sense.condition().changes_ports() {
                        self.backs.access_changed(part.back);
                    }
                    self.retry_part(tag, number, switch, actions);
                    if is_reset(&sense) {
                        self.on_unit_reset(part.back, part.lun, part.cmd_sn, switch, actions);
                    }
                    return;
                }
                let sense = entry.translate_sense(number, sense);
                self.fail_part(tag, number, Response::check(sense), switch, actions);
            }
            // Another initiator ended the task at the back end. On the virtual disk nothing was
            // aborted, so the host gets BUSY.
            status::TASK_ABORTED => self.fail_part(tag, number, PATH_GONE, switch, actions),
            other => {
                let answer = entry.for_whole(Response::status(other));
                self.fail_part(tag, number, answer, switch, actions);
            }
        }
    }

    fn on_task_response(
        &mut self,
        number: u8,
        answer: &TaskResponse,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let Some((tag, of)) = self.table.find(number, answer.initiator_tag).filter(|(_, of)| of.abort) else {
            // The response belongs to a task that has ended.
            return;
        };
        if !self.table.get(tag).is_some_and(|entry| entry.parts[usize::from(of.part)].stage == Stage::Aborting) {
            // The SCSI response arrived first and ended this part, while another part is still
            // active.
            return;
        }
        match answer.response {
            task_response::COMPLETE | task_response::NO_TASK => self.end_part(tag, usize::from(of.part), switch),
            // The command may still be active. Only the end of the session stops it for certain.
            _ => actions.push(Action::Close { conn: Conn::Back(number), reason: CloseReason::Unaborted }),
        }
    }

    fn on_reject(
        &mut self,
        number: u8,
        reason: RejectReason,
        header: &[u8],
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let digest = reason == RejectReason::DATA_DIGEST_ERROR;
        // A reject without the whole header names no command.
        let rejected = header.first_chunk().map(Head::parse);
        let (found, of_data) = match rejected.as_ref().map(|head| &head.header) {
            Some(Header::ScsiCommand(command)) => (self.table.find(number, command.initiator_tag), digest),
            Some(Header::DataOut(data)) => (self.table.find(number, data.initiator_tag), true),
            _ => (None, false),
        };
        match found {
            // The command continues without these data and later ends with its own status (RFC
            // 7143, sections 7.8 and 11.4.7.2).
            Some((tag, of)) if of_data => {
                self.counters.unexpected += 1;
                // With data digests a segment is never split, so the rejected data are those that
                // the host sent.
                if let (true, Some(head)) = (digest && self.is_in_flight(tag, usize::from(of.part)), rejected) {
                    switch.session.engine.reject_forwarded(tag, &head);
                }
            }
            Some((tag, of)) if !self.is_in_flight(tag, usize::from(of.part)) => self.counters.unexpected += 1,
            Some((tag, of)) => {
                let failure = Response::check(Sense::new(SenseKey::ABORTED_COMMAND, SenseCode::NONE));
                self.fail_part(tag, usize::from(of.part), failure, switch, actions);
            }
            None => close_broken(number, actions),
        }
    }
}

/// MaxCmdSN of a PDU, if it has that field.
fn max_cmd_sn(header: &Header) -> Option<u32> {
    Some(match header {
        Header::DataIn(one) => one.max_cmd_sn,
        Header::R2t(one) => one.max_cmd_sn,
        Header::ScsiResponse(one) => one.max_cmd_sn,
        Header::TaskResponse(one) => one.max_cmd_sn,
        Header::NopIn(one) => one.max_cmd_sn,
        Header::AsyncMessage(one) => one.max_cmd_sn,
        Header::Reject(one) => one.max_cmd_sn,
        _ => return None,
    })
}

/// StatSN of a PDU, if it consumes one.
fn status_number(header: &Header) -> Option<u32> {
    match header {
        Header::DataIn(one) if one.flags & flag::STATUS != 0 => Some(one.stat_sn),
        Header::ScsiResponse(one) => Some(one.stat_sn),
        Header::TaskResponse(one) => Some(one.stat_sn),
        Header::NopIn(one) if one.initiator_tag != NO_TAG => Some(one.stat_sn),
        Header::AsyncMessage(one) => Some(one.stat_sn),
        Header::Reject(one) => Some(one.stat_sn),
        _ => None,
    }
}
