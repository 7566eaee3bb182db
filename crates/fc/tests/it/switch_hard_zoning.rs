//! Hard zoning by three algorithms: equal permissions at every moment, and the work that the NPIV
//! paper counts.

use crate::switch_util::*;
use proptest::prelude::*;
use sanloom_fc::config::{Zone, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::fabric::{FibDelta, ZoneSet};
use sanloom_fc::switch::{Addressing, HardZoning, Input, NsEntry, Output, PeerUpdate, Policy, SwitchConfig};
use sanloom_wire::els::{Els, Logo, Rscn};
use sanloom_wire::ns::NsRecord;
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::collections::BTreeSet;
use std::sync::Arc;

const METHODS: [HardZoning; 3] = [HardZoning::Standard, HardZoning::Modified, HardZoning::ZoneMates];

fn rig(method: HardZoning, addressing: Addressing, zones: Arc<ZoneSet>) -> Rig {
    let policy = Policy { hard_zoning: method, addressing, ..Policy::default() };
    let mut rig = Rig::new(SwitchConfig { policy, ..config(1, zones) });
    rig.reach(&[2]);
    rig
}

/// Test bed of the NPIV paper, Figure 7: for three generator ports, one zone per virtual port with
/// the storage.
fn bed(method: HardZoning) -> Rig {
    let virtual_ports = (1..=3u64).flat_map(|port| (1..=255).map(move |k| port << 16 | k));
    let zones: Vec<Zone> = virtual_ports.map(|name| zone([STORAGE_NAME, name])).collect();
    let zones = Arc::new(ZoneSet::new(&Zoning { zones, default: ZoneDefault::Closed }));
    let mut rig = rig(method, Addressing::AreaPerPort, zones);
    rig.flogi(STORAGE, STORAGE_NAME);
    rig
}

const STORAGE: u16 = 9;
const STORAGE_NAME: u64 = 0x99;

/// Cost of the kth FDISC of each port: comparisons with generator ports, and with the storage port.
fn fdiscs(rig: &mut Rig, port: u16) -> Vec<(u64, u64)> {
    rig.flogi(port, u64::from(port) << 16);
    let counted = |rig: &Rig| (rig.switch.work().comparisons, rig.switch.comparisons_with(STORAGE));
    let fdisc = |k| {
        let before = counted(rig);
        rig.fdisc(port, u64::from(port) << 16 | k).unwrap();
        let after = counted(rig);
        let storage = after.1 - before.1;
        (after.0 - before.0 - storage, storage)
    };
    (1..=255).map(fdisc).collect()
}

#[test]
fn the_standard_algorithm_compares_as_often_as_document_000_counts() {
    let mut rig = bed(HardZoning::Standard);
    let [first, second, third] = [1, 2, 3].map(|port| fdiscs(&mut rig, port));
    assert!(first.iter().all(|(generators, _)| *generators == 0));
    assert_eq!((second[0].0, second[1].0, second[254].0), (512, 768, 65_536));
    assert_eq!((third[0].0, third[254].0), (1_024, 131_072));
    assert_eq!(second.iter().map(|(generators, _)| generators).sum::<u64>(), 8_421_120);
    for of_port in [first, second, third] {
        assert!((2..).zip(&of_port).all(|(ids, (_, storage))| *storage == ids));
    }
    // Each virtual port may communicate with the storage only.
    assert_eq!(rig.fib.permissions(), 2 * 3 * 255);
    let before = rig.switch.work().comparisons;
    let id = FcId::from_parts(1, 3, 7);
    rig.exchange_els(3, id, FcId::F_PORT, Els::Logo(Logo { port_id: id, port_name: Wwpn(3 << 16 | 7) })).unwrap();
    assert_eq!(rig.switch.work().comparisons - before, 255 * (512 + 1), "a logout costs as much as a login");
    assert_eq!(rig.fib.permissions(), 2 * (3 * 255 - 1));
}

#[test]
fn the_modified_algorithm_compares_the_new_port_only_and_leaves_no_gap_at_a_logout() {
    let mut rig = bed(HardZoning::Modified);
    let [first, second, third] = [1, 2, 3].map(|port| fdiscs(&mut rig, port));
    assert!(first.iter().all(|costs| *costs == (0, 1)));
    assert!(second.iter().all(|costs| *costs == (256, 1)));
    assert!(third.iter().all(|costs| *costs == (512, 1)));
    // The gap: a port that gets the address of a logged-out port must not get its permissions.
    let (storage, id) = (FcId::from_parts(1, 9, 0), FcId::from_parts(1, 3, 7));
    let before = rig.switch.work();
    rig.exchange_els(3, id, FcId::F_PORT, Els::Logo(Logo { port_id: id, port_name: Wwpn(3 << 16 | 7) })).unwrap();
    let after = rig.switch.work();
    assert_eq!((after.comparisons - before.comparisons, after.gap_entries - before.gap_entries), (0, 1));
    assert_eq!(rig.fdisc(3, 0x77), Ok(id));
    assert!(!rig.fib.permits(storage, id));
}

#[test]
fn our_search_examines_only_the_zone_mates() {
    let mut rig = bed(HardZoning::ZoneMates);
    for port in [1, 2, 3] {
        rig.flogi(port, u64::from(port) << 16);
        let before = rig.switch.work();
        rig.fdisc(port, u64::from(port) << 16 | 1).unwrap();
        let after = rig.switch.work();
        assert_eq!((after.comparisons, after.own_port_comparisons), (0, 0));
        assert_eq!((after.zone_members - before.zone_members, after.permissions - before.permissions), (2, 2));
    }
}

#[test]
fn soft_zoning_alone_hides_ports_and_drops_nothing() {
    let mut rig = rig(HardZoning::Off, Addressing::AreaPerPort, zone_set(&[&[1, 2]], ZoneDefault::Closed));
    let (a, b) = (rig.join(1, 0x1, 2), rig.join(2, 0x2000, 1));
    assert!(rig.fib.permits(a, b));
    assert_eq!(rig.fib.permissions(), 0);
    let list = sanloom_wire::ns::NsRequest::GpnId { port_id: b };
    assert_eq!(rig.ns(a, list), Err((0x09, 0x01)));
    rig.handle(Input::Zoning(zone_set(&[&[1, 0x2000]], ZoneDefault::Open)));
    assert_eq!(rig.switch.work().permissions, 0);
}

#[derive(Clone, Debug)]
enum Step {
    Flogi { port: u16, name: u64 },
    Fdisc { port: u16, name: u64 },
    Logo { n: usize },
    Down { port: u16 },
    Remote { n: u8, name: u64 },
    RemoteGone { n: u8 },
    Zoning { zones: Vec<Zone>, open: bool },
    Domain { domain: Option<u8> },
}

const PORTS: u16 = 3;
const NAMES: u64 = 10;

fn any_member() -> impl Strategy<Value = ZoneMember> {
    prop_oneof![
        6 => (1..=NAMES).prop_map(|name| ZoneMember::PortName(Wwpn(name << 6))),
        2 => (1..=NAMES).prop_map(|name| ZoneMember::NodeName(node_of(name << 6))),
        1 => (1..3u8, 0..PORTS).prop_map(|(domain, port)| ZoneMember::DomainPort { domain, port }),
        1 => (1..3u8, 0..PORTS as u8, 0..3u8)
            .prop_map(|(domain, area, port)| ZoneMember::PortId(FcId::from_parts(domain, area, port))),
    ]
}

fn any_zones() -> impl Strategy<Value = Vec<Zone>> {
    let members = || prop::collection::vec(any_member(), 0..4);
    let principals = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(any_member(), 1..3)];
    let zone =
        (members(), principals).prop_map(|(members, principals)| Zone { name: "zone".into(), members, principals });
    prop::collection::vec(zone, 0..5)
}

