//! Sessions of one host at its back ends: [`BackEnd`] and [`BackEnds`]. Windows, timers and the
//! readiness of units are handled here.

use super::action::{Action, CloseReason, Conn};
use super::adaptor::logout;
use super::fit::Unfit;
use super::machine::Settings;
use crate::disk::WriteCache;
use crate::iscsi::initiator::Established;
use crate::iscsi::parameters::Parameters;
use crate::iscsi::sequence::before;
use crate::map::LunId;
use crate::scsi::IoTag;
use crate::time::Instant;
use sanloom_wire::iscsi::Head;
use sanloom_wire::lun::LunBytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Initiator task tag of TEST UNIT READY; never a value of [`BackTag`](super::table::BackTag).
pub(super) const PROBE_TAG: u32 = 1 << 30;
/// Initiator task tag of a logout; never a value of [`BackTag`](super::table::BackTag).
pub(super) const LOGOUT_TAG: u32 = PROBE_TAG + 1;
/// Initiator task tag of the stall check; never a value of [`BackTag`](super::table::BackTag).
pub(super) const CHECK_TAG: u32 = PROBE_TAG + 2;
/// Initiator task tag of pings; never a value of [`BackTag`](super::table::BackTag).
const PING_TAG: u32 = 1 << 31;
/// Maximum number of consecutive TEST UNIT READY commands to a unit, which may report several unit
/// attentions.
const PROBES: u8 = 16;

/// Unit of a back end that backs a LUN of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackUnit {
    /// LUN in the volume map.
    pub id: LunId,
    /// LUN at the target.
    pub lun: LunBytes,
    /// Durability of written data at this unit.
    pub cache: WriteCache,
}

/// Session with a back end.
#[derive(Clone, Debug)]
pub(super) struct BackEnd {
    pub(super) parameters: Parameters,
    pub(super) fit: Result<(), Unfit>,
    pub(super) cmd_sn: u32,
    max_cmd_sn: u32,
    pub(super) exp_stat_sn: u32,
    /// Window slots reserved for parts whose unsolicited data may still arrive.
    reserved: u32,
    /// Parts that wait for the command window.
    queue: VecDeque<(IoTag, u8)>,
    /// Commands that were sent and have not ended.
    active: u32,
    /// True if nothing new may begin, because the back end requested a logout or is better reached
    /// through another port.
    retiring: bool,
    /// Units that have not yet answered TEST UNIT READY with GOOD, and the number of attempts left.
    /// The attempts collect the unit attentions that a new initiator port receives before its first
    /// command.
    probes: Vec<(LunBytes, u8)>,
    /// Unit with a TEST UNIT READY of `probes` in flight.
    probing: Option<LunBytes>,
    /// Unit with a TEST UNIT READY in flight because a command is stalled, and the number of that
    /// TEST UNIT READY.
    checking: Option<(LunBytes, u32)>,
    /// True if the back end has accepted nothing for a while, so that data for it would block the
    /// host.
    pub(super) stalled: bool,
    pub(super) last_received: Instant,
    /// Time of the unanswered ping.
    pinged: Option<Instant>,
    /// Time of the oldest ABORT TASK that may be unanswered, and the number of unanswered ones.
    aborting: Option<(Instant, u32)>,
}

impl BackEnd {
    fn new(now: Instant, established: &Established, fit: Result<(), Unfit>, units: &[BackUnit]) -> BackEnd {
        BackEnd {
            parameters: established.parameters,
            fit,
            cmd_sn: established.cmd_sn,
            max_cmd_sn: established.max_cmd_sn,
            exp_stat_sn: established.exp_stat_sn,
            reserved: 0,
            queue: VecDeque::new(),
            active: 0,
            retiring: false,
            probes: units.iter().map(|unit| (unit.lun, PROBES)).collect(),
            probing: None,
            checking: None,
            stalled: false,
            last_received: now,
            pinged: None,
            aborting: None,
        }
    }

