//! Completions of commands, from the initiator through the interrupt to the host.

use super::commands::CommandEnd;
use super::hosts::Completion;
use super::recovery::repeat;
use super::{Hosts, Job, PROBE, RESET, Stage};
use crate::host::{End, Event, Input as MultipathInput, PathState, RaisedInterrupt};
use crate::world::Env;
use crate::world::notes::NoteKind;
use sanloom_fc::fcp::initiator::{AbortReason, Outcome};
use sanloom_wire::cdb::status;
use sanloom_wire::sense::{Condition, SenseKey};

/// Delay before a command is sent again if all exchange numbers of its HBA rest, in ps.
const NO_EXCHANGE_RETRY_PS: u64 = 10_000_000_000;

impl Hosts {
    /// Returns whether [`Hosts::process_completions`] has completions or freed windows to process.
    #[inline]
    pub(in crate::world) fn has_completions(&self) -> bool {
        !self.completions.is_empty() || self.windows.has_freed()
    }

    /// Processes the commands that initiators have completed, and offers the windows that they
    /// freed to waiting hosts, until none is left.
    pub(in crate::world) fn process_completions(&mut self, env: &mut Env<'_>) {
        self.queue_completions(env);
        while let Some(plane) = self.windows.pop_freed() {
            self.offer_window(env, plane);
            self.queue_completions(env);
        }
    }

    /// Queues completed commands at their HBAs, which raise interrupts.
    fn queue_completions(&mut self, env: &mut Env<'_>) {
        while let Some(Completion { host, hba, tag, outcome }) = self.completions.pop_front() {
            let now = env.net.now();
            let node = &mut self.nodes[usize::from(host)];
            let data_ps = if node.is_free { 0 } else { node.data_cost_ps(hba, tag) };
            let interrupts = &mut node.interrupts[usize::from(hba)];
            node.completions[usize::from(hba)].push_back((tag, outcome));
            match interrupts.complete(now, data_ps, &mut node.cpu) {
                Some(interrupt) => self.interrupt_raised(env, host, hba, interrupt),
                None => {
                    if let Some(at) = interrupts.poll_timeout() {
                        node.plan(at, Job::Interrupt(hba));
                        self.arm(env, host);
                    }
                }
            }
        }
    }

    /// Offers free window space of an HBA to the waiting hosts, one after the other.
    fn offer_window(&mut self, env: &mut Env<'_>, plane: u16) {
        while let Some(host) = self.windows.next_waiting(plane) {
            let before = self.windows.in_flight(plane);
            self.send_waiting(env, host, Some(plane));
            if self.windows.in_flight(plane) == before && self.windows.requeue_first(plane, host) {
                break;
            }
        }
    }

    /// Processes the completions of an interrupt when the processor has handled it.
    pub(super) fn interrupt_raised(&mut self, env: &mut Env<'_>, host: u16, hba: u16, interrupt: RaisedInterrupt) {
        if interrupt.handled_ps > env.net.now() {
            let job = Job::InterruptHandled(hba, interrupt.completions);
            self.nodes[usize::from(host)].plan(interrupt.handled_ps, job);
            self.arm(env, host);
        } else {
            self.process(env, host, hba, interrupt.completions);
        }
    }

    /// Processes the oldest `count` completions of an HBA.
    pub(super) fn process(&mut self, env: &mut Env<'_>, host: u16, hba: u16, count: u32) {
        for _ in 0..count {
            let completions = &mut self.nodes[usize::from(host)].completions[usize::from(hba)];
            let Some((tag, outcome)) = completions.pop_front() else { break };
            self.command_completed(env, host, tag, outcome);
        }
        self.send_requests(env, host);
    }