fn any_step() -> impl Strategy<Value = Step> {
    let (port, name) = (0..PORTS, (1..=NAMES).prop_map(|name| name << 6));
    prop_oneof![
        6 => (port.clone(), name.clone()).prop_map(|(port, name)| Step::Flogi { port, name }),
        10 => (port.clone(), name.clone()).prop_map(|(port, name)| Step::Fdisc { port, name }),
        4 => (0..8usize).prop_map(|n| Step::Logo { n }),
        2 => port.prop_map(|port| Step::Down { port }),
        4 => (0..4u8, name).prop_map(|(n, name)| Step::Remote { n, name }),
        2 => (0..4u8).prop_map(|n| Step::RemoteGone { n }),
        3 => (any_zones(), any::<bool>()).prop_map(|(zones, open)| Step::Zoning { zones, open }),
        1 => prop::sample::select(vec![None, Some(1), Some(3)]).prop_map(|domain| Step::Domain { domain }),
    ]
}

fn zone_set_of(zones: &[Zone], open: bool) -> Arc<ZoneSet> {
    let default = if open { ZoneDefault::Open } else { ZoneDefault::Closed };
    Arc::new(ZoneSet::new(&Zoning { zones: zones.to_vec(), default }))
}

fn take(rig: &mut Rig, step: &Step) {
    let offer = |rig: &mut Rig, port, request| {
        rig.up_if_down(port);
        rig.offer(port, FcId::ZERO, FcId::F_PORT, els(request));
    };
    match *step {
        Step::Flogi { port, name } => offer(rig, port, Els::Flogi(login(name))),
        Step::Fdisc { port, name } => offer(rig, port, Els::Fdisc(login(name))),
        Step::Logo { n } => {
            let found = rig.switch.logins().nth(n);
            if let Some((id, port)) = found {
                let logo = Logo { port_id: id, port_name: Wwpn(rig.name_of(id)) };
                rig.exchange_els(port, id, FcId::F_PORT, Els::Logo(logo)).unwrap();
            }
        }
        Step::Down { port } => rig.down(port),
        Step::Remote { n, name } => {
            let port_id = FcId::from_parts(2, n / 2, n % 2);
            let record = NsRecord {
                port_id,
                port_type: 1,
                fcp_features: 0,
                listed: true,
                classes: 8,
                port_name: Wwpn(name),
                node_name: node_of(name),
                fabric_port_name: Wwpn(0x2000_0000_0000_0001 | u64::from(n / 2) << 48),
                types: [0; 8],
                extra: None,
            };
            let entry = NsEntry { record: Arc::new(record), logged_in_at: rig.now };
            rig.handle(Input::Peer(PeerUpdate::Object(entry)));
        }
        Step::RemoteGone { n } => {
            rig.handle(Input::Peer(PeerUpdate::Removed { port_id: FcId::from_parts(2, n / 2, n % 2) }));
        }
        Step::Zoning { ref zones, open } => rig.handle(Input::Zoning(zone_set_of(zones, open))),
        Step::Domain { domain } => rig.handle(Input::Domain(domain)),
    }
    rig.wait(sanloom_scsi::time::Span::from_us(1));
}

