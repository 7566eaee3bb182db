//! The target's end of a channel, on a [`Device`] that all ports of a storage system share.
//!
//! ```text
//!          read                 IoDone
//!   CMD ---------> io -------------------------> push, RSP              free
//!    |  |           ^
//!    |  | write     | Pulled
//!    |  +----> pulling ---- parameter list ----> Parameters, RSP        free
//!    +-------> waiting      until the device starts the task
//! ```
//!
//! A target that streams ([`Config::streams`]) begins the block I/O of a WRITE together with the
//! RDMA READ of its data. SRP has no rule against it: a target may fetch data in any number of RDMA
//! READs, at any time before the RSP (SRP, 5.4). Each READ ends as a whole, so that the part of the
//! data that can be passed on is that of a READ. The RSP follows the end of both, because the
//! initiator reuses the buffer after it.
//!
//! The driver connects the nexus before the login, passes notices of the device for the port, and
//! disconnects the nexus after [`Output::Closed`]. On [`Output::Pull`] it reads from the buffer of
//! the initiator by RDMA. On [`Output::Push`] it writes, and the RSP follows on the same
//! connection.

use crate::scsi::{
    Attribute, BlockIo, Command, DataDirection, Device, Ends, INVALID_COMMAND_IU, Io, IoOp, IoStatus, IoTag, Managed,
    NexusId, Notice, Response, Step, TaskId, TaskManagement,
};
use sanloom_wire::cdb::status;
use sanloom_wire::srp::{Buffer, Cmd, DIRECT, INDIRECT, Iu, LoginReq, Rsp, TskMgmt, reject, response};
use std::collections::VecDeque;

/// Settings of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Requests that the initiator may have outstanding.
    pub request_limit: u16,
    /// Longest information units to the target and to the initiator.
    pub unit_bytes: [u32; 2],
    /// Begins the block I/O of a WRITE before its data have arrived.
    pub streams: bool,
}

/// Event of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// An information unit of the initiator.
    Receive(Iu),
    /// All data of [`Output::Pull`] have arrived. For a parameter list, with its bytes.
    Pulled {
        /// Task.
        tag: IoTag,
        /// Bytes of a parameter list; empty for data of a medium.
        bytes: Vec<u8>,
    },
    /// Block I/O ended.
    IoDone {
        /// Task.
        tag: IoTag,
        /// Result.
        status: IoStatus,
    },
    /// Output of the device for this port.
    Notice(Notice),
    /// Log out.
    Logout(u32),
    /// The connection is down.
    ChannelDown,
}

/// Effect of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send an information unit.
    Send(Iu),
    /// Read from the initiator by RDMA, then pass [`Input::Pulled`].
    Pull {
        /// Task.
        tag: IoTag,
        /// Buffer of the initiator.
        from: Buffer,
        /// Bytes.
        bytes: u32,
    },
    /// Write to the initiator by RDMA, before all later outputs.
    Push {
        /// Task.
        tag: IoTag,
        /// Buffer of the initiator.
        to: Buffer,
        /// Bytes.
        bytes: u32,
        /// Data of the device; empty for data that a read has put into the buffer of the task.
        data: Vec<u8>,
    },
    /// Perform block I/O, then pass [`Input::IoDone`].
    Io(Io),
    /// Forget the I/O or RDMA of a task.
    Cancel(IoTag),
    /// End tasks of other channels at the same port, by [`Notice::End`].
    Ends(Ends),
    /// The channel has ended.
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Pulling { parameters: bool },
    Io,
}

#[derive(Clone, Debug)]
struct Task {
    state: State,
    tag: u64,
    unit: u16,
    io: Option<BlockIo>,
    out: Buffer,
    input: Buffer,
    /// Bytes that have moved to the target.
    pulled: u32,
    /// True while data of the block I/O still arrive, and its result if it ends before them.
    is_pulling: bool,
    ended: Option<IoStatus>,
}

/// Phase of a channel. It begins only once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Before the login.
    New,
    /// Logged in.
    Ready,
    /// After the end.
    Closed,
}

/// Target of one channel.
#[derive(Clone, Debug)]
pub struct Target {
    config: Config,
    nexus: NexusId,
    phase: Phase,
    is_unavailable: bool,
    tasks: Vec<Option<Task>>,
    generations: Vec<u16>,
    outputs: VecDeque<Output>,
    /// Commands beyond the request limit, and invalid information units.
    pub violations: u64,
}

