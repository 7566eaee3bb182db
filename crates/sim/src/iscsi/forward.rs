//! The forwarding path of a virtualization switch (document 003, section 3): PDUs pass between the
//! connection of a host and connections to back ends.
//!
//! ```text
//!   host <-> End: target::Session, Forwarding <-> End: Machine::Back  <-> back-end target
//!                                  forward::Forward decides on each header
//! ```
//!
//! A PDU is passed on when all its bytes have arrived. The time of the processor delays the bytes
//! of what leaves. Unsent bytes of a connection are not limited, so a slow host does not stop its
//! back ends.

use super::connection::{self, Machine};
use super::{Cx, Iscsi, Job, target};
use sanloom_scsi::iscsi::forward::{Action, BackUnit, Conn, Forward, Settings, Switch, back_offers};
use sanloom_scsi::iscsi::initiator::Established;
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_scsi::map::{LunId, VolumeId};
use sanloom_scsi::scsi::{Device, IoTag};
use sanloom_scsi::time::Instant;
use sanloom_scsi::volume::Volumes;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, Head};
use std::sync::Arc;

/// The session of a host for which a session with a back end forwards PDUs.
#[derive(Clone, PartialEq, Debug)]
pub struct Front {
    /// Number of the session of the host.
    pub session: u32,
    /// Number of the back-end target.
    pub back: u8,
    /// Units of the back end.
    pub units: Vec<BackUnit>,
    /// LUNs of the map that are not behind an iSCSI target.
    pub elsewhere: Vec<LunId>,
}

/// The parts of a switch that both paths share.
pub struct Shared<'a> {
    /// SCSI device of the virtual disks.
    pub device: &'a mut Device,
    /// Virtual disks, and the order of their commands.
    pub volumes: &'a mut Volumes,
    /// Volume behind each unit.
    pub disks: &'a [Option<VolumeId>],
}

/// The forwarding path of a session of a host.
pub(super) struct Forwarding {
    forward: Forward,
    /// Sessions with back ends, by number of the back-end target.
    links: Arc<[u32]>,
    actions: Vec<Action>,
}

/// Returns the forwarding path of a session that begins, if its storage system forwards.
pub(super) fn begin(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let front = iscsi.ends[end as usize].session;
    let is_its = |plan: &&super::SessionPlan| plan.front.as_ref().is_some_and(|own| own.session == front);
    let links: Arc<[u32]> =
        (0..).zip(&iscsi.sessions).filter(|(_, own)| is_its(&&own.plan)).map(|(at, _)| at).collect();
    let Some(&first) = links.first() else { return };
    let Machine::Target(session) = &iscsi.ends[end as usize].machine else { return };
    let mut forward = Forward::new(Settings::default(), *session.parameters());
    if let Some(front) = &iscsi.sessions[first as usize].plan.front {
        forward.exclude(front.elsewhere.iter().copied());
    }
    iscsi.ends[end as usize].forwarding =
        Some(Box::new(Forwarding { forward, links: links.clone(), actions: Vec::new() }));
    for &link in &*links {
        iscsi.agenda.plan(cx.net, cx.net.now(), Job::Connect(link));
    }
}

/// Returns the end of the storage system of the session for which a link forwards, if it is up.
fn front_of(iscsi: &Iscsi, link: u32) -> Option<(u32, u8)> {
    let front = iscsi.sessions[link as usize].plan.front.as_ref()?;
    let end = iscsi.sessions[front.session as usize].end;
    let state = iscsi.ends.get((end ^ 1) as usize).filter(|_| end != u32::MAX)?;
    state.forwarding.is_some().then_some((end ^ 1, front.back))
}

/// Returns whether the connection of a session may be opened: that of a link needs the session of
/// its host, or writes whose end a login confirms.
pub(super) fn may_open(iscsi: &Iscsi, session: u32) -> bool {
    let Some(front) = &iscsi.sessions[session as usize].plan.front else { return true };
    let lost = &iscsi.sessions[front.session as usize].lost;
    front_of(iscsi, session).is_some() || lost.iter().any(|forward| forward.has_lost_writes(front.back))
}

/// Returns the offers for the login of a link.
pub(super) fn offers(iscsi: &Iscsi, session: u32) -> Option<Offers> {
    let (end, _) = front_of(iscsi, session)?;
    let Machine::Target(front) = &iscsi.ends[end as usize].machine else { return None };
    Some(back_offers(front.parameters()))
}

