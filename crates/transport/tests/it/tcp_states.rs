//! States of a connection: transitions, handshake, end, resets (RFC 9293).

use crate::tcp_network::{ms, plain};
use sanloom_scsi::time::{Instant, Span};
use sanloom_transport::tcp::{Block, Config, Connection, Events, Flags, Sack, Segment, State, SynOptions, refuse};
use std::sync::Arc;

/// Moves segments in both directions until neither end has one. Nothing is lost.
pub fn exchange(now: Instant, a: &mut Connection, b: &mut Connection) {
    for _ in 0..10_000 {
        let mut moved = false;
        while let Some(segment) = a.poll_transmit(now) {
            moved = true;
            if let Some(reply) = b.arrive(now, &segment) {
                a.arrive(now, &reply);
            }
        }
        while let Some(segment) = b.poll_transmit(now) {
            moved = true;
            if let Some(reply) = a.arrive(now, &segment) {
                b.arrive(now, &reply);
            }
        }
        if !moved {
            return;
        }
    }
    panic!("the ends answer each other without end");
}

/// Two ends with an established connection.
pub fn established(config: &Config) -> (Connection, Connection) {
    let config = Arc::new(config.clone());
    let (mut a, mut b) = (Connection::connect(config.clone()), Connection::listen(config));
    exchange(Instant::ZERO, &mut a, &mut b);
    assert_eq!((a.state(), b.state()), (State::Established, State::Established));
    assert_eq!((a.take_events(), b.take_events()), (Events::CONNECTED, Events::CONNECTED));
    (a, b)
}

/// A connection in each state, with its peer.
fn in_state(state: State) -> (Connection, Connection) {
    let config = Arc::new(plain(1_460));
    let now = Instant::ZERO;
    let (mut a, mut b) = match state {
        State::Closed | State::Listen | State::SynSent | State::SynReceived => {
            (Connection::connect(config.clone()), Connection::connect(config.clone()))
        }
        _ => established(&config),
    };
    match state {
        State::Closed => a.abort(),
        State::Listen => a = Connection::listen(config),
        State::SynSent => drop(a.poll_transmit(now)),
        State::SynReceived => {
            a = Connection::listen(config);
            a.arrive(now, &b.poll_transmit(now).unwrap());
            a.poll_transmit(now);
        }
        State::Established => {}
        State::FinWait1 | State::Closing => {
            a.close();
            a.poll_transmit(now);
        }
        State::FinWait2 => {
            a.close();
            exchange(now, &mut a, &mut b);
        }
        State::CloseWait | State::LastAck => {
            b.close();
            exchange(now, &mut a, &mut b);
        }
        State::TimeWait => {
            a.close();
            exchange(now, &mut a, &mut b);
            b.close();
            exchange(now, &mut a, &mut b);
        }
    }
    if state == State::Closing {
        // The FINs cross.
        b.close();
        a.arrive(now, &b.poll_transmit(now).unwrap());
    }
    if state == State::LastAck {
        a.close();
        a.poll_transmit(now);
    }
    assert_eq!(a.state(), state);
    (a, b)
}

const STATES: [State; 11] = [
    State::Closed,
    State::Listen,
    State::SynSent,
    State::SynReceived,
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

/// A segment of the peer with its next position and an acknowledgement of everything.
fn from_peer(a: &Connection, flags: Flags) -> Segment {
    let closed = matches!(a.state(), State::FinWait1 | State::Closing | State::LastAck);
    let ack = if closed { 2 } else { 1 };
    let options = flags.has(Flags::SYN).then_some(SynOptions { mss: 1_460, scale: None, sack: false });
    let position = if flags.has(Flags::SYN) { 0 } else { a.received() };
    Segment { position, ack, flags, window: 1_000, options, ..Segment::default() }
}

fn after(state: State, event: &str) -> String {
    let (mut a, _) = in_state(state);
    let now = ms(1);
    let ack = Flags::ACK;
    let reply = match event {
        "close" => {
            a.close();
            None
        }
        "abort" => {
            a.abort();
            None
        }
        "SYN" => a.arrive(now, &from_peer(&a, Flags::SYN)),
        "SYN,ACK" => a.arrive(now, &from_peer(&a, Flags::SYN.with(ack))),
        "ACK" => a.arrive(now, &from_peer(&a, ack)),
        "FIN,ACK" => a.arrive(now, &from_peer(&a, Flags::FIN.with(ack))),
        "RST" => a.arrive(now, &from_peer(&a, Flags::RST.with(ack))),
        _ => None,
    };
    let sent = reply.or_else(|| a.poll_transmit(now));
    let name = |flags: Flags| {
        let names = [(Flags::SYN, "S"), (Flags::FIN, "F"), (Flags::RST, "R"), (Flags::ACK, "A")];
        names.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, name)| *name).collect::<String>()
    };
    let sent = sent.map_or(String::new(), |segment| format!("/{}", name(segment.flags)));
    let next = if a.state() == state { "-".to_string() } else { format!("{:?}", a.state()) };
    format!("{next}{sent}")
}

