//! Lost and reordered frames. Every command ends exactly once, and no command gets another
//! command's data; the harness asserts both. After the links are sound again, all work completes.

use crate::node_ends::harness::{Job, Links, World};
use proptest::prelude::*;
use sanloom_scsi::scsi::IoOp;
use sanloom_scsi::time::{Instant, Span};

const HEALED: Span = Span::from_ms(1_500);
/// Time for the back-off of a port that found no target for a while, and for the audit that detects
/// changes whose RSCN was lost.
const PATIENCE: Span = Span::from_secs(10);

fn world_with_jobs(links: Links, seed: u64, jobs: &[(u8, u8, bool, u8, u16)]) -> World {
    let mut world = World::new(links, seed);
    let hosts = [world.add_initiator(), world.add_initiator()];
    let storage = [world.add_target(), world.add_target()];
    for &(host, target, read, blocks, at_ms) in jobs {
        world.add_job(Job {
            initiator: hosts[usize::from(host) % 2],
            target: storage[usize::from(target) % 2],
            op: if read { IoOp::Read } else { IoOp::Write },
            lba: u64::from(at_ms),
            blocks: u32::from(blocks) + 1,
            at: Instant::ZERO + Span::from_ms(u64::from(at_ms % 1_500)),
        });
    }
    world
}

fn jobs() -> impl Strategy<Value = Vec<(u8, u8, bool, u8, u16)>> {
    prop::collection::vec(any::<(u8, u8, bool, u8, u16)>(), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_command_ends_exactly_once_despite_loss_and_all_work_completes_after_the_faults(
        lost_per_mille in 0u32..300,
        jitter_us in prop_oneof![Just(0u64), 1u64..200],
        broken_ms in prop_oneof![Just(0u64), Just(50)],
        flaps in prop::collection::vec((0usize..4, 0u64..1_400, 0u64..100), 0..6),
        seed: u64,
        jobs in jobs(),
    ) {
        let healed_at = Instant::ZERO + HEALED;
        let links = Links { lost_per_mille, jitter: Span::from_us(jitter_us), healed_at, broken_at: Instant::ZERO + Span::from_ms(broken_ms) };
        let mut world = world_with_jobs(links, seed, &jobs);
        for (node, down_ms, len_ms) in flaps {
            let down_at = Instant::ZERO + Span::from_ms(down_ms);
            world.set_link(down_at, node, false);
            world.set_link(down_at + Span::from_ms(len_ms), node, true);
        }
        let all = jobs.len();
        let finished = world.run(healed_at + PATIENCE, |world| world.done.len() == all);
        prop_assert!(finished, "{} of {all} jobs done; failures {:?}", world.done.len(), world.failures);
    }

    #[test]
    fn reordering_alone_fails_no_command(jitter_us in 1u64..500, seed: u64, jobs in jobs()) {
        let links = Links { jitter: Span::from_us(jitter_us), ..Links::PERFECT };
        let mut world = world_with_jobs(links, seed, &jobs);
        let all = jobs.len();
        let finished = world.run(Instant::ZERO + PATIENCE, |world| world.done.len() == all);
        prop_assert!(finished);
        prop_assert_eq!(&world.failures, &[]);
        prop_assert_eq!(world.lost, 0);
    }
}

#[test]
fn early_responses_are_common_when_frames_overtake_each_other() {
    let links = Links { jitter: Span::from_us(50), ..Links::PERFECT };
    let jobs: Vec<_> = (0..200u16).map(|n| (n as u8, (n / 2) as u8, true, 63, 100 + n)).collect();
    let mut world = world_with_jobs(links, 5, &jobs);
    assert!(world.run(Instant::ZERO + PATIENCE, |world| world.done.len() == 200));
    let early: u64 =
        world.nodes.iter().filter_map(|node| Some(node.initiator.as_ref()?.counters().early_responses)).sum();
    assert!((50..200).contains(&early), "{early} early responses of 200");
}