/// Begins to forward after the login of a link.
pub(super) fn link_up(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, established: &Established) {
    let link = iscsi.ends[end as usize].session;
    let Some(front) = iscsi.sessions[link as usize].plan.front.clone() else { return };
    let storage = switch_of(iscsi, link);
    // The login has ended the commands of the session before.
    let lost = &mut iscsi.sessions[front.session as usize].lost;
    if let Some(shared) = cx.around.shared(storage) {
        lost.iter_mut().for_each(|forward| forward.end_lost_writes(front.back, shared.volumes));
    }
    lost.retain(|forward| (0..=u8::MAX).any(|back| forward.has_lost_writes(back)));
    iscsi.ends[end as usize].machine = Machine::Back;
    cx.around.forwarded(cx.net, storage, 0, 0);
    let Some((host, back)) = front_of(iscsi, link) else { return connection::lose(iscsi, cx, end) };
    let now = cx.now();
    with(iscsi, cx, host, |forwarding, switch| {
        let Forwarding { forward, actions, .. } = forwarding;
        // Without digests, any parameters fit.
        _ = forward.connect(now, back, established, &front.units, switch.volumes, actions);
    });
    run(iscsi, cx, host, None);
}

/// Returns the switch of a link.
fn switch_of(iscsi: &Iscsi, link: u32) -> u16 {
    let front = iscsi.sessions[link as usize].plan.front.as_ref();
    front.map_or(0, |front| iscsi.sessions[front.session as usize].plan.storage)
}

/// Calls `run` with the state of the forwarding path of an end, if it has one.
fn with<R>(
    iscsi: &mut Iscsi,
    cx: &mut Cx<'_>,
    end: u32,
    run: impl FnOnce(&mut Forwarding, &mut Switch<'_>) -> R,
) -> Option<R> {
    let storage = iscsi.sessions[iscsi.ends[end as usize].session as usize].plan.storage;
    let state = &mut iscsi.ends[end as usize];
    let Machine::Target(session) = &mut state.machine else { return None };
    let forwarding = state.forwarding.as_deref_mut()?;
    let Shared { device, volumes, disks } = cx.around.shared(storage)?;
    Some(run(forwarding, &mut Switch { session, device, volumes, disks }))
}

/// A PDU from one of the connections.
struct Arrived<'a> {
    from: Conn,
    header: [u8; BHS_BYTES],
    text: &'a [u8],
}

/// Handles a PDU of the host. Returns whether it takes the conventional path.
pub(super) fn host_pdu(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, head: &Head, text: &[u8]) -> bool {
    if iscsi.ends[end as usize].forwarding.is_none() {
        return true;
    }
    let (now, mut header) = (cx.now(), head.to_bytes());
    with(iscsi, cx, end, |forwarding, switch| {
        forwarding.forward.on_header(now, Conn::Host, &mut header, switch, &mut forwarding.actions);
    });
    run(iscsi, cx, end, Some(Arrived { from: Conn::Host, header, text }))
}

/// Handles a PDU of a back end.
pub(super) fn back_pdu(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, head: &Head, text: &[u8]) {
    let Some((host, back)) = front_of(iscsi, iscsi.ends[end as usize].session) else { return };
    let (now, mut header) = (cx.now(), head.to_bytes());
    with(iscsi, cx, host, |forwarding, switch| {
        let from = Conn::Back(back);
        forwarding.forward.on_header(now, from, &mut header, switch, &mut forwarding.actions);
    });
    run(iscsi, cx, host, Some(Arrived { from: Conn::Back(back), header, text }));
}

/// Executes the actions of the forwarding path of an end. Returns whether the PDU takes the
/// conventional path.
fn run(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, arrived: Option<Arrived<'_>>) -> bool {
    let storage = iscsi.sessions[iscsi.ends[end as usize].session as usize].plan.storage;
    let Some(forwarding) = iscsi.ends[end as usize].forwarding.as_deref_mut() else { return false };
    let mut actions = std::mem::take(&mut forwarding.actions);
    let links = forwarding.links.clone();
    let (mut is_conventional, mut pdus, mut bytes) = (false, 0, 0);
    let mut closed = Vec::new();
    let mut at = 0;
    while let Some(&action) = actions.get(at) {
        at += 1;
        match action {
            Action::SendHeader { to } => {
                if let Some(arrived) = &arrived {
                    push(iscsi, end, &links, to, arrived.header);
                    pdus += 1;
                }
            }
            Action::Send { to, header } => {
                push(iscsi, end, &links, to, header);
                pdus += 1;
            }
            Action::Move { bytes: moved, .. } => bytes += u64::from(moved),
            Action::Discard { .. } => {}
            Action::Collect => {
                if let Some(Arrived { from: Conn::Back(back), header, text }) = &arrived {
                    with(iscsi, cx, end, |forwarding, switch| {
                        forwarding.forward.on_collected(*back, header, text, switch, &mut actions);
                    });
                }
            }
            Action::ToConventional => is_conventional = true,
            Action::Close { conn, .. } => closed.push(conn),
        }
    }
    actions.clear();
    if let Some(forwarding) = iscsi.ends[end as usize].forwarding.as_deref_mut() {
        forwarding.actions = actions;
    }
    cx.around.forwarded(cx.net, storage, pdus, bytes);
    if !is_conventional {
        target::execute(iscsi, cx, end, storage);
    }
    if pdus > 0 {
        for link in &*links {
            let back = iscsi.sessions[*link as usize].end;
            if iscsi.ends.get(back as usize).is_some_and(|state| matches!(state.machine, Machine::Back)) {
                connection::send(iscsi, cx, back, 0);
            }
        }
    }
    // A result of the session leaves even if no PDU was forwarded.
    connection::send(iscsi, cx, end, 0);
    for conn in closed {
        let closed = match conn {
            Conn::Host => end,
            Conn::Back(back) => {
                links.get(usize::from(back)).map_or(u32::MAX, |link| iscsi.sessions[*link as usize].end)
            }
        };
        if closed != u32::MAX {
            connection::lose(iscsi, cx, closed);
        }
    }
    is_conventional
}

