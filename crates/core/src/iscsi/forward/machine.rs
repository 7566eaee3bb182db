//! The forwarding path of one host session: [`Forward`]. Its two sides are [`super::host`] and [`super::back`].

use super::action::{Action, CloseReason, Conn};
use super::adaptor::logout;
use super::fit::{self, Unfit};
use super::rule::Kept;
use super::table::{BackTag, Entry, Part, Stage};
use crate::disk::WriteCache;
use crate::iscsi::initiator::Established;
use crate::iscsi::parameters::Parameters;
use crate::iscsi::sequence::before;
use crate::iscsi::target::Session;
use crate::map::{LunId, VolumeId};
use crate::scsi::{Device, IoTag, Response};
use crate::time::{Instant, Span};
use crate::volume::{Claim, Volumes};
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, Head};
use sanloom_wire::lun::LunBytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the host sessions of a switch share, and the session of this one.
#[derive(Debug)]
pub struct Switch<'a> {
    /// The host's session: commands that are not forwarded, and the host's columns of the table.
    pub session: &'a mut Session,
    /// The virtual disks, to SCSI: reservations, unit attentions and order are in force for both paths.
    pub device: &'a mut Device,
    /// The Address Translator, and the order of the two paths.
    pub volumes: &'a mut Volumes,
    /// What each unit of the device is; `None`: no volume.
    pub disks: &'a [Option<VolumeId>],
}

/// How the forwarding path behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// A back end that says nothing for this long while it has commands is asked, and has as long again to answer.
    pub ping: Span,
    /// An abort that is not answered after this time ends the session.
    pub abort_timeout: Span,
    /// A command of which nothing moves for so long may have been ended by somebody else's reset: its unit is asked.
    pub stall: Span,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { ping: Span::from_secs(10), abort_timeout: Span::from_secs(10), stall: Span::from_secs(5) }
    }
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Commands that were forwarded.
    pub forwarded: u64,
    /// Those of them that went to several places.
    pub split: u64,
    /// Bytes of data of reads and writes that passed.
    pub read_bytes: u64,
    /// Bytes of data of writes that passed.
    pub written_bytes: u64,
    /// Commands that went the conventional way, by [`Kept`].
    pub kept: [u64; Kept::ALL.len()],
    /// Commands that were sent again, because of a unit attention of the back end.
    pub again: u64,
    /// ABORT TASK sent.
    pub aborts: u64,
    /// PDUs of back ends about nothing that is here.
    pub unexpected: u64,
}

impl Counters {
    /// What was counted for another session comes on top.
    pub fn add(&mut self, other: &Counters) {
        let Counters { forwarded, split, read_bytes, written_bytes, kept, again, aborts, unexpected } = *other;
        self.forwarded += forwarded;
        self.split += split;
        self.read_bytes += read_bytes;
        self.written_bytes += written_bytes;
        self.kept.iter_mut().zip(kept).for_each(|(sum, one)| *sum += one);
        self.again += again;
        self.aborts += aborts;
        self.unexpected += unexpected;
    }
}

/// A unit of a back end that is a LUN of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackUnit {
    /// The LUN of the map.
    pub id: LunId,
    /// The unit at its target.
    pub lun: LunBytes,
    /// Whether written data are durable there.
    pub cache: WriteCache,
}

/// The session with a back end.
#[derive(Clone, Debug)]
pub(super) struct BackEnd {
    pub(super) parameters: Parameters,
    pub(super) fit: Result<(), Unfit>,
    pub(super) cmd_sn: u32,
    pub(super) max_cmd_sn: u32,
    pub(super) exp_stat_sn: u32,
    /// Places in the window that parts will need whose data are under way.
    pub(super) reserved: u32,
    /// Parts that wait for the window.
    pub(super) queue: VecDeque<(IoTag, u8)>,
    /// Parts that were sent and have not ended.
    pub(super) active: u32,
    /// It asked for a logout, or is better reached through another port: nothing new begins.
    pub(super) leaving: bool,
    /// Units that have not said GOOD to TEST UNIT READY, and how often they may still say something else: what they have to tell
    /// a new initiator port is told before the first command.
    pub(super) probes: Vec<(LunBytes, u8)>,
    /// One of them is asked.
    pub(super) probing: Option<LunBytes>,
    /// The unit of a command that does not go on is asked, with this command number.
    pub(super) checking: Option<(LunBytes, u32)>,
    /// It has taken nothing for a while: what comes for it would stop the host.
    pub(super) stuck: bool,
    pub(super) heard: Instant,
    pub(super) asked: Option<Instant>,
    /// The oldest ABORT TASK that may be unanswered, and how many are.
    pub(super) aborting: Option<(Instant, u32)>,
}

