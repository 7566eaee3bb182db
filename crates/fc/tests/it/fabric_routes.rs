//! Shortest paths, compared with a plain search over all paths.

use proptest::prelude::*;
use sanloom_fc::config::LineRate;
use sanloom_fc::fabric::Leg;
use sanloom_fc::fabric::routes::{Isl, IslEnd, cost_of, routes};
use std::collections::BTreeSet;

fn isl(a: (usize, u16), b: (usize, u16), cost: u32) -> Isl {
    Isl { a: IslEnd { switch: a.0, port: a.1 }, b: IslEnd { switch: b.0, port: b.1 }, cost, bundle: None, up: true }
}

fn bundled(isl: Isl, bundle: u16) -> Isl {
    Isl { bundle: Some(bundle), ..isl }
}

#[test]
fn two_links_to_one_core_are_two_legs() {
    // Two edges with two links each to one core, as in the SANSim paper, Figure 8, except for the
    // number of edges.
    let isls = [isl((0, 8), (2, 0), 500), isl((0, 9), (2, 1), 500), isl((1, 8), (2, 2), 500), isl((1, 9), (2, 3), 500)];
    let both = vec![Leg::Port(8), Leg::Port(9)];
    assert_eq!(
        routes(&[1, 2, 10], &isls),
        vec![
            vec![(2, both.clone()), (10, both.clone())],
            vec![(1, both.clone()), (10, both)],
            vec![(1, vec![Leg::Port(0), Leg::Port(1)]), (2, vec![Leg::Port(2), Leg::Port(3)])],
        ]
    );
}

#[test]
fn links_of_a_bundle_are_one_leg_while_one_of_them_is_up() {
    let mut isls =
        [isl((0, 1), (1, 1), 250), bundled(isl((0, 4), (1, 4), 250), 7), bundled(isl((0, 0), (1, 3), 250), 7)];
    let legs = |isls: &[Isl]| routes(&[1, 2], isls)[0][0].1.clone();
    // The bundle contains the lowest port.
    assert_eq!(legs(&isls), [Leg::Bundle(7), Leg::Port(1)]);
    isls[2].up = false;
    assert_eq!(legs(&isls), [Leg::Port(1), Leg::Bundle(7)]);
    isls[1].up = false;
    assert_eq!(legs(&isls), [Leg::Port(1)]);
    isls[0].up = false;
    assert_eq!(legs(&isls), []);
}

#[test]
fn the_cheaper_path_wins_even_if_it_has_more_hops() {
    let isls = [isl((0, 0), (1, 0), 1000), isl((0, 1), (2, 0), 250), isl((2, 1), (1, 1), 250)];
    assert_eq!(routes(&[1, 2, 3], &isls)[0], [(2, vec![Leg::Port(1)]), (3, vec![Leg::Port(1)])]);
}

#[test]
fn destinations_are_sorted_by_domain_for_any_order_of_switches() {
    let isls = [isl((0, 0), (1, 0), 1), isl((1, 1), (2, 0), 1)];
    let found = routes(&[30, 5, 20], &isls);
    let domains: Vec<Vec<u8>> = found.iter().map(|r| r.iter().map(|(domain, _)| *domain).collect()).collect();
    assert_eq!(domains, [vec![5, 20], vec![20, 30], vec![5, 30]]);
}

#[test]
fn links_without_a_far_end_and_loops_are_ignored() {
    let isls = [isl((0, 0), (7, 0), 1), isl((0, 1), (0, 2), 1)];
    assert_eq!(routes(&[1, 2], &isls), vec![vec![(2, vec![])], vec![(1, vec![])]]);
}

#[test]
fn cost_follows_the_rate() {
    let costs: Vec<u32> = LineRate::ALL.iter().map(|rate| cost_of(rate.bytes_per_s())).collect();
    assert_eq!(costs, [1000, 500, 250, 125, 83, 62, 31, 15, 8, 7, 3]);
    assert_eq!(cost_of(0), u32::MAX);
    assert_eq!(cost_of(u64::MAX), 1);
}