/// Expected permissions, computed pair by pair.
fn expected(rig: &Rig, zones: &ZoneSet) -> (Vec<(FcId, FcId)>, Vec<FcId>) {
    let known: Vec<&NsEntry> = rig.switch.name_server().collect();
    let zoned = |entry: &NsEntry| zones.is_zoned(&entry.identity());
    let mut pairs = Vec::new();
    for s in &known {
        for d in known.iter().filter(|d| Some(d.port_id.domain()) == rig.switch.domain()) {
            let both = zoned(s) && zoned(d);
            if s.port_id != d.port_id && both && zones.permits(&s.identity(), &d.identity()) {
                pairs.push((s.port_id, d.port_id));
            }
        }
    }
    let unzoned = |entry: &&&NsEntry| zones.open_default() && !zones.permits_all() && !zoned(entry);
    (pairs, known.iter().filter(unzoned).map(|entry| entry.port_id).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    /// After every step of a random history all three tables have exactly the permissions of the
    /// zones. Within a change of zones, all revocations precede all new permissions. When all ports
    /// have logged out, no state is left.
    #[test]
    fn all_three_algorithms_grant_exactly_the_zoned_pairs(
        first in any_zones(),
        open in any::<bool>(),
        flat in any::<bool>(),
        steps in prop::collection::vec(any_step(), 0..50),
    ) {
        let mut zones = zone_set_of(&first, open);
        let addressing = if flat { Addressing::Flat } else { Addressing::AreaPerPort };
        let mut rigs = METHODS.map(|method| rig(method, addressing, zones.clone()));
        for step in &steps {
            if let Step::Zoning { zones: new, open } = step {
                zones = zone_set_of(new, *open);
            }
            for (method, rig) in METHODS.iter().zip(&mut rigs) {
                rig.log.clear();
                take(rig, step);
                let (pairs, default_zone) = expected(rig, &zones);
                prop_assert_eq!(rig.fib.permitted_pairs(), pairs, "{:?} after {:?}", method, step);
                prop_assert_eq!(rig.fib.default_zone(), default_zone, "{:?} after {:?}", method, step);
                if matches!(step, Step::Zoning { .. }) {
                    let is_revocation = |delta: &FibDelta| {
                        matches!(delta, FibDelta::Revoke { .. } | FibDelta::LeaveDefaultZone { .. })
                    };
                    let is_grant =
                        |delta: &FibDelta| matches!(delta, FibDelta::Permit { .. } | FibDelta::JoinDefaultZone { .. });
                    let changes = deltas(&rig.log);
                    let last_revocation = changes.iter().rposition(is_revocation);
                    let first_grant = changes.iter().position(is_grant);
                    prop_assert!(
                        last_revocation.is_none() || first_grant.is_none_or(|grant| Some(grant) > last_revocation)
                    );
                    prop_assert!(rig.log.iter().all(|output| matches!(output, Output::Fib(_))));
                }
            }
        }
        for rig in &mut rigs {
            (0..PORTS).for_each(|port| rig.down(port));
            rig.unreach(2);
            prop_assert_eq!((rig.fib.permissions(), rig.fib.ids().count()), (0, 0));
            prop_assert_eq!(rig.switch.name_server().count(), 0);
        }
    }
}

#[test]
fn only_ports_whose_access_changes_receive_an_rscn() {
    let mut rig = rig(
        HardZoning::ZoneMates,
        Addressing::AreaPerPort,
        zone_set(&[&[0x100, 0x200], &[0x300, 0x400], &[0x500, 0x600]], ZoneDefault::Closed),
    );
    let ids: Vec<FcId> = (1..=6u16).map(|port| rig.join(port, u64::from(port) << 8, 2)).collect();
    rig.run_until_quiet();
    let reported = |rig: &mut Rig| -> Vec<(FcId, Vec<FcId>)> {
        rig.wait(RSCN_DELAY);
        let all = rig.rscns();
        let pages = |rscn: &Rscn| rscn.pages.iter().map(|page| page.address).collect();
        all.iter().for_each(|(id, ox_id, _)| rig.answer(*id, *ox_id, Els::LsAcc(sanloom_wire::els::LsAcc::Empty)));
        all.iter().map(|(id, _, rscn)| (*id, pages(rscn))).collect()
    };
    // Port 2 moves from zone 1 to zone 3; ports 5 and 6 are not affected.
    let zones: [&[u64]; 3] = [&[0x100], &[0x200, 0x300, 0x400], &[0x500, 0x600]];
    rig.handle(Input::Zoning(zone_set(&zones, ZoneDefault::Closed)));
    let expected = [
        (ids[0], vec![ids[1]]),
        (ids[1], vec![ids[0], ids[2], ids[3]]),
        (ids[2], vec![ids[1]]),
        (ids[3], vec![ids[1]]),
    ];
    assert_eq!(reported(&mut rig), expected);
    // The same zones in another order: no notification and no change.
    rig.log.clear();
    let zones: [&[u64]; 3] = [&[0x600, 0x500], &[0x300, 0x200, 0x400], &[0x100]];
    rig.handle(Input::Zoning(zone_set(&zones, ZoneDefault::Closed)));
    assert_eq!((reported(&mut rig), deltas(&rig.log)), (vec![], vec![]));
    // Without zones every port may see every other.
    rig.handle(Input::Zoning(open()));
    assert_eq!(deltas(&rig.log), [FibDelta::ZoningOff]);
    let all = reported(&mut rig);
    assert_eq!(all.len(), 6);
    assert_eq!(all[0], (ids[0], ids[1..].to_vec()));
    assert_eq!(all[4], (ids[4], ids[..4].to_vec()));
}

/// State of a switch without its counters.
fn state(rig: &Rig) -> String {
    let all = format!("{:#?}", rig.switch);
    let mut kept = String::new();
    let mut skip: Option<usize> = None;
    for line in all.lines() {
        let indent = line.len() - line.trim_start().len();
        if let Some(of) = skip {
            skip = (indent > of).then_some(of);
            continue;
        }
        let name = line.trim_start();
        if name.starts_with("next_ox_id") {
            continue;
        }
        if ["counters:", "work:", "with_port:"].iter().any(|what| name.starts_with(what)) {
            skip = (!name.ends_with(',')).then_some(indent);
            continue;
        }
        kept += line;
        kept += "\n";
    }
    kept + &format!(
        "{:?} {:?} {:?}",
        rig.fib.permitted_pairs(),
        rig.fib.default_zone(),
        rig.fib.ids().collect::<Vec<_>>()
    )
}

#[test]
fn a_logout_removes_all_permissions_of_the_port() {
    for method in METHODS {
        for addressing in [Addressing::AreaPerPort, Addressing::Flat] {
            let zones = zone_set(&[&[0x100, 0x200], &[0x200, 0x101]], ZoneDefault::Closed);
            let mut rig = rig(method, addressing, zones);
            rig.join(1, 0x100, 2);
            rig.join(2, 0x200, 1);
            rig.run_until_quiet();
            let before = state(&rig);
            let id = rig.fdisc(1, 0x101).unwrap();
            rig.take_part(id, 2);
            let lirr = Els::Lirr { function: 2, format: 0 };
            let plogi = rig.exchange_els(1, id, FcId::MANAGEMENT_SERVER, Els::Plogi(login(0x101)));
            assert!(plogi.is_ok());
            assert_eq!(rig.exchange_els(1, id, FcId::MANAGEMENT_SERVER, lirr), Ok(sanloom_wire::els::LsAcc::Empty));
            // One notification for it is in flight, and another is queued.
            rig.wait(RSCN_DELAY);
            rig.down(2);
            rig.flogi(2, 0x200);
            let logo = Logo { port_id: id, port_name: Wwpn(0x101) };
            rig.exchange_els(1, id, FcId::F_PORT, Els::Logo(logo)).unwrap();
            let target = rig.flogi_again(2, 0x200);
            rig.take_part(target, 1);
            for _ in 0..3 {
                rig.wait(E_D_TOV);
                rig.rscns_among_logins().into_iter().for_each(|(id, ox_id, _)| {
                    rig.answer(id, ox_id, Els::LsAcc(sanloom_wire::els::LsAcc::Empty));
                });
            }
            let stamp = |text: &str| {
                let lines = text.lines().scan(false, |stamp, line| {
                    let keep = !std::mem::replace(stamp, line.trim_start().starts_with("logged_in_at"));
                    Some(if keep { line.to_owned() } else { String::new() })
                });
                lines.collect::<Vec<_>>()
            };
            assert_eq!(stamp(&before), stamp(&state(&rig)), "{method:?} {addressing:?}");
        }
    }
}

#[test]
fn pairs_of_one_port_follow_the_zones_too() {
    for method in METHODS {
        let mut rig = rig(method, Addressing::AreaPerPort, zone_set(&[&[0x100, 0x101]], ZoneDefault::Closed));
        let base = rig.flogi(1, 0x100);
        let (mate, unrelated) = (rig.fdisc(1, 0x101).unwrap(), rig.fdisc(1, 0x102).unwrap());
        assert!(rig.fib.permits(base, mate) && rig.fib.permits(mate, base), "{method:?}");
        assert!(!rig.fib.permits(base, unrelated) && !rig.fib.permits(unrelated, mate), "{method:?}");
        let work = rig.switch.work();
        let expected = match method {
            HardZoning::Standard => 1 + 3,
            HardZoning::Modified => 1 + 2,
            _ => 0,
        };
        assert_eq!(work.own_port_comparisons, expected, "{method:?}");
        assert_eq!(work.comparisons, 0);
    }
}

#[test]
fn some_ports_of_the_histories_share_a_node() {
    let nodes: BTreeSet<Wwnn> = (1..=NAMES).map(|name| node_of(name << 6)).collect();
    assert!(nodes.len() < NAMES as usize);
}
