//! Both machines over two TCP stacks.

use super::bed::Bed;
use crate::ethernet::fabric::Fabric;
use sanloom_fc::fcp::initiator::Outcome;
use sanloom_scsi::iscsi::parameters::Digests;
use sanloom_scsi::scsi::IoOp;
use sanloom_sim::iscsi::{Direction, Event, Machine};
use sanloom_sim::net::ethernet::LineErrors;

const MS: u64 = 1_000_000_000;

fn done(event: &Event) -> Option<(u64, u8, u32)> {
    match *event {
        Event::Done { tag, outcome: Outcome::Completed { status, transferred, .. }, .. } => {
            Some((tag, status, transferred))
        }
        _ => None,
    }
}

fn results(bed: &Bed) -> Vec<(u64, u8, u32)> {
    bed.events.iter().filter_map(|(_, event)| done(event)).collect()
}

#[test]
fn a_session_logs_in_reads_and_writes_with_every_digest_and_mtu() {
    for digests in [Digests::Never, Digests::Always] {
        for mtu in [1_500, 9_000] {
            let mut bed = Bed::new(Fabric::star(2, 10), mtu, digests);
            bed.log_in();
            assert_eq!(bed.events.iter().map(|(_, event)| *event).collect::<Vec<_>>(), [Event::Up(0)]);
            bed.submit(0, 1, false, 1 << 20);
            bed.submit(0, 2, true, 2 << 20);
            bed.run(bed.net.now() + 50 * MS, |_| false);
            assert_eq!(results(&bed), [(1, 0, 1 << 20), (2, 0, 2 << 20)], "{digests:?}, MTU {mtu}");
            assert_eq!(bed.medium.ios, [(IoOp::Read, 1 << 20), (IoOp::Write, 2 << 20)]);
            // Four Data-Ins of 256 KiB. The first burst of the write has 256 KiB, and the rest two
            // bursts of at most 1 MiB in PDUs of 256 KiB.
            let count = bed.iscsi.count(0);
            let login = 2;
            assert_eq!((count.r2ts, count.pdus_received), (2, login + 4 + 2 + 1));
            assert_eq!(count.pdus_sent, login + 1 + 1 + 7);
            assert_eq!((count.repairs.retransmissions, count.repairs.timeouts), (0, 0));
        }
    }
}

/// Digests of header and data have 4 bytes each, so a read of one Data-In has 8 bytes more.
#[test]
fn a_digest_costs_four_bytes_of_the_stream() {
    let received = [Digests::Never, Digests::Always].map(|digests| {
        let mut bed = Bed::new(Fabric::star(2, 10), 1_500, digests);
        bed.log_in();
        let before = bed.iscsi.connection(0, 0).expect("a connection").received();
        bed.submit(0, 1, false, 4_096);
        bed.run(bed.net.now() + MS, |_| false);
        bed.iscsi.connection(0, 0).expect("a connection").received() - before
    });
    assert_eq!(received, [48 + 4_096, 48 + 4 + 4_096 + 4]);
}

#[test]
fn lost_frames_cost_time_and_no_command() {
    let mut bed = Bed::new(Fabric::star(2, 1), 1_500, Digests::Either);
    bed.log_in();
    *bed.net.ethernet.errors_mut(0) = LineErrors { loss: u32::MAX / 100, damage: 0, ..LineErrors::default() };
    *bed.net.ethernet.errors_mut(2) =
        LineErrors { loss: u32::MAX / 100, damage: u32::MAX / 200, ..LineErrors::default() };
    for tag in 0..40 {
        bed.submit(0, tag, tag % 2 == 0, 256 << 10);
    }
    bed.run(bed.net.now() + 30_000 * MS, |_| false);
    let mut tags: Vec<u64> = results(&bed).iter().map(|(tag, ..)| *tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..40).collect::<Vec<_>>());
    assert!(bed.iscsi.count(0).repairs.retransmissions > 20, "{:?}", bed.iscsi.count(0));
    assert_eq!(bed.iscsi.count(0).connections, 1);
}

#[test]
fn a_silent_link_ends_the_session_and_the_next_login_brings_it_back() {
    let mut bed = Bed::new(Fabric::star(2, 1), 1_500, Digests::Either);
    bed.log_in();
    bed.net.set_ethernet_link(0, false);
    bed.submit(0, 7, false, 4_096);
    // A ping after 10 s is not answered for 10 s.
    let start = bed.net.now();
    assert!(!bed.run(start + 60_000 * MS, |event| *event == Event::Down(0)));
    assert!((19_000 * MS..21_000 * MS).contains(&(bed.net.now() - start)), "{}", bed.net.now() - start);
    let gone = Event::Done { session: 0, tag: 7, outcome: Outcome::PortGone };
    assert_eq!(bed.events.last().map(|(_, event)| *event), Some(gone));
    bed.submit(0, 8, false, 4_096);
    assert_eq!(bed.iscsi.poll_event(), Some(Event::Done { session: 0, tag: 8, outcome: Outcome::PortGone }));
    bed.net.set_ethernet_link(0, true);
    assert!(!bed.run(bed.net.now() + 30_000 * MS, |event| *event == Event::Up(0)));
    bed.submit(0, 9, false, 4_096);
    bed.run(bed.net.now() + 100 * MS, |_| false);
    assert_eq!(results(&bed), [(9, 0, 4_096)]);
}

/// A read of 1 MiB has 719 frames of MTU 1500 with time stamps; 4 Data-In headers fit the last one.
#[test]
fn the_processor_of_a_host_takes_time_for_each_frame_that_it_receives() {
    let time = |frame_ps| {
        let mut bed = Bed::new(Fabric::star(2, 10), 1_500, Digests::Either);
        bed.log_in();
        // The first read opens the window of TCP.
        for tag in 0..2 {
            bed.medium.frame_ps = if tag == 1 { frame_ps } else { 0 };
            bed.medium.loads.clear();
            bed.submit(0, tag, false, 1 << 20);
            bed.run(bed.net.now() + 100 * MS, |event| done(event).is_some());
        }
        let received = |(owner, load): &&(Machine, sanloom_sim::iscsi::Load)| {
            *owner == Machine::Host(0) && load.direction == Direction::Receive && load.bytes > 100
        };
        let frames = bed.medium.loads.iter().filter(received).count() as u64;
        (bed.events[2].0 - bed.events[1].0, frames)
    };
    let ((without, frames), (with, _)) = (time(0), time(4_750_000));
    assert_eq!(frames, ((1u64 << 20) + 4 * 48).div_ceil(1_448));
    // The processor is slower than the line, so it decides.
    let work = frames * 4_750_000;
    assert!(without < MS && (work..work + MS / 2).contains(&with), "{without} and {with} ps, work {work} ps");
}
