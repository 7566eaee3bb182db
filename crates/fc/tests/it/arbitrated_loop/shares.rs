//! Shares of ports with and without fairness, credits, and bad input.

use super::util::{Results, Wish, pa, run};
use sanloom_fc::arbitrated_loop::{
    Loop, LoopConfig, LoopConfigError, LoopFrame, LoopPort, LoopRate, LoopTime, Request,
};
use sanloom_wire::arbitrated_loop::AlPa;

/// Receiver of all frames.
const TARGET: u8 = 0xef;

/// Tenancies of each sender, if each sends again `think` after its last tenancy, until one has
/// `rounds` of them.
fn tenancies(senders: &[(u8, bool)], think: LoopTime, rounds: usize) -> Vec<usize> {
    let mut ports: Vec<LoopPort> =
        senders.iter().map(|(al_pa, fair)| LoopPort { fair: *fair, ..LoopPort::new(pa(*al_pa)) }).collect();
    ports.push(LoopPort::new(pa(TARGET)));
    let mut engine = Loop::new(LoopConfig { rate: LoopRate::Gb2, ports }).expect("a valid loop");
    let request = || Request { to: pa(TARGET), frames: vec![2048; 2], full_duplex: false, tag: 0 };
    let mut due: Vec<(LoopTime, usize)> = (0..senders.len()).map(|port| (LoopTime::ZERO, port)).collect();
    let mut counts = vec![0; senders.len()];
    while counts.iter().all(|count| *count < rounds) {
        due.sort_unstable();
        let timeout = engine.poll_timeout();
        match due.first().copied() {
            Some((time, port)) if timeout.is_none_or(|timeout| time <= timeout) => {
                due.remove(0);
                assert!(engine.request(time, port, request()));
            }
            _ => engine.handle_timeout(timeout.expect("an event")),
        }
        let mut results = Results::default();
        results.drain(&mut engine);
        for tenancy in results.tenancies {
            counts[tenancy.owner] += 1;
            due.push((tenancy.left + think, tenancy.owner));
        }
    }
    counts
}

#[test]
fn without_fairness_a_port_of_low_priority_starves_beside_two_others() {
    let counts = tenancies(&[(0x01, false), (0xe8, false), (0x02, false)], LoopTime::from_ps(2_000_000), 1000);
    assert!(counts[0] >= 999 && counts[2] >= 999, "{counts:?}");
    assert_eq!(counts[1], 0);
}

#[test]
fn without_fairness_a_port_that_always_has_frames_starves_all_others() {
    assert_eq!(tenancies(&[(0x01, false), (0xe8, false), (0x02, false)], LoopTime::ZERO, 1000), [1000, 0, 0]);
}

#[test]
fn with_fairness_shares_are_equal() {
    for think in [LoopTime::ZERO, LoopTime::from_ps(2_000_000)] {
        let counts = tenancies(&[(0x01, true), (0xe8, true), (0x02, true), (0x10, true)], think, 1000);
        assert!(counts.iter().all(|count| (999..=1000).contains(count)), "{counts:?}");
    }
}

#[test]
fn an_fl_port_is_never_fair() {
    let counts = tenancies(&[(0x00, true), (0xe8, true), (0x02, true)], LoopTime::ZERO, 1000);
    assert_eq!(counts, [1000, 0, 0]);
}

#[test]
fn one_unfair_port_takes_the_window_from_fair_ports() {
    // The host sends again before the fair disks may arbitrate a second time.
    let counts = tenancies(&[(0x01, false), (0xe8, true), (0xe4, true)], LoopTime::from_ps(2_000_000), 1000);
    assert!(counts[0] == 1000 && counts[1] >= 450 && counts[2] >= 450, "{counts:?}");
}

/// Largest number of frames of one sender that are on their way to a port or in its buffers.
///
/// Frames of two senders may be on their way at once. If both ends close at the same time, the next
/// owner opens the port while the last frame of the old one is still ahead on the loop. The older
/// frame arrives first, so [`most_buffered`] counts the buffers.
pub fn most_outstanding(frames: &[LoopFrame], to: usize, release: LoopTime) -> usize {
    let frames: Vec<&LoopFrame> = frames.iter().filter(|frame| frame.to == to).collect();
    let at = |time: LoopTime, from: usize| {
        let from_it = frames.iter().filter(|frame| frame.from == from);
        from_it.filter(|frame| frame.start <= time && time < frame.arrival + release).count()
    };
    frames.iter().map(|frame| at(frame.start, frame.from)).max().unwrap_or(0)
}

/// Largest number of buffers in use when the last word of a frame arrives, from any sender.
pub fn most_buffered(frames: &[LoopFrame], to: usize, release: LoopTime) -> usize {
    let frames: Vec<&LoopFrame> = frames.iter().filter(|frame| frame.to == to).collect();
    let before = |time: LoopTime| frames.iter().filter(|f| f.arrival < time && time <= f.arrival + release).count();
    frames.iter().map(|frame| before(frame.arrival) + 1).max().unwrap_or(0)
}

