//! The PDU Duplicating Handler: one command of the host, several of the switch, and one answer.

use super::action::{Action, Conn};
use super::machine::{Forward, Switch};
use super::table::Stage;
use crate::scsi::{IoTag, Response};
use crate::time::Instant;
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::BHS_BYTES;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// How often a part is sent again because of unit attentions of the back end: it may have several to tell.
const MAX_AGAIN: u8 = 8;

impl Forward {
    /// Sends the command for a part without data, or lets it wait for the window: then false. Parts behind a part that waits are not asked
    /// for: what has a place in a window must be able to go on.
    pub(super) fn ask(&mut self, tag: IoTag, part: usize, actions: &mut Vec<Action>) -> bool {
        let Some(entry) = self.entry(tag) else { return false };
        let of = &mut entry.parts[part];
        let number = of.back;
        let Some(back) = self.backs.get_mut(usize::from(number)).and_then(Option::as_mut) else { return false };
        if back.room() == 0 {
            if let Some(entry) = self.entry(tag) {
                entry.parts[part].stage = Stage::Queued;
            }
            if let Some(Some(back)) = self.backs.get_mut(usize::from(number)) {
                back.queue.push_back((tag, part as u8));
            }
            return false;
        }
        if let Some(header) = self.number(tag, part, 0, false) {
            actions.push(Action::Send { to: Conn::Back(number), header });
        }
        true
    }

    /// Gives the command for a part its number: it leaves now, with so much of its data, and with more behind it.
    pub(super) fn number(
        &mut self,
        tag: IoTag,
        part: usize,
        immediate_bytes: u32,
        more: bool,
    ) -> Option<[u8; BHS_BYTES]> {
        let entry = self.entries.get_mut(usize::from(tag.0 as u16))?.as_mut()?;
        let of = &mut entry.parts[part];
        let back = self.backs.get_mut(usize::from(of.back))?.as_mut()?;
        of.cmd_sn = back.cmd_sn;
        of.stage = Stage::Sent;
        of.moved = immediate_bytes;
        of.data_sn = 0;
        of.looked = None;
        back.cmd_sn = back.cmd_sn.wrapping_add(1);
        back.active += 1;
        Some(entry.command(part, immediate_bytes, more, back))
    }

    /// Sends what waited for the windows of back ends.
    pub(super) fn pump(&mut self, actions: &mut Vec<Action>) {
        for number in 0..self.backs.len() {
            while let Some(Some(back)) = self.backs.get_mut(number)
                && back.window() > back.reserved
                && let Some((tag, part)) = back.queue.pop_front()
            {
                let part = usize::from(part);
                // It may have been stopped meanwhile.
                if self.entry(tag).is_some_and(|entry| entry.parts[part].stage == Stage::Queued)
                    && let Some(header) = self.number(tag, part, 0, false)
                {
                    actions.push(Action::Send { to: Conn::Back(number as u8), header });
                    self.ask_next(tag, part, actions);
                }
            }
        }
    }

    /// A part of a write has its place: those behind it are asked for.
    fn ask_next(&mut self, tag: IoTag, part: usize, actions: &mut Vec<Action>) {
        let Some(entry) = self.entry(tag).filter(|entry| !entry.is_read()) else { return };
        for next in part + 1..entry.parts.len() {
            if !self.ask(tag, next, actions) {
                return;
            }
        }
    }

    pub(super) fn forget_active(&mut self, number: u8) {
        if let Some(Some(back)) = self.backs.get_mut(usize::from(number)) {
            back.active = back.active.saturating_sub(1);
        }
    }

    /// The back end does not work for a part any more.
    pub(super) fn end_part(&mut self, tag: IoTag, part: usize, switch: &mut Switch<'_>) {
        let Some(entry) = self.entry(tag) else { return };
        let of = &mut entry.parts[part];
        let before = std::mem::replace(&mut of.stage, Stage::Over);
        let number = of.back;
        entry.r2ts.retain(|r2t| usize::from(r2t.part) != part);
        if matches!(before, Stage::Sent | Stage::Aborting) {
            self.forget_active(number);
        }
        if before == Stage::Aborting
            && let Some(Some(back)) = self.backs.get_mut(usize::from(number))
        {
            back.aborting = back.aborting.and_then(|(at, left)| (left > 1).then_some((at, left - 1)));
        }
        self.settle(tag, switch);
    }

    /// A part has failed: nothing more is done for the others.
    pub(super) fn part_failed(
        &mut self,
        tag: IoTag,
        part: usize,
        answer: Response,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let Some(entry) = self.entry(tag) else { return };
        if entry.is_lost() {
            return self.end_part(tag, part, switch);
        }
        entry.fail(part as u8, answer);
        entry.parts[part].stage = Stage::Over;
        entry.r2ts.clear();
        let number = entry.parts[part].back;
        let now = self.heard(number);
        self.forget_active(number);
        self.stop_parts(now, tag, actions);
        self.settle(tag, switch);
    }

