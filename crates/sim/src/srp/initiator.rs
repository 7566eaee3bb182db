//! The host's side of a channel: logins, requests, their results and their time limits.

use super::{Channel, Cx, Job, Kind, Request, Srp, Stage, connection};
use crate::host::Direction;
use crate::iscsi::{Event, Order};
use sanloom_fc::fcp::initiator::{AbortReason, Outcome};
use sanloom_scsi::iscsi::initiator::Command;
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::srp::initiator::{Initiator, Input, Lost, Output};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::status;
use sanloom_wire::fcp::Residual;
use sanloom_wire::lun::LunBytes;
use sanloom_wire::sense::Condition;
use sanloom_wire::srp::{Buffer, Cmd, Descriptor, Iu, LoginReq, Rsp, TskMgmt, response};

/// Function codes of task management (SRP, 6.7).
const ABORT_TASK: u8 = 0x01;
const LUN_RESET: u8 = 0x08;
/// Name of the login among the time limits.
const LOGIN: u64 = 0;

impl Channel {
    /// Adds a request. Returns its name.
    fn add(&mut self, kind: Kind, tag: u64, until: Instant) -> u64 {
        self.last_name += 1;
        self.requests.insert(self.last_name, Request { kind, tag, until });
        self.limits.insert((until, self.last_name));
        self.last_name
    }

    fn remove(&mut self, name: u64) -> Option<Request> {
        let request = self.requests.remove(&name)?;
        self.limits.remove(&(request.until, name));
        Some(request)
    }

    /// Gives a command to the machine.
    fn submit(&mut self, now: Instant, command: &Command) {
        self.in_flight += 1;
        let Command { id, lun, cdb, direction, bytes } = *command;
        let of_bus = match direction {
            DataDirection::Write => Direction::Send,
            DataDirection::Read | DataDirection::None => Direction::Receive,
        };
        let name = self.add(Kind::Command(of_bus, bytes), id, now + self.plan.command_timeout);
        let buffer = Buffer::Direct(Descriptor { address: 0, key: 1, length: bytes });
        let (out, input) = match direction {
            DataDirection::None => (Buffer::None, Buffer::None),
            DataDirection::Read => (Buffer::None, buffer),
            DataDirection::Write => (buffer, Buffer::None),
        };
        let command = Cmd { lun, cdb, out, input, ..Cmd::default() };
        let Some(machine) = &mut self.machine else { return };
        self.count.credit_waits += u64::from(machine.credit() <= 1);
        machine.handle(Input::Command { id: name, command });
    }

    fn manage(&mut self, name: u64, function: u8, lun: LunBytes, task: u64) {
        let request = TskMgmt { tag: 0, lun, function, task_tag: task };
        if let Some(machine) = &mut self.machine {
            machine.handle(Input::Manage { id: name, request });
        }
    }
}

/// Carries out an order of the host.
pub(super) fn order(srp: &mut Srp, cx: &mut Cx<'_>, number: u32, order: Order) {
    let now = cx.now();
    let channel = &mut srp.channels[number as usize];
    let is_up = channel.stage == Stage::Up;
    match order {
        Order::Submit(command) if !is_up => return gone(srp, number, command.id),
        Order::Reset { tag, .. } if !is_up => return gone(srp, number, tag),
        Order::Submit(command) if channel.in_flight >= channel.plan.depth => channel.waiting.push_back(command),
        Order::Submit(command) => channel.submit(now, &command),
        Order::Reset { tag, lun } => {
            let name = channel.add(Kind::Reset, tag, now + channel.plan.abort_timeout);
            channel.manage(name, LUN_RESET, lun, 0);
        }
        Order::Restart if channel.stage == Stage::Idle => return,
        Order::Restart => {
            let connection = channel.connection;
            return lose(srp, cx, number, connection);
        }
    }
    execute(srp, cx, number);
    list(srp, cx, number);
}

fn gone(srp: &mut Srp, session: u32, tag: u64) {
    srp.events.push_back(Event::Done { session, tag, outcome: Outcome::PortGone });
}

