//! Link state records: comparison of instances, rejection, and wrap-around of the sequence numbers.

use crate::fspf::fabric::{Fabric, isl};
use sanloom_fc::fspf::{FspfConfig, Input};
use sanloom_scsi::time::Span;
use sanloom_wire::sw_ils::{
    AgedRecord, FspfHeader, Incarnation, LinkDescriptor, LinkStateRecord, LinkStateUpdate, LsrBody, SwIls, lsu_flag,
};
use std::sync::Arc;

/// Chain of three switches after convergence.
fn chain() -> Fabric {
    let isls = vec![isl((0, 0), (1, 0), 125), isl((1, 1), (2, 0), 125)];
    let mut fabric = Fabric::new(FspfConfig::default(), vec![1, 2, 3], isls, 1);
    fabric.run(Span::from_secs(30));
    fabric.assert_converged();
    fabric
}

/// Sends a record to the switch in the middle, in the name of domain 1.
fn inject(fabric: &mut Fabric, age_s: u16, record: LinkStateRecord) {
    let records = vec![AgedRecord { age_s, record: Arc::new(record) }];
    let update = LinkStateUpdate { header: FspfHeader::new(1), flags: lsu_flag::UPDATE, records };
    fabric.input(1, Input::Message { port: 0, message: SwIls::Lsu(update) });
}

fn record(domain: u8, incarnation: u32) -> LinkStateRecord {
    LinkStateRecord::of_switch(domain, Incarnation(incarnation), Vec::new())
}

fn incarnation_of(fabric: &Fabric, switch: usize, domain: u8) -> Option<u32> {
    fabric.switches[switch].records().find(|record| record.domain == domain).map(|record| record.incarnation.0)
}

#[test]
fn a_switch_supersedes_records_that_others_sent_under_its_domain() {
    let mut fabric = chain();
    for domain in [2, 3] {
        inject(&mut fabric, 0, record(domain, 0x8000_1000));
        fabric.run(Span::from_secs(20));
        fabric.assert_converged();
        assert_eq!(incarnation_of(&fabric, 0, domain), Some(0x8000_1001), "domain {domain}");
    }
}

#[test]
fn the_first_incarnation_follows_the_last() {
    let mut fabric = chain();
    for domain in [2, 3] {
        inject(&mut fabric, 0, record(domain, Incarnation::LAST.0 - 1));
        fabric.run(Span::from_secs(20));
        fabric.assert_converged();
        let number = incarnation_of(&fabric, 0, domain).expect("a record");
        assert!((0x8000_0001..0x8000_0010).contains(&number), "{number:x}");
    }
    inject(&mut fabric, 0, record(2, Incarnation::LAST.0));
    fabric.run(Span::from_secs(20));
    fabric.assert_converged();
}

#[test]
fn a_switch_supersedes_a_flush_of_its_own_record() {
    let mut fabric = chain();
    let old = fabric.switches[0].records().find(|record| record.domain == 3).unwrap().clone();
    inject(&mut fabric, 3600, (*old).clone());
    assert_eq!(fabric.switches[1].records().count(), 2);
    fabric.run(Span::from_secs(20));
    fabric.assert_converged();
}

#[test]
fn damaged_and_foreign_records_are_refused() {
    let mut fabric = chain();
    let before = fabric.switches[1].counters().discarded;
    let good = record(7, 0x8000_0009);
    inject(&mut fabric, 0, LinkStateRecord { checksum: good.checksum ^ 1, ..good.clone() });
    inject(&mut fabric, 0, LinkStateRecord { advertiser: 8, ..good.clone() });
    inject(&mut fabric, 0, record(0, 0x8000_0009));
    assert_eq!(fabric.switches[1].counters().discarded, before + 3);
    inject(&mut fabric, 0, LinkStateRecord { body: LsrBody::Other { kind: 2, bytes: [0; 8].into() }, ..good.clone() });
    assert_eq!(fabric.switches[1].records().count(), 3);
    inject(&mut fabric, 3600, good);
    assert_eq!(fabric.switches[1].records().count(), 3, "the flush of an unknown record is acknowledged, no more");
    fabric.run(Span::from_secs(20));
    fabric.assert_converged();
}

#[test]
fn records_that_change_too_often_are_slowed_down() {
    let mut fabric = chain();
    for n in 0..100 {
        inject(&mut fabric, 0, record(7, 0x8000_0001 + n));
    }
    assert_eq!(fabric.switches[1].counters().too_early, 84);
    fabric.run(Span::from_secs(20));
    assert_eq!(incarnation_of(&fabric, 2, 7), Some(0x8000_0010));
}

#[test]
fn a_link_that_only_one_end_reports_is_not_used() {
    let mut fabric = chain();
    let kind = LinkDescriptor::POINT_TO_POINT;
    let link = LinkDescriptor { neighbour: 2, port: 5, neighbour_port: 1, kind, cost: 1 };
    inject(&mut fabric, 0, LinkStateRecord::of_switch(7, Incarnation::FIRST, vec![link]));
    fabric.run(Span::from_secs(20));
    assert!(fabric.switches.iter().all(|switch| switch.routes().count() == 2));
}
