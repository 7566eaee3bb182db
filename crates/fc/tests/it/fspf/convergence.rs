//! Convergence of fabrics after changes and faults.

use crate::fspf::fabric::{Fabric, isl};
use sanloom_fc::fabric::routes::Isl;
use sanloom_fc::fspf::{FspfConfig, FspfCounters, Input};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;

/// Random fabric, connected or not, of 2 to 9 switches with bundles, parallel links and links that
/// are down.
fn random_fabric(random: &mut SplitMix64) -> (Vec<u8>, Vec<Isl>) {
    let switches = 2 + random.below(8) as usize;
    let domains = (0..switches).map(|n| 239 - 7 * n as u8).collect();
    let links = 1 + random.below(3 * switches as u64);
    let mut isls = Vec::new();
    for n in 0..links as u16 {
        let (a, b) = (random.below(switches as u64) as usize, random.below(switches as u64) as usize);
        if a == b {
            continue;
        }
        let cost = [62, 125, 250][random.below(3) as usize];
        // Links of one bundle join the same switches at the same cost, so the bundle number is
        // derived from those.
        let bundle = (random.below(3) == 0).then(|| (a.min(b) * 100 + a.max(b) * 10) as u16 + cost as u16 / 60);
        isls.push(Isl { bundle, up: random.below(4) != 0, ..isl((a, 2 * n), (b, 2 * n + 1), cost) });
    }
    (domains, isls)
}

#[test]
fn after_faults_end_all_records_agree_and_all_routes_are_right() {
    for seed in 0..250 {
        let mut random = SplitMix64(seed * 0x1234_5677 + 99);
        let config = FspfConfig::default();
        let (domains, isls) = random_fabric(&mut random);
        let mut fabric = Fabric::new(config, domains, isls, seed);
        (fabric.loss, fabric.jitter_us) = (random.below(300), random.below(5000));
        for _ in 0..random.below(25) {
            fabric.run(Span::from_ms(random.below(4000)));
            let link = random.below(fabric.isls.len().max(1) as u64) as usize;
            match random.below(8) {
                0 => {
                    let switch = random.below(fabric.switches.len() as u64) as usize;
                    fabric.restart(switch, config);
                }
                _ if fabric.isls.is_empty() => {}
                1 if fabric.isls[link].bundle.is_none() => {
                    let cost = 1 + random.below(900) as u32;
                    fabric.isls[link].cost = cost;
                    for end in [fabric.isls[link].a, fabric.isls[link].b] {
                        fabric.input(end.switch, Input::Cost { port: end.port, cost });
                    }
                }
                _ if fabric.isls[link].up => fabric.cut(link),
                _ => fabric.raise(link),
            }
        }
        (fabric.loss, fabric.jitter_us) = (0, 100);
        fabric.run(Span::from_secs(400));
        println!("seed {seed}");
        fabric.assert_converged();
    }
}

#[test]
fn two_joined_fabrics_exchange_all_names() {
    let isls = vec![isl((0, 0), (1, 0), 125), isl((2, 0), (3, 0), 125), Isl { up: false, ..isl((1, 1), (2, 1), 125) }];
    let mut fabric = Fabric::new(FspfConfig::default(), vec![1, 2, 3, 4], isls, 1);
    fabric.run(Span::from_secs(1));
    fabric.assert_converged();
    fabric.raise(2);
    fabric.run(Span::from_ms(100));
    fabric.assert_converged();
}

#[test]
fn a_single_failure_is_routed_around_within_milliseconds() {
    let isls = vec![isl((0, 0), (1, 0), 125), isl((1, 1), (2, 0), 125), isl((2, 1), (0, 1), 125)];
    let mut fabric = Fabric::new(FspfConfig::default(), vec![1, 2, 3], isls, 1);
    fabric.run(Span::from_secs(30));
    fabric.cut(0);
    // Time of one hop and the delay of the search.
    fabric.run(Span::from_ms(12));
    fabric.assert_converged();
}

#[test]
fn a_flapping_link_is_announced_again_only_after_it_stayed_up() {
    let isls = vec![isl((0, 0), (1, 0), 125), isl((0, 1), (1, 1), 125)];
    let mut fabric = Fabric::new(FspfConfig::default(), vec![1, 2], isls, 1);
    fabric.run(Span::from_secs(10));
    let before = fabric.switches[0].counters().announcements;
    for _ in 0..40 {
        fabric.cut(0);
        fabric.run(Span::from_ms(50));
        fabric.raise(0);
        fabric.run(Span::from_ms(50));
    }
    assert_eq!(fabric.switches[0].counters().announcements - before, 1, "its first loss");
    fabric.run(Span::from_secs(5));
    fabric.assert_converged();
}

