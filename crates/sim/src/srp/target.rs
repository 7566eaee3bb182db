//! The storage system's side of a channel.

use super::connection::{Connection, Pull, TargetEnd};
use super::storage_adapter::Leaving;
use super::{CHANNEL, Cx, Srp, storage_adapter};
use crate::infiniband::Content;
use sanloom_scsi::scsi::{self, Ends, Io, IoStatus, IoTag, Notice};
use sanloom_scsi::srp::target::{self, Input, Output, Target};
use sanloom_transport::infiniband::rc::packet::Operation;
use sanloom_transport::infiniband::rc::requester::Work;
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::srp::Iu;
use std::ops::Range;

/// Longest RDMA of a target (`srp_max_rdma_size` of the Linux target).
const RDMA_BYTES: u32 = 65_536;
/// Reason code of T_LOGOUT: none (SRP, 6.5).
const NO_REASON: u32 = 0;

/// Returns the target's end of a new connection of a channel.
pub(super) fn new_end(srp: &mut Srp, cx: &mut Cx<'_>, channel: u32) -> TargetEnd {
    let plan = &srp.channels[channel as usize].plan;
    let config = srp.systems[usize::from(plan.storage)].as_ref().map(|system| system.plan.config);
    let initiator = TransportId::Srp(Box::new(plan.login.initiator));
    let nexus = cx.around.device(plan.storage).connect(plan.port, initiator);
    let config = config.unwrap_or(target::Config { request_limit: 1, unit_bytes: [0; 2], streams: false });
    TargetEnd { machine: Target::new(config, nexus), nexus }
}

/// Gives a new connection its number among those of its storage system.
pub(super) fn occupy_slot(srp: &mut Srp, connection: u32) {
    let channel = srp.connections[connection as usize].channel;
    let storage = srp.channels[channel as usize].plan.storage;
    let Some(Some(system)) = srp.systems.get_mut(usize::from(storage)) else { return };
    let slot = system.slots.take(connection);
    srp.connections[connection as usize].slot = slot;
}

/// Returns the storage system of a connection, and the owner of its block I/O.
fn owner(srp: &Srp, connection: u32) -> (u16, u16) {
    let state = &srp.connections[connection as usize];
    let plan = &srp.channels[state.channel as usize].plan;
    let Some(Some(system)) = srp.systems.get(usize::from(plan.storage)) else { return (plan.storage, CHANNEL) };
    let port = plan.port - system.plan.first_port;
    (plan.storage, CHANNEL | (state.slot * system.plan.ports + port))
}

/// Handles an information unit of the host.
pub(super) fn unit(srp: &mut Srp, cx: &mut Cx<'_>, connection: u32, unit: Iu) {
    if matches!(unit, Iu::LoginReq(_)) {
        // A login ends other channels of the same ports (SRP, 5.7).
        let channel = srp.connections[connection as usize].channel;
        let storage = srp.channels[channel as usize].plan.storage;
        let of_ports = |other: &u32| srp.connections[*other as usize].channel == channel && *other != connection;
        let others: Vec<u32> = connections(srp, storage).into_iter().filter(of_ports).collect();
        others.into_iter().for_each(|other| end(srp, cx, other));
        let host = srp.channels[channel as usize].plan.host;
        let is_admitted = cx.around.admits(cx.net, storage, host);
        let state = &mut srp.connections[connection as usize];
        if let Some(target) = &mut state.target
            && !state.is_logged_in
        {
            match is_admitted {
                true => {
                    state.is_logged_in = true;
                    cx.around.session_began(cx.net, storage, host, target.nexus);
                }
                false => target.machine.set_unavailable(),
            }
        }
    }
    input(srp, cx, connection, Input::Receive(unit));
}

/// Handles the end of a work request.
pub(super) fn completed(srp: &mut Srp, cx: &mut Cx<'_>, connection: u32, id: u64) {
    let pulls = &mut srp.connections[connection as usize].pulls;
    if pulls.front().is_some_and(|pull| pull.last == id)
        && let Some(pull) = pulls.pop_front()
        && pull.tag.is_some()
    {
        storage_adapter::arrive_data(srp, cx, connection, pull);
    }
}

/// Reports data of a READ to the target, when they are in memory.
pub(super) fn pulled(srp: &mut Srp, cx: &mut Cx<'_>, connection: u32, pull: &Pull) {
    let Some(tag) = pull.tag else { return };
    let (storage, owner) = owner(srp, connection);
    cx.around.arrived(cx.net, storage, owner, tag, pull.arrived);
    if pull.is_end {
        // Payload does not exist, and no workload sends parameter lists.
        input(srp, cx, connection, Input::Pulled { tag, bytes: Vec::new() });
    }
}

/// Ends the target's end of a connection.
pub(super) fn end(srp: &mut Srp, cx: &mut Cx<'_>, connection: u32) {
    srp.pairs.close(2 * connection + 1);
    input(srp, cx, connection, Input::ChannelDown);
}

