//! Error recovery of a host: refused commands, retries, and the error handlers of its HBAs.

use super::{HostNode, Hosts, Job, PROBE, RESET, Stage, tcp};
use crate::host::{Action, CommandId, Device, ErrorHandler, Event, Input as MultipathInput, PathState, QueueDepth};
use crate::world::Env;
use sanloom_fc::config;
use sanloom_fc::fcp::initiator;
use sanloom_wire::fcp::task_management;
use sanloom_wire::lun;
use std::collections::BTreeMap;

/// Error recovery of one host; it exists after the first error only.
pub(super) struct Recovery {
    /// Error handlers, indexed by HBA.
    handlers: Vec<ErrorHandler>,
    /// Queue depths of the targets that refused a command, by system and path.
    depths: BTreeMap<(u16, u16), QueueDepth>,
}

/// Limits of the error recovery of one host.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    config: config::ErrorRecovery,
    retries: u8,
    /// Time for which a command is sent on one path after TASK SET FULL or BUSY (`scsi_complete` of
    /// drivers/scsi/scsi_lib.c).
    refusals_ps: u64,
    can_reset_hba: bool,
}

impl Limits {
    pub fn new(config: &config::Host, shares_hbas: bool) -> Limits {
        Limits {
            config: config.recovery,
            retries: config.retries,
            refusals_ps: config.command_timeout.0.saturating_mul(u64::from(config.retries) + 1),
            can_reset_hba: config.virtual_machine.is_none() && !shares_hbas,
        }
    }
}

impl HostNode {
    /// Returns the error recovery, which is created if there is none.
    fn recovery_mut(&mut self) -> &mut Recovery {
        let (limits, hbas) = (&self.limits, self.completions.len());
        self.recovery.get_or_insert_with(|| {
            let config = limits.config;
            let deadline_ps = config.eh_deadline.map(|time| time.0);
            let handler = ErrorHandler::new(config.reset_timeout.0, deadline_ps, limits.can_reset_hba);
            Box::new(Recovery { handlers: vec![handler; hbas], depths: BTreeMap::new() })
        })
    }

    fn handler_mut(&mut self, hba: u16) -> Option<&mut ErrorHandler> {
        self.recovery.as_mut()?.handlers.get_mut(usize::from(hba))
    }

    fn depth_mut(&mut self, device: Device) -> Option<&mut QueueDepth> {
        self.recovery.as_mut()?.depths.get_mut(&(device.system, device.path))
    }

    /// Returns whether the error handler of an HBA is at work.
    pub fn is_recovering(&self) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| recovery.handlers.iter().any(ErrorHandler::is_recovering))
    }

    /// Returns the LUN and path of a command that has not ended.
    fn device_of(&self, command: u32) -> Option<Device> {
        let sent = self.commands.get(command as usize)?;
        let lun = self.queue.command(CommandId(command))?.lun.lun;
        Some(Device { system: sent.system, path: sent.path, lun })
    }

    /// Returns the commands on an HBA in a stage.
    fn commands_in(&self, hba: u16, stage: Stage) -> Vec<u32> {
        let matches = |command: &u32| {
            let sent = &self.commands[*command as usize];
            (sent.hba, sent.stage) == (hba, stage)
        };
        (0..self.commands.len() as u32).filter(matches).collect()
    }

    /// Returns the commands in flight on a path.
    fn in_flight_on(&self, system: u16, path: u16) -> Vec<Device> {
        let is_on = |device: &Device| (device.system, device.path) == (system, path);
        let sent = (0..self.commands.len() as u32).filter(|&id| self.commands[id as usize].stage == Stage::Sent);
        sent.filter_map(|command| self.device_of(command)).filter(is_on).collect()
    }

    /// Returns whether a command may be sent on its path now. Otherwise it is held until the error
    /// handler of its HBA has finished or its LUN has room.
    pub(super) fn admit(&mut self, command: u32) -> bool {
        if self.recovery.is_none() {
            return true;
        }
        let Some(device) = self.device_of(command) else { return false };
        let hba = self.commands[command as usize].hba;
        let stage = if self.handler_mut(hba).is_some_and(|handler| handler.is_recovering()) {
            Stage::Stopped
        } else if self.depth_mut(device).is_some_and(|depth| !depth.start(device.lun, command)) {
            Stage::Held
        } else {
            return true;
        };
        self.commands[command as usize].stage = stage;
        false
    }

    /// Accounts for a command in flight that ended, and returns its device. Call it while the
    /// command is in [`Stage::Sent`]. Returns `None` before the first error of the host.
    pub(super) fn left_device(&mut self, now: u64, command: u32, good: bool) -> Option<Device> {
        self.recovery.as_ref()?;
        let device = self.device_of(command)?;
        if let Some(depth) = self.depth_mut(device) {
            depth.end(now, device.lun, good);
        }
        Some(device)
    }

    /// Ends the pause of a LUN that refused a command while none was in flight.
    pub(super) fn unblock(&mut self, device: Device) {
        if let Some(depth) = self.depth_mut(device) {
            depth.unblock(device.lun);
        }
    }

    /// Returns a task management function, unless the remote port is lost: then the time limit of
    /// the reset runs without it.
    fn reset(&mut self, hba: u16, device: Device, serial: u16, function: u8) -> Option<initiator::Input> {
        let tag = PROBE | RESET | u64::from(hba) << 16 | u64::from(serial);
        let d_id = self.paths.system(device.system).address(device.path).port_id;
        let lun = lun::to_bytes(device.lun).unwrap_or_default();
        let is_up = matches!(self.path_state(device), PathState::Active | PathState::Suspect);
        is_up.then_some(initiator::Input::Manage(initiator::Manage { tag, d_id, lun, function }))
    }

    /// Treats the commands that the host holds for a path as returned by it, because the path has
    /// lost its remote port.
    pub(super) fn drop_held(&mut self, system: u16, path: u16) {
        if let Some(recovery) = &mut self.recovery
            && let Some(depth) = recovery.depths.get_mut(&(system, path))
        {
            depth.take_held();
        }
        let held = |sent: &&mut super::SentCommand| {
            (sent.system, sent.path) == (system, path) && matches!(sent.stage, Stage::Held | Stage::Stopped)
        };
        self.commands.iter_mut().filter(held).for_each(|sent| sent.stage = Stage::PortLost);
    }
}

