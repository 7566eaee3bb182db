//! From a request of a host to its end.

use super::{Job, PROBE, Sent, Stage};
use crate::host::{Choice, CommandId, End, Input as MultipathInput, PathState, Pushed, Seen, Work};
use crate::world::World;
use crate::world::ledger::NoteKind;
use sanloom_core::fcp::DataDirection;
use sanloom_core::fcp::initiator::{self, Outcome};
use sanloom_core::time::Instant;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::lun;

/// After TASK SET FULL or BUSY a command is sent again this much later, in ps.
const BUSY_RETRY_PS: u64 = 1_000_000_000;
/// A closed loop goes on this much later at the earliest after a request that failed in the moment it was made, in ps:
/// without a pause time would stand still.
const FAILED_AT_ONCE_PS: u64 = 1_000_000_000;

impl World {
    /// A stream makes a request.
    pub(super) fn request(&mut self, host: u16, stream: u32) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        if node.stopped {
            return;
        }
        let (workload, source) = &mut node.streams[stream as usize];
        let workload = *workload;
        let request = source.next_request();
        let measured = &mut self.workloads[usize::from(workload)];
        measured.offer(host, request.bytes);
        node.measured.offered[0] += 1;
        node.measured.offered[1] += u64::from(request.bytes);
        self.books.issued += 1;
        if node.queue.outstanding().level() == 0 && node.queue.waiting().level() == 0 {
            node.measured.last_end_ps = now;
        }
        if node.queue.push(request, now, stream) == Pushed::Refused {
            self.books.failed += 1;
            node.measured.failed += 1;
            self.workloads[usize::from(workload)].fail(host);
            if let Some(at) = node.streams[stream as usize].1.after_end_ps(now - self.start_ps) {
                node.plan((at + self.start_ps).max(now + FAILED_AT_ONCE_PS), Job::Follow(stream));
                self.arm_host(host);
            }
        }
    }

    /// Sends waiting requests while the limits allow it.
    pub(in crate::world) fn pump(&mut self, host: u16) {
        self.send_waiting(host, None);
    }

    /// The same; on an HBA that others wait for, only in its `turn`, and then one command.
    fn send_waiting(&mut self, host: u16, mut turn: Option<u16>) {
        self.send_returning(host);
        let now = self.net.now();
        loop {
            let node = &mut self.hosts[usize::from(host)];
            let Some((id, command)) = node.queue.peek() else { break };
            let Some(system) = node.paths.system_of(command.lun.storage) else { break };
            let (windows, nodes, nports) = (&self.windows, &self.nodes, &node.nports);
            let entry = node.paths.system(system);
            let per_hba = entry.ports;
            let plane_of = |path: u16| nodes[usize::from(nports[usize::from(path / per_hba.max(1))])].plane;
            let fits = |path: u16| {
                let window = &windows[usize::from(plane_of(path))];
                (turn == Some(plane_of(path)) || !window.is_awaited()) && window.fits(command.bytes)
            };
            let path = match entry.multipath.choose(command.bytes, fits) {
                Choice::Busy => {
                    // An HBA that the command cannot use would never call: nothing of it may be in flight.
                    for path in entry.multipath.candidates().filter(|_| node.shares_hbas) {
                        self.windows[usize::from(plane_of(path))].wait(host);
                    }
                    break;
                }
                Choice::Path(path) => path,
                Choice::NoPath => u16::MAX,
            };
            let plane = if path == u16::MAX { 0 } else { plane_of(path) };
            node.queue.pop(now);
            let index = id.0 as usize;
            if node.commands.len() <= index {
                node.commands.resize(index + 1, Sent::FREE);
            }
            let generation = node.commands[index].generation.wrapping_add(1) & 0x7fff_ffff;
            node.commands[index] = Sent {
                system,
                path,
                hba: path / per_hba.max(1),
                plane,
                attempts: 0,
                generation,
                bytes: command.bytes,
                sent_ps: now,
                stage: Stage::NoPath,
            };
            if path == u16::MAX {
                self.wait_for_path(host, id.0);
            } else {
                self.windows[usize::from(plane)].take(command.bytes);
                turn = turn.filter(|&turn| turn != plane);
                self.prepare(host, id.0);
            }
        }
        self.arm_host(host);
    }

    /// Gives the processor the work of a command that has a path.
    pub(super) fn prepare(&mut self, host: u16, command: u32) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let at = if node.cpu_per_io_ps == 0 { now } else { node.cpu.run(now, Work::Request, node.cpu_per_io_ps) };
        let sent = &mut node.commands[command as usize];
        sent.stage = Stage::Waiting;
        let generation = sent.generation;
        if at > now {
            node.plan(at, Job::Submit(command, generation));
            self.arm_host(host);
        } else {
            self.submit(host, command);
        }
    }

    /// Hands a command to the initiator of its path.
    pub(super) fn submit(&mut self, host: u16, command: u32) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let Some(&what) = node.queue.command(CommandId(command)) else { return };
        let sent = &mut node.commands[command as usize];
        sent.stage = Stage::Sent;
        sent.sent_ps = now;
        let (system, path, generation) = (sent.system, sent.path, sent.generation);
        let nport = node.nports[usize::from(sent.hba)];
        let address = node.paths.system(system).address(path);
        let (lba, blocks, fua) = (what.lba, what.blocks, false);
        let cdb = if what.write { Cdb::Write { lba, blocks, fua } } else { Cdb::Read { lba, blocks, fua } };
        let order = initiator::Command {
            tag: u64::from(generation) << 32 | u64::from(command),
            d_id: address.port_id,
            lun: lun::to_bytes(what.lun.lun).unwrap_or_default(),
            cdb: cdb.to_bytes(),
            data_len: what.bytes,
            direction: if what.write { DataDirection::Write } else { DataDirection::Read },
            frame_size_bytes: address.frame_bytes,
        };
        if let Some(initiator) = &mut self.nodes[usize::from(nport)].initiator {
            initiator.handle(Instant::from_ns(now / 1_000), initiator::Input::Submit(order));
        }
        self.drain_initiator(nport);
    }

    /// Handles commands that initiators have ended, until there are none.
    pub(in crate::world) fn settle(&mut self) {
        self.settle_ended();
        while let Some(plane) = self.room.pop() {
            self.share_frames(plane);
            self.settle_ended();
        }
    }

    fn settle_ended(&mut self) {
        while let Some((host, hba, tag, outcome)) = self.ended.pop_front() {
            let now = self.net.now();
            let node = &mut self.hosts[usize::from(host)];
            let interrupts = &mut node.interrupts[usize::from(hba)];
            node.unseen[usize::from(hba)].push_back((tag, outcome));
            match interrupts.complete(now, &mut node.cpu) {
                Some(seen) => self.seen(host, hba, seen),
                None => {
                    if let Some(at) = node.interrupts[usize::from(hba)].poll_timeout() {
                        node.plan(at, Job::Interrupt(hba));
                        self.arm_host(host);
                    }
                }
            }
        }
    }

    /// There is room on an HBA: those who wait for it take turns.
    fn share_frames(&mut self, plane: u16) {
        while let Some(host) = self.windows[usize::from(plane)].next_waiting() {
            let before = self.windows[usize::from(plane)].in_flight();
            self.send_waiting(host, Some(plane));
            let window = &mut self.windows[usize::from(plane)];
            if window.in_flight() == before && window.keep_turn(host) {
                break;
            }
        }
    }

    pub(super) fn seen(&mut self, host: u16, hba: u16, seen: Seen) {
        if seen.at_ps > self.net.now() {
            self.hosts[usize::from(host)].plan(seen.at_ps, Job::Seen(hba, seen.completions));
            self.arm_host(host);
        } else {
            self.see(host, hba, seen.completions);
        }
    }

    pub(super) fn see(&mut self, host: u16, hba: u16, count: u32) {
        for _ in 0..count {
            let unseen = &mut self.hosts[usize::from(host)].unseen[usize::from(hba)];
            let Some((tag, outcome)) = unseen.pop_front() else { break };
            self.command_ended(host, tag, outcome);
        }
        self.pump(host);
    }

    fn command_ended(&mut self, host: u16, tag: u64, outcome: Outcome) {
        if tag & PROBE != 0 {
            self.probe_ended(host, tag, outcome);
            return;
        }
        let now = self.net.now();
        let (command, generation) = (tag as u32, (tag >> 32) as u32);
        let node = &mut self.hosts[usize::from(host)];
        let Some(sent) = node.commands.get(command as usize).copied() else { return };
        if sent.generation != generation || sent.stage != Stage::Sent {
            return;
        }
        let entry = node.paths.system(sent.system);
        let storage = entry.storage;
        match outcome {
            Outcome::Completed { status: status::GOOD, .. } => {
                let end = End::Done { sent_ps: sent.sent_ps, now_ps: now };
                entry.multipath.release(sent.path, sent.bytes, end);
                if entry.done(sent.path, sent.bytes) {
                    entry.multipath.handle(now, MultipathInput::Done(sent.path));
                    self.drain_paths(host, sent.system);
                }
                self.give_back(sent.plane, sent.bytes);
                let node = &mut self.hosts[usize::from(host)];
                node.measured.command_latency.record_ps(now - sent.sent_ps);
                self.finish(host, command, true);
            }
            Outcome::Completed { status: status::TASK_SET_FULL | status::BUSY, .. } => {
                let node = &mut self.hosts[usize::from(host)];
                node.commands[command as usize].stage = Stage::Waiting;
                node.measured.retried += 1;
                node.plan(now + BUSY_RETRY_PS, Job::Submit(command, generation));
                self.arm_host(host);
            }
            Outcome::Completed { .. } => {
                self.let_go(host, command);
                self.finish(host, command, false);
            }
            Outcome::PortGone if entry.multipath.state(sent.path) == PathState::Blocked => {
                node.commands[command as usize].stage = Stage::Stuck;
            }
            Outcome::PortGone => {
                self.let_go(host, command);
                self.try_again(host, command);
            }
            Outcome::Aborted(_) => {
                entry.failed(sent.path);
                entry.multipath.handle(now, MultipathInput::Failed(sent.path));
                node.measured.aborted += 1;
                self.note(NoteKind::Aborted { host, storage, path: sent.path });
                self.let_go(host, command);
                self.drain_paths(host, sent.system);
                let node = &mut self.hosts[usize::from(host)];
                let sent = &mut node.commands[command as usize];
                sent.attempts = sent.attempts.saturating_add(1);
                if sent.attempts > node.retries {
                    self.finish(host, command, false);
                } else {
                    self.try_again(host, command);
                }
            }
        }
    }

    /// The command is no longer outstanding on its path.
    pub(super) fn let_go(&mut self, host: u16, command: u32) {
        let node = &mut self.hosts[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        if sent.path == u16::MAX {
            return;
        }
        let (system, path, bytes) = (sent.system, sent.path, sent.bytes);
        let plane = sent.plane;
        sent.path = u16::MAX;
        node.paths.system(system).multipath.release(path, bytes, End::NotDone);
        self.give_back(plane, bytes);
    }

    /// The data of a command needs no room on its HBA any more.
    fn give_back(&mut self, plane: u16, bytes: u32) {
        let window = &mut self.windows[usize::from(plane)];
        window.give_back(bytes);
        if window.is_awaited() {
            self.room.push(plane);
        }
    }

    /// A command ends for good, well or badly, and its requests with it.
    pub(super) fn finish(&mut self, host: u16, command: u32, good: bool) {
        let now = self.net.now();
        let start = self.start_ps;
        let node = &mut self.hosts[usize::from(host)];
        node.commands[command as usize].stage = Stage::Free;
        let sent_ps = node.commands[command as usize].sent_ps;
        let mut members = std::mem::take(&mut node.members);
        members.clear();
        node.queue.complete(CommandId(command), now, |member| members.push(member));
        let stall = now - node.measured.last_end_ps;
        if stall > node.measured.longest_stall_ps {
            node.measured.longest_stall_ps = stall;
            node.measured.stall_began_ps = node.measured.last_end_ps;
        }
        node.measured.last_end_ps = now;
        for member in &members {
            let latency_ps = now - member.arrival_ps;
            let (bytes, write) = (u64::from(member.request.bytes), usize::from(member.request.write));
            let (workload, stream) = &node.streams[member.stream as usize];
            let workload = &mut self.workloads[usize::from(*workload)];
            if good {
                self.books.completed += 1;
                let measured = &mut node.measured;
                measured.latency.record_ps(latency_ps);
                measured.by_direction[write].add(latency_ps);
                measured.ios[write] += 1;
                measured.bytes[write] += bytes;
                measured.series.record(now, bytes, latency_ps);
                workload.complete(host, bytes, (latency_ps, now - sent_ps), write == 1);
            } else {
                self.books.failed += 1;
                node.measured.failed += 1;
                workload.fail(host);
            }
            if let Some(at) = stream.after_end_ps(now - start) {
                let pause = if !good && latency_ps == 0 { FAILED_AT_ONCE_PS } else { 0 };
                let at = (at + start).max(now + pause);
                self.follow.push((at, member.stream));
            }
        }
        node.members = members;
        for i in 0..self.follow.len() {
            let (at, stream) = self.follow[i];
            if at <= now {
                self.request(host, stream);
            } else {
                self.hosts[usize::from(host)].plan(at, Job::Follow(stream));
            }
        }
        self.follow.clear();
        if !good {
            self.note(NoteKind::Failed { host });
        }
    }
}
