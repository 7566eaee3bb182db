//! Path changes of a host: state changes, commands without a path, and commands that change their
//! path.

use super::commands::CommandEnd;
use super::{Hosts, Job, NO_PATH, PROBE, Stage, TRIAL, tcp};
use crate::host::{Choice, CommandId, Event, Input as MultipathInput, Output as MultipathOutput, PathState};
use crate::world::Env;
use crate::world::notes::NoteKind;
use sanloom_fc::fcp::initiator::{self, AbortReason, Outcome};
use sanloom_scsi::scsi::DataDirection;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::{FcId, Wwpn, lun};

/// A test command on a path.
pub(in crate::world) struct PathTest {
    pub cdb: Cdb,
    pub direction: DataDirection,
    pub data_len: u32,
    /// True if the outcome is counted in [`crate::world::Path::tried`].
    pub counted: bool,
}

impl Hosts {
    /// Selects a path for a command that has none and sends it again.
    pub(super) fn resend(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        let node = &mut self.nodes[usize::from(host)];
        let sent = node.renew(command);
        let (system, bytes) = (sent.system, sent.bytes);
        debug_assert_eq!(sent.path, NO_PATH, "command {command} of host {host} was released from its path");
        let entry = node.paths.system(system);
        let per_hba = entry.ports;
        // A command that was sent before continues even if its data temporarily exceeds the window.
        match entry.multipath.choose(bytes, |_| true) {
            Choice::Path(path) => {
                let sent = &mut node.commands[command as usize];
                (sent.path, sent.since_ps) = (path, env.net.now());
                sent.hba = path / per_hba.max(1);
                sent.plane = tcp::plane_of(env.nports, &node.nports, sent.hba);
                self.windows.reserve(sent.plane, bytes);
                node.measured.retried += 1;
                self.prepare(env, host, command);
            }
            Choice::Busy | Choice::NoPath => self.park(env, host, command),
        }
    }

    /// Sends parked commands that have a path again, while the limit on outstanding commands allows
    /// it.
    pub(super) fn send_unparked(&mut self, env: &mut Env<'_>, host: u16) {
        let now = env.net.now();
        loop {
            let node = &mut self.nodes[usize::from(host)];
            if !node.queue.has_room() {
                break;
            }
            let Some(command) = node.unparked.pop_front() else { break };
            node.queue.resume(CommandId(command), now);
            self.resend(env, host, command);
        }
    }

