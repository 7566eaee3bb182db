//! Queue depth of the LUNs behind one remote port of an HBA, as Linux controls it.

use std::collections::{BTreeMap, VecDeque};

/// Time in which several TASK SET FULL count as one event, in ps: 16 ticks of a kernel with
/// HZ = 1000 (`scsi_track_queue_full` of drivers/scsi/scsi.c).
pub const EVENT_PS: u64 = 16_000_000_000;

/// Number of events at one queue depth that do not reduce it (`scsi_track_queue_full`).
const EVENTS_WITHOUT_EFFECT: u32 = 10;

/// Pause of a LUN that refused a command while none was in flight, in ps.
///
/// `SCSI_DEFAULT_DEVICE_BLOCKED` is 3, the first run of the queue is immediate, and each further
/// run comes `SCSI_QUEUE_DELAY` = 3 ms later (drivers/scsi/scsi_lib.c). The command leaves in the
/// third run.
pub const IDLE_PAUSE_PS: u64 = 6_000_000_000;

/// Time of one held command in the layers of the host, in ps. It is an assumption: one core sends
/// about 200,000 requests per second through dm-multipath and the SCSI layer. A refusal that
/// arrives in the meantime stops the rest.
pub const SEND_PS: u64 = 5_000_000;

/// Limits the commands in flight to the LUNs of one target over one path.
///
/// ```text
///            start: room              TASK SET FULL, BUSY
///   command --------------> in flight --------------------> held, LUN blocked
///      |                      |  ^                             |
///      | no room, or blocked  |  | release: a command of the   |
///      v                      |  | LUN ended, or the pause of  |
///     held ------------------ | -+ an idle LUN is over <-------+
///                             v
///                           ended
/// ```
///
/// TASK SET FULL in eleven different periods of [`EVENT_PS`] reduces the depth of all LUNs of the
/// target by one (`scsi_handle_queue_full` of drivers/scsi/scsi_error.c). While commands complete,
/// the depth grows by one in each `queue_ramp_up` (`scsi_handle_queue_ramp_up`).
#[derive(Clone, Debug)]
pub struct QueueDepth {
    most: u32,
    ramp_up_ps: u64,
    depth: u32,
    events: u32,
    /// Number of the period of the last TASK SET FULL.
    last_event: Option<u64>,
    last_full_ps: u64,
    last_ramp_up_ps: Option<u64>,
    luns: BTreeMap<u16, Lun>,
}

#[derive(Clone, Debug, Default)]
struct Lun {
    in_flight: u32,
    /// True from a refusal until another command of the LUN ends or the pause is over.
    is_blocked: bool,
    /// Held commands in the order in which they continue.
    held: VecDeque<u32>,
    /// Earliest time of the next held command.
    next_ps: u64,
    /// Time that [`QueueDepth::next_release`] returned last.
    armed_ps: u64,
}

impl QueueDepth {
    /// Returns full depth `most`. `in_flight` has the LUN of each command in flight.
    pub fn new(most: u32, ramp_up_ps: u64, in_flight: impl Iterator<Item = u16>) -> QueueDepth {
        let mut luns: BTreeMap<u16, Lun> = BTreeMap::new();
        in_flight.for_each(|lun| luns.entry(lun).or_default().in_flight += 1);
        let (depth, events, last_full_ps) = (most, 0, 0);
        QueueDepth { most, ramp_up_ps, depth, events, last_event: None, last_full_ps, last_ramp_up_ps: None, luns }
    }

    /// Current depth of each LUN.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Starts a command if its LUN has room; otherwise holds it behind the others and returns
    /// false.
    pub fn start(&mut self, lun: u16, command: u32) -> bool {
        let depth = self.depth;
        let lun = self.luns.entry(lun).or_default();
        let starts = lun.held.is_empty() && lun.has_room(depth);
        if starts {
            lun.in_flight += 1;
        } else {
            lun.held.push_back(command);
        }
        starts
    }

    /// Ends a command in flight that the LUN did not refuse. `good`: it completed.
    pub fn end(&mut self, now_ps: u64, lun: u16, good: bool) {
        if good {
            self.ramp_up(now_ps);
        }
        let lun = self.luns.entry(lun).or_default();
        lun.in_flight = lun.in_flight.saturating_sub(1);
        lun.is_blocked = false;
    }

    /// Ends a command in flight that the LUN refused, with TASK SET FULL (`full`) or BUSY.
    ///
    /// Blocks the LUN. Returns the time at which to call [`QueueDepth::unblock`] if no other
    /// command of the LUN is in flight, so that none will end.
    pub fn refused(&mut self, now_ps: u64, lun: u16, full: bool) -> Option<u64> {
        if full {
            self.track_full(now_ps);
        }
        let lun = self.luns.entry(lun).or_default();
        lun.in_flight = lun.in_flight.saturating_sub(1);
        lun.is_blocked = true;
        (lun.in_flight == 0).then_some(now_ps + IDLE_PAUSE_PS)
    }

    /// Holds a refused command before all others.
    pub fn hold_first(&mut self, lun: u16, command: u32) {
        self.luns.entry(lun).or_default().held.push_front(command);
    }

    /// Ends the pause of a LUN.
    pub fn unblock(&mut self, lun: u16) {
        self.luns.entry(lun).or_default().is_blocked = false;
    }

    /// Removes and returns a held command of a LUN that has room; the caller starts it again.
    /// Commands follow each other at intervals of [`SEND_PS`].
    pub fn release(&mut self, now_ps: u64, lun: u16) -> Option<u32> {
        let depth = self.depth;
        let lun = self.luns.get_mut(&lun).filter(|lun| lun.has_room(depth) && lun.next_ps <= now_ps)?;
        let command = lun.held.pop_front()?;
        lun.in_flight += 1;
        lun.next_ps = now_ps + SEND_PS;
        Some(command)
    }

    /// Returns the time of the next [`QueueDepth::release`], unless it has been returned before.
    pub fn next_release(&mut self, lun: u16) -> Option<u64> {
        let depth = self.depth;
        let lun = self.luns.get_mut(&lun).filter(|lun| lun.has_room(depth) && !lun.held.is_empty())?;
        let is_new = std::mem::replace(&mut lun.armed_ps, lun.next_ps) != lun.next_ps;
        is_new.then_some(lun.next_ps)
    }

    /// Removes and returns all held commands, because the path is lost.
    pub fn take_held(&mut self) -> Vec<u32> {
        self.luns.values_mut().flat_map(|lun| lun.held.drain(..)).collect()
    }

    fn track_full(&mut self, now_ps: u64) {
        self.last_full_ps = now_ps;
        let event = now_ps / EVENT_PS;
        if self.last_event.replace(event) == Some(event) {
            return;
        }
        self.events += 1;
        if self.events > EVENTS_WITHOUT_EFFECT && self.depth > 1 {
            self.depth -= 1;
            self.events = 0;
        }
    }

    fn ramp_up(&mut self, now_ps: u64) {
        let has_passed = |since_ps: u64| now_ps.saturating_sub(since_ps) >= self.ramp_up_ps;
        if self.depth < self.most && has_passed(self.last_full_ps) && self.last_ramp_up_ps.is_none_or(has_passed) {
            self.depth += 1;
            self.events = 0;
            self.last_ramp_up_ps = Some(now_ps);
        }
    }
}

impl Lun {
    fn has_room(&self, depth: u32) -> bool {
        !self.is_blocked && self.in_flight < depth
    }
}
