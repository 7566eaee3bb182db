//! Time series of lanes and storage systems.

use super::Storage;
use crate::net::Net;
use crate::stats::Counts;

/// Limit on stored values: steps × (lanes + lines of other planes + storage systems).
const MAX_VALUES: usize = 1_000_000;

/// Limit on steps that end while the world is divided, because each needs memory in each part.
const MOST_DEFERRED: usize = 16;

/// Time series of all lanes and storage systems, in steps of equal length.
pub struct LaneSeries {
    steps: Vec<LaneStep>,
    /// Samples per step; doubled each time the steps are merged in pairs.
    samples_per_step: u64,
    /// Counters at the end of the last step.
    last: Counters,
    /// Counters of one part at the ends of steps while the world is divided.
    deferred: Vec<Counters>,
}

/// Counters whose differences form the steps.
#[derive(Clone, Debug, Default)]
struct Counters {
    at_ps: u64,
    busy_ps: Vec<u64>,
    credit_wait_ps: Vec<u64>,
    planes_ps: Vec<u64>,
    dropped: u64,
    storage_bytes: Vec<u64>,
    storage_area: Vec<u128>,
}

/// One step of the time series of all lanes and storage systems.
#[derive(Clone, Debug)]
pub struct LaneStep {
    /// End of the step, in ps since the first login.
    pub end_ps: u64,
    /// Length of the step in ps.
    pub length_ps: u64,
    /// For each lane, the time that frames and their gaps occupied the line, in ps.
    pub busy_ps: Counts,
    /// For each lane, the time during which a frame waited for a credit, in ps.
    pub credit_wait_ps: Counts,
    /// For each line of Ethernet and then of InfiniBand, the time of the frames and packets that
    /// began in the step, with all that they occupy on the line, in ps.
    pub planes_ps: Counts,
    /// Frames dropped.
    pub dropped: u64,
    /// Data of the commands that each storage system completed, in bytes.
    pub storage_bytes: Counts,
    /// For each storage system, the integral of its in-flight commands over time, in commands × ps.
    pub storage_area: Vec<u128>,
}

impl LaneStep {
    /// Merges the following step into this one.
    pub fn join(&mut self, next: &LaneStep) {
        self.end_ps = next.end_ps;
        self.length_ps += next.length_ps;
        self.dropped += next.dropped;
        self.busy_ps.add(&next.busy_ps);
        self.credit_wait_ps.add(&next.credit_wait_ps);
        self.planes_ps.add(&next.planes_ps);
        self.storage_bytes.add(&next.storage_bytes);
        for (sum, area) in self.storage_area.iter_mut().zip(&next.storage_area) {
            *sum += area;
        }
    }
}

impl Counters {
    /// Returns the number of values in a step.
    fn values(&self) -> usize {
        self.busy_ps.len() + self.planes_ps.len() + self.storage_bytes.len()
    }

    fn read(net: &Net, storage: &Storage) -> Counters {
        let now = net.now();
        let (lanes, systems) = (net.fc.lanes(), &storage.systems);
        let ethernet = net.ethernet.lines().iter().map(|line| line.time_of(line.count().line_bytes()));
        let infiniband = net.infiniband.lines().iter().map(|line| line.time_of(line.count().line_bytes()));
        Counters {
            at_ps: now,
            busy_ps: lanes.iter().map(|lane| lane.busy_ps(now)).collect(),
            credit_wait_ps: lanes.iter().map(|lane| lane.credit_wait_ps(now)).collect(),
            planes_ps: ethernet.chain(infiniband).collect(),
            dropped: net.fc.fate.lost_frames(),
            storage_bytes: systems.iter().map(|system| system.all_bytes).collect(),
            storage_area: systems.iter().map(|system| system.controller.depth_area(now)).collect(),
        }
    }

    /// Adds the counters of another part of the world at the same time.
    fn add(&mut self, part: &Counters) {
        debug_assert_eq!(self.at_ps, part.at_ps, "all parts end a step at the same time");
        let sum = |own: &mut [u64], part: &[u64]| own.iter_mut().zip(part).for_each(|(own, part)| *own += part);
        sum(&mut self.busy_ps, &part.busy_ps);
        sum(&mut self.credit_wait_ps, &part.credit_wait_ps);
        sum(&mut self.planes_ps, &part.planes_ps);
        sum(&mut self.storage_bytes, &part.storage_bytes);
        self.storage_area.iter_mut().zip(&part.storage_area).for_each(|(own, part)| *own += part);
        self.dropped += part.dropped;
    }

