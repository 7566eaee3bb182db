//! Channel of one initiator: [`Channel`], a queue pair and the SRP target behind it.

use super::Context;
use super::pair::{Event, Purpose, QueuePair, Work};
use super::table;
use crate::storage::medium::BlockWork;
use crate::storage::workers::Owner;
use sanloom_scsi::scsi::{Io, IoOp, IoStatus, IoTag, NexusId};
use sanloom_scsi::srp::target::{Input, Output, Target};
use sanloom_scsi::time::Instant;
use sanloom_wire::cdb::status;
use sanloom_wire::infiniband::roce::RocePacket;
use sanloom_wire::srp::{Buffer, Descriptor, Iu, LoginReq, PortId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Longest RDMA READ in bytes (`srp_max_rdma_size` of the Linux target).
const READ_BYTES: u32 = 65_536;
/// Reason of the end of a channel.
const INCOMPLETE: &str = "the memory descriptors of a CMD have fewer bytes than their total";

/// Ends of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ends {
    /// Number of the channel, never used again.
    pub number: u64,
    /// Index of the socket.
    pub socket: usize,
    /// Communication ID at the connection manager of the socket.
    pub cm: u32,
    /// Address of the initiator.
    pub peer: Ipv4Addr,
    /// Index of the target.
    pub target: usize,
    /// Index of the storage system, and its port.
    pub system: usize,
    /// Number of the port in the device.
    pub port: u16,
    /// Initiator port.
    pub initiator: PortId,
}

/// Counters of a channel, or of all channels of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Commands and task management requests.
    pub requests: u64,
    /// Bytes written to the initiator and read from it.
    pub moved_bytes: [u64; 2],
    /// Times that packets were repeated.
    pub repetitions: u64,
    /// Packets and information units that do not belong to the state of the channel.
    pub unexpected: u64,
}

impl Counters {
    pub(super) fn add(&mut self, other: Counters) {
        self.requests += other.requests;
        self.moved_bytes[0] += other.moved_bytes[0];
        self.moved_bytes[1] += other.moved_bytes[1];
        self.repetitions += other.repetitions;
        self.unexpected += other.unexpected;
    }
}

/// Data of a task.
#[derive(Debug, Default)]
struct TaskBuffer {
    data: Vec<u8>,
    /// RDMA READs that have not ended.
    left: usize,
    /// True if block I/O fills the buffer.
    is_read: bool,
}

/// An information unit that waits.
#[derive(Debug)]
struct Held {
    unit: Iu,
    /// Tables of descriptors that have not arrived.
    tables: usize,
}

/// Channel of one initiator.
#[derive(Debug)]
pub(super) struct Channel {
    pub ends: Ends,
    pub nexus: NexusId,
    pub pair: QueuePair,
    machine: Target,
    buffers: BTreeMap<IoTag, TaskBuffer>,
    /// Information units behind a CMD whose tables of descriptors are being read, with that CMD in
    /// front.
    held: VecDeque<Held>,
    /// Maximum number of information units that wait.
    most_held: usize,
    /// Tasks whose writes are at a worker.
    writing: BTreeSet<IoTag>,
    /// Responses to task management and of aborted tasks, which wait for writes and RDMA READs of
    /// aborted tasks.
    deferred: VecDeque<Iu>,
    /// Reason of the end, once the machine has closed.
    pub over: Option<String>,
    counters: Counters,
}

