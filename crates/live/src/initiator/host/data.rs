//! Data transfer between frames and the buffers of requests.

use super::{Active, Data, Host, Leaving, Outgoing};
use crate::initiator::commands::Landing;
use sanloom_fc::exchange::Accepted;
use sanloom_wire::{FCtl, Header};

impl Host {
    /// Returns the next frame or message to send.
    pub fn next_leaving(&mut self) -> Option<Leaving<'_>> {
        loop {
            let Outgoing::Data(sequence) = self.out.front_mut()? else {
                let Some(Outgoing::Message(frame)) = self.out.pop_front() else { return None };
                return Some(Leaving::Message(frame));
            };
            let Some(frame) = sequence.next_frame() else {
                self.out.pop_front();
                continue;
            };
            let (header, ox_id) = (sequence.header(&frame), sequence.ox_id);
            let (from, to) = (frame.offset as usize, frame.offset as usize + usize::from(frame.len));
            if frame.last {
                self.out.pop_front();
            }
            // Data of a completed command are not sent, because its buffer has been returned.
            if self.data_out(ox_id, from, to).is_some() {
                return Some(Leaving::Data(header, self.data_out(ox_id, from, to).unwrap_or_default()));
            }
        }
    }

    /// Returns write data of an exchange.
    fn data_out(&self, ox_id: u16, from: usize, to: usize) -> Option<&[u8]> {
        let active = self.commands.at_exchange(ox_id)?;
        match active.data {
            Data::Buffer { tag, at, .. } => self.requests.get(&tag)?.data.get(at as usize + from..at as usize + to),
            _ => active.own.get(from..to),
        }
    }

    /// Places a frame of read data. Returns the state of the sequence when it is complete or
    /// broken.
    pub(super) fn data_in(&mut self, header: &Header, field: &[u8]) -> Option<Accepted> {
        let fill = if header.f_ctl.has(FCtl::END_SEQUENCE) { header.f_ctl.fill_bytes() } else { 0 };
        let data = &field[..field.len().saturating_sub(fill)];
        let ox_id = header.ox_id;
        let ours = header.d_id == self.port_id;
        let active = self.commands.of_exchange(ox_id).filter(|active| ours && active.d_id == header.s_id);
        let (Some(_), Some(sequence)) = (active, self.fcp.data(ox_id)) else {
            self.unexpected += 1;
            return None;
        };
        // Frames arrive in order, so each starts at the end of the previous one. A different
        // relative offset from the peer is treated as a gap.
        let offset = sequence.received_bytes();
        if header.f_ctl.has(FCtl::RELATIVE_OFFSET) && header.parameter != offset {
            self.unexpected += 1;
            return Some(Accepted::Gap);
        }
        let accepted = self.fcp.accept_data(ox_id, header.seq_cnt, data.len() as u16);
        if matches!(accepted, Accepted::More | Accepted::Complete)
            && !self.land(ox_id, offset, data, header.f_ctl.has(FCtl::END_SEQUENCE))
        {
            return Some(Accepted::Gap);
        }
        matches!(accepted, Accepted::Complete | Accepted::Gap).then_some(accepted)
    }

    /// Copies the data of a frame to the request's buffer, or holds them until the `last` frame of
    /// the sequence. Returns false if they exceed the buffer.
    fn land(&mut self, ox_id: u16, offset: u32, data: &[u8], last: bool) -> bool {
        self.commands.decide_landing(ox_id, self.placement);
        let Some(active) = self.commands.of_exchange(ox_id) else { return false };
        let Active { landing, own, data: wanted, .. } = active;
        let mut room = match *wanted {
            Data::Buffer { tag, at, bytes, .. } => {
                let limit = at as usize + bytes as usize;
                self.requests.get_mut(&tag).and_then(|pending| pending.data.get_mut(at as usize..limit))
            }
            _ => Some(&mut own[..]),
        };
        let mut put = |from: usize, data: &[u8]| {
            let place = room.as_mut().and_then(|room| room.get_mut(from..from + data.len()));
            place.map(|place| place.copy_from_slice(data)).is_some()
        };
        match landing {
            Landing::Undecided | Landing::Direct => {
                self.placed_frames += 1;
                put(offset as usize, data)
            }
            Landing::Staged(staged) => {
                self.staged_frames += 1;
                staged.extend_from_slice(data);
                if !last {
                    return true;
                }
                let whole = std::mem::take(staged);
                put((offset as usize + data.len()).saturating_sub(whole.len()), &whole)
            }
        }
    }
}
