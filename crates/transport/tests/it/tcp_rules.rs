//! Rules of single mechanisms: acknowledgements, Nagle, windows, probes, buffers, recovery, ECN.

use crate::tcp_network::{ENDLESS, GBIT_1, GBIT_10, Link, Loss, Network, ms, plain};
use crate::tcp_states::{established, exchange};
use sanloom_scsi::time::{Instant, Span};
use sanloom_transport::tcp::{Algorithm, Buffer, Config, Connection, Ecn, Events, Flags, Pacing, Segment};

fn reno() -> Config {
    Config { algorithm: Algorithm::Reno, ..plain(1_460) }
}

/// Data segments that leave now.
fn drain(connection: &mut Connection, now: Instant) -> Vec<Segment> {
    std::iter::from_fn(|| connection.poll_transmit(now)).collect()
}

fn pair(there: Link, config: &Config) -> Network {
    let back = Link::new(ENDLESS, there.delay);
    let mut network = Network::new(1, vec![there, back]);
    network.connect(config, config, &[0], &[1]);
    network
}

#[test]
fn each_second_full_segment_is_acknowledged_and_a_single_one_after_40_ms() {
    let (mut a, mut b) = established(&reno());
    a.send(3 * 1_460);
    let sent = drain(&mut a, ms(1));
    assert_eq!(sent.len(), 3);
    b.arrive(ms(1), &sent[0]);
    assert_eq!(b.poll_transmit(ms(1)), None);
    b.arrive(ms(2), &sent[1]);
    assert_eq!(b.poll_transmit(ms(2)).map(|ack| ack.ack), Some(2_921));
    b.arrive(ms(3), &sent[2]);
    assert_eq!((b.poll_transmit(ms(3)), b.poll_timeout()), (None, Some(ms(43))));
    b.timeout(ms(42));
    assert_eq!(b.poll_transmit(ms(42)), None);
    b.timeout(ms(43));
    assert_eq!(b.poll_transmit(ms(43)).map(|ack| ack.ack), Some(4_381));
}

#[test]
fn a_batch_leaves_as_one_unit_and_is_acknowledged_once() {
    let (mut a, mut b) = established(&Config { batch: 65_535, ..reno() });
    a.send(20_000);
    a.end_record();
    let sent = drain(&mut a, ms(1));
    // The initial window of 10 segments.
    assert_eq!(sent.iter().map(|unit| (unit.length, unit.count())).collect::<Vec<_>>(), [(14_600, 10)]);
    let parts: Vec<Segment> = sent[0].parts().collect();
    assert_eq!((parts.len(), parts[9].position, parts[9].length), (10, 1 + 9 * 1_460, 1_460));
    b.arrive(ms(1), &sent[0]);
    assert_eq!(drain(&mut b, ms(1)).iter().map(|ack| ack.ack).collect::<Vec<_>>(), [14_601]);
    // The same segments alone cause five.
    let (_, mut c) = established(&reno());
    let acks: usize = parts
        .iter()
        .map(|part| {
            c.arrive(ms(1), part);
            drain(&mut c, ms(1)).len()
        })
        .sum();
    assert_eq!(acks, 5);
}

#[test]
fn nagle_and_delayed_acknowledgements_carry_25_small_segments_per_second() {
    for (nagle, least, most) in [(true, 24, 26), (false, 999, 1_001)] {
        let mut network = pair(Link::new(GBIT_1, Span::from_us(50)), &Config { nagle, ..reno() });
        network.run(ms(10));
        let before = network.ends[0].sent;
        for write in 0..1_000 {
            network.run(ms(10 + write));
            network.write(0, 30);
        }
        network.run(ms(1_010));
        let sent = network.ends[0].sent - before;
        assert!((least..=most).contains(&sent), "Nagle {nagle}: {sent} segments");
    }
}

