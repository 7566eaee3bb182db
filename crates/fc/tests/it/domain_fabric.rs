//! Fabrics of many switches: time and messages until they agree, joins, conflicts, priorities and
//! failures.

use crate::domain_util::{F_S_TOV, Net, config, graph, name};
use sanloom_fc::domain::{DomainConfig, Input, NEVER_PRINCIPAL};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;
use std::collections::BTreeSet;

fn preferring(switch: usize, domain: u8) -> DomainConfig {
    DomainConfig { preferred: Some(domain), ..config(switch) }
}

fn all_up(net: &mut Net) {
    for link in 0..net.links.len() {
        net.set_link(link, true);
    }
}

const LINE: [[usize; 2]; 2] = [[0, 1], [1, 2]];

#[test]
fn a_single_switch_has_its_preferred_domain_at_once_and_any_other_after_a_delay() {
    let mut net = Net::new(vec![preferring(0, 9), config(1)], &[], 1);
    assert_eq!([0, 1].map(|switch: usize| net.nodes[switch].domain.domain()), [Some(9), None]);
    net.run(F_S_TOV);
    assert_eq!(net.nodes[1].domain.domain(), Some(1));
    assert_eq!(net.check(), Ok(()));
}

#[test]
fn a_switch_without_a_domain_joins_a_fabric_without_a_selection() {
    let mut net = Net::new(vec![preferring(0, 9), preferring(1, 7), config(2)], &LINE, 1);
    net.set_link(0, true);
    net.run(Span::from_secs(60));
    net.set_link(1, true);
    net.run(Span::from_ms(300));
    assert_eq!(net.check(), Ok(()));
    assert_eq!(net.nodes[2].domains_reported.last(), Some(&Some(1)));
}

#[test]
fn two_fabrics_with_different_domains_merge_under_the_better_principal_at_once() {
    let links = [[0, 1], [1, 2], [3, 4], [4, 5], [2, 3]];
    let mut configs: Vec<_> = (0..6).map(|switch| preferring(switch, switch as u8 + 1)).collect();
    configs[4].priority = 50;
    let mut net = Net::new(configs, &links, 1);
    for link in 0..4 {
        net.set_link(link, true);
    }
    net.run(Span::from_secs(60));
    assert_eq!(net.check(), Ok(()));
    let before = net.nodes.iter().map(|node| node.domain.domain()).collect::<Vec<_>>();
    net.set_link(4, true);
    net.run(Span::from_ms(500));
    assert_eq!(net.check(), Ok(()));
    assert_eq!(net.nodes[0].domain.principal(), Some(name(4)));
    assert_eq!(before, net.nodes.iter().map(|node| node.domain.domain()).collect::<Vec<_>>());
}

#[test]
fn a_domain_with_two_owners_isolates_both_ends_and_nothing_else() {
    let mut seen = BTreeSet::new();
    for (reconfigure, seed) in
        (1..=8).flat_map(|seed| [[false, false], [true, false], [false, true]].map(|r| (r, seed)))
    {
        let links = [[0, 1], [2, 3], [1, 2]];
        let mut configs: Vec<_> = [1, 2, 3, 1].iter().enumerate().map(|(s, domain)| preferring(s, *domain)).collect();
        (configs[1].auto_reconfigure, configs[2].auto_reconfigure) = (reconfigure[0], reconfigure[1]);
        configs[1].allow_rcf = reconfigure[0];
        configs[2].allow_rcf = reconfigure[1];
        let mut net = Net::new(configs, &links, seed);
        net.set_link(0, true);
        net.set_link(1, true);
        net.run(Span::from_secs(60));
        net.set_link(2, true);
        net.run(Span::from_secs(30));
        // The end that detects the conflict first decides. If it attempts a reconfiguration, the
        // other end denies that, and also rejects an EFP that arrives later.
        let names = net.isolation_names();
        let denied = reconfigure != [false; 2] && names.is_subset(&BTreeSet::from(["rcf-denied", "efp-rejected"]));
        assert!(denied || names == BTreeSet::from(["domain-overlap"]), "{reconfigure:?}, seed {seed}: {names:?}");
        seen.extend(names);
        assert_eq!(net.components().len(), 2);
        assert_eq!(net.check(), Ok(()));
        assert!(net.nodes.iter().all(|node| node.domains_reported.len() == 1));
    }
    assert!(seen.is_superset(&BTreeSet::from(["domain-overlap", "rcf-denied"])), "{seen:?}");
}