/// Cheapest cost between any two switches, computed by relaxation until nothing changes.
fn cheapest(switches: usize, isls: &[Isl]) -> Vec<Vec<Option<u64>>> {
    let mut best = vec![vec![None; switches]; switches];
    for (n, row) in best.iter_mut().enumerate() {
        row[n] = Some(0);
    }
    loop {
        let mut changed = false;
        for isl in isls.iter().filter(|isl| isl.up) {
            for (from, to) in [(isl.a.switch, isl.b.switch), (isl.b.switch, isl.a.switch)] {
                for (target, rest) in best[to].clone().into_iter().enumerate() {
                    let Some(rest) = rest else { continue };
                    let through = rest + u64::from(isl.cost);
                    if best[from][target].is_none_or(|known: u64| through < known) {
                        best[from][target] = Some(through);
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            return best;
        }
    }
}

prop_compose! {
    fn any_fabric()(switches in 2usize..8)(
        links in prop::collection::vec((0..switches, 0..switches, 1u32..4, any::<bool>(), 0u16..12), 0..16),
        switches in Just(switches),
    ) -> (usize, Vec<Isl>) {
        let isls = (0u16..).zip(links).map(|(n, (a, b, cost, up, bundle))| Isl {
            up,
            // Members of a bundle join the same switches at the same cost, so the bundle number is
            // derived from those.
            bundle: (bundle < 4).then(|| (a.min(b) * 64 + a.max(b) * 8) as u16 + cost as u16),
            ..isl((a, n * 2), (b, n * 2 + 1), cost)
        });
        (switches, isls.collect())
    }
}

proptest! {
    #[test]
    fn legs_are_exactly_the_first_hops_of_all_cheapest_paths((switches, isls) in any_fabric()) {
        let domains: Vec<u8> = (0..switches).map(|n| 200 - 3 * n as u8).collect();
        let found = routes(&domains, &isls);
        let best = cheapest(switches, &isls);
        for from in 0..switches {
            prop_assert_eq!(found[from].len(), switches - 1);
            for target in (0..switches).filter(|&target| target != from) {
                let legs = &found[from].iter().find(|(domain, _)| *domain == domains[target]).unwrap().1;
                let mut expected = BTreeSet::new();
                for isl in isls.iter().filter(|isl| isl.up && isl.a.switch != isl.b.switch) {
                    for (here, there) in [(isl.a, isl.b), (isl.b, isl.a)] {
                        let Some(rest) = best[there.switch][target] else { continue };
                        if here.switch == from && Some(rest + u64::from(isl.cost)) == best[from][target] {
                            expected.insert(isl.bundle.map_or(Leg::Port(here.port), Leg::Bundle));
                        }
                    }
                }
                prop_assert_eq!(legs.len(), expected.len(), "{:?}", legs);
                prop_assert_eq!(legs.iter().copied().collect::<BTreeSet<_>>(), expected);
            }
        }
    }

    #[test]
    fn the_order_of_links_does_not_matter(
        (switches, isls) in any_fabric(),
        keys in prop::collection::vec(any::<u16>(), 16),
    ) {
        let domains: Vec<u8> = (1..=switches as u8).collect();
        let mut shuffled: Vec<(u16, Isl)> = keys.into_iter().zip(isls.clone()).collect();
        shuffled.sort_by_key(|(key, _)| *key);
        let turned: Vec<Isl> = shuffled.into_iter().map(|(_, l)| Isl { a: l.b, b: l.a, ..l }).collect();
        prop_assert_eq!(routes(&domains, &turned), routes(&domains, &isls));
    }
}

#[test]
fn sixty_five_switches_of_a_two_level_fabric_find_all_their_legs() {
    // 57 edges with one link to each of eight cores.
    let isls: Vec<Isl> = (0..57)
        .flat_map(|edge| (0..8u16).map(move |core| isl((8 + edge, core), (usize::from(core), edge as u16), 125)))
        .collect();
    let domains: Vec<u8> = (1..=65).collect();
    let found = routes(&domains, &isls);
    for (edge, routes) in found.iter().enumerate().skip(8) {
        for (domain, legs) in routes {
            let expected = if *domain <= 8 { 1 } else { 8 };
            assert_eq!(legs.len(), expected, "switch {edge} to domain {domain}");
        }
    }
}
