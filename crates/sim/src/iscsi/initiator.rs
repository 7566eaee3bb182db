//! The host's side of a session: logins, commands and their results.

use super::connection::{self, Machine, Stage};
use super::{Cx, Event, Iscsi, Order, Session, forward};
use sanloom_fc::fcp::initiator::{AbortReason, Outcome};
use sanloom_scsi::iscsi::initiator::{self as host, login};
use sanloom_wire::cdb::status;
use sanloom_wire::fcp::Residual;
use sanloom_wire::iscsi::{Head, Header};
use sanloom_wire::sense::Condition;

/// Tags with this bit are used more than once.
const AGAIN: u64 = 1 << 63;

impl Session {
    /// Returns a name for a command that no other one of the session has had.
    fn name(&mut self, tag: u64) -> u64 {
        if tag & AGAIN == 0 {
            return tag;
        }
        self.next_name += 1;
        let name = AGAIN | self.next_name;
        self.renamed.push((name, tag));
        name
    }

    /// Returns the input that sends a command.
    fn submit(&mut self, command: host::Command) -> host::Input {
        self.in_flight += 1;
        host::Input::Submit(host::Command { id: self.name(command.id), ..command })
    }

    /// Returns the tag of a command that has ended.
    fn tag(&mut self, name: u64) -> u64 {
        match self.renamed.iter().position(|(known, _)| *known == name) {
            Some(at) => self.renamed.swap_remove(at).1,
            None => name,
        }
    }
}

/// Carries out an order of the host.
pub(super) fn order(iscsi: &mut Iscsi, cx: &mut Cx<'_>, session: u32, order: Order) {
    let now = cx.now();
    let state = &mut iscsi.sessions[session as usize];
    let end = state.end;
    let is_up = state.stage == Stage::Up;
    let gone = |tag| Event::Done { session, tag, outcome: Outcome::PortGone };
    let input = match order {
        Order::Submit(command) if !is_up => return iscsi.events.push_back(gone(command.id)),
        Order::Submit(command) => {
            state.count.commands += 1;
            if state.in_flight >= state.plan.depth {
                state.count.command_waits += 1;
                return state.waiting.push_back(command);
            }
            state.submit(command)
        }
        Order::Reset { tag, .. } if !is_up => return iscsi.events.push_back(gone(tag)),
        Order::Reset { tag, lun } => host::Input::Reset { id: state.name(tag), lun },
        Order::Restart if state.stage == Stage::Idle => return,
        Order::Restart => return connection::lose(iscsi, cx, end),
    };
    let is_command = matches!(input, host::Input::Submit(_));
    if let Machine::Host(machine) = &mut iscsi.ends[end as usize].machine {
        machine.handle(now, input);
        let waits = is_command && machine.waiting() > 0;
        iscsi.sessions[session as usize].count.command_waits += u64::from(waits);
        execute(iscsi, cx, end);
        connection::send(iscsi, cx, end, 0);
    }
}

/// Starts the login on a connection that is open.
pub(super) fn connected(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let state = &mut iscsi.ends[end as usize];
    let session = state.session;
    let mut config = iscsi.sessions[session as usize].plan.login.clone();
    config.offers = forward::offers(iscsi, session).unwrap_or(config.offers);
    let state = &mut iscsi.ends[end as usize];
    state.machine = Machine::HostLogin(Box::new(login::Login::new(cx.now(), config)));
    execute(iscsi, cx, end);
}

/// Handles a PDU of the target.
pub(super) fn pdu(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, head: Head, text: Box<[u8]>) {
    let now = cx.now();
    let state = &mut iscsi.ends[end as usize];
    let count = &mut iscsi.sessions[state.session as usize].count;
    count.pdus_received += 1;
    count.r2ts += u64::from(matches!(head.header, Header::R2t(_)));
    match &mut state.machine {
        Machine::Back => return forward::back_pdu(iscsi, cx, end, &head, &text),
        Machine::HostLogin(login) => login.handle(now, login::Input::Pdu { head, text }),
        Machine::Host(session) => {
            session.handle(now, host::Input::Header(head));
            if head.data_bytes > 0 {
                let intact = true;
                session.handle(
                    now,
                    match session.destination() {
                        host::Destination::Text => host::Input::Text { data: text, intact },
                        _ => host::Input::Segment { intact },
                    },
                );
            }
        }
        _ => return,
    }
    execute(iscsi, cx, end);
}