#[test]
fn records_are_refreshed_without_a_change() {
    let isls = vec![isl((0, 0), (1, 0), 125), isl((1, 1), (2, 0), 125)];
    let mut fabric = Fabric::new(FspfConfig::default(), vec![1, 2, 3], isls, 1);
    fabric.run(Span::from_secs(5 * 3600));
    fabric.assert_converged();
    assert_eq!(fabric.switches[0].records().count(), 3);
    let counters = fabric.switches[0].counters();
    assert_eq!(counters.updates_repeated + counters.discarded + counters.too_early, 0);
}

#[test]
fn the_record_of_a_switch_that_left_ages_out_everywhere() {
    let isls = vec![isl((0, 0), (1, 0), 125), isl((1, 1), (2, 0), 125)];
    let mut fabric = Fabric::new(FspfConfig::default(), vec![1, 2, 3], isls, 1);
    fabric.run(Span::from_secs(10));
    fabric.cut(1);
    fabric.run(Span::from_secs(3500));
    assert_eq!(fabric.switches[0].records().count(), 3, "not yet");
    fabric.run(Span::from_secs(200));
    for switch in [0, 1] {
        let left: Vec<u8> = fabric.switches[switch].records().map(|record| record.domain).collect();
        assert_eq!(left, [1, 2]);
    }
    fabric.assert_converged();
}

#[test]
fn a_switch_with_a_new_domain_starts_again() {
    let isls = vec![isl((0, 0), (1, 0), 125), isl((1, 1), (2, 0), 125)];
    let mut fabric = Fabric::new(FspfConfig::default(), vec![1, 2, 3], isls, 1);
    fabric.run(Span::from_secs(10));
    fabric.domains[1] = 77;
    fabric.input(1, Input::Domain(None));
    assert_eq!(fabric.reported[1].len(), 0);
    fabric.run(Span::from_secs(100));
    fabric.input(1, Input::Domain(Some(77)));
    fabric.run(Span::from_secs(30));
    fabric.assert_converged();
    assert!(fabric.switches.iter().all(|switch| switch.routes().count() == 2));
}

#[test]
fn cost_and_bundle_of_a_link_may_change() {
    let isls = vec![isl((0, 0), (1, 0), 125), isl((0, 1), (1, 1), 250)];
    let mut fabric = Fabric::new(FspfConfig::default(), vec![1, 2], isls, 1);
    fabric.run(Span::from_secs(1));
    for link in [0, 1] {
        (fabric.isls[link].cost, fabric.isls[link].bundle) = (500, Some(9));
        fabric.raise(link);
    }
    fabric.run(Span::from_secs(1));
    fabric.assert_converged();
}

#[test]
fn paths_are_computed_when_a_record_arrives_and_then_at_most_every_ten_milliseconds() {
    let ring = (0..6).map(|n| isl((n, 0), ((n + 1) % 6, 1), 125)).collect();
    let mut fabric = Fabric::new(FspfConfig::default(), (1..=6).collect(), ring, 1);
    fabric.run(Span::from_secs(10));
    let searches =
        |fabric: &Fabric| fabric.switches.iter().map(|switch| switch.counters().computations).collect::<Vec<_>>();
    let before = searches(&fabric);
    fabric.cut(0);
    // A message takes 1 ms, and the farthest switch is two hops from an end of the link.
    fabric.run(Span::from_ms(5));
    fabric.assert_converged();
    fabric.run(Span::from_ms(15));
    let more: Vec<u64> = searches(&fabric).iter().zip(&before).map(|(after, before)| after - before).collect();
    assert!(more.iter().all(|searches| (1..=2).contains(searches)), "{more:?}");
}

/// 231 edges with a link to each of eight cores: 1,848 links, raised at once.
#[test]
fn the_largest_fabric_converges_with_few_messages_and_searches() {
    let isls: Vec<Isl> = (0..231)
        .flat_map(|edge| (0..8u16).map(move |core| isl((8 + edge, core), (usize::from(core), edge as u16), 125)))
        .collect();
    let links = isls.len() as u64;
    let mut fabric = Fabric::new(FspfConfig::default(), (1..=239).collect(), isls, 1);
    fabric.jitter_us = 300;
    fabric.run(Span::from_ms(500));
    fabric.assert_converged();
    let sum = |of: fn(&FspfCounters) -> u64| fabric.switches.iter().map(|switch| of(switch.counters())).sum::<u64>();
    let (computations, announcements) = (sum(|c| c.computations), sum(|c| c.announcements));
    println!("{} messages, {computations} searches, {announcements} records", fabric.messages);
    assert!(fabric.messages <= 40 * links, "{} messages", fabric.messages);
    assert!(computations <= 12 * 239, "{computations} searches");
    assert!(announcements <= 4 * 239, "{announcements} records written");
    assert_eq!(sum(|c| c.updates_repeated + c.too_early + c.discarded), 0);
}