    fn command_completed(&mut self, env: &mut Env<'_>, host: u16, tag: u64, outcome: Outcome) {
        if tag & PROBE != 0 {
            if tag & RESET != 0 {
                let (serial, good) = (tag as u16, matches!(outcome, Outcome::Completed { .. }));
                self.handle_recovery(env, host, (tag >> 16) as u16, Event::Reset { serial, good });
            } else {
                self.probe_completed(env, host, tag, outcome);
            }
            return;
        }
        let now = env.net.now();
        let (command, generation) = (tag as u32, (tag >> 32) as u32);
        let node = &mut self.nodes[usize::from(host)];
        let Some(sent) = node.commands.get(command as usize).copied() else { return };
        if sent.generation != generation || sent.stage != Stage::Sent {
            return;
        }
        let status = match outcome {
            Outcome::Completed { status, .. } => Some(status),
            Outcome::Aborted(_) | Outcome::PortGone => None,
        };
        let device = match status {
            Some(status::TASK_SET_FULL | status::BUSY) => None,
            _ => node.left_device(now, command, status == Some(status::GOOD)),
        };
        self.apply_outcome(env, host, command, outcome);
        match device {
            Some(device) => self.continue_device(env, host, device),
            None => self.drive_handler(env, host, sent.hba),
        }
    }

    /// Ends a command in flight, or decides how it continues.
    fn apply_outcome(&mut self, env: &mut Env<'_>, host: u16, command: u32, outcome: Outcome) {
        let now = env.net.now();
        let node = &mut self.nodes[usize::from(host)];
        let sent = node.commands[command as usize];
        let entry = node.paths.system(sent.system);
        let storage = entry.storage;
        match outcome {
            Outcome::Completed { status: status::GOOD, .. } => {
                let end = End::Done { sent_ps: sent.sent_ps, now_ps: now };
                entry.multipath.release(sent.path, sent.bytes, end);
                if entry.done(sent.path, sent.bytes) {
                    entry.multipath.handle(now, MultipathInput::Done(sent.path));
                    self.drain_paths(env, host, sent.system);
                }
                self.windows.release(sent.plane, sent.bytes);
                let node = &mut self.nodes[usize::from(host)];
                node.measured.command_latency.record_ps(now - sent.sent_ps);
                self.end_command(env, host, command, CommandEnd::Good);
            }
            Outcome::Completed { status: status @ (status::TASK_SET_FULL | status::BUSY), .. } => {
                self.command_refused(env, host, command, status == status::TASK_SET_FULL);
            }
            Outcome::Aborted(AbortReason::NoExchange) => {
                // The HBA has not sent the command, so nothing is known about the path.
                node.commands[command as usize].stage = Stage::Waiting;
                node.measured.retried += 1;
                node.plan(now + NO_EXCHANGE_RETRY_PS, Job::Submit(command, sent.generation));
                self.arm(env, host);
            }
            // Another initiator reset the LUN (`scsi_decide_disposition` of
            // drivers/scsi/scsi_error.c).
            Outcome::Completed { status: status::TASK_ABORTED, .. } => {
                node.commands[command as usize].stage = Stage::Waiting;
                self.retry(env, host, command);
            }
            // Linux tries both again: ABORTED COMMAND at most `retries` times, and a unit attention
            // without counting it (`scsi_check_sense` of drivers/scsi/scsi_error.c,
            // `scsi_io_completion_action` of drivers/scsi/scsi_lib.c).
            Outcome::Completed { condition: Some(Condition { key: SenseKey::ABORTED_COMMAND, .. }), .. } => {
                node.commands[command as usize].stage = Stage::Waiting;
                self.retry(env, host, command);
            }
            Outcome::Completed { condition: Some(Condition { key: SenseKey::UNIT_ATTENTION, .. }), .. } => {
                node.commands[command as usize].stage = Stage::Waiting;
                repeat(self, env, host, command);
            }
            Outcome::Completed { .. } => {
                self.release_path(host, command);
                self.end_command(env, host, command, CommandEnd::Status);
            }
            Outcome::PortGone if entry.multipath.state(sent.path) == PathState::Blocked => {
                node.commands[command as usize].stage = Stage::PortLost;
            }
            Outcome::PortGone => {
                self.release_path(host, command);
                self.resend(env, host, command);
            }
            Outcome::Aborted(reason) => {
                entry.failed(sent.path);
                entry.multipath.handle(now, MultipathInput::Aborted(sent.path));
                node.measured.aborted += 1;
                env.note(NoteKind::Aborted { host, storage, path: sent.path });
                node.commands[command as usize].stage = Stage::Waiting;
                self.drain_paths(env, host, sent.system);
                if reason == AbortReason::Unanswered {
                    self.abort_unanswered(env, host, command);
                } else {
                    self.retry(env, host, command);
                }
            }
        }
    }
}