impl Channel {
    /// Channel of a new connection.
    ///
    /// `most_held`: maximum number of information units that wait.
    pub fn new(ends: Ends, nexus: NexusId, pair: QueuePair, machine: Target, most_held: usize) -> Channel {
        Channel {
            ends,
            nexus,
            pair,
            machine,
            buffers: BTreeMap::new(),
            held: VecDeque::new(),
            most_held,
            writing: BTreeSet::new(),
            deferred: VecDeque::new(),
            over: None,
            counters: Counters::default(),
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        let unexpected = self.pair.unexpected + self.machine.violations;
        Counters { repetitions: self.pair.repetitions(), unexpected, ..self.counters }
    }

    /// Tasks whose writes are at a worker.
    pub fn writing(&self) -> &BTreeSet<IoTag> {
        &self.writing
    }

    /// Returns whether an aborted task may still write. Only a task in progress has a buffer.
    pub fn writes_aborted(&self) -> bool {
        self.writing.iter().any(|tag| !self.buffers.contains_key(tag))
    }

    /// Sends the responses that waited for aborted tasks, unless such a task may still read from
    /// the memory of the initiator.
    pub fn send_deferred(&mut self, now: Instant) {
        if self.deferred.is_empty() || self.pair.reading().any(|tag| !self.buffers.contains_key(&tag)) {
            return;
        }
        for unit in std::mem::take(&mut self.deferred) {
            self.send(now, &unit);
        }
    }

    fn send(&mut self, now: Instant, unit: &Iu) {
        let mut bytes = Vec::new();
        unit.emit(&mut bytes);
        self.pair.post(now, Work::Send(bytes));
    }

    /// Logs the initiator in. Returns the response, which is a LOGIN_REJ if the login failed.
    pub fn log_in(&mut self, cx: &mut Context<'_>, login: LoginReq) -> Option<Iu> {
        self.machine.handle(Input::Receive(Iu::LoginReq(login)), &mut cx.systems[self.ends.system].device);
        match self.machine.poll_output() {
            Some(Output::Send(unit)) => Some(unit),
            _ => None,
        }
    }

    /// Processes a packet of the initiator.
    pub fn receive(&mut self, cx: &mut Context<'_>, packet: &RocePacket<'_>) {
        self.pair.receive(cx.now, packet);
        self.drain_pair(cx);
    }

    /// Calls the queue pair when its deadline is over.
    pub fn timeout(&mut self, cx: &mut Context<'_>) {
        self.pair.timeout(cx.now);
        self.drain_pair(cx);
    }

    /// Passes finished block I/O to the machine.
    pub fn complete_io(&mut self, cx: &mut Context<'_>, tag: IoTag, status: IoStatus, data: Vec<u8>) {
        self.writing.remove(&tag);
        self.keep_read(tag, data);
        self.input(cx, Input::IoDone { tag, status });
        self.drain_pair(cx);
    }

    /// Keeps the data of a read. A write needs its data no longer, nor does an aborted task.
    fn keep_read(&mut self, tag: IoTag, data: Vec<u8>) {
        if let Some(buffer) = self.buffers.get_mut(&tag).filter(|buffer| buffer.is_read) {
            buffer.data = data;
        }
    }

    fn drain_pair(&mut self, cx: &mut Context<'_>) {
        while let Some(event) = self.pair.poll_event() {
            // Units that were under way when the channel ended begin nothing.
            if self.over.is_some() {
                continue;
            }
            match event {
                Event::Unit(bytes) => match Iu::parse(&bytes) {
                    Ok(unit) => self.unit(cx, unit),
                    Err(error) => self.end(cx, &format!("an information unit is invalid: {error}")),
                },
                Event::Read { purpose: Purpose::Data(tag, at), data } => self.arrived(cx, tag, at, &data),
                Event::Read { purpose: Purpose::Table(input), data } => self.table(cx, input, &data),
                Event::Failed(reason) => self.end(cx, &reason),
            }
        }
    }

    /// Processes an information unit. A CMD waits for its tables of descriptors, and all later
    /// units wait with it, because task management may be among them.
    fn unit(&mut self, cx: &mut Context<'_>, unit: Iu) {
        self.counters.requests += u64::from(matches!(unit, Iu::Cmd(_) | Iu::TskMgmt(_)));
        let tables = match &unit {
            Iu::Cmd(cmd) => match (table::missing(&cmd.out), table::missing(&cmd.input)) {
                (Ok(out), Ok(input)) => [(false, out), (true, input)],
                (Err(why), _) | (_, Err(why)) => return self.end(cx, why),
            },
            _ => [(false, None), (true, None)],
        };
        let reads: Vec<_> = tables.into_iter().filter_map(|(input, table)| Some((input, table?))).collect();
        if reads.is_empty() && self.held.is_empty() {
            return self.input(cx, Input::Receive(unit));
        }
        if self.held.len() >= self.most_held {
            return self.end(cx, "the initiator exceeds its request limit");
        }
        self.held.push_back(Held { unit, tables: reads.len() });
        for (input, from) in reads {
            self.pair.post(cx.now, Work::Read { from, purpose: Purpose::Table(input), data: Vec::new() });
        }
    }

    /// Enters a table that has arrived. RDMA READs end in their order, so it is of the first CMD
    /// that waits for one.
    fn table(&mut self, cx: &mut Context<'_>, input: bool, data: &[u8]) {
        let Some(held) = self.held.iter_mut().find(|held| held.tables > 0) else { return };
        held.tables -= 1;
        if let Iu::Cmd(cmd) = &mut held.unit {
            table::complete(if input { &mut cmd.input } else { &mut cmd.out }, data);
        }
        while self.over.is_none()
            && self.held.front().is_some_and(|held| held.tables == 0)
            && let Some(Held { unit, .. }) = self.held.pop_front()
        {
            self.input(cx, Input::Receive(unit));
        }
    }

    /// Ends the channel for a reason.
    pub fn end(&mut self, cx: &mut Context<'_>, reason: &str) {
        if let Some(down) = self.break_off(reason) {
            self.input(cx, down);
        }
    }

    /// Keeps the reason of the end, and returns the input that ends the machine.
    fn break_off(&mut self, reason: &str) -> Option<Input> {
        let is_first = self.over.is_none();
        self.over.get_or_insert_with(|| reason.to_owned());
        is_first.then_some(Input::ChannelDown)
    }

    /// Copies data of an RDMA READ into the buffer of their task.
    fn arrived(&mut self, cx: &mut Context<'_>, tag: IoTag, at: usize, data: &[u8]) {
        let Some(buffer) = self.buffers.get_mut(&tag) else { return };
        if let Some(room) = buffer.data.get_mut(at..at + data.len()) {
            room.copy_from_slice(data);
        }
        self.counters.moved_bytes[1] += data.len() as u64;
        buffer.left = buffer.left.saturating_sub(1);
        if buffer.left == 0 {
            let pulled = self.pulled(tag);
            self.input(cx, pulled);
        }
    }

    fn pulled(&mut self, tag: IoTag) -> Input {
        let bytes = match self.machine.pulls_parameters(tag) {
            true => self.buffers.remove(&tag).unwrap_or_default().data,
            false => Vec::new(),
        };
        Input::Pulled { tag, bytes }
    }

    /// Passes an input to the machine and executes its outputs, and those that follow from them.
    pub fn input(&mut self, cx: &mut Context<'_>, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let ended = if let Input::IoDone { tag, .. } = &input { Some(*tag) } else { None };
            self.machine.handle(input, &mut cx.systems[self.ends.system].device);
            while let Some(output) = self.machine.poll_output() {
                inputs.extend(self.execute(cx, output));
            }
            if let Some(tag) = ended {
                self.buffers.remove(&tag);
            }
        }
        cx.systems[self.ends.system].drain_outside(cx.now);
    }