    /// Ends all parts of a task that have not: those that were sent by ABORT TASK.
    pub(super) fn stop_parts(&mut self, now: Instant, tag: IoTag, actions: &mut Vec<Action>) {
        let Some(entry) = self.entries.get_mut(usize::from(tag.0 as u16)).and_then(Option::as_mut) else { return };
        for number in 0..entry.parts.len() {
            let of = &mut entry.parts[number];
            let back = self.backs.get_mut(usize::from(of.back)).and_then(Option::as_mut);
            match (of.stage, back) {
                (Stage::Sent, Some(back)) => {
                    of.stage = Stage::Aborting;
                    let (at, count) = back.aborting.unwrap_or((now, 0));
                    back.aborting = Some((at, count + 1));
                    self.counters.aborts += 1;
                    let to = Conn::Back(of.back);
                    actions.push(Action::Send { to, header: entry.abort(number, back) });
                }
                (Stage::Sent, None) | (Stage::Queued | Stage::Unsent, _) => of.stage = Stage::Over,
                (Stage::Kept, back) => {
                    of.stage = Stage::Over;
                    if let Some(back) = back {
                        back.reserved = back.reserved.saturating_sub(1);
                    }
                }
                (Stage::Aborting | Stage::Over, _) => {}
            }
        }
    }

    /// Answers a task when all its parts have ended and the host has sent what it still sends for it.
    pub(super) fn settle(&mut self, tag: IoTag, switch: &mut Switch<'_>) {
        let Some(entry) = self.entry(tag) else { return };
        if !entry.is_over() {
            return;
        }
        if entry.dying {
            return self.over(tag, switch);
        }
        if switch.session.awaits_data(tag) {
            return;
        }
        let (bytes, moved, failure) = (entry.io.bytes, entry.moved(), entry.failure.take());
        match failure {
            None => switch.session.respond_forwarded(tag, &Response::GOOD, bytes),
            Some((_, answer)) => {
                let moved = if answer.sense.is_some() { moved } else { 0 };
                switch.session.respond_forwarded(tag, &answer, moved);
            }
        }
        self.over(tag, switch);
    }

    /// A task is over.
    pub(super) fn over(&mut self, tag: IoTag, switch: &mut Switch<'_>) {
        let slot = usize::from(tag.0 as u16);
        let Some(entry) = self.entries.get_mut(slot).and_then(Option::take) else { return };
        self.live -= 1;
        self.give_back(entry.claim, entry.behind, switch.volumes);
        self.kept_parts.push((entry.parts, entry.r2ts));
        switch.session.end_forwarded(tag, switch.device);
    }

    /// A unit attention of a back end is the switch's own matter: hosts have theirs from the device. The part is sent again, if its data
    /// have not passed; if they have, the host is asked to send the command again.
    pub(super) fn again(&mut self, tag: IoTag, part: usize, switch: &mut Switch<'_>, actions: &mut Vec<Action>) {
        let asked = switch.session.awaits_data(tag);
        let Some(entry) = self.entries.get_mut(usize::from(tag.0 as u16)).and_then(Option::as_mut) else { return };
        let of = &mut entry.parts[part];
        let place = self.backs.get(usize::from(of.back)).and_then(Option::as_ref);
        let place = place.is_some_and(|back| back.window() > back.reserved);
        if of.moved > 0 || asked || !place || of.again >= MAX_AGAIN {
            let answer = self.unsplit(tag, Response::status(status::BUSY));
            return self.part_failed(tag, part, answer, switch, actions);
        }
        of.again += 1;
        let number = of.back;
        entry.r2ts.retain(|r2t| usize::from(r2t.part) != part);
        self.counters.again += 1;
        self.forget_active(number);
        if let Some(header) = self.number(tag, part, 0, false) {
            actions.push(Action::Send { to: Conn::Back(number), header });
        }
    }

    /// A status that says "not now" is no answer for a command of which another part has changed the medium.
    pub(super) fn unsplit(&mut self, tag: IoTag, answer: Response) -> Response {
        match self.entry(tag).is_some_and(|entry| entry.is_one_to_one()) {
            true => answer,
            false => Response::check(Sense::new(SenseKey::ABORTED_COMMAND, SenseCode::NONE)),
        }
    }

    /// The sense of a part, about the addresses of the virtual disk.
    pub(super) fn translated(&mut self, tag: IoTag, part: usize, sense: Sense) -> Sense {
        let Some(entry) = self.entry(tag) else { return sense };
        let of = &entry.parts[part];
        let block_bytes = entry.io.bytes / entry.io.blocks.max(1);
        let first = entry.io.lba + u64::from(of.at / block_bytes.max(1));
        // An address that is not one of the part is none.
        let information = sense.information.and_then(|lba| lba.checked_sub(of.lba));
        let information = information.filter(|offset| *offset < of.blocks.into()).map(|offset| first + offset);
        Sense { information, descriptor: false, ..sense }
    }
}
