//! Order of requests that wait for the medium.

use super::geometry::Place;
use super::mechanism::{Arm, Mechanism};
use super::seek::{Seek, SeekTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

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

/// Requests that wait for the medium.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// Oldest first, or by cylinder.
    waiting: Vec<Waiting>,
    /// True if the order of arrival does not matter, so that the requests are sorted by cylinder.
    is_sorted: bool,
    scheduler: Scheduler,
    window: usize,
    aging: Option<Aging>,
    /// Direction of LOOK.
    is_upwards: bool,
}

/// Picks per pick of an overdue request. The other picks follow the rule, so that a queue in which
/// each request is overdue keeps most of its throughput.
const PICKS_PER_OVERDUE: u32 = 8;

/// Age limit of the requests in the window. The age counts from the entry into the window, because
/// the disk does not hold the requests behind it.
#[derive(Clone, PartialEq, Debug)]
struct Aging {
    limit_ps: u64,
    /// Times of entry of the requests in the window, oldest first.
    entered_ps: VecDeque<u64>,
    /// Picks since the last overdue request.
    picks: u32,
}

impl Aging {
    /// Returns true if the oldest request is next because of its age.
    fn is_due(&mut self, now_ps: u64) -> bool {
        self.picks = self.picks.saturating_add(1);
        let is_overdue =
            self.entered_ps.front().is_some_and(|since_ps| now_ps.saturating_sub(*since_ps) > self.limit_ps);
        let is_due = is_overdue && self.picks >= PICKS_PER_OVERDUE;
        if is_due {
            self.picks = 0;
        }
        is_due
    }
}

impl Queue {
    /// Creates an empty queue. The rule selects from the oldest `window` requests, except that the
    /// oldest request is next after `age_limit_ps` in the window, at most once in eight picks.
    pub fn new(scheduler: Scheduler, window: usize, age_limit_ps: Option<u64>) -> Queue {
        let is_sorted = scheduler == Scheduler::Sptf && window == usize::MAX && age_limit_ps.is_none();
        // The first overdue request needs no other picks before it.
        let aging = |limit_ps| Aging { limit_ps, entered_ps: VecDeque::new(), picks: PICKS_PER_OVERDUE };
        let aging = age_limit_ps.map(aging);
        Queue { waiting: Vec::new(), is_sorted, scheduler, window: window.max(1), aging, is_upwards: true }
    }

    /// Number of waiting requests.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a request, the youngest one.
    pub fn push(&mut self, waiting: Waiting) {
        if self.is_sorted {
            let index = self.waiting.partition_point(|other| other.cylinder <= waiting.cylinder);
            self.waiting.insert(index, waiting);
        } else {
            if let Some(aging) = self.aging.as_mut().filter(|_| self.waiting.len() < self.window) {
                aging.entered_ps.push_back(waiting.since_ps);
            }
            self.waiting.push(waiting);
        }
    }

