//! PDUs from the host: commands and their data.

use super::action::{Action, Conn, close_broken};
use super::machine::{Forward, Switch};
use super::table::Stage;
use crate::iscsi::target::DataOutcome;
use crate::scsi::{BlockIo, IoTag, Response};
use crate::time::Instant;
use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{Bhs, DataOut, Head, Header, NO_TAG, Opcode, ScsiCommand};

impl Forward {
    pub(super) fn on_host(&mut self, now: Instant, bhs: &mut Bhs, switch: &mut Switch<'_>, actions: &mut Vec<Action>) {
        if bhs.data_bytes() > self.front.receive_bytes {
            // The framer of the conventional path detects the error and ends the connection.
            return actions.push(Action::ToConventional);
        }
        let head = match bhs.opcode() {
            Opcode::SCSI_COMMAND | Opcode::DATA_OUT => Head::parse(&bhs.0),
            _ => return actions.push(Action::ToConventional),
        };
        match head.header {
            Header::ScsiCommand(command) => self.on_command(now, &head, command, bhs, switch, actions),
            Header::DataOut(data) => self.on_data_out(now, &head, &data, bhs, switch, actions),
            _ => actions.push(Action::ToConventional),
        }
    }

    fn on_command(
        &mut self,
        now: Instant,
        head: &Head,
        command: ScsiCommand,
        bhs: &mut Bhs,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let plan = match self.plan(head, &command, switch) {
            Ok(plan) => plan,
            Err(kept) => {
                self.counters.kept[kept as usize] += 1;
                return actions.push(Action::ToConventional);
            }
        };
        let BlockIo { op, lba, blocks, bytes, .. } = plan.io;
        let claim = switch.volumes.forward(plan.volume, op, lba, blocks, bytes);
        let tag = switch.session.begin_forwarded(now, head, command, switch.device);
        let (Some(tag), Some(claim)) = (tag, claim) else {
            // `plan` has checked both, so neither is missing here.
            claim.into_iter().for_each(|claim| switch.volumes.release(claim));
            return actions.push(Action::Discard { bytes: head.data_bytes });
        };
        let entry = self.begin(tag, plan.io, claim);
        let (is_read, parts) = (entry.is_read(), entry.parts.len());
        if is_read {
            self.send_or_queue(tag, 0, actions);
            return;
        }
        let more = command.flags & flag::FINAL == 0;
        self.counters.written_bytes += u64::from(head.data_bytes);
        let mut in_place = Some(bhs);
        for part in 0..parts {
            if !self.send_write(tag, part, head.data_bytes, more, &mut in_place, actions) {
                break;
            }
        }
    }

    /// Sends the command for a part of a write, with its immediate data, if it may leave now.
    /// Returns false if later parts have to wait for it.
    fn send_write(
        &mut self,
        tag: IoTag,
        part: usize,
        immediate_bytes: u32,
        more: bool,
        in_place: &mut Option<&mut Bhs>,
        actions: &mut Vec<Action>,
    ) -> bool {
        let Some(entry) = self.table.get_mut(tag) else { return false };
        let of = &mut entry.parts[part];
        let share = immediate_bytes.saturating_sub(of.at).min(of.bytes);
        // The host may send more unsolicited data for this part.
        let open = more && share < of.bytes;
        if share == 0 && !open {
            return self.send_or_queue(tag, part, actions);
        }
        if open && part > 0 && share == 0 {
            // It is unknown whether unsolicited data for this part follow, so reserve a window
            // slot.
            of.stage = Stage::Reserved;
            if let Some(back) = self.backs.get_mut(of.back) {
                back.reserve_slot();
            }
            return true;
        }
        let to = Conn::Back(of.back);
        let Some(header) = self.number_command(tag, part, share, open) else { return false };
        match in_place.take() {
            Some(bhs) => {
                bhs.0 = header;
                actions.push(Action::SendHeader { to });
            }
            None => actions.push(Action::Send { to, header }),
        }
        if share > 0 {
            actions.push(Action::Move { to, bytes: share });
        }
        true
    }

    /// Handles a Data-Out of the host.
    fn on_data_out(
        &mut self,
        now: Instant,
        head: &Head,
        data: &DataOut,
        bhs: &mut Bhs,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let bytes = head.data_bytes;
        match switch.session.forwarded_data(now, head, data) {
            DataOutcome::Other => actions.push(Action::ToConventional),
            DataOutcome::Wrong(tag, sense) => {
                actions.push(Action::Discard { bytes });
                if let Some(entry) = self.table.get_mut(tag) {
                    entry.fail(0, Response::check(sense));
                }
                self.stop_parts(now, tag, actions);
                self.respond_if_over(tag, switch);
            }
            DataOutcome::Taken(tag) => {
                self.counters.written_bytes += u64::from(bytes);
                let last = data.flags & flag::FINAL != 0;
                let solicited = data.target_tag != NO_TAG;
                let lost = self.table.get(tag).is_none_or(|entry| entry.is_lost());
                if lost {
                    actions.push(Action::Discard { bytes });
                    return self.respond_if_over(tag, switch);
                }
                self.pass_data(tag, (data.offset, bytes), solicited, last, bhs, actions);
                if last && !solicited {
                    self.end_unsolicited(tag, actions);
                }
                self.solicit(tag, switch);
            }
        }
    }

