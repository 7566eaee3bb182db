//! Every state of a node port with every event, as a snapshot table.

use sanloom_fc::nport::{FabricState, Input, NPort, NPortConfig, Output};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::els::{
    AddressFormat, Adisc, Els, Logo, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, Prli, PrliPage, Rscn, RscnPage, prli,
};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login, feature};
use sanloom_wire::ns::NsAccept;
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn};
use std::fmt::Write;

const OURS: FcId = FcId::new(0x010100);
const TARGET: FcId = FcId::new(0x010200);
const STRANGER: FcId = FcId::new(0x010300);

/// Node port, its last request, and its outputs since the last check.
struct Bench {
    now: Instant,
    port: NPort,
    request: Option<Frame>,
    emitted: Vec<String>,
}

impl Bench {
    fn new() -> Bench {
        let port = NPort::new(NPortConfig {
            wwpn: Wwpn(0x2100_0000_0000_0001),
            wwnn: Wwnn(0x2000_0000_0000_0001),
            receive_size_bytes: 2048,
            bb_credit: 8,
            bb_sc_n: 0,
            initiator: true,
            target: true,
            symbolic_name: "node".to_owned(),
            e_d_tov: Span::from_secs(2),
            r_a_tov: Span::from_secs(10),
            seed: 1,
            virtual_port: None,
        });
        Bench { now: Instant::ZERO, port, request: None, emitted: Vec::new() }
    }

    fn input(&mut self, input: Input) {
        self.port.handle(self.now, input);
        while let Some(output) = self.port.poll_output() {
            match output {
                Output::Send(frame) => {
                    let Payload::Typed(message) = &frame.payload else { unreachable!("control messages are typed") };
                    self.emitted.push(format!("{message} to {}", frame.header.d_id));
                    if message.reply_key().is_some() {
                        self.request = Some(frame);
                    }
                }
                Output::FabricUp { .. } => self.emitted.push("fabric up".to_owned()),
                Output::FabricDown => self.emitted.push("fabric down".to_owned()),
                Output::RemoteUp(remote) => self.emitted.push(format!("up {}", remote.port_id)),
                Output::RemoteDown { port_id, .. } => self.emitted.push(format!("down {port_id}")),
            }
        }
    }

    /// Delivers a message that another port sends on its own.
    fn receive(&mut self, from: FcId, message: Message) {
        let header = message.header(from, self.port.port_id(), 0x1234, 0xffff);
        self.input(Input::Frame(Frame { header, payload: Payload::Typed(message) }));
    }

    /// Answers the last request.
    fn answer(&mut self, message: Message) {
        let Some(request) = self.request.take() else {
            return;
        };
        let to = if request.header.d_id == FcId::F_PORT { OURS } else { request.header.s_id };
        let header = message.header(request.header.d_id, to, request.header.ox_id, 0x0001);
        self.input(Input::Frame(Frame { header, payload: Payload::Typed(message) }));
    }

    /// Accepts the last request.
    fn accept(&mut self) {
        let Some(Frame { payload: Payload::Typed(message), .. }) = &self.request else {
            return;
        };
        let answer = match message {
            Message::Els(els) => Message::from(Els::LsAcc(match **els {
                Els::Flogi(_) => LsAcc::Login(login(feature::F_PORT)),
                Els::Plogi(_) => LsAcc::Login(login(feature::CONTINUOUS_OFFSET)),
                Els::Prli(_) => LsAcc::Prli(Prli {
                    pages: vec![prli_page(prli::ESTABLISH_IMAGE_PAIR | prli::RESPONSE_EXECUTED, prli::TARGET)],
                }),
                Els::Adisc(_) => LsAcc::Adisc(adisc()),
                _ => LsAcc::Empty,
            })),
            _ if self.port.state() == FabricState::Ready => ns(CtBody::NsAccept(NsAccept::PortIds(vec![TARGET]))),
            _ => ns(CtBody::NsAccept(NsAccept::Empty)),
        };
        self.answer(answer);
    }

