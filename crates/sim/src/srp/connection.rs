//! Connections of channels: open, deliver, end.

use super::count::ChannelCount;
use super::storage_adapter::Leaving;
use super::{Cx, Job, Srp, Stage, initiator, storage_adapter, target};
use crate::infiniband::{Content, Endpoint, Event};
use sanloom_scsi::scsi::{IoTag, NexusId};
use sanloom_scsi::srp::target::Target;
use sanloom_transport::infiniband::rc::packet::Operation;
use sanloom_transport::infiniband::rc::requester::Work;
use sanloom_wire::srp::{Buffer, CMD_BYTES, Iu, RSP_BYTES};
use std::collections::VecDeque;

/// Receives that each end posts beyond the request limit of the target: logins, task management
/// and logouts.
const SPARE_RECEIVES: u32 = 8;

/// The target's end of a connection.
pub(super) struct TargetEnd {
    pub machine: Target,
    pub nexus: NexusId,
}

/// Data that the target reads from the host as one unit.
pub(super) struct Pull {
    /// Number of the last work request.
    pub last: u64,
    /// `None` for a task that has ended.
    pub tag: Option<IoTag>,
    pub bytes: u32,
    /// Bytes of the command that have arrived with it.
    pub arrived: u32,
    /// True for the last data of the command.
    pub is_end: bool,
}

/// A connection; its ends have the numbers 2n and 2n + 1, the host's first.
pub(super) struct Connection {
    /// Number of the channel.
    pub channel: u32,
    /// Information units in flight from the host and from the target.
    pub units: [VecDeque<Iu>; 2],
    /// `None` after its end.
    pub target: Option<TargetEnd>,
    /// True from the login to the end of the channel.
    pub is_logged_in: bool,
    /// True if the target has logged out: its queue pair stays for T_LOGOUT.
    pub logs_out: bool,
    /// Number among the connections of the storage system, which stays while its block I/O is in
    /// progress.
    pub slot: u16,
    /// Block I/O in progress.
    pub ios: u32,
    /// READs of the target.
    pub pulls: VecDeque<Pull>,
    /// Data of reads that were passed on before their end, in bytes.
    pub passed: Vec<(IoTag, u32)>,
    pub last_work: u64,
    /// Data and information units of the target behind its bus.
    pub leaving: VecDeque<Leaving>,
    /// READs whose data the bus of the target moves.
    pub arriving: VecDeque<Pull>,
}

/// Returns the number of bytes of an information unit.
fn bytes(unit: &Iu) -> u32 {
    let of_buffer = |buffer: &Buffer| match buffer {
        Buffer::None => 0,
        Buffer::Direct(_) => 16,
        Buffer::Indirect { list, .. } => 20 + 16 * list.len(),
        Buffer::Immediate(_) => 4,
    };
    let bytes = match unit {
        Iu::Cmd(command) => {
            CMD_BYTES + command.additional_cdb.len() + of_buffer(&command.out) + of_buffer(&command.input)
        }
        Iu::Rsp(response) => RSP_BYTES + if response.response.is_some() { 4 } else { 0 } + response.sense.len(),
        other => other.encoded_len(),
    };
    bytes as u32
}

/// Opens the connection of a channel and sends the login.
pub(super) fn open(srp: &mut Srp, cx: &mut Cx<'_>, number: u32) {
    let channel = &mut srp.channels[number as usize];
    if channel.stage != Stage::Idle {
        return;
    }
    let plan = &channel.plan;
    let (storage, login, connection, reconnect) = (plan.storage, plan.login, plan.connection, plan.reconnect);
    let level = plan.level;
    let end = |side: usize| Endpoint { interface: plan.interfaces[side], key: plan.keys[side], level };
    let ends = [end(0), end(1)];
    let system = srp.systems.get(usize::from(storage)).and_then(Option::as_ref);
    let limit = system.map(|system| u32::from(system.plan.config.request_limit));
    let first = srp.pairs.connect(cx.net, ends, number, connection);
    let (Some(first), Some(limit)) = (first, limit) else {
        // The subnet manager does not reach an interface, or the port of the target drops requests
        // of another partition (IBA volume 1, 10.9.4).
        channel.tried = true;
        channel.count.partition_refusals += u64::from(!ends[0].key.matches(ends[1].key));
        let at_ps = cx.net.now() + reconnect.as_ns() * 1_000;
        return srp.agenda.plan(cx.net, at_ps, Job::Connect(number));
    };
    debug_assert_eq!(first as usize, 2 * srp.connections.len(), "connections have the numbers of their pairs");
    channel.stage = Stage::Opening;
    channel.connection = first / 2;
    channel.count.connections += 1;
    for end in [first, first + 1] {
        srp.pairs.post_receives(end, limit + SPARE_RECEIVES);
    }
    let target = target::new_end(srp, cx, number);
    srp.connections.push(Connection {
        channel: number,
        units: [VecDeque::new(), VecDeque::new()],
        target: Some(target),
        is_logged_in: false,
        logs_out: false,
        slot: u16::MAX,
        ios: 0,
        pulls: VecDeque::new(),
        passed: Vec::new(),
        last_work: 0,
        leaving: VecDeque::new(),
        arriving: VecDeque::new(),
    });
    target::occupy_slot(srp, first / 2);
    initiator::log_in(srp, cx, number, login);
}

/// Sends an information unit from an end.
pub(super) fn send(srp: &mut Srp, cx: &mut Cx<'_>, end: u32, unit: Iu) {
    let work = Work { id: 0, operation: Operation::Send, length: bytes(&unit) };
    srp.pairs.post_with(cx.net, end, work, || {
        let mut bytes = Vec::new();
        unit.emit(&mut bytes);
        Content::Bytes(bytes)
    });
    srp.connections[(end / 2) as usize].units[(end % 2) as usize].push_back(unit);
}

/// Handles the events of all connections.
pub(super) fn drain(srp: &mut Srp, cx: &mut Cx<'_>) {
    while let Some((end, event)) = srp.pairs.poll_event() {
        let is_host = end.is_multiple_of(2);
        match event {
            Event::Message(Operation::Send, _) => {
                srp.pairs.post_receives(end, 1);
                let units = &mut srp.connections[(end / 2) as usize].units;
                let Some(unit) = units[usize::from(is_host)].pop_front() else { continue };
                match is_host {
                    true => initiator::unit(srp, cx, end / 2, unit),
                    false => storage_adapter::arrive(srp, cx, end / 2, unit),
                }
            }
            Event::Completed(id) if !is_host => target::completed(srp, cx, end / 2, id),
            Event::Failed(_) | Event::Rejected(_) => match is_host {
                true => initiator::lose(srp, cx, srp.connections[(end / 2) as usize].channel, end / 2),
                false => target::end(srp, cx, end / 2),
            },
            // Data of RDMA; completed SENDs; requests of a connection that has failed.
            Event::Message(..) | Event::Completed(_) | Event::Flushed(_) => {}
            Event::Datagram(..) | Event::TooLong(_) => {}
        }
    }
}

/// Returns the counters of a channel since the first login.
pub(super) fn total(srp: &Srp, channel: u32) -> ChannelCount {
    let state = &srp.channels[channel as usize];
    let mut count = state.count;
    if state.stage != Stage::Idle {
        let end = 2 * state.connection;
        count.repetitions += srp.pairs.repetitions(end) + srp.pairs.repetitions(end + 1);
    }
    count
}
