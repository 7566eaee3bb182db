//! The paths of a host: which are up, what waits for one, and commands that change theirs.

use super::{Job, PROBE, Sent, Stage, TRIAL};
use crate::host::{Choice, CommandId, Input as MultipathInput, Output as MultipathOutput, PathState};
use crate::world::World;
use sanloom_core::fcp::DataDirection;
use sanloom_core::fcp::initiator::{self, Outcome};
use sanloom_core::time::Instant;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::{FcId, Wwpn};

impl World {
    /// Chooses a path for a command that has none and sends it again.
    pub(super) fn try_again(&mut self, host: u16, command: u32) {
        let node = &mut self.hosts[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        sent.generation = sent.generation.wrapping_add(1) & 0x7fff_ffff;
        let (system, bytes) = (sent.system, sent.bytes);
        let entry = node.paths.system(system);
        let per_hba = entry.ports;
        // A command that was sent before goes on even if its data does not fit the window for a moment.
        match entry.multipath.choose(bytes, |_| true) {
            Choice::Path(path) => {
                let sent = &mut node.commands[command as usize];
                sent.path = path;
                sent.hba = path / per_hba.max(1);
                sent.plane = self.nodes[usize::from(node.nports[usize::from(sent.hba)])].plane;
                self.windows[usize::from(sent.plane)].take(bytes);
                node.measured.retried += 1;
                self.prepare(host, command);
            }
            Choice::Busy | Choice::NoPath => self.wait_for_path(host, command),
        }
    }

    /// Parked commands that have a path again go on while the limit of outstanding ones allows it.
    pub(super) fn send_returning(&mut self, host: u16) {
        let now = self.net.now();
        loop {
            let node = &mut self.hosts[usize::from(host)];
            if !node.queue.has_room() {
                break;
            }
            let Some(command) = node.returning.pop_front() else { break };
            node.queue.resume(CommandId(command), now);
            self.try_again(host, command);
        }
    }

    pub(super) fn wait_for_path(&mut self, host: u16, command: u32) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        sent.stage = Stage::NoPath;
        sent.path = u16::MAX;
        let system = sent.system;
        node.queue.park(CommandId(command), now);
        node.paths.system(system).multipath.handle(now, MultipathInput::Wait(command));
        self.drain_paths(host, system);
    }

    /// A remote port that a host was looking for is logged in.
    pub(in crate::world) fn host_path_up(&mut self, host: u16, hba: u16, wwpn: Wwpn, port_id: FcId, frame_bytes: u16) {
        let Some((storage, port)) = self.path_table.storage_port(wwpn) else { return };
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let Some(system) = node.paths.system_of(storage) else { return };
        let entry = node.paths.system(system);
        let path = hba * entry.ports + port;
        entry.set_address(path, port_id, frame_bytes);
        entry.multipath.handle(now, MultipathInput::RemoteUp(path));
        self.drain_paths(host, system);
        self.pump(host);
    }

    /// A remote port is gone.
    pub(in crate::world) fn host_path_down(&mut self, host: u16, hba: u16, wwpn: Wwpn) {
        let Some((storage, port)) = self.path_table.storage_port(wwpn) else { return };
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let Some(system) = node.paths.system_of(storage) else { return };
        let entry = node.paths.system(system);
        let path = hba * entry.ports + port;
        entry.multipath.handle(now, MultipathInput::RemoteDown(path));
        self.drain_paths(host, system);
        self.pump(host);
    }

    pub(super) fn drain_paths(&mut self, host: u16, system: u16) {
        while let Some(output) = self.hosts[usize::from(host)].paths.system(system).multipath.poll_output() {
            match output {
                MultipathOutput::Changed { path, from, to } => {
                    self.note_path(host, system, path, from, to);
                    if to == PathState::Active {
                        self.unstick(host, system, path);
                    }
                }
                MultipathOutput::TakeBack(path) => self.take_back(host, system, path),
                MultipathOutput::Probe(path) => self.probe(host, system, path),
                MultipathOutput::Retry(command) => {
                    self.hosts[usize::from(host)].returning.push_back(command);
                    self.send_returning(host);
                }
                MultipathOutput::Fail(command) => self.finish(host, command, false),
            }
        }
        let node = &mut self.hosts[usize::from(host)];
        if let Some(at) = node.paths.system(system).multipath.poll_timeout()
            && node.paths.wants_alarm(system, at)
        {
            node.plan(at, Job::Paths(system));
            self.arm_host(host);
        }
    }

    /// Sends TEST UNIT READY on a path.
    fn probe(&mut self, host: u16, system: u16, path: u16) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let entry = node.paths.system(system);
        let (hba, address) = (path / entry.ports.max(1), entry.address(path));
        let order = initiator::Command {
            tag: PROBE | u64::from(system) << 16 | u64::from(path),
            d_id: address.port_id,
            lun: [0; 8],
            cdb: Cdb::TestUnitReady.to_bytes(),
            data_len: 0,
            direction: DataDirection::None,
            frame_size_bytes: address.frame_bytes,
        };
        let nport = node.nports[usize::from(hba)];
        if let Some(initiator) = &mut self.nodes[usize::from(nport)].initiator {
            initiator.handle(Instant::from_ns(now / 1_000), initiator::Input::Submit(order));
        }
        self.drain_initiator(nport);
    }

    pub(super) fn probe_ended(&mut self, host: u16, tag: u64, outcome: Outcome) {
        let now = self.net.now();
        let (system, path) = ((tag >> 16) as u16, tag as u16);
        let entry = self.hosts[usize::from(host)].paths.system(system);
        if tag & TRIAL != 0 {
            let good = [status::GOOD, status::TASK_SET_FULL, status::BUSY];
            entry.tried(path, matches!(outcome, Outcome::Completed { status, .. } if good.contains(&status)));
        }
        let input = match outcome {
            Outcome::Completed { .. } => MultipathInput::Done(path),
            Outcome::Aborted(_) | Outcome::PortGone => MultipathInput::Failed(path),
        };
        entry.multipath.handle(now, input);
        self.drain_paths(host, system);
    }

    /// Commands that were stuck on a path that is back are sent again.
    fn unstick(&mut self, host: u16, system: u16, path: u16) {
        for command in self.stuck(host, system, path) {
            let sent = &mut self.hosts[usize::from(host)].commands[command as usize];
            sent.generation = sent.generation.wrapping_add(1) & 0x7fff_ffff;
            self.hosts[usize::from(host)].measured.retried += 1;
            self.prepare(host, command);
        }
    }

    fn take_back(&mut self, host: u16, system: u16, path: u16) {
        let commands = self.stuck(host, system, path);
        if !commands.is_empty() {
            self.hosts[usize::from(host)].measured.failovers += 1;
        }
        for command in commands {
            self.let_go(host, command);
            self.try_again(host, command);
        }
    }

    fn stuck(&self, host: u16, system: u16, path: u16) -> Vec<u32> {
        let commands = self.hosts[usize::from(host)].commands.iter().enumerate();
        let on_path = |sent: &Sent| sent.stage == Stage::Stuck && sent.system == system && sent.path == path;
        commands.filter(|(_, sent)| on_path(sent)).map(|(number, _)| number as u32).collect()
    }
}
