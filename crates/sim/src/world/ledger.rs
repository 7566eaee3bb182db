//! What a run writes down for its report: requests by workload, the books, notes, and time series of links.

use super::World;
use crate::host::PathState;
use crate::net::Incident;
use crate::stats::{LatencyHistogram, Series, Summary};

/// Requests of the whole run, login and warm-up included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Books {
    /// Requests that streams made.
    pub issued: u64,
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that failed for good.
    pub failed: u64,
}

/// What a workload has measured since the end of the warm-up.
#[derive(Clone, Debug)]
pub struct WorkloadMeasure {
    /// Response times of its requests.
    pub latency: LatencyHistogram,
    /// Response times of reads and of writes.
    pub by_direction: [LatencyHistogram; 2],
    /// Each host that it runs on.
    pub hosts: Vec<WorkloadHost>,
    place: Vec<u16>,
}

/// A workload on one host.
#[derive(Clone, Debug, Default)]
pub struct WorkloadHost {
    /// Index of the host.
    pub host: u16,
    /// Requests made, and their bytes.
    pub offered: [u64; 2],
    /// Reads and writes that ended well.
    pub ios: [u64; 2],
    /// Bytes of reads and writes that ended well.
    pub bytes: [u64; 2],
    /// Requests that failed.
    pub failed: u64,
    /// Response times.
    pub latency: Summary,
}

impl WorkloadMeasure {
    /// Nothing measured yet, for a workload that runs on these of `all` hosts.
    pub fn new(hosts: &[u16], all: usize) -> WorkloadMeasure {
        let mut place = vec![u16::MAX; all];
        for (at, &host) in hosts.iter().enumerate() {
            place[usize::from(host)] = at as u16;
        }
        let hosts = hosts.iter().map(|&host| WorkloadHost { host, ..WorkloadHost::default() }).collect();
        WorkloadMeasure { latency: LatencyHistogram::new(), by_direction: Default::default(), hosts, place }
    }

    pub(super) fn offer(&mut self, host: u16, bytes: u32) {
        let entry = self.entry(host);
        entry.offered[0] += 1;
        entry.offered[1] += u64::from(bytes);
    }

    pub(super) fn complete(&mut self, host: u16, bytes: u64, latency_ps: u64, write: bool) {
        self.latency.record_ps(latency_ps);
        self.by_direction[usize::from(write)].record_ps(latency_ps);
        let entry = self.entry(host);
        entry.ios[usize::from(write)] += 1;
        entry.bytes[usize::from(write)] += bytes;
        entry.latency.add(latency_ps);
    }

    pub(super) fn fail(&mut self, host: u16) {
        self.entry(host).failed += 1;
    }

    pub(super) fn restart(&mut self) {
        self.latency.clear();
        self.by_direction.iter_mut().for_each(LatencyHistogram::clear);
        for entry in &mut self.hosts {
            *entry = WorkloadHost { host: entry.host, ..WorkloadHost::default() };
        }
    }

    fn entry(&mut self, host: u16) -> &mut WorkloadHost {
        &mut self.hosts[usize::from(self.place[usize::from(host)])]
    }
}

/// Something that the report should tell.
#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    /// When, in ps since the first login.
    pub at_ps: u64,
    /// What.
    pub kind: NoteKind,
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
pub enum NoteKind {
    /// A path of a host changed its state.
    Path {
        /// Host.
        host: u16,
        /// Storage system.
        storage: u16,
        /// HBA * ports + port.
        path: u16,
        /// State before.
        from: PathState,
        /// State now.
        to: PathState,
    },
    /// A link went up or down.
    Link {
        /// Link.
        link: u16,
        /// It came up.
        up: bool,
    },
    /// A switch went up or down.
    Switch {
        /// Switch.
        switch: u16,
        /// It came up.
        up: bool,
    },
    /// Something of the frame path.
    Net(Incident),
}

