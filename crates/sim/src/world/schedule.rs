//! The schedule of a run, and the number of faults that keep each link down.

use crate::net::NEVER;
use crate::rng::{Purpose, stream_rng};
use crate::workload::sample_ps;
use sanloom_fc::config::Picos;
use sanloom_fc::san::Lab;

/// Pending steps of the run.
#[derive(Default)]
pub(super) struct Schedule {
    /// Pending steps with their times, in reverse order: the next one is last.
    steps: Vec<(u64, Step)>,
    /// Time at which the remaining steps were cancelled.
    cancelled_ps: Option<u64>,
}

/// A step of the schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Creation of a virtual machine.
    Create(u16),
    /// A change of the zones.
    Change(u16),
    /// Begin (`false`) or end (`true`) of a fault.
    Fault(usize, bool),
    /// LUNs of a storage system may begin to move back to this controller.
    FailBack(u16, u8),
    /// Moves of LUNs between the controllers of a storage system may end.
    EndMoves(u16),
}

/// Returns the time at which the ports of a virtual machine log in, in ps since the start of the
/// workloads: its creation and the time that it takes to boot. `None` for a machine that exists
/// before and for other hosts.
pub fn created_ps(lab: &Lab, host: u16) -> Option<u64> {
    let host = &lab.hosts[usize::from(host)];
    let machine = host.virtual_machine?;
    let start = machine.start?;
    let mut rng = stream_rng(lab.run.seed, Purpose::Boot, &[&host.name]);
    Some(start.0.saturating_add(sample_ps(&machine.boot, &mut rng)))
}

impl Schedule {
    /// Returns the begin and end of each fault, the creation of each virtual machine and each
    /// change of the zones. Times of the lab count from `start_ps`.
    pub fn new(lab: &Lab, start_ps: u64) -> Schedule {
        let mut steps = Vec::new();
        for (number, fault) in lab.faults.iter().enumerate() {
            steps.push((start_ps + fault.at.0, Step::Fault(number, false)));
            if let Some(until) = fault.until {
                steps.push((start_ps + until.0, Step::Fault(number, true)));
            }
        }
        for number in 0..lab.hosts.len() as u16 {
            if let Some(at_ps) = created_ps(lab, number) {
                steps.push((start_ps.saturating_add(at_ps), Step::Create(number)));
            }
        }
        for (change, number) in lab.changes.iter().zip(0..) {
            steps.push((start_ps.saturating_add(change.at.0), Step::Change(number)));
        }
        steps.sort_by(|a, b| b.cmp(a));
        Schedule { steps, cancelled_ps: None }
    }

    /// Adds a step that follows from others.
    pub fn add(&mut self, at_ps: u64, step: Step) {
        let at = self.steps.partition_point(|other| *other > (at_ps, step));
        self.steps.insert(at, (at_ps, step));
    }

    /// Returns the time of the next step, or [`NEVER`] if none is left.
    pub fn next_ps(&self) -> u64 {
        self.steps.last().map_or(NEVER, |step| step.0)
    }

    /// Removes and returns the next step, if it is due at `now_ps`.
    pub fn pop_due(&mut self, now_ps: u64) -> Option<Step> {
        self.steps.pop_if(|(at_ps, _)| *at_ps <= now_ps).map(|(_, step)| step)
    }

    /// Cancels the remaining steps and returns those of them that end a fault, in order.
    pub fn cancel(&mut self, now_ps: u64) -> Vec<usize> {
        self.cancelled_ps = Some(now_ps);
        let ends = |(_, step): (u64, Step)| match step {
            Step::Fault(number, true) => Some(number),
            _ => None,
        };
        std::mem::take(&mut self.steps).into_iter().rev().filter_map(ends).collect()
    }

    /// Returns whether a step at `at_ps` has been executed by `now_ps`.
    fn has_executed(&self, at_ps: u64, now_ps: u64) -> bool {
        at_ps <= self.cancelled_ps.unwrap_or(u64::MAX).min(now_ps)
    }
}

/// For each link, the number of active faults that keep it down.
#[derive(Default)]
pub(super) struct LinkFaults {
    active: Vec<u32>,
}

impl LinkFaults {
    /// Returns the state of `links` links without faults.
    pub fn new(links: usize) -> LinkFaults {
        LinkFaults { active: vec![0; links] }
    }

    /// Counts one more fault of a link.
    pub fn begin(&mut self, link: u16) {
        self.active[usize::from(link)] += 1;
    }

    /// Counts the end of one fault of a link, unless [`LinkFaults::clear`] has ended it before.
    pub fn end(&mut self, link: u16) {
        let active = &mut self.active[usize::from(link)];
        *active = active.saturating_sub(1);
    }

    /// Ends all faults of a link.
    pub fn clear(&mut self, link: u16) {
        self.active[usize::from(link)] = 0;
    }

    /// Returns whether a fault keeps the link down.
    pub fn is_down(&self, link: u16) -> bool {
        self.active[usize::from(link)] > 0
    }
}

impl super::World {
    /// Returns whether a step that the lab schedules at `at` has been executed. `at` counts from
    /// the start of the workloads.
    pub fn has_happened(&self, at: Picos) -> bool {
        self.start_ps > 0 && self.schedule.has_executed(self.start_ps.saturating_add(at.0), self.net.now())
    }

    /// Returns whether a virtual machine has been created and has booted. True for a machine that
    /// exists before the workloads start, and for other hosts.
    pub fn has_booted(&self, host: u16) -> bool {
        created_ps(&self.lab, host).is_none_or(|at_ps| self.has_happened(Picos(at_ps)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_due_in_the_order_of_time_and_cancelled_steps_count_as_not_executed() {
        let steps = vec![(30, Step::Fault(0, true)), (20, Step::Create(1)), (10, Step::Fault(0, false))];
        let mut schedule = Schedule { steps, cancelled_ps: None };
        assert!(schedule.pop_due(9).is_none() && schedule.next_ps() == 10);
        assert!(schedule.pop_due(20) == Some(Step::Fault(0, false)) && schedule.next_ps() == 20);
        assert_eq!(schedule.cancel(15), [0]);
        assert_eq!(schedule.next_ps(), NEVER);
        assert!(schedule.has_executed(15, 40) && !schedule.has_executed(20, 40));
    }

    #[test]
    fn a_link_is_up_when_its_last_fault_ends() {
        let mut faults = LinkFaults::new(1);
        (0..2).for_each(|_| faults.begin(0));
        faults.end(0);
        assert!(faults.is_down(0));
        faults.end(0);
        faults.end(0);
        assert!(!faults.is_down(0));
    }
}