    /// Number of commands that the window still admits.
    fn window(&self) -> u32 {
        let end = self.max_cmd_sn.wrapping_add(1);
        if before(self.cmd_sn, end) { end.wrapping_sub(self.cmd_sn) } else { 0 }
    }

    /// Returns whether the window has a slot that is not reserved.
    pub(super) fn has_slot(&self) -> bool {
        self.window() > self.reserved
    }

    /// Window slots that are neither reserved nor needed by queued parts.
    pub(super) fn room(&self) -> u32 {
        if self.queue.is_empty() { self.window().saturating_sub(self.reserved) } else { 0 }
    }

    /// Reserves a window slot for a part that may have to be sent later.
    pub(super) fn reserve_slot(&mut self) {
        debug_assert!(self.reserved < self.window(), "a reserved slot is in the window");
        self.reserved += 1;
    }

    /// Ends a reservation, because the command is sent now or never.
    pub(super) fn free_slot(&mut self) {
        debug_assert!(self.reserved > 0, "only a reserved slot is freed");
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// Queues a part until the window opens.
    pub(super) fn enqueue(&mut self, tag: IoTag, part: u8) {
        self.queue.push_back((tag, part));
    }

    /// Removes the next queued part, if the window has a slot for it.
    pub(super) fn dequeue(&mut self) -> Option<(IoTag, u8)> {
        if self.has_slot() { self.queue.pop_front() } else { None }
    }

    /// Assigns the number of the next command and counts the command.
    pub(super) fn next_cmd_sn(&mut self) -> u32 {
        debug_assert!(self.window() > 0, "a command is sent only while the window is open");
        let cmd_sn = self.cmd_sn;
        self.cmd_sn = cmd_sn.wrapping_add(1);
        self.active += 1;
        cmd_sn
    }

    /// Counts the end of a command.
    pub(super) fn end_command(&mut self) {
        debug_assert!(self.active > 0, "more commands end than were sent");
        self.active = self.active.saturating_sub(1);
    }

    pub(super) fn accepts_commands(&self, lun: LunBytes) -> bool {
        !self.retiring && !self.probes.iter().any(|(of, _)| *of == lun)
    }

    /// Starts no new commands.
    pub(super) fn retire(&mut self) {
        self.retiring = true;
    }

    /// Records a PDU with its MaxCmdSN.
    pub(super) fn received(&mut self, now: Instant, max_cmd_sn: u32) {
        self.last_received = now;
        self.pinged = None;
        if before(self.max_cmd_sn, max_cmd_sn) {
            self.max_cmd_sn = max_cmd_sn;
        }
    }

    /// Counts a status.
    pub(super) fn count_status(&mut self, stat_sn: u32) {
        if !before(stat_sn, self.exp_stat_sn) {
            self.exp_stat_sn = stat_sn.wrapping_add(1);
        }
    }

    /// Counts an ABORT TASK sent at `now`.
    pub(super) fn begin_abort(&mut self, now: Instant) {
        let (since, count) = self.aborting.unwrap_or((now, 0));
        self.aborting = Some((since, count + 1));
    }

    /// Counts the answer to an ABORT TASK.
    pub(super) fn end_abort(&mut self) {
        debug_assert!(self.aborting.is_some(), "an abort that was not sent is answered");
        self.aborting = self.aborting.and_then(|(since, left)| (left > 1).then_some((since, left - 1)));
    }

    fn poll_timeout(&self, settings: &Settings) -> Option<Instant> {
        let ping = (self.active > 0).then(|| self.pinged.unwrap_or(self.last_received) + settings.ping);
        let abort = self.aborting.map(|(since, _)| since + settings.abort_timeout);
        Instant::earliest(&[ping, abort])
    }
}

/// Sessions of a host at all back ends, and the units that they reach.
#[derive(Debug, Default)]
pub(super) struct BackEnds {
    sessions: Vec<Option<BackEnd>>,
    /// LUNs of the map, with the number of the back end and the unit there.
    luns: BTreeMap<LunId, (u8, BackUnit)>,
    /// LUNs that are not behind an iSCSI target.
    not_iscsi: BTreeSet<LunId>,
    /// Back ends that have reported a change of their port states.
    access_changes: BTreeSet<u8>,
}

impl BackEnds {
    #[inline]
    pub(super) fn get(&self, number: u8) -> Option<&BackEnd> {
        self.sessions.get(usize::from(number))?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u8) -> Option<&mut BackEnd> {
        self.sessions.get_mut(usize::from(number))?.as_mut()
    }