/// The table: next state ("-" if it stays), then the flags of the segment that is sent.
#[test]
fn states_change_as_rfc_9293_says() {
    let events = ["close", "abort", "SYN", "SYN,ACK", "ACK", "FIN,ACK", "RST"];
    let head = format!("{:12}{}", "", events.map(|event| format!("{event:17}")).concat());
    let mut table = format!("{}\n", head.trim_end());
    for state in STATES {
        let row: Vec<String> = events.iter().map(|event| format!("{:17}", after(state, event))).collect();
        let line = format!("{:12}{}", format!("{state:?}"), row.concat());
        table.push_str(line.trim_end());
        table.push('\n');
    }
    let expected = include_str!("tcp_states.txt");
    assert!(table == expected, "\n{table}");
}

#[test]
fn options_hold_only_if_both_ends_offer_them() {
    for (scale, sack, stamps) in [(true, true, true), (false, true, false), (true, false, true), (false, false, false)]
    {
        let ours = Config { timestamps: true, ..plain(1_460) };
        let theirs = Config { window_scaling: scale, sack, timestamps: stamps, mss: 1_000, ..plain(1_460) };
        let (mut a, mut b) = (Connection::connect(Arc::new(ours)), Connection::listen(Arc::new(theirs)));
        let syn = a.poll_transmit(ms(0)).unwrap();
        assert_eq!(syn.options, Some(SynOptions { mss: 1_460, scale: Some(14), sack: true }));
        b.arrive(ms(0), &syn);
        let answer = b.poll_transmit(ms(0)).unwrap();
        assert_eq!(answer.options, Some(SynOptions { mss: 1_000, scale: scale.then_some(14), sack }));
        assert_eq!(answer.stamps.is_some(), stamps);
        a.arrive(ms(0), &answer);
        exchange(ms(0), &mut a, &mut b);
        assert_eq!(a.segment_size(), if stamps { 988 } else { 1_000 });
        // Without scaling, the window field is the window.
        a.send(1 << 20);
        let first = a.poll_transmit(ms(0)).unwrap();
        assert_eq!(first.stamps.is_some(), stamps);
        assert_eq!(first.window, if scale { (1u32 << 29 >> 14) as u16 } else { 65_535 });
    }
}

#[test]
fn both_ends_may_open_at_the_same_time() {
    let config = Arc::new(plain(1_460));
    let (mut a, mut b) = (Connection::connect(config.clone()), Connection::connect(config));
    let (syn_a, syn_b) = (a.poll_transmit(ms(0)).unwrap(), b.poll_transmit(ms(0)).unwrap());
    a.arrive(ms(1), &syn_b);
    b.arrive(ms(1), &syn_a);
    assert_eq!((a.state(), b.state()), (State::SynReceived, State::SynReceived));
    exchange(ms(2), &mut a, &mut b);
    assert_eq!((a.state(), b.state()), (State::Established, State::Established));
    a.send(5_000);
    exchange(ms(3), &mut a, &mut b);
    assert_eq!(b.readable(), 5_000);
}

#[test]
fn both_ends_may_close_at_the_same_time() {
    let (mut a, mut b) = established(&plain(1_460));
    a.close();
    b.close();
    let (fin_a, fin_b) = (a.poll_transmit(ms(1)).unwrap(), b.poll_transmit(ms(1)).unwrap());
    a.arrive(ms(2), &fin_b);
    b.arrive(ms(2), &fin_a);
    assert_eq!((a.state(), b.state()), (State::Closing, State::Closing));
    exchange(ms(3), &mut a, &mut b);
    assert_eq!((a.state(), b.state()), (State::TimeWait, State::TimeWait));
    assert!(a.take_events().has(Events::PEER_CLOSED.with(Events::CLOSED)));
    a.timeout(ms(3) + Span::from_secs(60));
    assert_eq!(a.state(), State::Closed);
    assert_eq!(a.poll_timeout(), None);
}

