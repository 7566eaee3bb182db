//! The commands of disks on the session of their target.

use super::{Event, Memory, Remote};
use crate::iscsi::initiator::disks::{Want, Who};
use crate::iscsi::initiator::link::Buffers;
use crate::poll::Poller;
use sanloom_core::disk::paths::Input as PathsInput;
use sanloom_core::disk::{Command as DiskCommand, Data, End, Reply};
use sanloom_core::fcp::DataDirection;
use sanloom_core::iscsi::initiator::{Command, Input, Outcome};
use sanloom_core::time::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A command under way.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) who: Who,
    pub(super) command: DiskCommand,
    own: Own,
}

impl Active {
    /// What it does to the medium, if it is done late, overwrites what came after it.
    pub(super) fn changes_medium(&self) -> bool {
        match self.command.data {
            Data::None | Data::In { .. } | Data::Buffer { write: false, .. } => false,
            Data::Out(_) | Data::Zeroes { .. } | Data::Buffer { write: true, .. } => true,
        }
    }
}

/// Data of a command that are none of a request.
#[derive(Debug)]
enum Own {
    None,
    In(Vec<u8>),
    Out(Arc<Vec<u8>>),
}

/// The buffers of commands: their own, or those of their requests.
pub(super) struct Both<'m, M: Memory> {
    pub(super) commands: &'m mut BTreeMap<u64, Active>,
    pub(super) memory: &'m mut M,
}

impl<M: Memory> Buffers for Both<'_, M> {
    fn room(&mut self, id: u64, at: usize, len: usize) -> Option<&mut [u8]> {
        let active = self.commands.get_mut(&id)?;
        match (&active.command.data, &mut active.own) {
            (Data::Buffer { tag, at: begin, .. }, _) => self.memory.room(*tag, *begin as usize + at, len),
            (_, Own::In(buffer)) => buffer.get_mut(at..)?.get_mut(..len),
            _ => None,
        }
    }

    fn data(&mut self, id: u64) -> Option<(Arc<Vec<u8>>, u32)> {
        let active = self.commands.get(&id)?;
        match (&active.command.data, &active.own) {
            (Data::Buffer { tag, at, .. }, _) => {
                let (buffer, begin) = self.memory.data(*tag)?;
                Some((buffer, begin + at))
            }
            (_, Own::Out(buffer)) => Some((buffer.clone(), 0)),
            _ => None,
        }
    }
}

impl Remote {
    pub(super) fn ended(&mut self, now: Instant, id: u64, outcome: Outcome, poller: &mut Poller) {
        if let Outcome::Reset { success } = outcome {
            if let Some(lun) = self.resets.remove(&id) {
                match self.unsettled.is_resetting(lun) {
                    true => self.reset_ended(now, lun, success, poller),
                    false => self.disks.reset_done(now, lun, success),
                }
            }
            return;
        }
        let Some(active) = self.commands.remove(&id) else { return };
        let end = match outcome {
            Outcome::Completed { status, sense, transferred } => {
                // A target that lets us in and does nothing is not better than one that does not answer.
                self.paths.served();
                let mut data = if let Own::In(data) = active.own { data } else { Vec::new() };
                data.truncate(transferred as usize);
                End::Status { status, sense, transferred, data: data.into() }
            }
            Outcome::TimedOut => End::TimedOut { aborted: true },
            Outcome::Failed | Outcome::Reset { .. } => End::Transport,
        };
        self.disks.ended(now, active.who, Reply { id: active.command.id, end });
    }

    pub(super) fn want(&mut self, now: Instant, want: Want, poller: &mut Poller, memory: &mut impl Memory) {
        match want {
            // What comes while the session is left is asked for again at the next one.
            Want::Command(..) if self.draining.is_some() => {}
            Want::Command(who, command) => self.start(now, who, command, memory),
            Want::Reset(lun) => {
                let id = self.next_command;
                self.next_command += 1;
                let Some(link) = &mut self.link else { return self.disks.reset_done(now, lun, false) };
                self.resets.insert(id, lun);
                link.tell(now, Input::Reset { id, lun }, &mut Both { commands: &mut self.commands, memory });
            }
            Want::DropPath => self.lose(now, "the target does not answer", poller),
            Want::Changed => self.events.push_back(Event::Changed),
            Want::Done { tag, result } => self.events.push_back(Event::Done { tag, result }),
            Want::Told(lun, access) => self.paths.handle(now, PathsInput::Told { lun, access }),
            Want::Forget(lun) => self.paths.handle(now, PathsInput::Forget(lun)),
            Want::AccessChanged => self.paths.handle(now, PathsInput::Changed),
        }
    }

    fn start(&mut self, now: Instant, who: Who, command: DiskCommand, memory: &mut impl Memory) {
        let Some(link) = &mut self.link else {
            return self.disks.ended(now, who, Reply { id: command.id, end: End::PathGone });
        };
        let id = self.next_command;
        self.next_command += 1;
        let lun = match who {
            Who::Scan => [0; 8],
            Who::Disk(lun) | Who::Access(lun) => lun,
        };
        let (direction, own) = match &command.data {
            Data::None => (DataDirection::None, Own::None),
            Data::In { max_bytes } => (DataDirection::Read, Own::In(vec![0; *max_bytes as usize])),
            Data::Out(data) => (DataDirection::Write, Own::Out(Arc::new(data.to_vec()))),
            Data::Zeroes { bytes } => (DataDirection::Write, Own::Out(Arc::new(vec![0; *bytes as usize]))),
            Data::Buffer { write: true, .. } => (DataDirection::Write, Own::None),
            Data::Buffer { write: false, .. } => (DataDirection::Read, Own::None),
        };
        let submitted = Command { id, lun, cdb: command.cdb, direction, bytes: command.data.bytes() };
        self.commands.insert(id, Active { who, command, own });
        link.tell(now, Input::Submit(submitted), &mut Both { commands: &mut self.commands, memory });
    }
}