    /// Removes and returns the next request.
    pub fn pop(&mut self, mechanism: &Mechanism, decision: &Decision) -> Option<Waiting> {
        if self.waiting.is_empty() {
            return None;
        }
        if self.is_sorted {
            let cheapest = || Costs::new(mechanism, decision, 0).cheapest_of_sorted(&self.waiting);
            let index = if self.waiting.len() == 1 { 0 } else { cheapest() };
            return Some(self.waiting.remove(index));
        }
        let is_due = self.aging.as_mut().is_some_and(|aging| aging.is_due(decision.now_ps));
        let window = &self.waiting[..self.window.min(self.waiting.len())];
        let index = match self.scheduler {
            _ if is_due || window.len() == 1 => 0,
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
            Scheduler::Sptf => Costs::new(mechanism, decision, 0).cheapest(window),
            Scheduler::AgedSptf { weight_permille } => {
                Costs::new(mechanism, decision, weight_permille).cheapest(window)
            }
        };
        if let Some(aging) = &mut self.aging {
            aging.entered_ps.remove(index);
            if self.waiting.len() > self.window {
                aging.entered_ps.push_back(decision.now_ps);
            }
        }
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

/// Returns a time modulo one revolution. Most times are shorter than two revolutions, and need no
/// division.
#[inline]
fn below(time_ps: i64, turn_ps: i64) -> i64 {
    if time_ps < turn_ps {
        time_ps
    } else if time_ps < 2 * turn_ps {
        time_ps - turn_ps
    } else {
        time_ps % turn_ps
    }
}

/// Positioning times at one decision.
///
/// All angles are below one revolution, so the wait needs no division: the seek table holds each
/// time modulo one revolution, too.
struct Costs<'a> {
    seek: &'a Seek,
    arm: Arm,
    now_ps: u64,
    turn_ps: i64,
    switch_ps: i64,
    settle_ps: i64,
    /// Delay until the arm can move, and the angle at that time, for reads and writes.
    starts: [(i64, i64); 2],
    weight_permille: i64,
}

impl<'a> Costs<'a> {
    fn new(mechanism: &'a Mechanism, decision: &Decision, weight_permille: u32) -> Costs<'a> {
        let turn_ps = mechanism.geometry.revolution_ps() as i64;
        let now_angle_ps = decision.now_ps as i64 % turn_ps;
        let start = |start_ps: u64| {
            let delay_ps = start_ps as i64 - decision.now_ps as i64;
            (delay_ps, below(now_angle_ps + delay_ps, turn_ps))
        };
        Costs {
            seek: &mechanism.seek,
            arm: decision.arm,
            now_ps: decision.now_ps,
            turn_ps,
            switch_ps: mechanism.head_switch_ps as i64,
            settle_ps: mechanism.write_settle_ps as i64,
            starts: [start(decision.read_start_ps), start(decision.write_start_ps)],
            weight_permille: i64::from(weight_permille),
        }
    }

    #[inline]
    fn seek_of(&self, waiting: &Waiting) -> SeekTime {
        self.seek.time(waiting.cylinder.abs_diff(self.arm.cylinder))
    }

    /// Positioning time of a request minus its share of the waiting time.
    #[inline]
    fn of(&self, waiting: &Waiting, seek: SeekTime) -> i64 {
        let (mut move_ps, mut turned_ps) = (seek.time_ps as i64, seek.turned_ps as i64);
        if move_ps < self.switch_ps && waiting.head != self.arm.head {
            (move_ps, turned_ps) = (self.switch_ps, below(self.switch_ps, self.turn_ps));
        }
        let (delay_ps, start_ps) = self.starts[usize::from(waiting.is_write)];
        if waiting.is_write && move_ps > 0 {
            move_ps += self.settle_ps;
            turned_ps = below(turned_ps + self.settle_ps, self.turn_ps);
        }
        let mut wait_ps = waiting.angle_ps as i64 - start_ps - turned_ps;
        wait_ps += if wait_ps < 0 { self.turn_ps } else { 0 };
        wait_ps += if wait_ps < 0 { self.turn_ps } else { 0 };
        let cost_ps = delay_ps + move_ps + wait_ps;
        if self.weight_permille == 0 {
            return cost_ps;
        }
        let waited_ps = (self.now_ps - waiting.since_ps) as i64;
        cost_ps - (waited_ps / 1000).saturating_mul(self.weight_permille)
    }

    /// Returns the cheapest request of a list in any order.
    fn cheapest(&self, window: &[Waiting]) -> usize {
        let costs = window.iter().enumerate().map(|(index, waiting)| (self.of(waiting, self.seek_of(waiting)), index));
        costs.min().map_or(0, |(_, index)| index)
    }

    /// Returns the cheapest request of a list that is sorted by cylinder.
    ///
    /// The search starts at the arm and goes in both directions. A direction ends where the seek
    /// alone takes longer than the cheapest request so far, so most requests are not visited.
    fn cheapest_of_sorted(&self, sorted: &[Waiting]) -> usize {
        let delay_ps = self.starts[0].0.min(self.starts[1].0);
        let middle = sorted.partition_point(|waiting| waiting.cylinder < self.arm.cylinder);
        let (mut best, mut best_ps) = (0, i64::MAX);
        let mut visit = |index: usize, waiting: &Waiting| {
            let seek = self.seek_of(waiting);
            if delay_ps + seek.floor_ps as i64 > best_ps {
                return false;
            }
            let cost_ps = self.of(waiting, seek);
            if cost_ps < best_ps {
                (best, best_ps) = (index, cost_ps);
            }
            true
        };
        let mut up = sorted[middle..].iter().enumerate();
        let mut down = sorted[..middle].iter().enumerate().rev();
        let (mut is_up, mut is_down) = (true, true);
        while is_up || is_down {
            is_up = is_up && up.next().is_some_and(|(index, waiting)| visit(middle + index, waiting));
            is_down = is_down && down.next().is_some_and(|(index, waiting)| visit(index, waiting));
        }
        best
    }
}