/// Notes and time series.
#[derive(Default)]
pub struct Ledger {
    /// Notes in the order of time. At most [`MAX_NOTES`].
    pub notes: Vec<Note>,
    /// Notes that did not fit.
    pub more_notes: u64,
    /// One step for each sample: bytes with gaps and credit wait in ps of each lane within the step.
    pub lane_steps: Vec<LaneStep>,
    /// When the first step began, and the interval.
    pub measure_from_ps: u64,
    /// Link down time in ps, by link, up to the last change.
    pub down_ps: Vec<u64>,
    /// Since when a link has been down.
    pub down_since_ps: Vec<Option<u64>>,
    last_bytes: Vec<u64>,
    last_frames: Vec<u64>,
    last_wait_ps: Vec<u64>,
}

/// A step of the time series of all lanes.
#[derive(Clone, Debug)]
pub struct LaneStep {
    /// End of the step, in ps since the first login.
    pub end_ps: u64,
    /// Bytes on each lane, gaps included.
    pub line_bytes: Vec<u32>,
    /// Time with a frame and without credit of each lane, in ps.
    pub credit_wait_ps: Vec<u64>,
}

impl Ledger {
    /// An empty ledger for a lab with so many links.
    pub fn new(links: usize) -> Ledger {
        Ledger { down_ps: vec![0; links], down_since_ps: vec![None; links], ..Ledger::default() }
    }
}

/// Notes that are kept.
pub const MAX_NOTES: usize = 10_000;

/// Values of lane series that are kept: steps times lanes.
const MAX_LANE_VALUES: usize = 2_000_000;

impl World {
    pub(super) fn note(&mut self, kind: NoteKind) {
        if self.ledger.notes.len() < MAX_NOTES {
            self.ledger.notes.push(Note { at_ps: self.net.now(), kind });
        } else {
            self.ledger.more_notes += 1;
        }
    }

    pub(super) fn note_path(&mut self, host: u16, system: u16, path: u16, from: PathState, to: PathState) {
        let storage = self.hosts[usize::from(host)].paths.systems()[usize::from(system)].storage;
        if self.start_ps > 0 {
            self.note(NoteKind::Path { host, storage, path, from, to });
        }
    }

    /// A step of the time series has ended.
    pub(super) fn sample(&mut self) {
        let now = self.net.now();
        self.take_lane_step();
        self.net.set_timer(self.timers.sample, now + self.lab.run.sample_interval.0.max(1));
    }

    /// Ends the present step of the lanes' time series.
    pub(super) fn take_lane_step(&mut self) {
        let now = self.net.now();
        let lanes = self.net.lanes();
        if lanes.is_empty() || (self.ledger.lane_steps.len() + 1) * lanes.len() > MAX_LANE_VALUES {
            return;
        }
        let ledger = &mut self.ledger;
        ledger.last_bytes.resize(lanes.len(), 0);
        ledger.last_frames.resize(lanes.len(), 0);
        ledger.last_wait_ps.resize(lanes.len(), 0);
        let mut step = LaneStep {
            end_ps: now,
            line_bytes: Vec::with_capacity(lanes.len()),
            credit_wait_ps: Vec::with_capacity(lanes.len()),
        };
        for (number, lane) in lanes.iter().enumerate() {
            let (bytes, frames) = (lane.count.bytes, lane.count.frames);
            let wait = lane.credit_wait_ps(now);
            let gaps = (frames - ledger.last_frames[number]) * crate::net::GAP_BYTES;
            step.line_bytes.push((bytes - ledger.last_bytes[number] + gaps) as u32);
            step.credit_wait_ps.push(wait - ledger.last_wait_ps[number]);
            (ledger.last_bytes[number], ledger.last_frames[number], ledger.last_wait_ps[number]) = (bytes, frames, wait);
        }
        ledger.lane_steps.push(step);
    }

    pub(super) fn host_series(&self) -> Series {
        let start = self.start_ps;
        let end = start + self.lab.run.duration.0;
        let many = self.hosts.len().max(1);
        let steps = (1_000_000 / many).clamp(64, 4096);
        Series::new(start, end, self.lab.run.sample_interval.0, steps)
    }
}
