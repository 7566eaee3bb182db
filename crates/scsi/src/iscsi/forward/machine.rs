//! Forwarding path of one host session: [`Forward`]. [`super::host`] and [`super::back`] handle its
//! two sides.

use super::action::{Action, Conn};
use super::backends::{BackEnds, BackUnit};
use super::fit::{self, Unfit};
use super::lost::LostWrites;
use super::rule::Kept;
use super::table::{Entry, Part, Stage, Table, part_number};
use crate::counters::counters;
use crate::iscsi::initiator::Established;
use crate::iscsi::parameters::Parameters;
use crate::iscsi::sequence::before;
use crate::iscsi::target::Session;
use crate::map::{LunId, VolumeId};
use crate::scsi::{BlockIo, Device, IoTag, Response};
use crate::time::{Instant, Span};
use crate::volume::{Claim, Volumes};
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, Head};
use sanloom_wire::lun::LunBytes;
use std::collections::BTreeSet;

/// State shared by the host sessions of a switch, with the session of this host.
#[derive(Debug)]
pub struct Switch<'a> {
    /// The host's session: commands that are not forwarded, and the host's columns of the Dynamic
    /// Session Mapping Table.
    pub session: &'a mut Session,
    /// SCSI device of the virtual disks. Its reservations, unit attentions and task order apply to
    /// both paths.
    pub device: &'a mut Device,
    /// The Address Translator, and the task order common to both paths.
    pub volumes: &'a mut Volumes,
    /// Volume behind each unit of the device; `None` if the unit is not a volume.
    pub disks: &'a [Option<VolumeId>],
}

/// Time-outs of the forwarding path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Idle time after which a back end with commands in flight is pinged; also the time allowed
    /// for the reply.
    pub ping: Span,
    /// Time after which an unanswered abort ends the session.
    pub abort_timeout: Span,
    /// Time without progress after which a command's unit is sent a TEST UNIT READY, because
    /// another initiator's reset may have ended the command.
    pub stall: Span,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { ping: Span::from_secs(10), abort_timeout: Span::from_secs(10), stall: Span::from_secs(5) }
    }
}

counters! {
    /// Counters of one forwarding path.
    pub struct Counters {
        /// Commands that were forwarded.
        forwarded = "commands";
        /// Forwarded commands that were split into several parts.
        split = "commands split";
        /// Commands repeated because of a unit attention of the back end.
        retries = "commands sent again";
        /// ABORT TASK requests sent.
        aborts = "commands aborted";
        /// Read data passed to the host, in bytes.
        read_bytes = "bytes read";
        /// Write data passed to back ends, in bytes.
        written_bytes = "bytes written";
        /// PDUs of back ends that match no forwarded task.
        unexpected = "unexpected PDUs";
        /// Discarded data that no action of their PDU covered, in bytes.
        uncovered_bytes = "bytes of no action";
    },
    /// Commands that took the conventional path, indexed by [`Kept`].
    kept: Kept
}

/// Response for a lost path. Hosts repeat the whole command, which then takes the conventional
/// path. BUSY is used because hosts handle ABORTED COMMAND differently, but all handle BUSY.
pub(super) const PATH_GONE: Response = Response::status(status::BUSY);
/// Maximum size of a light command in bytes. A lone command up to this size ends sooner if the
/// driver does not sleep in between, at up to twice the processor time. At 64 KiB the time saved
/// was a sixth, which is not worth that cost.
const LIGHT_BYTES: u32 = 16 << 10;
/// Number of consecutive commands that begin with none in flight, after which the host is
/// considered to send one at a time. Hosts with a deeper queue occasionally begin a command alone
/// too: busy-waiting for those cost a third more processor time at depth 8 and was no faster.
const LIGHT_COMMANDS: u32 = 8;
/// Recent commands of a host.
#[derive(Debug, Default)]
struct Load {
    /// Data length of the last command, in bytes.
    last_bytes: u32,
    /// Consecutive commands, up to the last one, that began with none in flight.
    lone_commands: u32,
}

impl Load {
    /// Counts a command that begins while `in_flight` others have not ended.
    fn count(&mut self, bytes: u32, in_flight: u32) {
        self.last_bytes = bytes;
        self.lone_commands = if in_flight == 0 { self.lone_commands.saturating_add(1) } else { 0 };
    }

    fn is_light(&self) -> bool {
        self.lone_commands >= LIGHT_COMMANDS && self.last_bytes <= LIGHT_BYTES
    }
}

/// Forwarding path of a host session. See [`super`]. Each part owns its state, and none calls
/// another:
///
/// ```text
///   Forward ---> BackEnds     sessions, windows, readiness of units, timers
///           ---> Table        tasks in flight, by host slot and by the back end's task tag
///           ---> LostWrites   claims that outlive their session
/// ```
#[derive(Debug)]
pub struct Forward {
    settings: Settings,
    pub(super) front: Parameters,
    pub(super) backs: BackEnds,
    pub(super) table: Table,
    /// Scratch list: parts of the command being planned.
    pub(super) planned: Vec<Part>,
    pub(super) counters: Counters,
    lost_writes: LostWrites,
    load: Load,
    /// Time of the next check for stalled commands.
    next_stall_check: Instant,
}

