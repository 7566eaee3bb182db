//! FCIP: both ends of a link against each other, every state with every event as a snapshot table,
//! and frames found again in damaged streams.

use proptest::prelude::*;
use sanloom_fc::fcip::{
    Admission, Ending, Framer, Input, OPENING_LIMIT, Output, Phase, RESYNC_LIMIT_BYTES, RETRY, Role, Step, Tunnel,
    TunnelConfig,
};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Wwnn;
use sanloom_wire::fcip::{self, Encapsulated, KeepAlive, Special, Stamp};
use std::fmt::Write;

const NEAR: Wwnn = Wwnn(0x1000_0000_c900_0001);
const FAR: Wwnn = Wwnn(0x1000_0000_c900_0002);
const OTHER: Wwnn = Wwnn(0x1000_0000_c900_0003);
const EPOCH: Stamp = Stamp::from_unix_ns(1_700_000_000_000_000_000);
const K_A_TOV: Span = Span::from_secs(10);
const R_A_TOV: Span = Span::from_secs(10);

fn config(role: Role, switch_name: Wwnn) -> TunnelConfig {
    TunnelConfig { role, switch_name, entity: 7, peer: None, r_a_tov: R_A_TOV, k_a_tov: K_A_TOV, seed: switch_name.0 }
}

struct End {
    tunnel: Tunnel,
    now: Instant,
}

impl End {
    fn new(config: TunnelConfig) -> End {
        let mut end = End { tunnel: Tunnel::new(config, EPOCH), now: Instant::ZERO };
        end.input(Input::Enable);
        end
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.tunnel.handle(self.now, input);
        std::iter::from_fn(|| self.tunnel.poll_output()).collect()
    }

    fn pass(&mut self, span: Span) -> Vec<Output> {
        let end = self.now + span;
        let mut outputs = Vec::new();
        while let Some(at) = self.tunnel.poll_timeout().filter(|at| *at <= end) {
            self.now = at;
            outputs.extend(self.input(Input::Timeout));
        }
        self.now = end;
        outputs
    }

    fn frame(&mut self, connection: u32, stamp: Stamp) -> Admission {
        self.tunnel.admit(self.now, connection, stamp)
    }
}

