//! The storage system's side of a session.

use super::connection::{self, Machine};
use super::{Cx, Iscsi, Peer, SESSION, System, forward};
use sanloom_scsi::iscsi::sequence::Statuses;
use sanloom_scsi::iscsi::target::{
    CloseReason, ConnectionId, Destination, Established, Input, Login, Output, Session, login,
};
use sanloom_scsi::scsi::{self, Ends, Io, IoStatus, IoTag, Notice};
use sanloom_scsi::time::Span;
use sanloom_wire::iscsi::{Head, Header};

/// Time after which an incomplete login is abandoned (`node.conn[0].timeo.login_timeout` of
/// Open-iSCSI).
const LOGIN_TIME: Span = Span::from_secs(15);

/// Sessions or channels of a storage system, by a number that stays while its block I/O is in
/// progress.
#[derive(Default)]
pub(crate) struct Slots {
    ends: Vec<Option<u32>>,
}

impl Slots {
    pub fn take(&mut self, end: u32) -> u16 {
        let free = self.ends.iter().position(Option::is_none).unwrap_or_else(|| {
            self.ends.push(None);
            self.ends.len() - 1
        });
        self.ends[free] = Some(end);
        free as u16
    }

    pub fn free(&mut self, slot: u16) {
        if let Some(entry) = self.ends.get_mut(usize::from(slot)) {
            *entry = None;
        }
    }

    pub fn end(&self, slot: u16) -> Option<u32> {
        self.ends.get(usize::from(slot)).copied().flatten()
    }

    /// Returns the sessions in the order of their numbers.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        self.ends.iter().flatten().copied()
    }
}

/// Returns the number of the storage system of an end, and that of its portal.
fn portal(iscsi: &Iscsi, end: u32) -> (u16, u16) {
    let plan = &iscsi.sessions[iscsi.ends[end as usize].session as usize].plan;
    (plan.storage, plan.port)
}

/// Returns the host of an end; `None` for a session of a virtualization switch.
fn host_of(iscsi: &Iscsi, end: u32) -> Option<u16> {
    let plan = &iscsi.sessions[iscsi.ends[end as usize].session as usize].plan;
    Some(plan.host).filter(|_| matches!(plan.initiator, super::Machine::Host(_)))
}

/// Ends the sessions of a host, or all, and closes their connections.
pub(super) fn end_sessions(iscsi: &mut Iscsi, cx: &mut Cx<'_>, storage: u16, host: Option<u16>) {
    for end in sessions(iscsi, storage) {
        let own = host_of(iscsi, end);
        let is_open = matches!(iscsi.ends[end as usize].machine, Machine::Target(_));
        if is_open && own.is_some() && (host.is_none() || host == own) {
            connection::lose(iscsi, cx, end);
        }
    }
}

fn system(iscsi: &mut Iscsi, storage: u16) -> Option<&mut System> {
    iscsi.systems.get_mut(usize::from(storage)).and_then(Option::as_mut)
}

/// Returns the number with which the block I/O of an end is submitted.
fn owner(iscsi: &Iscsi, end: u32) -> u16 {
    let (storage, port) = portal(iscsi, end);
    let Some(Some(system)) = iscsi.systems.get(usize::from(storage)) else { return SESSION };
    SESSION | (iscsi.ends[end as usize].slot * system.plan.portals + port.saturating_sub(system.plan.fc_ports))
}

/// Waits for a login on a connection that is open.
pub(super) fn connected(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let (storage, _) = portal(iscsi, end);
    let address = iscsi.sessions[iscsi.ends[end as usize].session as usize].plan.address.clone();
    let Some(system) = system(iscsi, storage) else { return };
    let config = login::LoginConfig {
        node: system.plan.node.clone(),
        address,
        group: 1,
        connection: ConnectionId(end.into()),
        challenge: [0; 16],
        timeout: LOGIN_TIME,
    };
    let login = Login::new(cx.now(), config);
    iscsi.ends[end as usize].machine = Machine::TargetLogin(Box::new(login));
}