impl Target {
    /// Target of a new connection, for a nexus of the device.
    pub fn new(config: Config, nexus: NexusId) -> Target {
        let limit = usize::from(config.request_limit);
        Target {
            config,
            nexus,
            phase: Phase::New,
            is_unavailable: false,
            tasks: vec![None; limit],
            generations: vec![0; limit],
            outputs: VecDeque::new(),
            violations: 0,
        }
    }

    /// Rejects a login for want of resources, because the target cannot reach its medium.
    pub fn set_unavailable(&mut self) {
        self.is_unavailable = true;
    }

    /// Processes an event.
    pub fn handle(&mut self, input: Input, device: &mut Device) {
        match input {
            Input::Receive(Iu::LoginReq(login)) => self.login(&login),
            Input::Receive(Iu::Cmd(command)) if self.is_ready() => self.command(command, device),
            Input::Receive(Iu::TskMgmt(request)) if self.is_ready() => self.manage(&request, device),
            Input::Receive(Iu::InitiatorLogout { .. }) | Input::ChannelDown => self.close(device),
            Input::Receive(Iu::CredRsp { .. } | Iu::AerRsp { .. }) => {}
            // Units that were under way when the channel ended are ignored.
            Input::Receive(_) => self.violations += u64::from(self.is_ready()),
            Input::Pulled { tag, bytes } => self.pulled(tag, &bytes, device),
            Input::IoDone { tag, status } => self.io_done(tag, status, device),
            Input::Notice(Notice::Step { task, step }) => {
                if task.nexus == self.nexus && self.task(task.tag).is_some_and(|task| task.state == State::Waiting) {
                    device.confirm(task, &step);
                    self.go_on(task.tag, step, device);
                }
            }
            Input::Notice(Notice::End(ends)) => {
                self.end_tasks(&ends, device);
            }
            Input::Logout(reason) => {
                if self.is_ready() {
                    self.outputs.push_back(Output::Send(Iu::TargetLogout { tag: 0, reason }));
                }
                self.close(device);
            }
        }
    }

    /// Next effect.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns whether [`Input::Pulled`] of a task needs its bytes, because they are a parameter
    /// list.
    pub fn pulls_parameters(&self, tag: IoTag) -> bool {
        let task = self.slot(tag).and_then(|slot| self.tasks[slot].as_ref());
        task.is_some_and(|task| task.state == State::Pulling { parameters: true })
    }

    fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Tasks in progress.
    pub fn tasks(&self) -> usize {
        self.tasks.iter().flatten().count()
    }

    fn login(&mut self, login: &LoginReq) {
        let formats = DIRECT | INDIRECT;
        let reason = if self.phase != Phase::New {
            Some(reject::CHANNEL)
        } else if self.is_unavailable {
            Some(reject::RESOURCES)
        } else if login.request_bytes > self.config.unit_bytes[0] {
            Some(reject::TOO_LARGE)
        } else if login.formats & formats == 0 {
            Some(reject::FORMAT)
        } else {
            None
        };
        self.outputs.push_back(Output::Send(match reason {
            Some(reason) => Iu::LoginRej { tag: login.tag, reason, formats },
            None => {
                self.phase = Phase::Ready;
                Iu::LoginRsp {
                    tag: login.tag,
                    delta: self.config.request_limit.into(),
                    to_target: self.config.unit_bytes[0],
                    to_initiator: self.config.unit_bytes[1],
                    formats,
                    flags: 0,
                }
            }
        }));
    }

    fn command(&mut self, command: Cmd, device: &mut Device) {
        let Some(slot) = self.tasks.iter().position(Option::is_none) else {
            self.violations += 1;
            let full = Rsp { delta: 1, tag: command.tag, status: status::TASK_SET_FULL, ..Rsp::default() };
            return self.outputs.push_back(Output::Send(Iu::Rsp(full)));
        };
        self.generations[slot] = self.generations[slot].wrapping_add(1);
        let tag = IoTag::new(slot as u16, self.generations[slot]);
        let unit = device.unit(self.nexus, command.lun);
        let attribute = match command.attribute {
            1 => Attribute::HeadOfQueue,
            2 => Attribute::Ordered,
            _ => Attribute::Simple,
        };
        let step = device.begin(&Command { nexus: self.nexus, tag, unit, cdb: command.cdb, attribute });
        self.tasks[slot] = Some(Task {
            state: State::Waiting,
            tag: command.tag,
            unit: unit.unwrap_or_default(),
            io: None,
            out: command.out,
            input: command.input,
            pulled: 0,
            is_pulling: false,
            ended: None,
        });
        self.go_on(tag, step, device);
    }

