//! Transition table of the zone transaction machine: every state with every event.

use crate::zone_versions::{version, versions};
use sanloom_fc::ils::{Outcome, Peer, Request, Send};
use sanloom_fc::zoning::server::{Input, Output, TransactionState, ZoneChange, ZoneServer, ZoneServerConfig};
use sanloom_fc::zoning::{ZoneDatabase, Zones};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::{
    SfcOperation, SwIls, SwRjt, SwRjtExplanation, SwRjtReason, ZoneReason, ZoneReply, ZoneStatus,
};
use sanloom_wire::{Message, Wwnn};

const NAMES: &[&str] = &["zone"];
const OWN: u8 = 2;
/// Neighbour on port 1, which precedes this switch, and neighbour on port 3, which follows it.
const OTHERS: [(u8, Wwnn); 2] = [(1, Wwnn(0x1000_0000_0000_0001)), (3, Wwnn(0x1000_0000_0000_0003))];

/// Switch 2 of three in a row, with its unanswered requests.
struct Bench {
    now: Instant,
    server: ZoneServer,
    open: Vec<(Peer, u32)>,
}

fn zones(number: u64) -> Zones {
    Zones::new(version(NAMES, number))
}

impl Bench {
    /// Domains are known, both links have merged, version 1 is in force.
    fn new() -> Bench {
        let server = ZoneServer::new(ZoneServerConfig::default(), zones(1));
        let mut bench = Bench { now: Instant::ZERO, server, open: Vec::new() };
        bench.step(Input::Domain(Some(OWN)));
        for (domain, neighbour) in OTHERS {
            let port = u16::from(domain);
            bench.step(Input::LinkUp { port, neighbour });
            bench.answer(Peer::Link(port), ZoneReply::DONE.into());
            bench.merge(port, &zones(1));
        }
        bench.step(Input::Domains(OTHERS.to_vec()));
        bench
    }

    fn step(&mut self, input: Input) -> Vec<String> {
        self.server.handle(self.now, input);
        let mut emitted = Vec::new();
        while let Some(output) = self.server.poll_output() {
            emitted.push(match output {
                Output::Send(Send::Request { to, message, tag }) => {
                    self.open.push((to, tag));
                    format!("{message} to {}", name(to))
                }
                Output::Send(Send::Answer { message, .. }) => message.to_string(),
                Output::Send(Send::Notice { message, .. }) => format!("notice {message}"),
                Output::Send(Send::Withdraw { .. }) => "withdraw".into(),
                Output::Changed { zones, effective } => {
                    format!("version {:?}{}", versions(zones.database()), if effective { " in force" } else { "" })
                }
                Output::LinkMerged { port } => format!("port {port} merged"),
                Output::Isolate { port, .. } => format!("port {port} isolated"),
                Output::ChangeDone { result: Ok(()), .. } => "change done".to_owned(),
                Output::ChangeDone { result: Err(failures), .. } => format!("change failed: {}", failures[0]),
            });
        }
        emitted
    }

    fn request(&mut self, from: Peer, ils: SwIls) -> Vec<String> {
        self.step(Input::Request { request: Request { from, port: 0, ox_id: 9 }, message: ils.into() })
    }

    fn merge(&mut self, port: u16, zones: &Zones) -> Vec<String> {
        self.request(Peer::Link(port), SwIls::Mr(zones.wire().clone()))
    }

    /// Answers the last request to `from`.
    fn answer(&mut self, from: Peer, message: SwIls) -> Vec<String> {
        self.outcome(from, Outcome::Answered(Message::from(message)))
    }

    fn outcome(&mut self, from: Peer, outcome: Outcome) -> Vec<String> {
        match self.open.iter().rposition(|(peer, _)| *peer == from) {
            Some(at) => {
                let (_, tag) = self.open.remove(at);
                self.step(Input::Outcome { tag, outcome })
            }
            None => vec!["-".to_owned()],
        }
    }

    fn wait(&mut self, span: Span) -> Vec<String> {
        self.now += span;
        self.step(Input::Timeout)
    }

    fn change(&mut self) -> Vec<String> {
        self.step(Input::Change { tag: 7, change: ZoneChange::Replace(version(NAMES, 2)) })
    }

    fn all_done(&mut self) {
        for (domain, _) in OTHERS {
            self.answer(Peer::Domain(domain), ZoneReply::DONE.into());
        }
    }

    fn in_state(state: TransactionState) -> Bench {
        use TransactionState::*;
        let mut bench = Bench::new();
        match state {
            Free => {}
            Waiting => {
                bench.change();
                bench.answer(Peer::Domain(1), BUSY_CHANGING.into());
                bench.all_done();
                bench.all_done();
            }
            Locking => _ = bench.change(),
            Staging | Updating | Releasing => {
                bench.change();
                bench.all_done();
                if state != Staging {
                    bench.all_done();
                }
                if state == Releasing {
                    bench.all_done();
                }
            }
            Locked | Staged | Updated => {
                bench.request(Peer::Domain(1), acquire(1));
                if state != Locked {
                    bench.request(Peer::Domain(1), stage(3));
                }
                if state == Updated {
                    bench.request(Peer::Domain(1), SwIls::Ufc);
                }
            }
        }
        assert_eq!(bench.server.state(), state);
        bench
    }
}