/// The special frame among outputs.
fn special(outputs: &[Output]) -> Special {
    let found = outputs.iter().find_map(|output| match output {
        Output::Special(_, special) => Some(*special),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no special frame in {outputs:?}"))
}

/// Both ends with an open link over connection `id`.
fn linked(near: &mut End, far: &mut End, id: u32) -> [Vec<Output>; 2] {
    let request = special(&near.input(Input::Connected(id)));
    far.input(Input::Connected(id));
    let accepted = far.input(Input::Special(id, request));
    let opened = near.input(Input::Special(id, special(&accepted)));
    [opened, accepted]
}

fn pair() -> (End, End) {
    (End::new(config(Role::Connects, NEAR)), End::new(config(Role::Listens, FAR)))
}

#[test]
fn both_ends_have_a_link_after_the_special_frame_and_its_echo() {
    let (mut near, mut far) = pair();
    let [opened, accepted] = linked(&mut near, &mut far, 1);
    assert_eq!(opened, [Output::Up { connection: 1, peer: FAR }]);
    let echo = special(&accepted);
    assert_eq!((echo.changed, echo.destination, echo.source), (true, FAR, NEAR), "the destination was open");
    assert_eq!(accepted[1..], [Output::Up { connection: 1, peer: NEAR }]);
    assert_eq!((near.tunnel.phase(), far.tunnel.phase()), (Phase::Up, Phase::Up));
}

#[test]
fn the_echo_of_a_known_destination_is_unchanged() {
    let mut near = End::new(TunnelConfig { peer: Some(FAR), ..config(Role::Connects, NEAR) });
    let mut far = End::new(TunnelConfig { peer: Some(NEAR), ..config(Role::Listens, FAR) });
    let [opened, accepted] = linked(&mut near, &mut far, 1);
    assert!(!special(&accepted).changed);
    assert_eq!(opened, [Output::Up { connection: 1, peer: FAR }]);
}

#[test]
fn an_end_refuses_another_switch_than_the_one_it_expects() {
    let mut far = End::new(TunnelConfig { peer: Some(OTHER), ..config(Role::Listens, FAR) });
    let mut near = End::new(config(Role::Connects, NEAR));
    let request = special(&near.input(Input::Connected(1)));
    far.input(Input::Connected(1));
    assert_eq!(far.input(Input::Special(1, request)), [Output::Close(1, Ending::WrongPeer(NEAR))]);

    let mut near = End::new(TunnelConfig { peer: Some(OTHER), ..config(Role::Connects, NEAR) });
    let mut far = End::new(config(Role::Listens, FAR));
    let [opened, accepted] = linked(&mut near, &mut far, 1);
    assert_eq!(accepted[1], Output::Close(1, Ending::WrongPeer(OTHER)));
    assert_eq!(opened, [Output::Close(1, Ending::WrongPeer(FAR))]);
    assert_eq!((near.tunnel.phase(), far.tunnel.phase()), (Phase::Waiting, Phase::Waiting));
}

#[test]
fn an_echo_with_another_nonce_name_or_time_out_is_refused() {
    let changes: [fn(&mut Special); 5] = [
        |echo| echo.nonce ^= 1,
        |echo| echo.source = OTHER,
        |echo| echo.entity += 1,
        |echo| echo.k_a_tov_ms += 1,
        |echo| echo.changed = false,
    ];
    for change in changes {
        let (mut near, mut far) = pair();
        let request = special(&near.input(Input::Connected(1)));
        far.input(Input::Connected(1));
        let mut echo = special(&far.input(Input::Special(1, request)));
        change(&mut echo);
        assert_eq!(near.input(Input::Special(1, echo)), [Output::Close(1, Ending::WrongEcho)], "{echo:?}");
    }
}

#[test]
fn a_replayed_special_frame_is_refused_by_its_nonce() {
    let (mut near, mut far) = pair();
    let request = special(&near.input(Input::Connected(1)));
    far.input(Input::Connected(1));
    far.input(Input::Special(1, request));
    far.input(Input::Connected(2));
    assert_eq!(far.input(Input::Special(2, request)), [Output::Close(2, Ending::UsedNonce)]);
    assert_eq!(far.tunnel.connection(), Some(1), "the link is unaffected");
}

#[test]
fn a_newer_connection_of_the_same_end_replaces_a_dead_one_and_takes_the_link_down_first() {
    let (mut near, mut far) = pair();
    linked(&mut near, &mut far, 1);
    near.input(Input::Closed(1));
    near.pass(RETRY);
    let [_, accepted] = linked(&mut near, &mut far, 2);
    let expected =
        [Output::Close(1, Ending::Replaced), Output::Down(Ending::Replaced), Output::Up { connection: 2, peer: NEAR }];
    assert_eq!(accepted[1..], expected);
}

#[test]
fn a_stranger_does_not_replace_a_link() {
    let (mut near, mut far) = pair();
    linked(&mut near, &mut far, 1);
    let request = special(&End::new(config(Role::Connects, OTHER)).input(Input::Connected(2)));
    far.input(Input::Connected(2));
    let outputs = far.input(Input::Special(2, request));
    assert_eq!(outputs[1..], [Output::Close(2, Ending::WrongPeer(OTHER))]);
    assert_eq!(far.tunnel.connection(), Some(1));
}

#[test]
fn a_frame_older_than_r_a_tov_is_dropped_and_one_without_time_stamp_is_not() {
    let (mut near, mut far) = pair();
    linked(&mut near, &mut far, 1);
    let sent = near.tunnel.stamp(near.now);
    far.now += R_A_TOV;
    assert_eq!(far.frame(1, sent), Admission::Deliver);
    far.now += Span::from_ms(1);
    assert_eq!(far.frame(1, sent), Admission::Stale);
    assert_eq!(far.frame(1, Stamp::NONE), Admission::Deliver);
    assert_eq!(far.frame(2, sent), Admission::NotUp);
    let counters = far.tunnel.counters();
    assert_eq!((counters.stale, counters.unstamped, counters.max_age_ns), (1, 1, R_A_TOV.as_ns()));
}

#[test]
fn an_idle_link_is_asked_after_k_a_tov_and_closed_after_two() {
    let (mut near, mut far) = pair();
    linked(&mut near, &mut far, 1);
    let outputs = near.pass(K_A_TOV);
    assert_eq!(outputs, [Output::KeepAlive(1, KeepAlive::Request)]);
    assert_eq!(far.input(Input::KeepAlive(1, KeepAlive::Request)), [Output::KeepAlive(1, KeepAlive::Accept)]);
    assert_eq!(near.input(Input::KeepAlive(1, KeepAlive::Accept)), []);
    let outputs = near.pass(K_A_TOV.times(2));
    let expected =
        [Output::KeepAlive(1, KeepAlive::Request), Output::Close(1, Ending::Silent), Output::Down(Ending::Silent)];
    assert_eq!(outputs, expected);
    assert_eq!(near.pass(RETRY), [Output::Connect]);
}

#[test]
fn frames_replace_keep_alives() {
    let (mut near, mut far) = pair();
    linked(&mut near, &mut far, 1);
    for _ in 0..10 {
        assert_eq!(near.pass(K_A_TOV.times(9).as_ns().checked_div(10).map_or(K_A_TOV, Span::from_ns)), []);
        let stamp = near.tunnel.stamp(near.now);
        near.frame(1, stamp);
    }
    assert_eq!(near.tunnel.counters().keep_alives, 0);
}

#[test]
fn the_listening_end_takes_the_keep_alive_time_of_the_other_end() {
    let mut near = End::new(TunnelConfig { k_a_tov: Span::from_secs(3), ..config(Role::Connects, NEAR) });
    let mut far = End::new(config(Role::Listens, FAR));
    linked(&mut near, &mut far, 1);
    assert_eq!(far.pass(Span::from_secs(3)), [Output::KeepAlive(1, KeepAlive::Request)]);
}

#[test]
fn a_connection_without_a_special_frame_is_closed_after_90_s() {
    let mut far = End::new(config(Role::Listens, FAR));
    far.input(Input::Connected(1));
    assert_eq!(far.pass(Span::from_secs(89)), []);
    assert_eq!(far.pass(Span::from_secs(1)), [Output::Close(1, Ending::OpeningTimeout)]);
    assert_eq!(OPENING_LIMIT, Span::from_secs(90));
}

#[test]
fn every_state_has_an_answer_to_every_event() {
    type Reach = fn(&mut End, &mut End);
    let states: [(&str, Role, Reach); 7] = [
        ("disabled", Role::Connects, |end, _| drop(end.input(Input::Disable))),
        ("connecting", Role::Connects, |_, _| {}),
        ("waits to retry", Role::Connects, |end, _| drop(end.input(Input::Refused))),
        ("waits for echo", Role::Connects, |end, _| drop(end.input(Input::Connected(1)))),
        ("listens", Role::Listens, |_, _| {}),
        ("waits for request", Role::Listens, |end, _| drop(end.input(Input::Connected(1)))),
        ("up", Role::Listens, |end, other| drop(linked(other, end, 1))),
    ];
    type Happen = fn(&mut End, Special) -> Vec<Output>;
    let events: [(&str, Happen); 13] = [
        ("enable", |end, _| end.input(Input::Enable)),
        ("disable", |end, _| end.input(Input::Disable)),
        ("connected 1", |end, _| end.input(Input::Connected(1))),
        ("connected 2", |end, _| end.input(Input::Connected(2))),
        ("refused", |end, _| end.input(Input::Refused)),
        ("special 1", |end, special| end.input(Input::Special(1, special))),
        ("special 2", |end, special| end.input(Input::Special(2, special))),
        ("LKA", |end, _| end.input(Input::KeepAlive(1, KeepAlive::Request))),
        ("frame before link", |end, _| end.input(Input::Unexpected(1))),
        ("lost boundaries", |end, _| end.input(Input::Lost(1))),
        ("closed 1", |end, _| end.input(Input::Closed(1))),
        ("closed 2", |end, _| end.input(Input::Closed(2))),
        ("100 s pass", |end, _| end.pass(Span::from_secs(100))),
    ];
    let mut table = String::new();
    for (state, role, reach) in states {
        for (event, happen) in events {
            let mut end = End::new(config(role, FAR));
            let mut other = End::new(config(Role::Connects, NEAR));
            reach(&mut end, &mut other);
            let request = special(&End::new(config(Role::Connects, NEAR)).input(Input::Connected(9)));
            let request = Special { nonce: 1, ..request };
            let outputs: Vec<String> = happen(&mut end, request).iter().map(word).collect();
            let outputs = if outputs.is_empty() { "-".to_owned() } else { outputs.join("; ") };
            writeln!(table, "{state:17} | {event:17} | {:10} | {outputs}", end.tunnel.phase().name()).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

fn word(output: &Output) -> String {
    match output {
        Output::Connect => "connect".into(),
        Output::Special(id, special) => format!("special {id}{}", if special.changed { " changed" } else { "" }),
        Output::KeepAlive(id, kind) => format!("{kind:?} {id}"),
        Output::Close(id, ending) => format!("close {id} ({})", ending.name()),
        Output::Up { connection, .. } => format!("up {connection}"),
        Output::Down(_) => "down".into(),
    }
}

/// An encapsulated frame with a number in its payload; the payload may resemble a header.
fn frame(number: u8, words: usize, deceptive: bool) -> Vec<u8> {
    let mut content = vec![number; 24 + 4 * words];
    if deceptive && words >= 7 {
        content[24..52].copy_from_slice(&fcip::Head { flags: 0, words: 20, stamp: Stamp(1) }.to_bytes());
    }
    let mut bytes = Vec::new();
    Encapsulated { flags: 0, stamp: Stamp(1), sof_code: 0x2e, frame: &content, crc: [0; 4], eof_code: 0x42 }
        .emit(&mut bytes);
    bytes
}

/// Frames that a framer finds in a stream that arrives in chunks, and whether it gave up.
fn found(stream: &[u8], chunk: usize) -> (Vec<Vec<u8>>, bool, Framer) {
    let (mut framer, mut frames, mut unread) = (Framer::new(), Vec::new(), Vec::new());
    for piece in stream.chunks(chunk) {
        unread.extend_from_slice(piece);
        loop {
            let taken = match framer.next(&unread) {
                Step::Need(needed) => {
                    assert!(needed > unread.len(), "{needed} bytes are there");
                    break;
                }
                Step::Skip(bytes) => bytes,
                Step::Frame(frame) => {
                    frames.push(unread[..frame.encoded_len()].to_vec());
                    frame.encoded_len()
                }
                Step::Special(_) => fcip::SPECIAL_BYTES,
                Step::Lost => return (frames, true, framer),
            };
            assert!(taken > 0);
            unread.drain(..taken);
        }
    }
    (frames, false, framer)
}

#[test]
fn a_stream_without_frames_is_given_up_after_its_limit() {
    let noise: Vec<u8> = (0..2 * RESYNC_LIMIT_BYTES).map(|at| (at * 7) as u8).collect();
    let (frames, lost, framer) = found(&noise, 1_000);
    assert!(frames.is_empty() && lost);
    assert!((1..=RESYNC_LIMIT_BYTES as u64 + 1_000).contains(&framer.skipped_bytes()));
}

proptest! {
    #[test]
    fn whole_frames_are_found_in_any_chunks(
        sizes in prop::collection::vec(0..100_usize, 1..20),
        chunk in 1..500_usize,
    ) {
        let frames: Vec<Vec<u8>> = (0..).zip(&sizes).map(|(number, words)| frame(number, *words, true)).collect();
        let (found, lost, framer) = found(&frames.concat(), chunk);
        prop_assert_eq!((found, lost, framer.losses()), (frames, false, 0));
    }

    #[test]
    fn after_damage_only_frames_that_were_sent_are_found_and_all_but_the_damaged_ones(
        sizes in prop::collection::vec(7..100_usize, 4..20),
        chunk in 1..500_usize,
        (damaged, byte, bits) in (0..3_usize, 0..16_usize, 1..=255_u8),
    ) {
        let mut frames: Vec<Vec<u8>> = (0..).zip(&sizes).map(|(number, words)| frame(number, *words, true)).collect();
        let sent = frames.clone();
        frames[damaged][byte] ^= bits;
        // Until the next header, the last frame does not count.
        let mut stream = frames.concat();
        stream.extend(&frame(99, 0, false)[..fcip::HEADER_BYTES]);
        let (found, lost, framer) = found(&stream, chunk);
        prop_assert!(!lost && framer.losses() >= 1);
        let expected: Vec<Vec<u8>> =
            (0..).zip(&sent).filter(|(number, _)| *number != damaged).map(|(_, frame)| frame.clone()).collect();
        prop_assert_eq!(found, expected);
    }
}
