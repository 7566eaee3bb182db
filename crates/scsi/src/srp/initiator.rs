//! The initiator's end of a channel: login, credit, commands and task management.
//!
//! ```text
//!   idle --Login--> logging in --LOGIN_RSP--> ready --logout, channel lost--> closed
//!                       +----LOGIN_REJ, channel lost-----------------------------^
//! ```

use crate::ordered::OrderedMap;
use sanloom_wire::lun::LunBytes;
use sanloom_wire::srp::{Cmd, Iu, LoginReq, Rsp, TskMgmt, response};
use std::collections::VecDeque;

/// Event of an initiator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The connection is up: log in.
    Login(LoginReq),
    /// A command; its tag is replaced.
    Command {
        /// Name that the completion repeats.
        id: u64,
        /// Command with its buffers.
        command: Cmd,
    },
    /// A task management request; its tags are replaced.
    Manage {
        /// Name that the completion repeats.
        id: u64,
        /// Request. The task of ABORT TASK is named by the `id` of its command.
        request: TskMgmt,
    },
    /// An information unit of the target.
    Receive(Iu),
    /// End the channel.
    Logout,
    /// The connection is down.
    ChannelDown,
}

/// Reason for the end of a request without a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The target rejected the login with this reason.
    Rejected(u32),
    /// The target logged out with this reason.
    Logout(u32),
    /// Task management has ended the command.
    Aborted,
    /// The connection went down.
    Channel,
    /// The channel is closed, or was closed by a logout of this end.
    Closed,
}

/// Effect of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send an information unit.
    Send(Iu),
    /// The login is complete.
    LoggedIn,
    /// A command or task management request has its response.
    Completed {
        /// Name of the request.
        id: u64,
        /// Response of the target.
        response: Rsp,
    },
    /// A request ended without a response.
    Failed {
        /// Name of the request.
        id: u64,
        /// Reason.
        why: Lost,
    },
    /// The channel has ended.
    Closed(Lost),
    /// Asynchronous event of a logical unit, with its sense data.
    Event(Vec<u8>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    LoggingIn,
    Ready,
    Closed,
}

/// A request of which the response is missing.
#[derive(Clone, Copy, Debug)]
struct Sent {
    id: u64,
    lun: LunBytes,
    /// Function and tag of the task; `None` for a command.
    manages: Option<(u8, u64)>,
}

/// Initiator of one channel.
#[derive(Clone, Debug)]
pub struct Initiator {
    state: State,
    /// Requests that may be sent.
    credit: u32,
    /// Requests of which a response is missing, by tag.
    sent: OrderedMap<u64, Sent>,
    /// Requests that wait for credit; those of task management in their own queue.
    commands: VecDeque<(u64, Cmd)>,
    management: VecDeque<(u64, TskMgmt)>,
    next_tag: u64,
    outputs: VecDeque<Output>,
    /// Responses without a request.
    pub strays: u64,
}

impl Default for Initiator {
    fn default() -> Initiator {
        Initiator {
            state: State::Idle,
            credit: 0,
            sent: OrderedMap::new(),
            commands: VecDeque::new(),
            management: VecDeque::new(),
            next_tag: 1,
            outputs: VecDeque::new(),
            strays: 0,
        }
    }
}

impl Initiator {
    /// Processes an event.
    pub fn handle(&mut self, input: Input) {
        match input {
            Input::Login(login) if self.state == State::Idle => {
                self.state = State::LoggingIn;
                self.outputs.push_back(Output::Send(Iu::LoginReq(login)));
            }
            Input::Login(_) => {}
            Input::Command { id, .. } | Input::Manage { id, .. } if self.state == State::Closed => {
                self.outputs.push_back(Output::Failed { id, why: Lost::Closed });
            }
            Input::Command { id, command } => self.commands.push_back((id, command)),
            Input::Manage { id, request } => self.management.push_back((id, request)),
            Input::Receive(unit) => self.receive(unit),
            Input::Logout => {
                if self.state == State::Ready {
                    let tag = self.tag();
                    self.outputs.push_back(Output::Send(Iu::InitiatorLogout { tag }));
                }
                self.close(Lost::Closed);
            }
            Input::ChannelDown => self.close(Lost::Channel),
        }
        self.pump();
    }

