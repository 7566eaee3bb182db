//! The error handler of one HBA: escalation after an abort without an answer, as in Linux.

use std::collections::VecDeque;

/// Time to wait for the logins after a reset of the HBA, in ps (`FC_HOST_RESET_TIMEOUT` of
/// drivers/scsi/libfc/fc_fcp.c).
pub const HBA_RESET_PS: u64 = 30_000_000_000_000;

/// Escalation of the commands of one HBA whose ABTS was not answered (`scsi_unjam_host` of
/// drivers/scsi/scsi_error.c).
///
/// ```text
///           Failed             Idle (nothing in flight)       each LUN         each target
///   Ready ----------> Draining ------------------------> LUN resets ----> target resets
///     ^                  |                                    |                  |
///     |                  +------ eh_deadline has passed ------+------------------+
///     |                                                                          v
///     +--- Resume ---- no failed command is left <------------------------- HBA reset
/// ```
///
/// In all states but `Ready` the HBA sends no further commands. An answered reset gives the
/// commands of its LUN or target back for a retry. A path that logs in again does the same for its
/// commands, and a path that is lost for `fast_io_fail` gives them to the multipath layer. Commands
/// that are left after the reset of the HBA fail on their path.
///
/// Call [`ErrorHandler::handle`], then [`ErrorHandler::poll_action`] until `None`, then
/// [`ErrorHandler::poll_timeout`].
#[derive(Clone, Debug)]
pub struct ErrorHandler {
    reset_ps: u64,
    deadline_ps: Option<u64>,
    can_reset_hba: bool,
    state: State,
    /// Failed commands with their devices, in the order of their failure.
    failed: Vec<(u32, Device)>,
    /// Resets of the current step that have not been sent.
    pending: VecDeque<Device>,
    /// Number of the current reset; answers to earlier ones are ignored.
    serial: u16,
    timeout_ps: Option<u64>,
    /// Time after which the resets of LUNs and targets are skipped.
    escalate_ps: Option<u64>,
    actions: VecDeque<Action>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ready,
    Draining,
    LunReset(Device),
    TargetReset(Device),
    HbaReset,
}

/// A LUN on a path, as the HBA sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Device {
    /// Index of the paths to the storage system.
    pub system: u16,
    pub path: u16,
    pub lun: u16,
}

/// Inputs of [`ErrorHandler::handle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The ABTS of a command was not answered. `timed_out_ps` is the time of the command timeout.
    Failed { command: u32, device: Device, timed_out_ps: u64 },
    /// No command of the HBA is in flight.
    Idle,
    /// A reset has ended; `good`: the target performed it.
    Reset { serial: u16, good: bool },
    /// The remote port of a path has logged in again.
    PathUp { system: u16, path: u16 },
    /// A path has failed, and its commands were withdrawn.
    PathLost { system: u16, path: u16 },
    /// The time of [`ErrorHandler::poll_timeout`] has been reached.
    Timeout,
}

/// Outputs of [`ErrorHandler::poll_action`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send LOGICAL UNIT RESET.
    ResetLun { device: Device, serial: u16 },
    /// Send TARGET RESET.
    ResetTarget { device: Device, serial: u16 },
    /// Log the HBA out and in again.
    ResetHba,
    /// Send a command again on its path.
    Retry(u32),
    /// Return a command as failed on its path.
    Fail(u32),
    /// Send commands again.
    Resume,
}

impl ErrorHandler {
    /// Returns an idle error handler.
    pub fn new(reset_ps: u64, deadline_ps: Option<u64>, can_reset_hba: bool) -> ErrorHandler {
        ErrorHandler {
            reset_ps,
            deadline_ps,
            can_reset_hba,
            state: State::Ready,
            failed: Vec::new(),
            pending: VecDeque::new(),
            serial: 0,
            timeout_ps: None,
            escalate_ps: None,
            actions: VecDeque::new(),
        }
    }

    /// Returns whether the HBA sends no commands.
    pub fn is_recovering(&self) -> bool {
        self.state != State::Ready
    }

    /// Returns whether [`Event::Idle`] is due when no command is in flight.
    pub fn is_draining(&self) -> bool {
        self.state == State::Draining
    }