/// Handles the deadline of a login or session.
pub(super) fn timeout(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let now = cx.now();
    match &mut iscsi.ends[end as usize].machine {
        Machine::HostLogin(login) => login.handle(now, login::Input::Timeout),
        Machine::Host(session) => session.handle(now, host::Input::Timeout),
        _ => return,
    }
    execute(iscsi, cx, end);
}

/// Executes the outputs of a login or session.
fn execute(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let now = cx.now();
    loop {
        let state = &mut iscsi.ends[end as usize];
        let number = state.session;
        let session = &mut iscsi.sessions[number as usize];
        let sent = match &mut state.machine {
            Machine::HostLogin(login) => match login.poll_output() {
                None => return,
                Some(login::Output::Send { head, text }) => Some((head, text)),
                Some(login::Output::Failed(_)) => return connection::lose(iscsi, cx, end),
                Some(login::Output::Done(established)) => {
                    state.layout = established.parameters.layout();
                    if session.plan.front.is_some() {
                        session.stage = Stage::Up;
                        return forward::link_up(iscsi, cx, end, &established);
                    }
                    let machine = host::Session::new(now, established, session.plan.timeouts);
                    state.machine = Machine::Host(Box::new(machine));
                    (session.stage, session.tried) = (Stage::Up, true);
                    iscsi.events.push_back(Event::Up(number));
                    None
                }
            },
            Machine::Host(machine) => match machine.poll_output() {
                None => return,
                Some(host::Output::Send { head, data }) => Some((head, data)),
                Some(host::Output::Data { head, .. }) => Some((head, Box::default())),
                Some(host::Output::Done { id, outcome: ended }) => {
                    let (tag, outcome) = (session.tag(id), outcome_of(&ended));
                    iscsi.events.push_back(Event::Done { session: number, tag, outcome });
                    let is_command = !matches!(ended, host::Outcome::Reset { .. });
                    session.in_flight -= u32::from(is_command);
                    if is_command && let Some(command) = session.waiting.pop_front() {
                        let input = session.submit(command);
                        machine.handle(now, input);
                    }
                    None
                }
                Some(host::Output::Broken(_)) => return connection::lose(iscsi, cx, end),
            },
            _ => return,
        };
        if let Some((head, text)) = sent {
            session.count.pdus_sent += 1;
            state.push(&head, text);
        }
    }
}

/// Returns a result in the words of the host.
fn outcome_of(outcome: &host::Outcome) -> Outcome {
    let completed = |status, transferred, condition| {
        let residual = Residual::None;
        Outcome::Completed { status, residual, transferred, condition }
    };
    match *outcome {
        host::Outcome::Completed { status, transferred, ref sense } => {
            let condition = Condition::parse(sense).filter(|_| status == status::CHECK_CONDITION);
            completed(status, transferred, condition)
        }
        host::Outcome::TimedOut => Outcome::Aborted(AbortReason::Timeout),
        host::Outcome::Failed | host::Outcome::Reset { success: false } => Outcome::Aborted(AbortReason::Protocol),
        host::Outcome::Reset { success: true } => completed(status::GOOD, 0, None),
    }
}

/// Reports the loss of a session, and that its commands have no result.
pub(super) fn lost(iscsi: &mut Iscsi, number: u32, machine: Machine) {
    let Machine::Host(machine) = machine else { return };
    iscsi.events.push_back(Event::Down(number));
    let session = &mut iscsi.sessions[number as usize];
    for id in machine.ids() {
        let (tag, outcome) = (session.tag(id), Outcome::PortGone);
        iscsi.events.push_back(Event::Done { session: number, tag, outcome });
    }
    for command in std::mem::take(&mut session.waiting) {
        iscsi.events.push_back(Event::Done { session: number, tag: command.id, outcome: Outcome::PortGone });
    }
    session.renamed.clear();
    session.in_flight = 0;
}