    fn wait(&mut self) {
        if let Some(at) = self.port.poll_timeout() {
            self.now = at;
            self.request = None;
            self.input(Input::Timeout);
        }
    }

    fn picture(&self) -> String {
        let remotes: Vec<String> = self.port.remotes().map(|(id, state)| format!("{id} {state:?}")).collect();
        format!("{:?} [{}]", self.port.state(), remotes.join(", "))
    }
}

fn login(features: u16) -> Login {
    Login {
        common: CommonParameters {
            highest_version: 0x20,
            lowest_version: 0x20,
            bb_credit: 8,
            features,
            receive_size_bytes: 2048,
            word_8: 10_000,
            e_d_tov: 2_000,
            ..CommonParameters::default()
        },
        port_name: Wwpn(0x2100_0000_0000_0002),
        node_name: Wwnn(0x2000_0000_0000_0002),
        class_1: ClassParameters::default(),
        class_2: ClassParameters::default(),
        class_3: ClassParameters {
            flags: ClassParameters::VALID,
            receive_size_bytes: 2048,
            ..ClassParameters::default()
        },
    }
}

fn prli_page(flags: u8, parameters: u32) -> PrliPage {
    PrliPage { fc4_type: 8, type_extension: 0, flags, originator_pa: 0, responder_pa: 0, parameters }
}

fn adisc() -> Adisc {
    Adisc {
        hard_address: FcId::ZERO,
        port_name: Wwpn(0x2100_0000_0000_0002),
        node_name: Wwnn(0x2000_0000_0000_0002),
        port_id: TARGET,
    }
}

fn ns(body: CtBody) -> Message {
    Message::from(Ct { in_id: 0, service: Service::NAME_SERVER, options: 0, max_or_residual_words: 0, body })
}

fn ls_rjt() -> Message {
    Message::from(Els::LsRjt(LsRjt { reason: LsRjtReason::UNABLE, explanation: LsRjtExplanation::NONE, vendor: 0 }))
}

fn ct_reject(reason: CtReason, explanation: u8) -> Message {
    ns(CtBody::Reject(CtReject { reason, explanation, vendor: 0 }))
}

fn logo(port_id: FcId) -> Message {
    Message::from(Els::Logo(Logo { port_id, port_name: Wwpn(0x2100_0000_0000_0002) }))
}

fn rscn(format: AddressFormat, address: FcId) -> Message {
    Message::from(Els::Rscn(Rscn { pages: vec![RscnPage { qualifier: 0, format, address }] }))
}

/// Operation on a bench.
type Step = fn(&mut Bench);

/// Operations that lead to each state after the link has come up.
const SITUATIONS: [(&str, Step); 7] = [
    ("discovering", |_| {}),
    ("logging in to a target", |bench| bench.accept()),
    ("process login with a target", |bench| (0..2).for_each(|_| bench.accept())),
    ("up with a target", |bench| (0..3).for_each(|_| bench.accept())),
    ("checking a target", |bench| {
        (0..3).for_each(|_| bench.accept());
        bench.receive(FcId::FABRIC_CONTROLLER, rscn(AddressFormat::Port, TARGET));
        bench.wait();
        bench.accept();
    }),
    ("a target in back-off", |bench| {
        bench.accept();
        bench.answer(ls_rjt());
    }),
    ("logged in to by a stranger", |bench| {
        bench.receive(STRANGER, Message::from(Els::Plogi(login(0))));
        let page = prli_page(prli::ESTABLISH_IMAGE_PAIR, prli::INITIATOR);
        bench.receive(STRANGER, Message::from(Els::Prli(Prli { pages: vec![page] })));
    }),
];

