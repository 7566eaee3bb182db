//! Exchange of link parameters: two ends against each other, and every state with every event as a
//! snapshot table.

use sanloom_fc::eport::{EPort, EPortConfig, Input, Output, State};
use sanloom_fc::ils::{Outcome, Peer, Request, Send};
use sanloom_fc::isolation::Isolation;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::{
    Elp, Esc, EscAcc, EscProtocol, FlowControl, SwAcc, SwIls, SwRjt, SwRjtExplanation as Why, SwRjtReason as Reason,
};
use sanloom_wire::{Message, Wwnn, Wwpn};
use std::fmt::Write;

const OURS: u64 = 0x20;
const RETRY: Span = Span::from_secs(5);

fn config(switch: u64) -> EPortConfig {
    EPortConfig {
        port: switch as u16,
        port_name: Wwpn(0x2000_0000_0000_0000 + switch),
        switch_name: Wwnn(switch),
        r_a_tov: Span::from_secs(10),
        e_d_tov: Span::from_secs(2),
        bb_credit: switch as u32,
        bb_sc_n: 0,
        receive_size_bytes: 2112,
        classes: [false, true, true],
        flow_control: vec![FlowControl::R_RDY, FlowControl::VENDOR],
        retry: RETRY,
        vendor: *b"SANLOOM ",
    }
}

/// Two ports and the wire between them. Time only advances on request.
struct Link {
    now: Instant,
    ends: [EPort; 2],
    /// Requests in transit: receiving end, message, and tag of the sender.
    requests: Vec<(usize, SwIls, u32)>,
    /// Answers in transit.
    answers: Vec<(usize, SwIls, u32)>,
    log: [Vec<String>; 2],
    /// Number of ESCs sent by each end.
    offers: [usize; 2],
}

impl Link {
    fn new(configs: [EPortConfig; 2]) -> Link {
        let mut link = Link {
            now: Instant::ZERO,
            ends: configs.map(EPort::new),
            requests: Vec::new(),
            answers: Vec::new(),
            log: [Vec::new(), Vec::new()],
            offers: [0; 2],
        };
        link.input(0, Input::LinkUp);
        link.input(1, Input::LinkUp);
        link
    }

    fn input(&mut self, end: usize, input: Input) {
        self.ends[end].handle(self.now, input);
        while let Some(output) = self.ends[end].poll_output() {
            match output {
                Output::Send(Send::Request { message, tag, .. }) => {
                    let message = unwrap(message);
                    self.offers[end] += usize::from(matches!(message, SwIls::Esc(_)));
                    self.requests.push((1 - end, message, tag));
                }
                Output::Send(Send::Answer { request, message }) => {
                    self.answers.push((1 - end, unwrap(message), request.ox_id.into()));
                }
                Output::Send(Send::Notice { .. } | Send::Withdraw { .. }) => {
                    unreachable!("every message here has an answer")
                }
                Output::Up(neighbour) => self.log[end].push(format!("up {}", neighbour.flow_control)),
                Output::Down => self.log[end].push("down".into()),
                Output::Isolated(reason) => self.log[end].push(reason.name().into()),
            }
        }
    }

    /// Delivers everything, with answers last or first.
    fn run_until_quiet(&mut self, answers_first: bool) {
        for _ in 0..100 {
            let answer = (answers_first || self.requests.is_empty()) && !self.answers.is_empty();
            if answer {
                let (end, message, tag) = self.answers.remove(0);
                self.input(end, Input::Outcome { tag, outcome: Outcome::Answered(message.into()) });
            } else if !self.requests.is_empty() {
                let (end, message, tag) = self.requests.remove(0);
                self.input(end, Input::Request { request: request(tag as u16), message });
            } else {
                return;
            }
        }
        panic!("no rest: {:?}", self.log);
    }

    /// Runs until neither end has a timer.
    fn run(&mut self, answers_first: bool) {
        self.run_until_quiet(answers_first);
        for _ in 0..10 {
            let Some(next) = self.ends.iter().filter_map(EPort::poll_timeout).min() else { return };
            self.now = next;
            for end in 0..2 {
                self.input(end, Input::Timeout);
            }
            self.run_until_quiet(answers_first);
        }
    }

    fn names(&self) -> [String; 2] {
        [0, 1].map(|end: usize| match self.ends[end].state() {
            State::Up(neighbour) => format!("up {}", neighbour.switch_name.0),
            State::Isolated(reason) => reason.name().into(),
            other => format!("{other:?}"),
        })
    }
}