#[test]
fn a_closed_window_is_probed_with_doubled_times_and_opens_again() {
    let (mut a, mut b) = established(&Config { receive_buffer: Buffer::fixed(5_840), ..reno() });
    a.send(20_000);
    exchange(ms(1), &mut a, &mut b);
    // The window is closed, and the application of the receiver does not read.
    assert_eq!((b.readable(), a.acknowledged()), (5_840, 5_841));
    let mut times = vec![ms(1)];
    for _ in 0..5 {
        let at = a.poll_timeout().unwrap();
        times.push(at);
        a.timeout(at);
        let probe = a.poll_transmit(at).unwrap();
        assert_eq!((probe.length, probe.position), (0, 5_840));
        b.arrive(at, &probe);
        let answer = b.poll_transmit(at).unwrap();
        assert_eq!((answer.ack, answer.window), (5_841, 0));
        a.arrive(at, &answer);
        assert_eq!(a.poll_transmit(at), None);
    }
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_ms()).collect();
    assert_eq!(gaps, [200, 400, 800, 1_600, 3_200]);
    let now = times[5];
    assert_eq!(b.consume(now, 5_840), 5_840);
    let update = b.poll_transmit(now).unwrap();
    assert_eq!(update.window, 5_840);
    a.arrive(now, &update);
    exchange(now, &mut a, &mut b);
    assert_eq!(b.readable(), 5_840);
}

#[test]
fn a_window_is_not_reopened_for_less_than_a_segment() {
    let (mut a, mut b) = established(&Config { receive_buffer: Buffer::fixed(14_600), ..reno() });
    a.send(20_000);
    exchange(ms(1), &mut a, &mut b);
    assert_eq!(b.consume(ms(2), 1_459), 1_459);
    assert_eq!(b.poll_transmit(ms(2)), None);
    b.consume(ms(2), 1);
    assert_eq!(b.poll_transmit(ms(2)).map(|update| update.window), Some(1_460));
}

#[test]
fn a_receive_buffer_grows_to_the_bandwidth_delay_product_and_not_beyond() {
    let mut config = Config::linux(1_500);
    config.algorithm = Algorithm::Reno;
    config.batch = 0;
    // 1 Gb/s and 10 ms: 1.18 MB of payload. 64 KiB would carry 6.6 MB/s.
    let mut network = pair(Link::new(GBIT_1, Span::from_ms(5)).buffer(1 << 20), &config);
    network.write(0, u64::MAX);
    let rate = network.goodput(1, ms(3_000), ms(4_000));
    assert!(rate > 0.99 * 117.69e6, "{rate}");
    let grown = network.ends[1].connection.receive_buffer();
    assert!((1_180_000..=3_145_728).contains(&grown), "{grown}");
    // A short path needs no more than it has.
    let mut network = pair(Link::new(GBIT_1, Span::from_us(20)).buffer(1 << 20), &config);
    network.write(0, u64::MAX);
    network.run(ms(1_000));
    assert!(network.ends[1].connection.receive_buffer() < 200_000);
}

#[test]
fn a_send_buffer_limits_the_application_and_reports_room() {
    let (mut a, mut b) = established(&Config { send_buffer: Buffer::fixed(10_000), ..reno() });
    assert_eq!((a.send(25_000), a.send(1), a.send_space()), (10_000, 0, 0));
    exchange(ms(1), &mut a, &mut b);
    b.timeout(ms(50));
    exchange(ms(50), &mut a, &mut b);
    assert_eq!((a.take_events().has(Events::WRITABLE), a.send_space()), (true, 10_000));
    let mut growing = Config::linux(1_500);
    growing.batch = 0;
    let mut network = pair(Link::new(GBIT_10, Span::from_ms(1)), &growing);
    network.write(0, u64::MAX);
    network.run(ms(500));
    assert!(network.ends[0].connection.send_space() == 0);
    assert!(network.ends[1].consumed > 100_000_000, "{}", network.ends[1].consumed);
}