    fn slot(&self, tag: IoTag) -> Option<usize> {
        let slot = usize::from(tag.slot());
        let is_it = self.generations.get(slot).is_some_and(|&generation| IoTag::new(tag.slot(), generation) == tag);
        (is_it && self.tasks[slot].is_some()).then_some(slot)
    }

    fn task(&mut self, tag: IoTag) -> Option<&mut Task> {
        let slot = self.slot(tag)?;
        self.tasks[slot].as_mut()
    }

    fn id(&self, tag: IoTag, unit: u16) -> TaskId {
        TaskId { nexus: self.nexus, tag, unit }
    }

    /// Performs the next step that the device returned for a task.
    fn go_on(&mut self, tag: IoTag, step: Step, device: &mut Device) {
        match step {
            Step::Wait => {
                if let Some(task) = self.task(tag) {
                    task.state = State::Waiting;
                }
            }
            Step::Done(response) => self.respond(tag, response),
            Step::Io(io) => {
                let Some(task) = self.task(tag) else { return };
                task.io = Some(io);
                match io.op.direction() {
                    DataDirection::None => self.begin_io(tag),
                    DataDirection::Read if task.input.total() > 0 || io.bytes == 0 => self.begin_io(tag),
                    DataDirection::Write if task.out.total() >= io.bytes => self.pull(tag, io.bytes, false),
                    _ => self.refuse(tag, device),
                }
            }
            Step::Parameters { bytes } => {
                let Some(task) = self.task(tag) else { return };
                if task.out.total() >= bytes { self.pull(tag, bytes, true) } else { self.refuse(tag, device) }
            }
        }
    }

    /// Ends a task whose buffers contradict its CDB.
    fn refuse(&mut self, tag: IoTag, device: &mut Device) {
        let Some(unit) = self.task(tag).map(|task| task.unit) else { return };
        device.abandon(self.id(tag, unit));
        self.respond(tag, Response::check(INVALID_COMMAND_IU));
    }

    fn begin_io(&mut self, tag: IoTag) {
        let nexus = self.nexus;
        let Some(task) = self.task(tag) else { return };
        let Some(BlockIo { unit, op, lba, blocks, bytes, fua }) = task.io else { return };
        task.state = State::Io;
        let bytes = if op == IoOp::Read { bytes.min(task.input.total()) } else { bytes };
        self.outputs.push_back(Output::Io(Io { tag, nexus, unit, op, lba, blocks, bytes, fua }));
    }

    fn pull(&mut self, tag: IoTag, bytes: u32, parameters: bool) {
        let Some(task) = self.task(tag) else { return };
        task.state = State::Pulling { parameters };
        let from = task.out.clone();
        if bytes == 0 && !parameters {
            return self.begin_io(tag);
        }
        task.pulled = bytes;
        if self.config.streams && !parameters && self.begins_early(tag) {
            self.begin_io(tag);
        }
        self.outputs.push_back(Output::Pull { tag, from, bytes });
    }

    /// Returns whether the block I/O of a task begins before its data have arrived, and takes note
    /// of it.
    fn begins_early(&mut self, tag: IoTag) -> bool {
        let Some(task) = self.task(tag) else { return false };
        task.is_pulling = task.io.is_some_and(|io| io.op == IoOp::Write);
        task.is_pulling
    }

    fn pulled(&mut self, tag: IoTag, bytes: &[u8], device: &mut Device) {
        if let Some(task) = self.task(tag).filter(|task| task.is_pulling) {
            task.is_pulling = false;
            if let Some(status) = task.ended.take() {
                self.io_done(tag, status, device);
            }
            return;
        }
        let Some(&mut Task { state: State::Pulling { parameters }, unit, .. }) = self.task(tag) else { return };
        if parameters {
            let step = device.parameters(self.id(tag, unit), bytes);
            self.go_on(tag, step, device);
        } else {
            self.begin_io(tag);
        }
    }