    /// Next effect.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Requests that may be sent now.
    pub fn credit(&self) -> u32 {
        self.credit
    }

    /// Requests without a response, and requests that wait for credit.
    pub fn pending(&self) -> [usize; 2] {
        [self.sent.len(), self.commands.len() + self.management.len()]
    }

    fn tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag - 1
    }

    fn receive(&mut self, unit: Iu) {
        match (unit, self.state) {
            (Iu::LoginRsp { delta, .. }, State::LoggingIn) => {
                self.state = State::Ready;
                self.add_credit(delta);
                self.outputs.push_back(Output::LoggedIn);
            }
            (Iu::LoginRej { reason, .. }, State::LoggingIn) => self.close(Lost::Rejected(reason)),
            (Iu::Rsp(response), State::Ready) => {
                self.add_credit(response.delta);
                match self.sent.remove(&response.tag) {
                    Some(sent) => {
                        if response.response == Some(response::COMPLETE) {
                            self.end_aborted(&sent);
                        }
                        self.outputs.push_back(Output::Completed { id: sent.id, response });
                    }
                    None => self.strays += 1,
                }
            }
            (Iu::CredReq { tag, delta }, State::Ready) => {
                self.add_credit(delta);
                self.outputs.push_back(Output::Send(Iu::CredRsp { tag }));
            }
            (Iu::AerReq { tag, delta, sense, .. }, State::Ready) => {
                self.add_credit(delta);
                self.outputs.push_back(Output::Send(Iu::AerRsp { tag }));
                self.outputs.push_back(Output::Event(sense));
            }
            (Iu::TargetLogout { reason, .. }, State::Ready) => self.close(Lost::Logout(reason)),
            _ => self.strays += 1,
        }
    }

    /// Ends the commands that task management has ended without a response.
    fn end_aborted(&mut self, by: &Sent) {
        let Some((function, task_tag)) = by.manages else { return };
        let ends = |tag: u64, sent: &Sent| match function {
            0x01 => tag == task_tag,
            0x02 | 0x04 | 0x08 => sent.lun == by.lun,
            _ => false,
        };
        let commands = self.sent.iter().filter(|(_, sent)| sent.manages.is_none());
        let tags: Vec<u64> = commands.filter(|(tag, sent)| ends(**tag, sent)).map(|entry| *entry.0).collect();
        for tag in tags {
            if let Some(sent) = self.sent.remove(&tag) {
                self.outputs.push_back(Output::Failed { id: sent.id, why: Lost::Aborted });
            }
        }
    }

    /// Applies a delta of the request limit. A target may lower the limit, but never below zero.
    fn add_credit(&mut self, delta: i32) {
        self.credit = self.credit.saturating_add_signed(delta);
    }

    fn close(&mut self, why: Lost) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.credit = 0;
        let sent = self.sent.drain().map(|(_, sent)| sent.id);
        let waiting = self.management.drain(..).map(|request| request.0);
        let ids: Vec<u64> = sent.chain(waiting).chain(self.commands.drain(..).map(|command| command.0)).collect();
        self.outputs.extend(ids.into_iter().map(|id| Output::Failed { id, why }));
        self.outputs.push_back(Output::Closed(why));
    }

    /// Sends what the credit allows. The last credit is kept for task management.
    fn pump(&mut self) {
        if self.state != State::Ready {
            return;
        }
        while self.credit > 0
            && let Some((id, mut request)) = self.management.pop_front()
        {
            request.tag = self.tag();
            // The tag of the task, if it still waits for its response.
            let is_task = |sent: &Sent| sent.manages.is_none() && sent.id == request.task_tag;
            let task = self.sent.iter().find(|entry| is_task(entry.1));
            request.task_tag = task.map_or(0, |entry| *entry.0);
            self.credit -= 1;
            let manages = Some((request.function, request.task_tag));
            self.sent.insert(request.tag, Sent { id, lun: request.lun, manages });
            self.outputs.push_back(Output::Send(Iu::TskMgmt(request)));
        }
        while self.credit > 1
            && let Some((id, mut command)) = self.commands.pop_front()
        {
            command.tag = self.tag();
            self.credit -= 1;
            self.sent.insert(command.tag, Sent { id, lun: command.lun, manages: None });
            self.outputs.push_back(Output::Send(Iu::Cmd(command)));
        }
    }
}