    /// Executes an output of the machine. Returns an input that follows from it at once.
    fn execute(&mut self, cx: &mut Context<'_>, output: Output) -> Option<Input> {
        match output {
            // A command that was aborted may be repeated, and its data may be written by then.
            Output::Send(unit) if matches!(&unit, Iu::Rsp(rsp) if rsp.response.is_some() || rsp.status == status::TASK_ABORTED) =>
            {
                self.deferred.push_back(unit);
            }
            Output::Send(unit) => self.send(cx.now, &unit),
            Output::Pull { tag, from, bytes } => return self.pull(cx, tag, &from, bytes),
            Output::Push { tag, to, bytes, data } => return self.push(cx, tag, &to, bytes, data),
            Output::Io(io) => return self.start_io(cx, &io),
            // A write at a worker, and an RDMA READ in progress, cannot be recalled.
            Output::Cancel(tag) => _ = self.buffers.remove(&tag),
            Output::Ends(ends) => cx.ends.push((self.ends, ends)),
            Output::Closed => _ = self.over.get_or_insert_with(|| "the initiator has logged out".to_owned()),
        }
        None
    }

    /// Reads from the memory of the initiator.
    fn pull(&mut self, cx: &Context<'_>, tag: IoTag, from: &Buffer, bytes: u32) -> Option<Input> {
        let Some(parts) = table::parts(from, bytes) else { return self.break_off(INCOMPLETE) };
        let mut pieces = Vec::new();
        let mut at = 0;
        for Descriptor { address, key, length } in parts {
            for begun in (0..length).step_by(READ_BYTES as usize) {
                let length = READ_BYTES.min(length - begun);
                pieces.push((Descriptor { address: address.wrapping_add(begun.into()), key, length }, at));
                at += length as usize;
            }
        }
        let buffer = TaskBuffer { data: vec![0; bytes as usize], left: pieces.len(), is_read: false };
        self.buffers.insert(tag, buffer);
        if pieces.is_empty() {
            return Some(self.pulled(tag));
        }
        for (from, at) in pieces {
            self.pair.post(cx.now, Work::Read { from, purpose: Purpose::Data(tag, at), data: Vec::new() });
        }
        None
    }

    /// Writes to the memory of the initiator.
    fn push(&mut self, cx: &Context<'_>, tag: IoTag, to: &Buffer, bytes: u32, data: Vec<u8>) -> Option<Input> {
        let data = if data.is_empty() { self.buffers.remove(&tag).unwrap_or_default().data } else { data };
        let Some(parts) = table::parts(to, bytes).filter(|_| data.len() >= bytes as usize) else {
            return self.break_off(INCOMPLETE);
        };
        self.counters.moved_bytes[0] += u64::from(bytes);
        let data = Arc::new(data);
        let mut at = 0;
        for to in parts {
            self.pair.post(cx.now, Work::Write { to, data: data.clone(), at });
            at += to.length as usize;
        }
        None
    }

    fn start_io(&mut self, cx: &mut Context<'_>, io: &Io) -> Option<Input> {
        let Io { tag, unit, op, lba, blocks, bytes, fua, .. } = *io;
        let data = self.buffers.remove(&tag).unwrap_or_default().data;
        let (work, owner) = (BlockWork { op, lba, blocks, bytes, fua }, Owner::Channel { channel: self.ends.number });
        self.buffers.insert(tag, TaskBuffer { is_read: op == IoOp::Read, ..TaskBuffer::default() });
        let Some((data, status)) = cx.systems[self.ends.system].perform(unit, owner, tag, work, data) else {
            if op.changes_medium() {
                self.writing.insert(tag);
            }
            return None;
        };
        self.keep_read(tag, data);
        Some(Input::IoDone { tag, status })
    }
}