const BUSY: ZoneReply = ZoneReply::new(ZoneStatus::BUSY, ZoneReason::NONE);
const BUSY_CHANGING: ZoneReply = ZoneReply::new(ZoneStatus::BUSY, ZoneReason::FABRIC_CHANGING);
const FAILED: ZoneReply = ZoneReply::new(ZoneStatus::FAILED, ZoneReason::INVALID_DATA);

fn acquire(manager: u8) -> SwIls {
    SwIls::Aca([1, 2, 3].into_iter().filter(|domain| *domain != manager).collect())
}

fn stage(number: u64) -> SwIls {
    SwIls::Sfc { operation: SfcOperation::ACTIVATE, zones: zones(number).wire().clone() }
}

fn name(peer: Peer) -> String {
    match peer {
        Peer::Link(port) => format!("port {port}"),
        Peer::Domain(domain) => format!("domain {domain}"),
    }
}

type Event = (&'static str, fn(&mut Bench) -> Vec<String>);

const EVENTS: &[Event] = &[
    ("change", |b| b.change()),
    ("ACA from 1", |b| b.request(Peer::Domain(1), acquire(1))),
    ("ACA from 3", |b| b.request(Peer::Domain(3), acquire(3))),
    ("ACA from 1, other list", |b| b.request(Peer::Domain(1), SwIls::Aca(vec![2, 3, 4]))),
    ("SFC from 1", |b| b.request(Peer::Domain(1), stage(3))),
    ("SFC from 1, bad", |b| {
        let empty = Zones::new(version(&["9"], 3));
        b.request(Peer::Domain(1), SwIls::Sfc { operation: SfcOperation::ACTIVATE, zones: empty.wire().clone() })
    }),
    ("SFC from 3", |b| b.request(Peer::Domain(3), stage(3))),
    ("UFC from 1", |b| b.request(Peer::Domain(1), SwIls::Ufc)),
    ("UFC from 3", |b| b.request(Peer::Domain(3), SwIls::Ufc)),
    ("RCA from 1", |b| b.request(Peer::Domain(1), SwIls::Rca)),
    ("RCA from 3", |b| b.request(Peer::Domain(3), SwIls::Rca)),
    ("MR, version 1", |b| b.merge(3, &zones(1))),
    ("MR, version 2", |b| b.merge(3, &zones(2))),
    ("MR, version 3", |b| b.merge(3, &zones(3))),
    ("MR, no zones", |b| b.merge(3, &Zones::new(ZoneDatabase::default()))),
    ("MR from a new link", |b| {
        b.step(Input::LinkUp { port: 4, neighbour: Wwnn(0x1000_0000_0000_0004) });
        b.open.retain(|(peer, _)| *peer != Peer::Link(4));
        b.merge(4, &zones(1))
    }),
    ("done by 3", |b| b.answer(Peer::Domain(3), ZoneReply::DONE.into())),
    ("done by all", |b| {
        let first = b.answer(Peer::Domain(1), ZoneReply::DONE.into());
        [first, b.answer(Peer::Domain(3), ZoneReply::DONE.into())].concat()
    }),
    ("busy 3", |b| b.answer(Peer::Domain(3), BUSY.into())),
    ("busy 3, fabric changing", |b| b.answer(Peer::Domain(3), BUSY_CHANGING.into())),
    ("refused by 3", |b| b.answer(Peer::Domain(3), FAILED.into())),
    ("rejected by 3", |b| {
        let reject = SwRjt::new(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED);
        b.answer(Peer::Domain(3), reject.into())
    }),
    ("no answer of 3", |b| b.outcome(Peer::Domain(3), Outcome::Unanswered)),
    ("1 gone", |b| b.step(Input::Domains(vec![OTHERS[1]]))),
    ("4 comes", |b| b.step(Input::Domains(vec![OTHERS[0], OTHERS[1], (4, Wwnn(0x1000_0000_0000_0004))]))),
    ("half a second", |b| b.wait(Span::from_ms(500))),
    ("half a minute", |b| b.wait(Span::from_secs(30))),
    ("90 seconds", |b| b.wait(Span::from_secs(90))),
];

const STATES: [TransactionState; 9] = [
    TransactionState::Free,
    TransactionState::Waiting,
    TransactionState::Locking,
    TransactionState::Staging,
    TransactionState::Updating,
    TransactionState::Releasing,
    TransactionState::Locked,
    TransactionState::Staged,
    TransactionState::Updated,
];

#[test]
fn every_state_has_an_answer_to_every_event() {
    let mut table = String::new();
    for state in STATES {
        table += &format!("{state}\n");
        for (event, act) in EVENTS {
            let mut bench = Bench::in_state(state);
            let emitted = act(&mut bench);
            let next = bench.server.state();
            let next = if next == state { String::new() } else { format!("-> {next} ") };
            table += &format!("  {event:<24} {next}{}\n", emitted.join(", "));
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn requests_from_the_wrong_peer_and_other_commands_are_rejected() {
    let mut bench = Bench::new();
    for (from, ils) in [
        (Peer::Domain(1), SwIls::Mr(zones(1).wire().clone())),
        (Peer::Link(1), SwIls::Ufc),
        (Peer::Link(1), SwIls::Bf),
        (Peer::Domain(1), SwIls::Other { command: 0x77, body: [0; 3].into() }),
    ] {
        assert_eq!(bench.request(from, ils), ["SW_RJT: protocol error, no additional explanation"]);
    }
}
