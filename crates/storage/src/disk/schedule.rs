//! Order of requests that wait for the medium.

use super::geometry::Place;
use super::mechanism::{Arm, Mechanism};
use serde::{Deserialize, Serialize};

/// Rule that selects the next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Scheduler {
    /// First come, first served.
    Fcfs,
    /// Shortest seek first, by cylinder distance.
    Sstf,
    /// Nearest request in the current direction; the direction changes behind the last request.
    Look,
    /// Nearest request towards higher cylinders; then again from the lowest one.
    #[serde(rename = "c_look")]
    CLook,
    /// Shortest positioning time first: seek, head switch, settling and rotational wait.
    Sptf,
    /// Positioning time minus a share of the waiting time, so that old requests are preferred.
    AgedSptf {
        /// Share of the waiting time, in thousandths.
        weight_permille: u32,
    },
}

/// A request that waits for the medium, with its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Number of the request in its table.
    pub index: u32,
    /// True for a write.
    pub is_write: bool,
    /// Cylinder.
    pub cylinder: u32,
    /// Head.
    pub head: u32,
    /// Angle of the first block, as a time after the index mark.
    pub angle_ps: u64,
    /// Time of arrival.
    pub since_ps: u64,
}

impl Waiting {
    /// Creates a request for `place`.
    pub fn new(index: u32, is_write: bool, place: &Place, since_ps: u64) -> Waiting {
        let Place { cylinder, head, angle_ps, .. } = *place;
        Waiting { index, is_write, cylinder, head, angle_ps, since_ps }
    }
}

/// State of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// Time of the decision.
    pub now_ps: u64,
    /// Time at which a read can begin to move the arm.
    pub read_start_ps: u64,
    /// Time at which a write can begin to move the arm.
    pub write_start_ps: u64,
    /// Track of the head.
    pub arm: Arm,
}

/// Requests that wait for the medium, oldest first.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    waiting: Vec<Waiting>,
    scheduler: Scheduler,
    window: usize,
    age_limit_ps: Option<u64>,
    /// Direction of LOOK.
    is_upwards: bool,
}

impl Queue {
    /// Creates an empty queue. The rule selects from the oldest `window` requests.
    pub fn new(scheduler: Scheduler, window: usize, age_limit_ps: Option<u64>) -> Queue {
        Queue { waiting: Vec::new(), scheduler, window: window.max(1), age_limit_ps, is_upwards: true }
    }

    /// Number of waiting requests.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a request behind the others.
    pub fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Removes and returns the next request.
    pub fn pop(&mut self, mechanism: &Mechanism, decision: &Decision) -> Option<Waiting> {
        let oldest = self.waiting.first()?;
        let is_late = self.age_limit_ps.is_some_and(|limit_ps| decision.now_ps - oldest.since_ps > limit_ps);
        let window = &self.waiting[..self.window.min(self.waiting.len())];
        let index = match self.scheduler {
            _ if is_late || window.len() == 1 => 0,
            Scheduler::Fcfs => 0,
            Scheduler::Sstf => first_min(window, |waiting| waiting.cylinder.abs_diff(decision.arm.cylinder)),
            Scheduler::Look => {
                let (index, is_upwards) = look(window, decision.arm.cylinder, self.is_upwards);
                self.is_upwards = is_upwards;
                index
            }
            Scheduler::CLook => {
                let ahead = |waiting: &Waiting| waiting.cylinder.wrapping_sub(decision.arm.cylinder);
                first_min(window, |waiting| (ahead(waiting) > i32::MAX as u32, waiting.cylinder))
            }
            Scheduler::Sptf => shortest(mechanism, window, decision, 0),
            Scheduler::AgedSptf { weight_permille } => shortest(mechanism, window, decision, weight_permille),
        };
        Some(self.waiting.remove(index))
    }
}

fn first_min<K: Ord>(window: &[Waiting], key: impl Fn(&Waiting) -> K) -> usize {
    window.iter().enumerate().min_by_key(|(_, waiting)| key(waiting)).map_or(0, |(index, _)| index)
}

/// Returns the nearest request in the direction, or else in the other one, and the direction.
fn look(window: &[Waiting], cylinder: u32, is_upwards: bool) -> (usize, bool) {
    let is_ahead = |waiting: &Waiting, up: bool| {
        if up { waiting.cylinder >= cylinder } else { waiting.cylinder <= cylinder }
    };
    let is_upwards = is_upwards == window.iter().any(|waiting| is_ahead(waiting, is_upwards));
    let key = |waiting: &Waiting| (!is_ahead(waiting, is_upwards), waiting.cylinder.abs_diff(cylinder));
    (first_min(window, key), is_upwards)
}

/// Returns the request with the shortest positioning time minus its share of the waiting time.
///
/// All angles are below one revolution, so the wait needs no division: the seek table holds each
/// time modulo one revolution, too.
fn shortest(mechanism: &Mechanism, window: &[Waiting], decision: &Decision, weight_permille: u32) -> usize {
    let turn_ps = mechanism.geometry.revolution_ps() as i64;
    let switch_ps = mechanism.head_switch_ps as i64;
    let switch_turned_ps = switch_ps % turn_ps;
    let settle_ps = mechanism.write_settle_ps as i64;
    let start = |start_ps: u64| (start_ps as i64 - decision.now_ps as i64, start_ps as i64 % turn_ps);
    let starts = [start(decision.read_start_ps), start(decision.write_start_ps)];
    let (mut best, mut best_ps) = (0, i64::MAX);
    for (index, waiting) in window.iter().enumerate() {
        let seek = mechanism.seek.time(waiting.cylinder.abs_diff(decision.arm.cylinder));
        let (mut move_ps, mut turned_ps) = (seek.time_ps as i64, seek.turned_ps as i64);
        if waiting.head != decision.arm.head && move_ps < switch_ps {
            (move_ps, turned_ps) = (switch_ps, switch_turned_ps);
        }
        let (delay_ps, start_ps) = starts[usize::from(waiting.is_write)];
        if waiting.is_write && move_ps > 0 {
            move_ps += settle_ps;
            turned_ps = (turned_ps + settle_ps) % turn_ps;
        }
        let mut wait_ps = waiting.angle_ps as i64 - start_ps - turned_ps;
        if wait_ps < 0 {
            wait_ps += turn_ps;
        }
        if wait_ps < 0 {
            wait_ps += turn_ps;
        }
        let mut cost_ps = delay_ps + move_ps + wait_ps;
        if weight_permille > 0 {
            let age_ps = (decision.now_ps - waiting.since_ps) as i64;
            cost_ps -= age_ps / 1000 * i64::from(weight_permille);
        }
        if cost_ps < best_ps {
            (best, best_ps) = (index, cost_ps);
        }
    }
    best
}