/// Appends a PDU to the stream of a connection.
fn push(iscsi: &mut Iscsi, end: u32, links: &[u32], to: Conn, header: [u8; BHS_BYTES]) {
    let to = match to {
        Conn::Host => end,
        Conn::Back(back) => match links.get(usize::from(back)) {
            Some(link) => iscsi.sessions[*link as usize].end,
            None => return,
        },
    };
    if let Some(state) = iscsi.ends.get_mut(to as usize)
        && !state.over
    {
        state.push_header(Bhs(header));
    }
}

/// Aborts a forwarded task.
pub(super) fn recall(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32, tag: IoTag) {
    let now = cx.now();
    with(iscsi, cx, end, |forwarding, switch| {
        forwarding.forward.recall(now, tag, switch, &mut forwarding.actions);
    });
    run(iscsi, cx, end, None);
}

/// Returns the next deadline of the forwarding path of an end.
pub(super) fn poll_timeout(forwarding: Option<&Forwarding>) -> Option<Instant> {
    forwarding?.forward.poll_timeout()
}

/// Handles timers that have expired.
pub(super) fn timeout(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let now = cx.now();
    let Some(forwarding) = iscsi.ends[end as usize].forwarding.as_deref_mut() else { return };
    forwarding.forward.timeout(now, &mut forwarding.actions);
    run(iscsi, cx, end, None);
}

/// Handles the loss of a link.
pub(super) fn link_lost(iscsi: &mut Iscsi, cx: &mut Cx<'_>, link: u32) {
    let Some((host, back)) = front_of(iscsi, link) else { return };
    let now = cx.now();
    with(iscsi, cx, host, |forwarding, switch| {
        forwarding.forward.disconnect(now, back, switch, &mut forwarding.actions);
    });
    run(iscsi, cx, host, None);
}

/// Handles the loss of the session of a host: its links end, and writes that they may have lost
/// keep their blocks until the next login of the link.
pub(super) fn host_lost(iscsi: &mut Iscsi, cx: &mut Cx<'_>, end: u32) {
    let Some(mut forwarding) = iscsi.ends[end as usize].forwarding.take() else { return };
    let session = iscsi.ends[end as usize].session;
    let storage = iscsi.sessions[session as usize].plan.storage;
    if let Some(shared) = cx.around.shared(storage) {
        forwarding.forward.close(shared.volumes);
    }
    let Forwarding { forward, links, .. } = *forwarding;
    iscsi.sessions[session as usize].forwarded += forward.counters().forwarded;
    if (0..links.len() as u8).any(|back| forward.has_lost_writes(back)) {
        iscsi.sessions[session as usize].lost.push(forward);
    }
    for &link in &*links {
        let back = iscsi.sessions[link as usize].end;
        if back != u32::MAX {
            connection::lose(iscsi, cx, back);
        }
    }
    cx.around.forwarded(cx.net, storage, 0, 0);
}

/// Returns the commands that sessions with a storage system have forwarded since the first login.
pub(super) fn count(iscsi: &Iscsi, storage: u16) -> u64 {
    let of_storage = |session: &&super::Session| session.plan.storage == storage && session.plan.front.is_none();
    let ended: u64 = iscsi.sessions.iter().filter(of_storage).map(|session| session.forwarded).sum();
    // The storage system may notice the loss of a host later than the host connects again.
    let is_here = |session: u32| iscsi.sessions.get(session as usize).as_ref().is_some_and(of_storage);
    let open = iscsi.ends.iter().filter(|end| is_here(end.session)).filter_map(|end| end.forwarding.as_deref());
    ended + open.map(|forwarding| forwarding.forward.counters().forwarded).sum::<u64>()
}