const EVENTS: [(&str, Step); 24] = [
    ("link up", |bench| bench.input(Input::LinkUp)),
    ("link down", |bench| bench.input(Input::LinkDown)),
    ("accept", |bench| bench.accept()),
    ("LS_RJT", |bench| bench.answer(ls_rjt())),
    ("FS_RJT busy", |bench| bench.answer(ct_reject(CtReason::LOGICAL_BUSY, 0))),
    ("FS_RJT unsupported", |bench| bench.answer(ct_reject(CtReason::NOT_SUPPORTED, 0))),
    ("FS_RJT 09/07", |bench| bench.answer(ct_reject(CtReason::UNABLE, 7))),
    ("strange reply", |bench| bench.answer(Message::from(Els::LsAcc(LsAcc::Echo(Box::new([])))))),
    ("timeout", |bench| bench.wait()),
    ("early timeout", |bench| bench.input(Input::Timeout)),
    ("PLOGI from target", |bench| bench.receive(TARGET, Message::from(Els::Plogi(login(0))))),
    ("PRLI from target", |bench| {
        let page = prli_page(prli::ESTABLISH_IMAGE_PAIR, prli::TARGET);
        bench.receive(TARGET, Message::from(Els::Prli(Prli { pages: vec![page] })));
    }),
    ("PRLI from stranger", |bench| {
        let page = prli_page(prli::ESTABLISH_IMAGE_PAIR, prli::INITIATOR);
        bench.receive(STRANGER, Message::from(Els::Prli(Prli { pages: vec![page] })));
    }),
    ("ADISC from target", |bench| bench.receive(TARGET, Message::from(Els::Adisc(adisc())))),
    ("LOGO from target", |bench| bench.receive(TARGET, logo(TARGET))),
    ("LOGO from stranger", |bench| bench.receive(STRANGER, logo(STRANGER))),
    ("LOGO from name server", |bench| bench.receive(FcId::NAME_SERVER, logo(FcId::NAME_SERVER))),
    ("LOGO from fabric", |bench| bench.receive(FcId::F_PORT, logo(FcId::F_PORT))),
    ("RSCN target", |bench| bench.receive(FcId::FABRIC_CONTROLLER, rscn(AddressFormat::Port, TARGET))),
    ("RSCN fabric", |bench| bench.receive(FcId::FABRIC_CONTROLLER, rscn(AddressFormat::Fabric, FcId::ZERO))),
    ("RTV", |bench| bench.receive(STRANGER, Message::from(Els::Rtv))),
    ("ECHO", |bench| bench.receive(STRANGER, Message::from(Els::Echo(Box::new([1, 2, 3, 4]))))),
    ("TEST", |bench| bench.receive(STRANGER, Message::from(Els::Test(Box::new([]))))),
    ("FLOGI from target", |bench| bench.receive(TARGET, Message::from(Els::Flogi(login(0))))),
];

#[test]
fn every_state_has_an_answer_to_every_event() {
    let mut states: Vec<(String, Vec<Step>)> = vec![("offline".to_owned(), Vec::new())];
    // Steps of the fabric login, each one accept further.
    for accepts in 0..8 {
        let mut steps: Vec<Step> = vec![|bench| bench.input(Input::LinkUp)];
        steps.extend((0..accepts).map(|_| (|bench: &mut Bench| bench.accept()) as Step));
        states.push(("on the way up".to_owned(), steps));
    }
    for (name, step) in SITUATIONS {
        let mut steps: Vec<Step> = vec![|bench| bench.input(Input::LinkUp)];
        steps.extend((0..8).map(|_| (|bench: &mut Bench| bench.accept()) as Step));
        steps.push(step);
        states.push((name.to_owned(), steps));
    }
    let mut table = String::new();
    for (name, steps) in states {
        let reach = || {
            let mut bench = Bench::new();
            steps.iter().for_each(|step| step(&mut bench));
            bench.emitted.clear();
            bench
        };
        let before = reach().picture();
        writeln!(table, "{name}: {before}").unwrap();
        for (event, happen) in EVENTS {
            let mut bench = reach();
            happen(&mut bench);
            let after = bench.picture();
            let state = if after == before { "=".to_owned() } else { after };
            let emitted = if bench.emitted.is_empty() { "-".to_owned() } else { bench.emitted.join("; ") };
            writeln!(table, "  {event:22} {state:50} {emitted}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
