//! Connections of sessions: open, arrive, send and lose.

use super::forward::{self, Forwarding};
use super::stream::{Pdu, Stream};
use super::{Cx, Direction, Iscsi, Job, Load, Machine as Owner, count, initiator, target};
use crate::tcp::Endpoint;
use sanloom_scsi::iscsi::sequence::Statuses;
use sanloom_scsi::iscsi::{Layout, initiator as host, target as storage};
use sanloom_scsi::time::Instant;
use sanloom_transport::tcp::Events;
use sanloom_wire::iscsi::{Bhs, Head, Opcode};
use std::collections::VecDeque;

/// Phase of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Waits for the next connection.
    Idle,
    /// The connection is being opened, or the login is in progress.
    Opening,
    /// Full feature phase.
    Up,
}

/// Machine of an end.
pub(super) enum Machine {
    /// The connection is not open yet, or no longer.
    None,
    HostLogin(Box<host::Login>),
    Host(Box<host::Session>),
    TargetLogin(Box<storage::Login>),
    Target(Box<storage::Session>),
    /// Initiator of a link, which forwards PDUs.
    Back,
}

/// One end of a connection.
pub(super) struct End {
    /// Number of the session.
    pub session: u32,
    pub machine: Machine,
    pub sent: Stream,
    /// Position up to which the processor was told to prepare bytes.
    prepared: u64,
    /// Time at which the processor has prepared them, in ps.
    prepared_ps: u64,
    /// Position up to which the processor has finished that.
    ready: u64,
    /// Digests of PDUs that are sent.
    pub layout: Layout,
    /// Status numbers of a target.
    pub numbers: Option<Statuses>,
    /// Time for which the machine is in the agenda, [`Instant::NEVER`] if it is not.
    listed: Instant,
    /// The connection closes when everything has been sent.
    pub closing: bool,
    /// The machine has ended.
    pub over: bool,
    /// Number of a target's session among those of its storage system.
    pub slot: u16,
    /// Block I/O in progress.
    pub ios: u32,
    /// PDUs that were not given to the processor, and SCSI commands among them.
    unsent: [u32; 2],
    /// PDUs that have arrived, and that the adapter of the host handles.
    handled: VecDeque<Pdu>,
    /// The forwarding path of a target's session.
    pub forwarding: Option<Box<Forwarding>>,
}

impl End {
    pub fn new(session: u32, keeps: bool) -> End {
        End {
            session,
            machine: Machine::None,
            sent: Stream::new(keeps),
            prepared: 1,
            prepared_ps: 0,
            ready: 1,
            layout: Layout::default(),
            numbers: None,
            listed: Instant::NEVER,
            closing: false,
            over: false,
            slot: u16::MAX,
            ios: 0,
            unsent: [0; 2],
            handled: VecDeque::new(),
            forwarding: None,
        }
    }

    /// Appends a PDU to the stream.
    pub fn push(&mut self, head: &Head, text: Box<[u8]>) {
        self.push_numbered(Bhs(head.to_bytes()), text);
    }

    /// Appends the header of a PDU whose data are not text.
    pub fn push_header(&mut self, bhs: Bhs) {
        self.push_numbered(bhs, Box::default());
    }

    fn push_numbered(&mut self, mut bhs: Bhs, text: Box<[u8]>) {
        if let Some(numbers) = &mut self.numbers {
            numbers.number(&mut bhs);
        }
        self.unsent[0] += 1;
        self.unsent[1] += u32::from(bhs.opcode() == Opcode::SCSI_COMMAND);
        self.sent.push(bhs, text, self.layout);
    }
}

/// Returns whether an end is that of the host.
pub(super) fn is_host(end: u32) -> bool {
    end.is_multiple_of(2)
}

/// Opens the connection of a session.
pub(super) fn open(iscsi: &mut Iscsi, cx: &mut Cx<'_>, session: u32) {
    if iscsi.sessions[session as usize].stage != Stage::Idle || !forward::may_open(iscsi, session) {
        return;
    }
    let state = &mut iscsi.sessions[session as usize];
    state.stage = Stage::Opening;
    let plan = &state.plan;
    let [from, to] = [0, 1].map(|at| Endpoint { config: plan.tcp[at].clone(), interface: plan.interfaces[at] });
    let (tag, via) = (plan.tag, plan.via);
    let keeps = iscsi.is_watched;
    iscsi.ends.extend([End::new(session, keeps), End::new(session, keeps)]);
    let end = iscsi.stacks.connect(cx.net, [from, to], tag, via);
    let state = &mut iscsi.sessions[session as usize];
    state.end = end;
    state.count.connections += 1;
    // The time limit of the login covers the handshake of TCP.
    let until = cx.now() + state.plan.login.timeout;
    list(iscsi, cx, end, until);
}

