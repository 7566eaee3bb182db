//! Zone servers of whole fabrics: merges, changes, conflicts and random faults. No switch ever has
//! a mixture of two states. Afterwards all connected switches have the same state, or the link
//! between them is isolated with its reason.

use crate::zone_fabric::Fabric;
use crate::zone_versions::{version, versions};
use sanloom_fc::config::ZoneDefault;
use sanloom_fc::ils::{Outcome, Send};
use sanloom_fc::zoning::server::{
    ChangeFailure, Input, MergeFailure, Output, ZoneChange, ZoneServer, ZoneServerConfig,
};
use sanloom_fc::zoning::{
    Limit, MergeConflict, MergeControl, MergeRules, ZoneDatabase, ZoneEdit, ZoneLimits, ZoneProblem, Zones, merge,
};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Wwnn;
use sanloom_wire::sw_ils::{SwAcc, SwIls, SwRjt, SwRjtExplanation, SwRjtReason};
use std::collections::BTreeSet;

const ALL: &[&str] = &["zone_a", "zone_b", "zone_c"];

fn fabric(databases: &[ZoneDatabase], links: &[[usize; 2]]) -> Fabric {
    let config = ZoneServerConfig::default();
    let switches = databases.iter().map(|database| (config, Zones::new(database.clone()))).collect();
    Fabric::new(1, switches, links)
}

fn databases(fabric: &Fabric) -> Vec<&ZoneDatabase> {
    fabric.switches.iter().map(|node| node.server.database()).collect()
}

/// Enough zones to require several frames.
fn many_zones(prefix: &str) -> Vec<String> {
    (0..100).map(|number| format!("{prefix}_{number}")).collect()
}

#[test]
fn a_new_switch_takes_over_the_zones_of_the_fabric() {
    let names = many_zones("zone");
    for names in [ALL.to_vec(), names.iter().map(String::as_str).collect()] {
        let zones = version(&names, 1);
        let mut fabric = fabric(&[zones.clone(), ZoneDatabase::default(), ZoneDatabase::default()], &[[0, 1], [1, 2]]);
        fabric.run(Span::from_secs(5));
        assert!(fabric.carries(0) && fabric.carries(1));
        let databases = databases(&fabric);
        assert!(databases.iter().all(|database| *database == databases[0]));
        assert_eq!(versions(databases[2]), BTreeSet::from([1]));
        assert_eq!(databases[2].defined.zones.len(), names.len());
    }
}

#[test]
fn different_zones_become_one_set_in_the_whole_fabric() {
    let sides = [version(&["zone_a"], 1), version(&["zone_b"], 2), version(&["zone_c"], 3)];
    let mut fabric = fabric(&sides, &[[0, 1], [1, 2], [0, 2]]);
    fabric.run(Span::from_secs(10));
    assert!((0..3).all(|link| fabric.carries(link)));
    let databases = databases(&fabric);
    assert!(databases.iter().all(|database| *database == databases[0]));
    let effective = databases[0].effective.as_ref().expect("zones in force");
    assert_eq!(effective.zones.iter().map(|zone| zone.name.as_str()).collect::<Vec<_>>(), ALL);
}

#[test]
fn a_conflict_isolates_the_link_at_both_ends_and_names_the_zone() {
    let mut fabric = fabric(&[version(ALL, 1), version(&["zone_b"], 2)], &[[0, 1]]);
    fabric.run(Span::from_secs(10));
    assert!(!fabric.carries(0));
    for (switch, versions_there) in [(0, 1), (1, 2)] {
        let node = &fabric.switches[switch];
        let Some(MergeFailure::Conflicts(conflicts)) = node.isolated.get(&0) else { panic!("{:?}", node.isolated) };
        let content =
            |conflict: &MergeConflict| matches!(conflict, MergeConflict::Content { name, .. } if name == "zone_b");
        assert!(conflicts.iter().any(content), "{conflicts:?}");
        assert!(node.isolated[&0].to_string().contains("zone `zone_b` differs"), "{}", node.isolated[&0]);
        assert_eq!(versions(node.server.database()), BTreeSet::from([versions_there]));
    }
}