impl BackEnd {
    /// Commands that may still be sent.
    pub(super) fn window(&self) -> u32 {
        let end = self.max_cmd_sn.wrapping_add(1);
        if before(self.cmd_sn, end) { end.wrapping_sub(self.cmd_sn) } else { 0 }
    }

    /// Of these, those that nobody waits for.
    pub(super) fn room(&self) -> u32 {
        if self.queue.is_empty() { self.window().saturating_sub(self.reserved) } else { 0 }
    }

    pub(super) fn takes_commands(&self, lun: LunBytes) -> bool {
        !self.leaving && !self.probes.iter().any(|(of, _)| *of == lun)
    }
}

/// The path is gone: hosts send the whole command again, and find the conventional path then. Hosts differ in what they do about ABORTED
/// COMMAND, but all of them know this.
pub(super) const PATH_GONE: Response = Response::status(status::BUSY);
/// Initiator task tag of TEST UNIT READY, which is none of [`BackTag`].
pub(super) const PROBE_TAG: u32 = 1 << 30;
/// Initiator task tag of a logout, which is none of [`BackTag`].
pub(super) const LOGOUT_TAG: u32 = PROBE_TAG + 1;
/// And of the question why a command does not go on.
pub(super) const CHECK_TAG: u32 = PROBE_TAG + 2;
/// How often a unit is asked at once. It may have several unit attentions to tell.
const PROBES: u8 = 16;
/// Up to so much data, a command that is alone takes less time where nobody sleeps in between, at up to twice the processor time. 64 KiB took a sixth
/// less time so, which is not worth that.
const LIGHT_BYTES: u32 = 16 << 10;
/// So many commands that begin alone, one after the other, are those of a host that waits for each. Of one that sends more at a time some find
/// nothing under way, too: not to sleep for them took a third more processor time at depth 8, and was no faster.
const LIGHT_COMMANDS: u32 = 8;
/// Initiator task tag of pings, which is none of [`BackTag`].
const PING_TAG: u32 = 1 << 31;

/// The forwarding path of a host session. See [`super`].
#[derive(Debug)]
pub struct Forward {
    pub(super) settings: Settings,
    pub(super) front: Parameters,
    /// LUNs of the map, and at which back end each is.
    pub(super) luns: BTreeMap<LunId, (u8, BackUnit)>,
    /// LUNs that are behind no iSCSI target.
    pub(super) elsewhere: BTreeSet<LunId>,
    pub(super) backs: Vec<Option<BackEnd>>,
    /// By the number of the host's task.
    pub(super) entries: Vec<Option<Entry>>,
    pub(super) live: u32,
    /// Data of the last command.
    pub(super) last_bytes: u32,
    /// So many commands, up to the last one, have begun while none was under way.
    pub(super) alone: u32,
    /// The parts of the command that is looked at.
    pub(super) spare: Vec<Part>,
    /// Tables of tasks that are over, for the next.
    pub(super) kept_parts: Vec<(Vec<Part>, VecDeque<super::table::BackR2t>)>,
    pub(super) counters: Counters,
    /// Writes that were lost, and the back ends that may still be at work for each.
    behind: Vec<(Claim, Vec<u8>)>,
    /// When to look for commands that do not go on.
    look: Instant,
    /// Back ends whose ports serve otherwise than before.
    pub(super) told: BTreeSet<u8>,
}