/// Handles a PDU of the host.
pub(super) fn pdu(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, head: Head, text: Box<[u8]>) {
    if matches!(iscsi.ends[end as usize].machine, Machine::TargetLogin(_)) {
        return log_in(iscsi, cx, end, login::Input::Pdu { head, text });
    }
    if !forward::host_pdu(iscsi, cx, end, &head, &text) {
        return;
    }
    input(iscsi, cx, end, Input::Header(head));
    let Machine::Target(session) = &iscsi.ends[end as usize].machine else { return };
    if head.data_bytes > 0 {
        let intact = true;
        let segment = match session.destination() {
            Destination::Text => Input::Text { data: text, intact },
            _ => Input::Segment { intact },
        };
        input(iscsi, cx, end, segment);
    }
}

/// Passes the data of a Data-Out on before the PDU is complete, where a gateway forwards by frame.
pub(super) fn arriving(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, received: u64) {
    let (storage, _) = portal(iscsi, end);
    let Some(frame) = system(iscsi, storage).and_then(|system| system.plan.frame_bytes) else { return };
    let peer = &iscsi.ends[(end ^ 1) as usize];
    let Some((bhs, bytes)) = peer.sent.arriving(received, peer.layout) else { return };
    let head = Head::parse(&bhs.0);
    let bytes = bytes / frame * frame;
    if bytes > 0 && matches!(head.header, Header::DataOut(_)) {
        input(iscsi, cx, end, Input::Arriving { head, bytes });
    }
}

/// Handles the deadline of a login or session.
pub(super) fn timeout(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    match iscsi.ends[end as usize].machine {
        Machine::TargetLogin(_) => log_in(iscsi, cx, end, login::Input::Timeout),
        _ => {
            forward::timeout(iscsi, cx, end);
            input(iscsi, cx, end, Input::Timeout);
        }
    }
}

fn log_in(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, input: login::Input) {
    let (storage, _) = portal(iscsi, end);
    // A gateway may lose its last path while a login is in progress, so each request is judged.
    let is_request = matches!(input, login::Input::Pdu { .. });
    let is_refused = host_of(iscsi, end).is_some_and(|host| is_request && !cx.around.admits(cx.net, storage, host));
    let Some(Some(system)) = iscsi.systems.get_mut(usize::from(storage)) else { return };
    let state = &mut iscsi.ends[end as usize];
    let Machine::TargetLogin(login) = &mut state.machine else { return };
    if is_refused {
        login.set_unavailable();
    }
    login.handle(cx.now(), input, &mut system.directory);
    let mut established = None;
    let mut sent = Vec::new();
    while let Some(output) = login.poll_output() {
        match output {
            login::Output::Send { head, text } => sent.push((head, text)),
            login::Output::Done(done) => established = Some(done),
            login::Output::Close => state.closing = true,
        }
    }
    sent.into_iter().for_each(|(head, text)| state.push(&head, text));
    if let Some(established) = established {
        begin(iscsi, cx, end, *established);
    }
}

/// Begins the full feature phase.
fn begin(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, established: Established) {
    if let Some(replaced) = established.replaces {
        connection::lose(iscsi, cx, replaced.0 as u32);
    }
    let (storage, port) = portal(iscsi, end);
    let Some(system) = system(iscsi, storage) else { return };
    let (slot, node, limits) = (system.slots.take(end), system.plan.node.clone(), system.plan.limits);
    let state = &mut iscsi.ends[end as usize];
    state.slot = slot;
    state.layout = established.parameters.layout();
    state.numbers = Some(Statuses::new(established.stat_sn));
    let now = cx.now();
    let device = Some((port, cx.around.device(storage)));
    let session = Session::new(now, established, node, limits, device);
    let nexus = session.nexus();
    state.machine = Machine::Target(Box::new(session));
    if let Some((host, nexus)) = host_of(iscsi, end).zip(nexus) {
        cx.around.session_began(cx.net, storage, host, nexus);
    }
    forward::begin(iscsi, cx, end);
}

/// Passes an input to the session of an end, and executes its outputs.
fn input(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, input: Input) {
    let (storage, _) = portal(iscsi, end);
    let now = cx.now();
    if let Machine::Target(session) = &mut iscsi.ends[end as usize].machine {
        session.handle(now, input, Some(cx.around.device(storage)));
        execute(iscsi, cx, end, storage);
    }
}