fn unwrap(message: Message) -> SwIls {
    match message {
        Message::SwIls(ils) => *ils,
        other => panic!("{other}"),
    }
}

fn request(ox_id: u16) -> Request {
    Request { from: Peer::Link(OURS as u16), port: OURS as u16, ox_id }
}

#[test]
fn two_ends_come_up_once_whichever_message_is_faster() {
    for answers_first in [false, true] {
        let mut link = Link::new([config(0x20), config(0x30)]);
        link.run(answers_first);
        assert_eq!(link.log, [["up R_RDY"], ["up R_RDY"]]);
        let [State::Up(ours), State::Up(theirs)] = [link.ends[0].state(), link.ends[1].state()] else { panic!() };
        assert_eq!(
            (ours.switch_name, ours.bb_credit, theirs.switch_name, theirs.bb_credit),
            (Wwnn(0x30), 0x30, Wwnn(0x20), 0x20)
        );
        assert_eq!(link.ends.iter().map(EPort::requests_rejected).sum::<u64>(), 0);
        assert_eq!(link.offers, [0, 1], "the end whose ELP counted offers FSPF, once");
    }
}

#[test]
fn both_ends_use_the_larger_bb_sc_n_unless_one_has_none() {
    for (low, high, expected) in [(0, 0, 0), (4, 0, 0), (0, 4, 0), (4, 8, 8), (8, 4, 8)] {
        let with = |switch, bb_sc_n| EPortConfig { bb_sc_n, ..config(switch) };
        let mut link = Link::new([with(0x20, low), with(0x30, high)]);
        link.run(false);
        let [State::Up(ours), State::Up(theirs)] = [link.ends[0].state(), link.ends[1].state()] else { panic!() };
        assert_eq!([ours.bb_sc_n, theirs.bb_sc_n], [expected; 2], "{low} and {high}");
    }
}

#[test]
fn a_common_flow_control_mode_is_found_or_both_ends_isolate_for_lack_of_one() {
    use FlowControl as F;
    let cases: [(&[F], &[F], &str); 5] = [
        (&[F::R_RDY], &[F::VENDOR, F::R_RDY], "up R_RDY"),
        (&[F::VENDOR, F::R_RDY], &[F::R_RDY], "up R_RDY"),
        (&[F::VENDOR], &[F::R_RDY, F::VENDOR], "up vendor specific"),
        // The GUPFS report: a switch that supports only the vendor's mode, connected to one that
        // supports only R_RDY.
        (&[F::VENDOR], &[F::R_RDY], "flow-control"),
        (&[F::R_RDY], &[F::VENDOR], "flow-control"),
    ];
    for (low, high, expected) in cases {
        for answers_first in [false, true] {
            let with = |switch, modes: &[F]| EPortConfig { flow_control: modes.to_vec(), ..config(switch) };
            let mut link = Link::new([with(0x20, low), with(0x30, high)]);
            link.run(answers_first);
            let last: Vec<_> = link.log.iter().map(|log| log.last().map(String::as_str)).collect();
            assert_eq!(last, [Some(expected); 2], "{low:?} {high:?} {answers_first} {:?}", link.log);
        }
    }
}

