//! SCSI commands of disks on the session of their target.

use super::{Context, Event, Memory, Remote};
use crate::iscsi_initiator::disks::{DisksOutput, Owner};
use crate::iscsi_initiator::link::Buffers;
use sanloom_scsi::disk::paths::Input as PathsInput;
use sanloom_scsi::disk::{Command as DiskCommand, Data, End, Reply};
use sanloom_scsi::iscsi::initiator::{Command, Input, Outcome};
use sanloom_scsi::scsi::DataDirection;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A command in flight.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) owner: Owner,
    pub(super) command: DiskCommand,
    own: Own,
}

impl Active {
    /// Returns whether a delayed execution would overwrite later writes.
    pub(super) fn changes_medium(&self) -> bool {
        match self.command.data {
            Data::None | Data::In { .. } | Data::Buffer { write: false, .. } => false,
            Data::Out(_) | Data::Zeroes { .. } | Data::Buffer { write: true, .. } => true,
        }
    }
}

/// Data of a command that belongs to no request.
#[derive(Debug)]
enum Own {
    None,
    In(Vec<u8>),
    Out(Arc<Vec<u8>>),
}

/// Buffers of commands: their own, or those of their requests.
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
    pub(super) fn complete(&mut self, cx: &mut Context<'_, impl Memory>, id: u64, outcome: Outcome) {
        if let Outcome::Reset { success } = outcome {
            if let Some(lun) = self.resets.remove(&id) {
                match self.stale.is_resetting(lun) {
                    true => self.reset_ended(cx, lun, success),
                    false => self.disks.reset_done(cx.now, lun, success),
                }
            }
            return;
        }
        let Some(active) = self.commands.remove(&id) else { return };
        let end = match outcome {
            Outcome::Completed { status, sense, transferred } => {
                // A target that accepts logins but no commands counts as one that does not answer.
                self.paths.served();
                let mut data = if let Own::In(data) = active.own { data } else { Vec::new() };
                data.truncate(transferred as usize);
                End::Status { status, sense, transferred, data: data.into() }
            }
            Outcome::TimedOut => End::TimedOut { aborted: true },
            Outcome::Failed | Outcome::Reset { .. } => End::Transport,
        };
        self.disks.ended(cx.now, active.owner, Reply { id: active.command.id, end });
    }

    pub(super) fn execute(&mut self, cx: &mut Context<'_, impl Memory>, output: DisksOutput) {
        match output {
            // Commands issued while the session is drained are issued again in the next one.
            DisksOutput::Command(..) if self.draining.is_some() => {}
            DisksOutput::Command(owner, command) => self.start(cx, owner, command),
            DisksOutput::Reset(lun) => {
                let id = self.next_command;
                self.next_command += 1;
                let Some(link) = &mut self.link else { return self.disks.reset_done(cx.now, lun, false) };
                self.resets.insert(id, lun);
                link.input(
                    cx.now,
                    Input::Reset { id, lun },
                    &mut Both { commands: &mut self.commands, memory: &mut *cx.memory },
                );
            }
            DisksOutput::DropPath => self.lose(cx, "the target does not answer"),
            DisksOutput::Changed => self.events.push_back(Event::Changed),
            DisksOutput::Done { tag, result } => self.events.push_back(Event::Done { tag, result }),
            DisksOutput::Access(lun, access) => self.paths.handle(cx.now, PathsInput::Probed { lun, access }),
            DisksOutput::Forget(lun) => self.paths.handle(cx.now, PathsInput::Forget(lun)),
            DisksOutput::AccessChanged => self.paths.handle(cx.now, PathsInput::Changed),
        }
    }

    fn start(&mut self, cx: &mut Context<'_, impl Memory>, owner: Owner, command: DiskCommand) {
        let Some(link) = &mut self.link else {
            return self.disks.ended(cx.now, owner, Reply { id: command.id, end: End::PathGone });
        };
        let id = self.next_command;
        self.next_command += 1;
        let lun = match owner {
            Owner::Scan => [0; 8],
            Owner::Disk(lun) | Owner::Access(lun) => lun,
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
        self.commands.insert(id, Active { owner, command, own });
        link.input(
            cx.now,
            Input::Submit(submitted),
            &mut Both { commands: &mut self.commands, memory: &mut *cx.memory },
        );
    }
}