/// Starts the login on a new connection.
pub(super) fn log_in(srp: &mut Srp, cx: &mut Cx<'_>, number: u32, login: LoginReq) {
    let channel = &mut srp.channels[number as usize];
    let mut machine = Initiator::default();
    machine.handle(Input::Login(login));
    channel.machine = Some(machine);
    channel.limits.insert((cx.now() + channel.plan.login_timeout, LOGIN));
    execute(srp, cx, number);
    list(srp, cx, number);
}

/// Handles an information unit of the target.
pub(super) fn unit(srp: &mut Srp, cx: &mut Cx<'_>, connection: u32, unit: Iu) {
    let number = srp.connections[connection as usize].channel;
    let channel = &mut srp.channels[number as usize];
    if channel.connection != connection {
        return;
    }
    channel.count.responses += u64::from(matches!(unit, Iu::Rsp(_)));
    if let Some(machine) = &mut channel.machine {
        machine.handle(Input::Receive(unit));
        execute(srp, cx, number);
    }
}

/// Executes the outputs of the machine of a channel.
fn execute(srp: &mut Srp, cx: &mut Cx<'_>, number: u32) {
    let now = cx.now();
    loop {
        let channel = &mut srp.channels[number as usize];
        let Some(machine) = &mut channel.machine else { return };
        match machine.poll_output() {
            None => return,
            Some(Output::Send(unit)) => {
                channel.count.requests += u64::from(matches!(unit, Iu::Cmd(_) | Iu::TskMgmt(_)));
                let end = 2 * channel.connection;
                connection::send(srp, cx, end, unit);
            }
            Some(Output::LoggedIn) => {
                (channel.stage, channel.tried) = (Stage::Up, true);
                channel.limits.retain(|(_, name)| *name != LOGIN);
                srp.events.push_back(Event::Up(number));
            }
            Some(Output::Completed { id, response }) => completed(srp, cx, number, id, &response),
            Some(Output::Failed { id, why }) => {
                let Some(request) = channel.remove(id) else { continue };
                let outcome = match why {
                    Lost::Aborted => Outcome::Aborted(AbortReason::Timeout),
                    Lost::Rejected(_) | Lost::Logout(_) | Lost::Channel | Lost::Closed => Outcome::PortGone,
                };
                finish(srp, cx, number, request, outcome, now);
            }
            Some(Output::Closed(_)) => {
                let connection = channel.connection;
                return lose(srp, cx, number, connection);
            }
            // Asynchronous events have no effect on a workload.
            Some(Output::Event(_)) => {}
        }
    }
}

/// Handles the response to a request.
fn completed(srp: &mut Srp, cx: &mut Cx<'_>, number: u32, name: u64, response: &Rsp) {
    let now = cx.now();
    let channel = &mut srp.channels[number as usize];
    let Some(request) = channel.remove(name) else { return };
    let is_done = response.response == Some(response::COMPLETE);
    let good = |transferred| Outcome::Completed {
        status: status::GOOD,
        residual: Residual::None,
        transferred,
        condition: None,
    };
    let outcome = match request.kind {
        Kind::Abort(command) => {
            // The machine has ended the command, unless the target refused, or the command had not
            // left. Then only the end of the connection ends it.
            if channel.requests.contains_key(&command) {
                let connection = channel.connection;
                lose(srp, cx, number, connection);
            }
            return;
        }
        Kind::Reset if is_done => good(0),
        Kind::Reset => Outcome::Aborted(AbortReason::Protocol),
        Kind::Command(..) if response.response.is_some_and(|code| code != response::COMPLETE) => {
            Outcome::Aborted(AbortReason::Refused(response.response.unwrap_or_default()))
        }
        Kind::Command(_, bytes) => {
            let residual = response.in_residual.max(response.out_residual).clamp(0, i64::from(bytes));
            let transferred = if response.status == status::GOOD { bytes - residual as u32 } else { 0 };
            let condition = Condition::parse(&response.sense).filter(|_| response.status == status::CHECK_CONDITION);
            Outcome::Completed { status: response.status, residual: Residual::None, transferred, condition }
        }
    };
    finish(srp, cx, number, request, outcome, now);
}