/// Handles what TCP reports at an end.
pub(super) fn changed(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let events = iscsi.stacks.take_events(end);
    if events.has(Events::CONNECTED) {
        match is_host(end) {
            true => initiator::connected(iscsi, cx, end),
            false => target::connected(iscsi, cx, end),
        }
    }
    if events.has(Events::READABLE) {
        arrived(iscsi, cx, end);
    } else if events.has(Events::WRITABLE) || events.has(Events::CONNECTED) {
        send(iscsi, cx, end, 0);
    }
    let ended = [Events::PEER_CLOSED, Events::CLOSED, Events::RESET, Events::TIMED_OUT];
    if ended.into_iter().any(|event| events.has(event)) {
        lose(iscsi, cx, end);
    }
}

/// Passes the PDUs that have arrived completely to the machine of an end, and sends its answers.
fn arrived(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let connection = iscsi.stacks.connection(end);
    let (received, readable) = (connection.received(), connection.readable());
    while let Some(pdu) = iscsi.ends[(end ^ 1) as usize].sent.take(received) {
        let session = iscsi.ends[end as usize].session;
        let plan = &iscsi.sessions[session as usize].plan;
        if is_host(end)
            && let Owner::Host(host) = plan.initiator
            && !iscsi.stacks.is_infiniband(plan.interfaces[0])
        {
            let now = cx.net.now();
            let at = cx.around.handle(host, now, plan.interfaces[0], plan.storage, pdu.bhs.data_bytes().into());
            let handled = &mut iscsi.ends[end as usize].handled;
            if at > now || !handled.is_empty() {
                handled.push_back(pdu);
                iscsi.agenda.plan(cx.net, at.max(now), Job::Handled(end));
                continue;
            }
        }
        take(iscsi, cx, end, pdu);
    }
    if !is_host(end) {
        target::arriving(iscsi, cx, end, received);
    }
    send(iscsi, cx, end, readable);
}

/// Passes a PDU to the machine of an end.
fn take(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, pdu: Pdu) {
    let head = Head::parse(&pdu.bhs.0);
    match is_host(end) {
        true => initiator::pdu(iscsi, cx, end, head, pdu.text),
        false => target::pdu(iscsi, cx, end, head, pdu.text),
    }
}

/// Passes the next PDU that the adapter of a host has handled to its machine.
pub(super) fn handled(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    if let Some(pdu) = iscsi.ends[end as usize].handled.pop_front() {
        take(iscsi, cx, end, pdu);
        send(iscsi, cx, end, 0);
    }
}

/// Gives the bytes of new PDUs to the processor and then to TCP, and consumes received bytes.
pub(super) fn send(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, consumed: u64) {
    let state = &mut iscsi.ends[end as usize];
    let (fresh, position) = (state.sent.end() - state.prepared, state.sent.end());
    let mut ready = 0;
    if fresh > 0 {
        state.prepared = position;
        let plan = &iscsi.sessions[state.session as usize].plan;
        let owner = if is_host(end) { plan.initiator } else { Owner::Storage(plan.storage) };
        let unit = u64::from(iscsi.stacks.connection(end).segment_size());
        let interface = plan.interfaces[usize::from(!is_host(end))];
        let is_ipoib = iscsi.stacks.is_infiniband(interface);
        let [pdus, commands] = std::mem::take(&mut iscsi.ends[end as usize].unsent);
        let load = Load {
            adapter: iscsi.adapters[usize::from(interface)].number(),
            interrupts: false,
            segments: fresh.div_ceil(unit) as u32,
            bytes: fresh,
            payload: fresh,
            direction: Direction::Send,
            pdus,
            commands,
            target: plan.storage,
            is_ipoib,
        };
        let now = cx.net.now();
        let at = cx.around.work(owner, now, interface, load);
        // Several cores may prepare bytes of one connection; a later part waits for an earlier one.
        let state = &mut iscsi.ends[end as usize];
        let at = at.max(state.prepared_ps);
        state.prepared_ps = at;
        if at > now {
            iscsi.agenda.plan(cx.net, at, Job::Prepared(end, position));
        } else {
            ready = position;
        }
    }
    offer(iscsi, cx, end, ready, consumed);
    list_machine(iscsi, cx, end);
}

