//! Requests in a group: their rounds of reads and writes.

use super::*;
use crate::raid::LOG_HEADER_BLOCKS;

/// Protection of a stripe, or chunk of a mirror, that a request writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    pub stripe: u64,
    /// First row of the writes, and the row behind the last, in blocks from the start of the chunk.
    pub rows: (u32, u32),
    is_at_risk: bool,
    /// Writes of disks that have not ended.
    left: u32,
    /// A write has been passed to a disk.
    pub is_open: bool,
    /// The write makes all redundancy of the stripe agree.
    is_whole: bool,
    log: LogState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LogState {
    /// Blocks of the log to write first.
    Due(u64),
    InFlight,
    Done,
}

/// A request in a group. The buffers are used again.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub request: Request,
    /// Requests to disks that have not ended.
    pub pending: u32,
    /// Reads that have not ended, by stripe; its writes wait for them.
    reads: Vec<(u64, u32)>,
    pub writes: Vec<MemberIo>,
    pub opened: Vec<Opened>,
    /// First and last chunk of disks that it uses.
    pub rows: Range,
    /// First and last stripe that it writes.
    pub stripes: Option<Range>,
    /// A disk has failed or a block is repaired, so the request begins again when its other parts
    /// have ended.
    pub is_repeated: bool,
    /// A block that it needs cannot be read.
    is_lost: bool,
    is_wrong: bool,
}

impl Group {
    pub fn submit(&mut self, request: Request, to: &mut Context<'_>) {
        self.advance_errors(to.now_ps);
        if self.must_follow(&request, self.waiting.len()) || !self.start(request, to) {
            self.stats.waited += 1;
            self.waiting.push_back(request);
        }
    }