/// Reports the result of a request, when the processor of the host has handled it.
fn finish(srp: &mut Srp, cx: &mut Cx<'_>, number: u32, request: Request, outcome: Outcome, now: Instant) {
    let channel = &mut srp.channels[number as usize];
    if matches!(request.kind, Kind::Abort(_)) {
        return;
    }
    if matches!(request.kind, Kind::Command(..)) {
        channel.in_flight -= 1;
        if channel.stage == Stage::Up
            && let Some(command) = channel.waiting.pop_front()
        {
            channel.submit(now, &command);
        }
    }
    let (now_ps, plan) = (cx.net.now(), &channel.plan);
    let bytes = match outcome {
        Outcome::Completed { transferred, .. } => transferred,
        Outcome::Aborted(_) | Outcome::PortGone => 0,
    };
    let direction = match request.kind {
        Kind::Command(direction, _) => direction,
        Kind::Reset | Kind::Abort(_) => Direction::Receive,
    };
    let at_ps = cx.around.complete(plan.host, plan.hba, (direction, bytes), now_ps);
    if at_ps <= now_ps {
        return srp.events.push_back(Event::Done { session: number, tag: request.tag, outcome });
    }
    srp.last_finished += 1;
    srp.finished.insert(srp.last_finished, (number, request.tag, outcome));
    srp.agenda.plan(cx.net, at_ps, Job::Complete(srp.last_finished));
}

/// Plans the next time limit of a channel.
fn list(srp: &mut Srp, cx: &mut Cx<'_>, number: u32) {
    let channel = &mut srp.channels[number as usize];
    if let Some(&(at, _)) = channel.limits.first()
        && at < channel.listed
    {
        channel.listed = at;
        srp.agenda.plan(cx.net, at.as_ns().saturating_mul(1_000), Job::Deadline(number));
    }
}

/// Handles the time limits of a channel that are over.
pub(super) fn deadline(srp: &mut Srp, cx: &mut Cx<'_>, number: u32) {
    let now = cx.now();
    srp.channels[number as usize].listed = Instant::NEVER;
    while let Some(&(at, name)) = srp.channels[number as usize].limits.first().filter(|(at, _)| *at <= now) {
        let channel = &mut srp.channels[number as usize];
        channel.limits.remove(&(at, name));
        let request = channel.requests.get_mut(&name);
        match request {
            Some(request) if matches!(request.kind, Kind::Command(..)) => {
                // The limit of ABORT TASK follows; that of the command is over.
                request.until = Instant::NEVER;
                let tag = request.tag;
                let abort = channel.add(Kind::Abort(name), tag, now + channel.plan.abort_timeout);
                channel.manage(abort, ABORT_TASK, LunBytes::default(), name);
                execute(srp, cx, number);
            }
            // No response to a login or to task management.
            _ => {
                let connection = channel.connection;
                lose(srp, cx, number, connection);
            }
        }
    }
    list(srp, cx, number);
}

/// Ends a connection that is lost, or that this side gives up. Its requests end without a result.
pub(super) fn lose(srp: &mut Srp, cx: &mut Cx<'_>, number: u32, connection: u32) {
    let channel = &mut srp.channels[number as usize];
    if channel.connection != connection || channel.stage == Stage::Idle {
        return;
    }
    let was_up = channel.stage == Stage::Up;
    (channel.stage, channel.tried) = (Stage::Idle, true);
    channel.machine = None;
    channel.limits.clear();
    let mut requests = std::mem::take(&mut channel.requests);
    let waiting = std::mem::take(&mut channel.waiting);
    channel.in_flight = 0;
    let reconnect: Span = channel.plan.reconnect;
    let repetitions = srp.pairs.repetitions(2 * connection) + srp.pairs.repetitions(2 * connection + 1);
    srp.channels[number as usize].count.repetitions += repetitions;
    srp.pairs.close(2 * connection);
    if was_up {
        srp.events.push_back(Event::Down(number));
    }
    for (_, request) in requests.drain().filter(|(_, request)| !matches!(request.kind, Kind::Abort(_))) {
        gone(srp, number, request.tag);
    }
    waiting.into_iter().for_each(|command| gone(srp, number, command.id));
    let at_ps = cx.net.now() + reconnect.as_ns() * 1_000;
    srp.agenda.plan(cx.net, at_ps, Job::Connect(number));
}