pub(super) fn execute(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, storage: u16) {
    let now = cx.now();
    let mut is_silent = false;
    loop {
        let state = &mut iscsi.ends[end as usize];
        let Machine::Target(session) = &mut state.machine else { break };
        let Some(output) = session.poll_output() else { break };
        match output {
            Output::Send { head, data } => state.push(&head, data),
            Output::Data { head, .. } => state.push(&head, Box::default()),
            Output::Io(io) => submit(iscsi, cx, end, storage, &io),
            Output::Fetch { tag, bytes } => {
                // Payload does not exist, and no workload sends parameter lists.
                let bytes = vec![0; bytes as usize];
                session.handle(now, Input::Parameters { tag, bytes }, Some(cx.around.device(storage)));
            }
            Output::Release(_) => {}
            Output::Recall(tag) => {
                let owner = owner(iscsi, end);
                cx.around.recall(cx.net, storage, owner, tag);
                forward::recall(iscsi, cx, end, tag);
            }
            Output::Arrived { tag, bytes } => {
                let owner = owner(iscsi, end);
                cx.around.arrived(cx.net, storage, owner, tag, bytes);
            }
            Output::Cancel(tag) => cancel(iscsi, cx, end, storage, tag),
            Output::Ends(ends) => end_others(iscsi, cx, end, storage, ends),
            Output::Reset => {
                for other in sessions(iscsi, storage) {
                    iscsi.ends[other as usize].closing = true;
                    connection::send(iscsi, cx, other, 0);
                }
            }
            // The connection of a host without an answer would not close in order.
            Output::Close(CloseReason::Silent) => is_silent = true,
            Output::Close(_) => state.closing = true,
        }
    }
    while let Some(output) = cx.around.device(storage).poll_output() {
        match output {
            scsi::Output::Port { port, notice } => {
                let own = system(iscsi, storage)
                    .map_or(0..0, |System { plan, .. }| plan.fc_ports..plan.fc_ports + plan.portals);
                if !own.contains(&port) {
                    cx.around.notify(cx.net, storage, port, notice);
                } else {
                    notify(iscsi, cx, storage, Some(port), None, &notice);
                }
            }
            // Persisting a record takes no simulated time.
            scsi::Output::Persist { seq, .. } => cx.around.device(storage).persisted(seq),
        }
    }
    if is_silent {
        connection::cut(iscsi, cx, end);
    }
}

fn submit(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, storage: u16, io: &Io) {
    let owner = owner(iscsi, end);
    let state = &mut iscsi.ends[end as usize];
    match cx.around.submit(cx.net, storage, owner, io) {
        None => state.ios += 1,
        Some(status) => {
            if let Machine::Target(session) = &mut state.machine {
                let done = Input::IoDone { tag: io.tag, status };
                session.handle(cx.now(), done, Some(cx.around.device(storage)));
            }
        }
    }
}

fn cancel(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, storage: u16, tag: IoTag) {
    let owner = owner(iscsi, end);
    match cx.around.cancel(cx.net, storage, owner, tag) {
        true => iscsi.ends[end as usize].ios -= 1,
        false => cx.around.recall(cx.net, storage, owner, tag),
    }
}

/// Returns the ends of all sessions of a storage system.
fn sessions(iscsi: &mut Iscsi, storage: u16) -> Vec<u32> {
    system(iscsi, storage).map_or_else(Vec::new, |system| system.slots.ends.iter().filter_map(|end| *end).collect())
}

/// Ends tasks of other sessions because of the task management of one.
fn end_others(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, storage: u16, ends: Ends) {
    notify(iscsi, cx, storage, None, Some(end), &Notice::End(ends));
    if ends.nexus.is_none() {
        if let Some(system) = system(iscsi, storage) {
            system.ending.push(end);
        }
        report_ended(iscsi, cx, storage);
    }
}

/// Answers task management whose tasks have all ended.
fn report_ended(iscsi: &mut Iscsi, cx: &mut Cx<'_>, storage: u16) {
    let waiting = system(iscsi, storage).map(|system| std::mem::take(&mut system.ending)).unwrap_or_default();
    for from in waiting {
        let is_ending = |end: &u32| match &iscsi.ends[*end as usize].machine {
            Machine::Target(session) => *end != from && session.is_ending_tasks(),
            _ => false,
        };
        let ends = iscsi.systems[usize::from(storage)].iter().flat_map(|system| &system.slots.ends).flatten();
        if ends.copied().any(|end| is_ending(&end)) {
            if let Some(system) = system(iscsi, storage) {
                system.ending.push(from);
            }
            continue;
        }
        input(iscsi, cx, from, Input::OthersEnded);
        connection::send(iscsi, cx, from, 0);
    }
}

