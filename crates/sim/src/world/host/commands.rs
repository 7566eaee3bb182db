//! Commands of a host from the creation of a request to its submission, and the end of a command.

use super::{HostNode, Hosts, Job, NO_PATH, SentCommand, Stage, tcp};
use crate::host::{Choice, CommandId, End, Member, Pushed};
use crate::workload::RequestOp;
use crate::world::Env;
use crate::world::notes::NoteKind;
use crate::world::nports::Owner;
use crate::world::out_of_band;
use sanloom_fc::fcp::initiator;
use sanloom_scsi::scsi::DataDirection;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::lun;

/// Minimum delay of a closed loop after a request that failed at the moment of its creation, in ps.
/// Without the delay, simulated time would not advance.
const FAILED_AT_ONCE_PS: u64 = 1_000_000_000;

/// How a command has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::world) enum CommandEnd {
    Good,
    /// It failed with a status of the target.
    Status,
    /// It failed because nothing reaches the target.
    Lost,
}

impl Hosts {
    /// Creates the next request of a stream.
    pub(super) fn create_request(&mut self, env: &mut Env<'_>, host: u16, stream: u32) {
        let now = env.net.now();
        let node = &mut self.nodes[usize::from(host)];
        if node.stopped {
            return;
        }
        let (workload, source) = &mut node.streams[stream as usize];
        let workload = *workload;
        let Some(request) = source.next_request() else { return };
        self.request_log.record(now - env.start_ps, host, request);
        self.workloads[usize::from(workload)].offer(host, request.bytes);
        node.measured.offered[0] += 1;
        node.measured.offered[1] += u64::from(request.bytes);
        self.totals.issued += 1;
        if node.queue.outstanding().level() == 0 && node.queue.waiting().level() == 0 && node.held == 0 {
            node.measured.last_end_ps = now;
            node.measured.outage.request(now);
        }
        if self.out_of_band.is_some() && out_of_band::begin(self, env, host, stream, request) {
            return;
        }
        let node = &mut self.nodes[usize::from(host)];
        if node.queue.push(request, now, stream) == Pushed::Refused {
            self.totals.failed += 1;
            node.measured.failed += 1;
            self.workloads[usize::from(workload)].fail(host);
            if let Some(at) = node.streams[stream as usize].1.after_end_ps(now - env.start_ps) {
                node.plan((at + env.start_ps).max(now + FAILED_AT_ONCE_PS), Job::AfterThinkTime(stream));
                self.arm(env, host);
            }
        }
    }

    /// Sends waiting requests while the limits allow it.
    pub(in crate::world) fn send_requests(&mut self, env: &mut Env<'_>, host: u16) {
        self.send_waiting(env, host, None);
    }

    /// Sends waiting requests. If other hosts wait for the window of an HBA, that HBA is used only
    /// if its window is `offered`, and then for one command.
    pub(super) fn send_waiting(&mut self, env: &mut Env<'_>, host: u16, mut offered: Option<u16>) {
        self.send_unparked(env, host);
        let now = env.net.now();
        loop {
            let node = &mut self.nodes[usize::from(host)];
            let Some((id, command)) = node.queue.peek() else { break };
            let Some(system) = node.paths.system_of(command.lun.storage, command.lun.lun) else { break };
            let (windows, all_nports, nports) = (&self.windows, env.nports, &node.nports);
            let entry = node.paths.system(system);
            let per_hba = entry.ports;
            let plane_of = |path: u16| tcp::plane_of(all_nports, nports, path / per_hba.max(1));
            let fits = |path: u16| {
                let plane = plane_of(path);
                windows.admits(plane, command.bytes, offered == Some(plane))
            };
            let path = match entry.multipath.choose(command.bytes, fits) {
                Choice::Busy => {
                    // Wait only at HBAs that the command can use. Another HBA may have nothing in
                    // flight and would then never wake the host.
                    for path in entry.multipath.candidates().filter(|_| node.shares_hbas) {
                        self.windows.wait(plane_of(path), host);
                    }
                    break;
                }
                Choice::Path(path) => path,
                Choice::NoPath => NO_PATH,
            };
            let plane = if path == NO_PATH { 0 } else { plane_of(path) };
            node.queue.pop(now);
            let index = id.0 as usize;
            if node.commands.len() <= index {
                node.commands.resize(index + 1, SentCommand::FREE);
            }
            debug_assert_eq!(node.commands[index].stage, Stage::Free, "command {index} of host {host} has ended");
            let generation = node.renew(id.0).generation;
            node.commands[index] = SentCommand {
                system,
                path,
                hba: path / per_hba.max(1),
                plane,
                attempts: 0,
                generation,
                bytes: command.bytes,
                sent_ps: now,
                since_ps: now,
                stage: Stage::Parked,
            };
            if path == NO_PATH {
                self.park(env, host, id.0);
            } else {
                self.windows.reserve(plane, command.bytes);
                offered = offered.filter(|&offered| offered != plane);
                self.prepare(env, host, id.0);
            }
        }
        self.arm(env, host);
    }