    fn io_done(&mut self, tag: IoTag, status: IoStatus, device: &mut Device) {
        if let Some(task) = self.task(tag).filter(|task| task.is_pulling) {
            task.ended = Some(status);
            return;
        }
        let Some(&mut Task { state: State::Io, io: Some(io), unit, .. }) = self.task(tag) else { return };
        let step = device.io_done(self.id(tag, unit), io.op, status);
        match step {
            Step::Done(response) if io.op == IoOp::Read && status == IoStatus::Good => {
                let Some(task) = self.task(tag) else { return };
                let (to, bytes) = (task.input.clone(), io.bytes.min(task.input.total()));
                let residual = i64::from(task.input.total()) - i64::from(io.bytes);
                if bytes > 0 {
                    self.outputs.push_back(Output::Push { tag, to, bytes, data: Vec::new() });
                }
                self.finish(tag, response, residual);
            }
            step => self.go_on(tag, step, device),
        }
    }

    /// Ends a task with data of the device, or without data.
    fn respond(&mut self, tag: IoTag, mut response: Response) {
        let Some(task) = self.task(tag) else { return };
        let moved = response.data.len() as u32;
        let (to, total) = (task.input.clone(), task.input.total());
        let bytes = moved.min(total);
        if bytes > 0 {
            response.data.truncate(bytes as usize);
            let data = std::mem::take(&mut response.data);
            self.outputs.push_back(Output::Push { tag, to, bytes, data });
        }
        self.finish(tag, response, i64::from(total) - i64::from(moved));
    }

    fn finish(&mut self, tag: IoTag, ended: Response, in_residual: i64) {
        let Some(slot) = self.slot(tag) else { return };
        let Some(task) = self.tasks[slot].take() else { return };
        self.outputs.push_back(Output::Send(Iu::Rsp(Rsp {
            delta: 1,
            tag: task.tag,
            status: ended.status,
            out_residual: i64::from(task.out.total()) - i64::from(task.pulled),
            in_residual,
            response: None,
            sense: ended.sense.map(|sense| sense.to_bytes().into_vec()).unwrap_or_default(),
        })));
    }

    fn manage(&mut self, request: &TskMgmt, device: &mut Device) {
        let unit = device.unit(self.nexus, request.lun);
        let mut delta = 1;
        let function = match request.function {
            0x02 => Some(TaskManagement::AbortTaskSet),
            0x04 => Some(TaskManagement::ClearTaskSet),
            0x08 => Some(TaskManagement::LunReset),
            0x40 => Some(TaskManagement::ClearAca),
            _ => None,
        };
        let code = match function {
            None if request.function == 0x01 => {
                let is_it = |task: &Option<Task>| task.as_ref().is_some_and(|task| task.tag == request.task_tag);
                if let Some(slot) = self.tasks.iter().position(is_it) {
                    self.drop_task(slot, device);
                    delta += 1;
                }
                response::COMPLETE
            }
            None => response::NOT_SUPPORTED,
            Some(function) => match device.manage(self.nexus, unit, function) {
                Managed::Complete(ends) => {
                    if let Some(ends) = ends {
                        delta += self.end_tasks(&ends, device);
                        self.outputs.push_back(Output::Ends(ends));
                    }
                    response::COMPLETE
                }
                Managed::IncorrectLun => response::INVALID,
            },
        };
        let response = Some(code);
        self.outputs.push_back(Output::Send(Iu::Rsp(Rsp { delta, tag: request.tag, response, ..Rsp::default() })));
    }

    /// Ends tasks. Returns the number of those without a response, whose credit has to return.
    fn end_tasks(&mut self, ends: &Ends, device: &mut Device) -> i32 {
        let mut silent = 0;
        for slot in 0..self.tasks.len() {
            let Some(task) = &self.tasks[slot] else { continue };
            if !ends.affects(task.unit, self.nexus) {
                continue;
            }
            let tag = task.tag;
            self.drop_task(slot, device);
            if ends.answered(self.nexus) {
                let aborted = Rsp { delta: 1, tag, status: status::TASK_ABORTED, ..Rsp::default() };
                self.outputs.push_back(Output::Send(Iu::Rsp(aborted)));
            } else {
                silent += 1;
            }
        }
        silent
    }

    fn drop_task(&mut self, slot: usize, device: &mut Device) {
        let Some(task) = self.tasks[slot].take() else { return };
        let tag = IoTag::new(slot as u16, self.generations[slot]);
        device.abandon(self.id(tag, task.unit));
        if task.state != State::Waiting {
            self.outputs.push_back(Output::Cancel(tag));
        }
    }

    fn close(&mut self, device: &mut Device) {
        (0..self.tasks.len()).for_each(|slot| self.drop_task(slot, device));
        self.phase = Phase::Closed;
        self.outputs.push_back(Output::Closed);
    }
}