impl Forward {
    /// Creates the forwarding path for a host that agreed to `front`.
    pub fn new(settings: Settings, front: Parameters) -> Forward {
        Forward {
            settings,
            front,
            backs: BackEnds::default(),
            table: Table::default(),
            planned: Vec::new(),
            counters: Counters::default(),
            lost_writes: LostWrites::default(),
            load: Load::default(),
            next_stall_check: Instant::ZERO,
        }
    }

    /// Keeps commands for these LUNs on the conventional path, because the LUNs are not behind an
    /// iSCSI target.
    pub fn exclude(&mut self, luns: impl IntoIterator<Item = LunId>) {
        self.backs.exclude(luns);
    }

    /// Registers a completed login at a back end. It has the initiator session identifier of the
    /// previous session, if there was one. Commands are forwarded once the units are ready. `units`
    /// lists those that back LUNs of the map.
    ///
    /// # Errors
    /// Returns the reason, for the log, if nothing can be forwarded to this back end.
    pub fn connect(
        &mut self,
        now: Instant,
        back: u8,
        established: &Established,
        units: &[BackUnit],
        volumes: &mut Volumes,
        actions: &mut Vec<Action>,
    ) -> Result<(), Unfit> {
        self.end_lost_writes(back, volumes);
        let fit = fit::fits(&self.front, &established.parameters);
        self.backs.insert(now, back, established, fit, units);
        self.backs.probe(back, actions);
        fit
    }