#[test]
fn a_window_restarts_after_a_silence_of_one_time_out() {
    for (idle_restart, silence, is_restart) in [(true, 300, true), (true, 100, false), (false, 300, false)] {
        let mut network = pair(Link::new(GBIT_1, Span::from_ms(5)), &Config { idle_restart, ..reno() });
        network.write(0, 200_000);
        network.run(ms(500));
        let start = network.now();
        let before = network.ends[0].connection.congestion_window();
        assert!(before > 100_000);
        network.write(0, 50_000);
        network.run(start + Span::from_ms(100));
        network.run(start + Span::from_ms(100 + silence));
        let sent = network.ends[0].sent;
        network.write(0, 100_000);
        let burst = network.ends[0].sent - sent;
        assert_eq!(burst == 10, is_restart, "restart {idle_restart}, silence {silence}: {burst}");
    }
}

#[test]
fn one_lost_segment_costs_one_retransmission_and_no_time_out() {
    for sack in [true, false] {
        let lost = Loss::When(|number| number == 50);
        let mut network = pair(Link::new(GBIT_1, Span::from_ms(2)).loss(lost), &Config { sack, ..reno() });
        network.write(0, 1_000_000);
        network.run(ms(200));
        let counters = network.ends[0].connection.counters();
        assert_eq!((counters.retransmissions, counters.recoveries, counters.timeouts), (1, 1, 0), "SACK {sack}");
        assert_eq!(network.ends[1].consumed, 1_000_000);
    }
}

/// Five segments of one window: SACK repairs them in one round trip, NewReno in one for each.
#[test]
fn many_lost_segments_of_one_window_cost_no_time_out() {
    for sack in [true, false] {
        let lost = Loss::When(|number| (100..110).contains(&number) && number % 2 == 0);
        let mut network = pair(Link::new(GBIT_1, Span::from_ms(2)).loss(lost), &Config { sack, ..reno() });
        network.write(0, 1_000_000);
        network.run(ms(200));
        let counters = network.ends[0].connection.counters();
        assert_eq!((counters.retransmissions, counters.recoveries, counters.timeouts), (5, 1, 0), "SACK {sack}");
        assert_eq!(network.ends[1].consumed, 1_000_000);
    }
}

#[test]
fn two_duplicates_release_new_segments_and_three_begin_recovery() {
    for sack in [true, false] {
        // A constant window, because an acknowledgement that changes it is no duplicate.
        let (mut a, mut b) = established(&Config { sack, receive_buffer: Buffer::fixed(65_535), ..reno() });
        a.send(100_000);
        let sent = drain(&mut a, ms(1));
        let mut released = vec![];
        // The first segment is lost.
        for segment in &sent[1..4] {
            b.arrive(ms(2), segment);
            let ack = b.poll_transmit(ms(2)).unwrap();
            assert_eq!(ack.sack.is_empty(), !sack);
            a.arrive(ms(2), &ack);
            released.push(drain(&mut a, ms(2)));
        }
        let lengths: Vec<usize> = released.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1, 1, 1], "limited transmit (RFC 3042), then the retransmission");
        assert_eq!((released[1][0].position, released[2][0].position), (1 + 11 * 1_460, 1));
        // Half of 12 segments in flight.
        assert_eq!((a.counters().recoveries, a.congestion_window()), (1, 7_300));
    }
}

#[test]
fn a_lost_last_segment_costs_a_time_out_of_200_ms() {
    let mut network = pair(Link::new(GBIT_1, Span::from_us(50)).loss(Loss::When(|number| number == 8)), &reno());
    network.write(0, 8 * 1_460);
    network.run(ms(190));
    assert_eq!(network.ends[1].consumed, 7 * 1_460);
    network.run(ms(250));
    assert_eq!((network.ends[1].consumed, network.ends[0].connection.counters().timeouts), (8 * 1_460, 1));
}