/// Logs out of the channels of a host with a storage system; `None`: of those of all hosts.
pub(super) fn log_out(srp: &mut Srp, cx: &mut Cx<'_>, storage: u16, host: Option<u16>) {
    for connection in connections(srp, storage) {
        let state = &mut srp.connections[connection as usize];
        let own = srp.channels[state.channel as usize].plan.host;
        if state.is_logged_in && host.is_none_or(|host| host == own) {
            state.logs_out = true;
            input(srp, cx, connection, Input::Logout(NO_REASON));
        }
    }
}

/// Ends the target's ends of all connections of a storage system.
pub(super) fn end_all(srp: &mut Srp, cx: &mut Cx<'_>, storage: u16) {
    for connection in connections(srp, storage) {
        end(srp, cx, connection);
    }
}

/// Passes an input to the target of a connection, and executes its outputs.
fn input(srp: &mut Srp, cx: &mut Cx<'_>, connection: u32, input: Input) {
    let (storage, owner) = owner(srp, connection);
    // Data that a gateway has passed on before its command was complete.
    let mut before = match &input {
        Input::IoDone { tag, .. } => take_passed(&mut srp.connections[connection as usize], *tag),
        _ => 0,
    };
    let Some(target) = &mut srp.connections[connection as usize].target else { return };
    target.machine.handle(input, cx.around.device(storage));
    loop {
        let state = &mut srp.connections[connection as usize];
        let Some(target) = &mut state.target else { break };
        let Some(output) = target.machine.poll_output() else { break };
        match output {
            Output::Send(unit) => storage_adapter::send(srp, cx, connection, unit),
            Output::Pull { tag, bytes, .. } => {
                let system = srp.systems.get(usize::from(storage)).and_then(Option::as_ref);
                let grain = system.and_then(|system| system.plan.grain);
                if grain.is_some() {
                    // The block I/O of a write has begun, and none of its data have arrived.
                    cx.around.arrived(cx.net, storage, owner, tag, 0);
                }
                let mut from = 0_u32;
                loop {
                    let arrived = bytes.min(from.saturating_add(grain.unwrap_or(bytes).max(1)));
                    let last = rdma(srp, cx, connection, Operation::Read, from..arrived);
                    let is_end = arrived == bytes;
                    let pull = Pull { last, tag: Some(tag), bytes: arrived - from, arrived, is_end };
                    srp.connections[connection as usize].pulls.push_back(pull);
                    from = arrived;
                    if is_end {
                        break;
                    }
                }
            }
            Output::Push { tag, bytes, .. } => {
                let from = std::mem::take(&mut before).min(bytes);
                if from < bytes {
                    storage_adapter::write(srp, cx, connection, tag, from..bytes);
                }
            }
            Output::Io(io) => submit(srp, cx, connection, (storage, owner), &io),
            Output::Cancel(tag) => {
                let pulls = state.pulls.iter_mut().chain(&mut state.arriving);
                pulls.filter(|pull| pull.tag == Some(tag)).for_each(|pull| pull.tag = None);
                state.leaving.retain(|part| !matches!(part, Leaving::Data(_, of, _) if *of == tag));
                if cx.around.cancel(cx.net, storage, owner, tag) {
                    srp.connections[connection as usize].ios -= 1;
                } else {
                    // A gateway ends it early at the storage behind.
                    cx.around.recall(cx.net, storage, owner, tag);
                }
            }
            Output::Ends(ends) => end_others(srp, cx, connection, ends),
            Output::Closed => {
                let nexus = target.nexus;
                state.target = None;
                let logs_out = state.logs_out;
                state.leaving.retain(|part| logs_out && matches!(part, Leaving::Unit(_)));
                state.arriving.iter_mut().for_each(|pull| pull.tag = None);
                if std::mem::take(&mut state.is_logged_in) {
                    let host = srp.channels[state.channel as usize].plan.host;
                    cx.around.session_ended(cx.net, storage, host, nexus);
                }
                cx.around.device(storage).disconnect(nexus);
                if !logs_out {
                    srp.pairs.close(2 * connection + 1);
                }
                free_slot(srp, storage, connection);
            }
        }
    }
    while let Some(output) = cx.around.device(storage).poll_output() {
        match output {
            // The driver brings back notices for the ports of SRP.
            scsi::Output::Port { port, notice } => cx.around.notify(cx.net, storage, port, notice),
            // Persisting a record takes no simulated time.
            scsi::Output::Persist { seq, .. } => cx.around.device(storage).persisted(seq),
        }
    }
}

/// Returns the bytes of a read that were passed on before its end, and forgets them.
fn take_passed(connection: &mut Connection, tag: IoTag) -> u32 {
    let at = connection.passed.iter().position(|(own, _)| *own == tag);
    at.map_or(0, |at| connection.passed.swap_remove(at).1)
}