/// Sends bytes that the processor has prepared.
pub(super) fn prepared(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, position: u64) {
    offer(iscsi, cx, end, position, 0);
}

/// Offers bytes up to a position to TCP, as far as the send buffer has room. At 0, all bytes whose
/// preparation has ended before.
fn offer(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, position: u64, consumed: u64) {
    let state = &mut iscsi.ends[end as usize];
    state.ready = state.ready.max(position);
    let wanted = state.ready - state.sent.accepted;
    if wanted > 0 || consumed > 0 {
        let accepted = iscsi.stacks.with(cx.net, end, |connection, now| {
            connection.consume(now, consumed);
            let accepted = if wanted > 0 { connection.send(wanted) } else { 0 };
            if wanted > 0 && accepted == wanted {
                connection.end_record();
            }
            accepted
        });
        iscsi.ends[end as usize].sent.accepted += accepted;
    }
    let state = &mut iscsi.ends[end as usize];
    if state.closing && state.sent.accepted == state.sent.end() {
        state.closing = false;
        iscsi.stacks.with(cx.net, end, |connection, _| connection.close());
    }
}

/// Plans the deadline of the machine of an end.
pub(super) fn list_machine(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let at = match &iscsi.ends[end as usize].machine {
        Machine::None => None,
        Machine::HostLogin(login) => login.poll_timeout(),
        Machine::Host(session) => session.poll_timeout(),
        Machine::TargetLogin(login) => login.poll_timeout(),
        Machine::Target(session) => {
            let forwarded = forward::poll_timeout(iscsi.ends[end as usize].forwarding.as_deref());
            session.poll_timeout().into_iter().chain(forwarded).min()
        }
        Machine::Back => None,
    };
    if let Some(at) = at {
        list(iscsi, cx, end, at);
    }
}

fn list(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, at: Instant) {
    let state = &mut iscsi.ends[end as usize];
    if at < state.listed {
        state.listed = at;
        iscsi.agenda.plan(cx.net, at.as_ns().saturating_mul(1_000), Job::Machine(end));
    }
}

/// Handles the deadline of a machine, if it is due.
pub(super) fn machine_timeout(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let now = cx.now();
    let state = &mut iscsi.ends[end as usize];
    if state.listed > now {
        return;
    }
    state.listed = Instant::NEVER;
    if matches!(state.machine, Machine::None) {
        // The handshake has not ended in time.
        if !state.over && is_host(end) {
            lose(iscsi, cx, end);
        }
        return;
    }
    match is_host(end) {
        true => initiator::timeout(iscsi, cx, end),
        false => target::timeout(iscsi, cx, end),
    }
    send(iscsi, cx, end, 0);
    list_machine(iscsi, cx, end);
}

/// Ends the machine of an end whose connection is lost or has ended.
pub(super) fn lose(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let sent = &iscsi.ends[end as usize].sent;
    let is_open = sent.accepted == sent.end();
    end_machine(iscsi, cx, end, is_open);
}

/// Ends the machine of an end that is gone, and resets its connection.
pub(super) fn cut(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    end_machine(iscsi, cx, end, false);
}

/// Ends the machine of an end. `closes` closes its connection in order; it is reset otherwise.
fn end_machine(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, closes: bool) {
    let state = &mut iscsi.ends[end as usize];
    if std::mem::replace(&mut state.over, true) {
        return;
    }
    let machine = std::mem::replace(&mut state.machine, Machine::None);
    let session = state.session;
    match is_host(end) {
        true => {
            count::keep(iscsi, session, end);
            let state = &mut iscsi.sessions[session as usize];
            (state.stage, state.tried) = (Stage::Idle, true);
            let at = cx.net.now() + state.plan.reconnect.as_ns() * 1_000;
            iscsi.agenda.plan(cx.net, at, Job::Connect(session));
            match machine {
                Machine::Back => forward::link_lost(iscsi, cx, session),
                machine => initiator::lost(iscsi, session, machine),
            }
        }
        false => target::lost(iscsi, cx, end, machine),
    }
    iscsi.stacks.with(cx.net, end, |connection, _| if closes { connection.close() } else { connection.abort() });
    let states = &mut iscsi.ends[(end & !1) as usize..];
    if states[0].over && states[1].over {
        states[..2].iter_mut().for_each(|state| state.sent.clear());
    }
}