impl Hosts {
    /// Sends a held command of a device that has room, and starts error handling when nothing is in
    /// flight any more.
    pub(super) fn continue_device(&mut self, env: &mut Env<'_>, host: u16, device: Device) {
        let now = env.net.now();
        let node = &mut self.nodes[usize::from(host)];
        let hba = device.path / node.paths.system(device.system).ports.max(1);
        if node.handler_mut(hba).is_some_and(|handler| handler.is_recovering()) {
            return self.drive_handler(env, host, hba);
        }
        if let Some(command) = node.depth_mut(device).and_then(|depth| depth.release(now, device.lun)) {
            self.send_command(env, host, command);
        }
        let node = &mut self.nodes[usize::from(host)];
        if let Some(at) = node.depth_mut(device).and_then(|depth| depth.next_release(device.lun)) {
            node.plan(at, Job::Release(device));
            self.arm(env, host);
        }
    }

    /// Holds a command that its LUN refused with TASK SET FULL (`full`) or BUSY.
    pub(super) fn command_refused(&mut self, env: &mut Env<'_>, host: u16, command: u32, full: bool) {
        let now = env.net.now();
        let node = &mut self.nodes[usize::from(host)];
        let Some(device) = node.device_of(command) else { return };
        let key = (device.system, device.path);
        if !node.recovery_mut().depths.contains_key(&key) {
            let in_flight = node.in_flight_on(key.0, key.1);
            let depth = QueueDepth::new(
                node.queue.most_outstanding(),
                node.limits.config.queue_ramp_up.0,
                in_flight.iter().map(|device| device.lun),
            );
            node.recovery_mut().depths.insert(key, depth);
        }
        let pause = node.depth_mut(device).and_then(|depth| depth.refused(now, device.lun, full));
        if let Some(at) = pause {
            node.plan(at, Job::Unblock(device));
            self.arm(env, host);
        }
        let node = &mut self.nodes[usize::from(host)];
        let since_ps = node.commands[command as usize].since_ps;
        if now - since_ps >= node.limits.refusals_ps {
            return self.path_failed(env, host, command);
        }
        node.measured.retried += 1;
        if matches!(node.path_state(device), PathState::Active | PathState::Suspect) {
            node.commands[command as usize].stage = Stage::Held;
            if let Some(depth) = node.depth_mut(device) {
                depth.hold_first(device.lun, command);
            }
        } else {
            self.retry_on_path(env, host, command);
        }
    }