/// Writes the first `bytes` bytes of a read whose block I/O continues to the host.
pub(super) fn io_data(srp: &mut Srp, cx: &mut Cx<'_>, at: (u16, u16), tag: IoTag, bytes: u32) {
    let Some(connection) = connection_of(srp, at) else { return };
    let state = &mut srp.connections[connection as usize];
    if state.target.is_none() {
        return;
    }
    let before = take_passed(state, tag);
    state.passed.push((tag, bytes.max(before)));
    if bytes > before {
        storage_adapter::write(srp, cx, connection, tag, before..bytes);
    }
}

/// Returns the index of the host with this block I/O.
pub(super) fn host_of(srp: &Srp, at: (u16, u16)) -> Option<u16> {
    let state = &srp.connections[connection_of(srp, at)? as usize];
    Some(srp.channels[state.channel as usize].plan.host)
}

/// Returns the connection with this block I/O of a storage system.
fn connection_of(srp: &Srp, (storage, owner): (u16, u16)) -> Option<u32> {
    let system = srp.systems.get(usize::from(storage))?.as_ref()?;
    system.slots.end((owner & !CHANNEL) / system.plan.ports.max(1))
}

/// Posts RDMA of a target for a part of the data of a command. Returns the number of the last work
/// request.
pub(super) fn rdma(srp: &mut Srp, cx: &mut Cx<'_>, connection: u32, operation: Operation, part: Range<u32>) -> u64 {
    let bytes = part.end - part.start;
    let channel = srp.connections[connection as usize].channel;
    let side = usize::from(operation == Operation::Read);
    srp.channels[channel as usize].count.rdma_bytes[side] += u64::from(bytes);
    let mut left = bytes;
    loop {
        let state = &mut srp.connections[connection as usize];
        state.last_work += 1;
        let (id, length) = (state.last_work, left.min(RDMA_BYTES));
        let address = u64::from(part.end - left);
        let content = || Content::Data { address, seed: connection << 1 | side as u32 };
        srp.pairs.post_with(cx.net, 2 * connection + 1, Work { id, operation, length }, content);
        left -= length;
        if left == 0 {
            return id;
        }
    }
}

fn submit(srp: &mut Srp, cx: &mut Cx<'_>, connection: u32, (storage, owner): (u16, u16), io: &Io) {
    match cx.around.submit(cx.net, storage, owner, io) {
        None => srp.connections[connection as usize].ios += 1,
        Some(status) => {
            if let Some(target) = &mut srp.connections[connection as usize].target {
                target.machine.handle(Input::IoDone { tag: io.tag, status }, cx.around.device(storage));
            }
        }
    }
}

/// Returns all connections of a storage system whose targets have not ended.
fn connections(srp: &Srp, storage: u16) -> Vec<u32> {
    let Some(Some(system)) = srp.systems.get(usize::from(storage)) else { return Vec::new() };
    let is_open = |connection: &u32| srp.connections[*connection as usize].target.is_some();
    system.slots.all().filter(is_open).collect()
}

/// Ends tasks of other channels at the same port because of the task management of one.
fn end_others(srp: &mut Srp, cx: &mut Cx<'_>, connection: u32, ends: Ends) {
    let channel = srp.connections[connection as usize].channel;
    let plan = &srp.channels[channel as usize].plan;
    let at = (plan.storage, plan.port);
    notify(srp, cx, at, Some(connection), &Notice::End(ends));
}

/// Passes a notice to the channels at a port, except one.
pub(super) fn notify(
    srp: &mut Srp,
    cx: &mut Cx<'_>,
    (storage, port): (u16, u16),
    except: Option<u32>,
    notice: &Notice,
) {
    for connection in connections(srp, storage) {
        let state = &srp.connections[connection as usize];
        let Some(target) = &state.target else { continue };
        let is_its = match notice {
            Notice::Step { task, .. } => target.nexus == task.nexus,
            Notice::End(_) => srp.channels[state.channel as usize].plan.port == port,
        };
        if is_its && except != Some(connection) {
            input(srp, cx, connection, Input::Notice(notice.clone()));
        }
    }
}

/// Reports the end of block I/O to its channel.
pub(super) fn io_done(srp: &mut Srp, cx: &mut Cx<'_>, (storage, owner): (u16, u16), tag: IoTag, status: IoStatus) {
    let Some(connection) = connection_of(srp, (storage, owner)) else { return };
    let state = &mut srp.connections[connection as usize];
    state.ios -= 1;
    match state.target.is_some() {
        true => input(srp, cx, connection, Input::IoDone { tag, status }),
        false => free_slot(srp, storage, connection),
    }
}

/// Frees the number of a connection that has ended, when its block I/O has ended.
fn free_slot(srp: &mut Srp, storage: u16, connection: u32) {
    let state = &mut srp.connections[connection as usize];
    state.pulls.clear();
    let (slot, ios) = (state.slot, state.ios);
    if ios == 0
        && let Some(Some(system)) = srp.systems.get_mut(usize::from(storage))
    {
        system.slots.free(slot);
    }
}