    /// Charges the processor for a command that has a path, then submits the command.
    pub(super) fn prepare(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        let now = env.net.now();
        let node = &mut self.nodes[usize::from(host)];
        let at = if node.is_free { now } else { node.charge_command(now, command) };
        let sent = &mut node.commands[command as usize];
        debug_assert_ne!(sent.path, NO_PATH, "command {command} of host {host} has a path");
        sent.stage = Stage::Waiting;
        let generation = sent.generation;
        if at > now {
            node.plan(at, Job::Carry(command, generation));
            self.arm(env, host);
        } else if self.has_carriers {
            self.carry(env, host, command);
        } else {
            self.submit(env, host, command);
        }
    }

    /// Charges the processor of the hypervisor for a command of a virtual machine, then submits the
    /// command.
    pub(super) fn carry(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        let now = env.net.now();
        let sent = &self.nodes[usize::from(host)].commands[command as usize];
        let (plane, generation) = (sent.plane, sent.generation);
        let owner = env.nports.nodes.get(usize::from(plane)).map(|node| node.owner);
        let at = match owner {
            Some(Owner::Host { host: carrier, hba }) if carrier != host => {
                self.nodes[usize::from(carrier)].carry_guest(now, hba)
            }
            _ => now,
        };
        if at > now {
            self.nodes[usize::from(host)].plan(at, Job::ThroughHba(command, generation));
            self.arm(env, host);
        } else {
            pass_hba(self, env, host, command);
        }
    }

    /// Submits a command to the initiator of its path, if error recovery does not hold it.
    pub(super) fn submit(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        if self.nodes[usize::from(host)].admit(command) {
            self.send_command(env, host, command);
        }
    }

    /// Submits a command to the initiator of its path.
    pub(super) fn send_command(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        let node = &mut self.nodes[usize::from(host)];
        let Some(&queued) = node.queue.command(CommandId(command)) else { return };
        let sent = &mut node.commands[command as usize];
        sent.stage = Stage::Sent;
        sent.sent_ps = env.net.now();
        let (system, path, generation) = (sent.system, sent.path, sent.generation);
        let hba = sent.hba;
        let address = node.paths.system(system).address(path);
        let (lba, blocks, fua) = (queued.lba, queued.blocks, false);
        let (cdb, direction) = match queued.op {
            RequestOp::Read => (Cdb::Read { lba, blocks, fua }, DataDirection::Read),
            RequestOp::Write => (Cdb::Write { lba, blocks, fua }, DataDirection::Write),
            RequestOp::Flush => (Cdb::SynchronizeCache { lba: 0, blocks: 0, immediate: false }, DataDirection::None),
        };
        let order = initiator::Command {
            tag: u64::from(generation) << 32 | u64::from(command),
            d_id: address.port_id,
            lun: lun::to_bytes(queued.lun.lun).unwrap_or_default(),
            cdb: cdb.to_bytes(),
            data_len: queued.bytes,
            direction,
            frame_size_bytes: address.frame_bytes,
        };
        tcp::submit(self, env, (host, hba), (system, path), order);
    }

