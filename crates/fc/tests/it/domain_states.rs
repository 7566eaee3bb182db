//! Every phase of a domain manager with every event, as a snapshot table.

use sanloom_fc::domain::{DomainConfig, DomainManager, Input, Output};
use sanloom_fc::ils::{Outcome, Peer, Request, Send};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::{
    Efp, EfpRecord, Rdi, SwAcc, SwIls, SwRjt, SwRjtExplanation as Why, SwRjtReason as Reason, command,
};
use sanloom_wire::{Message, Wwnn};
use std::fmt::Write;

const US: Wwnn = Wwnn(0x50);
/// Neighbour at port 1.
const NEIGHBOUR: Wwnn = Wwnn(0x40);
/// Neighbour at port 2.
const OTHER: Wwnn = Wwnn(0x60);
const F_S_TOV: Span = Span::from_secs(5);

struct Bench {
    now: Instant,
    domain: DomainManager,
    requested: Vec<(u8, u16, u32)>,
    emitted: Vec<String>,
}

impl Bench {
    fn new(preferred: Option<u8>) -> Bench {
        let config = DomainConfig {
            switch_name: US,
            priority: 128,
            preferred,
            insistent: false,
            allow_rcf: true,
            auto_reconfigure: false,
            f_s_tov: F_S_TOV,
        };
        let domain = DomainManager::new(Instant::ZERO, config);
        let mut bench = Bench { now: Instant::ZERO, domain, requested: Vec::new(), emitted: Vec::new() };
        bench.drain();
        bench
    }

    fn input(&mut self, input: Input) {
        self.domain.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.domain.poll_output() {
            let text = match output {
                Output::Send(Send::Request { to: Peer::Link(port), message, tag }) => {
                    let Message::SwIls(ils) = message else { unreachable!("switches speak SW_ILS") };
                    self.requested.push((ils.command(), port, tag));
                    format!("{} to {port}", describe(&ils))
                }
                Output::Send(Send::Answer { message: Message::SwIls(ils), .. }) => describe(&ils),
                Output::Send(send) => format!("{send:?}"),
                Output::Domain(Some(domain)) => format!("domain {domain}"),
                Output::Domain(None) => "no domain".into(),
                Output::Principal { name, .. } => format!("principal {:x}", name.0),
                Output::Domains(list) => format!("{} domains", list.len()),
                Output::LinkReady { port } => format!("ready {port}"),
                Output::Isolate { port, reason } => format!("isolate {port}: {}", reason.name()),
                Output::FabricName(_) => continue,
            };
            self.emitted.push(text);
        }
    }

    fn up(&mut self, port: u16) {
        self.input(Input::LinkUp { port, neighbour: if port == 1 { NEIGHBOUR } else { OTHER } });
    }

    /// Advances the clock and fires all timers.
    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(at) = self.domain.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.input(Input::Timeout);
        }
        self.now = end;
    }

    fn receive(&mut self, port: u16, message: SwIls) {
        let request = Request { from: Peer::Link(port), port, ox_id: 7 };
        self.input(Input::Request { request, message });
    }

    /// Answers the last request of a kind at a port. Without such a request it does nothing.
    fn answered(&mut self, command: u8, port: u16, answer: SwIls) {
        if let Some(at) = self.requested.iter().rposition(|(requested, to, _)| (*requested, *to) == (command, port)) {
            let (.., tag) = self.requested.remove(at);
            self.input(Input::Outcome { tag, outcome: Outcome::Answered(answer.into()) });
        }
    }

    fn granted(&mut self, domain: u8) {
        self.answered(command::RDI, 1, SwIls::SwAcc(SwAcc::Rdi(Rdi { switch_name: US, domains: vec![domain] })));
    }
}

/// EFP of a switch with this principal, with the domains of these switches.
fn efp(principal: Wwnn, owners: &[(u8, Wwnn)]) -> Efp {
    let records = owners.iter().map(|(domain, owner)| EfpRecord::domain(*domain, *owner)).collect();
    Efp { principal_priority: 128, principal_name: principal, records }
}