#[test]
fn a_switch_without_zoning_isolates_both_ends_of_the_link_and_rejects_changes() {
    let plain = ZoneServerConfig { supported: false, ..ZoneServerConfig::default() };
    let zoned = (ZoneServerConfig::default(), Zones::new(version(ALL, 1)));
    let without = (plain, Zones::new(ZoneDatabase::default()));
    let mut fabric = Fabric::new(1, vec![zoned, without], &[[0, 1]]);
    fabric.run(Span::from_secs(10));
    assert!(matches!(fabric.switches[0].isolated[&0], MergeFailure::NotSupported(_)));
    assert_eq!(
        fabric.switches[0].isolated[&0].to_string(),
        "the other switch rejects zone merges: SW_RJT: not supported, request not supported"
    );
    assert_eq!(fabric.switches[1].isolated[&0], MergeFailure::Unsupported);
    fabric.change(1, 7, ZoneChange::Replace(version(ALL, 2)), Span::ZERO);
    fabric.run(Span::from_secs(1));
    assert_eq!(fabric.switches[1].done[&7], Err(vec![ChangeFailure::NotSupported]));
}

#[test]
fn limits_rules_and_merge_control_of_either_side_hold() {
    let standard = ZoneServerConfig::default();
    let small = ZoneServerConfig { limits: ZoneLimits { zones: 2, ..ZoneLimits::default() }, ..standard };
    let strict = ZoneServerConfig { merge_control: MergeControl::Restrict, ..standard };
    let enhanced = ZoneServerConfig { rules: MergeRules::ENHANCED, ..standard };
    let tiny = ZoneServerConfig { limits: ZoneLimits { database_bytes: 1000, ..ZoneLimits::default() }, ..standard };
    let open = ZoneDatabase { default_zone: ZoneDefault::Open, ..version(&["zone_a"], 1) };
    let names = many_zones("zone");
    let large = version(&names.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    for (config, ours, theirs, named) in [
        (small, version(&["zone_a", "zone_b"], 1), version(&["zone_c"], 2), "3 zones; at most 2"),
        (strict, version(&["zone_a"], 1), version(&["zone_b"], 2), "is defined in the first fabric only"),
        (enhanced, version(&["zone_a"], 1), open, "default zone is closed in the first fabric and open in the second"),
        (tiny, ZoneDatabase::default(), large, "a zone database of at most 1000 bytes"),
    ] {
        let other = ZoneServerConfig { rules: config.rules, ..standard };
        let switches = vec![(config, Zones::new(ours.clone())), (other, Zones::new(theirs.clone()))];
        let mut fabric = Fabric::new(1, switches, &[[0, 1]]);
        fabric.run(Span::from_secs(10));
        assert!(!fabric.carries(0), "{named}");
        let emitted: Vec<String> =
            fabric.switches.iter().flat_map(|n| n.isolated.values()).map(|f| f.to_string()).collect();
        assert!(emitted.iter().any(|text| text.contains(named)), "{named}: {emitted:?}");
        assert_eq!(databases(&fabric), [&ours, &theirs], "{named}");
    }
}

#[test]
fn switches_in_enhanced_mode_join_each_other_and_no_others() {
    let standard = ZoneServerConfig::default();
    let enhanced = ZoneServerConfig { rules: MergeRules::ENHANCED, ..standard };
    let plain = ZoneServerConfig { supported: false, ..enhanced };
    let with = |config, zone| (config, Zones::new(version(&[zone], 1)));
    let mut fabric = Fabric::new(1, vec![with(enhanced, "zone_a"), with(enhanced, "zone_b")], &[[0, 1]]);
    fabric.run(Span::from_secs(10));
    assert!(fabric.carries(0));
    assert_eq!(databases(&fabric)[0].defined.zones.len(), 2);
    // Equal zones, but different modes prevent a merge.
    for other in [standard, plain] {
        for switches in [[enhanced, other], [other, enhanced]] {
            let switches = switches.map(|config| with(config, "zone_a")).to_vec();
            let mut fabric = Fabric::new(1, switches, &[[0, 1]]);
            fabric.run(Span::from_secs(10));
            let mut emitted: Vec<String> = fabric.switches.iter().map(|node| node.isolated[&0].to_string()).collect();
            emitted.sort();
            let [theirs, ours] = &emitted[..] else { panic!("{emitted:?}") };
            assert_eq!(theirs, "the other switch is in enhanced zoning mode, this switch is not");
            assert_eq!(ours, "this switch is in enhanced zoning mode, the other switch is not");
        }
    }
}

#[test]
fn switches_in_enhanced_mode_agree_on_merge_control_before_they_merge() {
    let allow = ZoneServerConfig { rules: MergeRules::ENHANCED, ..ZoneServerConfig::default() };
    let restrict = ZoneServerConfig { merge_control: MergeControl::Restrict, ..allow };
    let joined = |configs: [ZoneServerConfig; 2]| {
        let switches = configs.map(|config| (config, Zones::new(version(&["zone_a"], 1)))).to_vec();
        let mut fabric = Fabric::new(1, switches, &[[0, 1]]);
        fabric.run(Span::from_secs(10));
        fabric
    };
    assert!(joined([restrict, restrict]).carries(0), "equal zones");
    for configs in [[restrict, allow], [allow, restrict]] {
        let fabric = joined(configs);
        let emitted: Vec<String> = fabric.switches.iter().map(|node| node.isolated[&0].to_string()).collect();
        let text = |config: &ZoneServerConfig| match config.merge_control {
            MergeControl::Restrict => "merge control is `restrict` at this switch and `allow` at the other",
            MergeControl::Allow => "merge control is `allow` at this switch and `restrict` at the other",
        };
        assert_eq!(emitted, configs.iter().map(text).collect::<Vec<_>>());
    }
}

/// Result for a link whose neighbour answers ESS in this way: repeated, merged or isolated.
fn answered_support(answer: SwIls) -> Vec<Output> {
    let config = ZoneServerConfig { rules: MergeRules::ENHANCED, ..ZoneServerConfig::default() };
    let mut server = ZoneServer::new(config, Zones::new(version(&["zone_a"], 1)));
    let neighbour = Wwnn(0x1000_0000_0000_0002);
    let mut now = Instant::ZERO;
    for input in [Input::Domain(Some(1)), Input::Domains(vec![(2, neighbour)]), Input::LinkUp { port: 0, neighbour }] {
        server.handle(now, input);
    }
    let sent = |server: &mut ZoneServer| std::iter::from_fn(|| server.poll_output()).collect::<Vec<Output>>();
    let tag = match &sent(&mut server)[..] {
        [Output::Send(Send::Request { tag, .. })] => *tag,
        other => panic!("{other:?}"),
    };
    server.handle(now, Input::Outcome { tag, outcome: Outcome::Answered(answer.into()) });
    now += config.retry;
    server.handle(now, Input::Timeout);
    sent(&mut server)
}

#[test]
fn every_reply_to_ess_leads_to_another_request_or_to_isolation() {
    let reject = |reason, explanation| SwIls::SwRjt(SwRjt { reason, explanation, vendor: 0 });
    for later in [
        reject(SwRjtReason::LOGICAL_BUSY, SwRjtExplanation::NONE),
        reject(SwRjtReason::UNABLE, SwRjtExplanation::COMMAND_IN_PROGRESS),
    ] {
        assert!(matches!(answered_support(later)[..], [Output::Send(_)]));
    }
    let mode = MergeFailure::Mode { ours_enhanced: true };
    for (last, why) in [
        (reject(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NONE), mode),
        (SwIls::SwAcc(SwAcc::Empty), MergeFailure::NoAnswer),
    ] {
        assert_eq!(answered_support(last), [Output::Isolate { port: 0, failure: why }]);
    }
}

#[test]
fn a_change_holds_everywhere_or_nowhere() {
    let mut fabric = fabric(&vec![version(ALL, 1); 4], &[[0, 1], [1, 2], [2, 3]]);
    fabric.run(Span::from_secs(5));
    fabric.change(2, 1, ZoneChange::Replace(version(ALL, 2)), Span::ZERO);
    fabric.run(Span::from_secs(5));
    assert_eq!(fabric.switches[2].done[&1], Ok(()));
    assert!(databases(&fabric).iter().all(|database| versions(database) == BTreeSet::from([2])));
    let open = vec![ZoneEdit::SetDefault(ZoneDefault::Open), ZoneEdit::Disable];
    fabric.change(0, 2, ZoneChange::Edits(open), Span::ZERO);
    fabric.change(0, 3, ZoneChange::Edits(vec![ZoneEdit::Enable("none".to_owned())]), Span::ZERO);
    fabric.run(Span::from_secs(10));
    assert_eq!(fabric.switches[0].done[&2], Ok(()));
    assert!(matches!(fabric.switches[0].done[&3].as_ref().unwrap_err()[..], [ChangeFailure::Zones(_)]));
    for node in &fabric.switches {
        assert_eq!(node.server.database().default_zone, ZoneDefault::Open);
        assert_eq!(node.server.database().effective, None);
        assert_eq!((node.server.locked_by(), node.history.len()), (None, 3));
    }
}

#[test]
fn a_switch_that_cannot_store_a_change_prevents_it_and_is_named() {
    let standard = ZoneServerConfig::default();
    let small = ZoneServerConfig { limits: ZoneLimits { zones: 3, ..ZoneLimits::default() }, ..standard };
    let zones = || Zones::new(version(ALL, 1));
    let mut fabric =
        Fabric::new(1, vec![(standard, zones()), (small, zones()), (standard, zones())], &[[0, 1], [0, 2]]);
    fabric.run(Span::from_secs(5));
    let four = version(&["zone_a", "zone_b", "zone_c", "zone_d"], 2);
    fabric.change(2, 1, ZoneChange::Replace(four.clone()), Span::ZERO);
    fabric.change(1, 1, ZoneChange::Replace(four), Span::from_secs(5));
    fabric.run(Span::from_secs(10));
    let refused = fabric.switches[2].done[&1].as_ref().unwrap_err();
    assert_eq!(refused[0].to_string(), "domain 2 refuses the change: invalid data");
    let too_large = ZoneProblem::TooLarge { limit: Limit::Zones, size: 4, max: 3 };
    assert_eq!(fabric.switches[1].done[&1], Err(vec![ChangeFailure::Zones(too_large)]));
    assert!(databases(&fabric).iter().all(|database| versions(database) == BTreeSet::from([1])));
    assert!(fabric.switches.iter().all(|node| node.server.locked_by().is_none()));
}

#[test]
fn changes_at_all_switches_at_once_come_one_after_the_other() {
    let links: Vec<[usize; 2]> = (1..6).map(|switch| [switch - 1, switch]).collect();
    let mut fabric = fabric(&vec![version(ALL, 1); 6], &links);
    fabric.run(Span::from_secs(5));
    for switch in 0..6 {
        fabric.change(switch, 1, ZoneChange::Replace(version(ALL, 10 + switch as u64)), Span::ZERO);
    }
    fabric.run(Span::from_secs(60));
    assert!(fabric.switches.iter().all(|node| node.done[&1] == Ok(())), "all have their turn");
    let orders: BTreeSet<Vec<Vec<u64>>> = fabric
        .switches
        .iter()
        .map(|node| node.history.iter().map(|database| versions(database).into_iter().collect()).collect())
        .collect();
    assert_eq!(orders.len(), 1, "all switches see the changes in the same order");
}

/// Cases covered by all random runs together.
#[derive(Default)]
struct Seen {
    done: u32,
    failed: u32,
    isolated: u32,
    merged: u32,
}

#[test]
fn random_faults_never_leave_mixed_databases_and_end_in_agreement() {
    let mut seen = Seen::default();
    for seed in 0..1000 {
        random_case(seed, &mut seen);
    }
    assert!(seen.done > 1000 && seen.failed > 200, "{} done, {} failed", seen.done, seen.failed);
    assert!(seen.isolated > 500 && seen.merged > 2000, "{} isolated, {} merged", seen.isolated, seen.merged);
}

fn random_case(seed: u64, seen: &mut Seen) {
    let mut random = SplitMix64(seed ^ 0x5eed);
    let count = 2 + random.below(5) as usize;
    let mut links: Vec<[usize; 2]> = (1..count).map(|end| [random.below(end as u64) as usize, end]).collect();
    for _ in 0..random.below(3) {
        let ends = [random.below(count as u64) as usize, random.below(count as u64) as usize];
        if ends[0] != ends[1] {
            links.push(ends);
        }
    }
    // Most fabrics are in basic mode, some in enhanced mode; in some each switch has its own mode.
    let config = |random: &mut SplitMix64| {
        let enhanced = seed % 8 == 3 || seed % 8 == 5 && random.below(3) > 0;
        let rules = if enhanced { MergeRules::ENHANCED } else { MergeRules::STANDARD };
        ZoneServerConfig { rules, ..ZoneServerConfig::default() }
    };
    let first = |random: &mut SplitMix64| match random.below(8) {
        0 => ZoneDatabase::default(),
        _ => version(ALL, 1),
    };
    let switches = (0..count).map(|_| (config(&mut random), Zones::new(first(&mut random)))).collect();
    let mut fabric = Fabric::new(seed, switches, &links);
    fabric.delay = Span::from_ms(1 + random.below(800));
    fabric.loss = [0, 0, 50, 200, 400][random.below(5) as usize];
    let lossy = fabric.loss >= 400;
    fabric.run(Span::from_secs(random.below(10)));
    let settled = (0..links.len()).all(|link| fabric.carries(link));
    let faults = random.below(4);
    for tag in 0..1 + random.below(4) as u32 {
        let switch = random.below(count as u64) as usize;
        let change = ZoneChange::Replace(version(ALL, 2 + u64::from(tag)));
        fabric.change(switch, tag, change, Span::from_ms(random.below(8000)));
    }
    for _ in 0..faults {
        fabric.run(Span::from_ms(random.below(5000)));
        let outage = Span::from_ms(100 + random.below(20_000));
        if random.below(3) == 0 {
            fabric.crash(random.below(count as u64) as usize, outage);
        } else {
            let link = random.below(links.len() as u64) as usize;
            if fabric.links[link].up {
                fabric.link_down(link);
                fabric.repair(link, outage);
            }
        }
    }
    fabric.run(Span::from_secs(40));
    fabric.loss = 0;
    fabric.run(Span::from_secs(300));
    check(seed, &fabric);
    if faults == 0 && settled {
        let agreed = (0..links.len()).all(|link| fabric.carries(link));
        assert!(agreed || lossy, "seed {seed}: lost messages alone isolate nothing");
    }
    for node in &fabric.switches {
        seen.done += node.done.values().filter(|result| result.is_ok()).count() as u32;
        seen.failed += node.done.values().filter(|result| result.is_err()).count() as u32;
    }
    let merged = (0..links.len()).filter(|link| fabric.carries(*link)).count() as u32;
    seen.merged += merged;
    seen.isolated += links.len() as u32 - merged;
}

/// Asserts that there was no mixture at any time, no switch is locked, all connected switches
/// agree, and each isolation has a reason.
fn check(seed: u64, fabric: &Fabric) {
    let held: BTreeSet<u64> = fabric.switches.iter().flat_map(|node| &node.history).flat_map(versions).collect();
    for (switch, node) in fabric.switches.iter().enumerate() {
        for (tag, result) in &node.done {
            let here = held.contains(&(2 + u64::from(*tag)));
            assert_eq!(here, result.is_ok(), "seed {seed}, change {tag}: {result:?}");
        }
        for database in &node.history {
            assert!(versions(database).len() <= 1, "seed {seed}, switch {switch}: a mixture {:?}", versions(database));
        }
        assert_eq!(node.server.locked_by(), None, "seed {seed}, switch {switch} is free");
    }
    for (number, link) in fabric.links.iter().enumerate() {
        let [one, other] = link.ends.map(|end| &fabric.switches[end]);
        let (ours, theirs) = (one.server.database(), other.server.database());
        if fabric.carries(number) {
            assert_eq!(ours, theirs, "seed {seed}, link {number}: both ends have the same");
            assert_eq!(one.config.rules.enhanced, other.config.rules.enhanced, "seed {seed}, link {number}: one mode");
            continue;
        }
        let failures: Vec<&MergeFailure> =
            [one, other].iter().filter_map(|node| node.isolated.get(&(number as u16))).collect();
        assert!(!failures.is_empty(), "seed {seed}, link {number} neither merged nor isolated");
        let named = failures
            .iter()
            .any(|f| matches!(f, MergeFailure::Conflicts(_) | MergeFailure::NoAnswer | MergeFailure::Mode { .. }));
        assert!(named, "seed {seed}, link {number}: {failures:?}");
    }
    let rules = MergeRules::STANDARD;
    let connected = fabric.component(0);
    for switch in connected {
        let [ours, theirs] = [0, switch].map(|switch| fabric.switches[switch].server.database());
        let merged = merge(ours, theirs, MergeControl::Allow, &ZoneLimits::default(), rules).expect("they agree");
        assert!(!merged.changes_ours || ours == theirs, "seed {seed}");
    }
}
