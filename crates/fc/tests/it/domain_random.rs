//! Random fabrics with failing links, switches and messages. After the faults end, all switches
//! agree, and no switch has lost its domain without a reason.

use crate::domain_util::{Net, config, graph};
use sanloom_fc::domain::{DomainConfig, Input, NEVER_PRINCIPAL};
use sanloom_fc::isolation::Isolation;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;

/// Seeds of a campaign: `SANLOOM_SEEDS` (240) seeds, starting at `SANLOOM_FIRST_SEED` (0).
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let first = number("SANLOOM_FIRST_SEED", 0);
    first..first + number("SANLOOM_SEEDS", 240)
}

/// Time for several consecutive rebuilds with all their time-outs, because each isolated link may
/// cause one.
const HEALING: Span = Span::from_secs(180);
/// Longest selection of a switch that hears of no other one: the quiet time of twice F_S_TOV, its
/// extension by three times F_S_TOV, and time to open links.
const SELECTION: Span = Span::from_secs(30);

fn disturbed(seed: u64, configure: impl Fn(usize, &mut SplitMix64) -> DomainConfig, disruptive: bool) -> Net {
    let mut random = SplitMix64(seed);
    let switches = 2 + random.below(8) as usize;
    let more = random.below(switches as u64 + 1) as usize;
    let links = graph(&mut random, switches, more);
    let configs = (0..switches).map(|switch| configure(switch, &mut random)).collect();
    let mut net = Net::new(configs, &links, seed);
    net.delay = Span::from_ms([2, 50, 800][random.below(3) as usize]);
    net.loss = [0, 10, 30][random.below(3) as usize];
    for link in 0..links.len() {
        net.set_link(link, true);
    }
    for _ in 0..random.below(12) {
        net.run(Span::from_ms(random.below(9_000)));
        let link = random.below(links.len() as u64) as usize;
        let switch = random.below(switches as u64) as usize;
        match random.below(10) {
            0..5 => net.set_link(link, false),
            5..8 => net.set_link(link, true),
            8 => net.restart(switch),
            _ => net.input(switch, Input::Rebuild { disruptive: disruptive && random.below(2) == 0 }),
        }
    }
    net.loss = 0;
    // An isolated link stays isolated until it is taken down and up.
    for link in (0..links.len()).filter(|link| !net.is_up(*link)).collect::<Vec<_>>() {
        net.set_link(link, false);
    }
    for link in 0..links.len() {
        net.set_link(link, true);
    }
    net.run(SELECTION);
    retry_without_principal(&mut net);
    net.run(HEALING);
    net
}

/// Takes links without a principal down and up. Switches that may not be principal isolate the
/// links between them if they hear of no other switch in time, and the news of a candidate may come
/// just too late. Selections that began before the end of the faults have ended by now; after this,
/// no link may need an administrator.
fn retry_without_principal(net: &mut Net) {
    let is_late = |net: &Net, link: usize| {
        let ends = net.links[link].ends.map(|switch| &net.nodes[switch]);
        let isolated = ends.map(|node| matches!(node.domain.isolated(link as u16), Some(Isolation::NoPrincipal)));
        let may_lead = ends.map(|node| node.config.priority != NEVER_PRINCIPAL);
        assert!(!(isolated.contains(&true) && may_lead.contains(&true)), "link {link} joins a candidate");
        isolated.contains(&true)
    };
    let late: Vec<usize> = (0..net.links.len()).filter(|link| is_late(net, *link)).collect();
    for up in [false, true] {
        late.iter().for_each(|link| net.set_link(*link, up));
    }
}

#[test]
fn fabrics_with_a_domain_for_every_switch_heal_and_keep_them() {
    for seed in seeds() {
        let configure = |switch, random: &mut SplitMix64| DomainConfig {
            preferred: Some(switch as u8 + 1),
            insistent: random.below(2) == 0,
            priority: [1, 50, 128, 254][random.below(4) as usize],
            ..config(switch)
        };
        let net = disturbed(seed, configure, false);
        assert_eq!(net.isolation_names().len(), 0, "seed {seed}: {:?}", net.isolation_names());
        assert_eq!(net.components().len(), 1, "seed {seed}");
        assert_eq!(net.check(), Ok(()), "seed {seed}");
        for (switch, node) in net.nodes.iter().enumerate() {
            assert_eq!(node.domains_reported, [Some(switch as u8 + 1)], "seed {seed}, switch {switch}");
        }
    }
}

#[test]
fn fabrics_whose_domains_come_from_the_principal_heal() {
    for seed in seeds() {
        let configure = |switch, random: &mut SplitMix64| DomainConfig {
            auto_reconfigure: true,
            priority: [1, 50, 128, 255][random.below(4) as usize],
            ..config(switch)
        };
        // At least one switch must be able to become principal.
        let with_one = |switch, random: &mut SplitMix64| {
            let config = configure(switch, random);
            DomainConfig { priority: if switch == 0 { 128 } else { config.priority }, ..config }
        };
        let net = disturbed(1000 + seed, with_one, true);
        assert_eq!(net.check(), Ok(()), "seed {}", 1000 + seed);
        assert_eq!(net.components().len(), 1, "seed {}: {:?}", 1000 + seed, net.isolation_names());
    }
}

#[test]
fn fabrics_that_may_not_reconfigure_agree_on_either_side_of_isolated_links() {
    for seed in seeds() {
        let configure = |switch, random: &mut SplitMix64| DomainConfig {
            preferred: [None, Some(1 + random.below(6) as u8)][random.below(2) as usize],
            insistent: random.below(4) == 0,
            allow_rcf: random.below(4) != 0,
            ..config(switch)
        };
        let net = disturbed(2000 + seed, configure, false);
        assert_eq!(net.check(), Ok(()), "seed {}", 2000 + seed);
    }
}