#[test]
fn data_flow_after_the_peer_has_closed() {
    let (mut a, mut b) = established(&plain(1_460));
    b.close();
    exchange(ms(1), &mut a, &mut b);
    assert_eq!((a.state(), b.state()), (State::CloseWait, State::FinWait2));
    assert_eq!((a.send(100_000), b.send(1)), (100_000, 0));
    for round in 2..20 {
        exchange(ms(round * 50), &mut a, &mut b);
        b.timeout(ms(round * 50 + 45));
    }
    assert_eq!(b.consume(ms(2_000), u64::MAX), 100_000);
    a.close();
    exchange(ms(2_001), &mut a, &mut b);
    assert_eq!((a.state(), b.state()), (State::Closed, State::TimeWait));
}

#[test]
fn a_reset_needs_the_exact_position() {
    let (mut a, mut b) = established(&plain(1_460));
    let reset = Segment { position: 100, flags: Flags::RST, ..Segment::default() };
    assert_eq!(a.arrive(ms(1), &reset), None);
    assert_eq!(a.state(), State::Established);
    // RFC 5961: a challenge, which lets a peer without the connection send the exact position.
    let challenge = a.poll_transmit(ms(1)).unwrap();
    assert_eq!((challenge.position, challenge.ack, challenge.flags), (1, 1, Flags::ACK));
    let answer = refuse(&challenge).unwrap();
    a.arrive(ms(1), &answer);
    assert_eq!((a.state(), a.take_events()), (State::Closed, Events::RESET));
    b.abort();
    let reset = b.poll_transmit(ms(2)).unwrap();
    assert!(reset.flags.has(Flags::RST));
    assert_eq!((b.state(), b.poll_transmit(ms(2))), (State::Closed, None));
}

#[test]
fn a_silent_peer_ends_the_connection_after_six_syns_and_fifteen_retries() {
    let config = plain(1_460);
    let mut a = Connection::connect(Arc::new(config.clone()));
    let mut times = vec![];
    while a.state() != State::Closed {
        let now = a.poll_timeout().unwrap_or(Instant::ZERO);
        a.timeout(now);
        times.extend(a.poll_transmit(now).map(|_| now.as_ns() / 1_000_000_000));
    }
    // 1 s, then doubled.
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63]);
    assert_eq!(a.take_events(), Events::TIMED_OUT);

    let (mut a, _) = established(&config);
    a.send(1_000);
    let mut gaps = vec![];
    let mut last = Instant::ZERO;
    a.poll_transmit(last);
    while a.state() != State::Closed {
        let now = a.poll_timeout().unwrap();
        a.timeout(now);
        gaps.extend(a.poll_transmit(now).map(|_| now.since(last).as_ms()));
        last = now;
    }
    let expected: Vec<u64> = (0..15).map(|n| (200u64 << n).min(120_000)).collect();
    assert_eq!(gaps, expected);
    assert_eq!(a.take_events(), Events::TIMED_OUT);
}

#[test]
fn positions_and_blocks_that_were_never_sent_are_counted_and_ignored() {
    let (mut a, _) = established(&plain(1_460));
    a.send(10_000);
    let sent: Vec<Segment> = std::iter::from_fn(|| a.poll_transmit(ms(1))).collect();
    let plain = Segment { position: 1, ack: 1, flags: Flags::ACK, window: 100, ..Segment::default() };
    a.arrive(ms(2), &Segment { ack: 10_002, ..plain });
    assert_eq!((a.counters().ignored, a.acknowledged()), (1, 1));
    let mut sack = Sack::default();
    sack.push(Block { start: 9_000, end: 20_000 });
    sack.push(Block { start: 9_000, end: 8_000 });
    a.arrive(ms(2), &Segment { sack, ..plain });
    assert_eq!((a.counters().ignored, a.counters().recoveries), (3, 0));
    a.arrive(ms(2), &Segment { flags: Flags::NONE, ..plain });
    assert_eq!(a.counters().ignored, 4);
    a.arrive(ms(2), &Segment { position: 1 << 40, length: 100, ..plain });
    assert_eq!(a.counters().ignored, 5);
    a.arrive(ms(3), &Segment { ack: sent.last().unwrap().end(), ..plain });
    assert_eq!(a.acknowledged(), 10_001);
}