/// Passes a notice to the sessions that it is for: those at one portal or all, except one.
pub(super) fn notify(
    iscsi: &mut Iscsi,
    cx: &mut Cx<'_>,
    storage: u16,
    port: Option<u16>,
    except: Option<u32>,
    notice: &Notice,
) {
    for end in sessions(iscsi, storage) {
        let Machine::Target(session) = &iscsi.ends[end as usize].machine else { continue };
        let is_its = match notice {
            Notice::Step { task, .. } => session.nexus() == Some(task.nexus),
            Notice::End(_) => port.is_none_or(|port| portal(iscsi, end).1 == port),
        };
        if is_its && except != Some(end) {
            input(iscsi, cx, end, Input::Notice(notice.clone()));
            connection::send(iscsi, cx, end, 0);
        }
    }
}

/// Reports the end of block I/O to its session.
pub(super) fn io_done(iscsi: &mut Iscsi, cx: &mut Cx<'_>, (storage, owner): (u16, u16), tag: IoTag, status: IoStatus) {
    let Some(system) = system(iscsi, storage) else { return };
    let slot = (owner & !SESSION) / system.plan.portals.max(1);
    let Some(end) = system.slots.end(slot) else { return };
    let state = &mut iscsi.ends[end as usize];
    state.ios -= 1;
    if matches!(state.machine, Machine::Target(_)) {
        input(iscsi, cx, end, Input::IoDone { tag, status });
        connection::send(iscsi, cx, end, 0);
    } else if state.ios == 0 {
        free_slot(iscsi, storage, slot);
    }
    if iscsi.systems[usize::from(storage)].as_ref().is_some_and(|system| !system.ending.is_empty()) {
        report_ended(iscsi, cx, storage);
    }
}

/// Passes on read data of block I/O that continues.
pub(super) fn io_data(iscsi: &mut Iscsi, cx: &mut Cx<'_>, (storage, owner): (u16, u16), tag: IoTag, bytes: u32) {
    if let Some(end) = end_of(iscsi, storage, owner) {
        input(iscsi, cx, end, Input::IoData { tag, bytes });
        connection::send(iscsi, cx, end, 0);
    }
}

/// Returns the host of a session.
pub(super) fn peer(iscsi: &Iscsi, storage: u16, owner: u16) -> Option<Peer> {
    let state = &iscsi.ends[end_of(iscsi, storage, owner)? as usize];
    let Machine::Target(session) = &state.machine else { return None };
    let host = iscsi.sessions[state.session as usize].plan.host;
    Some(Peer { host, segment_bytes: session.parameters().send_bytes })
}

/// Returns the end of a session, by the number of its block I/O.
fn end_of(iscsi: &Iscsi, storage: u16, owner: u16) -> Option<u32> {
    let system = iscsi.systems.get(usize::from(storage))?.as_ref()?;
    system.slots.end((owner & !SESSION) / system.plan.portals.max(1))
}

fn free_slot(iscsi: &mut Iscsi, storage: u16, slot: u16) {
    if let Some(system) = system(iscsi, storage) {
        system.slots.free(slot);
    }
}

/// Ends the session of a lost connection.
pub(super) fn lost(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, machine: Machine) {
    let Machine::Target(mut session) = machine else { return };
    forward::host_lost(iscsi, cx, end);
    let (storage, _) = portal(iscsi, end);
    let nexus = session.nexus();
    if let Some((host, nexus)) = host_of(iscsi, end).zip(nexus) {
        cx.around.session_ended(cx.net, storage, host, nexus);
    }
    session.close(Some(cx.around.device(storage)));
    while let Some(output) = session.poll_output() {
        if let Output::Cancel(tag) | Output::Recall(tag) = output {
            cancel(iscsi, cx, end, storage, tag);
        }
    }
    let (slot, ios) = (iscsi.ends[end as usize].slot, iscsi.ends[end as usize].ios);
    if let Some(system) = system(iscsi, storage) {
        system.directory.leave(session.key(), ConnectionId(end.into()));
        system.ending.retain(|other| *other != end);
        if ios == 0 {
            system.slots.free(slot);
        }
    }
}