fn describe(ils: &SwIls) -> String {
    let known = |efp: &Efp| format!("{:x}+{}", efp.principal_name.0, efp.records.len());
    match ils {
        SwIls::Efp(efp) => format!("EFP {}", known(efp)),
        SwIls::SwAcc(SwAcc::Efp(efp)) => format!("accept {}", known(efp)),
        SwIls::SwAcc(SwAcc::Rdi(rdi)) => format!("accept {:?}", rdi.domains),
        SwIls::Rdi(rdi) => format!("RDI {:?}", rdi.domains),
        SwIls::SwAcc(_) => "accept".into(),
        SwIls::SwRjt(reject) => format!("reject {:02x}/{:02x}", reject.reason.0, reject.explanation.0),
        other => other.to_string(),
    }
}

type Phase = (&'static str, fn() -> Bench);
type Event = (&'static str, fn(&mut Bench));

const PHASES: [Phase; 8] = [
    ("alone, quiet", || Bench::new(None)),
    ("alone, principal", || Bench::new(Some(5))),
    ("selecting, best", || {
        let mut bench = Bench::new(None);
        bench.up(1);
        bench.up(2);
        bench.pass(Span::from_ms(100));
        bench
    }),
    ("selecting, other", || {
        let mut bench = Bench::new(None);
        bench.up(1);
        bench.up(2);
        bench.receive(1, SwIls::Efp(efp(NEIGHBOUR, &[])));
        bench.pass(Span::from_ms(100));
        bench
    }),
    ("joined, no domain", || {
        let mut bench = Bench::new(None);
        bench.up(1);
        bench.up(2);
        bench.receive(1, SwIls::Efp(efp(NEIGHBOUR, &[(1, NEIGHBOUR)])));
        bench.pass(Span::from_ms(100));
        bench
    }),
    ("joined", || {
        let mut bench = Bench::new(Some(5));
        bench.up(1);
        bench.up(2);
        bench.receive(1, SwIls::Efp(efp(NEIGHBOUR, &[(1, NEIGHBOUR)])));
        bench.pass(Span::from_ms(100));
        bench.granted(5);
        bench.pass(Span::from_secs(30));
        bench
    }),
    ("joined, principal", || {
        let mut bench = Bench::new(Some(5));
        bench.up(2);
        bench.receive(2, SwIls::Rdi(Rdi { switch_name: OTHER, domains: vec![6] }));
        bench.up(1);
        bench.pass(Span::from_secs(30));
        bench
    }),
    ("hold", || {
        let mut bench = Bench::new(Some(5));
        bench.up(1);
        bench.up(2);
        bench.pass(Span::from_ms(100));
        bench.receive(1, SwIls::Bf);
        bench
    }),
];

const EVENTS: [Event; 22] = [
    ("link 1 up again", |b| b.up(1)),
    ("link 1 down", |b| b.input(Input::LinkDown { port: 1 })),
    ("link 2 down", |b| b.input(Input::LinkDown { port: 2 })),
    ("EFP, better", |b| b.receive(1, SwIls::Efp(efp(Wwnn(0x10), &[])))),
    ("EFP, worse", |b| b.receive(1, SwIls::Efp(efp(Wwnn(0x90), &[])))),
    ("EFP, better fabric", |b| b.receive(1, SwIls::Efp(efp(Wwnn(0x10), &[(9, Wwnn(0x10))])))),
    ("EFP, worse fabric", |b| b.receive(1, SwIls::Efp(efp(Wwnn(0x90), &[(9, Wwnn(0x90))])))),
    ("EFP, overlap", |b| b.receive(1, SwIls::Efp(efp(Wwnn(0x10), &[(5, Wwnn(0x10))])))),
    ("EFP, we as principal", |b| b.receive(1, SwIls::Efp(efp(US, &[(9, US)])))),
    ("EFP, domain 240", |b| b.receive(1, SwIls::Efp(efp(NEIGHBOUR, &[(240, NEIGHBOUR)])))),
    ("EFP rejected, overlap", |b| {
        b.answered(command::EFP, 1, SwRjt::new(Reason::LOGICAL_ERROR, Why::INVALID_DOMAIN_ID_LIST).into());
    }),
    ("EFP rejected, busy", |b| {
        b.answered(command::EFP, 1, SwRjt::new(Reason::LOGICAL_BUSY, Why::NONE).into());
    }),
    ("DIA", |b| b.receive(1, SwIls::Dia { switch_name: NEIGHBOUR })),
    ("RDI of a neighbour", |b| b.receive(2, SwIls::Rdi(Rdi { switch_name: OTHER, domains: vec![7] }))),
    ("granted", |b| b.granted(5)),
    ("granted, another", |b| b.granted(9)),
    ("none left", |b| b.answered(command::RDI, 1, SwRjt::new(Reason::UNABLE, Why::DOMAIN_UNAVAILABLE).into())),
    ("BF", |b| b.receive(1, SwIls::Bf)),
    ("RCF", |b| b.receive(1, SwIls::Rcf)),
    ("BF of a stranger", |b| b.receive(9, SwIls::Bf)),
    ("rebuild", |b| b.input(Input::Rebuild { disruptive: false })),
    ("rebuild, disruptive", |b| b.input(Input::Rebuild { disruptive: true })),
];

#[test]
fn every_phase_has_an_answer_to_every_event() {
    let mut table = String::new();
    for (phase, reach) in PHASES {
        for (event, happen) in EVENTS {
            let mut bench = reach();
            bench.emitted.clear();
            happen(&mut bench);
            // Immediate outputs, without the flooded EFP.
            let at_once = bench.emitted.len();
            bench.pass(Span::from_ms(50));
            let mut emitted = bench.emitted.clone();
            if at_once < emitted.len() {
                emitted.insert(at_once, "then".into());
            }
            let emitted = if emitted.is_empty() { "-".into() } else { emitted.join("; ") };
            let domain = bench.domain.domain().map_or("-".into(), |domain| domain.to_string());
            writeln!(table, "{phase:17} | {event:21} | {domain} | {emitted}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_gateway_gets_several_domains_or_none() {
    let (_, reach) = PHASES.iter().find(|(phase, _)| *phase == "joined, principal").expect("a principal");
    let mut bench = reach();
    let mut exchange = |domains: &[u8]| {
        bench.emitted.clear();
        bench.receive(2, SwIls::Rdi(Rdi { switch_name: OTHER, domains: domains.to_vec() }));
        let answer = bench.emitted[0].clone();
        bench.pass(Span::from_secs(1));
        answer
    };
    // The neighbour already has domain 6; this switch has 5.
    assert_eq!(exchange(&[6, 7]), "accept [6, 7]");
    assert_eq!(exchange(&[7, 6]), "accept [7, 6]");
    assert_eq!(exchange(&[0]), "accept [6]");
    assert!(exchange(&[0; 239]).starts_with("reject"), "one is ours");
    assert_eq!(exchange(&[5, 6, 7]), "accept [1, 6, 7]");
    let reported = bench.emitted.iter().any(|emitted| emitted.contains("domains"));
    assert!(reported, "the new domains are reported to the other machines: {:?}", bench.emitted);
}

#[test]
fn a_gateway_behind_another_switch_gets_the_domains_that_it_requested() {
    let (_, reach) = PHASES.iter().find(|(phase, _)| *phase == "joined").expect("a switch below the principal");
    let mut bench = reach();
    let of_gateway = |domains: &[u8]| SwIls::Rdi(Rdi { switch_name: OTHER, domains: domains.to_vec() });
    let accept = |domains: &[u8]| SwIls::SwAcc(SwAcc::Rdi(Rdi { switch_name: OTHER, domains: domains.to_vec() }));
    let emitted = |bench: &mut Bench| std::mem::take(&mut bench.emitted);
    emitted(&mut bench);
    bench.receive(2, of_gateway(&[8, 1, 0]));
    assert_eq!(emitted(&mut bench), ["RDI [8, 1, 0] to 1"]);
    // A repeated request gets the same answer. A request with another list is rejected and must be
    // repeated later.
    bench.receive(2, of_gateway(&[8, 1, 0]));
    assert_eq!(emitted(&mut bench), [""; 0]);
    bench.receive(2, of_gateway(&[8]));
    bench.receive(2, of_gateway(&[8, 1, 0, 0]));
    assert_eq!(emitted(&mut bench), ["reject 05/00"; 2]);
    bench.answered(command::RDI, 1, accept(&[8, 2, 3]));
    assert_eq!(emitted(&mut bench), ["accept [8, 2, 3]"; 2]);
    bench.receive(2, of_gateway(&[8]));
    assert_eq!(emitted(&mut bench), ["accept [8]"], "known here now");
    bench.receive(2, of_gateway(&[8, 2, 3, 0]));
    assert_eq!(emitted(&mut bench), ["RDI [8, 2, 3, 0] to 1"]);
    bench.answered(command::RDI, 1, SwRjt::new(Reason::UNABLE, Why::DOMAIN_UNAVAILABLE).into());
    assert_eq!(emitted(&mut bench), ["reject 09/2a"], "all of them, or none");
}