    /// Numbers of all back ends, connected or not.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u8> + use<> {
        (0..self.sessions.len()).map_while(|number| u8::try_from(number).ok())
    }

    /// Records LUNs that are not behind an iSCSI target.
    pub(super) fn exclude(&mut self, luns: impl IntoIterator<Item = LunId>) {
        self.not_iscsi.extend(luns);
    }

    pub(super) fn is_excluded(&self, lun: LunId) -> bool {
        self.not_iscsi.contains(&lun)
    }

    /// Back end of a LUN, and its unit there.
    pub(super) fn unit_of(&self, lun: LunId) -> Option<(u8, BackUnit)> {
        self.luns.get(&lun).copied()
    }

    /// Registers a session after its login.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        number: u8,
        established: &Established,
        fit: Result<(), Unfit>,
        units: &[BackUnit],
    ) {
        self.set_units(number, units);
        let index = usize::from(number);
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        self.sessions[index] = Some(BackEnd::new(now, established, fit, units));
    }

    /// Removes a lost session. Returns false if there was never one.
    pub(super) fn remove(&mut self, number: u8) -> bool {
        let Some(session) = self.sessions.get_mut(usize::from(number)) else { return false };
        *session = None;
        true
    }

    fn set_units(&mut self, number: u8, units: &[BackUnit]) {
        self.luns.retain(|_, (of, _)| *of != number);
        self.luns.extend(units.iter().map(|unit| (unit.id, (number, *unit))));
    }

    /// Updates the units of a back end. New units, and units that were not ready, will be probed.
    pub(super) fn update_units(&mut self, number: u8, units: &[BackUnit]) {
        let Some(back) = self.get(number) else { return };
        let known = |lun: &LunBytes| self.luns.values().any(|(of, one)| (*of, one.lun) == (number, *lun));
        let fresh = units.iter().map(|unit| unit.lun).filter(|lun| !known(lun));
        let earlier = back.probes.iter().map(|(lun, _)| *lun).filter(|lun| units.iter().any(|unit| unit.lun == *lun));
        let probes: Vec<(LunBytes, u8)> = earlier.chain(fresh).map(|lun| (lun, PROBES)).collect();
        if let Some(back) = self.get_mut(number) {
            back.probes = probes;
        }
        self.set_units(number, units);
    }

    /// Returns whether a unit of a back end is not ready or its state is unknown.
    pub(super) fn awaits_unit(&self, number: u8) -> bool {
        self.get(number).is_some_and(|back| !back.probes.is_empty())
    }

    /// Returns whether the answer of a unit of a back end is outstanding. Until then, commands for
    /// the unit are not forwarded.
    pub(super) fn is_probing(&self, number: u8) -> bool {
        self.get(number).is_some_and(|back| back.probes.iter().any(|(_, left)| *left > 0))
    }

    /// Sends TEST UNIT READY to the next unit of a back end that is not known to be ready.
    pub(super) fn probe(&mut self, number: u8, actions: &mut Vec<Action>) {
        let Some(back) = self.get_mut(number) else { return };
        let next = back.probes.iter().find(|(_, left)| *left > 0).filter(|_| back.probing.is_none());
        let Some((lun, _)) = next.copied().filter(|_| back.room() > 0) else { return };
        actions.push(Action::Send { to: Conn::Back(number), header: back.test_unit_ready(lun, PROBE_TAG) });
        back.probing = Some(lun);
    }

    /// Handles the answer to a TEST UNIT READY of [`probe`](Self::probe). Returns false if there
    /// was none in flight.
    pub(super) fn probed(&mut self, number: u8, ready: bool, actions: &mut Vec<Action>) -> bool {
        let Some(back) = self.get_mut(number) else { return true };
        let Some(lun) = back.probing.take() else { return false };
        back.end_command();
        if ready {
            back.probes.retain(|(of, _)| *of != lun);
        }
        for (_, left) in back.probes.iter_mut().filter(|(of, _)| *of == lun) {
            *left = left.saturating_sub(1);
        }
        self.probe(number, actions);
        true
    }

    /// Sends TEST UNIT READY to a unit with a stalled command, unless one is in flight.
    pub(super) fn check_unit(&mut self, number: u8, lun: LunBytes, actions: &mut Vec<Action>) {
        let Some(back) = self.get_mut(number) else { return };
        if back.checking.is_none() && back.room() > 0 {
            back.checking = Some((lun, back.cmd_sn));
            let header = back.test_unit_ready(lun, CHECK_TAG);
            actions.push(Action::Send { to: Conn::Back(number), header });
        }
    }

    /// Handles the answer to a stall check. Returns its unit and command number, if there was one
    /// in flight.
    pub(super) fn checked(&mut self, number: u8) -> Option<(LunBytes, u32)> {
        let back = self.get_mut(number)?;
        let checked = back.checking.take()?;
        back.end_command();
        Some(checked)
    }

    /// Records a change of the port states of a back end.
    pub(super) fn access_changed(&mut self, number: u8) {
        self.access_changes.insert(number);
    }

    pub(super) fn take_access_changes(&mut self) -> BTreeSet<u8> {
        std::mem::take(&mut self.access_changes)
    }

    /// Closes the connection to a retiring back end once it has no active commands.
    pub(super) fn close_retired(&self, number: u8, actions: &mut Vec<Action>) {
        if self.get(number).is_some_and(|back| back.retiring && back.active == 0) {
            actions.push(Action::Close { conn: Conn::Back(number), reason: CloseReason::LogoutRequested });
        }
    }

    /// Returns the PDU that ends the session with a back end, if there is a session.
    pub(super) fn log_out(&self, number: u8) -> Option<Head> {
        self.get(number).map(|back| logout(back.cmd_sn, back.exp_stat_sn))
    }

    /// Restarts the idle timers of a back end.
    pub(super) fn restart_timers(&mut self, now: Instant, number: u8) {
        let Some(back) = self.get_mut(number) else { return };
        (back.last_received, back.pinged) = (now, None);
        back.aborting = back.aborting.map(|(_, count)| (now, count));
    }

    pub(super) fn poll_timeout(&self, settings: &Settings) -> Option<Instant> {
        self.sessions.iter().flatten().filter_map(|back| back.poll_timeout(settings)).min()
    }

    /// Pings idle back ends with commands in flight, and closes the connections of back ends that
    /// do not answer.
    pub(super) fn on_timeout(&mut self, now: Instant, settings: &Settings, actions: &mut Vec<Action>) {
        let Settings { ping, abort_timeout, .. } = *settings;
        for (number, back) in (0..).zip(&mut self.sessions) {
            let Some(back) = back else { continue };
            let conn = Conn::Back(number);
            let silent = Action::Close { conn, reason: CloseReason::Silent };
            if back.aborting.is_some_and(|(since, _)| since + abort_timeout <= now) {
                actions.push(silent);
                continue;
            }
            match back.pinged {
                Some(pinged) if back.active > 0 && pinged + ping <= now => actions.push(silent),
                None if back.active > 0 && back.last_received + ping <= now => {
                    back.pinged = Some(now);
                    actions.push(Action::Send { to: conn, header: back.ping(PING_TAG) });
                }
                _ => {}
            }
        }
    }
}
