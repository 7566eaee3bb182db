//! What a run writes down for its report: requests by workload, the books, notes, and time series of links.

use super::World;
use super::control::SwitchNode;
use crate::host::PathState;
use crate::stats::{Counts, LatencyHistogram, Series, Summary};
use sanloom_core::fabric_switch::IslState;
use sanloom_core::isolation::Isolation;

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
    /// Response times of its reads and of its writes.
    pub by_direction: [LatencyHistogram; 2],
    /// From the departure of a request's command to its end.
    pub command_latency: LatencyHistogram,
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
    /// Nothing measured yet, for a workload that runs on these of `all` hosts. Its histograms keep `digits` significant
    /// digits.
    pub fn new(hosts: &[u16], all: usize, digits: u8) -> WorkloadMeasure {
        let mut place = vec![u16::MAX; all];
        for (at, &host) in hosts.iter().enumerate() {
            place[usize::from(host)] = at as u16;
        }
        let hosts = hosts.iter().map(|&host| WorkloadHost { host, ..WorkloadHost::default() }).collect();
        WorkloadMeasure {
            by_direction: [(); 2].map(|()| LatencyHistogram::with_digits(digits)),
            command_latency: LatencyHistogram::with_digits(digits),
            hosts,
            place,
        }
    }

    /// Response times of its requests.
    pub fn latency(&self) -> LatencyHistogram {
        let [mut all, writes] = self.by_direction.clone();
        all.merge(&writes);
        all
    }

    pub(super) fn offer(&mut self, host: u16, bytes: u32) {
        let entry = self.entry(host);
        entry.offered[0] += 1;
        entry.offered[1] += u64::from(bytes);
    }

    /// A request has ended; its times are those of the request and of its command.
    pub(super) fn complete(&mut self, host: u16, bytes: u64, (latency_ps, command_ps): (u64, u64), write: bool) {
        self.command_latency.record_ps(command_ps);
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
        self.by_direction.iter_mut().for_each(LatencyHistogram::clear);
        self.command_latency.clear();
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
    /// A command was aborted.
    Aborted {
        /// Host.
        host: u16,
        /// Storage system.
        storage: u16,
        /// HBA * ports + port.
        path: u16,
    },
    /// Requests failed for good.
    Failed {
        /// Host.
        host: u16,
    },
    /// Links between switches carry traffic or carry none any more, and with them the routes change.
    Reroute,
    /// A port is isolated from the switch at its other end.
    Isolated {
        /// Switch.
        switch: u16,
        /// Port.
        port: u16,
        /// Why.
        reason: Isolation,
    },
    /// A scheduled change of the zones has ended.
    ZonesChanged {
        /// Switch where it was committed.
        switch: u16,
        /// Index into the lab's `changes`.
        change: u16,
        /// What was in the way; nothing: it is in force in the whole fabric.
        failure: Option<String>,
    },
}

/// Notes and time series.
#[derive(Default)]
pub struct Ledger {
    /// Notes in the order of time. At most 10,000.
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
    /// The same at the end of the warm-up.
    pub down_before_ps: Vec<u64>,
    /// Samples in one step: doubled whenever the steps were joined in pairs.
    pub samples_per_step: u64,
    last: Last,
}

/// Counters at the end of the last step.
#[derive(Clone, Debug, Default)]
struct Last {
    end_ps: u64,
    line_bytes: Vec<u64>,
    credit_wait_ps: Vec<u64>,
    dropped: u64,
    storage_bytes: Vec<u64>,
    storage_area: Vec<u128>,
}

/// A step of the time series of all lanes and storage systems.
#[derive(Clone, Debug)]
pub struct LaneStep {
    /// End of the step, in ps since the first login.
    pub end_ps: u64,
    /// Its length in ps.
    pub length_ps: u64,
    /// Bytes on each lane, gaps included.
    pub line_bytes: Counts,
    /// Time with a frame and without credit of each lane, in ps.
    pub credit_wait_ps: Counts,
    /// Frames dropped.
    pub dropped: u64,
    /// Data of the commands that each storage system ended, in bytes.
    pub storage_bytes: Counts,
    /// Commands in each storage system times ps.
    pub storage_area: Vec<u128>,
}

impl LaneStep {
    /// Takes the step that follows.
    pub fn join(&mut self, next: &LaneStep) {
        self.end_ps = next.end_ps;
        self.length_ps += next.length_ps;
        self.dropped += next.dropped;
        self.line_bytes.add(&next.line_bytes);
        self.credit_wait_ps.add(&next.credit_wait_ps);
        self.storage_bytes.add(&next.storage_bytes);
        for (mine, theirs) in self.storage_area.iter_mut().zip(&next.storage_area) {
            *mine += theirs;
        }
    }
}