impl Forward {
    /// For a host that agreed to `front`.
    pub fn new(settings: Settings, front: Parameters) -> Forward {
        let luns = BTreeMap::new();
        let counters = Counters::default();
        let (backs, entries, spare, kept_parts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Forward {
            settings,
            front,
            luns,
            elsewhere: BTreeSet::new(),
            backs,
            entries,
            live: 0,
            last_bytes: 0,
            alone: 0,
            spare,
            kept_parts,
            counters,
            behind: Vec::new(),
            look: Instant::ZERO,
            told: BTreeSet::new(),
        }
    }

    /// These LUNs of the map are behind no iSCSI target: commands for them have no PDU that could go on.
    pub fn keep_from(&mut self, luns: impl IntoIterator<Item = LunId>) {
        self.elsewhere.extend(luns);
    }

    /// A login at a back end is complete, with the initiator session identifier of the session before, if there was one. Commands are
    /// forwarded to it once its units are ready. `units`: those that are LUNs of the map.
    ///
    /// # Errors
    /// Why nothing will be forwarded to it, for the log.
    pub fn back_up(
        &mut self,
        now: Instant,
        back: u8,
        established: &Established,
        units: &[BackUnit],
        volumes: &mut Volumes,
        actions: &mut Vec<Action>,
    ) -> Result<(), Unfit> {
        self.ended_at(back, volumes);
        self.luns.retain(|_, (of, _)| *of != back);
        self.luns.extend(units.iter().map(|unit| (unit.id, (back, *unit))));
        let number = usize::from(back);
        if self.backs.len() <= number {
            self.backs.resize_with(number + 1, || None);
        }
        let fit = fit::fits(&self.front, &established.parameters);
        self.backs[number] = Some(BackEnd {
            parameters: established.parameters,
            fit,
            cmd_sn: established.cmd_sn,
            max_cmd_sn: established.max_cmd_sn,
            exp_stat_sn: established.exp_stat_sn,
            reserved: 0,
            queue: VecDeque::new(),
            active: 0,
            leaving: false,
            probes: units.iter().map(|unit| (unit.lun, PROBES)).collect(),
            probing: None,
            checking: None,
            stuck: false,
            heard: now,
            asked: None,
            aborting: None,
        });
        self.probe(back, actions);
        fit
    }

    /// The header of a PDU has come, without digest and additional headers. It is changed where [`Action::SendHeader`] says that it leaves.
    /// Actions are added to `actions`.
    pub fn on_header(
        &mut self,
        now: Instant,
        conn: Conn,
        header: &mut [u8; BHS_BYTES],
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let mut bhs = Bhs(*header);
        match conn {
            Conn::Host => self.on_host(now, &mut bhs, switch, actions),
            Conn::Back(back) => self.on_back(now, back, &mut bhs, switch, actions),
        }
        self.pump(actions);
        *header = bhs.0;
    }

    /// A host has one small command under way at a time: most of its time is what everybody needs to wake up.
    pub fn is_light(&self) -> bool {
        self.live <= 1 && self.alone >= LIGHT_COMMANDS && self.last_bytes <= LIGHT_BYTES
    }

    /// Asks the next unit of a back end whether it is ready.
    pub(super) fn probe(&mut self, number: u8, actions: &mut Vec<Action>) {
        let Some(Some(back)) = self.backs.get_mut(usize::from(number)) else { return };
        let next = back.probes.iter().find(|(_, left)| *left > 0).filter(|_| back.probing.is_none());
        let Some((lun, _)) = next.copied().filter(|_| back.room() > 0) else { return };
        actions.push(Action::Send { to: Conn::Back(number), header: back.test_unit_ready(lun, PROBE_TAG) });
        back.probing = Some(lun);
    }

    /// The LUNs of the map that a back end has now. Those that are new, and those that were not ready, are asked whether they are.
    pub fn units(&mut self, number: u8, units: &[BackUnit], actions: &mut Vec<Action>) {
        let Some(Some(back)) = self.backs.get_mut(usize::from(number)) else { return };
        let known = |lun: &LunBytes| self.luns.values().any(|(of, one)| (*of, one.lun) == (number, *lun));
        let fresh = units.iter().map(|unit| unit.lun).filter(|lun| !known(lun));
        let before = back.probes.iter().map(|(lun, _)| *lun).filter(|lun| units.iter().any(|unit| unit.lun == *lun));
        let probes: Vec<(LunBytes, u8)> = before.chain(fresh).map(|lun| (lun, PROBES)).collect();
        back.probes = probes;
        self.luns.retain(|_, (of, _)| *of != number);
        self.luns.extend(units.iter().map(|unit| (unit.id, (number, *unit))));
        self.probe(number, actions);
    }

    /// A unit of a back end is not ready yet, or not known to be.
    pub fn awaits_unit(&self, number: u8) -> bool {
        self.backs.get(usize::from(number)).and_then(Option::as_ref).is_some_and(|back| !back.probes.is_empty())
    }

    /// A back end has taken nothing for a while, or takes something again: commands for it go the conventional way meanwhile.
    pub fn stuck(&mut self, number: u8, stuck: bool) {
        if let Some(Some(back)) = self.backs.get_mut(usize::from(number)) {
            back.stuck = stuck;
        }
    }

    /// A unit has answered.
    pub(super) fn probed(&mut self, number: u8, ready: bool, actions: &mut Vec<Action>) {
        let Some(Some(back)) = self.backs.get_mut(usize::from(number)) else { return };
        let Some(lun) = back.probing.take() else {
            self.counters.unexpected += 1;
            return;
        };
        back.active = back.active.saturating_sub(1);
        if ready {
            back.probes.retain(|(of, _)| *of != lun);
        }
        for (_, left) in back.probes.iter_mut().filter(|(of, _)| *of == lun) {
            *left = left.saturating_sub(1);
        }
        self.probe(number, actions);
    }

    /// The unit of a command that does not go on has said something else, or that it was reset.
    pub(super) fn checked(&mut self, number: u8, reset: bool, switch: &mut Switch<'_>, actions: &mut Vec<Action>) {
        let Some(Some(back)) = self.backs.get_mut(usize::from(number)) else { return };
        let Some((lun, cmd_sn)) = back.checking.take() else {
            self.counters.unexpected += 1;
            return;
        };
        back.active = back.active.saturating_sub(1);
        if reset {
            self.cleared(number, lun, cmd_sn, switch, actions);
        }
    }

    /// Somebody else has ended all commands of a unit before this one, and its target says no more of them (SAM-5, section 5.14: only
    /// by a unit attention). For the host nothing was reset: it sends them again.
    pub(super) fn cleared(
        &mut self,
        number: u8,
        lun: LunBytes,
        cmd_sn: u32,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let now = self.heard(number);
        for tag in self.tags() {
            let Some(entry) = self.entry(tag) else { continue };
            let gone = |part: &Part| {
                let of_unit = (part.back, part.lun) == (number, lun);
                of_unit && part.stage == Stage::Sent && before(part.cmd_sn, cmd_sn)
            };
            let Some(part) = entry.parts.iter().position(gone) else { continue };
            entry.fail(part as u8, PATH_GONE);
            entry.r2ts.clear();
            // Whether it was there or not: nothing is at work for it afterwards.
            self.stop_parts(now, tag, actions);
            self.settle(tag, switch);
        }
    }

    /// Asks units of which a command has not gone on since the last look.
    fn look_at_parts(&mut self, actions: &mut Vec<Action>) {
        for entry in self.entries.iter_mut().flatten() {
            for part in entry.parts.iter_mut().filter(|part| part.stage == Stage::Sent) {
                if part.looked.replace(part.moved) != Some(part.moved) {
                    continue;
                }
                let Some(Some(back)) = self.backs.get_mut(usize::from(part.back)) else { continue };
                if back.checking.is_none() && back.room() > 0 {
                    back.checking = Some((part.lun, back.cmd_sn));
                    let header = back.test_unit_ready(part.lun, CHECK_TAG);
                    actions.push(Action::Send { to: Conn::Back(part.back), header });
                }
            }
        }
    }

    /// [`Output::Recall`](crate::iscsi::target::Output::Recall): the host, or another one, ends a task.
    pub fn recall(&mut self, now: Instant, tag: IoTag, switch: &mut Switch<'_>, actions: &mut Vec<Action>) {
        let Some(entry) = self.entry(tag) else { return };
        entry.dying = true;
        entry.r2ts.clear();
        self.stop_parts(now, tag, actions);
        self.settle(tag, switch);
        self.pump(actions);
    }

    /// The connection to a back end is gone, and with it all its commands.
    pub fn lost(&mut self, now: Instant, back: u8, switch: &mut Switch<'_>, actions: &mut Vec<Action>) {
        let Some(gone) = self.backs.get_mut(usize::from(back)) else { return };
        *gone = None;
        for tag in self.tags() {
            let Some(entry) = self.entry(tag) else { continue };
            let mut hit = false;
            for number in 0..entry.parts.len() {
                let part = &mut entry.parts[number];
                if part.back != back || part.stage == Stage::Over {
                    continue;
                }
                let sent = matches!(part.stage, Stage::Sent | Stage::Aborting);
                // A part that was not asked for yet could have been on another path, but the task is on this one.
                part.stage = Stage::Over;
                hit = true;
                if sent {
                    entry.leave_behind(back);
                }
                entry.fail(number as u8, PATH_GONE);
            }
            if hit {
                self.stop_parts(now, tag, actions);
                self.settle(tag, switch);
            }
        }
        self.pump(actions);
    }

    /// The host's connection is gone: nothing is under way any more for both sides. Connections to back ends are to be closed. Where
    /// [`leaves_behind`](Self::leaves_behind) says so, a login with the same initiator session identifier has to follow.
    pub fn close(&mut self, volumes: &mut Volumes) {
        for mut entry in std::mem::take(&mut self.entries).into_iter().flatten() {
            for number in 0..entry.parts.len() {
                let part = entry.parts[number];
                if matches!(part.stage, Stage::Sent | Stage::Aborting) {
                    entry.leave_behind(part.back);
                }
            }
            self.give_back(entry.claim, entry.behind, volumes);
        }
        self.live = 0;
    }

    /// The PDU that ends the session with a back end, if there is one.
    pub fn log_out(&self, back: u8) -> Option<Head> {
        let back = self.backs.get(usize::from(back))?.as_ref()?;
        Some(logout(back.cmd_sn, back.exp_stat_sn))
    }

    /// The blocks of a task are free, unless a back end may still be writing.
    pub(super) fn give_back(&mut self, claim: Claim, behind: Vec<u8>, volumes: &mut Volumes) {
        if behind.is_empty() {
            return volumes.release(claim);
        }
        volumes.seize(&claim);
        self.behind.push((claim, behind));
    }

    /// A back end that was lost may still be writing: nobody else writes there before [`ended_at`](Self::ended_at).
    pub fn leaves_behind(&self, back: u8) -> bool {
        self.behind.iter().any(|(_, backs)| backs.contains(&back))
    }

    /// A back end does nothing more for a session that was lost: another one took its place.
    pub fn ended_at(&mut self, back: u8, volumes: &mut Volumes) {
        for entry in self.entries.iter_mut().flatten() {
            entry.behind.retain(|of| *of != back);
        }
        self.behind.retain_mut(|(claim, backs)| {
            backs.retain(|of| *of != back);
            if backs.is_empty() {
                volumes.release(*claim);
            }
            !backs.is_empty()
        });
    }

    /// When to come back with [`timeout`](Self::timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let of = |back: &BackEnd| {
            let ping = (back.active > 0).then(|| back.asked.unwrap_or(back.heard) + self.settings.ping);
            let abort = back.aborting.map(|(at, _)| at + self.settings.abort_timeout);
            Instant::earliest(&[ping, abort])
        };
        let look = (self.live > 0).then_some(self.look);
        self.backs.iter().flatten().filter_map(of).chain(look).min()
    }

    /// The host has no room for what a back end has to say, so it is not heard for another reason than that it is silent.
    pub fn unheard(&mut self, now: Instant, back: u8) {
        let Some(Some(back)) = self.backs.get_mut(usize::from(back)) else { return };
        (back.heard, back.asked) = (now, None);
        back.aborting = back.aborting.map(|(_, count)| (now, count));
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let Settings { ping, abort_timeout, stall } = self.settings;
        if self.live > 0 && self.look <= now {
            self.look = now + stall;
            self.look_at_parts(actions);
        }
        for (number, back) in (0..).zip(&mut self.backs) {
            let Some(back) = back else { continue };
            let conn = Conn::Back(number);
            let silent = Action::Close { conn, reason: CloseReason::Silent };
            if back.aborting.is_some_and(|(at, _)| at + abort_timeout <= now) {
                actions.push(silent);
                continue;
            }
            match back.asked {
                Some(asked) if back.active > 0 && asked + ping <= now => actions.push(silent),
                None if back.active > 0 && back.heard + ping <= now => {
                    back.asked = Some(now);
                    actions.push(Action::Send { to: conn, header: back.ping(PING_TAG) });
                }
                _ => {}
            }
        }
    }

    /// Tasks that are forwarded and have not ended.
    pub fn tasks(&self) -> u32 {
        self.live
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn tags(&self) -> Vec<IoTag> {
        self.entries.iter().flatten().map(|entry| entry.tag).collect()
    }

    pub(super) fn entry(&mut self, tag: IoTag) -> Option<&mut Entry> {
        self.entries.get_mut(usize::from(tag.0 as u16))?.as_mut().filter(|entry| entry.tag == tag)
    }

    /// The task and part that a back end means.
    pub(super) fn find(&self, back: u8, tag: u32) -> Option<(IoTag, BackTag)> {
        let of = BackTag::from_tag(tag)?;
        let entry = self.entries.get(usize::from(of.slot))?.as_ref()?;
        let part = entry.parts.get(usize::from(of.part))?;
        let same = BackTag::new(entry.tag, of.part, of.abort) == of && part.back == back;
        same.then_some((entry.tag, of))
    }
}