    /// Returns the step from `before` to these counters, or `None` if it is empty.
    fn since(&self, before: &Counters) -> Option<LaneStep> {
        let length_ps = self.at_ps.saturating_sub(before.at_ps);
        if length_ps == 0 {
            return None;
        }
        let storage_area = self.storage_area.iter().zip(&before.storage_area).map(|(now, before)| now - before);
        Some(LaneStep {
            end_ps: self.at_ps,
            length_ps,
            dropped: self.dropped - before.dropped,
            storage_area: storage_area.collect(),
            busy_ps: Counts::since(&self.busy_ps, &before.busy_ps),
            credit_wait_ps: Counts::since(&self.credit_wait_ps, &before.credit_wait_ps),
            planes_ps: Counts::since(&self.planes_ps, &before.planes_ps),
            storage_bytes: Counts::since(&self.storage_bytes, &before.storage_bytes),
        })
    }
}

impl Default for LaneSeries {
    fn default() -> LaneSeries {
        LaneSeries { steps: Vec::new(), samples_per_step: 1, last: Counters::default(), deferred: Vec::new() }
    }
}

impl LaneSeries {
    /// Returns the completed steps.
    pub fn steps(&self) -> &[LaneStep] {
        &self.steps
    }

    /// Returns the number of sample intervals in a step.
    pub fn samples_per_step(&self) -> u64 {
        self.samples_per_step
    }

    /// Returns the open step, or `None` if it has just begun.
    pub fn open_step(&self, net: &Net, storage: &Storage) -> Option<LaneStep> {
        Counters::read(net, storage).since(&self.last)
    }

    /// Starts the first step.
    pub(super) fn start(&mut self, net: &Net, storage: &Storage) {
        debug_assert!(self.steps.is_empty(), "the time series starts once");
        self.last = Counters::read(net, storage);
    }

    /// Ends the current step. If there are too many steps, they are merged in pairs, and later
    /// steps are twice as long.
    pub(super) fn end_step(&mut self, net: &Net, storage: &Storage) {
        self.end_step_with(Counters::read(net, storage));
    }

    /// Ends the current step of one part of the world.
    pub(super) fn defer_step(&mut self, net: &Net, storage: &Storage) {
        self.deferred.push(Counters::read(net, storage));
    }

    /// Returns the number of steps that may end before the world is united. The next one may
    /// change the length of the steps.
    pub(super) fn deferrable(&self) -> u64 {
        let values = self.last.values().max(1);
        let merged = (self.steps.len() + 1).max(MAX_VALUES / values + 1).max(2).next_multiple_of(2);
        (merged - self.steps.len() - 1).min(MOST_DEFERRED) as u64
    }

    /// Copies the length of the steps from another part of the world.
    pub(super) fn copy_length(&mut self, from: &LaneSeries) {
        self.samples_per_step = from.samples_per_step;
    }

    /// Ends the steps that all parts of the world have ended.
    pub(super) fn unite<'p>(&mut self, others: impl Iterator<Item = &'p mut LaneSeries>) {
        let mut all = std::mem::take(&mut self.deferred);
        for other in others {
            let part = std::mem::take(&mut other.deferred);
            debug_assert_eq!(all.len(), part.len(), "all parts end the same steps");
            all.iter_mut().zip(&part).for_each(|(all, part)| all.add(part));
        }
        all.into_iter().for_each(|counters| self.end_step_with(counters));
    }

    fn end_step_with(&mut self, now: Counters) {
        let Some(step) = now.since(&self.last) else { return };
        self.last = now;
        self.steps.push(step);
        let steps = self.steps.len();
        let values = steps * self.last.values();
        if steps > 1 && steps.is_multiple_of(2) && values > MAX_VALUES {
            let joined = self.steps.chunks(2).map(|pair| {
                let mut step = pair[0].clone();
                pair[1..].iter().for_each(|next| step.join(next));
                step
            });
            self.steps = joined.collect();
            self.samples_per_step *= 2;
        }
    }
}