impl Ledger {
    /// An empty ledger for a lab with so many links.
    pub fn new(links: usize) -> Ledger {
        Ledger { down_ps: vec![0; links], down_since_ps: vec![None; links], samples_per_step: 1, ..Ledger::default() }
    }
}

/// Notes that are kept.
pub const MAX_NOTES: usize = 10_000;

/// Values of lane series that are kept: steps times lanes.
const MAX_LANE_VALUES: usize = 1_000_000;

impl World {
    pub(super) fn note(&mut self, kind: NoteKind) {
        if self.ledger.notes.len() < MAX_NOTES {
            self.ledger.notes.push(Note { at_ps: self.net.now(), kind });
        } else {
            self.ledger.more_notes += 1;
        }
    }

    /// What the first login left isolated belongs to the story of the run.
    pub(super) fn note_isolated(&mut self) {
        let isolated = |(switch, node): (usize, &SwitchNode)| {
            let of_switch = node.machine.isls().filter_map(move |isl| match isl.state {
                IslState::Isolated(reason) => {
                    Some(NoteKind::Isolated { switch: switch as u16, port: isl.port, reason })
                }
                _ => None,
            });
            of_switch.collect::<Vec<_>>()
        };
        let notes: Vec<NoteKind> = self.switches.iter().enumerate().flat_map(isolated).collect();
        notes.into_iter().for_each(|note| self.note(note));
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
        let step_ps = self.lab.run.sample_interval.0.max(1).saturating_mul(self.ledger.samples_per_step);
        self.net.set_timer(self.timers.sample, now.saturating_add(step_ps));
    }

    /// The time series of lanes and storage begin now.
    pub(super) fn start_lane_steps(&mut self) {
        self.ledger.last = self.series_counters();
    }

    /// Ends the present step of the time series of lanes and storage. When there are too many, they are joined in pairs
    /// and the next ones are twice as long.
    fn take_lane_step(&mut self) {
        let Some(step) = self.open_lane_step() else { return };
        self.ledger.last = self.series_counters();
        self.ledger.lane_steps.push(step);
        let steps = self.ledger.lane_steps.len();
        if steps > 1
            && steps.is_multiple_of(2)
            && steps * (self.net.lanes().len() + self.storage.len()) > MAX_LANE_VALUES
        {
            let joined = self.ledger.lane_steps.chunks(2).map(|pair| {
                let mut step = pair[0].clone();
                pair[1..].iter().for_each(|next| step.join(next));
                step
            });
            self.ledger.lane_steps = joined.collect();
            self.ledger.samples_per_step *= 2;
        }
    }

    /// The step of the time series that has not ended yet; `None` if it has just begun.
    pub fn open_lane_step(&self) -> Option<LaneStep> {
        let (last, now) = (&self.ledger.last, self.series_counters());
        let length_ps = now.end_ps.saturating_sub(last.end_ps);
        if length_ps == 0 {
            return None;
        }
        let storage_area = now.storage_area.iter().zip(&last.storage_area).map(|(now, before)| now - before);
        Some(LaneStep {
            end_ps: now.end_ps,
            length_ps,
            dropped: now.dropped - last.dropped,
            storage_area: storage_area.collect(),
            line_bytes: Counts::since(&now.line_bytes, &last.line_bytes),
            credit_wait_ps: Counts::since(&now.credit_wait_ps, &last.credit_wait_ps),
            storage_bytes: Counts::since(&now.storage_bytes, &last.storage_bytes),
        })
    }

    fn series_counters(&self) -> Last {
        let now = self.net.now();
        let lanes = self.net.lanes();
        Last {
            end_ps: now,
            line_bytes: lanes.iter().map(|lane| lane.line_bytes()).collect(),
            credit_wait_ps: lanes.iter().map(|lane| lane.credit_wait_ps(now)).collect(),
            dropped: self.net.fate.lost_frames(),
            storage_bytes: self.storage.iter().map(|storage| storage.all_bytes).collect(),
            storage_area: self.storage.iter().map(|storage| storage.controller.depth_area(now)).collect(),
        }
    }

    pub(super) fn host_series(&self) -> Series {
        let start = self.start_ps;
        let end = start + self.lab.run.duration.0;
        let many = self.hosts.len().max(1);
        let steps = (1_000_000 / many).clamp(64, 4096);
        Series::new(start, end, self.lab.run.sample_interval.0, steps)
    }
}