#[test]
fn a_mark_halves_the_window_of_reno_once_and_is_answered() {
    let (mut a, mut b) = established(&Config { ecn: true, ack_every: 1, ..reno() });
    a.send(1 << 20);
    let sent = drain(&mut a, ms(1));
    assert!(sent.iter().all(|segment| segment.ecn == Ecn::Ect));
    for segment in &sent[..3] {
        b.arrive(ms(2), &Segment { ecn: Ecn::Ce, ..*segment });
        let ack = b.poll_transmit(ms(2)).unwrap();
        assert!(ack.flags.has(Flags::ECE));
        a.arrive(ms(2), &ack);
    }
    // The first echo arrives with ten segments in flight or just acknowledged.
    assert_eq!((a.counters().marks, a.counters().retransmissions), (1, 0));
    let reduced = a.congestion_window();
    assert!((6_570..=8_760).contains(&reduced), "{reduced}");
    for segment in &sent[3..] {
        b.arrive(ms(3), segment);
        a.arrive(ms(3), &b.poll_transmit(ms(3)).unwrap());
    }
    let next = drain(&mut a, ms(3));
    assert!(next[0].flags.has(Flags::CWR) && !next[1].flags.has(Flags::CWR));
    b.arrive(ms(4), &next[0]);
    assert!(!b.poll_transmit(ms(4)).unwrap().flags.has(Flags::ECE), "CWR ends the echo");
}

#[test]
fn dctcp_acknowledges_at_once_when_the_mark_changes() {
    let (mut a, mut b) = established(&Config { algorithm: Algorithm::Dctcp, ..reno() });
    a.send(1 << 20);
    let sent = drain(&mut a, ms(1));
    b.arrive(ms(2), &sent[0]);
    // One segment without a mark is pending when a marked one arrives (RFC 8257, section 3.2).
    let early = b.arrive(ms(2), &Segment { ecn: Ecn::Ce, ..sent[1] }).unwrap();
    assert_eq!((early.ack, early.flags.has(Flags::ECE)), (1_461, false));
    assert_eq!(b.arrive(ms(2), &Segment { ecn: Ecn::Ce, ..sent[2] }), None);
    let marked = b.poll_transmit(ms(2)).unwrap();
    assert_eq!((marked.ack, marked.flags.has(Flags::ECE)), (4_381, true));
}

#[test]
fn pacing_spreads_a_window_over_the_round_trip() {
    let config = Config { pacing: Some(Pacing { slow_start: 100, avoidance: 100 }), ..reno() };
    let mut network = pair(Link::new(GBIT_10, Span::from_ms(5)), &config);
    network.write(0, u64::MAX);
    network.run(ms(60));
    network.links[0].reset_marks();
    network.run(ms(90));
    assert!(network.links[0].high <= 1, "{} packets wait", network.links[0].high);
    let mut burst = pair(Link::new(GBIT_10, Span::from_ms(5)), &reno());
    burst.write(0, u64::MAX);
    burst.run(ms(60));
    burst.links[0].reset_marks();
    burst.run(ms(90));
    assert!(burst.links[0].high > 1);
}

#[test]
fn a_loss_of_a_syn_begins_with_one_segment() {
    let mut a = Connection::connect(std::sync::Arc::new(reno()));
    let mut b = Connection::listen(std::sync::Arc::new(reno()));
    assert!(a.poll_transmit(ms(0)).is_some());
    a.timeout(ms(1_000));
    exchange(ms(1_000), &mut a, &mut b);
    assert_eq!((a.congestion_window(), b.congestion_window()), (1_460, 14_600));
    // Karn: a repeated SYN gives no sample.
    assert_eq!((a.round_trip(), b.round_trip()), (None, Some(Span::from_ns(1))));
}

#[test]
fn each_repeated_syn_counts_as_a_time_out() {
    let mut a = Connection::connect(std::sync::Arc::new(reno()));
    for at in [0, 1_000, 3_000, 7_000] {
        a.timeout(ms(at));
        assert!(a.poll_transmit(ms(at)).is_some(), "{at}");
    }
    assert_eq!(a.counters().timeouts, 3);
}