    /// Processes the header of a PDU, without digest and additional headers. The header is modified
    /// in place if it leaves with [`Action::SendHeader`]. Appends to `actions`.
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
        self.send_queued(actions);
        *header = bhs.0;
    }

    /// Returns whether the host sends small commands one at a time. Such a command spends most of
    /// its time in wake-ups.
    pub fn is_light(&self) -> bool {
        self.table.live() <= 1 && self.load.is_light()
    }

    /// Adds a task whose parts are in `self.planned`.
    pub(super) fn begin(&mut self, tag: IoTag, io: BlockIo, claim: Claim) -> &Entry {
        self.load.count(io.bytes, self.table.live());
        let entry = self.table.insert(tag, io, claim, &mut self.planned);
        self.counters.forwarded += 1;
        self.counters.split += u64::from(!entry.is_one_to_one());
        entry
    }

    /// Updates the list of units of a back end. TEST UNIT READY is sent to new units and to units
    /// that were not ready.
    pub fn update_units(&mut self, number: u8, units: &[BackUnit], actions: &mut Vec<Action>) {
        self.backs.update_units(number, units);
        self.backs.probe(number, actions);
    }

    /// Returns whether a unit of a back end is not ready or its state is unknown.
    pub fn awaits_unit(&self, number: u8) -> bool {
        self.backs.awaits_unit(number)
    }

    /// Returns whether the answer of a unit of a back end is outstanding.
    pub fn is_probing(&self, number: u8) -> bool {
        self.backs.is_probing(number)
    }

    /// Records whether a back end accepts data. While it does not, commands for it take the
    /// conventional path.
    pub fn set_stalled(&mut self, number: u8, stalled: bool) {
        if let Some(back) = self.backs.get_mut(number) {
            back.stalled = stalled;
        }
    }

    /// Handles the loss of all commands of a unit before `cmd_sn`. Another initiator has ended
    /// them, and the target reports that only by a unit attention (SAM-5, section 5.14). The
    /// virtual disk was not reset, so hosts get BUSY and repeat their commands.
    pub(super) fn on_unit_reset(
        &mut self,
        number: u8,
        lun: LunBytes,
        cmd_sn: u32,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let now = self.last_received(number);
        for tag in self.table.tags() {
            let Some(entry) = self.table.get_mut(tag) else { continue };
            let gone = |part: &Part| {
                let of_unit = (part.back, part.lun) == (number, lun);
                of_unit && part.stage == Stage::Sent && before(part.cmd_sn, cmd_sn)
            };
            let Some(part) = entry.parts.iter().position(gone) else { continue };
            entry.fail(part_number(part), PATH_GONE);
            entry.r2ts.clear();
            // After the abort, no command is active for the task, whether the back end still had it
            // or not.
            self.stop_parts(now, tag, actions);
            self.respond_if_over(tag, switch);
        }
    }

    /// Sends TEST UNIT READY to units with a command that made no progress since the last check.
    fn check_stalled_parts(&mut self, actions: &mut Vec<Action>) {
        for entry in self.table.iter_mut() {
            for part in entry.parts.iter_mut().filter(|part| part.stage == Stage::Sent) {
                if part.moved_at_check.replace(part.moved) == Some(part.moved) {
                    self.backs.check_unit(part.back, part.lun, actions);
                }
            }
        }
    }

    /// Aborts a task, as requested by [`Output::Recall`](crate::iscsi::target::Output::Recall) for
    /// this host or another.
    pub fn recall(&mut self, now: Instant, tag: IoTag, switch: &mut Switch<'_>, actions: &mut Vec<Action>) {
        let Some(entry) = self.table.get_mut(tag) else { return };
        entry.aborted = true;
        entry.r2ts.clear();
        self.stop_parts(now, tag, actions);
        self.respond_if_over(tag, switch);
        self.send_queued(actions);
    }

    /// Handles the loss of a back-end connection and all commands on it.
    pub fn disconnect(&mut self, now: Instant, back: u8, switch: &mut Switch<'_>, actions: &mut Vec<Action>) {
        if !self.backs.remove(back) {
            return;
        }
        for tag in self.table.tags() {
            let Some(entry) = self.table.get_mut(tag) else { continue };
            let mut hit = false;
            for number in 0..entry.parts.len() {
                let part = &mut entry.parts[number];
                if part.back != back || part.stage == Stage::Over {
                    continue;
                }
                let sent = matches!(part.stage, Stage::Sent | Stage::Aborting);
                // A part that was not sent yet could take another path, but a task belongs to one
                // path.
                part.stage = Stage::Over;
                hit = true;
                if sent {
                    entry.lose(back);
                }
                entry.fail(part_number(number), PATH_GONE);
            }
            if hit {
                self.stop_parts(now, tag, actions);
                self.respond_if_over(tag, switch);
            }
        }
        self.send_queued(actions);
    }

    /// Handles the loss of the host's connection: all tasks end. The driver closes the back-end
    /// connections. Where [`has_lost_writes`](Self::has_lost_writes) returns true, a login with the
    /// same initiator session identifier has to follow.
    pub fn close(&mut self, volumes: &mut Volumes) {
        for mut entry in self.table.clear() {
            for number in 0..entry.parts.len() {
                if entry.is_in_flight(number) {
                    entry.lose(entry.parts[number].back);
                }
            }
            self.lost_writes.release(entry.claim, entry.writing_at, volumes);
        }
    }

    /// Returns the PDU that ends the session with a back end, if there is a session.
    pub fn log_out(&self, back: u8) -> Option<Head> {
        self.backs.log_out(back)
    }

    /// Removes an ended task.
    pub(super) fn remove_task(&mut self, tag: IoTag, switch: &mut Switch<'_>) {
        let Some((claim, writing_at)) = self.table.remove(tag) else { return };
        self.lost_writes.release(claim, writing_at, switch.volumes);
        switch.session.engine.end_forwarded(tag, switch.device);
    }

    /// Returns whether a lost back end may still be writing. The blocks stay locked until
    /// [`end_lost_writes`](Self::end_lost_writes).
    pub fn has_lost_writes(&self, back: u8) -> bool {
        self.lost_writes.are_pending_at(back)
    }

    /// Releases the blocks of writes lost at a back end, because a newer session has replaced the
    /// lost one.
    pub fn end_lost_writes(&mut self, back: u8, volumes: &mut Volumes) {
        for entry in self.table.iter_mut() {
            entry.writing_at.retain(|of| *of != back);
        }
        self.lost_writes.end_at(back, volumes);
    }

    /// Time at which the driver must call [`timeout`](Self::timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let check = (self.table.live() > 0).then_some(self.next_stall_check);
        Instant::earliest(&[self.backs.poll_timeout(&self.settings), check])
    }

    /// Restarts the idle timers of a back end. Its PDUs were not read because the host had no room
    /// for them, so its silence proves nothing.
    pub fn restart_timers(&mut self, now: Instant, back: u8) {
        self.backs.restart_timers(now, back);
    }

    /// Handles the timers that have expired.
    pub fn timeout(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.table.live() > 0 && self.next_stall_check <= now {
            self.next_stall_check = now + self.settings.stall;
            self.check_stalled_parts(actions);
        }
        self.backs.on_timeout(now, &self.settings, actions);
    }

    /// Stops starting commands at a back end, for a target that is better reached through another
    /// port. [`close_retired`](Self::close_retired) then closes the connection.
    pub fn retire(&mut self, number: u8) {
        if let Some(back) = self.backs.get_mut(number) {
            back.retire();
        }
    }

    /// Closes the connection to a retired back end once it has no active commands. Call it
    /// periodically, while no PDU from that back end is half sent.
    pub fn close_retired(&self, number: u8, actions: &mut Vec<Action>) {
        self.backs.close_retired(number, actions);
    }

    /// Returns the back ends that have reported a change of their port states since the last call.
    pub fn take_access_changes(&mut self) -> BTreeSet<u8> {
        self.backs.take_access_changes()
    }

    /// Number of forwarded tasks that have not ended.
    pub fn tasks(&self) -> u32 {
        self.table.live()
    }

    /// Counters since the session began.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