#[test]
fn a_domain_with_two_owners_is_resolved_by_reconfiguration_if_both_ends_allow_it() {
    let links = [[0, 1], [2, 3], [1, 2]];
    let configs = [1, 2, 3, 1].iter().enumerate();
    let configs =
        configs.map(|(s, domain)| DomainConfig { auto_reconfigure: true, ..preferring(s, *domain) }).collect();
    let mut net = Net::new(configs, &links, 1);
    net.set_link(0, true);
    net.set_link(1, true);
    net.run(Span::from_secs(60));
    net.set_link(2, true);
    net.run(Span::from_secs(60));
    assert_eq!((net.check(), net.components().len()), (Ok(()), 1));
    assert!(net.nodes.iter().all(|node| node.domains_reported.contains(&None)), "every switch lost its domain");
    let owners = [0, 3].map(|switch: usize| net.nodes[switch].domain.domain());
    assert_eq!(owners.iter().filter(|domain| **domain == Some(1)).count(), 1);
}

#[test]
fn a_switch_that_forbids_reconfiguration_is_not_reconfigured() {
    let mut configs: Vec<_> = (0..3).map(|switch| preferring(switch, switch as u8 + 1)).collect();
    configs[2].allow_rcf = false;
    let mut net = Net::new(configs, &LINE, 1);
    all_up(&mut net);
    net.run(Span::from_secs(60));
    net.input(0, Input::Rebuild { disruptive: true });
    net.run(Span::from_secs(60));
    assert_eq!(net.isolation_names(), BTreeSet::from(["rcf-denied"]));
    assert_eq!(net.check(), Ok(()));
    assert_eq!(net.nodes[2].domains_reported, [Some(3)]);
}

#[test]
fn an_insistent_switch_without_its_domain_stays_isolated() {
    let mut configs = vec![preferring(0, 5), config(1)];
    configs[1].insistent = true;
    let mut net = Net::new(configs.clone(), &[[0, 1]], 1);
    all_up(&mut net);
    net.run(Span::from_secs(60));
    assert_eq!(net.components().len(), 1, "insistent on nothing");
    configs[0].priority = 1;
    // Two switches that a reconfiguration has deprived of their domains request the same one.
    configs[1].preferred = Some(5);
    let mut net = Net::new(configs, &[[0, 1]], 1);
    all_up(&mut net);
    net.run(Span::from_secs(60));
    assert_eq!(net.components().len(), 2);
    assert_eq!(net.check(), Ok(()));
}

#[test]
fn switches_without_a_principal_reconfigure_or_isolate_a_fabric_that_uses_one_of_their_domains() {
    for reconfigure in [false, true] {
        // The last switch receives claims of the other fabric only if the second one joins it. The
        // second one has no better claim than the last.
        let mut configs = vec![preferring(0, 1), config(1), preferring(2, 2), config(3)];
        (configs[1].priority, configs[3].priority) = (NEVER_PRINCIPAL, NEVER_PRINCIPAL);
        configs.iter_mut().for_each(|config| config.auto_reconfigure = reconfigure);
        let mut net = Net::new(configs, &[[0, 1], [1, 2], [1, 3]], 1);
        net.set_link(0, true);
        net.run(Span::from_secs(60));
        net.set_link(2, true);
        net.run(Span::from_secs(60));
        assert_eq!(net.nodes[1].domain.domain(), Some(2), "granted by the first");
        net.set_link(0, false);
        net.set_link(1, true);
        net.run(Span::from_secs(90));
        let [second, third, last] = [1, 2, 3].map(|switch: usize| net.nodes[switch].domain.principal());
        assert_eq!(third, Some(name(2)));
        if reconfigure {
            assert_eq!((second, last), (third, third));
        } else {
            assert_eq!((second, last), (None, None));
            assert_eq!(net.isolation_names(), BTreeSet::from(["domain-overlap", "no-principal"]));
        }
    }
}

#[test]
fn no_switch_becomes_principal_if_all_have_priority_255() {
    let configs = (0..3).map(|switch| DomainConfig { priority: NEVER_PRINCIPAL, ..config(switch) }).collect();
    let mut net = Net::new(configs, &LINE, 1);
    all_up(&mut net);
    net.run(Span::from_secs(60));
    assert_eq!(net.isolation_names(), BTreeSet::from(["no-principal"]));
    assert!(net.nodes.iter().all(|node| node.domains_reported.is_empty()));
}

