//! Times of reads and writes, computed by hand from the lengths of words and cables.

use super::agreement::run_plain;
use super::util::{Results, Wish, pa, run as run_wishes};
use sanloom_fc::arbitrated_loop::{Loop, LoopConfig, LoopPort, LoopRate, LoopTime, Request};
use sanloom_wire::arbitrated_loop::{AlPa, Primitive};

const CMND: u16 = 32;
const XFER_RDY: u16 = 12;
const RSP: u16 = 24;

fn idle_loop(rate: LoopRate, ports: usize, delay_words: u32, login_credit: u16) -> Loop {
    let ports =
        AlPa::all().skip(1).take(ports).map(|al_pa| LoopPort { delay_words, login_credit, ..LoopPort::new(al_pa) });
    Loop::new(LoopConfig { rate, ports: ports.collect() }).expect("a valid loop")
}

/// Runs information units one after the other between ports 0 and 1, each in a tenancy of its own
/// that begins when the one before ends, and returns the end of the last.
fn run(engine: &mut Loop, units: &[(usize, Vec<u16>)]) -> LoopTime {
    let mut now = LoopTime::ZERO;
    for (tag, (from, frames)) in units.iter().enumerate() {
        let to = AlPa::all().nth(2 - from).expect("an address");
        assert!(engine.request(now, *from, Request { to, frames: frames.clone(), full_duplex: true, tag: tag as u64 }));
        let mut results = Results::default();
        while results.tenancies.is_empty() {
            engine.handle_timeout(engine.poll_timeout().expect("a tenancy"));
            results.drain(engine);
        }
        now = results.tenancies[0].left;
    }
    now
}

fn data(bytes: u32) -> Vec<u16> {
    (0..bytes.div_ceil(2048)).map(|frame| (bytes - frame * 2048).min(2048) as u16).collect()
}

fn read(bytes: u32) -> Vec<(usize, Vec<u16>)> {
    vec![(0, vec![CMND]), (1, [data(bytes), vec![RSP]].concat())]
}

fn write(bytes: u32) -> Vec<(usize, Vec<u16>)> {
    vec![(0, vec![CMND]), (1, vec![XFER_RDY]), (0, data(bytes)), (1, vec![RSP])]
}

/// Time in units of `digits` of a microsecond, rounded.
fn rounded(time: LoopTime, unit_ps: u64) -> u64 {
    (time.ps() + unit_ps / 2) / unit_ps
}

/// One number is 5 ns below the sum of rounded parts: 2 KB over 126 ports is 2 * 61.3282 us + 571
/// words = 133.4047 us. Rows: rate, ports, delay in words, then reads of 512 B, 2, 8 and 32 KB and
/// writes of 512 B and 8 KB; each in us.
#[test]
fn reads_and_writes_take_the_times_of_the_table_by_hand() {
    use LoopRate::{Gb1, Gb2, Gb4};
    let table = [
        (Gb1, 2, 6, ["9.296", "23.753", "83.273", "321.35", "12.231", "86.207"]),
        (Gb1, 2, 12, ["10.652", "25.108", "84.628", "322.71", "14.941", "88.918"]),
        (Gb2, 2, 6, ["4.948", "12.176", "41.936", "160.98", "6.715", "43.704"]),
        (Gb2, 2, 12, ["5.626", "12.854", "42.614", "161.65", "8.071", "45.059"]),
        (Gb2, 16, 6, ["18.635", "25.864", "55.624", "174.66", "34.089", "71.078"]),
        (Gb2, 126, 6, ["126.18", "133.40", "163.16", "282.20", "249.17", "286.16"]),
        (Gb4, 2, 6, ["2.774", "6.388", "21.268", "80.79", "3.958", "22.452"]),
    ];
    for (rate, ports, delay, expected) in table {
        let units = [read(512), read(2048), read(8192), read(32768), write(512), write(8192)];
        for (units, expected) in units.iter().zip(expected) {
            let time = run(&mut idle_loop(rate, ports, delay, 0), units);
            let decimals = expected.len() - expected.find('.').expect("a point") - 1;
            let unit_ps = 10_u64.pow(6 - decimals as u32);
            let expected: u64 = expected.replace('.', "").parse().expect("a number");
            assert_eq!(rounded(time, unit_ps), expected, "{rate:?}, {ports} ports, {delay} words, {units:?}");
        }
    }
}