    /// Parks a command until it has a path.
    pub(super) fn park(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        let now = env.net.now();
        let node = &mut self.nodes[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        sent.stage = Stage::Parked;
        sent.path = NO_PATH;
        let system = sent.system;
        node.queue.park(CommandId(command), now);
        node.paths.system(system).multipath.handle(now, MultipathInput::Wait(command));
        self.drain_paths(env, host, system);
    }

    /// Handles the login of a remote port, given by its name, with its address and frame size.
    pub(in crate::world) fn path_up(
        &mut self,
        env: &mut Env<'_>,
        (host, hba): (u16, u16),
        wwpn: Wwpn,
        (port_id, frame_bytes): (FcId, u16),
    ) {
        for (system, path) in self.paths_to(host, hba, self.storage_ports.storage_port(wwpn)) {
            one_path_up(self, env, (host, hba), (system, path), (port_id, frame_bytes));
        }
    }

    /// Handles the loss of a remote port, given by its name and address.
    pub(in crate::world) fn path_down(
        &mut self,
        env: &mut Env<'_>,
        (host, hba): (u16, u16),
        wwpn: Wwpn,
        port_id: FcId,
    ) {
        for path in self.paths_to(host, hba, self.storage_ports.storage_port(wwpn)) {
            one_path_down(self, env, host, path);
        }
        let nport = self.node(host).nports[usize::from(hba)];
        self.handle(env, nport, initiator::Input::RemoteDown { port_id });
    }

    /// Returns the paths from an HBA to a port of a storage system, each with the index of its
    /// system. With masks there is a path for each group of LUNs that the HBA sees.
    pub(super) fn paths_to(&self, host: u16, hba: u16, port: Option<(u16, u16)>) -> Vec<(u16, u16)> {
        let Some((storage, port)) = port else { return Vec::new() };
        let paths = &self.node(host).paths;
        let path = |entry: usize| {
            let number = paths.number(entry);
            let system = &paths.systems()[usize::from(number)];
            let path = hba * system.ports + port;
            system.sees(path).then_some((number, path))
        };
        paths.of_storage(storage).filter_map(path).collect()
    }

    /// Executes the outputs of the paths to a storage system.
    pub(super) fn drain_paths(&mut self, env: &mut Env<'_>, host: u16, system: u16) {
        while let Some(output) = self.nodes[usize::from(host)].paths.system(system).multipath.poll_output() {
            match output {
                MultipathOutput::Changed { path, from, to } => {
                    let paths = &self.node(host).paths;
                    let storage = paths.systems()[usize::from(system)].storage;
                    if env.start_ps > 0 && paths.is_reported(system, path) {
                        env.note(NoteKind::Path { host, storage, path, from, to });
                    }
                    if to == PathState::Active {
                        self.resend_after_port_loss(env, host, system, path);
                    }
                }
                MultipathOutput::Withdraw(path) => self.fail_over(env, host, system, path),
                MultipathOutput::Probe(path) => self.probe(env, host, system, path),
                MultipathOutput::Retry(command) => {
                    self.nodes[usize::from(host)].unparked.push_back(command);
                    self.send_unparked(env, host);
                }
                MultipathOutput::Fail(command) => self.end_command(env, host, command, CommandEnd::Lost),
            }
        }
        let node = &mut self.nodes[usize::from(host)];
        if let Some(at) = node.paths.system(system).multipath.poll_timeout()
            && node.paths.arm_earlier(system, at)
        {
            node.plan(at, Job::Paths(system));
            self.arm(env, host);
        }
    }

    /// Resends the commands that a recovered path returned when its remote port was lost.
    fn resend_after_port_loss(&mut self, env: &mut Env<'_>, host: u16, system: u16, path: u16) {
        for command in self.node(host).commands_on(system, path, &[Stage::PortLost]) {
            let node = &mut self.nodes[usize::from(host)];
            node.renew(command);
            node.measured.retried += 1;
            self.prepare(env, host, command);
        }
    }

    /// Moves the commands that a failed path returned to other paths.
    fn fail_over(&mut self, env: &mut Env<'_>, host: u16, system: u16, path: u16) {
        let commands = self.node(host).commands_on(system, path, &[Stage::PortLost, Stage::Failed]);
        if !commands.is_empty() {
            self.nodes[usize::from(host)].measured.failovers += 1;
        }
        for &command in &commands {
            self.nodes[usize::from(host)].commands[command as usize].stage = Stage::Waiting;
            self.release_path(host, command);
        }
        let hba = path / self.nodes[usize::from(host)].paths.system(system).ports.max(1);
        self.handle_recovery(env, host, hba, Event::PathLost { system, path });
        for command in commands {
            self.resend(env, host, command);
        }
    }

    /// Sends TEST UNIT READY on a path.
    fn probe(&mut self, env: &mut Env<'_>, host: u16, system: u16, path: u16) {
        let cdb = Cdb::TestUnitReady;
        let test = PathTest { cdb, direction: DataDirection::None, data_len: 0, counted: false };
        self.test_path(env, host, system, path, &test);
    }

    /// Sends a test command to a LUN on a path, which bypasses queues and path selection.
    pub(in crate::world) fn test_path(
        &mut self,
        env: &mut Env<'_>,
        host: u16,
        system: u16,
        path: u16,
        test: &PathTest,
    ) {
        let node = &mut self.nodes[usize::from(host)];
        let entry = node.paths.system(system);
        let (hba, address) = (path / entry.ports.max(1), entry.address(path));
        let trial = if test.counted { TRIAL } else { 0 };
        let order = initiator::Command {
            tag: PROBE | trial | u64::from(system) << 16 | u64::from(path),
            d_id: address.port_id,
            lun: lun::to_bytes(entry.any_lun()).unwrap_or_default(),
            cdb: test.cdb.to_bytes(),
            data_len: test.data_len,
            direction: test.direction,
            frame_size_bytes: address.frame_bytes,
        };
        tcp::submit(self, env, (host, hba), (system, path), order);
    }

    /// Handles the completion of a test command.
    pub(super) fn probe_completed(&mut self, env: &mut Env<'_>, host: u16, tag: u64, outcome: Outcome) {
        let (system, path) = ((tag >> 16) as u16, tag as u16);
        let entry = self.nodes[usize::from(host)].paths.system(system);
        if tag & TRIAL != 0 {
            let good = [status::GOOD, status::TASK_SET_FULL, status::BUSY];
            entry.tried(path, matches!(outcome, Outcome::Completed { status, .. } if good.contains(&status)));
        }
        let input = match outcome {
            Outcome::Completed { .. } => MultipathInput::Done(path),
            Outcome::Aborted(AbortReason::NoExchange) => MultipathInput::Untested(path),
            Outcome::Aborted(_) | Outcome::PortGone => MultipathInput::Failed(path),
        };
        entry.multipath.handle(env.net.now(), input);
        self.drain_paths(env, host, system);
    }
}

/// Another controller serves LUNs of a storage system. Hosts learn of it when they check their
/// paths next. The query (REPORT TARGET PORT GROUPS) takes no time.
pub(in crate::world) fn lun_owner_changed(hosts: &mut Hosts, env: &mut Env<'_>, storage: u16, home: u8, owner: u8) {
    let now = env.net.now();
    for host in 0..hosts.nodes.len() as u16 {
        let node = &mut hosts.nodes[usize::from(host)];
        for entry in node.paths.of_storage(storage) {
            let number = node.paths.number(entry);
            let system = node.paths.system(number);
            if system.set_owner(home, owner) {
                let at = system.multipath.next_check_ps(now);
                node.plan(at, Job::PathCheck(number));
            }
        }
        hosts.arm(env, host);
    }
}

/// Handles the login of the remote port of a path.
pub(super) fn one_path_up(
    hosts: &mut Hosts,
    env: &mut Env<'_>,
    (host, hba): (u16, u16),
    (system, path): (u16, u16),
    (port_id, frame_bytes): (FcId, u16),
) {
    let entry = hosts.nodes[usize::from(host)].paths.system(system);
    entry.set_address(path, port_id, frame_bytes);
    entry.check_preference();
    entry.multipath.handle(env.net.now(), MultipathInput::RemoteUp(path));
    hosts.drain_paths(env, host, system);
    hosts.handle_recovery(env, host, hba, Event::PathUp { system, path });
    hosts.send_requests(env, host);
}

/// Handles the loss of the remote port of a path.
pub(super) fn one_path_down(hosts: &mut Hosts, env: &mut Env<'_>, host: u16, (system, path): (u16, u16)) {
    let node = &mut hosts.nodes[usize::from(host)];
    node.drop_held(system, path);
    node.paths.system(system).multipath.handle(env.net.now(), MultipathInput::RemoteDown(path));
    hosts.drain_paths(env, host, system);
    hosts.send_requests(env, host);
}