    /// Splits data of the host at part boundaries and at the segment length that back ends accept.
    fn pass_data(
        &mut self,
        tag: IoTag,
        (offset, bytes): (u32, u32),
        solicited: bool,
        last: bool,
        bhs: &mut Bhs,
        actions: &mut Vec<Action>,
    ) {
        let mut in_place = Some(bhs);
        let (mut at, end) = (offset, offset + bytes);
        // An empty PDU may end a sequence.
        while at < end || (bytes == 0 && last && in_place.is_some()) {
            let Some(entry) = self.table.get(tag) else { break };
            let Some(part) = entry.part_at(at) else { break };
            let of = entry.parts[part];
            if bytes == 0 && of.stage == Stage::Reserved {
                break;
            }
            if of.stage == Stage::Reserved {
                // The first data of the part arrive here, so its command is sent now.
                self.send_reserved(tag, part, true, actions);
            }
            let (Some(back), Some(entry)) = (self.backs.get(of.back), self.table.get_mut(tag)) else { break };
            let r2t = entry.r2ts.iter().position(|r2t| solicited && (r2t.from..r2t.end).contains(&at));
            let limit = r2t.map_or(of.at + of.bytes, |r2t| entry.r2ts[r2t].end);
            let len = (end.min(limit) - at).min(back.parameters.send_bytes);
            let is_last = match solicited {
                true => at + len == limit,
                false => at + len == of.at + of.bytes || (last && at + len == end),
            };
            if self.front.data_digest && len < end - offset {
                // A digest covers the whole segment, so the segment cannot be split.
                actions.push(Action::Discard { bytes: end - at });
                return close_broken(of.back, actions);
            }
            let open = r2t.map(|r2t| entry.r2ts[r2t]);
            let header = entry.data_out(part, (at, len), open.as_ref(), is_last, back);
            match (r2t, is_last) {
                (Some(r2t), true) => {
                    entry.r2ts.remove(r2t);
                }
                (Some(r2t), false) => entry.r2ts[r2t].data_sn += 1,
                (None, _) => entry.parts[part].data_sn += 1,
            }
            entry.parts[part].moved += len;
            let to = Conn::Back(of.back);
            match in_place.take() {
                Some(bhs) => {
                    bhs.0 = header;
                    actions.push(Action::SendHeader { to });
                }
                None => actions.push(Action::Send { to, header }),
            }
            actions.push(Action::Move { to, bytes: len });
            at += len;
        }
        if at < end {
            actions.push(Action::Discard { bytes: end - at });
        }
    }

    /// Sends the commands of parts with a reserved slot, because the host sends no further
    /// unsolicited data.
    fn end_unsolicited(&mut self, tag: IoTag, actions: &mut Vec<Action>) {
        let parts = self.table.get(tag).map_or(0, |entry| entry.parts.len());
        for part in 0..parts {
            let reserved = self.table.get(tag).is_some_and(|entry| entry.parts[part].stage == Stage::Reserved);
            if reserved {
                self.send_reserved(tag, part, false, actions);
            }
        }
    }

    /// Sends the command for a part whose window slot was reserved.
    fn send_reserved(&mut self, tag: IoTag, part: usize, more: bool, actions: &mut Vec<Action>) {
        let Some(number) = self.table.get(tag).map(|entry| entry.parts[part].back) else { return };
        if let Some(back) = self.backs.get_mut(number) {
            back.free_slot();
        }
        if let Some(header) = self.number_command(tag, part, 0, more) {
            actions.push(Action::Send { to: Conn::Back(number), header });
        }
    }

    /// Passes R2Ts of back ends to the host, in order of their offsets and as many as were agreed.
    pub(super) fn solicit(&mut self, tag: IoTag, switch: &mut Switch<'_>) {
        if switch.session.engine.awaits_unsolicited(tag) {
            return;
        }
        loop {
            let from = switch.session.engine.solicited(tag);
            let Some(entry) = self.table.get(tag).filter(|entry| !entry.is_lost()) else { return };
            let Some(r2t) = entry.r2ts.iter().find(|r2t| (r2t.from..r2t.end).contains(&from)) else { return };
            if !switch.session.engine.solicit_forwarded(tag, r2t.end) {
                return;
            }
        }
    }
}