#[test]
fn a_tenancy_costs_three_rounds_and_four_words_without_login_credit() {
    let word = LoopRate::Gb2.word();
    let frame = word.times(23);
    for ports in [2, 16, 126] {
        let round = word.times((ports as u64 - 1) * 6) + LoopTime::from_ps(50_000).times(ports as u64);
        let cost = run(&mut idle_loop(LoopRate::Gb2, ports, 6, 0), &[(0, vec![CMND])]) - frame;
        assert_eq!(cost, round.times(3) + word.times(4));
        // OPN itself takes a word, which precedes the first frame.
        let cost = run(&mut idle_loop(LoopRate::Gb2, ports, 6, 2), &[(0, vec![CMND])]) - frame;
        assert_eq!(cost, round.times(2) + word.times(3));
        let ports = AlPa::all().skip(1).take(ports).map(LoopPort::new).collect();
        let config = LoopConfig { rate: LoopRate::Gb2, ports };
        assert_eq!(config.tenancy_cost(0, 1), Some(round.times(3) + word.times(4)));
        assert_eq!(config.tenancy_cost(0, 200), None);
    }
    let us = |ports| rounded(run(&mut idle_loop(LoopRate::Gb2, ports, 6, 0), &[(0, vec![CMND])]) - frame, 1000);
    assert_eq!([us(2), us(16), us(126)], [714, 7_558, 61_328]);
}

/// Each word of a tenancy with login credit, on both engines: OPN is one word of its own, so the
/// sum is 2 L + 3 w.
#[test]
fn the_words_of_a_tenancy_with_login_credit_add_up_to_two_rounds_and_three_words() {
    let word = LoopRate::Gb2.word();
    for (count, delay_words, cable) in [(2, 6, 3), (2, 12, 1), (16, 6, 2)] {
        let ports = AlPa::all().skip(1).take(count).map(|al_pa| LoopPort {
            delay_words,
            cable: word.times(cable),
            login_credit: 2,
            ..LoopPort::new(al_pa)
        });
        let config = LoopConfig { rate: LoopRate::Gb2, ports: ports.collect() };
        let round = (count as u64 - 1) * u64::from(delay_words) + count as u64 * cable;
        // A port that answers delays each word, too.
        let to_peer = cable + u64::from(delay_words);
        let request = Request { to: pa(0x02), frames: vec![CMND], full_duplex: true, tag: 0 };
        let wishes = [Wish { time: LoopTime::ZERO, port: 0, request }];
        let fast = run_wishes(&config, &wishes);
        let plain = run_plain(&config, &wishes, word.times(40 * round));
        for results in [&fast, &plain] {
            let at = |time: LoopTime| time.0 / word.0;
            let [tenancy] = results.tenancies[..] else { panic!("{:?}", results.tenancies) };
            // ARB leaves at 0, is back after L, and OPN is the next word.
            let opn = round + 1;
            assert_eq!((at(tenancy.wish), at(tenancy.won), at(tenancy.opened)), (0, round, opn));
            // The frame follows OPN, and its 17 words and 6 fill words come before CLS.
            let first = opn + 1;
            let close = first + 23;
            assert_eq!(results.frames.iter().map(|frame| at(frame.start)).collect::<Vec<_>>(), [first]);
            // The CLS of the peer is the word after it reads CLS. The owner reads it a round and a
            // word after its own.
            let left = close + round + 1;
            assert_eq!((at(tenancy.closed), at(tenancy.left)), (close, left));
            let sent = |from, wanted: Primitive| {
                let mut all = results.signals.iter().filter(|signal| (signal.1, signal.2) == (from, wanted));
                all.next().map(|signal| at(signal.0))
            };
            let opened = Primitive::OpenFull { y: pa(0x02), x: pa(0x01) };
            assert_eq!(sent(0, opened), Some(opn));
            assert_eq!(sent(0, Primitive::Close), Some(close));
            assert_eq!(sent(1, Primitive::Close), Some(close + to_peer + 1));
            assert_eq!(left - 23, 2 * round + 3);
        }
        assert_eq!(config.tenancy_cost(0, 1), Some(word.times(2 * round + 3)));
    }
}

#[test]
fn a_port_with_a_lower_address_wins_if_both_want_the_loop() {
    let mut engine = idle_loop(LoopRate::Gb2, 8, 6, 0);
    for from in [5, 3, 7] {
        let request = Request { to: pa(0x01), frames: vec![64], full_duplex: false, tag: from as u64 };
        assert!(engine.request(LoopTime::ZERO, from, request));
    }
    let mut results = Results::default();
    while let Some(time) = engine.poll_timeout() {
        engine.handle_timeout(time);
        results.drain(&mut engine);
    }
    assert_eq!(results.tenancies.iter().map(|tenancy| tenancy.owner).collect::<Vec<_>>(), [3, 5, 7]);
}