#[test]
fn parameters_that_do_not_fit_isolate_both_ends_for_the_same_reason() {
    type Case = (fn(&mut EPortConfig), &'static str);
    let cases: [Case; 5] = [
        (|c| c.r_a_tov = Span::from_secs(11), "timer-mismatch"),
        (|c| c.e_d_tov = Span::from_ms(2001), "timer-mismatch"),
        (|c| c.receive_size_bytes = 128, "class-f-parameters"),
        (|c| c.switch_name = Wwnn(0x20), "loopback"),
        (|c| c.flow_control = Vec::new(), "flow-control"),
    ];
    for (spoil, expected) in cases {
        for swap in [false, true] {
            let mut other = config(0x30);
            spoil(&mut other);
            let configs = if swap { [other, config(0x20)] } else { [config(0x20), other] };
            let mut link = Link::new(configs);
            link.run(false);
            assert_eq!(link.names(), [expected; 2]);
        }
    }
}

#[test]
fn an_isolated_link_recovers_when_both_ends_retry_in_either_order() {
    for first in [0, 1] {
        let mut link = Link::new([config(0x20), config(0x30)]);
        link.run(false);
        for end in 0..2 {
            link.input(end, Input::Isolate(Isolation::ZoneMerge { conflict: "zone a".into() }));
        }
        link.input(first, Input::Retry);
        link.run(false);
        assert_eq!(link.names()[first], "other-side");
        link.input(1 - first, Input::Retry);
        link.run(false);
        assert_eq!(link.names(), ["up 48", "up 32"]);
    }
}

#[test]
fn lost_messages_are_repeated() {
    // First all requests are lost, then the accept; after that everything arrives.
    let mut link = Link::new([config(0x20), config(0x30)]);
    let lost: Vec<_> = link.requests.drain(..).collect();
    for (to, _, tag) in lost {
        link.input(1 - to, Input::Outcome { tag, outcome: Outcome::Unanswered });
    }
    assert_eq!(link.ends[0].poll_timeout(), Some(link.now + RETRY));
    link.now += RETRY;
    link.input(1, Input::Timeout);
    let (to, message, tag) = link.requests.remove(0);
    link.input(to, Input::Request { request: request(1), message: message.clone() });
    link.answers.clear();
    // The exchange table repeats the request.
    link.input(to, Input::Request { request: request(2), message });
    let (_, accept, _) = link.answers.remove(0);
    link.input(1, Input::Outcome { tag, outcome: Outcome::Answered(accept.into()) });
    link.run(false);
    assert_eq!(link.log, [["up R_RDY"], ["up R_RDY"]]);
}

#[test]
fn a_neighbour_that_restarts_takes_the_link_down_and_up() {
    let mut link = Link::new([config(0x20), config(0x30)]);
    link.run(false);
    link.now += Span::from_secs(60);
    link.ends[1] = EPort::new(config(0x30));
    link.input(1, Input::LinkUp);
    link.run(false);
    assert_eq!(link.log[0], ["up R_RDY", "down", "up R_RDY"]);
    assert_eq!(link.names(), ["up 48", "up 32"]);
}

struct Bench {
    now: Instant,
    port: EPort,
    tag: u32,
    emitted: Vec<String>,
}

impl Bench {
    fn input(&mut self, input: Input) {
        self.port.handle(self.now, input);
        while let Some(output) = self.port.poll_output() {
            let text = match output {
                Output::Send(Send::Request { message, tag, .. }) => {
                    self.tag = tag;
                    describe(&unwrap(message))
                }
                Output::Send(Send::Answer { message, .. }) => describe(&unwrap(message)),
                Output::Send(Send::Notice { .. } | Send::Withdraw { .. }) => {
                    unreachable!("every message here has an answer")
                }
                Output::Up(neighbour) => format!("up {:x}", neighbour.switch_name.0),
                Output::Down => "down".into(),
                Output::Isolated(reason) => format!("isolated: {}", reason.name()),
            };
            self.emitted.push(text);
        }
    }

    fn receive(&mut self, message: SwIls) {
        self.input(Input::Request { request: request(9), message });
    }

    fn offered(&mut self, switch: u64, change: fn(&mut Elp)) {
        let mut elp = parameters(switch);
        change(&mut elp);
        self.receive(SwIls::Elp(Box::new(elp)));
    }

    fn answer(&mut self, answer: SwIls) {
        self.input(Input::Outcome { tag: self.tag, outcome: Outcome::Answered(answer.into()) });
    }

    fn accept(&mut self, change: fn(&mut Elp)) {
        let mut elp = parameters(0x10);
        change(&mut elp);
        self.answer(SwIls::SwAcc(SwAcc::Elp(Box::new(elp))));
    }

    fn choose(&mut self, id: u16) {
        let protocol = EscProtocol { vendor: [0; 8], id };
        self.answer(SwIls::SwAcc(SwAcc::Esc(EscAcc { vendor: [0; 8], protocol })));
    }

    fn reject(&mut self, why: Why) {
        self.answer(SwRjt::new(Reason::UNABLE, why).into());
    }
}

/// ELP of a switch.
fn parameters(switch: u64) -> Elp {
    let mut port = EPort::new(config(switch));
    port.handle(Instant::ZERO, Input::LinkUp);
    let Some(Output::Send(Send::Request { message, .. })) = port.poll_output() else { panic!("ELP is sent at once") };
    let SwIls::Elp(elp) = unwrap(message) else { panic!("ELP") };
    *elp
}

fn describe(message: &SwIls) -> String {
    match message {
        SwIls::Elp(elp) => format!("ELP {}", elp.flow_control.0),
        SwIls::SwAcc(_) => "accept".into(),
        SwIls::SwRjt(reject) => format!("reject {:02x}/{:02x}", reject.reason.0, reject.explanation.0),
        other => other.to_string(),
    }
}

#[test]
fn every_state_has_an_answer_to_every_event() {
    type Step = (&'static str, fn(&mut Bench));
    let states: [Step; 9] = [
        ("down", |_| {}),
        ("asking", |b| b.input(Input::LinkUp)),
        ("waiting", |b| {
            b.input(Input::LinkUp);
            b.reject(Why::COMMAND_IN_PROGRESS);
        }),
        ("up", |b| {
            b.input(Input::LinkUp);
            b.accept(|_| {});
        }),
        ("up, by their ELP", |b| {
            b.input(Input::LinkUp);
            b.offered(0x30, |_| {});
        }),
        ("up for long", |b| {
            b.input(Input::LinkUp);
            b.accept(|_| {});
            b.now += Span::from_secs(60);
        }),
        ("isolated, timers", |b| {
            b.input(Input::LinkUp);
            b.reject(Why::TOV_MISMATCH);
        }),
        ("isolated, other side", |b| {
            b.input(Input::LinkUp);
            b.reject(Why::E_PORT_ISOLATED);
        }),
        ("isolated, domains", |b| {
            b.input(Input::LinkUp);
            b.accept(|_| {});
            b.input(Input::Isolate(Isolation::DomainOverlap));
        }),
    ];
    fn esc(id: u16) -> SwIls {
        SwIls::Esc(Esc { vendor: [0; 8], protocols: vec![EscProtocol { vendor: [0; 8], id }] })
    }
    let events: [Step; 27] = [
        ("link up", |b| b.input(Input::LinkUp)),
        ("link down", |b| b.input(Input::LinkDown)),
        ("ELP, lower name", |b| b.offered(0x10, |_| {})),
        ("ELP, higher name", |b| b.offered(0x30, |_| {})),
        ("ELP, own name", |b| b.offered(OURS, |_| {})),
        ("ELP, other timers", |b| b.offered(0x30, |elp| elp.e_d_tov_ms = 1)),
        ("ELP, no class F", |b| b.offered(0x30, |elp| elp.class_f.flags = [0; 6])),
        ("ELP, small class 3", |b| b.offered(0x30, |elp| elp.classes[2].receive_size_bytes = 128)),
        ("ELP, unknown mode", |b| b.offered(0x30, |elp| elp.flow_control = FlowControl(9))),
        ("ESC with FSPF", |b| b.receive(esc(EscProtocol::FSPF))),
        ("ESC without", |b| b.receive(esc(0x100))),
        ("BF", |b| b.receive(SwIls::Bf)),
        ("accept", |b| b.accept(|_| {})),
        ("accept, other mode", |b| b.accept(|elp| elp.flow_control = FlowControl::VENDOR)),
        ("accept, other timers", |b| b.accept(|elp| elp.r_a_tov_ms = 1)),
        ("reject, in progress", |b| b.reject(Why::COMMAND_IN_PROGRESS)),
        ("reject, mode", |b| b.reject(Why::FLOW_CONTROL_MODE)),
        ("reject, timers", |b| b.reject(Why::TOV_MISMATCH)),
        ("reject, isolated", |b| b.reject(Why::E_PORT_ISOLATED)),
        ("accept, FSPF", |b| b.choose(EscProtocol::FSPF)),
        ("accept, other path", |b| b.choose(0x100)),
        ("reject, no protocol", |b| b.reject(Why::NOT_SUPPORTED)),
        ("reject, no such ILS", |b| b.answer(SwRjt::new(Reason::NOT_SUPPORTED, Why::NOT_SUPPORTED).into())),
        ("no answer", |b| b.input(Input::Outcome { tag: b.tag, outcome: Outcome::Unanswered })),
        ("timeout", |b| {
            b.now += RETRY;
            b.input(Input::Timeout);
        }),
        ("isolate", |b| b.input(Input::Isolate(Isolation::EfpRejected))),
        ("retry", |b| b.input(Input::Retry)),
    ];
    let mut table = String::new();
    for (state, reach) in states {
        for (event, happen) in events {
            let mut bench = Bench { now: Instant::ZERO, port: EPort::new(config(OURS)), tag: 0, emitted: Vec::new() };
            reach(&mut bench);
            bench.emitted.clear();
            happen(&mut bench);
            let emitted = if bench.emitted.is_empty() { "-".into() } else { bench.emitted.join("; ") };
            let then = match bench.port.state() {
                State::Down => "down".into(),
                State::Exchanging if bench.port.poll_timeout().is_some() => "waiting".into(),
                State::Exchanging => "asking".into(),
                State::Up(neighbour) => format!("up {:x}", neighbour.switch_name.0),
                State::Isolated(reason) => reason.name().into(),
            };
            writeln!(table, "{state:20} | {event:20} | {emitted:42} | {then}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