/// Five frames to a receiver with the given login credit and buffers; times of their starts after
/// OPN, in words.
fn starts(login_credit: u16, buffers: u16) -> (Vec<u64>, usize) {
    let word = LoopRate::Gb2.word();
    let release = word.times(500);
    let port = |al_pa| LoopPort { login_credit, buffers, release, cable: word.times(10), ..LoopPort::new(pa(al_pa)) };
    let config = LoopConfig { rate: LoopRate::Gb2, ports: vec![port(0x01), port(TARGET)] };
    let request = Request { to: pa(TARGET), frames: vec![4; 5], full_duplex: false, tag: 7 };
    let results = run(&config, &[Wish { time: LoopTime::ZERO, port: 0, request }]);
    assert_eq!(results.frames.iter().map(|frame| frame.left).collect::<Vec<_>>(), [4, 3, 2, 1, 0]);
    let opened = results.tenancies[0].opened;
    let starts = results.frames.iter().map(|frame| (frame.start - opened).0 / word.0).collect();
    (starts, most_outstanding(&results.frames, 1, release))
}

/// A frame of 4 bytes takes 10 words and 6 fill words. A round without the delay of the opener has
/// 26 words, so the first R_RDY counts 28 words after OPN.
#[test]
fn frames_leave_as_login_credit_and_buffers_permit() {
    assert_eq!(starts(0, 5), (vec![28, 44, 60, 76, 92], 5));
    assert_eq!(starts(1, 5), (vec![1, 29, 45, 61, 77], 5));
    assert_eq!(starts(2, 5), (vec![1, 17, 33, 49, 65], 5));
    assert_eq!(starts(5, 5), (vec![1, 17, 33, 49, 65], 5));
    // The only buffer is free 500 words after the end of each frame, and its R_RDY travels back.
    let (starts, most) = starts(0, 1);
    assert_eq!(starts, [28, 28 + 537, 28 + 2 * 537, 28 + 3 * 537, 28 + 4 * 537]);
    assert_eq!(most, 1);
}

#[test]
fn a_wrong_loop_is_rejected_with_its_port_and_a_remedy() {
    let config = |ports| LoopConfig { rate: LoopRate::Gb1, ports };
    let port = LoopPort::new(pa(0x01));
    let error = |ports| Loop::new(config(ports)).map(|_| ()).expect_err("an error");
    assert_eq!(error(vec![port.clone()]), LoopConfigError::TooFewPorts(1));
    assert_eq!(
        error(vec![port.clone(), port.clone()]).to_string(),
        "ports 0 and 1 of the loop both have AL_PA 01: give each its own"
    );
    let wrong = [
        LoopPort { delay_words: 0, ..port.clone() },
        LoopPort { cable: LoopTime::ZERO, ..port.clone() },
        LoopPort { login_credit: 9, ..port.clone() },
        LoopPort { closes_first: true, release: LoopTime::from_ps(1), ..port.clone() },
    ];
    for wrong in wrong {
        let error = error(vec![LoopPort::new(pa(0x02)), wrong]).to_string();
        assert!(error.starts_with("port 1 of the loop: "), "{error}");
    }
    assert_eq!(error(vec![port; 128]), LoopConfigError::TooManyPorts(128));
}

#[test]
fn a_wrong_request_is_rejected() {
    let ports = vec![LoopPort::new(pa(0x01)), LoopPort { al_pa: None, ..LoopPort::new(pa(0x02)) }];
    let mut engine = Loop::new(LoopConfig { rate: LoopRate::Gb1, ports }).expect("a valid loop");
    let request = |to: AlPa, frames| Request { to, frames, full_duplex: true, tag: 0 };
    assert!(!engine.request(LoopTime::ZERO, 0, request(pa(0x01), vec![1])), "opens itself");
    assert!(!engine.request(LoopTime::ZERO, 0, request(pa(0x02), vec![])), "no frame");
    assert!(!engine.request(LoopTime::ZERO, 1, request(pa(0x01), vec![1])), "non-participating");
    assert!(!engine.request(LoopTime::ZERO, 2, request(pa(0x01), vec![1])), "no such port");
    assert_eq!(engine.poll_timeout(), None);
}

#[test]
fn a_lip_returns_the_requests_that_are_not_sent() {
    let ports = vec![LoopPort::new(pa(0x01)), LoopPort::new(pa(0x02))];
    let mut engine = Loop::new(LoopConfig { rate: LoopRate::Gb1, ports }).expect("a valid loop");
    let request = |tag| Request { to: pa(0x02), frames: vec![2048; 3], full_duplex: true, tag };
    assert!(engine.request(LoopTime::ZERO, 0, request(1)) && engine.request(LoopTime::ZERO, 0, request(2)));
    // The first request is on its way.
    assert_eq!(engine.interrupt(LoopTime::from_ps(30_000_000)), vec![(0, request(2))]);
    assert_eq!(engine.poll_timeout(), None);
}