    /// Retries a command that was aborted, or returns it to the multipath layer after its last
    /// attempt.
    pub(super) fn retry(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        let node = &mut self.nodes[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        sent.attempts = sent.attempts.saturating_add(1);
        if sent.attempts > node.limits.retries {
            self.path_failed(env, host, command);
        } else {
            self.retry_on_path(env, host, command);
        }
    }

    /// Sends a command again on its path. A timeout does not make Linux change the path
    /// (`scsi_noretry_cmd` of drivers/scsi/scsi_error.c ignores `REQ_FAILFAST_TRANSPORT` then).
    fn retry_on_path(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        let node = &mut self.nodes[usize::from(host)];
        let sent = &node.commands[command as usize];
        match node.paths.systems()[usize::from(sent.system)].state(sent.path) {
            PathState::Active | PathState::Suspect => {
                node.renew(command);
                node.measured.retried += 1;
                self.prepare(env, host, command);
            }
            PathState::Blocked => node.commands[command as usize].stage = Stage::PortLost,
            PathState::Failed | PathState::Gone => {
                self.release_path(host, command);
                self.resend(env, host, command);
            }
        }
    }

    /// Returns a command to the multipath layer, because its path has failed it after all attempts
    /// (`fail_path` of drivers/md/dm-mpath.c). It is sent on another path; without one, it waits
    /// for a path until its `no_path_retry` is over.
    fn path_failed(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        let now = env.net.now();
        let node = &mut self.nodes[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        let (system, path) = (sent.system, sent.path);
        sent.attempts = 0;
        let entry = node.paths.system(system);
        if entry.multipath.has_other_active(path) && entry.state(path) == PathState::Active {
            node.measured.failovers += 1;
        }
        entry.multipath.handle(now, MultipathInput::Failed(path));
        self.release_path(host, command);
        self.drain_paths(env, host, system);
        self.resend(env, host, command);
    }

    /// Passes a command whose ABTS was not answered to the error handler of its HBA.
    pub(super) fn abort_unanswered(&mut self, env: &mut Env<'_>, host: u16, command: u32) {
        let now = env.net.now();
        let node = &mut self.nodes[usize::from(host)];
        let Some(device) = node.device_of(command) else { return };
        if matches!(node.path_state(device), PathState::Failed | PathState::Gone) {
            return self.retry_on_path(env, host, command);
        }
        let sent = &mut node.commands[command as usize];
        sent.stage = Stage::Failed;
        let hba = sent.hba;
        let timed_out_ps = now.saturating_sub(node.limits.config.abort_timeout.0);
        let handler = &mut node.recovery_mut().handlers[usize::from(hba)];
        handler.handle(now, Event::Failed { command, device, timed_out_ps });
        self.drive_handler(env, host, hba);
    }

    /// Passes an event to the error handler of an HBA.
    pub(super) fn handle_recovery(&mut self, env: &mut Env<'_>, host: u16, hba: u16, event: Event) {
        let now = env.net.now();
        if let Some(handler) = self.nodes[usize::from(host)].handler_mut(hba) {
            handler.handle(now, event);
            self.drive_handler(env, host, hba);
        }
    }

    /// Executes the actions of an error handler.
    pub(super) fn drive_handler(&mut self, env: &mut Env<'_>, host: u16, hba: u16) {
        let now = env.net.now();
        loop {
            let node = &mut self.nodes[usize::from(host)];
            let Some(handler) = node.handler_mut(hba) else { return };
            let is_idle = handler.is_draining() && node.commands_in(hba, Stage::Sent).is_empty();
            let Some(handler) = node.handler_mut(hba) else { return };
            if is_idle {
                handler.handle(now, Event::Idle);
            }
            let Some(action) = handler.poll_action() else { break };
            match action {
                Action::ResetLun { device, serial } | Action::ResetTarget { device, serial } => {
                    let function = match action {
                        Action::ResetLun { .. } => task_management::LUN_RESET,
                        _ => task_management::TARGET_RESET,
                    };
                    if let Some(reset) = node.reset(hba, device, serial, function) {
                        tcp::manage(self, env, (host, hba), device, reset);
                    }
                }
                Action::ResetHba => node.plan(now, Job::ResetHba(hba)),
                Action::Retry(command) => self.retry(env, host, command),
                Action::Fail(command) => self.path_failed(env, host, command),
                Action::Resume => self.resume_hba(env, host, hba),
            }
        }
        let node = &mut self.nodes[usize::from(host)];
        if let Some(at) = node.handler_mut(hba).and_then(|handler| handler.poll_timeout()) {
            node.plan(at, Job::ErrorHandler(hba));
        }
        self.arm(env, host);
    }

    /// Sends the commands that waited for the end of error handling.
    fn resume_hba(&mut self, env: &mut Env<'_>, host: u16, hba: u16) {
        let node = &mut self.nodes[usize::from(host)];
        let held = node.commands_in(hba, Stage::Held);
        let devices: Vec<Device> = held.into_iter().filter_map(|command| node.device_of(command)).collect();
        for command in node.commands_in(hba, Stage::Stopped) {
            self.nodes[usize::from(host)].commands[command as usize].stage = Stage::Waiting;
            self.submit(env, host, command);
        }
        for device in devices {
            self.continue_device(env, host, device);
        }
    }
}

impl HostNode {
    fn path_state(&self, device: Device) -> PathState {
        self.paths.systems()[usize::from(device.system)].state(device.path)
    }
}

/// Sends a command again that ended with a unit attention, as long as its time allows it.
pub(super) fn repeat(hosts: &mut Hosts, env: &mut Env<'_>, host: u16, command: u32) {
    let node = &hosts.nodes[usize::from(host)];
    match env.net.now() - node.commands[command as usize].since_ps >= node.limits.refusals_ps {
        true => hosts.path_failed(env, host, command),
        false => hosts.retry_on_path(env, host, command),
    }
}