    /// Processes one event.
    pub fn handle(&mut self, now_ps: u64, event: Event) {
        match event {
            Event::Failed { command, device, timed_out_ps } => {
                self.failed.push((command, device));
                if self.state == State::Ready {
                    self.state = State::Draining;
                    self.escalate_ps = self.deadline_ps.map(|time| timed_out_ps.saturating_add(time));
                }
            }
            Event::Idle if self.state == State::Draining => {
                self.pending = self.devices();
                self.next_lun(now_ps);
            }
            Event::Reset { serial, good } if serial == self.serial => self.reset_ended(now_ps, good),
            Event::PathUp { system, path } => {
                self.give_back(|device| (device.system, device.path) == (system, path), Action::Retry);
                self.end_if_done();
            }
            Event::PathLost { system, path } => {
                self.failed.retain(|(_, device)| (device.system, device.path) != (system, path));
                self.end_if_done();
            }
            Event::Timeout if self.timeout_ps.is_some_and(|at_ps| at_ps <= now_ps) => match self.state {
                State::HbaReset => self.give_up(),
                _ => self.reset_ended(now_ps, false),
            },
            Event::Idle | Event::Reset { .. } | Event::Timeout => {}
        }
    }

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns the time at which [`Event::Timeout`] is due.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.timeout_ps
    }

    fn reset_ended(&mut self, now_ps: u64, good: bool) {
        match self.state {
            State::LunReset(device) => {
                if good {
                    self.give_back(|other| *other == device, Action::Retry);
                }
                self.next_lun(now_ps);
            }
            State::TargetReset(device) => {
                if good {
                    let target = |other: &Device| (other.system, other.path) == (device.system, device.path);
                    self.give_back(target, Action::Retry);
                }
                self.next_target(now_ps);
            }
            State::Ready | State::Draining | State::HbaReset => {}
        }
    }

    /// Sends the next LOGICAL UNIT RESET, or starts the next step.
    fn next_lun(&mut self, now_ps: u64) {
        match self.next_pending(now_ps) {
            Some(device) => {
                self.state = State::LunReset(device);
                let serial = self.begin_reset(now_ps);
                self.actions.push_back(Action::ResetLun { device, serial });
            }
            None => {
                let mut targets = Vec::from(self.devices());
                targets.dedup_by_key(|device| (device.system, device.path));
                self.pending = targets.into();
                self.next_target(now_ps);
            }
        }
    }

    /// Sends the next TARGET RESET, or starts the reset of the HBA.
    fn next_target(&mut self, now_ps: u64) {
        match self.next_pending(now_ps) {
            Some(device) => {
                self.state = State::TargetReset(device);
                let serial = self.begin_reset(now_ps);
                self.actions.push_back(Action::ResetTarget { device, serial });
            }
            None if self.failed.is_empty() => self.end_if_done(),
            None if self.can_reset_hba => {
                self.state = State::HbaReset;
                self.timeout_ps = Some(now_ps.saturating_add(HBA_RESET_PS));
                self.actions.push_back(Action::ResetHba);
            }
            None => self.give_up(),
        }
    }

    /// Returns the next device to reset. There is none once `eh_deadline` has passed.
    fn next_pending(&mut self, now_ps: u64) -> Option<Device> {
        if self.escalate_ps.is_some_and(|at_ps| at_ps <= now_ps) {
            self.pending.clear();
        }
        while let Some(device) = self.pending.pop_front() {
            if self.failed.iter().any(|(_, other)| *other == device) {
                return Some(device);
            }
        }
        None
    }

    fn begin_reset(&mut self, now_ps: u64) -> u16 {
        self.serial = self.serial.wrapping_add(1);
        self.timeout_ps = Some(now_ps.saturating_add(self.reset_ps));
        self.serial
    }

    /// Returns the devices of the failed commands, each once.
    fn devices(&self) -> VecDeque<Device> {
        let mut devices: Vec<Device> = self.failed.iter().map(|(_, device)| *device).collect();
        devices.sort_unstable();
        devices.dedup();
        devices.into()
    }

    fn give_up(&mut self) {
        self.give_back(|_| true, Action::Fail);
        self.end_if_done();
    }

    fn give_back(&mut self, affects: impl Fn(&Device) -> bool, action: impl Fn(u32) -> Action) {
        let actions = &mut self.actions;
        self.failed.retain(|(command, device)| {
            let affected = affects(device);
            if affected {
                actions.push_back(action(*command));
            }
            !affected
        });
    }

    /// Ends the recovery when no failed command is left.
    fn end_if_done(&mut self) {
        if self.failed.is_empty() && self.state != State::Ready {
            self.state = State::Ready;
            self.timeout_ps = None;
            self.serial = self.serial.wrapping_add(1);
            self.pending.clear();
            self.actions.push_back(Action::Resume);
        }
    }
}
