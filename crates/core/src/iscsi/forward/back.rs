//! What comes from back ends: data, R2Ts, responses, and what concerns their sessions alone.

use super::action::{Action, CloseReason, Conn};
use super::adaptor::{DataInOf, data_in};
use super::machine::{BackEnd, CHECK_TAG, Forward, PATH_GONE, PROBE_TAG, Switch};
use super::table::{BackR2t, Stage};
use crate::iscsi::sequence::before;
use crate::scsi::{IoTag, Response};
use crate::time::Instant;
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::code::{RejectReason, flag, response, task_response};
use sanloom_wire::iscsi::{
    AsyncEvent, Bhs, DataIn, Head, Header, NO_TAG, R2t, ScsiResponse, SenseSegment, TaskResponse,
};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::BTreeSet;

/// A back end that answers what cannot be: too few data with status GOOD, a response code that means nothing.
const TARGET_FAILURE: Sense = Sense::new(SenseKey::HARDWARE_ERROR, SenseCode::INTERNAL_TARGET_FAILURE);

/// A unit attention after which a unit may be another disk, or another size.
fn is_change(sense: &Sense) -> bool {
    let changes = [
        SenseCode::CAPACITY_CHANGED,
        SenseCode::MODE_PARAMETERS_CHANGED,
        SenseCode::INQUIRY_DATA_CHANGED,
        SenseCode::REPORTED_LUNS_CHANGED,
    ];
    sense.key == SenseKey::UNIT_ATTENTION && changes.contains(&sense.code)
}

/// A unit attention that says that commands were ended: a reset of any kind, or another initiator's CLEAR TASK SET.
fn is_reset(sense: &Sense) -> bool {
    let reset = sense.code.0 >> 8 == SenseCode::POWER_ON_OR_RESET.0 >> 8;
    sense.key == SenseKey::UNIT_ATTENTION && (reset || sense.code == SenseCode::COMMANDS_CLEARED)
}

/// How a part ended, by a Data-In with status or a SCSI Response.
struct Ended<'a> {
    status: u8,
    residual: bool,
    sense: &'a [u8],
}

impl BackEnd {
    fn hear(&mut self, now: Instant, max_cmd_sn: u32) {
        self.heard = now;
        self.asked = None;
        if before(self.max_cmd_sn, max_cmd_sn) {
            self.max_cmd_sn = max_cmd_sn;
        }
    }

