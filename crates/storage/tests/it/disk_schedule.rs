//! Rules of the queue on random requests.

use proptest::prelude::*;
use sanloom_storage::disk::{Arm, Decision, Mechanism, Queue, Scheduler, Waiting, preset};

fn pop(queue: &mut Queue, mechanism: &Mechanism, arm: Arm, now_ps: u64) -> Option<Waiting> {
    let decision = Decision { now_ps, read_start_ps: now_ps + 284_000_000, write_start_ps: now_ps + 500_000_000, arm };
    queue.pop(mechanism, &decision)
}

/// Time from the decision to the first block, from the mechanics and not from the queue.
fn cost_ps(mechanism: &Mechanism, waiting: &Waiting, arm: Arm, now_ps: u64) -> u64 {
    let start_ps = now_ps + if waiting.is_write { 500_000_000 } else { 284_000_000 };
    let to = Arm { cylinder: waiting.cylinder, head: waiting.head };
    let move_ps = mechanism.move_ps(arm, to, waiting.is_write);
    start_ps - now_ps + move_ps + mechanism.wait_ps(start_ps + move_ps, waiting.angle_ps)
}

proptest! {
    #[test]
    fn sptf_selects_the_shortest_positioning_time(
        lbns in prop::collection::vec((0u64..17_900_000, any::<bool>()), 1..80),
        cylinder in 0u32..10_042,
        head in 0u32..6,
        start_ps in 0u64..20_000_000_000,
        is_limited: bool,
    ) {
        // The seek table of the Atlas 10K is not monotonic.
        let mechanism = Mechanism::new(&preset::atlas_10k()).expect("the preset is valid");
        let window = if is_limited { 80 } else { usize::MAX };
        let mut queue = Queue::new(Scheduler::Sptf, window, None);
        let mut left: Vec<Waiting> = Vec::new();
        for (index, (lbn, is_write)) in lbns.iter().enumerate() {
            let waiting = Waiting::new(index as u32, *is_write, &mechanism.geometry.place(*lbn), 0);
            queue.push(waiting);
            left.push(waiting);
        }
        let (mut arm, mut now_ps) = (Arm { cylinder, head }, start_ps);
        while let Some(next) = pop(&mut queue, &mechanism, arm, now_ps) {
            let shortest = left.iter().map(|waiting| cost_ps(&mechanism, waiting, arm, now_ps)).min();
            let ours = cost_ps(&mechanism, &next, arm, now_ps);
            prop_assert_eq!(Some(ours), shortest);
            left.retain(|waiting| waiting.index != next.index);
            (arm, now_ps) = (Arm { cylinder: next.cylinder, head: next.head }, now_ps + ours);
        }
        prop_assert!(left.is_empty());
    }

    #[test]
    fn look_turns_only_behind_the_last_request(lbns in prop::collection::vec(0u64..17_000_000, 1..60)) {
        let mechanism = Mechanism::new(&preset::cheetah_9lp()).expect("the preset is valid");
        for scheduler in [Scheduler::Look, Scheduler::CLook] {
            let mut queue = Queue::new(scheduler, usize::MAX, None);
            for (index, lbn) in lbns.iter().enumerate() {
                queue.push(Waiting::new(index as u32, false, &mechanism.geometry.place(*lbn), 0));
            }
            let mut arm = Arm { cylinder: 3000, head: 0 };
            let mut cylinders = Vec::new();
            while let Some(next) = pop(&mut queue, &mechanism, arm, 0) {
                arm = Arm { cylinder: next.cylinder, head: next.head };
                cylinders.push(i64::from(next.cylinder));
            }
            // LOOK goes up and then down; C-LOOK goes up, jumps back once, and goes up again.
            let downs = cylinders.windows(2).filter(|pair| pair[1] < pair[0]).count();
            let ups_after_down = cylinders
                .windows(2)
                .skip_while(|pair| pair[1] >= pair[0])
                .filter(|pair| pair[1] > pair[0])
                .count();
            match scheduler {
                Scheduler::Look => prop_assert_eq!(ups_after_down, 0),
                _ => prop_assert!(downs <= 1),
            }
        }
    }

    #[test]
    fn a_window_keeps_requests_behind_it_waiting(window in 1usize..8, count in 8usize..40) {
        let mechanism = Mechanism::new(&preset::cheetah_9lp()).expect("the preset is valid");
        for scheduler in [Scheduler::Sstf, Scheduler::Sptf, Scheduler::Look, Scheduler::Fcfs] {
            let mut queue = Queue::new(scheduler, window, None);
            for index in 0..count {
                let place = mechanism.geometry.place((index as u64 * 7_919_000) % 17_000_000);
                queue.push(Waiting::new(index as u32, false, &place, 0));
            }
            let mut popped = 0;
            while let Some(next) = pop(&mut queue, &mechanism, Arm::default(), 0) {
                prop_assert!((next.index as usize) < popped + window);
                popped += 1;
            }
            prop_assert_eq!(popped, count);
        }
    }

    #[test]
    fn no_request_waits_longer_than_the_age_limit_and_eight_picks_for_each_request_in_the_window(
        scheduler in prop_oneof![Just(Scheduler::Sstf), Just(Scheduler::Sptf), Just(Scheduler::Look)],
        window in prop_oneof![1usize..40, Just(usize::MAX)],
        depth in 1usize..120,
        limit in 0u64..300,
        seed in any::<u64>(),
    ) {
        // A pick lasts for 1 ms, and a new request near the arm replaces each that is picked.
        const MS: u64 = 1_000_000_000;
        let mechanism = Mechanism::new(&preset::cheetah_9lp()).expect("the preset is valid");
        let mut queue = Queue::new(scheduler, window, Some(limit * MS));
        let push = |queue: &mut Queue, index: u64, now: u64| {
            let far = if index < depth as u64 && index.is_multiple_of(3) { 16_000_000 } else { 0 };
            let lbn = far + index.wrapping_mul(seed | 1) % 20_000;
            queue.push(Waiting::new(index as u32, false, &mechanism.geometry.place(lbn), now * MS));
        };
        let mut since: std::collections::BTreeMap<u32, u64> = (0..depth as u32).map(|index| (index, 0)).collect();
        (0..depth as u64).for_each(|index| push(&mut queue, index, 0));
        // All requests of a window leave within the limit and eight picks for each of them.
        let in_window = window.min(depth) as u64;
        let rounds = (depth as u64).div_ceil(in_window);
        let most = rounds * (limit + 1 + 8 * in_window);
        for now in 0..2 * most {
            let next = pop(&mut queue, &mechanism, Arm::default(), now * MS).expect("requests wait");
            let waited = now - since.remove(&next.index).expect("each request leaves once");
            prop_assert!(waited <= most, "request {} after {} picks, not {}", next.index, waited, most);
            let index = depth as u64 + now;
            since.insert(index as u32, now);
            push(&mut queue, index, now);
        }
        let oldest = since.values().min().copied().unwrap_or(2 * most);
        prop_assert!(2 * most - oldest <= most, "a request waits since pick {}", oldest);
    }
}