    /// Releases a command from its path, where it no longer counts as outstanding.
    pub(super) fn release_path(&mut self, host: u16, command: u32) {
        let node = &mut self.nodes[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        if sent.path == NO_PATH {
            return;
        }
        let path = std::mem::replace(&mut sent.path, NO_PATH);
        let (system, bytes, plane) = (sent.system, sent.bytes, sent.plane);
        node.paths.system(system).multipath.release(path, bytes, End::NotDone);
        self.windows.release(plane, bytes);
    }

    /// Ends a command and its requests, as completed or failed.
    pub(super) fn end_command(&mut self, env: &mut Env<'_>, host: u16, command: u32, end: CommandEnd) {
        let good = end == CommandEnd::Good;
        let now = env.net.now();
        let start = env.start_ps;
        let node = &mut self.nodes[usize::from(host)];
        debug_assert_ne!(node.commands[command as usize].stage, Stage::Free, "command {command} ends once");
        node.commands[command as usize].stage = Stage::Free;
        let sent_ps = node.commands[command as usize].sent_ps;
        let mut members = std::mem::take(&mut node.members);
        members.clear();
        node.queue.complete(CommandId(command), now, |member| members.push(member));
        if self.out_of_band.is_some() {
            out_of_band::settle(self, env, host, &mut members, end);
        }
        let node = &mut self.nodes[usize::from(host)];
        // A command for pieces of requests may end without a request.
        if !members.is_empty() {
            request_ends(node, now, good);
        }
        for member in &members {
            let latency_ps = now - member.arrival_ps;
            let (bytes, write) = (u64::from(member.request.bytes), usize::from(member.request.op.is_write()));
            let (workload, stream) = &mut node.streams[member.stream as usize];
            let workload = &mut self.workloads[usize::from(*workload)];
            if good {
                self.totals.completed += 1;
                let measured = &mut node.measured;
                measured.latency.record_ps(latency_ps);
                measured.by_direction[write].add(latency_ps);
                measured.ios[write] += 1;
                measured.bytes[write] += bytes;
                measured.series.record(now, bytes, latency_ps);
                workload.complete(host, bytes, (latency_ps, now - sent_ps), write == 1);
            } else {
                self.totals.failed += 1;
                node.measured.failed += 1;
                workload.fail(host);
            }
            if let Some(at) = stream.after_end_ps(now - start) {
                let pause = if !good && latency_ps == 0 { FAILED_AT_ONCE_PS } else { 0 };
                let at = (at + start).max(now + pause);
                self.next_requests.push((at, member.stream));
            }
        }
        let is_failure = !good && !members.is_empty();
        node.members = members;
        for i in 0..self.next_requests.len() {
            let (at, stream) = self.next_requests[i];
            if at <= now {
                self.create_request(env, host, stream);
            } else {
                self.nodes[usize::from(host)].plan(at, Job::AfterThinkTime(stream));
            }
        }
        self.next_requests.clear();
        debug_assert!(
            self.totals.completed + self.totals.failed <= self.totals.issued,
            "each request ends once: {:?}",
            self.totals
        );
        if is_failure {
            env.note(NoteKind::Failed { host });
        }
    }
}

/// Measures the stall and the outage that the end of a request ends.
#[inline]
fn request_ends(node: &mut HostNode, now: u64, good: bool) {
    let stall = now - node.measured.last_end_ps;
    if stall > node.measured.longest_stall_ps {
        node.measured.longest_stall_ps = stall;
        node.measured.stall_began_ps = node.measured.last_end_ps;
    }
    node.measured.last_end_ps = now;
    node.measured.outage.end(now, good);
}

/// Ends a request outside of the queue as failed.
#[inline(never)]
pub(in crate::world) fn fail_request(hosts: &mut Hosts, env: &mut Env<'_>, host: u16, member: &Member) {
    let now = env.net.now();
    let node = &mut hosts.nodes[usize::from(host)];
    request_ends(node, now, false);
    node.measured.failed += 1;
    hosts.totals.failed += 1;
    let (workload, stream) = &mut node.streams[member.stream as usize];
    hosts.workloads[usize::from(*workload)].fail(host);
    if let Some(at) = stream.after_end_ps(now - env.start_ps) {
        node.plan((at + env.start_ps).max(now + FAILED_AT_ONCE_PS), Job::AfterThinkTime(member.stream));
        hosts.arm(env, host);
    }
    env.note(NoteKind::Failed { host });
}

/// Waits for the own processor of the HBA, then submits the command.
#[inline(never)]
pub(super) fn pass_hba(hosts: &mut Hosts, env: &mut Env<'_>, host: u16, command: u32) {
    let now = env.net.now();
    let node = &hosts.nodes[usize::from(host)];
    let sent = node.commands[command as usize];
    let is_write = node.queue.command(CommandId(command)).is_some_and(|queued| queued.op.is_write());
    let owner = env.nports.nodes.get(usize::from(sent.plane)).map(|node| node.owner);
    let at = match owner {
        Some(Owner::Host { host: carrier, hba }) => {
            hosts.nodes[usize::from(carrier)].occupy_hba(now, hba, is_write, sent.bytes)
        }
        Some(Owner::Storage { .. }) | None => now,
    };
    if at > now {
        hosts.nodes[usize::from(host)].plan(at, Job::Submit(command, sent.generation));
        hosts.arm(env, host);
    } else {
        hosts.submit(env, host, command);
    }
}