#[test]
fn the_principal_is_replaced_and_domains_stay() {
    // In a ring, all other switches stay connected without the principal.
    let links = [[0, 1], [1, 2], [2, 3], [3, 0]];
    let mut net = Net::new((0..4).map(|switch| preferring(switch, switch as u8 + 1)).collect(), &links, 1);
    all_up(&mut net);
    net.run(Span::from_secs(30));
    assert_eq!(net.nodes[2].domain.principal(), Some(name(0)));
    net.set_link(0, false);
    net.set_link(3, false);
    net.run(F_S_TOV.times(6));
    assert_eq!(net.check(), Ok(()));
    assert_eq!(net.nodes[2].domain.principal(), Some(name(1)));
    assert_eq!(net.components().len(), 2);
    // The old principal returns with the better name, but the fabric already has a principal.
    net.set_link(0, true);
    net.run(Span::from_secs(1));
    assert_eq!((net.check(), net.components().len()), (Ok(()), 1));
    assert!(net.nodes.iter().enumerate().all(|(switch, node)| node.domains_reported == [Some(switch as u8 + 1)]));
}

#[test]
fn one_of_two_parallel_links_may_fail_without_notice() {
    let mut net = Net::new(vec![preferring(0, 1), preferring(1, 2)], &[[0, 1], [0, 1]], 1);
    all_up(&mut net);
    net.run(Span::from_secs(30));
    let emitted = net.nodes[1].principals_reported.len();
    for _ in 0..3 {
        let upstream = usize::from(net.nodes[1].domain.upstream().expect("0 is principal"));
        let before = net.messages;
        net.set_link(upstream, false);
        net.run(Span::from_secs(1));
        assert_eq!(net.messages, before, "no message is sent");
        assert_eq!((net.check(), net.nodes[1].principals_reported.len()), (Ok(()), emitted));
        net.set_link(upstream, true);
        net.run(Span::from_secs(1));
        assert_eq!(net.check(), Ok(()));
    }
}

/// Runs a fabric with the maximum number of domains. Returns the messages per link and the virtual
/// time.
fn large(preferred: bool) -> (u64, Span) {
    let mut random = SplitMix64(239);
    let links = graph(&mut random, 239, 361);
    let configs = (0..239).map(|switch| match preferred {
        true => preferring(switch, 239 - switch as u8),
        false => config(switch),
    });
    let mut net = Net::new(configs.collect(), &links, 1);
    all_up(&mut net);
    let began = net.now;
    while net.check().is_err() || net.components().len() > 1 {
        net.run(Span::from_ms(100));
        assert!(net.now.since(began) < Span::from_secs(60), "{:?}", net.check());
    }
    let messages = net.messages;
    net.run(Span::from_secs(100));
    assert_eq!(net.check(), Ok(()));
    assert!(net.messages - messages < links.len() as u64, "{} more messages after it is done", net.messages - messages);
    (messages / links.len() as u64, net.now.since(began))
}

#[test]
fn as_many_switches_as_domains_agree_at_once_if_each_has_a_preferred_domain() {
    let (messages, _) = large(true);
    println!("{messages} messages for each link");
    assert!(messages < 120, "{messages} messages for each link");
}

#[test]
fn as_many_switches_as_domains_agree_without_preferred_domains() {
    let (messages, _) = large(false);
    println!("{messages} messages for each link");
    assert!(messages < 120, "{messages} messages for each link");
}

#[test]
fn the_240th_switch_gets_no_domain() {
    let links: Vec<_> = (1..240).map(|switch| [0, switch]).collect();
    let mut net = Net::new((0..240).map(config).collect(), &links, 1);
    for link in 0..238 {
        net.set_link(link, true);
    }
    net.run(Span::from_secs(40));
    assert_eq!((net.check(), net.components().len()), (Ok(()), 2));
    net.restart(239);
    net.set_link(238, true);
    net.run(Span::from_secs(5));
    assert_eq!(net.isolation_names(), BTreeSet::from(["domain-unavailable", "other-side"]));
    assert_eq!(net.nodes[239].domains_reported, [Some(1)], "a single switch may have any domain");
}