    /// Starts a request. Returns `false` if it must wait.
    fn start(&mut self, request: Request, to: &mut Context<'_>) -> bool {
        let (rows, stripes) = match self.plan(&request, to.devices) {
            Ok(ranges) => ranges,
            Err(()) => {
                self.stats.lost_requests += 1;
                to.done.push((request.origin, Outcome::Lost));
                return true;
            }
        };
        if self.is_blocked(rows, stripes) {
            return false;
        }
        let is_wrong = request.op == Op::Read && self.reads_wrong(&request);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.running.push(Running {
                request,
                pending: 0,
                reads: Vec::new(),
                writes: Vec::new(),
                opened: Vec::new(),
                rows,
                stripes,
                is_repeated: false,
                is_lost: false,
                is_wrong,
            });
            self.running.len() as u32 - 1
        });
        let running = &mut self.running[slot as usize];
        running.request = request;
        (running.rows, running.stripes, running.is_repeated) = (rows, stripes, false);
        (running.is_lost, running.is_wrong) = (false, is_wrong);
        running.reads.clear();
        running.writes.clear();
        running.opened.clear();
        self.active.push(slot);
        self.count_methods();
        self.open_stripes(slot, request.op);
        let running = &mut self.running[slot as usize];
        for io in &self.plan.ios {
            match (io.phase, running.reads.last_mut()) {
                (Phase::Write, _) => running.writes.push(*io),
                (Phase::Read, Some((stripe, count))) if *stripe == io.stripe => *count += 1,
                (Phase::Read, _) => running.reads.push((io.stripe, 1)),
            }
        }
        let ios = std::mem::take(&mut self.plan.ios);
        for &io in ios.iter().filter(|io| io.phase == Phase::Read) {
            self.running[slot as usize].pending += 1;
            self.issue(Owner::Request(slot), io, to);
        }
        self.plan.ios = ios;
        self.release_writes(slot, to);
        true
    }

    fn count_methods(&mut self) {
        for part in &self.plan.stripes {
            let count = match part.method {
                Method::FullStripe => &mut self.stats.full_stripes,
                Method::ReadModifyWrite => &mut self.stats.read_modify_writes,
                Method::ReconstructWrite => &mut self.stats.reconstruct_writes,
                Method::DegradedRead | Method::ReconstructLost => &mut self.stats.degraded,
                Method::Read | Method::DataOnly => continue,
            };
            *count += 1;
        }
    }

    /// Lists the stripes, or chunks of a mirror, that the planned request writes.
    fn open_stripes(&mut self, slot: u32, op: Op) {
        let Group { array: Some(array), plan, running, tracker, .. } = self else { return };
        if !matches!(op, Op::Write | Op::WriteThrough) {
            return;
        }
        let opened = &mut running[slot as usize].opened;
        let has_parity = array.geometry().stripe_blocks().is_some();
        let chunk_blocks = array.geometry().chunk_blocks();
        plan.each_written(|stripe, is_at_risk| {
            opened.push(Opened {
                stripe,
                rows: (0, chunk_blocks),
                is_at_risk,
                left: 0,
                is_open: false,
                is_whole: false,
                log: LogState::Done,
            });
        });
        for entry in opened {
            let own = |io: &&MemberIo| io.phase == Phase::Write && (!has_parity || io.stripe == entry.stripe);
            entry.left = plan.ios.iter().filter(own).count() as u32;
            if !has_parity {
                continue;
            }
            let written: u64 = plan.ios.iter().filter(own).map(|io| u64::from(io.blocks)).sum();
            let bands = plan.stripes.iter().filter(|band| band.stripe == entry.stripe);
            entry.rows = bands
                .clone()
                .fold((chunk_blocks, 0), |rows, band| (rows.0.min(band.row), rows.1.max(band.row + band.rows)));
            entry.is_whole = bands.clone().all(|band| {
                let is_renewed = matches!(band.method, Method::FullStripe | Method::ReconstructWrite);
                is_renewed && band.rows == chunk_blocks
            });
            let parity_rows = bands.filter(|band| band.method != Method::FullStripe).map(|band| u64::from(band.rows));
            entry.log = match tracker.consistency() {
                Consistency::None | Consistency::Bitmap { .. } => LogState::Done,
                Consistency::Journal => LogState::Due(LOG_HEADER_BLOCKS + written),
                Consistency::PartialParityLog => LogState::Due(LOG_HEADER_BLOCKS + parity_rows.sum::<u64>()),
            };
        }
    }

    /// Issues the writes whose reads and log have ended.
    fn release_writes(&mut self, slot: u32, to: &mut Context<'_>) {
        let mut at = 0;
        while let Some(&io) = self.running[slot as usize].writes.get(at) {
            let running = &mut self.running[slot as usize];
            let reads = running.reads.iter().any(|(stripe, count)| *stripe == io.stripe && *count > 0);
            let entry = running.opened.iter_mut().find(|entry| entry.stripe == io.stripe);
            let log = entry.as_ref().map_or(LogState::Done, |entry| entry.log);
            match log {
                _ if reads => at += 1,
                LogState::InFlight => at += 1,
                LogState::Due(blocks) => {
                    let is_sent = self.write_log(slot, io.stripe, blocks, to);
                    let entry = self.running[slot as usize].opened.iter_mut().find(|entry| entry.stripe == io.stripe);
                    if let Some(entry) = entry {
                        entry.log = if is_sent { LogState::InFlight } else { LogState::Done };
                    }
                }
                LogState::Done => {
                    running.writes.remove(at);
                    running.pending += 1;
                    let has_parity = running.stripes.is_some();
                    for entry in &mut running.opened {
                        if !entry.is_open && (!has_parity || entry.stripe == io.stripe) {
                            entry.is_open = true;
                            self.tracker.begin_stripe(entry.stripe, entry.is_at_risk);
                        }
                    }
                    self.issue(Owner::Request(slot), io, to);
                }
            }
        }
    }

    /// Writes an entry of the log. Returns `false` if no member holds it.
    fn write_log(&mut self, slot: u32, stripe: u64, blocks: u64, to: &mut Context<'_>) -> bool {
        let (Some(log), Some(array)) = (&mut self.log, &self.array) else { return false };
        let device = match log.device {
            Some(device) => device,
            None => {
                let Some(place) = array.geometry().stripe(stripe) else { return false };
                let member = place.first_member + place.layout.p;
                let chunk = place.member_lba / u64::from(array.geometry().chunk_blocks());
                if !array.members()[member as usize].is_usable(chunk) {
                    return false;
                }
                self.first + member
            }
        };
        let blocks = blocks.min(log.blocks);
        if log.next + blocks > log.blocks {
            log.next = 0;
        }
        let lba = log.first + log.next;
        log.next += blocks;
        self.stats.log_blocks += blocks;
        self.stats.disk_writes += 1;
        self.running[slot as usize].pending += 1;
        let (owner, phase, op) = (Owner::Log(slot), Phase::Write, Op::WriteThrough);
        let blocks = blocks as u32;
        to.devices.submit(to.now_ps, DeviceIo { unit: self.unit, device, owner, stripe, phase, lba, blocks, op });
        true
    }

    pub(super) fn log_ended(&mut self, slot: u32, stripe: u64, is_good: bool, to: &mut Context<'_>) {
        let running = &mut self.running[slot as usize];
        running.pending -= 1;
        running.is_repeated |= !is_good;
        if let Some(entry) = running.opened.iter_mut().find(|entry| entry.stripe == stripe) {
            entry.log = LogState::Done;
        }
        if !running.is_repeated && !running.is_lost {
            self.release_writes(slot, to);
        }
        self.end_if_done(slot, to);
    }

    pub(super) fn part_ended(&mut self, slot: u32, io: DeviceIo, is_good: bool, to: &mut Context<'_>) {
        let running = &mut self.running[slot as usize];
        running.pending -= 1;
        running.is_repeated |= !is_good;
        let member = io.device - self.first;
        match io.phase {
            Phase::Read if is_good => {
                if let Some(at) = running.reads.iter().position(|(stripe, _)| *stripe == io.stripe) {
                    running.reads[at].1 -= 1;
                }
                if self.unreadable(member, io.lba, io.blocks).is_some() {
                    self.stats.media_errors += 1;
                    let is_repaired = self.queue_repairs(member, io.lba, io.blocks, to);
                    let running = &mut self.running[slot as usize];
                    running.is_repeated |= is_repaired;
                    running.is_lost |= !is_repaired;
                } else if !self.running[slot as usize].is_repeated && !self.running[slot as usize].is_lost {
                    self.release_writes(slot, to);
                }
            }
            Phase::Read => {}
            Phase::Write => {
                let has_parity = running.stripes.is_some();
                for entry in &mut running.opened {
                    if is_good && (!has_parity || entry.stripe == io.stripe) {
                        entry.left -= 1;
                        if entry.left == 0 {
                            self.tracker.end_stripe(entry.stripe, entry.is_at_risk);
                            entry.is_open = false;
                        }
                    }
                }
                if is_good && io.op != Op::Flush {
                    self.clear_errors(member, io.lba, io.blocks);
                }
            }
        }
        self.end_if_done(slot, to);
    }

    /// Ends or repeats a request without parts in flight.
    fn end_if_done(&mut self, slot: u32, to: &mut Context<'_>) {
        let running = &mut self.running[slot as usize];
        if running.pending > 0 {
            return;
        }
        for entry in running.opened.iter_mut().filter(|entry| entry.is_open) {
            self.tracker.end_stripe(entry.stripe, entry.is_at_risk);
            entry.is_open = false;
        }
        let Running { request, is_repeated, is_lost, is_wrong, .. } = *running;
        self.active.retain(|&active| active != slot);
        self.free.push(slot);
        if is_lost {
            self.stats.lost_requests += 1;
            to.done.push((request.origin, Outcome::Lost));
        } else if is_repeated {
            self.stats.repeated += 1;
            self.waiting.push_front(request);
        } else {
            self.stats.requests += 1;
            self.stats.wrong_requests += u64::from(is_wrong);
            self.busy_until_ps = to.now_ps.saturating_add(BUSY_PS);
            if matches!(request.op, Op::Write | Op::WriteThrough) {
                self.wrong.remove(request.lba, request.blocks.into());
                let whole = self.running[slot as usize].opened.iter().filter(|entry| entry.is_whole);
                if let Some(array) = &mut self.array {
                    for entry in whole {
                        array.clear_inconsistent(entry.stripe);
                        self.suspects.remove(&entry.stripe);
                    }
                }
            }
            to.done.push((request.origin, if is_wrong { Outcome::Wrong } else { Outcome::Good }));
        }
        self.start_repairs(to);
        self.start_waiting(to);
        self.advance_works(to);
    }

    /// Starts the requests that need not wait any more, the oldest first.
    pub(super) fn start_waiting(&mut self, to: &mut Context<'_>) {
        let mut at = 0;
        while let Some(&request) = self.waiting.get(at) {
            if self.must_follow(&request, at) || !self.start(request, to) {
                at += 1;
            } else {
                self.waiting.remove(at);
            }
        }
    }
}