    fn count_status(&mut self, stat_sn: u32) {
        if !before(stat_sn, self.exp_stat_sn) {
            self.exp_stat_sn = stat_sn.wrapping_add(1);
        }
    }
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
        let Ok(head) = Head::parse(&bhs.0) else { return };
        let Some(back) = self.backs.get_mut(usize::from(number)).and_then(Option::as_mut) else {
            return actions.push(Action::Discard { bytes });
        };
        if let Some(max_cmd_sn) = max_cmd_sn(&head.header) {
            back.hear(now, max_cmd_sn);
        }
        if let Some(stat_sn) = status_number(&head.header) {
            back.count_status(stat_sn);
        }
        if bytes > back.parameters.receive_bytes {
            actions.push(Action::Discard { bytes });
            return self.broken(number, actions);
        }
        if bytes > 0 && matches!(head.header, Header::R2t(_) | Header::TaskResponse(_)) {
            // They have no data.
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
                    AsyncEvent::LOGOUT | AsyncEvent::NEGOTIATION => back.leaving = true,
                    AsyncEvent::CONNECTION_DROP | AsyncEvent::SESSION_DROP => {
                        actions.push(Action::Close { conn: Conn::Back(number), reason: CloseReason::Asked });
                    }
                    _ => {}
                }
            }
            _ => {
                self.counters.unexpected += 1;
                actions.push(Action::Discard { bytes });
            }
        }
        // Data behind the header have to reach the host first.
        if bytes == 0 {
            self.close_left(number, actions);
        }
    }

    /// Nothing new begins at a back end. For a target that is better reached through another port; then
    /// [`close_left`](Self::close_left).
    pub fn leave(&mut self, number: u8) {
        if let Some(Some(back)) = self.backs.get_mut(usize::from(number)) {
            back.leaving = true;
        }
    }

    /// Closes the connection to a back end that is left, when nothing is under way there any more. To be called now and then, while
    /// no PDU from there is half sent.
    pub fn close_left(&self, number: u8, actions: &mut Vec<Action>) {
        let left = |back: &BackEnd| back.leaving && back.active == 0;
        if self.backs.get(usize::from(number)).and_then(Option::as_ref).is_some_and(left) {
            actions.push(Action::Close { conn: Conn::Back(number), reason: CloseReason::Asked });
        }
    }

    /// Back ends that have said since the last call that their ports serve otherwise than before.
    pub fn take_told(&mut self) -> BTreeSet<u8> {
        std::mem::take(&mut self.told)
    }

    /// The data segment that [`Action::Collect`] asked for, behind its header.
    pub fn on_collected(
        &mut self,
        number: u8,
        header: &[u8],
        data: &[u8],
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let Ok(head) = Head::parse(header) else { return };
        match head.header {
            Header::ScsiResponse(answer) => match SenseSegment::parse(data) {
                Ok(segment) => self.on_response(number, &answer, segment.sense, switch, actions),
                Err(_) => self.broken(number, actions),
            },
            Header::Reject(reject) => self.on_reject(number, reject.reason, data, switch, actions),
            _ => {}
        }
        self.close_left(number, actions);
        self.pump(actions);
    }

    /// When a back end was heard last: now, if this is about what it has said.
    pub(super) fn heard(&self, number: u8) -> Instant {
        self.backs.get(usize::from(number)).and_then(Option::as_ref).map_or(Instant::ZERO, |back| back.heard)
    }

    pub(super) fn broken(&mut self, number: u8, actions: &mut Vec<Action>) {
        actions.push(Action::Close { conn: Conn::Back(number), reason: CloseReason::Protocol });
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
        let Some((tag, of)) = self.find(number, data.initiator_tag) else {
            self.counters.unexpected += 1;
            return actions.push(Action::Discard { bytes });
        };
        let number_of_part = usize::from(of.part);
        let has_status = data.flags & flag::STATUS != 0;
        let residual = data.flags & (flag::UNDERFLOW | flag::OVERFLOW) != 0;
        let Some(entry) = self.entry(tag) else { return };
        let part = &entry.parts[number_of_part];
        if !matches!(part.stage, Stage::Sent | Stage::Aborting) {
            self.counters.unexpected += 1;
            return actions.push(Action::Discard { bytes });
        }
        let in_order = data.offset == part.moved && part.bytes - part.moved >= bytes;
        if entry.is_lost() {
            actions.push(Action::Discard { bytes });
        } else if !entry.is_read() || number_of_part != entry.current || !in_order {
            actions.push(Action::Discard { bytes });
            return self.broken(number, actions);
        } else {
            let part = &mut entry.parts[number_of_part];
            part.moved += bytes;
            let full = part.moved == part.bytes;
            let at = part.at + data.offset;
            let next = (full && number_of_part + 1 < entry.parts.len()).then_some(number_of_part + 1);
            // The status of all of it, with the last data.
            let others = entry.parts.iter().enumerate().all(|(n, p)| n == number_of_part || p.stage == Stage::Over);
            let collapses =
                bytes > 0 && has_status && data.status == status::GOOD && !residual && full && next.is_none() && others;
            if collapses {
                entry.parts[number_of_part].stage = Stage::Over;
                switch.session.collapse_forwarded(tag);
            }
            if let Some(next) = next {
                entry.current = next;
                self.ask(tag, next, actions);
            }
            self.counters.read_bytes += u64::from(bytes);
            let ends = data.flags & flag::FINAL != 0;
            if !self.pass_data_in(tag, (at, bytes), (collapses, ends), bhs, switch, actions) {
                return self.broken(number, actions);
            }
            if collapses {
                self.forget_active(number);
                return self.over(tag, switch);
            }
        }
        if has_status {
            let ended = Ended { status: data.status, residual, sense: &[] };
            self.part_over(tag, number_of_part, ended, switch, actions);
        }
    }

    /// Cuts data for the host: no segment longer than it takes, sequences as it agreed. What has a digest cannot be cut, and its
    /// sequences are those of the back end. False if it would have to be.
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
        let window = switch.session.window();
        let end_of_all = self.entry(tag).map_or(0, |entry| entry.io.bytes);
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
            let Some((initiator_tag, data_sn)) = switch.session.next_data_in(tag, len) else { break };
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
        let Some((tag, of)) = self.find(number, r2t.initiator_tag) else {
            self.counters.unexpected += 1;
            return;
        };
        let Some(entry) = self.entry(tag) else { return };
        let part = &entry.parts[usize::from(of.part)];
        if entry.is_lost() || part.stage != Stage::Sent {
            return;
        }
        let end = r2t.offset.checked_add(r2t.desired_bytes).filter(|end| *end <= part.bytes);
        let asked = entry.r2ts.iter().filter(|one| one.part == of.part).map(|one| one.end).max();
        let from = part.at.wrapping_add(r2t.offset);
        let fresh = r2t.offset >= part.moved && asked.is_none_or(|asked| from >= asked);
        let (Some(end), true, true) = (end, fresh && !entry.is_read(), r2t.desired_bytes > 0) else {
            return self.broken(number, actions);
        };
        let one = BackR2t { part: of.part, target_tag: r2t.target_tag, from, end: part.at + end, data_sn: 0 };
        let place = entry.r2ts.partition_point(|other| other.from < from);
        entry.r2ts.insert(place, one);
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
            return self.probed(number, answer.status == status::GOOD, actions);
        }
        if answer.initiator_tag == CHECK_TAG {
            let sense = Sense::parse(sense).ok().filter(|_| answer.status == status::CHECK_CONDITION);
            if sense.is_some_and(|sense| is_change(&sense)) {
                return actions.push(Action::Close { conn: Conn::Back(number), reason: CloseReason::Changed });
            }
            return self.checked(number, sense.is_some_and(|sense| is_reset(&sense)), switch, actions);
        }
        let Some((tag, of)) = self.find(number, answer.initiator_tag).filter(|(_, of)| !of.abort) else {
            self.counters.unexpected += 1;
            return;
        };
        let part = usize::from(of.part);
        if !self.is_at_work(tag, part) {
            self.counters.unexpected += 1;
            return;
        }
        if answer.response != response::COMPLETED {
            return self.part_failed(tag, part, Response::check(TARGET_FAILURE), switch, actions);
        }
        let residual = answer.flags & (flag::UNDERFLOW | flag::OVERFLOW) != 0;
        self.part_over(tag, part, Ended { status: answer.status, residual, sense }, switch, actions);
    }

    /// A part is with its back end, which has not answered.
    fn is_at_work(&mut self, tag: IoTag, part: usize) -> bool {
        self.entry(tag).is_some_and(|entry| matches!(entry.parts[part].stage, Stage::Sent | Stage::Aborting))
    }

    /// A part has ended with a status.
    fn part_over(
        &mut self,
        tag: IoTag,
        number: usize,
        Ended { status: scsi_status, residual, sense }: Ended<'_>,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let Some(entry) = self.entry(tag) else { return };
        let part = entry.parts[number];
        if entry.is_lost() {
            return self.end_part(tag, number, switch);
        }
        match scsi_status {
            status::GOOD if !residual && part.moved == part.bytes => self.end_part(tag, number, switch),
            status::GOOD => self.part_failed(tag, number, Response::check(TARGET_FAILURE), switch, actions),
            status::CHECK_CONDITION => {
                let sense = Sense::parse(sense).unwrap_or(TARGET_FAILURE);
                if is_change(&sense) {
                    // Only a look at what it is tells whether it may be written.
                    let back = part.back;
                    actions.push(Action::Close { conn: Conn::Back(back), reason: CloseReason::Changed });
                    let answer = self.unsplit(tag, Response::status(status::BUSY));
                    return self.part_failed(tag, number, answer, switch, actions);
                }
                if sense.condition().refuses_port() {
                    // The conventional path waits until a port serves; hosts send it again, and find that one.
                    self.told.insert(part.back);
                    if let Some(Some(back)) = self.backs.get_mut(usize::from(part.back)) {
                        back.leaving = true;
                    }
                    return self.part_failed(tag, number, PATH_GONE, switch, actions);
                }
                if sense.key == SenseKey::UNIT_ATTENTION {
                    if sense.condition().changes_ports() {
                        self.told.insert(part.back);
                    }
                    self.again(tag, number, switch, actions);
                    if is_reset(&sense) {
                        self.cleared(part.back, part.lun, part.cmd_sn, switch, actions);
                    }
                    return;
                }
                let sense = self.translated(tag, number, sense);
                self.part_failed(tag, number, Response::check(sense), switch, actions);
            }
            // Nobody has ended it on the virtual disk.
            status::TASK_ABORTED => self.part_failed(tag, number, PATH_GONE, switch, actions),
            other => {
                let answer = self.unsplit(tag, Response::status(other));
                self.part_failed(tag, number, answer, switch, actions);
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
        let Some((tag, of)) = self.find(number, answer.initiator_tag).filter(|(_, of)| of.abort) else {
            // Of a task that has ended.
            return;
        };
        if !self.entry(tag).is_some_and(|entry| entry.parts[usize::from(of.part)].stage == Stage::Aborting) {
            // Of a part whose response came before, while another part is at work.
            return;
        }
        match answer.response {
            task_response::COMPLETE | task_response::NO_TASK => self.end_part(tag, usize::from(of.part), switch),
            // It may still be at work: only the end of the session ends it for certain.
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
        let rejected = Head::parse(header);
        let (found, of_data) = match rejected.as_ref().map(|head| &head.header) {
            Ok(Header::ScsiCommand(command)) => (self.find(number, command.initiator_tag), digest),
            Ok(Header::DataOut(data)) => (self.find(number, data.initiator_tag), true),
            _ => (None, false),
        };
        match found {
            // The command goes on without these data, and ends with a status of its own (RFC 7143, sections 7.8 and 11.4.7.2).
            Some((tag, of)) if of_data => {
                self.counters.unexpected += 1;
                // Data with digests are whole: the host has sent what is rejected here.
                if let (true, Ok(head)) = (digest && self.is_at_work(tag, usize::from(of.part)), rejected) {
                    switch.session.reject_forwarded(tag, &head);
                }
            }
            Some((tag, of)) if !self.is_at_work(tag, usize::from(of.part)) => self.counters.unexpected += 1,
            Some((tag, of)) => {
                let failure = Response::check(Sense::new(SenseKey::ABORTED_COMMAND, SenseCode::NONE));
                self.part_failed(tag, usize::from(of.part), failure, switch, actions);
            }
            None => self.broken(number, actions),
        }
    }
}

/// MaxCmdSN, where the PDU has one.
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

/// StatSN, where the PDU is a status.
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
